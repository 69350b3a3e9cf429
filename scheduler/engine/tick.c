/* SPDX-License-Identifier: Apache-2.0
 *
 * The tick (see tick.h). Invariants:
 *  1. The model changes only inside run(), and run() starts only when no commit is in progress.
 *  2. A reply or an effect happens only after the commit of the tick that caused it.
 *  3. A tick that changed nothing needs no commit: its replies leave at once (their contents are
 *     already on disk).
 *
 * It deliberately does not know who posts and what the effects are.
 */
#include "scheduler/engine/tick.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECISIONS_MAX 1000000 /* limit in one tick: a plan that never ends is a bug, not load */
#define FULL_RETRY_MIN_MS 1000
#define FULL_RETRY_MAX_MS 5000
/* a timer that fires this late means that the process or its machine was stalled */
#define STALLED_MS 1000

/* One post: an event (with its own copies of the data that it points to) or work. */
struct post {
    struct link in_list;
    struct event ev;
    union {
        struct job_row job;
        struct node_row node;
        struct pool_row pool;
        struct offer_row offer;
        struct drill_row drill;
        struct {
            struct cron_row row;
            struct job_row job;
        } cron;
    } copy;
    struct job_texts texts; /* its members are owned here */
    char *job_json;         /* the job of a cron entry */
    tick_work_fn work;
    tick_reply_fn reply;
    void *ctx;
    int64_t id;
    struct err e;
    struct tick_call *call; /* may be NULL */
};

struct tick {
    struct tick_options o;
    struct list inbox;
    size_t n_inbox;
    struct list answered; /* applied; their replies wait for the commit */
    struct db_batch batch;
    bool committing, running, full;
    bool tick_missed; /* a tick was due while a commit was in progress */
    int64_t full_retry_ms;
    struct mono commit_started;
    struct mono wake_due; /* when wake is due, while it runs */
    struct stamp now;     /* one moment for the whole tick */
    struct timer timer;   /* fires immediately, in the next iteration of the loop */
    struct timer wake;    /* fires at the time of plan_wake, when time alone changes something */
    struct timer retry;   /* retries a commit that found no space */
    struct tick_stats stats;
    struct tick_call *call; /* for which posts are made now; may be NULL */
};

static void run(struct tick *t);
static void renew_leases(struct tick *t);
static void start_commit(struct tick *t);

void tick_call_release(struct tick_call *call)
{
    if (call && --call->refs == 0)
        free(call);
}

static void post_free(struct post *p)
{
    tick_call_release(p->call);
    job_texts_deinit(&p->texts);
    free(p->job_json);
    free(p);
}

static void abandon_list(struct list *l)
{
    for (struct link *n; (n = list_pop(l));) {
        struct post *p = LIST_ENTRY(n, struct post, in_list);
        if (p->reply) {
            err_set(&p->e, ERR_UNAVAILABLE,
                "belayd is stopping: whether the request took effect is unknown; check before you "
                "repeat it");
            p->reply(p->ctx, &p->e, 0);
        }
        post_free(p);
    }
}

/* ---- posting ---- */

static void on_timer(struct timer *timer, void *ctx)
{
    (void)timer;
    run(ctx);
}

/* After a stall, messages of agents are still unread, so the leases of all nodes are renewed. */
static void on_wake(struct timer *timer, void *ctx)
{
    struct tick *t = ctx;
    int64_t late_ms = clock_mono(t->o.timers->clock).ms - t->wake_due.ms;
    (void)timer;
    if (late_ms > STALLED_MS) {
        log_warn("event loop stalled; renewing all node leases", log_i("late_ms", late_ms));
        renew_leases(t);
    }
    run(t);
}

static void on_retry(struct timer *timer, void *ctx)
{
    (void)timer;
    start_commit(ctx);
}

struct tick *tick_create(const struct tick_options *o)
{
    struct tick *t = mem_alloc(sizeof(*t));
    t->o = *o;
    timer_init(&t->timer, on_timer, t);
    timer_init(&t->wake, on_wake, t);
    timer_init(&t->retry, on_retry, t);
    t->stats.commit_seconds.bounds = t->stats.tick_seconds.bounds = histogram_requests;
    timer_start(o->timers, &t->timer, 0); /* the first plan needs no post */
    return t;
}

void tick_destroy(struct tick *t)
{
    if (!t)
        return;
    timer_stop(t->o.timers, &t->timer);
    timer_stop(t->o.timers, &t->wake);
    timer_stop(t->o.timers, &t->retry);
    abandon_list(&t->answered);
    abandon_list(&t->inbox);
    db_batch_deinit(&t->batch);
    free(t);
}

static void copy_cron(struct post *p)
{
    struct event *ev = &p->ev;
    p->copy.cron.row = *ev->cron_put.row;
    ev->cron_put.row = &p->copy.cron.row;
    if (!ev->cron_put.job)
        return;
    p->copy.cron.job = *ev->cron_put.job;
    p->texts = job_texts_copy(ev->cron_put.texts);
    p->job_json = mem_strdup(ev->cron_put.job_json);
    ev->cron_put.job = &p->copy.cron.job;
    ev->cron_put.texts = &p->texts;
    ev->cron_put.job_json = p->job_json;
}

/* Events point to rows owned by the poster; the inbox outlives them. */
static void copy_pointees(struct post *p)
{
    struct event *ev = &p->ev;
    if (ev->type == EV_SUBMIT) {
        p->copy.job = *ev->submit.job;
        p->texts = job_texts_copy(ev->submit.texts);
        ev->submit.job = &p->copy.job;
        ev->submit.texts = &p->texts;
    } else if (ev->type == EV_CRON_PUT) {
        copy_cron(p);
    } else if (ev->type == EV_JOIN) {
        p->copy.node = *ev->join.node;
        ev->join.node = &p->copy.node;
    } else if (ev->type == EV_POOL) {
        p->copy.pool = *ev->pool;
        ev->pool = &p->copy.pool;
    } else if (ev->type == EV_OFFER) {
        p->copy.offer = *ev->offer;
        ev->offer = &p->copy.offer;
    } else if (ev->type == EV_DRILL_COMPARED) {
        p->copy.drill = *ev->compared.drill;
        ev->compared.drill = &p->copy.drill;
    }
}

static int no_work(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    (void)ctx, (void)t, (void)ret_id, (void)e;
    return 0;
}

static void enqueue(struct tick *t, struct post *p)
{
    if (t->call && p->work != no_work) {
        p->call = t->call;
        p->call->refs++;
    }
    list_push_back(&t->inbox, &p->in_list);
    t->n_inbox++;
    if (t->stats.inbox_max < (int64_t)t->n_inbox)
        t->stats.inbox_max = (int64_t)t->n_inbox;
    if (!t->running && !timer_is_running(&t->timer))
        timer_start(t->o.timers, &t->timer, 0);
}

void tick_post(struct tick *t, const struct event *ev, tick_reply_fn reply, void *ctx)
{
    struct post *p = mem_alloc(sizeof(*p));
    p->ev = *ev;
    p->reply = reply;
    p->ctx = ctx;
    copy_pointees(p);
    enqueue(t, p);
}

void tick_post_work(struct tick *t, tick_work_fn work, tick_reply_fn reply, void *ctx)
{
    struct post *p = mem_alloc(sizeof(*p));
    p->work = work;
    p->reply = reply;
    p->ctx = ctx;
    enqueue(t, p);
}

void tick_when_durable(struct tick *t, tick_reply_fn fn, void *ctx)
{
    tick_post_work(t, no_work, fn, ctx);
}

/* ---- one tick ---- */

int tick_apply(struct tick *t, struct event *ev, int64_t *ret_id, struct err *e)
{
    struct outcome out = {0};
    assert(t->running && !t->committing);
    ev->now = t->now;
    t->stats.events++;
    int rc = core_apply(t->o.model, ev, &out, e);
    if (rc == 0 && ret_id)
        *ret_id = out.id;
    return rc;
}

void tick_put_token(struct tick *t, const struct token_row *token)
{
    assert(t->running && !t->committing);
    struct db_batch *b = &t->batch;
    b->tokens = mem_resize(b->tokens, b->n_tokens + 1, sizeof(*b->tokens));
    b->tokens[b->n_tokens++] = *token;
}

void tick_put_secret(struct tick *t, struct secret_row *row)
{
    assert(t->running && !t->committing);
    struct db_batch *b = &t->batch;
    b->secrets = mem_resize(b->secrets, b->n_secrets + 1, sizeof(*b->secrets));
    b->secrets[b->n_secrets++] = *row;
    *row = (struct secret_row){0};
}

const struct secret_row *tick_secrets(const struct tick *t, size_t *ret_n)
{
    *ret_n = t->batch.n_secrets;
    return t->batch.secrets;
}

/* At most one caller puts loads in a tick. */
void tick_put_loads(struct tick *t, struct loads_batch *b)
{
    assert(t->running && !t->committing && t->batch.loads.n_tasks + t->batch.loads.n_gpus == 0);
    t->batch.loads = *b;
    *b = (struct loads_batch){0};
}

void tick_put_prune(struct tick *t, const struct prune *prune)
{
    assert(t->running && !t->committing);
    t->batch.prune = *prune;
}

const struct token_row *tick_tokens(const struct tick *t, size_t *ret_n)
{
    *ret_n = t->batch.n_tokens;
    return t->batch.tokens;
}

/* ---- the audit log ---- */

void tick_begin_call(struct tick *t, struct tick_call *call)
{
    t->call = call;
}

void tick_end_call(struct tick *t)
{
    t->call = NULL;
}

static void put_audit(struct tick *t, struct tick_call *call, int64_t id, const char *result)
{
    struct audit_row *row = &call->row;
    struct db_batch *b = &t->batch;
    assert(t->running && !t->committing);
    row->at = t->now.wall;
    STR_COPY(row->result, result);
    if (!row->object[0] && id > 0)
        snprintf(row->object, sizeof(row->object), "%lld", (long long)id);
    if (!call->may_record(call->ctx, row))
        return;
    b->audit = mem_resize(b->audit, b->n_audit + 1, sizeof(*b->audit));
    b->audit[b->n_audit++] = *row;
}

/* Of a post that was applied, or refused by the model. */
static void record_post(struct tick *t, const struct post *p)
{
    if (!p->call || p->call->is_recorded)
        return;
    p->call->is_recorded = true;
    put_audit(t, p->call, p->id, p->e.kind ? err_kind_name(p->e.kind) : "ok");
}

static int record_call(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct tick_call *call = ctx;
    (void)ret_id, (void)e;
    put_audit(t, call, 0, call->row.result);
    return 0;
}

static void on_call_recorded(void *ctx, const struct err *e, int64_t id)
{
    (void)e, (void)id;
    tick_call_release(ctx);
}

void tick_record_call(struct tick *t, struct tick_call *call, const char *result)
{
    if (call->is_recorded)
        return;
    call->is_recorded = true;
    call->refs++;
    STR_COPY(call->row.result, result);
    tick_post_work(t, record_call, on_call_recorded, call);
}

/* Refuses all posts while the disk is full. Agents repeat theirs, users get the error. */
static void refuse_inbox(struct tick *t)
{
    for (struct link *n; (n = list_pop(&t->inbox));) {
        struct post *p = LIST_ENTRY(n, struct post, in_list);
        t->n_inbox--;
        if (p->reply) {
            err_set(&p->e, ERR_NO_SPACE,
                "belayd cannot store anything: the disk that holds its state is full; free some "
                "space there and try again (running jobs continue)");
            p->reply(p->ctx, &p->e, 0);
        }
        post_free(p);
    }
}

static void drain(struct tick *t)
{
    for (struct link *n; (n = list_pop(&t->inbox));) {
        struct post *p = LIST_ENTRY(n, struct post, in_list);
        t->n_inbox--;
        if (p->work)
            p->work(p->ctx, t, &p->id, &p->e);
        else
            tick_apply(t, &p->ev, &p->id, &p->e);
        record_post(t, p);
        list_push_back(&t->answered, &p->in_list);
    }
}

static void decide(struct tick *t)
{
    struct event ev;
    int n = 0;
    while (plan_next(t->o.planner, t->o.model, t->now, &ev)) {
        struct err e = {0};
        if (tick_apply(t, &ev, NULL, &e) != 0)
            log_error("a decision was refused by the model",
                log_s("event", event_type_names[ev.type]),
                log_s("decider", plan_decider(t->o.planner)), log_err(&e));
        if (++n == DECISIONS_MAX)
            log_error("decisions do not end", log_s("event", event_type_names[ev.type]),
                log_s("decider", plan_decider(t->o.planner)));
        assert(n < DECISIONS_MAX);
    }
}

static void send_replies(struct tick *t)
{
    struct list l = {0};
    for (struct link *n; (n = list_pop(&t->answered));)
        list_push_back(&l, n);
    for (struct link *n; (n = list_pop(&l));) {
        struct post *p = LIST_ENTRY(n, struct post, in_list);
        if (p->reply)
            p->reply(p->ctx, p->e.kind ? &p->e : NULL, p->id);
        post_free(p);
    }
}

static void arm_wake(struct tick *t)
{
    struct mono due = plan_wake(t->o.planner, t->o.model, t->now);
    t->wake_due = due;
    if (mono_is_set(due)) {
        int64_t delay = due.ms - clock_mono(t->o.timers->clock).ms;
        timer_start(t->o.timers, &t->wake, delay > 0 ? delay : 0);
    } else {
        timer_stop(t->o.timers, &t->wake);
    }
}

static bool loads_is_empty(const struct loads_batch *b)
{
    for (int i = 0; i < LOAD_SPANS; i++)
        if (b->from[i] > 0)
            return false;
    return b->n_tasks + b->n_gpus == 0;
}

static void batch_done(struct tick *t)
{
    model_return_changes(t->o.model, &t->batch.changes);
    db_batch_deinit(&t->batch);
}

static double seconds_since(const struct tick *t, struct mono since)
{
    return (double)(clock_mono(t->o.timers->clock).ms - since.ms) / 1000;
}

static void run(struct tick *t)
{
    if (t->committing) {
        t->tick_missed = true;
        return;
    }
    if (t->full) {
        refuse_inbox(t);
        return;
    }
    t->running = true;
    t->now = tick_now(t);
    drain(t);
    decide(t);
    model_take_changes(t->o.model, &t->batch.changes);
    t->running = false;
    histogram_add(&t->stats.tick_seconds, seconds_since(t, t->now.mono));
    arm_wake(t);
    if (changes_is_empty(&t->batch.changes) && t->batch.n_tokens == 0 && t->batch.n_secrets == 0 &&
        t->batch.n_audit == 0 && !t->batch.prune.is_due && loads_is_empty(&t->batch.loads)) {
        batch_done(t);
        send_replies(t);
        return;
    }
    start_commit(t);
}

static void start_commit(struct tick *t)
{
    t->committing = true;
    t->commit_started = clock_mono(t->o.timers->clock);
    t->o.commit->start(t->o.commit, &t->batch);
}

/* For when belayd itself could not read or accept the messages of agents. */
static void renew_leases(struct tick *t)
{
    LIST_FOREACH (model_nodes(t->o.model), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        struct event ev = {.type = EV_HEARTBEAT, .heartbeat = {.node = n->row.id}};
        if (n->row.state != NODE_LOST)
            tick_post(t, &ev, NULL, NULL);
    }
}

static void commit_succeeded(struct tick *t)
{
    t->stats.commits++;
    histogram_add(&t->stats.commit_seconds, seconds_since(t, t->commit_started));
    if (t->full) {
        log_info("the disk has space again: the state is stored");
        renew_leases(t); /* heartbeats were refused like everything else */
    }
    t->full = false;
    t->full_retry_ms = 0;
    t->o.effects(t->o.ctx, &t->batch);
    batch_done(t);
    send_replies(t);
    if (t->tick_missed || !list_is_empty(&t->inbox))
        timer_start(t->o.timers, &t->timer, 0);
    t->tick_missed = false;
}

void tick_committed(struct tick *t, int rc, const struct err *e)
{
    assert(t->committing);
    t->committing = false;
    if (rc == 0) {
        commit_succeeded(t);
    } else if (rc == ERR_NO_SPACE) {
        if (!t->full)
            log_error(
                "the disk that holds the state is full: refusing new work until there is space",
                log_err(e));
        t->full = true;
        t->full_retry_ms = t->full_retry_ms ? t->full_retry_ms * 2 : FULL_RETRY_MIN_MS;
        if (t->full_retry_ms > FULL_RETRY_MAX_MS)
            t->full_retry_ms = FULL_RETRY_MAX_MS;
        timer_start(t->o.timers, &t->retry, t->full_retry_ms);
        refuse_inbox(t);
    } else {
        t->o.fatal(t->o.ctx, e);
    }
}

/* ---- read access ---- */

bool tick_is_full(const struct tick *t)
{
    return t->full;
}

struct stamp tick_now(const struct tick *t)
{
    return (struct stamp){
        .wall = clock_wall(t->o.timers->clock), .mono = clock_mono(t->o.timers->clock)};
}

const struct model *tick_model(const struct tick *t)
{
    return t->o.model;
}

void tick_get_stats(const struct tick *t, struct tick_stats *ret_stats)
{
    *ret_stats = t->stats;
}
