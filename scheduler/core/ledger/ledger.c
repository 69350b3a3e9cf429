/* SPDX-License-Identifier: Apache-2.0
 *
 * Use and cost of every interval of a node's time. Rows are written when the interval is over and
 * never change.
 *
 * Invariants.
 *  1. Every millisecond of a node is in the ledger exactly once: as boot, as idle, or as part of an
 *     attempt. `node_ms` of all rows of an instance adds up to its life, `uusd` to
 *     core_instance_uusd(ended), both exactly. For a reserved node the same holds from its join, at
 *     the price of its pool.
 *  2. On a shared node each attempt has the share of its dominant resource: an attempt that uses
 *     all the memory pays for the whole node. Shares are rounded down, and attempts with different
 *     dominant resources never have more than the total together (the last to end has less). The
 *     rest, including rounding, is idle.
 *  3. The rows of an attempt add up to its time (assigned to ended), its share of the node's time,
 *     and its cost. The cost of each part is by the prices in force in that part, computed from the
 *     node's cost at its bounds. Shares of a sum are cut where the sum of the earlier ones ends, so
 *     that rounding loses nothing.
 *  4. Only useful time, and the first attempt's start, count for an undisturbed run on-demand; all
 *     other parts count 0 there.
 *  5. Traffic of an attempt with a store elsewhere, and the read of its job's input at the start,
 *     are separate rows, egress, without time: one per reported transfer, at the price of that
 *     time. They are costs of the attempt, not of its instance.
 *  6. A provider may report late, after attempts were charged, that a machine had ended or cost
 *     less. The final idle row corrects this and may be negative.
 *  7. Work in useful rows that must be repeated, because its user discarded it or a later attempt
 *     could not be restored from its checkpoint, counts as lost in the rows of the attempts that
 *     repeat it.
 *
 * Parts of an attempt, in order: restore, from placement to the program's start, called start in
 * the first attempt; gang-wait, until the last rank has started; then useful, save (pause of the
 * program) and lost (unsaved work that another attempt must repeat). The time of a node that was
 * empty while a gang waited for its other nodes counts as the gang's wait.
 */
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/supply/offers.h"

static int64_t span_ms(struct wall from, struct wall to)
{
    if (!wall_is_set(from) || !wall_is_set(to) || to.ms < from.ms)
        return 0; /* the wall clock may be set back */
    return to.ms - from.ms;
}

/* Clamps to 0 .. max. */
static int64_t clamp_to(int64_t value, int64_t max)
{
    int64_t most = max > 0 ? max : 0;
    return value < 0 ? 0 : value > most ? most : value;
}

static struct wall later_of(struct wall a, struct wall b)
{
    return !wall_is_set(a) || (wall_is_set(b) && b.ms > a.ms) ? b : a;
}

/* value * part / whole without intermediate overflow; value if whole is 0. */
static int64_t share_of(int64_t value, int64_t part, int64_t whole)
{
    return whole > 0 && part < whole ? (int64_t)((__extension__(__int128) value) * part / whole)
                                     : value;
}

/* ---- cost of a node so far, and the part of it in the ledger ---- */

/* Where a node's sums are stored: in the row of its instance, which outlives the node, or in its
 * own row. */
struct books {
    int64_t *attempts_uusd, *attempts_ms, *idle_uusd, *idle_ms;
    struct wall *used_until, *settled_at;
};

static struct books books_of(struct node *n)
{
    struct instance_row *i = n->instance ? &n->instance->row : NULL;
    struct node_row *r = &n->row;
    return i ? (struct books){&i->attempts_uusd, &i->attempts_ms, &i->idle_uusd, &i->idle_ms,
                   &i->used_until, &i->settled_at}
             : (struct books){&r->attempts_uusd, &r->attempts_ms, &r->idle_uusd, &r->idle_ms,
                   &r->used_until, &r->settled_at};
}

static void books_changed(struct model *m, struct node *n)
{
    if (n->instance)
        touch_instance(m, n->instance);
    else
        touch_node(m, n);
}

/* Cost of the node up to a time: since its launch, or since its join if it is reserved. */
static int64_t node_uusd(const struct node *n, struct wall at)
{
    const struct node_row *r = &n->row;
    if (n->instance)
        return core_instance_uusd(&n->instance->row, at);
    return r->accrued_uusd + core_cost_uusd(span_ms(r->priced_at, at), r->price_uusd_h);
}

static struct wall joined_at(const struct node *n)
{
    return n->instance ? n->instance->row.joined_at : n->row.joined_at;
}

/* Time and cost since its join that are in no row yet. May be negative (invariant 6). */
static void unbooked(struct node *n, struct wall at, int64_t *ret_uusd, int64_t *ret_ms)
{
    const struct books b = books_of(n);
    *ret_uusd = node_uusd(n, at) - (n->instance ? n->instance->row.boot_uusd : 0) -
                *b.attempts_uusd - *b.idle_uusd;
    *ret_ms = span_ms(joined_at(n), at) - *b.attempts_ms - *b.idle_ms;
}

/* ---- idle ---- */

/* Use by running attempts, which have no rows yet. */
static void sum_in_use(const struct node *n, struct wall at, int64_t *ret_uusd, int64_t *ret_ms)
{
    *ret_uusd = *ret_ms = 0;
    LIST_FOREACH (&n->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        *ret_uusd += resources_share(
            &a->allocated, &n->row.total, clamp_to(node_uusd(n, at) - a->row.base_uusd, INT64_MAX));
        *ret_ms += resources_share(&a->allocated, &n->row.total, span_ms(a->row.assigned_at, at));
    }
}

void ledger_idle(struct model *m, struct node *n, struct wall at)
{
    const struct books b = books_of(n);
    int64_t uusd, ms, used_uusd, used_ms;
    /* regardless of the wall clock: the last row makes the sums exact */
    bool is_over = n->row.state == NODE_GONE;
    unbooked(n, at, &uusd, &ms);
    sum_in_use(n, at, &used_uusd, &used_ms);
    struct ledger_row row = {.node = n->row.id,
        .instance = n->row.instance,
        .kind = LEDGER_IDLE,
        .from = wall_is_set(*b.settled_at) ? *b.settled_at : joined_at(n),
        .to = at,
        .ms = is_over ? ms : clamp_to(ms - used_ms, ms),
        .uusd = is_over ? uusd : clamp_to(uusd - used_uusd, uusd)};
    row.node_ms = row.ms;
    ledger_add(m, &row);
    *b.idle_uusd += row.uusd;
    *b.idle_ms += row.ms;
    *b.settled_at = at;
    *b.used_until = later_of(*b.used_until, at);
    books_changed(m, n);
}

void ledger_seen(struct model *m, struct node *n, struct wall now)
{
    const struct books b = books_of(n);
    struct wall since = later_of(joined_at(n), *b.settled_at);
    if (wall_is_set(since) && now.ms / DAY_MS > since.ms / DAY_MS)
        ledger_idle(m, n, now);
}

/* ---- attempts ---- */

/* A rank without a script has no state of its own: the first rank's save covers it. */
bool attempt_has_saved(const struct attempt *a)
{
    return (a->row.sequence > 0 || attempt_has_no_script(a)) &&
           a->job->row.last_good.attempt == a->row.attempt;
}

/* Time since the last saved state, or since `from` if there is none. */
static int64_t unsaved_ms(const struct attempt *a, struct wall from)
{
    const struct job_row *j = &a->job->row;
    if (a->row.end == END_SUCCEEDED)
        return 0;
    if (!attempt_has_saved(a))
        return span_ms(from, a->row.ended_at);
    if (a->row.exit_code == JOB_EXIT_CHECKPOINTED && !a->save_failed)
        return 0; /* it saved and did no further work */
    return span_ms(j->last_good_at, a->row.ended_at);
}

/* Its share of the node's cost and time since its placement. */
static void attempt_share(
    const struct attempt *a, struct wall end, int64_t *ret_uusd, int64_t *ret_ms)
{
    const struct resources *allocated = &a->allocated, *total = &a->node->row.total;
    int64_t uusd, ms;
    unbooked(a->node, end, &uusd, &ms);
    *ret_uusd = clamp_to(resources_share(allocated, total,
                             clamp_to(node_uusd(a->node, end) - a->row.base_uusd, INT64_MAX)),
        uusd);
    *ret_ms = clamp_to(resources_share(allocated, total, span_ms(a->row.assigned_at, end)), ms);
}

/* The start of the first attempt is part of an undisturbed run too. */
static bool is_first_attempt(const struct attempt *a)
{
    return a->row.attempt == 1;
}

void core_cost_so_far(
    const struct attempt *a, struct wall now, int64_t *ret_uusd, int64_t *ret_on_demand_uusd)
{
    int64_t ms = span_ms(a->row.assigned_at, now), unused;
    int64_t useful =
        clamp_to(ms - (is_first_attempt(a) ? 0 : a->row.restore_ms) - a->row.save_ms, ms);
    attempt_share(a, now, ret_uusd, &unused);
    *ret_uusd += a->row.egress_uusd;
    *ret_on_demand_uusd = resources_share(
        &a->allocated, &a->node->row.total, core_cost_uusd(useful, a->row.on_demand_uusd_h));
}

void ledger_placed(struct model *m, struct attempt *a, struct node *n, struct stamp now)
{
    struct job *j = a->job;
    const struct books b = books_of(n);
    struct wall queued = {now.wall.ms - (now.mono.ms - j->row.queued_mono.ms)};
    struct wall from =
        later_of(later_of(joined_at(n), *b.used_until), later_of(j->row.eligible_at, queued));
    int64_t uusd, ms;
    a->row.base_uusd = node_uusd(n, now.wall);
    if (j->row.ranks < 2 || !list_is_empty(&n->attempts))
        return;
    unbooked(n, now.wall, &uusd, &ms);
    struct ledger_row row = {.job = j->row.id,
        .attempt = a->row.attempt,
        .node = n->row.id,
        .instance = n->row.instance,
        .kind = LEDGER_GANG_WAIT,
        .from = from,
        .to = now.wall,
        .ms = clamp_to(span_ms(from, now.wall), ms)};
    row.node_ms = row.ms;
    row.uusd = clamp_to(core_cost_uusd(row.ms, n->row.price_uusd_h), uusd);
    row.from.ms = row.to.ms - row.ms;
    ledger_add(m, &row);
    *b.attempts_uusd += row.uusd;
    *b.attempts_ms += row.ms;
    *b.used_until = later_of(*b.used_until, now.wall);
    j->row.cost_uusd += row.uusd;
    books_changed(m, n);
}

static void add_egress(struct model *m, struct attempt *a, int64_t uusd)
{
    if (uusd == 0)
        return;
    a->row.egress_uusd += uusd;
    budgets_repriced(m, a);
}

void ledger_stored(struct model *m, struct attempt *a, int64_t bytes)
{
    add_egress(m, a, core_bytes_uusd(bytes, a->node->pool->row.upload_uusd_gib));
}

int64_t ledger_input_uusd(const struct attempt *a)
{
    int64_t all = pool_input_uusd(a->node->pool, a->job->shape->constraints),
            ranks = a->job->row.ranks > 1 ? a->job->row.ranks : 1;
    return share_of(all, a->row.rank + 1, ranks) - share_of(all, a->row.rank, ranks);
}

void ledger_started(struct model *m, struct attempt *a, struct stamp now)
{
    const struct job *j = a->job;
    a->row.started_uusd = node_uusd(a->node, now.wall);
    add_egress(m, a,
        core_bytes_uusd(
            a->row.restored_bytes - a->row.nearby_bytes, a->node->pool->row.egress_uusd_gib) +
            ledger_input_uusd(a));
    if (j->row.ranks < 2 || j->row.spec.script_on == SCRIPT_ON_FIRST)
        return;
    LIST_FOREACH (&j->ranks, l)
        if (!wall_is_set(LIST_ENTRY(l, struct attempt, in_job)->row.started_at))
            return;
    LIST_FOREACH (&j->ranks, l) {
        struct attempt *rank = LIST_ENTRY(l, struct attempt, in_job);
        rank->row.gathered_at = now.wall;
        rank->row.gathered_uusd = node_uusd(rank->node, now.wall);
        touch_attempt(m, rank);
    }
}

void ledger_saved(struct attempt *a, int64_t pause_ms, struct wall saved_at)
{
    a->row.save_ms += pause_ms;
    a->row.save_uusd += core_cost_uusd(pause_ms, a->node->row.price_uusd_h);
    a->row.kept_at = saved_at;
    a->row.kept_uusd = node_uusd(a->node, saved_at);
}

enum { PART_START, PART_WAIT, PART_SAVE, PART_LOST, PART_USEFUL, PARTS };

/* An interval of a node, and the cost of the whole node in it. */
struct part {
    enum ledger_kind kind;
    int64_t ms, uusd;
};

/* Time after the machine's end costs nothing. */
static struct wall paid_until(const struct attempt *a)
{
    struct wall end = a->row.ended_at;
    const struct instance *i = a->node->instance;
    return i && wall_is_set(i->row.ended_at) && i->row.ended_at.ms < end.ms ? i->row.ended_at : end;
}

/* From its start to that of the last rank; its whole time if a rank never started. */
static int64_t gang_wait_ms(const struct attempt *a)
{
    const struct job_row *j = &a->job->row;
    if (j->ranks < 2 || j->spec.script_on == SCRIPT_ON_FIRST)
        return 0;
    return span_ms(
        a->row.started_at, wall_is_set(a->row.gathered_at) ? a->row.gathered_at : a->row.ended_at);
}

static void divide(const struct attempt *a, struct part parts[PARTS])
{
    const struct attempt_row *r = &a->row;
    int64_t end_uusd = node_uusd(a->node, paid_until(a));
    int64_t ms = span_ms(r->assigned_at, r->ended_at),
            uusd = clamp_to(end_uusd - r->base_uusd, INT64_MAX);
    bool started = wall_is_set(r->started_at);
    int64_t restore_ms = span_ms(r->assigned_at, r->started_at),
            restore_uusd = started ? r->started_uusd - r->base_uusd : 0;
    if (r->restore_ms > restore_ms) { /* as measured by its agent */
        restore_ms = r->restore_ms;
        restore_uusd = core_cost_uusd(restore_ms, r->price_uusd_h);
    }
    int64_t gathered_uusd = wall_is_set(r->gathered_at) ? r->gathered_uusd : end_uusd;
    const struct part all[PARTS] = {
        [PART_START] = {is_first_attempt(a) ? LEDGER_START : LEDGER_RESTORE, restore_ms,
            restore_uusd},
        [PART_WAIT] = {LEDGER_GANG_WAIT, gang_wait_ms(a), gathered_uusd - r->started_uusd},
        [PART_SAVE] = {LEDGER_SAVE, r->save_ms, r->save_uusd},
        [PART_LOST] = {LEDGER_LOST, unsaved_ms(a, r->assigned_at),
            !attempt_has_saved(a)     ? uusd
            : wall_is_set(r->kept_at) ? end_uusd - r->kept_uusd
                                      : -1},
        [PART_USEFUL] = {LEDGER_USEFUL, INT64_MAX, INT64_MAX}};
    for (int k = 0; k < PARTS; k++) {
        int64_t part_ms = clamp_to(all[k].ms, ms);
        /* all of the rest; or in proportion to the time, where the cost is unknown */
        int64_t part_uusd = part_ms == ms     ? uusd
                            : part_ms == 0    ? 0
                            : all[k].uusd < 0 ? share_of(uusd, part_ms, ms)
                                              : clamp_to(all[k].uusd, uusd);
        parts[k] = (struct part){all[k].kind, part_ms, part_uusd};
        ms -= part_ms;
        uusd -= part_uusd;
    }
}

/* Moves from useful to lost the work at the attempt's begin that repeats work which counts as
 * useful in the rows of an earlier attempt. */
static void move_repeated_work(const struct attempt *a, struct part parts[PARTS])
{
    struct part *useful = &parts[PART_USEFUL], *lost = &parts[PART_LOST];
    int64_t ms = clamp_to(a->row.behind_ms, useful->ms),
            uusd = share_of(useful->uusd, ms, useful->ms);
    if (ms == 0)
        return;
    useful->ms -= ms;
    useful->uusd -= uusd;
    lost->ms += ms;
    lost->uusd += uusd;
}

static void write_parts(struct model *m, struct attempt *a, const struct part parts[PARTS],
    int64_t cost, int64_t node_ms)
{
    const struct resources *allocated = &a->allocated, *total = &a->node->row.total;
    int64_t ms = span_ms(a->row.assigned_at, a->row.ended_at), uusd = 0, ms_so_far = 0,
            uusd_so_far = 0, cost_done = 0, node_done = 0;
    for (int k = 0; k < PARTS; k++)
        uusd += parts[k].uusd;
    for (int k = 0; k < PARTS; k++) {
        ms_so_far += parts[k].ms;
        uusd_so_far += parts[k].uusd;
        bool is_last = k == PARTS - 1;
        int64_t cost_upto = is_last    ? cost
                            : uusd > 0 ? share_of(cost, uusd_so_far, uusd)
                                       : share_of(cost, ms_so_far, ms);
        int64_t node_upto = is_last ? node_ms : share_of(node_ms, ms_so_far, ms);
        struct ledger_row r = {.job = a->row.job,
            .attempt = a->row.attempt,
            .node = a->row.node,
            .instance = a->node->row.instance,
            .kind = parts[k].kind,
            .from = a->row.assigned_at,
            .to = a->row.ended_at,
            .ms = parts[k].ms,
            .node_ms = node_upto - node_done,
            .uusd = cost_upto - cost_done};
        if (r.kind == LEDGER_USEFUL || r.kind == LEDGER_START)
            r.on_demand_uusd =
                resources_share(allocated, total, core_cost_uusd(r.ms, a->row.on_demand_uusd_h));
        cost_done = cost_upto;
        node_done = node_upto;
        a->job->row.on_demand_uusd += r.on_demand_uusd;
        ledger_add(m, &r);
    }
}

static void write_egress(struct model *m, const struct attempt *a)
{
    ledger_add(m, &(struct ledger_row){.job = a->row.job,
                      .attempt = a->row.attempt,
                      .node = a->row.node,
                      .instance = a->node->row.instance,
                      .kind = LEDGER_EGRESS,
                      .from = a->row.assigned_at,
                      .to = a->row.ended_at,
                      .uusd = a->row.egress_uusd});
}

int64_t ledger_attempt(struct model *m, struct attempt *a)
{
    const struct books b = books_of(a->node);
    struct part parts[PARTS];
    int64_t cost, node_ms;
    attempt_share(a, paid_until(a), &cost, &node_ms);
    divide(a, parts);
    move_repeated_work(a, parts);
    write_parts(m, a, parts, cost, node_ms);
    write_egress(m, a);
    a->job->row.cost_uusd += cost + a->row.egress_uusd;
    *b.attempts_uusd += cost;
    *b.attempts_ms += node_ms;
    *b.used_until = later_of(*b.used_until, a->row.ended_at);
    books_changed(m, a->node);
    return wall_is_set(a->row.started_at) ? unsaved_ms(a, a->row.started_at) : 0;
}

/* ---- instances ---- */

void ledger_instance(struct model *m, const struct instance *i)
{
    const struct instance_row *r = &i->row;
    if (!wall_is_set(r->launched_at))
        return;
    bool joined = wall_is_set(r->joined_at);
    struct wall booted = joined && r->joined_at.ms < r->ended_at.ms ? r->joined_at : r->ended_at;
    int64_t all_ms = span_ms(r->launched_at, r->ended_at), all = core_instance_uusd(r, r->ended_at);
    struct ledger_row row = {.node = r->node,
        .instance = r->id,
        .kind = LEDGER_BOOT,
        .from = r->launched_at,
        .to = booted,
        .ms = span_ms(r->launched_at, booted),
        .uusd = joined ? clamp_to(r->boot_uusd, all) : all};
    row.node_ms = row.ms;
    ledger_add(m, &row);
    row.kind = LEDGER_IDLE;
    row.from = later_of(booted, r->settled_at);
    row.to = later_of(row.from, r->ended_at);
    row.ms = row.node_ms = all_ms - row.ms - r->attempts_ms - r->idle_ms;
    row.uusd = all - row.uusd - r->attempts_uusd - r->idle_uusd;
    ledger_add(m, &row);
}

/* Adds a correction of its cost to all recorded costs. */
static void correct_bases(struct attempt *a, int64_t more_uusd)
{
    struct attempt_row *r = &a->row;
    r->base_uusd += more_uusd;
    r->started_uusd += wall_is_set(r->started_at) ? more_uusd : 0;
    r->gathered_uusd += wall_is_set(r->gathered_at) ? more_uusd : 0;
    r->kept_uusd += wall_is_set(r->kept_at) ? more_uusd : 0;
}

/* Recomputes the cost at its join, and the base of the attempts that run there. */
static void recompute_boot_cost(struct model *m, struct instance *i)
{
    struct instance_row *r = &i->row;
    int64_t before = r->boot_uusd;
    r->boot_uusd = wall_is_set(r->joined_at) ? core_instance_uusd(r, r->joined_at) : 0;
    if (!i->node)
        return;
    LIST_FOREACH (&i->node->attempts, l) {
        struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        correct_bases(a, r->boot_uusd - before);
        touch_attempt(m, a);
    }
}

/* The instance existed before it was first seen. Its price has changed at most once since, or once
 * before. */
static void correct_launch(struct model *m, struct instance *i, struct wall at)
{
    struct instance_row *r = &i->row;
    struct wall changed_at = r->before_at.ms < r->launched_at.ms ? r->before_at : r->priced_at;
    bool has_changed = wall_is_set(r->before_at) && at.ms < changed_at.ms;
    r->accrued_uusd = has_changed ? core_cost_uusd(changed_at.ms - at.ms, r->before_uusd_h) : 0;
    r->before_at = has_changed ? at : WALL_NONE;
    r->priced_at = has_changed ? changed_at : at;
    r->launched_at = at;
    recompute_boot_cost(m, i);
}

void ledger_launched(struct model *m, struct instance *i, struct wall reported, struct stamp now)
{
    struct instance_row *r = &i->row;
    bool credible = reported.ms > 0 && reported.ms > r->intended_at.ms - CLOCKS_DIFFER_MS &&
                    reported.ms < now.wall.ms + CLOCKS_DIFFER_MS;
    if (!wall_is_set(r->launched_at))
        r->launched_at = r->priced_at = credible ? reported : now.wall;
    else if (credible && (!wall_is_set(r->before_at) || r->before_at.ms <= r->launched_at.ms))
        correct_launch(m, i, reported);
    else
        return;
    r->launched_at_from_provider |= credible;
    touch_instance(m, i);
}

/* A price in force since before the machine was first seen: if it turns out that the machine
 * existed before, the previous price applies to that time. */
static void note_price_before(struct instance_row *r, struct wall at)
{
    if (r->launched_at_from_provider || wall_is_set(r->before_at) ||
        r->priced_at.ms != r->launched_at.ms)
        return;
    r->before_at = at;
    r->before_uusd = 0;
    r->before_uusd_h = r->price_uusd_h;
}

static void set_price(struct model *m, struct instance *i, int64_t uusd_h)
{
    instance_count(m, i, -1);
    i->row.price_uusd_h = uusd_h;
    instance_count(m, i, 1);
    touch_instance(m, i);
    if (!i->node)
        return;
    i->node->row.price_uusd_h = uusd_h;
    touch_node(m, i->node);
    limits_repriced(m, i->node);
}

void ledger_reprice(
    struct model *m, struct instance *i, int64_t uusd_h, struct wall since, struct stamp now)
{
    struct instance_row *r = &i->row;
    if (r->price_uusd_h == uusd_h)
        return;
    if (wall_is_set(r->priced_at)) {
        struct wall at =
            since.ms > 0 && since.ms < now.wall.ms + CLOCKS_DIFFER_MS ? since : now.wall;
        if (at.ms < r->priced_at.ms) {
            note_price_before(r, at);
            at = r->priced_at;
        }
        int64_t uusd = core_instance_uusd(r, at);
        if (at.ms > r->priced_at.ms) {
            r->before_at = r->priced_at;
            r->before_uusd = r->accrued_uusd;
            r->before_uusd_h = r->price_uusd_h;
        }
        r->accrued_uusd = uusd;
        r->priced_at = at;
    }
    set_price(m, i, uusd_h);
}

void ledger_moved(struct model *m, struct instance *i, int64_t uusd_h)
{
    struct instance_row *r = &i->row;
    set_price(m, i, uusd_h);
    if (!wall_is_set(r->launched_at))
        return;
    r->accrued_uusd = r->before_uusd = r->before_uusd_h = 0;
    r->before_at = WALL_NONE;
    r->priced_at = r->launched_at;
    recompute_boot_cost(m, i);
}

/* ---- reserved nodes ---- */

void ledger_joined(struct node *n, struct wall now)
{
    n->row.priced_at = now;
}

void ledger_reprice_reserved(struct model *m, struct node *n, int64_t uusd_h, struct wall now)
{
    n->row.accrued_uusd = node_uusd(n, now);
    n->row.priced_at = now;
    n->row.price_uusd_h = n->row.on_demand_uusd_h = uusd_h;
    touch_node(m, n);
    limits_repriced(m, n);
}
