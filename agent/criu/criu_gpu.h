/* SPDX-License-Identifier: Apache-2.0
 *
 * What CRIU needs for programs with NVIDIA GPUs: cuda-checkpoint, a driver that supports it, and
 * host memory for the content of device memory. All checks use programs that NVIDIA ships.
 *
 * Sources: NVIDIA's README of cuda-checkpoint (570: NVML and process trees; neither UVM, IPC
 * memory nor another GPU), CRIU's CUDA plugin (555: `--action`), CRIU issues 2654 (a pre-dump
 * fails with the plugin) and pull requests 2469 and 2547 (a dump that fails may leave tasks
 * locked).
 */
#ifndef BELAY_AGENT_CRIU_CRIU_GPU_H
#define BELAY_AGENT_CRIU_CRIU_GPU_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRIU_GPU_DRIVER_MIN                                                                        \
    570 /* major version; older ones lose programs that use NVML, as PyTorch does */

struct criu_gpu {
    int64_t driver;   /* major version, the lowest of all GPUs; 0: unknown */
    bool has_mig;     /* a GPU is divided into slices */
    int64_t used_mib; /* device memory in use on all queried GPUs */
};

/* Parses the output of `nvidia-smi --query-gpu=driver_version,mig.mode.current,memory.used
 * --format=csv,noheader,nounits`. False: it has no line of that form. Pure. */
bool criu_gpu_parse(const char *csv, struct criu_gpu *ret_gpu);

/* Queries nvidia-smi. gpus: ids separated by commas, GPUS_ALL, or "" for all. Blocks for at most
 * CRIU_PROBE_MS. ERR_UNSUPPORTED: there is no nvidia-smi. */
int criu_gpu_query(const char *gpus, struct criu_gpu *ret_gpu, struct err *e);

/* The reason why programs with these GPUs cannot be saved; NULL: they can. A constant text.
 * Pure. */
const char *criu_gpu_lacks(const struct criu_gpu *gpu);

/* Checks that the node has memory for the content of device memory, which a dump first copies
 * there. ERR_NO_SPACE: too little is free; the text has both sizes. memory_file: of the task's
 * cgroup (usage.h); "" for no limit. Returns 0 if the sizes cannot be read. Blocks. */
int criu_gpu_check_memory(const char *gpus, const char *memory_file, struct err *e);

/* Call in the task's sandbox after a failed dump: unlocks every process that cuda-checkpoint left
 * locked or suspended. ERR_CORRUPT: one cannot be unlocked. Blocks for up to a minute. */
int criu_gpu_release(const char *cuda_checkpoint, struct err *e);

#endif
