/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the entries of a directory to send (workdir.h): names and the results of lstat(2), no
 * content.
 */
#ifndef BELAY_CLI_WORKDIR_WORKDIR_SCAN_H
#define BELAY_CLI_WORKDIR_WORKDIR_SCAN_H

#include "cli/workdir/workdir.h"
#include <sys/stat.h>

struct found {
    char *path; /* relative to the directory */
    struct stat st;
};

struct workdir_scan {
    struct found *v; /* sorted by path: directories, files and links */
    size_t n;
};

/* ERR_INVALID: the directory is larger than allowed, and the text names the largest parts; or a
 * path cannot be sent. Entries of other types are left out with a warning. Blocks. */
int workdir_scan(
    const char *dir, workdir_warn_fn warn, void *ctx, struct workdir_scan *ret_scan, struct err *e);
void workdir_scan_deinit(struct workdir_scan *s);

#endif
