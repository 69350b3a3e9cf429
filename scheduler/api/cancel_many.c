/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /api/v1/jobs/cancel: many jobs at once, in one commit. Jobs that have ended, do not exist or
 * belong to other users are not changed; the reply counts them. The cancel of a single job is
 * api_jobs_cancel (jobs.c).
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define CANCEL_PIECES_MAX 10000
#define CANCEL_JOBS_MAX 1000000 /* in all pieces together */

#define CANCELS_PER_USER_MAX 4 /* in progress at once */

struct cancel_many {
    struct link in_api;
    struct deferred_reply *deferred;
    struct caller by;
    int64_t n_cancelled, n_ended, n_denied;
    size_t n;
    struct {
        int64_t first, last;
    } pieces[];
};

static void cancel_one(struct cancel_many *c, struct tick *t, int64_t id)
{
    const struct job *j = model_job(tick_model(t), id);
    struct event ev = {.type = EV_CANCEL, .cancel.job = id};
    struct err ignored;
    int64_t ret;
    if (!j || j->row.state == JOB_ENDED) {
        c->n_ended++;
        return;
    }
    const struct access_object object = api_object_of_job(&j->row);
    if (!access_may(&c->by, RIGHT_CHANGE, &object)) {
        c->n_denied++;
    } else {
        STR_COPY(ev.cancel.by, c->by.user);
        c->n_cancelled += tick_apply(t, &ev, &ret, &ignored) == 0;
    }
}

static int apply(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct cancel_many *c = ctx;
    (void)ret_id, (void)e;
    for (size_t i = 0; i < c->n; i++) {
        int64_t *ids, numbers = c->pieces[i].last - c->pieces[i].first + 1;
        size_t n = model_jobs_between(tick_model(t), c->pieces[i].first, c->pieces[i].last, &ids);
        for (size_t k = 0; k < n; k++)
            cancel_one(c, t, ids[k]);
        /* not in the model: ended jobs, and numbers that never existed */
        c->n_ended += numbers - (int64_t)n;
        free(ids);
    }
    return 0;
}

static void on_done(void *ctx, const struct err *e, int64_t id)
{
    struct cancel_many *c = ctx;
    struct http_exchange *x = deferred_reply_take(c->deferred);
    (void)id;
    link_remove(&c->in_api);
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200,
            json_pack("{s:I, s:I, s:I}", "cancelled", (json_int_t)c->n_cancelled, "ended",
                (json_int_t)c->n_ended, "denied", (json_int_t)c->n_denied));
    free(c);
}

/* Reads "42" or "10-20". */
static int parse_piece(const char *text, int64_t *ret_first, int64_t *ret_last, struct err *e)
{
    char first[24];
    size_t n = strcspn(text, "-");
    if (n >= sizeof(first))
        return err_set(e, ERR_INVALID, "expected a job's number or a range of them, 10-20");
    memcpy(first, text, n);
    first[n] = '\0';
    int rc = str_to_i64(first, 1, INT64_MAX - 1, "a job's number", ret_first, e);
    *ret_last = *ret_first;
    if (!rc && text[n])
        rc = str_to_i64(
            text + n + 1, *ret_first, INT64_MAX - 1, "the last job's number", ret_last, e);
    return rc;
}

static int read_pieces(const json_t *list, struct cancel_many *c, struct err *e)
{
    int64_t left = CANCEL_JOBS_MAX;
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        int rc = parse_piece(text ? text : "", &c->pieces[i].first, &c->pieces[i].last, e);
        if (rc)
            return err_wrap(e, "jobs[%zu]", i);
        left -= c->pieces[i].last - c->pieces[i].first + 1;
        if (left < 0)
            return err_set(e, ERR_INVALID, "jobs: more than %d at once", CANCEL_JOBS_MAX);
        c->n++;
    }
    return 0;
}

/* Limits the requests of a user, because each processes many jobs in one iteration of the loop.
 * Returns false after an error reply. */
static bool may_begin(struct request *q)
{
    int n = 0;
    LIST_FOREACH (&q->api->cancels, l)
        n += str_eq(LIST_ENTRY(l, struct cancel_many, in_api)->by.user, q->caller.user);
    if (n < CANCELS_PER_USER_MAX)
        return true;
    api_reply_failure(q->x, ERR_THROTTLED,
        "%d requests of %s that cancel many jobs are in progress: nothing was cancelled; try again "
        "when they have been answered, or name more jobs in one",
        CANCELS_PER_USER_MAX, q->caller.user);
    return false;
}

void api_jobs_cancel_many(struct request *q)
{
    struct json_reader r;
    struct err e;
    struct cancel_many *c = NULL;
    json_t *body = may_begin(q) ? api_body(q, API_UNAUTHENTICATED_BODY_MAX) : NULL;
    if (!body)
        return;
    json_reader_init(&r, body, "body", &e);
    const json_t *list = json_req_array(&r, "jobs", CANCEL_PIECES_MAX);
    int rc = json_reader_finish(&r);
    if (rc == 0) {
        c = mem_alloc(sizeof(*c) + json_array_size(list) * sizeof(c->pieces[0]));
        rc = read_pieces(list, c, &e);
    }
    json_decref(body);
    if (rc) {
        http_reply_err(q->x, &e);
        free(c);
        return;
    }
    c->by = q->caller;
    c->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    list_push_back(&q->api->cancels, &c->in_api);
    tick_post_work(q->api->o.tick, apply, on_done, c);
}
