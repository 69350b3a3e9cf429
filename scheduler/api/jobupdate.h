/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a job is to change, as it comes over the API (docs/reference/api.md): members of a job
 * specification, read as a submit reads them, and together with what the job has already. Pure.
 */
#ifndef BELAY_SCHEDULER_API_JOBUPDATE_H
#define BELAY_SCHEDULER_API_JOBUPDATE_H

#include "scheduler/api/jobspec.h"

#define JOBUPDATE_BYTES_MAX (256u << 10)

/* What the job is now, as far as a change may not go with it. Borrowed. */
struct jobupdate_of {
    const struct job_row *row;
    const char *extras;      /* constraints.h; "": it asks for nothing */
    const char *launch_json; /* of its spec; NULL: nothing */
};

struct jobupdate {
    uint64_t fields;     /* UPDATE_BIT of each that changes; at least one */
    struct jobspec to;   /* of those fields; jobupdate_deinit */
    char *document;      /* of event.update; owned */
    struct ranges tasks; /* of an array, only those; none: the job */
};

/* ERR_INVALID with the path of what is wrong. */
int jobupdate_parse(const json_t *changes, const struct jobupdate_of *of,
    struct jobupdate *ret_update, struct err *e);
void jobupdate_deinit(struct jobupdate *u);

/* The event; borrows u. */
struct event jobupdate_event(const struct jobupdate *u, int64_t job, const char *by);

#endif
