/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes what was written to files durable, many at once: rounds on a thread, one after the other, a
 * second apart at the least unless somebody waits. So a file costs one fsync a round, however often
 * it is written to, and nobody's turn on the loop waits for the disk.
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
/* Who waits is told ERR_UNAVAILABLE, inside. A round on its thread ends by itself: run the loop
 * afterwards. NULL is fine. */
void syncer_destroy(struct syncer *s);

/* Something was written to this file; is_new: its name is not on disk either. */
void syncer_written(struct syncer *s, const char *path, bool is_new);
/* all that was told of it is on disk */
bool syncer_is_synced(const struct syncer *s, const char *path);

/* e is NULL when all that was told before syncer_wait is on disk; else what could not be made so,
 * which is tried once only. */
typedef void (*syncer_fn)(void *ctx, const struct err *e);
/* fn runs on the loop, exactly once, never inside */
void syncer_wait(struct syncer *s, syncer_fn fn, void *ctx);

#endif
