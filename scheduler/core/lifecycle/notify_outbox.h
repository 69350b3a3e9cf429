/* SPDX-License-Identifier: Apache-2.0
 *
 * The outbox of notifications, as it is seen from outside of the core, and its limits.
 * Notifications tell users and operators of state changes of jobs, by mail or to a URL. A change
 * with recipients adds rows to the outbox in its own transaction; a row is deleted when it is
 * delivered or given up. Delivery is in scheduler/engine/outbox.h.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_NOTIFY_OUTBOX_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_NOTIFY_OUTBOX_H

#include "scheduler/core/model/types.h"

/* rows; further notifications are dropped, and the job's history says so */
#define OUTBOX_MAX 20000
#define OUTBOX_USER_MAX 1000 /* rows of the jobs of one user */
#define MAIL_EVERY_MS 1000   /* minimum interval between mails about the jobs of one user */
#define OUTBOX_TRIES_MAX 12  /* then it is given up, after about an hour */
#define NOTIFY_HOOKS_MAX 16  /* in the configuration */

struct model;
struct job;

/* A configured webhook. */
struct notify_hook {
    char name[CORE_NAME_MAX];
    int32_t events; /* 1 << enum notify_event, and NOTIFY_ARRAY_TASKS */
};

/* Whom a day of unusual spending is mailed to (ledger/anomalies.h). */
struct anomaly_options {
    int32_t n_mails; /* configured addresses, which get all of them */
    bool to_users;   /* users get their own, leads also those of their teams */
};

/* The row after position (due_at, event, target) of `after`, by due_at; NULL: the first. Borrowed
 * until the next core_apply. */
const struct outbox_row *core_outbox_next(const struct model *m, const struct outbox_row *after);

#endif
