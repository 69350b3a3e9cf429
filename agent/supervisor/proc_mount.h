/* SPDX-License-Identifier: Apache-2.0
 *
 * /proc mounted with hidepid=2 (proc(5)): a user sees only processes of their own, and no arguments
 * of others. Root and members of group 0 see all.
 */
#ifndef BELAY_AGENT_SUPERVISOR_PROC_MOUNT_H
#define BELAY_AGENT_SUPERVISOR_PROC_MOUNT_H

#include "base/err.h"

/* Hides processes on the whole machine. */
int proc_mount_hide(struct err *e);

/* Hides processes only in the caller's mount namespace, which must not be the node's: mounts
 * another /proc over the node's, with the same flags and the same mounts below it (which a
 * container uses to hide files or make them read-only), except binfmt_misc. No-op where processes
 * are already hidden. Returns 0 or errno; after an error /proc may be partly covered, so leave the
 * namespace. ENOTSUP: the kernel has one set of options for all mounts of /proc (before Linux
 * 5.8). */
int proc_mount_cover(void);

#endif
