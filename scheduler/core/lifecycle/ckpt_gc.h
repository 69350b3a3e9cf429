/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of jobs that ended.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_CKPT_GC_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_CKPT_GC_H

#include "scheduler/core/model/model.h"

struct model;

/* no-op if it has no data in the store */
void ckpt_gc_add(struct model *m, const struct job *j, struct stamp now);
/* When the next cleaning or measurement is due, and its job. MONO_NONE: none, or a cleaning is in
 * progress. */
struct mono ckpt_gc_due(const struct model *m, struct stamp now, int64_t *ret_job);
/* The budgets have other indices: the i-th is now the one with the bit now_at[i]; 0 = gone. */
void ckpt_gc_renew_budgets(struct model *m, const uint64_t *now_at);
void ckpt_gc_deinit(struct model *m);

#endif
