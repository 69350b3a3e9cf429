/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that programs of jobs can be reached and executed below the agent's directory. A node
 * where they cannot would fail every job that it gets, and so empty the queue.
 */
#ifndef BELAY_AGENT_DIR_TRIAL_H
#define BELAY_AGENT_DIR_TRIAL_H

#include "base/err.h"

/* Executes a one-line script below dir/tasks as the agent's own user and, if the agent is root,
 * also as a user without rights. If a directory does not exist yet, the test uses the directory in
 * which it would be created. The script is removed again. If the disk has no space for it, nothing
 * is tested.
 *
 * If system_users has root, a directory that other users cannot pass is only logged. Returns 0,
 * ERR_CONFIG with what to do, or the error of writing the script or of starting a process. Blocks
 * for some seconds at most.
 */
int dir_trial(const char *dir, const char *system_users, struct err *e);

/* Fills e with the reason why a job's script in dir was not executed (errno), and what to do.
 * of_others: the job's user is not the agent's. Returns ERR_CONFIG. */
int dir_trial_explain(const char *dir, int why, bool of_others, struct err *e);

#endif
