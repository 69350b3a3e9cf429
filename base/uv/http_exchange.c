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

static void fill_address(struct http_exchange *x)
{
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *addr =
        MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    http_peer_fill_address(fd ? fd->connect_fd : -1, addr ? addr->client_addr : NULL, &x->request);
}

static void fill_cert(struct http_exchange *x)
{
    struct http_server_request *r = &x->request;
    r->peer_cn = r->peer_cert_error = NULL;
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
static void hand_over(struct http_exchange *x)
{
    struct http_server *s = x->server;
    struct err e;
    if (http_target_parse(x->raw_target, &x->target, &e) < 0) {
        http_reply_err(x, &e);
        return;
    }
    x->request.path = x->target.path;
    x->request.body = buf_str(&x->body);
    x->request.body_len = x->body.len;
    fill_cert(x); /* a body can take its time: what was good at the headers may have expired */
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

static void drop_body(struct http_exchange *x)
{
    if (x->share)
        x->share->now_bytes -= x->body.len;
    buf_deinit(&x->body);
    x->request.body = NULL;
    x->request.body_len = 0;
}

static void suspend(struct http_exchange *x)
{
    drop_body(x);
    x->is_suspended = true;
    x->server->n_suspended++;
    MHD_suspend_connection(x->conn);
}

static void reply_refusal(struct http_exchange *x)
{
    struct err e;
    if (x->refusal == BODY_NO_ROOM) {
        err_set(&e, ERR_UNAVAILABLE, "too many large requests are coming in at once; try again later");
        http_reply_err(x, &e);
        return;
    }
    err_set(&e, ERR_INVALID, "the request's body is larger than the %zu bytes allowed %s", x->body_max_bytes,
        x->body_max_bytes < x->server->max_body_bytes ? "without a valid certificate or token" : "here");
    http_reply_status_err(x, MHD_HTTP_CONTENT_TOO_LARGE, &e);
}

/* How much of a body is taken from this client, and from whose share. */
static void decide_limit(struct http_exchange *x)
{
    struct http_server *s = x->server;
    x->body_max_bytes = s->max_body_bytes;
    if (s->body_limit) {
        size_t n = s->body_limit(s->ctx, x, &x->request);
        x->body_max_bytes = n < s->max_body_bytes ? n : s->max_body_bytes;
    }
    x->share = x->body_max_bytes < s->max_body_bytes ? &s->strangers : &s->known;
}

/* Only the headers are here. A body far over the limit is refused now. */
static enum MHD_Result begin(struct http_exchange *x, struct MHD_Connection *conn, const char *method)
{
    x->is_begun = true;
    x->conn = conn;
    x->request = (struct http_server_request){
        .method = method, .path = "", .raw_target = x->raw_target, .peer_uid = (uid_t)-1};
    fill_address(x);
    fill_cert(x);
    const char *text = http_request_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t n = 0;
    if (text && str_to_i64(text, 0, INT64_MAX, "Content-Length", &n, NULL) != 0)
        n = INT64_MAX;
    if (n == 0 && !http_request_header(x, MHD_HTTP_HEADER_TRANSFER_ENCODING))
        return MHD_YES;
    decide_limit(x);
    if ((uint64_t)n > x->body_max_bytes + DRAIN_MAX) {
        x->refusal = BODY_TOO_LARGE;
        reply_refusal(x);
        return queue_response(x);
    }
    return MHD_YES;
}

static enum body_refusal add_body(struct http_exchange *x, const char *p, size_t n)
{
    if (n > x->body_max_bytes - x->body.len)
        return BODY_TOO_LARGE;
    if (n > x->share->max_bytes - x->share->now_bytes)
        return BODY_NO_ROOM;
    buf_add(&x->body, p, n);
    x->share->now_bytes += n;
    return BODY_FINE;
}

/* A refused body is let go at once. A chunked one that goes on and on ends the connection. */
static enum MHD_Result take_body(struct http_exchange *x, const char *p, size_t *n)
{
    if (x->refusal == BODY_FINE)
        x->refusal = add_body(x, p, *n);
    if (x->refusal != BODY_FINE) {
        drop_body(x);
        x->dropped_bytes += *n;
    }
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
        return begin(x, conn, method);
    if (*n_upload > 0)
        return take_body(x, upload, n_upload);
    if (x->state == READING && x->refusal != BODY_FINE)
        reply_refusal(x);
    else if (x->state == READING)
        hand_over(x);
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
    drop_body(x);
    free(x->raw_target);
    free(x);
    *con_cls = NULL;
}
