/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources, operations and their lives.
 *
 *              boots                                DELETE              last process gone
 *   CREATING ---------> SUCCEEDED (running, stopped) -----> DELETING ------------------> removed
 *      |                    |                                  ^                            ^
 *      |                    +-- evicted: Deallocate -- SUCCEEDED (deallocated) --DELETE-----+
 *      |                    +-- evicted: Delete --------------------------------------------+
 *      +-- no capacity --> FAILED -- DELETE ------------------------------------------------+
 *
 * Invariants
 *   1. A machine whose create failed stays, with its network interface and disk, until it is
 *      deleted.
 *   2. A resource attached to a removed machine is deleted if its deleteOption is Delete; otherwise
 *      it stays, unattached.
 *   3. A machine that is evicted for good takes its disk with it, whatever the disk's deleteOption.
 *   4. A machine powered off from inside stays ("stopped"), with everything attached to it.
 */
#include "emulator/arm/arm.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const types[] = {"Microsoft.Compute/virtualMachines",
    "Microsoft.Network/networkInterfaces", "Microsoft.Compute/disks"};

const char *arm_type(enum arm_kind kind)
{
    return types[kind];
}

void arm_init(
    struct arm *a, struct region *r, const struct arm_account *account, struct arm_auth *auth)
{
    *a = (struct arm){.region = r, .account = account, .auth = auth};
    for (size_t i = 0; i < sizeof(a->buckets) / sizeof(a->buckets[0]); i++)
        a->buckets[i].at = WALL_NONE;
}

static void resource_free(struct arm_resource *v)
{
    json_decref(v->body);
    json_decref(v->request);
    buf_deinit(&v->user_data);
    free(v);
}

/* Volumes that exist from the start are disks of the first resource group. */
void arm_add_volumes(struct arm *a)
{
    const char *group =
        a->account->groups && a->account->groups[0] ? a->account->groups[0] : "data";
    for (size_t i = 0; i < a->region->n_volumes; i++) {
        const struct volume *v = a->region->volumes[i];
        json_t *tags = json_object(),
               *body = json_pack("{s:s,s:o,s:{s:s},s:{s:I}}", "location", a->region->o->name,
                   "tags", tags, "sku", "name", v->spec.type, "properties", "diskSizeGB",
                   (json_int_t)v->spec.gib);
        for (size_t t = 0; t < v->spec.tags.n; t++)
            json_object_set_new(
                tags, v->spec.tags.list[t].key, json_text(v->spec.tags.list[t].value));
        if (!str_eq(v->zone, a->region->o->name))
            json_object_set_new(body, "zones", json_pack("[s]", v->zone));
        arm_add(a, ARM_KIND_DISK, group, v->spec.name[0] ? v->spec.name : v->id, body, v->made_at);
    }
}

void arm_deinit(struct arm *a)
{
    for (size_t i = 0; i < a->n_resources; i++)
        resource_free(a->resources[i]);
    for (size_t i = 0; i < a->n_operations; i++)
        free(a->operations[i]);
    free(a->resources);
    free(a->operations);
    *a = (struct arm){0};
}

/* ---- Resources ---- */

struct arm_resource *arm_find(
    const struct arm *a, enum arm_kind kind, const char *group, const char *name)
{
    for (size_t i = 0; i < a->n_resources; i++) {
        struct arm_resource *v = a->resources[i];
        if (v->kind == kind && strcasecmp(v->group, group) == 0 && strcasecmp(v->name, name) == 0)
            return v;
    }
    return NULL;
}

void arm_resource_id(const struct arm *a, const struct arm_resource *v, struct buf *out)
{
    buf_printf(out, "/subscriptions/%s/resourceGroups/%s/providers/%s/%s", a->account->subscription,
        v->group, types[v->kind], v->name);
}

struct arm_resource *arm_find_id(const struct arm *a, enum arm_kind kind, const char *id)
{
    struct arm_resource *found = NULL;
    struct buf text = {0};
    for (size_t i = 0; i < a->n_resources && !found; i++) {
        buf_clear(&text);
        arm_resource_id(a, a->resources[i], &text);
        if (a->resources[i]->kind == kind && strcasecmp(buf_str(&text), id) == 0)
            found = a->resources[i];
    }
    buf_deinit(&text);
    return found;
}

struct arm_resource *arm_find_instance(const struct arm *a, const struct instance *i)
{
    for (size_t k = 0; k < a->n_resources; k++)
        if (a->resources[k]->instance == i)
            return a->resources[k];
    return NULL;
}

struct arm_resource *arm_add(struct arm *a, enum arm_kind kind, const char *group, const char *name,
    json_t *body, struct wall now)
{
    struct arm_resource *v = mem_alloc(sizeof(*v));
    *v = (struct arm_resource){.kind = kind,
        .number = ++a->last_number,
        .body = body,
        .made = now,
        .reserved_until = WALL_NONE,
        .detached = WALL_NONE,
        .fails_at = WALL_NONE};
    STR_COPY(v->group, group);
    STR_COPY(v->name, name);
    arm_make_uuid(&a->region->ids, v->uuid);
    a->resources = mem_resize(a->resources, a->n_resources + 1, sizeof(struct arm_resource *));
    a->resources[a->n_resources++] = v;
    return v;
}

static void drop(struct arm *a, struct arm_resource *v)
{
    size_t i = 0;
    while (a->resources[i] != v)
        i++;
    memmove(a->resources + i, a->resources + i + 1,
        (--a->n_resources - i) * sizeof(struct arm_resource *));
    resource_free(v);
}

void arm_remove(struct arm *a, struct arm_resource *v)
{
    for (size_t i = a->n_resources; i-- > 0;) {
        struct arm_resource *part = a->resources[i];
        if (part->owner != v)
            continue;
        part->owner = NULL;
        part->detached = a->region->now;
        if (part->is_deleted_with_owner)
            drop(a, part);
    }
    drop(a, v);
}

/* ---- Operations ---- */

static void forget_oldest(struct arm *a)
{
    size_t i = 0;
    while (i < a->n_operations && !wall_is_set(a->operations[i]->end))
        i++;
    if (i == a->n_operations)
        return; /* all are in progress, and their number is bounded by the resources */
    free(a->operations[i]);
    memmove(a->operations + i, a->operations + i + 1,
        (--a->n_operations - i) * sizeof(struct arm_operation *));
}

struct arm_operation *arm_start_operation(struct arm *a, bool is_delete, struct wall now)
{
    struct arm_operation *op = mem_alloc(sizeof(*op));
    *op = (struct arm_operation){
        .is_delete = is_delete, .status = "InProgress", .start = now, .end = WALL_NONE};
    arm_make_uuid(&a->region->ids, op->id);
    if (a->n_operations >= ARM_OPERATIONS_MAX)
        forget_oldest(a);
    a->operations = mem_resize(a->operations, a->n_operations + 1, sizeof(struct arm_operation *));
    a->operations[a->n_operations++] = op;
    return op;
}

void arm_end_operation(
    struct arm_operation *op, const char *status, const char *code, struct wall now)
{
    op->status = status;
    op->end = now;
    STR_COPY(op->code, code ? code : "");
    STR_COPY(op->text, code ? arm_usual_text(code) : "");
}

struct arm_operation *arm_find_operation(const struct arm *a, const char *id)
{
    for (size_t i = a->n_operations; i-- > 0;)
        if (strcasecmp(a->operations[i]->id, id) == 0)
            return a->operations[i];
    return NULL;
}

/* ---- State of a machine ---- */

static void end_last(struct arm_resource *v, const char *status, const char *code, struct wall at)
{
    if (v->operation)
        arm_end_operation(v->operation, status, code, at);
    v->operation = NULL;
}

static void fail(struct arm_resource *v, const char *code, struct wall at)
{
    v->state = ARM_FAILED;
    v->instance = NULL;
    v->fails_at = WALL_NONE;
    STR_COPY(v->fails_with, code);
    end_last(v, "Failed", code, at);
}

static bool is_over(const struct instance *i)
{
    return !i || i->state == INSTANCE_TERMINATED || i->state == INSTANCE_STOPPED;
}

/* Whether it was reclaimed by the market, not ended by its owner while under notice. A machine that
 * powers itself off under notice is still reclaimed at its deadline. */
static bool is_evicted(const struct instance *i, struct wall now)
{
    return i && is_over(i) && i->is_reclaimed &&
           (str_eq(i->reason_code, "Server.SpotInstanceTermination") || now.ms >= i->deadline.ms);
}

/* True if the machine is gone, and v was removed with it. */
static bool settle_evicted(struct arm *a, struct arm_resource *v)
{
    end_last(v, "Canceled", "OperationPreempted", v->instance->gone_at);
    if (str_eq(arm_str_at(v->body, "properties.evictionPolicy", ""), "Delete")) {
        for (size_t i = 0; i < a->n_resources; i++)
            if (a->resources[i]->owner == v && a->resources[i]->kind == ARM_KIND_DISK)
                a->resources[i]->is_deleted_with_owner = true;
        arm_remove(a, v);
        return true;
    }
    v->instance = NULL;
    v->state = ARM_SUCCEEDED;
    v->is_deallocated = true;
    return false;
}

static void settle_creating(struct arm_resource *v, struct wall now)
{
    const struct instance *i = v->instance;
    if (!i) {
        if (now.ms >= v->fails_at.ms)
            fail(v, v->fails_with, v->fails_at);
    } else if (wall_is_set(i->running_at)) {
        v->state = ARM_SUCCEEDED;
        end_last(v, "Succeeded", NULL, i->running_at);
    } else if (is_over(i)) {
        fail(v, "OSProvisioningInternalError", i->gone_at);
    }
}

/* True if v was removed. */
static bool settle(struct arm *a, struct arm_resource *v, struct wall now)
{
    if (v->state == ARM_DELETING && is_over(v->instance)) {
        end_last(v, "Succeeded", NULL, v->instance ? v->instance->gone_at : now);
        arm_remove(a, v);
        return true;
    }
    if (v->state != ARM_DELETING && is_evicted(v->instance, now))
        return settle_evicted(a, v);
    if (v->state == ARM_CREATING)
        settle_creating(v, now);
    return false;
}

void arm_advance(struct arm *a, struct wall now)
{
    region_advance(a->region, now);
    for (size_t i = 0; i < a->n_resources;) {
        struct arm_resource *v = a->resources[i];
        if (v->kind == ARM_KIND_VM && settle(a, v, now))
            i = 0; /* its parts were removed too, anywhere in the list */
        else
            i++;
    }
}

json_t *arm_state(struct arm *a, struct wall now)
{
    static const char *const states[] = {"creating", "succeeded", "failed", "deleting"};
    json_t *list = json_array();
    struct buf id = {0};
    arm_advance(a, now);
    for (size_t i = 0; i < a->n_resources; i++) {
        const struct arm_resource *v = a->resources[i];
        json_t *o = json_object();
        buf_clear(&id);
        arm_resource_id(a, v, &id);
        json_object_set_new(o, "id", json_text(buf_str(&id)));
        json_object_set_new(o, "type", json_string(types[v->kind]));
        json_object_set_new(o, "name", json_text(v->name));
        json_object_set_new(o, "state", json_string(states[v->state]));
        if (v->kind == ARM_KIND_VM) {
            const char *power = arm_power_state(v);
            json_object_set_new(o, "power", power ? json_string(power) : json_null());
        } else {
            json_object_set_new(o, "attached", json_boolean(v->owner != NULL));
        }
        json_array_append_new(list, o);
    }
    buf_deinit(&id);
    return list;
}
