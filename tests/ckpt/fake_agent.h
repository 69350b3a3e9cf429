/* SPDX-License-Identifier: Apache-2.0
 *
 * A small agent for tests of the job's side: runs one attempt of a program as specified in
 * docs/reference/checkpoints.md, with real saves and restores.
 */
#ifndef BELAY_TESTS_CKPT_FAKE_AGENT_H
#define BELAY_TESTS_CKPT_FAKE_AGENT_H

#include "tests/ckpt/tools.h"

struct fake_attempt {
    int64_t attempt;
    const char *const *argv;
    const char *cwd;      /* NULL for ours */
    const char *path_add; /* prepended to PATH; may be NULL */
    const char *ask_at;   /* a save is requested once this is in the output; NULL = never */
    const char *reason;   /* "notice" or "periodic" */
    int signal;           /* request saves by this signal; 0 = by a request file */
    const char *refuse;   /* answer commits with this error; NULL to serve them */
    /* results */
    int exit_code; /* -1 = killed by a signal */
    int commits;   /* served */
    int64_t restored_progress;
    int64_t last_progress; /* of commits and the progress file; -1 = none */
    struct buf output;     /* stdout and stderr */
};

/* Fails the test if the program does not end within a minute. The caller frees output. */
void fake_attempt_run(struct scratch *s, struct fake_attempt *a);

#endif
