/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for drills.
 */
#include "scheduler/api/api_private.h"

#include "base/str.h"

void api_jobs_drill(struct request *q)
{
    struct event ev = {.type = EV_DRILL, .drill = {.job = q->id}};
    STR_COPY(ev.drill.by, q->caller.user);
    const struct api_flag flag = {"without_notice", &ev.drill.without_notice};
    struct job_row row;
    if (api_find_live_job(q, RIGHT_CHANGE, "drill", &row) && api_read_flags(q, &flag, 1))
        tick_post(q->api->o.tick, &ev, api_on_done,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

struct drill_search {
    int64_t number;
    struct drill_row row; /* number 0 = none */
};

static int find_drill(void *ctx, const struct drill_row *d)
{
    struct drill_search *f = ctx;
    if (d->number == f->number)
        f->row = *d;
    return 0;
}

/* Reads {"number": 1, "with": 41, "equal": false, "text": "..."}. Returns false after an error
 * reply. */
static bool read_compared(struct request *q, int64_t *ret_number, struct event *ret_event)
{
    struct json_reader r;
    struct err e;
    json_t *body = api_body(q, API_UNAUTHENTICATED_BODY_MAX);
    if (!body)
        return false;
    json_reader_init(&r, body, "body", &e);
    *ret_number = json_req_i64(&r, "number", 1, INT64_MAX);
    ret_event->compared.with = json_req_i64(&r, "with", 1, INT64_MAX);
    ret_event->compared.equal = json_req_bool(&r, "equal");
    json_opt_strcpy(
        &r, "text", ret_event->compared.text, sizeof(ret_event->compared.text), "they differ");
    int rc = json_reader_finish(&r);
    json_decref(body);
    if (rc != 0)
        http_reply_err(q->x, &e);
    return rc == 0;
}

/* Checks that both jobs have a result to compare: this one after any number of attempts, the other
 * after a single one. */
static int check_compared(struct request *q, const struct job_row *row, int64_t with, struct err *e)
{
    struct job_row other;
    int rc =
        row->end != END_SUCCEEDED
            ? err_set(e, ERR_CONFLICT, "job %s has not succeeded: it has no result", job_ref(row).s)
            : db_read_job(q->api->o.reader, with, &other, e);
    if (rc == 0 && (other.end != END_SUCCEEDED || other.attempts != 1))
        rc = err_set(e, ERR_CONFLICT,
            "job %s has not succeeded in a single attempt: it is not an undisturbed run",
            job_ref(&other).s);
    else if (rc == 0 && !str_eq(other.script_key, row->script_key))
        rc = err_set(e, ERR_CONFLICT, "job %s is of another user, method or script than job %s",
            job_ref(&other).s, job_ref(row).s);
    return rc;
}

void api_jobs_compared(struct request *q)
{
    struct event ev = {.type = EV_DRILL_COMPARED};
    struct drill_search f = {0};
    struct job_row row;
    struct err e;
    STR_COPY(ev.compared.by, q->caller.user);
    if (!api_find_job(q, RIGHT_CHANGE, &row) || !read_compared(q, &f.number, &ev))
        return;
    int rc = check_compared(q, &row, ev.compared.with, &e);
    if (rc == 0)
        rc = db_read_job_drills(q->api->o.reader, q->id, find_drill, &f, &e);
    if (rc == 0 && f.row.number == 0)
        rc = err_set(
            &e, ERR_NOT_FOUND, "job %s has no drill %lld", job_ref(&row).s, (long long)f.number);
    if (rc != 0) {
        http_reply_err(q->x, &e);
        return;
    }
    ev.compared.drill = &f.row;
    tick_post(
        q->api->o.tick, &ev, api_on_done, deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

struct drill_list {
    const struct request *q;
    json_t *list;
};

static int add_drill(void *ctx, const struct drill_row *d)
{
    const struct drill_list *l = ctx;
    struct job_row row;
    struct err e;
    int rc = db_read_job(l->q->api->o.reader, d->job, &row, &e);
    const struct access_object object =
        rc == 0 ? api_object_of_job(&row) : (struct access_object){.user = d->user};
    if (access_may(&l->q->caller, RIGHT_READ_JOB, &object))
        json_array_append_new(l->list, api_json_drill(l->q->api->o.reader, d));
    return 0;
}

void api_drills_list(struct request *q)
{
    json_t *list = json_array();
    int64_t limit;
    struct err e;
    if (!api_query_i64(q, "limit", 1, API_LIST_MAX, 50, &limit)) {
        json_decref(list);
        return;
    }
    if (db_read_drills(q->api->o.reader, http_request_query(q->x, "user"), (int32_t)limit,
            add_drill, &(struct drill_list){q, list}, &e) == 0) {
        api_reply_json(q->x, 200, json_pack("{s:o}", "drills", list));
    } else {
        json_decref(list);
        http_reply_err(q->x, &e);
    }
}
