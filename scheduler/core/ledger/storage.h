/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store keeps of jobs, and what that costs.
 */
#ifndef BELAY_SCHEDULER_CORE_LEDGER_STORAGE_H
#define BELAY_SCHEDULER_CORE_LEDGER_STORAGE_H

#include "scheduler/core/model/model.h"

struct model;

struct stored {
    struct stored_row row;
};
/* of a job; NULL: nothing is kept of it */
struct stored *storage_of(const struct model *m, int64_t job);
/* a checkpoint has stored so many more */
void storage_saved(struct model *m, int64_t job, int64_t bytes, struct wall at);
/* there are so many */
void storage_told(struct model *m, int64_t job, int64_t bytes, struct wall now);
/* what it cost so far is written down */
void storage_settle(struct model *m, int64_t job, struct wall now);
bool storage_costs(const struct model *m, int64_t job);
/* nothing is there any more, or nobody looks */
void storage_forget(struct model *m, int64_t job, struct wall now);
void storage_deinit(struct model *m);

#endif
