/* SPDX-License-Identifier: Apache-2.0
 *
 * See pools.h.
 */
#include "scheduler/pools.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

struct pools {
    struct pools_options o;
    struct cloud_driver *drivers[CONFIG_POOLS_MAX]; /* of the pools of the configuration; NULL: not elastic */
};

struct pools *pools_create(const struct pools_options *o)
{
    struct pools *p = mem_alloc(sizeof(*p));
    p->o = *o;
    return p;
}

void pools_close(struct pools *p)
{
    for (size_t i = 0; p && i < CONFIG_POOLS_MAX; i++) {
        if (p->drivers[i])
            p->drivers[i]->ops->destroy(p->drivers[i]);
        p->drivers[i] = NULL;
    }
}

void pools_destroy(struct pools *p)
{
    free(p);
}

const struct config_pool *pools_find(const struct pools *p, const char *name)
{
    for (size_t i = 0; i < p->o.config->n_pools; i++)
        if (str_eq(p->o.config->pools[i].row.name, name))
            return &p->o.config->pools[i];
    return NULL;
}

/* ---- drivers ---- */

static int make_driver(
    const struct pools *p, const struct config_pool *c, struct cloud_driver **ret_driver, struct err *e)
{
    struct cloud_setup s = {
        .provider = c->provider,
        .region = c->row.region,
        .endpoint = c->endpoint,
        .credentials = c->credentials,
        .metadata = c->metadata,
        .disk_gib = c->disk_gib,
        .http = p->o.http,
        .timers = p->o.timers,
    };
    for (size_t i = 0; i < CLOUD_SETTINGS_MAX; i++)
        s.values[i] = c->settings[i];
    int rc = c->provider->create(&s, ret_driver, e);
    return rc == 0 ? 0 : err_wrap(e, "pool %s", c->row.name);
}

int pools_open(struct pools *p, struct err *e)
{
    for (size_t i = 0; i < p->o.config->n_pools; i++) {
        const struct config_pool *c = &p->o.config->pools[i];
        if (!c->row.elastic)
            continue;
        int rc = make_driver(p, c, &p->drivers[i], e);
        if (rc != 0)
            return rc;
        provision_add_pool(p->o.provision,
            &(struct provision_pool){.name = c->row.name, .driver = p->drivers[i], .region = c->row.region});
    }
    return 0;
}

/* ---- facts ---- */

static bool is_offered(const struct config_pool *c, const struct offer_row *r)
{
    for (size_t k = 0; k < c->n_offers; k++)
        if (c->offers[k].market == r->market && str_eq(c->offers[k].type, r->type) &&
            str_eq(c->offers[k].zone, r->zone))
            return true;
    return false;
}

/* Offers that the pool had and the configuration no longer names: never launched again. */
static void withdraw_offers(struct pools *p, const struct config_pool *c)
{
    const struct pool *known = model_pool(tick_model(p->o.tick), c->row.name);
    if (!known)
        return;
    LIST_FOREACH (&known->offers, l) {
        struct offer_row r = LIST_ENTRY(l, struct offer, in_pool)->row;
        struct event ev = {.type = EV_OFFER, .offer = &r};
        if (is_offered(c, &r) || r.rank == OFFER_WITHDRAWN)
            continue;
        r.rank = OFFER_WITHDRAWN;
        tick_post(p->o.tick, &ev, NULL, NULL);
    }
}

/* What the model refuses of the configuration (a pool that changed its kind while it has nodes) stays as it
 * was. */
static void on_configured(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)id;
    if (e)
        log_error("a part of the configuration did not take effect", log_err(e));
}

void pools_post(struct pools *p)
{
    LIST_FOREACH (model_pools(tick_model(p->o.tick)), l) {
        struct pool_row gone = LIST_ENTRY(l, struct pool, in_all)->row;
        gone.max_nodes = 0;
        struct event ev = {.type = EV_POOL, .pool = &gone};
        if (!pools_find(p, gone.name))
            tick_post(p->o.tick, &ev, on_configured, NULL);
    }
    for (size_t i = 0; i < p->o.config->n_pools; i++) {
        const struct config_pool *c = &p->o.config->pools[i];
        struct event ev = {.type = EV_POOL, .pool = &c->row};
        tick_post(p->o.tick, &ev, on_configured, NULL);
        withdraw_offers(p, c);
        for (size_t k = 0; k < c->n_offers; k++) {
            struct event offer = {.type = EV_OFFER, .offer = &c->offers[k]};
            tick_post(p->o.tick, &offer, on_configured, NULL);
        }
    }
}
