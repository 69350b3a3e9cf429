/* SPDX-License-Identifier: Apache-2.0
 *
 * The aws driver: glue between the pure halves (ec2.h, sigv4.h, credentials.h) and an HTTP client.
 *
 *   start --> timer(0) --> credentials --> signed POST --- 200, last page ---------> completion
 *                              ^                 |    \--- 200, another page --+
 *                              |                 |                             |
 *                              +---- the driver's own remedy, each once a call +
 *                                    (clock wrong: the reply's Date; keys refused: read anew)
 *
 * Invariants. A call's completion runs once, from the loop. Credentials go into requests to one URL only, the
 * configured endpoint or the region's own, and that is https, or loopback. Everything else, retries included,
 * is up to the caller.
 */
#include "cloud/aws/aws.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/credentials.h"
#include "cloud/aws/ec2.h"
#include "cloud/aws/sigv4.h"
#include "cloud/http_date.h"
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS SECONDS_MS(60)
#define CONNECT_TIMEOUT_MS SECONDS_MS(10)
#define PAGES_MAX 1000
#define SPOT_NOTICE_MS SECONDS_MS(120)
#define CONTENT_TYPE "application/x-www-form-urlencoded; charset=utf-8"

struct aws_driver {
    struct cloud_driver base;
    char *endpoint_url; /* without the last '/'; NULL: by region */
    char *endpoint_ca_pem;
    struct http_client *http;
    struct timers *timers;
    struct aws_credential_source *credentials;
    int64_t skew_ms; /* EC2's clock minus ours, learned from a refusal */
    struct list calls;
};

struct aws_call;

/* What distinguishes the four operations once their request is built. */
struct operation {
    const char *name;
    int (*parse)(struct aws_call *c, const char *body, size_t n, struct err *e);
    void (*report)(struct aws_call *c, const struct err *e); /* runs the caller's completion */
};

struct aws_call {
    struct link link;
    struct aws_driver *d; /* NULL: the driver is gone, and the caller has been told */
    const struct operation *op;
    char region[CLOUD_NAME_MAX];
    struct buf request; /* form body of the first page */
    struct err refused; /* kind not 0: the request could not be built */
    struct timer timer;
    struct aws_credentials_wait wait;
    struct http_call *http;
    bool clock_mended, credentials_renewed;
    int pages;
    char page[EC2_PAGE_TOKEN_MAX + 1];
    union {
        cloud_launch_fn launch;
        cloud_list_fn list;
        cloud_done_fn terminate;
        cloud_prices_fn prices;
    } done;
    void *ctx;
    /* Results, and what is needed to read them. */
    struct cloud_instance instance;
    struct ec2_instances instances;
    struct ec2_prices prices;
    char *cluster;
    char **ids;
    size_t n_ids;
};

/* ---- the life of a call ---- */

static void on_timer(struct timer *t, void *ctx);

static struct aws_call *new_call(
    struct cloud_driver *d, const struct operation *op, const char *region, void *ctx)
{
    struct aws_call *c = mem_alloc(sizeof(*c));
    c->d = (struct aws_driver *)d;
    c->op = op;
    c->ctx = ctx;
    timer_init(&c->timer, on_timer, c);
    if (!region || strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(region) || !*region ||
        !STR_COPY(c->region, region))
        err_set(&c->refused, ERR_CONFIG, "\"%.64s\" is no AWS region (expected the like of us-east-1)",
            region ? region : "");
    return c;
}

static void start_call(struct aws_call *c)
{
    list_push_back(&c->d->calls, &c->link);
    timer_start(c->d->timers, &c->timer, 0);
}

static void free_call(struct aws_call *c)
{
    if (c->request.data) /* user data holds a one-use secret */
        OPENSSL_cleanse(c->request.data, c->request.len);
    buf_deinit(&c->request);
    ec2_instances_deinit(&c->instances);
    ec2_prices_deinit(&c->prices);
    for (size_t i = 0; i < c->n_ids; i++)
        free(c->ids[i]);
    free(c->ids);
    free(c->cluster);
    free(c);
}

static void finish(struct aws_call *c, const struct err *e)
{
    struct err wrapped;
    if (e) {
        wrapped = *e;
        err_wrap(&wrapped, "aws %s, %s", c->op->name, c->region);
    }
    link_remove(&c->link);
    c->op->report(c, e ? &wrapped : NULL);
    free_call(c);
}

/* ---- the request ---- */

static char *endpoint_of(const struct aws_driver *d, const char *region)
{
    if (d->endpoint_url)
        return mem_strdup(d->endpoint_url);
    return mem_printf("https://ec2.%s.amazonaws.com%s", region, str_starts(region, "cn-") ? ".cn" : "");
}

/* The Host header that the HTTP client will send: without the scheme's own port. */
static void host_of(const char *endpoint, char *out, size_t size)
{
    bool https = str_starts(endpoint, "https://");
    str_copy(out, size, strstr(endpoint, "://") + 3);
    if (str_ends(out, https ? ":443" : ":80"))
        *strrchr(out, ':') = '\0';
}

static void on_reply(void *ctx, const struct err *e, const struct http_reply *reply);

static void post(struct aws_call *c, const char *endpoint, const struct sigv4_header *headers,
    size_t n_headers, const struct buf *body, const char *authorization)
{
    char *url = mem_printf("%s/", endpoint);
    struct http_request r = {
        .method = "POST",
        .url = url,
        .body = buf_str(body),
        .body_len = body->len,
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_reply_bytes = EC2_REPLY_MAX,
        .tls = {.ca_pem = c->d->endpoint_ca_pem},
    };
    char *lines[HTTP_HEADERS_MAX] = {0};
    size_t n = 0;
    for (size_t i = 0; i < n_headers; i++)
        if (!str_eq(headers[i].name, "Host")) /* the client's own, from the URL */
            lines[n++] = mem_printf("%s: %s", headers[i].name, headers[i].value);
    lines[n++] = mem_printf("Authorization: %s", authorization);
    for (size_t i = 0; i < n; i++)
        r.headers[i] = lines[i];
    c->http = http_start(c->d->http, &r, on_reply, c);
    for (size_t i = 0; i < n; i++) {
        OPENSSL_cleanse(lines[i], strlen(lines[i]));
        free(lines[i]);
    }
    free(url);
}

static int send_request(struct aws_call *c, const struct aws_credentials *keys, struct err *e)
{
    char timestamp[SIGV4_TIMESTAMP_MAX], hash[SIGV4_HEX_MAX], host[512];
    struct buf body = {0}, authorization = {0};
    char *endpoint = endpoint_of(c->d, c->region);
    buf_add(&body, buf_str(&c->request), c->request.len);
    if (c->page[0])
        ec2_add_page(c->page, &body);
    sigv4_timestamp((struct wall){clock_wall(c->d->timers->clock).ms + c->d->skew_ms}, timestamp);
    sigv4_sha256_hex(buf_str(&body), body.len, hash);
    host_of(endpoint, host, sizeof(host));
    struct sigv4_header headers[] = {
        {"Host", host},
        {"Content-Type", CONTENT_TYPE},
        {"X-Amz-Date", timestamp},
        {"X-Amz-Security-Token", keys->session_token},
    };
    struct sigv4_request r = {
        .method = "POST",
        .target = "/",
        .headers = headers,
        .n_headers = keys->session_token[0] ? 4 : 3,
        .body_sha256 = hash,
    };
    struct sigv4_scope scope = {.timestamp = timestamp, .region = c->region, .service = "ec2"};
    int rc = sigv4_authorization(&r, &scope, keys->access_key, keys->secret_key, &authorization, e);
    if (rc == 0)
        post(c, endpoint, headers, r.n_headers, &body, buf_str(&authorization));
    OPENSSL_cleanse(body.data, body.len);
    buf_deinit(&body);
    buf_deinit(&authorization);
    free(endpoint);
    return rc;
}

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *keys)
{
    struct aws_call *c = ctx;
    struct err bad;
    if (e)
        finish(c, e);
    else if (send_request(c, keys, &bad) != 0)
        finish(c, &bad);
}

static void get_credentials(struct aws_call *c)
{
    aws_credentials_get(c->d->credentials, &c->wait, on_credentials, c);
}

static void on_timer(struct timer *t, void *ctx)
{
    struct aws_call *c = ctx;
    (void)t;
    if (c->refused.kind != ERR_NONE)
        finish(c, &c->refused);
    else
        get_credentials(c);
}

/* ---- the reply ---- */

/* Takes EC2's clock for true when its refusal says that ours is not; false if its reply has no date. */
static bool mend_clock(struct aws_call *c, const struct http_reply *reply)
{
    struct wall theirs;
    if (c->clock_mended || http_date_parse(http_reply_header(reply, "Date"), &theirs, NULL) != 0)
        return false;
    c->clock_mended = true;
    c->d->skew_ms = theirs.ms - clock_wall(c->d->timers->clock).ms;
    return true;
}

static bool renew_credentials(struct aws_call *c)
{
    if (c->credentials_renewed)
        return false;
    c->credentials_renewed = true;
    return aws_credentials_refused(c->d->credentials);
}

static void on_refusal(struct aws_call *c, const struct http_reply *reply)
{
    struct err e;
    enum ec2_remedy remedy;
    ec2_parse_error(reply->status, buf_str(&reply->body), reply->body.len, &remedy, &e);
    if ((remedy == EC2_REMEDY_CLOCK && mend_clock(c, reply)) ||
        (remedy == EC2_REMEDY_CREDENTIALS && renew_credentials(c)))
        get_credentials(c);
    else
        finish(c, &e);
}

static void on_page(struct aws_call *c, const struct http_reply *reply)
{
    struct err e;
    if (c->op->parse(c, buf_str(&reply->body), reply->body.len, &e) != 0) {
        finish(c, &e);
    } else if (!c->page[0]) {
        finish(c, NULL);
    } else if (++c->pages == PAGES_MAX) {
        err_set(&e, ERR_INVALID, "EC2's reply: more than %d pages", PAGES_MAX);
        finish(c, &e);
    } else {
        get_credentials(c);
    }
}

static void on_reply(void *ctx, const struct err *e, const struct http_reply *reply)
{
    struct aws_call *c = ctx;
    c->http = NULL;
    if (!c->d)
        free_call(c);
    else if (e)
        finish(c, e);
    else if (reply->status == 200)
        on_page(c, reply);
    else
        on_refusal(c, reply);
}

/* ---- the operations ---- */

static int parse_launch(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_run_instances(body, n, &c->instance, e);
}

static void report_launch(struct aws_call *c, const struct err *e)
{
    c->done.launch(c->ctx, e, e ? NULL : &c->instance);
}

static void aws_launch(struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct operation op = {"RunInstances", parse_launch, report_launch};
    struct aws_call *c = new_call(d, &op, l->region, ctx);
    c->done.launch = done;
    if (c->refused.kind == ERR_NONE)
        ec2_build_run_instances(l, &c->request, &c->refused);
    start_call(c);
}

static int parse_list(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_describe_instances(body, n, &c->instances, c->page, e);
}

/* The filter's value is a pattern to EC2; here only our own cluster's machines pass. */
static void report_list(struct aws_call *c, const struct err *e)
{
    struct cloud_instance *list = c->instances.list;
    size_t n = 0;
    for (size_t i = 0; i < c->instances.n; i++)
        if (str_eq(list[i].cluster, c->cluster))
            list[n++] = list[i];
    c->done.list(c->ctx, e, e ? NULL : list, e ? 0 : n);
}

static void aws_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    static const struct operation op = {"DescribeInstances", parse_list, report_list};
    struct aws_call *c = new_call(d, &op, region, ctx);
    c->done.list = done;
    c->cluster = mem_strdup(cluster);
    ec2_build_describe_instances(cluster, &c->request);
    start_call(c);
}

static int parse_terminate(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_terminate_instances(body, n, (const char *const *)c->ids, c->n_ids, e);
}

static void report_terminate(struct aws_call *c, const struct err *e)
{
    c->done.terminate(c->ctx, e);
}

static void aws_terminate(struct cloud_driver *d, const char *region, const char *const *ids, size_t n_ids,
    cloud_done_fn done, void *ctx)
{
    static const struct operation op = {"TerminateInstances", parse_terminate, report_terminate};
    struct aws_call *c = new_call(d, &op, region, ctx);
    c->done.terminate = done;
    if (c->refused.kind == ERR_NONE &&
        ec2_build_terminate_instances(ids, n_ids, &c->request, &c->refused) == 0) {
        c->ids = mem_array(n_ids, sizeof(*c->ids));
        for (c->n_ids = 0; c->n_ids < n_ids; c->n_ids++)
            c->ids[c->n_ids] = mem_strdup(ids[c->n_ids]);
    }
    start_call(c);
}

static int parse_prices(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_spot_prices(body, n, &c->prices, c->page, e);
}

static void report_prices(struct aws_call *c, const struct err *e)
{
    c->done.prices(c->ctx, e, e ? NULL : c->prices.list, e ? 0 : c->prices.n);
}

static void aws_spot_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n_types, cloud_prices_fn done, void *ctx)
{
    static const struct operation op = {"DescribeSpotPriceHistory", parse_prices, report_prices};
    struct aws_call *c = new_call(d, &op, region, ctx);
    c->done.prices = done;
    if (c->refused.kind == ERR_NONE)
        ec2_build_spot_prices(types, n_types, clock_wall(c->d->timers->clock), &c->request, &c->refused);
    start_call(c);
}

/* ---- the driver ---- */

static void aws_destroy(struct cloud_driver *driver)
{
    static const struct err cancelled = {ERR_CANCELLED, "the aws driver was closed"};
    struct aws_driver *d = (struct aws_driver *)driver;
    struct link *link;
    while ((link = list_first(&d->calls))) {
        struct aws_call *c = LIST_ENTRY(link, struct aws_call, link);
        timer_stop(d->timers, &c->timer);
        aws_credentials_cancel(&c->wait);
        if (!c->http) {
            finish(c, &cancelled);
            continue;
        }
        /* The HTTP client still holds the call: it is freed when that ends. */
        link_remove(&c->link);
        c->op->report(c, &cancelled);
        c->d = NULL;
        http_cancel(d->http, c->http);
    }
    aws_credential_source_destroy(d->credentials);
    free(d->endpoint_url);
    free(d->endpoint_ca_pem);
    free(d);
}

static const struct cloud_driver_ops aws_ops = {
    .provider = "aws",
    .spot_notice_ms = SPOT_NOTICE_MS,
    .launch = aws_launch,
    .list = aws_list,
    .terminate = aws_terminate,
    .spot_prices = aws_spot_prices,
    .destroy = aws_destroy,
};

/* True for 127.x.y.z, [::1] and localhost, with or without a port. */
static bool is_loopback(const char *host, size_t n)
{
    char name[64];
    if (n >= sizeof(name))
        return false;
    memcpy(name, host, n);
    name[n] = '\0';
    if (str_starts(name, "["))
        return str_eq(name, "[::1]") || str_starts(name, "[::1]:");
    name[strcspn(name, ":")] = '\0';
    return str_eq(name, "localhost") ||
           (str_starts(name, "127.") && strspn(name, "0123456789.") == strlen(name));
}

/* Stores the endpoint without its last '/'. */
static int set_endpoint(struct aws_driver *d, const char *url, struct err *e)
{
    bool https = str_starts(url, "https://");
    if (!https && !str_starts(url, "http://"))
        return err_set(e, ERR_CONFIG, "aws endpoint \"%.128s\": expected https://HOST[:PORT]/", url);
    const char *host = strstr(url, "://") + 3;
    size_t n = strcspn(host, "/");
    if (n == 0 || n > 255 || strcspn(host, "@?# \\%") < n || (host[n] && !str_eq(host + n, "/")))
        return err_set(e, ERR_CONFIG, "aws endpoint \"%.128s\": expected a host and nothing after it", url);
    if (!https && !is_loopback(host, n))
        return err_set(e, ERR_CONFIG,
            "aws endpoint \"%.128s\": plain http would show requests to the network; use https:// (http:// "
            "is for "
            "this machine's own address only)",
            url);
    d->endpoint_url = mem_strndup(url, (size_t)(host - url) + n);
    return 0;
}

int aws_driver_create(const struct aws_options *o, struct cloud_driver **ret_driver, struct err *e)
{
    struct aws_driver *d = mem_alloc(sizeof(*d));
    struct aws_credential_options credentials = {
        .credentials_file = o->credentials_file,
        .profile = o->profile,
        .metadata_url = o->metadata_url,
        .http = o->http,
        .timers = o->timers,
    };
    d->base.ops = &aws_ops;
    d->http = o->http;
    d->timers = o->timers;
    d->endpoint_ca_pem = mem_strdup(o->endpoint_ca_pem);
    aws_environment_read(&credentials.env);
    int rc = o->endpoint_url ? set_endpoint(d, o->endpoint_url, e) : 0;
    if (rc == 0)
        rc = aws_credential_source_create(&credentials, &d->credentials, e);
    if (rc == 0)
        *ret_driver = &d->base;
    else
        aws_destroy(&d->base);
    return rc;
}
