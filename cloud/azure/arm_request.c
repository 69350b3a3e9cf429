/* SPDX-License-Identifier: Apache-2.0
 *
 * ARM requests: paths with their queries, and JSON bodies. See arm.h.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/arm.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define COMPUTE_API "2022-08-01"
#define DISK_API "2022-07-02"
#define DISK_LIST_API "2024-03-02" /* first version that reports when a disk was detached */
#define NETWORK_API "2020-11-01"
#define RESOURCES_API "2021-04-01"
#define PRICES_API "2023-01-01-preview"

#define DISK_GIB_MAX 4095 /* limit of an OS disk */
#define TAG_VALUE_MAX 256
#define CONSOLE_URL_MINUTES 5 /* the log is read at once */
#define SSH_KEY_MAX 8192

#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char *const part_suffixes[] = {[ARM_VM] = "", [ARM_NIC] = "-nic", [ARM_DISK] = "-os"};
static const char *const part_types[] = {
    [ARM_VM] = "Microsoft.Compute/virtualMachines",
    [ARM_NIC] = "Microsoft.Network/networkInterfaces",
    [ARM_DISK] = "Microsoft.Compute/disks",
};
static const char *const part_apis[] = {
    [ARM_VM] = COMPUTE_API, [ARM_NIC] = NETWORK_API, [ARM_DISK] = DISK_API};

/* ---- checks ---- */

static int check_text(
    const char *value, size_t max, const char *alphabet, const char *what, struct err *e)
{
    char shown[STR_SHOW_MAX];
    if (!value || !*value)
        return err_set(e, ERR_CONFIG, "the %s is missing", what);
    if (strlen(value) > max)
        return err_set(e, ERR_CONFIG, "the %s is longer than %zu bytes", what, max);
    if (strspn(value, alphabet) != strlen(value))
        return err_set(
            e, ERR_CONFIG, "the %s %s contains an invalid character", what, str_show(value, shown));
    return 0;
}

/* These become parts of paths: a "." between slashes would change the path. */
static int check_path(const char *value, const char *what, struct err *e)
{
    int rc = check_text(value, 1024, ALNUM "-._()/:", what, e);
    if (rc == 0 && (strstr(value, "//") || strstr(value, "/.") || str_starts(value, ".")))
        rc = err_set(e, ERR_CONFIG, "the %s \"%.128s\" is not a resource id", what, value);
    return rc;
}

static int check_subnet(const char *subnet, struct err *e)
{
    int rc = check_path(subnet, "subnet", e);
    const char *slash = rc == 0 ? strchr(subnet, '/') : NULL;
    if (rc != 0)
        return rc;
    if (*subnet == '/' ? !strstr(subnet, "/subnets/")
                       : !slash || !slash[1] || strchr(slash + 1, '/') != NULL)
        return err_set(e, ERR_CONFIG,
            "subnet \"%.128s\": expected VNET/SUBNET, or "
            "/subscriptions/.../virtualNetworks/VNET/subnets/SUBNET",
            subnet);
    return 0;
}

static int check_image(const char *image, struct err *e)
{
    int colons = 0;
    int rc = check_path(image, "image", e);
    for (const char *p = image; rc == 0 && *p; p++)
        colons += *p == ':';
    if (rc == 0 &&
        (*image == '/' ? colons != 0 : colons != 3 || strchr(image, '/') || strstr(image, "::")))
        rc = err_set(e, ERR_CONFIG,
            "image \"%.128s\": expected PUBLISHER:OFFER:SKU:VERSION, or "
            "/subscriptions/.../images/NAME",
            image);
    return rc;
}

static int check_ssh_key(const char *key, struct err *e)
{
    if (!key || !*key)
        return err_set(
            e, ERR_CONFIG, "the ssh_key is missing: Azure creates no Linux machine without one");
    if (strlen(key) > SSH_KEY_MAX || (!str_starts(key, "ssh-") && !str_starts(key, "ecdsa-")) ||
        !str_is_utf8(key, strlen(key)))
        return err_set(
            e, ERR_CONFIG, "ssh_key: expected a public key like \"ssh-ed25519 AAAA... name\"");
    return 0;
}

int arm_check_machine(const struct azure_machine *m, struct err *e)
{
    int rc = check_text(m->subscription, 64, ALNUM "-", "subscription", e);
    if (rc == 0)
        rc = check_text(m->resource_group, 90, ALNUM "-_.()", "resource_group", e);
    if (rc == 0)
        rc = check_subnet(m->subnet, e);
    if (rc == 0)
        rc = check_image(m->image, e);
    if (rc == 0)
        rc = check_ssh_key(m->ssh_key, e);
    if (rc == 0 && m->admin_user)
        rc = check_text(m->admin_user, 32, ALNUM "-_", "admin_user", e);
    if (rc == 0 && m->security_group)
        rc = check_path(m->security_group, "security_group", e);
    if (rc == 0 && m->identity)
        rc = check_path(m->identity, "identity", e);
    if (rc == 0 && m->identity && *m->identity != '/')
        rc = err_set(e, ERR_CONFIG,
            "identity \"%.128s\": expected /subscriptions/.../userAssignedIdentities/NAME",
            m->identity);
    if (rc == 0 && m->disk_type)
        rc = check_text(m->disk_type, 32, ALNUM "_", "disk_type", e);
    if (rc == 0 && (m->disk_gib < 0 || m->disk_gib > DISK_GIB_MAX))
        rc = err_set(e, ERR_CONFIG, "a disk of %lld GiB; an OS disk has 1 to %d",
            (long long)m->disk_gib, DISK_GIB_MAX);
    return rc;
}

static int check_name(const char *token, struct err *e)
{
    size_t n = token ? strlen(token) : 0;
    if (n == 0 || n > ARM_NAME_MAX || strspn(token, ALNUM "-") != n || token[0] == '-' ||
        token[n - 1] == '-' || arm_part_of(token) != ARM_VM)
        return err_set(e, ERR_CONFIG,
            "\"%.64s\" is not a machine name: expected 1 to %d of A-Z a-z 0-9 and -",
            token ? token : "", ARM_NAME_MAX);
    return 0;
}

static int check_launch(const struct cloud_launch *l, struct err *e)
{
    int rc = check_name(l->token, e);
    if (rc == 0)
        rc = check_text(l->type, CLOUD_NAME_MAX - 1, ALNUM "_-", "machine type", e);
    if (rc == 0)
        rc = check_text(l->zone, CLOUD_NAME_MAX - 1, ALNUM, "zone", e);
    if (rc == 0 && !str_eq(l->zone, l->region) &&
        (strlen(l->zone) != 1 || !strchr("123456789", *l->zone)))
        rc = err_set(e, ERR_CONFIG, "zone \"%.64s\": expected 1, 2 or 3, or %s for none", l->zone,
            l->region);
    if (rc == 0 && (!l->cluster || !*l->cluster || strlen(l->cluster) > TAG_VALUE_MAX))
        rc =
            err_set(e, ERR_CONFIG, "the cluster is missing or longer than %d bytes", TAG_VALUE_MAX);
    if (rc == 0 && l->user_data && strlen(l->user_data) > CLOUD_USER_DATA_MAX)
        rc = err_set(e, ERR_CONFIG, "user data of %zu bytes; at most %d are accepted",
            strlen(l->user_data), CLOUD_USER_DATA_MAX);
    return rc;
}

/* ---- names and paths ---- */

void arm_part_name(const char *name, enum arm_part part, char *out, size_t size)
{
    snprintf(out, size, "%s%s", name, part_suffixes[part]);
}

enum arm_part arm_part_of(const char *name)
{
    return str_ends(name, part_suffixes[ARM_NIC])    ? ARM_NIC
           : str_ends(name, part_suffixes[ARM_DISK]) ? ARM_DISK
                                                     : ARM_VM;
}

static void add_group(const struct azure_machine *m, struct buf *out)
{
    buf_printf(out, "/subscriptions/%s/resourceGroups/%s", m->subscription, m->resource_group);
}

/* The id by which another resource refers to this one. */
static void add_id(
    const struct azure_machine *m, enum arm_part part, const char *name, struct buf *out)
{
    add_group(m, out);
    buf_printf(out, "/providers/%s/", part_types[part]);
    str_url_encode(out, name, strlen(name)); /* a listed name may be anything */
}

void arm_path(
    const struct azure_machine *m, enum arm_part part, const char *full_name, struct buf *out)
{
    add_id(m, part, full_name, out);
    buf_printf(out, "?api-version=%s", part_apis[part]);
}

void arm_path_vm_status(const struct azure_machine *m, const char *name, struct buf *out)
{
    arm_path(m, ARM_VM, name, out);
    buf_adds(out, "&$expand=instanceView");
}

void arm_path_delete_vm(const struct azure_machine *m, const char *name, struct buf *out)
{
    arm_path(m, ARM_VM, name, out);
    buf_adds(out, "&forceDeletion=true");
}

void arm_path_list_vms(const struct azure_machine *m, bool all, struct buf *out)
{
    if (all)
        buf_printf(out, "/subscriptions/%s", m->subscription);
    else
        add_group(m, out);
    buf_printf(out, "/providers/%s?api-version=" COMPUTE_API, part_types[ARM_VM]);
}

/* A text in a filter is quoted; quotes inside it are doubled. */
static void add_quoted(const char *value, struct buf *out)
{
    struct buf quoted = {0};
    for (const char *p = value; *p; p++)
        buf_adds(&quoted, *p == '\'' ? "''" : (char[]){*p, '\0'});
    buf_adds(out, "%27");
    str_url_encode(out, buf_str(&quoted), quoted.len);
    buf_adds(out, "%27");
    buf_deinit(&quoted);
}

void arm_path_list_tagged(const struct azure_machine *m, const char *cluster, struct buf *out)
{
    buf_printf(out, "/subscriptions/%s/resources?$filter=tagName%%20eq%%20", m->subscription);
    add_quoted(ARM_TAG_CLUSTER, out);
    buf_adds(out, "%20and%20tagValue%20eq%20");
    add_quoted(cluster, out);
    buf_adds(out, "&api-version=" RESOURCES_API);
}

void arm_path_list_disks(const struct azure_machine *m, bool all, struct buf *out)
{
    if (all)
        buf_printf(out, "/subscriptions/%s", m->subscription);
    else
        add_group(m, out);
    buf_printf(out, "/providers/%s?api-version=" DISK_LIST_API, part_types[ARM_DISK]);
}

void arm_path_list_power(const struct azure_machine *m, struct buf *out)
{
    buf_printf(out, "/subscriptions/%s/providers/%s?api-version=" COMPUTE_API "&statusOnly=true",
        m->subscription, part_types[ARM_VM]);
}

void arm_path_console(const struct azure_machine *m, const char *name, struct buf *out)
{
    add_id(m, ARM_VM, name, out);
    buf_printf(out,
        "/retrieveBootDiagnosticsData?api-version=" COMPUTE_API "&sasUriExpirationTimeInMinutes=%d",
        CONSOLE_URL_MINUTES);
}

void arm_path_prices(const char *region, const char *type, struct buf *out)
{
    const char *const terms[][2] = {{"serviceName", "Virtual Machines"},
        {"priceType", "Consumption"}, {"armRegionName", region}, {"armSkuName", type}};
    buf_adds(out, "/api/retail/prices?api-version=" PRICES_API "&$filter=");
    for (int i = 0; i < 4; i++) {
        buf_printf(out, "%s%s%%20eq%%20", i > 0 ? "%20and%20" : "", terms[i][0]);
        add_quoted(terms[i][1], out);
    }
}

/* ---- bodies ---- */

static void set(json_t *object, const char *key, json_t *value)
{
    if (!value || json_object_set_new(object, key, value) != 0)
        mem_out_of_memory();
}

static void set_text(json_t *object, const char *key, const char *value)
{
    set(object, key, json_text(value));
}

static json_t *object_with_text(const char *key, const char *value)
{
    json_t *object = json_object();
    set_text(object, key, value);
    return object;
}

static json_t *array_of(json_t *only)
{
    json_t *array = json_array();
    if (!array || json_array_append_new(array, only) != 0)
        mem_out_of_memory();
    return array;
}

/* {"id": ...} of a resource given by its id, or by a name (or VNET/SUBNET) in the resource group.
 */
static json_t *reference(
    const struct azure_machine *m, const char *given, const char *type, const char *child)
{
    struct buf id = {0};
    const char *slash = strchr(given, '/');
    if (*given == '/') {
        buf_adds(&id, given);
    } else {
        add_group(m, &id);
        buf_printf(&id, "/providers/%s/%.*s", type,
            slash ? (int)(slash - given) : (int)strlen(given), given);
        if (slash)
            buf_printf(&id, "/%s/%s", child, slash + 1);
    }
    json_t *object = object_with_text("id", buf_str(&id));
    buf_deinit(&id);
    return object;
}

static json_t *tags_of(const struct cloud_launch *l)
{
    json_t *tags = object_with_text(ARM_TAG_CLUSTER, l->cluster);
    set_text(tags, ARM_TAG_INSTANCE, l->token);
    return tags;
}

void arm_build_nic(const struct cloud_launch *l, const struct azure_machine *m, struct buf *out)
{
    json_t *ip = json_object(), *properties = json_object(), *body = json_object();
    set(ip, "subnet", reference(m, m->subnet, "Microsoft.Network/virtualNetworks", "subnets"));
    set(ip, "primary", json_true());
    set(ip, "privateIPAllocationMethod", json_string("Dynamic"));
    json_t *configuration = object_with_text("name", "ip0");
    set(configuration, "properties", ip);
    set(properties, "ipConfigurations", array_of(configuration));
    if (m->security_group)
        set(properties, "networkSecurityGroup",
            reference(m, m->security_group, "Microsoft.Network/networkSecurityGroups", ""));
    set_text(body, "location", l->region);
    set(body, "tags", tags_of(l));
    set(body, "properties", properties);
    json_add(out, body);
}

static json_t *image_of(const char *image)
{
    static const char *const keys[] = {"publisher", "offer", "sku", "version"};
    if (*image == '/')
        return object_with_text("id", image);
    json_t *object = json_object();
    for (int i = 0; i < 4; i++) {
        size_t n = strcspn(image, ":");
        set(object, keys[i], json_textn(image, n));
        image += n + (image[n] == ':');
    }
    return object;
}

static json_t *storage_of(const struct cloud_launch *l, const struct azure_machine *m)
{
    char name[CLOUD_NAME_MAX];
    arm_part_name(l->token, ARM_DISK, name, sizeof(name));
    json_t *disk = object_with_text("name", name);
    set_text(disk, "createOption", "FromImage");
    set_text(disk, "deleteOption", "Delete");
    if (m->disk_gib > 0)
        set(disk, "diskSizeGB", json_integer(m->disk_gib));
    set(disk, "managedDisk",
        object_with_text("storageAccountType", m->disk_type ? m->disk_type : "Premium_LRS"));
    json_t *storage = json_object();
    set(storage, "imageReference", image_of(m->image));
    set(storage, "osDisk", disk);
    return storage;
}

static void set_base64(json_t *object, const char *key, const char *text)
{
    size_t n = strlen(text), size = 4 * ((n + 2) / 3) + 1;
    unsigned char *base64 = mem_alloc(size);
    EVP_EncodeBlock(base64, (const unsigned char *)text, (int)n);
    set_text(object, key, (const char *)base64);
    OPENSSL_cleanse(base64, size);
    free(base64);
}

static json_t *os_of(const struct cloud_launch *l, const struct azure_machine *m)
{
    const char *user = m->admin_user ? m->admin_user : "belay";
    char *path = mem_printf("/home/%s/.ssh/authorized_keys", user);
    json_t *key = object_with_text("path", path), *ssh = json_object(), *linux_part = json_object();
    free(path);
    set_text(key, "keyData", m->ssh_key);
    set(ssh, "publicKeys", array_of(key));
    set(linux_part, "disablePasswordAuthentication", json_true());
    set(linux_part, "ssh", ssh);
    json_t *os = object_with_text("computerName", l->token);
    set_text(os, "adminUsername", user);
    if (l->user_data)
        set_base64(os, "customData", l->user_data);
    set(os, "linuxConfiguration", linux_part);
    return os;
}

static json_t *network_of(const struct cloud_launch *l, const struct azure_machine *m)
{
    char name[CLOUD_NAME_MAX];
    struct buf id = {0};
    arm_part_name(l->token, ARM_NIC, name, sizeof(name));
    add_id(m, ARM_NIC, name, &id);
    json_t *nic = object_with_text("id", buf_str(&id)), *properties = json_object();
    buf_deinit(&id);
    set(properties, "primary", json_true());
    set_text(properties, "deleteOption", "Delete");
    set(nic, "properties", properties);
    json_t *network = json_object();
    set(network, "networkInterfaces", array_of(nic));
    return network;
}

static void set_market(json_t *properties, enum cloud_market market)
{
    if (market != CLOUD_SPOT)
        return;
    json_t *billing = json_object();
    set_text(properties, "priority", "Spot");
    /* the default would keep the disk, which is billed */
    set_text(properties, "evictionPolicy", "Delete");
    /* up to the on-demand price: never evicted for the price */
    set(billing, "maxPrice", json_integer(-1));
    set(properties, "billingProfile", billing);
}

static json_t *identity_of(const struct azure_machine *m)
{
    json_t *identity = object_with_text("type", "UserAssigned"), *all = json_object();
    set(all, m->identity, json_object());
    set(identity, "userAssignedIdentities", all);
    return identity;
}

/* The serial console's log, kept by Azure in its own storage (no storageUri). */
static json_t *diagnostics(void)
{
    json_t *boot = json_object(), *profile = json_object();
    set(boot, "enabled", json_true());
    set(profile, "bootDiagnostics", boot);
    return profile;
}

int arm_build_vm(
    const struct cloud_launch *l, const struct azure_machine *m, struct buf *out, struct err *e)
{
    int rc = check_launch(l, e);
    if (rc != 0)
        return rc;
    json_t *body = object_with_text("location", l->region), *properties = json_object();
    if (!str_eq(l->zone, l->region))
        set(body, "zones", array_of(json_text(l->zone)));
    set(body, "tags", tags_of(l));
    if (m->identity)
        set(body, "identity", identity_of(m));
    set_market(properties, l->market);
    set(properties, "hardwareProfile", object_with_text("vmSize", l->type));
    set(properties, "storageProfile", storage_of(l, m));
    set(properties, "osProfile", os_of(l, m));
    set(properties, "networkProfile", network_of(l, m));
    set(properties, "diagnosticsProfile", diagnostics());
    set(body, "properties", properties);
    json_add_secret(out, body); /* the user data contains one */
    return 0;
}

bool arm_url_is_ours(const char *url, const char *endpoint)
{
    size_t n = strlen(endpoint);
    if (!url || strlen(url) > ARM_URL_MAX || strncasecmp(url, endpoint, n) != 0 ||
        strcspn(url, " \t\r\n#\\") != strlen(url))
        return false;
    /* Azure often adds the default port */
    if (str_starts(endpoint, "https://") && str_starts(url + n, ":443/"))
        n += strlen(":443");
    return url[n] == '/';
}

bool arm_url_is_blob(const char *url, const char *endpoint)
{
    static const char host_bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    if (!str_starts(endpoint, "https://"))
        return arm_url_is_ours(url, endpoint);
    if (!url || strlen(url) > ARM_URL_MAX || !str_starts(url, "https://") ||
        strcspn(url, " \t\r\n#\\") != strlen(url))
        return false;
    const char *host = url + strlen("https://"), *blob = strstr(host, ".blob.");
    size_t n = strspn(host, host_bytes);
    bool is_blob = blob && blob > host && blob < host + n;
    return is_blob && str_starts(host + n, str_starts(host + n, ":443/") ? ":443/" : "/");
}
