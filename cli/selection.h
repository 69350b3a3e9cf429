/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs selected by their properties: options that `belay list` and `belay cancel` share, as
 * parameters of GET /api/v1/jobs.
 */
#ifndef BELAY_CLI_SELECTION_H
#define BELAY_CLI_SELECTION_H

#include "cli/cli.h"

/* popt vals of the options; a verb's own are below. */
enum {
    SELECTION_STATE = 100,
    SELECTION_USER,
    SELECTION_TEAM,
    SELECTION_POOL,
    SELECTION_NAME,
    SELECTION_LABEL,
    SELECTION_END
};

/* Rows of a verb's popt table. */
#define SELECTION_OPTIONS                                                                          \
    {"state", 's', POPT_ARG_STRING, NULL, SELECTION_STATE,                                         \
        "only jobs in these states: pending, running, cancelling, unfolded, ended; or that ended " \
        "like this: succeeded, failed, ...",                                                       \
        "LIST"},                                                                                   \
        {"user", 'u', POPT_ARG_STRING, NULL, SELECTION_USER, "only jobs of these users", "LIST"},  \
        {"account", 'A', POPT_ARG_STRING, NULL, SELECTION_TEAM, "only jobs of these teams",        \
            "LIST"},                                                                               \
        {"team", 0, POPT_ARG_STRING, NULL, SELECTION_TEAM, "alias of --account", "LIST"},          \
        {"pool", 'p', POPT_ARG_STRING, NULL, SELECTION_POOL,                                       \
            "only jobs that may run, run or ran in these pools", "LIST"},                          \
        {"name", 0, POPT_ARG_STRING, NULL, SELECTION_NAME,                                         \
            "only jobs of this name, where * matches any text; repeatable", "NAME"},               \
    {                                                                                              \
        "label", 'l', POPT_ARG_STRING, NULL, SELECTION_LABEL,                                      \
            "only jobs with this label, or NAME with any value; repeated labels must all match",   \
            "NAME=VALUE"                                                                           \
    }

/* Appends the parameter of an option of SELECTION_OPTIONS to the query, by cli_add_parameter. */
void selection_add(struct buf *query, int val, const char *arg);

/* Appends jobs of a query ("?user=ann&..."; may be empty) to `jobs` in pages, at most up to `limit`
 * in all, from the one after job `before` on (0 = the first one in the query's order). *ret_next:
 * the job after which belayd would continue, 0 after the last one. */
int selection_read(struct client *c, const char *query, int64_t before, int64_t limit, json_t *jobs,
    int64_t *ret_next, struct err *e);

#endif
