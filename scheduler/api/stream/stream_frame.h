/* SPDX-License-Identifier: Apache-2.0
 *
 * The events that wait until streams are written to. The state of a job, a node or the like takes
 * the place of an earlier one that still waits: a client gets the last, and never one that is older
 * than the events before it. Pure.
 */
#ifndef BELAY_SCHEDULER_API_STREAM_STREAM_FRAME_H
#define BELAY_SCHEDULER_API_STREAM_STREAM_FRAME_H

#include "base/buf.h"
#include "base/map.h"
#include <stdint.h>

struct stream_piece;

/* All zero is an empty one. */
struct stream_frame {
    struct buf text; /* of all pieces, and of some that were replaced */
    struct stream_piece *pieces;
    size_t n, cap;
    size_t len;        /* of the pieces */
    struct map things; /* -> number of the piece + 1 */
    int64_t last;      /* the event up to which it tells what was committed; 0 = unknown */
};

void stream_frame_deinit(struct stream_frame *f); /* it is empty and reusable afterwards */

/* Adds a whole event; the text is copied. thing: what it says the present state of; 0 = nothing, it
 * stays as it is. event: its number in the history; 0 = none. */
void stream_frame_add(struct stream_frame *f, const char *text, int64_t thing, int64_t event);

/* Adds all to out, ended by the id of `last` unless that is the id of the last event in it. */
void stream_frame_write(const struct stream_frame *f, int64_t epoch, struct buf *out);

#endif
