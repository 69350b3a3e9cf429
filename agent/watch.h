/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches files and directories of jobs: runs a callback soon after a change, and periodically
 * anyway, because notifications can be lost (another file system, a replaced directory, no watches
 * left).
 *
 * A job may change its files as often as it likes. The cost to the event loop is bounded:
 *  - inotify reports one change per run of the callback (IN_ONESHOT); further changes cost nothing
 *    until the next run.
 *  - One watch causes WATCH_BURST runs at once, then one every WATCH_REFILL_MS.
 *  - All watches of a loop together get WATCH_SHARE_PERCENT of its time, at most WATCH_TURN_MS at
 *    once. Watches that are due are served round robin.
 */
#ifndef BELAY_AGENT_WATCH_H
#define BELAY_AGENT_WATCH_H

#include "base/timers.h"
#include <uv.h>

#define WATCH_BURST 64
#define WATCH_REFILL_MS 20
#define WATCH_SHARE_PERCENT 25
#define WATCH_TURN_MS 5
#define WATCH_DEBT_MAX_MS 50 /* upper limit of the pause after one slow run */

/* All watches of a loop. Close it after stopping the last watch, then run the loop once more. */
struct watches;
struct watches *watches_open(uv_loop_t *loop, struct timers *timers);
void watches_close(struct watches *ws); /* NULL is allowed */

struct watch;
typedef void (*watch_fn)(void *ctx);

/* fn runs coalesce_ms after a change (covering all changes until then) and every poll_ms, later
 * under load as described above. It may stop its own watch. Its work must be bounded, because its
 * time is measured only afterwards. */
struct watch *watch_start(struct watches *ws, const char *path, int64_t coalesce_ms,
    int64_t poll_ms, watch_fn fn, void *ctx);
void watch_stop(struct watch *w); /* NULL is allowed; fn does not run afterwards */

/* Makes fn run soon, as after a change, to continue work that exceeds one run. NULL is allowed. */
void watch_trigger(struct watch *w);

/* For the same work as fn's, started from elsewhere. True: do it now. False: the allowance is
 * spent, and fn will run when there is some again. True for NULL. */
bool watch_allows(struct watch *w);

/* Counts work allowed by watch_allows as a run, because it found something to do. Work that found
 * nothing need not be counted if it is rarer than runs. NULL is allowed. */
void watch_count(struct watch *w);

#endif
