/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /instance-operations/launch: from JSON to a launch_spec, with Lambda's own refusals. The
 * limits are those of its OpenAPI description, version 1.10.
 */
#include "base/str.h"
#include "emulator/lambda/cloud.h"
#include <string.h>

#define NAME_MAX_BYTES 64
#define TEXT_MAX 255
#define LIST_MAX 100
#define TAG_KEY_MAX 55
#define TAG_VALUE_MAX 128
#define USER_DATA_MAX 1000000
#define INVALID "global/invalid-parameters"
#define MISSING "global/object-does-not-exist"

struct reading {
    struct lambda_cloud_call *c;
    struct launch_spec *spec;
    struct err e;
    const char *file_system; /* "" if none */
};

/* ---- Existing resources ---- */

static bool is_listed(const char *const *names, const char *name)
{
    for (size_t k = 0; names && names[k]; k++)
        if (str_eq(names[k], name))
            return true;
    return !names;
}

static int refuse(struct reading *rd, const char *what, const char *name)
{
    return lambda_cloud_fail(rd->c, 400, MISSING, "The %s \"%.100s\" does not exist.", what, name);
}

static int check_file_system(struct reading *rd)
{
    const struct lambda_cloud *cloud = rd->c->cloud;
    if (!rd->file_system[0])
        return 0;
    for (size_t k = 0; k < cloud->n_file_systems; k++) {
        if (!str_eq(cloud->file_systems[k].name, rd->file_system))
            continue;
        if (str_eq(cloud->file_systems[k].region, rd->spec->zone))
            return 0;
        return lambda_cloud_fail(rd->c, 400,
            "instance-operations/launch/file-system-in-wrong-region",
            "The file system \"%s\" is in %s, the instance would be in %s.", rd->file_system,
            cloud->file_systems[k].region, rd->spec->zone);
    }
    return refuse(rd, "file system", rd->file_system);
}

/* A type may have no pool in the requested region: it then has no capacity there. */
static int check_region(struct reading *rd)
{
    const struct market *m = &rd->c->region->market;
    const struct launch_spec *s = rd->spec;
    if (!market_has_zone(m, s->zone))
        return lambda_cloud_fail(rd->c, 400, INVALID,
            "Invalid request data. region_name: \"%s\" is not a region", s->zone);
    return market_find(m, NULL, s->type, CLOUD_ON_DEMAND) ? 0
                                                          : refuse(rd, "instance type", s->type);
}

static int check_names(struct reading *rd)
{
    const struct lambda_cloud *cloud = rd->c->cloud;
    if (check_region(rd) < 0 || check_file_system(rd) < 0)
        return -1;
    if (!is_listed(cloud->ssh_keys, rd->spec->key_name))
        return refuse(rd, "SSH key", rd->spec->key_name);
    return !rd->spec->image[0] || is_listed(cloud->images, rd->spec->image)
               ? 0
               : refuse(rd, "image", rd->spec->image);
}

/* ---- The body ---- */

/* The one name in a list of exactly one, or at most one. */
static const char *read_one(
    struct json_reader *r, const char *key, const json_t *list, bool is_required, size_t max_len)
{
    const char *name = json_string_value(json_array_get(list, 0));
    size_t n = json_array_size(list);
    if (n == 0 && !is_required)
        return "";
    if (r->rc == 0 && (n != 1 || !name || !*name || strlen(name) > max_len))
        json_reader_fail(r, key, "expected %s one name", is_required ? "exactly" : "at most");
    return name ? name : "";
}

/* [a-z][a-z0-9-:]+ */
static bool is_tag_key(const char *key)
{
    size_t n = strlen(key);
    return n >= 2 && n <= TAG_KEY_MAX && key[0] >= 'a' && key[0] <= 'z' &&
           strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-:") == n;
}

static void read_tags(struct reading *rd, struct json_reader *outer)
{
    const json_t *list = json_opt_array(outer, "tags", INSTANCE_TAGS_MAX);
    for (size_t k = 0; k < json_array_size(list) && outer->rc == 0; k++) {
        struct json_reader r;
        json_reader_init(&r, json_array_get(list, k), "tags", &rd->e);
        const char *key = json_req_str(&r, "key", TAG_KEY_MAX),
                   *value = json_req_str(&r, "value", TAG_VALUE_MAX);
        if (r.rc == 0 && !is_tag_key(key))
            json_reader_fail(&r, "key", "expected [a-z][a-z0-9-:]+");
        if (r.rc == 0 && tags_get(&rd->spec->tags, key))
            json_reader_fail(&r, "key", "is given twice");
        outer->rc = json_reader_finish(&r);
        if (outer->rc == 0)
            tags_set(&rd->spec->tags, key, value);
    }
}

static void read_image(struct reading *rd, struct json_reader *outer)
{
    const json_t *image = json_opt_object(outer, "image");
    struct json_reader r;
    if (!image || outer->rc != 0)
        return;
    json_reader_init(&r, image, "image", &rd->e);
    const char *id = json_opt_str(&r, "id", CLOUD_NAME_MAX - 1, ""),
               *family = json_opt_str(&r, "family", CLOUD_NAME_MAX - 1, "");
    if (r.rc == 0 && !*id == !*family)
        json_reader_fail(&r, NULL, "expected either an id or a family");
    STR_COPY(rd->spec->image, *id ? id : family);
    outer->rc = json_reader_finish(&r);
}

static void read_names(struct reading *rd, struct json_reader *r)
{
    struct launch_spec *s = rd->spec;
    json_req_strcpy(r, "region_name", s->zone, sizeof(s->zone));
    json_req_strcpy(r, "instance_type_name", s->type, sizeof(s->type));
    const json_t *keys = json_req_array(r, "ssh_key_names", LIST_MAX);
    STR_COPY(s->key_name, read_one(r, "ssh_key_names", keys, true, sizeof(s->key_name) - 1));
    const json_t *file_systems = json_opt_array(r, "file_system_names", LIST_MAX);
    rd->file_system = read_one(r, "file_system_names", file_systems, false, CLOUD_NAME_MAX - 1);
    STR_COPY(s->name, json_opt_str(r, "name", NAME_MAX_BYTES, ""));
}

static int read_body(struct reading *rd, const json_t *body)
{
    struct json_reader r;
    json_reader_init(&r, body, "", &rd->e);
    read_names(rd, &r);
    read_image(rd, &r);
    read_tags(rd, &r);
    buf_adds(&rd->spec->user_data, json_opt_str(&r, "user_data", USER_DATA_MAX, ""));
    json_opt_str(&r, "hostname", TEXT_MAX, NULL);
    json_opt_array(&r, "file_system_mounts", LIST_MAX);
    json_opt_array(&r, "firewall_rulesets", LIST_MAX);
    json_opt_i64(&r, "quantity", 1, 1, 1);
    if (json_reader_finish(&r) < 0)
        return lambda_cloud_fail(rd->c, 400, INVALID, "Invalid request data. %s", rd->e.text);
    rd->spec->market = CLOUD_ON_DEMAND;
    rd->spec->powers_off_to_stop = true;
    if (rd->file_system[0])
        tags_set(&rd->spec->attributes, rd->file_system, "");
    return check_names(rd);
}

/* ---- The launch ---- */

static int launch(struct lambda_cloud_call *c, struct launch_spec *spec)
{
    struct reservation *v = NULL;
    struct err e;
    int rc = market_find(&c->region->market, spec->zone, spec->type, CLOUD_ON_DEMAND)
                 ? region_launch(c->region, spec, spec->zone, "", 1, 1, c->site->now, &v, &e)
                 : ERR_NO_CAPACITY;
    if (rc < 0) {
        lambda_cloud_api_error(c->site,
            rc == ERR_QUOTA ? "global/quota-exceeded"
                            : "instance-operations/launch/insufficient-capacity",
            c->reply);
        return -1;
    }
    lambda_cloud_reply(c, json_pack("{s:[s]}", "instance_ids", v->instances[0]->id));
    return 0;
}

int lambda_cloud_launch(struct lambda_cloud_call *c)
{
    struct launch_spec spec = {0};
    struct reading rd = {.c = c, .spec = &spec, .file_system = ""};
    c->region->counts.launch_calls++;
    json_t *body = lambda_cloud_body(c);
    int rc = body ? read_body(&rd, body) : -1;
    json_wipe(body); /* user data contains a one-use secret */
    if (rc == 0)
        rc = launch(c, &spec);
    launch_spec_deinit(&spec);
    return rc;
}
