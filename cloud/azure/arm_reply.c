/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts ARM's replies to rows. See arm.h. A row that cannot be parsed fails the whole reply: an
 * incomplete listing would make an existing machine look gone.
 */
#include "base/json.h"
#include "base/str.h"
#include "cloud/azure/arm.h"
#include <math.h>
#include <string.h>

#define ITEMS_MAX 100000 /* on one page */
#define TEXT_MAX 1024
#define PRICE_MAX_USD 1000000.0

/* ---- pieces ---- */

static int open_reply(
    const char *body, size_t n, json_t **ret_root, struct json_reader *r, struct err *e)
{
    *ret_root = NULL;
    int rc = json_parse(body, n, ARM_REPLY_MAX, ret_root, e);
    if (rc == 0) {
        json_reader_init(r, *ret_root, "", e);
        rc = r->rc;
    }
    return rc;
}

/* A reader of one member; its first error becomes the parent's. */
static void open_member(
    struct json_reader *parent, const json_t *object, const char *path, struct json_reader *r)
{
    json_reader_init(r, object, path, parent->rc ? NULL : parent->e);
}

static void close_member(struct json_reader *parent, struct json_reader *r)
{
    int rc = json_reader_finish_lenient(r);
    parent->rc = parent->rc ? parent->rc : rc;
}

static int close_reply(json_t *root, int rc, struct err *e)
{
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, "Azure's reply");
}

/* "East US" in one place is "eastus" in another. */
static bool same_region(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == ' ')
            a++;
        while (*b == ' ')
            b++;
        if (strncasecmp(a, b, 1) != 0)
            return false;
        if (!*a)
            return true;
    }
}

static void read_tag(
    struct json_reader *r, const json_t *value, const char *key, char *dst, size_t size)
{
    if (!json_is_string(value) || json_string_length(value) >= size ||
        strlen(json_string_value(value)) != json_string_length(value))
        json_reader_fail(r, key, "expected a text of at most %zu bytes", size - 1);
    else
        str_copy(dst, size, json_string_value(value));
}

/* Names of tags are case-insensitive, as in Azure. */
static void read_tags(
    struct json_reader *r, char cluster[CLOUD_NAME_MAX], char token[CLOUD_TOKEN_MAX])
{
    const json_t *tags = json_opt_object(r, "tags"), *value;
    const char *key;
    json_object_foreach((json_t *)tags, key, value)
    {
        if (strcasecmp(key, ARM_TAG_CLUSTER) == 0)
            read_tag(r, value, "tags.belay:cluster", cluster, CLOUD_NAME_MAX);
        else if (strcasecmp(key, ARM_TAG_INSTANCE) == 0)
            read_tag(r, value, "tags.belay:instance", token, CLOUD_TOKEN_MAX);
    }
}

/* For a code like "PowerState/running": the text after the slash, or NULL if it is of another kind.
 */
static const char *status_of(const char *code, const char *kind)
{
    size_t n = strlen(kind);
    return strncasecmp(code, kind, n) == 0 && code[n] == '/' ? code + n + 1 : NULL;
}

/* ---- machines ---- */

/* "": the operation that creates it has not ended. */
static enum cloud_state state_of_provisioning(const char *state)
{
    if (strcasecmp(state, "Creating") == 0 || !*state)
        return CLOUD_PENDING;
    if (strcasecmp(state, "Deleting") == 0 || strcasecmp(state, "Failed") == 0 ||
        strcasecmp(state, "Canceled") == 0)
        return CLOUD_STOPPING;
    return CLOUD_RUNNING;
}

/* A machine's power state is newer than the outcome of its last operation. */
static void apply_power(struct cloud_instance *i, const char *power)
{
    if (strcasecmp(power, "running") == 0 && i->state == CLOUD_STOPPING &&
        str_starts(i->reason, "Failed")) {
        i->state = CLOUD_RUNNING; /* a later operation failed, but the machine works */
        i->reason[0] = '\0';
    } else if (strcasecmp(power, "deallocated") == 0 || strcasecmp(power, "deallocating") == 0) {
        i->state = CLOUD_STOPPING;
        i->reclaimed = i->market == CLOUD_SPOT;
        snprintf(i->reason, sizeof(i->reason), "%s by Azure", power);
    } else if (strcasecmp(power, "stopped") == 0 || strcasecmp(power, "stopping") == 0) {
        i->state = CLOUD_STOPPING;
        snprintf(i->reason, sizeof(i->reason), "%s; billed until it is deleted", power);
    }
}

/* The statuses of an instance view. The reason of a failure is in the last part of the code or in
 * the message. */
static void read_statuses(struct json_reader *view, struct cloud_instance *i)
{
    const json_t *statuses = json_opt_array(view, "statuses", 64), *item;
    size_t k;
    json_array_foreach((json_t *)statuses, k, item)
    {
        struct json_reader r;
        open_member(view, item, "instanceView.statuses", &r);
        const char *code = json_req_str(&r, "code", TEXT_MAX);
        const char *power = code ? status_of(code, "PowerState") : NULL;
        if (power)
            apply_power(i, power);
        close_member(view, &r);
    }
}

static void read_instance_view(struct json_reader *properties, struct cloud_instance *i)
{
    const json_t *view = json_opt_object(properties, "instanceView");
    struct json_reader r;
    if (!view)
        return;
    open_member(properties, view, "properties.instanceView", &r);
    read_statuses(&r, i);
    close_member(properties, &r);
}

static void read_properties(struct json_reader *vm, struct cloud_instance *i)
{
    struct json_reader r, hardware;
    const json_t *object = json_req_object(vm, "properties");
    open_member(vm, object, "properties", &r);
    object = json_req_object(&r, "hardwareProfile");
    open_member(&r, object, "properties.hardwareProfile", &hardware);
    json_req_strcpy(&hardware, "vmSize", i->type, sizeof(i->type));
    close_member(&r, &hardware);
    const char *state = json_opt_str(&r, "provisioningState", TEXT_MAX, "");
    const char *priority = json_opt_str(&r, "priority", TEXT_MAX, "");
    const char *created = json_opt_str(&r, "timeCreated", TEXT_MAX, NULL);
    i->market = strcasecmp(priority, "Spot") == 0 || strcasecmp(priority, "Low") == 0
                    ? CLOUD_SPOT
                    : CLOUD_ON_DEMAND;
    i->state = state_of_provisioning(state);
    if (i->state == CLOUD_STOPPING)
        snprintf(i->reason, sizeof(i->reason), "%.64s", state);
    if (created && time_parse_iso(created, &i->launched_at, NULL) != 0)
        json_reader_fail(&r, "timeCreated", "expected a time");
    read_instance_view(&r, i);
    close_member(vm, &r);
}

/* "1" from zones; a machine without a zone has its region instead. */
static void read_zone(struct json_reader *vm, const char *location, char zone[CLOUD_NAME_MAX])
{
    const json_t *zones = json_opt_array(vm, "zones", 16);
    const json_t *first = json_array_get(zones, 0);
    if (!first)
        str_copy(zone, CLOUD_NAME_MAX, location ? location : "");
    else
        read_tag(vm, first, "zones", zone, CLOUD_NAME_MAX);
}

static int read_vm(
    const json_t *item, struct cloud_instance *i, const char **ret_location, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, item, "virtualMachine", e);
    *i = (struct cloud_instance){.launched_at = WALL_NONE, .ended_at = WALL_NONE};
    json_req_strcpy(&r, "name", i->id, sizeof(i->id));
    *ret_location = json_req_str(&r, "location", TEXT_MAX);
    read_tags(&r, i->cluster, i->token);
    read_zone(&r, *ret_location, i->zone);
    read_properties(&r, i);
    int rc = json_reader_finish_lenient(&r);
    if (rc == 0 && !i->id[0])
        rc = err_set(e, ERR_INVALID, "a virtual machine without a name");
    return rc;
}

int arm_parse_vm(const char *body, size_t n, struct cloud_instance *ret_instance, struct err *e)
{
    json_t *root;
    struct json_reader r;
    struct cloud_instance i;
    const char *location;
    int rc = open_reply(body, n, &root, &r, e);
    if (rc == 0)
        rc = read_vm(root, &i, &location, e);
    if (rc == 0)
        *ret_instance = i;
    return close_reply(root, rc, e);
}

/* ---- operations ---- */

static bool is_failure(const char *state)
{
    return strcasecmp(state, "Failed") == 0 || strcasecmp(state, "Canceled") == 0;
}

/* The reason of a failure is in a status like "ProvisioningState/failed/AllocationFailed". */
static int failure_in_view(const json_t *properties, const char *state, struct err *e)
{
    const json_t *view = json_object_get(properties, "instanceView"), *item;
    size_t k;
    json_array_foreach(json_object_get(view, "statuses"), k, item)
    {
        const char *code = json_string_value(json_object_get(item, "code"));
        const char *message = json_string_value(json_object_get(item, "message"));
        const char *rest = code ? status_of(code, "ProvisioningState") : NULL;
        const char *cause = rest ? status_of(rest, "failed") : NULL;
        if (cause && *cause)
            return arm_refusal(cause, message ? message : "", e);
    }
    return err_set(e, ERR_UNAVAILABLE, "Azure gives no reason, only the state \"%s\"", state);
}

int arm_parse_progress(const char *body, size_t n, bool *ret_done, struct err *e)
{
    json_t *root;
    struct json_reader r, properties;
    const char *state = "";
    int rc = open_reply(body, n, &root, &r, e);
    if (rc == 0) {
        const json_t *object = json_req_object(&r, "properties");
        open_member(&r, object, "properties", &properties);
        state = json_opt_str(&properties, "provisioningState", 64, "");
        close_member(&r, &properties);
        rc = json_reader_finish_lenient(&r);
    }
    bool failed = rc == 0 && is_failure(state);
    if (failed)
        rc = failure_in_view(properties.object, state, e);
    else if (rc == 0)
        *ret_done = strcasecmp(state, "Succeeded") == 0;
    if (!failed)
        return close_reply(root, rc, e);
    json_decref(root);
    return rc;
}

int arm_parse_operation(const char *body, size_t n, bool *ret_done, struct err *e)
{
    json_t *root;
    struct json_reader r;
    enum arm_remedy remedy;
    char state[64] = "";
    bool has_error = false;
    int rc = open_reply(body, n, &root, &r, e);
    if (rc == 0) {
        json_req_strcpy(&r, "status", state, sizeof(state));
        has_error = json_is_object(json_object_get(root, "error"));
        rc = json_reader_finish_lenient(&r);
    }
    rc = close_reply(root, rc, e);
    if (rc != 0)
        return rc;
    if (is_failure(state))
        return has_error ? arm_parse_error(500, body, n, &remedy, e)
                         : err_set(e, ERR_UNAVAILABLE,
                               "Azure gives no reason, only the state \"%s\"", state);
    *ret_done = strcasecmp(state, "Succeeded") == 0;
    return 0;
}

/* ---- consoles ---- */

int arm_parse_console(
    const char *body, size_t n, const char *endpoint, char *ret_url, struct err *e)
{
    json_t *root = NULL;
    int rc = json_parse(body, n, ARM_REPLY_MAX, &root, e);
    const json_t *found = json_object_get(root, "serialConsoleLogBlobUri");
    const char *url = json_is_null(found) || !found ? "" : json_string_value(found);
    if (rc == 0 &&
        (!json_is_object(root) || !url)) /* not with a reader, whose errors quote the value */
        rc = err_set(e, ERR_INVALID, "expected an object with a text serialConsoleLogBlobUri");
    if (rc == 0 && url[0] && !arm_url_is_blob(url, endpoint))
        rc = err_set(
            e, ERR_INVALID, "serialConsoleLogBlobUri: not at a host of Azure's blob storage");
    if (rc == 0)
        str_copy(ret_url, ARM_URL_MAX + 1, url);
    return close_reply(root, rc, e);
}

/* ---- listings ---- */

/* Calls `each` for the items of a page. */
static int parse_page(const char *body, size_t n, const char *items_key, const char *next_key,
    char *next, int (*each)(void *ctx, const json_t *item, struct err *e), void *ctx, struct err *e)
{
    json_t *root, *item;
    struct json_reader r;
    size_t k;
    char link[ARM_URL_MAX + 1] = "";
    int rc = open_reply(body, n, &root, &r, e);
    if (rc == 0) {
        const json_t *items = json_req_array(&r, items_key, ITEMS_MAX);
        json_opt_strcpy(&r, next_key, link, sizeof(link), "");
        rc = json_reader_finish_lenient(&r);
        json_array_foreach((json_t *)items, k, item)
        {
            if (rc != 0)
                break;
            rc = each(ctx, item, e);
        }
    }
    if (rc == 0)
        str_copy(next, ARM_URL_MAX + 1, link);
    return close_reply(root, rc, e);
}

struct listing {
    const char *region;
    /* "/subscriptions/S/resourceGroups/G/": only resources below it are listed */
    const char *group;
    struct cloud_instances *list;
    bool all; /* also those without a cluster */
};

static int keep_vm(void *ctx, const json_t *item, struct err *e)
{
    struct listing *l = ctx;
    struct cloud_instance i;
    const char *location;
    /* another owner's machine in the group may have any form */
    const json_t *tags = json_object_get(item, "tags"), *value;
    const char *key;
    bool ours = false;
    json_object_foreach((json_t *)tags, key, value)
    {
        ours = ours || strcasecmp(key, ARM_TAG_CLUSTER) == 0;
    }
    if (json_is_object(item) && !ours && !l->all)
        return 0;
    int rc = read_vm(item, &i, &location, e);
    if (rc != 0 && json_is_object(item) && !ours)
        return 0;
    if (rc == 0 && same_region(location, l->region))
        rc = cloud_instances_add(l->list, &i, e);
    return rc;
}

int arm_parse_vms(const char *body, size_t n, const char *region, bool all,
    struct cloud_instances *list, char *next, struct err *e)
{
    struct listing l = {region, "", list, all};
    return parse_page(body, n, "value", "nextLink", next, keep_vm, &l, e);
}

static int keep_leftover(void *ctx, const json_t *item, struct err *e)
{
    struct listing *l = ctx;
    struct json_reader r;
    struct cloud_instance i = {
        .launched_at = WALL_NONE, .ended_at = WALL_NONE, .state = CLOUD_STOPPING};
    json_reader_init(&r, item, "resource", e);
    const char *id = json_req_str(&r, "id", TEXT_MAX);
    const char *type = json_req_str(&r, "type", TEXT_MAX);
    const char *name = json_req_str(&r, "name", TEXT_MAX);
    const char *location = json_opt_str(&r, "location", TEXT_MAX, "");
    read_tags(&r, i.cluster, i.token);
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0)
        return rc;
    bool nic = strcasecmp(type, "Microsoft.Network/networkInterfaces") == 0;
    bool disk = strcasecmp(type, "Microsoft.Compute/disks") == 0;
    /* Tagged by another owner, or later: only resources with our naming scheme can be identified
     * and deleted. */
    if ((!nic && !disk) || !same_region(location, l->region) ||
        strncasecmp(id, l->group, strlen(l->group)) != 0 ||
        arm_part_of(name) != (nic ? ARM_NIC : ARM_DISK) || !STR_COPY(i.id, name))
        return 0;
    i.token[0] = '\0'; /* the token is the machine's */
    STR_COPY(i.zone, location);
    snprintf(i.reason, sizeof(i.reason), "a %s whose machine is gone",
        nic ? "network interface" : "disk");
    return cloud_instances_add(l->list, &i, e);
}

int arm_parse_tagged(const char *body, size_t n, const struct azure_machine *m, const char *region,
    struct cloud_instances *list, char *next, struct err *e)
{
    char group[512];
    struct listing l = {region, group, list};
    snprintf(group, sizeof(group), "/subscriptions/%s/resourceGroups/%s/", m->subscription,
        m->resource_group);
    return parse_page(body, n, "value", "nextLink", next, keep_leftover, &l, e);
}

static struct cloud_instance *find(struct cloud_instances *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcasecmp(list->list[i].id, name) == 0)
            return &list->list[i];
    return NULL;
}

static int apply_vm_power(void *ctx, const json_t *item, struct err *e)
{
    struct listing *l = ctx;
    struct json_reader r, properties;
    json_reader_init(&r, item, "virtualMachine", e);
    const char *name = json_req_str(&r, "name", TEXT_MAX);
    const json_t *object = json_opt_object(&r, "properties");
    int rc = json_reader_finish_lenient(&r);
    struct cloud_instance *i = rc == 0 ? find(l->list, name) : NULL;
    if (rc != 0 || !i || !object)
        return rc;
    json_reader_init(&properties, object, "properties", e);
    read_instance_view(&properties, i);
    return json_reader_finish_lenient(&properties);
}

int arm_parse_power(
    const char *body, size_t n, struct cloud_instances *list, char *next, struct err *e)
{
    struct listing l = {"", "", list};
    return parse_page(body, n, "value", "nextLink", next, apply_vm_power, &l, e);
}

/* ---- disks ---- */

struct disk_listing {
    const char *region;
    struct cloud_volumes *list;
};

/* "/subscriptions/S/resourceGroups/G/providers/.../NAME" becomes G/NAME. */
static void name_disk(
    struct json_reader *r, const char *id, const char *name, struct cloud_volume *v)
{
    static const char before[] = "/resourceGroups/";
    const char *group = id ? strcasestr(id, before) : NULL;
    group = group ? group + strlen(before) : "";
    int n = snprintf(
        v->name, sizeof(v->name), "%.*s/%s", (int)strcspn(group, "/"), group, name ? name : "");
    if (r->rc == 0 && (!*group || n >= (int)sizeof(v->name)))
        json_reader_fail(
            r, "id", "expected a disk id: /subscriptions/.../resourceGroups/GROUP/.../NAME");
}

static void read_disk_time(struct json_reader *properties, const char *key, struct wall *at)
{
    const char *text = json_opt_str(properties, key, TEXT_MAX, NULL);
    if (text && time_parse_iso(text, at, NULL) != 0)
        json_reader_fail(properties, key, "expected a time");
}

static void read_disk_properties(
    struct json_reader *disk, struct cloud_volume *v, bool *ret_unattached)
{
    struct json_reader r, sku;
    const json_t *object = json_req_object(disk, "properties"),
                 *kind = json_req_object(disk, "sku");
    open_member(disk, kind, "sku", &sku);
    json_req_strcpy(&sku, "name", v->type, sizeof(v->type));
    close_member(disk, &sku);
    open_member(disk, object, "properties", &r);
    json_req_strcpy(&r, "uniqueId", v->id, sizeof(v->id));
    v->gib = json_req_i64(&r, "diskSizeGB", 0, CLOUD_VOLUME_GIB_MAX);
    const char *state = json_opt_str(&r, "diskState", TEXT_MAX, "");
    *ret_unattached = strcasecmp(state, "Unattached") == 0;
    read_disk_time(&r, "timeCreated", &v->since);
    read_disk_time(&r, "LastOwnershipUpdateTime", &v->since);
    close_member(disk, &r);
}

static int keep_disk(void *ctx, const json_t *item, struct err *e)
{
    struct disk_listing *l = ctx;
    struct json_reader r;
    struct cloud_volume v = {.since = WALL_NONE};
    bool unattached = false;
    json_reader_init(&r, item, "disk", e);
    const char *name = json_req_str(&r, "name", TEXT_MAX),
               *location = json_req_str(&r, "location", TEXT_MAX);
    const char *owner = json_opt_str(&r, "managedBy", TEXT_MAX, "");
    const json_t *owners = json_opt_array(&r, "managedByExtended", ITEMS_MAX);
    name_disk(&r, json_req_str(&r, "id", TEXT_MAX), name, &v);
    read_tags(&r, v.cluster, v.token);
    read_zone(&r, location, v.zone);
    read_disk_properties(&r, &v, &unattached);
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0 || !unattached || *owner || json_array_size(owners) > 0 ||
        !same_region(location, l->region))
        return rc;
    return cloud_volumes_add(l->list, &v, e);
}

int arm_parse_disks(const char *body, size_t n, const char *region, struct cloud_volumes *list,
    char *next, struct err *e)
{
    struct disk_listing l = {region, list};
    return parse_page(body, n, "value", "nextLink", next, keep_disk, &l, e);
}

/* ---- prices ---- */

struct pricing {
    const char *region, *type;
    struct cloud_prices *list;
};

/* Whether it is another product under the same name: Windows, dedicated hosts, the predecessor of
 * spot. */
static bool is_other(const char *product, const char *meter, const char *unit, const char *kind)
{
    return strstr(product, "Windows") || strstr(product, "Dedicated") ||
           strstr(meter, "Low Priority") || !str_eq(unit, "1 Hour") || !str_eq(kind, "Consumption");
}

static int keep_price(void *ctx, const json_t *item, struct err *e)
{
    struct pricing *p = ctx;
    struct json_reader r;
    struct cloud_price row = {0};
    json_reader_init(&r, item, "Items", e);
    const char *type = json_opt_str(&r, "armSkuName", TEXT_MAX, "");
    const char *region = json_opt_str(&r, "armRegionName", TEXT_MAX, "");
    const char *product = json_req_str(&r, "productName", TEXT_MAX);
    const char *meter = json_req_str(&r, "meterName", TEXT_MAX);
    const char *sku = json_opt_str(&r, "skuName", TEXT_MAX, "");
    const char *unit = json_req_str(&r, "unitOfMeasure", TEXT_MAX);
    const char *kind = json_opt_str(&r, "type", TEXT_MAX, "Consumption");
    const char *currency = json_opt_str(&r, "currencyCode", TEXT_MAX, "USD");
    const char *since = json_req_str(&r, "effectiveStartDate", TEXT_MAX);
    const json_t *price = json_object_get(item, "retailPrice");
    if (!json_is_number(price) || !(json_number_value(price) >= 0) ||
        json_number_value(price) > PRICE_MAX_USD)
        json_reader_fail(
            &r, "retailPrice", "expected a number of dollars, 0 .. %.0f", PRICE_MAX_USD);
    if (since && time_parse_iso(since, &row.since, NULL) != 0)
        json_reader_fail(&r, "effectiveStartDate", "expected a time");
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0)
        return rc;
    row.uusd_h = llround(json_number_value(price) * 1e6);
    row.market = strstr(meter, "Spot") || strstr(sku, "Spot") ? CLOUD_SPOT : CLOUD_ON_DEMAND;
    if (row.uusd_h == 0 || is_other(product, meter, unit, kind) || !str_eq(currency, "USD") ||
        !same_region(region, p->region) || !str_eq(type, p->type) || !STR_COPY(row.type, type))
        return 0;
    return cloud_prices_keep(p->list, &row, e);
}

int arm_parse_prices(const char *body, size_t n, const char *region, const char *type,
    struct cloud_prices *list, char *next, struct err *e)
{
    struct pricing p = {region, type, list};
    return parse_page(body, n, "Items", "NextPageLink", next, keep_price, &p, e);
}
