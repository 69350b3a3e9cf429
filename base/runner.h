/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a program, as a vtable: for a driver that reaches its provider through one (ssh). base/uv
 * implements it on libuv's processes; tests use a fake.
 */
#ifndef BELAY_BASE_RUNNER_H
#define BELAY_BASE_RUNNER_H

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

/* exit code of a program killed by a signal: this plus the signal number */
#define RUNNER_SIGNAL_BASE 128

/* Borrowed for the duration of runner_start. No secrets in argv: every user of the machine can read
 * it. */
struct runner_command {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    /* standard input, all of it; may contain a secret: wiped after use */
    const void *input;
    size_t input_len;
    /* required, > 0; on expiry the program and its process group are killed */
    int64_t timeout_ms;
    size_t max_output_bytes; /* more output fails with ERR_INVALID; required, > 0 */
};

struct runner_result {
    int exit_code;
    struct buf output; /* standard output */
    struct buf errors; /* the last RUNNER_ERRORS_MAX bytes of standard error, unmodified */
};

#define RUNNER_ERRORS_MAX 1024

struct run; /* a program in progress */

/* Exactly one of e and result is NULL; both are borrowed for the call. Any exit code is a result.
 * e: ERR_NOT_FOUND, ERR_DENIED (the program cannot be started), ERR_TIMEOUT, ERR_INVALID (too much
 * output), ERR_CANCELLED, ERR_IO. */
typedef void (*runner_done_fn)(void *ctx, const struct err *e, const struct runner_result *result);

struct runner {
    /* done runs exactly once, never inside start, and not before the program has ended. The
     * program's environment is PATH, HOME and LANG=C; it has a session of its own without a
     * terminal. The returned run is valid until done runs. */
    struct run *(*start)(
        struct runner *r, const struct runner_command *c, runner_done_fn done, void *ctx);
    /* Kills the program. Makes done run soon, with ERR_CANCELLED unless it had ended; never runs it
     * inside. */
    void (*cancel)(struct runner *r, struct run *run);
};

static inline struct run *runner_start(
    struct runner *r, const struct runner_command *c, runner_done_fn done, void *ctx)
{
    return r->start(r, c, done, ctx);
}

static inline void runner_cancel(struct runner *r, struct run *run)
{
    if (run)
        r->cancel(r, run);
}

#endif
