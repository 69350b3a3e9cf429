/* SPDX-License-Identifier: Apache-2.0
 *
 * What users and operators want to be told of: state changes of jobs, by mail or to a URL. A change
 * that somebody wants to know makes a row of the outbox, in the transaction of the change; it goes
 * when it was delivered, or given up. Who delivers is scheduler/engine/outbox.h.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_NOTIFY_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_NOTIFY_H

#include "scheduler/core/model/types.h"

#define OUTBOX_MAX 20000     /* rows; what comes then is left out, and the job's history says so */
#define OUTBOX_USER_MAX 1000 /* of them, of the jobs of one user */
#define MAIL_EVERY_MS 1000   /* between two mails about the jobs of one user */
#define OUTBOX_TRIES_MAX 12  /* then it is given up: after about an hour */
#define NOTIFY_HOOKS_MAX 16  /* of the configuration */

struct model;
struct job;

/* A webhook of the configuration. */
struct notify_hook {
    char name[CORE_NAME_MAX];
    int32_t events; /* 1 << enum notify_event, and NOTIFY_ARRAY_TASKS */
};

/* After the row that is (due_at, event, target) of `after`; NULL: the first. By due_at. Borrowed
 * until the next core_apply. */
const struct outbox_row *core_outbox_next(const struct model *m, const struct outbox_row *after);
/* NULL: it was delivered, or given up. */
const struct outbox_row *core_outbox_find(const struct model *m, int64_t event, const char *target);

#endif
