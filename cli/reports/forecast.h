/* SPDX-License-Identifier: Apache-2.0
 *
 * belay cost forecast: a hypothetical job on each offer of a pool file.
 */
#ifndef BELAY_CLI_REPORTS_FORECAST_H
#define BELAY_CLI_REPORTS_FORECAST_H

#include "cli/cli.h"

#define FORECAST_OPTION 100 /* first val of its options */

enum {
    FORECAST_POOLS = FORECAST_OPTION,
    FORECAST_TRACE,
    FORECAST_WORK,
    FORECAST_TIME,
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
    FORECAST_INPUT,
    FORECAST_LIMIT
};

struct forecast;

struct forecast *forecast_create(void);
void forecast_destroy(struct forecast *f);                         /* f may be NULL */
int forecast_option(struct forecast *f, int val, const char *arg); /* a cli_option_fn */
bool forecast_was_asked(const struct forecast *f);  /* whether one of its options was given */
int forecast_run(struct forecast *f, bool as_json); /* returns the exit code */

#endif
