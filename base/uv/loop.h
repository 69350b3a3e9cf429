/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface to libuv for the rest of the program: timers, child processes, signals, work on
 * threads. Only the mains, listeners and the agent's processes use this room; code that decides
 * uses base/timers.h and base/http.h.
 */
#ifndef BELAY_BASE_UV_LOOP_H
#define BELAY_BASE_UV_LOOP_H

#include "base/http.h"
#include "base/timers.h"
#include <uv.h>

/* Timers on loop, one uv_timer_t each. uv_timers_destroy stops all running timers; run the loop
 * once more after it so that the handles close. */
struct timers *uv_timers_create(uv_loop_t *loop);
void uv_timers_destroy(struct timers *ts);

/* HTTP client on curl's multi_socket_action. At most 32 connections per host; further requests
 * wait. uv_http_client_destroy cancels pending requests: their done callbacks run with
 * ERR_CANCELLED inside it. */
struct http_client *uv_http_client_create(uv_loop_t *loop);
void uv_http_client_destroy(struct http_client *c);

/* The same interface for requests with a unix_socket, without libcurl, because loading libcurl
 * takes longer than a call to belayd. Plain HTTP, one connection per call, any number of calls. A
 * call waits while the server's accept queue is full. */
struct http_client *uv_http_local_create(uv_loop_t *loop);
void uv_http_local_destroy(struct http_client *c);

/* Runs work on a thread of uv's pool, then done on the loop. The caller owns ctx. */
typedef void (*uv_work_fn)(void *ctx);
void uv_run_work(uv_loop_t *loop, uv_work_fn work, uv_work_fn done, void *ctx);

/* Calls fn(ctx, signum) on the loop for SIGTERM and SIGINT; ignores SIGPIPE in the process. */
typedef void (*uv_signal_fn)(void *ctx, int signum);
struct uv_signals *uv_signals_create(uv_loop_t *loop, uv_signal_fn fn, void *ctx);
void uv_signals_destroy(struct uv_signals *s);

/* Closes every handle still open on the loop, runs it until they are closed, closes the loop. */
void uv_loop_finish(uv_loop_t *loop);

#endif
