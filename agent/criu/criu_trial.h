/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether CRIU really works on this node: a small program is saved, killed and restored, in a room
 * as tasks have (criu_room.h), with the options that tasks have. What passed is announced.
 *
 *     agent --> belay-agent criu-trial --fork--> first process of the room
 *       first process --fork--> the program (pid CRIU_ROOT_PID)
 *                    \--> criu dump, kill, criu restore
 *
 * The room is in memory: a full disk does not make a node lose its CRIU.
 *
 * The program holds a random text, in memory ("cpu", a shell) or in the memory of each GPU ("gpu",
 * belay-agent criu-subject), and writes it to a file after it was restored.
 */
#ifndef BELAY_AGENT_CRIU_CRIU_TRIAL_H
#define BELAY_AGENT_CRIU_CRIU_TRIAL_H

#include "agent/criu/criu.h"

#define CRIU_TRIAL_MS 60000 /* of each of the two; under a second as a rule */

/* Tries what c->can says, and takes back what failed: GPU becomes CPU, that NO, and c->text
 * says why. Blocks. */
void criu_trial(struct criu *c);

/* ---- programs of the agent's own ---- */
int criu_trial_main(int argc, char **argv);   /* criu-trial CRIU cpu|gpu */
int criu_subject_main(int argc, char **argv); /* criu-subject TEXT */

#endif
