/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rest of the program sees of libuv: timers, child processes, signals, work on threads.
 * Only the mains, listeners and the agent's processes use this room; decisions see base/timers.h
 * and base/http.h.
 */
#ifndef BELAY_BASE_UV_LOOP_H
#define BELAY_BASE_UV_LOOP_H

#include "base/http.h"
#include "base/timers.h"
#include <uv.h>

/* Timers on loop, one uv_timer_t each. uv_timers_destroy stops all that still run; run the loop
 * once more after it so that the handles close. */
struct timers *uv_timers_create(uv_loop_t *loop);
void uv_timers_destroy(struct timers *ts);

/* HTTP client on curl's multi_socket_action. At most 32 connections a host; the rest wait. Cancels
 * what is under way on destroy (their done callbacks run with ERR_CANCELLED inside destroy). */
struct http_client *uv_http_client_create(uv_loop_t *loop);
void uv_http_client_destroy(struct http_client *c);

/* The same for requests that name a unix_socket, all of them, and without libcurl: its loading
 * alone takes longer than a call to belayd. Plain HTTP, a connection a call, any number of them;
 * one whose server's queue is full waits for a place in it. */
struct http_client *uv_http_local_create(uv_loop_t *loop);
void uv_http_local_destroy(struct http_client *c);

/* Runs work on a thread of uv's pool, then done on the loop. ctx is the caller's. */
typedef void (*uv_work_fn)(void *ctx);
void uv_run_work(uv_loop_t *loop, uv_work_fn work, uv_work_fn done, void *ctx);

/* Calls fn(ctx, signum) on the loop for SIGTERM and SIGINT (and ignores SIGPIPE in the process). */
typedef void (*uv_signal_fn)(void *ctx, int signum);
struct uv_signals *uv_signals_create(uv_loop_t *loop, uv_signal_fn fn, void *ctx);
void uv_signals_destroy(struct uv_signals *s);

/* Closes every handle still open on the loop, runs it until they are closed, closes the loop. */
void uv_loop_finish(uv_loop_t *loop);

#endif
