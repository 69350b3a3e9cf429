/* SPDX-License-Identifier: Apache-2.0
 *
 * Forecast of a pending job's start: running and pending jobs are simulated forward from the
 * current state of the model.
 *
 * What is simulated. Nodes that accept work, with their free resources and running jobs; coming
 * machines, and those that are launched for pending jobs, in queue order, within the pools'
 * capacity and offers, after the measured boot time of the offer; pending jobs by demand, in queue
 * order, including those behind the job; limits of users and teams, licences, and the reservations
 * of the head of the queue (reserve.c). When a job ends, the first job that fits there starts. Only
 * changed slots are examined, and no jobs arrive.
 *
 *   median   of several runs. In each, every job runs for a time drawn by runtimes.h. The number of
 *            runs is limited by a budget of work, at least one: with many jobs, the law of large
 *            numbers makes one run sufficient
 *   latest   of one run in which all jobs run to their time limits and machines take twice as long
 *            to boot, and of the runs above; unknown if it depends on the end of a job without a
 *            limit. Nine of ten jobs meet it if no job arrives before them. Not all do, because a
 *            job that ends early may admit another one that blocks for longer
 *
 * Not predicted: a start that a budget, or the job's own cap, cannot pay for now in addition to the
 * jobs before it; machines of a pool with failed boots (boots.c), and of offers that refused
 * REFUSED_OFTEN times in a row. Rack power is simulated (racks.c), and so are reservations for
 * maintenance (maintenance.h): a job that would still run at the start of one and cannot be saved
 * begins there after its end. What they stop at their start is not.
 *
 * Not simulated: arrivals and cancels, changes of the order with usage, reclaims and their
 * requeues, preemption by quota, refused launches, named resources beyond whether a node has any,
 * what a limit leaves to gangs that may shrink, and closing windows of other jobs. After
 * FORECAST_WORK steps the rest ahead is not simulated but divided by the capacity of the nodes that
 * the job may use. Beyond the first FORECAST_DEMANDS different demands, others count as the most
 * similar of them.
 *
 * Reads only, frees all its memory, and takes some milliseconds with 100,000 queued jobs
 * (bench/plan.c). PURE: the random numbers come from the job's number.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_FORECAST_H
#define BELAY_SCHEDULER_CORE_FORECAST_FORECAST_H

#include "scheduler/core/model/model.h"

#define FORECAST_WORK 4096
#define FORECAST_DEMANDS 128
#define FORECAST_RUNS 15

struct forecast {
    bool is_now;        /* there is capacity: the next decisions place it */
    struct wall median; /* WALL_NONE = unknown */
    struct wall latest; /* WALL_NONE = unknown */
    /* Place in the run of the median; CORE_ID_NONE: a future machine. */
    int64_t node;
    int64_t offer; /* offer of the future machine; CORE_ID_NONE */
    /* Cost of reading its input there once; 0: none, or its location is unknown. */
    int64_t input_uusd;
    char why[CORE_TEXT_MAX]; /* why median or latest is unknown; else "" */
};

/* False: the job is not pending, or not in the model. */
bool core_forecast(
    const struct model *m, struct stamp now, int64_t job, struct forecast *ret_forecast);

#endif
