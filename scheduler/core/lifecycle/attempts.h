/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts: start, stop, end. After the end of the last rank the job is queued again (requeue.h) or
 * finished (apply_job.h). An attempt has no lease of its own: its node has one, and when that
 * expires (plan.h) all attempts of the node end.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_ATTEMPTS_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_ATTEMPTS_H

#include "scheduler/core/model/model.h"

struct model;

/* The rank has no script: it keeps a node for tasks that rank 0 starts there (SCRIPT_ON_FIRST). */
bool attempt_has_no_script(const struct attempt *a);
void attempt_start(struct model *m, struct attempt *a);
/* Stops all live ranks of the job's attempt. save_first: save, then stop, unless they are stopping
 * already. Otherwise stop at once and override earlier stops. */
void job_stop(struct model *m, struct job *j, enum end_kind reason, bool save_first);
void attempts_ask_save(struct model *m, struct job *j); /* all ranks save, and run on */
/* Makes the other ranks save together with this one and stop. */
void gang_stop_others(struct model *m, struct attempt *a);
/* Ends a rank. Decides what the reported end counts as, and after the last rank what happens to the
 * job. */
void attempt_end(struct model *m, struct stamp now, struct attempt *a, enum end_kind reported,
    int32_t exit_code, const char *text);
void attempts_end_all(struct model *m, struct stamp now, struct node *n, const char *text);

#endif
