/* SPDX-License-Identifier: Apache-2.0
 *
 * What a dump by CRIU refers to but does not hold: contents of files. While the processes are
 * frozen, the job's own are copied beside the images:
 *
 *     files.json   {"version":2,"output":4711,
 *                   "files":[{"path":"/home/ann/run/log","mode":420,"number":0}, ...]}
 *     files/N      their contents
 *     scratch/     a copy of BELAY_CHECKPOINT_DIR, without sockets, which criu makes
 *
 * The job's own are the regular files below its working directory that a process has open for
 * writing, or mapped shared and writable, that belong to its user, and that still have their name.
 * A restore puts them back before criu looks at them. What else is open has to be the same on the
 * other node: criu compares sizes, and names what differs.
 *
 * `output` is the number of the pipe (st_ino) that carried the job's output at the dump, for which
 * a restore has another one (criu_room.h).
 */
#ifndef BELAY_AGENT_CRIU_CRIU_FILES_H
#define BELAY_AGENT_CRIU_CRIU_FILES_H

#include "agent/supervisor/user.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CRIU_FILES_MAX 4096
#define CRIU_FILES_BYTES_MAX (2u << 20) /* of files.json */

struct criu_file {
    char *path; /* absolute */
    char *link; /* of /proc, to the open file; NULL: read from files.json */
    mode_t mode;
};

struct criu_files {
    struct criu_file *files; /* files[i] has its content in files/i */
    size_t n;
    int64_t output; /* set by the caller before criu_files_save */
};

void criu_files_deinit(struct criu_files *f);

/* Finds those of root and all below it. ERR_INVALID: too many. Blocks. */
int criu_files_find(
    pid_t root, uid_t uid, const char *cwd, struct criu_files *ret_files, struct err *e);

/* Copies them, and scratch, into dir, which only root can reach. Of scratch, which the user may
 * change meanwhile, only what is uid's: ERR_UNSUPPORTED names anything else. Blocks. */
int criu_files_save(
    const struct criu_files *f, uid_t uid, const char *scratch, const char *dir, struct err *e);

/* Puts them back from dir, with the rights of the job's user: a process of its own does that, for
 * its groups change. Each is written in place, cut, and given its mode; a missing directory is
 * made. The error names the file. */
int criu_files_restore(const char *dir, const struct job_user *u, struct err *e);

/* The number of the pipe from dir. */
int criu_files_read_output(const char *dir, int64_t *ret_output, struct err *e);

/* Pure. ERR_INVALID with the path of what is wrong; ERR_UNSUPPORTED: of an earlier belay, whose
 * jobs wrote output.log themselves. */
int criu_files_parse(const char *text, size_t n, struct criu_files *ret_files, struct err *e);

/* ERR_UNSUPPORTED names a process of this pid namespace that is neither its first one, nor the
 * caller, nor root or below it: it has left the tree, and no dump would hold it. */
int criu_files_check_tree(pid_t root, struct err *e);

#endif
