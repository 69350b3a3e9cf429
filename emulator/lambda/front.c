/* SPDX-License-Identifier: Apache-2.0
 *
 * Lambda Cloud: its keys in the configuration, and the front's table. Its instances have no
 * metadata service.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/config_section.h"
#include "emulator/lambda/cloud.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_EVERY_MS 1000
#define LAUNCH_EVERY_MS 12000
#define EVERY_MAX_MS 3600000
#define FILE_SYSTEMS_MAX 100

/* The configuration keys of Lambda's section. */
struct options {
    char keys[LAMBDA_CLOUD_KEYS_MAX][LAMBDA_CLOUD_KEY_MAX];
    size_t n_keys;
    const char **ssh_keys, **images; /* NULL-terminated; NULL for any */
    struct lambda_cloud_file_system *file_systems;
    size_t n_file_systems;
    int64_t request_every_ms, launch_every_ms;
};

/* ---- Configuration ---- */

/* One word of visible ASCII, valid in both forms of the header. */
static bool is_key(const char *text)
{
    size_t n = strlen(text);
    for (size_t k = 0; k < n; k++)
        if (text[k] <= ' ' || text[k] > '~' || text[k] == ':')
            return false;
    return n > 0 && n < LAMBDA_CLOUD_KEY_MAX;
}

static void read_keys(struct config_section *s, struct options *o)
{
    const struct yaml_node *seq = yaml_opt_seq(&s->r, "api_keys", LAMBDA_CLOUD_KEYS_MAX);
    for (size_t k = 0; seq && k < seq->n_items && s->r.rc == 0; k++) {
        const struct yaml_node *item = seq->items[k];
        if (item->type != YAML_SCALAR || !is_key(item->text))
            yaml_reader_fail(&s->r, item,
                "expected an API key: one word of 1 to %d characters, without ':'",
                LAMBDA_CLOUD_KEY_MAX - 1);
        else
            STR_COPY(o->keys[o->n_keys++], item->text);
    }
    if (o->n_keys == 0)
        yaml_reader_fail(&s->r, NULL, "api_keys: at least one is needed to call with");
}

static void read_file_systems(struct config_section *s, struct options *o)
{
    const struct yaml_node *map = yaml_opt_map(&s->r, "file_systems");
    if (!map || map->n_items == 0)
        return;
    if (map->n_items > FILE_SYSTEMS_MAX) {
        yaml_reader_fail(&s->r, map, "more than %d file systems", FILE_SYSTEMS_MAX);
        return;
    }
    o->file_systems = mem_array(map->n_items, sizeof(*o->file_systems));
    for (size_t k = 0; k < map->n_items && s->r.rc == 0; k++) {
        const struct yaml_node *item = map->items[k];
        if (item->type != YAML_SCALAR || !str_is_name(item->text, CLOUD_NAME_MAX - 1) ||
            !str_is_name(item->key, CLOUD_NAME_MAX - 1)) {
            yaml_reader_fail(&s->r, item, "expected the region of a file system, as NAME: REGION");
            return;
        }
        STR_COPY(o->file_systems[k].name, item->key);
        STR_COPY(o->file_systems[k].region, item->text);
        o->n_file_systems = k + 1;
    }
}

static void *read_options(struct config_section *s)
{
    struct options *o = mem_alloc(sizeof(*o));
    read_keys(s, o);
    o->ssh_keys = config_names(s, "ssh_keys");
    o->images = config_names(s, "images");
    read_file_systems(s, o);
    o->request_every_ms =
        yaml_opt_i64(&s->r, "request_every_ms", 0, EVERY_MAX_MS, REQUEST_EVERY_MS);
    o->launch_every_ms = yaml_opt_i64(&s->r, "launch_every_ms", 0, EVERY_MAX_MS, LAUNCH_EVERY_MS);
    return o;
}

static void free_options(void *options)
{
    struct options *o = options;
    if (!o)
        return;
    config_names_free(o->ssh_keys);
    config_names_free(o->images);
    free(o->file_systems);
    explicit_bzero(o->keys, sizeof(o->keys));
    free(o);
}

/* ---- State ---- */

static int open_lambda(const struct front_setup *setup, void **ret_state, struct err *e)
{
    const struct options *o = setup->options;
    struct lambda_cloud *cloud = mem_alloc(sizeof(*cloud));
    (void)e;
    *cloud = (struct lambda_cloud){.n_keys = o->n_keys,
        .ssh_keys = (const char *const *)o->ssh_keys,
        .images = (const char *const *)o->images,
        .file_systems = o->file_systems,
        .n_file_systems = o->n_file_systems,
        .request_every_ms = o->request_every_ms,
        .launch_every_ms = o->launch_every_ms};
    memcpy(cloud->keys, o->keys, sizeof(cloud->keys));
    *ret_state = cloud;
    return 0;
}

static void close_lambda(void *state)
{
    struct lambda_cloud *cloud = state;
    if (cloud)
        explicit_bzero(cloud->keys, sizeof(cloud->keys));
    free(cloud);
}

static void make_id(struct prng *ids, char *out, size_t size)
{
    unsigned long long high = prng_u64(ids), low = prng_u64(ids);
    snprintf(out, size, "%016llx%016llx", high, low);
}

/* ---- No metadata ---- */

static void metadata_error(int status, struct front_reply *reply)
{
    reply->status = status;
    reply->content_type = "text/plain";
    buf_clear(&reply->body);
    buf_adds(&reply->body, "Lambda's instances have no metadata service\n");
}

static void metadata(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    (void)s, (void)r;
    metadata_error(404, reply);
}

const struct front lambda_front = {.name = "lambda",
    .port_key = "lambda",
    .region = "global",
    .is_on_demand_only = true,
    .notice_s = 0,
    .role_ttl_ms = SECONDS_MS(3600),
    .body_max = LAMBDA_CLOUD_BODY_MAX,
    .garbage = "{\"data\": {\"inst",
    .garbage_type = LAMBDA_CLOUD_TYPE,
    .internal_error = "global/internal-error",
    .make_id = make_id,
    .read_options = read_options,
    .free_options = free_options,
    .open = open_lambda,
    .close = close_lambda,
    .api = lambda_cloud_api,
    .api_error = lambda_cloud_api_error,
    .metadata = metadata,
    .metadata_error = metadata_error};
