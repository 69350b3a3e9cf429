/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds pools save and hold jobs whose GPUs are idle (scheduler/core/lifecycle/
 * idle_gpus.h). GPUs are reported idle and busy at random. Checked against committed data: a job is
 * held only after its owner was notified, its whole grace has passed and no GPU was reported busy
 * since; its owner did not opt out; and its attempt is stopped for that only after a new
 * checkpoint, so no work is lost. Its owner is notified once in such a spell, also across restarts
 * of belayd.
 */
#include "simtest/world.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define FOR_MS 60000
#define GRACE_MS 40000

bool idle_gpus_enabled(const struct world *w)
{
    return w->seed % SIM_IDLE_GPUS == 3;
}

void idle_gpus_policy(const struct world *w, struct pool_row *p)
{
    if (idle_gpus_enabled(w))
        p->idle_gpus = (struct idle_gpus_policy){
            .then = IDLE_GPUS_PARK, .busy_pct = 5, .for_ms = FOR_MS, .grace_ms = GRACE_MS};
}

/* ---- reports ---- */

struct report {
    struct world *w;
    int64_t job;
    bool is_busy;
};

static void on_reported(void *ctx, const struct err *e, int64_t id)
{
    struct report *r = ctx;
    (void)id;
    if (!e && r->is_busy)
        world_job(r->w, r->job)->idle.is_told = false;
    free(r);
}

static void post(struct world *w, const struct attempt *a, bool is_busy)
{
    struct event ev = {.type = EV_GPUS,
        .gpus = {.job = a->row.job,
            .attempt = a->row.attempt,
            .node = a->row.node,
            .idle_since = is_busy ? WALL_NONE : clock_wall(w->vt.timers.clock)}};
    struct report *r = mem_alloc(sizeof(*r));
    *r = (struct report){.w = w, .job = a->row.job, .is_busy = is_busy};
    tick_post(w->tick, &ev, on_reported, r);
}

void idle_gpus_disturb(struct world *w)
{
    if (!idle_gpus_enabled(w))
        return;
    LIST_FOREACH (model_nodes(w->model), l)
        LIST_FOREACH (&LIST_ENTRY(l, struct node, in_all)->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            bool is_idle = wall_is_set(a->row.gpus_idle_since);
            if (a->row.state != ATTEMPT_RUNNING)
                continue;
            if (w->faults_over ? is_idle : prng_chance(&w->options, is_idle ? 0.1 : 0.7))
                post(w, a, is_idle);
        }
}

/* ---- checks ---- */

static void check_notified(struct world *w, const struct outbox_row *r)
{
    struct sim_idle *i = &world_job(w, r->job)->idle;
    if (r->kind != NOTIFY_IDLE_GPUS || r->event <= i->event) /* another target, or try */
        return;
    if (i->is_told && i->attempt == r->attempt)
        world_fail(w, "job %lld: its owner was notified of idle GPUs twice", (long long)r->job);
    if (r->at.ms - r->idle_since.ms < FOR_MS)
        world_fail(w,
            "job %lld: its owner was notified although its GPUs were idle for only %lld ms",
            (long long)r->job, (long long)(r->at.ms - r->idle_since.ms));
    i->is_told = true;
    i->told_at = r->at;
    i->event = r->event;
    i->attempt = r->attempt;
}

static void check_held(struct world *w, const struct job_row *r)
{
    struct sim_idle *i = &world_job(w, r->id)->idle;
    bool is_held = r->hold == HOLD_IDLE_GPUS;
    if (is_held && !i->is_held) {
        int64_t waited_ms = clock_wall(w->vt.timers.clock).ms - i->told_at.ms;
        if (!i->is_told || i->attempt != r->attempts)
            world_fail(w,
                "job %lld is held for idle GPUs, but its owner was not notified, or they "
                "were busy since",
                (long long)r->id);
        if (i->is_told && waited_ms < GRACE_MS)
            world_fail(w, "job %lld is held for idle GPUs %lld ms after its owner was notified",
                (long long)r->id, (long long)waited_ms);
        if (r->spec.idle_gpus == IDLE_GPUS_KEEP || r->spec.method == CKPT_NONE)
            world_fail(w, "job %lld is held for idle GPUs, but keeps them, or cannot be saved",
                (long long)r->id);
        i->last_good = r->last_good;
        i->is_requeued = false;
    }
    if (i->is_held && !is_held)
        i->is_told = false; /* its save failed, or it was released */
    i->is_held = is_held;
}

/* A user may requeue a held job, or the array it is a task of, without a save. */
static void note_requeue(struct world *w, const struct history_row *r)
{
    if (str_eq(r->kind, "requeue"))
        world_job(w, r->job)->idle.is_requeued = true;
}

/* Of a rank that is stopped because of the hold. */
static void check_stopped(struct world *w, const struct attempt_row *r)
{
    const struct sim_job *j = world_job(w, r->job);
    if (j->idle.is_held && !j->idle.is_requeued && r->attempt == j->idle.attempt &&
        j->seen == JOB_RUNNING && r->state == ATTEMPT_STOPPING && r->stop_reason == END_CANCELLED &&
        ckpt_ref_compare(j->last_good, j->idle.last_good) <= 0)
        world_fail(
            w, "job %lld was stopped for idle GPUs without a new checkpoint", (long long)r->job);
}

void idle_gpus_committed(struct world *w, const struct changes *c)
{
    if (!idle_gpus_enabled(w))
        return;
    for (size_t i = 0; i < c->n_jobs; i++)
        check_held(w, &c->jobs[i]);
    for (size_t i = 0; i < c->n_history; i++)
        note_requeue(w, &c->history[i]);
    for (size_t i = 0; i < c->n_attempts; i++)
        check_stopped(w, &c->attempts[i]);
    for (size_t i = 0; i < c->n_outbox; i++)
        check_notified(w, &c->outbox[i]);
}
