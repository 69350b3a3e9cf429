/* SPDX-License-Identifier: Apache-2.0
 *
 * Procurement of jobs with --finish-by: none, spot, on-demand.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_H

#include "scheduler/core/model/model.h"

struct model;
struct work_left;

void procurement_init(
    struct model *m, const struct procurement_options *o); /* NULL: the defaults */
void procurement_deinit(struct model *m);
/* absolute finish time, also of a relative request */
int64_t procurement_finish_ms(const struct job_row *asked, struct wall now);
/* of a submit, which may have a time of day */
int64_t procurement_finish_submitted(const struct event *ev);
/* Submit: ERR_INVALID. */
int procurement_check(const struct job_row *r, struct wall now, struct err *e);
/* Decides again at once; no-op without a finish_ms. */
void procurement_look(struct model *m, struct job *j, struct stamp now);
void procurement_leave(struct model *m, struct job *j); /* it is over; no-op without a finish_ms */
/* Its finish_ms changed or was removed; call before its shape changes. */
void procurement_meant(struct model *m, struct job *j, struct stamp now);
/* Call before the job's last good checkpoint is set to this one. */
void procurement_saved(struct attempt *a, struct wall saved_at, int64_t pause_ms);
/* its progress had its current value at that time */
void procurement_progressed(const struct model *m, struct job *j, struct wall at);
bool procurement_is_looked_at(const struct job *j); /* it has a finish time and is not over */
bool procurement_allows(enum procurement procurement, enum market market);
/* It has a deadline, and its procurement has an effect now; also of a hypothetical job. */
bool procurement_is_decided(const struct job *j);
/* With this remaining work, a start on spot now would not endanger the deadline: the rule of
 * admission, whatever is cheaper. */
bool procurement_admits_spot(
    const struct model *m, const struct job *j, const struct work_left *w, struct stamp now);
/* What is decided now, also for a hypothetical job that has a deadline. */
enum procurement procurement_hypothetical(
    const struct model *m, const struct job *j, struct stamp now);
/* core_procurement_late if this is the remaining work */
bool procurement_is_late_if(const struct model *m, const struct job *j, const struct work_left *w,
    struct stamp now, int64_t *ret_takes_ms);
/* Jobs meant to run on this offer are decided again at once. */
void procurement_refused(struct model *m, const struct offer *o, struct stamp now);
struct mono procurement_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
