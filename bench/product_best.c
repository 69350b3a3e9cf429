/* SPDX-License-Identifier: Apache-2.0
 *
 * The least that jobs of `scripts/bench policy --product` could have cost if the future was known
 * (policy_best.h), each alone, with the product's boots, restores and saves. A lower bound: times
 * are rounded in the job's favour, a start on spot is allowed until the end of a notice, a save is
 * always due when a machine is left, and an ended machine costs nothing more.
 *
 *     bench_product_best BOOT_S RESTORE_S NOTICE_S PRICE FROM_S TRACE...
 *
 * PRICE: of spot, relative to on-demand. FROM_S: offset into the traces. Reads a line for each job,
 * in seconds: its submit after the first one; the time that it takes on one machine, saves
 * included; and the time from submit to deadline. Prints the sum of the costs in seconds of
 * on-demand.
 */
#include "bench/policy_best.h"

#include "base/err.h"
#include "base/mem.h"
#include "cloud/trace.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_S 30

struct market {
    int64_t boot_s, restore_s, notice_s, from_s;
    double price;
    struct trace traces[BEST_ZONES_MAX];
    size_t n;
};

/* Whether spot is up at a moment of [at_s, at_s + TICK_S), or was so less than a notice before. */
static bool is_up(const struct market *m, const struct trace *t, int64_t at_s)
{
    const int64_t gap_s = t->gap_ms / 1000;
    int64_t first = at_s - m->notice_s + 1, last = at_s + TICK_S - 1;

    for (int64_t i = first < 0 ? 0 : first / gap_s; i <= last / gap_s; i++)
        if (t->counts[(size_t)i % t->n] > 0)
            return true;
    return false;
}

/* The first start has nothing to restore: as if the job had so much less to do. */
static double cost_s(const struct market *m, int64_t submit_s, int64_t takes_s, int64_t within_s)
{
    const int64_t work_s = takes_s > m->restore_s ? takes_s - m->restore_s : 0,
                  lost_s = (within_s - work_s + TICK_S - 1) / TICK_S * TICK_S;
    struct best_case c = {.n_zones = m->n,
        .n_ticks = (size_t)((work_s + lost_s) / TICK_S + 1),
        .tick_ms = 1000 * TICK_S,
        .work_ms = 1000 * work_s,
        .deadline_ms = 1000 * (work_s + lost_s),
        .restart_ms = 1000 * (m->boot_s + m->restore_s),
        .boot_ms = 1000 * m->boot_s,
        .price = m->price};
    uint8_t *up = mem_array(m->n * c.n_ticks, 1);
    double cost;

    for (size_t z = 0; z < m->n; z++) {
        c.up[z] = up + z * c.n_ticks;
        for (size_t i = 0; i < c.n_ticks; i++)
            up[z * c.n_ticks + i] =
                is_up(m, &m->traces[z], m->from_s + submit_s + (int64_t)i * TICK_S);
    }
    cost = best_cost(&c) / 1000;
    free(up);
    return cost;
}

static void load(struct market *m, char **files, size_t n)
{
    struct err e;

    for (; m->n < n; m->n++)
        if (trace_load(files[m->n], &m->traces[m->n], &e) < 0) {
            fprintf(stderr, "bench_product_best: %s\n", e.text);
            exit(1);
        }
}

int main(int argc, char **argv)
{
    long long submit_s, takes_s, within_s;
    double sum_s = 0;
    struct market m = {.n = 0};

    if (argc < 7 || argc > 6 + BEST_ZONES_MAX) {
        fprintf(
            stderr, "usage: bench_product_best BOOT_S RESTORE_S NOTICE_S PRICE FROM_S TRACE...\n");
        return 2;
    }
    m.boot_s = strtoll(argv[1], NULL, 10);
    m.restore_s = strtoll(argv[2], NULL, 10);
    m.notice_s = strtoll(argv[3], NULL, 10);
    m.price = strtod(argv[4], NULL);
    m.from_s = strtoll(argv[5], NULL, 10);
    load(&m, &argv[6], (size_t)argc - 6);
    while (scanf("%lld %lld %lld", &submit_s, &takes_s, &within_s) == 3)
        sum_s += cost_s(&m, submit_s, takes_s, within_s);
    printf("%.0f\n", sum_s);
    for (size_t i = 0; i < m.n; i++)
        trace_deinit(&m.traces[i]);
    return isinf(sum_s) ? 1 : 0;
}
