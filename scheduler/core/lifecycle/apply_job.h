/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs: checks of a submit, state changes, end: functions for other events.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_APPLY_JOB_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_APPLY_JOB_H

#include "scheduler/core/model/model.h"

struct model;
struct constraints;

/* A job named by a user; NULL with ERR_NOT_FOUND set. */
struct job *job_named(const struct model *m, int64_t id, struct err *e);
struct job_side *job_make_side(struct job *j); /* if it has none yet */
int64_t job_procurement_offer(const struct job *j);
/* All checks of a submit except the job count of its account. ret_own: effective user, team, QOS,
 * nice and retries. */
int submit_check(const struct model *m, const struct event *ev, struct job_row *ret_own,
    struct constraints *ret_constraints, struct err *e);
/* The part of it that needs no model: options out of their range (job/member.h), and pairs that
 * contradict each other. was: what it was before an update, whose ranges are not checked again; may
 * be NULL. */
int job_check_row(const struct job_row *r, const struct job_row *was, struct err *e);
/* A merge patch of its stored options; NULL: nothing changes. */
void job_document_changed(struct model *m, int64_t job, const char *patch_json);
/* Effective retries, from the request, its pool and the configuration, into own. ERR_INVALID: above
 * the maximum, or none where another option needs them. */
int job_resolve_retries(
    const struct model *m, const struct job_row *asked, struct job_row *own, struct err *e);
int job_check_retries(const struct job_row *r, struct err *e); /* only the second of these checks */
void job_move(struct model *m, struct job *j, enum job_state to);
/* to ENDED; the job leaves the model */
void job_finish(struct model *m, struct job *j, struct stamp now);

#endif
