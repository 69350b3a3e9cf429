/* SPDX-License-Identifier: Apache-2.0
 *
 * What every stretch of a node's time was, and what it cost. Written when a stretch is over, never changed.
 *
 * Invariants.
 *  1. The rows of an attempt add up to its time on the node (assigned to ended) and to its share of what the
 * node cost in it, at the prices in force. The share is by its dominant resource: who takes all the memory pays
 * for the whole node.
 *  2. The rows of an instance (its attempts', boot, idle) add up to core_instance_uusd(ended) exactly: idle takes
 * what rounding left, and attempts whose dominant resources differ are never charged more together than the node
 * has cost since it joined (the last to end pays less).
 *  3. Only useful time would have been paid in an undisturbed run on-demand; the rest counts 0 there.
 */
#include "scheduler/core/impl.h"

static int64_t span_ms(struct wall from, struct wall to)
{
    if (!wall_is_set(from) || !wall_is_set(to) || to.ms < from.ms)
        return 0; /* the wall clock may be set back */
    return to.ms - from.ms;
}

/* At least 0, at most max. */
static int64_t within(int64_t value, int64_t max)
{
    int64_t most = max > 0 ? max : 0;
    return value < 0 ? 0 : value > most ? most : value;
}

/* A rank without a script has nothing of its own to save: what the first has saved is what it did. */
bool attempt_has_saved(const struct attempt *a)
{
    return (a->row.sequence > 0 || attempt_holds(a)) && a->job->row.last_good.attempt == a->row.attempt;
}

bool attempt_holds(const struct attempt *a)
{
    return a->row.rank > 0 && a->job->row.script_on == SCRIPT_ON_FIRST;
}

/* What happened after the last state that was kept, from `from` on when nothing was. */
static int64_t unsaved_ms(const struct attempt *a, struct wall from)
{
    const struct job_row *j = &a->job->row;
    if (a->row.end == END_SUCCEEDED)
        return 0;
    if (!attempt_has_saved(a))
        return span_ms(from, a->row.ended_at);
    if (a->row.exit_code == JOB_EXIT_CHECKPOINTED && !a->save_failed)
        return 0; /* it saved and did nothing more */
    return span_ms(j->last_good_at, a->row.ended_at);
}

/* What the attempt costs of the node until `end`, so that all of the node's attempts together never cost more
 * than it does. */
static int64_t attempt_cost(const struct attempt *a, int64_t ms, struct wall end)
{
    const struct instance *i = a->node->instance;
    const struct resources *held = &a->held, *total = &a->node->row.total;
    if (!i)
        return resources_share(held, total, core_cost_uusd(ms, a->row.price_uusd_h));
    int64_t so_far = core_instance_uusd(&i->row, end);
    int64_t cost = resources_share(held, total, within(so_far - a->row.base_uusd, so_far));
    return within(cost, so_far - i->row.boot_uusd - i->row.attempts_uusd);
}

void core_cost_so_far(
    const struct attempt *a, struct wall now, int64_t *ret_uusd, int64_t *ret_on_demand_uusd)
{
    int64_t ms = span_ms(a->row.assigned_at, now);
    int64_t useful = within(ms - a->row.restore_ms - a->row.save_ms, ms);
    *ret_uusd = attempt_cost(a, ms, now);
    *ret_on_demand_uusd = resources_share(
        &a->held, &a->node->row.total, core_cost_uusd(useful, a->row.on_demand_uusd_h));
}

int64_t ledger_attempt(struct model *m, struct attempt *a)
{
    struct job_row *j = &a->job->row;
    struct instance *i = a->node->instance;
    const struct resources *held = &a->held, *total = &a->node->row.total;
    int64_t ms = span_ms(a->row.assigned_at, a->row.ended_at), cost = attempt_cost(a, ms, a->row.ended_at);
    int64_t restore = within(a->row.restore_ms, ms), save = within(a->row.save_ms, ms - restore);
    int64_t lost = within(unsaved_ms(a, a->row.assigned_at), ms - restore - save);
    const struct {
        enum ledger_kind kind;
        int64_t ms;
    } parts[] = {{LEDGER_RESTORE, restore}, {LEDGER_SAVE, save}, {LEDGER_LOST, lost},
        {LEDGER_USEFUL, ms - restore - save - lost}};
    int64_t ms_so_far = 0, cost_so_far = 0;
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        ms_so_far += parts[k].ms;
        int64_t upto = ms > 0 ? (int64_t)((__extension__(__int128) cost) * ms_so_far / ms) : 0;
        struct ledger_row r = {.job = a->row.job,
            .attempt = a->row.attempt,
            .node = a->row.node,
            .instance = a->node->row.instance,
            .kind = parts[k].kind,
            .from = a->row.assigned_at,
            .to = a->row.ended_at,
            .ms = parts[k].ms,
            .uusd = upto - cost_so_far};
        if (r.kind == LEDGER_USEFUL)
            r.on_demand_uusd = resources_share(held, total, core_cost_uusd(r.ms, a->row.on_demand_uusd_h));
        cost_so_far = upto;
        j->on_demand_uusd += r.on_demand_uusd;
        ledger_add(m, &r);
    }
    j->cost_uusd += cost;
    if (i) {
        i->row.attempts_uusd += cost;
        i->row.attempts_ms += resources_share(held, total, ms);
        if (!wall_is_set(i->row.used_until) || a->row.ended_at.ms > i->row.used_until.ms)
            i->row.used_until = a->row.ended_at;
        touch_instance(m, i);
    }
    return wall_is_set(a->row.started_at) ? unsaved_ms(a, a->row.started_at) : 0;
}

void ledger_instance(struct model *m, const struct instance *i)
{
    const struct instance_row *r = &i->row;
    if (!wall_is_set(r->launched_at))
        return;
    struct wall booted = wall_is_set(r->joined_at) ? r->joined_at : r->ended_at;
    int64_t all_ms = span_ms(r->launched_at, r->ended_at),
            boot_ms = within(span_ms(r->launched_at, booted), all_ms);
    int64_t all = core_instance_uusd(r, r->ended_at);
    int64_t boot = wall_is_set(r->joined_at) ? within(r->boot_uusd, all - r->attempts_uusd) : all;
    struct ledger_row row = {.node = r->node,
        .instance = r->id,
        .kind = LEDGER_BOOT,
        .from = r->launched_at,
        .to = booted,
        .ms = boot_ms,
        .uusd = boot};
    ledger_add(m, &row);
    row.kind = LEDGER_IDLE;
    row.from = booted;
    row.to = r->ended_at;
    row.ms = within(all_ms - boot_ms - r->attempts_ms, all_ms);
    row.uusd = all - boot - r->attempts_uusd;
    ledger_add(m, &row);
}

void ledger_reprice(struct model *m, struct instance *i, int64_t uusd_h, struct stamp now)
{
    struct instance_row *r = &i->row;
    if (r->price_uusd_h == uusd_h)
        return;
    if (wall_is_set(r->priced_at)) {
        r->accrued_uusd = core_instance_uusd(r, now.wall);
        r->priced_at = now.wall;
    }
    instance_count(m, i, -1);
    r->price_uusd_h = uusd_h;
    instance_count(m, i, 1);
    touch_instance(m, i);
    if (!i->node)
        return;
    i->node->row.price_uusd_h = uusd_h;
    touch_node(m, i->node);
    limits_repriced(m, i->node);
}
