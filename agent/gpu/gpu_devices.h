/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices of the machine's NVIDIA GPUs a task is to be kept from.
 */
#ifndef BELAY_AGENT_GPU_GPU_DEVICES_H
#define BELAY_AGENT_GPU_GPU_DEVICES_H

#include "base/uv/proc.h"

/* All but those of own, a text of gpus.h with numbers as nvidia-smi counts (in the order of the
 * bus); "": of all. Returns how many, max at most; none where own says GPUS_ALL or UUIDs (slices),
 * whose devices are not known here. root: "", or in a test where its /dev and /proc are. */
size_t gpu_devices_denied(const char *root, const char *own, struct proc_device *out, size_t max);

#endif
