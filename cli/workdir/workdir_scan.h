/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a directory is to be sent (workdir.h): names and what lstat(2) tells of them, no content
 * yet.
 */
#ifndef BELAY_CLI_WORKDIR_WORKDIR_SCAN_H
#define BELAY_CLI_WORKDIR_WORKDIR_SCAN_H

#include "cli/workdir/workdir.h"
#include <sys/stat.h>

struct found {
    char *path; /* below the directory */
    struct stat st;
};

struct workdir_scan {
    struct found *v; /* by path: directories, files and links */
    size_t n;
};

/* ERR_INVALID: it is larger than may be sent, and the text names what takes most of it; or a path
 * that cannot be sent. Others of what cannot be sent are left out with a warning. Blocks. */
int workdir_scan(
    const char *dir, workdir_warn_fn warn, void *ctx, struct workdir_scan *ret_scan, struct err *e);
void workdir_scan_deinit(struct workdir_scan *s);

#endif
