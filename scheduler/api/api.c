/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's entry point: identifies the caller, selects the route, and sends deferred replies. The
 * routes are in the other files of this folder.
 */
#include "scheduler/api/api_private.h"

#include "scheduler/api/audit_trail.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include <assert.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* Who calls. NEED_WRITER: a user whose request stores data and is charged (charge); requests that
 * end something need NEED_USER. NEED_OWN_WRITER: the same, or a job that changes itself.
 * NEED_SESSION: a user, or a job that starts tasks on its nodes. NEED_MACHINE: a node, or a machine
 * with an unused join token. */
enum need {
    NEED_NOTHING,
    NEED_USER,
    NEED_WRITER,
    NEED_OWN_WRITER,
    NEED_SESSION,
    NEED_MACHINE,
    NEED_NODE
};

struct route {
    const char *method;
    const char *path; /* '#' matches a number */
    enum need need;
    void (*handle)(struct request *q);
    enum right right; /* the roles and scopes that have it: scheduler/access/access.c */
};

static const struct route routes[] = {
    {"POST", "/api/v1/jobs", NEED_WRITER, api_jobs_submit, RIGHT_SUBMIT},
    {"GET", "/api/v1/jobs", NEED_USER, api_jobs_list, RIGHT_READ_JOB},
    {"GET", "/api/v1/jobs/#", NEED_USER, api_jobs_show, RIGHT_READ_JOB},
    {"GET", "/api/v1/jobs/#/why", NEED_USER, api_jobs_why, RIGHT_READ_JOB},
    {"GET", "/api/v1/jobs/#/diagnose", NEED_USER, api_jobs_diagnose, RIGHT_READ_JOB},
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
    {"POST", "/api/v1/jobs/#/exec", NEED_SESSION, api_jobs_exec, RIGHT_ENTER},
    {"GET", "/api/v1/channels/#/output", NEED_SESSION, api_channel_output, RIGHT_ENTER},
    {"POST", "/api/v1/channels/#/input", NEED_SESSION, api_channel_input, RIGHT_ENTER},
    {"POST", "/api/v1/channels/#/close", NEED_SESSION, api_channel_close, RIGHT_ENTER},
    {"POST", "/api/v1/workdirs", NEED_USER, api_workdirs_put, RIGHT_SUBMIT},
    {"POST", "/api/v1/workdirs/pieces", NEED_USER, api_workdirs_add, RIGHT_SUBMIT},
    {"POST", "/api/v1/crons", NEED_WRITER, api_crons_add, RIGHT_CRON_EDIT},
    {"GET", "/api/v1/crons", NEED_USER, api_crons_list, RIGHT_READ_JOB},
    {"GET", "/api/v1/crons/#", NEED_USER, api_crons_show, RIGHT_READ_JOB},
    {"POST", "/api/v1/crons/#", NEED_WRITER, api_crons_edit, RIGHT_CRON_EDIT},
    {"POST", "/api/v1/crons/#/pause", NEED_USER, api_crons_pause, RIGHT_CRON},
    {"POST", "/api/v1/crons/#/resume", NEED_WRITER, api_crons_resume, RIGHT_CRON},
    {"POST", "/api/v1/crons/#/remove", NEED_USER, api_crons_remove, RIGHT_CRON},
    {"POST", "/api/v1/crons/#/run", NEED_WRITER, api_crons_run, RIGHT_CRON_RUN},
    {"GET", "/api/v1/crons/#/runs", NEED_USER, api_crons_runs, RIGHT_READ_JOB},
    {"GET", "/api/v1/nodes", NEED_USER, api_nodes_list, RIGHT_READ},
    {"GET", "/api/v1/shares", NEED_USER, api_shares_list, RIGHT_READ},
    {"GET", "/api/v1/quotas", NEED_USER, api_quotas_list, RIGHT_READ},
    {"GET", "/api/v1/budgets", NEED_USER, api_budgets_list, RIGHT_READ},
    {"GET", "/api/v1/racks", NEED_USER, api_racks_list, RIGHT_READ},
    {"GET", "/api/v1/summary", NEED_USER, api_summary, RIGHT_READ},
    {"POST", "/api/v1/nodes/#/drain", NEED_USER, api_nodes_drain, RIGHT_OPERATE},
    {"POST", "/api/v1/nodes/#/undrain", NEED_USER, api_nodes_undrain, RIGHT_OPERATE},
    {"POST", "/api/v1/nodes/#/delete", NEED_USER, api_nodes_delete, RIGHT_OPERATE},
    {"GET", "/api/v1/instances", NEED_USER, api_instances_list, RIGHT_READ},
    {"GET", "/api/v1/pools", NEED_USER, api_pools_list, RIGHT_READ},
    {"POST", "/api/v1/pools", NEED_USER, api_pools_apply, RIGHT_ADMIN},
    {"GET", "/api/v1/pools/detail", NEED_USER, api_pools_detail, RIGHT_READ},
    {"GET", "/api/v1/offers", NEED_USER, api_offers_list, RIGHT_READ},
    {"POST", "/api/v1/audit", NEED_USER, api_audit, RIGHT_ADMIN},
    {"GET", "/api/v1/advice", NEED_USER, api_advice, RIGHT_READ_JOB},
    {"GET", "/api/v1/forgotten", NEED_USER, api_forgotten, RIGHT_READ_JOB},
    {"GET", "/api/v1/cost", NEED_USER, api_cost, RIGHT_READ_JOB},
    {"GET", "/api/v1/cost/jobs", NEED_USER, api_cost_jobs, RIGHT_READ_JOB},
    {"POST", "/api/v1/cost/report", NEED_USER, api_report_send, RIGHT_ADMIN},
    {"GET", "/api/v1/use", NEED_USER, api_use, RIGHT_READ},
    {"GET", "/api/v1/events", NEED_USER, api_events, RIGHT_READ_JOB},
    {"POST", "/api/v1/tokens", NEED_USER, api_tokens_create, RIGHT_TOKENS},
    {"GET", "/api/v1/tokens", NEED_USER, api_tokens_list, RIGHT_TOKENS},
    {"POST", "/api/v1/tokens/#/revoke", NEED_USER, api_tokens_revoke, RIGHT_TOKENS},
    {"GET", "/api/v1/secrets", NEED_USER, api_secrets_list, RIGHT_SECRETS},
    {"POST", "/api/v1/secrets", NEED_WRITER, api_secrets_set, RIGHT_SECRETS},
    {"POST", "/api/v1/secrets/grant", NEED_WRITER, api_secrets_grant, RIGHT_SECRETS},
    {"POST", "/api/v1/secrets/remove", NEED_USER, api_secrets_remove, RIGHT_SECRETS},
    {"GET", "/api/v1/admin/audit-log", NEED_USER, api_audit_log, RIGHT_ADMIN},
    {"GET", "/api/v1/admin/audit-log/verify", NEED_USER, api_audit_log_verify, RIGHT_ADMIN},
    {"POST", "/api/v1/admin/log-level", NEED_USER, api_log_level, RIGHT_ADMIN},
    {"GET", "/api/v1/version", NEED_USER, api_version, RIGHT_READ},
    {"GET", "/api/v1/openapi.json", NEED_USER, api_openapi, RIGHT_READ},
    {"GET", "/healthz", NEED_NOTHING, api_health, RIGHT_NONE},
    {"GET", "/metrics", NEED_USER, api_metrics, RIGHT_READ},
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

static void reply_status(struct http_exchange *x, int status, const struct err *e)
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
};

static void run_model_read(struct turn *turn, void *moment)
{
    struct model_read *k = LIST_ENTRY(turn, struct model_read, turn);
    const struct api *a = k->deferred->api;
    struct http_exchange *x = deferred_reply_take(k->deferred);
    if (x)
        k->fn(a, x, &k->viewer, moment ? tick_model(moment) : NULL, k->arg);
    free(k);
}

void api_read_model(struct request *q, api_read_model_fn fn, int64_t arg)
{
    struct model_read *k = mem_alloc(sizeof(*k));
    *k = (struct model_read){.turn.run = run_model_read, .fn = fn, .viewer = q->caller, .arg = arg};
    if (api_take_turn(q, &k->turn))
        k->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    else
        free(k);
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
    reply_status(q->x, q->r->body_len > max ? 413 : http_status_of(e.kind), &e);
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

/* ---- callers ---- */

/* How long the name of a local user is cached: each lookup reads a file or queries a service. */
#define LOCAL_USER_MS 10000

static void find_local(struct local_user *l, uid_t uid, struct mono now)
{
    struct passwd pw, *found = NULL;
    char mem[4096];
    if (l->uid == uid && mono_is_set(l->until) && now.ms < l->until.ms)
        return;
    *l = (struct local_user){.uid = uid, .until = {now.ms + LOCAL_USER_MS}};
    if (getpwuid_r(uid, &pw, mem, sizeof(mem), &found) == 0 && found)
        STR_COPY(l->name, found->pw_name);
    else
        snprintf(l->name, sizeof(l->name), "uid-%u", (unsigned)uid);
}

static void identify_local(struct request *q)
{
    uid_t uid = q->r->peer_uid;
    find_local(&q->api->local, uid, clock_mono(q->api->o.timers->clock));
    access_init(
        &q->caller, q->api->o.config, q->api->local.name, uid == 0 || uid == q->api->o.owner_uid);
}

/* Replies 401 and returns false. */
static bool refuse(struct request *q, const char *text)
{
    struct err e;
    err_set(&e, ERR_DENIED, "%s", text);
    http_reply_add_header(q->x, "WWW-Authenticate", "Bearer");
    reply_status(q->x, 401, &e);
    return false;
}

static const char *bearer(struct http_exchange *x)
{
    const char *header = http_request_header(x, "Authorization");
    return header && strncasecmp(header, "Bearer ", 7) == 0 ? header + 7 : NULL;
}

/* Returns ERR_NOT_FOUND for a token that is unknown or no longer valid. */
static int find_token(const struct api *a, const char *token, struct token_row *t, struct err *e)
{
    char hash[65];
    ca_sha256_hex(token, hash);
    struct wall now = clock_wall(a->o.timers->clock);
    int rc = db_read_token_by_hash(a->o.reader, hash, t, e);
    if (rc == 0 &&
        (t->join || t->revoked || (wall_is_set(t->expires_at) && t->expires_at.ms <= now.ms)))
        return err_set(e, ERR_NOT_FOUND, "the token is no longer good");
    return rc;
}

bool api_attempt_lives(const struct job *j, int64_t attempt)
{
    return j && j->row.attempts == attempt && job_attempt(j);
}

/* Accepts the token of a running attempt. */
static bool find_attempt(const struct api *a, const char *token, struct caller *ret_caller)
{
    char copy[129], expected[129], *mac, *end;
    str_copy(copy, sizeof(copy), token);
    int64_t job, attempt;
    if (copy[0] != 'j' || !(end = strchr(copy, '.')) || !(mac = strchr(end + 1, '.')))
        return false;
    *end = *mac = '\0';
    if (str_to_i64(copy + 1, 1, INT64_MAX, "job", &job, NULL) != 0 ||
        str_to_i64(end + 1, 1, INT64_MAX, "attempt", &attempt, NULL) != 0)
        return false;
    api_job_token(a->o.sealer, job, attempt, expected);
    const struct job *j = model_job(tick_model(a->o.tick), job);
    if (!str_secret_eq(expected, token) || !api_attempt_lives(j, attempt))
        return false;
    access_init(ret_caller, a->o.config, j->row.user, false);
    access_narrow(ret_caller, ROLE_MEMBER, &(struct scope){.kind = SCOPE_JOB, .id = job});
    ret_caller->job = job;
    ret_caller->attempt = attempt;
    return true;
}

/* The user of an API token, with the rights that the token leaves. */
static bool become(struct request *q, const struct token_row *t)
{
    struct scope scope;
    struct err e;
    int most = ROLE_ADMIN;
    if (scope_parse(t->scope, &scope, &e) != 0) {
        http_reply_err(q->x, &e);
        return false;
    }
    while (most > ROLE_VIEWER && t->role[0] && !str_eq(role_names[most], t->role))
        most--;
    access_init(&q->caller, q->api->o.config, t->user, t->admin);
    access_narrow(&q->caller, (enum role)most, &scope);
    q->caller.expires_at = t->expires_at;
    q->caller.token = t->id;
    return true;
}

static bool identify_by_token(struct request *q)
{
    const char *token = bearer(q->x);
    struct token_row t;
    struct err e;
    if (!token)
        return refuse(q, "no token was sent: set BELAY_TOKEN_FILE to a file that holds one (an "
                         "administrator makes it with: belay token create)");
    int rc = find_token(q->api, token, &t, &e);
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        http_reply_err(q->x, &e);
        return false;
    }
    if (rc != 0)
        return refuse(q,
            "the token is not known, has expired or was revoked: ask an administrator for "
            "a new one (belay token create)");
    token_uses_note(q->api->token_uses, &t);
    return become(q, &t);
}

static bool identify_user_or_job(struct request *q)
{
    const char *token = bearer(q->x);
    if (!token || token[0] != 'j' || !strchr(token, '.'))
        return identify_by_token(q);
    return find_attempt(q->api, token, &q->caller) ||
           refuse(q, "this is not the token of an attempt that runs: a job may start tasks in "
                     "itself, and change itself, as long as it does");
}

static bool has_node_cert(const struct http_server_request *r)
{
    return !r->is_unix && r->peer_cn && api_node_of_cn(r->peer_cn) > 0;
}

/* A certificate outlives its node: it loses every right when the node is removed. */
static bool is_node(const struct api *a, const struct http_server_request *r)
{
    return has_node_cert(r) && model_node(tick_model(a->o.tick), api_node_of_cn(r->peer_cn));
}

void api_identify(void *ctx, struct http_exchange *x, const struct http_server_request *r,
    struct http_identity *ret)
{
    struct token_row t;
    struct caller attempt;
    const char *token = bearer(x);
    if (is_node(ctx, r)) {
        ret->class = HTTP_NODE;
        STR_COPY(ret->name, r->peer_cn);
    } else if (token && find_token(ctx, token, &t, NULL) == 0) {
        ret->class = HTTP_USER;
        STR_COPY(ret->name, t.user);
    } else if (token && find_attempt(ctx, token, &attempt)) {
        ret->class = HTTP_USER;
        STR_COPY(ret->name, attempt.user);
    } else {
        ret->max_body_bytes = API_UNAUTHENTICATED_BODY_MAX;
    }
}

static bool identify_node(struct request *q)
{
    char text[ERR_TEXT_MAX];
    const char *why = q->r->peer_cert_error;
    if (is_node(q->api, q->r))
        return true;
    if (has_node_cert(q->r)) {
        api_reply_failure(q->x, ERR_NOT_FOUND,
            "node %lld no longer belongs to this cluster: its instance has ended or it was deleted",
            (long long)api_node_of_cn(q->r->peer_cn));
        return false;
    }
    snprintf(text, sizeof(text), "an agent needs the certificate that it got when it joined%s%s",
        why ? ": " : "", why ? why : "");
    return refuse(q, text);
}

/* A join token is checked here without being used up. */
static bool identify_machine(struct request *q)
{
    const char *token = bearer(q->x);
    struct err e;
    if (is_node(q->api, q->r))
        return true;
    if (!token)
        return refuse(q, "this is for machines: it needs a join token that was not used yet, or a "
                         "node's certificate");
    int rc = api_check_join_token(q->api, token, &e);
    if (rc == 0)
        return true;
    if (rc == ERR_DENIED)
        return refuse(q, e.text);
    http_reply_err(q->x, &e);
    return false;
}

static bool identify(struct request *q, enum need need)
{
    if (need == NEED_NOTHING)
        return true;
    if (need == NEED_MACHINE)
        return identify_machine(q);
    if (need == NEED_NODE)
        return identify_node(q);
    if (q->r->is_unix) {
        identify_local(q);
        return true;
    }
    return need == NEED_SESSION || need == NEED_OWN_WRITER ? identify_user_or_job(q)
                                                           : identify_by_token(q);
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
    while (*route && *path) {
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
    return *route == '\0' && *path == '\0';
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
    reply_status(x, 405, &e);
}

static void handle_route(struct request *q, const struct route *route)
{
    struct tick_call *call = audit_trail_has(route->method, route->path)
                                 ? audit_trail_begin(q, route->method, route->path)
                                 : NULL;
    if (!identify(q, route->need)) {
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
    struct request q = {.api = ctx, .x = x, .r = r};
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

struct api *api_create(const struct api_options *o)
{
    struct api *a = mem_alloc(sizeof(*a));
    a->o = *o;
    a->openapi = openapi_text();
    a->read_pool = read_pool_create(o->loop, o->timers, o->db_path);
    a->volumes = volumes_create(&(struct volumes_options){
        .pool = volumes_pool, .ctx = a, .timers = o->timers, .cluster_uid = o->meta->cluster_uid});
    a->stored =
        log_quota_create(&(struct log_limits){.user_day_bytes = o->config->store_user_day_bytes});
    a->token_uses = token_uses_create(
        &(struct token_uses_options){.tick = o->tick, .timers = o->timers, .reader = o->reader});
    a->rates = (struct rates){.per_second = o->config->access.requests_per_second,
        .burst = o->config->access.requests_burst};
    turns_init(&a->turns, o->timers, request_commit, a);
    agent_sync_set_channels(o->agent_sync, api_channels_of_node, a);
    return a;
}

void api_destroy(struct api *a)
{
    if (!a)
        return;
    api_watch_destroy_all(a);
    api_channels_destroy_all(a);
    read_pool_destroy(a->read_pool);
    volumes_destroy(a->volumes);
    token_uses_destroy(a->token_uses);
    log_quota_destroy(a->stored);
    rates_deinit(&a->rates);
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
}

void api_output_grew(struct api *a, int64_t job)
{
    api_watch_wake(a, job);
}

void api_shut_down(struct api *a)
{
    a->shutting_down = true;
    api_watch_wake_all(a);
    api_channels_shut_down(a);
}
