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
    /* For the requested pools: sums of time times GPUs (or CPUs): that existed, that jobs held,
     * that were useful, that still run. */
    int64_t there_ms, held_ms, useful_ms, running_ms;
    /* The part of held_ms whose utilisation agents reported, and the part of that in which GPUs
     * were busy; 0 for cpus. */
    int64_t measured_ms, busy_ms;
    /* micro-dollars per unit and hour, from the nodes with a list price; 0 if none has one */
    double on_demand_uusd_h;
    char pools[96]; /* names of the pools, cut if too long */
};

/* Reads the last `weeks` of one pool or (pool NULL) of all reserved pools, elastic_too: of all
 * pools. step_ms 0: without steps. ERR_NOT_FOUND: there were no nodes. */
int use_read(int64_t weeks, const char *pool, bool elastic_too, int64_t step_ms,
    struct use *ret_use, struct err *e);
void use_deinit(struct use *u);

/* The useful part of the capacity, 0 .. 1; running work counts as useful. there_ms > 0. */
double use_productive(const struct use *u);
/* The busy part of what jobs held, 0 .. 1; negative if no GPU was measured. */
double use_busy(const struct use *u);
/* The utilisation of the capacity, 0 .. 1: use_productive() times use_busy(), or alone if no GPU
 * was measured. */
double use_utilisation(const struct use *u);

/* Reclaims per machine-hour of ended spot machines, of one pool or (pool NULL) of all, over the
 * time that belayd keeps. ret_text gives both numbers, for people. ERR_NOT_FOUND: no spot machine
 * has ended. */
int use_read_interruptions(
    const char *pool, double *ret_per_hour, char ret_text[USE_SOURCE_MAX], struct err *e);

/* A verb's --weeks. CLI_USAGE after a report. */
int use_read_weeks(const char *arg, int64_t *ret_weeks);

#endif
