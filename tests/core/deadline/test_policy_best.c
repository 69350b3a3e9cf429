/* SPDX-License-Identifier: Apache-2.0
 *
 * The optimum that bench/policy.c compares with equals that of an exhaustive search.
 */
#include "base/prng.h"
#include "bench/policy_best.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static double try_all(
    const struct best_case *c, size_t t, size_t mode, int64_t starting_ms, int64_t work_ms);

/* A tick at `to`, and everything after it. beside_ms: while on-demand computes on. */
static double try_one(const struct best_case *c, size_t t, size_t mode, size_t to,
    int64_t beside_ms, int64_t starting_ms, int64_t work_ms)
{
    const bool idles = to == c->n_zones + 1;
    const double price = to < c->n_zones ? c->price : 1;
    int64_t boot = to == mode ? starting_ms : c->restart_ms - beside_ms, used = 0;

    if (beside_ms > work_ms)
        return INFINITY; /* it stays on on-demand */
    work_ms -= beside_ms;
    if (!idles && work_ms > 0) {
        const int64_t rest = c->tick_ms - beside_ms, starts = boot < rest ? boot : rest,
                      ran = rest - starts < work_ms ? rest - starts : work_ms;
        used = starts + ran;
        boot -= starts;
        work_ms -= ran;
    }
    used += beside_ms;
    if (work_ms == 0 && (int64_t)t * c->tick_ms + used > c->deadline_ms)
        return INFINITY;
    return (idles ? 0 : (double)beside_ms + price * (double)(work_ms == 0 ? used : c->tick_ms)) +
           try_all(c, t + 1, to, idles ? 0 : boot, work_ms);
}

/* Every sequence of decisions: mode is a zone, n_zones for on-demand, n_zones + 1 for idle. A boot
 * beside on-demand ends within a tick. */
static double try_all(
    const struct best_case *c, size_t t, size_t mode, int64_t starting_ms, int64_t work_ms)
{
    const size_t sure = c->n_zones, idle = sure + 1;
    double least = INFINITY;

    if (work_ms == 0)
        return 0;
    if (t >= c->n_ticks || (int64_t)t * c->tick_ms >= c->deadline_ms)
        return INFINITY;
    for (size_t to = 0; to <= idle; to++) {
        if (to < sure && !c->up[to][t])
            continue;
        least = fmin(least, try_one(c, t, mode, to, 0, starting_ms, work_ms));
        if (mode == sure && to < sure)
            least = fmin(least, try_one(c, t, mode, to, c->boot_ms, starting_ms, work_ms));
    }
    return least;
}

static void best_is_what_trying_everything_finds(void **state)
{
    struct prng prng;

    (void)state;
    prng_init(&prng, 7);
    for (int round = 0; round < 400; round++) {
        uint8_t up[2][8];
        struct best_case c = {
            .n_zones = 1 + prng_below(&prng, 2), .n_ticks = 8, .tick_ms = 6, .up = {up[0], up[1]}};
        c.restart_ms = prng_range(&prng, 0, 9);
        c.boot_ms = c.restart_ms <= c.tick_ms && round % 2 ? prng_range(&prng, 0, c.restart_ms) : 0;
        c.work_ms = prng_range(&prng, 1, 30);
        c.deadline_ms = c.work_ms + prng_range(&prng, 0, 14);
        c.price = prng_chance(&prng, 0.5) ? 0.25 : 0.5;
        for (int z = 0; z < 2; z++)
            for (int t = 0; t < 8; t++)
                up[z][t] = prng_chance(&prng, 0.6);
        const double best = best_cost(&c), tried = try_all(&c, 0, c.n_zones + 1, 0, c.work_ms);
        if (isinf(tried))
            assert_true(isinf(best));
        else
            assert_true(fabs(best - tried) < 1e-3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(best_is_what_trying_everything_finds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
