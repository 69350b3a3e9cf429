/* SPDX-License-Identifier: Apache-2.0
 *
 * See pools.h. An application is one piece of the tick's work, in this order:
 *
 *     check against the model --> write STATE/pools.yaml --> events --> swap drivers --> commit
 *       --> answer
 *
 * A crash before the file is written changes nothing; after it, the next start applies the file,
 * even if the request was not answered. No pool launches before it is on disk, because launches
 * follow the commit.
 *
 * The account of a pool need not be known: the settings that locate instances cannot change while
 * the pool has any.
 */
#include "scheduler/pools.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/yaml.h"
#include "scheduler/config/checks.h"
#include "scheduler/config/own_name.h"
#include "scheduler/pooldiff.h"
#include "scheduler/config/reach.h"
#include "scheduler/core/supply/base_load.h"
#include <stdlib.h>
#include <string.h>

#define REVISION_BYTES 4

/* Drivers of the pools of a configuration, with the same indices; NULL if not elastic. */
struct driver_set {
    struct cloud_driver *d[CONFIG_POOLS_MAX];
};

struct application {
    struct pools *pools;
    struct config next;
    struct driver_set drivers; /* NULL until the swap for pools that keep theirs */
    char *text;
    size_t n;
    json_t *diff;
    bool is_in_force;
    pools_applied_fn done;
    void *ctx;
};

struct pools {
    struct pools_options o;
    char *path;
    struct config applied; /* used if is_applied, else the configuration's pools are in force */
    bool is_applied;
    struct driver_set drivers;
    struct cloud_driver **retired; /* replaced, with calls in progress */
    size_t n_retired;
    struct application *applying; /* one at a time */
    char epoch[2 * REVISION_BYTES + 1];
    int64_t n_applied;
};

struct pools *pools_create(const struct pools_options *o)
{
    struct pools *p = mem_alloc(sizeof(*p));
    p->o = *o;
    p->path = mem_printf("%s/pools.yaml", o->config->state_dir);
    random_hex(REVISION_BYTES, p->epoch);
    return p;
}

static void destroy_drivers(struct driver_set *s)
{
    for (size_t i = 0; i < CONFIG_POOLS_MAX; i++) {
        if (s->d[i])
            s->d[i]->ops->destroy(s->d[i]);
        s->d[i] = NULL;
    }
}

void pools_close(struct pools *p)
{
    if (!p)
        return;
    destroy_drivers(&p->drivers);
    for (size_t i = 0; i < p->n_retired; i++)
        p->retired[i]->ops->destroy(p->retired[i]);
    p->n_retired = 0;
    if (p->applying)
        destroy_drivers(&p->applying->drivers);
}

void pools_destroy(struct pools *p)
{
    if (!p)
        return;
    config_deinit(&p->applied);
    free(p->retired);
    free(p->path);
    free(p);
}

const struct config *pools_in_force(const struct pools *p)
{
    return p->is_applied ? &p->applied : p->o.config;
}

bool pools_are_applied(const struct pools *p)
{
    return p->is_applied;
}

const struct config_pool *pools_find(const struct pools *p, const char *name)
{
    return config_pool_find(pools_in_force(p), name);
}

static const char *nearest_name(const struct config *c, const char *name)
{
    const char **names = mem_array(c->n_pools + 1, sizeof(*names));
    for (size_t i = 0; i < c->n_pools; i++)
        names[i] = c->pools[i].row.name;
    names[c->n_pools] = NULL;
    const char *near = str_nearest(name, names);
    free(names);
    return near;
}

int pools_check_names(const struct pools *p, const char *names, const char *where, struct err *e)
{
    char name[CORE_NAME_MAX];
    for (const char *at = names; names_next(&at, name, sizeof(name));)
        if (!pools_find(p, name)) {
            const char *near = nearest_name(pools_in_force(p), name);
            return near ? err_set(e, ERR_INVALID,
                              "%s.pool: there is no pool \"%s\"; did you mean \"%s\"?", where, name,
                              near)
                        : err_set(e, ERR_INVALID,
                              "%s.pool: there is no pool \"%s\" (belay pools lists them)", where,
                              name);
        }
    return 0;
}

struct cloud_driver *pools_driver(const struct pools *p, const struct config_pool *pool)
{
    return p->drivers.d[pool - pools_in_force(p)->pools];
}

static const struct model *model_of(const struct pools *p)
{
    return tick_model(p->o.tick);
}

/* ---- drivers ---- */

static int make_driver(const struct pools *p, const struct config_pool *c,
    struct cloud_driver **ret_driver, struct err *e)
{
    struct cloud_setup s = {
        .provider = c->provider,
        .region = c->row.region,
        .endpoint = c->endpoint,
        .credentials = c->credentials,
        .metadata = c->metadata,
        .disk_gib = c->disk_gib,
        .http = p->o.http,
        .runner = p->o.runner,
        .timers = p->o.timers,
    };
    for (size_t i = 0; i < CLOUD_SETTINGS_MAX; i++)
        s.values[i] = c->settings[i];
    int rc = c->provider->create(&s, ret_driver, e);
    return rc == 0 ? 0 : err_wrap(e, "pool %s", c->row.name);
}

/* Creates a driver for every elastic pool that cannot keep the one it has. */
static int make_drivers(const struct pools *p, const struct config *before, const struct config *c,
    struct driver_set *s, struct err *e)
{
    for (size_t i = 0; i < c->n_pools; i++) {
        const struct config_pool *had =
            before ? config_pool_find(before, c->pools[i].row.name) : NULL;
        if (!c->pools[i].row.elastic || (had && pool_same_driver(had, &c->pools[i])))
            continue;
        int rc = make_driver(p, &c->pools[i], &s->d[i], e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void update_provision(
    struct pools *p, const struct config_pool *c, struct cloud_driver *driver)
{
    provision_add_pool(p->o.provision, &(struct provision_pool){.name = c->row.name,
                                           .driver = driver,
                                           .region = c->row.region,
                                           .launches_per_minute = c->launches_per_minute});
}

static int read_applied(struct pools *p, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(p->path, YAML_BYTES_MAX, &text, e);
    if (rc == 0) {
        rc = config_parse_pools(p->path, buf_str(&text), text.len, p->o.config, &p->applied, e);
        p->is_applied = rc == 0;
    } else if (rc == ERR_NOT_FOUND) {
        rc = 0;
    }
    if (rc != 0)
        err_wrap(e, "the file of belay pools apply");
    buf_deinit(&text);
    return rc;
}

/* Returns ERR_CONFIG if it is certain that machines of these pools cannot reach belayd. */
static int check_reach(
    const struct pools *p, const struct config *c, int64_t wait_ms, struct err *e)
{
    struct err why;
    int rc = reach_check(p->o.config, c, e);
    if (rc == 0 && own_name_check(p->o.own_name, c, wait_ms, &why) == ERR_CONFIG) {
        *e = why;
        rc = ERR_CONFIG;
    }
    return rc;
}

/* A zone of its windows may be none that this machine has. */
static int check_windows(const struct pools *p, const struct config *c, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n_pools; i++)
        rc = base_load_check(model_of(p), &c->pools[i].row, e);
    return rc;
}

int pools_open(struct pools *p, struct err *e)
{
    int rc = read_applied(p, e);
    if (rc == 0)
        rc = check_windows(p, pools_in_force(p), e);
    if (rc == 0)
        rc = check_reach(p, pools_in_force(p), POOLS_NAME_WAIT_MS, e);
    if (rc == 0)
        rc = make_drivers(p, NULL, pools_in_force(p), &p->drivers, e);
    if (rc != 0)
        return rc;
    if (p->is_applied)
        log_info("the pools are those of the last belay pools apply, not of the configuration",
            log_s("file", p->path));
    const struct config *c = pools_in_force(p);
    for (size_t i = 0; i < c->n_pools; i++)
        if (p->drivers.d[i])
            update_provision(p, &c->pools[i], p->drivers.d[i]);
    return 0;
}

void pools_released(struct pools *p, struct cloud_driver *driver)
{
    for (size_t i = 0; i < p->n_retired; i++) {
        if (p->retired[i] != driver)
            continue;
        p->retired[i] = p->retired[--p->n_retired];
        driver->ops->destroy(driver);
        return;
    }
}

static void retire(struct pools *p, struct cloud_driver *driver)
{
    p->retired = mem_resize(p->retired, p->n_retired + 1, sizeof(struct cloud_driver *));
    p->retired[p->n_retired++] = driver;
}

/* ---- facts ---- */

/* Delivers one fact: post_fact at the start, apply_fact within the tick's work. */
typedef void (*pool_fact_fn)(struct pools *p, struct event *ev);

/* A part of the configuration that the model refuses (a pool that changed its kind while it has
 * nodes) stays as before. */
static void on_configured(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)id;
    if (e)
        log_error("a part of the configuration did not take effect", log_err(e));
}

static void post_fact(struct pools *p, struct event *ev)
{
    tick_post(p->o.tick, ev, on_configured, NULL);
}

static void apply_fact(struct pools *p, struct event *ev)
{
    struct err e = {0};
    on_configured(NULL, tick_apply(p->o.tick, ev, NULL, &e) == 0 ? NULL : &e, 0);
}

static const struct offer_row *find_offer(const struct config_pool *c, const struct offer_row *r)
{
    for (size_t k = 0; c && k < c->n_offers; k++)
        if (c->offers[k].market == r->market && str_eq(c->offers[k].type, r->type) &&
            str_eq(c->offers[k].zone, r->zone))
            return &c->offers[k];
    return NULL;
}

/* Withdraws the model's offers that pool c no longer lists (c NULL: the pool no longer exists), so
 * that they are never launched again. They are collected first, because a new rank moves an offer
 * within the traversed list. */
static void withdraw_offers(
    struct pools *p, const struct pool *known, const struct config_pool *c, pool_fact_fn fact)
{
    struct offer_row *rows = NULL;
    size_t n = 0;
    LIST_FOREACH (&known->offers, l) {
        const struct offer_row *r = &LIST_ENTRY(l, struct offer, in_pool)->row;
        if (find_offer(c, r) || r->rank == OFFER_WITHDRAWN)
            continue;
        rows = mem_resize(rows, n + 1, sizeof(*rows));
        rows[n] = *r;
        rows[n++].rank = OFFER_WITHDRAWN;
    }
    for (size_t i = 0; i < n; i++)
        fact(p, &(struct event){.type = EV_OFFER, .offer = &rows[i]});
    free(rows);
}

static const struct offer *known_offer(const struct pool *known, const struct offer_row *r)
{
    LIST_FOREACH (&known->offers, l) {
        const struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
        if (o->row.market == r->market && str_eq(o->row.type, r->type) &&
            str_eq(o->row.zone, r->zone))
            return o;
    }
    return NULL;
}

/* Posts the configured offers. Existing ones keep the provider's price while belayd runs; at the
 * start the catalogue may be newer, and all prices are read again. */
static void post_offers(struct pools *p, const struct config_pool *c, pool_fact_fn fact)
{
    const struct pool *known = model_pool(model_of(p), c->row.name);
    for (size_t k = 0; k < c->n_offers; k++) {
        struct offer_row r = c->offers[k];
        const struct offer *o = known ? known_offer(known, &r) : NULL;
        if (fact == apply_fact && o && o->row.rank != OFFER_WITHDRAWN) {
            r.price_uusd_h = o->row.price_uusd_h;
            r.on_demand_uusd_h = o->row.on_demand_uusd_h;
        }
        fact(p, &(struct event){.type = EV_OFFER, .offer = &r});
    }
}

static void post_facts(struct pools *p, const struct config *c, pool_fact_fn fact)
{
    fact(p,
        &(struct event){.type = EV_LIMITS,
            .limits = {
                .max_nodes = c->max_nodes, .max_gpus = c->max_gpus, .max_uusd_h = c->max_uusd_h}});
    LIST_FOREACH (model_pools(model_of(p)), l) {
        const struct pool *known = LIST_ENTRY(l, struct pool, in_all);
        struct pool_row gone = known->row;
        gone.max_nodes = 0;
        if (config_pool_find(c, gone.name))
            continue;
        fact(p, &(struct event){.type = EV_POOL, .pool = &gone});
        withdraw_offers(p, known, NULL, fact);
    }
    for (size_t i = 0; i < c->n_pools; i++) {
        const struct pool *known = model_pool(model_of(p), c->pools[i].row.name);
        fact(p, &(struct event){.type = EV_POOL, .pool = &c->pools[i].row});
        if (known)
            withdraw_offers(p, known, &c->pools[i], fact);
        post_offers(p, &c->pools[i], fact);
    }
}

void pools_post(struct pools *p)
{
    post_facts(p, pools_in_force(p), post_fact);
}

/* ---- an application ---- */

int64_t pools_count_nodes(const struct model *m, const struct pool *pool)
{
    int64_t n = 0;
    LIST_FOREACH (model_nodes(m), l)
        n += LIST_ENTRY(l, struct node, in_all)->pool == pool;
    return n;
}

static int check_removed(const struct model *m, const char *name, struct err *e)
{
    const struct pool *known = model_pool(m, name);
    long long nodes = known ? (long long)pools_count_nodes(m, known) : 0;
    if (known && known->n_nodes > 0)
        return err_set(e, ERR_CONFLICT,
            "pool %s still has %d instance%s: give it max_nodes: 0, and remove it when they are "
            "gone (belay pools show %s)",
            name, (int)known->n_nodes, known->n_nodes == 1 ? "" : "s", name);
    if (nodes > 0)
        return err_set(e, ERR_CONFLICT,
            "pool %s still has %lld node%s: drain and delete them first (belay nodes)", name, nodes,
            nodes == 1 ? "" : "s");
    return 0;
}

/* Refuses to remove the location of an instance, unless its node is lost and the last listing could
 * not cover the location: the instance may then no longer exist, and would keep it forever. */
static int check_locations(const struct pools *p, const struct config_pool *had,
    const struct config_pool *c, struct err *e)
{
    const struct model *m = model_of(p);
    struct cloud_driver *driver = pools_driver(p, had);
    char location[CORE_NAME_MAX];
    LIST_FOREACH (model_instances(m), l) {
        const struct instance_row *i = &LIST_ENTRY(l, struct instance, in_all)->row;
        if (!str_eq(i->pool, c->row.name) || !pool_leaves(had, c, i->provider_id, location))
            continue;
        const struct node *n = model_node(m, i->node);
        bool is_up = n && n->row.state != NODE_LOST && n->row.state != NODE_GONE;
        if (is_up || !driver || !driver->ops->hides || !driver->ops->hides(driver, i->provider_id))
            return err_set(e, ERR_CONFLICT,
                "pool %s: instance %lld is at %s, which can be removed when the instance is gone "
                "(give the pool max_nodes: 0 meanwhile, or delete its node) or the host no longer "
                "answers",
                c->row.name, (long long)i->id, location);
    }
    return 0;
}

static int check_pool(const struct pools *p, const struct config_pool *had,
    const struct config_pool *c, struct err *e)
{
    const struct model *m = model_of(p);
    const struct pool *known = model_pool(m, c->row.name);
    const char *moved = had ? pool_moved(had, c) : NULL;
    int rc = core_pool_check(m, &c->row, e);
    if (rc == 0 && moved && known && known->n_nodes > 0)
        rc = err_set(e, ERR_CONFLICT,
            "pool %s has instances, which are listed by its %s: that can change when they are gone "
            "(give it max_nodes: 0 meanwhile), or give the new one another name",
            c->row.name, moved);
    return rc == 0 && had ? check_locations(p, had, c, e) : rc;
}

/* Checks whether the current model allows the change to `next`. */
static int check(const struct pools *p, const struct config *next, struct err *e)
{
    const struct config *before = pools_in_force(p);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < next->n_pools; i++)
        rc = check_pool(p, config_pool_find(before, next->pools[i].row.name), &next->pools[i], e);
    for (size_t i = 0; rc == 0 && i < before->n_pools; i++)
        if (!config_pool_find(next, before->pools[i].row.name))
            rc = check_removed(model_of(p), before->pools[i].row.name, e);
    return rc;
}

/* Hands over the drivers that pools keep, retires the others, and updates provisioning. */
static void swap(struct pools *p, struct application *a)
{
    const struct config *before = pools_in_force(p);
    for (size_t i = 0; i < before->n_pools; i++) {
        struct cloud_driver *driver = p->drivers.d[i];
        const struct config_pool *next = config_pool_find(&a->next, before->pools[i].row.name);
        if (!driver)
            continue;
        p->drivers.d[i] = NULL;
        if (next && next->row.elastic && !a->drivers.d[next - a->next.pools]) {
            a->drivers.d[next - a->next.pools] = driver;
            continue;
        }
        retire(p, driver);
        if (!next)
            provision_remove_pool(p->o.provision, before->pools[i].row.name);
    }
    for (size_t i = 0; i < a->next.n_pools; i++)
        if (a->drivers.d[i])
            update_provision(p, &a->next.pools[i], a->drivers.d[i]);
    p->drivers = a->drivers;
    a->drivers = (struct driver_set){0};
    config_deinit(&p->applied);
    p->applied = a->next;
    a->next = (struct config){0};
    p->is_applied = true;
    p->n_applied++;
    a->is_in_force = true;
}

/* Applying pools may have corrected the cause of failed joins. */
static void retry_boots(struct pools *p, const struct config *c)
{
    for (size_t i = 0; i < c->n_pools; i++) {
        struct event ev = {.type = EV_POOL_RETRY};
        STR_COPY(ev.pool_retry.pool, c->pools[i].row.name);
        apply_fact(p, &ev);
    }
}

static int put_in_force(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct application *a = ctx;
    struct pools *p = a->pools;
    (void)t, (void)ret_id;
    int rc = check(p, &a->next, e);
    if (rc == 0)
        rc = fs_write_atomic(p->path, a->text, a->n, 0600, e);
    if (rc != 0)
        return rc;
    post_facts(p, &a->next, apply_fact);
    retry_boots(p, &a->next);
    swap(p, a);
    return 0;
}

static void answer(const struct pools *p, const struct err *e, const json_t *diff,
    pools_applied_fn done, void *ctx)
{
    char revision[64];
    snprintf(revision, sizeof(revision), "%s.%lld", p->epoch, (long long)p->n_applied);
    done(ctx, e, revision, diff);
}

static void on_in_force(void *ctx, const struct err *e, int64_t id)
{
    struct application *a = ctx;
    struct pools *p = a->pools;
    struct err why;
    (void)id;
    p->applying = NULL;
    if (!a->is_in_force)
        destroy_drivers(&a->drivers);
    else if (!e && own_name_check(p->o.own_name, &p->applied, 0, &why) != 0)
        log_warn("other pools are in force, whose machines may not reach belayd",
            log_s("file", p->path), log_err(&why));
    else if (!e)
        log_info("other pools are in force", log_s("file", p->path),
            log_i("pools", (int64_t)p->applied.n_pools));
    answer(p, e, a->diff, a->done, a->ctx);
    config_deinit(&a->next);
    json_decref(a->diff);
    free(a->text);
    free(a);
}

static int check_expected(const struct pools *p, const char *expect, struct err *e)
{
    char revision[64];
    snprintf(revision, sizeof(revision), "%s.%lld", p->epoch, (long long)p->n_applied);
    if (p->applying)
        return err_set(e, ERR_CONFLICT, "other pools are being applied at this moment: try again");
    if (expect && !str_eq(expect, revision))
        return err_set(
            e, ERR_CONFLICT, "the pools have changed since the difference was shown: check again");
    return 0;
}

void pools_apply(struct pools *p, const struct pools_request *r, pools_applied_fn done, void *ctx)
{
    struct application *a = mem_alloc(sizeof(*a));
    struct err e = {0};
    *a = (struct application){.pools = p, .done = done, .ctx = ctx};
    int rc = config_parse_pools(r->file, r->text, r->n, p->o.config, &a->next, &e);
    if (rc == 0 && check_reach(p, &a->next, 0, &e) != 0)
        rc = e.kind = ERR_INVALID;
    if (rc == 0 && config_check_pools(&a->next, &e) != 0)
        rc = e.kind = ERR_INVALID;
    if (rc == 0)
        rc = check(p, &a->next, &e);
    if (rc == 0)
        a->diff = pools_diff(pools_in_force(p), &a->next);
    if (rc == 0 && !r->dry_run)
        rc = check_expected(p, r->expect, &e);
    if (rc == 0 && !r->dry_run)
        rc = make_drivers(p, pools_in_force(p), &a->next, &a->drivers, &e);
    if (rc != 0 || r->dry_run) {
        destroy_drivers(&a->drivers);
        answer(p, rc ? &e : NULL, a->diff, done, ctx);
        config_deinit(&a->next);
        json_decref(a->diff);
        free(a);
        return;
    }
    a->text = mem_dup(r->text, r->n);
    a->n = r->n;
    p->applying = a;
    tick_post_work(p->o.tick, put_in_force, on_in_force, a);
}
