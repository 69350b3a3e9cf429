/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/api/stream/replay.h"

#include "base/log.h"
#include "base/mem.h"
#include "scheduler/api/stream/stream.h"
#include <stdlib.h>

struct missed {
    const struct replay *of;
    struct history_row *rows;
    size_t n;
};

static int add_row(void *ctx, const struct history_row *h)
{
    struct missed *m = ctx;
    if (h->id > m->of->last)
        return 1; /* its commit is not announced yet; the stream will get it then */
    m->rows[m->n++] = *h;
    return 0;
}

static bool is_first_of_job(const struct missed *m, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (m->rows[k].job == m->rows[i].job)
            return false;
    return m->rows[i].job != CORE_ID_NONE;
}

static void add_missed(const struct missed *m, struct stream_messages *ms)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->of->types & 1u << STREAM_JOB && is_first_of_job(m, i))
            stream_add_stored_job(ms, m->rows[i].job);
    for (size_t i = 0; i < m->n; i++)
        if (m->of->types & 1u << STREAM_EVENT)
            stream_add_event(ms, &m->rows[i], NULL);
}

const char *stream_replay(const struct replay *r, struct stream_messages *ms)
{
    struct err e;
    struct missed m = {.of = r};
    const char *why = NULL;
    if (r->after > r->last)
        return "the id is of an event that did not happen here";
    if (r->after == r->last)
        return NULL;
    if (r->job == 0 && r->last - r->after > STREAM_REPLAY_MAX)
        return "too much has happened since";
    m.rows = mem_array(STREAM_REPLAY_MAX + 1, sizeof(*m.rows));
    int rc = db_read_history(
        ms->api->o.reader, r->job, r->after, STREAM_REPLAY_MAX + 1, add_row, &m, &e);
    if (rc != 0) {
        log_error("events for a stream cannot be read", log_err(&e));
        why = "the events since cannot be read";
    } else if (m.n > STREAM_REPLAY_MAX) {
        why = "too much has happened since";
    } else if (r->job == 0 && (int64_t)m.n != r->last - r->after) {
        why = "some of the events since were deleted";
    } else {
        add_missed(&m, ms);
    }
    free(m.rows);
    return why;
}
