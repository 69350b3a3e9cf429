/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/racks.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/config/readers.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TYPES_MAX 256
#define NODES_MAX 4096 /* in all racks together: each name is searched for in all other racks */

struct type {
    const char *name; /* borrowed from the file */
    int64_t idle_w, full_w;
};

struct types {
    struct type v[TYPES_MAX];
    size_t n;
};

/* ---- types of nodes ---- */

static void read_watts(struct yaml_reader *outer, struct type *t)
{
    const struct yaml_node *map = yaml_opt_map(outer, "watts");
    struct yaml_reader r;
    if (!map && outer->rc == 0)
        yaml_reader_fail(outer, NULL, "a type of nodes needs watts: { idle: 1800, full: 10200 }");
    if (outer->rc != 0)
        return;
    yaml_reader_init(&r, outer->file, map, outer->e);
    const struct yaml_node *full = yaml_opt(&r, "full");
    t->idle_w = yaml_opt_i64(&r, "idle", 0, RACK_WATTS_MAX, 0);
    t->full_w = yaml_opt_i64(&r, "full", 1, RACK_WATTS_MAX, 0);
    if (r.rc == 0 && t->full_w <= t->idle_w)
        yaml_reader_fail(&r, full,
            "watts: full: expected what a node draws at full load, more than the %" PRId64
            " at rest",
            t->idle_w);
    yaml_reader_finish_in(outer, &r);
}

static void read_types(struct yaml_reader *root, struct types *types)
{
    const struct yaml_node *map = config_opt_entries(root, "node_types", TYPES_MAX);
    for (size_t k = 0; map && root->rc == 0 && k < map->n_items; k++) {
        struct yaml_reader r;
        yaml_reader_init(&r, root->file, map->items[k], root->e);
        struct type *t = &types->v[types->n++];
        t->name = map->items[k]->key;
        if (config_is_named(&r, map->items[k], "a type of nodes", CORE_NAME_MAX - 1))
            read_watts(&r, t);
        yaml_reader_finish_in(root, &r);
    }
}

static const struct type *find_named(const struct types *types, const char *name)
{
    for (size_t k = 0; k < types->n; k++)
        if (str_eq(types->v[k].name, name))
            return &types->v[k];
    return NULL;
}

static void fail_type(struct yaml_reader *r, const struct yaml_node *node, const char *name,
    const struct types *types)
{
    const char *names[TYPES_MAX + 1] = {NULL};
    char shown[STR_SHOW_MAX];
    for (size_t k = 0; k < types->n; k++)
        names[k] = types->v[k].name;
    const char *near = str_nearest(name, names);
    yaml_reader_fail(r, node, "%s is not in node_types:%s%s%s", str_show(name, shown),
        near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* ---- racks ---- */

/* Writes the first name that is in both lists to out, "" if there is none. */
static void find_shared(const char *a, const char *b, char out[HOSTS_NAME_MAX])
{
    struct hosts_at at = {0};
    while (hosts_next(a, &at, out))
        if (hosts_has(b, out))
            return;
    out[0] = '\0';
}

/* Refuses names in list `kind` of rack n that also occur earlier: in the list, the rack, or an
 * earlier rack. */
static void check_once(struct yaml_reader *r, const struct yaml_node *node,
    const struct rack_options *racks, size_t n, size_t kind)
{
    const struct rack_options *own = &racks[n];
    char name[HOSTS_NAME_MAX], folded[HOSTS_TEXT_MAX];
    struct err why;
    int64_t n_folded = 0;
    if (hosts_fold(own->nodes[kind].names, folded, &why) == 0 &&
        hosts_check(folded, &n_folded, &why) == 0 && n_folded != own->nodes[kind].n)
        yaml_reader_fail(r, node, "a node is named twice in \"%s\"", own->nodes[kind].names);
    for (size_t i = 0; r->rc == 0 && i <= n; i++) {
        for (size_t k = 0; r->rc == 0 && k < (i == n ? kind : racks[i].n_nodes); k++) {
            find_shared(own->nodes[kind].names, racks[i].nodes[k].names, name);
            if (name[0])
                yaml_reader_fail(r, node, "node %s is in rack %s already", name, racks[i].name);
        }
    }
}

static void read_nodes(struct yaml_reader *r, const struct types *types, struct rack_options *racks,
    size_t n, int64_t *n_all)
{
    const struct yaml_node *map = yaml_opt_map(r, "nodes");
    struct rack_options *o = &racks[n];
    struct err why;
    if (r->rc == 0 && map && (map->n_items == 0 || map->n_items > RACK_KINDS_MAX))
        yaml_reader_fail(r, map, "expected nodes: of 1 to %d types, as in { dgx: \"gpu[1-4]\" }",
            RACK_KINDS_MAX);
    for (size_t k = 0; r->rc == 0 && map && k < map->n_items; k++) {
        const struct yaml_node *item = map->items[k];
        const struct type *t = find_named(types, item->key);
        struct rack_nodes *w = &o->nodes[k];
        if (!t) {
            fail_type(r, item, item->key, types);
        } else if (item->type != YAML_SCALAR || strlen(item->text) >= sizeof(w->names)) {
            yaml_reader_fail(r, item,
                "nodes: expected names of hosts as in \"gpu[1-4],gpu7\", at most %zu bytes",
                sizeof(w->names) - 1);
        } else if (hosts_check(item->text, &w->n, &why) != 0) {
            yaml_reader_fail(r, item, "nodes: %s", why.text);
        } else {
            STR_COPY(w->names, item->text);
            w->idle_w = t->idle_w;
            w->full_w = t->full_w;
            o->n_nodes++;
            *n_all += w->n;
            if (w->n == 0 || *n_all > NODES_MAX)
                yaml_reader_fail(r, item,
                    "nodes: expected at least one, and at most %d in all racks", NODES_MAX);
            else
                check_once(r, item, racks, n, k);
        }
    }
}

/* Reads a pool whose nodes are all in this rack, except those that racks name. */
static void read_pool(struct yaml_reader *outer, const struct yaml_node *item,
    const struct types *types, struct rack_options *racks, size_t n, int64_t *n_all)
{
    struct rack_options *o = &racks[n];
    struct rack_nodes *w = &o->nodes[o->n_nodes];
    struct yaml_reader r;
    yaml_reader_init(&r, outer->file, item, outer->e);
    const struct yaml_node *type = yaml_opt(&r, "type");
    const struct type *t = type && type->type == YAML_SCALAR ? find_named(types, type->text) : NULL;
    config_is_named(&r, item, "a pool", CORE_NAME_MAX - 1);
    w->n = yaml_opt_i64(&r, "nodes", 1, NODES_MAX, 0);
    if (r.rc == 0 && (!type || type->type != YAML_SCALAR || w->n == 0))
        yaml_reader_fail(&r, item,
            "pools: expected which type of nodes and how many there are places for, as in { type: "
            "dgx, nodes: 8 }");
    if (r.rc == 0 && !t)
        fail_type(&r, type, type->text, types);
    for (size_t i = 0; r.rc == 0 && i <= n; i++)
        for (size_t k = 0; r.rc == 0 && k < racks[i].n_nodes; k++)
            if (str_eq(racks[i].nodes[k].pool, item->key))
                yaml_reader_fail(
                    &r, item, "pool %s is in rack %s already", item->key, racks[i].name);
    *n_all += w->n;
    if (r.rc == 0 && *n_all > NODES_MAX)
        yaml_reader_fail(&r, item, "pools: expected at most %d nodes in all racks", NODES_MAX);
    if (r.rc == 0) {
        STR_COPY(w->pool, item->key);
        w->idle_w = t->idle_w;
        w->full_w = t->full_w;
        o->n_nodes++;
    }
    yaml_reader_finish_in(outer, &r);
}

static void read_pools(struct yaml_reader *r, const struct types *types, struct rack_options *racks,
    size_t n, int64_t *n_all)
{
    const struct yaml_node *map = yaml_opt_map(r, "pools");
    if (r->rc == 0 && map && racks[n].n_nodes + map->n_items > RACK_KINDS_MAX)
        yaml_reader_fail(r, map, "expected at most %d types and pools in a rack", RACK_KINDS_MAX);
    for (size_t k = 0; r->rc == 0 && map && k < map->n_items; k++)
        read_pool(r, map->items[k], types, racks, n, n_all);
    if (r->rc == 0 && racks[n].n_nodes == 0)
        yaml_reader_fail(r, NULL,
            "a rack needs nodes: as in { dgx: \"gpu[1-4]\" }, or pools: as in { lab: { type: dgx, "
            "nodes: 8 } }");
}

/* Checks that a rack has the power for any one of its nodes at full load while the others idle:
 * otherwise a job that fits a node might never start. */
static void check_power(
    struct yaml_reader *r, const struct yaml_node *node, const struct rack_options *o)
{
    int64_t idle_w = 0, most_w = 0;
    for (size_t k = 0; k < o->n_nodes; k++) {
        int64_t beyond = o->nodes[k].full_w - o->nodes[k].idle_w;
        idle_w += o->nodes[k].n * o->nodes[k].idle_w;
        most_w = beyond > most_w ? beyond : most_w;
    }
    if (r->rc == 0 && o->max_w < idle_w + most_w)
        yaml_reader_fail(r, node,
            "max_kw: its nodes draw %" PRId64 ".%03" PRId64
            " kW at rest, and with one of the largest at full load %" PRId64 ".%03" PRId64
            ": expected at least that",
            idle_w / 1000, idle_w % 1000, (idle_w + most_w) / 1000, (idle_w + most_w) % 1000);
}

/* Reads a number such as "40" or "17.25", in millionths, parsed like dollars. */
static bool read_micro(const struct yaml_node *node, int64_t *ret_micro)
{
    struct err unused;
    return node && node->type == YAML_SCALAR && str_to_uusd(node->text, ret_micro, &unused) == 0;
}

/* Reads kilowatts; returns watts. */
static int64_t read_kw(struct yaml_reader *r, const struct yaml_node *node)
{
    int64_t micro = 0;
    bool is_number = read_micro(node, &micro);
    if (r->rc == 0 && (!is_number || micro < 1000 || micro > RACK_KW_MAX * 1000000LL))
        yaml_reader_fail(r, node,
            "a rack needs max_kw: what it may draw, more than 0 and at most %d kilowatts, as in 40 "
            "or 17.25",
            RACK_KW_MAX);
    return micro / 1000;
}

static int64_t read_pue(struct yaml_reader *r)
{
    const struct yaml_node *node = yaml_opt(r, "pue");
    int64_t micro = 0;
    bool is_number = read_micro(node, &micro);
    if (r->rc == 0 && node && (!is_number || micro < 1000000 || micro > RACK_PUE_MAX * 1000000LL))
        yaml_reader_fail(r, node,
            "pue: what the site draws for each watt of the rack, 1 to %d, as in 1.3", RACK_PUE_MAX);
    return micro;
}

void config_read_racks(struct yaml_reader *root, struct rack_options **ret_racks, size_t *ret_n)
{
    struct types types = {0};
    read_types(root, &types);
    const struct yaml_node *map = config_opt_entries(root, "racks", RACKS_MAX);
    int64_t n_all = 0;
    *ret_racks = NULL;
    *ret_n = 0;
    if (!map)
        return;
    *ret_racks = mem_array(map->n_items, sizeof(**ret_racks));
    for (size_t k = 0; k < map->n_items && root->rc == 0; k++) {
        struct rack_options *o = &(*ret_racks)[k];
        struct yaml_reader r;
        yaml_reader_init(&r, root->file, map->items[k], root->e);
        if (config_is_named(&r, map->items[k], "a rack", CORE_NAME_MAX - 1))
            STR_COPY(o->name, map->items[k]->key);
        const struct yaml_node *kw = yaml_opt(&r, "max_kw");
        o->max_w = read_kw(&r, kw);
        o->pue_micro = read_pue(&r);
        read_nodes(&r, &types, *ret_racks, k, &n_all);
        read_pools(&r, &types, *ret_racks, k, &n_all);
        check_power(&r, kw, o);
        yaml_reader_finish_in(root, &r);
    }
    *ret_n = map->n_items;
}
