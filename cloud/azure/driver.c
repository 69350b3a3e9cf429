/* SPDX-License-Identifier: Apache-2.0
 *
 * The azure driver: connects the pure parts (arm.h) and bearer tokens (credentials.h) to an HTTP
 * client. Calls are in call.c, launches in launch.c, listings in list.c; termination, prices and
 * the driver itself are here.
 *
 *   terminate:  DELETE VM of each; if there is none: DELETE NIC, DELETE disk
 *   console:    POST retrieveBootDiagnosticsData --> GET the log that it names
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/call.h"
#include "cloud/azure/launch.h"
#include "cloud/azure/list.h"
#include "cloud/azure/quotas.h"
#include "cloud/console.h"
#include "cloud/endpoint.h"
#include <stdlib.h>

#define SPOT_NOTICE_MS SECONDS_MS(30)

/* ---- terminating ---- */

static void on_end_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    struct err e = {.kind = ERR_NONE};
    bool missing = reply->status == 204;
    if (!azure_call_is_good(reply->status) && !missing) {
        if (!azure_call_read_refusal(c, reply, &e))
            return;
        missing = e.kind == ERR_NOT_FOUND;
    }
    if (e.kind != ERR_NONE && !missing)
        cloud_call_finish(base, &e);
    else if (c->phase == END && missing && arm_part_of(cloud_call_word(&c->base)) == ARM_VM)
        azure_call_continue(c, END_NIC);
    else if (c->phase == END_NIC)
        azure_call_continue(c, END_DISK);
    else if (++c->base.next_word < c->base.n_words)
        azure_call_continue(c, END);
    else
        cloud_call_finish(base, NULL);
}

static void azure_terminate(struct cloud_driver *d, const char *region, const char *const *ids,
    size_t n_ids, cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "delete", azure_call_step, on_end_reply, azure_call_deinit};
    struct azure_call *c = azure_call_new(d, region, END);
    if (c->base.refused.kind == ERR_NONE)
        azure_call_set_words(c, ids, n_ids, ARM_TERMINATE_MAX);
    cloud_call_terminate(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- volumes ---- */

static void on_disks_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    struct err e;
    if (reply->status != 200)
        azure_call_on_refusal(c, reply);
    else if (arm_parse_disks(buf_str(&reply->body), reply->body.len, base->region, &base->volumes,
                 c->url, &e) != 0)
        cloud_call_finish(base, &e);
    else if (!azure_call_next_page(c, c->d->endpoint_url))
        cloud_call_finish(base, NULL);
}

/* The cluster's own disks are in the group of its machines, so rights in the resource group
 * suffice. */
static void azure_volumes(struct cloud_driver *d, const char *region, const char *cluster,
    cloud_volumes_fn done, void *ctx)
{
    static const struct cloud_call_ops
        own = {"disks", azure_call_step, on_disks_reply, azure_call_deinit,
            .permission = "Microsoft.Compute/disks/read in the resource group"},
        all = {"disks", azure_call_step, on_disks_reply, azure_call_deinit,
            .permission = "Microsoft.Compute/disks/read in the subscription"};
    struct azure_call *c = azure_call_new(d, region, cluster ? LIST_DISKS : LIST_ALL_DISKS);
    cloud_call_volumes(&c->d->calls, &c->base, cluster ? &own : &all, region, cluster, done, ctx);
}

/* ---- consoles ---- */

static void on_console_url(struct azure_call *c, const struct http_reply *reply)
{
    struct err e;
    if (reply->status != 200)
        azure_call_on_refusal(c, reply);
    else if (arm_parse_console(
                 buf_str(&reply->body), reply->body.len, c->d->endpoint_url, c->url, &e) != 0)
        cloud_call_finish(&c->base, &e);
    else if (!c->url[0])
        cloud_call_finish(&c->base, NULL);
    else {
        c->phase = CONSOLE_LOG;
        cloud_call_step(&c->base);
    }
}

/* Storage errors may quote what was signed, so only the status is reported. */
static void on_console_log(struct azure_call *c, const struct http_reply *reply)
{
    struct err e;
    if (reply->status == 200)
        cloud_console_clean(buf_str(&reply->body), reply->body.len, &c->base.console);
    if (reply->status == 200 || reply->status == 404) { /* 404: nothing was written yet */
        cloud_call_finish(&c->base, NULL);
        return;
    }
    err_set(&e, ERR_UNAVAILABLE, "the storage that keeps the console's log answered HTTP %d",
        reply->status);
    cloud_call_finish(&c->base, &e);
}

static void on_console_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    if (c->phase == CONSOLE)
        on_console_url(c, reply);
    else
        on_console_log(c, reply);
}

static void azure_console(
    struct cloud_driver *d, const char *region, const char *id, cloud_console_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"retrieveBootDiagnosticsData", azure_call_step,
        on_console_reply, azure_call_deinit,
        .permission = "Microsoft.Compute/virtualMachines/retrieveBootDiagnosticsData/action"};
    struct azure_call *c = azure_call_new(d, region, CONSOLE);
    if (c->base.refused.kind == ERR_NONE)
        azure_call_set_words(c, &id, 1, 1);
    cloud_call_console(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- prices ---- */

static void on_prices_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    struct err e;
    if (reply->status != 200)
        azure_call_on_refusal(c, reply);
    else if (arm_parse_prices(buf_str(&reply->body), reply->body.len, base->region,
                 cloud_call_word(&c->base), &base->prices, c->url, &e) != 0)
        cloud_call_finish(base, &e);
    else if (azure_call_next_page(c, c->d->prices_url))
        return;
    else if (++c->base.next_word < c->base.n_words)
        azure_call_continue(c, PRICES);
    else
        cloud_call_finish(base, NULL);
}

static void azure_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n_types, cloud_prices_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "retail prices", azure_call_step, on_prices_reply, azure_call_deinit};
    struct azure_call *c = azure_call_new(d, region, PRICES);
    if (c->base.refused.kind == ERR_NONE)
        azure_call_set_words(c, types, n_types, CLOUD_PRICES_MAX);
    cloud_call_prices(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- credentials ---- */

static void on_found(void *ctx, const struct err *e, const char *header)
{
    struct azure_call *c = ctx;
    (void)header;
    cloud_call_finish(&c->base, e);
}

static void find_credentials(struct cloud_call *base)
{
    struct azure_call *c = (struct azure_call *)base;
    oauth_get(azure_credential_tokens(c->d->credentials), &c->wait, on_found, c);
}

static void azure_find_credentials(
    struct cloud_driver *d, const char *region, cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        .name = "credentials", .step = find_credentials, .deinit = azure_call_deinit};
    struct azure_call *c = azure_call_new(d, region, PUT_NIC);
    cloud_call_credentials(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- the driver ---- */

static void azure_destroy(struct cloud_driver *driver)
{
    struct azure_driver *d = (struct azure_driver *)driver;
    cloud_calls_cancel(&d->calls);
    azure_credential_source_destroy(d->credentials);
    cloud_kept_deinit(&d->kept);
    free(d->endpoint_url);
    free(d->login_url);
    free(d->prices_url);
    free(d->unattached);
    free(d);
}

static const struct cloud_driver_ops azure_ops = {
    .provider = "azure",
    .spot_notice_ms = SPOT_NOTICE_MS,
    /* Resource Manager accepts 200 writes at once and then 10 a second, per subscription and
     * region; a launch is two or three. */
    .launch_burst = 50,
    .launches_per_minute = 200,
    .launch = azure_launch,
    .list = azure_list,
    .lists_account = true,
    .terminate = azure_terminate,
    .prices = azure_prices,
    .volumes = azure_volumes,
    .quotas = azure_quotas,
    .quotas_page = "Azure's portal, under Quotas, Compute",
    .console = azure_console,
    .credentials = azure_find_credentials,
    .destroy = azure_destroy,
};

static int set_urls(struct azure_driver *d, const struct azure_options *o, struct err *e)
{
    int rc = cloud_endpoint(
        "azure", o->endpoint_url ? o->endpoint_url : AZURE_ENDPOINT, &d->endpoint_url, e);
    if (rc == 0)
        rc = cloud_endpoint(
            "azure login", o->login_url ? o->login_url : AZURE_LOGIN, &d->login_url, e);
    if (rc == 0)
        rc = cloud_endpoint(
            "azure prices", o->prices_url ? o->prices_url : AZURE_PRICES, &d->prices_url, e);
    return rc;
}

static int set_credentials(struct azure_driver *d, const struct azure_options *o, struct err *e)
{
    struct azure_credential_options credentials = {
        .file = o->credentials_file,
        .login_url = d->login_url,
        /* an endpoint on this machine emulates the public cloud */
        .audience = str_starts(d->endpoint_url, "https://") ? d->endpoint_url : AZURE_ENDPOINT,
        .metadata_url = o->metadata_url,
        .http = o->http,
        .timers = o->timers,
    };
    azure_environment_read(&credentials.env);
    return azure_credential_source_create(&credentials, &d->credentials, e);
}

static struct azure_machine keep_machine(struct cloud_kept *k, const struct azure_machine *m)
{
    return (struct azure_machine){
        .subscription = cloud_keep(k, m->subscription),
        .resource_group = cloud_keep(k, m->resource_group),
        .subnet = cloud_keep(k, m->subnet),
        .image = cloud_keep(k, m->image),
        .ssh_key = cloud_keep(k, m->ssh_key),
        .admin_user = cloud_keep(k, m->admin_user),
        .security_group = cloud_keep(k, m->security_group),
        .identity = cloud_keep(k, m->identity),
        .disk_type = cloud_keep(k, m->disk_type),
        .disk_gib = m->disk_gib,
    };
}

int azure_driver_create(
    const struct azure_options *o, struct cloud_driver **ret_driver, struct err *e)
{
    struct azure_driver *d = mem_alloc(sizeof(*d));
    d->base.ops = &azure_ops;
    d->calls = (struct cloud_calls){.provider = "azure", .http = o->http, .timers = o->timers};
    d->machine = keep_machine(&d->kept, &o->machine);
    int rc = arm_check_machine(&d->machine, e);
    if (rc == 0)
        rc = set_urls(d, o, e);
    if (rc == 0)
        rc = set_credentials(d, o, e);
    if (rc == 0)
        *ret_driver = &d->base;
    else
        azure_destroy(&d->base);
    return rc;
}

/* ---- the provider ---- */

extern const char azure_end_sh[]; /* from end.sh */

static const struct cloud_setting azure_settings[] = {
    {"subscription", CLOUD_SETTING_TEXT, 64, "the subscription's id", true},
    {"resource_group", CLOUD_SETTING_TEXT, 90, "the resource group its machines are created in",
        true},
    {"image", CLOUD_SETTING_TEXT, 1024,
        "the image its machines boot from (PUBLISHER:OFFER:SKU:VERSION)"},
    {"subnet", CLOUD_SETTING_TEXT, 1024, "the subnet of its machines (VNET/SUBNET)"},
    {"ssh_key", CLOUD_SETTING_TEXT, 8192,
        "a public key: Azure creates no Linux machine without one"},
    {"admin_user", CLOUD_SETTING_TEXT, 32, NULL},
    {"security_group", CLOUD_SETTING_TEXT, 1024, NULL},
    {"identity", CLOUD_SETTING_TEXT, 1024, NULL},
    {"disk_type", CLOUD_SETTING_TEXT, 32, NULL},
    {"login", CLOUD_SETTING_TEXT, 256, NULL},
    {"prices", CLOUD_SETTING_TEXT, 256, NULL},
    {0},
};

static int create(const struct cloud_setup *s, struct cloud_driver **ret_driver, struct err *e)
{
    return azure_driver_create(
        &(struct azure_options){
            .machine =
                {
                    .subscription = cloud_setup_get(s, "subscription"),
                    .resource_group = cloud_setup_get(s, "resource_group"),
                    .subnet = cloud_setup_get(s, "subnet"),
                    .image = cloud_setup_get(s, "image"),
                    .ssh_key = cloud_setup_get(s, "ssh_key"),
                    .admin_user = cloud_setup_get(s, "admin_user"),
                    .security_group = cloud_setup_get(s, "security_group"),
                    .identity = cloud_setup_get(s, "identity"),
                    .disk_type = cloud_setup_get(s, "disk_type"),
                    .disk_gib = s->disk_gib,
                },
            .endpoint_url = s->endpoint,
            .login_url = cloud_setup_get(s, "login"),
            .prices_url = cloud_setup_get(s, "prices"),
            .credentials_file = s->credentials,
            .metadata_url = s->metadata,
            .http = s->http,
            .timers = s->timers,
        },
        ret_driver, e);
}

const struct cloud_provider azure_provider = {
    .name = "azure", .settings = azure_settings, .create = create, .end_script = azure_end_sh};
