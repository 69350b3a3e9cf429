/* SPDX-License-Identifier: Apache-2.0
 *
 * The gcp driver: connects the pure parts (gce.h, credentials.h) to an HTTP client. Calls are in
 * call.c, launches in launch.c; listings, termination and the driver itself are here.
 *
 *   list       pages of instances --> pages of preemptions, zone by zone --> finish
 *   terminate  delete --- operation --> poll it --- DONE, good --> the next, or finish
 *
 * Invariant: a missing answer from Google is an error, never an empty list.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/endpoint.h"
#include "cloud/gcp/call.h"
#include "cloud/gcp/launch.h"
#include "cloud/gcp/quotas.h"
#include <stdlib.h>

#define ENDPOINT "https://compute.googleapis.com"
#define QUOTAS_ENDPOINT "https://cloudquotas.googleapis.com"
#define PAGES_MAX 1000
/* per listing: preemptions are extra evidence, not the list of instances */
#define PREEMPTED_PAGES_MAX 20
#define DELETE_POLL_FIRST_MS 1000
#define DELETE_POLL_CAP_MS SECONDS_MS(30)
#define DELETE_POLL_TOTAL_MS SECONDS_MS(180)
#define DELETE_WINDOW_MS SECONDS_MS(60)
#define SPOT_NOTICE_MS SECONDS_MS(30)

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

static void list_preemptions(struct gcp_call *c)
{
    struct gcp_driver *d = c->d;
    while (c->next_zone < d->n_zones && !gce_is_zone_of(d->zones[c->next_zone], c->base.region))
        c->next_zone++;
    if (c->next_zone == d->n_zones)
        gcp_call_finish(c, NULL);
    else
        gcp_call_continue(c, &preempted);
}

static void on_preempted(struct gcp_call *c, const char *body, size_t n)
{
    const char *zone = c->d->zones[c->next_zone];
    struct err e;
    if (gce_parse_preempted(body, n, c->base.cluster, zone, &c->base.instances, c->page, &e) != 0) {
        gcp_call_finish(c, &e);
        return;
    }
    if (!c->page[0] || ++c->pages >= PREEMPTED_PAGES_MAX) {
        c->page[0] = '\0';
        c->next_zone++;
    }
    list_preemptions(c);
}

/* The instances are known; the preemptions are optional. */
static void on_preempted_refused(struct gcp_call *c, const struct err *e)
{
    (void)e;
    gcp_call_finish(c, NULL);
}

static const struct stage preempted = {"GET", path_preempted, on_preempted, on_preempted_refused};

/* False if there is no further page. Otherwise it is requested, unless there are too many. */
static bool turn_page(struct gcp_call *c, const char *what)
{
    struct err e;
    if (!c->page[0])
        return false;
    if (++c->pages < PAGES_MAX) {
        cloud_call_step(&c->base);
        return true;
    }
    err_set(&e, ERR_INVALID, "Compute Engine's %s: more than %d pages", what, PAGES_MAX);
    gcp_call_finish(c, &e);
    return true;
}

static void on_list(struct gcp_call *c, const char *body, size_t n)
{
    struct err e;
    if (gce_parse_list(body, n, c->base.region, &c->base.instances, c->page, &e) != 0) {
        gcp_call_finish(c, &e);
    } else if (turn_page(c, "listing")) {
        return;
    } else if (!c->base.cluster) {
        gcp_call_finish(c, NULL);
    } else {
        for (size_t i = 0; i < c->base.instances.n; i++)
            gcp_remember_zone(c->d, c->base.instances.list[i].zone);
        c->pages = 0;
        list_preemptions(c);
    }
}

static void gcp_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    static const struct stage list = {"GET", path_list, on_list, gcp_call_on_refused};
    static const struct cloud_call_ops ops = {
        "instances.aggregatedList", gcp_call_step, gcp_call_on_reply, gcp_call_deinit};
    struct gcp_call *c = gcp_call_new(d, region, &list);
    cloud_call_list(&c->d->calls, &c->base, &ops, region, cluster, done, ctx);
}

/* ---- volumes ---- */

static void path_disks(struct gcp_call *c, struct buf *out)
{
    gce_path_disks(c->base.cluster, c->page, out);
}

static void on_disks(struct gcp_call *c, const char *body, size_t n)
{
    struct err e;
    if (gce_parse_disks(body, n, c->base.region, &c->base.volumes, c->page, &e) != 0) {
        gcp_call_finish(c, &e);
    } else if (!turn_page(c, "list of disks")) {
        gcp_call_finish(c, NULL);
    }
}

static void gcp_volumes(struct cloud_driver *d, const char *region, const char *cluster,
    cloud_volumes_fn done, void *ctx)
{
    static const struct stage disks = {"GET", path_disks, on_disks, gcp_call_on_refused};
    static const struct cloud_call_ops ops = {"disks.aggregatedList", gcp_call_step,
        gcp_call_on_reply, gcp_call_deinit, .permission = "compute.disks.list"};
    struct gcp_call *c = gcp_call_new(d, region, &disks);
    cloud_call_volumes(&c->d->calls, &c->base, &ops, region, cluster, done, ctx);
}

/* ---- terminate ---- */

static const struct stage delete, poll_deletion;

/* A repeat within the minute is the same deletion; a later one is new, because the first may have
 * failed since. */
static void path_delete(struct gcp_call *c, struct buf *out)
{
    const char *id = cloud_call_word(&c->base);
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
        gcp_call_finish(c, &e);
    else if (!c->operation.done)
        gcp_call_wait(c, &poll_deletion);
    else if (c->operation.failed.kind != ERR_NONE)
        gcp_call_finish(c, &c->operation.failed);
    else if (++c->base.next_word == c->base.n_words)
        gcp_call_finish(c, NULL);
    else
        gcp_call_continue(c, &delete);
}

static void on_deleting(struct gcp_call *c, const char *body, size_t n)
{
    gcp_call_start_polling(c, DELETE_POLL_FIRST_MS, DELETE_POLL_CAP_MS, DELETE_POLL_TOTAL_MS);
    read_deletion(c, body, n);
}

static const struct stage delete = {"DELETE", path_delete, on_deleting, gcp_call_on_refused};
static const struct stage poll_deletion = {
    "GET", gcp_path_operation, read_deletion, gcp_call_on_refused};

static void gcp_terminate(struct cloud_driver *d, const char *region, const char *const *ids,
    size_t n_ids, cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "instances.delete", gcp_call_step, gcp_call_on_reply, gcp_call_deinit};
    struct gcp_call *c = gcp_call_new(d, region, &delete);
    char zone[CLOUD_NAME_MAX], name[CLOUD_NAME_MAX];
    struct err *refused = &c->base.refused;
    if (refused->kind == ERR_NONE && n_ids == 0)
        err_set(refused, ERR_INVALID, "terminate: no instance is named");
    cloud_call_add_words(&c->base, ids, n_ids);
    for (size_t i = 0; i < n_ids && refused->kind == ERR_NONE; i++)
        if (gce_split_id(ids[i], zone, name, refused) == 0 && !gce_is_zone_of(zone, region))
            err_set(refused, ERR_INVALID, "\"%.64s\" is not in region %s", ids[i], region);
    cloud_call_terminate(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- consoles ---- */

static void path_console(struct gcp_call *c, struct buf *out)
{
    gce_path_console(c->zone, c->token, out);
}

static void on_console(struct gcp_call *c, const char *body, size_t n)
{
    struct err e;
    int rc = gce_parse_console(body, n, &c->base.console, &e);
    gcp_call_finish(c, rc == 0 ? NULL : &e);
}

static void gcp_console(
    struct cloud_driver *d, const char *region, const char *id, cloud_console_fn done, void *ctx)
{
    static const struct stage console = {"GET", path_console, on_console, gcp_call_on_refused};
    static const struct cloud_call_ops ops = {"instances.getSerialPortOutput", gcp_call_step,
        gcp_call_on_reply, gcp_call_deinit, .permission = "compute.instances.getSerialPortOutput"};
    struct gcp_call *c = gcp_call_new(d, region, &console);
    if (c->base.refused.kind == ERR_NONE)
        gce_split_id(id, c->zone, c->token, &c->base.refused);
    cloud_call_console(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- prices ---- */

static void step_prices(struct cloud_call *base)
{
    cloud_call_finish(base, NULL);
}

static void gcp_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n_types, cloud_prices_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "prices", step_prices, gcp_call_on_reply, gcp_call_deinit};
    struct gcp_call *c = gcp_call_new(d, region, NULL);
    (void)types;
    (void)n_types;
    cloud_call_prices(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- credentials ---- */

static void on_found(void *ctx, const struct err *e, const char *authorization)
{
    struct gcp_call *c = ctx;
    (void)authorization;
    gcp_call_finish(c, e);
}

static void find_credentials(struct cloud_call *base)
{
    struct gcp_call *c = (struct gcp_call *)base;
    oauth_get(gcp_credential_oauth(c->d->credentials), &c->wait, on_found, c);
}

static void gcp_find_credentials(
    struct cloud_driver *d, const char *region, cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        .name = "credentials", .step = find_credentials, .deinit = gcp_call_deinit};
    struct gcp_call *c = gcp_call_new(d, region, NULL);
    cloud_call_credentials(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- the driver ---- */

static void gcp_destroy(struct cloud_driver *driver)
{
    struct gcp_driver *d = (struct gcp_driver *)driver;
    cloud_calls_cancel(&d->calls);
    gcp_credential_source_destroy(d->credentials);
    cloud_kept_deinit(&d->kept);
    free(d->endpoint_url);
    free(d->quotas_url);
    free(d);
}

static const struct cloud_driver_ops gcp_ops = {
    .provider = "gcp",
    .spot_notice_ms = SPOT_NOTICE_MS,
    /* Requests that change something are limited per minute, project and region, well above this.
     */
    .launch_burst = 20,
    .launches_per_minute = 600,
    .launch = gcp_launch,
    .list = gcp_list,
    .lists_account = true,
    .terminate = gcp_terminate,
    .prices = gcp_prices,
    .volumes = gcp_volumes,
    .quotas = gcp_quotas,
    .quotas_page = "Google's console, under IAM and admin, Quotas",
    .console = gcp_console,
    .credentials = gcp_find_credentials,
    .destroy = gcp_destroy,
};

static struct gcp_machine keep_machine(struct cloud_kept *k, const struct gcp_machine *m)
{
    return (struct gcp_machine){
        .project = cloud_keep(k, m->project),
        .image = cloud_keep(k, m->image),
        .network = cloud_keep(k, m->network),
        .subnet = cloud_keep(k, m->subnet),
        .service_account = cloud_keep(k, m->service_account),
        .scopes = cloud_keep(k, m->scopes),
        .tags = cloud_keep(k, m->tags),
        .disk_type = cloud_keep(k, m->disk_type),
        .address = cloud_keep(k, m->address),
        .early_notice = cloud_keep(k, m->early_notice),
        .max_run = cloud_keep(k, m->max_run),
        .disk_gib = m->disk_gib,
    };
}

int gcp_driver_create(const struct gcp_options *o, struct cloud_driver **ret_driver, struct err *e)
{
    struct gcp_driver *d = mem_alloc(sizeof(*d));
    d->base.ops = &gcp_ops;
    d->calls = (struct cloud_calls){.provider = "gcp", .http = o->http, .timers = o->timers};
    d->machine = keep_machine(&d->kept, &o->machine);
    int rc = gce_check_machine(&d->machine, e);
    if (rc == 0)
        rc = cloud_endpoint(
            "gcp", o->endpoint_url ? o->endpoint_url : ENDPOINT, &d->endpoint_url, e);
    d->quotas_url = mem_strdup(o->endpoint_url ? d->endpoint_url : QUOTAS_ENDPOINT);
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

/* ---- the provider ---- */

extern const char gcp_end_sh[]; /* from end.sh */

static const struct cloud_setting gcp_settings[] = {
    {"project", CLOUD_SETTING_TEXT, 128, "the id of the project that its instances belong to",
        true},
    {"image", CLOUD_SETTING_TEXT, 512,
        "the image its instances boot from (projects/P/global/images/...)"},
    {"network", CLOUD_SETTING_TEXT, 256, NULL},
    {"subnet", CLOUD_SETTING_TEXT, 256, NULL},
    {"service_account", CLOUD_SETTING_TEXT, 256, NULL},
    {"scopes", CLOUD_SETTING_LIST, 32, NULL},
    {"tags", CLOUD_SETTING_LIST, 32, NULL},
    {"disk_type", CLOUD_SETTING_TEXT, CLOUD_NAME_MAX - 1, NULL},
    {"address", CLOUD_SETTING_TEXT, 16, NULL},
    {"early_notice", CLOUD_SETTING_TEXT, 16, NULL},
    {"max_run", CLOUD_SETTING_TEXT, 32, NULL},
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
                    .max_run = cloud_setup_get(s, "max_run"),
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

const struct cloud_provider gcp_provider = {
    .name = "gcp", .settings = gcp_settings, .create = create, .end_script = gcp_end_sh};
