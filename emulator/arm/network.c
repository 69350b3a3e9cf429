/* SPDX-License-Identifier: Apache-2.0
 *
 * Standalone network interfaces and disks: PUT of an interface, DELETE of either. An attached one
 * cannot be deleted.
 */
#include "base/str.h"
#include "emulator/arm/parts.h"
#include <strings.h>

static int check_nic(struct arm_call *c)
{
    static const char *const top[] = {
        "location", "tags", "properties", "id", "name", "type", "etag", "extendedLocation", NULL};
    const struct arm_account *account = c->arm->account;
    if (arm_check_resource_name(c, ARM_RESOURCE_NAME_MAX - 1) < 0 || arm_check_location(c) < 0 ||
        arm_check_members(c, "", c->body, top) < 0 ||
        arm_check_tags(c, arm_at(c->body, "tags")) < 0)
        return -1;
    const json_t *ips = arm_at(c->body, "properties.ipConfigurations");
    const char *subnet = arm_str_at(json_array_get(ips, 0), "properties.subnet.id", NULL);
    if (!subnet || !arm_is_subnet(c->arm, subnet))
        return arm_fail(c, "InvalidRequestFormat",
            "Cannot parse the request: ipConfigurations[0].properties.subnet.id is missing or "
            "invalid.");
    bool is_known = !account->subnets;
    for (size_t i = 0; account->subnets && account->subnets[i]; i++)
        is_known = is_known || strcasecmp(account->subnets[i], subnet) == 0;
    if (!is_known)
        return arm_fail(c, "InvalidResourceReference",
            "Resource %.300s referenced by resource %s was not found.", subnet, c->name);
    if (c->arm->n_resources >= ARM_RESOURCES_MAX)
        return arm_fail(
            c, "QuotaExceeded", "A subscription may have at most %d resources.", ARM_RESOURCES_MAX);
    return 0;
}

/* The change is complete at once, but is reported as an operation. */
static void add_done(struct arm_call *c, bool is_delete)
{
    struct arm_operation *op = arm_start_operation(c->arm, is_delete, c->now);
    arm_end_operation(op, "Succeeded", NULL, c->now);
    arm_add_operation_headers(c, op);
}

int arm_put_nic(struct arm_call *c)
{
    static const char *const ours[] = {"id", "name", "type", "etag", NULL};
    if (check_nic(c) < 0)
        return -1;
    struct arm_resource *nic = arm_find(c->arm, ARM_KIND_NIC, c->group, c->name);
    json_t *body = json_deep_copy(c->body);
    for (size_t i = 0; ours[i]; i++)
        json_object_del(body, ours[i]);
    c->reply->status = nic ? 200 : 201;
    if (nic) {
        json_decref(nic->body);
        nic->body = body;
    } else {
        nic = arm_add(c->arm, ARM_KIND_NIC, c->group, c->name, body, c->now);
    }
    c->reply->body = arm_show(c->arm, nic, false);
    add_done(c, false);
    return 0;
}

int arm_check_reserved(struct arm_call *c, const struct arm_resource *nic, const char *name)
{
    if (!wall_is_set(nic->reserved_until) || c->now.ms >= nic->reserved_until.ms ||
        (name && strcasecmp(name, nic->reserved_for) == 0))
        return 0;
    return arm_fail(c, "NicReservedForAnotherVm",
        "Nic(s) in request is reserved for another Virtual Machine for %lld seconds. Please "
        "provide another nic(s) or "
        "retry after %lld seconds. Reserved VM: %s",
        (long long)(c->arm->account->nic_reserved_ms / 1000),
        (long long)(c->arm->account->nic_reserved_ms / 1000), nic->reserved_for);
}

int arm_delete_part(struct arm_call *c, enum arm_kind kind)
{
    struct arm_resource *v = arm_find(c->arm, kind, c->group, c->name);
    if (!v) {
        c->reply->status = 204;
        return 0;
    }
    if (v->owner && kind == ARM_KIND_NIC)
        return arm_fail(c, "NicInUse",
            "Network Interface %s is used by existing resource %s. In order to delete the network "
            "interface, it must be dissociated from the resource.",
            v->name, v->owner->name);
    if (v->owner)
        return arm_fail(
            c, "OperationNotAllowed", "Disk %s is attached to VM %s.", v->name, v->owner->name);
    if (arm_check_reserved(c, v, NULL) < 0)
        return -1;
    arm_remove(c->arm, v);
    c->reply->status = 202;
    add_done(c, true);
    return 0;
}
