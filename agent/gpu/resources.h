/* SPDX-License-Identifier: Apache-2.0
 *
 * The resources of this machine.
 */
#ifndef BELAY_AGENT_GPU_RESOURCES_H
#define BELAY_AGENT_GPU_RESOURCES_H

#include "job/gpu.h"
#include <stdint.h>

struct node_resources {
    int64_t cpus;        /* CPUs that this process may run on */
    int64_t memory_mib;  /* MemTotal; 1 if it cannot be read */
    int64_t gpus;        /* /dev/nvidia[0-9]*; in the agent, those that it allots whole */
    struct gpu_kind gpu; /* common to all GPUs; fields that differ or are unknown are "" or 0 */
    char arch[16];       /* "x86_64", "aarch64" */
};

struct node_resources resources_measure(void);

/* The 1-minute load average x 1000. */
int64_t resources_load_milli(void);

#endif
