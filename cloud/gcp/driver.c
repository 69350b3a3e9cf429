/* SPDX-License-Identifier: Apache-2.0
 *
 * The gcp driver: glue between the pure halves (gce.h, credentials.h) and an HTTP client. A call is a chain of stages;
 * each is one request, sent again once with a new token when Google refuses the one it carries.
 *
 *   launch     insert --- operation --> poll it --- DONE, good ---> read the instance --> finish
 *                 |            ^           |  \--- DONE, refused, and only a repeat of what was known --> insert
 *                 |            +-- pause --+  \--- DONE, refused ------------------------> finish
 *                 +--- there is one of this name ----------------> read the instance, is it ours? --> finish
 *   list       pages of instances --> pages of preemptions, zone by zone --> finish
 *   terminate  delete --- operation --> poll it --- DONE, good --> the next, or finish
 *
 * Invariants:
 *  1. A token goes to one host only, the configured endpoint or Google's own, and that is https, or loopback.
 *  2. Request ids follow from the idempotency token, and the name is the token: no repeat makes a second machine.
 *  3. What Google did not answer for is an error, never an empty answer.
 *  4. Once a launch has been taken, only its operation can say that it failed: what goes wrong in asking is not "refused".
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/call.h"
#include "cloud/endpoint.h"
#include "cloud/gcp/credentials.h"
#include "cloud/gcp/gce.h"
#include "cloud/oauth.h"
#include <stdlib.h>
#include <string.h>

#define ENDPOINT "https://compute.googleapis.com"
#define TIMEOUT_MS SECONDS_MS(30)
#define CONNECT_TIMEOUT_MS SECONDS_MS(10)
#define PAGES_MAX 1000
#define PREEMPTED_PAGES_MAX 20 /* of one listing: it is a proof where there is one, not what exists */
#define LAUNCH_POLL_FIRST_MS 500
#define LAUNCH_POLL_CAP_MS 4000
#define LAUNCH_POLL_TOTAL_MS SECONDS_MS(45) /* then the caller repeats it, and finds the operation again */
#define DELETE_POLL_FIRST_MS 1000
#define DELETE_POLL_CAP_MS SECONDS_MS(30)
#define DELETE_POLL_TOTAL_MS SECONDS_MS(180)
#define REPLAYS_MAX 4
#define DELETE_WINDOW_MS SECONDS_MS(60)
#define SPOT_NOTICE_MS SECONDS_MS(30)

struct gcp_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct gcp_machine machine; /* its texts are owned */
    char *endpoint_url;
    struct gcp_credential_source *credentials;
    /* Where this driver has had machines: there it looks for preemptions. */
    char zones[GCE_ZONES_MAX][CLOUD_NAME_MAX];
    size_t n_zones;
};

struct gcp_call;

/* One request of a call, and what becomes of its reply. Each ends with exactly one of the calls of call.h. */
struct stage {
    const char *method;
    void (*path)(struct gcp_call *c, struct buf *out);
    void (*on_good)(struct gcp_call *c, const char *body, size_t n);
    void (*on_refused)(struct gcp_call *c, const struct err *e);
};

struct gcp_call {
    struct cloud_call base;
    struct gcp_driver *d;
    const struct stage *stage;
    struct oauth_wait wait;
    bool token_renewed;
    /* launch; zone, token and operation also of a deletion */
    char token[CLOUD_TOKEN_MAX], zone[CLOUD_NAME_MAX], type[CLOUD_NAME_MAX], cluster[CLOUD_NAME_MAX];
    enum cloud_market market;
    struct buf body;
    char request_id[GCE_UUID_MAX];
    struct gce_operation operation;
    int64_t poll_ms, poll_cap_ms;
    struct mono poll_end;
    bool is_taken;  /* there is an operation */
    bool is_replay; /* which was over when the insert was answered */
    int replays;
    /* list */
    char page[GCE_PAGE_TOKEN_MAX + 1];
    int pages;
    size_t next_zone;
    /* terminate */
    char **ids;
    size_t n_ids, next_id;
};

/* ---- the life of a call ---- */

static struct gcp_call *new_call(struct cloud_driver *d, const char *region, const struct stage *first)
{
    struct gcp_call *c = mem_alloc(sizeof(*c));
    c->d = (struct gcp_driver *)d;
    c->stage = first;
    if (!region || !*region || strlen(region) >= CLOUD_NAME_MAX ||
        strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(region))
        err_set(&c->base.refused, ERR_CONFIG,
            "\"%.64s\" is no region of Google's (expected the like of us-central1)", region ? region : "");
    return c;
}

static void deinit_call(struct cloud_call *base)
{
    struct gcp_call *c = (struct gcp_call *)base;
    oauth_cancel(&c->wait);
    buf_wipe(&c->body); /* the start-up script holds a one-use secret */
    for (size_t i = 0; i < c->n_ids; i++)
        free(c->ids[i]);
    free(c->ids);
}

static void finish(struct gcp_call *c, const struct err *e)
{
    cloud_call_finish(&c->base, e);
}

static void go_on(struct gcp_call *c, const struct stage *next)
{
    c->stage = next;
    cloud_call_again(&c->base);
}

/* The launch was not refused: it goes on, or is over by now, and this call cannot tell. */
static void fail_asking(struct gcp_call *c, const struct err *e)
{
    struct err unsure = *e;
    if (c->is_taken) {
        err_wrap(&unsure, "the launch was taken, and what became of it is not known");
        unsure.kind = ERR_UNAVAILABLE;
    }
    finish(c, &unsure);
}

/* ---- a request ---- */

/* The early notice is a preview: only the beta API knows it. */
static const char *version_for(const struct gcp_call *c)
{
    bool is_insert = str_eq(c->stage->method, "POST");
    return is_insert && strstr(buf_str(&c->body), "\"preemptionNoticeDuration\"") ? "beta" : "v1";
}

static void on_token(void *ctx, const struct err *e, const char *authorization)
{
    struct gcp_call *c = ctx;
    struct buf url = {0};
    if (e) {
        fail_asking(c, e);
        return;
    }
    bool has_body = str_eq(c->stage->method, "POST");
    buf_printf(&url, "%s/compute/%s/projects/%s", c->d->endpoint_url, version_for(c), c->d->machine.project);
    c->stage->path(c, &url);
    struct http_request r = {
        .method = c->stage->method,
        .url = buf_str(&url),
        .headers = {authorization, has_body ? "Content-Type: application/json" : NULL},
        .body = has_body ? buf_str(&c->body) : NULL,
        .body_len = has_body ? c->body.len : 0,
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_reply_bytes = GCE_REPLY_MAX,
    };
    cloud_call_send(&c->base, &r);
    buf_deinit(&url);
}

static void step(struct cloud_call *base)
{
    struct gcp_call *c = (struct gcp_call *)base;
    oauth_get(gcp_credential_oauth(c->d->credentials), &c->wait, on_token, c);
}

static void on_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct gcp_call *c = (struct gcp_call *)base;
    struct err e;
    if (reply->status == 200) {
        c->stage->on_good(c, buf_str(&reply->body), reply->body.len);
    } else if (reply->status == 401 && !c->token_renewed) {
        c->token_renewed = true;
        oauth_refused(gcp_credential_oauth(c->d->credentials), &c->wait);
        cloud_call_again(base);
    } else {
        gce_parse_error(reply->status, buf_str(&reply->body), reply->body.len, &e);
        c->stage->on_refused(c, &e);
    }
}

static void remember_zone(struct gcp_driver *d, const char *zone)
{
    for (size_t i = 0; i < d->n_zones; i++)
        if (str_eq(d->zones[i], zone))
            return;
    if (d->n_zones < GCE_ZONES_MAX)
        STR_COPY(d->zones[d->n_zones++], zone);
}

/* ---- launch ---- */

static const struct stage insert, poll_operation, read_instance, read_known;

static void path_insert(struct gcp_call *c, struct buf *out)
{
    gce_path_insert(c->zone, c->request_id, out);
}

static void path_operation(struct gcp_call *c, struct buf *out)
{
    gce_path_operation(c->zone, c->operation.name, out);
}

static void path_launched(struct gcp_call *c, struct buf *out)
{
    gce_path_instance(c->zone, c->token, out);
}

static bool is_passing(enum err_kind k)
{
    return k == ERR_UNAVAILABLE || k == ERR_THROTTLED || k == ERR_TIMEOUT;
}

/* The same request id gets the same operation for a while, also one that failed for a passing reason: then the next id in
 * the chain is used, which follows from the operation, so that every repeat goes the same way. */
static void on_failed(struct gcp_call *c)
{
    if (c->operation.failed.kind == ERR_NOT_FOUND) /* not of an instance: of what one is made of */
        c->operation.failed.kind = ERR_CONFIG;
    if (c->operation.failed.kind == ERR_CONFLICT) {
        go_on(c, &read_known);
    } else if (c->is_replay && is_passing(c->operation.failed.kind) && c->replays++ < REPLAYS_MAX) {
        char *name = mem_printf("%s/%s", c->token, c->operation.name);
        gce_request_id(name, c->request_id);
        free(name);
        go_on(c, &insert);
    } else {
        finish(c, &c->operation.failed);
    }
}

static void start_polling(struct gcp_call *c, int64_t first_ms, int64_t cap_ms, int64_t total_ms)
{
    c->poll_ms = first_ms;
    c->poll_cap_ms = cap_ms;
    c->poll_end.ms = clock_mono(c->d->calls.timers->clock).ms + total_ms;
}

/* Then the stage; not for ever. */
static void wait_for_operation(struct gcp_call *c, const struct stage *poll)
{
    struct err e;
    if (clock_mono(c->d->calls.timers->clock).ms + c->poll_ms >= c->poll_end.ms) {
        err_set(&e, ERR_TIMEOUT, "operation %s is not over yet", c->operation.name);
        finish(c, &e);
        return;
    }
    c->stage = poll;
    cloud_call_pause(&c->base, c->poll_ms);
    c->poll_ms = 2 * c->poll_ms < c->poll_cap_ms ? 2 * c->poll_ms : c->poll_cap_ms;
}

static void read_operation(struct gcp_call *c, const char *body, size_t n, bool is_first)
{
    struct err e;
    if (gce_parse_operation(body, n, &c->operation, &e) != 0) {
        finish(c, &e);
        return;
    }
    c->is_taken = true;
    c->is_replay = is_first && c->operation.done;
    if (!c->operation.done)
        wait_for_operation(c, &poll_operation);
    else if (c->operation.failed.kind != ERR_NONE)
        on_failed(c);
    else
        go_on(c, &read_instance);
}

static void on_inserted(struct gcp_call *c, const char *body, size_t n)
{
    read_operation(c, body, n, true);
}

static void on_operation(struct gcp_call *c, const char *body, size_t n)
{
    read_operation(c, body, n, false);
}

static void on_insert_refused(struct gcp_call *c, const struct err *e)
{
    struct err wrong = *e;
    if (e->kind == ERR_CONFLICT) {
        c->is_taken = true; /* by an earlier call */
        go_on(c, &read_known);
        return;
    }
    if (e->kind == ERR_NOT_FOUND) /* not of an instance: of what one is made of */
        wrong.kind = ERR_CONFIG;
    finish(c, &wrong);
}

static void on_refused(struct gcp_call *c, const struct err *e)
{
    finish(c, e);
}

/* The operation made it: what is not there any more has been preempted, or deleted, since. */
static void on_instance_missing(struct gcp_call *c, const struct err *e)
{
    struct cloud_instance *i = &c->base.instance;
    if (e->kind != ERR_NOT_FOUND) {
        fail_asking(c, e);
        return;
    }
    *i = (struct cloud_instance){
        .state = CLOUD_GONE, .launched_at = WALL_NONE, .ended_at = WALL_NONE, .market = c->market};
    char *id = mem_printf("%s/%s", c->zone, c->token); /* which fits: gce_build_insert has seen to it */
    STR_COPY(i->id, id);
    free(id);
    STR_COPY(i->token, c->token);
    STR_COPY(i->cluster, c->cluster);
    STR_COPY(i->zone, c->zone);
    STR_COPY(i->type, c->type);
    STR_COPY(i->reason, "it was gone when its launch was over");
    finish(c, NULL);
}

static void on_instance(struct gcp_call *c, const char *body, size_t n)
{
    struct cloud_instance *i = &c->base.instance;
    struct err e;
    if (gce_parse_instance(body, n, i, &e) != 0) {
        finish(c, &e);
    } else if (!str_eq(i->token, c->token) || !str_eq(i->cluster, c->cluster) || !str_eq(i->type, c->type) ||
               i->market != c->market) {
        err_set(&e, ERR_CONFLICT, "there is an instance %s already, and it is not the one asked for", i->id);
        finish(c, &e);
    } else {
        finish(c, NULL);
    }
}

static const struct stage insert = {"POST", path_insert, on_inserted, on_insert_refused};
static const struct stage poll_operation = {"GET", path_operation, on_operation, fail_asking};
static const struct stage read_instance = {"GET", path_launched, on_instance, on_instance_missing};
/* One of this name exists. Should it go in between, the next try makes it anew. */
static const struct stage read_known = {"GET", path_launched, on_instance, fail_asking};

static void gcp_launch(struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"instances.insert", step, on_reply, deinit_call};
    struct gcp_call *c = new_call(d, l->region, &insert);
    if (c->base.refused.kind == ERR_NONE &&
        gce_build_insert(l, &c->d->machine, &c->body, &c->base.refused) == 0) {
        STR_COPY(c->token, l->token);
        STR_COPY(c->zone, l->zone);
        STR_COPY(c->type, l->type);
        STR_COPY(c->cluster, l->cluster);
        c->market = l->market;
        start_polling(c, LAUNCH_POLL_FIRST_MS, LAUNCH_POLL_CAP_MS, LAUNCH_POLL_TOTAL_MS);
        gce_request_id(l->token, c->request_id);
        remember_zone(c->d, c->zone);
    }
    cloud_call_launch(&c->d->calls, &c->base, &ops, l, done, ctx);
}

/* ---- list ---- */

static void path_list(struct gcp_call *c, struct buf *out)
{
    gce_path_list(c->base.cluster, c->page, out);
}

static void path_preempted(struct gcp_call *c, struct buf *out)
{
    gce_path_preempted(c->d->zones[c->next_zone], c->page, out);
}

static const struct stage preempted;

static void look_for_preemptions(struct gcp_call *c)
{
    struct gcp_driver *d = c->d;
    while (c->next_zone < d->n_zones && !gce_is_zone_of(d->zones[c->next_zone], c->base.region))
        c->next_zone++;
    if (c->next_zone == d->n_zones)
        finish(c, NULL);
    else
        go_on(c, &preempted);
}

static void on_preempted(struct gcp_call *c, const char *body, size_t n)
{
    const char *zone = c->d->zones[c->next_zone];
    struct err e;
    if (gce_parse_preempted(body, n, c->base.cluster, zone, &c->base.instances, c->page, &e) != 0) {
        finish(c, &e);
        return;
    }
    if (!c->page[0] || ++c->pages >= PREEMPTED_PAGES_MAX) {
        c->page[0] = '\0';
        c->next_zone++;
    }
    look_for_preemptions(c);
}

/* What exists is known. */
static void on_preempted_refused(struct gcp_call *c, const struct err *e)
{
    (void)e;
    finish(c, NULL);
}

static const struct stage preempted = {"GET", path_preempted, on_preempted, on_preempted_refused};

static void on_list(struct gcp_call *c, const char *body, size_t n)
{
    struct err e;
    if (gce_parse_list(body, n, c->base.region, &c->base.instances, c->page, &e) != 0) {
        finish(c, &e);
    } else if (c->page[0] && ++c->pages == PAGES_MAX) {
        err_set(&e, ERR_INVALID, "Compute Engine's listing: more than %d pages", PAGES_MAX);
        finish(c, &e);
    } else if (c->page[0]) {
        cloud_call_again(&c->base);
    } else {
        for (size_t i = 0; i < c->base.instances.n; i++)
            remember_zone(c->d, c->base.instances.list[i].zone);
        c->pages = 0;
        look_for_preemptions(c);
    }
}

static void gcp_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    static const struct stage list = {"GET", path_list, on_list, on_refused};
    static const struct cloud_call_ops ops = {"instances.aggregatedList", step, on_reply, deinit_call};
    struct gcp_call *c = new_call(d, region, &list);
    cloud_call_list(&c->d->calls, &c->base, &ops, region, cluster, done, ctx);
}

/* ---- terminate ---- */

static const struct stage delete, poll_deletion;

/* A repeat within the minute is the same deletion. One after that is a new one: the first may have failed since. */
static void path_delete(struct gcp_call *c, struct buf *out)
{
    const char *id = c->ids[c->next_id];
    int64_t window = clock_wall(c->d->calls.timers->clock).ms / DELETE_WINDOW_MS;
    char *what = mem_printf("delete %s %lld", id, (long long)window);
    gce_request_id(what, c->request_id);
    gce_split_id(id, c->zone, c->token, NULL); /* checked when the call was made */
    gce_path_delete(c->zone, c->token, c->request_id, out);
    free(what);
}

static void read_deletion(struct gcp_call *c, const char *body, size_t n)
{
    struct err e;
    if (gce_parse_operation(body, n, &c->operation, &e) != 0)
        finish(c, &e);
    else if (!c->operation.done)
        wait_for_operation(c, &poll_deletion);
    else if (c->operation.failed.kind != ERR_NONE)
        finish(c, &c->operation.failed);
    else if (++c->next_id == c->n_ids)
        finish(c, NULL);
    else
        go_on(c, &delete);
}

static void on_deleting(struct gcp_call *c, const char *body, size_t n)
{
    start_polling(c, DELETE_POLL_FIRST_MS, DELETE_POLL_CAP_MS, DELETE_POLL_TOTAL_MS);
    read_deletion(c, body, n);
}

static const struct stage delete = {"DELETE", path_delete, on_deleting, on_refused};
static const struct stage poll_deletion = {"GET", path_operation, read_deletion, on_refused};

static void gcp_terminate(struct cloud_driver *d, const char *region, const char *const *ids, size_t n_ids,
    cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"instances.delete", step, on_reply, deinit_call};
    struct gcp_call *c = new_call(d, region, &delete);
    char zone[CLOUD_NAME_MAX], name[CLOUD_NAME_MAX];
    struct err *refused = &c->base.refused;
    if (refused->kind == ERR_NONE && n_ids == 0)
        err_set(refused, ERR_INVALID, "terminate: no instance is named");
    c->ids = mem_array(n_ids + 1, sizeof(*c->ids));
    for (; c->n_ids < n_ids && refused->kind == ERR_NONE; c->n_ids++) {
        c->ids[c->n_ids] = mem_strdup(ids[c->n_ids]);
        if (gce_split_id(ids[c->n_ids], zone, name, refused) == 0 && !gce_is_zone_of(zone, region))
            err_set(refused, ERR_INVALID, "\"%.64s\" is not in region %s", ids[c->n_ids], region);
    }
    cloud_call_terminate(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- prices ---- */

static void step_prices(struct cloud_call *base)
{
    cloud_call_finish(base, NULL);
}

static void gcp_prices(struct cloud_driver *d, const char *region, const char *const *types, size_t n_types,
    cloud_prices_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"prices", step_prices, on_reply, deinit_call};
    struct gcp_call *c = new_call(d, region, NULL);
    (void)types;
    (void)n_types;
    cloud_call_prices(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- the driver ---- */

static void gcp_destroy(struct cloud_driver *driver)
{
    struct gcp_driver *d = (struct gcp_driver *)driver;
    const struct gcp_machine *m = &d->machine;
    const char *const texts[] = {m->project, m->image, m->network, m->subnet, m->service_account, m->scopes,
        m->tags, m->disk_type, m->address, m->early_notice};
    cloud_calls_cancel(&d->calls);
    gcp_credential_source_destroy(d->credentials);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        free((char *)texts[i]);
    free(d->endpoint_url);
    free(d);
}

static const struct cloud_driver_ops gcp_ops = {
    .provider = "gcp",
    .spot_notice_ms = SPOT_NOTICE_MS,
    .launch = gcp_launch,
    .list = gcp_list,
    .terminate = gcp_terminate,
    .prices = gcp_prices,
    .destroy = gcp_destroy,
};

static struct gcp_machine copy_machine(const struct gcp_machine *m)
{
    return (struct gcp_machine){
        .project = mem_strdup(m->project),
        .image = mem_strdup(m->image),
        .network = mem_strdup(m->network),
        .subnet = mem_strdup(m->subnet),
        .service_account = mem_strdup(m->service_account),
        .scopes = mem_strdup(m->scopes),
        .tags = mem_strdup(m->tags),
        .disk_type = mem_strdup(m->disk_type),
        .address = mem_strdup(m->address),
        .early_notice = mem_strdup(m->early_notice),
        .disk_gib = m->disk_gib,
    };
}

int gcp_driver_create(const struct gcp_options *o, struct cloud_driver **ret_driver, struct err *e)
{
    struct gcp_driver *d = mem_alloc(sizeof(*d));
    d->base.ops = &gcp_ops;
    d->calls = (struct cloud_calls){.provider = "gcp", .http = o->http, .timers = o->timers};
    d->machine = copy_machine(&o->machine);
    int rc = gce_check_machine(&d->machine, e);
    if (rc == 0)
        rc = cloud_endpoint("gcp", o->endpoint_url ? o->endpoint_url : ENDPOINT, &d->endpoint_url, e);
    struct gcp_credential_options credentials = {
        .file = o->credentials_file,
        .endpoint_url = d->endpoint_url,
        .metadata_url = o->metadata_url,
        .http = o->http,
        .timers = o->timers,
    };
    if (rc == 0)
        rc = gcp_credential_source_create(&credentials, &d->credentials, e);
    if (rc == 0)
        *ret_driver = &d->base;
    else
        gcp_destroy(&d->base);
    return rc;
}

/* ---- as a provider ---- */

static const struct cloud_setting gcp_settings[] = {
    {"project", CLOUD_SETTING_TEXT, 128, "the id of the project that its instances belong to", true},
    {"image", CLOUD_SETTING_TEXT, 512, "the image its instances boot from (projects/P/global/images/...)"},
    {"network", CLOUD_SETTING_TEXT, 256, NULL},
    {"subnet", CLOUD_SETTING_TEXT, 256, NULL},
    {"service_account", CLOUD_SETTING_TEXT, 256, NULL},
    {"scopes", CLOUD_SETTING_LIST, 32, NULL},
    {"tags", CLOUD_SETTING_LIST, 32, NULL},
    {"disk_type", CLOUD_SETTING_TEXT, CLOUD_NAME_MAX - 1, NULL},
    {"address", CLOUD_SETTING_TEXT, 16, NULL},
    {"early_notice", CLOUD_SETTING_TEXT, 16, NULL},
    {0},
};

static int create(const struct cloud_setup *s, struct cloud_driver **ret_driver, struct err *e)
{
    return gcp_driver_create(
        &(struct gcp_options){
            .machine =
                {
                    .project = cloud_setup_get(s, "project"),
                    .image = cloud_setup_get(s, "image"),
                    .network = cloud_setup_get(s, "network"),
                    .subnet = cloud_setup_get(s, "subnet"),
                    .service_account = cloud_setup_get(s, "service_account"),
                    .scopes = cloud_setup_get(s, "scopes"),
                    .tags = cloud_setup_get(s, "tags"),
                    .disk_type = cloud_setup_get(s, "disk_type"),
                    .address = cloud_setup_get(s, "address"),
                    .early_notice = cloud_setup_get(s, "early_notice"),
                    .disk_gib = s->disk_gib,
                },
            .endpoint_url = s->endpoint,
            .credentials_file = s->credentials,
            .metadata_url = s->metadata,
            .http = s->http,
            .timers = s->timers,
        },
        ret_driver, e);
}

const struct cloud_provider gcp_provider = {.name = "gcp", .settings = gcp_settings, .create = create};
