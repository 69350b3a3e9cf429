/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/deadline/procurement_work.h"

#include "base/minmax.h"
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/lifecycle/save_interval.h"
#include "scheduler/core/model/state.h"

/* Assumed error of the remaining work shown by progress: 5 % once a twentieth is done, five times
 * that at a hundredth, which is the minimum; at least a hundredth of the whole work. */
#define SHOWN_PCT 5
#define SHOWN_SURE 20
#define SHOWN_LEAST 100
#define SHOWN_LOOKS 1 /* examinations (look_ms) that must pass before progress shows a rate */
/* assumed remaining work of a job that exceeds its stated work */
#define OVER_PCT 5
/* Assumed pause of a save in the worst case while none has been measured: the longest notice of a
 * provider, because a program that is to be saved after one has to be faster. */
#define PAUSE_UNKNOWN_MS SECONDS_MS(120)
#define PAUSE_MAX_MS SECONDS_MS(86400) /* longer ones count as this: sums must not overflow */
#define PAUSE_PART 4 /* at most this fraction (1/n) of the interval: as for the automatic one */

static int64_t since_ms(struct wall from, struct wall now)
{
    return wall_is_set(from) && from.ms < now.ms ? now.ms - from.ms : 0;
}

/* ---- pauses of saves ---- */

/* Periodic saves of a job, each with a pause of its program. */
struct saves {
    int64_t every_ms, pause_ms; /* 0 and 0: it has none */
};

/* As measured by its last save. */
static struct saves saves_of(const struct job *j)
{
    const struct job_row *r = &j->row;
    return (struct saves){core_interval_with(j, r->save_ms, r->pause_ms),
        .pause_ms = min_i64(r->pause_ms, PAUSE_MAX_MS)};
}

/* The worst case of a job that has not been saved yet. */
static struct saves saves_unknown(const struct job *j)
{
    struct saves s = {core_interval_with(j, PAUSE_UNKNOWN_MS, PAUSE_UNKNOWN_MS), PAUSE_UNKNOWN_MS};
    s.pause_ms = min_i64(s.pause_ms, s.every_ms / PAUSE_PART);
    return s;
}

/* Time that the attempt has run since its last save, with the pause of the next one. */
static int64_t unsaved_ms(const struct attempt *a, struct wall now)
{
    return since_ms(attempt_has_saved(a) ? a->job->row.last_good_at : a->row.started_at, now);
}

/* Work in that time: until a save is due, and again after its pause. */
static int64_t worked_ms(struct saves s, int64_t unsaved_ms)
{
    return unsaved_ms <= s.every_ms ? unsaved_ms : max_i64(s.every_ms, unsaved_ms - s.pause_ms);
}

/* Pauses during this much further work, with the rest of the current one. */
static int64_t pauses_ms(struct saves s, int64_t unsaved_ms, int64_t work_ms)
{
    if (s.every_ms == 0 || work_ms == 0)
        return 0;
    int64_t since = worked_ms(s, unsaved_ms), paused = max_i64(unsaved_ms - s.every_ms, 0);
    if (paused >= s.pause_ms) { /* it is over: the next one is due an interval later */
        since %= s.every_ms;
        paused = 0;
    }
    return (since + work_ms - 1) / s.every_ms * s.pause_ms - paused; /* none at its end */
}

/* The most work in this time on the clock, of which pauses are a part. */
static int64_t work_within_ms(struct saves s, int64_t ms)
{
    return s.every_ms == 0 || ms == 0 ? ms : ms - (ms - 1) / (s.every_ms + s.pause_ms) * s.pause_ms;
}

void procurement_saved(struct attempt *a, struct wall saved_at, int64_t pause_ms)
{
    a->job->row.done_ms += max_i64(unsaved_ms(a, saved_at) - pause_ms, 0);
}

static int64_t since_save_ms(const struct job *j, struct wall now)
{
    const struct attempt *a = job_attempt(j);
    return a && a->row.state != ATTEMPT_ASSIGNED ? unsaved_ms(a, now) : 0;
}

static int64_t done_ms(const struct job *j, struct wall now)
{
    return j->row.done_ms + worked_ms(saves_of(j), since_save_ms(j, now));
}

/* ---- progress reports ---- */

/* Progress at which the attempt began, in its program's units; PROGRESS_NONE if unknown. */
static int64_t began_at(const struct attempt *a)
{
    return a->row.restored.attempt > 0 ? a->row.restored_progress : 0;
}

/* Duration of all work, extrapolated from the rate since `progress` in took_ms, without pauses; 0
 * if the progress is less than one part'th of all. */
static int64_t whole_since(
    const struct model *m, const struct job_row *r, int64_t progress, int64_t took_ms, int64_t part)
{
    int64_t got = progress == PROGRESS_NONE ? 0 : r->progress - progress;
    if (got < max_i64(r->progress_total / part, 1) ||
        took_ms < SHOWN_LOOKS * m->deadline.options.look_ms)
        return 0;
    return (int64_t)((double)took_ms * (double)r->progress_total / (double)got);
}

static int64_t part_of(int64_t whole_ms, int64_t progress, const struct job_row *r)
{
    return (int64_t)((double)whole_ms * (double)max_i64(progress, 0) / (double)r->progress_total);
}

void procurement_progressed(const struct model *m, struct job *j, struct wall at)
{
    struct job_row *r = &j->row;
    const struct attempt *a = job_attempt(j);
    if (r->spec.finish_ms <= 0 || r->progress < 0 || r->progress_total <= 0 || !a)
        return;
    struct work_seen *seen = &job_make_side(j)->seen;
    if (seen->attempt != a->row.attempt || r->progress < seen->last) {
        seen->attempt = a->row.attempt;
        seen->first = r->progress;
        seen->at = at;
        seen->paused_ms = a->row.save_ms;
    } else if (r->progress == seen->last) {
        return; /* a repeated report has no information about the rate */
    }
    seen->last = r->progress;
    /* An earlier attempt's result is used until this one has shown enough. */
    bool is_new = seen->whole_ms == 0 || seen->rated == a->row.attempt;
    int64_t began = began_at(a),
            took_ms = since_ms(seen->at, at) - (a->row.save_ms - seen->paused_ms),
            whole_ms = whole_since(m, r, seen->first, took_ms, is_new ? SHOWN_LEAST : SHOWN_SURE);
    if (whole_ms > 0) {
        seen->whole_ms = whole_ms;
        seen->rated = a->row.attempt;
        if (began != PROGRESS_NONE)
            seen->warm_ms = max_i64(since_ms(a->row.started_at, seen->at) - seen->paused_ms -
                                        part_of(whole_ms, seen->first - began, r),
                0);
    } else if (seen->whole_ms > 0) {
        whole_ms = seen->whole_ms;
    } else { /* includes the warm-up, which is not separable yet */
        whole_ms =
            whole_since(m, r, began, since_ms(a->row.started_at, at) - a->row.save_ms, SHOWN_SURE);
    }
    if (whole_ms > 0)
        r->shown_ms =
            max_i64(done_ms(j, at) + part_of(whole_ms, r->progress_total - r->progress, r), 1);
}

int64_t procurement_work_warm_ms(const struct job *j)
{
    return job_side(j)->seen.warm_ms;
}

/* Time that the attempt has run without work. */
static int64_t warmed_ms(const struct job *j, struct wall now)
{
    const struct attempt *a = job_attempt(j);
    const struct work_seen *seen = &job_side(j)->seen;
    return a && seen->attempt != a->row.attempt
               ? min_i64(since_ms(a->row.started_at, now), seen->warm_ms)
               : 0;
}

int64_t procurement_work_warming_ms(const struct job *j, struct wall now)
{
    const struct attempt *a = job_attempt(j);
    const struct work_seen *seen = &job_side(j)->seen;
    return a && wall_is_set(a->row.started_at) && seen->attempt != a->row.attempt
               ? seen->warm_ms - warmed_ms(j, now)
               : 0;
}

/* ---- remaining work ---- */

static int64_t over_ms(int64_t ms, int64_t pct)
{
    return ms / 100 * pct;
}

/* Margin on the remaining work shown by progress. */
static int64_t shown_margin_ms(const struct job_row *r, int64_t shown_ms, int64_t left_ms)
{
    int64_t pct = SHOWN_PCT;
    if (r->progress > 0 && r->progress < r->progress_total / SHOWN_SURE)
        pct = min_i64(
            (int64_t)(SHOWN_PCT * ((double)r->progress_total / SHOWN_SURE) / (double)r->progress),
            SHOWN_PCT * SHOWN_LEAST / SHOWN_SURE);
    return max_i64(over_ms(left_ms, pct), shown_ms / SHOWN_LEAST);
}

struct work_terms procurement_work_terms(const struct model *m, const struct job *j)
{
    const struct job_row *r = &j->row;
    return (struct work_terms){.work_ms = r->spec.work_ms,
        .time_limit_ms = r->spec.time_limit_ms,
        .finish_ms = r->spec.finish_ms,
        .shown_ms = r->shown_ms,
        .margin_pct = m->deadline.options.work_margin_pct};
}

/* Whether an attempt that reaches --time ends the job. */
static bool is_ended_by_limit(const struct job *j)
{
    return retries_left(&j->row, RETRY_TIMEOUT) == 0;
}

/* The most work that --time leaves it; 0: there is no limit. */
static int64_t limit_ms(const struct job *j, struct saves s, int64_t time_limit_ms)
{
    return is_ended_by_limit(j) ? work_within_ms(s, time_limit_ms) : time_limit_ms;
}

/* Work without pauses; the header says what --time bounds. */
static struct work_left work_alone(
    const struct job *j, const struct work_terms *t, struct saves s, struct wall now)
{
    const struct job_row *r = &j->row;
    int64_t done = max_i64(done_ms(j, now) - warmed_ms(j, now), 0);
    int64_t stated_ms = t->work_ms > 0 ? t->work_ms : t->time_limit_ms,
            margin = t->work_ms > 0 ? over_ms(stated_ms, t->margin_pct) : 0;
    /* better than any estimate at the submit */
    int64_t whole = t->shown_ms > 0 ? t->shown_ms : stated_ms;
    int64_t left = whole > done ? whole - done : whole * OVER_PCT / 100, worst = whole + margin;
    if (t->shown_ms > 0)
        worst = done + left + shown_margin_ms(r, t->shown_ms, left);
    const int64_t most = limit_ms(j, s, t->time_limit_ms);
    bool is_limited = most > 0 && worst >= most;
    if (is_limited)
        worst = most;
    return (struct work_left){.ms = left,
        .worst_ms = max_i64(left, worst - done),
        .whole_ms = whole,
        .done_ms = done,
        .source = is_limited ? WORST_BY_LIMIT : WORST_BY_MARGIN};
}

struct work_left procurement_work_left_if(
    const struct job *j, const struct work_terms *t, struct wall now)
{
    struct saves s = saves_of(j);
    struct work_left w = work_alone(j, t, s, now);
    int64_t unsaved = since_save_ms(j, now), pauses = pauses_ms(s, unsaved, w.ms);
    if (j->row.save_ms > 0) {
        int64_t added = pauses_ms(s, unsaved, w.worst_ms);
        w.worst_pauses_ms = w.source == WORST_BY_LIMIT && is_ended_by_limit(j) ? 0 : added;
        w.worst_ms += added;
    } else { /* the margin is for all that is not known yet */
        int64_t assumed = pauses_ms(saves_unknown(j), 0, w.ms);
        if (w.ms + assumed > w.worst_ms) {
            w.worst_ms = w.ms + assumed;
            w.worst_pauses_ms = assumed;
            w.source = WORST_BY_PAUSES;
        }
    }
    w.ms += pauses;
    w.whole_ms += pauses_ms(s, 0, w.whole_ms);
    w.done_ms += pauses_ms(s, 0, w.done_ms);
    w.unsaved_ms = unsaved;
    w.finish_ms = t->finish_ms;
    return w;
}

struct first_save procurement_work_first_save(const struct job *j, const struct work_left *w)
{
    const struct saves s = saves_unknown(j);
    const int64_t most_ms = limit_ms(j, s, j->row.spec.time_limit_ms);
    int64_t shown_ms = w->ms + over_ms(w->ms, SHOWN_PCT);
    if (most_ms > 0)
        shown_ms = max_i64(w->ms, min_i64(shown_ms, most_ms - w->done_ms));
    shown_ms += pauses_ms(s, 0, shown_ms);
    return (struct first_save){s.pause_ms, s.every_ms, max_i64(w->worst_ms, shown_ms)};
}

struct work_left procurement_work_left(const struct model *m, const struct job *j, struct wall now)
{
    const struct work_terms t = procurement_work_terms(m, j);
    return procurement_work_left_if(j, &t, now);
}
