/* SPDX-License-Identifier: Apache-2.0
 *
 * When a job that waits will start, as far as one can say: what runs and what waits is played
 * forward from the model as it is now.
 *
 * What is played. Each node that takes work, with what is free of it and what runs there; each
 * machine that is on its way, and those that are launched for what waits, in its order, as the
 * pools' room and offers allow, after the boot time measured of the offer; what waits, by its kind,
 * in the order of the queue, those behind the job too; limits of users and teams, licences, and the
 * reservations of the first of the queue (reserve.c). When something ends, the first that fits
 * there starts. Nothing is looked at that did not change, and nobody comes later.
 *
 *   median   of several such plays. In each everything runs for as long as runtimes.h draws for it;
 *            as many plays as a budget of work allows, at least one: where much goes on the law of
 *            large numbers does the rest
 *   latest   of one play in which all run to their time limits and machines take twice as long to
 *            boot, and of the above; not known where that needs the end of something without a
 *            limit. It is met by nine jobs in ten if nobody comes before them later; not by all,
 *            for a job that ends early may let another in that then is in the way for longer
 *
 * Not promised: a start that a budget, or the job's own cap, does not pay for now beside what
 * stands before it; on machines of a pool of which none joins (boots.c), and of offers that refused
 * REFUSED_OFTEN times in a row. What racks may draw is played (racks.c).
 *
 * What is not: jobs that come or are cancelled, the order changing with what is used, reclaims and
 * their requeues, evictions for a quota, refusals of launches, named resources beyond whether a
 * node has any, what a limit leaves to gangs that may shrink, and that the windows of others close.
 * After FORECAST_WORK steps the rest ahead is not played but divided by what the nodes that it may
 * run on can do at once. Kinds of demand beyond the FORECAST_LOTS first count as the one that is
 * most like them.
 *
 * Reads only, needs no more memory than what it frees, and takes some milliseconds with 100,000
 * jobs in the queue (bench/plan.c). PURE: the random numbers come from the job's number.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_FORECAST_H
#define BELAY_SCHEDULER_CORE_FORECAST_FORECAST_H

#include "scheduler/core/model/model.h"

#define FORECAST_WORK 4096
#define FORECAST_LOTS 128
#define FORECAST_RUNS 15

struct forecast {
    bool is_now;        /* it has room: the next decisions place it */
    struct wall median; /* WALL_NONE: not known */
    struct wall latest; /* WALL_NONE: not known */
    /* where it was in the play of the median; CORE_ID_NONE: on a machine to come */
    int64_t node;
    int64_t offer; /* that this is of; CORE_ID_NONE */
    /* what it costs that it reads its input there, once; 0: nothing, or nobody knows where that
     * is */
    int64_t input_uusd;
    char why[CORE_TEXT_MAX]; /* why one of the two moments is not known; else "" */
};

/* False: the job does not wait, or is not in the model. */
bool core_forecast(
    const struct model *m, struct stamp now, int64_t job, struct forecast *ret_forecast);

#endif
