/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds part of the jobs is paid from an hourly budget that parks them. Spent cost is
 * recomputed here from committed data; so are the notified thresholds.
 *
 * belayd may be down when it should park jobs, and stopping takes a while: an hour may exceed the
 * cap by that. So each hour, in belayd's periods, and the committed total over all hours, are
 * compared with the caps plus a quarter.
 */
#include "simtest/world.h"

#include "base/str.h"
#include <string.h>

/* the budget of an hour; the two longest jobs need less than two days of it */
#define CAP_UUSD 40000
#define JOBS_MAX 2
/* agents here ignore it, so jobs run longer than expected */
#define LIMIT_MS 120000

static bool has_budget(const struct world *w)
{
    return w->seed % SIM_BUDGETS == 1;
}

const struct budget_options *paid_options(struct world *w, size_t *ret_n)
{
    w->budget = (struct budget_options){.name = "paid",
        .labels = {{"paid", "yes"}},
        .n_labels = 1,
        .period = BUDGET_HOUR,
        .cap_uusd = CAP_UUSD,
        .at_limit = BUDGET_PARK,
        .alert_pct = {50, 80, 100},
        .n_alerts = 3};
    *ret_n = has_budget(w);
    return &w->budget;
}

const char *paid_labels(struct world *w, struct job_row *r)
{
    bool can_park = r->spec.nodes == 1 && r->spec.method != CKPT_NONE;
    for (int k = 0; k < RETRY_KINDS; k++)
        can_park = can_park && r->spec.retries.n[k] != RETRIES_NEVER;
    if (!has_budget(w) || !can_park || w->n_paid == JOBS_MAX)
        return "{}";
    w->n_paid++;
    r->spec.time_limit_ms = LIMIT_MS;
    return "{\"paid\":\"yes\"}";
}

bool paid_is(struct world *w, int64_t job)
{
    return world_job(w, job)->paid;
}

/* ---- committed data ---- */

/* Paid jobs resume: one that starts over after each stop would use up every hour's budget and never
 * end. */
static void note_jobs(struct world *w, const struct changes *c)
{
    for (size_t i = 0; i < c->n_specs; i++) {
        struct sim_job *j = world_job(w, c->specs[i].job);
        j->paid = c->specs[i].labels_json && strstr(c->specs[i].labels_json, "paid");
        j->forgets = j->forgets && !j->paid;
    }
}

static void note_hours(struct world *w, const struct changes *c)
{
    for (size_t i = 0; i < c->n_budgets; i++) {
        const struct budget_row *r = &c->budgets[i];
        if (!map_get(&w->paid_hours, r->since.ms))
            map_put(&w->paid_hours, r->since.ms, w);
        w->paid_hour = r->since;
    }
}

/* The budget's row that records the notification is in the same batch. */
static void check_notified(struct world *w, const struct changes *c)
{
    for (size_t i = 0; i < c->n_history; i++) {
        const struct history_row *r = &c->history[i];
        if (!str_eq(r->kind, "budget"))
            continue;
        int64_t key = w->paid_hour.ms + r->a;
        if (map_get(&w->paid_notified, key))
            world_fail(w, "the threshold of %lld %% of an hour's budget was notified twice",
                (long long)r->a);
        map_put(&w->paid_notified, key, w);
    }
}

void paid_committed(struct world *w, const struct changes *c)
{
    if (!has_budget(w))
        return;
    note_jobs(w, c);
    note_hours(w, c);
    check_notified(w, c);
    for (size_t i = 0; i < c->n_ledger; i++)
        if (c->ledger[i].job != CORE_ID_NONE && world_job(w, c->ledger[i].job)->paid)
            w->paid_uusd += c->ledger[i].uusd;
    int64_t hours = (int64_t)map_size(&w->paid_hours);
    if (w->paid_uusd > 5 * hours * CAP_UUSD / 4)
        world_fail(w, "within %lld hours jobs cost %lld uusd; the budget of an hour is %d",
            (long long)hours, (long long)w->paid_uusd, CAP_UUSD);
}

/* While the budget is exhausted, no job with a cost starts. */
void paid_check(struct world *w)
{
    struct budget_view v;
    if (!has_budget(w))
        return;
    core_budget(w->model, 0, world_stamp(w).wall, &v);
    if (v.spent_uusd > CAP_UUSD * 5 / 4)
        world_fail(w, "%lld uusd are spent within an hour; its budget is %d",
            (long long)v.spent_uusd, CAP_UUSD);
    if (!v.is_closed)
        w->used_up_at = WALL_NONE;
    else if (!wall_is_set(w->used_up_at))
        w->used_up_at = world_stamp(w).wall;
    LIST_FOREACH (model_nodes(w->model), ln) {
        LIST_FOREACH (&LIST_ENTRY(ln, struct node, in_all)->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            if (v.is_closed && a->job->labels && a->row.state == ATTEMPT_ASSIGNED &&
                a->row.assigned_at.ms > w->used_up_at.ms && a->node->row.price_uusd_h > 0)
                world_fail(w, "job %lld was started although its budget is exhausted",
                    (long long)a->row.job);
        }
    }
}

void paid_deinit(struct world *w)
{
    map_deinit(&w->paid_hours);
    map_deinit(&w->paid_notified);
}
