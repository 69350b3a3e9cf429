/* SPDX-License-Identifier: Apache-2.0
 *
 * Budgets, as configured and as shown to users: what matching jobs may cost in a period, and what
 * happens at the limit. PURE. How the model keeps them is in budgets.h.
 *
 * At placement, the expected cost of a job up to its end, or up to the end of the period, is
 * reserved (set aside); what it does not use is released. The expected run time is the job's time
 * limit; without one that of the longest recent job of its name, or of its user; else one hour.
 * Spent plus reserved cost decides which jobs may start:
 *
 *     alert      All jobs start. Spent thresholds are notified.
 *     stop-new   A job starts if its whole expected cost fits into the rest. Running jobs continue.
 *     park       As stop-new, but for a job that can be saved and stopped at any time only the next
 *                BUDGET_SLICE_MS are reserved. Before the budget is exhausted the running jobs are
 *                saved and stopped, early enough to pay for their last save. No job starts until
 *                the next period or until the budget grows. A job that cannot be saved (no method,
 *                --no-requeue) is not stopped: its whole expected cost stays reserved.
 *
 * On machines without cost jobs run regardless of the rest. Only the time of jobs counts, not that
 * of booting or idle machines.
 *
 * Bound on the overrun of a period:
 *     park       sum over stopped jobs of price * max(0, duration of their saves and stops -
 *                allowance of half a minute and twice their last save); for jobs that are not
 *                stopped as stop-new
 *     stop-new   sum over running jobs of price * max(0, run time - expected run time); 0 if all
 *                have time limits
 *  plus price increases of running machines (with park until the next save), the time for which
 *  nodes of a gang were empty before it was complete, and launches that are reported late.
 *
 * A job's own cap (--max-usd) is a budget of one job without a period, with action park.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_BUDGET_OPTIONS_H
#define BELAY_SCHEDULER_CORE_QUEUE_BUDGET_OPTIONS_H

#include "scheduler/core/model/rows.h"

#define BUDGETS_MAX 64
#define BUDGET_LABELS_MAX 8
#define BUDGET_ALERTS_MAX 8
#define BUDGET_MAILS_MAX 4
#define BUDGET_SLICE_MS 600000LL
#define BUDGET_USD_MAX 1000000000LL

enum budget_period { BUDGET_HOUR, BUDGET_DAY, BUDGET_MONTH, BUDGET_WINDOW };
extern const char *const budget_period_names[]; /* "hour" "day" "month" "window" */
enum budget_action { BUDGET_ALERT, BUDGET_STOP_NEW, BUDGET_PARK };
extern const char *const budget_action_names[]; /* "alert" "stop-new" "park" */

struct budget_label {
    char name[CORE_NAME_MAX], value[CORE_TEXT_MAX];
};

/* As configured. "" matches all. */
struct budget_options {
    char name[CORE_NAME_MAX];
    /* the label `team`, or without one the team that the job belongs to */
    char team[CORE_NAME_MAX];
    char user[CORE_NAME_MAX];
    char pool[CORE_NAME_MAX];                      /* the pool that the job runs in */
    char job[CORE_NAME_MAX];                       /* the job's name */
    struct budget_label labels[BUDGET_LABELS_MAX]; /* all must match */
    size_t n_labels;
    enum budget_period period;
    /* BUDGET_WINDOW: a period is one opening of the window; at other times no cost counts. */
    const struct window *window;
    const struct time_zone *zone; /* of days and months; hours are in UTC */
    int64_t cap_uusd;
    enum budget_action at_limit;
    int32_t alert_pct[BUDGET_ALERTS_MAX]; /* > 0, ascending; each notified once per period */
    size_t n_alerts;
    int32_t n_mails; /* number of mail addresses; the core does not have the addresses */
};

/* Period that contains `at`: true with its bounds. False if there is none; the next begins at
 * *ret_until (WALL_NONE: never). The begin of a window's opening is unknown: *ret_since is `at`
 * then. */
bool budget_period_at(
    const struct budget_options *o, struct wall at, struct wall *ret_since, struct wall *ret_until);

/* Text of what it counts: equal texts exactly if the same jobs and periods count. */
void budget_about(const struct budget_options *o, char out[BUDGET_ABOUT_MAX]);

/* Current state of a budget, for users. */
struct budget_view {
    const struct budget_options *options; /* borrowed for the model's life */
    bool is_open;                         /* in a period; false: between two openings of a window */
    bool is_closed;                       /* exhausted for this period: no further job starts */
    /* Of the period; if not open, until is the next opening. WALL_NONE: unknown, or never. */
    struct wall since, until;
    int64_t spent_uusd;
    int64_t reserved_uusd; /* reserved for running jobs, beyond their cost so far */
    int64_t uusd_h;        /* hourly cost of running jobs */
    int64_t jobs;          /* running jobs */
    int32_t notified_pct;  /* highest notified threshold; 0 = none */
};

struct model;
size_t core_budgets(const struct model *m);
void core_budget(const struct model *m, size_t i, struct wall now, struct budget_view *ret_view);

#endif
