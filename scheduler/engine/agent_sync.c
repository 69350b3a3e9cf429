/* SPDX-License-Identifier: Apache-2.0
 *
 * Sync with agents (see agent_sync.h). Both directions carry states: a status is compared with the
 * model and the differences become facts (agent_sync_status.c); the desired document is computed
 * from the model whenever it is requested (agent_sync_desired.c).
 *
 * Invariants:
 *  1. The facts of a status are committed before the status is answered.
 *  2. A node's revision grows with every change of what is desired of it, over restarts of belayd
 *     too.
 */
#include <string.h>
#include "scheduler/engine/agent_sync_private.h"

#include "base/mem.h"
#include <stdlib.h>

/* One status on its way through the tick. */
struct incoming {
    struct agent_sync *s;
    int64_t node, have_rev, wait_ms;
    agent_sync_reply_fn reply;
    void *ctx;
};

/* ---- state of each node ---- */

static void on_wait_over(struct timer *timer, void *ctx);

static struct node_sync *node_sync_of(struct agent_sync *s, int64_t node)
{
    struct node_sync *x = map_get(&s->by_node, node);
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

static void node_sync_free(struct node_sync *x)
{
    timer_stop(x->owner->o.timers, &x->timer);
    for (struct link *n; (n = list_pop(&x->known));)
        free(LIST_ENTRY(n, struct known_attempt, in_sync));
    free(x);
}

struct known_attempt *agent_sync_find_known(struct node_sync *x, int64_t job, int64_t attempt)
{
    LIST_FOREACH (&x->known, n) {
        struct known_attempt *k = LIST_ENTRY(n, struct known_attempt, in_sync);
        if (k->job == job && k->attempt == attempt)
            return k;
    }
    struct known_attempt *k = mem_alloc(sizeof(*k));
    k->job = job;
    k->attempt = attempt;
    list_push_back(&x->known, &k->in_sync);
    return k;
}

/* Drops entries that neither the agent nor the model has. */
static void prune_known(struct node_sync *x, const struct model *m)
{
    LIST_FOREACH (&x->known, n) {
        struct known_attempt *k = LIST_ENTRY(n, struct known_attempt, in_sync);
        struct job *job = model_job(m, k->job);
        bool live = job_attempt_on(job, k->attempt, x->node) != NULL;
        if (!live && k->status_no != x->status_no) {
            link_remove(&k->in_sync);
            free(k);
        }
    }
}

struct agent_sync *agent_sync_create(const struct agent_sync_options *o)
{
    struct agent_sync *s = mem_alloc(sizeof(*s));
    s->o = *o;
    return s;
}

void agent_sync_set_channels(struct agent_sync *s, agent_sync_channels_fn fn, void *ctx)
{
    s->o.channels = fn;
    s->o.channels_ctx = ctx;
}

void agent_sync_set_times(struct agent_sync *s, int64_t lease_ms, int64_t sync_ms,
    int64_t kill_wait_ms, int64_t store_wait_ms)
{
    s->o.lease_ms = lease_ms;
    s->o.sync_ms = sync_ms;
    s->o.kill_wait_ms = kill_wait_ms;
    s->o.store_wait_ms = store_wait_ms;
}

void agent_sync_destroy(struct agent_sync *s)
{
    if (!s)
        return;
    size_t pos = 0;
    for (struct node_sync *x; (x = map_next(&s->by_node, &pos, NULL));)
        node_sync_free(x);
    map_deinit(&s->by_node);
    free(s);
}

/* ---- answering ---- */

static void answer(struct agent_sync *s, struct node_sync *x, agent_sync_reply_fn reply, void *ctx)
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
    agent_sync_build_desired(s, x, node, &d);
    if (s->o.channels)
        s->o.channels(s->o.channels_ctx, x->node, &d);
    d.task_loads_taken = x->task_loads;
    d.gpu_loads_taken = x->gpu_loads;
    reply(ctx, NULL, &d);
    wire_desired_deinit(&d);
}

/* True if the last answer omitted something and the agent has since reported everything that it
 * got. */
static bool may_send_omitted(const struct node_sync *x)
{
    LIST_FOREACH (&x->known, n) {
        const struct known_attempt *k = LIST_ENTRY(n, struct known_attempt, in_sync);
        if (k->sent && !k->reported)
            return false;
    }
    return x->left_out;
}

/* Answers the waiting status: with e, or (e NULL) with the current desired state. The latter only
 * when the whole model is on disk: in an effect or a reply of the tick. */
static void release(struct node_sync *x, const struct err *e)
{
    agent_sync_reply_fn reply = x->reply;
    if (!reply)
        return;
    x->reply = NULL;
    timer_stop(x->owner->o.timers, &x->timer);
    if (e)
        reply(x->ctx, e, NULL);
    else
        answer(x->owner, x, reply, x->ctx);
}

static void drop_if_gone(struct agent_sync *s, struct node_sync *x)
{
    if (x->reply || model_node(tick_model(s->o.tick), x->node))
        return;
    map_remove(&s->by_node, x->node);
    node_sync_free(x);
}

void agent_sync_touch(struct agent_sync *s, int64_t node)
{
    struct node_sync *x = node_sync_of(s, node);
    x->rev++;
    release(x, NULL);
    drop_if_gone(s, x);
}

static void touch_all(void *ctx, const struct err *e, int64_t id)
{
    struct agent_sync *s = ctx;
    const struct node_sync *x;
    (void)e;
    (void)id;
    struct buf nodes = {0}; /* a node may be dropped while it is touched */
    size_t pos = 0;
    while ((x = map_next(&s->by_node, &pos, NULL)))
        buf_add(&nodes, &x->node, sizeof(x->node));
    for (size_t i = 0; i < nodes.len; i += sizeof(int64_t)) {
        int64_t node;
        memcpy(&node, nodes.data + i, sizeof(node));
        agent_sync_touch(s, node);
    }
    buf_deinit(&nodes);
}

void agent_sync_touch_all(struct agent_sync *s)
{
    tick_when_durable(s->o.tick, touch_all, s);
}

/* A timer may fire while a commit is in progress: the release is queued behind it. */
struct overdue {
    struct agent_sync *s;
    int64_t node;
};

static void on_overdue(void *ctx, const struct err *e, int64_t id)
{
    struct overdue *o = ctx;
    struct node_sync *x = map_get(&o->s->by_node, o->node);
    (void)id;
    if (x)
        release(x, e);
    free(o);
}

static void on_wait_over(struct timer *timer, void *ctx)
{
    struct node_sync *x = ctx;
    struct overdue *o = mem_alloc(sizeof(*o));
    (void)timer;
    *o = (struct overdue){x->owner, x->node};
    tick_when_durable(x->owner->o.tick, on_overdue, o);
}

void agent_sync_release_all(struct agent_sync *s)
{
    struct err e;
    size_t pos = 0;
    err_set(&e, ERR_UNAVAILABLE, "belayd is stopping");
    for (struct node_sync *x; (x = map_next(&s->by_node, &pos, NULL));)
        release(x, &e);
}
/* After the commit of a status's facts: answers it or lets it wait. */
static void on_committed(void *ctx, const struct err *e, int64_t id)
{
    struct incoming *in = ctx;
    struct agent_sync *s = in->s;
    (void)id;
    if (e) {
        in->reply(in->ctx, e, NULL);
        free(in);
        return;
    }
    struct node_sync *x = node_sync_of(s, in->node);
    prune_known(x, tick_model(s->o.tick));
    if (may_send_omitted(x))
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

void agent_sync_status(struct agent_sync *s, int64_t node_id, const struct wire_status *st,
    agent_sync_reply_fn reply, void *ctx)
{
    const struct node *node = model_node(tick_model(s->o.tick), node_id);
    struct node_sync *x = node_sync_of(s, node_id);
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
        agent_sync_post_status(s, x, node, st);
    }
    struct event ev = {.type = EV_HEARTBEAT, .heartbeat = {.node = node_id}};
    tick_post(s->o.tick, &ev, on_committed, in);
}
