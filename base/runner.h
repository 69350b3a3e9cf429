/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a program as a vtable: a driver whose provider is reached by one (ssh) uses it; base/uv
 * implements it on libuv's processes, tests play it.
 */
#ifndef BELAY_BASE_RUNNER_H
#define BELAY_BASE_RUNNER_H

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

/* exit code of a program that a signal ended: this and the signal's number */
#define RUNNER_SIGNAL_BASE 128

/* Borrowed for the duration of runner_start. No secrets in argv: everybody on the machine can read
 * it. */
struct runner_command {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    /* its standard input, to the end; may hold a secret: wiped after use */
    const void *input;
    size_t input_len;
    int64_t timeout_ms;      /* required, > 0; then it and its process group are killed */
    size_t max_output_bytes; /* more ends it with ERR_INVALID; required, > 0 */
};

struct runner_result {
    int exit_code;
    struct buf output; /* standard output */
    struct buf errors; /* the last RUNNER_ERRORS_MAX bytes of standard error, as they came */
};

#define RUNNER_ERRORS_MAX 1024

struct run; /* under way */

/* Exactly one of e and result is NULL; both borrowed for the call. Any exit code is a result. e:
 * ERR_NOT_FOUND, ERR_DENIED (the program cannot be started), ERR_TIMEOUT, ERR_INVALID (too much
 * output), ERR_CANCELLED, ERR_IO. */
typedef void (*runner_done_fn)(void *ctx, const struct err *e, const struct runner_result *result);

struct runner {
    /* done runs exactly once, never inside start, and not before the program has ended. Its
     * environment is PATH, HOME and LANG=C, its session a new one without a terminal. Valid until
     * done. */
    struct run *(*start)(
        struct runner *r, const struct runner_command *c, runner_done_fn done, void *ctx);
    /* Kills it; hastens done (with ERR_CANCELLED unless it had ended) and never runs it inside. */
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
