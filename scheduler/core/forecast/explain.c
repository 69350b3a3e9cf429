/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job waits: the facts that plan.h decides on, as text. Reasons about machines are in
 * explain_capacity.c.
 */
#include "scheduler/core/forecast/explain_private.h"

#include "base/str.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/no_progress.h"
#include "scheduler/core/lifecycle/retry_rules.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/supply/offers.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void explain_add_reason(struct answer *a, const char *code, const char *fmt, ...)
{
    if (a->n == a->max)
        return;
    struct reason *r = &a->out[a->n++];
    STR_COPY(r->code, code);
    va_list ap;
    va_start(ap, fmt);
    text_vformat(r->text, sizeof r->text, fmt, ap);
    va_end(ap);
}

#define HOLDERS_SHOWN 3

/* Jobs that hold the licences that it waits for. */
static void explain_licences(const struct model *m, const struct job *j, struct answer *a)
{
    const struct constraints *x = j->shape->constraints;
    for (size_t i = 0; x && i < x->licences.n; i++) {
        const struct count *want = &x->licences.v[i];
        const struct licence *l = licence_named(m, want->name);
        int64_t here = l ? l->what.n : 0, used = l ? l->used : 0;
        if (here - used >= want->n)
            continue;
        char who[96] = "";
        int64_t shown = 0;
        const struct job *other;
        for (size_t pos = 0; used > 0 && (other = model_next_job(m, &pos)) != NULL;) {
            int64_t held = other->shape->constraints && job_attempt(other)
                               ? counts_of(&other->shape->constraints->licences, want->name)
                               : 0;
            size_t n = strlen(who);
            if (held > 0 && shown++ < HOLDERS_SHOWN)
                text_format(who + n, sizeof who - n, "%s job %s (%" PRId64 ")", n ? "," : "",
                    job_ref(&other->row).s, held);
        }
        explain_add_reason(a, "licences",
            "it needs %" PRId64 " of licence %s; %" PRId64 " of %" PRId64 " are in use%s%s%s",
            want->n, want->name, used, here, who[0] ? " by" : "", who,
            shown > HOLDERS_SHOWN ? " and others" : "");
    }
}

/* Jobs before it that could run at the same places. */
static void explain_queue(
    const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    struct ahead h = {0};
    char first[CORE_TEXT_MAX] = "";
    if (a->ahead)
        h = *a->ahead;
    else
        core_ahead(m, now, j->row.id, &h);
    if (h.n == 0)
        return;
    for (size_t k = 0; k < h.n_first; k++) {
        size_t n = strlen(first);
        text_format(first + n, sizeof first - n, "%s job %s, '%.20s' of %.20s (%s)",
            k == 0 ? "" : ", then", job_ref_of(m, h.first[k].job).s, h.first[k].name,
            h.first[k].user, h.first[k].why);
    }
    explain_add_reason(a, "queue-ahead", "%s%" PRId64 " job%s wait%s before it; the first is%s",
        h.exact ? "" : "about ", h.n, explain_plural(h.n), h.n == 1 ? "s" : "", first);
}

/* "team vision", or the user's name. */
static const char *limit_owner_text(
    const struct account *a, const struct allowance *w, char *out, size_t size)
{
    text_format(out, size, "%s%s", w == &a->allowance ? "" : "team ",
        w == &a->allowance ? a->row.user : a->team->name);
    return out;
}

/* Whole cents; below one cent the exact amount. */
static void usd_text(int64_t uusd_h, char *out, size_t size)
{
    if (uusd_h > 0 && uusd_h < 10000)
        str_format_usd(uusd_h, out, size);
    else
        str_format_usd((uusd_h + 5000) / 10000 * 10000, out, size);
}

struct money {
    char s[32];
};

/* "12", "0.5": cpus as counted for usage. */
static void cpus_text(int64_t mcpu, char *out, size_t size)
{
    if (mcpu % 1000 == 0)
        text_format(out, size, "%" PRId64, mcpu / 1000);
    else
        text_format(out, size, "%" PRId64 ".%03" PRId64, mcpu / 1000, mcpu % 1000);
}

/* Number of jobs being preempted on nodes that are reserved for the shape. */
static int64_t count_preempted_for(const struct shape *s)
{
    int64_t going = 0;
    LIST_FOREACH (&s->reserved, ln) {
        LIST_FOREACH (&LIST_ENTRY(ln, struct node, in_reserved)->attempts, la) {
            const struct attempt *other = LIST_ENTRY(la, struct attempt, on_node);
            going += other->row.state == ATTEMPT_STOPPING && other->row.stop_reason == END_EVICTED;
        }
    }
    return going;
}

/* With a QOS that preempts: the state of its preemptions. */
static void explain_qos(const struct job *j, struct answer *a)
{
    const struct shape *s = j->shape;
    int64_t going = count_preempted_for(s);
    if (!qos_preempts(s->qos) || shape_is_exclusive(s))
        return;
    if (s->claims > 0)
        explain_add_reason(a, "preempts",
            "QOS %s preempts others: %" PRId64
            " of their jobs %s being saved and stopped to make places for %" PRId64 " like it",
            s->qos->policy->name, going, going == 1 ? "is" : "are", s->claims);
    else
        explain_add_reason(a, "preempts",
            "QOS %s preempts others, but no running job can free capacity for it now: too few of "
            "them are where it may run, or they are within other teams' quotas, were evicted less "
            "than "
            "15 minutes ago, or are stopping",
            s->qos->policy->name);
}

/* With quotas: whether the job is within its team's quota, and the state of its preemptions. */
static void explain_quota(const struct model *m, const struct job *j, struct answer *a)
{
    const struct team *t = j->account->team;
    const struct shape *s = j->shape;
    char used[32], quota[32], need[32];
    int64_t going = count_preempted_for(s);
    if (list_is_empty(quota_teams(m)) || (s->claims > 0 && qos_preempts(s->qos)))
        return;
    cpus_text(t->allowance.used[LIMIT_MCPU], used, sizeof used);
    cpus_text(t->quota_mcpu, quota, sizeof quota);
    cpus_text(s->mcpu * s->least, need, sizeof need);
    if (shape_is_exclusive(s)) {
        explain_add_reason(a, "quota",
            "it is exclusive, so no quota entitles it to a place; it uses spare capacity");
        return;
    }
    if (s->claims > 0)
        explain_add_reason(a, "reclaim",
            "it is within its team's quota: %" PRId64
            " job%s being saved and stopped to make places for %" PRId64 " like it",
            going, going == 1 ? " beyond a quota is" : "s beyond a quota are", s->claims);
    else if (quota_owes(s))
        explain_add_reason(a, "quota",
            "with the %s cpus that it needs, team %s is within its quota: it uses %s of %s. The "
            "job goes first where it fits; no jobs beyond a quota could free capacity for it now",
            need, t->name, used, quota);
    else if (t->quota_mcpu == 0)
        explain_add_reason(
            a, "quota", "team %s has no quota of its own; it uses spare capacity", t->name);
    else
        explain_add_reason(a, "quota",
            "with the %s cpus that it needs, team %s would be beyond its quota: it uses %s of %s. "
            "The job uses spare capacity",
            need, t->name, used, quota);
}

/* A limit that keeps the job from running on any node. */
static void explain_limit(
    const struct job *j, const struct allowance *w, enum limit_kind kind, struct answer *a)
{
    char who[CORE_NAME_MAX + 8], used[32], most[32], need[32];
    limit_owner_text(j->account, w, who, sizeof who);
    if (kind == LIMIT_RUNNING) {
        explain_add_reason(a, "max-running",
            "%s has %" PRId64 " running jobs, of at most %" PRId64 " (max_running)", who,
            w->used[kind], w->max[kind]);
    } else if (kind == LIMIT_GPUS) {
        explain_add_reason(a, "max-gpus",
            "it needs %" PRId64 " GPUs; %s uses %" PRId64 ", of at most %" PRId64 " (max_gpus)",
            (int64_t)j->row.spec.need.gpus * j->least, who, w->used[kind], w->max[kind]);
    } else if (kind == LIMIT_MCPU) {
        cpus_text(j->shape->mcpu * j->least, need, sizeof need);
        cpus_text(w->used[kind], used, sizeof used);
        cpus_text(w->max[kind], most, sizeof most);
        explain_add_reason(a, "max-cpus",
            "it needs %s cpus; %s uses %s, of at most %s (max_cpus, or its quota, beyond which it "
            "may not borrow)",
            need, who, used, most);
    } else {
        usd_text(w->used[kind], used, sizeof used);
        usd_text(w->max[kind], most, sizeof most);
        explain_add_reason(a, "max-usd-per-hour",
            "the running jobs of %s cost %s an hour, of at most %s (max_usd_per_hour)", who, used,
            most);
    }
}

/* Machines for exclusive use that exceed a limit as a whole. */
static void explain_too_much(
    const struct job *j, const struct allowance *w, int64_t machines, struct answer *a)
{
    static const enum limit_kind kinds[] = {LIMIT_GPUS, LIMIT_MCPU};
    char who[CORE_NAME_MAX + 8], left[32];
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int64_t rest = w->max[kinds[k]] - w->used[kinds[k]];
        if (w->max[kinds[k]] == LIMIT_NONE)
            continue;
        cpus_text((kinds[k] == LIMIT_GPUS ? 1000 : 1) * (rest > 0 ? rest : 0), left, sizeof left);
        explain_add_reason(a, "too-large-for-limit",
            "%" PRId64
            " machine%s that it would have for itself %s more than %s may still have (%s %s)",
            machines, explain_plural(machines), machines == 1 ? "has" : "have",
            limit_owner_text(j->account, w, who, sizeof who), limit_names[kinds[k]], left);
    }
}

static void explain_limits(
    const struct model *m, const struct job *j, const struct survey *v, struct answer *a)
{
    const struct allowance *const of[] = {&j->account->allowance, &j->account->team->allowance};
    char who[CORE_NAME_MAX + 8], left[32];
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) {
        int64_t rest = of[k]->max[LIMIT_UUSD_H] - of[k]->used[LIMIT_UUSD_H];
        for (int kind = 0; kind < LIMIT_SUBMITTED; kind++)
            if (limits_stop(m, of[k], j->shape, (enum limit_kind)kind))
                explain_limit(j, of[k], (enum limit_kind)kind, a);
        if (v->too_expensive > 0 && shape_is_exclusive(j->shape))
            explain_too_much(j, of[k], v->too_expensive, a);
        if (v->too_expensive == 0 || of[k]->max[LIMIT_UUSD_H] == LIMIT_NONE)
            continue;
        usd_text(rest > 0 ? rest : 0, left, sizeof left);
        explain_add_reason(a, "too-dear",
            "%" PRId64 " machine%s it could run on cost%s more than the %s an hour that %s may "
            "still pay (max_usd_per_hour)",
            v->too_expensive, explain_plural(v->too_expensive), v->too_expensive == 1 ? "s" : "",
            left, limit_owner_text(j->account, of[k], who, sizeof who));
    }
}

static struct money money(int64_t uusd)
{
    struct money t;
    usd_text(uusd, t.s, sizeof t.s);
    return t;
}

/* ", with $1.00 for reading its input"; "" if that costs nothing. */
static const char *input_cost_text(int64_t uusd, char *out, size_t size)
{
    out[0] = '\0';
    if (uusd > 0)
        text_format(out, size, ", with %s for reading its input", money(uusd).s);
    return out;
}

static void explain_budget(
    const struct budget *b, const struct job *j, const struct survey *v, struct answer *a)
{
    char again[64] = "", in[32], input[64];
    struct stamp now = v->now;
    int64_t uusd_h = v->unpaid_uusd_h,
            input_uusd = pool_input_uusd(v->unpaid_in, j->shape->constraints);
    int64_t needs = budgets_needs(b, j->shape, uusd_h, input_uusd), spent = b->spent;
    const char *period = budget_period_names[b->options->period];
    if (now.wall.ms > b->at.ms)
        spent += core_cost_uusd(now.wall.ms - b->at.ms, b->uusd_h);
    if (wall_is_set(b->row.until)) {
        time_format_duration(
            b->row.until.ms > now.wall.ms ? b->row.until.ms - now.wall.ms : 0, in, sizeof in);
        text_format(again, sizeof again, "; the next %s begins in %s", period, in);
    }
    if (b->row.is_closed)
        explain_add_reason(a, "budget", "budget %s is used up: %s of %s are spent in this %s%s",
            b->row.name, money(spent).s, money(b->cap_uusd).s, period, again);
    else if (needs > b->cap_uusd)
        explain_add_reason(a, "budget",
            "it would cost %s at %s an hour%s, and budget %s has only %s for a whole %s: %s would "
            "help",
            money(needs).s, money(uusd_h).s, input_cost_text(input_uusd, input, sizeof input),
            b->row.name, money(b->cap_uusd).s, period,
            input_uusd > b->cap_uusd ? "machines nearer to its input" : "a shorter --time");
    else
        explain_add_reason(a, "budget",
            "budget %s: of its %s for this %s, %s are spent and %s are set aside for running jobs; "
            "this job needs %s to start%s%s",
            b->row.name, money(b->cap_uusd).s, period, money(spent).s,
            money(b->committed > spent ? b->committed - spent : 0).s, money(needs).s,
            input_cost_text(input_uusd, input, sizeof input), again);
}

/* Cost that excludes machines that have capacity for it, or could be launched. */
static void explain_money(const struct job *j, const struct survey *v, struct answer *a)
{
    const struct shape *s = j->shape;
    const struct budget *b = v->unpaid ? budgets_lacking(s, v->unpaid_in, v->unpaid_uusd_h) : NULL;
    char input[64];
    if (v->unpaid == 0)
        return;
    if (budgets_exceed_price(s, v->unpaid_uusd_h))
        explain_add_reason(a, "max-usd-per-hour",
            "the cheapest of %" PRId64
            " machine%s or offer%s for it costs %s an hour now, above its maximum of %s "
            "(--max-usd-per-hour): it waits for a lower price",
            v->unpaid, explain_plural(v->unpaid), explain_plural(v->unpaid),
            money(v->unpaid_uusd_h).s, money(s->max_uusd_h).s);
    else if (budgets_cap_lacks(s, v->unpaid_in, v->unpaid_uusd_h))
        explain_add_reason(a, "max-usd",
            "it has cost %s, of at most %s (--max-usd): what is left does not pay for %s at %s an "
            "hour%s; belay update %s max-usd=USD lets it continue",
            money(j->row.cost_uusd).s, money(j->row.spec.max_uusd).s,
            s->expect_ms < BUDGET_SLICE_MS ? "all of it" : "ten minutes", money(v->unpaid_uusd_h).s,
            input_cost_text(pool_input_uusd(v->unpaid_in, s->constraints), input, sizeof input),
            job_ref(&j->row).s);
    else if (b)
        explain_budget(b, j, v, a);
}

static void priority_part(char *out, size_t size, const char *what, int64_t ms)
{
    char text[32];
    size_t n = strlen(out);
    time_format_duration(ms < 0 ? -ms : ms, text, sizeof text);
    if (ms != 0)
        text_format(out + n, size - n, ", %s%s %s", ms < 0 ? "less " : "", what, text);
}

/* With several waiting users, or options of the job that affect its priority. */
static void explain_priority(
    const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    struct priority p;
    char total[32], age[32], parts[160] = "";
    core_priority(m, j, now.wall, &p);
    if (shares_n_queued_accounts(m) < 2 && p.total_ms == p.age_ms)
        return;
    time_format_duration(p.total_ms, total, sizeof total);
    time_format_duration(p.age_ms, age, sizeof age);
    priority_part(parts, sizeof parts, "fair share", p.fair_ms);
    priority_part(parts, sizeof parts, "QOS", p.qos_ms);
    priority_part(parts, sizeof parts, "size", p.size_ms);
    priority_part(parts, sizeof parts, "nice", p.nice_ms);
    explain_add_reason(a, "priority",
        "its priority equals a wait of %s: its own wait %s%s; belay shares lists who used how much",
        total, age, parts);
}

#define DEPENDS_SHOWN 4

/* With --kill-on-invalid-dep no. */
static void explain_never(const struct job *j, struct answer *a)
{
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency_row *r = &LIST_ENTRY(l, struct dependency, of_job)->row;
        if (r->state != DEPEND_NEVER)
            continue;
        explain_add_reason(a, "dependency-never",
            "%s can never be satisfied, and it waits nevertheless (--kill-on-invalid-dep no): "
            "belay cancel %s ends it",
            depend_text(r->kind, r->on, r->of_task, r->task).s, job_ref(&j->row).s);
        return;
    }
}

static void explain_dependencies(const struct job *j, struct answer *a)
{
    int64_t n = 0;
    if (j->row.spec.keep_unmeetable)
        explain_never(j, a);
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.state != DEPEND_WAITS || d->row.kind == DEPEND_AFTERCORR || n++ >= DEPENDS_SHOWN)
            continue;
        const struct job *on = d->row.of_task ? array_task(d->on, d->row.task) : d->on;
        explain_add_reason(a, "dependency", "%s: %s %" PRId64 " '%s' %s",
            depend_text(d->row.kind, d->row.on, d->row.of_task, d->row.task).s,
            d->row.of_task ? "that task of job" : "job", d->row.on, d->on->row.spec.name,
            !on || on->row.state == JOB_PENDING ? "has not run yet" : "runs");
    }
    if (n > DEPENDS_SHOWN)
        explain_add_reason(a, "dependency", "and %" PRId64 " more jobs%s", n - DEPENDS_SHOWN,
            j->row.spec.depends_any ? "; any one of them suffices" : "");
}

static void explain_window(
    const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    char in[32];
    if (!j->row.spec.window[0] || job_side(j)->not_before.ms <= now.wall.ms)
        return;
    time_format_duration(job_side(j)->not_before.ms - now.wall.ms, in, sizeof in);
    if (!core_window(m, j->row.spec.window))
        explain_add_reason(a, "no-window", "belayd's configuration has no window %s (any more)",
            j->row.spec.window);
    else
        explain_add_reason(a, "window",
            "its window %s is closed, or about to close; it opens in %s", j->row.spec.window, in);
}

/* Array with task-by-task dependencies. */
static void explain_task_dependencies(const struct job *j, int64_t left, struct answer *a)
{
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.kind == DEPEND_AFTERCORR && d->on && left > j->array->n_ready)
            explain_add_reason(a, "dependency",
                "%s: %" PRId64 " of its tasks wait until those of job %" PRId64
                " '%s' with the same index have succeeded",
                depend_text(d->row.kind, d->row.on, false, 0).s, left - j->array->n_ready,
                d->row.on, d->on->row.spec.name);
    }
}

static void explain_array(const struct job *j, struct answer *a)
{
    if (!j->array)
        return;
    int64_t left = array_left(j->array);
    if (array_is_full(j))
        explain_add_reason(a, "array-limit",
            "%" PRId64 " of its tasks run, the maximum at once; %" PRId64 " have not begun",
            j->array->n_tasks, left);
    explain_task_dependencies(j, left, a);
}

/* An array's progress is not a reason: listed last. */
static void explain_array_left(const struct job *j, struct answer *a)
{
    if (j->array && !array_is_full(j))
        explain_add_reason(a, "array",
            "%" PRId64 " of its tasks have not begun, %" PRId64 " have begun and not ended",
            array_left(j->array), j->array->n_tasks);
}

/* Once a retry is used, or if there are none. */
static void explain_retries(const struct job *j, struct answer *a)
{
    char text[CORE_TEXT_MAX] = "";
    size_t n = 0;
    if (retries_are_none(&j->row)) {
        explain_add_reason(
            a, "no-requeue", "it is never requeued, whatever its end (--no-requeue)");
        return;
    }
    for (int k = 0; k < RETRY_KINDS; k++) {
        int32_t left = retries_left(&j->row, (enum retry_kind)k);
        if (j->row.used[k] == 0 || left == RETRIES_UNLIMITED)
            continue;
        text_format(text + n, sizeof text - n, "%s%" PRId32 " of %" PRId32 " after an end as %s",
            n ? ", " : "", left, j->row.spec.retries.n[k], retry_kind_names[k]);
        n = strlen(text);
    }
    if (n > 0)
        explain_add_reason(a, "retries", "remaining requeues: %s", text);
}

/* What keeps it out of the queue. */
static void explain_waiting(
    const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    char in[32];
    if (j->row.hold == HOLD_USER && no_progress_is_held(m, &j->row))
        explain_add_reason(a, "in-vain",
            "it is held: %" PRId32 " times in a row it was restored and restarted from before its "
            "checkpoint, and never got beyond step %" PRId64
            ": make it resume from its checkpoint (belay drill tests that), then belay release "
            "%s",
            j->row.no_progress, j->row.best_progress, job_ref(&j->row).s);
    else if (j->row.hold == HOLD_USER && retry_is_held_for_space(&j->row))
        explain_add_reason(a, "no-room",
            "it is held: no node could start it, %d times in a row (belay show %s says why); fix "
            "that or ask for less, then belay release %s",
            JOB_NO_SPACE_MAX, job_ref(&j->row).s, job_ref(&j->row).s);
    else if (j->row.hold == HOLD_STORE)
        explain_add_reason(a, "store",
            "it is held: attempt %" PRId64
            " could not use the store of its checkpoints (belay show %s says why); after that is "
            "fixed, belay release %s lets it continue",
            j->row.attempts, job_ref(&j->row).s, job_ref(&j->row).s);
    else if (j->row.hold == HOLD_IDLE_GPUS)
        explain_add_reason(a, "idle-gpus",
            "it is parked: it was saved and is held, because its GPUs were idle. belay release "
            "%s resumes it",
            job_ref(&j->row).s);
    else if (j->row.hold != HOLD_NONE)
        explain_add_reason(a, "held", "it is held%s: belay release %s%s",
            j->row.hold == HOLD_OPERATOR ? " by an operator" : "", job_ref(&j->row).s,
            j->row.hold == HOLD_OPERATOR ? ", by an operator" : "");
    explain_dependencies(j, a);
    if (j->row.spec.begin_at.ms <= now.wall.ms) {
        explain_window(m, now, j, a);
        return;
    }
    time_format_duration(j->row.spec.begin_at.ms - now.wall.ms, in, sizeof in);
    if (j->row.end == END_STORE_AWAY)
        explain_add_reason(a, "store-away",
            "attempt %" PRId64 " could not use the store of its checkpoints: retried in %s, and "
            "held after %d such ends in a row (this was %" PRId32 "; belay show %s says why)",
            j->row.attempts, in, JOB_STORE_MAX, j->row.quick_ends, job_ref(&j->row).s);
    else if (j->row.end == END_CAPACITY && j->row.quick_ends > 1)
        explain_add_reason(a, "begin",
            "no node could start it, %" PRId32 " times in a row: it is retried in %s, and held "
            "after %d such ends",
            j->row.quick_ends, in, JOB_NO_SPACE_MAX);
    else if (j->row.quick_ends > 1)
        explain_add_reason(a, "begin",
            "it ended as %s soon after its start %" PRId32 " times in a row: it is retried in %s",
            end_kind_names[j->row.end], j->row.quick_ends, in);
    else
        explain_add_reason(a, "begin", "its begin time is in %s", in);
}

static void explain_deadline(struct stamp now, const struct job *j, struct answer *a)
{
    char in[32];
    int64_t left_ms = j->row.spec.deadline_ms - j->row.spec.time_limit_ms - now.wall.ms;
    if (j->row.spec.deadline_ms == 0)
        return;
    time_format_duration(left_ms > 0 ? left_ms : 0, in, sizeof in);
    explain_add_reason(a, "deadline",
        "it is given up if it does not start within %s: %s it could not end by its deadline", in,
        j->row.spec.time_limit_ms > 0 ? "with its time limit" : "after that");
}

struct cost_refusal {
    char s[160];
};

/* The cap or budget that does not allow a further cost of this much; "" if all do. Running jobs
 * have their part of a budget reserved, so only their caps are checked. */
static struct cost_refusal cost_refusal(const struct job *j, int64_t uusd)
{
    const struct shape *s = j->shape;
    struct cost_refusal t = {""};
    uint64_t mask = job_attempt(j) ? 0 : s->in_budgets;
    if (j->row.spec.max_uusd > 0 && uusd > j->row.spec.max_uusd - j->row.cost_uusd)
        text_format(t.s, sizeof t.s,
            ": more than is left of the %s that it may cost (--max-usd), so it is parked before",
            money(j->row.spec.max_uusd).s);
    for (int k = 0; !t.s[0] && k < BUDGETS_MAX && mask >> k; k++)
        if ((mask >> k & 1) && budgets_left(&s->budgets[k]) < uusd)
            text_format(t.s, sizeof t.s, ": more than is left of budget %s, %s",
                s->budgets[k].row.name, money(budgets_left(&s->budgets[k])).s);
    return t;
}

static void explain_outlook(
    const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    struct procurement_outlook o;
    char median[32], p95[32], usd[32];
    if (a->n == a->max || !core_procurement_expects(m, j, now, &o))
        return;
    time_format_duration(o.median_ms, median, sizeof median);
    time_format_duration(o.p95_ms, p95, sizeof p95);
    str_format_usd(o.uusd, usd, sizeof usd);
    explain_add_reason(a, "expected",
        "%s is expected to end in %s (95th percentile: %s), and to cost %s more%s",
        j->array ? "each of its tasks" : "it", median, p95, usd, cost_refusal(j, o.uusd).s);
}

static void explain_pending(
    const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    struct survey v = {.now = now};
    explain_array(j, a);
    if (j->is_waiting)
        explain_waiting(m, now, j, a);
    if (a->n == a->max)
        return;
    explain_survey_nodes(m, j->shape, &v);
    explain_survey_offers(m, j->shape, &v);
    if (explain_impossible(m, j, j->shape, &v, a))
        return;
    if (job_side(j)->drill && job_side(j)->avoid != CORE_ID_NONE)
        explain_add_reason(a, "drill",
            "it is being drilled: for up to 10 minutes it waits for another node than the one it "
            "was on");
    else if (job_side(j)->avoid != CORE_ID_NONE && !j->is_waiting && j->row.end == END_CAPACITY)
        explain_add_reason(a, "no-room-away",
            "for up to 10 minutes it waits for another node than that of attempt %" PRId64
            ", which could not start it (belay show %s says why)",
            j->row.attempts, job_ref(&j->row).s);
    else if (job_side(j)->avoid != CORE_ID_NONE && !j->is_waiting)
        explain_add_reason(a, "store-away",
            "for up to 10 minutes it waits for another node than that of attempt %" PRId64
            ", which could not use the store of its checkpoints",
            j->row.attempts);
    if (j->is_waiting)
        return; /* other reasons may have changed by then */
    explain_money(j, &v, a);
    explain_limits(m, j, &v, a);
    if (j->shape->throttled_by)
        return; /* other reasons may have changed by then */
    explain_quota(m, j, a);
    explain_qos(j, a);
    explain_gang_resize(j, now, a);
    explain_licences(m, j, a);
    if (j->row.spec.nodes > 1)
        explain_gang(m, j, a);
    else if (v.ready && !licences_lack(m, j->shape->constraints))
        explain_add_reason(a, "ready", "%" PRId64 " node%s capacity for it: it is placed next",
            v.ready, v.ready == 1 ? " has" : "s have");
    explain_maintenance(m, &v, j, a);
    explain_reserved(m, &v, j, now, a);
    explain_coming(m, j->shape, now, a);
    explain_offers(m, j->shape, now, a);
    explain_nodes(&v, j->shape, a);
    explain_lacking(&v, j, a);
    if (!v.ready)
        explain_base_load(m, j->shape, now, a);
    if (a->n == a->max)
        return; /* avoids a walk over the whole queue for callers that need fewer reasons */
    explain_queue(m, now, j, a);
    explain_priority(m, now, j, a);
}

/* An attempt that was assigned and has not begun. */
static void explain_refused(
    struct stamp now, const struct attempt *a, const char *rank, struct answer *out)
{
    char left[32];
    int64_t left_ms = a->withheld_until.ms - now.wall.ms;
    if (a->withheld != WITHHELD_NO) {
        time_format_duration(left_ms > 0 ? left_ms : 0, left, sizeof left);
        explain_add_reason(out, "store-refused",
            "attempt %" PRId64 "%s on %s waits %s more for belayd: %s", a->row.attempt, rank,
            a->node->row.name, left, a->row.text);
        return;
    }
    explain_add_reason(out, "store-refused",
        "attempt %" PRId64 "%s on %s cannot use the store (%" PRId32 " tries so far): %s",
        a->row.attempt, rank, a->node->row.name, a->store_tries, a->row.text);
}

static void explain_idle_gpus(struct stamp now, const struct job *j, struct answer *out)
{
    struct wall since = idle_gpus_since(j), parks_at = idle_gpus_parks_at(j);
    char idle[32], left[32];
    if (!idle_gpus_policy_of(j) || !wall_is_set(since) || !wall_is_set(j->row.idle_gpus_told_at))
        return;
    time_format_duration((now.wall.ms - since.ms) / 1000 * 1000, idle, sizeof idle);
    time_format_duration(parks_at.ms > now.wall.ms ? (parks_at.ms - now.wall.ms) / 1000 * 1000 : 0,
        left, sizeof left);
    if (j->row.hold == HOLD_IDLE_GPUS)
        explain_add_reason(out, "idle-gpus",
            "its GPUs have been idle for %s: it is being saved, and is held after that", idle);
    else if (wall_is_set(parks_at))
        explain_add_reason(out, "idle-gpus",
            "its GPUs have been idle for %s: in %s it is saved and held, unless it uses them; "
            "belay update %s idle-gpus=keep keeps it running",
            idle, left, job_ref(&j->row).s);
    else
        explain_add_reason(out, "idle-gpus", "its GPUs have been idle for %s", idle);
}

static void explain_running(
    const struct model *m, struct stamp now, const struct job *j, struct answer *out)
{
    struct survey v = {0};
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        char rank[32] = "";
        if (j->row.spec.nodes > 1)
            text_format(rank, sizeof rank, ", rank %" PRId32 ",", a->row.rank);
        if (j->row.state == JOB_RUNNING && a->row.state == ATTEMPT_ASSIGNED && a->row.text[0])
            explain_refused(now, a, rank, out);
        else if (j->row.state == JOB_RUNNING)
            explain_add_reason(out, "running", "attempt %" PRId64 "%s is %s on %s", a->row.attempt,
                rank, sm_name(&attempt_sm, (int)a->row.state), a->node->row.name);
        else
            explain_add_reason(out, "cancelling", "attempt %" PRId64 "%s on %s is being stopped",
                a->row.attempt, rank, a->node->row.name);
    }
    explain_idle_gpus(now, j, out);
    if (j->row.state == JOB_RUNNING && j->row.hold != HOLD_IDLE_GPUS &&
        wall_is_set(job_attempt(j)->row.requeue_asked_at))
        explain_add_reason(out, "requeue",
            "it is being saved; after that it is stopped and requeued, as requested");
    if (j->row.ranks < j->row.spec.nodes && j->row.state == JOB_RUNNING)
        explain_add_reason(out, "fewer-nodes",
            "it runs on %" PRId32 " nodes of at most %" PRId32
            ", and on as many as are available when it starts again",
            j->row.ranks, j->row.spec.nodes);
    explain_survey_offers(m, j->shape, &v);
    if (v.uncertified > 0 && j->row.state == JOB_RUNNING)
        explain_uncertified(&v, j, false, out);
}

size_t explain_hypothetical(
    const struct model *m, struct stamp now, const struct job *j, struct reason *out, size_t max)
{
    struct answer a = {.out = out, .max = max};
    explain_pending(m, now, j, &a);
    explain_finish_by(m, now, j, &a);
    explain_outlook(m, now, j, &a);
    return a.n;
}

size_t explain_hypothetical_deadline(
    const struct model *m, struct stamp now, const struct job *j, struct reason *out, size_t max)
{
    struct answer a = {.out = out, .max = max};
    explain_finish_by(m, now, j, &a);
    explain_outlook(m, now, j, &a);
    return a.n;
}

size_t core_explain(
    const struct model *m, struct stamp now, int64_t job, struct reason *out, size_t max)
{
    return core_explain_with(m, now, job, NULL, out, max);
}

size_t core_explain_with(const struct model *m, struct stamp now, int64_t job,
    const struct ahead *ahead, struct reason *out, size_t max)
{
    struct answer a = {.out = out, .max = max, .ahead = ahead};
    const struct job *j = model_job(m, job);
    if (!j)
        return 0;
    if (job_attempt(j))
        explain_running(m, now, j, &a);
    else if (j->row.state == JOB_UNFOLDED)
        explain_array(j, &a);
    else
        explain_pending(m, now, j, &a);
    explain_array_left(j, &a);
    if (j->row.state == JOB_PENDING)
        explain_deadline(now, j, &a);
    explain_finish_by(m, now, j, &a);
    explain_outlook(m, now, j, &a);
    explain_retries(j, &a);
    return a.n;
}

/* The reason of one job of a shape is that of all, unless this job has one of its own. */
static bool is_like_its_shape(const struct job *j)
{
    return j->row.state == JOB_PENDING && j->shape && !j->is_waiting && !j->array &&
           j->row.spec.nodes == 1 && job_side(j)->avoid == CORE_ID_NONE &&
           !link_is_in(&job_side(j)->gang_resizes) && j->shape->head != j->row.id;
}

bool core_explain_first(const struct model *m, struct stamp now, int64_t job,
    struct explain_memo *memo, struct reason *ret_reason)
{
    const struct job *j = model_job(m, job);
    bool alike = j && is_like_its_shape(j);
    if (alike && memo->shape == j->shape) {
        *ret_reason = memo->reason;
        return true;
    }
    if (core_explain(m, now, job, ret_reason, 1) == 0)
        return false;
    if (alike)
        *memo = (struct explain_memo){j->shape, *ret_reason};
    return true;
}
