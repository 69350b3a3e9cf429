/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client asks of GET /api/v1/stream: kinds of events, and the position that it has. Pure.
 */
#ifndef BELAY_SCHEDULER_API_STREAM_STREAM_QUERY_H
#define BELAY_SCHEDULER_API_STREAM_STREAM_QUERY_H

#include "base/err.h"
#include <stdint.h>

/* In the order in which the events of one commit are sent. */
enum stream_kind {
    STREAM_JOB,
    STREAM_NODE,
    STREAM_INSTANCE,
    STREAM_POOL,
    STREAM_CRON,
    STREAM_BUDGET,
    STREAM_SUMMARY,
    STREAM_LOG,
    STREAM_EVENT,
    STREAM_KINDS
};

extern const char *const stream_kind_names[]; /* NULL-terminated */

#define STREAM_ALL ((1u << STREAM_KINDS) - 1)
#define STREAM_TYPES_MAX 128

/* Reads "job,node" into bits 1 << enum stream_kind. ERR_INVALID. */
int stream_types_parse(const char *text, uint32_t *ret_types, struct err *e);

/* A place in the event log. epoch: how often the cluster was restored from a backup, because the
 * numbers after an older backup were given twice. */
struct stream_position {
    int64_t epoch, event;
};

#define STREAM_POSITION_MAX 48
void stream_position_format(struct stream_position p, char out[STREAM_POSITION_MAX]);
/* ERR_INVALID */
int stream_position_parse(const char *text, struct stream_position *ret_position, struct err *e);

#endif
