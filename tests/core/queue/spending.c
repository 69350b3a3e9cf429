/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/core/queue/spending.h"

#include "base/str.h"
#include "scheduler/core/model/model_access.h"

struct budget_options spending_monthly(int64_t usd, enum budget_action at_limit)
{
    return (struct budget_options){.name = "all",
        .period = BUDGET_MONTH,
        .zone = &zone_utc,
        .cap_uusd = usd * USD,
        .at_limit = at_limit,
        .alert_pct = {50, 80, 100},
        .n_alerts = 3};
}

/* One pool at $1 per node-hour; the lease of a node is longer than any test. */
void spending_begin(struct lab *l, const struct budget_options *b, size_t n)
{
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 100000 * HOUR_MS,
        .tables.budgets = b,
        .tables.n_budgets = n};
    struct pool_row base = {.name = "base", .usd_per_hour_uusd = USD};
    *l = (struct lab){
        .m = model_create(&o), .p = planner_create(), .now = {.wall = {NOV_1}, .mono = {5000}}};
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &base});
}

struct job_row spending_job(const char *user, int32_t cpus, int64_t limit_ms)
{
    struct job_row r = lab_job(cpus);
    STR_COPY(r.user, user);
    r.spec.time_limit_ms = limit_ms;
    return r;
}

int64_t spending_submit(struct lab *l, const char *user, int32_t cpus, int64_t limit_ms)
{
    struct job_row r = spending_job(user, cpus, limit_ms);
    return lab_submit(l, &r);
}

struct budget_view spending_view(const struct lab *l, size_t i)
{
    struct budget_view v;
    core_budget(l->m, i, l->now.wall, &v);
    return v;
}

/* Each stopping job has saved and ended 10 s later. */
static void serve(struct lab *l)
{
    int64_t stopping[256];
    size_t n = 0;
    const struct job *j;
    for (size_t pos = 0; (j = model_next_job(l->m, &pos)) != NULL;)
        if (job_attempt(j) && job_attempt(j)->row.state == ATTEMPT_STOPPING && n < 256)
            stopping[n++] = j->row.id;
    if (n == 0)
        return;
    lab_wait(l, 10000);
    for (size_t k = 0; k < n; k++) {
        lab_saved(l, stopping[k], job_attempt(model_job(l->m, stopping[k]))->row.sequence + 1, 1);
        lab_ended(l, stopping[k], END_EVICTED, 0);
    }
}

/* As belayd: wakes when a decision is due. */
void spending_run_until(struct lab *l, struct wall at)
{
    lab_plan(l);
    while (l->now.wall.ms < at.ms) {
        struct mono wake = plan_wake(l->p, l->m, l->now);
        int64_t ms = at.ms - l->now.wall.ms;
        if (mono_is_set(wake) && wake.ms - l->now.mono.ms < ms)
            ms = wake.ms - l->now.mono.ms;
        lab_wait(l, ms);
        lab_plan(l);
        serve(l);
        lab_plan(l);
    }
}

void spending_run_for(struct lab *l, int64_t ms)
{
    spending_run_until(l, (struct wall){l->now.wall.ms + ms});
}

int spending_letters(const struct lab *l, int32_t pct)
{
    int n = 0;
    for (const struct outbox_row *r = NULL; (r = core_outbox_next(l->m, r)) != NULL;)
        n += r->kind == NOTIFY_BUDGET && r->pct == pct;
    return n;
}
