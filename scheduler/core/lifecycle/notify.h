/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifications of users, by mail or to a URL: creates rows of the outbox (notify_outbox.h). A
 * provider's notice of a reclaim is an event of its node: apply_node.c.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_NOTIFY_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_NOTIFY_H

#include "scheduler/core/model/model.h"

struct model;

void notify(struct model *m, const struct job *j, enum notify_event kind, struct stamp now);
void notify_ended(struct model *m, const struct job *j, struct stamp now);
void notify_boots(struct model *m, const struct pool *p, struct stamp now);
/* belay drained the node. jobs: which this concerns, separated by commas. */
void notify_node_drained(struct model *m, const struct node *n, const char *jobs, struct stamp now);
void notify_budget(struct model *m, const struct budget_options *b, int32_t pct, int64_t spent_uusd,
    struct stamp now);
/* The run of a cron entry for the scheduled time `at` is not done. */
void notify_late(struct model *m, const struct cron_entry *c, struct wall at, struct wall done_by,
    const char *why, struct stamp now);
/* The morning digest of this period, to its recipients (digest.h). */
void notify_digest(struct model *m, struct wall from, struct wall to, struct stamp now);
/* Far more is spent on the day than usual. */
void notify_anomaly(struct model *m, const struct anomaly_row *a, struct stamp now);
/* Its GPUs have been idle since then; parks_at WALL_NONE: it is not parked for that. */
void notify_idle_gpus(struct model *m, const struct job *j, struct wall since, struct wall parks_at,
    int64_t uusd_h, struct stamp now);
/* Its attempt started or was loaded, or a part of its time limit was notified. */
void notify_watch(struct model *m, struct job *j);
void notify_unwatch(struct model *m, struct job *j); /* the attempt has ended */
struct mono notify_due(const struct model *m, struct stamp now, struct event *ret_event);
void notify_deinit(struct model *m);
int apply_warn(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_delivered(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);

#endif
