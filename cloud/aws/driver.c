/* SPDX-License-Identifier: Apache-2.0
 *
 * The aws driver: connects the pure parts (ec2.h, sigv4.h, credentials.h) to an HTTP client. See
 * driver_parts.h for the life of a call.
 *
 * Invariant: signed requests go to three URLs only, those of EC2, of the price list and of Service
 * Quotas, each as configured or AWS's own; if only the first is configured, there are no others.
 * They are https, or loopback. Retries are up to the caller.
 */
#include "cloud/aws/aws.h"
#include "base/http_date.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/driver_parts.h"
#include "cloud/aws/sigv4.h"
#include "cloud/endpoint.h"
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_TIMEOUT_MS SECONDS_MS(10)
#define SPOT_NOTICE_MS SECONDS_MS(120)

/* ---- EC2 ---- */

static char *endpoint_of(const struct aws_driver *d, const char *region)
{
    if (d->endpoint_url)
        return mem_strdup(d->endpoint_url);
    return mem_printf(
        "https://ec2.%s.amazonaws.com%s", region, str_starts(region, "cn-") ? ".cn" : "");
}

const struct aws_service aws_ec2 = {.name = "ec2",
    .content_type = "application/x-www-form-urlencoded; charset=utf-8",
    .timeout_ms = SECONDS_MS(60),
    .pages_max = 1000,
    .endpoint = endpoint_of,
    .add_page = ec2_add_page,
    .parse_error = ec2_parse_error};

/* ---- the life of a call ---- */

struct aws_call *aws_call_new(struct aws_driver *d, const char *region)
{
    struct aws_call *c = mem_alloc(sizeof(*c));
    c->d = d;
    c->service = &aws_ec2;
    if (!region || strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(region) ||
        !*region || strlen(region) >= CLOUD_NAME_MAX)
        err_set(&c->base.refused, ERR_CONFIG,
            "\"%.64s\" is not an AWS region (expected one like us-east-1)", region ? region : "");
    return c;
}

void aws_call_clear_request(struct aws_call *c)
{
    if (c->request.data) /* user data contains a one-use secret */
        OPENSSL_cleanse(c->request.data, c->request.len);
    buf_clear(&c->request);
}

void aws_call_deinit(struct cloud_call *base)
{
    struct aws_call *c = (struct aws_call *)base;
    aws_credentials_cancel(&c->wait);
    aws_call_clear_request(c);
    buf_deinit(&c->request);
    aws_fleet_free(c);
    aws_prices_free(c->prices);
}

/* ---- the request ---- */

static void post(struct aws_call *c, const char *endpoint, const struct http_header *headers,
    size_t n_headers, const struct buf *body, const char *authorization)
{
    char *url = mem_printf("%s/", endpoint);
    struct http_request r = {
        .method = "POST",
        .url = url,
        .body = buf_str(body),
        .body_len = body->len,
        .timeout_ms = c->service->timeout_ms,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_reply_bytes = EC2_REPLY_MAX,
        .tls = {.ca_pem = c->d->endpoint_ca_pem},
    };
    char *lines[HTTP_HEADERS_MAX] = {0};
    size_t n = 0;
    for (size_t i = 0; i < n_headers; i++)
        if (!str_eq(headers[i].name, "Host")) /* the HTTP client derives Host from the URL */
            lines[n++] = mem_printf("%s: %s", headers[i].name, headers[i].value);
    lines[n++] = mem_printf("Authorization: %s", authorization);
    for (size_t i = 0; i < n; i++)
        r.headers[i] = lines[i];
    cloud_call_send(&c->base, &r);
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
    const struct aws_service *s = c->service;
    char *endpoint = s->endpoint(c->d, c->base.region);
    buf_add(&body, buf_str(&c->request), c->request.len);
    if (c->page[0])
        s->add_page(c->page, &body);
    sigv4_timestamp(
        (struct wall){clock_wall(c->d->calls.timers->clock).ms + c->d->skew_ms}, timestamp);
    sigv4_sha256_hex(buf_str(&body), body.len, hash);
    cloud_endpoint_host(endpoint, host, sizeof(host));
    struct http_header headers[5] = {
        {"Host", host},
        {"Content-Type", s->content_type},
        {"X-Amz-Date", timestamp},
    };
    size_t n_headers = 3;
    if (keys->session_token[0])
        headers[n_headers++] = (struct http_header){"X-Amz-Security-Token", keys->session_token};
    if (s->target)
        headers[n_headers++] = (struct http_header){"X-Amz-Target", s->target};
    struct sigv4_request r = {
        .method = "POST",
        .target = "/",
        .headers = headers,
        .n_headers = n_headers,
        .body_sha256 = hash,
    };
    struct sigv4_scope scope = {.timestamp = timestamp,
        .region = s->region ? s->region : c->base.region,
        .service = s->name};
    int rc = sigv4_authorization(&r, &scope, keys->access_key, keys->secret_key, &authorization, e);
    if (rc == 0)
        post(c, endpoint, headers, r.n_headers, &body, buf_str(&authorization));
    OPENSSL_cleanse(body.data, body.len);
    buf_deinit(&body);
    buf_deinit(&authorization);
    free(endpoint);
    return rc;
}

static void stage_over(struct aws_call *c)
{
    c->pages = 0;
    c->page[0] = '\0';
    if (c->next && c->next(c))
        cloud_call_step(&c->base);
    else
        cloud_call_finish(&c->base, c->outcome.kind == ERR_NONE ? NULL : &c->outcome);
}

static void stage_failed(struct aws_call *c, const struct err *e)
{
    if (c->forgo) {
        c->forgo(c, e);
        stage_over(c);
    } else {
        cloud_call_finish(&c->base, e);
    }
}

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *keys)
{
    struct aws_call *c = ctx;
    struct err bad;
    if (e && !c->forgo)
        cloud_call_no_credentials(&c->base, e);
    else if (e)
        stage_failed(c, e);
    else if (send_request(c, keys, &bad) != 0)
        stage_failed(c, &bad);
}

void aws_call_step(struct cloud_call *base)
{
    struct aws_call *c = (struct aws_call *)base;
    aws_credentials_get(c->d->credentials, &c->wait, on_credentials, c);
}

/* ---- the reply ---- */

/* Adopts EC2's clock when EC2 refuses a request because of ours; false if its reply has no date. */
static bool correct_clock(struct aws_call *c, const struct http_reply *reply)
{
    struct wall theirs;
    if (c->clock_mended || http_date_parse(http_reply_header(reply, "Date"), &theirs, NULL) != 0)
        return false;
    c->clock_mended = true;
    c->d->skew_ms = theirs.ms - clock_wall(c->d->calls.timers->clock).ms;
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
    c->service->parse_error(reply->status, buf_str(&reply->body), reply->body.len, &remedy, &e);
    if ((remedy == EC2_REMEDY_CLOCK && correct_clock(c, reply)) ||
        (remedy == EC2_REMEDY_CREDENTIALS && renew_credentials(c)))
        cloud_call_step(&c->base);
    else if (c->excuse && c->excuse(c, &e))
        stage_over(c);
    else
        stage_failed(c, &e);
}

static void on_page(struct aws_call *c, const struct http_reply *reply)
{
    struct err e;
    if (c->parse(c, buf_str(&reply->body), reply->body.len, &e) != 0) {
        stage_failed(c, &e);
    } else if (!c->page[0]) {
        stage_over(c);
    } else if (++c->pages == c->service->pages_max) {
        err_set(&e, ERR_INVALID, "the reply has more than %d pages", c->service->pages_max);
        stage_failed(c, &e);
    } else {
        cloud_call_step(&c->base);
    }
}

void aws_call_on_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct aws_call *c = (struct aws_call *)base;
    if (reply->status == 200)
        on_page(c, reply);
    else
        on_refusal(c, reply);
}

void aws_call_on_silence(struct cloud_call *base, const struct err *e)
{
    if (e->kind == ERR_CANCELLED) /* the client is shutting down: send nothing more */
        cloud_call_finish(base, e);
    else
        stage_failed((struct aws_call *)base, e);
}

/* ---- the operations ---- */

static int parse_launch(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_run_instances(body, n, &c->base.instance, e);
}

static void aws_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "RunInstances", aws_call_step, aws_call_on_reply, aws_call_deinit};
    if (aws_fleet_wanted((struct aws_driver *)d, l)) {
        aws_fleet_launch((struct aws_driver *)d, l, done, ctx);
        return;
    }
    struct aws_call *c = aws_call_new((struct aws_driver *)d, l->region);
    c->parse = parse_launch;
    if (c->base.refused.kind == ERR_NONE)
        ec2_build_run_instances(l, &c->d->machine, &c->request, &c->base.refused);
    cloud_call_launch(&c->d->calls, &c->base, &ops, l, done, ctx);
}

static int parse_list(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_describe_instances(body, n, &c->base.instances, c->page, e);
}

static void aws_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    static const struct cloud_call_ops own = {"DescribeInstances", aws_call_step, aws_call_on_reply,
                                           aws_call_deinit},
                                       all = {"DescribeInstances", aws_call_step, aws_call_on_reply,
                                           aws_call_deinit, .permission = "ec2:DescribeInstances"};
    struct aws_call *c = aws_call_new((struct aws_driver *)d, region);
    c->parse = parse_list;
    if (cluster)
        c->next = aws_fleet_listed;
    ec2_build_describe_instances(cluster, &c->request);
    cloud_call_list(&c->d->calls, &c->base, cluster ? &own : &all, region, cluster, done, ctx);
}

static int parse_terminate(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_terminate_instances(
        body, n, (const char *const *)c->base.words, c->base.n_words, e);
}

static void aws_terminate(struct cloud_driver *d, const char *region, const char *const *ids,
    size_t n_ids, cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "TerminateInstances", aws_call_step, aws_call_on_reply, aws_call_deinit};
    struct aws_call *c = aws_call_new((struct aws_driver *)d, region);
    c->parse = parse_terminate;
    if (c->base.refused.kind == ERR_NONE &&
        ec2_build_terminate_instances(ids, n_ids, &c->request, &c->base.refused) == 0)
        cloud_call_add_words(&c->base, ids, n_ids);
    cloud_call_terminate(&c->d->calls, &c->base, &ops, region, done, ctx);
}

static int parse_volumes(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_describe_volumes(body, n, &c->base.volumes, c->page, e);
}

static void aws_volumes(struct cloud_driver *d, const char *region, const char *cluster,
    cloud_volumes_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"DescribeVolumes", aws_call_step, aws_call_on_reply,
        aws_call_deinit, .permission = "ec2:DescribeVolumes"};
    struct aws_call *c = aws_call_new((struct aws_driver *)d, region);
    c->parse = parse_volumes;
    ec2_build_describe_volumes(cluster, &c->request);
    cloud_call_volumes(&c->d->calls, &c->base, &ops, region, cluster, done, ctx);
}

static int parse_console(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_get_console_output(body, n, &c->base.console, e);
}

static void aws_console(
    struct cloud_driver *d, const char *region, const char *id, cloud_console_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"GetConsoleOutput", aws_call_step, aws_call_on_reply,
        aws_call_deinit, .permission = "ec2:GetConsoleOutput"};
    struct aws_call *c = aws_call_new((struct aws_driver *)d, region);
    c->parse = parse_console;
    ec2_build_get_console_output(id, &c->request);
    cloud_call_console(&c->d->calls, &c->base, &ops, region, done, ctx);
}

static void on_found(void *ctx, const struct err *e, const struct aws_credentials *keys)
{
    struct aws_call *c = ctx;
    (void)keys;
    cloud_call_finish(&c->base, e);
}

static void find_credentials(struct cloud_call *base)
{
    struct aws_call *c = (struct aws_call *)base;
    aws_credentials_get(c->d->credentials, &c->wait, on_found, c);
}

static void aws_find_credentials(
    struct cloud_driver *d, const char *region, cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        .name = "credentials", .step = find_credentials, .deinit = aws_call_deinit};
    struct aws_call *c = aws_call_new((struct aws_driver *)d, region);
    cloud_call_credentials(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- the driver ---- */

static void aws_destroy(struct cloud_driver *driver)
{
    struct aws_driver *d = (struct aws_driver *)driver;
    cloud_calls_cancel(&d->calls);
    aws_credential_source_destroy(d->credentials);
    cloud_kept_deinit(&d->kept);
    free(d->leftovers);
    free(d->endpoint_url);
    free(d->prices_url);
    free(d->quotas_url);
    free(d->listed);
    free(d);
}

static const struct cloud_driver_ops aws_ops = {
    .provider = "aws",
    .spot_notice_ms = SPOT_NOTICE_MS,
    /* RunInstances: 5 requests at once, then 2 a second, per account and region (EC2 API
     * throttling). Fleet calls have a larger bucket. */
    .launch_burst = 5,
    .launches_per_minute = 120,
    .launch = aws_launch,
    .list = aws_list,
    .lists_account = true,
    .terminate = aws_terminate,
    .prices = aws_prices,
    .volumes = aws_volumes,
    .quotas = aws_quotas,
    .quotas_page = "the console of Service Quotas, under Amazon EC2, in the pool's region",
    .console = aws_console,
    .credentials = aws_find_credentials,
    .destroy = aws_destroy,
};

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
    uint64_t seed;
    d->base.ops = &aws_ops;
    d->calls = (struct cloud_calls){.provider = "aws", .http = o->http, .timers = o->timers};
    d->machine = (struct aws_machine){
        .image = cloud_keep(&d->kept, o->machine.image),
        .subnet = cloud_keep(&d->kept, o->machine.subnet),
        .security_group = cloud_keep(&d->kept, o->machine.security_group),
        .iam_profile = cloud_keep(&d->kept, o->machine.iam_profile),
        .disk_gib = o->machine.disk_gib,
        .uses_reservations = o->machine.uses_reservations,
    };
    d->tidied = d->scores.not_before = d->list_prices.not_before = MONO_NONE;
    random_bytes(&seed, sizeof(seed));
    prng_init(&d->prng, seed);
    d->endpoint_ca_pem = cloud_keep(&d->kept, o->endpoint_ca_pem);
    aws_environment_read(&credentials.env);
    int rc = o->endpoint_url ? cloud_endpoint("aws", o->endpoint_url, &d->endpoint_url, e) : 0;
    if (rc == 0 && o->prices_url)
        rc = cloud_endpoint("aws prices", o->prices_url, &d->prices_url, e);
    if (rc == 0 && o->quotas_url)
        rc = cloud_endpoint("aws quotas", o->quotas_url, &d->quotas_url, e);
    if (rc == 0)
        rc = aws_credential_source_create(&credentials, &d->credentials, e);
    if (rc == 0)
        *ret_driver = &d->base;
    else
        aws_destroy(&d->base);
    return rc;
}

/* ---- the provider ---- */

static const struct cloud_setting aws_settings[] = {
    {"image", CLOUD_SETTING_TEXT, CLOUD_NAME_MAX - 1,
        "the image its instances boot from (ami-...)"},
    {"subnet", CLOUD_SETTING_TEXT, CLOUD_NAME_MAX - 1, NULL},
    {"security_group", CLOUD_SETTING_TEXT, CLOUD_NAME_MAX - 1, NULL},
    {"iam_profile", CLOUD_SETTING_TEXT, 256, NULL},
    {"capacity_reservations", CLOUD_SETTING_TEXT, 16, NULL},
    {"prices", CLOUD_SETTING_TEXT, 256, NULL},
    {"quotas", CLOUD_SETTING_TEXT, 256, NULL},
    {0},
};

static int create(const struct cloud_setup *s, struct cloud_driver **ret_driver, struct err *e)
{
    const char *reservations = cloud_setup_get(s, "capacity_reservations");
    if (reservations && !str_eq(reservations, "none") && !str_eq(reservations, "open"))
        return err_set(e, ERR_CONFIG, "capacity_reservations: expected none or open, found \"%s\"",
            reservations);
    return aws_driver_create(
        &(struct aws_options){
            .machine =
                {
                    .image = cloud_setup_get(s, "image"),
                    .subnet = cloud_setup_get(s, "subnet"),
                    .security_group = cloud_setup_get(s, "security_group"),
                    .iam_profile = cloud_setup_get(s, "iam_profile"),
                    .disk_gib = s->disk_gib,
                    .uses_reservations = str_eq(reservations, "open"),
                },
            .endpoint_url = s->endpoint,
            .prices_url = cloud_setup_get(s, "prices"),
            .quotas_url = cloud_setup_get(s, "quotas"),
            .credentials_file = s->credentials,
            .metadata_url = s->metadata,
            .http = s->http,
            .timers = s->timers,
        },
        ret_driver, e);
}

const struct cloud_provider aws_provider = {
    .name = "aws",
    .settings = aws_settings,
    .has_fleets = true,
    .paid_minimum_ms = SECONDS_MS(60),
    .create = create,
};
