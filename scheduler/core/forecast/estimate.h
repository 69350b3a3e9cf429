/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimate for a submit: when and where the job would start, and its cost. Changes nothing.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_ESTIMATE_H
#define BELAY_SCHEDULER_CORE_FORECAST_ESTIMATE_H

#include "scheduler/core/forecast/ahead.h"
#include "scheduler/core/forecast/remedies.h"
#include "scheduler/core/forecast/forecast.h"

struct estimate {
    int64_t job;           /* the number that it would get now */
    struct forecast start; /* of an array: its first task */
    int32_t nodes;         /* minimum number of nodes at its start */
    int64_t tasks;         /* of an array; else 1 */
    /* Expected run time, and its range; most_ms 0 = unknown. */
    int64_t expected_ms, least_ms, most_ms;
    /* Cost of all its nodes and tasks at the place of its start: per hour (of one task), and in
     * total. The expected total includes the expected cost of reclaims. -1 = unknown. */
    int64_t uusd_h, expected_uusd, least_uusd, most_uusd;
    /* Cost of reading its input there, once per task; part of the totals. 0 if unknown. */
    int64_t input_uusd;
    struct reason reasons[EXPLAIN_REASONS_MAX]; /* why it would not start now */
    size_t n_reasons;
    struct reason changes[REMEDIES_MAX]; /* see core_remedies */
    size_t n_changes;
};

/* The event is a submit; returns the same errors as core_apply. */
int core_estimate(const struct model *m, const struct event *submit, struct estimate *ret_estimate,
    struct err *e);

#endif
