/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of cron entries that are to be done by a time of the day (cron_row.done_by). At that time,
 * the last scheduled time before it counts, if it is not older than a day: its run has ended well,
 * or notifications are created with the reason. One event does this and sets checked_at, so it is
 * done once. After downtime of belayd only the latest of these times is checked. A time on a day
 * that a calendar leaves out is not expected, nor one before the entry was changed or resumed.
 */
#include "scheduler/core/forecast/explain.h"
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/forecast/runtimes.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/cron_after.h"
#include "scheduler/core/queue/cron_days.h"
#include "scheduler/core/queue/crons_private.h"
#include "scheduler/core/queue/queue_state.h"

#include "base/str.h"
#include "scheduler/core/model/state.h"
#include <inttypes.h>

#define NIGHT_MS (25 * 3600000LL) /* a day on which the clocks are put back */

struct wall cron_check_due(const struct cron_entry *c)
{
    if (c->row.done_by == 0 || c->row.state != CRON_ACTIVE || !c->zone)
        return WALL_NONE;
    return cron_next_minute(c->zone, c->row.done_by - 1, c->row.checked_at);
}

void cron_undone(struct model *m, struct cron_entry *c, struct wall at, const char *why)
{
    c->row.undone_at = at;
    text_format(c->row.undone, sizeof c->row.undone, "%.190s", why);
    touch_cron(m, c);
}

void cron_run_ended(struct model *m, struct cron_entry *c, const struct job_row *job)
{
    char why[CORE_TEXT_MAX];
    text_format(
        why, sizeof why, "job %s did not end well: %s", job_ref(job).s, end_kind_names[job->end]);
    if (job->end != END_SUCCEEDED)
        cron_undone(m, c, job->cron_at, why);
    else if (job->cron_at.ms > c->row.done_at.ms)
        c->row.done_at = job->cron_at;
    touch_cron(m, c);
}

/* ---- why a run is not done ---- */

static void describe_running(const struct model *m, const struct cron_entry *c, const struct job *j,
    struct stamp now, char ret_why[CORE_TEXT_MAX])
{
    const struct attempt *a = job_attempt(j);
    char since[ZONE_TIME_MAX], end[ZONE_TIME_MAX];
    if (!a || !wall_is_set(a->row.started_at)) {
        text_format(ret_why, CORE_TEXT_MAX, "job %s is starting", job_ref(&j->row).s);
        return;
    }
    int64_t ran_ms = now.wall.ms - a->row.started_at.ms;
    int64_t all_ms =
        runtimes_mean(runtimes_of(m, j), j->row.spec.time_limit_ms, ran_ms > 0 ? ran_ms : 0);
    zone_format(c->zone, a->row.started_at, since);
    zone_format(c->zone, (struct wall){(a->row.started_at.ms + all_ms) / 60000 * 60000}, end);
    text_format(ret_why, CORE_TEXT_MAX,
        "job %s runs since %s; from earlier runs it is expected to end about %s",
        job_ref(&j->row).s, since, end);
}

static void describe_job(const struct model *m, const struct cron_entry *c, const struct job *j,
    struct stamp now, char ret_why[CORE_TEXT_MAX])
{
    struct explain_memo memo = {0};
    struct reason reason;
    if (j->row.state == JOB_RUNNING)
        describe_running(m, c, j, now, ret_why);
    else if (core_explain_first(m, now, j->row.id, &memo, &reason))
        text_format(
            ret_why, CORE_TEXT_MAX, "job %s waits: %.160s", job_ref(&j->row).s, reason.text);
    else
        text_format(ret_why, CORE_TEXT_MAX, "job %s is about to start", job_ref(&j->row).s);
}

/* Writes why the run of c for this time is not done. For an entry that runs after others it is the
 * reason of the first of them that is not done. */
static void describe(const struct model *m, const struct cron_entry *c, struct wall at,
    struct stamp now, char ret_why[CORE_TEXT_MAX])
{
    const struct job *j = model_job(m, c->row.last_job);
    const struct cron_entry *before = model_cron(m, c->row.after);
    if (c->why[0])
        text_format(ret_why, CORE_TEXT_MAX, "%s", c->why);
    else if (j && j->row.cron_at.ms == at.ms)
        describe_job(m, c, j, now, ret_why);
    else if (c->row.undone_at.ms >= at.ms) /* later: of several that were missed, the last */
        text_format(ret_why, CORE_TEXT_MAX, "%s", c->row.undone);
    else if (j && j->row.cron_at.ms < at.ms)
        text_format(ret_why, CORE_TEXT_MAX,
            "it has not started: job %s of an earlier time has not ended", job_ref(&j->row).s);
    else if (before && before->row.done_at.ms < at.ms)
        describe(m, before, at, now, ret_why);
    else
        text_format(ret_why, CORE_TEXT_MAX, "it has not started");
}

/* ---- the check ---- */

/* The last scheduled time in (after, before) that no calendar leaves out; WALL_NONE: none. */
static struct wall last_time(
    const struct model *m, const struct cron_entry *c, struct wall after, struct wall before)
{
    const struct cron_entry *root = core_cron_root(m, c);
    char unused[CORE_TEXT_MAX];
    struct wall last = WALL_NONE;
    for (struct wall t = cron_next_after(root, after); wall_is_set(t) && t.ms < before.ms;
         t = cron_next_after(root, t))
        if (!core_cron_leaves_out(m, c, t, unused))
            last = t;
    return last;
}

void cron_check_done(struct model *m, struct cron_entry *c, struct wall check, struct stamp now)
{
    char why[CORE_TEXT_MAX];
    struct wall next;
    while (wall_is_set(next = cron_next_minute(c->zone, c->row.done_by - 1, check)) &&
           next.ms <= now.wall.ms)
        check = next;
    struct wall after = c->row.checked_at;
    if (after.ms < check.ms - NIGHT_MS)
        after.ms = check.ms - NIGHT_MS;
    c->row.checked_at = check;
    touch_cron(m, c);
    struct wall at = core_cron_root(m, c)->zone ? last_time(m, c, after, check) : WALL_NONE;
    if (!wall_is_set(at) || c->row.done_at.ms >= at.ms)
        return;
    describe(m, c, at, now, why);
    notify_late(m, c, at, check, why, now);
}
