/* SPDX-License-Identifier: Apache-2.0
 *
 * The lambda driver: glue between the bytes (api.h) and an HTTP client.
 *
 *   launch:  GET /instances --- carries the token ------------------------> that one
 *               | not there                \--- may still come ------------> UNAVAILABLE
 *               v
 *            GET /instance-types --- region has none of the type ---------> NO_CAPACITY
 *               |
 *               v
 *            POST /instance-operations/launch ----------------------------> new
 *   list, prices, terminate:  one request
 *
 * Invariants:
 *  1. While a launch under a token is under way, and for SETTLE_MS after one that ended without a definite answer,
 *     no other is sent under it: that one may have taken effect and not be listed yet.
 *  2. The key goes to one host only, the configured endpoint or Lambda's own, over https, or loopback.
 *  3. Requests of one driver are spaced as Lambda asks for (one a second, a launch every 12 s). Who would have to wait
 *     for too long is told ERR_THROTTLED, so that a launch stays within its caller's patience.
 */
#include "cloud/lambda/lambda.h"

#include "base/fs.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/call.h"
#include "cloud/endpoint.h"
#include "cloud/lambda/api.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENDPOINT "https://cloud.lambda.ai"
#define PATH "/api/v1"
#define TIMEOUT_MS SECONDS_MS(30)
#define CONNECT_TIMEOUT_MS SECONDS_MS(10)
#define SPACING_MS 1000
#define LAUNCH_SPACING_MS SECONDS_MS(12)
#define WAIT_MAX_MS SECONDS_MS(25)
#define SETTLE_MS SECONDS_MS(20)
#define KEY_FILE_MAX 4096

/* A launch whose outcome is not known. */
struct doubt {
    struct link link;
    char token[CLOUD_TOKEN_MAX];
    bool is_under_way;
    struct mono until; /* when it is not under way any more */
};

struct lambda_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct lambda_machine machine; /* its texts are owned */
    char *endpoint;                /* without the last '/' */
    char *key_file;
    char *key; /* from the environment */
    struct mono next_request, next_launch;
    struct list doubts;
};

enum stage { STAGE_LOOK, STAGE_TYPES, STAGE_ACT };

struct lambda_call {
    struct cloud_call base;
    struct lambda_driver *d;
    enum stage stage;
    bool has_turn; /* the next request's place is reserved */
    bool is_early; /* the listing was asked for too early to show an earlier launch under this token */
    char token[CLOUD_TOKEN_MAX], cluster[CLOUD_NAME_MAX], type[CLOUD_NAME_MAX];
    struct doubt *doubt; /* ours while the launch is under way */
    struct buf request;
    char **words; /* ids to terminate, or types to price */
    size_t n_words;
};

/* ---- launches whose outcome is not known ---- */

static struct mono now(const struct lambda_driver *d)
{
    return clock_mono(d->calls.timers->clock);
}

static void drop_doubt(struct doubt *x)
{
    link_remove(&x->link);
    free(x);
}

/* True while an earlier launch under this token may still take effect, or show. */
static bool is_in_doubt(struct lambda_driver *d, const char *token)
{
    bool found = false;
    LIST_FOREACH (&d->doubts, l) {
        struct doubt *x = LIST_ENTRY(l, struct doubt, link);
        if (!x->is_under_way && x->until.ms <= now(d).ms)
            drop_doubt(x);
        else
            found = found || str_eq(x->token, token);
    }
    return found;
}

static void begin_doubt(struct lambda_call *c)
{
    c->doubt = mem_alloc(sizeof(*c->doubt));
    c->doubt->is_under_way = true;
    STR_COPY(c->doubt->token, c->token);
    list_push_back(&c->d->doubts, &c->doubt->link);
}

/* The launch has an answer, and it says what is. */
static void end_doubt(struct lambda_call *c)
{
    drop_doubt(c->doubt);
    c->doubt = NULL;
}

/* ---- the life of a call ---- */

static struct lambda_call *new_call(struct cloud_driver *d, const char *region)
{
    struct lambda_call *c = mem_alloc(sizeof(*c));
    c->d = (struct lambda_driver *)d;
    if (!region || !str_is_name(region, CLOUD_NAME_MAX - 1))
        err_set(&c->base.refused, ERR_CONFIG,
            "\"%.64s\" is no region of Lambda (expected the like of us-west-1)", region ? region : "");
    return c;
}

static void keep_words(struct lambda_call *c, const char *const *words, size_t n)
{
    c->words = mem_array(n, sizeof(*c->words));
    for (c->n_words = 0; c->n_words < n; c->n_words++)
        c->words[c->n_words] = mem_strdup(words[c->n_words]);
}

static void deinit_call(struct cloud_call *base)
{
    struct lambda_call *c = (struct lambda_call *)base;
    if (c->doubt && c->base.owner) {
        c->doubt->is_under_way = false;
        c->doubt->until.ms = now(c->d).ms + SETTLE_MS;
    }
    buf_wipe(&c->request); /* user data holds a one-use secret */
    for (size_t i = 0; i < c->n_words; i++)
        free(c->words[i]);
    free(c->words);
}

/* ---- the request ---- */

static int read_key(const struct lambda_driver *d, char key[LAMBDA_KEY_MAX + 1], struct err *e)
{
    struct buf text = {0};
    struct stat st;
    if (!d->key_file)
        return lambda_parse_key(d->key, strlen(d->key), key, e) != 0 ? err_wrap(e, "LAMBDA_API_KEY") : 0;
    if (stat(d->key_file, &st) < 0) {
        err_errno(e, errno, "reading the API key %s", d->key_file);
        return (int)(e->kind = ERR_CONFIG);
    }
    if (st.st_mode & 077)
        return err_set(e, ERR_CONFIG, "%s holds a secret but others may read it (mode %03o): chmod 600 it",
            d->key_file, (unsigned)(st.st_mode & 0777));
    int rc = fs_read(d->key_file, KEY_FILE_MAX, &text, e);
    if (rc == 0)
        rc = lambda_parse_key(buf_str(&text), text.len, key, e);
    if (rc != 0) {
        err_wrap(e, "the API key %s", d->key_file);
        rc = (int)(e->kind = ERR_CONFIG);
    }
    buf_wipe(&text);
    return rc;
}

static void send_request(struct lambda_call *c, const char *method, const char *path, const struct buf *body)
{
    char key[LAMBDA_KEY_MAX + 1], header[LAMBDA_KEY_MAX + 32];
    struct err e;
    if (read_key(c->d, key, &e) != 0) {
        if (c->doubt)
            end_doubt(c); /* nothing was sent */
        cloud_call_finish(&c->base, &e);
        return;
    }
    char *url = mem_printf("%s" PATH "%s", c->d->endpoint, path);
    str_copy(header, sizeof(header), "Authorization: Bearer ");
    memcpy(header + strlen(header), key, strlen(key) + 1);
    struct http_request r = {
        .method = method,
        .url = url,
        .headers = {header, "Accept: application/json", body ? "Content-Type: application/json" : NULL},
        .body = body ? buf_str(body) : NULL,
        .body_len = body ? body->len : 0,
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_reply_bytes = LAMBDA_REPLY_MAX,
    };
    cloud_call_send(&c->base, &r);
    explicit_bzero(key, sizeof(key));
    explicit_bzero(header, sizeof(header));
    free(url);
}

/* Takes the next free place in the row, and returns how long it is until then; -1: too long. */
static int64_t take_turn(struct lambda_driver *d, bool is_launch)
{
    int64_t at = now(d).ms;
    int64_t start = at > d->next_request.ms ? at : d->next_request.ms;
    if (is_launch && d->next_launch.ms > start)
        start = d->next_launch.ms;
    if (start - at > WAIT_MAX_MS)
        return -1;
    /* A launch that has to wait does not hold up who comes meanwhile. */
    if (start == at || start == d->next_request.ms)
        d->next_request.ms = start + SPACING_MS;
    if (is_launch)
        d->next_launch.ms = start + LAUNCH_SPACING_MS;
    return start - at;
}

/* True: it is this call's turn. */
static bool is_turn(struct lambda_call *c, bool is_launch)
{
    struct err e;
    int64_t wait_ms = c->has_turn ? 0 : take_turn(c->d, is_launch);
    c->has_turn = wait_ms > 0;
    if (wait_ms < 0) {
        err_set(&e, ERR_THROTTLED, "others wait for their turn; Lambda takes one launch in %d s",
            (int)(LAUNCH_SPACING_MS / 1000));
        cloud_call_finish(&c->base, &e);
    } else if (wait_ms > 0) {
        cloud_call_pause(&c->base, wait_ms);
    }
    return wait_ms == 0;
}

/* ---- launch ---- */

static void finish_in_doubt(struct lambda_call *c)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE,
        "an earlier launch under the same token may still take effect: it is looked up again");
    cloud_call_finish(&c->base, &e);
}

static void step_launch(struct cloud_call *base)
{
    static const char *const methods[] = {"GET", "GET", "POST"};
    static const char *const paths[] = {"/instances", "/instance-types", "/instance-operations/launch"};
    struct lambda_call *c = (struct lambda_call *)base;
    if (c->stage == STAGE_ACT && is_in_doubt(c->d, c->token)) {
        finish_in_doubt(c);
    } else if (is_turn(c, c->stage == STAGE_ACT)) {
        if (c->stage == STAGE_LOOK)
            c->is_early = is_in_doubt(c->d, c->token);
        if (c->stage == STAGE_ACT)
            begin_doubt(c);
        send_request(c, methods[c->stage], paths[c->stage], c->stage == STAGE_ACT ? &c->request : NULL);
    }
}

/* The instance under the call's token: one that lives before one that ended, then the first id, so that all who look
 * find the same. */
static bool take_listed(struct lambda_call *c)
{
    const struct cloud_instance *best = NULL;
    for (size_t i = 0; i < c->base.instances.n; i++) {
        const struct cloud_instance *x = &c->base.instances.list[i];
        if (!str_eq(x->token, c->token) || !str_eq(x->cluster, c->cluster))
            continue;
        bool is_better =
            !best || (x->state < CLOUD_STOPPING) > (best->state < CLOUD_STOPPING) ||
            ((x->state < CLOUD_STOPPING) == (best->state < CLOUD_STOPPING) && strcmp(x->id, best->id) < 0);
        best = is_better ? x : best;
    }
    if (best)
        c->base.instance = *best;
    return best != NULL;
}

static int look(struct lambda_call *c, const struct buf *body, bool *ret_found, struct err *e)
{
    int rc = lambda_parse_instances(buf_str(body), body->len, c->base.region, &c->base.instances, e);
    *ret_found = rc == 0 && take_listed(c);
    return rc;
}

/* A type that its region has none of is not asked for: a launch that is refused costs its turn, too. */
static int check_type(struct lambda_call *c, const struct buf *body, struct err *e)
{
    struct lambda_types types = {0};
    const struct lambda_type *found = NULL;
    int rc = lambda_parse_types(buf_str(body), body->len, c->base.region, &types, e);
    for (size_t i = 0; rc == 0 && i < types.n; i++)
        if (str_eq(types.list[i].name, c->type))
            found = &types.list[i];
    if (rc == 0 && !found)
        rc = err_set(e, ERR_CONFIG, "Lambda has no instance type %s (for this account)", c->type);
    else if (rc == 0 && !found->has_capacity)
        rc = err_set(e, ERR_NO_CAPACITY, "Lambda lists no capacity of %s here", c->type);
    free(types.list);
    return rc;
}

static int take_launched(struct lambda_call *c, const struct buf *body, struct err *e)
{
    struct cloud_instance *i = &c->base.instance;
    *i = (struct cloud_instance){
        .market = CLOUD_ON_DEMAND, .state = CLOUD_PENDING, .launched_at = WALL_NONE, .ended_at = WALL_NONE};
    STR_COPY(i->token, c->token);
    STR_COPY(i->cluster, c->cluster);
    STR_COPY(i->zone, c->base.region);
    STR_COPY(i->type, c->type);
    return lambda_parse_launch(buf_str(body), body->len, i->id, e);
}

/* Only these say that nothing was launched. */
static bool is_definite(int rc)
{
    return rc != ERR_UNAVAILABLE && rc != ERR_TIMEOUT && rc != ERR_INVALID && rc != ERR_IO;
}

static int refusal(struct lambda_call *c, const struct http_reply *reply, struct err *e)
{
    int rc = lambda_parse_error(reply->status, buf_str(&reply->body), reply->body.len, e);
    if (c->stage == STAGE_ACT && rc == ERR_NOT_FOUND)
        rc = (int)(e->kind = ERR_CONFIG); /* the key, the image or the file system that the pool names */
    return rc;
}

static void on_launch_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct lambda_call *c = (struct lambda_call *)base;
    bool is_over = c->stage == STAGE_ACT;
    struct err e;
    int rc;
    if (reply->status != 200)
        rc = refusal(c, reply, &e);
    else if (c->stage == STAGE_LOOK)
        rc = look(c, &reply->body, &is_over, &e);
    else if (c->stage == STAGE_TYPES)
        rc = check_type(c, &reply->body, &e);
    else
        rc = take_launched(c, &reply->body, &e);
    if (c->doubt && is_definite(rc))
        end_doubt(c);
    if (rc != 0 || is_over) {
        cloud_call_finish(&c->base, rc != 0 ? &e : NULL);
    } else if (c->is_early) {
        finish_in_doubt(c);
    } else {
        c->stage++;
        cloud_call_again(&c->base);
    }
}

static void lambda_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"launch", step_launch, on_launch_reply, deinit_call};
    struct lambda_call *c = new_call(d, l->region);
    STR_COPY(c->token, l->token);
    STR_COPY(c->cluster, l->cluster);
    STR_COPY(c->type, l->type);
    if (c->base.refused.kind == ERR_NONE)
        lambda_build_launch(l, &c->d->machine, &c->request, &c->base.refused);
    cloud_call_launch(&c->d->calls, &c->base, &ops, l, done, ctx);
}

/* ---- the operations that are one request ---- */

static void finish_with(struct lambda_call *c, const struct http_reply *reply,
    int (*parse)(struct lambda_call *, const char *, size_t, struct err *))
{
    struct err e;
    int rc =
        reply->status == 200 ? parse(c, buf_str(&reply->body), reply->body.len, &e) : refusal(c, reply, &e);
    cloud_call_finish(&c->base, rc != 0 ? &e : NULL);
}

static void step_list(struct cloud_call *base)
{
    struct lambda_call *c = (struct lambda_call *)base;
    if (is_turn(c, false))
        send_request(c, "GET", "/instances", NULL);
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
    static const struct cloud_call_ops ops = {"list", step_list, on_list_reply, deinit_call};
    struct lambda_call *c = new_call(d, region);
    cloud_call_list(&c->d->calls, &c->base, &ops, region, cluster, done, ctx);
}

static void step_terminate(struct cloud_call *base)
{
    struct lambda_call *c = (struct lambda_call *)base;
    if (is_turn(c, false))
        send_request(c, "POST", "/instance-operations/terminate", &c->request);
}

static int parse_terminate(struct lambda_call *c, const char *body, size_t n, struct err *e)
{
    return lambda_parse_terminate(body, n, (const char *const *)c->words, c->n_words, e);
}

static void on_terminate_reply(struct cloud_call *base, const struct http_reply *reply)
{
    finish_with((struct lambda_call *)base, reply, parse_terminate);
}

static void lambda_terminate(struct cloud_driver *d, const char *region, const char *const *ids, size_t n_ids,
    cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"terminate", step_terminate, on_terminate_reply, deinit_call};
    struct lambda_call *c = new_call(d, region);
    if (c->base.refused.kind == ERR_NONE &&
        lambda_build_terminate(ids, n_ids, &c->request, &c->base.refused) == 0)
        keep_words(c, ids, n_ids);
    cloud_call_terminate(&c->d->calls, &c->base, &ops, region, done, ctx);
}

static void step_prices(struct cloud_call *base)
{
    struct lambda_call *c = (struct lambda_call *)base;
    if (is_turn(c, false))
        send_request(c, "GET", "/instance-types", NULL);
}

/* One price for all regions. */
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
        for (size_t k = 0; rc == 0 && k < c->n_words; k++)
            if (str_eq(c->words[k], p.type))
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
    static const struct cloud_call_ops ops = {"prices", step_prices, on_prices_reply, deinit_call};
    struct lambda_call *c = new_call(d, region);
    keep_words(c, types, n_types);
    cloud_call_prices(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- the driver ---- */

static void lambda_destroy(struct cloud_driver *driver)
{
    struct lambda_driver *d = (struct lambda_driver *)driver;
    cloud_calls_cancel(&d->calls);
    struct link *l;
    while ((l = list_pop(&d->doubts)))
        free(LIST_ENTRY(l, struct doubt, link));
    if (d->key)
        explicit_bzero(d->key, strlen(d->key));
    free(d->key);
    free(d->key_file);
    free((char *)d->machine.ssh_key);
    free((char *)d->machine.image);
    free((char *)d->machine.image_family);
    free((char *)d->machine.file_system);
    free(d->endpoint);
    free(d);
}

static const struct cloud_driver_ops lambda_ops = {
    .provider = "lambda",
    .spot_notice_ms = 0,
    .launch = lambda_launch,
    .list = lambda_list,
    .terminate = lambda_terminate,
    .prices = lambda_prices,
    .destroy = lambda_destroy,
};

static int check_key(const struct lambda_driver *d, struct err *e)
{
    char key[LAMBDA_KEY_MAX + 1];
    if (!d->key_file && !d->key)
        return err_set(e, ERR_CONFIG,
            "there is no API key: set LAMBDA_API_KEY, or credentials: to a file that holds it (mode 600)");
    int rc = read_key(d, key, e);
    explicit_bzero(key, sizeof(key));
    return rc;
}

int lambda_driver_create(const struct lambda_options *o, struct cloud_driver **ret_driver, struct err *e)
{
    struct lambda_driver *d = mem_alloc(sizeof(*d));
    d->base.ops = &lambda_ops;
    d->calls = (struct cloud_calls){.provider = "lambda", .http = o->http, .timers = o->timers};
    d->machine = (struct lambda_machine){
        .ssh_key = mem_strdup(o->machine.ssh_key),
        .image = mem_strdup(o->machine.image),
        .image_family = mem_strdup(o->machine.image_family),
        .file_system = mem_strdup(o->machine.file_system),
    };
    d->key_file = mem_strdup(o->key_file);
    d->key = o->key_file ? NULL : mem_strdup(getenv("LAMBDA_API_KEY"));
    int rc = cloud_endpoint("Lambda", o->endpoint_url ? o->endpoint_url : ENDPOINT, &d->endpoint, e);
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

/* ---- as a provider ---- */

static const struct cloud_setting lambda_settings[] = {
    {"ssh_key", CLOUD_SETTING_TEXT, 64,
        "the name of an SSH key in the account (Lambda launches nothing without)"},
    {"image", CLOUD_SETTING_TEXT, 64, NULL},
    {"image_family", CLOUD_SETTING_TEXT, 64, NULL},
    {"file_system", CLOUD_SETTING_TEXT, 64, NULL},
    {0},
};

static int create(const struct cloud_setup *s, struct cloud_driver **ret_driver, struct err *e)
{
    if (s->disk_gib > 0)
        return err_set(e, ERR_CONFIG, "disk_gib: Lambda's types have disks of a fixed size: leave it out");
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
            .http = s->http,
            .timers = s->timers,
        },
        ret_driver, e);
}

const struct cloud_provider lambda_provider = {
    .name = "lambda", .offers = CLOUD_OFFERS_REGION, .settings = lambda_settings, .create = create};
