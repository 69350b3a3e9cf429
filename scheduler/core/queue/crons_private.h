/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the cron entries share.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_CRONS_PRIVATE_H
#define BELAY_SCHEDULER_CORE_QUEUE_CRONS_PRIVATE_H

#include "scheduler/core/model/model.h"

/* crons.c */

/* After a change of the row. */
void cron_reschedule(struct model *m, struct cron_entry *c);
bool cron_is_runnable(const struct cron_entry *c);
/* The first scheduled time after `after`; WALL_NONE for an entry that runs after another. */
struct wall cron_next_after(const struct cron_entry *c, struct wall after);
/* Number of scheduled times in (after, until], at most max. */
int64_t cron_count_times(
    const struct cron_entry *c, struct wall after, struct wall until, int64_t max);
/* Adds the outcome of a time: the row in cron_runs, not the counters. Entries after this one are
 * not told. */
struct cron_run_row *cron_add_run(struct model *m, struct cron_entry *c, struct wall at,
    enum cron_outcome outcome, int64_t job, struct stamp now, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));
/* The time is decided on: no run. The entries after this one skip it too. */
void cron_skip(struct model *m, struct cron_entry *c, struct wall at, int64_t job, struct stamp now,
    const char *why);
/* Lets the time, which was reached, wait for the end of the previous job, or skips it. */
void cron_wait(struct model *m, struct cron_entry *c, struct wall at, struct stamp now);

/* cron_days.c */

/* Whether the entry's own calendars leave out the day of this time. */
bool cron_leaves_out(const struct cron_entry *c, struct wall at, char ret_why[CORE_TEXT_MAX]);
#define CRON_NO_CALENDAR "its calendar" /* how the text `why` begins */
/* The calendars that the row names. ERR_INVALID. */
int cron_find_calendars(const struct model *m, const struct cron_row *r,
    const struct calendar **ret_skip_on, const struct calendar **ret_only_on, struct err *e);

/* cron_done_by.c: runs that are to be done by a time of the day. */

/* The next time at which a run is to be done; WALL_NONE: no check. */
struct wall cron_check_due(const struct cron_entry *c);
/* This time has come: creates notifications unless the run is done. */
void cron_check_done(struct model *m, struct cron_entry *c, struct wall check, struct stamp now);
/* A time is over without a run that ended well. */
void cron_undone(struct model *m, struct cron_entry *c, struct wall at, const char *why);
/* The run of a scheduled time has ended. */
void cron_run_ended(struct model *m, struct cron_entry *c, const struct job_row *job);

/* cron_after.c: entries that run after another one. */

static inline bool cron_follows(const struct cron_entry *c)
{
    return c->row.after != CORE_ID_NONE;
}

/* The run of a scheduled time of c has ended. */
void cron_after_run(
    struct model *m, const struct cron_entry *c, const struct job_row *job, struct stamp now);
/* A time of c passes without a run. */
void cron_after_none(
    struct model *m, const struct cron_entry *c, struct wall at, struct stamp now, const char *why);
/* The times of root in (after, until] were missed, and so c, which has root's times, has missed
 * them. */
void cron_after_missed(struct model *m, const struct cron_entry *root, const struct cron_entry *c,
    struct wall after, struct wall until, struct stamp now);
/* Whether c, which may be NULL for a new one of this user, may run after `after`. ERR_NOT_FOUND,
 * ERR_INVALID. */
int cron_after_check(const struct model *m, const struct cron_entry *c, const char *user,
    int64_t after, struct err *e);
/* An entry after c, or NULL. */
const struct cron_entry *cron_follower(const struct model *m, const struct cron_entry *c);

#endif
