/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the body of a virtual machine's PUT to a launch, with Azure's own refusals. Unknown
 * members are refused by name; known ones without effect here are accepted.
 */
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CUSTOM_DATA_MAX 65535
#define CUSTOM_DATA_TEXT_MAX 87380
#define DISK_GB_MAX 4095
#define UUSD 1e6
#define MAX_PRICE_USD_MAX 1e6

/* Checked in this order: an object and its allowed members. */
static const struct {
    const char *path;
    const char *names[32];
} members[] = {
    {"", {"location", "zones", "tags", "identity", "properties", "id", "name", "type", "etag",
             "plan", NULL}},
    {"properties",
        {"hardwareProfile", "storageProfile", "osProfile", "networkProfile", "priority",
            "evictionPolicy", "billingProfile", "userData", "diagnosticsProfile", "securityProfile",
            "additionalCapabilities", "scheduledEventsProfile", "scheduledEventsPolicy",
            "licenseType", "extensionsTimeBudget", "applicationProfile", "availabilitySet",
            "virtualMachineScaleSet", "proximityPlacementGroup", "host", "hostGroup",
            "capacityReservation", "platformFaultDomain", "provisioningState", "vmId",
            "instanceView", "timeCreated", NULL}},
    {"properties.hardwareProfile", {"vmSize", "vmSizeProperties", NULL}},
    {"properties.billingProfile", {"maxPrice", NULL}},
    {"properties.storageProfile",
        {"imageReference", "osDisk", "dataDisks", "diskControllerType", NULL}},
    {"properties.storageProfile.imageReference",
        {"id", "publisher", "offer", "sku", "version", "exactVersion", "sharedGalleryImageId",
            "communityGalleryImageId", NULL}},
    {"properties.storageProfile.osDisk",
        {"osType", "name", "caching", "writeAcceleratorEnabled", "diffDiskSettings", "createOption",
            "diskSizeGB", "managedDisk", "deleteOption", "encryptionSettings", NULL}},
    {"properties.storageProfile.osDisk.managedDisk",
        {"id", "storageAccountType", "diskEncryptionSet", "securityProfile", NULL}},
    {"properties.osProfile",
        {"computerName", "adminUsername", "adminPassword", "customData", "linuxConfiguration",
            "secrets", "allowExtensionOperations", "requireGuestProvisionSignal", NULL}},
    {"properties.osProfile.linuxConfiguration",
        {"disablePasswordAuthentication", "ssh", "provisionVMAgent", "patchSettings",
            "enableVMAgentPlatformUpdates", NULL}},
    {"properties.networkProfile",
        {"networkInterfaces", "networkApiVersion", "networkInterfaceConfigurations", NULL}},
    {"properties.diagnosticsProfile", {"bootDiagnostics", NULL}},
    {"properties.diagnosticsProfile.bootDiagnostics", {"enabled", "storageUri", NULL}},
    {"identity", {"type", "userAssignedIdentities", "principalId", "tenantId", NULL}},
};

/* Not supported, and not ignorable: they would change the meaning of the call. */
static const char *const unsupported[] = {"properties.availabilitySet",
    "properties.virtualMachineScaleSet", "properties.host", "properties.hostGroup",
    "properties.capacityReservation", "properties.proximityPlacementGroup", NULL};

static int check_members(struct arm_call *c)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (arm_check_members(
                c, members[i].path, arm_at(c->body, members[i].path), members[i].names) < 0)
            return -1;
    for (size_t i = 0; unsupported[i]; i++)
        if (arm_at(c->body, unsupported[i]))
            return arm_fail(c, "OperationNotAllowed", "This emulator has no %s.",
                unsupported[i] + strlen("properties."));
    const json_t *disks = arm_at(c->body, "properties.storageProfile.dataDisks");
    if (disks && json_array_size(disks) > 0)
        return arm_fail(c, "OperationNotAllowed", "This emulator has no data disks.");
    return 0;
}

static int read_max_price(struct arm_call *c, struct launch_spec *s)
{
    const json_t *v = arm_at(c->body, "properties.billingProfile.maxPrice");
    double price = json_number_value(v);
    if (!v)
        return 0;
    if (s->market != CLOUD_SPOT)
        return arm_fail(
            c, "InvalidParameter", "Max price can be set only for an Azure Spot virtual machine.");
    if (!json_is_number(v) || (price != -1 && !(price > 0 && price < MAX_PRICE_USD_MAX)))
        return arm_fail(c, "MaxPriceValueInvalid",
            "Invalid Max Price value. The Max Price value can be greater than 0 or -1. -1 means up "
            "to the on-demand price.");
    s->max_price_uusd_h = price == -1 ? 0 : (int64_t)(price * UUSD + 0.5);
    return 0;
}

static int read_market(struct arm_call *c, struct launch_spec *s)
{
    static const char *const priorities[] = {"Regular", "Low", "Spot", NULL};
    static const char *const policies[] = {"Deallocate", "Delete", NULL};
    int priority, policy;
    if (arm_may_choice(c, "properties.priority", priorities, 0, &priority) < 0 ||
        arm_may_choice(c, "properties.evictionPolicy", policies, -1, &policy) < 0)
        return -1;
    s->market = priority == 0 ? CLOUD_ON_DEMAND : CLOUD_SPOT;
    if (policy >= 0 && s->market == CLOUD_ON_DEMAND)
        return arm_fail(c, "InvalidParameter",
            "Eviction policy can be set only on Azure Spot Virtual Machines.");
    return read_max_price(c, s);
}

static int read_zone(struct arm_call *c, struct arm_vm_params *w)
{
    const json_t *zones = arm_at(c->body, "zones");
    const struct market *m = &c->arm->region->market;
    if (!zones || json_array_size(zones) == 0)
        return 0;
    const char *zone = json_string_value(json_array_get(zones, 0));
    char longer[CLOUD_NAME_MAX];
    if (json_array_size(zones) != 1 || !zone || strlen(zone) > 16)
        return arm_fail(c, "InvalidParameter", "The value of parameter zones must be one zone.");
    snprintf(longer, sizeof(longer), "%.40s-%s", c->arm->region->o->name, zone);
    if (!market_has_zone(m, zone) && !market_has_zone(m, longer))
        return arm_fail(c, "AvailabilityZoneNotSupported",
            "The zone(s) '%s' for resource 'Microsoft.Compute/virtualMachines/%s' is not "
            "supported.",
            zone, c->name);
    STR_COPY(w->spec.zone, market_has_zone(m, zone) ? zone : longer);
    w->has_zone = true;
    return 0;
}

static int read_size(struct arm_call *c, struct arm_vm_params *w)
{
    const char *size;
    const struct market *m = &c->arm->region->market;
    if (arm_need_str(c, "properties.hardwareProfile.vmSize", CLOUD_NAME_MAX - 1, &size) < 0)
        return -1;
    if (!market_find(m, NULL, size, w->spec.market))
        return arm_fail(c, "InvalidParameter",
            "The value %s provided for the VM size is not valid. The valid sizes in the current "
            "region are those of the emulator's pools.",
            size);
    STR_COPY(w->spec.type, size);
    return 0;
}

static bool is_listed(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcasecmp(name, *names) == 0)
            return true;
    return false;
}

static int read_image(struct arm_call *c, struct launch_spec *s)
{
#define IMAGE "properties.storageProfile.imageReference"
    const char *id, *gallery, *publisher, *offer, *sku, *version;
    if (!arm_at(c->body, IMAGE))
        return arm_fail(c, "InvalidParameter",
            "Required parameter 'imageReference' is missing (null). Path '" IMAGE "'.");
    if (arm_may_str(c, IMAGE ".id", ARM_ID_MAX, &id) < 0 ||
        arm_may_str(c, IMAGE ".communityGalleryImageId", ARM_ID_MAX, &gallery) < 0)
        return -1;
    id = id ? id : gallery;
    char urn[ARM_ID_MAX];
    if (!id) {
        if (arm_need_str(c, IMAGE ".publisher", 100, &publisher) < 0 ||
            arm_need_str(c, IMAGE ".offer", 100, &offer) < 0 ||
            arm_need_str(c, IMAGE ".sku", 100, &sku) < 0 ||
            arm_need_str(c, IMAGE ".version", 100, &version) < 0)
            return -1;
        snprintf(urn, sizeof(urn), "%s:%s:%s:%s", publisher, offer, sku, version);
        id = urn;
    }
    if (c->arm->account->images && !is_listed(id, c->arm->account->images))
        return arm_fail(c, id == urn ? "PlatformImageNotFound" : "ResourceNotFound",
            "The image '%s' is not available in %s region.", id, c->arm->region->o->name);
    STR_COPY(s->image, id);
    return 0;
#undef IMAGE
}

static int read_delete_option(struct arm_call *c, const char *text, bool *ret_keeps)
{
    *ret_keeps = !text || strcasecmp(text, "Detach") == 0;
    if (text && !*ret_keeps && strcasecmp(text, "Delete") != 0)
        return arm_fail(c, "InvalidParameter",
            "The value '%.40s' of parameter 'deleteOption' is invalid.", text);
    return 0;
}

static int read_disk(struct arm_call *c, struct arm_vm_params *w)
{
#define DISK "properties.storageProfile.osDisk"
    static const char *const creates[] = {"FromImage", NULL};
    const char *text, *needed;
    int choice;
    if (arm_need_str(c, DISK ".createOption", 20, &needed) < 0 ||
        arm_may_choice(c, DISK ".createOption", creates, 0, &choice) < 0 ||
        arm_may_str(c, DISK ".deleteOption", 20, &text) < 0 ||
        read_delete_option(c, text, &w->keeps_disk) < 0 ||
        arm_may_str(c, DISK ".name", ARM_RESOURCE_NAME_MAX - 1, &text) < 0)
        return -1;
    if (text && arm_find(c->arm, ARM_KIND_DISK, c->group, text))
        return arm_fail(c, "ConflictingUserInput",
            "Disk '%s' already exists in resource group '%s'.", text, c->group);
    const json_t *size = arm_at(c->body, DISK ".diskSizeGB");
    if (size && (!json_is_integer(size) || json_integer_value(size) < 1 ||
                    json_integer_value(size) > DISK_GB_MAX))
        return arm_fail(c, "InvalidParameter", "The value of parameter diskSizeGB must be 1 to %d.",
            DISK_GB_MAX);
    return 0;
#undef DISK
}

static int read_os(struct arm_call *c, struct arm_vm_params *w)
{
#define OS "properties.osProfile"
    const char *user, *data, *password;
    if (arm_need_str(c, OS ".computerName", 64, &w->computer_name) < 0 ||
        arm_need_str(c, OS ".adminUsername", 64, &user) < 0 ||
        arm_may_str(c, OS ".adminPassword", 72, &password) < 0 ||
        arm_may_str(c, OS ".customData", CUSTOM_DATA_TEXT_MAX, &data) < 0)
        return -1;
    const json_t *keys = arm_at(c->body, OS ".linuxConfiguration.ssh.publicKeys");
    bool is_off =
        json_is_true(arm_at(c->body, OS ".linuxConfiguration.disablePasswordAuthentication"));
    if (!password && json_array_size(keys) == 0)
        return arm_fail(c, "InvalidParameter",
            is_off ? "Authentication using SSH key: required parameter "
                     "'linuxConfiguration.ssh.publicKeys' "
                     "is missing (null)."
                   : "Required parameter 'adminPassword' is missing (null).");
    struct err e;
    if (data && (b64_decode(&w->spec.user_data, data, strlen(data), &e) < 0 ||
                    w->spec.user_data.len > CUSTOM_DATA_MAX))
        return arm_fail(c, "InvalidParameter",
            "Custom data in OSProfile must be in Base64 encoding and with a maximum length of %d "
            "characters.",
            CUSTOM_DATA_TEXT_MAX);
    return 0;
#undef OS
}

static int read_user_data(struct arm_call *c, struct arm_vm_params *w)
{
    const char *text;
    struct err e;
    struct buf raw = {0};
    if (arm_may_str(c, "properties.userData", CUSTOM_DATA_TEXT_MAX, &text) < 0)
        return -1;
    int rc = text ? b64_decode(&raw, text, strlen(text), &e) : 0;
    buf_deinit(&raw);
    if (rc < 0)
        return arm_fail(c, "InvalidParameter", "User data must be in Base64 encoding.");
    if (text)
        buf_adds(&w->user_data, text);
    return 0;
}

/* ---- The network ---- */

static int read_nic(struct arm_call *c, const json_t *list, struct arm_vm_params *w)
{
    const json_t *item = json_array_get(list, 0);
    const char *id = arm_str_at(item, "id", NULL);
    if (json_array_size(list) != 1)
        return arm_fail(
            c, "InvalidParameter", "This emulator's machines have one network interface.");
    if (!id || !arm_is_id(c->arm, id, "Microsoft.Network/networkInterfaces"))
        return arm_fail(c, "LinkedInvalidPropertyId",
            "Property id '%.200s' at path 'properties.networkProfile.networkInterfaces[0].id' is "
            "invalid.",
            id ? id : "");
    w->nic = arm_find_id(c->arm, ARM_KIND_NIC, id);
    if (!w->nic)
        return arm_fail(c, "InvalidResourceReference",
            "Resource %.200s referenced by resource %s was not found. Please make sure that the "
            "referenced resource exists, and that both resources are in the same region.",
            id, c->name);
    const struct arm_resource *owner = w->nic->owner;
    if (owner && (strcasecmp(owner->name, c->name) != 0 || strcasecmp(owner->group, c->group) != 0))
        return arm_fail(c, "NicInUse", "Network Interface %s is used by existing resource %s.",
            w->nic->name, owner->name);
    if (arm_check_reserved(c, w->nic, c->name) < 0)
        return -1;
    return read_delete_option(c, arm_str_at(item, "properties.deleteOption", NULL), &w->keeps_nic);
}

static int read_nic_configuration(struct arm_call *c, const json_t *list, struct arm_vm_params *w)
{
    const json_t *item = json_array_get(list, 0);
    const char *name = arm_str_at(item, "name", NULL), *version;
    if (json_array_size(list) != 1)
        return arm_fail(
            c, "InvalidParameter", "This emulator's machines have one network interface.");
    if (arm_may_str(c, "properties.networkProfile.networkApiVersion", 20, &version) < 0)
        return -1;
    if (!version)
        return arm_fail(c, "InvalidParameter",
            "Parameter 'networkApiVersion' is required when 'networkInterfaceConfigurations' is "
            "specified.");
    if (!name || !str_is_name(name, ARM_RESOURCE_NAME_MAX - 10))
        return arm_fail(c, "InvalidParameter",
            "The name of a network interface configuration is missing or invalid.");
    if (arm_check_tags(c, arm_at(item, "tags")) < 0 ||
        arm_check_tags(c, arm_at(item, "properties.tags")) < 0)
        return -1;
    const json_t *ips = arm_at(item, "properties.ipConfigurations");
    const char *subnet = arm_str_at(json_array_get(ips, 0), "properties.subnet.id", NULL);
    if (!subnet || !arm_is_subnet(c->arm, subnet))
        return arm_fail(c, "InvalidParameter",
            "Required parameter 'subnet.id' of the network interface's first ipConfiguration is "
            "missing or invalid.");
    if (c->arm->account->subnets && !is_listed(subnet, c->arm->account->subnets))
        return arm_fail(c, "InvalidResourceReference",
            "Resource %.300s referenced by resource %s was not found.", subnet, c->name);
    const char *last = strrchr(subnet, '/');
    STR_COPY(w->spec.subnet, last + 1);
    return read_delete_option(c, arm_str_at(item, "properties.deleteOption", NULL), &w->keeps_nic);
}

static int read_network(struct arm_call *c, struct arm_vm_params *w)
{
    const json_t *nics = arm_at(c->body, "properties.networkProfile.networkInterfaces");
    const json_t *made =
        arm_at(c->body, "properties.networkProfile.networkInterfaceConfigurations");
    if (nics && json_array_size(nics) > 0)
        return read_nic(c, nics, w);
    if (made && json_array_size(made) > 0)
        return read_nic_configuration(c, made, w);
    return arm_fail(c, "InvalidParameter",
        "Virtual Machine '%s' must have at least one network interface. Path "
        "'properties.networkProfile'.",
        c->name);
}

static int read_identity(struct arm_call *c)
{
    static const char *const kinds[] = {
        "None", "SystemAssigned", "UserAssigned", "SystemAssigned, UserAssigned", NULL};
    int kind;
    if (arm_may_choice(c, "identity.type", kinds, 0, &kind) < 0)
        return -1;
    const json_t *ids = arm_at(c->body, "identity.userAssignedIdentities");
    if (kind >= 2 && json_object_size(ids) == 0)
        return arm_fail(c, "InvalidParameter",
            "The identity ids must not be null or empty for '%s' identity type.", kinds[kind]);
    const char *id;
    json_t *unused;
    json_object_foreach((json_t *)ids, id,
        unused) if (!arm_is_id(c->arm, id,
                        "Microsoft.ManagedIdentity/userAssignedIdentities")) return arm_fail(c,
        "LinkedInvalidPropertyId", "Property id '%.200s' at path 'identity' is invalid.", id);
    return 0;
}

static void copy_tags(const json_t *tags, struct tags *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)tags, key, value) tags_set(out, key, json_string_value(value));
}

int arm_read_vm_params(struct arm_call *c, struct arm_vm_params *w)
{
    const json_t *tags = arm_at(c->body, "tags");
    if (arm_check_resource_name(c, 64) < 0 || arm_check_location(c) < 0 || check_members(c) < 0 ||
        arm_check_tags(c, tags) < 0 || read_market(c, &w->spec) < 0 || read_zone(c, w) < 0 ||
        read_size(c, w) < 0 || read_image(c, &w->spec) < 0 || read_disk(c, w) < 0 ||
        read_os(c, w) < 0 || read_user_data(c, w) < 0 || read_network(c, w) < 0 ||
        read_identity(c) < 0)
        return -1;
    copy_tags(tags, &w->spec.tags);
    w->spec.powers_off_to_stop = true;
    STR_COPY(w->spec.name, c->name);
    return 0;
}

void arm_vm_params_deinit(struct arm_vm_params *w)
{
    launch_spec_deinit(&w->spec);
    buf_deinit(&w->user_data);
}
