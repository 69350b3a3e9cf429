/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches files and directories of jobs: says "look" soon after something changed, and now and then
 * anyway, because notifications can be lost (another file system, a directory that was replaced, no
 * watches left).
 *
 * A job may change its files as often as it can. What that costs the event loop is bounded:
 *  - inotify reports one change per look (IN_ONESHOT); further changes cost nothing until the next
 *    look.
 *  - One watch causes WATCH_BURST looks at once, then one every WATCH_REFILL_MS.
 *  - All watches of a loop together have WATCH_SHARE_PERCENT of its time, at most WATCH_TURN_MS at
 *    once. Those that are due are served in turn, each once.
 */
#ifndef BELAY_AGENT_WATCH_H
#define BELAY_AGENT_WATCH_H

#include "base/timers.h"
#include <uv.h>

#define WATCH_BURST 64
#define WATCH_REFILL_MS 20
#define WATCH_SHARE_PERCENT 25
#define WATCH_TURN_MS 5
#define WATCH_DEBT_MAX_MS 50 /* one slow look pauses the others for no more than this costs */

/* All watches of a loop. Close it after the last watch was stopped; run the loop once more after
 * that. */
struct watches;
struct watches *watches_open(uv_loop_t *loop, struct timers *timers);
void watches_close(struct watches *ws); /* NULL is fine */

struct watch;
typedef void (*watch_fn)(void *ctx);

/* fn runs coalesce_ms after a change (later changes until then are covered) and every poll_ms,
 * later under load as said above. It may stop its own watch. What it does must be bounded: the time
 * it takes is measured only afterwards. */
struct watch *watch_start(struct watches *ws, const char *path, int64_t coalesce_ms,
    int64_t poll_ms, watch_fn fn, void *ctx);
void watch_stop(struct watch *w); /* NULL is fine; fn does not run after it */

/* fn runs soon, as after a change: there is more to do than one look may. NULL is fine. */
void watch_again(struct watch *w);

/* For work of fn's kind that has another occasion. True: it may be done now. False: the allowance
 * is spent, fn runs when there is some. NULL: true. */
bool watch_allows(struct watch *w);

/* What was allowed has found something to do, and counts as a look. Who finds nothing needs no call
 * if its occasions are rarer than looks. NULL is fine. */
void watch_count(struct watch *w);

#endif
