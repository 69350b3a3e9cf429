/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether programs of jobs can be reached and executed below the agent's directory. A node where
 * they cannot would fail every job that it gets, and so empty the queue.
 */
#ifndef BELAY_AGENT_DIR_TRIAL_H
#define BELAY_AGENT_DIR_TRIAL_H

#include "base/err.h"

/* Executes a script of one line below dir/tasks as the agent's own user and, if the agent is root,
 * as a user without rights. What does not exist yet is tried in the directory where it would be
 * made. The script is removed again. Without room for it on the disk nothing is tried.
 *
 * An agent whose system_users has root may keep its directory from others: it is logged. Returns 0,
 * ERR_CONFIG with what to do, or why the script could not be written. Blocks for at most some
 * seconds. */
int dir_trial(const char *dir, const char *system_users, struct err *e);

/* Fills e with why a job's script in dir was not executed (errno), and what to do. of_others: its
 * user is another than ours. Returns ERR_CONFIG. */
int dir_trial_explain(const char *dir, int why, bool of_others, struct err *e);

#endif
