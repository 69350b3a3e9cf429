/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of the job's own open files, which a dump by CRIU refers to but does not contain.
 * While the processes are frozen, these files are copied next to the images:
 *
 *     files.json   {"version":2,"output":4711,
 *                   "files":[{"path":"/home/ann/run/log","mode":420,"number":0}, ...]}
 *     files/N      their contents
 *     scratch/     a copy of BELAY_CHECKPOINT_DIR, without sockets, which criu creates itself
 *
 * A file is the job's own if it is a regular file below the job's working directory, belongs to the
 * job's user, still has its name, and a process has it open for writing, or mapped shared and
 * writable. A restore writes these files before criu examines them. All other open files must be
 * the same on the other node: criu compares their sizes, and its error names a file that differs.
 *
 * `output` is the number (st_ino) of the pipe that carried the job's output at the dump; a restore
 * replaces it by another pipe (criu_sandbox.h).
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
    char *link; /* link in /proc to the open file; NULL if read from files.json */
    mode_t mode;
};

struct criu_files {
    struct criu_file *files; /* the content of files[i] is in files/i */
    size_t n;
    int64_t output; /* set by the caller before criu_files_save */
};

void criu_files_deinit(struct criu_files *f);

/* Finds the job's own files of the process root and of all processes below it. ERR_INVALID: too
 * many. Blocks. */
int criu_files_find(
    pid_t root, uid_t uid, const char *cwd, struct criu_files *ret_files, struct err *e);

/* Copies these files, and scratch, into dir, which only root can reach. The user may change scratch
 * meanwhile; only entries of uid are copied, and ERR_UNSUPPORTED names any other. Blocks. */
int criu_files_save(
    const struct criu_files *f, uid_t uid, const char *scratch, const char *dir, struct err *e);

/* Writes the files from dir to their paths, with the rights of the job's user. Call it in a
 * separate process, because it changes the process's groups. Each file is overwritten in place,
 * truncated, and given its mode; missing directories are created. The error names the file. */
int criu_files_restore(const char *dir, const struct job_user *u, struct err *e);

/* Reads `output` from files.json in dir. */
int criu_files_read_output(const char *dir, int64_t *ret_output, struct err *e);

/* Pure. ERR_INVALID with the path of the invalid member; ERR_UNSUPPORTED: written by an earlier
 * belay, whose jobs wrote output.log themselves. */
int criu_files_parse(const char *text, size_t n, struct criu_files *ret_files, struct err *e);

/* ERR_UNSUPPORTED names a process of this pid namespace other than its first one, the caller, root
 * and those below root: it has left the process tree, so a dump would not contain it. */
int criu_files_check_tree(pid_t root, struct err *e);

#endif
