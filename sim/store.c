/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated checkpoint store: the rules of ckpt/ckpt.h (fences, growing names, fall back) without bytes.
 */
#include "sim/world.h"

#include "base/mem.h"

static int compare(struct ckpt_ref a, struct ckpt_ref b)
{
    if (a.attempt != b.attempt)
        return a.attempt < b.attempt ? -1 : 1;
    return a.sequence < b.sequence ? -1 : a.sequence > b.sequence;
}

static struct sim_store_job *of(struct world *w, int64_t job)
{
    return &w->store[job - 1];
}

void store_fence(struct world *w, int64_t job, int64_t attempt)
{
    struct sim_store_job *s = of(w, job);
    if (s->fence < attempt)
        s->fence = attempt;
}

bool store_commit(struct world *w, int64_t job, struct ckpt_ref ref, int64_t steps)
{
    struct sim_store_job *s = of(w, job);
    if (s->fence > ref.attempt || s->n == SIM_MANIFESTS_MAX)
        return false;
    if (s->n && compare(s->manifests[s->n - 1].ref, ref) >= 0)
        world_fail(w, "checkpoint %lld.%lld of job %lld does not come after the newest",
            (long long)ref.attempt, (long long)ref.sequence, (long long)job);
    s->manifests = mem_resize(s->manifests, s->n + 1, sizeof(*s->manifests));
    s->manifests[s->n++] =
        (struct sim_manifest){.ref = ref, .steps = steps, .damaged = world_chance(w, 0.01)};
    w->saves++;
    return true;
}

struct sim_manifest store_restore(struct world *w, int64_t job, int64_t attempt, int *ret_damaged)
{
    struct sim_store_job *s = of(w, job);
    *ret_damaged = 0;
    for (size_t i = s->n; i-- > 0;) {
        if (s->manifests[i].ref.attempt >= attempt)
            continue;
        if (!s->manifests[i].damaged)
            return s->manifests[i];
        ++*ret_damaged;
    }
    return (struct sim_manifest){0};
}

bool store_has(const struct world *w, int64_t job, struct ckpt_ref ref)
{
    const struct sim_store_job *s = &w->store[job - 1];
    for (size_t i = 0; i < s->n; i++)
        if (compare(s->manifests[i].ref, ref) == 0)
            return true;
    return false;
}
