/* SPDX-License-Identifier: Apache-2.0
 *
 * What this machine has to give.
 */
#ifndef BELAY_AGENT_GPU_RESOURCES_H
#define BELAY_AGENT_GPU_RESOURCES_H

#include "job/gpu.h"
#include <stdint.h>

struct node_resources {
    int64_t cpus;        /* that this process may run on */
    int64_t memory_mib;  /* MemTotal; 1 if it cannot be read */
    int64_t gpus;        /* /dev/nvidia[0-9]*; of an agent, those that it gives out whole */
    struct gpu_kind gpu; /* of all of them; what differs, or is not told, is "" or 0 */
    char arch[16];       /* "x86_64", "aarch64" */
};

struct node_resources resources_measure(void);

/* The 1-minute load average x 1000. */
int64_t resources_load_milli(void);

#endif
