/* SPDX-License-Identifier: Apache-2.0
 *
 * What MHD calls while a request comes in, and the handing over of a whole one to the handler.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_exchange.h"
#include "base/uv/http_peer.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WAIT_MS SECONDS_MS(30)

/* So much of a body over the limit is read and dropped, so that the client hears the 413: one that is still
 * sending when the server hangs up may not. */
#define DRAIN_MAX ((size_t)16 << 20)

static void fill_peer(struct http_exchange *x)
{
    struct http_server_request *r = &x->request;
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *addr =
        MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    http_peer_fill_address(fd ? fd->connect_fd : -1, addr ? addr->client_addr : NULL, r);
    if (!x->server->has_client_ca)
        return;
    struct http_peer_cert *c =
        MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    if (!c->is_checked)
        http_peer_check_cert(
            MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session, c);
    if (c->error[0])
        r->peer_cert_error = c->error;
    else if (c->cn[0] && clock_wall(&clock_system).ms >= SECONDS_MS(c->verified_until))
        r->peer_cert_error = "the client certificate has expired since the connection was made";
    else if (c->cn[0])
        r->peer_cn = c->cn;
}

static enum MHD_Result queue_response(struct http_exchange *x)
{
    return x->response ? MHD_queue_response(x->conn, (unsigned)x->status, x->response) : MHD_NO;
}

/* The whole request is here: to the handler with it. */
static void hand_over(struct http_exchange *x, const char *method)
{
    struct http_server *s = x->server;
    struct err e;
    if (http_target_parse(x->raw_target, &x->target, &e) < 0) {
        http_reply_err(x, &e);
        return;
    }
    x->request = (struct http_server_request){.method = method,
        .path = x->target.path,
        .raw_target = x->raw_target,
        .body = buf_str(&x->body),
        .body_len = x->body.len,
        .peer_uid = (uid_t)-1};
    fill_peer(x);
    x->state = HANDED;
    list_push_back(&s->waiting, &x->link);
    s->current = x;
    if (!s->is_stopping)
        s->handler(s->ctx, x, &x->request);
    s->current = NULL;
    if (x->state == HANDED && s->is_stopping)
        http_reply_stopping(x);
    if (x->state == HANDED && !timer_is_running(&x->timer))
        http_exchange_wait(x, DEFAULT_WAIT_MS, NULL, NULL, NULL);
}

static void suspend(struct http_exchange *x)
{
    x->is_suspended = true;
    x->server->n_suspended++;
    MHD_suspend_connection(x->conn);
}

static void reply_too_large(struct http_exchange *x)
{
    struct err e;
    err_set(&e, ERR_INVALID, "the request's body is larger than the %zu bytes allowed here",
        x->server->max_body_bytes);
    http_reply_status_err(x, MHD_HTTP_CONTENT_TOO_LARGE, &e);
}

/* Only the headers are here. A body far over the limit is refused now. */
static enum MHD_Result begin(struct http_exchange *x, struct MHD_Connection *conn)
{
    x->is_begun = true;
    x->conn = conn;
    const char *text = http_request_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t n;
    if (text && str_to_i64(text, 0, INT64_MAX, "Content-Length", &n, NULL) == 0 &&
        (uint64_t)n > x->server->max_body_bytes + DRAIN_MAX) {
        reply_too_large(x);
        return queue_response(x);
    }
    return MHD_YES;
}

/* A chunked body that goes on and on ends the connection. */
static enum MHD_Result take_body(struct http_exchange *x, const char *p, size_t *n)
{
    if (x->dropped_bytes > 0 || buf_add_limited(&x->body, p, *n, x->server->max_body_bytes, NULL) < 0)
        x->dropped_bytes += *n;
    *n = 0;
    return x->dropped_bytes <= DRAIN_MAX ? MHD_YES : MHD_NO;
}

/* MHD calls this when the headers are here, for each piece of the body, at the end, and after a resume. */
enum MHD_Result http_exchange_on_access(void *cls, struct MHD_Connection *conn, const char *url,
    const char *method, const char *version, const char *upload, size_t *n_upload, void **con_cls)
{
    (void)cls, (void)url, (void)version;
    struct http_exchange *x = *con_cls;
    if (!x->is_begun)
        return begin(x, conn);
    if (*n_upload > 0)
        return take_body(x, upload, n_upload);
    if (x->state == READING && x->dropped_bytes > 0)
        reply_too_large(x);
    else if (x->state == READING)
        hand_over(x, method);
    if (x->state == ANSWERED)
        return queue_response(x);
    suspend(x);
    return MHD_YES;
}

/* The first that is heard of a request: its target, untouched. */
void *http_exchange_on_target(void *cls, const char *target, struct MHD_Connection *conn)
{
    (void)conn;
    struct http_exchange *x = mem_alloc(sizeof(*x));
    x->server = cls;
    x->raw_target = mem_strdup(target);
    return x;
}

void http_exchange_on_completed(
    void *cls, struct MHD_Connection *conn, void **con_cls, enum MHD_RequestTerminationCode why)
{
    (void)cls, (void)conn, (void)why;
    struct http_exchange *x = *con_cls;
    if (!x)
        return;
    assert(x->state != HANDED && !link_is_in(&x->link));
    if (x->response)
        MHD_destroy_response(x->response);
    for (size_t i = 0; i < x->n_headers; i++) {
        free(x->headers[i].name);
        free(x->headers[i].value);
    }
    free(x->headers);
    http_target_deinit(&x->target);
    buf_deinit(&x->body);
    free(x->raw_target);
    free(x);
    *con_cls = NULL;
}
