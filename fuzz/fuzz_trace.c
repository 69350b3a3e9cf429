/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace file: parsed, and followed for a while by a market.
 */
#include "base/mem.h"
#include "emulator/market.h"
#include <assert.h>
#include <stdint.h>

#define STEPS_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace trace = {0};
    struct market m;
    struct err e;
    if (trace_parse((const char *)data, size, &trace, &e) < 0)
        return 0;
    struct market_pool *p = mem_alloc(sizeof(*p));
    p->follow = (struct market_follow){.trace = trace, .speed = 1000, .offset = 3, .scale = 2};
    market_init(&m, p, 1, (struct wall){0});
    struct wall now = {0};
    for (int i = 0; i < STEPS_MAX; i++) {
        struct wall next = market_next(&m);
        if (!wall_is_set(next))
            break;
        assert(next.ms >= now.ms);
        now = next;
        market_advance(&m, now);
        assert(p->capacity[CLOUD_SPOT] >= 0 && p->price_uusd_h[CLOUD_SPOT] >= 0);
    }
    market_deinit(&m);
    return 0;
}
