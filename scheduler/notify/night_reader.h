/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the rows of a night for the recipients of its digest: by a thread, once for all of them.
 * The result is kept for ten minutes, so that later and repeated deliveries read nothing.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NIGHT_READER_H
#define BELAY_SCHEDULER_NOTIFY_NIGHT_READER_H

#include "base/list.h"
#include "base/timers.h"
#include "base/uv/loop.h"
#include "db/night.h"
#include "scheduler/engine/tick.h"

struct night_reader;

/* Exactly one of e and night is NULL; the night is borrowed during the call. */
typedef void (*night_fn)(void *ctx, const struct err *e, const struct night *night);

/* The caller's, until done or until the reader is destroyed. */
struct night_wait {
    struct link in_waiting;
    struct wall from, to;
    const char *user; /* "" = all; borrowed */
    night_fn done;
    void *ctx;
};

/* Rows are read for all users who have subscribed in the tick's model. All are borrowed. */
struct night_reader *night_reader_create(
    uv_loop_t *loop, struct timers *timers, struct tick *tick, const char *db_path);
/* done runs exactly once: inside this call if the rows have been read, else later. */
void night_reader_get(struct night_reader *r, struct night_wait *w);
/* Drops those who wait. What a thread is reading is freed when it has ended: run the loop. */
void night_reader_destroy(struct night_reader *r);

#endif
