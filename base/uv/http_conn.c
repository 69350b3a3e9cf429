/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection of the HTTP server. http_conn_run takes steps until one says that there is nothing
 * to be done now; what it waits for then follows from the phase alone (set_events).
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_server_private.h"
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_PIECE ((size_t)32 << 10)
#define HEAD_PIECE ((size_t)16 << 10) /* read at a time while a head is awaited */
/* Limit of one turn of a connection: all connections together get ROUND_BYTES, some tens of
 * milliseconds of TLS, unless that is less than a record for each. */
#define ROUND_BYTES ((size_t)8 << 20)
#define TURN_BYTES_MAX ((size_t)256 << 10)
#define TURN_BYTES_MIN ((size_t)16 << 10)
#define TURN_STEPS 64
/* While no connection waits for its turn, events are handled immediately, for this time in an
 * iteration of the loop. */
#define POLL_MS 8
/* Unsent bytes that the kernel buffers. The default is megabytes: buffers of clients that do not
 * read would use up the memory that all TCP connections of the machine share (tcp_mem). */
#define UNSENT_BYTES (128 << 10)
#define OUT_JOINED_MAX ((size_t)16 << 10) /* a body up to this is sent together with its head */

/* For a handshake and a head, or for a later head from its first byte. */
#define HANDSHAKE_AND_HEAD_MS SECONDS_MS(20)
#define BODY_WINDOW_MS SECONDS_MS(10)
#define BODY_BYTES_A_S 8192
#define BODY_MS SECONDS_MS(300)
#define REPLY_WINDOW_MS SECONDS_MS(60)
#define REPLY_BYTES_A_S 1024
#define LINGER_MS SECONDS_MS(5)
#define LINGER_BYTES ((uint64_t)16 << 20)

static int64_t now_of(const struct http_server *s)
{
    return clock_mono(s->timers->clock).ms;
}

/* ---- Phases and events ---- */

void http_conn_set_phase(struct http_conn *c, enum conn_phase phase)
{
    c->phase = phase;
    c->began_ms = c->moved_at_ms = c->window_at_ms = now_of(c->server);
    c->n_moved = c->window_moved = 0;
    c->is_excused = false;
    c->holder.may_give_way = phase != CONN_WAITING && phase != CONN_CLOSED;
}

static bool has_output(const struct http_conn *c)
{
    const struct http_exchange *x = c->x;
    if (c->out_at < c->out.len)
        return true;
    if (c->phase != CONN_SENDING || !http_reply_has_body(x))
        return false;
    return c->body_at < x->reply_body.len ||
           (x->reply_kind == REPLY_FILE && c->file_at < x->reply_length);
}

/* is_event: see http_turns_add. */
static void run_soon(struct http_conn *c, bool is_event)
{
    struct http_server *s = c->server;
    http_turns_add(&s->turns, &c->holder, is_event);
    if (!timer_is_running(&s->turns_timer))
        timer_start(s->timers, &s->turns_timer, 0);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct http_conn *c = h->data;
    struct http_server *s = c->server;
    (void)status, (void)events; /* the next step finds out what has happened */
    if (s->turns.n == 0 && now_of(s) - (int64_t)uv_now(s->loop) < POLL_MS)
        http_conn_run(c);
    else
        run_soon(c, true);
}

static void set_events(struct http_conn *c)
{
    if (c->phase == CONN_CLOSED)
        return;
    bool writes = (c->tls && tls_conn_wants_write(c->tls)) || has_output(c);
    bool reads = !writes && c->phase != CONN_WAITING && c->phase != CONN_SENDING;
    int events = (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0);
    if (events == c->events)
        return;
    c->events = events;
    if (events)
        uv_poll_start(&c->poll, events, on_poll);
    else
        uv_poll_stop(&c->poll);
}

/* ---- Open and close ---- */

static void fill_stranger_name(struct http_conn *c, const struct sockaddr_storage *addr)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
    if (addr->ss_family != AF_INET6) { /* without the port; for a UNIX socket its user */
        str_copy(c->stranger_name, sizeof(c->stranger_name), c->peer.peer_address);
        if (addr->ss_family == AF_INET)
            c->stranger_name[strcspn(c->stranger_name, ":")] = '\0';
        else if (c->peer.is_unix)
            snprintf(
                c->stranger_name, sizeof(c->stranger_name), "uid %u", (unsigned)c->peer.peer_uid);
        return;
    }
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
        str_hex(in6->sin6_addr.s6_addr + 12, 4, c->stranger_name);
    else
        str_hex(
            /* a client with one address usually has its whole /64 */
            in6->sin6_addr.s6_addr, 8, c->stranger_name);
}

/* Counts the new connection in its class. False if it is not admitted. */
static bool enter(struct http_conn *c)
{
    struct http_server *s = c->server;
    struct http_holder *victim;
    enum http_verdict v;
    c->identity =
        (struct http_identity){.class = HTTP_STRANGER, .max_body_bytes = s->max_body_bytes};
    if (c->peer.is_unix && s->identify)
        c->identity.class = HTTP_USER;
    STR_COPY(c->identity.name, c->stranger_name);
    while ((v = http_admission_enter(&s->admission, &c->holder, c->identity.class, c->stranger_name,
                &victim)) == HTTP_GIVES_WAY)
        http_conn_give_way(LIST_ENTRY(victim, struct http_conn, holder), false);
    return v == HTTP_ADMITTED;
}

struct http_conn *http_conn_open(struct http_server *s, int fd, const struct sockaddr_storage *addr)
{
    struct http_conn *c = mem_alloc(sizeof(*c));
    c->server = s;
    c->fd = fd;
    c->peer.peer_uid = (uid_t)-1;
    http_peer_fill_address(fd, (const struct sockaddr *)addr, &c->peer);
    fill_stranger_name(c, addr);
    c->poll.data = c;
    if (!enter(c) || uv_poll_init(s->loop, &c->poll, fd) != 0) {
        http_admission_leave(&s->admission, &c->holder);
        s->stats.refused++;
        close(fd);
        free(c);
        return NULL;
    }
    if (!c->peer.is_unix) {
        int on = 1, unsent = UNSENT_BYTES;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    }
    s->n_open++;
    list_push_back(&s->conns, &c->link);
    http_conn_set_phase(c, CONN_SILENT);
    set_events(c);
    return c;
}

static void on_poll_closed(uv_handle_t *h)
{
    struct http_conn *c = h->data;
    c->server->n_open--;
    http_server_handle_closed(c->server);
    free(c);
}

void http_conn_close(struct http_conn *c)
{
    struct http_server *s = c->server;
    if (c->phase == CONN_CLOSED)
        return;
    http_conn_set_phase(c, CONN_CLOSED);
    http_exchange_destroy(c->x);
    c->x = NULL;
    http_turns_remove(&s->turns, &c->holder);
    http_admission_leave(&s->admission, &c->holder);
    s->n_tls_closed += c->tls != NULL;
    tls_conn_destroy(c->tls);
    free(c->cert);
    if (c->authorization)
        explicit_bzero(c->authorization, strlen(c->authorization));
    free(c->authorization);
    buf_wipe(&c->in);
    buf_wipe(&c->out);
    link_remove(&c->link);
    uv_close((uv_handle_t *)&c->poll, on_poll_closed);
    close(c->fd);
}

/* ---- Bytes in and out ---- */

enum { WOULD_BLOCK = TLS_WOULD_BLOCK, BROKEN = TLS_BROKEN };

static ssize_t socket_result(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EWOULDBLOCK ? WOULD_BLOCK : BROKEN;
}

/* Returns the number of bytes; 0: the peer has closed; WOULD_BLOCK, BROKEN. */
static ssize_t receive(struct http_conn *c, char *p, size_t n)
{
    ssize_t got;
    if (c->tls)
        return tls_conn_receive(c->tls, p, n);
    do
        got = recv(c->fd, p, n, 0);
    while (got < 0 && errno == EINTR);
    return socket_result(got);
}

static ssize_t send_some(struct http_conn *c, const char *p, size_t n)
{
    ssize_t sent;
    if (c->tls)
        return tls_conn_send(c->tls, p, n);
    do
        sent = send(c->fd, p, n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return socket_result(sent);
}

/* Reads the next bytes of the reply's file into out. False if the file has become shorter. */
static bool refill(struct http_conn *c)
{
    const struct http_exchange *x = c->x;
    uint64_t left = x->reply_length - c->file_at;
    size_t n = left < FILE_PIECE ? (size_t)left : FILE_PIECE;
    ssize_t got;
    buf_clear(&c->out);
    c->out_at = 0;
    char *p = buf_reserve(&c->out, n);
    do
        got = pread(x->file_fd, p, n, (off_t)c->file_at);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return false;
    buf_commit(&c->out, (size_t)got);
    c->file_at += (uint64_t)got;
    return true;
}

static size_t turn_bytes(const struct http_server *s)
{
    size_t share = ROUND_BYTES / (s->n_open + 1);
    return share > TURN_BYTES_MAX   ? TURN_BYTES_MAX
           : share < TURN_BYTES_MIN ? TURN_BYTES_MIN
                                    : share;
}

/* Sends as much as possible. False if output is left (the peer accepts no more now, or the turn is
 * over) or the connection was closed. */
static bool flush(struct http_conn *c, size_t *turn)
{
    size_t max = turn_bytes(c->server);
    while (has_output(c)) {
        bool from_body = c->out_at == c->out.len && c->body_at < (c->x ? c->x->reply_body.len : 0);
        if (*turn >= max)
            return false;
        if (!from_body && c->out_at == c->out.len && !refill(c)) {
            http_conn_close(c);
            return false;
        }
        const char *p = from_body ? c->x->reply_body.data + c->body_at : c->out.data + c->out_at;
        size_t left = from_body ? c->x->reply_body.len - c->body_at : c->out.len - c->out_at;
        ssize_t n = send_some(c, p, left < max ? left : max);
        if (n == BROKEN)
            http_conn_close(c);
        if (n < 0)
            return false;
        *(from_body ? &c->body_at : &c->out_at) += (size_t)n;
        *turn += (size_t)n;
        c->n_moved += (uint64_t)n;
        c->moved_at_ms = now_of(c->server);
    }
    if (c->out.len > 0)
        explicit_bzero(c->out.data, c->out.len); /* a reply may be a secret */
    buf_clear(&c->out);
    if (c->out.cap > OUT_JOINED_MAX)
        buf_deinit(&c->out);
    c->out_at = 0;
    return true;
}

/* Sends what a stream has written. False as flush. */
static bool flush_stream(struct http_conn *c, size_t *turn)
{
    bool is_flushed = flush(c, turn);
    if (c->phase != CONN_CLOSED)
        http_stream_sent(c->x);
    return is_flushed;
}

static bool has_space(enum http_verdict v, const struct http_conn *c, struct err *e)
{
    if (v == HTTP_ADMITTED)
        return true;
    err_set(e, v == HTTP_PARTY_FULL ? ERR_THROTTLED : ERR_UNAVAILABLE,
        v == HTTP_PARTY_FULL ? "%s has too much under way at once: send large requests one after "
                               "the other, and read replies before you ask for more"
                             : "too much is under way at once (%s): try again later",
        c->identity.name[0] ? c->identity.name : c->stranger_name);
    return false;
}

bool http_conn_take_bytes(struct http_conn *c, size_t n, struct err *e)
{
    struct http_holder *victim;
    enum http_verdict v;
    while (
        (v = http_admission_take(&c->server->admission, &c->holder, n, &victim)) == HTTP_GIVES_WAY)
        http_conn_give_way(LIST_ENTRY(victim, struct http_conn, holder), true);
    return has_space(v, c, e);
}

void http_conn_give_way(struct http_conn *c, bool bytes)
{
    struct err e;
    c->server->stats.gave_way++;
    if (!bytes || c->phase != CONN_BODY) {
        http_conn_close(c);
        return;
    }
    err_set(&e, ERR_UNAVAILABLE, "too many large requests are coming in at once: try again later");
    http_conn_refuse(c, 503, &e);
}

static void drop_input(struct http_conn *c)
{
    http_admission_give_back(&c->server->admission, &c->holder, c->in.len);
    buf_wipe(&c->in);
    c->scanned = 0;
}

void http_conn_refuse(struct http_conn *c, int status, const struct err *e)
{
    if (!c->x)
        http_exchange_create(c);
    c->is_last = c->lingers = true;
    http_exchange_drop_body(c->x);
    drop_input(c);
    http_reply_status_err(c->x, status, e);
}

/* Counts the reply's bytes. Replies up to OUT_JOINED_MAX bytes are always sent, so that clients
 * learn the outcome of a request. A larger reply that has no space is replaced by an error. */
static void take_reply(struct http_conn *c)
{
    struct http_admission *a = &c->server->admission;
    struct http_holder *victim;
    enum http_verdict v;
    struct err e;
    size_t n = c->x->reply_body.len;
    if (n > OUT_JOINED_MAX) {
        while ((v = http_admission_take_reply(a, &c->holder, n, &victim)) == HTTP_GIVES_WAY)
            http_conn_give_way(LIST_ENTRY(victim, struct http_conn, holder), true);
        if (has_space(v, c, &e))
            return;
        c->server->stats.replies_refused++;
        http_reply_instead(c->x, &e);
    }
    http_admission_add(a, &c->holder, c->x->reply_body.len);
}

void http_conn_wake(struct http_conn *c)
{
    if (!c->is_running)
        run_soon(c, false);
}

void http_conn_answered(struct http_conn *c)
{
    struct http_exchange *x = c->x;
    http_conn_set_phase(c, x->reply_kind == REPLY_STREAM ? CONN_STREAMING : CONN_SENDING);
    take_reply(c);
    c->body_at = 0;
    c->file_at = 0;
    if (x->reply_kind != REPLY_NONE) {
        http_reply_head(x, !c->is_last, &c->out);
        if (http_reply_has_body(x) && x->reply_body.len <= OUT_JOINED_MAX) {
            buf_add(&c->out, x->reply_body.data, x->reply_body.len);
            c->body_at = x->reply_body.len;
        }
    }
    http_conn_wake(c);
}

/* ---- Steps: true if something was done ---- */

static bool end_connection(struct http_conn *c)
{
    if (c->tls)
        tls_conn_end(c->tls);
    shutdown(c->fd, SHUT_WR);
    if (!c->lingers) {
        http_conn_close(c);
        return false;
    }
    http_conn_set_phase(c, CONN_LINGERING);
    return true;
}

static bool end_reply(struct http_conn *c)
{
    enum reply_kind kind = c->x->reply_kind;
    http_exchange_destroy(c->x);
    c->x = NULL;
    c->has_answered = true;
    if (kind == REPLY_NONE || kind == REPLY_TORN) {
        http_conn_close(c);
        return false;
    }
    if (c->is_last)
        return end_connection(c);
    http_conn_set_phase(c, CONN_HEAD);
    return true;
}

/* The deadline of the first head counts from the accept. */
static void start_first_head(struct http_conn *c)
{
    int64_t began_ms = c->began_ms;
    http_conn_set_phase(c, CONN_HEAD);
    c->began_ms = began_ms;
    c->is_first_head = true;
}

static bool start_tls(struct http_conn *c)
{
    const struct http_server *s = c->server;
    if (!s->tls) {
        start_first_head(c);
        return true;
    }
    if (!tls_hello_has_come(c->fd))
        return false;
    int64_t began_ms = c->began_ms;
    c->tls = tls_conn_create(s->tls, c->fd);
    if (s->has_client_ca)
        c->cert = mem_alloc(sizeof(*c->cert));
    http_conn_set_phase(c, CONN_HANDSHAKE);
    c->began_ms = began_ms;
    return true;
}

static bool continue_handshake(struct http_conn *c)
{
    int rc = tls_conn_handshake(c->tls);
    if (rc == 0)
        start_first_head(c);
    else if (rc == BROKEN)
        http_conn_close(c);
    return rc == 0;
}

/* Looks for a head in c->in. True if one was found or refused, false if more bytes are needed. */
static bool find_head(struct http_conn *c)
{
    struct err e;
    size_t n;
    int status;
    if (http_head_find(c->in.data, c->in.len, &c->scanned, &n, &status, &e) != 0) {
        c->server->stats.malformed++;
        http_conn_refuse(c, status, &e);
        return true;
    }
    if (n == 0)
        return false;
    char *head = mem_dup(c->in.data, n);
    buf_remove_front(&c->in, n);
    c->scanned = 0;
    c->is_first_head = false;
    if (c->in.len == 0)
        buf_wipe(&c->in);
    http_exchange_begin(c, head, n);
    return true;
}

static void add_input(struct http_conn *c, const char *p, size_t n)
{
    struct err e;
    if (http_conn_take_bytes(c, n, &e))
        buf_add(&c->in, p, n);
    else
        http_conn_refuse(c, http_status_of(e.kind), &e);
}

/* As add_input, for bytes of a later request: the current one is answered in any case, so without
 * space the connection ends after that reply. */
static void add_next(struct http_conn *c, const char *p, size_t n)
{
    struct err e;
    if (c->is_last)
        return;
    if (http_conn_take_bytes(c, n, &e))
        buf_add(&c->in, p, n);
    else
        c->is_last = c->lingers = true;
}

/* Processes received bytes. */
static void feed(struct http_conn *c, const char *p, size_t n)
{
    int64_t now_ms = now_of(c->server);
    if (c->phase == CONN_HEAD && c->in.len == 0 && !c->is_first_head)
        c->began_ms = now_ms;
    c->n_moved += n;
    c->moved_at_ms = now_ms;
    if (c->phase == CONN_BODY) {
        size_t used = http_exchange_take_body(c->x, p, n);
        if (used < n)
            add_next(c, p + used, n - used);
    } else if (c->phase == CONN_HEAD) {
        add_input(c, p, n);
    }
}

static bool read_more(struct http_conn *c, size_t *turn)
{
    struct http_server *s = c->server;
    ssize_t n = receive(c, s->scratch, c->phase == CONN_HEAD ? HEAD_PIECE : sizeof(s->scratch));
    if (n == WOULD_BLOCK)
        return false;
    if (n <= 0) {
        http_conn_close(c);
        return false;
    }
    *turn += (size_t)n;
    if (c->phase == CONN_STREAMING) {
        if (!http_stream_may_receive(c->x, (size_t)n))
            http_conn_close(c);
        return c->phase != CONN_CLOSED;
    }
    if (c->phase != CONN_LINGERING) {
        feed(c, s->scratch, (size_t)n);
        explicit_bzero(s->scratch, (size_t)n); /* a request may be a secret */
        return true;
    }
    c->n_moved += (uint64_t)n;
    if (c->n_moved > LINGER_BYTES)
        http_conn_close(c);
    return c->phase != CONN_CLOSED;
}

static bool step(struct http_conn *c, size_t *turn)
{
    switch (c->phase) {
    case CONN_SILENT:
        return start_tls(c);
    case CONN_HANDSHAKE:
        return continue_handshake(c);
    case CONN_HEAD:
        if (c->scanned < c->in.len && find_head(c))
            return true;
        break;
    case CONN_BODY:
        if (!flush(c, turn))
            return false;
        if (c->in.len > 0) {
            struct buf in = c->in; /* taken from c, because a refusal drops c->in */
            c->in = (struct buf){0};
            http_admission_give_back(&c->server->admission, &c->holder, in.len);
            feed(c, in.data, in.len);
            buf_wipe(&in);
            return true;
        }
        break;
    case CONN_STREAMING:
        if (!flush_stream(c, turn))
            return false;
        break;
    case CONN_SENDING:
        return flush(c, turn) && end_reply(c);
    case CONN_LINGERING:
        break;
    case CONN_WAITING:
    case CONN_CLOSED:
        return false;
    }
    return read_more(c, turn);
}

/* A turn answers one request; further pipelined requests have their own turns. */
static bool has_next_request(const struct http_conn *c)
{
    return c->has_answered && c->phase == CONN_HEAD && c->in.len > 0;
}

void http_conn_run(struct http_conn *c)
{
    size_t turn = 0;
    int n = 0;
    const size_t turn_max = turn_bytes(c->server);
    assert(!c->is_running);
    http_turns_remove(&c->server->turns, &c->holder);
    c->is_running = true;
    c->has_answered = false;
    c->server->n_running++;
    while (n < TURN_STEPS && turn < turn_max && !has_next_request(c) && step(c, &turn))
        n++;
    c->is_running = false;
    c->server->n_running--;
    if (c->phase == CONN_CLOSED)
        return;
    set_events(c);
    if ((n == TURN_STEPS || turn >= turn_max || has_next_request(c)) && c->phase != CONN_WAITING)
        run_soon(c, false); /* OpenSSL may have bytes that poll does not see */
}

/* ---- Deadlines ---- */

/* Whether the rate in the last complete window was below the limit; false before the first window
 * is over. */
static bool is_slow(struct http_conn *c, int64_t now_ms, int64_t window_ms, int64_t bytes_a_s)
{
    if (now_ms < c->window_at_ms + window_ms)
        return false;
    bool is_below = (int64_t)(c->n_moved - c->window_moved) < window_ms / 1000 * bytes_a_s;
    c->window_at_ms = now_ms;
    c->window_moved = c->n_moved;
    return is_below;
}

static void time_out(struct http_conn *c, const char *text)
{
    struct err e;
    c->server->stats.too_slow++;
    if (!text || (c->server->tls && !c->tls)) {
        http_conn_close(c);
        return;
    }
    err_set(&e, ERR_TIMEOUT, "%s", text);
    http_conn_refuse(c, 408, &e);
}

static void check_head(struct http_conn *c, int64_t age_ms)
{
    if (c->in.len == 0 && !c->is_first_head) {
        if (age_ms >= c->server->idle_ms)
            http_conn_close(c);
        return;
    }
    if (age_ms >= HANDSHAKE_AND_HEAD_MS)
        time_out(c, c->in.len > 0 ? "the request's head was not complete within 20 s"
                                  : "no request came within 20 s of the connection");
}

/* Whether belayd has not yet read what has come, so that the delay may be its own. Excuses a
 * connection once in a phase: the turn that it gets reads what is there. */
static bool is_owed_a_turn(struct http_conn *c)
{
    int unread = 0;
    if (link_is_in(&c->holder.turn))
        return true;
    if (c->is_excused || ioctl(c->fd, FIONREAD, &unread) != 0 || unread == 0)
        return false;
    c->is_excused = true;
    run_soon(c, true);
    return true;
}

void http_conn_postpone(struct http_conn *c, int64_t ms)
{
    c->began_ms += ms;
    c->moved_at_ms += ms;
    c->window_at_ms += ms;
}

void http_conn_check_deadline(struct http_conn *c, int64_t now_ms)
{
    int64_t age_ms = now_ms - c->began_ms, still_ms = now_ms - c->moved_at_ms;
    switch (c->phase) {
    case CONN_SILENT:
    case CONN_HANDSHAKE:
        if (age_ms >= HANDSHAKE_AND_HEAD_MS && !is_owed_a_turn(c))
            time_out(c, NULL);
        break;
    case CONN_HEAD:
        if (age_ms < HANDSHAKE_AND_HEAD_MS || !is_owed_a_turn(c))
            check_head(c, age_ms);
        break;
    case CONN_BODY:
        if (link_is_in(&c->holder.turn))
            break;
        if (age_ms >= BODY_MS || is_slow(c, now_ms, BODY_WINDOW_MS, BODY_BYTES_A_S))
            time_out(c,
                "the request's body came too slowly: every 10 s have to bring 80 KiB of it, and it "
                "may take 5 minutes in all");
        break;
    case CONN_STREAMING:
        if (has_output(c) && still_ms >= c->server->idle_ms)
            time_out(c, NULL);
        break;
    case CONN_SENDING:
        if (still_ms >= c->server->idle_ms || is_slow(c, now_ms, REPLY_WINDOW_MS, REPLY_BYTES_A_S))
            time_out(c, NULL);
        break;
    case CONN_LINGERING:
        if (age_ms >= LINGER_MS)
            http_conn_close(c);
        break;
    case CONN_WAITING:
    case CONN_CLOSED:
        break;
    }
}
