/* SPDX-License-Identifier: Apache-2.0
 *
 * Labels of jobs, held in the model once for all that share them.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_LABELS_H
#define BELAY_SCHEDULER_CORE_QUEUE_LABELS_H

#include "scheduler/core/model/model.h"

struct model;
struct labels;
struct constraints;

/* Those of a job: NULL where there are none. One hold a job; the last release frees them. */
struct labels *labels_hold(struct model *m, const char *json); /* of a submit, or as it is stored */
struct labels *labels_hold_again(struct labels *l);
void labels_release(struct model *m, struct labels *l);
struct labels *labels_take_loaded(
    struct model *m, int64_t job);                   /* of model_load_labels, with its hold */
int labels_load_end(struct model *m, struct err *e); /* ERR_CORRUPT: some were not taken */
void labels_deinit(struct model *m);
/* without a hold */
void labels_of_submit(const struct model *m, const struct event *submit, struct labels *ret_labels);
bool labels_suffice(const struct labels *l, const struct pool *p); /* l may be NULL */
/* "team, project" */
void labels_lacking(const struct labels *l, const struct pool *p, char *out, size_t size);
/* With teams a job's label `team` is one that its user is in. ERR_INVALID: there is no such team;
 * ERR_DENIED: the user is not a member. */
int labels_check_team(
    const struct model *m, const struct job_texts *texts, const char *user, struct err *e);
/* ERR_INVALID, with what is missing: each pool that could hold the job asks for labels that it has
 * not. */
int labels_check_submit(const struct model *m, const struct job_row *r, const struct constraints *x,
    const struct labels *own, struct err *e);

#endif
