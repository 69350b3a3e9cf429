/* SPDX-License-Identifier: Apache-2.0
 *
 * What `belay drill --compare` does beside the drill: it holds the result of the drilled job
 * against that of a run that nothing disturbed, by a command of the user's, and tells belayd. A
 * result is the newest checkpoint that a job has when it has ended.
 */
#ifndef BELAY_CLI_REPORTS_COMPARE_H
#define BELAY_CLI_REPORTS_COMPARE_H

#include "cli/cli.h"

#define COMPARE_LIMIT_MS 600000 /* for the command, unless it is told */

struct compare {
    /* for sh; gets two directories: the undisturbed result, and the resumed one. NULL: nothing is
     * compared */
    char *command;
    int64_t against;  /* the undisturbed job */
    int64_t limit_ms; /* of the command; then it is killed, with its process group */
};

/* That against has ended well, in one attempt, and is of the same script and arguments as job.
 * ERR_INVALID says what to do. */
int compare_check(struct client *c, const struct compare *w, int64_t job, struct err *e);

/* After the job's end: fetches both results, runs the command and tells belayd what it said of this
 * drill. Blocks. An error: there is no verdict, and belayd is told nothing. */
int compare_run(
    struct client *c, const struct compare *w, int64_t job, int64_t drill, struct err *e);

#endif
