/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the configuration. Events in the file are converted to JSON, so that the same code parses
 * them and the events sent to the control endpoint.
 */
#include "emulator/config.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "cloud/catalogue.h"
#include "emulator/config_section.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_TEXT_MAX (CLOUD_NAME_MAX - 1)
#define MS_MAX (24 * 3600 * 1000)
#define COUNT_MAX 1000000
#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct reading {
    struct config_section s;
    struct provider_config *p;
    const struct yaml_node *pool; /* the pool being read */
};

static const struct yaml_node nothing = {.type = YAML_MAPPING};

/* ---- Small readers ---- */

char *config_resolve(const char *file, const char *path)
{
    const char *slash = strrchr(file, '/');
    if (path[0] == '/' || !slash)
        return mem_strdup(path);
    return mem_printf("%.*s/%s", (int)(slash - file), file, path);
}

static void copy_str(
    struct yaml_reader *r, const char *key, char *dst, size_t size, const char *fallback)
{
    str_copy(dst, size, yaml_opt_str(r, key, size - 1, fallback));
}

/* A word or a list of words: their number, and the k-th; NULL after an error. */
static size_t n_words(const struct yaml_node *node)
{
    return !node ? 0 : node->type == YAML_SCALAR ? 1 : node->n_items;
}

static const struct yaml_node *item_at(const struct yaml_node *node, size_t k)
{
    return node->type == YAML_SCALAR ? node : node->items[k];
}

static const char *word_at(struct yaml_reader *r, const struct yaml_node *node, size_t k)
{
    const struct yaml_node *item = item_at(node, k);
    if (node->type == YAML_MAPPING || item->type != YAML_SCALAR ||
        !str_is_name(item->text, NAME_TEXT_MAX)) {
        yaml_reader_fail(
            r, item, "expected a name of at most %d characters, or a list of them", NAME_TEXT_MAX);
        return NULL;
    }
    return item->text;
}

/* The same for instance types, some of which have GPUs attached. */
static const char *type_at(struct reading *rd, const struct yaml_node *node, size_t k)
{
    const struct yaml_node *item = item_at(node, k);
    struct catalogue_parts parts;
    struct err why;
    if (node->type == YAML_MAPPING || item->type != YAML_SCALAR || !strchr(item->text, '+'))
        return word_at(&rd->s.r, node, k);
    if (catalogue_split(rd->p->front->name, item->text, &parts, &why) == 0)
        return item->text;
    yaml_reader_fail(&rd->s.r, item, "%s", why.text);
    return NULL;
}

const char **config_names(struct config_section *s, const char *key)
{
    struct yaml_reader *r = &s->r;
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

void config_names_free(const char **names)
{
    for (size_t k = 0; names && names[k]; k++)
        free((char *)names[k]);
    free(names);
}

void config_inner_init(
    struct config_section *s, struct yaml_reader *inner, const struct yaml_node *map)
{
    yaml_reader_init(inner, s->file, map, s->r.rc == 0 ? s->e : NULL);
}

void config_inner_finish(struct config_section *s, struct yaml_reader *inner)
{
    yaml_reader_finish_in(&s->r, inner);
}

/* ---- Parts ---- */

static void read_metadata(struct reading *rd)
{
    struct provider_config *p = rd->p;
    const struct yaml_node *map = yaml_opt_map(&rd->s.r, "metadata");
    struct yaml_reader r;
    config_inner_init(&rd->s, &r, map ? map : &nothing);
    copy_str(&r, "host", p->metadata_host, sizeof(p->metadata_host), "127.0.0.1");
    p->metadata_port = (int)yaml_opt_i64(&r, "port", 0, 65535, 0);
    p->role_ttl_ms = yaml_opt_duration_ms(&r, "role_ttl", p->front->role_ttl_ms);
    config_inner_finish(&rd->s, &r);
}

static void read_trace(struct reading *rd, struct yaml_reader *r, struct market_follow *f)
{
    const struct yaml_node *node = yaml_opt(r, "trace");
    const char *name = yaml_opt_str(r, "trace", CONFIG_PATH_MAX, NULL);
    f->speed = yaml_opt_i64(r, "speed", 1, 1000000, 1);
    f->offset = yaml_opt_i64(r, "offset", 0, TRACE_TICKS_MAX, 0);
    f->scale = yaml_opt_i64(r, "scale", 1, 1000, 1);
    if (!name || r->rc < 0)
        return;
    char *path = config_resolve(rd->s.file, name);
    struct err e;
    if (trace_load(path, &f->trace, &e) < 0)
        yaml_reader_fail(r, node, "%s", e.text);
    free(path);
}

/* A pool's spot: or on_demand:. */
static void read_side(struct reading *rd, const struct yaml_node *map, enum cloud_market market,
    struct market_pool *p)
{
    struct catalogue_type known;
    int64_t usual = -1;
    if (catalogue_find(rd->p->front->name, p->type, &known, NULL) == 0)
        usual = market == CLOUD_SPOT ? known.spot_uusd_h : known.on_demand_uusd_h;
    struct yaml_reader r;
    config_inner_init(&rd->s, &r, map ? map : &nothing);
    p->capacity[market] = yaml_opt_i64(&r, "capacity", 0, COUNT_MAX, MARKET_UNLIMITED);
    p->price_uusd_h[market] = yaml_opt_uusd(&r, "usd_per_hour", usual);
    if (market == CLOUD_SPOT)
        read_trace(rd, &r, &p->follow);
    bool has_price =
        p->price_uusd_h[market] > 0 || (market == CLOUD_SPOT && p->follow.trace.prices_uusd_h);
    if (r.rc == 0 && !has_price)
        yaml_reader_fail(&r, map ? map : rd->pool,
            "usd_per_hour: the usual price of %s is unknown; give one", p->type);
    config_inner_finish(&rd->s, &r);
}

static void add_pool(struct reading *rd, const struct yaml_node *spot,
    const struct yaml_node *on_demand, const char *zone, const char *type)
{
    struct provider_config *c = rd->p;
    struct market_pool p = {0};
    STR_COPY(p.zone, zone);
    STR_COPY(p.type, type);
    for (size_t k = 0; k < c->n_pools; k++)
        if (str_eq(c->pools[k].zone, zone) && str_eq(c->pools[k].type, type))
            yaml_reader_fail(&rd->s.r, rd->pool, "the pool %s %s is given twice", zone, type);
    if (c->n_pools == MARKET_POOLS_MAX)
        yaml_reader_fail(&rd->s.r, rd->pool, "more than %d pools", MARKET_POOLS_MAX);
    if (rd->s.r.rc < 0)
        return;
    read_side(rd, on_demand, CLOUD_ON_DEMAND, &p);
    if (!rd->p->front->is_on_demand_only)
        read_side(rd, spot, CLOUD_SPOT, &p);
    else if (spot)
        yaml_reader_fail(&rd->s.r, spot, "spot: %s has no spot instances", rd->p->front->name);
    else
        /* the price of a market with capacity 0 */
        p.price_uusd_h[CLOUD_SPOT] = p.price_uusd_h[CLOUD_ON_DEMAND];
    c->pools = mem_resize(c->pools, c->n_pools + 1, sizeof(*c->pools));
    c->pools[c->n_pools++] = p;
}

static void read_pool(struct reading *rd, const struct yaml_node *map)
{
    struct yaml_reader r;
    config_inner_init(&rd->s, &r, map);
    rd->pool = map;
    const struct yaml_node *zones = yaml_opt(&r, "zone"), *types = yaml_opt(&r, "type");
    const struct yaml_node *spot = yaml_opt_map(&r, "spot"),
                           *on_demand = yaml_opt_map(&r, "on_demand");
    if (n_words(zones) == 0 || n_words(types) == 0)
        yaml_reader_fail(&r, NULL, "a pool needs a zone and a type, or lists of them");
    config_inner_finish(&rd->s, &r);
    for (size_t z = 0; z < n_words(zones) && rd->s.r.rc == 0; z++)
        for (size_t t = 0; t < n_words(types) && rd->s.r.rc == 0; t++) {
            const char *zone = word_at(&rd->s.r, zones, z), *type = type_at(rd, types, t);
            if (zone && type)
                add_pool(rd, spot, on_demand, zone, type);
        }
}

static void read_pools(struct reading *rd)
{
    const struct yaml_node *seq = yaml_opt_seq(&rd->s.r, "pools", MARKET_POOLS_MAX);
    for (size_t k = 0; seq && k < seq->n_items && rd->s.r.rc == 0; k++)
        read_pool(rd, seq->items[k]);
    if (rd->p->n_pools == 0)
        yaml_reader_fail(&rd->s.r, NULL, "pools: at least one is needed");
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

static void read_script_entry(
    struct reading *rd, const struct yaml_node *map, struct region_script *s)
{
    struct err e;
    if (map->type != YAML_MAPPING) {
        yaml_reader_fail(&rd->s.r, map, "expected a mapping: {at: 10s, reclaim: {...}}");
        return;
    }
    json_t *event = to_json(map);
    const char *at = json_string_value(json_object_get(event, "at"));
    char number[24];
    if (json_is_integer(json_object_get(event, "at"))) {
        snprintf(number, sizeof(number), "%lld",
            (long long)json_integer_value(json_object_get(event, "at")));
        at = number;
    }
    if (!at || time_parse_duration(at, false, &s->at_ms, &e) < 0)
        yaml_reader_fail(&rd->s.r, map, "at: expected the time after the start (10s, 2m)");
    json_object_del(event, "at");
    if (rd->s.r.rc == 0 && region_event_parse(event, &s->event, &e) < 0)
        yaml_reader_fail(&rd->s.r, map, "%s", e.text);
    json_decref(event);
}

static int by_time(const void *a, const void *b)
{
    const struct region_script *x = a, *y = b;
    return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

static void read_script(struct reading *rd)
{
    const struct yaml_node *seq = yaml_opt_seq(&rd->s.r, "events", CONFIG_SCRIPT_MAX);
    if (!seq || seq->n_items == 0)
        return;
    rd->p->region.script = mem_array(seq->n_items, sizeof(struct region_script));
    rd->p->region.n_script = seq->n_items;
    for (size_t k = 0; k < seq->n_items && rd->s.r.rc == 0; k++)
        read_script_entry(rd, seq->items[k], &rd->p->region.script[k]);
    qsort(rd->p->region.script, seq->n_items, sizeof(struct region_script), by_time);
}

/* ---- Volumes ---- */

static void read_tags(struct reading *rd, struct yaml_reader *r, struct tags *tags)
{
    const struct yaml_node *map = yaml_opt_map(r, "tags");
    for (size_t k = 0; map && k < map->n_items && rd->s.r.rc == 0; k++) {
        const struct yaml_node *item = map->items[k];
        if (item->type != YAML_SCALAR || !item->key[0] ||
            strlen(item->key) > INSTANCE_TAG_KEY_MAX ||
            strlen(item->text) > INSTANCE_TAG_VALUE_MAX || k == INSTANCE_TAGS_MAX)
            yaml_reader_fail(&rd->s.r, item,
                "expected at most %d tags, KEY: VALUE, of at most %d and %d bytes",
                INSTANCE_TAGS_MAX, INSTANCE_TAG_KEY_MAX, INSTANCE_TAG_VALUE_MAX);
        else
            tags_set(tags, item->key, item->text);
    }
}

static bool has_zone(const struct provider_config *p, const char *zone)
{
    for (size_t k = 0; k < p->n_pools; k++)
        if (str_eq(p->pools[k].zone, zone))
            return true;
    return false;
}

static void read_volume(struct reading *rd, const struct yaml_node *map, struct region_volume *v)
{
    struct yaml_reader r;
    config_inner_init(&rd->s, &r, map);
    copy_str(&r, "name", v->spec.name, sizeof(v->spec.name), "");
    copy_str(&r, "type", v->spec.type, sizeof(v->spec.type), rd->p->front->disk_type);
    copy_str(&r, "zone", v->zone, sizeof(v->zone), "");
    v->spec.gib = yaml_opt_i64(&r, "gib", 1, VOLUME_GIB_MAX, 8);
    v->age_ms = yaml_opt_duration_ms(&r, "age", 0);
    read_tags(rd, &r, &v->spec.tags);
    if (r.rc == 0 && rd->s.r.rc == 0 && !has_zone(rd->p, v->zone))
        yaml_reader_fail(&r, NULL, "zone: expected the zone of a pool");
    config_inner_finish(&rd->s, &r);
}

static void read_volumes(struct reading *rd)
{
    const struct yaml_node *seq = yaml_opt_seq(&rd->s.r, "volumes", CONFIG_VOLUMES_MAX);
    if (!seq || seq->n_items == 0)
        return;
    if (!rd->p->front->disk_type) {
        yaml_reader_fail(&rd->s.r, seq, "volumes of %s are not emulated", rd->p->front->name);
        return;
    }
    rd->p->region.volumes = mem_array(seq->n_items, sizeof(struct region_volume));
    rd->p->region.n_volumes = seq->n_items;
    for (size_t k = 0; k < seq->n_items && rd->s.r.rc == 0; k++)
        read_volume(rd, seq->items[k], &rd->p->region.volumes[k]);
}

/* ---- A provider ---- */

static void read_region(struct reading *rd)
{
    static const char *const surplus[] = {"newest", "random", NULL};
    const struct front *front = rd->p->front;
    struct region_options *o = &rd->p->region;
    struct yaml_reader *r = &rd->s.r;
    o->provider = front->name;
    o->make_id = front->make_id;
    o->is_on_demand_only = front->is_on_demand_only;
    copy_str(r, "region", o->name, sizeof(o->name), front->region);
    if (front->account_key)
        copy_str(r, front->account_key, o->account, sizeof(o->account), front->account);
    o->seed = (uint64_t)yaml_opt_i64(r, "seed", 0, INT64_MAX, 1);
    o->launch_delay_ms = yaml_opt_i64(r, "launch_delay_ms", 0, MS_MAX, 0);
    o->boot_delay_ms = yaml_opt_i64(r, "boot_delay_ms", 0, MS_MAX, 1000);
    o->start_delay_ms = yaml_opt_i64(r, "start_delay_ms", 0, MS_MAX, 0);
    o->notice_ms = SECONDS_MS(yaml_opt_i64(r, "notice_s", 0, MS_MAX / 1000, front->notice_s));
    o->consistency_delay_ms = yaml_opt_i64(r, "consistency_delay_ms", 0, MS_MAX, 0);
    o->node_clock_ahead_ms =
        SECONDS_MS(yaml_opt_i64(r, "node_clock_ahead_s", -MS_MAX / 1000, MS_MAX / 1000, 0));
    o->quota = yaml_opt_i64(r, "quota", 1, REGION_ALIVE_MAX, REGION_ALIVE_MAX);
    o->surplus = (enum region_surplus)yaml_opt_enum(r, "surplus", surplus, SURPLUS_NEWEST);
}

/* rd->s.r is the reader of its section. */
static void read_provider(struct reading *rd, const char *port_key)
{
    read_region(rd);
    rd->p->port = (int)yaml_opt_i64(&rd->s.r, port_key, 0, 65535, 0);
    rd->p->options = rd->p->front->read_options(&rd->s);
    read_metadata(rd);
    read_pools(rd);
    read_script(rd);
    read_volumes(rd);
}

static struct provider_config *add_provider(struct emulator_config *c, const struct front *front)
{
    struct provider_config *p = &c->providers[c->n_providers++];
    p->front = front;
    return p;
}

/* One of `providers`; its errors become the outer reader's. */
static void read_section(
    struct config_section *outer, struct emulator_config *c, const struct yaml_node *map)
{
    const char *names[CONFIG_PROVIDERS_MAX + 1] = {0};
    for (size_t k = 0; fronts[k] && k < CONFIG_PROVIDERS_MAX; k++)
        names[k] = fronts[k]->name;
    const struct front *front = front_find(map->key);
    if (!front) {
        const char *nearest = str_nearest(map->key, names);
        yaml_reader_fail(&outer->r, map, "is not an emulated provider%s%s",
            nearest ? "; did you mean " : "", nearest ? nearest : "");
        return;
    }
    struct reading rd = {.s = {.file = outer->file, .e = outer->r.rc == 0 ? outer->e : NULL},
        .p = add_provider(c, front)};
    yaml_reader_init(&rd.s.r, outer->file, map, rd.s.e);
    read_provider(&rd, "port");
    config_inner_finish(outer, &rd.s.r);
}

/* ---- The whole ---- */

/* The directory of belay-agent, first in the PATH of user data. The program's own path is accepted
 * too. */
static char *build_path(const char *file, const char *agent_path)
{
    struct stat st;
    if (!agent_path)
        return mem_strdup(SYSTEM_PATH);
    char *agent = config_resolve(file, agent_path), *whole = realpath(agent, NULL);
    if (whole && stat(whole, &st) == 0 && !S_ISDIR(st.st_mode))
        *strrchr(whole, '/') = '\0';
    char *path = mem_printf("%s:" SYSTEM_PATH, whole ? whole : agent);
    free(agent);
    free(whole);
    return path;
}

static void read_all(struct config_section *s, struct emulator_config *c)
{
    copy_str(&s->r, "host", c->host, sizeof(c->host), "127.0.0.1");
    c->control_port = (int)yaml_opt_i64(&s->r, "control_port", 0, 65535, 0);
    c->shutdown_ms = yaml_opt_i64(&s->r, "shutdown_ms", 0, MS_MAX, 2000);
    const char *dir = yaml_opt_str(&s->r, "dir", CONFIG_PATH_MAX, NULL);
    c->dir = dir ? config_resolve(s->file, dir) : NULL;
    c->path = build_path(s->file, yaml_opt_str(&s->r, "agent_path", CONFIG_PATH_MAX, NULL));
    const struct yaml_node *sections = yaml_opt_map(&s->r, "providers");
    if (sections && (sections->n_items == 0 || sections->n_items > CONFIG_PROVIDERS_MAX))
        yaml_reader_fail(&s->r, sections, "expected 1 to %d providers", CONFIG_PROVIDERS_MAX);
    for (size_t k = 0; sections && k < sections->n_items && s->r.rc == 0; k++)
        read_section(s, c, sections->items[k]);
    if (sections || s->r.rc < 0)
        return;
    struct reading rd = {.s = *s, .p = add_provider(c, fronts[0])};
    read_provider(&rd, "ec2_port");
    s->r = rd.s.r;
}

int config_parse(
    const char *file, const char *text, size_t n, struct emulator_config *ret_config, struct err *e)
{
    struct yaml_node *root = NULL;
    int rc = yaml_parse(file, text, n, &root, e);
    if (rc < 0)
        return rc;
    struct emulator_config c = {0};
    struct config_section s = {.file = file, .e = e};
    yaml_reader_init(&s.r, file, root, e);
    read_all(&s, &c);
    rc = yaml_reader_finish(&s.r);
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
    buf_wipe(&text);
    return rc;
}

static void provider_deinit(struct provider_config *p)
{
    for (size_t k = 0; k < p->n_pools; k++)
        trace_deinit(&p->pools[k].follow.trace);
    free(p->pools);
    free(p->region.script);
    for (size_t k = 0; k < p->region.n_volumes; k++)
        tags_deinit(&p->region.volumes[k].spec.tags);
    free(p->region.volumes);
    p->front->free_options(p->options);
}

void config_deinit(struct emulator_config *c)
{
    for (size_t k = 0; k < c->n_providers; k++)
        provider_deinit(&c->providers[k]);
    free(c->dir);
    free(c->path);
    *c = (struct emulator_config){0};
}
