/* SPDX-License-Identifier: Apache-2.0
 *
 * Budgets: what jobs that match may cost in a period, and what becomes of them at the limit. PURE.
 *
 * What a job is expected to cost until it ends (by its time limit; without one as long as the
 * longest of the jobs of its name, or its user's, that ran lately; an hour where nobody knows), or
 * until the period does, is set aside when it is placed, and given back as far as it costs less. So
 * what is spent and what is set aside together decide what may begin:
 *
 *      alert      everything; it is only told when a part of it is spent
 *      stop-new   what fits into what is left with all that it is expected to cost. What runs goes
 *                 on
 *      park       likewise; but of a job that can be saved and stopped at any time only the next
 *                 BUDGET_SLICE_MS are set aside. Shortly before all is spent those that run are
 *                 saved and stopped, so early that their last save is paid; nothing begins until
 *                 the next period, or until there is more. A job that cannot be saved (no method,
 *                 --no-requeue) is not stopped: all that it is expected to cost stays set aside for
 *                 it
 *
 * On machines that cost nothing jobs run whatever the rest costs. What counts is the time of jobs:
 * that of machines that boot, or that nobody uses, is no job's.
 *
 * How much more than the cap a period may cost:
 *      park       sum over jobs that are stopped of price * (what their saves and stops take - what
 *                 was allowed for them: half a minute and twice their last save), where that is
 *                 more than 0; of those that are not stopped as below
 *      stop-new   sum over jobs that run of price * (how long they run - how long they were
 *                 expected to), where that is more than 0: 0 where all have time limits
 *   and by how much prices have risen for what runs, until the next save where it is park; the time
 *   that nodes of a gang have stood empty before it was complete; and what is told late of
 *   launches.
 *
 * A job's own cap (--max-usd) is a budget of one job without a period, that parks it.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_BUDGET_H
#define BELAY_SCHEDULER_CORE_QUEUE_BUDGET_H

#include "scheduler/core/model/types.h"

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

/* As the configuration has it. What is "" matches all. */
struct budget_options {
    char name[CORE_NAME_MAX];
    char team[CORE_NAME_MAX]; /* the label of that name, or without one whose share the job uses */
    char user[CORE_NAME_MAX];
    char pool[CORE_NAME_MAX];                      /* that it runs in */
    char job[CORE_NAME_MAX];                       /* its name */
    struct budget_label labels[BUDGET_LABELS_MAX]; /* all of them */
    size_t n_labels;
    enum budget_period period;
    /* BUDGET_WINDOW: each time that it is open; at other times nothing counts */
    const struct window *window;
    const struct time_zone *zone; /* of days and months; hours are those of UTC */
    int64_t cap_uusd;
    enum budget_action at_limit;
    int32_t alert_pct[BUDGET_ALERTS_MAX]; /* > 0, ascending: told once a period each */
    size_t n_alerts;
    int32_t n_mails; /* to so many addresses, which are not the core's matter */
};

/* Of the period that at is in: true, and from when to when that is; false: at is in none, and the
 * next begins at *ret_until (WALL_NONE: never). The begin of a window's is not known: *ret_since is
 * at. */
bool budget_period_at(
    const struct budget_options *o, struct wall at, struct wall *ret_since, struct wall *ret_until);

/* What it counts, in words that are the same exactly if it counts the same. */
void budget_about(const struct budget_options *o, char out[BUDGET_ABOUT_MAX]);

/* What a user is shown of one, as of now. */
struct budget_view {
    const struct budget_options *options; /* borrowed for the model's life */
    bool is_open;                         /* the period; false: a window's, between two of them */
    bool is_closed;                       /* nothing may begin in this period any more */
    /* of the period; not open: until: when it opens. WALL_NONE: not known, or never */
    struct wall since, until;
    int64_t spent_uusd;
    int64_t aside_uusd; /* what is set aside for what runs, beside what that has cost */
    int64_t uusd_h;     /* what runs costs an hour */
    int64_t jobs;       /* that run */
    int32_t told_pct;   /* the highest part that was told of; 0 */
};

struct model;
size_t core_budgets(const struct model *m);
void core_budget(const struct model *m, size_t i, struct wall now, struct budget_view *ret_view);

#endif
