/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetching by simulated agents: it may take longer than belayd waits, fail, or never end. Checks
 * what they are told to fetch, and that a job waits for one node at a time and not for ever.
 */
#include "simtest/world.h"

#include "base/str.h"
#include "scheduler/core/supply/prefetch.h"

#define SIM_PREFETCH_MAX_MS 31000 /* for which a job waits, by the size of its checkpoints */

static struct timers *timers(const struct sim_agent *a)
{
    return &a->w->vt.timers;
}

static void on_prefetched(struct timer *t, void *ctx)
{
    struct sim_agent *a = ctx;
    (void)t;
    a->prefetched.text[0] = '\0';
    if (world_chance(a->w, 0.1))
        STR_COPY(a->prefetched.text, "the simulated store refuses");
    else
        a->prefetched.sequence = a->prefetch_tried;
    agent_report(a);
}

void prefetches_init(struct sim_agent *a)
{
    timer_init(&a->prefetch, on_prefetched, a);
}

void prefetches_forget(struct sim_agent *a)
{
    timer_stop(timers(a), &a->prefetch);
    a->prefetched = (struct wire_prefetched){0};
    a->prefetch_tried = 0;
}

static bool runs(const struct sim_agent *a, int64_t job, int64_t attempt)
{
    LIST_FOREACH (&a->attempts, l) {
        const struct sim_attempt *x = LIST_ENTRY(l, struct sim_attempt, in_agent);
        if (x->job == job && x->attempt == attempt)
            return true;
    }
    return false;
}

/* Responses may be late, so an earlier order may arrive after a later one to another node. */
static void check_node(struct sim_agent *a, const struct wire_prefetch *x)
{
    struct world *w = a->w;
    struct sim_job *j = world_job(w, x->job);
    const int64_t boots = a->rev >> 32; /* which run of belayd it is from */
    bool is_same = j->prefetch_attempt == x->attempt && j->prefetch_boots == boots;
    if (is_same && j->prefetch_node != a->node &&
        world_now(w) - j->prefetch_since_ms < PREFETCH_AGAIN_MS / 2)
        world_fail(w,
            "attempt %lld of job %lld waits for node %lld to fetch its checkpoint, and already "
            "did for node %lld",
            (long long)x->attempt, (long long)x->job, (long long)a->node,
            (long long)j->prefetch_node);
    if (is_same && j->prefetch_node == a->node)
        return;
    j->prefetch_attempt = x->attempt;
    j->prefetch_boots = boots;
    j->prefetch_node = a->node;
    j->prefetch_since_ms = world_now(w);
}

/* Whatever its node reports, the job waits for a limited time. */
static void check_wait(const struct sim_agent *a, const struct wire_prefetch *x)
{
    struct world *w = a->w;
    const struct job *j = w->up ? model_job(w->model, x->job) : NULL;
    const struct attempt *t = j ? job_attempt(j) : NULL;
    const struct node *n = w->up ? model_node(w->model, a->node) : NULL;
    struct mono now = world_stamp(w).mono, until;
    if (t && n && t->row.attempt == x->attempt &&
        prefetch_step(t, n, now, &until) == PREFETCH_WAIT &&
        now.ms - t->prefetch.asked_at.ms > SIM_PREFETCH_MAX_MS)
        world_fail(w, "job %lld still waits for node %lld to fetch its checkpoint, after %lld s",
            (long long)x->job, (long long)a->node,
            (long long)(now.ms - t->prefetch.asked_at.ms) / 1000);
}

static void check_order(struct sim_agent *a, const struct wire_prefetch *x)
{
    struct ckpt_ref ref = {x->attempt, x->sequence};
    if (x->sequence == 0)
        return;
    if (ckpt_ref_compare(ref, store_newest(a->w, x->job)) > 0)
        world_fail(a->w,
            "node %lld is to fetch checkpoint %lld.%lld of job %lld, which nothing has saved",
            (long long)a->node, (long long)ref.attempt, (long long)ref.sequence, (long long)x->job);
    if (runs(a, x->job, x->attempt))
        world_fail(a->w, "node %lld is to fetch the checkpoint of job %lld, which it runs",
            (long long)a->node, (long long)x->job);
    check_node(a, x);
    check_wait(a, x);
}

void prefetches_ordered(struct sim_agent *a, const struct wire_prefetch *x)
{
    struct world *w = a->w;
    if (x->job != a->prefetched.job || x->attempt != a->prefetched.attempt)
        prefetches_forget(a);
    if (x->job == 0)
        return;
    check_order(a, x);
    a->prefetched.job = x->job;
    a->prefetched.attempt = x->attempt;
    if (x->sequence <= a->prefetch_tried || timer_is_running(&a->prefetch))
        return;
    a->prefetch_tried = x->sequence;
    w->prefetches++;
    if (!world_chance(w, 0.1))
        timer_start(timers(a), &a->prefetch,
            world_between(w, 50, world_chance(w, 0.1) ? 2 * SIM_PREFETCH_MAX_MS : 20000));
}

/* Some nodes have content of an earlier attempt; those that prefetched have most of it. */
int64_t prefetches_nearby(const struct sim_agent *a, const struct sim_attempt *x)
{
    int64_t all = sim_content_bytes(x->job);
    if (a->prefetched.job == x->job && a->prefetched.sequence > 0)
        return all - SIM_STORED_BYTES;
    return x->attempt % 3 == 0 ? all / 2 : 0;
}
