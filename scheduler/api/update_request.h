/* SPDX-License-Identifier: Apache-2.0
 *
 * The changes of an update request (docs/reference/api.md): members of a job specification, read as
 * a submit reads them and checked together with the job's current values. Pure.
 */
#ifndef BELAY_SCHEDULER_API_UPDATE_REQUEST_H
#define BELAY_SCHEDULER_API_UPDATE_REQUEST_H

#include "scheduler/api/jobspec.h"

#define UPDATE_REQUEST_BYTES_MAX (256u << 10)

/* The current values of the job with which a change may conflict. Borrowed. */
struct update_request_of {
    const struct job_row *row;
    const char *constraints; /* constraints.h; "" = none */
    const char *launch_json; /* of its spec; may be NULL */
};

struct update_request {
    uint64_t fields;     /* UPDATE_BIT of each changed field; at least one */
    struct jobspec to;   /* the new values of these fields; freed by update_request_deinit */
    char *document;      /* for event.update; owned */
    struct ranges tasks; /* of an array, only these tasks; empty for the whole job */
};

/* ERR_INVALID, with the path of the wrong member. */
int update_request_parse(const json_t *changes, const struct update_request_of *of,
    struct update_request *ret_update, struct err *e);
void update_request_deinit(struct update_request *u);

/* Returns the event, which borrows u. */
struct event update_request_event(const struct update_request *u, int64_t job, const char *by);

#endif
