/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that are not eligible yet.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_H
#define BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_H

#include "scheduler/core/model/model.h"

struct model;

/* what an end means for who depends on it: MET or NEVER */
enum depend_state dependencies_judge(enum depend_kind kind, enum end_kind end);
/* ERR_CONFLICT, with the reason: it could never run. ERR_NOT_FOUND: it depends on a job that there
 * never was. */
int dependencies_check(const struct model *m, const struct event *submit, struct err *e);
/* Each costs memory, and time at an end: two for each job that a user may have without a limit. A
 * rename may be one more, to whoever waits for all of the new name. */
#define DEPENDENCIES_OF_ACCOUNT_MAX 400000
/* ERR_CONFLICT: with this, jobs of the account would wait for more. */
int dependencies_check_room(
    const struct model *m, const struct account *a, const struct event *submit, struct err *e);
/* The same of a job that comes to this row and account, and to depend on what `replaced` asks for;
 * NULL: as before, under the row's name. It may always wait for no more than it did. */
int dependencies_check_change(const struct model *m, const struct job *j, const struct account *to,
    const struct job_row *becomes, const struct event *replaced, struct err *e);
/* so many more dependencies of the account's jobs WAIT */
void dependencies_counted(struct account *a, int64_t n);
/* of a submit that was checked */
void dependencies_attach(struct model *m, struct job *j, const struct event *submit);
/* It depends on nothing any more; who waited for others by way of it waits for them itself. Of a
 * PENDING job that has neither its place in the queue nor among those that wait; so may be attached
 * what it is to depend on. */
void dependencies_detach(struct model *m, struct job *j);
bool job_waits_for_name(const struct job *j); /* SINGLETON, of whose jobs some have not ended */
/* Another name: of what waits for jobs of one name, as if it had always had the new one. A job that
 * job_waits_for_name has no place among those that wait. */
void dependencies_rename(struct model *m, struct job *j, const char *name, struct stamp now);
void dependencies_adopt(struct model *m, struct job *j); /* a job new to the model, by its name */
/* A job that is PENDING now goes into the queue, or waits until it is eligible. */
void job_enqueue(struct model *m, struct job *j, struct stamp now);
/* for the first time */
void dependencies_started(struct model *m, struct job *j, struct stamp now);
/* it leaves the model */
void dependencies_ended(struct model *m, struct job *j, struct stamp now);
/* what it depends on is of no consequence any more: all that are left of it have begun */
void dependencies_no_more(struct model *m, struct job *j);
/* tasks that will not begin are no more in `left` */
void dependencies_dropped(struct model *m, struct job *array, struct stamp now);
/* whether it, or some of its tasks, can never run may have changed */
void dependencies_note_unmeetable(struct model *m, struct job *j);
/* and what follows from that is the caller's */
void dependencies_met(struct model *m, struct dependency *d);
struct depend_text {
    char s[64];
};
/* "afterok:42_7" */
struct depend_text depend_text(enum depend_kind kind, int64_t on, bool of_task, int32_t task);
/* When the next job becomes eligible, or is to be ended since it never will, and the event;
 * MONO_NONE: none. */
struct mono dependencies_due(const struct model *m, struct stamp now, struct event *ret_event);
bool dependencies_is_kept_back(const struct job *j); /* for something else than its time to begin */
/* when it may be queued, as far as that is a time; true: it is yet to come */
bool dependencies_set_not_before(struct model *m, struct job *j, struct wall now);
/* PENDING, and all that it depends on is loaded */
void dependencies_load(struct model *m, struct job *j);
void dependencies_destroy_all(struct model *m); /* before the jobs */
void dependencies_withdraw(struct model *m, struct job *j);
/* out of the queue, or out of what waits for it; it is PENDING still */
/* it is not held any more */
void dependencies_release(struct model *m, struct job *j, struct stamp now);

#endif
