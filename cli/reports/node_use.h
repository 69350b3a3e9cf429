/* SPDX-License-Identifier: Apache-2.0
 *
 * Recent use of belayd's nodes (GET /api/v1/use), for verbs that give advice.
 */
#ifndef BELAY_CLI_REPORTS_NODE_USE_H
#define BELAY_CLI_REPORTS_NODE_USE_H

#include "cli/cli.h"

#define USE_WEEKS 4
#define USE_WEEKS_MAX 52
#define USE_SOURCE_MAX 160

struct use {
    json_t *reply;
    const char *unit; /* "gpus", or "cpus" if no node had a GPU */
    /* For the requested pools: time times units. */
    int64_t there_ms, held_ms, useful_ms, running_ms;
    /* per unit and hour, from the list prices of nodes that have one; 0 if none has */
    double on_demand_uusd_h;
    char pools[96]; /* their names */
};

/* The last weeks of one pool, or (NULL) of all requested. ERR_NOT_FOUND: they had no nodes then. */
int use_read(int64_t weeks, const char *pool, bool elastic_too, int64_t step_ms,
    struct use *ret_use, struct err *e);
void use_deinit(struct use *u);

/* The useful part of the capacity, 0 .. 1; running work counts as useful. there_ms > 0. */
double use_productive(const struct use *u);

/* Reclaims per hour of spot machines of one pool or (NULL) all, over ended machines, for as long as
 * belayd keeps them. ERR_NOT_FOUND: there were none. The text gives the number of machines. */
int use_read_interruptions(
    const char *pool, double *ret_per_hour, char ret_text[USE_SOURCE_MAX], struct err *e);

/* A verb's --weeks. CLI_USAGE after a report. */
int use_read_weeks(const char *arg, int64_t *ret_weeks);

#endif
