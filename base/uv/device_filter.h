/* SPDX-License-Identifier: Apache-2.0
 *
 * Denies character devices to the processes of a cgroup v2 directory, by a BPF program attached to
 * the directory (bpf(2), BPF_PROG_TYPE_CGROUP_DEVICE, Linux 4.15). Needs root.
 */
#ifndef BELAY_BASE_UV_DEVICE_FILTER_H
#define BELAY_BASE_UV_DEVICE_FILTER_H

#include "base/uv/proc.h"

/* Returns 0 or -errno; -E2BIG for more than PROC_DEVICES_MAX. Filters of ancestor directories stay
 * in force. */
int device_filter_attach(int cgroup_fd, const struct proc_device *denied, size_t n);

#endif
