/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job waits: all reasons, from the same model and rules as plan.h. Reads only.
 *
 * scheduler/api/why.c replaces some texts ("store", "no-room", "no-room-away"), because the texts
 * of attempts that have ended are in the database only, and hides that of "store-refused" from
 * other users.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_EXPLAIN_H
#define BELAY_SCHEDULER_CORE_FORECAST_EXPLAIN_H

#include "base/buf.h"
#include "scheduler/core/model/model.h"

#define REASON_TEXT_MAX (2 * CORE_TEXT_MAX) /* the text of a row, and the text around it */

struct reason {
    /* Stable: "no-node-fits", "nodes-busy", "launching", "offer-refused", "offer-reclaims",
     * "pool-full", "no-pool", "max-running", "max-gpus", "max-usd-per-hour", "max-usd", "budget",
     * "too-dear", "too-large-for-limit", "max-cpus", "quota", "reclaim", "cancelling", "running",
     * "requeue", "drill", "drill-required", "store", "store-away", "store-refused", "no-room",
     * "no-room-away", "queue-ahead", "priority", "reserved", "reserved-for", "market",
     * "maintenance", "maintenance-always", "base-load", "too-large"
     * ... */
    char code[32];
    char text[REASON_TEXT_MAX];
};

#define EXPLAIN_REASONS_MAX 64

/* Fills up to max reasons, most significant first; returns the count. The job must be in the
 * model. */
size_t core_explain(
    const struct model *m, struct stamp now, int64_t job, struct reason *out, size_t max);

/* The same for a pending or hypothetical job: it may be outside the model, but has a shape and an
 * account. */
size_t explain_hypothetical(
    const struct model *m, struct stamp now, const struct job *j, struct reason *out, size_t max);

/* Of those, the reasons about its deadline: also for one that starts now. */
size_t explain_hypothetical_deadline(
    const struct model *m, struct stamp now, const struct job *j, struct reason *out, size_t max);

struct ahead;

/* core_explain with a result of core_ahead of the same moment; NULL: computed here. */
size_t core_explain_with(const struct model *m, struct stamp now, int64_t job,
    const struct ahead *ahead, struct reason *out, size_t max);

/* For many jobs in turn while the model does not change: jobs of one shape share a result.
 * Initially zeroed. */
struct explain_memo {
    const void *shape; /* that the result is of */
    struct reason reason;
};

/* The first reason; false: none. Examines every node and offer at most, and the queue only if there
 * is no other reason. */
bool core_explain_first(const struct model *m, struct stamp now, int64_t job,
    struct explain_memo *memo, struct reason *ret_reason);

#endif
