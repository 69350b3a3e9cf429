/* SPDX-License-Identifier: Apache-2.0
 *
 * Processor and memory use of a job compared with its request.
 */
#ifndef BELAY_CLI_REPORTS_JOB_USE_H
#define BELAY_CLI_REPORTS_JOB_USE_H

#include "base/json.h"
#include <stdbool.h>
#include <stdint.h>

/* Use by the newest attempt, on all its nodes. */
struct used {
    int64_t cpu_ms, user_ms; /* processor time: total, and in user mode; 0 = unknown */
    int64_t ran_ms;          /* from its start to its end, or now */
    int64_t ranks;           /* nodes that reported */
    int64_t peak_most;       /* bytes, maximum over nodes; 0 = unknown */
    int64_t peak_rank;       /* rank with the maximum; -1 = unknown */
    int64_t peak_sum;
};

/* detail: the reply of GET /jobs/ID. False if nothing was reported. */
bool used_of(const json_t *detail, struct used *ret_used);

#endif
