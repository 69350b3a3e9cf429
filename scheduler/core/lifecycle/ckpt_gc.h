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
void ckpt_gc_deinit(struct model *m);

#endif
