/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's configuration: either valid and within its limits, or an error with file and line.
 */
#include "base/buf.h"
#include "fuzz/check.h"
#include "scheduler/pooldiff.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pool(const struct config_pool *p)
{
    assert(str_is_name(p->row.name, CORE_NAME_MAX - 1));
    assert(p->row.elastic == (p->n_offers > 0));
    for (size_t i = 0; i < p->n_offers; i++) {
        const struct offer_row *o = &p->offers[i];
        assert(
            str_eq(o->pool, p->row.name) && str_is_name(o->zone, CORE_NAME_MAX - 1) && o->type[0]);
        for (size_t k = 0; k < i && i < 64; k++)
            assert(!str_eq(o->zone, p->offers[k].zone) || !str_eq(o->type, p->offers[k].type) ||
                   o->market != p->offers[k].market);
    }
}

static void check_config(const struct config *c)
{
    assert(str_is_name(c->cluster, CORE_NAME_MAX - 1));
    struct buf store = {0};
    struct err e;
    if (str_starts(c->store, "file:///"))
        assert(str_url_decode(&store, c->store, strlen(c->store), false, &e) == 0);
    else
        assert(str_starts(c->store, "s3://"));
    buf_deinit(&store);
    assert(c->state_dir[0] == '/' && c->socket[0] == '/');
    assert(c->listen_host[0] && c->listen_port >= 0 && c->listen_port <= 65535);
    assert(!c->server_url[0] || str_starts(c->server_url, "https://"));
    assert(c->n_names <= CONFIG_NAMES_MAX && c->n_pools <= CONFIG_POOLS_MAX);
    assert(
        c->lease_ms >= 1000 && c->sync_ms >= 1 && c->sync_ms < c->lease_ms && c->kill_wait_ms >= 0);
    assert(c->sweep_ms >= 100 && c->busy_sweep_ms >= 100 && c->price_ms >= 100 &&
           c->orphan_ms >= 1000);
    size_t n_offers = 0;
    for (size_t i = 0; i < c->n_pools; i++) {
        check_pool(&c->pools[i]);
        n_offers += c->pools[i].n_offers;
    }
    assert(n_offers <= CONFIG_OFFERS_MAX);
}

/* The same bytes as a pool file: it differs from nothing, and not from itself. */
static void check_applied(const char *data, size_t size)
{
    struct config nothing = {0}, c;
    struct err e = {0};
    memset(&c, CHECK_PATTERN, sizeof(c));
    int rc = config_parse_pools("pools.yaml", data, size, &nothing, &c, &e);
    if (rc != 0) {
        check_error(rc, &e);
        assert(rc == ERR_INVALID && str_starts(e.text, "pools.yaml:"));
        check_untouched(&c, sizeof(c));
        return;
    }
    json_t *all = pools_diff(&nothing, &c), *none = pools_diff(&c, &c);
    assert(pools_differ(all) == (c.n_pools || c.max_nodes || c.max_gpus || c.max_uusd_h));
    assert(!pools_differ(none));
    for (size_t i = 0; i < c.n_pools; i++) {
        check_pool(&c.pools[i]);
        assert(pool_same_driver(&c.pools[i], &c.pools[i]) == c.pools[i].row.elastic);
    }
    json_decref(all);
    json_decref(none);
    config_deinit(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_applied((const char *)data, size);
    static const char *const dirs[] = {NULL, "/srv/50%"};
    for (size_t i = 0; i < 2; i++) {
        struct config c;
        struct err e = {0};
        memset(&c, CHECK_PATTERN, sizeof(c));
        int rc = config_parse("belayd.yaml", (const char *)data, size, dirs[i], &c, &e);
        if (rc == 0) {
            check_config(&c);
            assert(!dirs[i] || str_eq(c.state_dir, dirs[i]));
            config_deinit(&c);
        } else {
            check_error(rc, &e);
            assert(rc == ERR_INVALID && str_starts(e.text, "belayd.yaml:"));
            check_untouched(&c, sizeof(c));
        }
    }
    return 0;
}
