/* SPDX-License-Identifier: Apache-2.0
 *
 * Telemetry of tasks, GPUs and processor power: sampled every few seconds, summed over about a
 * minute (base/load.h), and reported to belayd with the status until it acknowledges.
 *
 *   sample (timer) -> files of the kernel, on a thread -----> sums
 *               \--> NVML, on a thread of its own --------------^
 *   sums --> window over: a numbered load --> sent --> acknowledged
 *                         (power drawn in this window, until the next one)
 *
 * Its cost is bounded: the next sample waits at least SAMPLE_COST_PART times the CPU time that the
 * last one used. Loads that are not acknowledged are kept, TELEMETRY_KEPT_MAX of each kind; beyond
 * that the oldest are dropped.
 */
#ifndef BELAY_AGENT_GPU_TELEMETRY_H
#define BELAY_AGENT_GPU_TELEMETRY_H

#include "agent/gpu/probe.h"
#include "base/timers.h"
#include "base/wire/wire.h"
#include <uv.h>

#define TELEMETRY_KEPT_MAX (4 * WIRE_LOADS_MAX)
#define TELEMETRY_SAMPLE_MS 5000
#define TELEMETRY_EVERY_MS 60000
#define SAMPLE_COST_PART 400 /* 0.25 % of a cpu */

struct telemetry;

struct telemetry_options {
    uv_loop_t *loop;
    struct timers *timers;
    int64_t sample_ms, every_ms; /* sampling interval; length of a window. every_ms 0 = off */
    /* directory of the kernel's energy files; borrowed. NULL for RAPL_DIR */
    const char *powercap;
    void (*list)(void *ctx, struct telemetry *t); /* calls telemetry_task for each running task */
    void (*changed)(void *ctx);                   /* there is something to report */
    void (*faulty)(void *ctx, const char *why);   /* a GPU is faulty (nvml.h); may be NULL */
    void *ctx;
};

struct telemetry *telemetry_create(const struct telemetry_options *o);
/* Only during a call of `list`. gpus: those that the task has, as in gpus.h. */
void telemetry_task(
    struct telemetry *t, int64_t job, int64_t attempt, const struct probe_of *of, const char *gpus);

/* Fills the status with what is to be reported; shallow arrays, freed by the caller. */
void telemetry_fill(const struct telemetry *t, struct wire_status *s);
void telemetry_taken(struct telemetry *t, int64_t task_loads, int64_t gpu_loads);

/* CPU time used by all samples so far. */
int64_t telemetry_cpu_us(const struct telemetry *t);

/* Stops sampling. Destroy it when it is idle. */
void telemetry_stop(struct telemetry *t);
bool telemetry_is_idle(const struct telemetry *t);
void telemetry_destroy(struct telemetry *t); /* NULL is allowed */

#endif
