/* SPDX-License-Identifier: Apache-2.0
 *
 * See imds.h. One read:
 *
 *   imds_get --- token valid ---------------> GET --- 200, 404, error ---> done
 *      |                                      | ^
 *      +--- none, or about to expire -> PUT --|-+
 *                                     ^       |
 *                                     +- 401 -+   once a read
 */
#include "cloud/aws/imds.h"
#include "base/http_date.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/patience.h"
#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_TTL_S 21600
#define TOKEN_TTL_HEADER "X-aws-ec2-metadata-token-ttl-seconds: 21600"
#define TOKEN_MARGIN_MS SECONDS_MS(60) /* a token this close to its expiry is renewed first */
#define TOKEN_MAX 1024
#define PATH_MAX_BYTES 512
#define TIMEOUT_MS 2000 /* initially, see patience.h */

struct imds {
    char *base_url;
    struct http_client *http;
    const struct clock *clock;
    char token[TOKEN_MAX + 1]; /* "" if none */
    struct mono token_until;
    struct patience patience;
    char date[HTTP_DATE_MAX];
    /* The current read. */
    char path[PATH_MAX_BYTES];
    imds_done_fn done; /* NULL if idle */
    void *ctx;
    struct http_call *call;
    bool renewed;   /* this read has used its one new token */
    bool destroyed; /* freed when the current request has ended */
};

static void start_token(struct imds *m);

int imds_create(const char *base_url, struct http_client *http, const struct clock *clock,
    struct imds **ret_imds, struct err *e)
{
    const char *host = str_starts(base_url, "http://") ? base_url + strlen("http://") : "";
    size_t n = strlen(host);
    if (n > 0 && host[n - 1] == '/')
        n--;
    if (n == 0 || strcspn(host, "/?#@ ") != n)
        return err_set(
            e, ERR_CONFIG, "metadata service \"%.128s\": expected a URL like " IMDS_URL, base_url);
    struct imds *m = mem_alloc(sizeof(*m));
    m->base_url = mem_strndup(base_url, strlen("http://") + n);
    m->http = http;
    m->clock = clock;
    *ret_imds = m;
    return 0;
}

static void free_imds(struct imds *m)
{
    OPENSSL_cleanse(m->token, sizeof(m->token));
    free(m->base_url);
    free(m);
}

void imds_destroy(struct imds *m)
{
    if (!m)
        return;
    m->destroyed = true;
    if (m->call)
        http_cancel(m->http, m->call);
    else
        free_imds(m);
}

static void finish(struct imds *m, const struct err *e, const char *body, size_t n)
{
    imds_done_fn done = m->done;
    m->done = NULL;
    done(m->ctx, e, body, n);
}

/* Call first when a request has ended; false if the client was destroyed meanwhile. */
static bool is_wanted(struct imds *m, const struct err *e, const struct http_reply *reply)
{
    const char *date = reply ? http_reply_header(reply, "Date") : NULL;
    m->call = NULL;
    patience_end(&m->patience, clock_mono(m->clock), e);
    if (!date || !STR_COPY(m->date, date))
        m->date[0] = '\0';
    if (!m->destroyed)
        return true;
    free_imds(m);
    return false;
}

static void start_request(
    struct imds *m, const char *method, const char *path, const char *header, http_done_fn done)
{
    char *url = mem_printf("%s%s", m->base_url, path);
    struct http_request r = {
        .method = method,
        .url = url,
        .headers = {header},
        .timeout_ms = patience_begin(&m->patience, clock_mono(m->clock), TIMEOUT_MS),
        .max_reply_bytes = IMDS_REPLY_MAX,
    };
    m->call = http_start(m->http, &r, done, m);
    free(url);
}

static void fail_status(struct imds *m, const char *path, int status)
{
    struct err e;
    if (status == 404)
        err_set(&e, ERR_NOT_FOUND, "metadata %s: not found", path);
    else if (status == 403)
        err_set(&e, ERR_DENIED,
            "metadata %s: HTTP 403: the metadata service is turned off for this instance", path);
    else if (status == 401)
        err_set(&e, ERR_DENIED, "metadata %s: HTTP 401 with a new token", path);
    else
        err_set(&e, ERR_UNAVAILABLE, "metadata %s: HTTP %d", path, status);
    finish(m, &e, NULL, 0);
}

static void fail(struct imds *m, const char *path, const struct err *cause)
{
    struct err e = *cause;
    err_wrap(&e, "metadata %s", path);
    finish(m, &e, NULL, 0);
}

static void on_get(void *ctx, const struct err *e, const struct http_reply *reply)
{
    struct imds *m = ctx;
    if (!is_wanted(m, e, reply))
        return;
    if (e) {
        fail(m, m->path, e);
    } else if (reply->status == 200) {
        finish(m, NULL, buf_str(&reply->body), reply->body.len);
    } else if (reply->status == 401 && !m->renewed) {
        m->token[0] = '\0';
        start_token(m);
    } else {
        fail_status(m, m->path, reply->status);
    }
}

static void start_get(struct imds *m)
{
    char header[TOKEN_MAX + 64];
    snprintf(header, sizeof(header), "X-aws-ec2-metadata-token: %s", m->token);
    start_request(m, "GET", m->path, header, on_get);
    OPENSSL_cleanse(header, sizeof(header));
}

/* A token goes into one of our header lines: visible ASCII only. */
static bool token_is_valid(const struct buf *body)
{
    if (body->len == 0 || body->len > TOKEN_MAX)
        return false;
    for (size_t i = 0; i < body->len; i++)
        if (body->data[i] <= ' ' || body->data[i] > '~')
            return false;
    return true;
}

static void on_token(void *ctx, const struct err *e, const struct http_reply *reply)
{
    static const char path[] = "/latest/api/token";
    struct imds *m = ctx;
    if (!is_wanted(m, e, reply))
        return;
    if (e && e->kind == ERR_TIMEOUT) {
        fail(m, "/latest/api/token (in a container: the instance needs a metadata hop limit of 2)",
            e);
    } else if (e) {
        fail(m, path, e);
    } else if (reply->status == 404) {
        struct err none;
        err_set(&none, ERR_UNAVAILABLE,
            "metadata %s: HTTP 404: this is not an EC2 metadata service", path);
        finish(m, &none, NULL, 0);
    } else if (reply->status != 200) {
        fail_status(m, path, reply->status);
    } else if (!token_is_valid(&reply->body)) {
        struct err bad;
        err_set(&bad, ERR_INVALID, "metadata %s: the reply of %zu bytes is not a token", path,
            reply->body.len);
        finish(m, &bad, NULL, 0);
    } else {
        str_copy(m->token, sizeof(m->token), buf_str(&reply->body));
        m->token_until.ms = clock_mono(m->clock).ms + SECONDS_MS(TOKEN_TTL_S) - TOKEN_MARGIN_MS;
        start_get(m);
    }
}

static void start_token(struct imds *m)
{
    m->renewed = true;
    start_request(m, "PUT", "/latest/api/token", TOKEN_TTL_HEADER, on_token);
}

const char *imds_date(const struct imds *m)
{
    return m->date;
}

void imds_get(struct imds *m, const char *path, imds_done_fn done, void *ctx)
{
    assert(!m->done && !m->destroyed);
    bool fits = STR_COPY(m->path, path);
    assert(fits);
    (void)fits;
    m->done = done;
    m->ctx = ctx;
    m->renewed = false;
    if (m->token[0] && clock_mono(m->clock).ms < m->token_until.ms)
        start_get(m);
    else
        start_token(m);
}
