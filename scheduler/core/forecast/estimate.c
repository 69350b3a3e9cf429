/* SPDX-License-Identifier: Apache-2.0
 *
 * A hypothetical job: it has a shape and a queue position, but is in no list of the model.
 */
#include "scheduler/core/forecast/estimate.h"
#include "scheduler/core/forecast/forecast_parts.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/supply/offers.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct hypothetical_job {
    struct job job;
    struct shape shape;
    struct constraints constraints;
    struct labels labels;
    struct account account; /* if there is none yet; in no list either */
    struct team team;
};

static void build_hypothetical_job(const struct model *m, const struct event *submit,
    const struct job_row *own, struct hypothetical_job *i)
{
    const struct job_row *r = submit->submit.job;
    struct job *j = &i->job;
    j->row = *r;
    j->row.id = model_next_ids(m)->next_job;
    j->row.state = JOB_PENDING;
    j->row.spec.nodes_min = r->spec.nodes_min ? r->spec.nodes_min : r->spec.nodes;
    j->row.eligible_at = submit->now.wall;
    STR_COPY(j->row.spec.team, own->spec.team);
    STR_COPY(j->row.spec.qos, own->spec.qos);
    j->certified_at = certificate_date(m, r->script_key);
    j->least = j->row.spec.nodes_min; /* its minimum */
    j->account = account_find(m, own->spec.team, own->user);
    if (!j->account) {
        account_init_hypothetical(m, own->spec.team, own->user, &i->account, &i->team);
        j->account = &i->account;
    }
    j->shape = &i->shape;
    if (labels_of_submit(m, submit, &i->labels))
        j->labels = &i->labels;
    bool asks = submit->submit.texts && submit->submit.texts->constraints &&
                submit->submit.texts->constraints[0];
    queue_describe(m, j, asks ? &i->constraints : NULL, &i->shape);
    if (r->spec.finish_ms != 0) {
        j->row.spec.finish_ms = procurement_finish_submitted(submit);
        j->row.submitted_at = submit->now.wall;
        j->row.procurement = PROCURE_WAIT; /* machines that are coming are not its own */
        i->shape.procurement = j->row.procurement = procurement_hypothetical(m, j, submit->now);
    }
    i->shape.head = j->row.id;
    i->shape.position_16 = shape_position_16(m, &i->shape, job_since_ms(j));
}

/* When this dependency will be satisfied. NEVER_MS: never, or unknown. */
static void dependency_met_at(const struct model *m, const struct depend_ask *d, struct stamp now,
    int64_t *ret_at, int64_t *ret_latest)
{
    const struct job *on = model_job(m, d->on);
    on = on && d->of_task && on->array ? array_task(on, d->task) : on;
    *ret_at = *ret_latest = NEVER_MS;
    if (d->has_ended && dependencies_judge(d->kind, d->end) == DEPEND_MET)
        *ret_at = *ret_latest = d->kind == DEPEND_AFTER && wall_is_set(d->started_at)
                                    ? d->started_at.ms + d->delay_ms
                                    : now.wall.ms;
    else if (on && !d->has_ended)
        forecast_dependency(m, on, d->kind, d->delay_ms, now, ret_at, ret_latest);
}

/* False: the time when it becomes eligible is unknown. */
static bool wait_for_jobs(
    const struct model *m, const struct event *submit, struct forecast_request *a, char *why)
{
    struct forecast_waits w = FORECAST_WAITS_NONE;
    size_t n = 0;
    for (size_t k = 0; k < submit->submit.n_depends; k++) {
        const struct depend_ask *d = &submit->submit.depends[k];
        int64_t at, latest;
        if (d->on == CORE_ID_NONE)
            continue;
        n++;
        dependency_met_at(m, d, submit->now, &at, &latest);
        forecast_waits_add(&w, d->on, at, latest);
    }
    if (n == 0 || forecast_wait_for_dependencies(&w, submit->submit.job->spec.depends_any, a))
        return true;
    text_format(why, CORE_TEXT_MAX, "it would wait for job %s, which has not started",
        job_ref_of(m, w.unknown).s);
    return false;
}

static bool wait_for(const struct model *m, const struct event *submit, struct hypothetical_job *i,
    struct forecast_request *a, char *why)
{
    struct stamp now = submit->now;
    a->from_ms = a->latest_from_ms = now.wall.ms;
    if (i->job.row.hold != HOLD_NONE) {
        text_format(why, CORE_TEXT_MAX, "it would be held");
        return false;
    }
    return wait_for_jobs(m, submit, a, why) &&
           forecast_wait_for_window(m, &i->job.row, now, a, why);
}

/* Micro-dollars of `times` times ms at this hourly price; -1: too much for an int64_t. */
static int64_t cost(int64_t ms, int64_t uusd_h, int64_t times)
{
    double sum = (double)ms / 3600000 * (double)uusd_h * (double)times;
    return sum < 1e18 ? (int64_t)(sum + 0.5) : -1;
}

static int64_t add(int64_t uusd, int64_t input_uusd)
{
    return uusd < 0 ? uusd : uusd + input_uusd;
}

/* Cost of reading the input again after the expected reclaims. */
static int64_t repeated_input_uusd(const struct estimate *t, const struct offer *o)
{
    double times = o ? core_offer_reclaims_per_hour(o) * (double)t->expected_ms / 3600000 : 0;
    return (int64_t)((double)t->input_uusd * times);
}

static void price(const struct model *m, const struct hypothetical_job *i, struct estimate *t)
{
    const struct node *n = t->start.node != CORE_ID_NONE ? model_node(m, t->start.node) : NULL;
    const struct offer *o = t->start.offer != CORE_ID_NONE ? model_offer(m, t->start.offer) : NULL;
    struct resources total = n ? n->row.total : o ? offer_total(o) : (struct resources){0};
    int64_t uusd_h = n ? n->row.price_uusd_h : o ? o->row.price_uusd_h : 0, effective = uusd_h;
    t->uusd_h = t->expected_uusd = t->least_uusd = t->most_uusd = -1;
    if (!n && !o)
        return;
    t->input_uusd = t->tasks * t->start.input_uusd;
    const struct offer *of = o ? o : n->instance ? n->instance->offer : NULL;
    if (of)
        effective = max_i64(uusd_h, offer_effective_uusd_h(of, &i->job.row));
    const struct resources *takes = shape_takes(&i->shape, &total);
    t->uusd_h = t->nodes * resources_share(takes, &total, uusd_h);
    if (t->most_ms == 0)
        return;
    t->least_uusd = add(cost(t->least_ms, t->uusd_h, t->tasks), t->input_uusd);
    t->expected_uusd =
        add(cost(t->expected_ms, t->nodes * resources_share(takes, &total, effective), t->tasks),
            t->input_uusd + repeated_input_uusd(t, of));
    t->most_uusd =
        max_i64(add(cost(t->most_ms, t->uusd_h, t->tasks), t->input_uusd), t->expected_uusd);
}

static void answer(const struct model *m, const struct event *submit, struct hypothetical_job *i,
    struct estimate *t)
{
    const struct runtimes *history = runtimes_of(m, &i->job);
    struct forecast_request a = {.shape = &i->shape,
        .at = queue_position_of(&i->shape),
        .row = &i->job.row,
        .history = history};
    t->job = i->job.row.id;
    t->nodes = i->shape.least;
    t->tasks = submit->submit.tasks ? ranges_count(submit->submit.tasks) : 1;
    t->start = (struct forecast){.median = WALL_NONE, .latest = WALL_NONE};
    if (wait_for(m, submit, i, &a, t->start.why))
        forecast_for(m, submit->now, &a, &t->start);
    runtimes_range(history, i->job.row.spec.time_limit_ms, &t->least_ms, &t->most_ms);
    t->expected_ms = t->most_ms > 0 ? runtimes_mean(history, i->job.row.spec.time_limit_ms, 0) : 0;
    if (t->most_ms == 0) /* without a limit and a history, what was stated; or 0 */
        t->least_ms = t->expected_ms = t->most_ms = i->job.row.spec.work_ms;
    price(m, i, t);
    bool waits =
        a.from_ms > submit->now.wall.ms || (t->start.why[0] && !wall_is_set(t->start.median));
    t->n_reasons = t->start.is_now ? explain_hypothetical_deadline(
                                         m, submit->now, &i->job, t->reasons, EXPLAIN_REASONS_MAX)
                                   : explain_hypothetical(
                                         m, submit->now, &i->job, t->reasons, EXPLAIN_REASONS_MAX);
    if (!t->start.is_now && !waits)
        t->n_changes = remedies_for(m, submit->now, &i->job, t->changes, REMEDIES_MAX);
}

int core_estimate(
    const struct model *m, const struct event *submit, struct estimate *ret_estimate, struct err *e)
{
    struct hypothetical_job *i = mem_alloc(sizeof *i);
    struct job_row own;
    int rc = submit_check(m, submit, &own, &i->constraints, e);
    if (!rc) {
        build_hypothetical_job(m, submit, &own, i);
        rc = limits_check_submit(
            i->job.account, submit->submit.tasks ? ranges_count(submit->submit.tasks) : 1, e);
    }
    if (!rc) {
        memset(ret_estimate, 0, sizeof *ret_estimate);
        answer(m, submit, i, ret_estimate);
    }
    free(i);
    return rc;
}
