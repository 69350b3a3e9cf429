/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of the parts of a job's priority (priority.h). Integers only, except for one quotient: the
 * order must be equal on every machine.
 */
#include "scheduler/core/queue/priority.h"

#include <assert.h>

#define MIB_A_GIB 1024

int64_t priority_mcpu(const struct queue_policy *o, const struct resources *need)
{
    int64_t most = need->cpus * 1000LL, gpus = need->gpus * o->gpu_mcpu;
    int64_t memory = need->memory_mib / MIB_A_GIB * o->gib_mcpu +
                     need->memory_mib % MIB_A_GIB * o->gib_mcpu / MIB_A_GIB;
    most = gpus > most ? gpus : most;
    return memory > most ? memory : most;
}

int64_t priority_qos_ms(const struct queue_policy *o, const struct job_row *r)
{
    const struct policy_qos *q = r->spec.qos[0] ? policy_qos(o, r->spec.qos) : NULL;
    return q ? q->boost_ms : 0;
}

int64_t priority_size_ms(const struct queue_policy *o, const struct job_row *r)
{
    int64_t doublings = 0;
    for (int64_t cpus = priority_mcpu(o, &r->spec.need) * r->spec.nodes / 1000; cpus > 1; cpus /= 2)
        doublings++;
    return doublings * o->size_ms;
}

int64_t priority_age_16(const struct queue_policy *o, int64_t waited_ms)
{
    if (waited_ms <= o->age_max_ms)
        return 16 * waited_ms;
    return 16 * o->age_max_ms + (waited_ms - o->age_max_ms);
}

/* 2^-(2^k / PRIORITY_STEPS), scaled by 2^32. */
static const uint32_t factors[] = {4292061010U, 4289156690U, 4283353945U, 4271771996U, 4248701965U,
    4202935003U, 4112874773U, 3938502376U, 3611622603U, 3037000500U};

static int64_t multiply(int64_t value, uint32_t factor)
{
    uint64_t v = (uint64_t)value;
    return (int64_t)((v >> 32) * factor + (((v & UINT32_MAX) * factor) >> 32));
}

int64_t priority_halve(int64_t value, int64_t steps)
{
    assert(value >= 0 && steps >= 0);
    int64_t halvings = steps / PRIORITY_STEPS;
    value = halvings < 63 ? value >> halvings : 0;
    for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++)
        if (steps >> k & 1)
            value = multiply(value, factors[k]);
    return value;
}
