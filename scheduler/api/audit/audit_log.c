/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for those who run belayd: reading and verifying the audit log, and the level of
 * the log.
 */
#include "scheduler/api/api_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/audit_log.h"
#include "scheduler/audit_head.h"
#include "scheduler/reload.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 1000

/* A read of the log, begun when the rows of all calls that were answered before are on disk. */
struct log_read {
    struct deferred_reply *deferred;
    struct caller caller;
    read_pool_fn fn;
    read_pool_drop_fn drop;
    void *of;
};

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct log_read *l = ctx;
    const struct api *a = l->deferred->api;
    struct http_exchange *x = deferred_reply_take(l->deferred);
    (void)id;
    if (x && e && e->kind == ERR_UNAVAILABLE)
        http_reply_err(x, e);
    else if (x) /* a full disk keeps nobody from reading */
        read_pool_run(a, x, &l->caller, READ_POOL_WAIT_MS, l->fn, l->of, l->drop);
    if (!x || (e && e->kind == ERR_UNAVAILABLE))
        l->drop(l->of);
    free(l);
}

static void read_log(struct request *q, read_pool_fn fn, void *of, read_pool_drop_fn drop)
{
    struct log_read *l = mem_alloc(sizeof(*l));
    *l = (struct log_read){.caller = q->caller, .fn = fn, .of = of, .drop = drop};
    l->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_when_durable(q->api->o.tick, on_durable, l);
}

/* ---- reading ---- */

struct rows_request {
    struct audit_filter filter;
    json_t *rows;
    int64_t last;
};

static int add_row(void *ctx, const struct audit_row *r)
{
    struct rows_request *g = ctx;
    g->last = r->seq;
    json_array_append_new(
        g->rows, json_pack("{s:I,s:o,s:s,s:o,s:o,s:s,s:s,s:s,s:s}", "seq", (json_int_t)r->seq, "at",
                     api_json_time(r->at), "request", r->request, "user",
                     api_json_opt_text(r->user), "source", json_text(r->source), "route", r->route,
                     "object", r->object, "result", r->result, "hash", r->hash));
    return 0;
}

static int rows_read(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    struct rows_request *g = of;
    g->last = g->filter.before > 0 ? g->filter.before : g->filter.after;
    int rc = audit_log_read(r, &g->filter, add_row, g, e);
    if (rc == 0)
        *ret_reply = json_pack("{s:O,s:I}", "rows", g->rows, "last", (json_int_t)g->last);
    return rc;
}

static void rows_free(void *of)
{
    struct rows_request *g = of;
    json_decref(g->rows);
    free(g);
}

void api_audit_log(struct request *q)
{
    struct rows_request g = {0}, *kept;
    struct audit_filter *f = &g.filter;
    const char *user = http_request_query(q->x, "user");
    struct err e;
    int64_t limit;
    if (!api_query_time(q, "since", &f->since) ||
        !api_query_i64(q, "after", 0, INT64_MAX, 0, &f->after) ||
        !api_query_i64(q, "before", 1, INT64_MAX, 0, &f->before) ||
        !api_query_i64(q, "limit", 1, ROWS_MAX, ROWS_MAX, &limit))
        return;
    if (user && !STR_COPY(f->user, user)) {
        err_set(&e, ERR_INVALID, "user: expected at most %d bytes", CORE_NAME_MAX - 1);
        http_reply_err(q->x, &e);
        return;
    }
    f->limit = (int32_t)limit;
    g.rows = json_array();
    kept = mem_dup(&g, sizeof(g));
    read_log(q, rows_read, kept, rows_free);
}

/* ---- verifying ---- */

struct verify_request {
    struct audit_head stored; /* audit.head, read before the log */
    struct audit_head given;
    struct err e; /* why audit.head cannot be used; kind ERR_NONE = it can */
};

static int verify_read(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    struct verify_request *g = of;
    struct audit_head head;
    int rc = audit_log_verify(r, &g->stored, &head, e);
    if (rc == 0 && g->given.seq > 0)
        rc = audit_log_verify(r, &g->given, &head, e);
    if (rc == 0 && g->e.kind && head.seq > 0) {
        *e = g->e;
        rc = ERR_CORRUPT;
    }
    if (rc != 0 && rc != ERR_CORRUPT)
        return rc;
    *ret_reply = json_pack("{s:I,s:s,s:o}", "rows", (json_int_t)head.seq, "hash", head.hash,
        "fault", rc == 0 ? json_null() : json_text(e->text));
    return 0;
}

/* "SEQ:HASH" */
static int parse_head(const char *text, struct audit_head *ret_head, struct err *e)
{
    char copy[128], *colon;
    unsigned char hash[32];
    if (!STR_COPY(copy, text) || !(colon = strchr(copy, ':')))
        return err_set(e, ERR_INVALID, "head: expected SEQ:HASH, as an earlier verify showed it");
    *colon = '\0';
    if (!str_unhex(colon + 1, hash, sizeof(hash)))
        return err_set(e, ERR_INVALID, "head: expected 64 lower-case hex digits after the colon");
    STR_COPY(ret_head->hash, colon + 1);
    return str_to_i64(copy, 1, INT64_MAX, "head", &ret_head->seq, e);
}

void api_audit_log_verify(struct request *q)
{
    const char *given = http_request_query(q->x, "head");
    struct verify_request g = {0};
    struct err e;
    if (given && parse_head(given, &g.given, &e) != 0) {
        http_reply_err(q->x, &e);
        return;
    }
    if (audit_head_read(q->api->o.config->state_dir, &g.stored, &e) != 0)
        g.e = e;
    else if (g.stored.seq == 0)
        err_set(&g.e, ERR_CORRUPT,
            "audit.head of the state directory has no valid head: it was changed, or was made with "
            "another ca.key");
    read_log(q, verify_read, mem_dup(&g, sizeof(g)), free);
}

/* ---- the configuration ---- */

struct reload_request {
    struct deferred_reply *deferred;
    bool dry_run;
};

static void on_reloaded(void *ctx, const struct err *e, const json_t *changes)
{
    struct reload_request *y = ctx;
    struct http_exchange *x = deferred_reply_take(y->deferred);
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200,
            json_pack("{s:b,s:O}", "applied", (int)!y->dry_run, "changes", (json_t *)changes));
    free(y);
}

void api_reload(struct request *q)
{
    struct json_reader r;
    struct err e;
    json_t *body = api_body(q, API_UNAUTHENTICATED_BODY_MAX);
    if (!body)
        return;
    json_reader_init(&r, body, "body", &e);
    bool dry_run = json_opt_bool(&r, "dry_run", false);
    if (json_reader_finish(&r) != 0) {
        http_reply_err(q->x, &e);
    } else {
        struct reload_request *y = mem_alloc(sizeof(*y));
        y->dry_run = dry_run;
        y->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
        reload_run(q->api->reload, dry_run, on_reloaded, y);
    }
    json_decref(body);
}

/* ---- the log's level ---- */

void api_log_level(struct request *q)
{
    struct json_reader r;
    struct err e;
    enum log_level level = LOG_INFO;
    json_t *body = api_body(q, API_UNAUTHENTICATED_BODY_MAX);
    if (!body)
        return;
    json_reader_init(&r, body, "body", &e);
    const char *name = json_req_str(&r, "level", 16);
    if (name && log_level_from_name(name, &level) != 0)
        json_reader_fail(&r, "level", "expected debug, info, warn or error");
    if (json_reader_finish(&r) != 0) {
        http_reply_err(q->x, &e);
    } else {
        log_warn("the level of the log was changed", log_s("level", name),
            log_s("user", q->caller.user), log_s("request", q->request_id));
        log_set_level(level);
        api_reply_json(q->x, 200, json_pack("{s:s}", "level", name));
    }
    json_decref(body);
}
