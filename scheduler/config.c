/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads belayd's configuration (see config.h). Pure: the caller has read the file.
 */
#include "scheduler/config.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "cloud/catalogue.h"
#include <stdlib.h>
#include <string.h>

#define TYPES_MAX 64
#define ZONES_MAX 32

static const char *const provider_names[] = {"aws", NULL};
static const char *const kind_names[] = {"reserved", "elastic", NULL};
static const char *const market_words[] = {"spot", "on-demand", NULL};

/* ---- small readers ---- */

static char *opt_text(struct yaml_reader *r, const char *key, size_t max)
{
    return mem_strdup(yaml_opt_str(r, key, max, NULL));
}

static void read_listen(struct yaml_reader *r, struct config *c)
{
    const char *listen = yaml_opt_str(r, "listen", 80, "127.0.0.1:7443");
    const char *colon = strrchr(listen, ':');
    int64_t port = 0;
    if (!colon || str_to_i64(colon + 1, 0, 65535, "port", &port, NULL) != 0 ||
        (size_t)(colon - listen) >= sizeof(c->listen_host)) {
        yaml_reader_fail(r, yaml_opt(r, "listen"),
            "listen: expected HOST:PORT with a port in 0 .. 65535, found \"%s\"", listen);
        return;
    }
    memcpy(c->listen_host, listen, (size_t)(colon - listen));
    c->listen_port = (int)port;
}

static void read_names(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *seq = yaml_opt_seq(r, "names", CONFIG_NAMES_MAX);
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        if (seq->items[i]->type != YAML_SCALAR) {
            yaml_reader_fail(r, seq->items[i], "names: expected a host name or address");
            return;
        }
        c->names[c->n_names++] = mem_strdup(seq->items[i]->text);
    }
}

/* A sequence of words, each one of known (or any name when known is NULL). Returns how many. */
static size_t read_words(
    struct yaml_reader *r, const char *key, size_t max, const char *const *known, const char **out)
{
    const struct yaml_node *seq = yaml_opt_seq(r, key, max);
    size_t n = 0;
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        const struct yaml_node *item = seq->items[i];
        bool ok = item->type == YAML_SCALAR && str_is_name(item->text, CORE_NAME_MAX - 1);
        const char *near = NULL;
        for (size_t k = 0; ok && known; k++) {
            if (!known[k]) {
                ok = false;
                near = str_nearest(item->text, known);
                break;
            }
            if (str_eq(known[k], item->text))
                break;
        }
        if (!ok) {
            yaml_reader_fail(r, item, "%s: \"%s\" is not known%s%s%s", key,
                item->type == YAML_SCALAR ? item->text : "(not a word)", near ? "; did you mean \"" : "",
                near ? near : "", near ? "\"?" : "");
            return 0;
        }
        out[n++] = item->text;
    }
    return n;
}

/* ---- pools ---- */

static void add_offer(
    struct config_pool *p, const char *zone, const struct catalogue_type *t, enum market m, int rank)
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
}

static void read_offers(struct yaml_reader *r, struct config_pool *p)
{
    const char *zones[ZONES_MAX], *types[TYPES_MAX], *markets[2] = {"spot", "on-demand"};
    size_t n_zones = read_words(r, "zones", ZONES_MAX, NULL, zones);
    size_t n_types = read_words(r, "types", TYPES_MAX, catalogue_names(p->row.provider), types);
    size_t n_markets = read_words(r, "markets", 2, market_words, markets);
    if (n_markets == 0)
        n_markets = 2;
    if (r->rc == 0 && (n_zones == 0 || n_types == 0))
        yaml_reader_fail(r, NULL, "an elastic pool needs zones and types, at least one of each");
    if (r->rc != 0)
        return;
    p->offers = mem_array(n_zones * n_types * n_markets, sizeof(*p->offers));
    for (size_t m = 0; m < n_markets; m++)
        for (size_t z = 0; z < n_zones; z++)
            for (size_t t = 0; t < n_types; t++)
                add_offer(p, zones[z], catalogue_find(p->row.provider, types[t]),
                    str_eq(markets[m], "spot") ? MARKET_SPOT : MARKET_ON_DEMAND, (int)m);
}

static void read_elastic(struct yaml_reader *r, struct config_pool *p)
{
    const char *region = yaml_req_str(r, "region", CORE_NAME_MAX - 1);
    STR_COPY(p->row.region, region);
    p->row.max_nodes = (int32_t)yaml_opt_i64(r, "max_nodes", 1, 10000, 8);
    p->row.idle_timeout_ms = yaml_opt_duration_ms(r, "idle_timeout", SECONDS_MS(120));
    p->row.cooldown_ms = yaml_opt_duration_ms(r, "cooldown", SECONDS_MS(120));
    p->row.boot_timeout_ms = yaml_opt_duration_ms(r, "boot_timeout", SECONDS_MS(600));
    p->row.refusal_backoff_ms = yaml_opt_duration_ms(r, "refusal_backoff", SECONDS_MS(30));
    p->image = opt_text(r, "image", CORE_NAME_MAX);
    p->subnet = opt_text(r, "subnet", CORE_NAME_MAX);
    p->security_group = opt_text(r, "security_group", CORE_NAME_MAX);
    p->iam_profile = opt_text(r, "iam_profile", 256);
    p->endpoint = opt_text(r, "endpoint", 512);
    p->metadata = opt_text(r, "metadata", 512);
    p->credentials = opt_text(r, "credentials", 1024);
    p->disk_gib = yaml_opt_i64(r, "disk_gib", 0, 65536, 0);
    if (r->rc == 0 && !p->image)
        yaml_reader_fail(r, NULL, "image: an elastic pool needs the image its instances boot from (ami-...)");
    read_offers(r, p);
}

static int read_pool(const char *file, const struct yaml_node *node, struct config_pool *p, struct err *e)
{
    struct yaml_reader r;
    yaml_reader_init(&r, file, node, e);
    if (!str_is_name(node->key, CORE_NAME_MAX - 1))
        yaml_reader_fail(&r, node, "\"%s\" is not a pool's name: letters, digits, '.', '_', '-', at most %d",
            node->key, CORE_NAME_MAX - 1);
    STR_COPY(p->row.name, node->key);
    const struct yaml_node *provider = yaml_opt(&r, "provider");
    p->row.elastic = yaml_opt_enum(&r, "kind", kind_names, provider != NULL) == 1;
    if (p->row.elastic) {
        int which = yaml_opt_enum(&r, "provider", provider_names, -1);
        if (r.rc == 0 && which < 0)
            yaml_reader_fail(&r, NULL, "an elastic pool needs a provider (aws)");
        STR_COPY(p->row.provider, which >= 0 ? provider_names[which] : "");
        if (r.rc == 0)
            read_elastic(&r, p);
    } else {
        p->row.max_nodes = (int32_t)yaml_opt_i64(&r, "max_nodes", 1, 100000, 100000);
        p->row.usd_per_hour_uusd = yaml_opt_uusd(&r, "usd_per_hour", 0);
    }
    return yaml_reader_finish(&r);
}

static int read_pools(const char *file, const struct yaml_node *map, struct config *c, struct err *e)
{
    if (map->n_items > CONFIG_POOLS_MAX)
        return err_set(e, ERR_INVALID, "%s:%d: pools: at most %d pools, found %zu", file, map->line,
            CONFIG_POOLS_MAX, map->n_items);
    c->pools = mem_array(map->n_items, sizeof(*c->pools));
    for (size_t i = 0; i < map->n_items; i++) {
        int rc = read_pool(file, map->items[i], &c->pools[c->n_pools++], e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Without pools every machine that joins belongs to one reserved pool that costs nothing. */
static void default_pools(struct config *c)
{
    c->pools = mem_array(1, sizeof(*c->pools));
    c->n_pools = 1;
    STR_COPY(c->pools[0].row.name, "local");
    c->pools[0].row.max_nodes = 100000;
}

/* ---- the file ---- */

static void read_times(struct yaml_reader *r, struct config *c)
{
    c->lease_ms = yaml_opt_duration_ms(r, "lease", SECONDS_MS(30));
    c->kill_wait_ms = yaml_opt_duration_ms(r, "kill_wait", SECONDS_MS(30));
    c->sweep_ms = yaml_opt_duration_ms(r, "sweep", SECONDS_MS(60));
    c->busy_sweep_ms = yaml_opt_duration_ms(r, "busy_sweep", SECONDS_MS(5));
    c->settle_ms = yaml_opt_duration_ms(r, "settle", SECONDS_MS(60));
    c->price_ms = yaml_opt_duration_ms(r, "price_every", SECONDS_MS(300));
    c->node_cert_ms = yaml_opt_duration_ms(r, "node_certificate", SECONDS_MS(30 * 86400));
    c->orphan_ms = yaml_opt_duration_ms(r, "orphan_timeout", SECONDS_MS(3600));
    if (c->lease_ms < 1000 || c->sweep_ms < 100 || c->busy_sweep_ms < 100 || c->price_ms < 100)
        yaml_reader_fail(
            r, NULL, "lease must be at least 1s, sweep, busy_sweep and price_every at least 100ms");
    c->sync_ms = c->lease_ms / 3 < 20000 ? c->lease_ms / 3 : 20000;
}

static void read_places(struct yaml_reader *r, struct config *c, const char *state_dir)
{
    const char *dir = yaml_opt_str(r, "state", sizeof(c->state_dir) - 1, "/var/lib/belay");
    STR_COPY(c->state_dir, state_dir ? state_dir : dir);
    const char *socket = yaml_opt_str(r, "socket", sizeof(c->socket) - 1, NULL);
    const char *store = yaml_opt_str(r, "store", sizeof(c->store) - 1, NULL);
    char *own_socket = mem_printf("%s/belayd.sock", c->state_dir);
    char *own_store = mem_printf("file://%s/store", c->state_dir);
    if (c->state_dir[0] != '/')
        yaml_reader_fail(
            r, yaml_opt(r, "state"), "state: expected an absolute path, found \"%s\"", c->state_dir);
    if (!STR_COPY(c->socket, socket ? socket : own_socket))
        yaml_reader_fail(r, NULL,
            "socket: the path \"%s\" is longer than the %zu bytes a UNIX socket may have; set a "
            "shorter one with socket:",
            own_socket, sizeof(c->socket) - 1);
    if (!STR_COPY(c->store, store ? store : own_store))
        yaml_reader_fail(r, NULL, "store: longer than %zu bytes", sizeof(c->store) - 1);
    free(own_socket);
    free(own_store);
}

int config_parse(const char *file, const char *text, size_t n, const char *state_dir,
    struct config *ret_config, struct err *e)
{
    struct config c = {0};
    struct yaml_node *root = NULL;
    struct yaml_reader r;
    int rc = yaml_parse(file, text, n, &root, e);
    if (rc != 0)
        return rc;
    yaml_reader_init(&r, file, root, e);
    const char *cluster = yaml_opt_str(&r, "cluster", CORE_NAME_MAX - 1, "belay");
    if (!str_is_name(cluster, CORE_NAME_MAX - 1))
        yaml_reader_fail(
            &r, yaml_opt(&r, "cluster"), "cluster: expected a name of letters, digits, '.', '_', '-'");
    STR_COPY(c.cluster, cluster);
    read_places(&r, &c, state_dir);
    read_listen(&r, &c);
    read_names(&r, &c);
    STR_COPY(c.server_url, yaml_opt_str(&r, "server", sizeof(c.server_url) - 1, ""));
    read_times(&r, &c);
    const struct yaml_node *pools = yaml_opt_map(&r, "pools");
    rc = yaml_reader_finish(&r);
    if (rc == 0 && pools)
        rc = read_pools(file, pools, &c, e);
    else if (rc == 0)
        default_pools(&c);
    yaml_node_free(root);
    if (rc != 0)
        config_deinit(&c);
    else
        *ret_config = c;
    return rc;
}

void config_deinit(struct config *c)
{
    for (size_t i = 0; i < c->n_names; i++)
        free(c->names[i]);
    for (size_t i = 0; i < c->n_pools; i++) {
        struct config_pool *p = &c->pools[i];
        free(p->image);
        free(p->subnet);
        free(p->security_group);
        free(p->iam_profile);
        free(p->endpoint);
        free(p->metadata);
        free(p->credentials);
        free(p->offers);
    }
    free(c->pools);
    *c = (struct config){0};
}
