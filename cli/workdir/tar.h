/* SPDX-License-Identifier: Apache-2.0
 *
 * A directory tree as a tar archive: POSIX pax, which GNU tar, bsdtar and Python read. Hard links,
 * modes, times to the nanosecond and user extended attributes are kept; holes are written out as
 * zeros.
 */
#ifndef BELAY_CLI_WORKDIR_TAR_H
#define BELAY_CLI_WORKDIR_TAR_H

#include "base/err.h"

/* Writes what is in dir (not dir itself), in the order of the names, to fd. ERR_UNSUPPORTED names
 * what is no regular file, directory or symbolic link; ERR_UNAVAILABLE a file that changed
 * meanwhile. */
int tar_write(int fd, const char *dir, struct err *e);

#endif
