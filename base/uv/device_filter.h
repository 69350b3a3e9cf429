/* SPDX-License-Identifier: Apache-2.0
 *
 * Character devices that the processes of a cgroup v2 directory may not open: a program of the
 * kernel's (bpf(2), BPF_PROG_TYPE_CGROUP_DEVICE, Linux 4.15) that goes with the directory. Needs
 * root.
 */
#ifndef BELAY_BASE_UV_DEVICE_FILTER_H
#define BELAY_BASE_UV_DEVICE_FILTER_H

#include "base/uv/proc.h"

/* 0 or -errno; of more than PROC_DEVICES_MAX -E2BIG. Filters of the directories above hold beside
 * it. */
int device_filter_attach(int cgroup_fd, const struct proc_device *denied, size_t n);

#endif
