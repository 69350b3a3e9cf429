/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls on virtual machines: PUT, DELETE, simulateEviction.
 *
 * Lack of capacity is reported in two ways, as in Azure. A size that its zone does not have at all
 * (a pool with capacity 0) is refused at once with SkuNotAvailable, and nothing is created. A pool
 * that is merely full is found when the machine is placed: the create is accepted, and its
 * operation fails after the time a machine takes to boot.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/sigv4.h"
#include "cloud/catalogue.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARKED                                                                                     \
    "since the VM is marked for deletion. You can only retry the Delete operation (or wait for "   \
    "an ongoing "                                                                                  \
    "one to complete)."

/* ---- The request ---- */

static json_t *object_at(json_t *v, const char *path)
{
    return (json_t *)arm_at(v, path);
}

/* The body without its secrets: custom data as its hash, so that a repeated call is recognised. */
static json_t *make_request(const struct arm_call *c)
{
    json_t *request = json_deep_copy(c->body), *os = object_at(request, "properties.osProfile");
    const char *data = json_string_value(json_object_get(os, "customData"));
    if (data) {
        char hash[SIGV4_HEX_MAX];
        sigv4_sha256_hex(data, strlen(data), hash);
        json_object_set_new(os, "customData", json_string(hash));
    }
    json_object_del(os, "adminPassword");
    return request;
}

/* Members that may change on an existing machine, or do not matter. */
static const char *const free_keys[] = {"tags", "identity", "userData", "provisioningState", "vmId",
    "instanceView", "timeCreated", "id", "name", "type", "etag", NULL};

/* May change on an existing machine; the new value is kept. */
#define DIAGNOSTICS "diagnosticsProfile"

static bool is_free(const char *key)
{
    if (str_eq(key, DIAGNOSTICS))
        return true;
    for (size_t i = 0; free_keys[i]; i++)
        if (str_eq(free_keys[i], key))
            return true;
    return false;
}

/* Whether every value in `next` was requested at creation or is present. If not, *ret_key names one
 * that is neither. */
static bool is_same(
    const json_t *next, const json_t *request, const json_t *there, const char **ret_key)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)next, key, value)
    {
        json_t *a = json_object_get(request, key), *b = json_object_get(there, key);
        bool is_ok =
            is_free(key) || json_is_null(value) || json_equal(value, a) || json_equal(value, b);
        if (is_ok)
            continue;
        if (!json_is_object(value) || !is_same(value, a, b, ret_key)) {
            *ret_key = json_is_object(value) ? *ret_key : key;
            return false;
        }
    }
    return true;
}

/* ---- Creating ---- */

static void set_ref(json_t *o, const char *key, const struct arm *a, const struct arm_resource *v)
{
    struct buf id = {0};
    arm_resource_id(a, v, &id);
    json_object_set_new(o, key, json_text(buf_str(&id)));
    buf_deinit(&id);
}

static json_t *make_located(const struct arm *a)
{
    json_t *o = json_object();
    json_object_set_new(o, "location", json_string(a->region->o->name));
    return o;
}

static void make_nic(struct arm_call *c, struct arm_resource *vm, bool keeps)
{
    struct arm *a = c->arm;
    json_t *network = object_at(vm->body, "properties.networkProfile");
    const json_t *params = json_array_get(arm_at(network, "networkInterfaceConfigurations"), 0);
    const json_t *tags =
        arm_at(params, "tags") ? arm_at(params, "tags") : arm_at(params, "properties.tags");
    char name[ARM_RESOURCE_NAME_MAX];
    snprintf(name, sizeof(name), "%.70s-%08x", arm_str_at(params, "name", "nic"),
        (unsigned)(prng_u64(&a->region->ids) >> 32));
    json_t *body = make_located(a), *properties = json_object();
    if (tags)
        json_object_set_new(body, "tags", json_deep_copy(tags));
    json_object_set_new(properties, "ipConfigurations",
        json_deep_copy(arm_at(params, "properties.ipConfigurations")));
    json_object_set_new(body, "properties", properties);
    struct arm_resource *nic = arm_add(a, ARM_KIND_NIC, c->group, name, body, c->now);
    nic->owner = vm;
    nic->is_deleted_with_owner = !keeps;

    json_t *list = json_array(), *ref = json_object(), *option = json_object();
    set_ref(ref, "id", a, nic);
    json_object_set_new(option, "primary", json_true());
    json_object_set_new(option, "deleteOption", json_string(keeps ? "Detach" : "Delete"));
    json_object_set_new(ref, "properties", option);
    json_array_append_new(list, ref);
    json_object_clear(network);
    json_object_set_new(network, "networkInterfaces", list);
}

/* An implicit disk carries the tags of its machine. */
static void make_disk(struct arm_call *c, struct arm_resource *vm, bool keeps)
{
    struct arm *a = c->arm;
    json_t *params = object_at(vm->body, "properties.storageProfile.osDisk");
    json_t *body = make_located(a), *properties = json_object(), *sku = json_object(),
           *managed = json_object();
    const json_t *tags = arm_at(vm->body, "tags"), *zones = arm_at(vm->body, "zones");
    char name[ARM_RESOURCE_NAME_MAX];
    if (!STR_COPY(name, arm_str_at(params, "name", "")) || !name[0])
        snprintf(name, sizeof(name), "%.40s_OsDisk_1_%016llx%08x", vm->name,
            (unsigned long long)prng_u64(&a->region->ids),
            (unsigned)(prng_u64(&a->region->ids) >> 32));
    const char *type = arm_str_at(params, "managedDisk.storageAccountType", "Premium_LRS");
    const json_t *size = arm_at(params, "diskSizeGB");
    json_object_set_new(sku, "name", json_text(type));
    json_object_set_new(body, "sku", sku);
    if (tags)
        json_object_set_new(body, "tags", json_deep_copy(tags));
    if (zones)
        json_object_set_new(body, "zones", json_deep_copy(zones));
    json_object_set_new(properties, "osType", json_string("Linux"));
    json_object_set_new(properties, "diskSizeGB", size ? json_deep_copy(size) : json_integer(30));
    json_object_set_new(body, "properties", properties);
    struct arm_resource *disk = arm_add(a, ARM_KIND_DISK, c->group, name, body, c->now);
    disk->owner = vm;
    disk->is_deleted_with_owner = !keeps;

    json_object_set_new(managed, "storageAccountType", json_text(type));
    set_ref(managed, "id", a, disk);
    json_object_set_new(params, "osType", json_string("Linux"));
    json_object_set_new(params, "name", json_text(name));
    json_object_set_new(params, "deleteOption", json_string(keeps ? "Detach" : "Delete"));
    json_object_set_new(params, "managedDisk", managed);
}

static void set_identity(struct arm_call *c, struct arm_resource *vm)
{
    const char *type = arm_str_at(c->body, "identity.type", "None");
    vm->has_identity = !str_eq(type, "None");
    if (vm->has_identity && !vm->client_id[0])
        arm_make_uuid(&c->arm->region->ids, vm->client_id);
}

static struct arm_resource *make_vm(struct arm_call *c, struct arm_vm_params *w)
{
    json_t *body = json_deep_copy(c->body), *properties = object_at(body, "properties");
    json_t *os = object_at(properties, "osProfile");
    static const char *const ours[] = {"id", "name", "type", "etag", NULL};
    for (size_t i = 0; ours[i]; i++)
        json_object_del(body, ours[i]);
    for (size_t i = 0; free_keys[i]; i++)
        json_object_del(properties, free_keys[i]);
    json_object_del(os, "customData");
    json_object_del(os, "adminPassword");
    if (w->spec.market == CLOUD_SPOT && !arm_at(properties, "evictionPolicy"))
        json_object_set_new(properties, "evictionPolicy", json_string("Deallocate"));
    struct arm_resource *vm = arm_add(c->arm, ARM_KIND_VM, c->group, c->name, body, c->now);
    vm->request = make_request(c);
    vm->user_data = w->user_data;
    w->user_data = (struct buf){0};
    set_identity(c, vm);
    make_disk(c, vm, w->keeps_disk);
    if (w->nic) {
        w->nic->owner = vm;
        w->nic->is_deleted_with_owner = !w->keeps_nic;
    } else {
        make_nic(c, vm, w->keeps_nic);
    }
    return vm;
}

/* ---- Placement ---- */

int64_t arm_cores_of(const char *type)
{
    struct catalogue_type known;
    int64_t n = 0;
    if (catalogue_find("azure", type, &known, NULL) == 0)
        return known.vcpus;
    while (*type && (*type < '0' || *type > '9'))
        type++;
    for (; *type >= '0' && *type <= '9' && n < 10000; type++)
        n = n * 10 + (*type - '0');
    return n > 0 ? n : 1;
}

static int check_cores(struct arm_call *c, const struct launch_spec *s)
{
    int64_t limit = c->arm->account->spot_cores, used = 0, more = arm_cores_of(s->type);
    if (limit == 0 || s->market != CLOUD_SPOT)
        return 0;
    LIST_FOREACH (&c->arm->region->alive, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, alive);
        if (i->reservation->spec.market == CLOUD_SPOT)
            used += arm_cores_of(i->pool->type);
    }
    if (used + more <= limit)
        return 0;
    return arm_fail(c, "OperationNotAllowed",
        "Operation could not be completed as it results in exceeding approved LowPriorityCores "
        "quota. Additional details - Deployment Model: Resource Manager, Location: %s, Current "
        "Limit: %lld, Current Usage: "
        "%lld, "
        "Additional Required: %lld, (Minimum) New Limit Required: %lld.",
        c->arm->region->o->name, (long long)limit, (long long)used, (long long)more,
        (long long)(used + more));
}

static int refuse_size(struct arm_call *c, const struct launch_spec *s)
{
    return arm_fail(c, "SkuNotAvailable",
        "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: "
        "%s' is currently not available in location '%s'. Please try another size or deploy to a "
        "different location or different "
        "zone. See https://aka.ms/azureskunotavailable for details.",
        s->type, c->arm->region->o->name);
}

static int check_market(struct arm_call *c, const struct launch_spec *s)
{
    const struct market_pool *p =
        market_find(&c->arm->region->market, s->zone[0] ? s->zone : NULL, s->type, s->market);
    if (!p || p->capacity[s->market] == 0)
        return refuse_size(c, s);
    int64_t price = p->price_uusd_h[CLOUD_SPOT];
    if (s->max_price_uusd_h > 0 && s->max_price_uusd_h < price)
        return arm_fail(c, "SpotPriceGreaterThanProvidedMaxPrice",
            "Unable to perform operation 'Create VM' since the provided max price '%.5f USD' is "
            "lower than the current spot price '%.5f USD' for Azure Spot VM size '%s'. For more "
            "information, see http://aka.ms/AzureSpot/errormessages",
            (double)s->max_price_uusd_h / 1e6, (double)price / 1e6, s->type);
    if (c->arm->n_resources + 3 > ARM_RESOURCES_MAX)
        return arm_fail(
            c, "QuotaExceeded", "A subscription may have at most %d resources.", ARM_RESOURCES_MAX);
    return check_cores(c, s);
}

/* Places the machine. fails_with is the code the operation will fail with; "" for success, with
 * *ret_instance. -1 if refused at once. */
static int place(struct arm_call *c, struct arm_vm_params *w, char fails_with[64],
    struct instance **ret_instance)
{
    struct region *r = c->arm->region;
    struct reservation *v;
    struct fault fault;
    struct err e;
    fails_with[0] = '\0';
    if (check_market(c, &w->spec) < 0) {
        r->counts.refusals++;
        return -1;
    }
    if (faults_take(&r->faults, FAULT_REFUSE, ARM_ACTION_LATER, &fault)) {
        r->counts.refusals++;
        str_copy(fails_with, 64, fault.code);
        return 0;
    }
    int rc = region_launch(r, &w->spec, "", "", 1, 1, c->now, &v, &e);
    if (rc == 0)
        *ret_instance = v->instances[0];
    else if (rc == ERR_QUOTA)
        return arm_fail(c, "QuotaExceeded",
            "Operation could not be completed as it results in exceeding approved quota: %s",
            e.text);
    else
        str_copy(fails_with, 64, w->has_zone ? "ZonalAllocationFailed" : "AllocationFailed");
    return 0;
}

static void start_create(
    struct arm_call *c, struct arm_resource *vm, const char *fails_with, struct instance *i)
{
    vm->state = ARM_CREATING;
    vm->instance = i;
    vm->operation = arm_start_operation(c->arm, false, c->now);
    if (!i) {
        STR_COPY(vm->fails_with, fails_with);
        vm->fails_at = (struct wall){c->now.ms + c->arm->region->o->boot_delay_ms};
    }
}

static int reply_vm(
    struct arm_call *c, const struct arm_resource *vm, int status, const struct arm_operation *op)
{
    c->reply->status = status;
    c->reply->body = arm_show(c->arm, vm, false);
    if (op)
        arm_add_operation_headers(c, op);
    return 0;
}

/* Azure reserves the interface for the machine that it has just refused. */
static void reserve(const struct arm_call *c, struct arm_resource *nic)
{
    if (c->arm->account->nic_reserved_ms == 0)
        return;
    nic->reserved_until = (struct wall){c->now.ms + c->arm->account->nic_reserved_ms};
    STR_COPY(nic->reserved_for, c->name);
}

static int create(struct arm_call *c, struct arm_resource *failed)
{
    struct arm_vm_params w = {0};
    char fails_with[64];
    struct instance *i = NULL;
    c->arm->region->counts.launch_calls++;
    int rc = arm_read_vm_params(c, &w);
    if (rc == 0 && (rc = place(c, &w, fails_with, &i)) < 0 && w.nic && !failed)
        reserve(c, w.nic);
    if (rc == 0) {
        struct arm_resource *vm = failed ? failed : make_vm(c, &w);
        start_create(c, vm, fails_with, i);
        reply_vm(c, vm, 201, vm->operation);
    }
    arm_vm_params_deinit(&w);
    return rc;
}

/* ---- PUT on an existing machine ---- */

static int check_update(struct arm_call *c, const struct arm_resource *vm)
{
    const char *key = "";
    if (arm_check_location(c) < 0 || arm_check_tags(c, arm_at(c->body, "tags")) < 0)
        return -1;
    json_t *next = make_request(c);
    bool is_ok = is_same(next, vm->request, vm->body, &key);
    int rc = is_ok ? 0
                   : arm_fail(c, "PropertyChangeNotAllowed",
                         "Changing property '%.60s' is not allowed.", key);
    json_decref(next);
    return rc;
}

static int update(struct arm_call *c, struct arm_resource *vm)
{
    const json_t *tags = arm_at(c->body, "tags");
    if (check_update(c, vm) < 0)
        return -1;
    if (vm->state == ARM_FAILED)
        return create(c, vm);
    if (vm->state == ARM_CREATING) {
        c->arm->region->counts.replays++;
        return reply_vm(c, vm, 201, vm->operation);
    }
    if (tags)
        json_object_set_new(vm->body, "tags", json_deep_copy(tags));
    const json_t *diagnostics = arm_at(c->body, "properties." DIAGNOSTICS);
    if (diagnostics)
        json_object_set_new(
            object_at(vm->body, "properties"), DIAGNOSTICS, json_deep_copy(diagnostics));
    struct arm_operation *op = arm_start_operation(c->arm, false, c->now);
    arm_end_operation(op, "Succeeded", NULL, c->now);
    c->arm->region->counts.replays++;
    return reply_vm(c, vm, 200, op);
}

int arm_put_vm(struct arm_call *c)
{
    struct arm_resource *vm = arm_find(c->arm, ARM_KIND_VM, c->group, c->name);
    if (!vm)
        return create(c, NULL);
    if (vm->state == ARM_DELETING)
        return arm_fail(c, "OperationNotAllowed",
            "Operation 'Update VM' is not allowed on VM '%s' " MARKED, vm->name);
    return update(c, vm);
}

/* ---- DELETE, simulateEviction ---- */

int arm_delete_vm(struct arm_call *c)
{
    struct arm *a = c->arm;
    struct arm_resource *vm = arm_find(a, ARM_KIND_VM, c->group, c->name);
    if (!vm) {
        c->reply->status = 204;
        return 0;
    }
    if (vm->state != ARM_DELETING) {
        if (vm->operation)
            arm_end_operation(vm->operation, "Canceled", "OperationPreempted", c->now);
        vm->operation = arm_start_operation(a, true, c->now);
        vm->state = ARM_DELETING;
        if (vm->instance)
            region_terminate(a->region, vm->instance, c->now);
    }
    c->reply->status = 202;
    arm_add_operation_headers(c, vm->operation);
    arm_advance(a, c->now);
    return 0;
}

int arm_evict_vm(struct arm_call *c)
{
    struct arm_resource *vm = arm_find(c->arm, ARM_KIND_VM, c->group, c->name);
    struct region_event ev = {.kind = EVENT_RECLAIM, .pick = PICK_ONE};
    json_t *hits = NULL;
    struct err e;
    if (!vm)
        return arm_fail(c, "ResourceNotFound",
            "The Resource 'Microsoft.Compute/virtualMachines/%.80s' under resource group '%s' was "
            "not found.",
            c->name, c->group);
    const struct instance *i = vm->instance;
    if (!i || i->reservation->spec.market != CLOUD_SPOT || !instance_is_alive(i) ||
        vm->state == ARM_DELETING)
        return arm_fail(c, "OperationNotAllowed",
            "Simulate eviction is not allowed on VM '%s': it is not an Azure Spot VM that runs.",
            vm->name);
    STR_COPY(ev.instance, i->id);
    if (region_apply(c->arm->region, &ev, c->now, &hits, &e) < 0)
        return arm_fail(c, "InternalServerError", "%s", e.text);
    json_decref(hits);
    arm_advance(c->arm, c->now);
    c->reply->status = 204;
    return 0;
}
