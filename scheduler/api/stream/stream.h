/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/stream: server-sent events about what was committed. A client keeps its pages current
 * with it instead of asking again and again (docs/reference/api.md has the events).
 *
 * Invariants
 *   1. Nothing is sent before it is committed: events are made from the committed batch, in
 *      api_committed, and the summary at a moment when the whole model is on disk.
 *   2. A stream that is given the id of the last event that it got continues after that event,
 *      without a gap or a repeat in the event log; if that is not possible it gets `reset`.
 *   3. Streams with the same viewer and query share a view: what they are sent is selected once.
 *   4. Whatever happens, a stream holds at most STREAM_WAITING_MAX bytes; a slow reader's ends.
 *   5. A viewer's rights are those of the moment: a stream ends when its token ends or changes, and
 *      all end at a reload.
 */
#ifndef BELAY_SCHEDULER_API_STREAM_STREAM_H
#define BELAY_SCHEDULER_API_STREAM_STREAM_H

#include "db/db.h"
#include <stdint.h>

#define STREAMS_MAX 500
#define STREAMS_PER_USER_MAX 16
#define STREAM_WAITING_MAX ((size_t)128 << 10)
#define STREAM_FRAME_MAX ((size_t)48 << 10) /* sent about one commit; more becomes `reset` */
#define STREAM_ROWS_MAX 500                 /* of one commit; more becomes `reset` */
#define STREAM_REPLAY_MAX 200               /* events that are sent again */
#define STREAM_FOR_MAX_MS INT64_C(86400000)

/* Why belayd ends a stream; named in the event `end`. */
enum stream_end {
    STREAM_END_SLOW,
    STREAM_END_STOPPING,
    STREAM_END_RELOADED, /* rights may have changed */
    STREAM_END_EXPIRED,  /* the token */
    STREAM_END_REVOKED,  /* or changed */
    STREAM_END_TIME,     /* for_ms is over */
    STREAM_ENDS
};

struct api;
struct streams;

struct streams *streams_create(struct api *a);
void streams_destroy(struct streams *s); /* after the servers have stopped */

void streams_committed(struct streams *s, const struct db_batch *batch);
void streams_output_grew(struct streams *s, int64_t job);
/* s may be NULL. */
void streams_end_all(struct streams *s, enum stream_end why);

struct streams_stats {
    int64_t open, opened;
    int64_t events;            /* sent, counted for each stream */
    int64_t resumed, resets;   /* at the start, and `reset` in all */
    int64_t ends[STREAM_ENDS]; /* by belayd */
    int64_t refused;           /* at the limits of streams */
};
extern const char *const stream_end_names[]; /* NULL-terminated */
void streams_get_stats(const struct streams *s, struct streams_stats *ret_stats);

#endif
