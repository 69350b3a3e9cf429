/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads belayd's configuration (see config.h). Pure: the caller has read the file.
 */
#include "scheduler/config/config.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/yaml_extras.h"
#include "ckpt/store/store.h"
#include "cloud/catalogue.h"
#include "scheduler/config/job_credentials.h"
#include "scheduler/config/place.h"
#include <stdlib.h>
#include <string.h>

#define TYPES_MAX 64
#define ZONES_MAX 32
#define HOST_MAX 253
#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:"

static const char *const kind_names[] = {"reserved", "elastic", NULL};
static const char *const rank_words[] = {"effective", "price", NULL};
static const char *const allocation_words[] = {"single", "fleet", NULL};
/* enum criu_ability */
static const char *const criu_words[] = {"unknown", "no", "cpu", "gpu", NULL};
static const char *const encryption_words[] = {"none", "client", "required", NULL};
static const char *const truth_words[] = {"false", "true", NULL};
static const char *const market_words[] = {"spot", "on-demand", NULL};

/* ---- small readers ---- */

static char *opt_text(struct yaml_reader *r, const char *key, size_t max)
{
    return mem_strdup(yaml_opt_str(r, key, max, NULL));
}

/* A duration of at least min_ms. */
#define HOLD_IN_VAIN 10
#define DRILL_VALID_MS (90LL * 86400 * 1000)

static int64_t opt_time(struct yaml_reader *r, const char *key, int64_t min_ms, int64_t fallback_ms)
{
    char least[32];
    const struct yaml_node *node = yaml_opt(r, key);
    int64_t ms = yaml_opt_duration_ms(r, key, fallback_ms);
    time_format_duration(min_ms, least, sizeof(least));
    if (node && ms < min_ms)
        yaml_reader_fail(r, node, "expected at least %s, found \"%s\"", least, node->text);
    return ms;
}

/* True for text that can be used unchanged in other programs' configuration and in certificates. */
static bool is_plain(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s > '~' || *s == '"' || *s == '\'' || *s == '\\')
            return false;
    return true;
}

static bool is_url(const char *text, const char *scheme)
{
    return str_starts(text, scheme) && text[strlen(scheme)] && is_plain(text);
}

/* Reads a URL that begins with scheme ("https://") or, unless it is NULL, other_scheme. */
static const char *opt_url(struct yaml_reader *r, const char *key, size_t max, const char *scheme,
    const char *other_scheme, const char *fallback)
{
    const struct yaml_node *node = yaml_opt(r, key);
    const char *url = yaml_opt_str(r, key, max, fallback);
    char shown[STR_SHOW_MAX];
    if (node && r->rc == 0 && !is_url(url, scheme) && !(other_scheme && is_url(url, other_scheme)))
        yaml_reader_fail(r, node, "expected %s...%s%s%s, found %s", scheme,
            other_scheme ? " or " : "", other_scheme ? other_scheme : "", other_scheme ? "..." : "",
            str_show(url, shown));
    return url;
}

void config_server_host(const struct config *c, char *out, size_t size)
{
    const char *from = strstr(c->server_url, "://");
    from = from ? from + 3 : c->server_url;
    bool is_bracketed = *from == '[';
    from += is_bracketed;
    char *host = mem_strndup(from, strcspn(from, is_bracketed ? "]" : ":/?#"));
    if (!str_copy(out, size, host))
        out[0] = '\0';
    free(host);
}

/* Reads HOST:PORT, where an IPv6 address is in brackets. */
static void read_listen(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *node = yaml_opt(r, "listen");
    const char *listen = yaml_opt_str(r, "listen", 80, "127.0.0.1:7443");
    const char *colon = strrchr(listen, ':');
    size_t n = colon ? (size_t)(colon - listen) : 0;
    int64_t port = 0;
    char shown[STR_SHOW_MAX];
    if (n >= 2 && listen[0] == '[' && listen[n - 1] == ']') {
        listen++;
        n -= 2;
    } else if (n > 0 && memchr(listen, ':', n)) {
        n = 0;
    }
    if (n == 0 || n >= sizeof(c->listen_host) || !is_plain(listen) ||
        str_to_i64(colon + 1, 0, 65535, "port", &port, NULL) != 0) {
        yaml_reader_fail(r, node,
            "expected HOST:PORT or [ADDRESS]:PORT with a port in 0 .. 65535, found %s",
            str_show(node ? node->text : listen, shown));
        return;
    }
    memcpy(c->listen_host, listen, n);
    c->listen_port = (int)port;
}

static void read_names(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *seq = yaml_opt_seq(r, "names", CONFIG_NAMES_MAX);
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        const struct yaml_node *item = seq->items[i];
        const char *name = item->type == YAML_SCALAR ? item->text : "";
        if (!name[0] || strlen(name) > HOST_MAX || name[strspn(name, HOST_CHARACTERS)]) {
            char shown[STR_SHOW_MAX];
            yaml_reader_fail(r, item, "names: expected a host name or address, found %s",
                str_show(item->type == YAML_SCALAR ? name : "(not a text)", shown));
            return;
        }
        c->names[c->n_names++] = mem_strdup(name);
    }
}

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

/* ---- pools ---- */

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

/* Spot has the lower rank over all pools, unless a pool reverses the order for itself. */
static int rank_of(enum market m, bool is_reversed)
{
    return is_reversed ? m == MARKET_SPOT : m == MARKET_ON_DEMAND;
}

/* Reads a machine that the catalogue does not have, or that has another price. */
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

/* Reads names of the catalogue, and mappings that describe a machine. Returns their number; the
 * texts are borrowed. */
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

/* Reads the offers of on-demand machines of these types, anywhere in the region. */
static void read_region_offers(struct yaml_reader *r, struct config_pool *p)
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

static void read_offers(struct yaml_reader *r, struct config_pool *p)
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

/* Returns the words of a sequence, one a line. The caller frees it. */
static char *opt_lines(struct yaml_reader *r, const struct cloud_setting *s)
{
    const struct yaml_node *seq = yaml_opt_seq(r, s->key, s->max);
    struct buf lines = {0};
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        const struct yaml_node *item = seq->items[i];
        if (item->type != YAML_SCALAR || !*item->text || !is_plain(item->text))
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
            s->kind == CLOUD_SETTING_LIST ? opt_lines(r, s) : opt_text(r, s->key, s->max);
        if (r->rc == 0 && s->needed && !p->settings[i])
            yaml_reader_fail(r, NULL, "%s: an elastic pool of provider %s needs %s", s->key,
                p->provider->name, s->needed);
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

/* Reads the offer of a pool of existing hosts, all the same: as many as the pool names, with its
 * size and price. */
static void read_hosts_offer(struct yaml_reader *r, struct config_pool *p)
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

/* The same words as in the agent's configuration. */
static void read_guard(struct yaml_reader *r, struct config_pool *p)
{
    static const char *const guards[] = {"off", "best-effort", "required", NULL};
    if (yaml_opt(r, "metadata_guard"))
        p->metadata_guard = guards[yaml_opt_enum(r, "metadata_guard", guards, 0)];
}

static void read_elastic(struct yaml_reader *r, struct config_pool *p)
{
    bool has_region = p->provider->offers != CLOUD_OFFERS_HOSTS;
    STR_COPY(p->row.region,
        has_region ? yaml_req_str(r, "region", CORE_NAME_MAX - 1) : p->provider->name);
    p->row.max_nodes = (int32_t)yaml_opt_i64(r, "max_nodes", 0, 10000, 8);
    p->row.idle_timeout_ms = opt_time(r, "idle_timeout", 0, SECONDS_MS(120));
    p->row.cooldown_ms = opt_time(r, "cooldown", 0, SECONDS_MS(120));
    p->row.boot_timeout_ms = opt_time(r, "boot_timeout", SECONDS_MS(1), SECONDS_MS(600));
    p->row.refusal_backoff_ms = opt_time(r, "refusal_backoff", 10, SECONDS_MS(10));
    p->launches_per_minute = yaml_opt_i64(r, "launches_per_minute", 1, 60000, 0);
    p->row.min_paid_ms = opt_time(r, "paid_minimum", 0, p->provider->paid_minimum_ms);
    p->row.return_ms = opt_time(r, "return_after", 0, SECONDS_MS(1800));
    p->row.spread_pct = (int32_t)yaml_opt_i64(r, "spread", 0, 100, 10);
    p->row.require_drill = yaml_opt_enum(r, "require_drill", truth_words, 0) == 1;
    p->row.drill_valid_ms = opt_time(r, "drill_valid", SECONDS_MS(60), DRILL_VALID_MS);
    p->row.max_gpus = yaml_opt_i64(r, "max_gpus", 1, 1000000, 0);
    p->row.max_uusd_h = yaml_opt_uusd(r, "max_usd_per_hour", 0);
    p->row.by_price = yaml_opt_enum(r, "rank_by", rank_words, 0) == 1;
    if (p->provider->has_fleets)
        p->row.fleet = yaml_opt_enum(r, "allocation", allocation_words, 0) == 1;
    p->row.criu = (enum criu_ability)yaml_opt_enum(r, "criu", criu_words, CRIU_UNKNOWN);
    p->endpoint = mem_strdup(opt_url(r, "endpoint", 512, "https://", "http://", NULL));
    p->metadata = mem_strdup(opt_url(r, "metadata", 512, "http://", NULL, NULL));
    read_guard(r, p);
    p->credentials = opt_text(r, "credentials", 1024);
    p->disk_gib = yaml_opt_i64(r, "disk_gib", 0, 65536, 0);
    read_settings(r, p);
    if (p->provider->offers == CLOUD_OFFERS_HOSTS)
        read_hosts_offer(r, p);
    else if (p->provider->offers == CLOUD_OFFERS_REGION)
        read_region_offers(r, p);
    else
        read_offers(r, p);
}

/* For a pool whose provider is unknown: marks the keys of all providers as known, so that only the
 * provider is reported. Reads nothing, because r has an error. */
static void ask_for_all(struct yaml_reader *r, struct config_pool *p)
{
    for (size_t i = 0; cloud_provider_names[i]; i++) {
        p->provider = cloud_provider_find(cloud_provider_names[i]);
        read_elastic(r, p);
    }
}

/* Reads the prices of transfer between the pool and the store of checkpoints. */
static void read_traffic(struct yaml_reader *r, const struct config *c, struct pool_row *p)
{
    p->egress_uusd_gib = yaml_opt_uusd(r, "egress_usd_per_gib",
        place_egress_uusd_gib(c->store_provider, c->store_region, p->provider, p->region));
    p->upload_uusd_gib = yaml_opt_uusd(r, "upload_usd_per_gib",
        place_egress_uusd_gib(p->provider, p->region, c->store_provider, c->store_region));
}

static const struct yaml_node *find_item(const struct yaml_node *map, const char *key)
{
    for (size_t i = 0; map && map->type == YAML_MAPPING && i < map->n_items; i++)
        if (str_eq(map->items[i]->key, key))
            return map->items[i];
    return NULL;
}

/* Returns the pool with the defaults of its provider's entry in `providers:`. Only the list is
 * owned by the caller: free items. */
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

/* Checks that each provider is a mapping of keys that a pool may inherit. */
static int check_providers(const char *file, const struct yaml_node *providers, struct err *e)
{
    struct yaml_reader r;
    yaml_reader_init(&r, file, providers, e);
    for (size_t i = 0; cloud_provider_names[i]; i++) {
        const struct yaml_node *map = yaml_opt_map(&r, cloud_provider_names[i]);
        const struct yaml_node *own = find_item(map, "provider");
        own = own ? own : find_item(map, "kind");
        if (own)
            yaml_reader_fail(&r, own, "this is for each pool to say");
    }
    return yaml_reader_finish(&r);
}

/* Names of labels allow fewer characters than features. */
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
            ask_for_all(&r, p);
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

static int read_pools(const char *file, const struct yaml_node *map,
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

/* Without pools every machine that joins belongs to one reserved pool that costs nothing. */
static void default_pools(struct config *c)
{
    c->pools = mem_array(1, sizeof(*c->pools));
    c->n_pools = 1;
    STR_COPY(c->pools[0].row.name, "local");
}

/* ---- the file ---- */

static void read_times(struct yaml_reader *r, struct config *c)
{
    c->lease_ms = opt_time(r, "lease", SECONDS_MS(1), SECONDS_MS(30));
    c->kill_wait_ms = opt_time(r, "kill_wait", 0, SECONDS_MS(30));
    c->store_wait_ms = opt_time(r, "store_wait", SECONDS_MS(1), SECONDS_MS(600));
    c->sweep_ms = opt_time(r, "sweep", 100, SECONDS_MS(60));
    c->busy_sweep_ms = opt_time(r, "busy_sweep", 100, SECONDS_MS(5));
    c->settle_ms = opt_time(r, "settle", 0, SECONDS_MS(60));
    c->price_ms = opt_time(r, "price_every", 100, SECONDS_MS(300));
    c->node_cert_ms = opt_time(r, "node_certificate", SECONDS_MS(60), SECONDS_MS(30 * 86400));
    c->api_token_ms = opt_time(r, "api_token_lifetime", SECONDS_MS(60), SECONDS_MS(90 * 86400));
    c->orphan_ms = opt_time(r, "orphan_timeout", SECONDS_MS(1), SECONDS_MS(3600));
    c->hold_in_vain = (int32_t)yaml_opt_i64(r, "hold_in_vain", 0, 1000000, HOLD_IN_VAIN);
    c->retention_ms = opt_time(r, "retention", 0, SECONDS_MS(7 * 86400));
    c->sync_ms = c->lease_ms / 3 < 20000 ? c->lease_ms / 3 : 20000;
}

/* Reads "4G"; "none" gives 0. */
static int64_t opt_bytes(struct yaml_reader *r, const char *key, const char *fallback)
{
    const struct yaml_node *node = yaml_opt(r, key);
    const char *text = yaml_opt_str(r, key, 32, fallback);
    struct err why;
    int64_t mib = 0;
    if (r->rc != 0 || str_eq(text, "none"))
        return 0;
    if (str_to_mib(text, &mib, &why) != 0)
        yaml_reader_fail(r, node, "%s, or none", why.text);
    return mib << 20;
}

static void read_logs(struct yaml_reader *r, struct config *c)
{
    c->log_job_bytes = opt_bytes(r, "log_max_per_job", "4G");
    c->log_user_day_bytes = opt_bytes(r, "log_max_per_user_day", "64G");
    c->log_full_wait_ms = opt_time(r, "log_full_wait", 0, SECONDS_MS(300));
    c->store_user_day_bytes = opt_bytes(r, "store_max_per_user_day", "4G");
    c->workdir_user_bytes = opt_bytes(r, "workdir_max_per_user", "20G");
}

/* Copies value, or else STATE + own, into dst. */
static void copy_place(struct yaml_reader *r, const char *key, const char *value,
    const char *before, const char *state_dir, const char *after, char *dst, size_t size)
{
    char *own = mem_printf("%s%s%s", before, state_dir, after);
    if (!str_copy(dst, size, value ? value : own))
        yaml_reader_fail(r, NULL,
            "%s: the default in this state directory, %sSTATE%s, has %zu bytes and may have %zu: "
            "set a shorter one with %s:",
            key, before, after, strlen(own), size - 1, key);
    free(own);
}

/* Refuses a store that no agent could open. */
static void check_store(struct yaml_reader *r, const char *url)
{
    const struct yaml_node *node = yaml_opt(r, "store");
    char shown[STR_SHOW_MAX];
    struct err e;
    if (node && r->rc == 0 && (!is_plain(url) || str_eq(url, "file:///")))
        yaml_reader_fail(r, node, "expected a URL without blanks, quotes and backslashes, found %s",
            str_show(url, shown));
    else if (r->rc == 0 && url && store_check_url(url, &e) != 0)
        yaml_reader_fail(r, yaml_opt(r, "store"), "%s%s", e.text,
            strchr(url, '%') ? "; in a URL a percent sign is written as %25" : "");
}

/* Returns NULL if belayd can create credentials for each job at this store, as far as is known at
 * the start; else what is missing. */
static const char *lacks_for_jobs(const struct config *c)
{
    const char *google = getenv("GOOGLE_APPLICATION_CREDENTIALS");
    const char *id = getenv("AZURE_CLIENT_ID"), *secret = getenv("AZURE_CLIENT_SECRET");
    if (str_starts(c->store, "s3:"))
        return c->store_role ? NULL : "set store_role to a role that belayd may assume";
    if (str_starts(c->store, "gs:"))
        return google && *google ? NULL
                                 : "set store_credentials: job, and GOOGLE_APPLICATION_CREDENTIALS "
                                   "of belayd unless its machine has an account";
    if (str_starts(c->store, "az:"))
        return id && *id && secret && *secret
                   ? NULL
                   : "set store_credentials: job, and AZURE_CLIENT_ID and AZURE_CLIENT_SECRET of "
                     "belayd unless its machine has an identity";
    return "";
}

static void choose_credentials(struct yaml_reader *r, struct config *c)
{
    static const char *const whose[] = {"node", "job", NULL};
    const char *lacks = lacks_for_jobs(c);
    c->job_credentials = yaml_opt_enum(r, "store_credentials", whose, !lacks) == 1;
    if (lacks && *lacks && !yaml_opt(r, "store_credentials"))
        c->why_node_credentials = lacks;
}

/* Reads the keys of job credentials; call after the store. */
static void read_credentials(struct yaml_reader *r, struct config *c)
{
    static const char *const needed[] = {
        "store_role", "store_sts", "store_kms_key", "store_lifetime"};
    const struct yaml_node *node = yaml_opt(r, "store_credentials");
    struct err e;
    c->store_role = opt_text(r, "store_role", 2048);
    choose_credentials(r, c);
    c->store_sts = mem_strdup(opt_url(r, "store_sts", 512, "https://", "http://", NULL));
    c->store_kms_key = opt_text(r, "store_kms_key", 2048);
    c->store_life_ms = opt_time(r, "store_lifetime", SECONDS_MS(1), 0);
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (!c->job_credentials && yaml_opt(r, needed[i]))
            yaml_reader_fail(
                r, yaml_opt(r, needed[i]), "%s: this is for store_credentials: job", needed[i]);
    const struct job_credentials o = {.store = c->store,
        .role_arn = c->store_role,
        .kms_key = c->store_kms_key,
        .sts_url = c->store_sts,
        .life_ms = c->store_life_ms};
    if (r->rc == 0 && c->job_credentials && job_credentials_check(&o, &e) != 0)
        yaml_reader_fail(r, node, "%s", e.text);
}

/* Returns the path in the form for a file:// URL, where '%' begins an escape. */
static char *path_of_url(const char *path)
{
    struct buf out = {0};
    for (; *path; path++)
        if (*path == '%')
            buf_adds(&out, "%25");
        else
            buf_addc(&out, *path);
    return buf_take(&out);
}

static void read_encryption(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *node = yaml_opt(r, "key_file");
    const char *path = yaml_opt_str(r, "key_file", sizeof(c->key_file) - 1, NULL);
    char shown[STR_SHOW_MAX];
    c->encryption =
        (enum config_encryption)yaml_opt_enum(r, "encryption", encryption_words, ENCRYPTION_NONE);
    if (path && path[0] != '/')
        yaml_reader_fail(r, node, "expected an absolute path, found %s", str_show(path, shown));
    copy_place(r, "key_file", path, "", c->state_dir, "/checkpoint.keys", c->key_file,
        sizeof(c->key_file));
}

/* aws/us-east-1 */
static void read_store_place(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *node = yaml_opt(r, "store_place");
    const char *text = yaml_opt_str(
        r, "store_place", sizeof(c->store_provider) + sizeof(c->store_region) - 2, NULL);
    char shown[STR_SHOW_MAX];
    if (text && !(input_split_place(text, c->store_provider, c->store_region) &&
                    cloud_provider_find(c->store_provider)))
        yaml_reader_fail(r, node,
            "expected the store's provider and region, as in aws/us-east-1 (aws, azure, gcp, "
            "lambda, static), found %s",
            str_show(text, shown));
}

static void read_places(struct yaml_reader *r, struct config *c, const char *state_dir)
{
    const struct yaml_node *dir_node = yaml_opt(r, "state"), *socket_node = yaml_opt(r, "socket");
    const char *dir = yaml_opt_str(r, "state", sizeof(c->state_dir) - 1, "/var/lib/belay");
    const char *socket = yaml_opt_str(r, "socket", sizeof(c->socket) - 1, NULL);
    char shown[STR_SHOW_MAX];
    const char *store = yaml_opt_str(r, "store", sizeof(c->store) - 1, NULL);
    if (!STR_COPY(c->state_dir, state_dir ? state_dir : dir))
        yaml_reader_fail(r, NULL, "the state directory's path is longer than %zu bytes",
            sizeof(c->state_dir) - 1);
    if (c->state_dir[0] != '/')
        yaml_reader_fail(r, state_dir ? NULL : dir_node,
            "expected an absolute path for the state, found %s", str_show(c->state_dir, shown));
    if (socket && socket[0] != '/')
        yaml_reader_fail(
            r, socket_node, "expected an absolute path, found %s", str_show(socket, shown));
    copy_place(r, "socket", socket, "", c->state_dir, "/belayd.sock", c->socket, sizeof(c->socket));
    check_store(r, store);
    char *state_in_url = path_of_url(c->state_dir);
    copy_place(r, "store", store, "file://", state_in_url, "/store", c->store, sizeof(c->store));
    free(state_in_url);
    c->store_uusd_gib_month =
        yaml_opt_uusd(r, "store_usd_per_gib_month", catalogue_store_uusd_gib_month(c->store));
    if (c->store_uusd_gib_month > MODEL_STORE_UUSD_MAX)
        yaml_reader_fail(
            r, yaml_opt(r, "store_usd_per_gib_month"), "expected at most a million dollars");
    read_store_place(r, c);
    read_encryption(r, c);
}

static void read_cluster(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *node = yaml_opt(r, "cluster");
    const char *name = yaml_opt_str(r, "cluster", CORE_NAME_MAX - 1, "belay");
    char shown[STR_SHOW_MAX];
    if (!str_is_name(name, CORE_NAME_MAX - 1))
        yaml_reader_fail(r, node, "expected a name of letters, digits, '.', '_', '-', found %s",
            str_show(name, shown));
    STR_COPY(c->cluster, name);
}

static int read_limits(
    const char *file, const struct yaml_node *map, struct config *c, struct err *e)
{
    struct yaml_reader r;
    yaml_reader_init(&r, file, map, e);
    c->max_nodes = yaml_opt_i64(&r, "max_nodes", 1, 1000000, 0);
    c->max_gpus = yaml_opt_i64(&r, "max_gpus", 1, 1000000, 0);
    c->max_uusd_h = yaml_opt_uusd(&r, "max_usd_per_hour", 0);
    return yaml_reader_finish(&r);
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
    read_cluster(&r, &c);
    read_places(&r, &c, state_dir);
    read_credentials(&r, &c);
    read_listen(&r, &c);
    read_names(&r, &c);
    STR_COPY(c.server_url, opt_url(&r, "server", sizeof(c.server_url) - 1, "https://", NULL, ""));
    read_times(&r, &c);
    read_logs(&r, &c);
    config_read_order(&r, &c.order);
    config_read_windows(&r, &c.windows, &c.n_windows);
    config_read_budgets(&r, c.windows, c.n_windows, &c.budgets, &c.n_budgets);
    config_read_racks(&r, &c.racks, &c.n_racks);
    config_read_volumes(&r, &c.volume_prices, &c.n_volume_prices);
    config_read_procurement(&r, &c.deadlines);
    config_read_retries(&r, "retries", &c.retries.usual);
    config_read_retries(&r, "retries_max", &c.retries.most);
    c.n_licences = yaml_opt_count_list(&r, "licences", c.licences, LICENCES_MAX);
    config_read_notify(&r, &c.notify);
    config_read_telemetry(&r, &c.telemetry);
    const struct yaml_node *pools = yaml_opt_map(&r, "pools"), *limits = yaml_opt_map(&r, "limits");
    const struct yaml_node *providers = yaml_opt_map(&r, "providers");
    rc = yaml_reader_finish(&r);
    if (rc == 0 && limits)
        rc = read_limits(file, limits, &c, e);
    if (rc == 0 && providers)
        rc = check_providers(file, providers, e);
    if (rc == 0 && pools)
        rc = read_pools(file, pools, providers, &c, e);
    else if (rc == 0)
        default_pools(&c);
    yaml_node_free(root);
    if (rc != 0)
        config_deinit(&c);
    else
        *ret_config = c;
    return rc;
}

int config_parse_pools(const char *file, const char *text, size_t n, const struct config *base,
    struct config *ret_config, struct err *e)
{
    struct config c = {
        .max_nodes = base->max_nodes, .max_gpus = base->max_gpus, .max_uusd_h = base->max_uusd_h};
    STR_COPY(c.store_provider, base->store_provider);
    STR_COPY(c.store_region, base->store_region);
    struct yaml_node *root = NULL;
    struct yaml_reader r;
    int rc = yaml_parse(file, text, n, &root, e);
    if (rc != 0)
        return rc;
    yaml_reader_init(&r, file, root, e);
    const struct yaml_node *pools = yaml_opt_map(&r, "pools"), *limits = yaml_opt_map(&r, "limits");
    const struct yaml_node *providers = yaml_opt_map(&r, "providers");
    if (!pools)
        yaml_reader_fail(&r, NULL, "a section \"pools:\" is needed, as in belayd's configuration");
    rc = yaml_reader_finish(&r);
    if (rc == 0 && limits)
        rc = read_limits(file, limits, &c, e);
    if (rc == 0 && providers)
        rc = check_providers(file, providers, e);
    if (rc == 0)
        rc = read_pools(file, pools, providers, &c, e);
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
        for (size_t k = 0; k < CLOUD_SETTINGS_MAX; k++)
            free(p->settings[k]);
        free(p->endpoint);
        free(p->metadata);
        free(p->credentials);
        free(p->offers);
    }
    free(c->pools);
    config_order_deinit(&c->order);
    config_notify_deinit(&c->notify);
    free(c->windows);
    config_budgets_free(c->budgets, c->n_budgets);
    free(c->racks);
    free(c->volume_prices);
    free(c->store_role);
    free(c->store_kms_key);
    free(c->store_sts);
    *c = (struct config){0};
}
