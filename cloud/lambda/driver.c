/* SPDX-License-Identifier: Apache-2.0
 *
 * The lambda driver: connects the pure part (api.h) to an HTTP client. Calls are in call.c,
 * launches in launch.c; the operations with one request (list, prices, terminate) and the driver
 * itself are here.
 */
#include "cloud/lambda/lambda.h"

#include "base/mem.h"
#include "base/str.h"
#include "cloud/endpoint.h"
#include "cloud/lambda/call.h"
#include "cloud/lambda/launch.h"
#include <stdlib.h>
#include <string.h>

#define ENDPOINT "https://cloud.lambda.ai"
#define REQUEST_EVERY_MS 1000
#define LAUNCH_EVERY_MS SECONDS_MS(12)
#define EVERY_MAX_MS SECONDS_MS(600)

/* ---- operations with one request ---- */

static void finish_with(struct lambda_call *c, const struct http_reply *reply,
    int (*parse)(struct lambda_call *, const char *, size_t, struct err *))
{
    struct err e;
    int rc = reply->status == 200 ? parse(c, buf_str(&reply->body), reply->body.len, &e)
                                  : lambda_call_refusal(c, reply, &e);
    cloud_call_finish(&c->base, rc != 0 ? &e : NULL);
}

static void step_list(struct cloud_call *base)
{
    struct lambda_call *c = (struct lambda_call *)base;
    if (lambda_call_is_turn(c, false))
        lambda_call_send(c, "GET", "/instances", NULL);
}

static int parse_list(struct lambda_call *c, const char *body, size_t n, struct err *e)
{
    return lambda_parse_instances(body, n, c->base.region, &c->base.instances, e);
}

static void on_list_reply(struct cloud_call *base, const struct http_reply *reply)
{
    finish_with((struct lambda_call *)base, reply, parse_list);
}

static void lambda_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"list", step_list, on_list_reply, lambda_call_deinit};
    struct lambda_call *c = lambda_call_new(d, region);
    cloud_call_list(&c->d->calls, &c->base, &ops, region, cluster, done, ctx);
}

static void step_terminate(struct cloud_call *base)
{
    struct lambda_call *c = (struct lambda_call *)base;
    if (lambda_call_is_turn(c, false))
        lambda_call_send(c, "POST", "/instance-operations/terminate", &c->request);
}

static int parse_terminate(struct lambda_call *c, const char *body, size_t n, struct err *e)
{
    return lambda_parse_terminate(body, n, (const char *const *)c->base.words, c->base.n_words, e);
}

static void on_terminate_reply(struct cloud_call *base, const struct http_reply *reply)
{
    finish_with((struct lambda_call *)base, reply, parse_terminate);
}

static void lambda_terminate(struct cloud_driver *d, const char *region, const char *const *ids,
    size_t n_ids, cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "terminate", step_terminate, on_terminate_reply, lambda_call_deinit};
    struct lambda_call *c = lambda_call_new(d, region);
    if (c->base.refused.kind == ERR_NONE &&
        lambda_build_terminate(ids, n_ids, &c->request, &c->base.refused) == 0)
        cloud_call_add_words(&c->base, ids, n_ids);
    cloud_call_terminate(&c->d->calls, &c->base, &ops, region, done, ctx);
}

static void step_prices(struct cloud_call *base)
{
    struct lambda_call *c = (struct lambda_call *)base;
    if (lambda_call_is_turn(c, false))
        lambda_call_send(c, "GET", "/instance-types", NULL);
}

/* Prices are equal in all regions. */
static int parse_prices(struct lambda_call *c, const char *body, size_t n, struct err *e)
{
    struct lambda_types types = {0};
    int rc = lambda_parse_types(body, n, c->base.region, &types, e);
    for (size_t i = 0; i < types.n; i++) {
        struct cloud_price p = {.market = CLOUD_ON_DEMAND,
            .uusd_h = types.list[i].uusd_h,
            .since = clock_wall(c->d->calls.timers->clock)};
        STR_COPY(p.zone, c->base.region);
        STR_COPY(p.type, types.list[i].name);
        for (size_t k = 0; rc == 0 && k < c->base.n_words; k++)
            if (str_eq(c->base.words[k], p.type))
                rc = cloud_prices_keep(&c->base.prices, &p, e);
    }
    free(types.list);
    return rc;
}

static void on_prices_reply(struct cloud_call *base, const struct http_reply *reply)
{
    finish_with((struct lambda_call *)base, reply, parse_prices);
}

static void lambda_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n_types, cloud_prices_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "prices", step_prices, on_prices_reply, lambda_call_deinit};
    struct lambda_call *c = lambda_call_new(d, region);
    cloud_call_add_words(&c->base, types, n_types);
    cloud_call_prices(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- the driver ---- */

static void lambda_destroy(struct cloud_driver *driver)
{
    struct lambda_driver *d = (struct lambda_driver *)driver;
    cloud_calls_cancel(&d->calls);
    struct link *l;
    while ((l = list_pop(&d->doubts)))
        free(LIST_ENTRY(l, struct lambda_doubt, link));
    if (d->key)
        explicit_bzero(d->key, strlen(d->key));
    free(d->key);
    cloud_kept_deinit(&d->kept);
    free(d->endpoint);
    free(d);
}

static const struct cloud_driver_ops lambda_ops = {
    .provider = "lambda",
    .spot_notice_ms = 0,
    .launch = lambda_launch,
    .list = lambda_list,
    .lists_account = true,
    .quotas_page = "Lambda's console, under Quotas",
    .terminate = lambda_terminate,
    .prices = lambda_prices,
    .destroy = lambda_destroy,
};

static int check_key(const struct lambda_driver *d, struct err *e)
{
    char key[LAMBDA_KEY_MAX + 1];
    if (!d->key_file && !d->key)
        return err_set(e, ERR_CONFIG,
            "no API key: set LAMBDA_API_KEY, or credentials: to the path of a file with it "
            "(mode 600)");
    int rc = lambda_read_key(d, key, e);
    explicit_bzero(key, sizeof(key));
    return rc;
}

int lambda_driver_create(
    const struct lambda_options *o, struct cloud_driver **ret_driver, struct err *e)
{
    struct lambda_driver *d = mem_alloc(sizeof(*d));
    d->base.ops = &lambda_ops;
    d->calls = (struct cloud_calls){.provider = "lambda", .http = o->http, .timers = o->timers};
    d->machine = (struct lambda_machine){
        .ssh_key = cloud_keep(&d->kept, o->machine.ssh_key),
        .image = cloud_keep(&d->kept, o->machine.image),
        .image_family = cloud_keep(&d->kept, o->machine.image_family),
        .file_system = cloud_keep(&d->kept, o->machine.file_system),
    };
    d->request_every_ms = o->request_every_ms > 0 ? o->request_every_ms : REQUEST_EVERY_MS;
    d->launch_every_ms = o->launch_every_ms > 0 ? o->launch_every_ms : LAUNCH_EVERY_MS;
    d->key_file = cloud_keep(&d->kept, o->key_file);
    d->key = o->key_file ? NULL : mem_strdup(getenv("LAMBDA_API_KEY"));
    int rc =
        cloud_endpoint("Lambda", o->endpoint_url ? o->endpoint_url : ENDPOINT, &d->endpoint, e);
    if (rc == 0 && o->machine.image && o->machine.image_family)
        rc = err_set(e, ERR_CONFIG, "image and image_family exclude each other: keep one");
    if (rc == 0)
        rc = check_key(d, e);
    if (rc == 0)
        *ret_driver = &d->base;
    else
        lambda_destroy(&d->base);
    return rc;
}

/* ---- the provider ---- */

static const struct cloud_setting lambda_settings[] = {
    {"ssh_key", CLOUD_SETTING_TEXT, 64,
        "the name of an SSH key in the account (required by Lambda)"},
    {"image", CLOUD_SETTING_TEXT, 64, NULL},
    {"image_family", CLOUD_SETTING_TEXT, 64, NULL},
    {"file_system", CLOUD_SETTING_TEXT, 64, NULL},
    {"request_every", CLOUD_SETTING_TEXT, 16, NULL},
    {"launch_every", CLOUD_SETTING_TEXT, 16, NULL},
    {0},
};

/* 0 if the pool does not set it. */
static int read_every(const struct cloud_setup *s, const char *key, int64_t *ret_ms, struct err *e)
{
    const char *text = cloud_setup_get(s, key);
    *ret_ms = 0;
    if (text && time_parse_duration(text, false, ret_ms, e) != 0) {
        err_wrap(e, "%s", key);
        return (int)(e->kind = ERR_CONFIG);
    }
    if (text && (*ret_ms == 0 || *ret_ms > EVERY_MAX_MS))
        return err_set(e, ERR_CONFIG, "%s: expected 1ms to 10m, found \"%.16s\"", key, text);
    return 0;
}

static int create(const struct cloud_setup *s, struct cloud_driver **ret_driver, struct err *e)
{
    if (s->disk_gib > 0)
        return err_set(
            e, ERR_CONFIG, "disk_gib: Lambda's types have disks of a fixed size: remove it");
    int64_t request_every_ms, launch_every_ms;
    int rc = read_every(s, "request_every", &request_every_ms, e);
    if (rc == 0)
        rc = read_every(s, "launch_every", &launch_every_ms, e);
    if (rc != 0)
        return rc;
    return lambda_driver_create(
        &(struct lambda_options){
            .machine =
                {
                    .ssh_key = cloud_setup_get(s, "ssh_key"),
                    .image = cloud_setup_get(s, "image"),
                    .image_family = cloud_setup_get(s, "image_family"),
                    .file_system = cloud_setup_get(s, "file_system"),
                },
            .endpoint_url = s->endpoint,
            .key_file = s->credentials,
            .request_every_ms = request_every_ms,
            .launch_every_ms = launch_every_ms,
            .http = s->http,
            .timers = s->timers,
        },
        ret_driver, e);
}

const struct cloud_provider lambda_provider = {
    .name = "lambda", .offers = CLOUD_OFFERS_REGION, .settings = lambda_settings, .create = create};
