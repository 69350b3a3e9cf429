/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches a file or a directory: says "look again" soon after something changed, and now and then anyway,
 * because notifications can be lost (another file system, a directory that was replaced, no watches left).
 */
#ifndef BELAY_AGENT_WATCH_H
#define BELAY_AGENT_WATCH_H

#include "base/timers.h"
#include <uv.h>

struct watch;
typedef void (*watch_fn)(void *ctx);

/* fn runs coalesce_ms after a change (later changes until then are covered) and every poll_ms. */
struct watch *watch_start(uv_loop_t *loop, struct timers *timers, const char *path, int64_t coalesce_ms,
    int64_t poll_ms, watch_fn fn, void *ctx);
void watch_stop(struct watch *w); /* NULL is fine; fn does not run after it */

#endif
