/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the files that a restore by CRIU would create by name as root, before it creates them.
 *
 * Why: for an open file whose name was removed, criu creates a file next to the old name, changes
 * its owner and mode, links it to the old name, opens that and removes both names. A UNIX socket it
 * removes, binds again and gives to its owner. criu does all of this by path, as root, and follows
 * links (criu 3.17.1: create_ghost(), ghost_apply_metadata(), open_path() of criu/files-reg.c,
 * bind_unix_sk() of criu/sk-unix.c). In a directory of the job's user, another job of that user can
 * replace any of these names by a symbolic link between two steps. Root then changes the owner of,
 * removes or creates a file in another directory. criu 3.19 and later change the owner without
 * following a link, but the other steps follow links in all versions up to 4.2. No version is safe.
 *
 * Therefore criu may create something for the job of another user only in a directory to which, as
 * to all directories above it, only root can write. BELAY_CHECKPOINT_DIR, which is also TMPDIR, is
 * such a directory during a restore: the user gets it when criu uses no more names
 * (criu_sandbox.h).
 *
 * The files that criu would create are read from its images (criu_images.h) and not from /proc: the
 * images also contain descriptors in transit in a socket, and may come from an older agent.
 */
#ifndef BELAY_AGENT_CRIU_CRIU_CREATED_H
#define BELAY_AGENT_CRIU_CRIU_CREATED_H

#include "base/err.h"

/* Checks the images in dir, which belongs to root. becomes_root: a directory that is the user's now
 * and will be root's at the restore; NULL: none. ERR_DENIED names the file and says what to do;
 * ERR_UNSUPPORTED: an image is not understood. Blocks. */
int criu_created_check(const char *dir, const char *becomes_root, struct err *e);

#endif
