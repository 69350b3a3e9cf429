/* SPDX-License-Identifier: Apache-2.0
 *
 * What tasks, GPUs and the processors' supply do: looked at every few seconds, added up for a
 * minute or so (base/load.h), and told to belayd with the status until it has taken that.
 *
 *   look (timer) --> files of the kernel, on a thread -----> sums
 *               \--> NVML, on a thread of its own --------------^
 *   sums --> window over: a numbered load --> sent --> acknowledged
 *                         (power drawn in this window, until the next one)
 *
 * It is cheap by construction: the next look waits at least LOOK_COSTS_PART times what the last one
 * used of the processor. What is not taken is kept, TELEMETRY_KEPT_MAX of each kind; beyond that
 * the oldest go.
 */
#ifndef BELAY_AGENT_GPU_TELEMETRY_H
#define BELAY_AGENT_GPU_TELEMETRY_H

#include "agent/gpu/probe.h"
#include "base/timers.h"
#include "base/wire/wire.h"
#include <uv.h>

#define TELEMETRY_KEPT_MAX (4 * WIRE_LOADS_MAX)
#define TELEMETRY_LOOK_MS 5000
#define TELEMETRY_EVERY_MS 60000
#define LOOK_COSTS_PART 400 /* 0.25 % of a cpu */

struct telemetry;

struct telemetry_options {
    uv_loop_t *loop;
    struct timers *timers;
    int64_t look_ms, every_ms; /* between looks; of a window. every_ms 0: nothing is looked at */
    /* where the kernel's files of energy are; borrowed. NULL: RAPL_DIR */
    const char *powercap;
    void (*list)(void *ctx, struct telemetry *t); /* calls telemetry_task for each that runs */
    void (*changed)(void *ctx);                   /* there is something to tell */
    void *ctx;
};

struct telemetry *telemetry_create(const struct telemetry_options *o);
/* In a call of list only. gpus: those that it has, as gpus.h writes them. */
void telemetry_task(
    struct telemetry *t, int64_t job, int64_t attempt, const struct probe_of *of, const char *gpus);

/* Into the status what is to be told; shallow arrays, freed by the caller. */
void telemetry_fill(const struct telemetry *t, struct wire_status *s);
void telemetry_taken(struct telemetry *t, int64_t task_loads, int64_t gpu_loads);

/* What all looks together have used of the processor, of the looks so far. */
int64_t telemetry_cpu_us(const struct telemetry *t);

/* Looks no more. To be destroyed when it is idle. */
void telemetry_stop(struct telemetry *t);
bool telemetry_is_idle(const struct telemetry *t);
void telemetry_destroy(struct telemetry *t); /* NULL is allowed */

#endif
