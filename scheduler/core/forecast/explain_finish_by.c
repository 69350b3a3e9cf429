/* SPDX-License-Identifier: Apache-2.0
 *
 * Reasons about --finish-by: the work that is reckoned with, and what keeps the job off spot.
 */
#include "scheduler/core/forecast/explain_private.h"

#include "scheduler/core/deadline/procurement_margin.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/model/text.h"
#include <inttypes.h>

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)

struct said {
    char s[CORE_TEXT_MAX];
};

/* As options take it: "7h", "450m". */
static struct said option_time(int64_t ms)
{
    struct said t;
    if (ms % HOUR_MS == 0)
        text_format(t.s, sizeof t.s, "%" PRId64 "h", ms / HOUR_MS);
    else
        text_format(t.s, sizeof t.s, "%" PRId64 "m", ms / MINUTE_MS);
    return t;
}

static struct said reckoned(const struct procurement_margin *g)
{
    struct said t = {""};
    char work[32], worst[32], pauses[32];
    time_format_duration(g->work_ms, work, sizeof work);
    time_format_duration(g->worst_ms, worst, sizeof worst);
    time_format_duration(g->worst_pauses_ms, pauses, sizeof pauses);
    switch (g->source) {
    case MARGIN_OF_WORK:
        text_format(t.s, sizeof t.s,
            "about %s of work (--work) are left, reckoned as up to %s (work_margin %d %%) until "
            "its program reports progress",
            work, worst, (int)g->work_margin_pct);
        break;
    case MARGIN_TO_LIMIT:
        text_format(t.s, sizeof t.s,
            "about %s of work (--work) are left, reckoned as up to %s, its time limit "
            "(--time)%s%s%s, "
            "until its program reports progress",
            work, worst, g->worst_pauses_ms > 0 ? " and " : "",
            g->worst_pauses_ms > 0 ? pauses : "",
            g->worst_pauses_ms > 0 ? " of pauses of its saves" : "");
        break;
    case MARGIN_OF_PAUSES:
        text_format(t.s, sizeof t.s,
            "about %s of work (--work) are left, reckoned as up to %s with %s of pauses until one "
            "of its saves has been measured",
            work, worst, pauses);
        break;
    case MARGIN_OF_PROGRESS:
        text_format(t.s, sizeof t.s,
            "about %s of work are left, as its progress shows, reckoned as up to %s", work, worst);
        break;
    case MARGIN_ONLY_LIMIT:
        text_format(t.s, sizeof t.s,
            "its work is reckoned as what is left of its time limit (--time), %s, because --work "
            "is not given",
            work);
        break;
    }
    return t;
}

static struct said remedy_of(const struct procurement_margin *g)
{
    struct said t = {""};
    char in[32];
    if (g->time_limit_ms > 0)
        text_format(t.s, sizeof t.s,
            "; it could use spot with --time %s, after which it is ended%s",
            option_time(g->time_limit_ms).s,
            g->progress_helps ? ", or once its progress shows a twentieth of the work" : "");
    else if (g->progress_helps)
        text_format(
            t.s, sizeof t.s, "; it could use spot once its progress shows a twentieth of the work");
    else if (g->finish_in_ms > 0) {
        time_format_duration(g->finish_in_ms, in, sizeof in);
        text_format(t.s, sizeof t.s,
            "; it could use spot with a deadline %s from now (--finish-by +%s)", in,
            option_time(g->finish_in_ms).s);
    }
    return t;
}

static void explain_margin(
    const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    struct procurement_margin g;
    if (procurement_margin_of(m, j, now, &g))
        explain_add_reason(
            a, g.is_binding ? "work-margin" : "work", "%s%s", reckoned(&g).s, remedy_of(&g).s);
}

static void explain_late(const struct model *m, struct stamp now, const struct job *j,
    int64_t takes_ms, bool on_demand, struct answer *a)
{
    char takes[32], left[32], by[32], in[32], remedy[160] = "";
    int64_t left_ms = j->row.spec.finish_ms - now.wall.ms, in_ms;
    time_format_duration(takes_ms, takes, sizeof takes);
    if (left_ms <= 0) {
        explain_add_reason(a, "late", "it is late, and takes about %s more", takes);
        return;
    }
    time_format_duration(left_ms, left, sizeof left);
    time_format_duration(takes_ms - left_ms, by, sizeof by);
    in_ms = procurement_margin_in_time_ms(m, j, now);
    if (in_ms > 0) {
        time_format_duration(in_ms, in, sizeof in);
        text_format(remedy, sizeof remedy,
            "; %s is expected to meet a deadline %s from now (--finish-by +%s)",
            on_demand ? "on-demand" : "it", in, option_time(in_ms).s);
    }
    explain_add_reason(a, "late",
        "it is expected to be late: it takes about %s%s, and %s are left, so the deadline is "
        "infeasible by %s%s",
        takes, on_demand ? ", on-demand from now on" : " if it runs from now on", left, by, remedy);
}

/* The limit ends each attempt, and nothing starts another one. */
static void explain_time_limit(const struct job *j, struct answer *a)
{
    char limit[32], work[32];
    const struct job_spec *s = &j->row.spec;
    if (s->time_limit_ms == 0 || s->work_ms <= s->time_limit_ms ||
        retries_left(&j->row, RETRY_TIMEOUT) != 0)
        return;
    time_format_duration(s->time_limit_ms, limit, sizeof limit);
    time_format_duration(s->work_ms, work, sizeof work);
    explain_add_reason(a, "time-limit",
        "it is ended after %s (--time), before its work of %s (--work) is done; a higher --time "
        "or --retry timeout=N prevents that",
        limit, work);
}

void explain_finish_by(
    const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    char in[32], why[CORE_TEXT_MAX];
    int64_t takes_ms, left_ms = j->row.spec.finish_ms - now.wall.ms;
    if (a->n == a->max || !core_procurement_why(m, j, now, why, sizeof why))
        return;
    bool on_demand;
    bool is_late = core_procurement_late(m, j, now, &takes_ms, &on_demand);
    if (!is_late)
        explain_margin(m, now, j, a);
    time_format_duration(left_ms > 0 ? left_ms : -left_ms, in, sizeof in);
    explain_add_reason(a, "finish-by",
        left_ms > 0 ? "its finish time is in %s; %s" : "its finish time was %s ago; %s", in, why);
    explain_time_limit(j, a);
    if (is_late)
        explain_late(m, now, j, takes_ms, on_demand, a);
}
