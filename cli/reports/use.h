/* SPDX-License-Identifier: Apache-2.0
 *
 * What belayd knows of how its nodes were used lately (GET /api/v1/use), for verbs that give
 * advice.
 */
#ifndef BELAY_CLI_REPORTS_USE_H
#define BELAY_CLI_REPORTS_USE_H

#include "cli/cli.h"

#define USE_WEEKS 4
#define USE_WEEKS_MAX 52
#define USE_SOURCE_MAX 160

struct use {
    json_t *reply;
    const char *unit; /* "gpus", or "cpus" where no node had a GPU */
    /* Of the pools that were asked for: time times units. */
    int64_t there_ms, held_ms, useful_ms, running_ms;
    /* of one an hour, by the list prices of those nodes that have one; 0: none has */
    double on_demand_uusd_h;
    char pools[96]; /* their names */
};

/* The last weeks of one pool, or (NULL) of all that are wanted. ERR_NOT_FOUND: they had no nodes
 * then. */
int use_read(int64_t weeks, const char *pool, bool elastic_too, int64_t step_ms,
    struct use *ret_use, struct err *e);
void use_deinit(struct use *u);

/* Of what was there, 0 .. 1: the useful part, what still runs counted as useful. there_ms > 0. */
double use_productive(const struct use *u);

/* How often an hour spot machines were taken back, of one pool or (NULL) all, for as long as belayd
 * remembers: of those that have ended. ERR_NOT_FOUND: there were none. The text says of how
 * many. */
int use_read_interruptions(
    const char *pool, double *ret_per_hour, char ret_text[USE_SOURCE_MAX], struct err *e);

/* --weeks of a verb. CLI_USAGE after a report. */
int use_read_weeks(const char *arg, int64_t *ret_weeks);

#endif
