/* SPDX-License-Identifier: Apache-2.0
 *
 * One request of the HTTP server, from its head to the call of the handler.
 */
#include "base/uv/http_server_private.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WAIT_MS SECONDS_MS(30)

static void fill_cert(struct http_exchange *x)
{
    struct http_server_request *r = &x->request;
    struct http_peer_cert *c = x->conn->cert;
    r->peer_cn = r->peer_cert_error = NULL;
    if (!c)
        return;
    if (!c->is_checked)
        http_peer_check_cert(tls_conn_ssl(x->conn->tls), c);
    if (c->error[0])
        r->peer_cert_error = c->error;
    else if (c->cn[0] && clock_wall(&clock_system).ms >= SECONDS_MS(c->verified_until))
        r->peer_cert_error = "the client certificate has expired since the connection was made";
    else if (c->cn[0])
        r->peer_cn = c->cn;
}

struct http_exchange *http_exchange_create(struct http_conn *c)
{
    struct http_exchange *x = mem_alloc(sizeof(*x));
    x->server = c->server;
    x->conn = c;
    x->file_fd = -1;
    assert(!c->x);
    c->x = x;
    return x;
}

void http_exchange_drop_body(struct http_exchange *x)
{
    if (x->conn)
        http_admission_give_back(&x->server->admission, &x->conn->holder, x->body.len);
    buf_wipe(&x->body); /* may have a secret, as the reply below */
    x->request.body = NULL;
    x->request.body_len = 0;
}

void http_exchange_destroy(struct http_exchange *x)
{
    if (!x)
        return;
    assert(x->state != HANDED && !link_is_in(&x->link));
    http_exchange_tell_answer(x, 0);
    http_stream_drop(x);
    http_exchange_drop_body(x);
    if (x->conn)
        http_admission_give_back(&x->server->admission, &x->conn->holder,
            x->head_bytes + (x->state == ANSWERED ? x->reply_body.len : 0));
    if (x->reply_kind == REPLY_FILE)
        x->server->n_files--;
    if (x->head_text)
        explicit_bzero(x->head_text, x->head_bytes);
    http_head_deinit(&x->head);
    http_target_deinit(&x->target);
    buf_deinit(&x->reply_fields);
    buf_wipe(&x->reply_body);
    free(x->head_text);
    free(x);
}

/* The request is complete: calls the handler. */
static void dispatch(struct http_exchange *x)
{
    struct http_server *s = x->server;
    x->request.path = x->target.path;
    x->request.body = buf_str(&x->body);
    x->request.body_len = x->body.len;
    /* a body can take long, so a certificate that was valid at the head may have expired */
    fill_cert(x);
    http_conn_set_phase(x->conn, CONN_WAITING);
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
    http_exchange_drop_body(x);
}

/* ---- Who sends it ---- */

static void identify_client(struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    struct http_server *s = x->server;
    const char *authorization = http_head_field(&x->head, "Authorization");
    if (s->is_unix || !s->identify)
        return;
    if (c->authorization && str_secret_eq(c->authorization, authorization ? authorization : ""))
        return;
    if (c->authorization)
        explicit_bzero(c->authorization, strlen(c->authorization));
    free(c->authorization);
    c->authorization = NULL;
    c->identity =
        (struct http_identity){.class = HTTP_STRANGER, .max_body_bytes = s->max_body_bytes};
    s->identify(s->ctx, x, &x->request, &c->identity);
    if (c->identity.max_body_bytes > s->max_body_bytes)
        c->identity.max_body_bytes = s->max_body_bytes;
    if (authorization && c->identity.class != HTTP_STRANGER)
        c->authorization = mem_strdup(authorization);
}

/* Counts the connection for the sender of this request. False if the request was refused. */
static bool enter(struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    const struct http_identity *id = &c->identity;
    struct http_holder *victim;
    struct err e;
    enum http_verdict v;
    while (
        (v = http_admission_enter(&x->server->admission, &c->holder, id->class,
             id->class == HTTP_STRANGER ? c->stranger_name : id->name, &victim)) == HTTP_GIVES_WAY)
        http_conn_give_way(LIST_ENTRY(victim, struct http_conn, holder), false);
    if (v == HTTP_ADMITTED)
        return true;
    x->server->stats.refused++;
    err_set(&e, ERR_THROTTLED,
        v == HTTP_PARTY_FULL
            ? "%s has as many connections open as one may have: close some, or send more requests "
              "over each"
            : "the server has as many connections of %s and others as it may have: try again later",
        id->name[0] ? id->name : "this address");
    http_conn_refuse(c, http_status_of(v == HTTP_PARTY_FULL ? ERR_THROTTLED : ERR_UNAVAILABLE), &e);
    return false;
}

/* ---- Bodies ---- */

static void refuse_too_large(struct http_exchange *x)
{
    struct err e;
    x->server->stats.bodies_refused++;
    err_set(&e, ERR_INVALID, "the request's body is larger than the %zu bytes allowed %s",
        x->body_max_bytes,
        x->body_max_bytes < x->server->max_body_bytes ? "without a valid certificate or token"
                                                      : "here");
    http_conn_refuse(x->conn, 413, &e);
}

/* Adds n bytes to the body. False if the request was refused: too large, or no space. */
static bool add_body(struct http_exchange *x, const char *p, size_t n)
{
    struct err e;
    if (n > x->body_max_bytes - x->body.len) {
        refuse_too_large(x);
        return false;
    }
    if (!http_conn_take_bytes(x->conn, n, &e)) {
        x->server->stats.bodies_refused++;
        http_conn_refuse(x->conn, http_status_of(e.kind), &e);
        return false;
    }
    buf_add(&x->body, p, n);
    return true;
}

static size_t take_length(struct http_exchange *x, const char *p, size_t n)
{
    uint64_t left = x->head.content_length - x->body.len;
    n = n < left ? n : (size_t)left;
    if (add_body(x, p, n) && x->body.len == x->head.content_length)
        dispatch(x);
    return n;
}

static size_t take_chunks(struct http_exchange *x, const char *p, size_t n)
{
    size_t at = 0;
    struct err e;
    while (at < n && x->chunks.state != CHUNKS_DONE) {
        size_t used, n_data;
        if (http_chunks_take(&x->chunks, p + at, n - at, &used, &n_data, &e) != 0) {
            x->server->stats.malformed++;
            http_conn_refuse(x->conn, 400, &e);
            return n;
        }
        at += used;
        if (n_data > 0 && !add_body(x, p + at - n_data, n_data))
            return n;
    }
    if (x->chunks.state == CHUNKS_DONE)
        dispatch(x);
    return at;
}

size_t http_exchange_take_body(struct http_exchange *x, const char *p, size_t n)
{
    return x->head.framing == HTTP_CHUNKED ? take_chunks(x, p, n) : take_length(x, p, n);
}

static void begin_body(struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    x->body_max_bytes = c->identity.max_body_bytes;
    if (x->head.framing == HTTP_LENGTH && x->head.content_length > x->body_max_bytes) {
        refuse_too_large(x);
        return;
    }
    if (x->head.expects_continue && c->in.len == 0)
        buf_adds(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
    http_conn_set_phase(c, CONN_BODY);
}

/* ---- The head ---- */

void http_exchange_begin(struct http_conn *c, char *head, size_t n)
{
    struct http_exchange *x = http_exchange_create(c);
    struct err e;
    int status;
    x->request = c->peer;
    x->head_bytes = n;
    x->head_text = head;
    int rc = http_head_parse(x->head_text, n, &x->head, &status, &e);
    if (rc == 0) {
        status = 400;
        rc = http_target_parse(x->head.target, &x->target, &e);
    }
    if (rc != 0) {
        c->server->stats.malformed++;
        http_conn_refuse(c, status, &e);
        return;
    }
    if (!x->head.keeps_alive)
        c->is_last = true;
    x->request.method = x->head.method;
    x->request.path = "";
    x->request.raw_target = x->head.target;
    fill_cert(x);
    identify_client(x);
    if (!enter(x))
        return;
    if (x->head.framing == HTTP_NO_BODY)
        dispatch(x);
    else
        begin_body(x);
}
