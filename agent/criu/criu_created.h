/* SPDX-License-Identifier: Apache-2.0
 *
 * What a restore by CRIU creates by name as root, judged before it does so.
 *
 * Why: for an open file whose name was removed, criu makes a file beside it, changes its owner and
 * mode, links it to the old name, opens that and removes both; a UNIX socket it removes, binds and
 * gives away. It does all of that by path, as root, and follows links (criu 3.17.1: create_ghost(),
 * ghost_apply_metadata(), open_path() of criu/files-reg.c, bind_unix_sk() of criu/sk-unix.c). In a
 * directory of the job's user another job of that user can put a symbolic link in the place of any
 * of these names in between. Root then gives away, removes or makes a file somewhere else. criu
 * 3.19 changes the owner without following a link, but everything else is as it was, up to 4.2: no
 * version is safe.
 *
 * So only what lies in a directory that none but root can write to, from "/" on, is created for the
 * jobs of other users. BELAY_CHECKPOINT_DIR, which is TMPDIR too, is such a directory during a
 * restore: it becomes the user's only when criu is done with names (criu_room.h).
 *
 * What criu would create is read from its images (criu_images.h) and not from /proc: they also have
 * what is under way in a socket, and they may come from an older agent.
 */
#ifndef BELAY_AGENT_CRIU_CRIU_CREATED_H
#define BELAY_AGENT_CRIU_CRIU_CREATED_H

#include "base/err.h"

/* Of the images in dir, which is root's. becomes_root: a directory that is the user's now and will
 * be root's at the restore; NULL: none. ERR_DENIED names the file and says what to do;
 * ERR_UNSUPPORTED: an image is not understood. Blocks. */
int criu_created_check(const char *dir, const char *becomes_root, struct err *e);

#endif
