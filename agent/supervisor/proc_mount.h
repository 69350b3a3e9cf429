/* SPDX-License-Identifier: Apache-2.0
 *
 * /proc mounted with hidepid=2 (proc(5)): a user sees only processes of their own, and no arguments
 * of others. Root, and who is in group 0, sees all.
 */
#ifndef BELAY_AGENT_SUPERVISOR_PROC_MOUNT_H
#define BELAY_AGENT_SUPERVISOR_PROC_MOUNT_H

#include "base/err.h"

/* For this machine. */
int proc_mount_hide(struct err *e);

/* For the caller's mount namespace alone, which is not the node's: another /proc covers the node's,
 * with the same flags, and with what is mounted below it (what a container hides or makes
 * read-only), but for binfmt_misc. Harmless where processes are hidden already. 0 or errno, after
 * which /proc may be covered in part: leave the namespace. ENOTSUP: the kernel has one set of
 * options for all mounts of /proc (before Linux 5.8). */
int proc_mount_cover(void);

#endif
