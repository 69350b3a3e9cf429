/* SPDX-License-Identifier: Apache-2.0
 *
 * A small agent for tests of the job's side: runs one attempt of a program as
 * docs/reference/checkpoints.md promises it, with real saves and restores.
 */
#ifndef BELAY_TESTS_CKPT_FAKE_AGENT_H
#define BELAY_TESTS_CKPT_FAKE_AGENT_H

#include "tests/ckpt/tools.h"

struct fake_attempt {
    int64_t attempt;
    const char *const *argv;
    const char *cwd;      /* NULL: as we are */
    const char *path_add; /* put before PATH; NULL: nothing */
    const char *ask_at;   /* once this is in the output, a save is asked for; NULL: never */
    const char *reason;   /* "notice" or "periodic" */
    int signal;           /* asked for by this signal; 0: by a request */
    const char *refuse;   /* commits are answered with this error; NULL: they are served */
    /* what happened */
    int exit_code; /* -1: killed by a signal */
    int commits;   /* served */
    int64_t restored_progress;
    int64_t last_progress; /* of commits and the progress file; -1: none */
    struct buf output;     /* stdout and stderr */
};

/* Fails the test if the program does not end within a minute. The caller frees output. */
void fake_attempt_run(struct scratch *s, struct fake_attempt *a);

#endif
