/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of a tree that is being restored (restore.c): directories, files, links, and their
 * attributes. root_fd is the tree, to which no other user has access; resumes: parts of it may be
 * there from an interrupted restore.
 */
#ifndef BELAY_CKPT_ENTRY_H
#define BELAY_CKPT_ENTRY_H

#include "ckpt/manifest.h"
#include <time.h>

/* Makes directories, and files of several chunks with their size but no content: chunks are then
 * written into place in any order. */
int entry_make(int root_fd, bool resumes, const struct manifest_entry *entry, struct err *e);

/* Symbolic links come after all contents, so that no write can go through one; does nothing for
 * other entries. */
int entry_link(int root_fd, bool resumes, const struct manifest_entry *entry, struct err *e);

/* Then hard links, modes and times, innermost first. A hard link comes before the mode and the time
 * of its first name, which they share. */
int entry_finish(int root_fd, bool resumes, const struct manifest_entry *entry, struct err *e);

int entry_set_xattrs(int fd, const struct manifest_entry *entry, struct err *e);

/* For futimens(). */
struct entry_times {
    struct timespec v[2];
};
struct entry_times entry_times(const struct manifest_entry *entry);

#endif
