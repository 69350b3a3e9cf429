/* SPDX-License-Identifier: Apache-2.0
 *
 * The morning digest: at a configured time of the day, one notification of what happened since the
 * digest before, to configured targets and to the users who subscribed. One event creates the rows
 * of the outbox and records the time, so each morning has one digest, over restarts and changes of
 * the clocks. After downtime of belayd there is one digest for all of it. Its text is composed from
 * committed rows when it is delivered (scheduler/digest/digest.h).
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_DIGEST_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_DIGEST_H

#include "scheduler/core/lifecycle/digest_options.h"
#include "scheduler/core/model/model.h"

/* The first moment after `after` at which a digest is due. */
struct wall core_digest_next(const struct digest_options *o, struct wall after);
/* The last such moment that is not after `now`. */
struct wall core_digest_last(const struct digest_options *o, struct wall now);
/* A user's subscription, and its address; NULL if there is none. Borrowed until the next
 * core_apply. */
const struct digest_row *core_digest_of(const struct model *m, const char *user);
const char *core_digest_mail(const struct model *m, const char *user);

/* The users who subscribed, at most max; borrowed until the next core_apply. */
size_t core_digest_users(const struct model *m, const char **ret_users, size_t max);

/* When the next digest is decided on, or the clock is checked; MONO_NONE without a schedule. */
struct mono digest_next_due(const struct model *m, struct stamp now, struct event *ret_event);
/* The row of the cluster or of a subscription. ERR_CORRUPT. */
int model_load_digest(struct model *m, const struct digest_row *r, struct err *e);
void digests_begin(struct model *m);
void digests_destroy_all(struct model *m);

#endif
