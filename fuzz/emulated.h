/* SPDX-License-Identifier: Apache-2.0
 *
 * A region with two pools and running instances, for targets that use the emulator.
 */
#ifndef BELAY_FUZZ_EMULATED_H
#define BELAY_FUZZ_EMULATED_H

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/region.h"
#include <assert.h>

#define EMULATED_NOON_MS INT64_C(1787400000000)
#define EMULATED_CAPACITY 3

static inline void emulated_start(struct region *r, struct journal *journal)
{
    static const struct region_options options = {.name = "us-east-1",
        .account = "111122223333",
        .seed = 1,
        .boot_delay_ms = 1000,
        .notice_ms = 2000};
    struct market_pool *pools = mem_array(2, sizeof(*pools));
    log_set_level(LOG_ERROR);
    for (int i = 0; i < 2; i++) {
        STR_COPY(pools[i].zone, i ? "us-east-1b" : "us-east-1a");
        STR_COPY(pools[i].type, "g6.xlarge");
        pools[i].capacity[CLOUD_SPOT] = pools[i].capacity[CLOUD_ON_DEMAND] = EMULATED_CAPACITY;
        pools[i].price_uusd_h[CLOUD_SPOT] = pools[i].price_uusd_h[CLOUD_ON_DEMAND] = 500000;
    }
    region_init(r, &options, journal, pools, 2, NULL, NULL, (struct wall){EMULATED_NOON_MS});
}

/* Launches n instances in us-east-1a with a role and a tag, which require a metadata token; they
 * run 2 s later. */
static inline struct reservation *emulated_launch(
    struct region *r, enum cloud_market market, int64_t n)
{
    struct launch_spec spec = {.market = market,
        .type = "g6.xlarge",
        .zone = "us-east-1a",
        .image = "ami-1",
        .profile = "agent",
        .metadata_needs_token = true,
        .metadata_has_tags = true};
    struct reservation *v = NULL;
    buf_adds(&spec.user_data, "#!/bin/sh\n");
    tags_set(&spec.tags, "belay:cluster", "lab");
    int rc = region_launch(r, &spec, "", "", n, n, (struct wall){EMULATED_NOON_MS}, &v, NULL);
    assert(rc == 0);
    (void)rc;
    region_advance(r, (struct wall){EMULATED_NOON_MS + 2000});
    return v;
}

#endif
