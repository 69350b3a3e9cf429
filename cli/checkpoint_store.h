/* SPDX-License-Identifier: Apache-2.0
 *
 * The actions of `belay checkpoint` on the store: all work without belayd.
 */
#ifndef BELAY_CLI_CHECKPOINT_STORE_H
#define BELAY_CLI_CHECKPOINT_STORE_H

#include "cli/cli.h"
#include "cli/store_location.h"

struct checkpoints_options {
    struct store_location_options location;
    bool force, json;
};

/* Whether the action exists. */
bool checkpoints_has(const char *action);
/* words follow the action. Returns the exit code, after a report. */
int checkpoints_run(
    const struct checkpoints_options *o, const char *action, const char *const *words, int n_words);

/* Extracts the newest checkpoint of a job to a new directory dir (absolute, its parent exists).
 * *ret_progress: -1 if it has none. ERR_NOT_FOUND: the job has no checkpoint (any more). */
int checkpoints_get_newest(int64_t job, const char *dir, int64_t *ret_progress, struct err *e);

#endif
