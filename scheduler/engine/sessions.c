/* SPDX-License-Identifier: Apache-2.0
 *
 * Agent sessions (see sessions.h). Both directions carry states: a status is compared with the
 * model and the differences become facts (sessions_status.c); the desired document is computed from
 * the model whenever it is requested (sessions_desired.c).
 *
 * Invariants:
 *  1. The facts of a status are committed before the status is answered.
 *  2. A node's revision grows with every change of what is desired of it, over restarts of belayd
 *     too.
 */
#include <string.h>
#include "scheduler/engine/sessions_private.h"

#include "base/mem.h"
#include <stdlib.h>

/* One status on its way through the tick. */
struct incoming {
    struct sessions *s;
    int64_t node, have_rev, wait_ms;
    sessions_reply_fn reply;
    void *ctx;
};

/* ---- sessions ---- */

static void on_wait_over(struct timer *timer, void *ctx);

static struct session *session_of(struct sessions *s, int64_t node)
{
    struct session *x = map_get(&s->by_node, node);
    if (x)
        return x;
    x = mem_alloc(sizeof(*x));
    x->node = node;
    x->owner = s;
    x->rev = (s->o.boots << REV_BOOT_SHIFT) + 1;
    timer_init(&x->timer, on_wait_over, x);
    map_put(&s->by_node, node, x);
    return x;
}

static void session_free(struct session *x)
{
    timer_stop(x->owner->o.timers, &x->timer);
    for (struct link *n; (n = list_pop(&x->seen));)
        free(LIST_ENTRY(n, struct seen, in_session));
    free(x);
}

struct seen *sessions_seen(struct session *x, int64_t job, int64_t attempt)
{
    LIST_FOREACH (&x->seen, n) {
        struct seen *k = LIST_ENTRY(n, struct seen, in_session);
        if (k->job == job && k->attempt == attempt)
            return k;
    }
    struct seen *k = mem_alloc(sizeof(*k));
    k->job = job;
    k->attempt = attempt;
    list_push_back(&x->seen, &k->in_session);
    return k;
}

/* Drops entries that neither the agent nor the model has. */
static void prune_seen(struct session *x, const struct model *m)
{
    LIST_FOREACH (&x->seen, n) {
        struct seen *k = LIST_ENTRY(n, struct seen, in_session);
        struct job *job = model_job(m, k->job);
        bool live = job_attempt_on(job, k->attempt, x->node) != NULL;
        if (!live && k->status_no != x->status_no) {
            link_remove(&k->in_session);
            free(k);
        }
    }
}

struct sessions *sessions_create(const struct sessions_options *o)
{
    struct sessions *s = mem_alloc(sizeof(*s));
    s->o = *o;
    return s;
}

void sessions_set_channels(struct sessions *s, sessions_channels_fn fn, void *ctx)
{
    s->o.channels = fn;
    s->o.channels_ctx = ctx;
}

void sessions_destroy(struct sessions *s)
{
    if (!s)
        return;
    size_t pos = 0;
    for (struct session *x; (x = map_next(&s->by_node, &pos, NULL));)
        session_free(x);
    map_deinit(&s->by_node);
    free(s);
}

/* ---- answering ---- */

static void answer(struct sessions *s, struct session *x, sessions_reply_fn reply, void *ctx)
{
    const struct node *node = model_node(tick_model(s->o.tick), x->node);
    struct wire_desired d = {.rev = x->rev, .sync_ms = s->o.sync_ms, .lease_ms = s->o.lease_ms};
    if (!node) {
        struct err e;
        err_set(&e, ERR_NOT_FOUND,
            "node %lld no longer belongs to this cluster: its instance has ended or it was deleted",
            (long long)x->node);
        reply(ctx, &e, NULL);
        return;
    }
    sessions_desire(s, x, node, &d);
    if (s->o.channels)
        s->o.channels(s->o.channels_ctx, x->node, &d);
    d.task_loads_taken = x->task_loads;
    d.gpu_loads_taken = x->gpu_loads;
    reply(ctx, NULL, &d);
    wire_desired_deinit(&d);
}

/* True if the last answer omitted something and the agent has since reported everything that it
 * got. */
static bool has_room_again(const struct session *x)
{
    LIST_FOREACH (&x->seen, n) {
        const struct seen *k = LIST_ENTRY(n, struct seen, in_session);
        if (k->sent && !k->reported)
            return false;
    }
    return x->left_out;
}

/* Answers the waiting status: with e, or (e NULL) with the current desired state. The latter only
 * when the whole model is on disk: in an effect or a reply of the tick. */
static void release(struct session *x, const struct err *e)
{
    sessions_reply_fn reply = x->reply;
    if (!reply)
        return;
    x->reply = NULL;
    timer_stop(x->owner->o.timers, &x->timer);
    if (e)
        reply(x->ctx, e, NULL);
    else
        answer(x->owner, x, reply, x->ctx);
}

static void drop_if_gone(struct sessions *s, struct session *x)
{
    if (x->reply || model_node(tick_model(s->o.tick), x->node))
        return;
    map_remove(&s->by_node, x->node);
    session_free(x);
}

void sessions_touch(struct sessions *s, int64_t node)
{
    struct session *x = session_of(s, node);
    x->rev++;
    release(x, NULL);
    drop_if_gone(s, x);
}

static void touch_all(void *ctx, const struct err *e, int64_t id)
{
    struct sessions *s = ctx;
    const struct session *x;
    (void)e;
    (void)id;
    struct buf nodes = {0}; /* a session may be freed while it is touched */
    size_t pos = 0;
    while ((x = map_next(&s->by_node, &pos, NULL)))
        buf_add(&nodes, &x->node, sizeof(x->node));
    for (size_t i = 0; i < nodes.len; i += sizeof(int64_t)) {
        int64_t node;
        memcpy(&node, nodes.data + i, sizeof(node));
        sessions_touch(s, node);
    }
    buf_deinit(&nodes);
}

void sessions_touch_all(struct sessions *s)
{
    tick_when_durable(s->o.tick, touch_all, s);
}

/* A timer may fire while a commit is in progress: the release is queued behind it. */
struct overdue {
    struct sessions *s;
    int64_t node;
};

static void on_overdue(void *ctx, const struct err *e, int64_t id)
{
    struct overdue *o = ctx;
    struct session *x = map_get(&o->s->by_node, o->node);
    (void)id;
    if (x)
        release(x, e);
    free(o);
}

static void on_wait_over(struct timer *timer, void *ctx)
{
    struct session *x = ctx;
    struct overdue *o = mem_alloc(sizeof(*o));
    (void)timer;
    *o = (struct overdue){x->owner, x->node};
    tick_when_durable(x->owner->o.tick, on_overdue, o);
}

void sessions_release_all(struct sessions *s)
{
    struct err e;
    size_t pos = 0;
    err_set(&e, ERR_UNAVAILABLE, "belayd is stopping");
    for (struct session *x; (x = map_next(&s->by_node, &pos, NULL));)
        release(x, &e);
}
/* After the commit of a status's facts: answers it or lets it wait. */
static void on_committed(void *ctx, const struct err *e, int64_t id)
{
    struct incoming *in = ctx;
    struct sessions *s = in->s;
    (void)id;
    if (e) {
        in->reply(in->ctx, e, NULL);
        free(in);
        return;
    }
    struct session *x = session_of(s, in->node);
    prune_seen(x, tick_model(s->o.tick));
    if (has_room_again(x))
        x->rev++;
    if (in->wait_ms <= 0 || in->have_rev != x->rev ||
        !model_node(tick_model(s->o.tick), in->node)) {
        answer(s, x, in->reply, in->ctx);
        drop_if_gone(s, x);
    } else {
        release(x, NULL);
        x->reply = in->reply;
        x->ctx = in->ctx;
        timer_start(
            s->o.timers, &x->timer, in->wait_ms < s->o.sync_ms ? in->wait_ms : s->o.sync_ms);
    }
    free(in);
}

void sessions_status(struct sessions *s, int64_t node_id, const struct wire_status *st,
    sessions_reply_fn reply, void *ctx)
{
    const struct node *node = model_node(tick_model(s->o.tick), node_id);
    struct session *x = session_of(s, node_id);
    struct incoming *in = mem_alloc(sizeof(*in));
    *in = (struct incoming){.s = s,
        .node = node_id,
        .have_rev = st->have_rev,
        .wait_ms = st->wait_ms,
        .reply = reply,
        .ctx = ctx};
    bool newer =
        st->incarnation > x->incarnation || (st->incarnation == x->incarnation && st->seq > x->seq);
    if (node && newer) {
        if (st->incarnation != x->incarnation)
            x->task_loads = x->gpu_loads = 0;
        x->incarnation = st->incarnation;
        x->seq = st->seq;
        x->status_no++;
        x->n_kept = st->n_kept;
        for (size_t i = 0; i < st->n_kept; i++)
            x->kept[i] = st->kept[i].job;
        sessions_post_status(s, x, node, st);
    }
    struct event ev = {.type = EV_HEARTBEAT, .heartbeat = {.node = node_id}};
    tick_post(s->o.tick, &ev, on_committed, in);
}
