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

/* What the newest checkpoint of a job holds, as a new directory dir (absolute, its parent is
 * there). *ret_progress: -1 if it tells none. ERR_NOT_FOUND: the job has none (any more). */
int checkpoints_get_newest(int64_t job, const char *dir, int64_t *ret_progress, struct err *e);

#endif
