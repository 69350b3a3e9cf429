/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's configuration with its event script: either valid and within its limits, or an
 * error with file and line. The file's directory does not exist, so no trace is read.
 */
#include "emulator/config.h"
#include "fuzz/check.h"
#include <stdint.h>

#define FILE_NAME "/nonexistent/emulator.yaml"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const struct region_event *ev)
{
    assert(ev->notice_ms >= 0 && ev->n >= 0 && ev->price_uusd_h >= 0);
    assert((ev->kind != EVENT_RECLAIM && ev->kind != EVENT_REBALANCE) || ev->pick != PICK_ONE ||
           ev->instance[0]);
    assert(!ev->is_without_notice || !ev->has_notice);
    assert(ev->kind != EVENT_FAULT || (ev->fault.count >= 1 && ev->fault.ms >= 0));
}

static void check_pools(const struct provider_config *c)
{
    assert(c->n_pools >= 1 && c->n_pools <= MARKET_POOLS_MAX);
    for (size_t i = 0; i < c->n_pools; i++) {
        const struct market_pool *p = &c->pools[i];
        assert(p->zone[0] && p->type[0] && !p->follow.trace.n);
        assert(p->capacity[CLOUD_SPOT] >= 0 && p->capacity[CLOUD_ON_DEMAND] >= 0);
        assert(p->price_uusd_h[CLOUD_SPOT] > 0 && p->price_uusd_h[CLOUD_ON_DEMAND] > 0);
    }
}

static void check_provider(const struct provider_config *c)
{
    assert(c->front && c->options);
    assert(c->port >= 0 && c->port <= 65535 && c->metadata_port >= 0 && c->metadata_port <= 65535);
    assert(c->role_ttl_ms >= 0 && c->region.boot_delay_ms >= 0 && c->region.notice_ms >= 0);
    check_pools(c);
    for (size_t i = 0; i < c->region.n_script; i++) {
        assert(c->region.script[i].at_ms >= (i ? c->region.script[i - 1].at_ms : 0));
        check_event(&c->region.script[i].event);
    }
}

static void check_config(const struct emulator_config *c)
{
    assert(c->n_providers >= 1 && c->n_providers <= CONFIG_PROVIDERS_MAX);
    assert(c->shutdown_ms >= 0);
    assert(c->path && (!c->dir || c->dir[0] == '/'));
    for (size_t i = 0; i < c->n_providers; i++)
        check_provider(&c->providers[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct emulator_config c;
    struct err e = {0};
    memset(&c, CHECK_PATTERN, sizeof(c));
    int rc = config_parse(FILE_NAME, (const char *)data, size, &c, &e);
    if (rc == 0) {
        check_config(&c);
        config_deinit(&c);
    } else {
        check_error(rc, &e);
        assert(str_starts(e.text, FILE_NAME ":"));
        check_untouched(&c, sizeof(c));
    }
    return 0;
}
