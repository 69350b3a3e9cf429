/* SPDX-License-Identifier: Apache-2.0
 *
 * See scoped.h.
 *
 *   get --> this process's own credentials --> the request, signed or with a bearer token
 *       --> the reply --> done
 *
 * Invariant: a credential is sent only to the token service, over https or to this machine.
 */
#include "cloud/scoped.h"
#include "base/http_date.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/sigv4.h"
#include "cloud/aws/sts.h"
#include "cloud/azure/sas.h"
#include "cloud/bearer.h"
#include "cloud/endpoint.h"
#include "cloud/gcp/downscope.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS SECONDS_MS(30)
#define CONNECT_TIMEOUT_MS SECONDS_MS(10)
#define FORM "application/x-www-form-urlencoded"
#define AUTHORIZATION "Authorization: "
#define BEARER "Bearer "
/* an Azure key becomes valid this long before now, to allow for clock skew */
#define KEY_EARLY_MS SECONDS_MS(15 * 60)
/* A token to be exchanged at Google should have nearly its full life left. */
#define FRESH_MS SECONDS_MS(45 * 60)
#define AZURE_LIFE_MIN_MS SECONDS_MS(10)

struct scoped {
    struct scoped_options o; /* owns its texts */
    struct aws_credential_source *keys;
    struct bearer *bearer; /* used instead of keys */
    int64_t skew_ms;       /* Amazon's clock minus ours, learned from a refused request */
    struct list calls;
};

struct scoped_call {
    struct link link;
    struct scoped *s; /* NULL: dropped while a request is in progress */
    char *prefix, *name;
    struct aws_credentials_wait keys;
    struct oauth_wait token;
    struct http_call *http;
    struct mono asked;
    struct wall expiry; /* Azure: the requested expiry */
    int64_t source_left_ms;
    scoped_fn done;
    void *ctx;
};

/* ---- the end of a call ---- */

static void free_call(struct scoped_call *c)
{
    link_remove(&c->link);
    free(c->prefix);
    free(c->name);
    free(c);
}

static void finish(
    struct scoped_call *c, const struct err *e, const struct scoped_credentials *credentials)
{
    scoped_fn done = c->done;
    void *ctx = c->ctx;
    free_call(c);
    done(ctx, e, credentials);
}

/* ---- replies ---- */

/* Makes later requests use the server's clock. */
static void correct_clock(struct scoped *s, const struct http_reply *reply)
{
    struct wall theirs;
    if (http_date_parse(http_reply_header(reply, "Date"), &theirs, NULL) == 0)
        s->skew_ms = theirs.ms - clock_wall(s->o.timers->clock).ms;
}

/* Time until `end`, by the clock of the server that set it. */
static int64_t left_ms(const struct scoped *s, const struct http_reply *reply, struct wall end)
{
    struct wall theirs;
    if (http_date_parse(http_reply_header(reply, "Date"), &theirs, NULL) != 0)
        theirs = clock_wall(s->o.timers->clock);
    return end.ms - theirs.ms;
}

static int read_aws(struct scoped_call *c, const struct http_reply *reply,
    struct scoped_credentials *ret, struct err *e)
{
    struct aws_credentials keys;
    unsigned remedies = 0;
    if (reply->status != 200) {
        int rc =
            sts_parse_error(reply->status, buf_str(&reply->body), reply->body.len, &remedies, e);
        if (remedies & STS_REMEDY_CREDENTIALS)
            aws_credentials_refused(c->s->keys);
        if (remedies & STS_REMEDY_CLOCK)
            correct_clock(c->s, reply);
        return rc;
    }
    int rc = sts_parse_assume_role(buf_str(&reply->body), reply->body.len, &keys, e);
    if (rc == 0) {
        STR_COPY(ret->access_key, keys.access_key);
        STR_COPY(ret->secret_key, keys.secret_key);
        STR_COPY(ret->token, keys.session_token);
        ret->left_ms = left_ms(c->s, reply, keys.expires);
    }
    explicit_bzero(&keys, sizeof(keys));
    return rc;
}

static int read_google(struct scoped_call *c, const struct http_reply *reply,
    struct scoped_credentials *ret, struct err *e)
{
    struct oauth_token token;
    int64_t left_s = c->source_left_ms > 1000 ? c->source_left_ms / 1000 : 1;
    int rc = gcp_downscope_parse(
        reply->status, buf_str(&reply->body), reply->body.len, left_s, &token, e);
    if (rc == 0) {
        STR_COPY(ret->token, token.text);
        ret->left_ms = SECONDS_MS(token.expires_in_s);
    }
    explicit_bzero(&token, sizeof(token));
    if (reply->status == 400 || reply->status == 401)
        oauth_refused(bearer_tokens(c->s->bearer), &c->token);
    return rc;
}

static int read_azure(struct scoped_call *c, const struct http_reply *reply,
    struct scoped_credentials *ret, struct err *e)
{
    const struct scoped_options *o = &c->s->o;
    struct sas_key key;
    struct buf query = {0};
    if (reply->status != 200) {
        if (reply->status == 401 || reply->status == 403)
            oauth_refused(bearer_tokens(c->s->bearer), &c->token);
        return sas_parse_error(reply->status, http_reply_header(reply, "x-ms-error-code"),
            buf_str(&reply->body), reply->body.len, e);
    }
    const struct sas_scope scope = {.account = o->account,
        .container = o->bucket,
        .expiry = c->expiry,
        .allows_http = str_starts(o->service_url, "http://")};
    int rc = sas_parse_key(buf_str(&reply->body), reply->body.len, &key, e);
    if (rc == 0) {
        sas_sign(&key, &scope, &query);
        STR_COPY(ret->token, buf_str(&query)); /* some 500 bytes */
        ret->left_ms = left_ms(c->s, reply, c->expiry);
    }
    explicit_bzero(&key, sizeof(key));
    buf_wipe(&query);
    return rc;
}

static void on_reply(void *ctx, const struct err *e, const struct http_reply *reply)
{
    static int (*const read[])(struct scoped_call *, const struct http_reply *,
        struct scoped_credentials *, struct err *) = {
        [SCOPED_AWS] = read_aws, [SCOPED_GOOGLE] = read_google, [SCOPED_AZURE] = read_azure};
    struct scoped_call *c = ctx;
    struct scoped_credentials credentials = {0};
    struct err bad;
    c->http = NULL;
    if (!c->s) {
        free_call(c);
        return;
    }
    if (!e && read[c->s->o.kind](c, reply, &credentials, &bad) != 0)
        e = &bad;
    credentials.left_ms -= clock_mono(c->s->o.timers->clock).ms - c->asked.ms;
    if (!e && credentials.left_ms <= 0) {
        err_set(&bad, ERR_INVALID, "the token service returned expired credentials");
        e = &bad;
    }
    finish(c, e, e ? NULL : &credentials);
    explicit_bzero(&credentials, sizeof(credentials));
}

/* ---- requests ---- */

/* lines: header lines; wiped and freed. */
static void post(
    struct scoped_call *c, const char *url, const struct buf *body, char **lines, size_t n)
{
    struct http_request r = {.method = "POST",
        .url = url,
        .body = buf_str(body),
        .body_len = body->len,
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_reply_bytes = STS_REPLY_MAX};
    for (size_t i = 0; i < n; i++)
        r.headers[i] = lines[i];
    c->asked = clock_mono(c->s->o.timers->clock);
    c->http = http_start(c->s->o.http, &r, on_reply, c);
    for (size_t i = 0; i < n; i++) {
        explicit_bzero(lines[i], strlen(lines[i]));
        free(lines[i]);
    }
}

static int sign(const struct scoped_call *c, const struct aws_credentials *keys,
    const struct buf *body, char *lines[HTTP_HEADERS_MAX], size_t *ret_n, struct err *e)
{
    const struct scoped *s = c->s;
    char timestamp[SIGV4_TIMESTAMP_MAX], hash[SIGV4_HEX_MAX], host[512];
    struct buf authorization = {0};
    size_t n = 0;
    sigv4_timestamp((struct wall){clock_wall(s->o.timers->clock).ms + s->skew_ms}, timestamp);
    sigv4_sha256_hex(buf_str(body), body->len, hash);
    cloud_endpoint_host(s->o.sts_url, host, sizeof(host));
    const struct http_header headers[] = {{"Host", host}, {"Content-Type", FORM "; charset=utf-8"},
        {"X-Amz-Date", timestamp}, {"X-Amz-Security-Token", keys->session_token}};
    const struct sigv4_request request = {.method = "POST",
        .target = "/",
        .headers = headers,
        .n_headers = keys->session_token[0] ? 4 : 3,
        .body_sha256 = hash};
    const struct sigv4_scope scope = {
        .timestamp = timestamp, .region = s->o.region, .service = "sts"};
    int rc = sigv4_authorization(
        &request, &scope, keys->access_key, keys->secret_key, &authorization, e);
    for (size_t i = 1; rc == 0 && i < request.n_headers; i++) /* the HTTP client sets Host itself */
        lines[n++] = mem_printf("%s: %s", headers[i].name, headers[i].value);
    if (rc == 0)
        lines[n++] = mem_printf(AUTHORIZATION "%s", buf_str(&authorization));
    *ret_n = n;
    buf_wipe(&authorization);
    return rc;
}

static void on_keys(void *ctx, const struct err *e, const struct aws_credentials *keys)
{
    struct scoped_call *c = ctx;
    const struct scoped_options *o = &c->s->o;
    const struct sts_session session = {.role_arn = o->role_arn,
        .name = c->name,
        .bucket = o->bucket,
        .prefix = c->prefix,
        .kms_key = o->kms_key,
        .life_s = o->life_ms / 1000};
    struct buf body = {0};
    char *lines[HTTP_HEADERS_MAX];
    struct err bad;
    size_t n = 0;
    if (!e && sts_build_assume_role(&session, &body, &bad) != 0)
        e = &bad;
    if (!e && sign(c, keys, &body, lines, &n, &bad) != 0)
        e = &bad;
    if (e) {
        finish(c, e, NULL);
    } else {
        char *url = mem_printf("%s/", o->sts_url);
        post(c, url, &body, lines, n);
        free(url);
    }
    buf_deinit(&body);
}

/* token: this process's own. */
static void exchange_google(struct scoped_call *c, const char *token)
{
    struct buf body = {0};
    struct err e;
    char *lines[1], *url = mem_printf("%s" GCP_STS_PATH, c->s->o.sts_url);
    c->source_left_ms = oauth_left_ms(bearer_tokens(c->s->bearer));
    if (gcp_downscope_build(c->s->o.bucket, c->prefix, token, &body, &e) != 0) {
        finish(c, &e, NULL);
    } else {
        lines[0] = mem_strdup("Content-Type: " FORM);
        post(c, url, &body, lines, 1);
    }
    buf_wipe(&body);
    free(url);
}

static void request_azure(struct scoped_call *c, const char *header)
{
    struct scoped *s = c->s;
    struct wall now = clock_wall(s->o.timers->clock);
    struct buf body = {0};
    char date[HTTP_DATE_MAX], *lines[4], *url = mem_printf("%s" SAS_KEY_PATH, s->o.service_url);
    c->expiry.ms = now.ms + s->o.life_ms;
    http_date_write(now, date);
    sas_build_key_request((struct wall){now.ms - KEY_EARLY_MS}, c->expiry, &body);
    lines[0] = mem_strdup(header);
    lines[1] = mem_strdup("x-ms-version: " SAS_API_VERSION);
    lines[2] = mem_printf("x-ms-date: %s", date);
    lines[3] = mem_strdup("Content-Type: application/xml");
    post(c, url, &body, lines, 4);
    buf_deinit(&body);
    free(url);
}

static void on_token(void *ctx, const struct err *e, const char *header)
{
    struct scoped_call *c = ctx;
    if (e)
        finish(c, e, NULL);
    else if (c->s->o.kind == SCOPED_AZURE)
        request_azure(c, header);
    else
        exchange_google(c, header + strlen(AUTHORIZATION BEARER));
}

/* ---- calls ---- */

struct scoped_call *scoped_get(
    struct scoped *s, const char *prefix, const char *name, scoped_fn done, void *ctx)
{
    struct scoped_call *c = mem_alloc(sizeof(*c));
    *c = (struct scoped_call){
        .s = s, .prefix = mem_strdup(prefix), .name = mem_strdup(name), .done = done, .ctx = ctx};
    list_push_back(&s->calls, &c->link);
    if (s->keys)
        aws_credentials_get(s->keys, &c->keys, on_keys, c);
    else
        oauth_get(bearer_tokens(s->bearer), &c->token, on_token, c);
    return c;
}

void scoped_cancel(struct scoped_call *c)
{
    if (!c)
        return;
    struct scoped *s = c->s;
    aws_credentials_cancel(&c->keys);
    oauth_cancel(&c->token);
    if (!c->http) {
        free_call(c);
        return;
    }
    link_remove(&c->link);
    c->s = NULL;
    http_cancel(s->o.http, c->http);
}

/* ---- life ---- */

static int check_aws(const struct scoped_options *o, struct err *e)
{
    /* Servers other than Amazon's have their own limits. */
    int64_t least_s = o->sts_url ? 1 : STS_LIFE_MIN_S;
    if (!o->role_arn)
        return err_set(e, ERR_INVALID,
            "store_role is needed: the ARN of the role that belayd assumes for each job");
    int rc = sts_check_role(o->role_arn, e);
    if (rc != 0)
        return err_wrap(e, "store_role");
    if (o->kms_key && sts_check_kms_key(o->kms_key, e) != 0)
        return err_wrap(e, "store_kms_key");
    if (o->life_ms && (o->life_ms < SECONDS_MS(least_s) || o->life_ms > SECONDS_MS(STS_LIFE_MAX_S)))
        return err_set(e, ERR_INVALID, "store_lifetime: a role's session lasts from %s to 12h",
            o->sts_url ? "1s" : "15m");
    return 0;
}

static int check_azure(const struct scoped_options *o, struct err *e)
{
    if (o->role_arn || o->kms_key || o->sts_url)
        return err_set(e, ERR_INVALID,
            "store_role, store_kms_key and store_sts do not apply to a store at Azure");
    if (o->life_ms && (o->life_ms < AZURE_LIFE_MIN_MS || o->life_ms > SAS_LIFE_MAX_MS))
        return err_set(e, ERR_INVALID, "store_lifetime: a signature of Azure lasts from 10s to 7d");
    return 0;
}

int scoped_check(const struct scoped_options *o, struct err *e)
{
    char *url = NULL;
    int rc = 0;
    if (o->kind == SCOPED_AWS)
        rc = check_aws(o, e);
    else if (o->kind == SCOPED_AZURE)
        rc = check_azure(o, e);
    else if (o->role_arn || o->kms_key)
        rc = err_set(
            e, ERR_INVALID, "store_role and store_kms_key do not apply to a store at Google");
    else if (o->life_ms)
        rc = err_set(e, ERR_INVALID,
            "store_lifetime does not apply to a store at Google: a job's token expires with "
            "belayd's own");
    if (rc == 0 && o->sts_url && cloud_endpoint("store_sts", o->sts_url, &url, e) != 0)
        rc = e->kind = ERR_INVALID;
    free(url);
    return rc;
}

static char *usual_sts(const struct scoped_options *o)
{
    if (o->kind == SCOPED_GOOGLE)
        return mem_strdup(GCP_STS_URL);
    return mem_printf(
        "https://sts.%s.amazonaws.com%s", o->region, str_starts(o->region, "cn-") ? ".cn" : "");
}

static int set_address(struct scoped *s, const struct scoped_options *o, struct err *e)
{
    char *url = NULL;
    int rc = 0;
    if (o->sts_url)
        rc = cloud_endpoint("store_sts", o->sts_url, &url, e);
    else if (o->kind != SCOPED_AZURE)
        url = usual_sts(o);
    s->o.sts_url = url;
    return rc;
}

static int set_source(struct scoped *s, struct err *e)
{
    struct aws_credential_options a = {.http = s->o.http, .timers = s->o.timers};
    const struct bearer_options b = {
        .is_azure = s->o.kind == SCOPED_AZURE, .http = s->o.http, .timers = s->o.timers};
    if (s->o.kind == SCOPED_AWS) {
        aws_environment_read(&a.env);
        return aws_credential_source_create(&a, &s->keys, e);
    }
    int rc = bearer_create(&b, &s->bearer, e);
    if (rc == 0 && s->o.kind == SCOPED_GOOGLE)
        oauth_renew_before(bearer_tokens(s->bearer), FRESH_MS);
    return rc;
}

int scoped_create(const struct scoped_options *o, struct scoped **ret_scoped, struct err *e)
{
    struct scoped *s = mem_alloc(sizeof(*s));
    s->o = *o;
    s->o.bucket = mem_strdup(o->bucket);
    s->o.region = mem_strdup(o->region);
    s->o.role_arn = mem_strdup(o->role_arn);
    s->o.kms_key = mem_strdup(o->kms_key);
    s->o.account = mem_strdup(o->account);
    s->o.service_url = mem_strdup(o->service_url);
    int rc = set_address(s, o, e);
    if (rc == 0)
        rc = set_source(s, e);
    if (rc == 0)
        *ret_scoped = s;
    else
        scoped_destroy(s);
    return rc;
}

void scoped_destroy(struct scoped *s)
{
    if (!s)
        return;
    LIST_FOREACH (&s->calls, l)
        scoped_cancel(LIST_ENTRY(l, struct scoped_call, link));
    aws_credential_source_destroy(s->keys);
    bearer_destroy(s->bearer);
    free((char *)s->o.bucket);
    free((char *)s->o.region);
    free((char *)s->o.role_arn);
    free((char *)s->o.kms_key);
    free((char *)s->o.account);
    free((char *)s->o.service_url);
    free((char *)s->o.sts_url);
    free(s);
}
