/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the configuration. Events in the file are turned into JSON, so that they are read by the same code
 * as those that come to the control endpoint.
 */
#include "cloud/emulator/config.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "cloud/catalogue.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_TEXT_MAX 4096
#define NAME_TEXT_MAX (CLOUD_NAME_MAX - 1)
#define MS_MAX (24 * 3600 * 1000)
#define COUNT_MAX 1000000
#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct reading {
    struct yaml_reader r;
    const char *file;
    struct emulator_config *c;
    struct err *e;
    const struct yaml_node *pool; /* that is being read */
};

/* ---- Small readers ---- */

/* Paths are relative to the configuration's directory. The caller's. */
static char *resolve(const char *file, const char *path)
{
    const char *slash = strrchr(file, '/');
    if (path[0] == '/' || !slash)
        return mem_strdup(path);
    return mem_printf("%.*s/%s", (int)(slash - file), file, path);
}

static void copy_str(struct yaml_reader *r, const char *key, char *dst, size_t size, const char *fallback)
{
    str_copy(dst, size, yaml_opt_str(r, key, size - 1, fallback));
}

/* A word or a list of words: how many there are, and the k-th; NULL after an error was noted. */
static size_t n_words(const struct yaml_node *node)
{
    return !node ? 0 : node->type == YAML_SCALAR ? 1 : node->n_items;
}

static const char *word_at(struct yaml_reader *r, const struct yaml_node *node, size_t k)
{
    const struct yaml_node *item = node->type == YAML_SCALAR ? node : node->items[k];
    if (node->type == YAML_MAPPING || item->type != YAML_SCALAR || !str_is_name(item->text, NAME_TEXT_MAX)) {
        yaml_reader_fail(
            r, item, "expected a name of at most %d characters, or a list of them", NAME_TEXT_MAX);
        return NULL;
    }
    return item->text;
}

static const char **read_names(struct yaml_reader *r, const char *key)
{
    const struct yaml_node *seq = yaml_opt_seq(r, key, CONFIG_LIST_MAX);
    if (!seq)
        return NULL;
    const char **names = mem_array(seq->n_items + 1, sizeof(*names));
    for (size_t k = 0; k < seq->n_items; k++) {
        const char *name = word_at(r, seq, k);
        if (!name)
            break;
        names[k] = mem_strdup(name);
    }
    return names;
}

static void free_names(const char **names)
{
    for (size_t k = 0; names && names[k]; k++)
        free((char *)names[k]);
    free(names);
}

/* A reader for a mapping below; its errors are the outer one's. */
static void finish_inner(struct reading *rd, struct yaml_reader *inner)
{
    int rc = yaml_reader_finish(inner);
    if (rc < 0 && rd->r.rc == 0)
        rd->r.rc = rc;
}

static void init_inner(struct reading *rd, struct yaml_reader *inner, const struct yaml_node *map)
{
    yaml_reader_init(inner, rd->file, map, rd->r.rc == 0 ? rd->e : NULL);
}

/* ---- Parts ---- */

static void read_keys(struct reading *rd)
{
    const struct yaml_node *seq = yaml_opt_seq(&rd->r, "keys", CONFIG_KEYS_MAX);
    for (size_t k = 0; seq && k < seq->n_items && rd->r.rc == 0; k++) {
        struct yaml_reader r;
        init_inner(rd, &r, seq->items[k]);
        const char *access = yaml_req_str(&r, "access_key", KEYRING_ACCESS_MAX - 1);
        const char *secret = yaml_req_str(&r, "secret_key", KEYRING_SECRET_MAX - 1);
        finish_inner(rd, &r);
        if (rd->r.rc < 0)
            return;
        STR_COPY(rd->c->keys[k].access, access);
        STR_COPY(rd->c->keys[k].secret, secret);
        rd->c->n_keys = k + 1;
    }
    if (rd->c->n_keys == 0)
        yaml_reader_fail(&rd->r, NULL, "keys: at least one access key is needed to sign requests with");
}

static void read_metadata(struct reading *rd)
{
    static const struct yaml_node nothing = {.type = YAML_MAPPING};
    struct emulator_config *c = rd->c;
    const struct yaml_node *map = yaml_opt_map(&rd->r, "metadata");
    struct yaml_reader r;
    init_inner(rd, &r, map ? map : &nothing);
    copy_str(&r, "host", c->metadata_host, sizeof(c->metadata_host), "127.0.0.1");
    c->metadata_port = (int)yaml_opt_i64(&r, "port", 0, 65535, 0);
    c->role_ttl_ms = yaml_opt_duration_ms(&r, "role_ttl", SECONDS_MS(6 * 3600));
    finish_inner(rd, &r);
}

static void read_subnets(struct reading *rd)
{
    const struct yaml_node *map = yaml_opt_map(&rd->r, "subnets");
    if (!map)
        return;
    rd->c->subnets = mem_array(map->n_items + 1, sizeof(*rd->c->subnets));
    for (size_t k = 0; k < map->n_items; k++) {
        const struct yaml_node *zone = map->items[k];
        struct ec2_subnet *s = &rd->c->subnets[rd->c->n_subnets];
        if (zone->type != YAML_SCALAR || !str_is_name(zone->key, NAME_TEXT_MAX) ||
            !str_is_name(zone->text, NAME_TEXT_MAX)) {
            yaml_reader_fail(&rd->r, zone, "expected SUBNET: ZONE, both names");
            return;
        }
        STR_COPY(s->id, zone->key);
        STR_COPY(s->zone, zone->text);
        rd->c->n_subnets++;
    }
}

static void read_trace(struct reading *rd, struct yaml_reader *r, struct market_follow *f)
{
    const struct yaml_node *node = yaml_opt(r, "trace");
    const char *name = yaml_opt_str(r, "trace", PATH_TEXT_MAX, NULL);
    f->speed = yaml_opt_i64(r, "speed", 1, 1000000, 1);
    f->offset = yaml_opt_i64(r, "offset", 0, TRACE_TICKS_MAX, 0);
    f->scale = yaml_opt_i64(r, "scale", 1, 1000, 1);
    if (!name || r->rc < 0)
        return;
    char *path = resolve(rd->file, name);
    struct err e;
    if (trace_load(path, &f->trace, &e) < 0)
        yaml_reader_fail(r, node, "%s", e.text);
    free(path);
}

/* spot: or on_demand: of a pool. */
static void read_side(
    struct reading *rd, const struct yaml_node *map, enum cloud_market market, struct market_pool *p)
{
    static const struct yaml_node nothing = {.type = YAML_MAPPING};
    const struct catalogue_type *known = catalogue_find("aws", p->type);
    int64_t usual = !known ? -1 : market == CLOUD_SPOT ? known->spot_uusd_h : known->on_demand_uusd_h;
    struct yaml_reader r;
    init_inner(rd, &r, map ? map : &nothing);
    p->capacity[market] = yaml_opt_i64(&r, "capacity", 0, COUNT_MAX, MARKET_UNLIMITED);
    p->price_uusd_h[market] = yaml_opt_uusd(&r, "usd_per_hour", usual);
    if (market == CLOUD_SPOT)
        read_trace(rd, &r, &p->follow);
    bool has_price = p->price_uusd_h[market] > 0 || (market == CLOUD_SPOT && p->follow.trace.prices_uusd_h);
    if (r.rc == 0 && !has_price)
        yaml_reader_fail(
            &r, map ? map : rd->pool, "usd_per_hour: the usual price of %s is not known; say one", p->type);
    finish_inner(rd, &r);
}

static void add_pool(struct reading *rd, const struct yaml_node *spot, const struct yaml_node *on_demand,
    const char *zone, const char *type)
{
    struct emulator_config *c = rd->c;
    struct market_pool p = {0};
    STR_COPY(p.zone, zone);
    STR_COPY(p.type, type);
    for (size_t k = 0; k < c->n_pools; k++)
        if (str_eq(c->pools[k].zone, zone) && str_eq(c->pools[k].type, type))
            yaml_reader_fail(&rd->r, rd->pool, "the pool %s %s is given twice", zone, type);
    if (c->n_pools == MARKET_POOLS_MAX)
        yaml_reader_fail(&rd->r, rd->pool, "more than %d pools", MARKET_POOLS_MAX);
    if (rd->r.rc < 0)
        return;
    read_side(rd, on_demand, CLOUD_ON_DEMAND, &p);
    read_side(rd, spot, CLOUD_SPOT, &p);
    c->pools = mem_resize(c->pools, c->n_pools + 1, sizeof(*c->pools));
    c->pools[c->n_pools++] = p;
}

static void read_pool(struct reading *rd, const struct yaml_node *map)
{
    struct yaml_reader r;
    init_inner(rd, &r, map);
    rd->pool = map;
    const struct yaml_node *zones = yaml_opt(&r, "zone"), *types = yaml_opt(&r, "type");
    const struct yaml_node *spot = yaml_opt_map(&r, "spot"), *on_demand = yaml_opt_map(&r, "on_demand");
    if (n_words(zones) == 0 || n_words(types) == 0)
        yaml_reader_fail(&r, NULL, "a pool needs a zone and a type, or lists of them");
    finish_inner(rd, &r);
    for (size_t z = 0; z < n_words(zones) && rd->r.rc == 0; z++)
        for (size_t t = 0; t < n_words(types) && rd->r.rc == 0; t++) {
            const char *zone = word_at(&rd->r, zones, z), *type = word_at(&rd->r, types, t);
            if (zone && type)
                add_pool(rd, spot, on_demand, zone, type);
        }
}

static void read_pools(struct reading *rd)
{
    const struct yaml_node *seq = yaml_opt_seq(&rd->r, "pools", MARKET_POOLS_MAX);
    for (size_t k = 0; seq && k < seq->n_items && rd->r.rc == 0; k++)
        read_pool(rd, seq->items[k]);
    if (rd->c->n_pools == 0)
        yaml_reader_fail(&rd->r, NULL, "pools: at least one is needed");
}

/* ---- Events ---- */

static json_t *to_json(const struct yaml_node *node)
{
    int64_t n;
    if (node->type == YAML_MAPPING) {
        json_t *o = json_object();
        for (size_t k = 0; k < node->n_items; k++)
            json_object_set_new(o, node->items[k]->key, to_json(node->items[k]));
        return o;
    }
    if (node->type == YAML_SEQUENCE) {
        json_t *a = json_array();
        for (size_t k = 0; k < node->n_items; k++)
            json_array_append_new(a, to_json(node->items[k]));
        return a;
    }
    if (node->plain && (str_eq(node->text, "true") || str_eq(node->text, "false")))
        return json_boolean(str_eq(node->text, "true"));
    if (node->plain && str_to_i64(node->text, INT64_MIN + 1, INT64_MAX, "number", &n, NULL) == 0)
        return json_integer(n);
    return json_text(node->text);
}

static void read_script_entry(struct reading *rd, const struct yaml_node *map, struct region_script *s)
{
    struct err e;
    if (map->type != YAML_MAPPING) {
        yaml_reader_fail(&rd->r, map, "expected a mapping: {at: 10s, reclaim: {...}}");
        return;
    }
    json_t *event = to_json(map);
    const char *at = json_string_value(json_object_get(event, "at"));
    char number[24];
    if (json_is_integer(json_object_get(event, "at"))) {
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(json_object_get(event, "at")));
        at = number;
    }
    if (!at || time_parse_duration(at, false, &s->at_ms, &e) < 0)
        yaml_reader_fail(&rd->r, map, "at: expected the time after the start (10s, 2m)");
    json_object_del(event, "at");
    if (rd->r.rc == 0 && region_event_parse(event, &s->event, &e) < 0)
        yaml_reader_fail(&rd->r, map, "%s", e.text);
    json_decref(event);
}

static int by_time(const void *a, const void *b)
{
    const struct region_script *x = a, *y = b;
    return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

static void read_script(struct reading *rd)
{
    const struct yaml_node *seq = yaml_opt_seq(&rd->r, "events", CONFIG_SCRIPT_MAX);
    if (!seq || seq->n_items == 0)
        return;
    rd->c->region.script = mem_array(seq->n_items, sizeof(struct region_script));
    rd->c->region.n_script = seq->n_items;
    for (size_t k = 0; k < seq->n_items && rd->r.rc == 0; k++)
        read_script_entry(rd, seq->items[k], &rd->c->region.script[k]);
    qsort(rd->c->region.script, seq->n_items, sizeof(struct region_script), by_time);
}

/* ---- The whole ---- */

static void read_region(struct reading *rd)
{
    static const char *const surplus[] = {"newest", "random", NULL};
    struct region_options *o = &rd->c->region;
    copy_str(&rd->r, "region", o->name, sizeof(o->name), "us-east-1");
    copy_str(&rd->r, "account", o->account, sizeof(o->account), "111122223333");
    o->seed = (uint64_t)yaml_opt_i64(&rd->r, "seed", 0, INT64_MAX, 1);
    o->boot_delay_ms = yaml_opt_i64(&rd->r, "boot_delay_ms", 0, MS_MAX, 1000);
    o->notice_ms = SECONDS_MS(yaml_opt_i64(&rd->r, "notice_s", 0, MS_MAX / 1000, 120));
    o->consistency_delay_ms = yaml_opt_i64(&rd->r, "consistency_delay_ms", 0, MS_MAX, 0);
    o->surplus = (enum region_surplus)yaml_opt_enum(&rd->r, "surplus", surplus, SURPLUS_NEWEST);
}

/* The directory of belay-agent, first in the PATH of user data. The program itself may be named too. */
static char *build_path(const char *file, const char *agent_path)
{
    struct stat st;
    if (!agent_path)
        return mem_strdup(SYSTEM_PATH);
    char *agent = resolve(file, agent_path), *whole = realpath(agent, NULL);
    if (whole && stat(whole, &st) == 0 && !S_ISDIR(st.st_mode))
        *strrchr(whole, '/') = '\0';
    char *path = mem_printf("%s:" SYSTEM_PATH, whole ? whole : agent);
    free(agent);
    free(whole);
    return path;
}

static void read_all(struct reading *rd)
{
    struct emulator_config *c = rd->c;
    read_region(rd);
    copy_str(&rd->r, "host", c->host, sizeof(c->host), "127.0.0.1");
    c->ec2_port = (int)yaml_opt_i64(&rd->r, "ec2_port", 0, 65535, 0);
    c->control_port = (int)yaml_opt_i64(&rd->r, "control_port", 0, 65535, 0);
    c->shutdown_ms = yaml_opt_i64(&rd->r, "shutdown_ms", 0, MS_MAX, 2000);
    const char *dir = yaml_opt_str(&rd->r, "dir", PATH_TEXT_MAX, NULL);
    c->dir = dir ? resolve(rd->file, dir) : NULL;
    c->path = build_path(rd->file, yaml_opt_str(&rd->r, "agent_path", PATH_TEXT_MAX, NULL));
    c->images = read_names(&rd->r, "images");
    c->profiles = read_names(&rd->r, "profiles");
    read_keys(rd);
    read_metadata(rd);
    read_subnets(rd);
    read_pools(rd);
    read_script(rd);
}

int config_parse(
    const char *file, const char *text, size_t n, struct emulator_config *ret_config, struct err *e)
{
    struct yaml_node *root = NULL;
    int rc = yaml_parse(file, text, n, &root, e);
    if (rc < 0)
        return rc;
    struct emulator_config c = {0};
    struct reading rd = {.file = file, .c = &c, .e = e};
    yaml_reader_init(&rd.r, file, root, e);
    read_all(&rd);
    rc = yaml_reader_finish(&rd.r);
    yaml_node_free(root);
    if (rc < 0)
        config_deinit(&c);
    else
        *ret_config = c;
    return rc;
}

int config_load(const char *file, struct emulator_config *ret_config, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(file, YAML_BYTES_MAX, &text, e);
    if (rc == 0)
        rc = config_parse(file, buf_str(&text), text.len, ret_config, e);
    explicit_bzero(text.data, text.len);
    buf_deinit(&text);
    return rc;
}

void config_deinit(struct emulator_config *c)
{
    for (size_t k = 0; k < c->n_pools; k++)
        trace_deinit(&c->pools[k].follow.trace);
    free(c->pools);
    free(c->subnets);
    free_names(c->images);
    free_names(c->profiles);
    free(c->region.script);
    free(c->dir);
    free(c->path);
    explicit_bzero(c->keys, sizeof(c->keys));
    *c = (struct emulator_config){0};
}
