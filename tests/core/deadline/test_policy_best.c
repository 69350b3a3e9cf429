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

/* Every sequence of decisions: mode is a zone, n_zones for on-demand, n_zones + 1 for idle. */
static double try_all(
    const struct best_case *c, size_t t, size_t mode, int64_t starting_ms, int64_t work_ms)
{
    const size_t idle = c->n_zones + 1;
    double least = INFINITY;

    if (work_ms == 0)
        return 0;
    if (t >= c->n_ticks || (int64_t)t * c->tick_ms >= c->deadline_ms)
        return INFINITY;
    for (size_t to = 0; to <= idle; to++) {
        const double price = to < c->n_zones ? c->price : 1;
        int64_t boot = to == mode ? starting_ms : c->restart_ms, ran = 0, left = work_ms, used = 0;
        if (to < c->n_zones && !c->up[to][t])
            continue;
        if (to != idle) {
            used = boot < c->tick_ms ? boot : c->tick_ms;
            ran = c->tick_ms - used < left ? c->tick_ms - used : left;
            boot -= used;
            left -= ran;
            if (left == 0 && (int64_t)t * c->tick_ms + used + ran > c->deadline_ms)
                continue;
        }
        const double cost =
            (to == idle ? 0 : price * (double)(left == 0 ? used + ran : c->tick_ms)) +
            try_all(c, t + 1, to, to == idle ? 0 : boot, left);
        least = fmin(least, cost);
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
