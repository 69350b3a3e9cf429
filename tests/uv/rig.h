/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of this room: a loop, a server whose answers depend on the path, a client,
 * and a raw connection for bytes that no client sends.
 */
#ifndef BELAY_TESTS_UV_RIG_H
#define BELAY_TESTS_UV_RIG_H

#include "base/http.h"
#include "base/timers.h"
#include "base/uv/http_server.h"
#include "base/uv/loop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after the four above */
#include <cmocka.h>

struct rig {
    uv_loop_t loop;
    struct timers *timers;
    struct http_client *client;
    struct http_server *server;
    /* the client is the one for UNIX sockets; set by rig_init_local */
    bool is_local;
    char folder[32], socket[48];  /* its socket, in a directory of its own */
    char base[64];                /* "http://127.0.0.1:4711" */
    struct http_exchange *parked; /* the last request to /park */
    int n_parked, n_gone, n_wait_over, n_requests;
    bool stop_on_gone;
    struct http_exchange *stream; /* the last request to /stream; NULL once closed */
    int n_streams, n_closed;
    int file_fd; /* file and length sent by /file */
    size_t file_bytes;
    /* limit of a body without the header X-Known: yes; 0 = the server's limit */
    size_t stranger_bytes;
};

/* The outcome of one request. */
struct outcome {
    bool is_done;
    int n_done;
    enum err_kind kind; /* ERR_NONE = a reply */
    char text[ERR_TEXT_MAX];
    int status;
    struct buf body;
    char etag[64];
    struct rig *rig;
};

/* Paths of the server:
 *   /hello         200 "hello"
 *   /echo          200 with the body
 *   /whoami        200 "cn=...;error=...;unix=...;uid=..."
 *   /target        200 "PATH|RAW|x=VALUE"
 *   /park          answered by the test (rig.parked), or after its wait: 204
 *   /park-default  never answered by the handler, no wait given
 *   /park-short    waits 20 ms, then 204
 *   /stop          answers 200 and stops the server inside its handler
 *   /headers       200, with two headers of its own
 *   /fail          ERR_CONFLICT through http_reply_err
 *   /none          closes the connection
 *   /file          the first file_bytes of file_fd
 *   /stream        a stream of the test (rig.stream), of which 64 KiB may wait
 *   /big           1 MiB of 'x'
 * others: 404 */
void rig_init(struct rig *r);
void rig_init_local(struct rig *r);
void rig_destroy_client(struct rig *r); /* before rig_deinit does */
/* Fills handler, identify and ctx; listens on 127.0.0.1, or the rig's socket, unless o says
 * otherwise. */
void rig_serve(struct rig *r, struct http_server_options o);
void rig_deinit(struct rig *r);

/* Runs the loop until *flag; fails the test after 20 s. */
void rig_run_until(struct rig *r, const bool *flag);
void rig_run_until_count(struct rig *r, const int *count, int at_least);

/* Starts method on base + path; the outcome must outlive the request. Zero fields of q get
 * defaults. */
struct http_call *rig_start(
    struct rig *r, const char *method, const char *path, struct http_request q, struct outcome *o);
/* Starts a request and runs until it is done. */
void rig_fetch(
    struct rig *r, const char *method, const char *path, struct http_request q, struct outcome *o);
void outcome_deinit(struct outcome *o);

/* Sends n bytes on a separate connection and collects the reply until the server closes it. */
void rig_raw(struct rig *r, const char *bytes, size_t n, struct buf *ret_reply);

#endif
