/* SPDX-License-Identifier: Apache-2.0
 *
 * Compute Engine's requests: paths, and the body of instances.insert. See gce.h.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/catalogue.h"
#include "cloud/gcp/gce.h"
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SIZE 500
#define DISK_GIB_MAX 65536
#define RUN_MS_MIN SECONDS_MS(30)
#define RUN_MS_MAX SECONDS_MS(120LL * 24 * 3600)
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"
#define SCOPE_DEFAULT "https://www.googleapis.com/auth/cloud-platform"
#define DISK_TYPE_DEFAULT "pd-balanced"

/* Names of Google's resources: [a-z]([-a-z0-9]{0,61}[a-z0-9])? */
static bool is_name(const char *s)
{
    size_t n = s ? strlen(s) : 0;
    return n > 0 && n <= 63 && strspn(s, LOWER) > 0 && strspn(s, LOWER DIGITS "-") == n &&
           s[n - 1] != '-';
}

bool gce_is_zone_of(const char *zone, const char *region)
{
    return is_name(zone) && is_name(region) && str_starts(zone, region) &&
           zone[strlen(region)] == '-';
}

/* ---- validation and bodies ---- */

static bool is_email(const char *s)
{
    const char *at = strchr(s, '@');
    return at && at > s && strspn(s, LOWER DIGITS "-.@") == strlen(s) && !strchr(at + 1, '@') &&
           at[1];
}

static bool is_one_of(const char *s, const char *a, const char *b)
{
    return !s || str_eq(s, a) || str_eq(s, b);
}

static int check_max_run(const char *text, struct err *e)
{
    int64_t ms;
    int rc = text ? time_parse_duration(text, false, &ms, e) : 0;
    if (rc != 0) {
        err_wrap(e, "max_run");
        e->kind = ERR_CONFIG;
        return ERR_CONFIG;
    }
    if (text && (ms < RUN_MS_MIN || ms > RUN_MS_MAX))
        return err_set(e, ERR_CONFIG, "max_run \"%.32s\": expected 30 s to 120 days", text);
    return 0;
}

int gce_check_machine(const struct gcp_machine *m, struct err *e)
{
    if (!m->project || !*m->project || strspn(m->project, LOWER DIGITS "-.:") != strlen(m->project))
        return err_set(e, ERR_CONFIG,
            "project \"%.64s\": expected the id of a project, like my-project-123",
            m->project ? m->project : "");
    if (!m->image || !strchr(m->image, '/'))
        return err_set(e, ERR_CONFIG,
            "image \"%.64s\": expected a path like projects/P/global/images/family/NAME",
            m->image ? m->image : "");
    if (m->service_account && !is_email(m->service_account))
        return err_set(e, ERR_CONFIG, "service_account \"%.64s\": expected its e-mail address",
            m->service_account);
    if (m->scopes && !m->service_account)
        return err_set(e, ERR_CONFIG, "scopes need a service_account");
    if (!is_one_of(m->address, "public", "none"))
        return err_set(e, ERR_CONFIG, "address \"%.32s\": expected public or none", m->address);
    if (!is_one_of(m->early_notice, "0", "120"))
        return err_set(
            e, ERR_CONFIG, "early_notice \"%.32s\": expected 0 or 120 (seconds)", m->early_notice);
    if (m->disk_type && !is_name(m->disk_type))
        return err_set(
            e, ERR_CONFIG, "disk_type \"%.32s\": expected one like pd-balanced", m->disk_type);
    if (m->disk_gib < 0 || m->disk_gib > DISK_GIB_MAX)
        return err_set(e, ERR_CONFIG, "a disk of %lld GiB; Google allows at most %d",
            (long long)m->disk_gib, DISK_GIB_MAX);
    return check_max_run(m->max_run, e);
}

/* The value of a label. */
static bool is_label(const char *s)
{
    size_t n = s ? strlen(s) : 0;
    return n > 0 && n <= 63 && strspn(s, LOWER DIGITS "-_") == n;
}

static int check_launch(
    const struct cloud_launch *l, struct catalogue_parts *ret_type, struct err *e)
{
    if (!l->region || !l->zone || !gce_is_zone_of(l->zone, l->region))
        return err_set(e, ERR_CONFIG, "\"%.64s\" is not a zone of region \"%.64s\"",
            l->zone ? l->zone : "", l->region ? l->region : "");
    int rc = catalogue_split("gcp", l->type ? l->type : "", ret_type, e);
    if (rc != 0)
        return rc;
    if (!is_name(ret_type->machine))
        return err_set(e, ERR_CONFIG, "\"%.64s\" is not a machine type", ret_type->machine);
    if (!is_name(l->token))
        return err_set(e, ERR_CONFIG,
            "the idempotency token cannot be an instance's name (a-z, 0-9 and -, up to 63)");
    if (strlen(l->zone) + 1 + strlen(l->token) >= CLOUD_NAME_MAX)
        return err_set(
            e, ERR_CONFIG, "zone and token together are longer than %d bytes", CLOUD_NAME_MAX - 2);
    if (!is_label(l->cluster))
        return err_set(
            e, ERR_CONFIG, "the cluster cannot be a label (a-z, 0-9, - and _, up to 63)");
    if (l->user_data && strlen(l->user_data) > CLOUD_USER_DATA_MAX)
        return err_set(e, ERR_CONFIG, "user data of %zu bytes; at most %d", strlen(l->user_data),
            CLOUD_USER_DATA_MAX);
    return 0;
}

static void set(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, json_text(value));
}

static void set_new(json_t *object, const char *key, char *value)
{
    set(object, key, value);
    free(value);
}

static json_t *build_labels(const struct cloud_launch *l)
{
    json_t *labels = json_object();
    set(labels, GCE_LABEL_CLUSTER, l->cluster);
    set(labels, GCE_LABEL_INSTANCE, l->token);
    return labels;
}

static bool is_early(const struct cloud_launch *l, const struct gcp_machine *m)
{
    return l->market == CLOUD_SPOT && m->early_notice && !str_eq(m->early_notice, "0");
}

/* Machines with GPUs, and spot machines, cannot be migrated to another host. */
static json_t *build_scheduling(const struct cloud_launch *l, const struct gcp_machine *m)
{
    struct catalogue_type type;
    bool stays = l->market == CLOUD_SPOT || catalogue_find("gcp", l->type, &type, NULL) != 0 ||
                 type.gpus > 0;
    json_t *s = json_object();
    set(s, "provisioningModel", l->market == CLOUD_SPOT ? "SPOT" : "STANDARD");
    /* the default is STOP, which keeps the disk and bills it */
    if (l->market == CLOUD_SPOT || m->max_run)
        set(s, "instanceTerminationAction", "DELETE");
    if (m->max_run) {
        int64_t ms = 0;
        json_t *seconds = json_object();
        /* cannot fail: gce_check_machine has parsed it */
        time_parse_duration(m->max_run, false, &ms, NULL);
        set_new(seconds, "seconds", mem_printf("%lld", (long long)(ms / 1000)));
        json_object_set_new(s, "maxRunDuration", seconds);
    }
    json_object_set_new(s, "automaticRestart", json_false());
    set(s, "onHostMaintenance", stays ? "TERMINATE" : "MIGRATE");
    if (is_early(l, m)) {
        json_t *seconds = json_object();
        set(seconds, "seconds", m->early_notice);
        json_object_set_new(s, "preemptionNoticeDuration", seconds);
    }
    return s;
}

static json_t *build_accelerators(
    const struct cloud_launch *l, const struct gcp_machine *m, const struct catalogue_parts *type)
{
    json_t *list = json_array(), *one = json_object();
    set_new(one, "acceleratorType",
        mem_printf("projects/%s/zones/%s/acceleratorTypes/%s", m->project, l->zone,
            type->gpu->accelerator));
    json_object_set_new(one, "acceleratorCount", json_integer(type->n_gpus));
    json_array_append_new(list, one);
    return list;
}

static json_t *build_disks(const struct cloud_launch *l, const struct gcp_machine *m)
{
    json_t *disks = json_array(), *disk = json_object(), *how = json_object();
    json_object_set_new(disk, "boot", json_true());
    json_object_set_new(disk, "autoDelete", json_true());
    set(how, "sourceImage", m->image);
    if (m->disk_gib > 0)
        set_new(how, "diskSizeGb", mem_printf("%lld", (long long)m->disk_gib));
    set_new(how, "diskType",
        mem_printf(
            "zones/%s/diskTypes/%s", l->zone, m->disk_type ? m->disk_type : DISK_TYPE_DEFAULT));
    json_object_set_new(how, "labels", build_labels(l));
    json_object_set_new(disk, "initializeParams", how);
    json_array_append_new(disks, disk);
    return disks;
}

static json_t *build_network(const struct cloud_launch *l, const struct gcp_machine *m)
{
    json_t *networks = json_array(), *network = json_object();
    const char *name = m->network || m->subnet ? m->network : "default";
    if (name)
        set_new(network, "network",
            mem_printf("%s%s", strchr(name, '/') ? "" : "global/networks/", name));
    if (m->subnet && strchr(m->subnet, '/'))
        set(network, "subnetwork", m->subnet);
    else if (m->subnet)
        set_new(
            network, "subnetwork", mem_printf("regions/%s/subnetworks/%s", l->region, m->subnet));
    if (!str_eq(m->address, "none")) {
        json_t *configs = json_array(), *config = json_object();
        set(config, "type", "ONE_TO_ONE_NAT");
        json_array_append_new(configs, config);
        json_object_set_new(network, "accessConfigs", configs);
    }
    json_array_append_new(networks, network);
    return networks;
}

static json_t *build_lines(const char *lines)
{
    json_t *list = json_array();
    for (const char *p = lines; *p;) {
        size_t n = strcspn(p, "\n");
        json_array_append_new(list, json_textn(p, n));
        p += n + (p[n] == '\n');
    }
    return list;
}

static json_t *build_account(const struct gcp_machine *m)
{
    json_t *accounts = json_array(), *account = json_object();
    set(account, "email", m->service_account);
    json_object_set_new(account, "scopes", build_lines(m->scopes ? m->scopes : SCOPE_DEFAULT));
    json_array_append_new(accounts, account);
    return accounts;
}

static void add_item(json_t *items, const char *key, const char *value)
{
    json_t *item = json_object();
    set(item, "key", key);
    set(item, "value", value);
    json_array_append_new(items, item);
}

static json_t *build_metadata(const struct cloud_launch *l, const struct gcp_machine *m)
{
    json_t *metadata = json_object(), *items = json_array();
    if (l->user_data)
        add_item(items, "startup-script", l->user_data);
    if (is_early(l, m))
        add_item(items, GCE_ATTRIBUTE_NOTICE, m->early_notice);
    json_object_set_new(metadata, "items", items);
    return metadata;
}

int gce_build_insert(
    const struct cloud_launch *l, const struct gcp_machine *m, struct buf *out, struct err *e)
{
    struct catalogue_parts type;
    int rc = check_launch(l, &type, e);
    if (rc != 0)
        return rc;
    json_t *body = json_object();
    set(body, "name", l->token);
    set_new(body, "machineType", mem_printf("zones/%s/machineTypes/%s", l->zone, type.machine));
    if (type.gpu)
        json_object_set_new(body, "guestAccelerators", build_accelerators(l, m, &type));
    json_object_set_new(body, "scheduling", build_scheduling(l, m));
    json_object_set_new(body, "disks", build_disks(l, m));
    json_object_set_new(body, "networkInterfaces", build_network(l, m));
    if (m->service_account)
        json_object_set_new(body, "serviceAccounts", build_account(m));
    if (m->tags) {
        json_t *tags = json_object();
        json_object_set_new(tags, "items", build_lines(m->tags));
        json_object_set_new(body, "tags", tags);
    }
    json_object_set_new(body, "metadata", build_metadata(l, m));
    json_object_set_new(body, "labels", build_labels(l));
    json_add_secret(out, body); /* the start-up script contains one */
    return 0;
}

/* RFC 9562, section 5.5, in a name space of belay's own. */
void gce_request_id(const char *name, char out[GCE_UUID_MAX])
{
    static const unsigned char space[16] = {0x7d, 0x1e, 0x5c, 0x42, 0x9a, 0x0b, 0x4f, 0x6e, 0x8c,
        0x27, 0x31, 0xd4, 0x5b, 0xe0, 0x96, 0xaf};
    unsigned char hash[EVP_MAX_MD_SIZE];
    char hex[33];
    struct buf text = {0};
    buf_add(&text, space, sizeof(space));
    buf_adds(&text, name);
    if (EVP_Digest(text.data, text.len, hash, NULL, EVP_sha1(), NULL) != 1)
        mem_out_of_memory();
    buf_deinit(&text);
    hash[6] = (unsigned char)((hash[6] & 0x0f) | 0x50);
    hash[8] = (unsigned char)((hash[8] & 0x3f) | 0x80);
    str_hex(hash, 16, hex);
    snprintf(
        out, GCE_UUID_MAX, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

/* ---- paths ---- */

void gce_path_insert(const char *zone, const char *request_id, struct buf *out)
{
    buf_printf(out, "/zones/%s/instances?requestId=%s", zone, request_id);
}

void gce_path_operation(const char *zone, const char *name, struct buf *out)
{
    buf_printf(out, "/zones/%s/operations/%s", zone, name);
}

void gce_path_instance(const char *zone, const char *name, struct buf *out)
{
    buf_printf(out, "/zones/%s/instances/%s", zone, name);
}

void gce_path_console(const char *zone, const char *name, struct buf *out)
{
    gce_path_instance(zone, name, out);
    buf_adds(out, "/serialPort?port=1");
}

void gce_path_delete(const char *zone, const char *name, const char *request_id, struct buf *out)
{
    gce_path_instance(zone, name, out);
    buf_printf(out, "?requestId=%s", request_id);
}

/* filter may be NULL. */
static void add_query(const char *filter, const char *page, struct buf *out)
{
    buf_addc(out, '?');
    if (filter) {
        buf_adds(out, "filter=");
        str_url_encode(out, filter, strlen(filter));
        buf_addc(out, '&');
    }
    buf_printf(out, "maxResults=%d", PAGE_SIZE);
    if (*page) {
        buf_adds(out, "&pageToken=");
        str_url_encode(out, page, strlen(page));
    }
}

static void add_aggregated(const char *what, const char *cluster, const char *page, struct buf *out)
{
    char *filter = cluster ? mem_printf("labels." GCE_LABEL_CLUSTER "=%s", cluster) : NULL;
    buf_printf(out, "/aggregated/%s", what);
    add_query(filter, page, out);
    buf_adds(out, "&returnPartialSuccess=true");
    free(filter);
}

void gce_path_list(const char *cluster, const char *page, struct buf *out)
{
    add_aggregated("instances", cluster, page, out);
}

void gce_path_disks(const char *cluster, const char *page, struct buf *out)
{
    add_aggregated("disks", cluster, page, out);
}

void gce_path_preempted(const char *zone, const char *page, struct buf *out)
{
    buf_printf(out, "/zones/%s/operations", zone);
    add_query("operationType=\"compute.instances.preempted\"", page, out);
}

int gce_split_id(
    const char *id, char zone[CLOUD_NAME_MAX], char name[CLOUD_NAME_MAX], struct err *e)
{
    const char *slash = strchr(id, '/');
    size_t n = slash ? (size_t)(slash - id) : 0;
    char first[CLOUD_NAME_MAX] = "";
    if (n > 0 && n < sizeof(first))
        memcpy(first, id, n);
    if (!is_name(first) || !is_name(slash + 1))
        return err_set(e, ERR_INVALID, "\"%.64s\" is not an instance id (expected ZONE/NAME)", id);
    str_copy(zone, CLOUD_NAME_MAX, first);
    str_copy(name, CLOUD_NAME_MAX, slash + 1);
    return 0;
}
