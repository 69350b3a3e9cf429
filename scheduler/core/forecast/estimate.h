/* SPDX-License-Identifier: Apache-2.0
 *
 * What a submit would come to: when and where the job would start, and what it would cost. Nothing
 * is changed.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_ESTIMATE_H
#define BELAY_SCHEDULER_CORE_FORECAST_ESTIMATE_H

#include "scheduler/core/forecast/ahead.h"
#include "scheduler/core/forecast/remedies.h"
#include "scheduler/core/forecast/forecast.h"

struct estimate {
    int64_t job;           /* the number that it would get if nobody came before it */
    struct forecast start; /* of an array: of its first task */
    int32_t nodes;         /* that it would start on, at least */
    int64_t tasks;         /* of an array; else 1 */
    /* How long it runs: as forecasts expect, and from .. to; most_ms 0: nobody knows. */
    int64_t expected_ms, least_ms, most_ms;
    /* All of its nodes, and all tasks, where it would start: by the hour (of one task), and in all.
     * The expected sum has what reclaims are expected to cost, too. -1: not known. */
    int64_t uusd_h, expected_uusd, least_uusd, most_uusd;
    /* what it would cost to read its input there, once for each task: part of the sums. 0 where
     * nothing is known */
    int64_t input_uusd;
    struct reason reasons[EXPLAIN_REASONS_MAX]; /* why it would not start now */
    size_t n_reasons;
    struct reason changes[REMEDIES_MAX]; /* as core_remedies */
    size_t n_changes;
};

/* The event is that of the submit, and is refused for what core_apply would refuse it for. */
int core_estimate(const struct model *m, const struct event *submit, struct estimate *ret_estimate,
    struct err *e);

#endif
