/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/deadline/procurement_baseline.h"

#include "base/minmax.h"

#define HOUR_MS 3600000.0

struct baseline_row procurement_baseline_now(
    const struct baseline_row *r, int64_t whole_ms, int64_t done_ms, struct wall now)
{
    struct baseline_row to = *r;
    if (r->at_ms == 0)
        return (struct baseline_row){.at_ms = now.ms, .done_ms = done_ms};
    int64_t passed = now.ms > r->at_ms ? now.ms - r->at_ms : 0,
            left = whole_ms > r->done_ms ? whole_ms - r->done_ms : 0;
    to.at_ms = now.ms;
    to.job_paid_uusd += (int64_t)((double)r->job_price_uusd_h * (double)passed / HOUR_MS);
    if (r->on == CORE_ID_NONE)
        return to;
    int64_t booted = min_i64(r->starting_ms, passed), ran = min_i64(passed - booted, left);
    to.starting_ms -= booted;
    to.done_ms += ran;
    to.paid_uusd += (int64_t)((double)r->price_uusd_h * (double)(booted + ran) / HOUR_MS);
    return to;
}

static size_t index_of(int64_t id, const struct offer *const *of, size_t n)
{
    for (size_t i = 0; id != CORE_ID_NONE && i < n; i++)
        if (of[i]->row.id == id)
            return i;
    return DEADLINE_NOWHERE;
}

struct baseline procurement_baseline_among(const struct baseline_row *r, enum deadline_rule rule,
    const struct offer *const *of, size_t n, double scale)
{
    return (struct baseline){.rule = rule,
        .done_ms = (int64_t)((double)r->done_ms * scale),
        .starting_ms = (int64_t)((double)r->starting_ms * scale),
        .on = index_of(r->on, of, n),
        .last = index_of(r->last, of, n),
        .paid_uusd = (double)r->paid_uusd * scale};
}

void procurement_baseline_go(struct baseline_row *r, const struct offer *to, int64_t restart_ms)
{
    if (!to || to->row.id != r->on)
        r->starting_ms = to ? restart_ms : 0;
    r->on = to ? to->row.id : CORE_ID_NONE;
    r->price_uusd_h = to ? to->row.price_uusd_h : 0;
    if (to && to->row.market == MARKET_SPOT)
        r->last = r->on;
}
