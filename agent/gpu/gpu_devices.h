/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of the machine's NVIDIA GPUs that a task must not open.
 */
#ifndef BELAY_AGENT_GPU_GPU_DEVICES_H
#define BELAY_AGENT_GPU_GPU_DEVICES_H

#include "base/uv/proc.h"

/* All devices except those of `own`, a list as in gpus.h with nvidia-smi's numbers (in bus order);
 * "" = deny all. Returns how many, at most max; 0 if own is GPUS_ALL or has UUIDs (slices), whose
 * devices are not known here. root: "", or in a test the parent of its /dev and /proc. */
size_t gpu_devices_denied(const char *root, const char *own, struct proc_device *out, size_t max);

#endif
