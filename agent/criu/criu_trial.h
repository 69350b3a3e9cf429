/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests whether CRIU works on this node: a small program is saved, killed and restored, in a
 * sandbox (criu_sandbox.h) and with the options of tasks. The node announces only what has passed.
 *
 *     agent --> belay-agent criu-trial --fork--> first process of the sandbox
 *       first process --fork--> the program (pid CRIU_ROOT_PID)
 *                    \--> criu dump, kill, criu restore
 *
 * The sandbox is in memory, so the test also works on a full disk.
 *
 * The program keeps a random text in memory ("cpu", a shell) or in the memory of each GPU ("gpu",
 * belay-agent criu-subject), and writes it to a file after the restore.
 */
#ifndef BELAY_AGENT_CRIU_CRIU_TRIAL_H
#define BELAY_AGENT_CRIU_CRIU_TRIAL_H

#include "agent/criu/criu.h"

#define CRIU_TRIAL_MS 60000 /* limit of each of the two tests; they usually take under a second */

/* Tests the abilities in c->can. If a test fails, GPU becomes CPU or CPU becomes NO, and c->text
 * has the reason. Blocks. */
void criu_trial(struct criu *c);

/* ---- programs of the agent's own ---- */
int criu_trial_main(int argc, char **argv);   /* criu-trial CRIU cpu|gpu */
int criu_subject_main(int argc, char **argv); /* criu-subject TEXT */

#endif
