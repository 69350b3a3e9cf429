/* SPDX-License-Identifier: Apache-2.0
 *
 * Size and cost of jobs' data in the store.
 */
#ifndef BELAY_SCHEDULER_CORE_LEDGER_STORAGE_H
#define BELAY_SCHEDULER_CORE_LEDGER_STORAGE_H

#include "scheduler/core/model/model.h"

struct model;

struct stored {
    struct stored_row row;
};
/* NULL if no data of the job is known. */
struct stored *storage_of(const struct model *m, int64_t job);
/* a checkpoint stored this many further bytes */
void storage_saved(struct model *m, int64_t job, int64_t bytes, struct wall at);
/* the measured size */
void storage_measured(struct model *m, int64_t job, int64_t bytes, struct wall now);
/* writes the accrued cost to the ledger */
void storage_settle(struct model *m, int64_t job, struct wall now);
bool storage_costs(const struct model *m, int64_t job);
/* no data is left, or it is not measured any more */
void storage_forget(struct model *m, int64_t job, struct wall now);
void storage_deinit(struct model *m);

#endif
