/* SPDX-License-Identifier: Apache-2.0
 *
 * A job whose command uses the input and terminal of the submitting process: belay run --tty, srun
 * --pty, salloc.
 *
 *     submitted as the job's script   belay run --host COMMAND    waits for the guest, exits with
 *                                          ^                      the command's exit code
 *                                          | a pipe in the control directory
 *     run in a session with the job   belay run --guest COMMAND   runs the command
 *
 * So the command runs in a session (cli/session.h), its terminal closes with the user's, and the
 * job ends with the command, however that ends: the pipe reports it.
 */
#ifndef BELAY_CLI_INTERACTIVE_H
#define BELAY_CLI_INTERACTIVE_H

#include "cli/submission.h"

#define INTERACTIVE_HOST "--host"
#define INTERACTIVE_GUEST "--guest"
/* exit code of a host whose guest vanished: as for SIGHUP */
#define INTERACTIVE_BROKE 129

/* Submits the job, prints on stderr what it waits for, connects, and returns the exit code when the
 * job has ended. The job is not queued again after any end, unless its flags say so; in that case
 * it is awaited again, and the command starts from the beginning. A signal that ends this process
 * ends the job. */
int interactive_run(struct submission *s, const char *const *words, int n_words, bool tty);

/* Run inside the job. Both return the exit code. */
int interactive_host(void);
int interactive_guest(char *const *words);

#endif
