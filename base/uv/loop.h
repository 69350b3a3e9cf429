/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of libuv: signals, work on threads, its end. Only the mains, listeners and the agent's
 * processes use this room; code that decides uses base/timers.h and base/http.h.
 */
#ifndef BELAY_BASE_UV_LOOP_H
#define BELAY_BASE_UV_LOOP_H

#include <uv.h>

/* Runs work on a thread of uv's pool, then done on the loop. The caller owns ctx. For work that
 * returns: the pool is small, and shared by all. */
typedef void (*uv_work_fn)(void *ctx);
void uv_run_work(uv_loop_t *loop, uv_work_fn work, uv_work_fn done, void *ctx);

/* Calls fn(ctx, signum) on the loop for SIGTERM and SIGINT; ignores SIGPIPE in the process. */
typedef void (*uv_signal_fn)(void *ctx, int signum);
struct uv_signals *uv_signals_create(uv_loop_t *loop, uv_signal_fn fn, void *ctx);
void uv_signals_destroy(struct uv_signals *s);

/* Closes every handle still open on the loop, runs it until they are closed, closes the loop. */
void uv_loop_finish(uv_loop_t *loop);

#endif
