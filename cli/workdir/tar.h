/* SPDX-License-Identifier: Apache-2.0
 *
 * A directory tree as a tar archive: POSIX pax, readable by GNU tar, bsdtar and Python. Hard links,
 * modes, times in nanoseconds and user extended attributes are kept; holes are written as zeros.
 */
#ifndef BELAY_CLI_WORKDIR_TAR_H
#define BELAY_CLI_WORKDIR_TAR_H

#include "base/err.h"

/* Writes the content of dir (not dir itself) to fd, in the order of names. ERR_UNSUPPORTED names an
 * entry that is not a regular file, directory or symbolic link; ERR_UNAVAILABLE a file that changed
 * meanwhile. */
int tar_write(int fd, const char *dir, struct err *e);

#endif
