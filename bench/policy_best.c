/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the optimum backwards over ticks. Lost time is counted in units of the greatest common
 * divisor of tick, restart and switch, so no time is rounded. Costs have single precision, with an
 * error below one in ten thousand. The restart counts as lost when a start is made: leaving before
 * its end is never better than idling.
 */
#include "bench/policy_best.h"

#include "base/mem.h"
#include <math.h>
#include <stdlib.h>

#define FAR 1e30f /* finite, so that the loops below are vectorised */

static int64_t divisor(int64_t a, int64_t b)
{
    return b ? divisor(b, a % b) : a;
}

struct best {
    const struct best_case *c;
    int64_t unit_ms;
    size_t n, tick, restart, switching; /* time that may be lost, and of these, in units */
    size_t modes;                       /* zones, on-demand, idle */
    /* [mode][lost]; go: cost of running in this mode in this tick, and of everything after */
    float *next, *now, *go;
};

static float *row(const struct best *b, float *rows, size_t mode)
{
    return rows + mode * (b->n + 1);
}

/* Returns the first x, at most n + 1, for which more than limit_ms of work is left at tick t. */
static size_t first_left(const struct best *b, size_t t, int64_t limit_ms)
{
    const int64_t over = limit_ms - (b->c->work_ms - (int64_t)t * b->c->tick_ms);
    const int64_t x = over < 0 ? 0 : over / b->unit_ms + 1;

    return x > (int64_t)b->n ? b->n + 1 : (size_t)x;
}

/* Fills b->go with the cost of running through tick t at `price`, for each lost time. Less than a
 * tick of work costs less than a tick. */
static void go(const struct best *b, size_t t, size_t mode, float price)
{
    const float *restrict next = row(b, b->next, mode), whole = price * (float)b->c->tick_ms;
    float *restrict out = row(b, b->go, mode);
    const int64_t left_ms = b->c->work_ms - (int64_t)t * b->c->tick_ms; /* plus the lost time */
    const size_t some = first_left(b, t, 0), more = first_left(b, t, b->c->tick_ms);

    for (size_t x = 0; x < some; x++)
        out[x] = 0;
    for (size_t x = some; x < more; x++)
        out[x] = price * (float)(left_ms + (int64_t)x * b->unit_ms);
    for (size_t x = more; x <= b->n; x++)
        out[x] = whole + next[x];
}

/* out[x] = min(out[x], from[x + shift] + more). A lost time above n is too late. */
static void take(
    const struct best *b, float *restrict out, const float *restrict from, size_t shift, float more)
{
    for (size_t x = 0; x + shift <= b->n; x++)
        out[x] = from[x + shift] + more < out[x] ? from[x + shift] + more : out[x];
}

static void step(struct best *b, size_t t)
{
    const size_t sure = b->c->n_zones, idle = sure + 1;
    float *rest = row(b, b->now, idle);
    float *swap;

    for (size_t x = 0, some = first_left(b, t, 0); x <= b->n; x++)
        rest[x] = x < some ? 0 : FAR;
    take(b, rest, row(b, b->next, idle), b->tick, 0);
    for (size_t z = 0; z <= sure; z++) {
        if (z < sure && !b->c->up[z][t])
            continue;
        go(b, t, z, z < sure ? (float)b->c->price : 1);
        take(b, rest, row(b, b->go, z), b->restart, 0);
    }
    for (size_t z = 0; z <= sure; z++) {
        float *out = row(b, b->now, z);
        for (size_t x = 0; x <= b->n; x++)
            out[x] = rest[x];
        if (z == sure || b->c->up[z][t])
            take(b, out, row(b, b->go, z), 0, 0);
    }
    /* A move: on-demand does the boot's work instead of spot, which is paid too. */
    for (size_t z = 0; z < sure && b->c->boot_ms > 0; z++)
        if (b->c->up[z][t])
            take(b, row(b, b->now, sure), row(b, b->go, z), b->switching, (float)b->c->boot_ms);
    swap = b->now;
    b->now = b->next;
    b->next = swap;
}

double best_cost(const struct best_case *c)
{
    struct best b = {.c = c,
        .unit_ms = divisor(divisor(c->tick_ms, c->restart_ms), c->restart_ms - c->boot_ms),
        .modes = c->n_zones + 2};
    const int64_t lost_ms = c->deadline_ms - c->work_ms;
    size_t ticks = (size_t)((c->deadline_ms + c->tick_ms - 1) / c->tick_ms);
    double cost;

    if (lost_ms < 0)
        return INFINITY;
    if (ticks > c->n_ticks)
        ticks = c->n_ticks;
    b.n = (size_t)(lost_ms / b.unit_ms);
    b.tick = (size_t)(c->tick_ms / b.unit_ms);
    b.restart = (size_t)(c->restart_ms / b.unit_ms);
    b.switching = (size_t)((c->restart_ms - c->boot_ms) / b.unit_ms);
    b.next = mem_array(b.modes * (b.n + 1), sizeof(float));
    b.now = mem_array(b.modes * (b.n + 1), sizeof(float));
    b.go = mem_array(b.modes * (b.n + 1), sizeof(float));
    for (size_t i = 0; i < b.modes * (b.n + 1); i++)
        b.next[i] = FAR;
    /* At the end only jobs that are done count: those that lost no more than the available time. */
    for (size_t m = 0; m < b.modes; m++)
        for (size_t x = 0; x <= b.n; x++)
            if (c->work_ms + (int64_t)x * b.unit_ms <= (int64_t)ticks * c->tick_ms)
                row(&b, b.next, m)[x] = 0;
    for (size_t t = ticks; t-- > 0;)
        step(&b, t);
    cost = row(&b, b.next, b.modes - 1)[0];
    free(b.next);
    free(b.now);
    free(b.go);
    return cost >= (double)FAR / 2 ? INFINITY : cost;
}
