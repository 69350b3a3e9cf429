/* SPDX-License-Identifier: Apache-2.0
 *
 * The actions of `belay checkpoint` that go to the store: each works without belayd.
 */
#ifndef BELAY_CLI_CHECKPOINTS_H
#define BELAY_CLI_CHECKPOINTS_H

#include "cli/cli.h"
#include "cli/place.h"

struct checkpoints_options {
    struct place_options place;
    bool force, json;
};

/* True if there is such an action. */
bool checkpoints_has(const char *action);
/* words are those after the action. Returns the exit code, after a report. */
int checkpoints_run(
    const struct checkpoints_options *o, const char *action, const char *const *words, int n_words);

#endif
