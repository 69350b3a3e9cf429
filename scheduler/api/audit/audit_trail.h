/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls of the API are in the audit log (db/audit_log.h), and who made them. A call that
 * changes the model is recorded in the commit of its change (tick_begin_call), any other when it is
 * answered, refused ones included.
 *
 * Nobody may fill the disk with refused calls: of those, each user has REFUSED_PER_USER rows a
 * minute, and all together REFUSED_PER_MINUTE. A row counts those that were left out.
 */
#ifndef BELAY_SCHEDULER_API_AUDIT_TRAIL_H
#define BELAY_SCHEDULER_API_AUDIT_TRAIL_H

#include "scheduler/api/api_private.h"

#define REFUSED_PER_USER 20
#define REFUSED_PER_MINUTE 200

/* Gives the request a name that is unique in the cluster, and its reply X-Request-Id. */
void audit_trail_name_request(struct request *q);

/* Whether a call of this route is recorded: all but GET, except the one by which a browser signs
 * in, and those that carry data of what runs already. */
bool audit_trail_has(const char *method, const char *path);

/* The call of a request whose caller is not known yet. It is recorded at the latest when the
 * request is answered. */
struct tick_call *audit_trail_begin(struct request *q, const char *method, const char *route);
/* Fills in the caller. */
void audit_trail_set_caller(const struct request *q, struct tick_call *call);

#endif
