/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of resources, and which machines fit a shape.
 */
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/priority.h"

#include "base/minmax.h"

#include <assert.h>

bool resources_fit(const struct resources *need, const struct resources *available)
{
    return need->cpus <= available->cpus && need->gpus <= available->gpus &&
           need->memory_mib <= available->memory_mib;
}

void resources_take(struct resources *available, const struct resources *need)
{
    assert(resources_fit(need, available));
    available->cpus -= need->cpus;
    available->gpus -= need->gpus;
    available->memory_mib -= need->memory_mib;
}

void resources_give(struct resources *available, const struct resources *need)
{
    available->cpus += need->cpus;
    available->gpus += need->gpus;
    available->memory_mib += need->memory_mib;
}

int64_t resources_times(const struct resources *available, const struct resources *need)
{
    if (!resources_fit(need, available))
        return 0;
    int64_t times = INT64_MAX;
    if (need->cpus > 0)
        times = min_i64(times, available->cpus / need->cpus);
    if (need->gpus > 0)
        times = min_i64(times, available->gpus / need->gpus);
    if (need->memory_mib > 0)
        times = min_i64(times, available->memory_mib / need->memory_mib);
    return times;
}

/* value * need / total, rounded down, without intermediate overflow. */
static int64_t share_of(int64_t value, int64_t need, int64_t total)
{
    if (need <= 0)
        return 0;
    if (need >= total)
        return value;
    return (int64_t)((__extension__(__int128) value) * need / total);
}

int64_t resources_share(const struct resources *need, const struct resources *total, int64_t value)
{
    int64_t most = share_of(value, need->cpus, total->cpus);
    int64_t gpus = share_of(value, need->gpus, total->gpus),
            memory = share_of(value, need->memory_mib, total->memory_mib);
    most = gpus > most ? gpus : most;
    return memory > most ? memory : most;
}

bool shape_is_exclusive(const struct shape *s)
{
    return s->constraints && s->constraints->exclusive;
}

const struct resources *shape_takes(const struct shape *s, const struct resources *total)
{
    return shape_is_exclusive(s) ? total : &s->need;
}

int64_t attempt_mcpu(const struct attempt *a)
{
    return priority_mcpu(a->job->shape->policy, &a->allocated);
}

int64_t job_mcpu(const struct job *j)
{
    int64_t sum = 0;
    if (!shape_is_exclusive(j->shape))
        return j->shape->mcpu * j->row.ranks;
    LIST_FOREACH (&j->ranks, l)
        sum += attempt_mcpu(LIST_ENTRY(l, struct attempt, in_job));
    return sum;
}

bool market_wish_allows(enum market_wish wish, enum market market)
{
    if (market == MARKET_OWNED || wish == WISH_ANY)
        return true;
    return market == (wish == WISH_SPOT ? MARKET_SPOT : MARKET_ON_DEMAND);
}

bool shape_allows_pool(const struct shape *s, const struct pool *p)
{
    return job_pools_allow(s->pool, p->row.name);
}

struct resources offer_total(const struct offer *o)
{
    struct resources t = o->row.total;
    const struct resources *s = &o->seen;
    if (s->cpus == 0)
        return t;
    return (struct resources){
        .cpus = s->cpus < t.cpus ? s->cpus : t.cpus,
        .gpus = s->gpus < t.gpus ? s->gpus : t.gpus,
        .memory_mib = s->memory_mib < t.memory_mib ? s->memory_mib : t.memory_mib,
    };
}
