/* SPDX-License-Identifier: Apache-2.0
 *
 * The agents' side of the API: join, certificate renewal, sync, output (base/wire/wire.h is the
 * reference).
 *
 * There are two kinds of join tokens. A reserved node's token is a row, created by `belay token
 * create` and stored as a hash. An instance's token is derived from the cluster's secret and the
 * instance's id, so that a launch that is repeated after a crash carries the same user data. The
 * instance's row, which has the key that joined, ensures that it is valid once.
 */
#include "scheduler/api/api_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/engine/agent_sync_words.h"
#include "scheduler/metrics/log_lag.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(LOGS_OFFSET_MAX == WIRE_OUTPUT_CUT, "agents know cut output by it");

static void node_cn(int64_t node, char out[32])
{
    snprintf(out, 32, "node-%lld", (long long)node);
}

int64_t api_node_of_cn(const char *cn)
{
    int64_t id = 0;
    if (!str_starts(cn, "node-") || str_to_i64(cn + 5, 1, INT64_MAX, "node", &id, NULL) != 0)
        return 0;
    return id;
}

void api_instance_token(const struct sealer *s, int64_t instance, char out[129])
{
    char text[64], mac[65];
    snprintf(text, sizeof(text), "join:%lld", (long long)instance);
    sealer_mac(s, text, mac);
    snprintf(out, 129, "i%lld.%s", (long long)instance, mac);
}

void api_job_token(const struct sealer *s, int64_t job, int64_t attempt, char out[129])
{
    char text[64], mac[65];
    snprintf(text, sizeof(text), "job:%lld.%lld", (long long)job, (long long)attempt);
    sealer_mac(s, text, mac);
    snprintf(out, 129, "j%lld.%lld.%s", (long long)job, (long long)attempt, mac);
}

/* ---- join ---- */

struct join_request {
    struct deferred_reply *deferred;
    struct wire_join join;
    char key_hash[65];
    char address[64];
};

/* Returns the instance of this token, or CORE_ID_NONE. */
static int64_t instance_of_token(const struct api *a, const char *token)
{
    char expected[129], digits[20];
    int64_t id;
    size_t len = token[0] == 'i' ? strspn(token + 1, "0123456789") : 0;
    if (len == 0 || len >= sizeof(digits))
        return CORE_ID_NONE;
    memcpy(digits, token + 1, len);
    digits[len] = '\0';
    if (str_to_i64(digits, 1, INT64_MAX, "instance", &id, NULL) != 0)
        return CORE_ID_NONE;
    api_instance_token(a->o.sealer, id, expected);
    return str_secret_eq(expected, token) ? id : CORE_ID_NONE;
}

/* rc: the result of reading the row. key_hash NULL: a token that was used is refused, whichever key
 * used it. */
static int check_join_token(
    int rc, const struct token_row *row, const char *key_hash, struct wall now, struct err *e)
{
    if (rc != 0 || !row->join || row->revoked)
        return err_set(e, ERR_DENIED,
            "the join token does not belong to this cluster: create a new one with belay token "
            "create --join");
    if (wall_is_set(row->used_at) && !str_eq(row->key_hash, key_hash))
        return err_set(e, ERR_DENIED,
            "the join token was already used by another machine; each is valid once: create a new "
            "one with belay token create --join");
    if (!wall_is_set(row->used_at) && wall_is_set(row->expires_at) && row->expires_at.ms <= now.ms)
        return err_set(e, ERR_DENIED,
            "the join token has expired: create a new one with belay token create --join");
    return 0;
}

static int find_join_token(
    const struct join_request *j, struct tick *t, struct token_row *ret_token, struct err *e)
{
    struct api *a = j->deferred->api;
    char hash[65];
    size_t n;
    const struct token_row *now = tick_tokens(t, &n);
    ca_sha256_hex(j->join.token, hash);
    int rc = db_read_token_by_hash(a->o.reader, hash, ret_token, e);
    for (size_t i = 0; i < n; i++)
        if (str_eq(now[i].hash, hash))
            *ret_token = now[i], rc = 0;
    return check_join_token(rc, ret_token, j->key_hash, tick_now(t).wall, e);
}

int api_check_join_token(const struct api *a, const char *token, struct err *e)
{
    struct token_row row = {0};
    char hash[65];
    int64_t id = instance_of_token(a, token);
    if (id != CORE_ID_NONE) {
        const struct instance *i = model_instance(tick_model(a->o.tick), id);
        if (!i || i->row.state == INSTANCE_ENDING || i->node)
            return err_set(e, ERR_DENIED, "the join token of instance %lld is no longer valid: %s",
                (long long)id,
                i && i->node ? "it was already used" : "the instance is being ended, or gone");
        return 0;
    }
    ca_sha256_hex(token, hash);
    int rc = db_read_token_by_hash(a->o.reader, hash, &row, e);
    if (rc != 0 && rc != ERR_NOT_FOUND)
        return rc;
    return check_join_token(rc, &row, NULL, clock_wall(a->o.timers->clock), e);
}

static int apply_join(struct join_request *j, struct tick *t, int64_t instance, const char *pool,
    int64_t *ret_id, struct err *e)
{
    struct node_row node = {.total = {.cpus = (int32_t)j->join.cpus,
                                .gpus = (int32_t)j->join.gpus,
                                .memory_mib = j->join.memory_mib},
        .instance = instance,
        .notice_deadline = WALL_NONE,
        .joined_at = WALL_NONE,
        .gone_at = WALL_NONE};
    STR_COPY(node.name, j->join.host);
    STR_COPY(node.pool, pool);
    STR_COPY(node.address, j->address);
    STR_COPY(node.key_hash, j->key_hash);
    STR_COPY(node.version, j->join.version);
    node.criu = agent_sync_criu_ability(j->join.criu);
    STR_COPY(node.criu_text, j->join.criu_text);
    agent_sync_read_constraints(j->join.features, j->join.resources, node.features, node.resources);
    node.gpu.memory_mib = j->join.gpu_memory_mib;
    gpu_model(j->join.gpu_model, node.gpu.model);
    struct event ev = {.type = EV_JOIN,
        .join = {.node = &node, .instance = instance, .start_ms = j->join.start_ms}};
    return tick_apply(t, &ev, ret_id, e);
}

static int work_join(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct join_request *j = ctx;
    struct token_row token = {0};
    int64_t instance = instance_of_token(j->deferred->api, j->join.token);
    if (instance != CORE_ID_NONE)
        return apply_join(j, t, instance, "", ret_id, e);
    int rc = find_join_token(j, t, &token, e);
    if (rc == 0)
        rc = apply_join(j, t, CORE_ID_NONE, token.pool, ret_id, e);
    if (rc == 0) {
        token.used_at = tick_now(t).wall;
        STR_COPY(token.key_hash, j->key_hash);
        tick_put_token(t, &token);
    }
    return rc;
}

static void reply_joined(struct api *a, struct http_exchange *x, int64_t node, const char *csr_pem)
{
    char cn[32], *cert = NULL;
    struct wire_joined *m = mem_alloc(sizeof(*m));
    struct buf out = {0};
    struct err e;
    node_cn(node, cn);
    if (ca_issue_node(a->o.ca, csr_pem, cn, a->o.config->node_cert_ms, &cert, &e) != 0) {
        http_reply_err(x, &e);
    } else {
        const struct node *n = model_node(tick_model(a->o.tick), node);
        m->node = node;
        STR_COPY(m->name, n ? n->row.name : cn);
        STR_COPY(m->cluster, a->o.config->cluster);
        STR_COPY(m->cert_pem, cert);
        STR_COPY(m->ca_pem, ca_pem(a->o.ca));
        STR_COPY(m->store, a->o.config->store);
        wire_joined_encode(m, &out);
        http_reply_bytes(x, 200, "application/json", out.data, out.len);
    }
    free(cert);
    free(m);
    buf_deinit(&out);
}

static void on_joined(void *ctx, const struct err *e, int64_t node)
{
    struct join_request *j = ctx;
    struct api *a = j->deferred->api;
    struct http_exchange *x = deferred_reply_take(j->deferred);
    int64_t left_out;
    if (e && log_pace_admits(&a->joins_refused, clock_mono(a->o.timers->clock), &left_out))
        log_warn("a join was refused", log_s("host", j->join.host), log_s("address", j->address),
            log_err(e), log_i("left_out", left_out));
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        reply_joined(a, x, node, j->join.csr_pem);
    free(j);
}

void api_agent_join(struct request *q)
{
    struct join_request *j = mem_alloc(sizeof(*j));
    struct err e;
    int rc = wire_join_decode(q->r->body, q->r->body_len, &j->join, &e);
    if (rc == 0)
        rc = ca_csr_key_hash(j->join.csr_pem, j->key_hash, &e);
    if (rc == 0 && q->r->is_unix)
        rc = err_set(&e, ERR_INVALID, "agents join over HTTPS, not over the UNIX socket");
    if (rc != 0) {
        free(j);
        http_reply_err(q->x, &e);
        return;
    }
    STR_COPY(j->address, q->r->peer_address);
    j->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, work_join, on_joined, j);
}

void api_agent_renew(struct request *q)
{
    int64_t node = api_node_of_cn(q->r->peer_cn);
    const struct node *n = model_node(tick_model(q->api->o.tick), node);
    struct wire_renew m;
    char key_hash[65];
    struct err e;
    int rc = wire_renew_decode(q->r->body, q->r->body_len, &m, &e);
    if (rc == 0)
        rc = ca_csr_key_hash(m.csr_pem, key_hash, &e);
    if (rc == 0 && !n)
        rc = err_set(
            &e, ERR_NOT_FOUND, "node %lld no longer belongs to this cluster", (long long)node);
    else if (rc == 0 && !str_eq(key_hash, n->row.key_hash))
        rc = err_set(&e, ERR_DENIED,
            "a certificate is renewed for the key with which the node joined, not for another");
    if (rc != 0)
        http_reply_err(q->x, &e);
    else
        reply_joined(q->api, q->x, node, m.csr_pem);
}

/* ---- the agent itself ---- */

static const struct bundle *find_bundle(struct request *q)
{
    struct err e;
    const char *arch = http_request_query(q->x, "arch");
    const struct bundle *b = bundles_find(q->api->o.bundles, arch ? arch : "", &e);
    if (!b)
        http_reply_err(q->x, &e);
    return b;
}

void api_agent_bundle(struct request *q)
{
    const struct bundle *b = find_bundle(q);
    if (b)
        http_reply_file(q->x, "application/gzip", b->fd, (uint64_t)b->size_bytes);
}

void api_agent_bundle_sha256(struct request *q)
{
    const struct bundle *b = find_bundle(q);
    char text[sizeof(b->sha256) + 1];
    if (!b)
        return;
    snprintf(text, sizeof(text), "%s\n", b->sha256);
    http_reply_text(q->x, 200, "text/plain", text);
}

/* ---- sync ---- */

static void on_desired(void *ctx, const struct err *e, const struct wire_desired *d)
{
    struct http_exchange *x = deferred_reply_take(ctx);
    struct buf out = {0};
    if (!x)
        return;
    if (e) {
        http_reply_err(x, e);
        return;
    }
    wire_desired_encode(d, &out);
    http_reply_bytes(x, 200, "application/json", out.data, out.len);
    buf_wipe(&out); /* it may contain secrets */
}

/* Awaits the rest of the output of attempts that end with this status, which arrives after their
 * end. Returns true if output of one of them is not on disk yet. */
static bool await_output(struct api *a, int64_t node, const struct wire_status *st)
{
    bool waits = false;
    for (size_t i = 0; i < st->n_attempts; i++) {
        const struct wire_attempt_status *s = &st->attempts[i];
        const struct job *job = model_job(tick_model(a->o.tick), s->job);
        const struct attempt *live = job_attempt_on(job, s->attempt, node);
        if (s->phase == WIRE_ENDED && live) {
            logs_await(a->o.logs, s->job, s->attempt, live->row.rank, s->output_bytes);
            waits = waits || !logs_is_synced(a->o.logs, s->job, s->attempt, live->row.rank);
        }
    }
    return waits;
}

/* Notes how much of the output that attempts have written is here. Files are looked at only where
 * more was written than was here already. */
static void note_log_lag(struct api *a, int64_t node, const struct wire_status *st)
{
    const struct model *m = tick_model(a->o.tick);
    struct log_lag_report *reports = mem_array(st->n_attempts, sizeof(*reports));
    size_t n = 0;
    for (size_t i = 0; i < st->n_attempts; i++) {
        const struct wire_attempt_status *s = &st->attempts[i];
        const struct attempt *live = job_attempt_on(model_job(m, s->job), s->attempt, node);
        if (!live)
            continue;
        int64_t stored = log_lag_stored(a->log_lag, node, s->job, s->attempt);
        if (stored < s->output_bytes)
            stored = logs_stored(a->o.logs, s->job, s->attempt, live->row.rank);
        reports[n++] = (struct log_lag_report){.job = s->job,
            .attempt = s->attempt,
            .written_bytes = s->output_bytes,
            .stored_bytes = stored};
    }
    log_lag_reported(a->log_lag, m, node, reports, n, clock_mono(a->o.timers->clock));
    free(reports);
}

/* Stores the tails: the last output of attempts. Call before the ends of these are applied. */
static void take_tails(struct api *a, int64_t node, const struct wire_status *st)
{
    int64_t left_out;
    for (size_t i = 0; i < st->n_tails; i++) {
        const struct wire_tail *t = &st->tails[i];
        const struct attempt *live =
            job_attempt_on(model_job(tick_model(a->o.tick), t->job), t->attempt, node);
        size_t n = strlen(t->hex) / 2;
        char *bytes = mem_alloc(n + 1);
        int64_t size;
        struct err e;
        if (live && str_unhex(t->hex, bytes, n)) {
            if (logs_append(a->o.logs, a->o.reader, t->job, t->attempt, live->row.rank, t->offset,
                    bytes, n, &size, &e) != 0 &&
                log_pace_admits(&a->output_lost, clock_mono(a->o.timers->clock), &left_out))
                log_warn("the last of a job's output cannot be kept", log_i("job", t->job),
                    log_i("attempt", t->attempt), log_err(&e), log_i("left_out", left_out));
            api_output_grew(a, t->job);
        }
        free(bytes);
    }
}

/* A status that waits until the output of its ended attempts is on disk, because the agent drops
 * its copies when the ends are stored. */
struct parked_status {
    struct api *api;
    struct deferred_reply *deferred;
    int64_t node;
    struct wire_status st;
};

/* A failed sync (which is logged) does not delay jobs: the status is processed all the same. */
static void on_status_synced(void *ctx, const struct err *e)
{
    struct parked_status *p = ctx;
    if (e && e->kind == ERR_UNAVAILABLE)
        on_desired(p->deferred, e, NULL); /* belayd is stopping, and agent_sync is gone already */
    else
        agent_sync_status(p->api->o.agent_sync, p->node, &p->st, on_desired, p->deferred);
    wire_status_deinit(&p->st);
    free(p);
}

static void park_status(
    struct request *q, struct deferred_reply *l, int64_t node, struct wire_status *st)
{
    struct parked_status *p = mem_alloc(sizeof(*p));
    *p = (struct parked_status){.api = q->api, .deferred = l, .node = node, .st = *st};
    syncer_wait(q->api->o.logs->syncer, on_status_synced, p);
}

void api_agent_sync(struct request *q)
{
    struct wire_status st = {0};
    struct err e;
    if (wire_status_decode(q->r->body, q->r->body_len, &st, &e) != 0) {
        http_reply_err(q->x, &e);
        return;
    }
    int64_t node = api_node_of_cn(q->r->peer_cn);
    struct deferred_reply *l = deferred_reply_create(q->api, q->x, st.wait_ms + API_COMMIT_WAIT_MS);
    take_tails(q->api, node, &st);
    note_log_lag(q->api, node, &st);
    if (await_output(q->api, node, &st)) {
        park_status(q, l, node, &st);
        return;
    }
    agent_sync_status(q->api->o.agent_sync, node, &st, on_desired, l);
    wire_status_deinit(&st);
}

/* ---- output ---- */

struct attempt_query {
    int64_t attempt, node;
    bool found;
    struct attempt_row row;
};

static int find_attempt(void *ctx, const struct attempt_row *a)
{
    struct attempt_query *f = ctx;
    if (a->attempt != f->attempt || a->node != f->node)
        return 0;
    f->found = true;
    f->row = *a;
    return 1;
}

struct parked_output {
    struct deferred_reply *deferred;
    int64_t size;
    bool asked;
};

/* asked: the agent asked whether all of it is on disk, and it is. */
static void reply_size(struct http_exchange *x, int64_t size, bool asked)
{
    json_t *v = json_pack("{s:I}", "size", (json_int_t)size);
    if (asked)
        json_object_set_new(v, "durable", json_true());
    api_reply_json(x, 200, v);
}

static void on_output_synced(void *ctx, const struct err *e)
{
    struct parked_output *p = ctx;
    struct http_exchange *x = deferred_reply_take(p->deferred);
    if (x && e)
        http_reply_err(x, e); /* the agent still has it, and retries */
    else if (x)
        reply_size(x, p->size, p->asked);
    free(p);
}

/* Replies with the bytes of output that belayd has. If the attempt ends, or the agent asks for it,
 * the reply waits until they are on disk, because the agent may then drop them. */
static void reply_output_size(struct request *q, int32_t rank, bool ends, bool asked, int64_t size)
{
    struct logs *logs = q->api->o.logs;
    if ((!ends && !asked) || logs_is_synced(logs, q->id, q->id2, rank)) {
        reply_size(q->x, size, asked);
        return;
    }
    struct parked_output *p = mem_alloc(sizeof(*p));
    *p = (struct parked_output){.deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS),
        .size = size,
        .asked = asked};
    syncer_wait(logs->syncer, on_output_synced, p);
}

/* Returns the attempt in the path, if it is this node's and may still write. */
static int find_output(struct request *q, struct attempt_row *ret_row, struct err *e)
{
    struct api *a = q->api;
    struct attempt_query f = {.attempt = q->id2, .node = api_node_of_cn(q->r->peer_cn)};
    int rc = db_read_attempts(a->o.reader, q->id, find_attempt, &f, e);
    if (rc != 0)
        return rc;
    if (!f.found)
        return err_set(e, ERR_DENIED, "attempt %lld of job %lld does not run on this node",
            (long long)q->id2, (long long)q->id);
    if (!logs_is_open(a->o.logs, &f.row, model_job(tick_model(a->o.tick), q->id) != NULL))
        return err_set(e, ERR_NOT_FOUND,
            "attempt %lld of job %lld ended too long ago: its output is closed", (long long)q->id2,
            (long long)q->id);
    *ret_row = f.row;
    return 0;
}

void api_agent_output(struct request *q)
{
    struct attempt_row row = {0};
    int64_t offset, hole, durable, size = 0;
    struct err e;
    if (!api_query_i64(q, "offset", 0, LOGS_OFFSET_MAX, 0, &offset) ||
        !api_query_i64(q, "durable", 0, 1, 0, &durable) ||
        !api_query_i64(q, "hole", 0, LOGS_OFFSET_MAX, 0, &hole))
        return;
    int rc = find_output(q, &row, &e);
    if (rc == 0 && q->r->body_len > WIRE_OUTPUT_MAX)
        rc = err_set(&e, ERR_INVALID, "a piece of output is at most %u bytes", WIRE_OUTPUT_MAX);
    if (rc == 0 && hole > 0 && q->r->body_len > 0)
        rc = err_set(&e, ERR_INVALID, "a hole has no bytes: %zu came with it", q->r->body_len);
    bool ends = rc == 0 && (row.state == ATTEMPT_ENDED ||
                               logs_is_awaited(q->api->o.logs, q->id, q->id2, row.rank));
    if (rc == 0)
        rc = logs_append(q->api->o.logs, q->api->o.reader, q->id, q->id2, row.rank, offset,
            hole > 0 ? NULL : q->r->body, hole > 0 ? (size_t)hole : q->r->body_len, &size, &e);
    if (rc != 0) {
        http_reply_err(q->x, &e);
        return;
    }
    log_lag_arrived(q->api->log_lag, row.node, q->id, q->id2, size);
    reply_output_size(q, row.rank, ends, durable, size);
    api_output_grew(q->api, q->id);
}
