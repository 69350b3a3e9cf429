/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's management library, loaded at run time if present: a sample of what each GPU and each
 * MIG slice is doing.
 *
 * All calls into it are made on a separate thread that nothing waits for: a stuck driver only makes
 * samples old. Without the library, or without a GPU, there are no samples.
 *
 * A sample also looks for faults that only a reset or a repair ends: errors that the driver reports
 * under a number (Xid), memory errors that were not corrected, and a GPU that is lost. Xids that a
 * program can cause by itself (13, 31, 43, 45 and others) are none: a job must not be able to drain
 * its node.
 */
#ifndef BELAY_AGENT_GPU_NVML_H
#define BELAY_AGENT_GPU_NVML_H

#include "agent/gpu/gpus.h"
#include <stdbool.h>
#include <stdint.h>

/* a sample that takes longer is given up: until it ends there are no new ones */
#define NVML_STUCK_MS 30000
#define NVML_SAMPLES_MAX GPUS_DEVICES_MAX

/* A sample of one GPU or slice; unknown values are 0. */
struct nvml_sample {
    char id[GPUS_ID_MAX]; /* its UUID */
    int64_t index;        /* of the GPU; for a slice, of its GPU */
    bool is_slice;
    bool has_busy; /* false for slices and some older GPUs */
    int64_t busy_percent;
    int64_t memory_bytes, memory_total_bytes;
    int64_t power_mw, power_limit_mw, temperature_c;
    int64_t clock_permille; /* of its highest clock */
    /* why its clocks are throttled: heat, a power limit, or the board for another reason */
    bool thermal, power, slowed;
    int64_t ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
    int64_t processes;
};

#define NVML_FAULT_MAX 160

struct nvml;
struct nvml *nvml_create(void);
/* Starts a sample unless one is under way. Never blocks. */
void nvml_request(struct nvml *n);
/* Takes the last sample, once: *ret_n entries into v (NVML_SAMPLES_MAX), with its monotonic time in
 * *ret_at_ms. False if there is no new one. Never blocks. */
bool nvml_get_samples(struct nvml *n, struct nvml_sample *v, size_t *ret_n, int64_t *ret_at_ms);
/* Takes the newest fault that was found since the last call. False if there is none. */
bool nvml_get_fault(struct nvml *n, char ret_fault[NVML_FAULT_MAX]);
/* CPU time of its thread. */
int64_t nvml_cpu_ns(struct nvml *n);
bool nvml_is_stuck(struct nvml *n, int64_t now_ms);
/* Waits for a sample under way, but not for a stuck one, whose thread is abandoned. NULL is
 * allowed. */
void nvml_destroy(struct nvml *n);

#endif
