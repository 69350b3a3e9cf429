/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds the disks of nodes are full for a while: their agents report it and refuse to
 * start attempts. Once belayd has answered such a status, it must place nothing there until a
 * status without a full disk was sent. Some jobs need more than is free on the other disks: belayd
 * must hold them after JOB_NO_SPACE_MAX starts (check.c). In other worlds the image of the elastic
 * pool fills the disk: each machine of the pool joins, and its disk is full from the first status
 * on. The launches of the pool are bounded (boots.c).
 */
#include "simtest/world.h"

#include "base/str.h"

#define FULL_MAX_MS 900000
#define STARTS_MAX 8 /* maximum number of starts of a job that is too large */

static bool disks_enabled(const struct world *w)
{
    return w->seed % SIM_DISKS == 3;
}

void disks_disturb(struct world *w)
{
    const struct link *l = list_first(&w->agents);
    if (!disks_enabled(w) || w->faults_over || !world_chance(w, 0.1))
        return;
    for (int64_t skip = world_between(w, 0, 5); l && skip > 0; skip--)
        l = list_next(&w->agents, l);
    if (l)
        LIST_ENTRY(l, struct sim_agent, in_world)->full_until_ms =
            world_now(w) + world_between(w, 1000, FULL_MAX_MS);
}

static bool image_is_full(const struct sim_agent *a)
{
    return a->machine && a->w->seed % SIM_FULL_IMAGES == 7;
}

bool disks_is_full(const struct sim_agent *a)
{
    return !a->w->faults_over && (image_is_full(a) || world_now(a->w) < a->full_until_ms);
}

bool disks_refuse(struct sim_agent *a, int64_t job)
{
    struct sim_job *j = world_job(a->w, job);
    if (disks_is_full(a))
        return true;
    if (!disks_enabled(a->w) || a->w->faults_over)
        return false;
    if (j->too_large == 0 && world_chance(a->w, 0.05))
        j->too_large = (int32_t)world_between(a->w, 1, STARTS_MAX);
    if (j->too_large == 0)
        return false;
    j->too_large--;
    return true;
}

void disks_sent(struct sim_agent *a, const struct wire_status *st)
{
    if (st->disk_full[0])
        return;
    a->space_seq = st->seq;
    a->is_full_reported = false;
}

void disks_answered(struct sim_agent *a, int64_t incarnation, const struct wire_status *st)
{
    if (st->disk_full[0] && incarnation == a->incarnation && st->seq > a->space_seq)
        a->is_full_reported = true;
}

void disks_forgotten(struct world *w)
{
    LIST_FOREACH (&w->agents, l)
        LIST_ENTRY(l, struct sim_agent, in_world)->is_full_reported = false;
}

void disks_committed_attempt(struct world *w, const struct attempt_row *r)
{
    LIST_FOREACH (&w->agents, l) {
        const struct sim_agent *a = LIST_ENTRY(l, struct sim_agent, in_world);
        if (a->node == r->node && !a->dead && a->is_full_reported)
            world_fail(w, "job %lld was placed on node %lld, whose disk is full", (long long)r->job,
                (long long)r->node);
    }
}
