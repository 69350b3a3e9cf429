/* SPDX-License-Identifier: Apache-2.0
 *
 * A job whose command has its input, and its terminal, from who submits it: belay run --tty, srun
 * --pty, salloc.
 *
 *     submitted as the job's script   belay run --host COMMAND    waits for the guest, exits with
 *                                          ^                      the command's exit code
 *                                          | a pipe in the control directory
 *     run in a session with the job   belay run --guest COMMAND   runs the command
 *
 * So the command is where a session's are (cli/session.h), its terminal ends with who has it in
 * front of him, and the job ends with the command, however that ends: the pipe tells.
 */
#ifndef BELAY_CLI_INTERACTIVE_H
#define BELAY_CLI_INTERACTIVE_H

#include "cli/submit.h"

#define INTERACTIVE_HOST "--host"
#define INTERACTIVE_GUEST "--guest"
/* exit code of a host whose guest went without a word: as if hung up */
#define INTERACTIVE_BROKE 129

/* The whole: submits, says on stderr what the job waits for, connects, and returns the exit code
 * when the job has ended. It is not queued again after whatever ends it, unless its flags say so;
 * then it is waited for once more, and the command begins anew. A signal that ends us ends the
 * job. */
int interactive_run(struct submission *s, const char *const *words, int n_words, bool tty);

/* Inside the job. Both return the exit code. */
int interactive_host(void);
int interactive_guest(char *const *words);

#endif
