/* SPDX-License-Identifier: Apache-2.0
 *
 * What CRIU needs for programs with NVIDIA GPUs: cuda-checkpoint, a driver that supports it, and
 * host memory for what is in device memory. All of it is asked of programs that NVIDIA ships.
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
    int64_t used_mib; /* device memory in use, of all GPUs asked about */
};

/* Reads what `nvidia-smi --query-gpu=driver_version,mig.mode.current,memory.used
 * --format=csv,noheader,nounits` prints. False: no line of it is of that form. Pure. */
bool criu_gpu_parse(const char *csv, struct criu_gpu *ret_gpu);

/* Asks nvidia-smi. gpus: their ids with commas between, GPUS_ALL or "" for all. Blocks for at most
 * CRIU_PROBE_MS. ERR_UNSUPPORTED: there is no nvidia-smi. */
int criu_gpu_query(const char *gpus, struct criu_gpu *ret_gpu, struct err *e);

/* Why programs with these GPUs cannot be saved; NULL: they can. The text is constant. Pure. */
const char *criu_gpu_lacks(const struct criu_gpu *gpu);

/* A dump first copies device memory into the memory of the program's node. ERR_NO_SPACE: too little
 * is free there, with both sizes. memory_file: of the task's cgroup (usage.h); "" for no limit.
 * Returns 0 if the sizes cannot be read. Blocks. */
int criu_gpu_check_memory(const char *gpus, const char *memory_file, struct err *e);

/* After a dump that failed, in the task's room: unlocks every process that cuda-checkpoint left
 * locked or suspended. ERR_CORRUPT: one cannot be brought back. Blocks for up to a minute. */
int criu_gpu_release(const char *cuda_checkpoint, struct err *e);

#endif
