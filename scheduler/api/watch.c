/* SPDX-License-Identifier: Apache-2.0
 *
 * Long polls: a request for a job's events or output that waits for new data. A watch is answered
 * from the database or the files, never from the event that woke it, so a spurious wake costs only
 * one check. A wake checks all watches of a job in one iteration of the loop, so each user may have
 * only a few of them.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/logs/archiver.h"
#include <stdlib.h>

#define BRING_BACK_MS 120000 /* how long a caller waits for output from the store */

#define WATCHES_OF_JOB_MAX 64 /* of one user on one job, or on all jobs */

struct watchers {
    struct list list;
};

struct watch {
    struct api *api;
    struct http_exchange *x;
    struct watch_of of;
    struct link in_watchers;
};

/* ---- available data ---- */

struct event_page {
    const struct api *api;
    const struct caller *viewer;
    bool may_read_all; /* the viewer was allowed to read the job whose events these are */
    json_t *events;
    int64_t last;
};

bool api_event_is_hidden(
    const struct api *a, const struct caller *viewer, const struct history_row *h)
{
    struct job_row row;
    struct err e;
    if (h->job == CORE_ID_NONE)
        return false;
    const struct job *j = model_job(tick_model(a->o.tick), h->job);
    if (!j && db_read_job(a->o.reader, h->job, &row, &e) != 0)
        return true;
    const struct access_object object = api_object_of_job(j ? &j->row : &row);
    return !access_may(viewer, RIGHT_READ_JOB, &object);
}

static int add_event(void *ctx, const struct history_row *h)
{
    struct event_page *f = ctx;
    bool is_hidden = !f->may_read_all && api_event_is_hidden(f->api, f->viewer, h);
    json_array_append_new(f->events, api_json_event(f->api->o.reader, h, is_hidden));
    f->last = h->id;
    return 0;
}

/* Returns true if it was answered. With must, it answers even without data. */
static bool answer_events(
    struct api *a, struct http_exchange *x, const struct watch_of *of, bool must)
{
    struct event_page f = {.api = a,
        .viewer = &of->viewer,
        .may_read_all = of->job != 0,
        .events = json_array(),
        .last = of->after};
    int64_t job = of->job;
    struct job_row row = {0};
    struct err e;
    int rc = job ? db_read_job(a->o.reader, job, &row, &e) : 0;
    if (rc == 0 && of->tail > 0)
        rc = db_read_last_history(a->o.reader, job, (int32_t)of->tail, add_event, &f, &e);
    else if (rc == 0)
        rc = db_read_history(a->o.reader, job, of->after, API_EVENTS_MAX, add_event, &f, &e);
    if (rc != 0) {
        json_decref(f.events);
        http_reply_err(x, &e);
        return true;
    }
    if (json_array_size(f.events) == 0 && !must && !(job && row.state == JOB_ENDED)) {
        json_decref(f.events);
        return false;
    }
    json_t *reply = json_pack("{s:o,s:I}", "events", f.events, "last", (json_int_t)f.last);
    if (job)
        json_object_set_new(reply, "state", json_string(sm_name(&job_sm, row.state)));
    api_reply_json(x, 200, reply);
    return true;
}

static bool answer_logs(
    struct api *a, struct http_exchange *x, const struct watch_of *of, bool must)
{
    struct buf out = {0};
    struct job_row row;
    struct err e;
    int64_t next = 0;
    bool complete = false, answered = true;
    char number[24];
    int rc = db_read_job(a->o.reader, of->job, &row, &e);
    if (rc == 0 && of->part.rank >= row.spec.nodes)
        rc = err_set(&e, ERR_NOT_FOUND, "job %s has %d node%s: ranks count from 0", job_ref(&row).s,
            (int)row.spec.nodes, row.spec.nodes == 1 ? "" : "s");
    if (rc == 0)
        rc = logs_read(
            a->o.logs, a->o.reader, &of->part, (size_t)of->max, &out, &next, &complete, &e);
    bool ended = rc == 0 && (row.state == JOB_ENDED || of->part.attempt > 0) && complete;
    if (rc != 0) {
        http_reply_err(x, &e);
    } else if (out.len == 0 && !ended && !must) {
        answered = false;
    } else {
        snprintf(number, sizeof(number), "%lld", (long long)next);
        http_reply_add_header(x, "Belay-Log-Next", number);
        if (ended)
            http_reply_add_header(x, "Belay-Log-End", "1");
        http_reply_bytes(x, 200, "application/octet-stream", out.data, out.len);
    }
    buf_deinit(&out);
    return answered;
}

static bool answer(struct api *a, struct http_exchange *x, const struct watch_of *of, bool must)
{
    if (of->kind == WATCH_EVENTS)
        return answer_events(a, x, of, must);
    return answer_logs(a, x, of, must);
}

/* ---- waiting ---- */

static void watch_free(struct watch *w)
{
    link_remove(&w->in_watchers);
    struct watchers *ws = map_get(&w->api->watchers, w->of.job);
    if (ws && list_is_empty(&ws->list)) {
        map_remove(&w->api->watchers, w->of.job);
        free(ws);
    }
    free(w);
}

static void on_timeout(void *ctx, struct http_exchange *x)
{
    struct watch *w = ctx;
    answer(w->api, x, &w->of, true);
    watch_free(w);
}

static void on_gone(void *ctx, struct http_exchange *x)
{
    (void)x;
    watch_free(ctx);
}

/* False after an error reply. */
static bool may_wait(struct http_exchange *x, const struct watchers *ws, const struct watch_of *of)
{
    int n = 0;
    LIST_FOREACH (&ws->list, l)
        n += str_eq(LIST_ENTRY(l, struct watch, in_watchers)->of.viewer.user, of->viewer.user);
    if (n < WATCHES_OF_JOB_MAX)
        return true;
    api_reply_failure(x, ERR_THROTTLED,
        "%d requests of %s wait for the same job already: let several readers share one",
        WATCHES_OF_JOB_MAX, of->viewer.user);
    return false;
}

/* A request for output that is in the store, and is brought back first. */
struct bring_back {
    struct deferred_reply *deferred;
    struct watch_of of;
};

static void on_back(void *ctx, const struct err *e)
{
    struct bring_back *b = ctx;
    struct api *a = b->deferred->api;
    struct http_exchange *x = deferred_reply_take(b->deferred);
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        answer(a, x, &b->of, true);
    free(b);
}

static void bring_back(struct request *q, const struct watch_of *of)
{
    struct bring_back *b;
    if (!archiver_may_fetch(q->api->o.archiver)) {
        api_reply_failure(q->x, ERR_THROTTLED,
            "the output of %d jobs is being brought back from the store: try again later",
            ARCHIVER_FETCHES_MAX);
        return;
    }
    b = mem_alloc(sizeof(*b));
    b->of = *of;
    b->deferred = deferred_reply_create(q->api, q->x, BRING_BACK_MS);
    archiver_fetch(q->api->o.archiver, of->job, on_back, b);
}

void api_watch(struct request *q, const struct watch_of *of, int64_t wait_ms)
{
    struct api *a = q->api;
    bool must = wait_ms <= 0 || a->shutting_down;
    if (of->kind == WATCH_LOGS && a->o.archiver && archiver_has(a->o.archiver, of->job)) {
        bring_back(q, of);
        return;
    }
    if (answer(a, q->x, of, must))
        return;
    struct watchers *ws = map_get(&a->watchers, of->job);
    if (ws && !may_wait(q->x, ws, of))
        return;
    if (!ws) {
        ws = mem_alloc(sizeof(*ws));
        map_put(&a->watchers, of->job, ws);
    }
    struct watch *w = mem_alloc(sizeof(*w));
    *w = (struct watch){.api = a, .x = q->x, .of = *of};
    list_push_back(&ws->list, &w->in_watchers);
    http_exchange_wait(q->x, wait_ms, on_timeout, on_gone, w);
}

static void wake(struct api *a, int64_t job, bool must)
{
    struct watchers *ws = map_get(&a->watchers, job);
    struct list due = {0};
    if (!ws)
        return;
    /* watch_free frees ws when its list is empty, so ws is not used after this loop */
    LIST_FOREACH (&ws->list, n) {
        struct watch *w = LIST_ENTRY(n, struct watch, in_watchers);
        if (answer(a, w->x, &w->of, must)) {
            link_remove(&w->in_watchers);
            list_push_back(&due, &w->in_watchers);
        }
    }
    for (struct link *n; (n = list_first(&due));)
        watch_free(LIST_ENTRY(n, struct watch, in_watchers));
}

void api_watch_wake(struct api *a, int64_t job)
{
    wake(a, job, false);
}

void api_watch_wake_all(struct api *a)
{
    size_t pos = 0;
    int64_t *jobs = mem_array(map_size(&a->watchers) + 1, sizeof(*jobs));
    size_t n = 0;
    int64_t job;
    while (map_next(&a->watchers, &pos, &job))
        jobs[n++] = job;
    for (size_t i = 0; i < n; i++)
        wake(a, jobs[i], true);
    free(jobs);
}

void api_watch_destroy_all(struct api *a)
{
    size_t pos = 0;
    for (struct watchers *ws; (ws = map_next(&a->watchers, &pos, NULL));) {
        for (struct link *n; (n = list_pop(&ws->list));)
            free(LIST_ENTRY(n, struct watch, in_watchers));
        free(ws);
    }
    map_deinit(&a->watchers);
}
