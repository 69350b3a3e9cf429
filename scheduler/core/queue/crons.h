/* SPDX-License-Identifier: Apache-2.0
 *
 * Cron entries.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_CRONS_H
#define BELAY_SCHEDULER_CORE_QUEUE_CRONS_H

#include "scheduler/core/model/model.h"

struct model;

#define CRONS_MAX 10000
#define CRONS_OF_USER_MAX 200
#define CRONS_BYTES_MAX ((size_t)64 << 20)
#define CRONS_OF_USER_BYTES_MAX ((size_t)8 << 20)

/* Scheduled times that wait for the end of its last job, oldest first. Returns the count, at most
 * CRON_WAITING_MAX. */
size_t core_cron_waiting(const struct cron_row *r, struct wall ret_at[CRON_WAITING_MAX]);

void cron_job_ended(
    struct model *m, const struct job_row *j, struct stamp now); /* left the model */
/* When the next entry needs a decision or a check, with its event; MONO_NONE: never. */
struct mono cron_next_due(const struct model *m, struct stamp now, struct event *ret_event);
int crons_check(const struct model *m, struct err *e);
void crons_destroy_all(struct model *m);

#endif
