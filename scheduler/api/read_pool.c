/* SPDX-License-Identifier: Apache-2.0
 *
 * Long reads of the database, for example a year of the ledger, on a thread with its own
 * connection, so that the loop keeps answering. READERS run at a time, in the order of the
 * requests, so that an audit does not delay queries of costs. A user who is no administrator has
 * one read at a time; with two long ones, all other users would wait. A request whose client has
 * gone, or whose time limit is over, is dropped or cancelled.
 *
 * Invariants.
 *  1. The thread uses its struct pooled_read, the argument `of`, and the slot's reader. While it
 *     runs, the loop uses only x, which the thread does not use, and cancel, which is atomic.
 *  2. A pooled_read is freed once, by the loop: when its thread has ended, or while it is queued.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdatomic.h>
#include <stdlib.h>

#define READERS 2
#define READ_POOL_MAX 32
#define READ_POOL_PER_USER_MAX 8
#define CLIENT_CHECK_MS 200 /* interval of checks whether the client is still connected */

/* A connection, and the request that it serves. */
struct slot {
    struct db_reader *reader; /* used by the thread; NULL until it is opened */
    struct pooled_read *now;
};

struct pooled_read {
    struct read_pool *in;
    struct slot *slot;       /* NULL while in the queue */
    struct http_exchange *x; /* NULL when answered, or when the client has gone */
    struct link in_queue;
    char user[CORE_NAME_MAX];
    bool may_have_all; /* its user may use all readers at once */
    int64_t wait_ms;
    read_pool_fn fn;
    void *of;
    read_pool_drop_fn drop;
    atomic_int cancel;
    char *text;
    int rc;
    struct err e;
};

struct read_pool {
    bool is_over; /* destroyed, but threads are still running */
    uv_loop_t *loop;
    struct timers *timers;
    char *path;
    struct slot slots[READERS];
    struct list queue;
    int n_queued, n_running;
    struct timer client_check;
};

/* ---- on the thread ---- */

static int read_it(struct pooled_read *s, json_t **ret_reply)
{
    struct db_reader **r = &s->slot->reader;
    int rc = *r ? 0 : db_reader_open(s->in->path, r, &s->e);
    if (rc != 0)
        return rc;
    db_reader_cancel_by(*r, &s->cancel);
    rc = db_reader_begin(*r, &s->e);
    if (rc == 0)
        rc = s->fn(*r, s->of, ret_reply, &s->e);
    db_reader_cancel_by(*r, NULL);
    db_reader_end(*r);
    return rc;
}

static void on_thread(void *ctx)
{
    struct pooled_read *s = ctx;
    json_t *reply = NULL;
    s->rc = read_it(s, &reply);
    if (s->rc == 0)
        s->text = json_dump_text(reply);
    json_decref(reply);
}

/* ---- on the loop ---- */

static void begin_next(struct read_pool *in);

static void free_read(struct pooled_read *s)
{
    s->drop(s->of);
    free(s->text);
    free(s);
}

static void free_read_pool(struct read_pool *in)
{
    for (int i = 0; i < READERS; i++)
        db_reader_close(in->slots[i].reader);
    free(in->path);
    free(in);
}

static void on_thread_ended(void *ctx)
{
    struct pooled_read *s = ctx;
    struct read_pool *in = s->in;
    s->slot->now = NULL;
    in->n_running--;
    if (s->x && s->rc == 0)
        http_reply_text(s->x, 200, "application/json", s->text);
    else if (s->x)
        http_reply_err(s->x, &s->e);
    free_read(s);
    if (!in->is_over)
        begin_next(in);
    else if (in->n_running == 0)
        free_read_pool(in);
}

/* True if the read leaves a reader to other users, or need not. */
static bool may_begin(const struct read_pool *in, const struct pooled_read *s)
{
    int n = 0;
    for (int i = 0; i < READERS; i++)
        n += in->slots[i].now && str_eq(in->slots[i].now->user, s->user);
    return s->may_have_all || n < READERS - 1;
}

static struct pooled_read *take_next(struct read_pool *in)
{
    LIST_FOREACH (&in->queue, l) {
        struct pooled_read *s = LIST_ENTRY(l, struct pooled_read, in_queue);
        if (!may_begin(in, s))
            continue;
        link_remove(l);
        in->n_queued--;
        return s;
    }
    return NULL;
}

static void begin_next(struct read_pool *in)
{
    struct pooled_read *s;
    for (int i = 0; i < READERS; i++) {
        struct slot *slot = &in->slots[i];
        if (slot->now || !(s = take_next(in)))
            continue;
        in->n_running++;
        s->slot = slot;
        slot->now = s;
        uv_run_work(in->loop, on_thread, on_thread_ended, s);
    }
    if (in->n_running == 0)
        timer_stop(in->timers, &in->client_check);
}

/* Abandons a request without a client. */
static void give_up(struct pooled_read *s)
{
    struct read_pool *in = s->in;
    s->x = NULL;
    if (s->slot) {
        atomic_store(&s->cancel, 1);
        return;
    }
    link_remove(&s->in_queue);
    in->n_queued--;
    free_read(s);
}

static void on_timeout(void *ctx, struct http_exchange *x)
{
    struct pooled_read *s = ctx;
    api_reply_failure(x, ERR_TIMEOUT,
        "this was not read within %lld s, including earlier requests in the queue: choose a "
        "shorter period, or request less at once",
        (long long)(s->wait_ms / 1000));
    give_up(s);
}

static void on_gone(void *ctx, struct http_exchange *x)
{
    (void)x;
    give_up(ctx);
}

/* Gives up the read if its client has closed the connection. */
static void cancel_if_client_left(struct pooled_read *s)
{
    struct err e;
    if (!s->x || !http_exchange_peer_left(s->x))
        return;
    err_set(&e, ERR_CANCELLED, "the client has gone");
    http_reply_err(s->x, &e);
    give_up(s);
}

static void on_client_check(struct timer *t, void *ctx)
{
    struct read_pool *in = ctx;
    timer_start(in->timers, t, CLIENT_CHECK_MS);
    for (int i = 0; i < READERS; i++)
        if (in->slots[i].now)
            cancel_if_client_left(in->slots[i].now);
    LIST_FOREACH (&in->queue, l)
        cancel_if_client_left(LIST_ENTRY(l, struct pooled_read, in_queue));
}

static int waiting_of(const struct read_pool *in, const char *user)
{
    int n = 0;
    LIST_FOREACH (&in->queue, l)
        n += str_eq(LIST_ENTRY(l, struct pooled_read, in_queue)->user, user);
    return n;
}

void read_pool_run(const struct api *a, struct http_exchange *x, const struct caller *caller,
    int64_t wait_ms, read_pool_fn fn, void *of, read_pool_drop_fn drop)
{
    struct read_pool *in = a->read_pool;
    const char *user = caller ? caller->user : "";
    if (in->n_queued >= READ_POOL_MAX) {
        api_reply_failure(x, ERR_UNAVAILABLE,
            "%d such queries are already waiting for the database: try again later", READ_POOL_MAX);
        drop(of);
        return;
    }
    if (waiting_of(in, user) >= READ_POOL_PER_USER_MAX) {
        api_reply_failure(x, ERR_THROTTLED,
            "%d such queries of %s are already waiting for the database: try again when they have "
            "been answered",
            READ_POOL_PER_USER_MAX, user);
        drop(of);
        return;
    }
    struct pooled_read *s = mem_alloc(sizeof(*s));
    *s = (struct pooled_read){
        .in = in, .x = x, .wait_ms = wait_ms, .fn = fn, .of = of, .drop = drop};
    STR_COPY(s->user, user);
    s->may_have_all = !caller || caller->admin;
    http_exchange_wait(x, wait_ms, on_timeout, on_gone, s);
    list_push_back(&in->queue, &s->in_queue);
    in->n_queued++;
    timer_start(in->timers, &in->client_check, CLIENT_CHECK_MS);
    begin_next(in);
}

struct read_pool *read_pool_create(uv_loop_t *loop, struct timers *timers, const char *path)
{
    struct read_pool *in = mem_alloc(sizeof(*in));
    *in = (struct read_pool){.loop = loop, .timers = timers, .path = mem_strdup(path)};
    timer_init(&in->client_check, on_client_check, in);
    return in;
}

/* Call after the servers, and with them all exchanges, have ended. */
void read_pool_destroy(struct read_pool *in)
{
    if (!in)
        return;
    timer_stop(in->timers, &in->client_check);
    for (struct link *l; (l = list_pop(&in->queue));)
        free_read(LIST_ENTRY(l, struct pooled_read, in_queue));
    in->is_over = true;
    for (int i = 0; i < READERS; i++)
        if (in->slots[i].now) {
            in->slots[i].now->x = NULL;
            atomic_store(&in->slots[i].now->cancel, 1);
        }
    if (in->n_running == 0)
        free_read_pool(in);
}
