/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job has used of the processor and of memory, against what it asked for.
 */
#ifndef BELAY_CLI_REPORTS_USED_H
#define BELAY_CLI_REPORTS_USED_H

#include "base/json.h"
#include <stdbool.h>
#include <stdint.h>

/* Of the newest attempt, on all of its nodes. */
struct used {
    int64_t cpu_ms, user_ms; /* the second: of the first, in user mode; 0: not known */
    int64_t ran_ms;          /* from its start to its end, or now */
    int64_t ranks;           /* nodes that told something */
    int64_t peak_most;       /* bytes, on the node that had the most; 0: not known */
    int64_t peak_rank;       /* of that node; -1: not known */
    int64_t peak_sum;
};

/* detail: all of GET /jobs/ID. False: nobody has told anything. */
bool used_of(const json_t *detail, struct used *ret_used);

#endif
