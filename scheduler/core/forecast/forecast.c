/* SPDX-License-Identifier: Apache-2.0
 *
 * Expected start of a pending job: combines simulation runs (run.c) of the current state
 * (snapshot.c), and conditions other than capacity.
 */
#include "scheduler/core/forecast/forecast_parts.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/queue/windows.h"
#include "scheduler/core/supply/offers.h"
#include <inttypes.h>
#include <stdlib.h>

#define SEED 0x62656c6179ULL

/* ---- budgets ---- */

/* Hourly cost on the cheapest machine that may serve it; -1: none. */
static int64_t least_uusd_h(
    const struct forecast_snapshot *p, int32_t demand, const struct pool **ret_pool)
{
    const struct shape *s = p->demands[demand].shape;
    int64_t least = -1;
    for (size_t k = 0; k < p->n_node_classes; k++) {
        const struct node_class *of = &p->node_class[k];
        int64_t price = of->node ? of->node->row.price_uusd_h : of->offer->row.price_uusd_h;
        int64_t uusd_h = s->least * resources_share(shape_takes(s, &of->total), &of->total, price);
        if (!(of->allowed_demands[demand / 64] >> (demand % 64) & 1) ||
            (least >= 0 && uusd_h >= least))
            continue;
        least = uusd_h;
        *ret_pool = of->node ? of->node->pool : of->offer->pool;
    }
    return least;
}

/* Amount that the demand's jobs will reserve in a budget; 0 if they do not match it or none
 * starts. */
static int64_t budget_reserved_for_demand(
    const struct forecast_snapshot *p, int32_t demand, const struct budget *b)
{
    const struct forecast_demand *l = &p->demands[demand];
    const struct pool *pool = NULL;
    int64_t uusd_h = l->shape->in_budgets >> b->index & 1 ? least_uusd_h(p, demand, &pool) : -1,
            each;
    if (uusd_h < 0 || (b->options->pool[0] && !str_eq(b->options->pool, pool->row.name)))
        return 0;
    each = budgets_needs(b, l->shape, uusd_h, pool_input_uusd(pool, l->shape->constraints));
    return each > 0 && l->left > INT64_MAX / 4 / each ? INT64_MAX / 4 : each * l->left;
}

/* A budget that jobs before it will exhaust; NULL: none. */
static const struct budget *budget_exhausted_ahead(const struct forecast_snapshot *p)
{
    for (size_t k = 0; k < budgets_count(p->m); k++) {
        const struct budget *b = budgets_at(p->m, k);
        int64_t left = p->demands[p->mine].shape->in_budgets >> k & 1 ? budgets_left(b) : INT64_MAX,
                sum = 0;
        for (int32_t i = 0; left != INT64_MAX && i < p->n_demands && sum <= left; i++)
            if (i == p->mine ||
                queue_position_order(p->demands[i].position, p->demands[p->mine].position) < 0)
                sum += budget_reserved_for_demand(p, i, b);
        if (sum > left)
            return b;
    }
    return NULL;
}

/* A budget of the job that cannot pay for it on any machine; NULL: none. */
static const struct budget *budget_lacking_everywhere(const struct forecast_snapshot *p)
{
    const struct shape *s = p->demands[p->mine].shape;
    for (size_t k = 0; s->in_budgets && k < p->n_node_classes; k++) {
        const struct node_class *of = &p->node_class[k];
        int64_t price = of->node ? of->node->row.price_uusd_h : of->offer->row.price_uusd_h;
        int64_t uusd_h = s->least * resources_share(shape_takes(s, &of->total), &of->total, price);
        const struct budget *b =
            resources_fit(&s->need, &of->total)
                ? budgets_lacking(s, of->node ? of->node->pool : of->offer->pool, uusd_h)
                : NULL;
        if (b)
            return b;
    }
    return NULL;
}

/* ---- results of runs ---- */

static int by_time(const void *a, const void *b)
{
    int64_t x = ((const struct forecast_result *)a)->at_ms,
            y = ((const struct forecast_result *)b)->at_ms;
    return (x > y) - (x < y);
}

static bool any_machine_allows(const struct forecast_snapshot *p)
{
    for (size_t k = 0; k < p->n_node_classes; k++)
        if (p->node_class[k].allowed_demands[p->mine / 64] >> (p->mine % 64) & 1)
            return true;
    return false;
}

static const char *why_no_machine_allows(const struct shape *s)
{
    if (s->procurement == PROCURE_WAIT)
        return "it waits for better spot while there is time (--finish-by)";
    return s->max_uusd_h > 0 || s->is_capped
               ? "no existing or launchable machine fits within its maximum price"
               : "no existing or launchable machine fits";
}

static struct wall wall_of(const struct forecast_request *a, const struct model *m, int64_t at_ms)
{
    if (at_ms >= NEVER_MS)
        return WALL_NONE;
    struct wall at = {at_ms}, open = a->row ? window_not_before(m, a->row, at) : at;
    return open.ms >= WALL_NEVER.ms ? WALL_NONE : open.ms > at_ms ? open : at;
}

static void run_all(
    struct forecast_snapshot *p, const struct forecast_request *a, struct forecast *ret_forecast)
{
    struct forecast_result results[FORECAST_RUNS];
    uint64_t seed = SEED + (uint64_t)a->at.head;
    p->demands[p->mine].from_ms = a->from_ms;
    results[0] = forecast_run(p, false, seed, FORECAST_WORK);
    int64_t n = FORECAST_WORK / results[0].work;
    n = n < 1 ? 1 : n > FORECAST_RUNS ? FORECAST_RUNS : n - (n % 2 == 0);
    for (int64_t k = 1; k < n; k++)
        results[k] =
            forecast_run(p, false, seed + (uint64_t)k * 0x9e3779b97f4a7c15ULL, FORECAST_WORK);
    qsort(results, (size_t)n, sizeof results[0], by_time);
    p->demands[p->mine].from_ms = a->latest_from_ms;
    struct forecast_result latest = forecast_run(p, true, seed, FORECAST_WORK);
    int64_t latest_ms = latest.at_ms > results[n - 1].at_ms ? latest.at_ms : results[n - 1].at_ms;
    const struct forecast_result *median = &results[n / 2];
    int64_t now_ms = p->now.wall.ms, at_ms = median->at_ms;
    if (at_ms < NEVER_MS)
        at_ms = now_ms + (int64_t)((double)(at_ms - now_ms) / p->faster);
    ret_forecast->median = wall_of(a, p->m, at_ms > a->from_ms ? at_ms : a->from_ms);
    ret_forecast->latest = a->latest_from_ms < NEVER_MS ? wall_of(a, p->m, latest_ms) : WALL_NONE;
    ret_forecast->node = median->node ? median->node->row.id : CORE_ID_NONE;
    ret_forecast->offer = median->offer ? median->offer->row.id : CORE_ID_NONE;
    const struct budget *b = any_machine_allows(p) ? NULL : budget_lacking_everywhere(p);
    if (b)
        text_format(ret_forecast->why, sizeof ret_forecast->why,
            "budget %s has too little left for it", b->row.name);
    else if (!wall_is_set(ret_forecast->median))
        STR_COPY(ret_forecast->why, any_machine_allows(p)
                                        ? "the end of the jobs before it cannot be predicted"
                                        : why_no_machine_allows(a->shape));
    else if (!wall_is_set(ret_forecast->latest))
        STR_COPY(ret_forecast->why, "a job before it has no time limit");
}

bool shape_starts_now(
    const struct model *m, const struct shape *s, struct stamp now, int64_t *ret_node)
{
    int64_t ids[JOB_NODES_MAX];
    enum limit_kind kind;
    if (limits_exceeded(m, s, s->least, &kind) || licences_lack(m, s->constraints))
        return false;
    if (s->nodes > 1) {
        if (nodes_for_gang(m, s, now, ids) == 0)
            return false;
        *ret_node = ids[0];
        return true;
    }
    const struct node *n = nodes_best(m, s, now);
    *ret_node = n ? n->row.id : CORE_ID_NONE;
    return n != NULL;
}

static int64_t input_uusd_at_start(
    const struct model *m, const struct forecast *f, const struct shape *s)
{
    const struct node *n = f->node != CORE_ID_NONE ? model_node(m, f->node) : NULL;
    const struct offer *o = f->offer != CORE_ID_NONE ? model_offer(m, f->offer) : NULL;
    return n || o ? pool_input_uusd(n ? n->pool : o->pool, s->constraints) : 0;
}

void forecast_for(const struct model *m, struct stamp now, const struct forecast_request *a,
    struct forecast *ret_forecast)
{
    *ret_forecast = (struct forecast){.median = WALL_NONE, .latest = WALL_NONE};
    if (a->from_ms <= now.wall.ms && shape_starts_now(m, a->shape, now, &ret_forecast->node)) {
        ret_forecast->is_now = true;
        ret_forecast->median = ret_forecast->latest = now.wall;
    } else {
        struct forecast_snapshot *p = mem_alloc(sizeof *p);
        p->m = m;
        p->now = now;
        forecast_snapshot_take(p, a);
        const struct budget *b = budget_exhausted_ahead(p);
        if (b)
            text_format(ret_forecast->why, sizeof ret_forecast->why,
                "budget %s has too little left for it and the jobs before it", b->row.name);
        else
            run_all(p, a, ret_forecast);
        forecast_snapshot_destroy(p);
    }
    ret_forecast->input_uusd = input_uusd_at_start(m, ret_forecast, a->shape);
}

/* ---- a pending job ---- */

static int64_t mean_end(const struct model *m, const struct job *j, struct stamp now)
{
    const struct attempt *a = job_attempt(j);
    const struct runtimes *r = runtimes_of(m, j);
    int64_t elapsed = now.wall.ms - a->row.assigned_at.ms;
    return a->row.assigned_at.ms +
           runtimes_mean(r, j->row.spec.time_limit_ms, elapsed > 0 ? elapsed : 0);
}

static int64_t latest_end(const struct job *j)
{
    return j->row.spec.time_limit_ms > 0
               ? job_attempt(j)->row.assigned_at.ms + j->row.spec.time_limit_ms
               : NEVER_MS;
}

bool forecast_dependency(const struct model *m, const struct job *on, enum depend_kind kind,
    int64_t delay_ms, struct stamp now, int64_t *ret_at, int64_t *ret_latest)
{
    if (kind == DEPEND_AFTER && wall_is_set(on->row.started_at)) {
        *ret_at = *ret_latest = on->row.started_at.ms + delay_ms;
        return true;
    }
    if (!job_attempt(on) || kind == DEPEND_AFTER || on->array)
        return false;
    *ret_at = mean_end(m, on, now);
    *ret_latest = latest_end(on);
    return true;
}

void forecast_waits_add(struct forecast_waits *w, int64_t on, int64_t at_ms, int64_t latest_ms)
{
    w->unknown = at_ms == NEVER_MS && w->unknown == CORE_ID_NONE ? on : w->unknown;
    w->any_ms = min_i64(w->any_ms, at_ms);
    w->any_latest_ms = min_i64(w->any_latest_ms, latest_ms);
    w->all_ms = max_i64(w->all_ms, at_ms);
    w->all_latest_ms = max_i64(w->all_latest_ms, latest_ms);
}

bool forecast_wait_for_dependencies(
    const struct forecast_waits *w, bool any, struct forecast_request *a)
{
    a->from_ms = max_i64(a->from_ms, any ? w->any_ms : w->all_ms);
    a->latest_from_ms = max_i64(a->latest_from_ms, any ? w->any_latest_ms : w->all_latest_ms);
    return a->from_ms < NEVER_MS;
}

/* When its dependencies will be satisfied; false if unknown. */
static bool wait_for_dependencies(const struct model *m, const struct job *j, struct stamp now,
    struct forecast_request *a, char *why)
{
    struct forecast_waits w = FORECAST_WAITS_NONE;
    if (list_is_empty(&job_side(j)->depends))
        return true;
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.state != DEPEND_WAITS)
            continue;
        const struct job *on = d->row.of_task ? array_task(d->on, d->row.task) : d->on;
        int64_t at = NEVER_MS, latest = NEVER_MS;
        if (on)
            forecast_dependency(m, on, d->row.kind, d->row.delay_ms, now, &at, &latest);
        forecast_waits_add(&w, d->row.on, at, latest);
    }
    if (forecast_wait_for_dependencies(&w, j->row.spec.depends_any, a))
        return true;
    text_format(why, CORE_TEXT_MAX, "it waits for job %s, which has not started",
        job_ref_of(m, w.unknown).s);
    return false;
}

static bool wait_for_task(const struct model *m, const struct job *j, struct stamp now,
    struct forecast_request *a, char *why)
{
    int64_t at = NEVER_MS, latest = NEVER_MS;
    if (!array_is_full(j))
        return true;
    LIST_FOREACH (&j->array->tasks, l) {
        const struct job *t = LIST_ENTRY(l, struct job_side, in_array)->job;
        if (!job_attempt(t))
            continue;
        int64_t mean = mean_end(m, t, now), limit = latest_end(t);
        at = mean < at ? mean : at;
        latest = limit < latest ? limit : latest;
    }
    a->from_ms = max_i64(a->from_ms, at);
    a->latest_from_ms = max_i64(a->latest_from_ms, latest);
    if (at < NEVER_MS)
        return true;
    text_format(
        why, CORE_TEXT_MAX, "the maximum number of its tasks has begun, and none of them runs");
    return false;
}

bool forecast_wait_for_window(const struct model *m, const struct job_row *row, struct stamp now,
    struct forecast_request *a, char *why)
{
    struct wall begin = window_not_before(m, row, now.wall);
    if (row->spec.window[0] && begin.ms >= WALL_NEVER.ms) {
        text_format(why, CORE_TEXT_MAX, "its window never opens");
        return false;
    }
    a->from_ms = max_i64(a->from_ms, begin.ms);
    a->latest_from_ms = max_i64(a->latest_from_ms, begin.ms);
    return true;
}

/* When only missing capacity keeps it from starting. */
static bool wait_for(const struct model *m, const struct job *j, struct stamp now,
    struct forecast_request *a, char *why)
{
    a->from_ms = a->latest_from_ms = now.wall.ms;
    if (j->row.hold != HOLD_NONE) {
        text_format(why, CORE_TEXT_MAX, "it is held");
        return false;
    }
    if (j->is_waiting && !wait_for_dependencies(m, j, now, a, why))
        return false;
    return wait_for_task(m, j, now, a, why) && forecast_wait_for_window(m, &j->row, now, a, why);
}

bool core_forecast(
    const struct model *m, struct stamp now, int64_t job, struct forecast *ret_forecast)
{
    const struct job *j = model_job(m, job);
    if (!j || job_attempt(j) || j->row.state != JOB_PENDING)
        return false;
    struct forecast_request a = {.shape = j->shape, .row = &j->row, .history = runtimes_of(m, j)};
    a.at =
        tree_has(&j->in_shape) ? job_position(m, j) : (struct queue_position){INT64_MAX, INT64_MAX};
    *ret_forecast = (struct forecast){.median = WALL_NONE, .latest = WALL_NONE};
    if (wait_for(m, j, now, &a, ret_forecast->why))
        forecast_for(m, now, &a, ret_forecast);
    return true;
}
