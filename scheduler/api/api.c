/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's entry point: identifies the caller, selects the route, and sends deferred replies. The
 * routes are in the other files of this folder.
 */
#include "scheduler/api/api_private.h"

#include "scheduler/api/audit/audit_trail.h"
#include "scheduler/api/login/links.h"
#include "scheduler/api/login/loopback.h"
#include "scheduler/api/login/sign_in.h"
#include "scheduler/api/stream/stream.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "scheduler/metrics/log_lag.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Calls without a user that sign in, by address: a device asks every few seconds. */
#define LOGINS_PER_S 2
#define LOGINS_BURST 60

struct route {
    const char *method;
    const char *path; /* '#' matches a number */
    enum api_need need;
    void (*handle)(struct request *q);
    enum right right; /* the roles and scopes that have it: scheduler/access/access.c */
};

static const struct route routes[] = {
    {"POST", "/api/v1/jobs", NEED_WRITER, api_jobs_submit, RIGHT_SUBMIT},
    {"GET", "/api/v1/jobs", NEED_USER, api_jobs_list, RIGHT_READ_JOB},
    {"GET", "/api/v1/jobs/#", NEED_USER, api_jobs_show, RIGHT_READ_JOB},
    {"GET", "/api/v1/jobs/#/why", NEED_USER, api_jobs_why, RIGHT_READ_JOB},
    {"GET", "/api/v1/jobs/#/diagnose", NEED_USER, api_jobs_diagnose, RIGHT_READ_JOB},
    {"GET", "/api/v1/jobs/#/load", NEED_USER, api_jobs_load, RIGHT_READ_JOB},
    {"GET", "/api/v1/jobs/#/events", NEED_USER, api_jobs_events, RIGHT_READ_JOB},
    {"GET", "/api/v1/jobs/#/logs", NEED_USER, api_jobs_logs, RIGHT_READ_JOB},
    {"POST", "/api/v1/jobs/estimate", NEED_USER, api_jobs_estimate, RIGHT_SUBMIT},
    {"POST", "/api/v1/jobs/cancel", NEED_USER, api_jobs_cancel_many, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/cancel", NEED_USER, api_jobs_cancel, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/reclaim", NEED_USER, api_jobs_reclaim, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/requeue", NEED_WRITER, api_jobs_requeue, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/update", NEED_OWN_WRITER, api_jobs_update, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/hold", NEED_WRITER, api_jobs_hold, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/release", NEED_WRITER, api_jobs_release, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/drill", NEED_WRITER, api_jobs_drill, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/compared", NEED_WRITER, api_jobs_compared, RIGHT_CHANGE},
    {"GET", "/api/v1/drills", NEED_USER, api_drills_list, RIGHT_READ_JOB},
    {"POST", "/api/v1/jobs/#/save", NEED_WRITER, api_jobs_save, RIGHT_CHANGE},
    {"GET", "/api/v1/jobs/#/checkpoints", NEED_USER, api_checkpoints_list, RIGHT_READ_JOB},
    {"POST", "/api/v1/jobs/#/checkpoints/pin", NEED_WRITER, api_checkpoints_pin, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/checkpoints/unpin", NEED_USER, api_checkpoints_unpin, RIGHT_CHANGE},
    {"POST", "/api/v1/jobs/#/checkpoints/verify", NEED_WRITER, api_checkpoints_verify,
        RIGHT_CHANGE},
    {"GET", "/api/v1/jobs/#/checkpoints/verify", NEED_USER, api_checkpoints_verified,
        RIGHT_READ_JOB},
    {"POST", "/api/v1/jobs/#/exec", NEED_SESSION, api_jobs_exec, RIGHT_ENTER},
    {"GET", "/api/v1/channels/#/output", NEED_SESSION, api_channel_output, RIGHT_ENTER},
    {"POST", "/api/v1/channels/#/input", NEED_SESSION, api_channel_input, RIGHT_ENTER},
    {"POST", "/api/v1/channels/#/close", NEED_SESSION, api_channel_close, RIGHT_ENTER},
    {"POST", "/api/v1/workdirs", NEED_USER, api_workdirs_put, RIGHT_SUBMIT},
    {"POST", "/api/v1/workdirs/pieces", NEED_USER, api_workdirs_add, RIGHT_SUBMIT},
    {"POST", "/api/v1/crons", NEED_WRITER, api_crons_add, RIGHT_CRON_EDIT},
    {"GET", "/api/v1/crons", NEED_USER, api_crons_list, RIGHT_READ_JOB},
    {"GET", "/api/v1/crons/plan", NEED_USER, api_crons_plan, RIGHT_READ_JOB},
    {"GET", "/api/v1/crons/#", NEED_USER, api_crons_show, RIGHT_READ_JOB},
    {"POST", "/api/v1/crons/#", NEED_WRITER, api_crons_edit, RIGHT_CRON_EDIT},
    {"POST", "/api/v1/crons/#/pause", NEED_USER, api_crons_pause, RIGHT_CRON},
    {"POST", "/api/v1/crons/#/resume", NEED_WRITER, api_crons_resume, RIGHT_CRON},
    {"POST", "/api/v1/crons/#/remove", NEED_USER, api_crons_remove, RIGHT_CRON},
    {"POST", "/api/v1/crons/#/run", NEED_WRITER, api_crons_run, RIGHT_CRON_RUN},
    {"POST", "/api/v1/crons/#/dates", NEED_WRITER, api_crons_dates, RIGHT_CRON_RUN},
    {"GET", "/api/v1/crons/#/runs", NEED_USER, api_crons_runs, RIGHT_READ_JOB},
    {"GET", "/api/v1/calendars", NEED_USER, api_calendars_list, RIGHT_READ},
    {"POST", "/api/v1/calendars", NEED_WRITER, api_calendars_set, RIGHT_OPERATE},
    {"POST", "/api/v1/calendars/remove", NEED_USER, api_calendars_remove, RIGHT_OPERATE},
    {"GET", "/api/v1/nodes", NEED_USER, api_nodes_list, RIGHT_READ},
    {"GET", "/api/v1/shares", NEED_USER, api_shares_list, RIGHT_READ},
    {"GET", "/api/v1/users", NEED_USER, api_users_list, RIGHT_READ},
    {"GET", "/api/v1/quotas", NEED_USER, api_quotas_list, RIGHT_READ},
    {"GET", "/api/v1/budgets", NEED_USER, api_budgets_list, RIGHT_READ},
    {"GET", "/api/v1/digest", NEED_USER, api_digest_show, RIGHT_READ_JOB},
    {"GET", "/api/v1/digest/subscription", NEED_USER, api_digest_subscription, RIGHT_READ_JOB},
    {"POST", "/api/v1/digest/subscription", NEED_WRITER, api_digest_subscribe, RIGHT_SUBMIT},
    {"GET", "/api/v1/racks", NEED_USER, api_racks_list, RIGHT_READ},
    {"GET", "/api/v1/summary", NEED_USER, api_summary, RIGHT_READ},
    {"POST", "/api/v1/nodes/#/drain", NEED_USER, api_nodes_drain, RIGHT_OPERATE},
    {"POST", "/api/v1/nodes/#/undrain", NEED_USER, api_nodes_undrain, RIGHT_OPERATE},
    {"POST", "/api/v1/nodes/#/delete", NEED_USER, api_nodes_delete, RIGHT_OPERATE},
    {"GET", "/api/v1/reservations", NEED_USER, api_reservations_list, RIGHT_READ},
    {"POST", "/api/v1/reservations", NEED_WRITER, api_reservations_add, RIGHT_OPERATE},
    {"POST", "/api/v1/reservations/#/remove", NEED_USER, api_reservations_remove, RIGHT_OPERATE},
    {"GET", "/api/v1/instances", NEED_USER, api_instances_list, RIGHT_READ},
    {"GET", "/api/v1/pools", NEED_USER, api_pools_list, RIGHT_READ},
    {"POST", "/api/v1/pools", NEED_USER, api_pools_apply, RIGHT_ADMIN},
    {"GET", "/api/v1/pools/detail", NEED_USER, api_pools_detail, RIGHT_READ},
    {"GET", "/api/v1/offers", NEED_USER, api_offers_list, RIGHT_READ},
    {"GET", "/api/v1/offers/history", NEED_USER, api_offers_history, RIGHT_READ},
    {"POST", "/api/v1/audit", NEED_USER, api_audit, RIGHT_ADMIN},
    {"GET", "/api/v1/advice", NEED_USER, api_advice, RIGHT_READ_JOB},
    {"GET", "/api/v1/forgotten", NEED_USER, api_forgotten, RIGHT_READ_JOB},
    {"GET", "/api/v1/anomalies", NEED_USER, api_anomalies, RIGHT_READ_JOB},
    {"GET", "/api/v1/cost", NEED_USER, api_cost, RIGHT_READ_JOB},
    {"GET", "/api/v1/cost/jobs", NEED_USER, api_cost_jobs, RIGHT_READ_JOB},
    {"POST", "/api/v1/cost/report", NEED_USER, api_report_send, RIGHT_ADMIN},
    {"GET", "/api/v1/use", NEED_USER, api_use, RIGHT_READ},
    {"GET", "/api/v1/events", NEED_USER, api_events, RIGHT_READ_JOB},
    {"GET", "/api/v1/stream", NEED_USER, api_stream, RIGHT_READ_JOB},
    {"POST", "/api/v1/tokens", NEED_USER, api_tokens_create, RIGHT_TOKENS},
    {"GET", "/api/v1/tokens", NEED_USER, api_tokens_list, RIGHT_TOKENS},
    {"POST", "/api/v1/tokens/#/revoke", NEED_USER, api_tokens_revoke, RIGHT_TOKENS},
    {"GET", "/api/v1/secrets", NEED_USER, api_secrets_list, RIGHT_SECRETS},
    {"POST", "/api/v1/secrets", NEED_WRITER, api_secrets_set, RIGHT_SECRETS},
    {"POST", "/api/v1/secrets/grant", NEED_WRITER, api_secrets_grant, RIGHT_SECRETS},
    {"POST", "/api/v1/secrets/remove", NEED_USER, api_secrets_remove, RIGHT_SECRETS},
    {"GET", "/api/v1/admin/audit-log", NEED_USER, api_audit_log, RIGHT_ADMIN},
    {"GET", "/api/v1/admin/audit-log/verify", NEED_USER, api_audit_log_verify, RIGHT_ADMIN},
    {"POST", "/api/v1/admin/reload", NEED_USER, api_reload, RIGHT_ADMIN},
    {"GET", "/api/v1/admin/account-quotas", NEED_USER, api_account_quotas, RIGHT_ADMIN},
    {"GET", "/api/v1/admin/retention", NEED_USER, api_retention, RIGHT_ADMIN},
    {"POST", "/api/v1/admin/log-level", NEED_USER, api_log_level, RIGHT_ADMIN},
    {"GET", "/api/v1/version", NEED_USER, api_version, RIGHT_READ},
    {"GET", "/api/v1/openapi.json", NEED_USER, api_openapi, RIGHT_READ},
    {"GET", "/api/v1/whoami", NEED_USER, api_whoami, RIGHT_READ},
    {"POST", "/api/v1/logout", NEED_USER, api_logout, RIGHT_READ},
    {"POST", "/api/v1/console/link", NEED_USER, api_console_link, RIGHT_READ},
    {"GET", "/login/methods", NEED_NOTHING, api_login_methods, RIGHT_NONE},
    {"POST", "/login/session", NEED_NOTHING, api_login_session, RIGHT_NONE},
    {"POST", "/login/link", NEED_NOTHING, api_login_link, RIGHT_NONE},
    {"POST", "/login/device", NEED_NOTHING, api_login_device, RIGHT_NONE},
    {"POST", "/login/token", NEED_NOTHING, api_login_token, RIGHT_NONE},
    {"POST", "/login/refresh", NEED_NOTHING, api_login_refresh, RIGHT_NONE},
    {"GET", "/login", NEED_NOTHING, api_login_page, RIGHT_NONE},
    {"GET", "/login/callback", NEED_NOTHING, api_login_callback, RIGHT_NONE},
    {"GET", "/login/done", NEED_NOTHING, api_login_done, RIGHT_NONE},
    {"GET", "/", NEED_NOTHING, api_console, RIGHT_NONE},
    {"GET", "/console/*", NEED_NOTHING, api_console, RIGHT_NONE},
    {"GET", "/healthz", NEED_NOTHING, api_health, RIGHT_NONE},
    {"GET", "/metrics", NEED_USER, api_metrics, RIGHT_METRICS},
    {"GET", "/agent/v1/bundle", NEED_MACHINE, api_agent_bundle, RIGHT_NONE},
    {"GET", "/agent/v1/bundle/sha256", NEED_MACHINE, api_agent_bundle_sha256, RIGHT_NONE},
    {"POST", "/agent/v1/join", NEED_NOTHING, api_agent_join, RIGHT_NONE},
    {"POST", "/agent/v1/renew", NEED_NODE, api_agent_renew, RIGHT_NONE},
    {"POST", "/agent/v1/sync", NEED_NODE, api_agent_sync, RIGHT_NONE},
    {"POST", "/agent/v1/output/#/#", NEED_NODE, api_agent_output, RIGHT_NONE},
    {"POST", "/agent/v1/workdir/#/#", NEED_NODE, api_agent_workdir, RIGHT_NONE},
    {"POST", "/agent/v1/workdir/#/#/pieces", NEED_NODE, api_agent_workdir_pieces, RIGHT_NONE},
    {"POST", "/agent/v1/channels/#/claim", NEED_NODE, api_agent_channel_claim, RIGHT_NONE},
    {"POST", "/agent/v1/channels/#/output", NEED_NODE, api_agent_channel_output, RIGHT_NONE},
    {"POST", "/agent/v1/channels/#/input", NEED_NODE, api_agent_channel_input, RIGHT_NONE},
};

/* ---- answering ---- */

void api_reply_json(struct http_exchange *x, int status, json_t *v)
{
    char *text = json_dump_text(v);
    http_reply_text(x, status, "application/json", text);
    explicit_bzero(text, strlen(text)); /* may have the environment of a job */
    free(text);
    json_decref(v);
}

void api_reply_status(struct http_exchange *x, int status, const struct err *e)
{
    json_t *error =
        json_pack("{s:s,s:o}", "kind", err_kind_name(e->kind), "text", json_text(e->text));
    api_reply_json(x, status, json_pack("{s:o}", "error", error));
}

void api_reply_failure(struct http_exchange *x, enum err_kind kind, const char *fmt, ...)
{
    struct err e = {.kind = kind};
    VFORMAT(e.text, fmt);
    http_reply_err(x, &e);
}

static void on_deferred_timeout(void *ctx, struct http_exchange *x)
{
    struct deferred_reply *l = ctx;
    l->x = NULL;
    api_reply_failure(x, ERR_UNAVAILABLE,
        "belayd did not finish in time; whether the request takes effect is not known yet: check "
        "before you repeat it");
}

static void on_deferred_gone(void *ctx, struct http_exchange *x)
{
    struct deferred_reply *l = ctx;
    (void)x;
    l->x = NULL;
}

struct deferred_reply *deferred_reply_create(struct api *a, struct http_exchange *x, int64_t max_ms)
{
    struct deferred_reply *l = mem_alloc(sizeof(*l));
    l->api = a;
    l->x = x;
    list_push_back(&a->deferred_replies, &l->in_api);
    http_exchange_wait(x, max_ms, on_deferred_timeout, on_deferred_gone, l);
    return l;
}

struct http_exchange *deferred_reply_take(struct deferred_reply *l)
{
    struct http_exchange *x = l->x;
    link_remove(&l->in_api);
    free(l);
    return x;
}

static void reply_id(struct deferred_reply *l, int status, const struct err *e, int64_t id)
{
    struct http_exchange *x = deferred_reply_take(l);
    if (!x)
        return;
    if (e)
        http_reply_err(x, e);
    else
        api_reply_json(x, status, json_pack("{s:I}", "id", (json_int_t)id));
}

void api_on_done(void *ctx, const struct err *e, int64_t id)
{
    reply_id(ctx, 200, e, id);
}

void api_on_created(void *ctx, const struct err *e, int64_t id)
{
    reply_id(ctx, 201, e, id);
}

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct api *a = ctx;
    (void)id;
    turns_take(&a->turns, e ? NULL : a->o.tick);
}

static void request_commit(void *ctx)
{
    struct api *a = ctx;
    tick_when_durable(a->o.tick, on_durable, a);
}

bool api_take_turn(struct request *q, struct turn *turn)
{
    if (turns_enter(&q->api->turns, q->caller.user, turn))
        return true;
    api_reply_failure(q->x, ERR_THROTTLED,
        "%d queries of %s are waiting already: try again when they have been answered",
        TURNS_PER_USER_MAX, q->caller.user);
    return false;
}

struct model_read {
    struct turn turn;
    struct deferred_reply *deferred;
    api_read_model_fn fn;
    struct caller viewer;
    int64_t arg;
    bool needs_model;
};

static void run_model_read(struct turn *turn, void *moment)
{
    struct model_read *k = LIST_ENTRY(turn, struct model_read, turn);
    const struct api *a = k->deferred->api;
    struct http_exchange *x = deferred_reply_take(k->deferred);
    if (x && k->needs_model && !moment)
        api_reply_failure(x, ERR_NO_SPACE, "the disk that holds belayd's state is full");
    else if (x)
        k->fn(a, x, &k->viewer, moment ? tick_model(moment) : NULL, k->arg);
    free(k);
}

static void read_model(struct request *q, api_read_model_fn fn, int64_t arg, bool needs_model)
{
    struct model_read *k = mem_alloc(sizeof(*k));
    *k = (struct model_read){.turn.run = run_model_read,
        .fn = fn,
        .viewer = q->caller,
        .arg = arg,
        .needs_model = needs_model};
    if (api_take_turn(q, &k->turn))
        k->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    else
        free(k);
}

void api_read_model(struct request *q, api_read_model_fn fn, int64_t arg)
{
    read_model(q, fn, arg, true);
}

void api_read_model_or_database(struct request *q, api_read_model_fn fn, int64_t arg)
{
    read_model(q, fn, arg, false);
}

/* ---- requests ---- */

bool api_query_i64(struct request *q, const char *name, int64_t min, int64_t max, int64_t fallback,
    int64_t *ret_value)
{
    struct err e;
    const char *text = http_request_query(q->x, name);
    *ret_value = fallback;
    if (!text || str_to_i64(text, min, max, name, ret_value, &e) == 0)
        return true;
    http_reply_err(q->x, &e);
    return false;
}

bool api_query_time(struct request *q, const char *name, struct wall *ret_wall)
{
    struct err e;
    const char *text = http_request_query(q->x, name);
    *ret_wall = WALL_NONE;
    if (!text || time_parse_iso(text, ret_wall, &e) == 0)
        return true;
    err_wrap(&e, "%s", name);
    http_reply_err(q->x, &e);
    return false;
}

bool api_query_state(struct request *q, const char *some, bool *ret_all)
{
    const char *text = http_request_query(q->x, "state");
    char shown[STR_SHOW_MAX];
    *ret_all = str_eq(text, "all");
    if (!text || *ret_all || str_eq(text, some))
        return true;
    api_reply_failure(
        q->x, ERR_INVALID, "state: expected %s or all, found %s", some, str_show(text, shown));
    return false;
}

/* More values than any job may have. Parsing 2 MB of small values would block the loop for a third
 * of a second. */
#define VALUES_MAX 16384

json_t *api_body(struct request *q, size_t max)
{
    struct err e;
    json_t *v = NULL;
    if (q->r->body_len > max)
        err_set(&e, ERR_INVALID, "%zu bytes, at most %zu are allowed here", q->r->body_len, max);
    else if (json_count_values(q->r->body, q->r->body_len) > VALUES_MAX)
        err_set(&e, ERR_INVALID, "more than %d values of JSON", VALUES_MAX);
    else if (json_parse(q->r->body, q->r->body_len, max, &v, &e) == 0)
        return v;
    err_wrap(&e, "the request's body");
    api_reply_status(q->x, q->r->body_len > max ? 413 : http_status_of(e.kind), &e);
    return NULL;
}

bool api_read_flags(struct request *q, const struct api_flag *flags, size_t n)
{
    struct json_reader r;
    struct err e;
    json_t *body = q->r->body_len ? api_body(q, API_UNAUTHENTICATED_BODY_MAX) : json_object();
    if (!body)
        return false;
    json_reader_init(&r, body, "body", &e);
    for (size_t i = 0; i < n; i++)
        *flags[i].ret_value = json_opt_bool(&r, flags[i].name, false);
    int rc = json_reader_finish(&r);
    json_decref(body);
    if (rc != 0)
        http_reply_err(q->x, &e);
    return rc == 0;
}

bool api_may(
    struct request *q, enum right right, const struct access_object *object, const char *what)
{
    struct err e;
    if (access_may(&q->caller, right, object))
        return true;
    access_refuse(&q->caller, right, object, what, &e);
    http_reply_err(q->x, &e);
    return false;
}

/* ---- limit of what users may store ---- */

#define ROWS_BYTES 2048  /* approximate bytes that a request stores in addition to its body */
#define COPIES_WRITTEN 2 /* in the write-ahead log, then in the database */

/* Charges the bytes that the request stores to its user's daily limit; administrators have none.
 * Returns false after an error reply. */
static bool charge(struct request *q)
{
    struct wall now = clock_wall(q->api->o.timers->clock);
    int64_t n = (int64_t)q->r->body_len + ROWS_BYTES;
    char limit[32];
    if (q->caller.admin)
        return true;
    if (!log_disk_has_space(q->api->o.logs->disk, COPIES_WRITTEN * n)) {
        api_reply_failure(q->x, ERR_NO_SPACE,
            "the disk of belayd's state directory is almost full: nothing was changed; the rest is "
            "left to what stops and ends jobs, so cancel works; ask an administrator to free some "
            "space");
        return false;
    }
    if (n <= log_quota_user_left(q->api->stored, q->caller.user, now)) {
        log_quota_user_add(q->api->stored, q->caller.user, n, now);
        return true;
    }
    str_format_bytes((uint64_t)q->api->o.config->store_user_day_bytes, limit, sizeof(limit));
    api_reply_failure(q->x, ERR_THROTTLED,
        "the data stored for %s within a day has reached %s (store_max_per_user_day): nothing was "
        "changed; try again later, or have an administrator raise the limit",
        q->caller.user, limit);
    return false;
}

/* Counts the request of a user against their rate; administrators have none, and pieces of sessions
 * are not counted, because a session has limits of its own. Returns false after an error reply. */
static bool pace(struct request *q, const struct route *route)
{
    char seconds[24];
    const struct config_access *limits = &q->api->o.config->access;
    if (route->right == RIGHT_NONE || route->need == NEED_SESSION || q->caller.admin)
        return true;
    int64_t wait_ms =
        rates_take(&q->api->rates, q->caller.user, clock_mono(q->api->o.timers->clock));
    if (wait_ms == 0)
        return true;
    q->api->n_paced++;
    snprintf(seconds, sizeof(seconds), "%lld", (long long)(wait_ms + 999) / 1000);
    http_reply_add_header(q->x, "Retry-After", seconds);
    api_reply_failure(q->x, ERR_THROTTLED,
        "%s has made more than %lld requests a second (requests_per_second, requests_burst in "
        "belayd's configuration): nothing was done; try again in %s s",
        q->caller.user, (long long)limits->requests_per_second, seconds);
    return false;
}

/* ---- routing ---- */

bool api_match(const char *route, const char *path, int64_t ret_ids[2])
{
    int n = 0;
    while (*route && *route != '*' && *path) {
        if (*route == '#') {
            char digits[20];
            size_t len = strspn(path, "0123456789");
            if (n == 2 || len == 0 || len >= sizeof(digits))
                return false;
            memcpy(digits, path, len);
            digits[len] = '\0';
            if (str_to_i64(digits, 1, INT64_MAX, "number", &ret_ids[n++], NULL) != 0)
                return false;
            path += len;
            route++;
        } else if (*route++ != *path++) {
            return false;
        }
    }
    return *route == '*' || (*route == '\0' && *path == '\0');
}

bool api_route(size_t i, const char **ret_method, const char **ret_path, enum right *ret_right)
{
    if (i >= sizeof(routes) / sizeof(routes[0]))
        return false;
    *ret_method = routes[i].method;
    *ret_path = routes[i].path;
    *ret_right = routes[i].right;
    return true;
}

static void refuse_method(
    struct http_exchange *x, const struct http_server_request *r, const char *allowed)
{
    struct err e;
    err_set(&e, ERR_INVALID, "%.32s is not for %.200s, which takes %s; see docs/reference/api.md",
        r->method, r->path, allowed);
    http_reply_add_header(x, "Allow", allowed);
    api_reply_status(x, 405, &e);
}

struct timed {
    struct api *api;
    const struct route *route;
    struct mono since;
};

static void on_answer(void *ctx, int status)
{
    struct timed *t = ctx;
    struct metric_labels l = {0};
    char code[16];
    snprintf(code, sizeof(code), "%d", status);
    metric_labels_add(&l, "method", t->route->method);
    metric_labels_add(&l, "route", t->route->path);
    metric_labels_add(&l, "status", code);
    struct series_one *one = series_get(&t->api->request_seconds, &l, histogram_requests);
    int64_t took_ms = clock_mono(t->api->o.timers->clock).ms - t->since.ms;
    histogram_add(&one->histogram, (double)took_ms / 1000);
    free(t);
}

static void time_request(struct request *q, const struct route *route)
{
    struct timed *t = mem_alloc(sizeof(*t));
    *t =
        (struct timed){.api = q->api, .route = route, .since = clock_mono(q->api->o.timers->clock)};
    http_exchange_on_answer(q->x, on_answer, t);
}

static void handle_route(struct request *q, const struct route *route)
{
    time_request(q, route);
    struct tick_call *call = audit_trail_has(route->method, route->path)
                                 ? audit_trail_begin(q, route->method, route->path)
                                 : NULL;
    q->call = call;
    if (!api_callers_identify(q, route->need)) {
        q->api->n_refused++;
        return;
    }
    bool stores = route->need == NEED_WRITER || route->need == NEED_OWN_WRITER ||
                  (route->handle == api_jobs_exec && !q->caller.job);
    if (call)
        audit_trail_set_caller(q, call);
    if (!pace(q, route) || !api_may(q, route->right, NULL, NULL) || (stores && !charge(q)))
        return;
    /* all that the handler posts is part of the call */
    tick_begin_call(q->api->o.tick, call);
    route->handle(q);
    tick_end_call(q->api->o.tick);
}

void api_handle(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    api_handle_from(ctx, x, r, false);
}

void api_handle_from(
    struct api *a, struct http_exchange *x, const struct http_server_request *r, bool is_loopback)
{
    struct request q = {.api = a, .x = x, .r = r, .is_loopback = is_loopback};
    struct buf allowed = {0};
    q.api->n_requests++;
    audit_trail_name_request(&q);
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        int64_t ids[2] = {0};
        if (!api_match(routes[i].path, r->path, ids))
            continue;
        if (!str_eq(routes[i].method, r->method)) {
            buf_printf(&allowed, "%s%s", allowed.len ? ", " : "", routes[i].method);
            continue;
        }
        q.id = ids[0];
        q.id2 = ids[1];
        handle_route(&q, &routes[i]);
        buf_deinit(&allowed);
        return;
    }
    if (allowed.len)
        refuse_method(x, r, buf_str(&allowed));
    else
        api_reply_failure(
            x, ERR_NOT_FOUND, "there is nothing at %.200s; see docs/reference/api.md", r->path);
    buf_deinit(&allowed);
}

/* ---- life ---- */

static bool volumes_pool(void *ctx, size_t i, struct volumes_pool *ret_pool)
{
    const struct api *a = ctx;
    const struct config *c = pools_in_force(a->o.pools);
    if (i >= c->n_pools)
        return false;
    const struct config_pool *p = &c->pools[i];
    *ret_pool = (struct volumes_pool){
        .pool = p->row.name, .region = p->row.region, .driver = pools_driver(a->o.pools, p)};
    return true;
}

void api_set_reload(struct api *a, struct reload *r)
{
    a->reload = r;
}

void api_set_oidc(struct api *a, struct oidc *o)
{
    oidc_close(a->o.oidc, "the identity provider of belayd was changed: sign in again");
    a->o.oidc = o;
    sign_in_load_teams(a);
    streams_end_all(a->streams, STREAM_END_RELOADED);
}

void api_reconfigure(struct api *a)
{
    const struct config *c = a->o.config;
    a->rates.per_second = c->access.requests_per_second;
    a->rates.burst = c->access.requests_burst;
    log_quota_set_limits(
        a->stored, &(struct log_limits){.user_day_bytes = c->store_user_day_bytes});
    streams_end_all(a->streams, STREAM_END_RELOADED);
}

struct api *api_create(const struct api_options *o)
{
    struct api *a = mem_alloc(sizeof(*a));
    a->o = *o;
    a->openapi = openapi_text();
    a->streams = streams_create(a);
    a->log_lag = log_lag_create();
    a->read_pool = read_pool_create(o->loop, o->timers, o->db_path);
    a->volumes = volumes_create(&(struct volumes_options){
        .pool = volumes_pool, .ctx = a, .timers = o->timers, .cluster_uid = o->meta->cluster_uid});
    a->account_quotas = account_quotas_create(
        &(struct account_quotas_options){.pool = api_account_pool, .ctx = a, .timers = o->timers});
    a->stored = log_quota_create(&(struct log_limits){0});
    a->token_uses = token_uses_create(
        &(struct token_uses_options){.tick = o->tick, .timers = o->timers, .reader = o->reader});
    api_reconfigure(a);
    a->login_rates = (struct rates){.per_second = LOGINS_PER_S, .burst = LOGINS_BURST};
    sign_in_load_teams(a);
    turns_init(&a->turns, o->timers, request_commit, a);
    agent_sync_set_channels(o->agent_sync, api_channels_of_node, a);
    return a;
}

void api_destroy(struct api *a)
{
    if (!a)
        return;
    oidc_close(a->o.oidc, "belayd is stopping: sign in again later");
    streams_destroy(a->streams);
    api_watch_destroy_all(a);
    api_channels_destroy_all(a);
    read_pool_destroy(a->read_pool);
    volumes_destroy(a->volumes);
    account_quotas_destroy(a->account_quotas);
    token_uses_destroy(a->token_uses);
    log_quota_destroy(a->stored);
    series_deinit(&a->request_seconds);
    log_lag_destroy(a->log_lag);
    rates_deinit(&a->rates);
    rates_deinit(&a->login_rates);
    links_deinit(&a->sign_in_links);
    loopback_destroy(a->loopback);
    for (struct turn *turn; (turn = turns_drop(&a->turns));)
        turn->run(turn, NULL); /* its client is gone */
    turns_deinit(&a->turns);
    smap_deinit(&a->audit_limit.users);
    for (struct link *n; (n = list_pop(&a->deferred_replies));)
        free(LIST_ENTRY(n, struct deferred_reply, in_api));
    free(a->openapi);
    free(a);
}

void api_set_server_url(struct api *a, const char *url)
{
    STR_COPY(a->server_url, url);
}

void api_close_loopback(struct api *a)
{
    if (a)
        loopback_stop(a->loopback);
}

void api_add_listener(struct api *a, const struct http_server *s)
{
    size_t n = 0;
    while (n < API_LISTENERS_MAX && a->listeners[n])
        n++;
    assert(n < API_LISTENERS_MAX);
    a->listeners[n] = s;
}

void api_committed(struct api *a, const struct db_batch *committed)
{
    bool any = false;
    for (size_t i = 0; i < committed->changes.n_history; i++) {
        api_watch_wake(a, committed->changes.history[i].job);
        any = true;
    }
    if (any)
        api_watch_wake(a, 0);
    for (size_t i = 0; i < committed->changes.n_jobs; i++)
        if (committed->changes.jobs[i].state == JOB_ENDED)
            api_watch_wake(a, committed->changes.jobs[i].id);
    streams_committed(a->streams, committed);
}

void api_output_grew(struct api *a, int64_t job)
{
    api_watch_wake(a, job);
    streams_output_grew(a->streams, job);
}

void api_shut_down(struct api *a)
{
    a->shutting_down = true;
    api_watch_wake_all(a);
    streams_end_all(a->streams, STREAM_END_STOPPING);
    api_channels_shut_down(a);
}
