/* SPDX-License-Identifier: Apache-2.0
 *
 * The comparison of `belay drill --compare`: runs a command of the user on the results of the
 * drilled job and of an undisturbed run, and reports the verdict to belayd. A result is the newest
 * checkpoint of a job after its end.
 */
#ifndef BELAY_CLI_REPORTS_COMPARE_H
#define BELAY_CLI_REPORTS_COMPARE_H

#include "cli/cli.h"

#define COMPARE_LIMIT_MS 600000 /* default time limit of the command */

struct compare {
    /* run by sh with two directories, the undisturbed result and the resumed one; NULL for no
     * comparison */
    char *command;
    int64_t against; /* the undisturbed job */
    /* both jobs as the user named them */
    char job_name[CLI_JOB_MAX], against_name[CLI_JOB_MAX];
    int64_t limit_ms; /* time limit of the command, after which its process group is killed */
};

/* Checks that against has succeeded in one attempt, with the same script and arguments as job.
 * ERR_INVALID says what to do. */
int compare_check(struct client *c, const struct compare *w, int64_t job, struct err *e);

/* After the job's end: fetches both results, runs the command and reports its verdict on this drill
 * to belayd. Blocks. After an error there is no verdict, and belayd is not informed. */
int compare_run(
    struct client *c, const struct compare *w, int64_t job, int64_t drill, struct err *e);

#endif
