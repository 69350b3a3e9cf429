/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/offers.h"

#include "base/mem.h"
#include "base/str.h"
#include "cloud/catalogue.h"
#include "scheduler/config/readers.h"
#include <string.h>

#define TYPES_MAX 64
#define ZONES_MAX 32

static const char *const market_words[] = {"spot", "on-demand", NULL};

static bool is_in(const char *const *names, size_t n, const char *word)
{
    for (size_t i = 0; i < n && names[i]; i++)
        if (str_eq(names[i], word))
            return true;
    return false;
}

static void fail_word(
    struct yaml_reader *r, const char *key, const struct yaml_node *item, const char *const *known)
{
    char shown[STR_SHOW_MAX];
    const char *near = item->type == YAML_SCALAR && known ? str_nearest(item->text, known) : NULL;
    if (item->type != YAML_SCALAR)
        yaml_reader_fail(r, item, "%s: expected a word", key);
    else
        yaml_reader_fail(r, item, "%s: %s is not %s%s%s%s", key, str_show(item->text, shown),
            known ? "known" : "a name", near ? "; did you mean \"" : "", near ? near : "",
            near ? "\"?" : "");
}

/* Reads a sequence of distinct words, each one in known (or any name when known is NULL). Returns
 * their number. */
static size_t read_words(
    struct yaml_reader *r, const char *key, size_t max, const char *const *known, const char **out)
{
    const struct yaml_node *seq = yaml_opt_seq(r, key, max);
    size_t n = 0;
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        const struct yaml_node *item = seq->items[i];
        if (item->type != YAML_SCALAR || !str_is_name(item->text, CORE_NAME_MAX - 1) ||
            (known && !is_in(known, SIZE_MAX, item->text))) {
            fail_word(r, key, item, known);
            return 0;
        }
        if (is_in(out, n, item->text)) {
            yaml_reader_fail(r, item, "%s: \"%s\" is listed twice", key, item->text);
            return 0;
        }
        out[n++] = item->text;
    }
    return n;
}

static void add_offer(struct config_pool *p, const char *zone, const struct catalogue_type *t,
    enum market m, int rank)
{
    struct offer_row *o = &p->offers[p->n_offers++];
    *o = (struct offer_row){
        .market = m,
        .rank = rank,
        .total = {.cpus = t->vcpus, .gpus = t->gpus, .memory_mib = t->memory_mib},
        .price_uusd_h = m == MARKET_SPOT && t->spot_uusd_h ? t->spot_uusd_h : t->on_demand_uusd_h,
        .on_demand_uusd_h = t->on_demand_uusd_h,
        .avoid_until = MONO_NONE,
    };
    STR_COPY(o->pool, p->row.name);
    STR_COPY(o->zone, zone);
    STR_COPY(o->type, t->type);
    STR_COPY(o->arch, catalogue_arch(p->row.provider, t->type));
    gpu_model(t->gpu_model ? t->gpu_model : "", o->gpu.model);
    o->gpu.memory_mib = t->gpu_memory_mib;
}

/* Spot has the lower rank, so it is preferred across all pools; a pool may reverse this for its own
 * offers. */
static int rank_of(enum market m, bool is_reversed)
{
    return is_reversed ? m == MARKET_SPOT : m == MARKET_ON_DEMAND;
}

/* Reads the mapping of a type that is not in the catalogue, or differs from it, as in its price. */
static void read_own_type(struct yaml_reader *parent, const struct config_pool *p,
    const struct yaml_node *map, struct catalogue_type *ret_type)
{
    struct yaml_reader yr, *r = &yr;
    struct err why;
    yaml_reader_init(r, parent->file, map, parent->e);
    const char *name = yaml_req_str(r, "type", CORE_NAME_MAX - 1);
    struct catalogue_type t = {0};
    struct catalogue_parts parts = {0};
    if (r->rc == 0 && catalogue_split(p->row.provider, name, &parts, &why) != 0)
        yaml_reader_fail(r, yaml_opt(r, "type"), "%s", why.text);
    bool known = r->rc == 0 && catalogue_find(p->row.provider, name, &t, NULL) == 0;
    if (!known)
        t = (struct catalogue_type){.type = name,
            .gpus = parts.n_gpus,
            .gpu_model = parts.gpu ? parts.gpu->model : "",
            .gpu_memory_mib = parts.gpu ? parts.gpu->memory_mib : 0};
    const char *memory =
        known ? yaml_opt_str(r, "memory", 32, NULL) : yaml_req_str(r, "memory", 32);
    t.vcpus = (int32_t)yaml_opt_i64(r, "cpus", 1, 65536, t.vcpus);
    t.gpus = (int32_t)yaml_opt_i64(r, "gpus", 0, 64, t.gpus);
    t.gpu_model = yaml_opt_str(r, "gpu_model", GPU_MODEL_MAX - 1, t.gpu_model);
    const char *gpu_memory = yaml_opt_str(r, "gpu_memory", 32, NULL);
    if (r->rc == 0 && gpu_memory && str_to_mib(gpu_memory, &t.gpu_memory_mib, &why) != 0)
        yaml_reader_fail(r, yaml_opt(r, "gpu_memory"), "%s", why.text);
    t.on_demand_uusd_h = yaml_opt_uusd(r, "usd_per_hour", t.on_demand_uusd_h);
    t.spot_uusd_h = yaml_opt_uusd(r, "spot_usd_per_hour", t.spot_uusd_h);
    if (r->rc == 0 && memory && str_to_mib(memory, &t.memory_mib, &why) != 0)
        yaml_reader_fail(r, yaml_opt(r, "memory"), "%s", why.text);
    if (r->rc == 0 && (t.vcpus == 0 || t.on_demand_uusd_h == 0))
        yaml_reader_fail(
            r, NULL, "a type that the catalogue does not have needs cpus and usd_per_hour");
    if (r->rc == 0)
        *ret_type = t;
    yaml_reader_finish_in(parent, r);
}

static int read_known_type(struct yaml_reader *r, const struct config_pool *p,
    const struct yaml_node *word, struct catalogue_type *ret_type)
{
    struct err why;
    if (word->type != YAML_SCALAR)
        yaml_reader_fail(r, word, "types: expected a word or a mapping");
    else if (catalogue_find(p->row.provider, word->text, ret_type, &why) != 0)
        yaml_reader_fail(r, word, "types: %s", why.text);
    return r->rc;
}

/* Reads types: names of the catalogue, and mappings that describe a machine. Returns their number;
 * the types borrow strings of the file and of the catalogue. */
static size_t read_types(
    struct yaml_reader *r, const struct config_pool *p, struct catalogue_type types[TYPES_MAX])
{
    const struct yaml_node *seq = yaml_opt_seq(r, "types", TYPES_MAX);
    size_t n = 0;
    for (; seq && r->rc == 0 && n < seq->n_items; n++) {
        const struct yaml_node *item = seq->items[n];
        if (item->type == YAML_MAPPING)
            read_own_type(r, p, item, &types[n]);
        else
            read_known_type(r, p, item, &types[n]);
        for (size_t k = 0; r->rc == 0 && k < n; k++)
            if (str_eq(types[k].type, types[n].type))
                yaml_reader_fail(r, item, "types: \"%s\" is listed twice", types[n].type);
    }
    return r->rc == 0 ? n : 0;
}

void config_read_region_offers(struct yaml_reader *r, struct config_pool *p)
{
    struct catalogue_type types[TYPES_MAX];
    size_t n = read_types(r, p, types);
    if (r->rc == 0 && n == 0)
        yaml_reader_fail(
            r, NULL, "an elastic pool of provider %s needs types, at least one", p->row.provider);
    if (r->rc != 0)
        return;
    p->offers = mem_array(n, sizeof(*p->offers));
    for (size_t t = 0; t < n; t++)
        add_offer(p, p->row.region, &types[t], MARKET_ON_DEMAND, rank_of(MARKET_ON_DEMAND, false));
}

void config_read_offers(struct yaml_reader *r, struct config_pool *p)
{
    const char *zones[ZONES_MAX], *markets[2] = {"spot", "on-demand"};
    struct catalogue_type types[TYPES_MAX];
    size_t n_zones = read_words(r, "zones", ZONES_MAX, NULL, zones);
    size_t n_types = read_types(r, p, types);
    size_t n_markets = read_words(r, "markets", 2, market_words, markets);
    if (n_markets == 0)
        n_markets = 2;
    if (r->rc == 0 && (n_zones == 0 || n_types == 0))
        yaml_reader_fail(r, NULL, "an elastic pool needs zones and types, at least one of each");
    if (r->rc != 0)
        return;
    bool is_reversed = n_markets == 2 && str_eq(markets[0], "on-demand");
    p->offers = mem_array(n_zones * n_types * n_markets, sizeof(*p->offers));
    for (size_t k = 0; k < n_markets; k++) {
        enum market m = str_eq(markets[k], "spot") ? MARKET_SPOT : MARKET_ON_DEMAND;
        for (size_t z = 0; z < n_zones; z++)
            for (size_t t = 0; t < n_types; t++)
                add_offer(p, zones[z], &types[t], m, rank_of(m, is_reversed));
    }
}

static int64_t count_hosts(const struct config_pool *p)
{
    size_t i = 0;
    while (!str_eq(p->provider->settings[i].key, "hosts"))
        i++;
    int64_t n = p->settings[i] ? 1 : 0;
    for (const char *s = p->settings[i]; s && *s; s++)
        n += *s == '\n';
    return n;
}

void config_read_hosts_offer(struct yaml_reader *r, struct config_pool *p)
{
    const struct yaml_node *max = yaml_opt(r, "max_nodes");
    const char *memory = yaml_req_str(r, "memory", 32);
    struct offer_row o = {.market = MARKET_OWNED, .avoid_until = MONO_NONE};
    struct err why;
    int64_t n = count_hosts(p);
    o.total.cpus = (int32_t)yaml_opt_i64(r, "cpus", 1, 65536, 0);
    o.total.gpus = (int32_t)yaml_opt_i64(r, "gpus", 0, 64, 0);
    gpu_model(yaml_opt_str(r, "gpu_model", GPU_MODEL_MAX - 1, ""), o.gpu.model);
    const char *gpu_memory = yaml_opt_str(r, "gpu_memory", 32, NULL);
    if (r->rc == 0 && gpu_memory && str_to_mib(gpu_memory, &o.gpu.memory_mib, &why) != 0)
        yaml_reader_fail(r, yaml_opt(r, "gpu_memory"), "%s", why.text);
    o.price_uusd_h = o.on_demand_uusd_h = yaml_opt_uusd(r, "usd_per_hour", 0);
    if (r->rc == 0 && str_to_mib(memory, &o.total.memory_mib, &why) != 0)
        yaml_reader_fail(r, yaml_opt(r, "memory"), "%s", why.text);
    if (r->rc == 0 && o.total.cpus == 0)
        yaml_reader_fail(r, NULL, "a pool of hosts needs cpus: how many each of them has");
    if (r->rc == 0 && max && p->row.max_nodes > n)
        yaml_reader_fail(r, max, "expected at most %lld, as many as there are hosts", (long long)n);
    if (r->rc != 0)
        return;
    if (!max)
        p->row.max_nodes = (int32_t)n;
    STR_COPY(o.pool, p->row.name);
    STR_COPY(o.zone, p->provider->name);
    STR_COPY(o.type, p->provider->name);
    p->offers = mem_dup(&o, sizeof(o));
    p->n_offers = 1;
}
