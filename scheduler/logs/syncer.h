/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes written files durable, many at once: rounds on a thread, one after the other, at least a
 * second apart unless a caller waits. A file therefore costs one fsync a round, however often it is
 * written to, and the loop never waits for the disk.
 */
#ifndef BELAY_SCHEDULER_LOGS_SYNCER_H
#define BELAY_SCHEDULER_LOGS_SYNCER_H

#include "base/err.h"
#include "base/timers.h"
#include <stdbool.h>
#include <uv.h>

#define SYNCER_PAUSE_MS 1000

struct syncer;

/* dir: all files are below it, on one file system. loop and timers are borrowed until destroy. */
struct syncer *syncer_create(uv_loop_t *loop, struct timers *timers, const char *dir);
/* Waiting callers get ERR_UNAVAILABLE, inside this call. A round on its thread ends by itself: run
 * the loop afterwards. s may be NULL. */
void syncer_destroy(struct syncer *s);

/* Announces a write to this file; is_new: its name is not on disk either. */
void syncer_written(struct syncer *s, const char *path, bool is_new);
/* all announced writes of the file are on disk */
bool syncer_is_synced(const struct syncer *s, const char *path);

/* e is NULL when all writes announced before syncer_wait are on disk; else it names what could not
 * be made durable, which is tried only once. */
typedef void (*syncer_fn)(void *ctx, const struct err *e);
/* fn runs on the loop, exactly once, never inside */
void syncer_wait(struct syncer *s, syncer_fn fn, void *ctx);

#endif
