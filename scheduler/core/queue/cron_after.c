/* SPDX-License-Identifier: Apache-2.0
 *
 * Cron entries that run after another one (cron_row.after). They have no schedule. Each scheduled
 * time of the other becomes one of theirs when it is settled there, in the event that settles it:
 *
 *  its run ended, well or as after_end allows ---> next_at is this time: due at once (crons.c)
 *  its run ended otherwise                    ---> SKIPPED, with the reason
 *  it had no run: skipped, refused, missed    ---> SKIPPED, with the reason
 *
 * Invariants: no entry runs, directly or through others, after itself. The times that an entry
 * takes are later than follows_from, which is not before any time that it decided when it got this
 * predecessor: so no time is decided twice. Runs by hand and of single dates are not followed.
 */
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/cron_after.h"
#include "scheduler/core/queue/crons.h"
#include "scheduler/core/queue/crons_private.h"
#include "scheduler/core/queue/queue_state.h"

#include "base/str.h"
#include "scheduler/core/model/state.h"
#include <inttypes.h>

#define COUNT_MAX 100000 /* maximum count of missed times that is reported */

/* Iterates over the active entries after c; *pos begins at 0. */
static struct cron_entry *next_follower(
    const struct model *m, const struct cron_entry *c, size_t *pos)
{
    struct cron_entry *f;
    if (m->queue.crons_after == 0)
        return NULL;
    while ((f = map_next(&m->queue.crons, pos, &(int64_t){0})) != NULL)
        if (f->row.after == c->row.id)
            return f;
    return NULL;
}

static bool takes(const struct cron_entry *f, struct wall at)
{
    return f->row.state == CRON_ACTIVE && at.ms > f->row.follows_from.ms;
}

void cron_after_run(
    struct model *m, const struct cron_entry *c, const struct job_row *job, struct stamp now)
{
    struct cron_entry *f;
    char why[CORE_TEXT_MAX];
    for (size_t pos = 0; (f = next_follower(m, c, &pos)) != NULL;) {
        if (!takes(f, job->cron_at))
            continue;
        if (job->end != END_SUCCEEDED && f->row.after_end == CRON_AFTER_WELL) {
            text_format(why, sizeof why, "job %s of '%s' did not end well: %s", job_ref(job).s,
                c->row.name, end_kind_names[job->end]);
            cron_skip(m, f, job->cron_at, CORE_ID_NONE, now, why);
        } else if (!cron_is_runnable(f)) {
            cron_skip(m, f, job->cron_at, CORE_ID_NONE, now, f->why);
        } else if (wall_is_set(f->row.next_at)) {
            cron_wait(m, f, job->cron_at, now);
        } else {
            f->row.next_at = job->cron_at;
            touch_cron(m, f);
            cron_reschedule(m, f);
        }
    }
}

void cron_after_none(
    struct model *m, const struct cron_entry *c, struct wall at, struct stamp now, const char *why)
{
    struct cron_entry *f;
    char text[CORE_TEXT_MAX];
    text_format(text, sizeof text, "'%s' did not run: %.160s", c->row.name, why);
    for (size_t pos = 0; (f = next_follower(m, c, &pos)) != NULL;)
        if (takes(f, at))
            cron_skip(m, f, at, CORE_ID_NONE, now, text);
}

void cron_after_missed(struct model *m, const struct cron_entry *root, const struct cron_entry *c,
    struct wall after, struct wall until, struct stamp now)
{
    struct cron_entry *f;
    for (size_t pos = 0; (f = next_follower(m, c, &pos)) != NULL;) {
        struct wall from = {after.ms > f->row.follows_from.ms ? after.ms : f->row.follows_from.ms};
        int64_t n =
            f->row.state == CRON_ACTIVE ? cron_count_times(root, from, until, COUNT_MAX) : 0;
        if (n == 0)
            continue;
        f->row.missed += n;
        cron_undone(m, f, until, "belayd was not running at that time");
        cron_add_run(m, f, cron_next_after(root, from), CRON_MISSED, CORE_ID_NONE, now,
            "'%s' did not run: belayd was not running", c->row.name)
            ->times = n;
        cron_after_missed(m, root, f, from, until, now);
    }
}

int cron_after_check(const struct model *m, const struct cron_entry *c, const char *user,
    int64_t after, struct err *e)
{
    const struct cron_entry *other = map_get(&m->queue.crons, after);
    if (!other || !str_eq(other->row.user, user))
        return err_set(e, ERR_INVALID,
            "after: %s has no cron entry %" PRId64 ", and an entry runs after another of the same "
            "user",
            user, after);
    for (const struct cron_entry *o = other; c && o; o = map_get(&m->queue.crons, o->row.after))
        if (o == c)
            return err_set(e, ERR_INVALID,
                "after: cron entry '%s' runs after '%s' already, directly or through others",
                other->row.name, c->row.name);
    return 0;
}

const struct cron_entry *cron_follower(const struct model *m, const struct cron_entry *c)
{
    return next_follower(m, c, &(size_t){0});
}

const struct cron_entry *core_cron_root(const struct model *m, const struct cron_entry *c)
{
    const struct cron_entry *o = c;
    for (int k = 0; o && k < CRONS_MAX; k++, o = map_get(&m->queue.crons, o->row.after))
        c = o;
    return c;
}
