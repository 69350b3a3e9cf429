/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/jobs/N/events and /logs: what happens to a job, and its output. Both may wait for new
 * data (watch.c).
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include <stdlib.h>

#define LOG_PIECE_MAX (256 << 10)

static bool may_read(struct request *q)
{
    struct job_row row;
    return api_find_job(q, RIGHT_READ_JOB, &row);
}

void api_jobs_events(struct request *q)
{
    struct watch_of of = {.kind = WATCH_EVENTS, .job = q->id, .viewer = q->caller};
    int64_t wait_ms;
    if (may_read(q) && api_query_i64(q, "after", 0, INT64_MAX, 0, &of.after) &&
        api_query_i64(q, "tail", 1, API_EVENTS_MAX, 0, &of.tail) &&
        api_query_i64(q, "wait_ms", 0, API_WAIT_MAX_MS, 0, &wait_ms))
        api_watch(q, &of, wait_ms);
}

/* A time before 1970 counts as none. */
static bool read_since(struct request *q, struct wall *ret_since)
{
    if (!api_query_time(q, "since", ret_since))
        return false;
    if (wall_is_set(*ret_since) && ret_since->ms < 0)
        *ret_since = WALL_NONE;
    return true;
}

/* A request for a part of the log whose start must be searched for. This is slow, so such requests
 * take turns. */
struct search {
    struct turn turn;
    struct deferred_reply *deferred;
    struct api *api;
    struct watch_of of;
    int64_t wait_ms;
};

static void search_now(struct turn *turn, void *moment)
{
    struct search *s = LIST_ENTRY(turn, struct search, turn);
    struct request q = {.api = s->api, .x = deferred_reply_take(s->deferred)};
    (void)moment;
    if (q.x)
        api_watch(&q, &s->of, s->wait_ms);
    free(s);
}

static void search(struct request *q, const struct watch_of *of, int64_t wait_ms)
{
    struct search *s = mem_alloc(sizeof(*s));
    *s = (struct search){.turn.run = search_now, .api = q->api, .of = *of, .wait_ms = wait_ms};
    if (api_take_turn(q, &s->turn))
        s->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    else
        free(s);
}

void api_jobs_logs(struct request *q)
{
    struct watch_of of = {
        .kind = WATCH_LOGS, .job = q->id, .viewer = q->caller, .part = {.job = q->id}};
    int64_t wait_ms, rank;
    if (!may_read(q) || !api_query_i64(q, "offset", -(1LL << 40), INT64_MAX, 0, &of.part.offset) ||
        !read_since(q, &of.part.since) ||
        !api_query_i64(q, "tail", 1, LOGS_TAIL_MAX, 0, &of.part.tail) ||
        !api_query_i64(q, "attempt", 1, INT32_MAX, 0, &of.part.attempt) ||
        !api_query_i64(q, "wait_ms", 0, API_WAIT_MAX_MS, 0, &wait_ms) ||
        !api_query_i64(q, "max", 1, LOG_PIECE_MAX, LOG_PIECE_MAX, &of.max) ||
        !api_query_i64(q, "rank", 0, JOB_NODES_MAX - 1, 0, &rank))
        return;
    of.part.rank = (int32_t)rank;
    if (of.part.tail > 0 || of.part.offset < 0 || wall_is_set(of.part.since))
        search(q, &of, wait_ms);
    else
        api_watch(q, &of, wait_ms);
}
