/* SPDX-License-Identifier: Apache-2.0
 *
 * Compute Engine's replies. See gce.h.
 */
#include "base/json.h"
#include "base/str.h"
#include "cloud/catalogue.h"
#include "cloud/console.h"
#include "cloud/gcp/gce.h"
#include <string.h>

#define URL_MAX 1024
#define TEXT_MAX 4096
#define ITEMS_MAX 5000
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* The text after the last '/' of a URL or path; all of it, if there is none. */
static const char *last_segment(const char *url)
{
    const char *slash = strrchr(url, '/');
    return slash ? slash + 1 : url;
}

/* Copies a name that goes into our paths: Google's alphabet, and short enough. */
static void copy_name(
    struct json_reader *r, const char *key, const char *name, char *dst, size_t size)
{
    dst[0] = '\0';
    if (name &&
        (!*name || strspn(name, LOWER DIGITS "-") != strlen(name) || !str_copy(dst, size, name)))
        json_reader_fail(r, key, "not a resource name");
}

static void read_name(struct json_reader *r, const char *key, char *dst, size_t size)
{
    copy_name(r, key, json_req_str(r, key, URL_MAX), dst, size);
}

/* The name of the resource that a URL refers to. */
static void read_link(struct json_reader *r, const char *key, char *dst, size_t size)
{
    const char *url = json_req_str(r, key, URL_MAX);
    copy_name(r, key, url ? last_segment(url) : NULL, dst, size);
}

/* ---- operations ---- */

static void read_failure(struct json_reader *r, struct err *ret_failed)
{
    const json_t *error = json_opt_object(r, "error");
    if (!error)
        return;
    int status = (int)json_opt_i64(r, "httpErrorStatusCode", 100, 599, 400);
    struct json_reader outer, first;
    json_reader_init(&outer, error, "error", r->e);
    const json_t *errors = json_req_array(&outer, "errors", ITEMS_MAX);
    json_reader_init(&first, json_array_get(errors, 0), "error.errors[0]", r->e);
    const char *code = json_req_str(&first, "code", 128);
    const char *message = json_opt_str(&first, "message", TEXT_MAX, "");
    if (outer.rc != 0 || first.rc != 0)
        r->rc = outer.rc != 0 ? outer.rc : first.rc;
    else
        gce_set_error(status, code, message, ret_failed);
}

int gce_parse_operation(
    const char *body, size_t n, struct gce_operation *ret_operation, struct err *e)
{
    static const char *const statuses[] = {"PENDING", "RUNNING", "DONE", NULL};
    enum { DONE = 2 };
    struct gce_operation op = {0};
    struct json_reader r;
    json_t *root = NULL;
    int rc = json_parse(body, n, GCE_REPLY_MAX, &root, e);
    if (rc == 0) {
        json_reader_init(&r, root, "", e);
        read_name(&r, "name", op.name, sizeof(op.name));
        op.done = json_req_enum(&r, "status", statuses) == DONE;
        read_failure(&r, &op.failed);
        rc = json_reader_finish_lenient(&r);
    }
    if (rc == 0)
        *ret_operation = op;
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, "Compute Engine's operation");
}

/* ---- serial ports ---- */

int gce_parse_console(const char *body, size_t n, struct buf *out, struct err *e)
{
    json_t *root = NULL;
    int rc = json_parse(body, n, GCE_REPLY_MAX, &root, e);
    const json_t *contents = rc == 0 ? json_object_get(root, "contents") : NULL;
    if (rc == 0 && contents && !json_is_string(contents))
        rc = err_set(e, ERR_INVALID, "contents: expected a string");
    if (rc == 0 && contents)
        cloud_console_clean(json_string_value(contents), json_string_length(contents), out);
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, "Compute Engine's serial port");
}

/* ---- instances ---- */

static enum cloud_state state_of(const char *status)
{
    static const struct {
        const char *status;
        enum cloud_state state;
    } states[] = {
        {"PROVISIONING", CLOUD_PENDING},
        {"STAGING", CLOUD_PENDING},
        {"STOPPING", CLOUD_STOPPING},
        {"PENDING_STOP", CLOUD_STOPPING},
        {"SUSPENDING", CLOUD_STOPPING},
        {"SUSPENDED", CLOUD_STOPPING},
        {"STOPPED", CLOUD_STOPPING},
        {"TERMINATED", CLOUD_STOPPING}, /* it was stopped; a deleted one is not listed */
        {"DEPROVISIONING", CLOUD_STOPPING},
    };
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (str_eq(states[i].status, status))
            return states[i].state;
    return CLOUD_RUNNING; /* RUNNING, REPAIRING; an unknown state at least exists */
}

/* "2026-08-22T05:00:00.000-07:00": RFC 3339, with an offset. */
static struct wall parse_time(const char *text)
{
    char utc[TIME_ISO_MAX];
    struct wall at;
    int hours, minutes;
    char sign;
    size_t n = strlen(text);
    if (n < 6 || n >= sizeof(utc))
        return WALL_NONE;
    if (text[n - 1] == 'Z')
        return time_parse_iso(text, &at, NULL) == 0 ? at : WALL_NONE;
    if (sscanf(text + n - 6, "%c%2d:%2d", &sign, &hours, &minutes) != 3 ||
        (sign != '+' && sign != '-') || hours < 0 || minutes < 0)
        return WALL_NONE;
    snprintf(utc, sizeof(utc), "%.*sZ", (int)(n - 6), text);
    if (time_parse_iso(utc, &at, NULL) != 0)
        return WALL_NONE;
    at.ms -= (sign == '-' ? -1 : 1) * SECONDS_MS(hours * 3600 + minutes * 60);
    return at;
}

static void read_labels(
    struct json_reader *r, char cluster[CLOUD_NAME_MAX], char token[CLOUD_TOKEN_MAX])
{
    struct json_reader labels;
    const json_t *object = json_opt_object(r, "labels");
    if (!object)
        return;
    json_reader_init(&labels, object, "labels", r->e);
    json_opt_strcpy(&labels, GCE_LABEL_CLUSTER, cluster, CLOUD_NAME_MAX, "");
    json_opt_strcpy(&labels, GCE_LABEL_INSTANCE, token, CLOUD_TOKEN_MAX, "");
    if (r->rc == 0)
        r->rc = labels.rc;
}

static void read_market(struct json_reader *r, struct cloud_instance *i)
{
    const json_t *scheduling = json_opt_object(r, "scheduling");
    const char *model = json_string_value(json_object_get(scheduling, "provisioningModel"));
    i->market = str_eq(model, "SPOT") ? CLOUD_SPOT : CLOUD_ON_DEMAND;
}

/* GPUs built into a machine type are listed as well, and are not part of its name. An accelerator
 * that belay does not support is added to the name as Google calls it, so that the name matches no
 * known type. */
static void read_type(struct json_reader *r, struct cloud_instance *i)
{
    read_link(r, "machineType", i->type, sizeof(i->type));
    const json_t *list = json_opt_array(r, "guestAccelerators", ITEMS_MAX);
    if (!catalogue_takes_gpus(i->type))
        return;
    for (size_t k = 0; r->rc == 0 && k < json_array_size(list); k++) {
        char name[CLOUD_NAME_MAX];
        struct json_reader one;
        json_reader_init(&one, json_array_get(list, k), "guestAccelerators", r->e);
        read_link(&one, "acceleratorType", name, sizeof(name));
        int64_t n = json_req_i64(&one, "acceleratorCount", 0, ITEMS_MAX);
        const struct catalogue_gpu *gpu = catalogue_gpu_find(name);
        if (one.rc == 0 && n > 0 &&
            !catalogue_attach(i->type, sizeof(i->type), n, gpu ? gpu->name : name))
            json_reader_fail(&one, "acceleratorType", "too long, with the machine type");
        r->rc = one.rc;
    }
}

static int read_instance(const json_t *object, struct cloud_instance *i, struct err *e)
{
    struct json_reader r;
    char name[CLOUD_NAME_MAX];
    *i = (struct cloud_instance){.launched_at = WALL_NONE, .ended_at = WALL_NONE};
    json_reader_init(&r, object, "", e);
    read_name(&r, "name", name, sizeof(name));
    read_link(&r, "zone", i->zone, sizeof(i->zone));
    read_type(&r, i);
    const char *status = json_req_str(&r, "status", 64);
    const char *created = json_opt_str(&r, "creationTimestamp", 64, "");
    read_labels(&r, i->cluster, i->token);
    read_market(&r, i);
    STR_COPY(i->reason, json_opt_str(&r, "statusMessage", TEXT_MAX, ""));
    i->state = state_of(status);
    i->launched_at = parse_time(created);
    /* that of a machine which is not belay's is only shown, and may be cut */
    if (snprintf(i->id, sizeof(i->id), "%s/%s", i->zone, name) >= (int)sizeof(i->id) && r.rc == 0 &&
        i->cluster[0])
        json_reader_fail(
            &r, "name", "zone and name together are longer than %d bytes", CLOUD_NAME_MAX - 2);
    return json_reader_finish_lenient(&r);
}

int gce_parse_instance(
    const char *body, size_t n, struct cloud_instance *ret_instance, struct err *e)
{
    struct cloud_instance i;
    json_t *root = NULL;
    int rc = json_parse(body, n, GCE_REPLY_MAX, &root, e);
    if (rc == 0)
        rc = read_instance(root, &i, e);
    if (rc == 0)
        *ret_instance = i;
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, "Compute Engine's instance");
}

/* ---- the listing ---- */

static int read_page(struct json_reader *r, char *page)
{
    json_opt_strcpy(r, "nextPageToken", page, GCE_PAGE_TOKEN_MAX + 1, "");
    return r->rc;
}

/* "This zone has no instances" is a warning; all others mean that the zone's content is unknown. */
static int check_warning(const json_t *scope, const char *zone, struct err *e)
{
    const json_t *warning = json_object_get(scope, "warning");
    const char *code = json_string_value(json_object_get(warning, "code"));
    if (!warning || str_eq(code, "NO_RESULTS_ON_PAGE"))
        return 0;
    return err_set(
        e, ERR_UNAVAILABLE, "%s could not be listed: %.64s", zone, code ? code : "no reason given");
}

static int read_zone(
    const json_t *scope, const char *zone, struct cloud_instances *list, struct err *e)
{
    int rc = check_warning(scope, zone, e);
    const json_t *instances = json_object_get(scope, "instances");
    if (rc == 0 && instances && !json_is_array(instances))
        rc = err_set(e, ERR_INVALID, "%s: expected a list of instances", zone);
    for (size_t k = 0; rc == 0 && k < json_array_size(instances); k++) {
        struct cloud_instance i;
        rc = read_instance(json_array_get(instances, k), &i, e);
        if (rc == 0 && !str_eq(i.zone, zone))
            rc = err_set(e, ERR_INVALID, "%s lists an instance of %s", zone, i.zone);
        if (rc == 0)
            rc = cloud_instances_add(list, &i, e);
    }
    return rc;
}

/* Zones that did not answer, as "projects/P/zones/Z". A warning without a zone may be about ours.
 */
static int check_unreachable(struct json_reader *r, const char *region, struct err *e)
{
    const json_t *list = json_opt_array(r, "unreachables", ITEMS_MAX);
    if (r->rc == 0 && json_array_size(list) == 0)
        return check_warning(r->object, "a part of the project", e);
    for (size_t i = 0; r->rc == 0 && i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        const char *zone = text ? last_segment(text) : "";
        if (gce_is_zone_of(zone, region) || str_eq(zone, region))
            return err_set(e, ERR_UNAVAILABLE, "%s could not be reached", zone);
    }
    return r->rc;
}

static int read_zones(
    struct json_reader *r, const char *region, struct cloud_instances *list, struct err *e)
{
    const json_t *items = json_opt_object(r, "items");
    const char *key;
    json_t *scope;
    int rc = r->rc;
    json_object_foreach((json_t *)items, key, scope)
    {
        const char *zone = last_segment(key);
        if (rc == 0 && gce_is_zone_of(zone, region))
            rc = read_zone(scope, zone, list, e);
    }
    return rc;
}

int gce_parse_list(const char *body, size_t n, const char *region, struct cloud_instances *list,
    char *page, struct err *e)
{
    struct json_reader r;
    json_t *root = NULL;
    int rc = json_parse(body, n, GCE_REPLY_MAX, &root, e);
    if (rc == 0) {
        json_reader_init(&r, root, "", e);
        rc = check_unreachable(&r, region, e);
        if (rc == 0)
            rc = read_zones(&r, region, list, e);
        if (rc == 0)
            rc = read_page(&r, page);
    }
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, "Compute Engine's listing");
}

/* ---- disks ---- */

/* Whether it is attached to nothing and neither being created nor deleted. */
static bool is_unattached_disk(struct json_reader *r)
{
    const json_t *users = json_opt_array(r, "users", ITEMS_MAX);
    return str_eq(json_req_str(r, "status", 64), "READY") && json_array_size(users) == 0;
}

/* where: the zone, or the region of a disk in several zones. */
static int read_disk(const json_t *object, const char *where, bool is_regional,
    struct cloud_volume *v, bool *ret_is_unattached, struct err *e)
{
    struct json_reader r;
    char type[CLOUD_NAME_MAX];
    *v = (struct cloud_volume){.since = WALL_NONE};
    json_reader_init(&r, object, "", e);
    json_req_strcpy(&r, "id", v->id, sizeof(v->id));
    read_name(&r, "name", v->name, CLOUD_NAME_MAX);
    read_link(&r, "type", type, sizeof(type));
    const char *size = json_req_str(&r, "sizeGb", 24);
    const char *made = json_opt_str(&r, "creationTimestamp", 64, ""),
               *detached = json_opt_str(&r, "lastDetachTimestamp", 64, "");
    read_labels(&r, v->cluster, v->token);
    *ret_is_unattached = is_unattached_disk(&r);
    if (r.rc == 0 && str_to_i64(size, 0, CLOUD_VOLUME_GIB_MAX, "sizeGb", &v->gib, NULL) != 0)
        json_reader_fail(&r, "sizeGb", "expected a number of at most %d", CLOUD_VOLUME_GIB_MAX);
    if (r.rc == 0 && snprintf(v->type, sizeof(v->type), "%s%s", is_regional ? "regional-" : "",
                         type) >= (int)sizeof(v->type))
        json_reader_fail(&r, "type", "longer than %d bytes", CLOUD_NAME_MAX - 1);
    STR_COPY(v->zone, where);
    v->since = parse_time(*detached ? detached : made);
    return json_reader_finish_lenient(&r);
}

static int read_disks(const json_t *scope, const char *where, const char *region,
    struct cloud_volumes *list, struct err *e)
{
    int rc = check_warning(scope, where, e);
    const json_t *disks = json_object_get(scope, "disks");
    if (rc == 0 && disks && !json_is_array(disks))
        rc = err_set(e, ERR_INVALID, "%s: expected a list of disks", where);
    for (size_t k = 0; rc == 0 && k < json_array_size(disks); k++) {
        struct cloud_volume v;
        bool is_unattached;
        rc = read_disk(
            json_array_get(disks, k), where, str_eq(where, region), &v, &is_unattached, e);
        if (rc == 0 && is_unattached)
            rc = cloud_volumes_add(list, &v, e);
    }
    return rc;
}

int gce_parse_disks(const char *body, size_t n, const char *region, struct cloud_volumes *list,
    char *page, struct err *e)
{
    struct json_reader r;
    json_t *root = NULL, *scope;
    const char *key;
    int rc = json_parse(body, n, GCE_REPLY_MAX, &root, e);
    if (rc == 0) {
        json_reader_init(&r, root, "", e);
        rc = check_unreachable(&r, region, e);
        const json_t *items = rc == 0 ? json_opt_object(&r, "items") : NULL;
        rc = rc == 0 ? r.rc : rc;
        json_object_foreach((json_t *)items, key, scope)
        {
            const char *where = last_segment(key);
            if (rc == 0 && (gce_is_zone_of(where, region) || str_eq(where, region)))
                rc = read_disks(scope, where, region, list, e);
        }
        if (rc == 0)
            rc = read_page(&r, page);
    }
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, "Compute Engine's list of disks");
}

/* ---- preemptions ---- */

static bool is_listed(const struct cloud_instances *list, const char *id)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->list[i].id, id))
            return true;
    return false;
}

static bool is_of_cluster(const char *name, const char *cluster)
{
    size_t n = strlen(cluster);
    return str_starts(name, "belay-") && strncmp(name + 6, cluster, n) == 0 && name[6 + n] == '-';
}

static int keep_preempted(struct cloud_instances *list, const char *cluster, const char *zone,
    const char *name, struct err *e)
{
    struct cloud_instance gone = {.market = CLOUD_SPOT,
        .state = CLOUD_GONE,
        .reclaimed = true,
        .launched_at = WALL_NONE,
        .ended_at = WALL_NONE,
        .reason = "preempted"};
    char its_zone[CLOUD_NAME_MAX], its_name[CLOUD_NAME_MAX];
    if (!is_of_cluster(name, cluster) ||
        snprintf(gone.id, sizeof(gone.id), "%s/%s", zone, name) >= (int)sizeof(gone.id) ||
        gce_split_id(gone.id, its_zone, its_name, NULL) != 0)
        return 0;
    if (is_listed(list, gone.id))
        return 0;
    STR_COPY(gone.token, name);
    STR_COPY(gone.cluster, cluster);
    STR_COPY(gone.zone, zone);
    return cloud_instances_add(list, &gone, e);
}

int gce_parse_preempted(const char *body, size_t n, const char *cluster, const char *zone,
    struct cloud_instances *list, char *page, struct err *e)
{
    struct json_reader r;
    json_t *root = NULL;
    int rc = json_parse(body, n, GCE_REPLY_MAX, &root, e);
    if (rc == 0) {
        json_reader_init(&r, root, "", e);
        const json_t *items = json_opt_array(&r, "items", ITEMS_MAX);
        for (size_t i = 0; r.rc == 0 && rc == 0 && i < json_array_size(items); i++) {
            const json_t *op = json_array_get(items, i);
            const char *type = json_string_value(json_object_get(op, "operationType"));
            const char *target = json_string_value(json_object_get(op, "targetLink"));
            if (target && str_eq(type, "compute.instances.preempted"))
                rc = keep_preempted(list, cluster, zone, last_segment(target), e);
        }
        if (rc == 0)
            rc = read_page(&r, page);
    }
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, "Compute Engine's list of operations");
}
