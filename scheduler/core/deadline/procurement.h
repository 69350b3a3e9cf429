/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job with --finish-by is given now: nothing, spot, on-demand.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_H

#include "scheduler/core/model/model.h"

struct model;

void procurement_init(
    struct model *m, const struct procurement_options *o); /* NULL: the usual ones */
void procurement_deinit(struct model *m);
/* the moment, where so long from now may have been asked for */
int64_t procurement_finish_ms(const struct job_row *asked, struct wall now);
/* the same of a submit, which may have named a time of the day */
int64_t procurement_finish_submitted(const struct event *ev);
/* at a submit: ERR_INVALID */
int procurement_check(const struct job_row *r, struct wall now, struct err *e);
/* it is decided anew at once; harmless without a finish_ms */
void procurement_look(struct model *m, struct job *j, struct stamp now);
void procurement_leave(struct model *m, struct job *j); /* it is over; harmless likewise */
/* its finish_ms is another, or there is none any more; before its shape is */
void procurement_meant(struct model *m, struct job *j, struct stamp now);
/* before the job's last good checkpoint becomes this one */
void procurement_saved(struct attempt *a, struct wall saved_at);
/* its progress is what it was at that moment */
void procurement_progressed(const struct model *m, struct job *j, struct wall at);
bool procurement_is_looked_at(
    const struct job *j); /* it is to be done by some moment, and is not over */
bool procurement_allows(enum procurement procurement, enum market market);
/* who was to run there is decided anew at once */
void procurement_refused(struct model *m, const struct offer *o, struct stamp now);
struct mono procurement_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
