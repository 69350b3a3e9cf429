/* SPDX-License-Identifier: Apache-2.0
 *
 * Labels of jobs, shared in the model by all jobs with equal ones.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_LABELS_H
#define BELAY_SCHEDULER_CORE_QUEUE_LABELS_H

#include "scheduler/core/model/model.h"

struct model;
struct labels;
struct constraints;

/* Labels of a job; NULL if it has none. Each job has one reference; the last release frees. */
/* JSON of a submit or from the database */
struct labels *labels_intern(struct model *m, const char *json);
/* The labels of a live job anew, because there are other budgets. json: those that it was submitted
 * with; a task has its array's, which is renewed before. */
void labels_renew(struct model *m, struct job *j, const char *json);
struct labels *labels_ref(struct labels *l);
void labels_unref(struct model *m, struct labels *l);
struct labels *labels_take_loaded(
    struct model *m, int64_t job); /* that model_load_labels loaded; takes the reference */
int labels_load_end(struct model *m, struct err *e); /* ERR_CORRUPT: some were not taken */
void labels_deinit(struct model *m);
/* Without a reference. False: it has none, and ret_labels may not be set. */
bool labels_of_submit(const struct model *m, const struct event *submit, struct labels *ret_labels);
bool labels_suffice(const struct labels *l, const struct pool *p); /* l may be NULL */
/* "team, project" */
void labels_lacking(const struct labels *l, const struct pool *p, char *out, size_t size);
/* If teams are configured, the label `team` must be a team of the user. ERR_INVALID: unknown team;
 * ERR_DENIED: not a member. */
int labels_check_team(
    const struct model *m, const struct job_texts *texts, const char *user, struct err *e);
/* ERR_INVALID, with the missing names: each pool that fits the job requires labels that it does not
 * have. */
int labels_check_submit(const struct model *m, const struct job_row *r, const struct constraints *x,
    const struct labels *own, struct err *e);

#endif
