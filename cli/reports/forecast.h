/* SPDX-License-Identifier: Apache-2.0
 *
 * belay cost forecast: a job that is not submitted, on each offer of a file of pools.
 */
#ifndef BELAY_CLI_REPORTS_FORECAST_H
#define BELAY_CLI_REPORTS_FORECAST_H

#include "cli/cli.h"

#define FORECAST_OPTION 100 /* vals of its options, from there on */

enum {
    FORECAST_POOLS = FORECAST_OPTION,
    FORECAST_TRACE,
    FORECAST_WORK,
    FORECAST_FINISH_BY,
    FORECAST_CPUS,
    FORECAST_GPUS,
    FORECAST_MEMORY,
    FORECAST_NODES,
    FORECAST_MARKET,
    FORECAST_BOOT,
    FORECAST_RESTORE,
    FORECAST_SAVE,
    FORECAST_NO_CHECKPOINTS,
    FORECAST_NOTICE,
    FORECAST_STARTS,
    FORECAST_INPUT
};

struct forecast;

struct forecast *forecast_create(void);
void forecast_destroy(struct forecast *f);                         /* NULL is fine */
int forecast_option(struct forecast *f, int val, const char *arg); /* as cli_option_fn */
bool forecast_was_asked(const struct forecast *f);  /* one of its options was given */
int forecast_run(struct forecast *f, bool as_json); /* the exit code */

#endif
