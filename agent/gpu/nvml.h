/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's management library, loaded at run time where there is one: what each GPU, and each MIG
 * slice, does at a moment.
 *
 * All calls into it are made on a thread of its own, which nobody waits for: a driver that is stuck
 * makes looks old, and nothing else. Without the library, or without a GPU, there is nothing to
 * see.
 */
#ifndef BELAY_AGENT_GPU_NVML_H
#define BELAY_AGENT_GPU_NVML_H

#include "agent/gpu/gpus.h"
#include <stdbool.h>
#include <stdint.h>

/* a look that takes longer is not waited for any more: until it ends there are none */
#define NVML_STUCK_MS 30000
#define NVML_LOOKS_MAX GPUS_DEVICES_MAX

/* One GPU, or a slice; what it does not tell is 0. */
struct nvml_look {
    char id[GPUS_ID_MAX]; /* its UUID */
    int64_t index;        /* of the GPU, which a slice is a part of */
    bool is_slice;
    bool knows_busy; /* slices do not, nor some older GPUs */
    int64_t busy_percent;
    int64_t memory_bytes, memory_total_bytes;
    int64_t power_mw, power_limit_mw, temperature_c;
    int64_t clock_permille; /* of the highest that it has */
    /* what holds its clocks back: heat, a limit of power, the board whatever for */
    bool thermal, power, slowed;
    int64_t ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
    int64_t processes;
};

struct nvml;
struct nvml *nvml_create(void);
/* Begins a look unless one is under way. Never blocks. */
void nvml_ask(struct nvml *n);
/* What the last look saw, once: *ret_n of them into v (NVML_LOOKS_MAX), *ret_at_ms the monotonic
 * time of it. False: there is no new one. Never blocks. */
bool nvml_take(struct nvml *n, struct nvml_look *v, size_t *ret_n, int64_t *ret_at_ms);
/* What its thread has used of the processor. */
int64_t nvml_cpu_ns(struct nvml *n);
bool nvml_is_stuck(struct nvml *n, int64_t now_ms);
/* Waits for a look under way, but not for one that does not end: its thread is left alone then.
 * NULL is allowed. */
void nvml_destroy(struct nvml *n);

#endif
