/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/api/audit/audit_trail.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_MS SECONDS_MS(60)

/* Not recorded, although the method is POST. */
static const char *const unrecorded[] = {
    /* they change nothing */
    "/api/v1/jobs/estimate",
    "/api/v1/audit",
    "/login/device",
    /* data of a working directory that is kept only once a job names it */
    "/api/v1/workdirs/pieces",
    /* data of a session whose begin is recorded */
    "/api/v1/channels/#/input",
    /* what nodes report of what they were told to do: jobs, not administration; the history has it
     */
    "/agent/v1/sync",
    "/agent/v1/output/#/#",
    "/agent/v1/workdir/#/#",
    "/agent/v1/workdir/#/#/pieces",
    "/agent/v1/channels/#/claim",
    "/agent/v1/channels/#/output",
    "/agent/v1/channels/#/input",
    NULL,
};

void audit_trail_name_request(struct request *q)
{
    snprintf(q->request_id, sizeof(q->request_id), "%llx-%llx",
        (unsigned long long)q->api->o.meta->boots, (unsigned long long)q->api->n_requests);
    http_exchange_set_id(q->x, q->request_id);
}

bool audit_trail_has(const char *method, const char *path)
{
    if (str_eq(path, "/login/callback")) /* a browser signs in */
        return true;
    return !str_eq(method, "GET") && !str_is_one_of(path, unrecorded);
}

/* ---- the limit of refused calls ---- */

static void begin_window(struct api *a, struct mono now)
{
    struct audit_limit *l = &a->audit_limit;
    if (mono_is_set(l->until) && now.ms < l->until.ms)
        return;
    smap_deinit(&l->users);
    l->users = (struct smap){0};
    l->until = (struct mono){now.ms + WINDOW_MS};
    l->n = 0;
}

static bool has_left(struct audit_limit *l, const char *user)
{
    intptr_t n = (intptr_t)smap_get(&l->users, user);
    if (n >= REFUSED_PER_USER || l->n >= REFUSED_PER_MINUTE)
        return false;
    smap_put(&l->users, user, (void *)(n + 1));
    l->n++;
    return true;
}

static bool may_record(void *ctx, struct audit_row *row)
{
    struct api *a = ctx;
    if (str_eq(row->result, "ok"))
        return true;
    begin_window(a, clock_mono(a->o.timers->clock));
    if (!has_left(&a->audit_limit, row->user[0] ? row->user : "-")) {
        a->audit_limit.n_left_out++;
        return false;
    }
    if (a->audit_limit.n_left_out > 0) {
        size_t n = strlen(row->object);
        snprintf(row->object + n, sizeof(row->object) - n, " (%lld left out before)",
            (long long)a->audit_limit.n_left_out);
        a->audit_limit.n_left_out = 0;
    }
    return true;
}

/* ---- calls ---- */

static const char *result_of(int status)
{
    static const enum err_kind kinds[] = {ERR_INVALID, ERR_DENIED, ERR_NOT_FOUND, ERR_CONFLICT,
        ERR_CONFIG, ERR_THROTTLED, ERR_UNSUPPORTED, ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_NO_SPACE};
    if (status == 0)
        return "unanswered";
    if (status < 400)
        return "ok";
    if (status == 401)
        return err_kind_name(ERR_DENIED);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (http_status_of(kinds[i]) == status)
            return err_kind_name(kinds[i]);
    return err_kind_name(status < 500 ? ERR_INVALID : ERR_INTERNAL);
}

struct answered {
    struct api *api;
    struct tick_call *call;
};

static void on_answer(void *ctx, int status)
{
    struct answered *r = ctx;
    if (status != 202) /* a sign-in that waits for its user */
        tick_record_call(r->api->o.tick, r->call, result_of(status));
    tick_call_release(r->call);
    free(r);
}

static void set_source(const struct request *q, char *out, size_t size)
{
    const struct http_server_request *r = q->r;
    if (r->is_unix)
        snprintf(out, size, "unix uid=%u pid=%d", (unsigned)r->peer_uid, (int)r->peer_pid);
    else if (r->peer_cn)
        snprintf(out, size, "%s %s", r->peer_address, r->peer_cn);
    else if (q->caller.token)
        snprintf(out, size, "%s token=%lld", r->peer_address, (long long)q->caller.token);
    else if (q->caller.job)
        snprintf(out, size, "%s job=%lld.%lld", r->peer_address, (long long)q->caller.job,
            (long long)q->caller.attempt);
    else
        str_copy(out, size, r->peer_address);
}

struct tick_call *audit_trail_begin(struct request *q, const char *method, const char *route)
{
    struct tick_call *call = mem_alloc(sizeof(*call));
    struct answered *r = mem_alloc(sizeof(*r));
    *call = (struct tick_call){.may_record = may_record, .ctx = q->api, .refs = 1};
    *r = (struct answered){.api = q->api, .call = call};
    snprintf(call->row.route, sizeof(call->row.route), "%s %s", method, route);
    STR_COPY(call->row.request, q->request_id);
    if (q->id2)
        snprintf(call->row.object, sizeof(call->row.object), "%lld.%lld", (long long)q->id,
            (long long)q->id2);
    else if (q->id)
        snprintf(call->row.object, sizeof(call->row.object), "%lld", (long long)q->id);
    audit_trail_set_caller(q, call);
    http_exchange_on_answer(q->x, on_answer, r);
    return call;
}

void audit_trail_set_caller(const struct request *q, struct tick_call *call)
{
    STR_COPY(call->row.user, q->caller.user);
    set_source(q, call->row.source, sizeof(call->row.source));
}
