/* SPDX-License-Identifier: Apache-2.0
 *
 * CRIU, which checkpoints processes without their help: what it can do on this node, how it is
 * called.
 *
 * A task with the method criu lives in a room of its own: a pid namespace, so that its pids are
 * free on every node, and a mount namespace in which its directory is at CRIU_ROOM, so that its
 * paths are the same on every node. criu is called inside of that and dumps processes, not
 * namespaces. Below CRIU_ROOM:
 *
 *     script, control/               as in every task's directory
 *     output.pipe                    number of the pipe that carries its output: a restore puts
 *                                    another one in its place
 *     scratch/                       BELAY_CHECKPOINT_DIR and TMPDIR: saved whole with each dump
 *     checkpoint/                    root's alone; what goes to the store:
 *         images/pre, images/dump    criu's; pre: of memory, before the freeze, if that was worth
 *                                    it
 *         files.json, files/N        the job's own open files (criu_files.h)
 *         scratch/                   the copy
 *     dump.log, restore.log          criu's last words
 *     hook, rights                   what criu calls, and that it was called (criu_rights.h)
 */
#ifndef BELAY_AGENT_CRIU_CRIU_H
#define BELAY_AGENT_CRIU_CRIU_H

#include "base/err.h"
#include "base/wire/wire.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRIU_ROOM "/run/belay-task"
#define CRIU_IMAGES CRIU_ROOM "/checkpoint/images"
#define CRIU_ROOT_PID                                                                              \
    1000 /* of the script in its room: above what a restore needs before, and never given again */
/* bytes of an open file without a name that go into the images */
#define CRIU_GHOST_LIMIT "67108864"

/* What can be done here; as a zeroed struct nothing. */
struct criu {
    char path[256];
    char cuda_checkpoint[256]; /* with WIRE_CRIU_GPU */
    bool tracks;               /* memory that changes: a dump before the freeze pays */
    enum wire_criu can;        /* never WIRE_CRIU_UNKNOWN */
    char text[256];            /* its version, or why not */
};

/* Asks the program itself, once: `--version`, `check`, each with a deadline of CRIU_PROBE_MS.
 * Blocks. path: an absolute one, "no" (not to be used), or "": looked for in PATH and the system's
 * usual places. What it says can be done is not yet proved: criu_trial (criu_trial.h) saves and
 * restores a program. */
#define CRIU_PROBE_MS 10000
void criu_probe(const char *path, struct criu *ret_criu);

/* "Version: 3.17.1\n..." False: it is none. Pure, as all that follow up to criu_call. */
bool criu_parse_version(
    const char *text, int *ret_major, int *ret_minor, char *ret_text, size_t size);

/* What a log or an output of criu's says at the end about why it failed: its last line with an
 * error, without time and place in criu's source; else its last line at all. ret_text is sanitized
 * and cut; "" when there is nothing. */
void criu_last_error(const char *log, size_t n, char *ret_text, size_t size);

/* Command lines, NULL-terminated; the words are constant or borrowed from c. Free the array with
 * free(). */
enum criu_step {
    CRIU_PRE_DUMP,     /* memory, while the programs go on */
    CRIU_DUMP_RUNNING, /* all; they go on after it */
    CRIU_DUMP_STOPPED  /* all; they stay stopped (SIGSTOP) */
};
/* parent: CRIU_PRE_DUMP came before. timeout_ms: criu gives up earlier by itself, a tenth before it
 * or a second, whichever is more, and lets the processes go on. Its own default, 10 s, includes the
 * copying of device memory. */
const char **criu_dump_argv(
    const struct criu *c, enum criu_step step, bool parent, int64_t timeout_ms);
/* CRIU_OUTPUT_FD takes the place of the pipe with this number (st_ino) at the dump. */
const char **criu_restore_argv(const struct criu *c, int64_t output);

/* The first place of PATH, and of those that systems usually have, where there is such a
 * program. */
bool criu_find_program(const char *name, char *out, size_t size);
/* The PATH of what criu_call runs, which is criu's for its plugins. */
#define CRIU_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* The exit code of our own programs that run criu: the processes that it dumped are damaged. */
#define CRIU_EXIT_DAMAGED 97
/* Runs a program to its end, with a short environment, no standard input, and its output read and
 * bounded. Blocks; any thread. log: the file that has its errors; NULL: its output has. ret_output
 * (may be NULL, size > 0): the beginning of its output. ERR_TIMEOUT: it and its process group were
 * killed; ERR_CORRUPT: it ended with CRIU_EXIT_DAMAGED; ERR_IO: it failed otherwise. Both with
 * criu_last_error. */
int criu_call(const char *const *argv, const char *what, const char *log, int64_t timeout_ms,
    char *ret_output, size_t size, struct err *e);
/* Runs what criu_restore_argv says. output: the write end of a pipe. */
#define CRIU_OUTPUT_FD 3
int criu_call_restore(
    const char *const *argv, int output, const char *log, int64_t timeout_ms, struct err *e);

#endif
