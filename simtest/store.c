/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated checkpoint store: the rules of ckpt/ckpt.h (fences, growing names, fallback)
 * without contents.
 */
#include "simtest/world.h"

#include "base/mem.h"
#include "base/str.h"

#define KEPT 3 /* checkpoints that an agent keeps */

static struct sim_store_job *store_of_job(struct world *w, int64_t job)
{
    return &w->store[job - 1];
}

static void keep_newest(struct world *w, int64_t job, size_t n)
{
    struct sim_store_job *s = store_of_job(w, job);
    if (s->n <= n)
        return;
    traffic_store_changes(w, job, (int64_t)(s->n - n));
    s->away = s->away > s->n - n ? s->away - (s->n - n) : 0;
    for (size_t i = 0; i < n; i++)
        s->manifests[i] = s->manifests[s->n - n + i];
    s->n = n;
}

void store_fence(struct world *w, int64_t job, int64_t attempt)
{
    struct sim_store_job *s = store_of_job(w, job);
    if (s->fence < attempt)
        s->fence = attempt;
}

void store_identify(struct world *w, int64_t job, const char *identity)
{
    struct sim_store_job *s = store_of_job(w, job);
    if (!s->identity[0])
        STR_COPY(s->identity, identity);
    if (!str_eq(s->identity, identity))
        world_fail(w, "the identity of job %lld in the store changed from %s to %s", (long long)job,
            s->identity, identity);
}

bool store_commit(struct world *w, int64_t job, struct ckpt_ref ref, int64_t steps)
{
    struct sim_store_job *s = store_of_job(w, job);
    if (s->fence > ref.attempt || s->n == SIM_MANIFESTS_MAX)
        return false;
    if (s->n && ckpt_ref_compare(s->manifests[s->n - 1].ref, ref) >= 0)
        world_fail(w, "checkpoint %lld.%lld of job %lld does not come after the newest",
            (long long)ref.attempt, (long long)ref.sequence, (long long)job);
    traffic_store_changes(w, job, 1);
    s->manifests = mem_resize(s->manifests, s->n + 1, sizeof(*s->manifests));
    s->manifests[s->n++] =
        (struct sim_manifest){.ref = ref, .steps = steps, .damaged = world_chance(w, 0.01)};
    w->saves++;
    return true;
}

struct ckpt_ref store_newest(const struct world *w, int64_t job)
{
    const struct sim_store_job *s = &w->store[job - 1];
    return s->n ? s->manifests[s->n - 1].ref : (struct ckpt_ref){0};
}

struct sim_manifest store_restore(struct world *w, int64_t job, int64_t attempt, int64_t from,
    struct ckpt_ref expected, int *ret_damaged, bool *ret_lost)
{
    struct sim_store_job *s = store_of_job(w, job);
    bool reaches = expected.attempt == 0;
    *ret_damaged = 0;
    for (size_t i = s->n; i-- > s->away;) {
        const struct sim_manifest *m = &s->manifests[i];
        if (m->ref.attempt >= attempt || m->ref.attempt < from)
            continue;
        reaches |= ckpt_ref_compare(m->ref, expected) >= 0;
        if (!m->damaged) {
            *ret_lost = !reaches;
            return *m;
        }
        ++*ret_damaged;
    }
    *ret_lost = expected.attempt > 0;
    return (struct sim_manifest){0};
}

void store_hide(struct world *w, int64_t job)
{
    store_of_job(w, job)->away = store_of_job(w, job)->n;
}

void store_unhide(struct world *w, int64_t job)
{
    store_of_job(w, job)->away = 0;
}

int64_t store_clean(struct world *w, int64_t job, int64_t attempt)
{
    struct sim_store_job *s = store_of_job(w, job);
    if (s->fence <= attempt) {
        keep_newest(w, job, KEPT);
    }
    return (int64_t)s->n * SIM_STORED_BYTES;
}

bool store_has(const struct world *w, int64_t job, struct ckpt_ref ref)
{
    const struct sim_store_job *s = &w->store[job - 1];
    for (size_t i = 0; i < s->n; i++)
        if (ckpt_ref_compare(s->manifests[i].ref, ref) == 0)
            return true;
    return false;
}

/* ---- cleaning ---- */

static void clean(struct world *w, const struct sim_cleaner *x, bool whole)
{
    int64_t job = x->job.job;
    if (world_job(w, job)->ends != 1)
        world_fail(w, "the checkpoints of job %lld were cleaned before its end was committed",
            (long long)job);
    store_identify(w, job, x->job.known.identity);
    store_of_job(w, job)->fence = SIM_CLOSED;
    if (whole && x->job.keep != CKPT_GC_KEEP_ALL)
        keep_newest(w, job, x->job.keep == CKPT_GC_KEEP_LAST ? 1 : 0);
    w->cleanings++;
}

static void on_cleaned(struct timer *t, void *ctx)
{
    struct sim_cleaner *x = ctx;
    struct err e;
    bool fails = world_chance(x->w, 0.1);
    (void)t;
    clean(x->w, x, !fails || world_chance(x->w, 0.5));
    if (fails)
        err_set(&e, ERR_IO, "the simulated store does not answer");
    x->done(x->ctx, fails ? CLEAN_FAILED : CLEAN_DONE,
        (int64_t)store_of_job(x->w, x->job.job)->n * SIM_STORED_BYTES, fails ? &e : NULL);
}

static void start_cleaning(
    struct cleaner_port *port, const struct cleaner_job *j, cleaner_done_fn done, void *ctx)
{
    struct sim_cleaner *x =
        (struct sim_cleaner *)((char *)port - offsetof(struct sim_cleaner, port));
    if (timer_is_running(&x->timer))
        world_fail(x->w, "a cleaning was started while another is running");
    x->job = *j;
    x->done = done;
    x->ctx = ctx;
    timer_start(&x->w->vt.timers, &x->timer,
        world_between(x->w, 1, world_chance(x->w, 0.2) ? 120000 : 2000));
}

void store_cleaner_init(struct world *w)
{
    w->sim_cleaner = (struct sim_cleaner){.port.start = start_cleaning, .w = w};
    timer_init(&w->sim_cleaner.timer, on_cleaned, &w->sim_cleaner);
}

/* The cleaner's thread dies at any point of its work. */
void store_cleaner_kill(struct world *w)
{
    if (timer_is_running(&w->sim_cleaner.timer) && world_chance(w, 0.5))
        clean(w, &w->sim_cleaner, world_chance(w, 0.5));
    timer_stop(&w->vt.timers, &w->sim_cleaner.timer);
}
