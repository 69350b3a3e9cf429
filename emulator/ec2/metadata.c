/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens carry their own expiry and a MAC over it under the instance's secret, so nothing has to be
 * stored: any number of them may be live, as in EC2. The tree of paths is a table; a path that ends
 * in '/' lists its children.
 */
#include "emulator/ec2/metadata.h"
#include "base/b64.h"
#include "base/str.h"
#include "emulator/ec2/ec2.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#define MAC_BYTES 32
#define TEXT "text/plain"
#define JSON "application/json"

/* ---- Tokens ---- */

struct token {
    uint64_t ends_ms;
    unsigned char mac[MAC_BYTES];
};

static void sign_token(const struct ec2_metadata *m, struct token *t)
{
    unsigned n = MAC_BYTES;
    HMAC(EVP_sha256(), m->secret, sizeof(m->secret), (const unsigned char *)&t->ends_ms,
        sizeof(t->ends_ms), t->mac, &n);
}

static void write_token(const struct ec2_metadata *m, int64_t ends_ms, struct buf *out)
{
    struct token t = {.ends_ms = (uint64_t)ends_ms};
    sign_token(m, &t);
    b64_encode(out, &t, sizeof(t));
}

static bool token_is_good(const struct ec2_metadata *m, const char *text, struct wall now)
{
    struct buf bytes = {0};
    struct token given, right;
    bool is_good = b64_decode(&bytes, text, strlen(text), NULL) == 0 && bytes.len == sizeof(given);
    if (is_good) {
        memcpy(&given, bytes.data, sizeof(given));
        right = (struct token){.ends_ms = given.ends_ms};
        sign_token(m, &right);
        is_good =
            CRYPTO_memcmp(given.mac, right.mac, MAC_BYTES) == 0 && (int64_t)given.ends_ms > now.ms;
    }
    buf_deinit(&bytes);
    return is_good;
}

void ec2_metadata_error(int status, struct ec2_metadata_reply *reply)
{
    const char *title = status == 400   ? "Bad Request"
                        : status == 401 ? "Unauthorized"
                        : status == 403 ? "Forbidden"
                        : status == 404 ? "Not Found"
                        : status == 405 ? "Method Not Allowed"
                                        : "Service Unavailable";
    reply->status = status;
    reply->content_type = "text/html";
    buf_clear(&reply->body);
    buf_printf(&reply->body,
        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n"
        "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\"\n"
        "\t\"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n"
        "<html xmlns=\"http://www.w3.org/1999/xhtml\" xml:lang=\"en\" lang=\"en\">\n"
        " <head>\n  <title>%d - %s</title>\n </head>\n <body>\n  <h1>%d - %s</h1>\n "
        "</body>\n</html>\n",
        status, title, status, title);
}

static void issue_token(const struct ec2_metadata *m, const struct ec2_metadata_request *r,
    struct wall now, struct ec2_metadata_reply *reply)
{
    int64_t ttl_s;
    if (r->forwarded_for || !str_eq(r->path, "/latest/api/token")) {
        ec2_metadata_error(403, reply);
        return;
    }
    if (!r->ttl || str_to_i64(r->ttl, 1, EC2_METADATA_TTL_MAX_S, "TTL", &ttl_s, NULL) < 0) {
        ec2_metadata_error(400, reply);
        return;
    }
    reply->ttl_s = ttl_s;
    write_token(m, now.ms + SECONDS_MS(ttl_s), &reply->body);
}

/* ---- The tree ---- */

/* Appends a path's content to out. False if there is none (404). */
struct metadata_query {
    const struct ec2_metadata *m;
    const struct instance *i;
    const struct launch_spec *spec;
    struct wall now;
    const char *rest; /* of the path, for table entries that end in '/' */
};
typedef bool (*write_fn)(const struct metadata_query *l, struct buf *out);

static bool add_text(struct buf *out, const char *text)
{
    buf_adds(out, text);
    return text[0] != '\0';
}

static void add_time(struct buf *out, struct wall w)
{
    char iso[TIME_ISO_MAX];
    time_format_iso((struct wall){w.ms / 1000 * 1000}, iso);
    buf_adds(out, iso);
}

static bool write_id(const struct metadata_query *l, struct buf *out)
{
    return add_text(out, l->i->id);
}

static bool write_type(const struct metadata_query *l, struct buf *out)
{
    return add_text(out, l->i->pool->type);
}

static bool write_image(const struct metadata_query *l, struct buf *out)
{
    return add_text(out, l->spec->image);
}

static bool write_launch_index(const struct metadata_query *l, struct buf *out)
{
    buf_printf(out, "%d", l->i->launch_index);
    return true;
}

static bool write_ip(const struct metadata_query *l, struct buf *out)
{
    return add_text(out, l->i->private_ip);
}

static bool write_reservation(const struct metadata_query *l, struct buf *out)
{
    return add_text(out, l->i->reservation->id);
}

static bool write_life_cycle(const struct metadata_query *l, struct buf *out)
{
    return add_text(out, l->spec->market == CLOUD_SPOT ? "spot" : "on-demand");
}

static bool write_zone(const struct metadata_query *l, struct buf *out)
{
    return add_text(out, l->i->pool->zone);
}

static bool write_zone_id(const struct metadata_query *l, struct buf *out)
{
    char id[32];
    ec2_zone_id(l->i->pool->zone, id, sizeof(id));
    return add_text(out, id);
}

static bool write_region(const struct metadata_query *l, struct buf *out)
{
    return add_text(out, l->m->region->o->name);
}

static bool write_domain(const struct metadata_query *l, struct buf *out)
{
    (void)l;
    return add_text(out, "amazonaws.com");
}

static bool write_action(const struct metadata_query *l, struct buf *out)
{
    if (!wall_is_set(l->i->deadline))
        return false;
    buf_adds(out, "{\"action\":\"terminate\",\"time\":\"");
    add_time(out, region_machine_time(l->m->region, l->i->deadline));
    buf_adds(out, "\"}");
    return true;
}

static bool write_termination_time(const struct metadata_query *l, struct buf *out)
{
    if (!wall_is_set(l->i->deadline))
        return false;
    add_time(out, region_machine_time(l->m->region, l->i->deadline));
    return true;
}

static bool write_rebalance(const struct metadata_query *l, struct buf *out)
{
    if (!wall_is_set(l->i->rebalance_at))
        return false;
    buf_adds(out, "{\"noticeTime\":\"");
    add_time(out, l->i->rebalance_at);
    buf_adds(out, "\"}");
    return true;
}

static bool write_maintenance(const struct metadata_query *l, struct buf *out)
{
    (void)l;
    return add_text(out, "[]");
}

static bool write_tag(const struct metadata_query *l, struct buf *out)
{
    const char *value = l->spec->metadata_has_tags ? tags_get(&l->i->tags, l->rest) : NULL;
    if (value)
        buf_adds(out, value);
    return value != NULL;
}

static bool write_tags(const struct metadata_query *l, struct buf *out)
{
    for (size_t k = 0; l->spec->metadata_has_tags && k < l->i->tags.n; k++)
        buf_printf(out, "%s%s", k > 0 ? "\n" : "", l->i->tags.list[k].key);
    return l->spec->metadata_has_tags;
}

static bool write_role(const struct metadata_query *l, struct buf *out)
{
    return add_text(out, l->spec->profile);
}

static bool write_role_keys(const struct metadata_query *l, struct buf *out)
{
    if (!l->spec->profile[0] || !str_eq(l->rest, l->spec->profile))
        return false;
    const struct keyring_key *key =
        keyring_role(l->m->keyring, l->i->id, l->m->role_ttl_ms, l->now);
    buf_adds(out, "{\n  \"Code\" : \"Success\",\n  \"LastUpdated\" : \"");
    add_time(out, key->made);
    buf_printf(out,
        "\",\n  \"Type\" : \"AWS-HMAC\",\n  \"AccessKeyId\" : \"%s\",\n  \"SecretAccessKey\" : "
        "\"%s\",\n"
        "  \"Token\" : \"%s\",\n  \"Expiration\" : \"",
        key->access, key->secret, key->token);
    add_time(out, key->expires);
    buf_adds(out, "\"\n}");
    return true;
}

static bool write_user_data(const struct metadata_query *l, struct buf *out)
{
    buf_add(out, buf_str(&l->spec->user_data), l->spec->user_data.len);
    return l->spec->user_data.len > 0;
}

static bool write_document(const struct metadata_query *l, struct buf *out)
{
    const struct instance *i = l->i;
    buf_printf(out,
        "{\n  \"accountId\" : \"%s\",\n  \"architecture\" : \"x86_64\",\n  \"availabilityZone\" : "
        "\"%s\",\n"
        "  \"billingProducts\" : null,\n  \"devpayProductCodes\" : null,\n  "
        "\"marketplaceProductCodes\" : "
        "null,\n"
        "  \"imageId\" : \"%s\",\n  \"instanceId\" : \"%s\",\n  \"instanceType\" : \"%s\",\n  "
        "\"kernelId\" : null,\n"
        "  \"pendingTime\" : \"",
        l->m->region->o->account, i->pool->zone, l->spec->image, i->id, i->pool->type);
    add_time(out, i->launched_at);
    buf_printf(out,
        "\",\n  \"privateIp\" : \"%s\",\n  \"ramdiskId\" : null,\n  \"region\" : \"%s\",\n"
        "  \"version\" : \"2017-09-30\"\n}",
        i->private_ip, l->m->region->o->name);
    return true;
}

/* Sorted as in the listings. A path that ends in '/' also matches any one name below it, passed as
 * rest. */
static const struct {
    const char *path;
    const char *content_type;
    write_fn write;
} tree[] = {
    {"dynamic/instance-identity/document", TEXT, write_document},
    {"meta-data/ami-id", TEXT, write_image},
    {"meta-data/ami-launch-index", TEXT, write_launch_index},
    {"meta-data/events/maintenance/scheduled", JSON, write_maintenance},
    {"meta-data/events/recommendations/rebalance", JSON, write_rebalance},
    {"meta-data/iam/security-credentials/", TEXT, write_role},
    {"meta-data/instance-id", TEXT, write_id},
    {"meta-data/instance-life-cycle", TEXT, write_life_cycle},
    {"meta-data/instance-type", TEXT, write_type},
    {"meta-data/local-ipv4", TEXT, write_ip},
    {"meta-data/placement/availability-zone", TEXT, write_zone},
    {"meta-data/placement/availability-zone-id", TEXT, write_zone_id},
    {"meta-data/placement/region", TEXT, write_region},
    {"meta-data/reservation-id", TEXT, write_reservation},
    {"meta-data/services/domain", TEXT, write_domain},
    {"meta-data/spot/instance-action", JSON, write_action},
    {"meta-data/spot/termination-time", TEXT, write_termination_time},
    {"meta-data/tags/instance/", TEXT, write_tags},
    {"user-data", "application/octet-stream", write_user_data},
};
#define N_TREE (sizeof(tree) / sizeof(tree[0]))

static bool write_below(
    const char *dir, struct metadata_query *l, const char *path, struct buf *out)
{
    if (!str_starts(path, dir) || !path[strlen(dir)] || strchr(path + strlen(dir), '/'))
        return false;
    l->rest = path + strlen(dir);
    return str_eq(dir, "meta-data/tags/instance/") ? write_tag(l, out) : write_role_keys(l, out);
}

/* The names directly below dir that have content, one per line. */
static bool list(const char *dir, const struct metadata_query *l, struct buf *out)
{
    char last[64] = "";
    size_t n = strlen(dir);
    for (size_t k = 0; k < N_TREE; k++) {
        struct buf seen = {0};
        bool is_there = str_starts(tree[k].path, dir) && tree[k].write(l, &seen);
        buf_deinit(&seen);
        if (!is_there)
            continue;
        char name[64];
        const char *rest = tree[k].path + n;
        snprintf(name, sizeof(name), "%.*s",
            (int)(strcspn(rest, "/") + (strchr(rest, '/') != NULL)), rest);
        if (!str_eq(name, last))
            buf_printf(out, "%s%s", last[0] ? "\n" : "", name);
        STR_COPY(last, name);
    }
    return last[0] != '\0';
}

static bool find(struct metadata_query *l, const char *path, struct ec2_metadata_reply *reply)
{
    for (size_t k = 0; k < N_TREE; k++) {
        const char *at = tree[k].path;
        bool is_dir = str_ends(at, "/");
        bool is_it =
            str_eq(path, at) || (is_dir && strlen(path) == strlen(at) - 1 && str_starts(at, path));
        if (!is_it && (!is_dir || !write_below(at, l, path, &reply->body)))
            continue;
        reply->content_type = tree[k].content_type;
        return !is_it || tree[k].write(l, &reply->body);
    }
    char dir[128];
    snprintf(dir, sizeof(dir), "%s%s", path, !path[0] || str_ends(path, "/") ? "" : "/");
    return list(dir, l, &reply->body);
}

/* "/latest/x" and "/2021-03-23/x" give "x"; NULL for anything else. */
static const char *below_version(const char *path)
{
    static const char form[] = "/dddd-dd-dd";
    if (str_starts(path, "/latest/") || str_eq(path, "/latest"))
        return path[7] ? path + 8 : "";
    for (size_t k = 0; k < sizeof(form) - 1; k++)
        if (form[k] == 'd' ? path[k] < '0' || path[k] > '9' : path[k] != form[k])
            return NULL;
    return path[11] == '/' ? path + 12 : path[11] ? NULL : "";
}

void ec2_metadata_answer(const struct ec2_metadata *m, const struct ec2_metadata_request *r,
    struct wall now, struct ec2_metadata_reply *reply)
{
    const struct launch_spec *spec = &m->instance->reservation->spec;
    *reply = (struct ec2_metadata_reply){.status = 200, .content_type = TEXT};
    const char *path = below_version(r->path);
    struct metadata_query l = {.m = m, .i = m->instance, .spec = spec, .now = now};
    if (spec->is_metadata_off)
        ec2_metadata_error(403, reply);
    else if (str_eq(r->method, "PUT"))
        issue_token(m, r, now, reply);
    else if (!str_eq(r->method, "GET") && !str_eq(r->method, "HEAD"))
        ec2_metadata_error(405, reply);
    else if (r->token ? !token_is_good(m, r->token, now) : spec->metadata_needs_token)
        ec2_metadata_error(401, reply);
    else if (path && str_eq(path, "api/token"))
        ec2_metadata_error(405, reply);
    else if (!path || !find(&l, path, reply))
        ec2_metadata_error(404, reply);
}
