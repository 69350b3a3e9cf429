/* SPDX-License-Identifier: Apache-2.0
 *
 * See s3_op.h. Reaction to each result:
 *
 *     S3_DONE, S3_EXISTS, S3_MISSING ----------------------> to the caller
 *     S3_RETRY, a failed connect --------------------------> retry, with backoff
 *     S3_UNSURE, a connection that was lost, a deadline,
 *     a body that cannot be read --------------------------> retry, with backoff; sets is_unsure
 *     S3_KEYS, once ---------------------------------------> retry, with other credentials
 *     S3_CLOCK, once --------------------------------------> retry, by the server's clock
 *     everything else -------------------------------------> an error
 *
 * Redirects are not followed: a signature is for one region's host, and a token must not reach
 * another one.
 */
#include "ckpt/store/s3_op.h"
#include "base/http_date.h"
#include "base/log.h"
#include "base/prng.h"
#include "base/str.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define TRY_MS SECONDS_MS(30) /* timeout of one try, plus the time for its bytes */
#define BYTES_PER_MS 64       /* slowest acceptable transfer rate */
#define CONNECT_MS SECONDS_MS(10)
#define KEYS_MS SECONDS_MS(60)
#define BACKOFF_MAX_MS SECONDS_MS(20)
#define CANCEL_CHECK_MS 100
#define ERROR_BODY_MAX 65536 /* space for an error body, where the object may be smaller */

struct run {
    struct s3_op *op;
    char label[S3_KEY_MAX + 128];
    struct s3_error error; /* of the last reply */
    struct err failure;    /* of the last try without a reply */
    int64_t deadline_ms;
    uint64_t refused_keys, used_keys;
    bool had_other_keys, had_clock;
    bool was_sent; /* the last try was sent; false if there were no credentials for it */
    struct prng prng;
    char etag[S3_ETAG_MAX]; /* of the object whose first part is in op->resumes */
};

void s3_op_deinit(struct s3_op *op)
{
    http_reply_deinit(&op->reply);
}

/* ---- One try ---- */

static struct wall server_now(const struct s3_client *c)
{
    return (struct wall){clock_wall(&clock_system).ms + atomic_load(&c->facts->clock_ahead_ms)};
}

/* Sends request, which may differ from the op's. Fails only if there is no complete reply. */
static int send_request(struct run *run, const struct s3_request *request, size_t reply_max,
    struct buf *memory, struct http_reply *reply, struct err *e)
{
    const struct s3_client *c = run->op->client;
    struct store_keys keys;
    struct s3_signed s = {0};
    run->was_sent = false;
    int rc = store_auth_get(c->auth, run->refused_keys, KEYS_MS, c->cancel, &keys, e);
    if (rc != 0) {
        err_wrap(e, "%s", run->label);
        return rc;
    }
    run->used_keys = keys.number;
    rc = s3_sign(&c->location, request, &keys, server_now(c), &s, e);
    store_keys_wipe(&keys);
    if (rc != 0)
        return err_wrap(e, "%s", run->label);
    struct http_request r = {.method = request->method,
        .url = s.url,
        .body = request->body,
        .body_len = request->n,
        .timeout_ms = TRY_MS + (int64_t)(request->n + reply_max) / BYTES_PER_MS,
        .connect_timeout_ms = CONNECT_MS,
        .max_reply_bytes = reply_max,
        .reply_memory = memory};
    memcpy(r.headers, s.headers, sizeof(s.headers));
    run->was_sent = true;
    rc = http_blocking_run(c->http, &r, c->cancel, reply, e);
    s3_signed_deinit(&s);
    return rc;
}

/* A reply to HEAD has no body with a reason, so the same is requested with GET. */
static enum s3_meaning get_reason(struct run *run, int status)
{
    const struct s3_request why = {.method = "GET",
        .key = run->op->request.key,
        .headers = {{"Range", "bytes=0-0"}},
        .sha256 = S3_EMPTY_SHA256};
    struct http_reply reply = {0};
    enum s3_meaning meaning = S3_RETRY;
    if (send_request(run, &why, ERROR_BODY_MAX, NULL, &reply, &run->failure) == 0 &&
        reply.status != 206 && reply.status != 200 && reply.status != 416) {
        s3_read_error(buf_str(&reply.body), reply.body.len, &run->error);
        meaning = s3_judge(status, &run->error);
        http_reply_deinit(&run->op->reply);
        run->op->reply = reply;
        return meaning;
    }
    http_reply_deinit(&reply);
    return meaning;
}

static enum s3_meaning judge_reply(struct run *run)
{
    struct s3_op *op = run->op;
    const struct http_reply *reply = &op->reply;
    run->error = (struct s3_error){0};
    if (reply->status >= 300) {
        s3_read_error(buf_str(&reply->body), reply->body.len, &run->error);
        const char *region = http_reply_header(reply, "x-amz-bucket-region");
        if (region && str_is_name(region, sizeof(run->error.region) - 1))
            STR_COPY(run->error.region, region);
        const char *code = http_reply_header(reply, "x-ms-error-code");
        if (!run->error.code[0] && code && str_is_name(code, sizeof(run->error.code) - 1))
            STR_COPY(run->error.code, code);
        if (!run->error.code[0] && str_eq(op->request.method, "HEAD") &&
            (reply->status == 400 || reply->status == 403))
            return get_reason(run, reply->status);
    } else if (op->result && s3_read_result(buf_str(&reply->body), reply->body.len, op->result,
                                 &run->error, &run->failure) != 0) {
        err_wrap(&run->failure, "%s", run->label);
        return S3_UNSURE;
    }
    int rc = reply->status < 300 && op->accept
                 ? op->accept(op->accept_ctx, buf_str(&reply->body), reply->body.len, &run->failure)
                 : 0;
    if (rc != 0) {
        err_wrap(&run->failure, "%s%s", run->label,
            rc == ERR_UNAVAILABLE ? "" : ": the reply cannot be read");
        run->failure.kind = ERR_UNAVAILABLE;
        return S3_UNSURE;
    }
    return s3_judge(reply->status, &run->error);
}

/* ---- Resumed reads ---- */

/* Appends the body, or the part received, to op->resumes. */
static void collect(struct run *run)
{
    struct s3_op *op = run->op;
    struct buf *out = op->resumes;
    if (op->reply.status == 206) {
        buf_add(out, buf_str(&op->reply.body), op->reply.body.len);
        return;
    }
    const char *etag = http_reply_header(&op->reply, "etag");
    run->etag[0] = '\0';
    if (etag && !STR_COPY(run->etag, etag))
        run->etag[0] = '\0';
    buf_deinit(out);
    *out = op->reply.body;
    op->reply.body = (struct buf){0};
}

/* Limits r to the bytes that op->resumes lacks, on condition that the object is unchanged. False,
 * with r unchanged, if there is nothing to resume. */
static bool request_rest(const struct run *run, struct s3_request *r, char range[48])
{
    size_t n = 0;
    if (run->op->resumes->len == 0 || !run->etag[0])
        return false;
    snprintf(range, 48, "bytes=%zu-", run->op->resumes->len);
    while (r->headers[n].name)
        n++;
    r->headers[n] = (struct http_header){"Range", range};
    r->headers[n + 1] = (struct http_header){"If-Match", run->etag};
    return true;
}

/* ---- Trying ---- */

/* What a try without a complete reply means; rc and run->failure are its error. */
static enum s3_meaning judge_failure(const struct run *run, int rc)
{
    bool is_over = rc == ERR_CANCELLED || rc == ERR_DENIED || rc == ERR_CONFIG || rc == ERR_INVALID;
    if (!run->was_sent)
        return is_over ? S3_REFUSED : S3_RETRY;
    if (rc == ERR_INVALID && run->op->reply.status == 0)
        return S3_UNSURE; /* the reply is not HTTP */
    if (is_over)
        return S3_REFUSED;
    return rc == ERR_UNAVAILABLE ? S3_RETRY : S3_UNSURE;
}

static bool is_transient(enum s3_meaning m)
{
    return m == S3_DONE || m == S3_RETRY || m == S3_UNSURE || m == S3_KEYS || m == S3_CLOCK;
}

static enum s3_meaning try_once(struct run *run)
{
    struct s3_op *op = run->op;
    struct s3_request request = op->request;
    char range[48];
    size_t space = op->reply_max > 0 ? op->reply_max : S3_REPLY_MAX;
    http_reply_deinit(&op->reply);
    run->failure = (struct err){0};
    bool is_rest = op->resumes && request_rest(run, &request, range);
    if (is_rest)
        space = space > op->resumes->len ? space - op->resumes->len : 0;
    if (space < ERROR_BODY_MAX)
        space = ERROR_BODY_MAX;
    /* An object is received into the memory of the previous one. */
    int rc =
        send_request(run, &request, space, is_rest ? NULL : op->resumes, &op->reply, &run->failure);
    if (op->resumes && op->reply.status == (is_rest ? 206 : 200))
        collect(run);
    if (rc != 0)
        return judge_failure(run, rc);
    enum s3_meaning meaning = judge_reply(run);
    if (is_rest && (!is_transient(meaning) || op->reply.status == 200)) {
        /* the object was replaced, or the server lacks ranges: start over */
        buf_clear(op->resumes);
        return S3_RETRY;
    }
    return meaning;
}

/* Waits before the next try. Returns ERR_CANCELLED, or ERR_TIMEOUT, without setting e, if the
 * deadline comes first. */
static int wait_before(struct run *run, int tries, struct err *e)
{
    const struct s3_client *c = run->op->client;
    const atomic_int *cancel = c->cancel;
    int64_t until_ms =
        clock_mono(&clock_system).ms +
        prng_backoff_ms(&run->prng, tries, atomic_load(&c->facts->backoff_ms), BACKOFF_MAX_MS);
    if (until_ms >= run->deadline_ms)
        return ERR_TIMEOUT;
    for (int64_t left; (left = until_ms - clock_mono(&clock_system).ms) > 0;) {
        if (cancel && atomic_load(cancel) != 0)
            return err_set(e, ERR_CANCELLED, "%s: cancelled", run->label);
        poll(NULL, 0, left < CANCEL_CHECK_MS ? (int)left : CANCEL_CHECK_MS);
    }
    return 0;
}

static int set_clock(struct run *run, struct err *e)
{
    struct wall theirs;
    if (run->had_clock ||
        http_date_parse(http_reply_header(&run->op->reply, "date"), &theirs, NULL) != 0)
        return err_set(e, ERR_CONFIG,
            "%s: the store says that this machine's clock is wrong; set it (for example with NTP)",
            run->label);
    run->had_clock = true;
    int64_t ahead_ms = theirs.ms - clock_wall(&clock_system).ms;
    atomic_store(&run->op->client->facts->clock_ahead_ms, ahead_ms);
    log_warn("this machine's clock differs from the store's; requests are dated by the store's",
        log_s("store", run->op->client->location.root), log_i("ahead_ms", ahead_ms));
    return 0;
}

/* ---- Errors ---- */

static int err_reply(struct run *run, enum err_kind kind, struct err *e, const char *hint)
{
    const struct s3_error *s = &run->error;
    const int status = run->op->reply.status;
    if (run->failure.kind != ERR_NONE) {
        *e = run->failure;
        return e->kind;
    }
    return err_set(e, kind, "%s: %d %s%s%.200s%s%s", run->label, status, s->code,
        s->message[0] ? ": " : "", s->message, hint[0] ? "; " : "", hint);
}

static int err_elsewhere(struct run *run, struct err *e)
{
    const struct s3_location *p = &run->op->client->location;
    const char *region = run->error.region;
    if (region[0] && !str_eq(region, p->region))
        return err_set(e, ERR_CONFIG,
            "%s: the bucket %s is in the region %s, not %s; put region=%s into the store's URL",
            run->label, p->bucket, region, p->region, region);
    return err_reply(run, ERR_CONFIG, e,
        p->dialect == STORE_KEYS_AWS ? "the store is elsewhere, and redirects are not followed "
                                       "with credentials: put its region= and "
                                       "endpoint= into the store's URL"
                                     : "the store is elsewhere, and redirects are not followed "
                                       "with credentials: put its endpoint= "
                                       "into "
                                       "the store's URL");
}

static int err_of_meaning(struct run *run, enum s3_meaning meaning, struct err *e)
{
    static const char *const denied[STORE_KEYS_KINDS] = {
        [STORE_KEYS_AWS] = "docs/how-to/clouds/aws.md says what the role of a node needs",
        [STORE_KEYS_GOOGLE] =
            "docs/how-to/clouds/gcp.md says what the service account of a node needs",
        [STORE_KEYS_AZURE] = "docs/how-to/clouds/azure.md says what the identity of a node needs",
    };
    const struct s3_location *location = &run->op->client->location;
    switch (meaning) {
    case S3_RETRY:
    case S3_UNSURE:
        return err_reply(run, ERR_UNAVAILABLE, e, "");
    case S3_KEYS:
        return err_reply(run, ERR_DENIED, e, "the credentials of this node were not accepted");
    case S3_CLOCK:
        return err_reply(run, ERR_CONFIG, e, "set this machine's clock");
    case S3_FULL:
        return err_reply(run, ERR_NO_SPACE, e, "");
    case S3_ELSEWHERE:
        return err_elsewhere(run, e);
    case S3_DENIED:
        return err_reply(run, ERR_DENIED, e, denied[location->dialect]);
    case S3_NO_BUCKET:
        return err_set(e, ERR_CONFIG, "%s: there is no %s %s; create it, or fix the store's URL",
            run->label, location->dialect == STORE_KEYS_AZURE ? "container" : "bucket",
            location->bucket);
    case S3_NOT_IMPLEMENTED:
        return err_reply(run, ERR_UNSUPPORTED, e, "");
    default:
        return err_reply(run, ERR_IO, e, "");
    }
}

/* ---- The operation ---- */

struct s3_op s3_op_make(
    const struct s3_client *c, const char *method, const char *key, const char *query)
{
    return (struct s3_op){.client = c,
        .request = {.method = method, .key = key, .query = query, .sha256 = S3_EMPTY_SHA256}};
}

void s3_op_body(struct s3_op *op, const void *p, size_t n, char sha256[SIGV4_HEX_MAX])
{
    sigv4_sha256_hex(p, n, sha256);
    s3_op_body_known(op, p, n, sha256);
}

void s3_op_body_known(struct s3_op *op, const void *p, size_t n, const char *sha256)
{
    op->request.body = p;
    op->request.n = n;
    op->request.sha256 = sha256;
}

void s3_op_header(struct s3_op *op, const char *name, const char *value)
{
    size_t n = 0;
    while (op->request.headers[n].name)
        n++;
    op->request.headers[n] = (struct http_header){name, value};
}

int s3_op_finish(struct s3_op *op, struct err *e)
{
    int rc = s3_op_run(op, e);
    s3_op_deinit(op);
    return rc;
}

int s3_op_refused(const struct s3_op *op, enum err_kind kind, const char *what, struct err *e)
{
    char label[S3_KEY_MAX + 128];
    s3_label(&op->client->location, &op->request, label, sizeof(label));
    return err_set(e, kind, "%s: %s", label, what);
}

static bool is_answer(const struct s3_op *op, enum s3_meaning m)
{
    return m == S3_DONE || m == S3_EXISTS || m == S3_MISSING ||
           (m == S3_NOT_IMPLEMENTED && op->may_lack);
}

/* Prepares another try after a failure, with a pause or other credentials. 0 = try again. */
static int prepare_retry(struct run *run, enum s3_meaning meaning, int tries, struct err *e)
{
    switch (meaning) {
    case S3_UNSURE:
        run->op->is_unsure = true;
        break;
    case S3_RETRY:
        break;
    case S3_KEYS:
        if (run->had_other_keys)
            return err_of_meaning(run, meaning, e);
        run->had_other_keys = true;
        run->refused_keys = run->used_keys;
        return 0;
    case S3_CLOCK:
        return set_clock(run, e);
    default:
        return err_of_meaning(run, meaning, e);
    }
    log_debug("store: again", log_s("request", run->label), log_i("status", run->op->reply.status),
        log_s("code", run->error.code), log_i("tries", tries));
    if (tries >= S3_OP_TRIES)
        return err_of_meaning(run, meaning, e);
    int rc = wait_before(run, tries - 1, e);
    return rc == ERR_TIMEOUT ? err_of_meaning(run, meaning, e) : rc;
}

int s3_op_run(struct s3_op *op, struct err *e)
{
    struct run run = {.op = op, .deadline_ms = clock_mono(&clock_system).ms + S3_OP_MS};
    uint64_t seed;
    random_bytes(&seed, sizeof(seed));
    prng_init(&run.prng, seed);
    s3_label(&op->client->location, &op->request, run.label, sizeof(run.label));
    op->is_unsure = false;
    if (op->resumes)
        buf_clear(op->resumes);
    for (int tries = 1;; tries++) {
        op->meaning = try_once(&run);
        if (is_answer(op, op->meaning))
            return 0;
        int rc = prepare_retry(&run, op->meaning, tries, e);
        if (rc != 0)
            return rc;
    }
}
