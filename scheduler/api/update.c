/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /api/v1/jobs/ID/update: changes options of a job; all of them in one commit, or none.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/attributes.h"
#include "scheduler/api/update_request.h"
#include <stdlib.h>

struct update_call {
    struct api *api;
    struct update_request u;
    int64_t job;
    int64_t attempt; /* the attempt that requests the change; 0 = a user does */
    char by[CORE_NAME_MAX];
    struct deferred_reply *deferred;
};

/* Refuses a change that the token of an attempt does not allow. */
static int check_inside(const struct caller *caller, const json_t *body, struct err *e)
{
    const char *key;
    json_t *value;
    if (!caller->job)
        return 0;
    json_object_foreach((json_t *)(uintptr_t)body, key, value)
    {
        const struct job_attribute *a = job_attribute_by_name(key);
        char shown[STR_SHOW_MAX];
        if (!a || !(a->masks & JOB_UPDATE_INSIDE))
            return err_set(e, ERR_DENIED,
                "changes: %s is not for the job itself to change: its user can, with an API token",
                str_show(key, shown));
    }
    return 0;
}

static int check_attempt(const struct update_call *x, const struct model *m, struct err *e)
{
    if (!x->attempt || api_attempt_lives(model_job(m, x->job), x->attempt))
        return 0;
    return err_set(e, ERR_DENIED, "attempt %lld of job %lld has ended", (long long)x->attempt,
        (long long)x->job);
}

static int apply(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct update_call *x = ctx;
    struct event ev = update_request_event(&x->u, x->job, x->by);
    int rc = check_attempt(x, tick_model(t), e);
    if (rc == 0)
        rc = api_read_ended(x->api, &x->u.to, e);
    return rc != 0 ? rc : tick_apply(t, &ev, ret_id, e);
}

static void on_done(void *ctx, const struct err *e, int64_t id)
{
    struct update_call *x = ctx;
    api_on_done(x->deferred, e, id);
    update_request_deinit(&x->u);
    free(x);
}

/* Checks names that must be in belayd's configuration, and that the job stays in the caller's
 * reach: a token for one pool moves no job to another. */
static int check_names(const struct request *q, const struct update_request *u, struct err *e)
{
    const struct api *a = q->api;
    const struct job_row *to = &u->to.row;
    const struct scope *scope = &q->caller.scope;
    if ((u->fields & UPDATE_BIT(UPDATE_POOL)) && scope->kind == SCOPE_POOL &&
        !str_eq(to->spec.pool, scope->pool))
        return err_set(
            e, ERR_DENIED, "changes.pool: the token is for jobs of pool %s only", scope->pool);
    if ((u->fields & UPDATE_BIT(UPDATE_POOL)) &&
        pools_check_names(a->o.pools, to->spec.pool, "changes", e) != 0)
        return ERR_INVALID;
    return u->fields & UPDATE_BIT(UPDATE_WINDOW) ? api_check_window(a, to, e) : 0;
}

static int parse(const struct request *q, const struct job_row *row, const json_t *body,
    struct update_request *ret_update, struct err *e)
{
    struct spec_change spec = {0};
    struct constraints_row constraints = {0};
    const struct api *a = q->api;
    int rc = db_read_spec(a->o.reader, row->id, &spec, e);
    if (rc == 0 && row->constraints != CONSTRAINTS_NONE)
        rc = db_read_constraints(a->o.reader, row->constraints, &constraints, e);
    const struct update_request_of of = {row, constraints.text, spec.launch_json};
    if (rc == 0)
        rc = update_request_parse(body, &of, ret_update, e);
    if (rc == 0 && (rc = check_names(q, ret_update, e)) != 0)
        update_request_deinit(ret_update);
    spec_change_deinit(&spec);
    return rc;
}

void api_jobs_update(struct request *q)
{
    struct update_request u;
    struct job_row row;
    struct err e;
    if (!api_find_live_job(q, RIGHT_CHANGE, "change", &row))
        return;
    json_t *body = api_body(q, UPDATE_REQUEST_BYTES_MAX);
    if (!body)
        return;
    int rc = check_inside(&q->caller, body, &e);
    if (rc == 0)
        rc = parse(q, &row, body, &u, &e);
    json_decref(body);
    if (rc != 0) {
        http_reply_err(q->x, &e);
        return;
    }
    struct update_call *x = mem_alloc(sizeof(*x));
    *x = (struct update_call){.api = q->api,
        .u = u,
        .job = q->id,
        .attempt = q->caller.attempt,
        .deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS)};
    STR_COPY(x->by, q->caller.user);
    tick_post_work(q->api->o.tick, apply, on_done, x);
}
