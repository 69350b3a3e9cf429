/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job with --finish-by is given now: nothing, spot, on-demand.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_H

#include "scheduler/core/model/model.h"

struct model;

void pace_init(struct model *m, const struct pace_options *o); /* NULL: the usual ones */
void pace_deinit(struct model *m);
/* the moment, where so long from now may have been asked for */
int64_t pace_finish_ms(const struct job_row *asked, struct wall now);
/* the same of a submit, which may have named a time of the day */
int64_t pace_finish_submitted(const struct event *ev);
/* at a submit: ERR_INVALID */
int pace_check(const struct job_row *r, struct wall now, struct err *e);
/* it is decided anew at once; harmless without a finish_ms */
void pace_look(struct model *m, struct job *j, struct stamp now);
void pace_leave(struct model *m, struct job *j); /* it is over; harmless likewise */
/* its finish_ms is another, or there is none any more; before its shape is */
void pace_meant(struct model *m, struct job *j, struct stamp now);
/* before the job's last good checkpoint becomes this one */
void pace_saved(struct attempt *a, struct wall saved_at);
/* its progress is what it was at that moment */
void pace_progressed(const struct model *m, struct job *j, struct wall at);
bool pace_is_looked_at(const struct job *j); /* it is to be done by some moment, and is not over */
bool pace_allows(enum pace pace, enum market market);
/* who was to run there is decided anew at once */
void pace_refused(struct model *m, const struct offer *o, struct stamp now);
/* it can be stopped without losing anything: it has saved here, and the last save worked
 * (launch.c) */
bool attempt_can_move(const struct attempt *a);
struct mono pace_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
