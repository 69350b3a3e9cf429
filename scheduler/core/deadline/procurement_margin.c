/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/deadline/procurement_margin.h"

#include "base/minmax.h"
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/deadline/procurement_sight.h"
#include "scheduler/core/deadline/procurement_work.h"
#include "scheduler/core/model/state.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)
#define LIMIT_SPARE 20     /* a proposed limit exceeds the expected work by a twentieth of it */
#define FINISH_MOST_WORK 4 /* no later deadline is searched: multiple of the worst case */

struct search {
    const struct model *m;
    const struct job *j;
    struct stamp now;
    struct work_terms own;
};

static bool may_use_spot(const struct search *s, const struct work_terms *t)
{
    const struct work_left w = procurement_work_left_if(s->j, t, s->now.wall);
    return procurement_admits_spot(s->m, s->j, &w, s->now);
}

static bool may_with_limit(const struct search *s, int64_t minutes)
{
    struct work_terms t = s->own;
    t.time_limit_ms = minutes * MINUTE_MS;
    return may_use_spot(s, &t);
}

static bool may_with_finish(const struct search *s, int64_t minutes)
{
    struct work_terms t = s->own;
    t.finish_ms = s->now.wall.ms + minutes * MINUTE_MS;
    return may_use_spot(s, &t);
}

/* A limit of full hours, tens of minutes or minutes, as round as possible; 0: none. */
static int64_t highest_limit_ms(const struct search *s, const struct work_left *w)
{
    static const int64_t rounds[] = {60, 10, 1};
    const int64_t stated_ms = s->own.work_ms > 0 ? w->whole_ms : w->whole_ms / 2;
    int64_t least = (stated_ms + stated_ms / LIMIT_SPARE + MINUTE_MS - 1) / MINUTE_MS,
            high = (w->whole_ms - w->ms + w->worst_ms) / MINUTE_MS, low = least;
    if (least > high || !may_with_limit(s, least))
        return 0;
    while (low < high) {
        int64_t mid = low + (high - low + 1) / 2;
        if (may_with_limit(s, mid))
            low = mid;
        else
            high = mid - 1;
    }
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
        int64_t minutes = low / rounds[i] * rounds[i];
        if (minutes >= least && may_with_limit(s, minutes))
            return minutes * MINUTE_MS;
    }
    return 0;
}

/* In full tens of minutes; 0: none that is less than FINISH_MOST_WORK times its worst case. */
static int64_t earliest_finish_ms(const struct search *s, const struct work_left *w)
{
    int64_t low = max_i64(w->finish_ms - s->now.wall.ms, 0) / MINUTE_MS / 10,
            high = (FINISH_MOST_WORK * w->worst_ms + HOUR_MS) / MINUTE_MS / 10;
    if (low >= high || !may_with_finish(s, 10 * high))
        return 0;
    while (low + 1 < high) {
        int64_t mid = low + (high - low) / 2;
        if (may_with_finish(s, 10 * mid))
            high = mid;
        else
            low = mid;
    }
    return 10 * high * MINUTE_MS;
}

/* Progress shows the work as it was stated, and enough of it for the smallest margin. */
static bool would_with_progress(const struct search *s, const struct work_left *w)
{
    struct work_terms t = s->own;
    t.shown_ms = w->whole_ms;
    return s->own.shown_ms == 0 && may_use_spot(s, &t);
}

static enum margin_source source_of(const struct work_terms *t, const struct work_left *w)
{
    if (t->shown_ms > 0)
        return MARGIN_OF_PROGRESS;
    if (t->work_ms == 0)
        return MARGIN_ONLY_LIMIT;
    return w->source == WORST_BY_LIMIT    ? MARGIN_TO_LIMIT
           : w->source == WORST_BY_PAUSES ? MARGIN_OF_PAUSES
                                          : MARGIN_OF_WORK;
}

bool procurement_margin_of(const struct model *m, const struct job *j, struct stamp now,
    struct procurement_margin *ret_margin)
{
    struct sight sight;
    int64_t takes_ms;
    if (!procurement_is_decided(j))
        return false;
    procurement_sight(m, j, now, &sight);
    if (sight.sure_uusd_h == 0 || sight.n_spot == 0)
        return false;
    const struct search s = {.m = m, .j = j, .now = now, .own = procurement_work_terms(m, j)};
    const struct work_left w = procurement_work_left_if(j, &s.own, now.wall);
    struct procurement_margin r = {.source = source_of(&s.own, &w),
        .work_margin_pct = m->deadline.options.work_margin_pct,
        .work_ms = w.ms,
        .worst_ms = w.worst_ms,
        .worst_pauses_ms = w.worst_pauses_ms};
    if (!procurement_admits_spot(m, j, &w, now) &&
        procurement_hypothetical(m, j, now) == PROCURE_ON_DEMAND &&
        !procurement_is_late_if(m, j, &w, now, &takes_ms)) {
        r.progress_helps = would_with_progress(&s, &w);
        r.time_limit_ms = highest_limit_ms(&s, &w);
        if (r.time_limit_ms == 0)
            r.finish_in_ms = earliest_finish_ms(&s, &w);
        r.is_binding = r.progress_helps || r.time_limit_ms > 0 || r.finish_in_ms > 0;
    }
    *ret_margin = r;
    return true;
}

int64_t procurement_margin_in_time_ms(const struct model *m, const struct job *j, struct stamp now)
{
    struct work_terms t = procurement_work_terms(m, j);
    struct work_left w = procurement_work_left_if(j, &t, now.wall);
    int64_t takes_ms, in_ms;
    procurement_is_late_if(m, j, &w, now, &takes_ms);
    in_ms = (takes_ms + 5 * MINUTE_MS - 1) / (5 * MINUTE_MS) * (5 * MINUTE_MS);
    t.finish_ms = now.wall.ms + in_ms;
    w = procurement_work_left_if(j, &t, now.wall);
    return procurement_is_late_if(m, j, &w, now, &takes_ms) ? 0 : in_ms;
}
