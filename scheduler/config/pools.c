/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/pools.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/yaml_extras.h"
#include "scheduler/config/config.h"
#include "scheduler/config/offers.h"
#include "scheduler/config/egress.h"
#include "scheduler/config/readers.h"
#include "scheduler/config/windows.h"
#include <stdlib.h>
#include <string.h>

#define DRILL_VALID_MS (90LL * 86400 * 1000)

static const char *const kind_names[] = {"reserved", "elastic", NULL};
static const char *const rank_words[] = {"effective", "price", NULL};
static const char *const allocation_words[] = {"single", "fleet", NULL};
/* enum criu_ability */
static const char *const criu_words[] = {"unknown", "no", "cpu", "gpu", NULL};

/* Returns the words of a sequence, one per line; NULL if it is absent or empty. The caller frees
 * the string. */
static char *opt_lines(struct yaml_reader *r, const struct cloud_setting *s)
{
    const struct yaml_node *seq = yaml_opt_seq(r, s->key, s->max);
    struct buf lines = {0};
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        const struct yaml_node *item = seq->items[i];
        if (item->type != YAML_SCALAR || !*item->text || !config_is_plain(item->text))
            yaml_reader_fail(
                r, item, "%s: expected a list of words without blanks or quotes", s->key);
        else
            buf_printf(&lines, "%s%s", lines.len ? "\n" : "", item->text);
    }
    char *text = lines.len ? mem_strdup(buf_str(&lines)) : NULL;
    buf_deinit(&lines);
    return text;
}

/* Reads the provider's own keys of a pool. */
static void read_settings(struct yaml_reader *r, struct config_pool *p)
{
    for (size_t i = 0; p->provider->settings[i].key; i++) {
        const struct cloud_setting *s = &p->provider->settings[i];
        p->settings[i] =
            s->kind == CLOUD_SETTING_LIST ? opt_lines(r, s) : config_opt_text(r, s->key, s->max);
        if (r->rc == 0 && s->needed && !p->settings[i])
            yaml_reader_fail(r, NULL, "%s: an elastic pool of provider %s needs %s", s->key,
                p->provider->name, s->needed);
    }
}

/* Reads the metadata_guard that the pool's agents are configured with; uses their words. */
static void read_guard(struct yaml_reader *r, struct config_pool *p)
{
    static const char *const guards[] = {"off", "best-effort", "required", NULL};
    if (yaml_opt(r, "metadata_guard"))
        p->metadata_guard = guards[yaml_opt_enum(r, "metadata_guard", guards, 0)];
}

/* A program on the nodes; its path is written into their agents' configuration as it is. */
static char *read_hook(struct yaml_reader *r, const char *key)
{
    char *path = config_opt_text(r, key, 1024), shown[STR_SHOW_MAX];
    if (r->rc == 0 && path && (path[0] != '/' || !config_is_plain(path)))
        yaml_reader_fail(r, yaml_opt(r, key),
            "expected an absolute path without blanks, quotes and backslashes, found %s",
            str_show(path, shown));
    return path;
}

/* ---- machines kept without demand ---- */

/* A pool that is about to be removed has max_nodes 0, and keeps none. */
static int32_t opt_base(
    struct yaml_reader *r, const char *key, const struct pool_row *p, int32_t or)
{
    int32_t n = (int32_t)yaml_opt_i64(r, key, 0, POOL_BASE_MAX, or);
    if (r->rc == 0 && p->max_nodes > 0 && n > p->max_nodes && yaml_opt(r, key))
        yaml_reader_fail(r, yaml_opt(r, key), "%s: at most the pool's max_nodes, %d, found %d", key,
            (int)p->max_nodes, (int)n);
    return n;
}

static void read_base_window(struct yaml_reader *of_pool, const struct yaml_node *node,
    const struct pool_row *p, struct pool_window *w)
{
    struct yaml_reader r;
    yaml_reader_init(&r, of_pool->file, node, of_pool->e);
    config_read_window(&r, node, &w->window, w->tz);
    w->min_nodes = opt_base(&r, "min_nodes", p, p->min_nodes);
    w->warm_nodes = opt_base(&r, "warm_nodes", p, p->warm_nodes);
    if (r.rc == 0 && !yaml_opt(&r, "min_nodes") && !yaml_opt(&r, "warm_nodes"))
        yaml_reader_fail(&r, node, "window %s has neither min_nodes nor warm_nodes", node->key);
    yaml_reader_finish_in(of_pool, &r);
}

static void read_base(struct yaml_reader *r, struct config_pool *p)
{
    struct pool_window windows[POOL_WINDOWS_MAX] = {{.min_nodes = 0}};
    p->row.min_nodes = opt_base(r, "min_nodes", &p->row, 0);
    p->row.warm_nodes = opt_base(r, "warm_nodes", &p->row, 0);
    const struct yaml_node *map = config_opt_entries(r, "windows", POOL_WINDOWS_MAX);
    size_t n = 0;
    for (; map && n < map->n_items && r->rc == 0; n++)
        read_base_window(r, map->items[n], &p->row, &windows[n]);
    if (r->rc == 0)
        pool_windows_format(windows, n, p->row.windows);
}

static void read_elastic(struct yaml_reader *r, struct config_pool *p)
{
    bool has_region = p->provider->offers != CLOUD_OFFERS_HOSTS;
    STR_COPY(p->row.region,
        has_region ? yaml_req_str(r, "region", CORE_NAME_MAX - 1) : p->provider->name);
    p->row.max_nodes = (int32_t)yaml_opt_i64(r, "max_nodes", 0, 10000, 8);
    p->row.idle_timeout_ms = config_opt_time(r, "idle_timeout", 0, SECONDS_MS(120));
    p->row.cooldown_ms = config_opt_time(r, "cooldown", 0, SECONDS_MS(120));
    p->row.boot_timeout_ms = config_opt_time(r, "boot_timeout", SECONDS_MS(1), SECONDS_MS(600));
    p->row.refusal_backoff_ms = config_opt_time(r, "refusal_backoff", 10, SECONDS_MS(10));
    p->launches_per_minute = yaml_opt_i64(r, "launches_per_minute", 1, 60000, 0);
    p->row.min_paid_ms = config_opt_time(r, "paid_minimum", 0, p->provider->paid_minimum_ms);
    p->row.return_ms = config_opt_time(r, "return_after", 0, SECONDS_MS(1800));
    p->row.spread_pct = (int32_t)yaml_opt_i64(r, "spread", 0, 100, 10);
    p->row.require_drill = config_opt_truth(r, "require_drill", false);
    p->row.drill_valid_ms = config_opt_time(r, "drill_valid", SECONDS_MS(60), DRILL_VALID_MS);
    p->row.max_gpus = yaml_opt_i64(r, "max_gpus", 1, 1000000, 0);
    p->row.max_uusd_h = yaml_opt_uusd(r, "max_usd_per_hour", 0);
    p->row.by_price = yaml_opt_enum(r, "rank_by", rank_words, 0) == 1;
    if (p->provider->has_fleets)
        p->row.fleet = yaml_opt_enum(r, "allocation", allocation_words, 0) == 1;
    p->row.criu = (enum criu_ability)yaml_opt_enum(r, "criu", criu_words, CRIU_UNKNOWN);
    p->endpoint = mem_strdup(config_opt_url(r, "endpoint", 512, "https://", "http://", NULL));
    p->metadata = mem_strdup(config_opt_url(r, "metadata", 512, "http://", NULL, NULL));
    read_guard(r, p);
    p->notice_reserve_ms = config_opt_time(r, "notice_reserve", SECONDS_MS(1), 0);
    p->prolog = read_hook(r, "prolog");
    p->epilog = read_hook(r, "epilog");
    p->hook_timeout_ms = config_opt_time(r, "hook_timeout", SECONDS_MS(1), 0);
    if (p->provider->offers != CLOUD_OFFERS_HOSTS) /* these machines exist */
        config_read_new_accounts(r, &p->create_accounts);
    p->credentials = config_opt_text(r, "credentials", 1024);
    p->disk_gib = yaml_opt_i64(r, "disk_gib", 0, 65536, 0);
    read_settings(r, p);
    if (p->provider->offers == CLOUD_OFFERS_HOSTS)
        config_read_hosts_offer(r, p);
    else if (p->provider->offers == CLOUD_OFFERS_REGION)
        config_read_region_offers(r, p);
    else
        config_read_offers(r, p);
    read_base(r, p); /* the hosts of a pool may set max_nodes */
}

/* For a pool whose provider is unknown: marks the keys of all providers as known, so that they are
 * not reported too. Sets no values, because r has an error. */
static void mark_keys_of_all(struct yaml_reader *r, struct config_pool *p)
{
    for (size_t i = 0; cloud_provider_names[i]; i++) {
        p->provider = cloud_provider_find(cloud_provider_names[i]);
        read_elastic(r, p);
    }
}

/* Reads the prices of transfer between the pool and the checkpoint store, in micro-USD per GiB. */
static void read_traffic(struct yaml_reader *r, const struct config *c, struct pool_row *p)
{
    p->egress_uusd_gib = yaml_opt_uusd(r, "egress_usd_per_gib",
        config_egress_uusd_gib(c->store_provider, c->store_region, p->provider, p->region));
    p->upload_uusd_gib = yaml_opt_uusd(r, "upload_usd_per_gib",
        config_egress_uusd_gib(p->provider, p->region, c->store_provider, c->store_region));
}

static const struct yaml_node *find_item(const struct yaml_node *map, const char *key)
{
    for (size_t i = 0; map && map->type == YAML_MAPPING && i < map->n_items; i++)
        if (str_eq(map->items[i]->key, key))
            return map->items[i];
    return NULL;
}

/* Returns the pool with the defaults of its provider's entry in `providers:`. The caller frees the
 * list `items`, but not the items. */
static struct yaml_node with_defaults(
    const struct yaml_node *pool, const struct yaml_node *providers)
{
    struct yaml_node both = *pool;
    const struct yaml_node *name = find_item(pool, "provider");
    const struct yaml_node *more =
        name && name->type == YAML_SCALAR ? find_item(providers, name->text) : NULL;
    size_t n_more = more ? more->n_items : 0;
    both.items = mem_array(pool->n_items + n_more + 1, sizeof(struct yaml_node *));
    for (size_t i = 0; i < pool->n_items; i++)
        both.items[i] = pool->items[i];
    for (size_t i = 0; i < n_more; i++)
        if (!find_item(pool, more->items[i]->key))
            both.items[both.n_items++] = more->items[i];
    return both;
}

int config_check_providers(const char *file, const struct yaml_node *providers, struct err *e)
{
    struct yaml_reader r;
    yaml_reader_init(&r, file, providers, e);
    for (size_t i = 0; cloud_provider_names[i]; i++) {
        const struct yaml_node *map = yaml_opt_map(&r, cloud_provider_names[i]);
        const struct yaml_node *own = find_item(map, "provider");
        own = own ? own : find_item(map, "kind");
        if (own)
            yaml_reader_fail(&r, own, "expected no such key here: each pool has its own");
    }
    return yaml_reader_finish(&r);
}

/* Not yaml_opt_features, because the name of a label may have fewer characters than a feature. */
static void read_required_labels(struct yaml_reader *r, struct config_pool *p)
{
    const struct yaml_node *seq = yaml_opt_seq(r, "required_labels", LABELS_MAX);
    char shown[STR_SHOW_MAX];
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        const struct yaml_node *item = seq->items[i];
        if (item->type != YAML_SCALAR || !str_is_name(item->text, CORE_NAME_MAX - 1))
            yaml_reader_fail(r, item,
                "required_labels: expected the name of a label (letters, digits, '.', '_', '-', at "
                "most %d), found %s",
                CORE_NAME_MAX - 1,
                item->type == YAML_SCALAR ? str_show(item->text, shown) : "something else");
        else if (!features_add(p->row.required_labels, sizeof p->row.required_labels, item->text))
            yaml_reader_fail(
                r, item, "required_labels: at most %d bytes together", FEATURES_TEXT_MAX - 3);
    }
}

static void read_idle_gpus(struct yaml_reader *root, struct idle_gpus_policy *p)
{
    const struct yaml_node *map = yaml_opt_map(root, "idle_gpus");
    struct yaml_reader r;
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    p->then = (enum idle_gpus_then)yaml_opt_enum(&r, "then", idle_gpus_then_names, IDLE_GPUS_TELL);
    p->busy_pct = (int32_t)yaml_opt_i64(&r, "busy_below", 1, 100, 5);
    p->for_ms = config_opt_time(&r, "for", SECONDS_MS(60), SECONDS_MS(1800));
    p->grace_ms = config_opt_time(&r, "grace", 0, SECONDS_MS(900));
    if (p->then == IDLE_GPUS_IGNORE)
        *p = (struct idle_gpus_policy){0};
    yaml_reader_finish_in(root, &r);
}

static int read_pool(const char *file, const struct yaml_node *node, const struct config *c,
    struct config_pool *p, struct err *e)
{
    struct yaml_reader r;
    char shown[STR_SHOW_MAX];
    yaml_reader_init(&r, file, node, e);
    if (!str_is_name(node->key, CORE_NAME_MAX - 1))
        yaml_reader_fail(&r, node,
            "%s is not a pool's name: letters, digits, '.', '_', '-', at most %d",
            str_show(node->key, shown), CORE_NAME_MAX - 1);
    STR_COPY(p->row.name, node->key);
    struct retries retries;
    config_read_retries(&r, "retries", &retries);
    retries_format(&retries, p->row.retries);
    read_required_labels(&r, p);
    read_idle_gpus(&r, &p->row.idle_gpus);
    config_read_run_as(&r, &p->run_as);
    yaml_opt_features(&r, "features", p->row.features);
    yaml_opt_counts(&r, "resources", p->row.resources);
    const struct yaml_node *provider = yaml_opt(&r, "provider");
    p->row.elastic = yaml_opt_enum(&r, "kind", kind_names, provider != NULL) == 1;
    if (p->row.elastic) {
        int which = yaml_opt_enum(&r, "provider", cloud_provider_names, -1);
        if (r.rc == 0 && which < 0)
            yaml_reader_fail(&r, NULL, "an elastic pool needs a provider, such as aws");
        if (r.rc == 0) {
            STR_COPY(p->row.provider, cloud_provider_names[which]);
            p->provider = cloud_provider_find(p->row.provider);
            read_elastic(&r, p);
        } else {
            mark_keys_of_all(&r, p);
        }
    } else {
        if (provider)
            yaml_reader_fail(
                &r, provider, "a reserved pool has none: its machines join by themselves");
        p->row.usd_per_hour_uusd = yaml_opt_uusd(&r, "usd_per_hour", 0);
    }
    read_traffic(&r, c, &p->row);
    return yaml_reader_finish(&r);
}

int config_read_pools(const char *file, const struct yaml_node *map,
    const struct yaml_node *providers, struct config *c, struct err *e)
{
    size_t n_offers = 0;
    if (map->n_items > CONFIG_POOLS_MAX)
        return err_set(e, ERR_INVALID, "%s:%d: pools: at most %d pools, found %zu", file, map->line,
            CONFIG_POOLS_MAX, map->n_items);
    c->pools = mem_array(map->n_items, sizeof(*c->pools));
    for (size_t i = 0; i < map->n_items; i++) {
        struct yaml_node pool = with_defaults(map->items[i], providers);
        int rc = read_pool(file, &pool, c, &c->pools[c->n_pools++], e);
        free(pool.items);
        if (rc != 0)
            return rc;
        n_offers += c->pools[i].n_offers;
        if (n_offers > CONFIG_OFFERS_MAX)
            return err_set(e, ERR_INVALID,
                "%s:%d: pools: more than %d offers (zones x types x markets) with pool %s: name "
                "fewer",
                file, map->items[i]->line, CONFIG_OFFERS_MAX, c->pools[i].row.name);
    }
    return 0;
}

void config_default_pools(struct config *c)
{
    c->pools = mem_array(1, sizeof(*c->pools));
    c->n_pools = 1;
    STR_COPY(c->pools[0].row.name, "local");
}

void config_pools_free(struct config_pool *pools, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct config_pool *p = &pools[i];
        for (size_t k = 0; k < CLOUD_SETTINGS_MAX; k++)
            free(p->settings[k]);
        free(p->endpoint);
        free(p->metadata);
        free(p->prolog);
        free(p->epilog);
        free(p->credentials);
        run_as_deinit(&p->run_as);
        new_accounts_deinit(&p->create_accounts);
        free(p->offers);
    }
    free(pools);
}
