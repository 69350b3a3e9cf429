/* SPDX-License-Identifier: Apache-2.0
 *
 * The changes of an update request (docs/reference/api.md): members of a job specification, read as
 * a submit reads them and checked together with the job's current values. Pure.
 */
#ifndef BELAY_SCHEDULER_API_JOBUPDATE_H
#define BELAY_SCHEDULER_API_JOBUPDATE_H

#include "scheduler/api/jobspec.h"

#define JOBUPDATE_BYTES_MAX (256u << 10)

/* The current values of the job with which a change may conflict. Borrowed. */
struct jobupdate_of {
    const struct job_row *row;
    const char *constraints; /* constraints.h; "" = none */
    const char *launch_json; /* of its spec; may be NULL */
};

struct jobupdate {
    uint64_t fields;     /* UPDATE_BIT of each changed field; at least one */
    struct jobspec to;   /* the new values of these fields; freed by jobupdate_deinit */
    char *document;      /* for event.update; owned */
    struct ranges tasks; /* of an array, only these tasks; empty for the whole job */
};

/* ERR_INVALID, with the path of the wrong member. */
int jobupdate_parse(const json_t *changes, const struct jobupdate_of *of,
    struct jobupdate *ret_update, struct err *e);
void jobupdate_deinit(struct jobupdate *u);

/* Returns the event, which borrows u. */
struct event jobupdate_event(const struct jobupdate *u, int64_t job, const char *by);

#endif
