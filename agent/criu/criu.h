/* SPDX-License-Identifier: Apache-2.0
 *
 * CRIU, which checkpoints processes without their help: its abilities on this node, and its command
 * lines.
 *
 * A task with the method criu runs in its own sandbox: a pid namespace, so that its pids are free
 * on every node, and a mount namespace that has its directory at CRIU_SANDBOX, so that its paths
 * are the same on every node. criu runs inside these namespaces and dumps processes, not
 * namespaces. Below CRIU_SANDBOX:
 *
 *     script, control/               as in every task's directory
 *     output.pipe                    number of the pipe that carries the output; a restore replaces
 *                                    this pipe by another one
 *     scratch/                       BELAY_CHECKPOINT_DIR and TMPDIR; saved whole with each dump
 *     checkpoint/                    accessible to root only; the content of the checkpoint:
 *         images/pre, images/dump    criu's images; pre: memory written before the freeze, for
 *                                    large programs
 *         files.json, files/N        the job's own open files (criu_files.h)
 *         scratch/                   a copy of scratch/
 *     dump.log, restore.log          criu's logs
 *     hook, rights                   the action script, and the mark that it has run
 *                                    (criu_rights.h)
 */
#ifndef BELAY_AGENT_CRIU_CRIU_H
#define BELAY_AGENT_CRIU_CRIU_H

#include "base/err.h"
#include "base/wire/wire.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRIU_SANDBOX "/run/belay-task"
#define CRIU_IMAGES CRIU_SANDBOX "/checkpoint/images"
/* pid of the script in its sandbox: above the pids that a restore uses before, and never reused */
#define CRIU_ROOT_PID 1000
/* maximum size, in bytes, of an open file without a name, which is saved in the images */
#define CRIU_GHOST_LIMIT "67108864"

/* Abilities of CRIU on this node; zeroed: none. */
struct criu {
    char path[256];
    char cuda_checkpoint[256]; /* with WIRE_CRIU_GPU */
    /* the kernel tracks changed memory: a dump before the freeze is useful */
    bool tracks;
    enum wire_criu can; /* never WIRE_CRIU_UNKNOWN */
    char text[256];     /* its version, or the reason why it cannot be used */
};

/* Determines path, version and abilities, once, by running `criu --version` and `criu check`, each
 * with a deadline of CRIU_PROBE_MS. Blocks. path: an absolute path; "no": not to be used; "":
 * searched for in PATH and the usual directories. The result is not verified: criu_trial
 * (criu_trial.h) saves and restores a program. */
#define CRIU_PROBE_MS 10000
void criu_probe(const char *path, struct criu *ret_criu);

/* Parses "Version: 3.17.1\n..."; false if text has another form. Pure, like all functions up to
 * criu_call. */
bool criu_parse_version(
    const char *text, int *ret_major, int *ret_minor, char *ret_text, size_t size);

/* The reason of a failure in a log or an output of criu: its last line with an error, without
 * time and source position; else its last line. ret_text is sanitized and cut; "" if there is no
 * line. */
void criu_last_error(const char *log, size_t n, char *ret_text, size_t size);

/* Command lines, NULL-terminated; the words are constant or borrowed from c. Free the array with
 * free(). */
enum criu_step {
    CRIU_PRE_DUMP,     /* memory only, while the programs continue */
    CRIU_DUMP_RUNNING, /* everything; the programs continue afterwards */
    CRIU_DUMP_STOPPED  /* everything; the programs stay stopped (SIGSTOP) */
};
/* parent: a CRIU_PRE_DUMP has been made. timeout_ms: criu itself gives up earlier, by a tenth or by
 * a second, whichever is more, and lets the processes continue. Its default, 10 s, would include
 * the copying of device memory. */
const char **criu_dump_argv(
    const struct criu *c, enum criu_step step, bool parent, int64_t timeout_ms);
/* CRIU_OUTPUT_FD replaces the pipe that had this number (st_ino) at the dump. */
const char **criu_restore_argv(const struct criu *c, int64_t output);

/* Finds a program in PATH, then in the usual directories. */
bool criu_find_program(const char *name, char *out, size_t size);
/* PATH of the programs that criu_call runs; criu's plugins use it too. */
#define CRIU_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* Exit code of belay's programs that run criu: the processes that were dumped are damaged. */
#define CRIU_EXIT_DAMAGED 97
/* Runs a program to its end, with a minimal environment, no standard input, and its output read up
 * to a limit. Blocks; any thread. log: the file with the program's errors; NULL: its output has
 * them. ret_output (may be NULL, size > 0): the beginning of its output. ERR_TIMEOUT: it and its
 * process group were killed; ERR_CORRUPT: it ended with CRIU_EXIT_DAMAGED; ERR_IO: it failed
 * otherwise. The last two have the reason (criu_last_error). */
int criu_call(const char *const *argv, const char *what, const char *log, int64_t timeout_ms,
    char *ret_output, size_t size, struct err *e);
/* Runs the command line of criu_restore_argv. output: the write end of a pipe. */
#define CRIU_OUTPUT_FD 3
int criu_call_restore(
    const char *const *argv, int output, const char *log, int64_t timeout_ms, struct err *e);

#endif
