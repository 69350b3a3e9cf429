/* SPDX-License-Identifier: Apache-2.0
 *
 * What a stream that is resumed has missed, from the database.
 */
#ifndef BELAY_SCHEDULER_API_STREAM_REPLAY_H
#define BELAY_SCHEDULER_API_STREAM_REPLAY_H

#include "scheduler/api/stream/stream_messages.h"

struct replay {
    int64_t job; /* 0 = all */
    uint32_t types;
    int64_t after, last; /* numbers of events */
};

/* Adds the events after `after` up to `last`, and the present state of what they name. Returns
 * NULL, or why not, for people: then a client has to read everything again. */
const char *stream_replay(const struct replay *r, struct stream_messages *ms);

#endif
