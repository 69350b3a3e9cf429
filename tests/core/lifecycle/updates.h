/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of jobs as tests write them, and what they change.
 */
#ifndef BELAY_TESTS_CORE_LIFECYCLE_UPDATES_H
#define BELAY_TESTS_CORE_LIFECYCLE_UPDATES_H

#include "tests/core/shelf.h"

#define BIT(field) UPDATE_BIT(UPDATE_##field)

/* An update of these fields by ann, who owns the job; callers may add to it. */
struct event updates_event(int64_t job, uint64_t fields, const struct job_row *to);
/* An update of the dependencies; asks are borrowed until it is applied. */
struct event updates_depends(int64_t job, const struct depend_ask *asks, size_t n, bool any);
/* Must succeed. */
void updates_apply(struct lab *l, int64_t job, uint64_t fields, struct job_row to);
/* The update is refused with this error, whose text contains why; neither the job nor the history
 * has changed. */
void updates_refuse_event(struct lab *l, struct event ev, int kind, const char *why);
void updates_refuse(
    struct lab *l, int64_t job, uint64_t fields, struct job_row to, int kind, const char *why);

/* Tasks of an array: "0-5". */
int64_t updates_submit_array(struct lab *l, const char *tasks, int32_t at_once);
bool updates_waits(const struct lab *l, int64_t job); /* for its dependencies */

#endif
