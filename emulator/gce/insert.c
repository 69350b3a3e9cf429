/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of instances.insert: from JSON to a launch_spec, with Compute Engine's own refusals.
 * Unknown fields are refused by name; for fields without effect here only the type is checked.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/catalogue.h"
#include "emulator/gce/gce.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISKS_MAX 128
#define NICS_MAX 8
#define ITEMS_MAX 1000
#define SCOPES_MAX 100
#define TEXT_MAX 1024
#define VALUE_MAX (256 * 1024)
#define METADATA_MAX (512 * 1024)
#define RUN_S_MIN 30
#define RUN_S_MAX (120LL * 24 * 3600)
#define LEAD_S 120 /* the only early notice available */
#define URL_PREFIX_1 "https://www.googleapis.com/compute/v1/"
#define URL_PREFIX_2 "https://compute.googleapis.com/compute/v1/"

struct reading {
    struct gce_call *c;
    struct launch_spec *spec;
    struct err e;
    bool is_answered; /* with its own error message */
};

static void begin(struct reading *rd, struct json_reader *r, const json_t *value, const char *path)
{
    json_reader_init(r, value, path, &rd->e);
}

/* -1 with the error reply set. */
static int finish(struct reading *rd, struct json_reader *r)
{
    if (rd->is_answered)
        return -1;
    if (json_reader_finish(r) == 0)
        return 0;
    rd->is_answered = true;
    return gce_fail(rd->c, 400, "badRequest", "Invalid JSON payload received. %s", rd->e.text);
}

static int refuse(struct reading *rd, const char *field, const char *value, const char *why)
{
    rd->is_answered = true;
    if (rd->e.kind != ERR_NONE) /* an earlier format error, after which nothing more was read */
        return gce_fail(rd->c, 400, "badRequest", "Invalid JSON payload received. %s", rd->e.text);
    return gce_fail(rd->c, 400, "invalid", "Invalid value for field 'resource.%s': '%.100s'. %s",
        field, value, why);
}

/* An int64 of the API is a string; a number is accepted too. */
static int read_int64(struct reading *rd, struct json_reader *r, const char *key, int64_t min,
    int64_t max, int64_t *ret_n)
{
    const json_t *v = json_object_get(r->object, key);
    char text[32] = "";
    if (json_is_integer(v)) {
        *ret_n = json_req_i64(r, key, INT64_MIN, INT64_MAX);
        snprintf(text, sizeof(text), "%lld", (long long)*ret_n);
    } else {
        STR_COPY(text, json_opt_str(r, key, sizeof(text) - 1, ""));
    }
    if (str_to_i64(text, min, max, key, ret_n, NULL) < 0)
        return refuse(rd, key, text, "It is out of range.");
    return 0;
}

/* ---- Names ---- */

/* [a-z]([-a-z0-9]{0,61}[a-z0-9])? */
static bool is_rfc1035(const char *name)
{
    size_t n = strlen(name);
    return n >= 1 && n <= 63 && name[0] >= 'a' && name[0] <= 'z' && name[n - 1] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static bool is_label(const char *text, bool is_key)
{
    size_t n = strlen(text);
    if (n > 63 || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != n)
        return false;
    return !is_key || (text[0] >= 'a' && text[0] <= 'z');
}

static int read_name(struct reading *rd, struct json_reader *r)
{
    const char *name = json_opt_str(r, "name", TEXT_MAX, "");
    if (!is_rfc1035(name))
        return refuse(
            rd, "name", name, "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'");
    STR_COPY(rd->spec->name, name);
    return 0;
}

/* ".../zones/ZONE/KIND/NAME", complete or starting at projects/ or zones/. NULL if malformed;
 * *ret_zone receives its zone. */
static const char *name_of_url(
    const char *url, const char *kind, const char *project, char zone[CLOUD_NAME_MAX])
{
    char middle[64];
    char *in_project = mem_printf("projects/%s/", project);
    size_t n_project = strlen(in_project);
    if (str_starts(url, URL_PREFIX_1))
        url += strlen(URL_PREFIX_1);
    else if (str_starts(url, URL_PREFIX_2))
        url += strlen(URL_PREFIX_2);
    if (str_starts(url, in_project))
        url += n_project;
    free(in_project);
    if (!str_starts(url, "zones/"))
        return NULL;
    url += strlen("zones/");
    size_t n = strcspn(url, "/");
    snprintf(middle, sizeof(middle), "/%s/", kind);
    if (n == 0 || n >= CLOUD_NAME_MAX || !str_starts(url + n, middle))
        return NULL;
    snprintf(zone, CLOUD_NAME_MAX, "%.*s", (int)n, url);
    url += n + strlen(middle);
    return url[0] && !strchr(url, '/') ? url : NULL;
}

/* Whether the pool's machines are of this type, with or without attached GPUs. */
static bool is_machine_of(const struct market_pool *p, const char *zone, const char *type)
{
    struct catalogue_parts parts;
    return str_eq(p->zone, zone) && catalogue_split("gcp", p->type, &parts, NULL) == 0 &&
           str_eq(parts.machine, type);
}

static int read_type(struct reading *rd, struct json_reader *r)
{
    const struct region *region = rd->c->region;
    const char *url = json_opt_str(r, "machineType", TEXT_MAX, "");
    char zone[CLOUD_NAME_MAX];
    const char *type = name_of_url(url, "machineTypes", region->o->account, zone);
    bool is_there = false;
    if (!type)
        return refuse(rd, "machineType", url,
            "The URL is malformed. Must be a valid resource URL: zones/ZONE/machineTypes/TYPE.");
    if (!str_eq(zone, rd->c->zone))
        return refuse(
            rd, "machineType", url, "The machine type is in another zone than the instance.");
    for (size_t k = 0; k < region->market.n_pools && !is_there; k++)
        is_there = is_machine_of(&region->market.pools[k], zone, type);
    if (!is_there) {
        rd->is_answered = true;
        return gce_fail(rd->c, 404, "notFound",
            "The resource 'projects/%s/zones/%s/machineTypes/%.80s' was not found",
            region->o->account, zone, type);
    }
    STR_COPY(rd->spec->zone, zone);
    STR_COPY(rd->spec->type, type);
    return 0;
}

/* ---- Accelerators ---- */

static bool zone_has(const struct region *region, const char *zone, const char *accelerator)
{
    for (size_t k = 0; k < region->market.n_pools; k++) {
        const struct market_pool *p = &region->market.pools[k];
        if (str_eq(p->zone, zone) && str_eq(gce_gpus_of(p->type).accelerator, accelerator))
            return true;
    }
    return false;
}

static int fail_together(struct reading *rd, const char *accelerator)
{
    rd->is_answered = true;
    return gce_fail(rd->c, 400, "badRequest",
        "[%s, %s] features are not compatible for creating instance.", rd->spec->type, accelerator);
}

static int check_count(struct reading *rd, const struct catalogue_gpu *gpu, int64_t n)
{
    struct catalogue_type machine;
    int32_t max = catalogue_gpu_max_vcpus(gpu, n);
    char text[32], why[128];
    snprintf(text, sizeof(text), "%lld", (long long)n);
    snprintf(why, sizeof(why),
        "Number of accelerator cards attached to an instance must be one of [1, 2, 4%s].",
        catalogue_gpu_max_vcpus(gpu, 8) > 0 ? ", 8" : "");
    if (max == 0)
        return refuse(rd, "guestAccelerators[0].acceleratorCount", text, why);
    snprintf(why, sizeof(why),
        "At most %d vCPUs can be used along with %lld accelerator cards in an instance.", (int)max,
        (long long)n);
    if (catalogue_find("gcp", rd->spec->type, &machine, NULL) == 0 && machine.vcpus > max)
        return refuse(rd, "guestAccelerators[0].acceleratorCount", text, why);
    return 0;
}

/* Adds n GPUs to the spec's type. A machine with built-in GPUs may name them again. */
static int attach(struct reading *rd, const char *accelerator, int64_t n)
{
    struct launch_spec *s = rd->spec;
    const struct gce_gpus built_in = gce_gpus_of(s->type);
    const struct catalogue_gpu *gpu = catalogue_gpu_find(accelerator);
    if (built_in.n > 0 && built_in.n == n && str_eq(built_in.accelerator, accelerator))
        return 0;
    if (!gpu || built_in.n > 0 || !catalogue_takes_gpus(s->type))
        return fail_together(rd, accelerator);
    if (check_count(rd, gpu, n) < 0)
        return -1;
    return catalogue_attach(s->type, sizeof(s->type), n, gpu->name)
               ? 0
               : fail_together(rd, accelerator);
}

static int read_accelerator(struct reading *rd, const json_t *value)
{
    const char *project = rd->c->region->o->account;
    char zone[CLOUD_NAME_MAX];
    struct json_reader r;
    begin(rd, &r, value, "guestAccelerators");
    const char *url = json_req_str(&r, "acceleratorType", TEXT_MAX);
    int64_t n = json_req_i64(&r, "acceleratorCount", 0, ITEMS_MAX);
    if (finish(rd, &r) < 0)
        return -1;
    const char *name = name_of_url(url, "acceleratorTypes", project, zone);
    if (!name || !str_eq(zone, rd->c->zone))
        return refuse(rd, "guestAccelerators[0].acceleratorType", url,
            "The URL is malformed, or of another zone. Must be a valid resource URL: "
            "zones/ZONE/acceleratorTypes/TYPE.");
    if (!zone_has(rd->c->region, zone, name)) {
        rd->is_answered = true;
        return gce_fail(rd->c, 404, "notFound",
            "The resource 'projects/%s/zones/%s/acceleratorTypes/%.80s' was not found", project,
            zone, name);
    }
    return n > 0 ? attach(rd, name, n) : 0;
}

static int read_accelerators(struct reading *rd, struct json_reader *outer)
{
    const json_t *list = json_opt_array(outer, "guestAccelerators", ITEMS_MAX);
    if (json_array_size(list) > 1)
        return refuse(rd, "guestAccelerators", "", "There is more than one type of accelerator.");
    return json_array_size(list) == 1 ? read_accelerator(rd, json_array_get(list, 0)) : 0;
}

/* ---- Labels and metadata ---- */

static int read_labels(struct reading *rd, struct json_reader *r)
{
    const json_t *labels = json_opt_object(r, "labels"), *value;
    const char *key;
    if (labels && json_object_size(labels) > GCE_LABELS_MAX)
        return refuse(rd, "labels", "", "There are more than 64 labels.");
    json_object_foreach((json_t *)labels, key, value)
    {
        const char *text = json_string_value(value);
        if (!is_label(key, true))
            return refuse(rd, "labels", key,
                "Label keys have 1 to 63 lower case letters, digits, - and _, and begin with a "
                "letter.");
        if (!text || !is_label(text, false))
            return refuse(rd, "labels", text ? text : "",
                "Label values have at most 63 lower case letters, digits, - and _.");
        tags_set(&rd->spec->tags, key, text);
    }
    return 0;
}

static int read_item(struct reading *rd, const json_t *item, size_t *total)
{
    struct json_reader r;
    begin(rd, &r, item, "metadata.items");
    const char *key = json_req_str(&r, "key", 128),
               *value = json_opt_str(&r, "value", VALUE_MAX, "");
    if (finish(rd, &r) < 0)
        return -1;
    if (!key[0] ||
        strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
            strlen(key))
        return refuse(rd, "metadata.items.key", key, "Must be a match of regex '[a-zA-Z0-9-_]+'");
    if (tags_get(&rd->spec->attributes, key))
        return refuse(rd, "metadata", key, "Metadata has duplicate key.");
    *total += strlen(key) + strlen(value);
    if (*total > METADATA_MAX)
        return refuse(rd, "metadata", key, "The metadata is longer than 512 KB.");
    tags_set(&rd->spec->attributes, key, value);
    return 0;
}

/* The machine's script: its startup script, else cloud-init's user data. */
static void take_script(struct launch_spec *s)
{
    const char *script = tags_get(&s->attributes, "startup-script");
    if (!script)
        script = tags_get(&s->attributes, "user-data");
    if (script)
        buf_adds(&s->user_data, script);
}

static int read_metadata(struct reading *rd, struct json_reader *outer)
{
    const json_t *metadata = json_opt_object(outer, "metadata");
    struct json_reader r;
    size_t total = 0;
    if (!metadata)
        return 0;
    begin(rd, &r, metadata, "metadata");
    const json_t *items = json_opt_array(&r, "items", ITEMS_MAX);
    json_opt_str(&r, "kind", TEXT_MAX, NULL);
    json_opt_str(&r, "fingerprint", TEXT_MAX, NULL);
    if (finish(rd, &r) < 0)
        return -1;
    for (size_t k = 0; k < json_array_size(items); k++)
        if (read_item(rd, json_array_get(items, k), &total) < 0)
            return -1;
    take_script(rd->spec);
    return 0;
}

/* ---- Scheduling ---- */

static int read_seconds(struct reading *rd, struct json_reader *outer, const char *key, int64_t min,
    int64_t max, int64_t *ret_ms)
{
    const json_t *duration = json_opt_object(outer, key);
    struct json_reader r;
    int64_t s = 0;
    if (!duration)
        return 0;
    begin(rd, &r, duration, key);
    json_opt_i64(&r, "nanos", 0, 0, 0);
    if (read_int64(rd, &r, "seconds", min, max, &s) < 0 || finish(rd, &r) < 0)
        return -1;
    *ret_ms = SECONDS_MS(s);
    return 0;
}

static int read_lead(struct reading *rd, struct json_reader *r)
{
    int64_t lead_ms = 0;
    if (!rd->c->is_beta)
        return 0; /* unknown in v1: refused as such */
    if (read_seconds(rd, r, "preemptionNoticeDuration", 0, LEAD_S, &lead_ms) < 0)
        return -1;
    if (lead_ms != 0 && lead_ms != SECONDS_MS(LEAD_S))
        return refuse(rd, "scheduling.preemptionNoticeDuration", "", "It is 0 or 120 seconds.");
    if (lead_ms > 0 && rd->spec->market != CLOUD_SPOT)
        return refuse(rd, "scheduling.preemptionNoticeDuration", "", "Only Spot VMs have it.");
    rd->spec->soft_off_lead_ms = lead_ms;
    return 0;
}

static int check_scheduling(struct reading *rd, const json_t *scheduling, int action, int host)
{
    struct launch_spec *s = rd->spec;
    bool has_gpus = gce_gpus_of(s->type).n > 0;
    bool restarts = json_is_true(json_object_get(scheduling, "automaticRestart"));
    bool is_spot = s->market == CLOUD_SPOT, migrates = host == 0 || (host < 0 && !is_spot);
    if (is_spot && restarts)
        return refuse(rd, "scheduling", "true",
            "Scheduling must have preemptible be false when AutomaticRestart is true.");
    if (is_spot && host == 0)
        return refuse(rd, "scheduling", "MIGRATE",
            "Scheduling must have preemptible be false when OnHostMaintenance isn't TERMINATE.");
    if (has_gpus && migrates) {
        rd->is_answered = true;
        return gce_fail(rd->c, 400, "badRequest",
            "[INPUT_ERROR]: Instances with guest accelerators do not support live migration.");
    }
    s->ends_at_maintenance = !migrates;
    if (action >= 0 && !is_spot && s->max_run_ms == 0)
        return refuse(rd, "scheduling.instanceTerminationAction", "",
            "It is for Spot VMs, and for those with a maxRunDuration.");
    if (!is_spot && s->max_run_ms > 0 && action < 0)
        return refuse(
            rd, "scheduling.maxRunDuration", "", "You must specify an instanceTerminationAction.");
    return 0;
}

static int read_scheduling(struct reading *rd, struct json_reader *outer)
{
    static const char *const models[] = {"SPOT", "STANDARD", NULL},
                             *const actions[] = {"STOP", "DELETE", NULL},
                             *const hosts[] = {"MIGRATE", "TERMINATE", NULL};
    struct launch_spec *s = rd->spec;
    const json_t *scheduling = json_opt_object(outer, "scheduling");
    struct json_reader r;
    json_t *nothing = json_object();
    begin(rd, &r, scheduling ? scheduling : nothing, "scheduling");
    bool is_preemptible = json_opt_bool(&r, "preemptible", false);
    int model = json_opt_enum(&r, "provisioningModel", models, is_preemptible ? 0 : 1);
    int action = json_opt_enum(&r, "instanceTerminationAction", actions, -1);
    int host = json_opt_enum(&r, "onHostMaintenance", hosts, -1);
    json_opt_bool(&r, "automaticRestart", false);
    json_opt_array(&r, "nodeAffinities", ITEMS_MAX);
    json_opt_i64(&r, "minNodeCpus", 0, ITEMS_MAX, 0);
    json_opt_object(&r, "onInstanceStopAction");
    s->market = model == 0 ? CLOUD_SPOT : CLOUD_ON_DEMAND;
    s->has_soft_off = true;
    s->reclaim_stops = action != 1;
    s->powers_off_to_stop = true;
    int rc = read_seconds(rd, &r, "maxRunDuration", RUN_S_MIN, RUN_S_MAX, &s->max_run_ms);
    if (rc == 0)
        rc = read_lead(rd, &r);
    if (rc == 0)
        rc = finish(rd, &r);
    if (rc == 0)
        rc = check_scheduling(rd, scheduling, action, host);
    json_decref(nothing);
    return rc;
}

/* ---- Disks, network, account ---- */

static int read_disk(struct reading *rd, const json_t *disk, bool is_first)
{
    static const char *const ignored[] = {
        "kind", "type", "mode", "deviceName", "interface", "source", "diskSizeGb", NULL};
    struct json_reader r;
    begin(rd, &r, disk, "disks");
    bool is_boot = json_opt_bool(&r, "boot", false);
    json_opt_bool(&r, "autoDelete", false);
    json_opt_i64(&r, "index", 0, DISKS_MAX, 0);
    for (size_t k = 0; ignored[k]; k++)
        json_opt_str(&r, ignored[k], TEXT_MAX, NULL);
    const json_t *params = json_opt_object(&r, "initializeParams");
    const char *image = json_string_value(json_object_get(params, "sourceImage"));
    struct err why;
    if (finish(rd, &r) < 0)
        return -1;
    if (gce_add_disk(rd->spec, disk, &why) != 0)
        return refuse(rd, "disks.initializeParams", "", why.text);
    if (!is_first)
        return 0;
    if (!is_boot)
        return refuse(
            rd, "disks[0]", "", "Boot disk must be the first disk attached to the instance.");
    if (!image && !json_is_string(json_object_get(disk, "source")))
        return refuse(rd, "disks[0].initializeParams.sourceImage", "",
            "A boot disk needs an image or a source.");
    const char *slash = image ? strrchr(image, '/') : NULL;
    str_copy(rd->spec->image, sizeof(rd->spec->image), slash ? slash + 1 : image ? image : "");
    return 0;
}

static int read_disks(struct reading *rd, struct json_reader *r)
{
    const json_t *disks = json_opt_array(r, "disks", DISKS_MAX);
    if (json_array_size(disks) == 0)
        return refuse(rd, "disks", "", "No disks are specified.");
    for (size_t k = 0; k < json_array_size(disks); k++)
        if (read_disk(rd, json_array_get(disks, k), k == 0) < 0)
            return -1;
    return 0;
}

static int read_network(struct reading *rd, struct json_reader *outer)
{
    static const char *const ignored[] = {"kind", "name", "network", "subnetwork", "networkIP",
        "nicType", "stackType", "fingerprint", NULL};
    const json_t *nics = json_opt_array(outer, "networkInterfaces", NICS_MAX);
    if (json_array_size(nics) == 0)
        return refuse(rd, "networkInterfaces", "", "At least one network interface is required.");
    for (size_t k = 0; k < json_array_size(nics); k++) {
        struct json_reader r;
        begin(rd, &r, json_array_get(nics, k), "networkInterfaces");
        for (size_t i = 0; ignored[i]; i++)
            json_opt_str(&r, ignored[i], TEXT_MAX, NULL);
        json_opt_array(&r, "accessConfigs", 1);
        json_opt_array(&r, "aliasIpRanges", ITEMS_MAX);
        if (finish(rd, &r) < 0)
            return -1;
    }
    return 0;
}

static int read_scopes(struct reading *rd, const json_t *scopes)
{
    for (size_t k = 0; k < json_array_size(scopes); k++) {
        const char *scope = json_string_value(json_array_get(scopes, k));
        if (!scope || !str_starts(scope, "https://www.googleapis.com/auth/"))
            return refuse(rd, "serviceAccounts[0].scopes", scope ? scope : "", "Invalid scope.");
        tags_set(&rd->spec->scopes, scope, "");
    }
    return 0;
}

static int read_account(struct reading *rd, struct json_reader *outer)
{
    const struct gce *gce = rd->c->gce;
    const json_t *accounts = json_opt_array(outer, "serviceAccounts", ITEMS_MAX);
    struct json_reader r;
    if (json_array_size(accounts) == 0)
        return 0;
    if (json_array_size(accounts) > 1)
        return refuse(rd, "serviceAccounts", "", "At most one service account is supported.");
    begin(rd, &r, json_array_get(accounts, 0), "serviceAccounts");
    const char *email = json_req_str(&r, "email", GCE_EMAIL_MAX - 1);
    const json_t *scopes = json_opt_array(&r, "scopes", SCOPES_MAX);
    if (finish(rd, &r) < 0)
        return -1;
    const struct gce_account *account =
        str_eq(email, "default") ? &gce->auth.accounts[0] : gce_auth_find(&gce->auth, email);
    if (!account)
        return refuse(rd, "serviceAccounts[0].email", email, "The service account does not exist.");
    STR_COPY(rd->spec->profile, account->email);
    return read_scopes(rd, scopes);
}

/* ---- The whole body ---- */

static void read_ignored(struct json_reader *r)
{
    static const char *const texts[] = {"kind", "zone", "description", "hostname", "minCpuPlatform",
        "labelFingerprint", "keyRevocationActionType", "privateIpv6GoogleAccess", NULL};
    static const char *const objects[] = {"tags", "shieldedInstanceConfig",
        "shieldedInstanceIntegrityPolicy", "confidentialInstanceConfig", "displayDevice",
        "reservationAffinity", "advancedMachineFeatures", "networkPerformanceConfig", "params",
        NULL};
    for (size_t k = 0; texts[k]; k++)
        json_opt_str(r, texts[k], TEXT_MAX, NULL);
    for (size_t k = 0; objects[k]; k++)
        json_opt_object(r, objects[k]);
    json_opt_array(r, "resourcePolicies", ITEMS_MAX);
    json_opt_bool(r, "canIpForward", false);
    json_opt_bool(r, "deletionProtection", false);
}

static int read_resource(struct reading *rd, const json_t *resource)
{
    struct json_reader r;
    begin(rd, &r, resource, "");
    read_ignored(&r);
    if (read_name(rd, &r) < 0 || read_type(rd, &r) < 0 || read_accelerators(rd, &r) < 0 ||
        read_labels(rd, &r) < 0 || read_metadata(rd, &r) < 0 || read_scheduling(rd, &r) < 0 ||
        read_disks(rd, &r) < 0 || read_network(rd, &r) < 0 || read_account(rd, &r) < 0)
        return -1;
    return finish(rd, &r);
}

int gce_read_instance(struct gce_call *c, struct launch_spec *spec)
{
    struct reading rd = {.c = c, .spec = spec};
    json_t *resource = NULL;
    if (json_parse(c->request->body, c->request->body_len, GCE_BODY_MAX, &resource, &rd.e) < 0)
        return gce_fail(c, 400, "parseError", "Invalid JSON payload received. %s", rd.e.text);
    int rc = read_resource(&rd, resource);
    json_decref(resource);
    return rc;
}
