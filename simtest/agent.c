/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulated agents. They speak the real messages (each is encoded and decoded) over a network that
 * loses, delays and repeats them, and simulate programs that make steps, save, end, and are killed
 * with their machines. They follow the agent's side of the protocol in base/wire/wire.h.
 */
#include "simtest/options.h"
#include "simtest/world.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_WAIT_MS 8000

static void send_status(struct sim_agent *a, int64_t wait_ms);
static void join(struct sim_agent *a);

static struct timers *timers(const struct sim_agent *a)
{
    return &a->w->vt.timers;
}

/* ---- programs ---- */

static int64_t steps_now(const struct sim_attempt *x)
{
    struct world *w = x->agent->w;
    int64_t steps = x->base_steps + pauses_ran_ms(x) / STEP_MS;
    int64_t total = world_job(w, x->job)->total_steps;
    return steps < total ? steps : total;
}

void agent_report(struct sim_agent *a)
{
    if (a->up && !a->dead && a->node)
        send_status(a, 0);
}

static void end_attempt(struct sim_attempt *x, enum wire_end end, int64_t exit_code)
{
    struct timers *ts = timers(x->agent);
    if (x->phase == SIM_ENDED)
        return;
    x->phase = SIM_ENDED;
    x->end = end;
    x->exit_code = exit_code;
    timer_stop(ts, &x->finish);
    timer_stop(ts, &x->save_done);
    timer_stop(ts, &x->periodic);
    agent_report(x->agent);
}

static void on_finish(struct timer *t, void *ctx)
{
    struct sim_attempt *x = ctx;
    (void)t;
    if (world_job(x->agent->w, x->job)->fails)
        end_attempt(x, WIRE_END_FAILED, 3);
    else
        end_attempt(x, WIRE_END_SUCCEEDED, 0);
}

/* Starts the next save after the interval, or at the configured time of the day. */
static void start_periodic(struct sim_attempt *x)
{
    struct wall now = clock_wall(x->agent->w->vt.timers.clock), at = daily_next(&x->daily, now);
    bool daily = wall_is_set(at) && at.ms - now.ms < x->every_ms;
    timer_start(timers(x->agent), &x->periodic, daily ? at.ms - now.ms : x->every_ms);
}

static void start_save(struct sim_attempt *x, enum wire_cause cause)
{
    struct world *w = x->agent->w;
    if (x->phase != SIM_RUNNING || x->saving)
        return;
    x->saving = true;
    x->saving_steps = steps_now(x);
    x->save_cause = cause;
    int64_t takes_ms = world_between(w, 50, world_chance(w, 0.1) ? 60000 : 3000),
            pause_ms = pauses_begin(x);
    timer_start(timers(x->agent), &x->save_done, pause_ms > 0 ? pause_ms : takes_ms);
}

/* pause_ms: measured, or 0. */
static void note_saved(struct sim_attempt *x, int64_t pause_ms)
{
    struct world *w = x->agent->w;
    if (x->n_saved == WIRE_CHECKPOINTS_MAX) { /* as real agents do */
        x->saved[1].stored_bytes += x->saved[0].stored_bytes;
        memmove(x->saved, x->saved + 1, --x->n_saved * sizeof(*x->saved));
    }
    x->saved = mem_resize(x->saved, x->n_saved + 1, sizeof(*x->saved));
    struct wire_checkpoint *c = &x->saved[x->n_saved++];
    *c = (struct wire_checkpoint){.sequence = x->sequence,
        .bytes = sim_content_bytes(x->job),
        .stored_bytes = SIM_STORED_BYTES,
        .took_ms = pause_ms > 0 ? pause_ms : 100,
        .pause_ms = pause_ms > 0 ? pause_ms : 100,
        .progress = x->saving_steps,
        .saved_at = clock_wall(w->vt.timers.clock).ms};
    c->cause = x->save_cause;
}

/* A rank other than 0 commits nothing; its progress is in rank 0's checkpoints. */
static void join_save(struct sim_attempt *x)
{
    struct ckpt_ref newest = store_newest(x->agent->w, x->job);
    bool is_new = newest.attempt == x->attempt && newest.sequence > x->sequence;
    int64_t pause_ms = pauses_end(x, is_new);
    if (!is_new)
        return;
    x->sequence = newest.sequence;
    note_saved(x, pause_ms);
}

static void on_save_done(struct timer *t, void *ctx)
{
    struct sim_attempt *x = ctx;
    struct world *w = x->agent->w;
    bool ok = !world_chance(w, w->faults_over ? 0 : 0.05);
    (void)t;
    x->saving = false;
    if (x->has_no_script) {
        end_attempt(x, x->stop_reason, 143);
        return;
    }
    if (x->rank > 0) {
        join_save(x);
    } else if (ok && store_commit(w, x->job, (struct ckpt_ref){x->attempt, x->sequence + 1},
                         x->saving_steps)) {
        x->sequence++;
        note_saved(x, pauses_end(x, true));
        traffic_written(w, x, SIM_STORED_BYTES);
        x->kept_bytes += x->kept_bytes > 0 ? SIM_STORED_BYTES : 0;
        if (x->sequence % 4 == 0 && x->n_saved == 1)
            x->kept_bytes = store_clean(w, x->job, x->attempt);
    } else {
        pauses_end(x, false);
        x->failed_saves++;
    }
    start_periodic(x);
    if (x->stop_after_save)
        end_attempt(x, x->stop_reason, 85);
    else
        agent_report(x->agent);
}

static void on_periodic(struct timer *t, void *ctx)
{
    (void)t;
    start_save(ctx, WIRE_CAUSE_PERIODIC);
}

/* Saves, then ends; at once if there is nothing to save. */
static void save_and_stop(struct sim_attempt *x, enum wire_end reason)
{
    if (x->phase == SIM_ENDED || x->stop_after_save)
        return;
    x->stop_after_save = true;
    x->stop_reason = reason;
    if (x->phase == SIM_RESTORING)
        end_attempt(x, reason, 143);
    else if (x->has_no_script)
        /* 1 to 60 s: before the machine ends */
        timer_start(timers(x->agent), &x->save_done, world_between(x->agent->w, 1000, 60000));
    else
        start_save(x, WIRE_CAUSE_NOTICE); /* otherwise the running save ends the attempt */
}

/* ---- attempts ---- */

static struct sim_attempt *find(struct sim_agent *a, int64_t job, int64_t attempt)
{
    LIST_FOREACH (&a->attempts, l) {
        struct sim_attempt *x = LIST_ENTRY(l, struct sim_attempt, in_agent);
        if (x->job == job && x->attempt == attempt)
            return x;
    }
    return NULL;
}

static void forget(struct sim_attempt *x)
{
    struct timers *ts = timers(x->agent);
    timer_stop(ts, &x->finish);
    timer_stop(ts, &x->save_done);
    timer_stop(ts, &x->periodic);
    link_remove(&x->in_agent);
    free(x->saved);
    free(x);
}

/* True if the store refuses this try, temporarily or for good. */
static bool is_refused(struct sim_attempt *x)
{
    struct world *w = x->agent->w;
    if (x->refusals == 0)
        return false;
    x->store_tries++;
    if (--x->refusals == 0 && x->is_refused) {
        end_attempt(x, world_chance(w, 0.2) ? WIRE_END_STORE : WIRE_END_STORE_AWAY, 0);
        return true;
    }
    timer_start(timers(x->agent), &x->finish, world_between(w, 500, 30000));
    agent_report(x->agent);
    return true;
}

/* The restore is complete; the program runs. x->finish times the restore, then the run. */
static void on_restored(struct timer *t, void *ctx)
{
    struct sim_attempt *x = ctx;
    struct world *w = x->agent->w;
    struct sim_job *job = world_job(w, x->job);
    (void)t;
    if (is_refused(x))
        return;
    if (x->restored.attempt)
        traffic_read(w, x, sim_content_bytes(x->job) - x->nearby_bytes);
    x->phase = SIM_RUNNING;
    x->started_wall = clock_wall(w->vt.timers.clock).ms;
    x->ran_from_ms = world_now(w);
    traffic_started(w, x);
    timer_init(&x->finish, on_finish, x);
    if (!x->has_no_script) {
        timer_start(timers(x->agent), &x->finish, (job->total_steps - x->base_steps) * STEP_MS);
        start_periodic(x);
    }
    if (x->agent->notice.kind == WIRE_NOTICE_RECLAIM)
        save_and_stop(x, WIRE_END_RECLAIMED);
    agent_report(x->agent);
}

static struct sim_attempt *make_attempt(struct sim_agent *a, const struct wire_desired_attempt *d)
{
    struct sim_attempt *x = mem_alloc(sizeof(*x));
    x->agent = a;
    x->job = d->job;
    x->attempt = d->attempt;
    x->rank = d->rank;
    x->ranks = d->n_peers > 0 ? (int64_t)d->n_peers : 1;
    x->has_no_script = d->script_on_first && d->rank > 0;
    x->started_wall = WIRE_NONE;
    struct err e;
    x->every_ms = d->ckpt_every_ms > 0 ? d->ckpt_every_ms : 3600000;
    if (daily_parse(d->options.ckpt_at, &x->daily, &e) != 0)
        world_fail(a->w, "job %lld is to be saved at the invalid time %s", (long long)d->job,
            d->options.ckpt_at);
    timer_init(&x->finish, on_restored, x);
    timer_init(&x->save_done, on_save_done, x);
    timer_init(&x->periodic, on_periodic, x);
    list_push_back(&a->attempts, &x->in_agent);
    return x;
}

static void start_attempt(struct sim_agent *a, const struct wire_desired_attempt *d)
{
    struct world *w = a->w;
    check_desired(w, d->job, d->attempt, a->node);
    if (!d->script) {
        world_fail(w, "job %lld attempt %lld is to run, but its script was not sent",
            (long long)d->job, (long long)d->attempt);
        return;
    }
    options_sent(w, d);
    struct sim_attempt *x = make_attempt(a, d);
    if (disks_refuse(a, x->job)) {
        end_attempt(x, WIRE_END_CAPACITY, 0);
        return;
    }
    if (!x->has_no_script && holes_swallow(a)) {
        end_attempt(x, WIRE_END_FAILED, SIM_HOLE_CODE);
        return;
    }
    if (!x->has_no_script) {
        store_identify(w, x->job, d->ckpt_identity);
        store_fence(w, x->job, x->attempt);
        bool lost;
        struct sim_manifest m = store_restore(w, x->job, x->attempt, d->from_attempt,
            (struct ckpt_ref){d->expect_attempt, d->expect_sequence}, &x->damaged, &lost);
        if (lost) {
            end_attempt(x, WIRE_END_STORE, 0);
            return;
        }
        x->restored = m.ref;
        x->restored_steps = m.steps;
        x->nearby_bytes = prefetches_nearby(a, x);
        x->base_steps = world_job(w, x->job)->forgets ? 0 : m.steps;
    }
    struct sim_job *job = world_job(w, x->job);
    if (!w->faults_over && !x->has_no_script && job->refusing == 0 && world_chance(w, 0.05))
        job->refusing = (int32_t)world_between(w, 1, 5);
    if (!w->faults_over && !x->has_no_script && job->refusing > 0) {
        job->refusing--;
        x->refusals = (int)world_between(w, 1, 6);
        x->is_refused = world_chance(w, 0.9);
    }
    timer_start(timers(a), &x->finish, world_between(w, 20, 5000));
}

static const struct wire_desired_attempt *find_desired(
    const struct wire_desired *d, const struct sim_attempt *x)
{
    for (size_t i = 0; i < d->n_attempts; i++)
        if (d->attempts[i].job == x->job && d->attempts[i].attempt == x->attempt)
            return &d->attempts[i];
    return NULL;
}

/* Removes ended attempts and checkpoints that belayd has acknowledged from the status. */
static void acknowledge(struct sim_attempt *x, int64_t sequence)
{
    size_t keep = 0;
    for (size_t i = 0; i < x->n_saved; i++)
        if (x->saved[i].sequence > sequence)
            x->saved[keep++] = x->saved[i];
    x->n_saved = keep;
    x->acked = sequence;
}

static enum wire_end end_of(enum wire_end reason)
{
    return reason == WIRE_END_NONE ? WIRE_END_CANCELLED : reason;
}

/* A running save that began before the request does not count: the next response repeats it. */
static void save_for_user(struct sim_attempt *x, int64_t asked)
{
    if (asked < x->saves_asked)
        world_fail(x->agent->w,
            "job %lld attempt %lld: belayd forgot that a save was asked for (%lld of %lld)",
            (long long)x->job, (long long)x->attempt, (long long)asked, (long long)x->saves_asked);
    if (asked <= x->saves_asked || x->phase != SIM_RUNNING || x->saving)
        return;
    x->saves_asked = asked;
    start_save(x, WIRE_CAUSE_USER);
}

/* `built_at`: number of the event after which belayd built this response. */
static void apply_desired(struct sim_agent *a, const struct wire_desired *d, int64_t built_at)
{
    if (d->rev < a->rev) {
        if (built_at > a->applied)
            world_fail(a->w,
                "node %lld: a newer response of belayd has an older revision (%lld after %lld)",
                (long long)a->node, (long long)d->rev, (long long)a->rev);
        return;
    }
    a->rev = d->rev;
    a->applied = built_at;
    LIST_FOREACH (&a->attempts, l) {
        struct sim_attempt *x = LIST_ENTRY(l, struct sim_attempt, in_agent);
        const struct wire_desired_attempt *want = find_desired(d, x);
        if (!want) {
            forget(x); /* killed, or durably reported */
            continue;
        }
        acknowledge(x, want->acked_sequence);
        if (want->ckpt_every_ms > 0)
            x->every_ms = want->ckpt_every_ms; /* from its next save on */
        save_for_user(x, want->saves_asked);
        if (want->want == WIRE_SAVE_STOP)
            save_and_stop(x, end_of(want->reason));
        else if (want->want == WIRE_STOP)
            end_attempt(x, end_of(want->reason), 143);
    }
    for (size_t i = 0; i < d->n_attempts; i++) {
        const struct wire_desired_attempt *want = &d->attempts[i];
        if (find(a, want->job, want->attempt))
            continue;
        if (want->exclusive && d->n_attempts > 1)
            world_fail(a->w,
                "job %lld is exclusive, but belayd sends node %lld another job as well",
                (long long)want->job, (long long)a->node);
        if (want->want == WIRE_RUN)
            start_attempt(a, want);
        else /* cancelled before its agent received it */
            end_attempt(make_attempt(a, want), end_of(want->reason), 0);
    }
    prefetches_ordered(a, &d->prefetch);
}

/* ---- messages ---- */

static enum wire_phase phase_of(const struct sim_attempt *x)
{
    if (x->phase == SIM_RESTORING)
        return WIRE_RESTORING;
    if (x->phase == SIM_ENDED)
        return WIRE_ENDED;
    return x->saving ? WIRE_SAVING : WIRE_RUNNING;
}

static void fill_status(const struct sim_attempt *x, struct wire_attempt_status *s)
{
    bool reports = x->phase == SIM_RUNNING && !x->has_no_script;
    *s = (struct wire_attempt_status){
        .job = x->job,
        .attempt = x->attempt,
        .phase = phase_of(x),
        .started_at = x->started_wall,
        .restored_attempt = x->restored.attempt,
        .restored_sequence = x->restored.sequence,
        .restored_progress = x->restored.attempt ? x->restored_steps : WIRE_NONE,
        .restore_ms = 10,
        .damaged = x->damaged,
        .restored_bytes = x->restored.attempt ? sim_content_bytes(x->job) : 0,
        .reused_bytes = x->restored.attempt ? x->nearby_bytes : 0,
        .first_done = reports ? x->base_steps : WIRE_NONE,
        .first_done_ms = reports ? 250 : 0,
        .done = reports ? steps_now(x) : WIRE_NONE,
        .total = reports ? world_job(x->agent->w, x->job)->total_steps : WIRE_NONE,
        .checkpoints = x->saved,
        .n_checkpoints = x->n_saved,
        .failed_saves = x->failed_saves,
        .store_tries = x->phase == SIM_RESTORING ? x->store_tries : 0,
        .kept_bytes = x->kept_bytes,
        .exit_code = x->exit_code,
    };
    if (s->store_tries > 0)
        snprintf(s->store_error, sizeof(s->store_error), "the simulated store refuses");
    s->end = x->end;
}

/* Encodes and decodes the status: what belayd receives. */
static void build(struct sim_agent *a, int64_t wait_ms, struct wire_status *out)
{
    struct wire_status st = {.incarnation = a->incarnation,
        .seq = ++a->seq,
        .have_rev = a->rev,
        .wait_ms = wait_ms,
        .notice = a->notice,
        .prefetched = a->prefetched};
    struct buf text = {0};
    struct err e = {0};
    if (disks_is_full(a))
        STR_COPY(st.disk_full, "the simulated disk is full");
    disks_sent(a, &st);
    LIST_FOREACH (&a->attempts, l)
        st.n_attempts++;
    st.attempts = mem_array(st.n_attempts + 1, sizeof(*st.attempts));
    size_t i = 0;
    LIST_FOREACH (&a->attempts, l)
        fill_status(LIST_ENTRY(l, struct sim_attempt, in_agent), &st.attempts[i++]);
    wire_status_encode(&st, &text);
    if (wire_status_decode(text.data, text.len, out, &e) != 0)
        world_fail(a->w, "an encoded status cannot be decoded: %s", e.text);
    buf_deinit(&text);
    free(st.attempts);
}

static void call_free(struct sim_call *c)
{
    timer_stop(&c->w->vt.timers, &c->timer);
    link_remove(&c->in_world);
    wire_status_deinit(&c->status);
    if (c->desired)
        wire_desired_deinit(c->desired);
    free(c->desired);
    free(c);
}

static void poll_after(struct sim_agent *a, bool failed)
{
    a->tries = failed ? a->tries + 1 : 0;
    timer_start(
        timers(a), &a->poll, failed ? prng_backoff_ms(&a->w->prng, a->tries, 200, 10000) : 0);
}

/* The response arrived, or is lost. */
static void on_arrived(struct timer *t, void *ctx)
{
    struct sim_call *c = ctx;
    struct sim_agent *a = c->agent;
    bool current = !a->dead && a->up && a->incarnation == c->incarnation;
    bool polled = c->kind == 1;
    bool ok = c->desired != NULL;
    (void)t;
    if (current && ok)
        apply_desired(a, c->desired, c->built_at);
    call_free(c);
    if (current && polled) {
        a->polls--;
        poll_after(a, !ok);
    } else if (current && !ok) {
        /* an urgent status was lost: repeat it at the next poll, without waiting */
        send_status(a, 0);
    }
}

static void on_reply(void *ctx, const struct err *e, const struct wire_desired *d)
{
    struct sim_call *c = ctx;
    struct world *w = c->w;
    if (e && e->kind == ERR_NOT_FOUND && c->agent->machine && !c->agent->dead) {
        /* An elastic node that belayd no longer needs powers itself off. */
        struct sim_machine *m = c->agent->machine;
        call_free(c);
        cloud_kill(m, false);
        return;
    }
    if (d)
        disks_answered(c->agent, c->incarnation, &c->status);
    if (d && !world_chance(w, w->faults_over ? 0 : 0.03)) {
        struct buf text = {0};
        struct err bad = {0};
        c->built_at = w->events;
        c->desired = mem_alloc(sizeof(*c->desired));
        wire_desired_encode(d, &text);
        if (wire_desired_decode(text.data, text.len, c->desired, &bad) != 0)
            world_fail(w, "an encoded response cannot be decoded: %s", bad.text);
        buf_deinit(&text);
    } else {
        w->lost_messages++;
    }
    timer_init(&c->timer, on_arrived, c);
    timer_start(&w->vt.timers, &c->timer, world_between(w, 1, world_chance(w, 0.05) ? 4000 : 40));
}

void agent_call_broken(struct sim_call *c)
{
    timer_init(&c->timer, on_arrived, c);
    timer_start(&c->w->vt.timers, &c->timer, world_between(c->w, 1, 100));
}

static void on_departed(struct timer *t, void *ctx)
{
    struct sim_call *c = ctx;
    struct world *w = c->w;
    bool cut = world_now(w) < c->agent->cut_until_ms;
    (void)t;
    if (c->agent->dead) {
        call_free(c);
    } else if (!w->up || cut || world_chance(w, w->faults_over ? 0 : 0.03)) {
        w->lost_messages++;
        timer_init(&c->timer, on_arrived, c);
        timer_start(&w->vt.timers, &c->timer, 1000);
    } else {
        c->sent = true;
        agent_sync_status(w->agent_sync, c->agent->node, &c->status, on_reply, c);
    }
}

static void send_status(struct sim_agent *a, int64_t wait_ms)
{
    struct sim_call *c = mem_alloc(sizeof(*c));
    c->w = a->w;
    c->agent = a;
    c->incarnation = a->incarnation;
    c->kind = wait_ms > 0;
    a->polls += c->kind;
    build(a, wait_ms, &c->status);
    timer_init(&c->timer, on_departed, c);
    list_push_back(&a->w->calls, &c->in_world);
    timer_start(timers(a), &c->timer, world_between(a->w, 1, world_chance(a->w, 0.05) ? 4000 : 40));
}

static void on_poll(struct timer *t, void *ctx)
{
    struct sim_agent *a = ctx;
    (void)t;
    if (a->dead || !a->up)
        return;
    if (!a->node)
        join(a);
    else if (a->polls == 0)
        send_status(a, POLL_WAIT_MS);
}

/* ---- joining ---- */

struct joining {
    struct world *w;
    struct sim_agent *agent;
};

static void on_joined(void *ctx, const struct err *e, int64_t node)
{
    struct joining *j = ctx;
    struct sim_agent *a = j->agent;
    free(j);
    if (a->dead || !a->up)
        return;
    if (e) {
        if (a->machine &&
            (e->kind == ERR_CONFLICT || e->kind == ERR_DENIED || e->kind == ERR_NOT_FOUND)) {
            cloud_kill(a->machine, false); /* no longer needed: powers off */
            return;
        }
        poll_after(a, true);
        return;
    }
    a->node = node;
    poll_after(a, false);
}

static void join(struct sim_agent *a)
{
    struct world *w = a->w;
    struct node_row node = {.total = world_machine(a->machine ? a->machine->type : SIM_SMALL),
        .notice_deadline = WALL_NONE,
        .joined_at = WALL_NONE,
        .gone_at = WALL_NONE};
    if (!w->up || world_now(w) < a->cut_until_ms) {
        poll_after(a, true);
        return;
    }
    const struct instance *i =
        a->machine ? model_instance_by_token(w->model, a->machine->token) : NULL;
    if (a->machine && !i) {
        cloud_kill(a->machine, false);
        return;
    }
    struct joining *j = mem_alloc(sizeof(*j));
    *j = (struct joining){w, a};
    snprintf(node.name, sizeof(node.name), "%.40s", a->key);
    STR_COPY(node.key_hash, a->key);
    STR_COPY(node.pool, a->machine ? "" : "base");
    STR_COPY(node.version, "sim");
    struct event ev = {.type = EV_JOIN,
        .join = {.node = &node, .instance = i ? i->row.id : CORE_ID_NONE, .start_ms = 1500}};
    /* Repeats the join if belayd dies before its response; the same key is the same node. */
    timer_start(timers(a), &a->poll, 15000);
    tick_post(w->tick, &ev, on_joined, j);
}

/* ---- life cycle ---- */

static void on_restart(struct timer *t, void *ctx)
{
    struct sim_agent *a = ctx;
    (void)t;
    if (a->dead)
        return;
    a->up = true;
    a->polls = 0;
    a->rev = 0;
    a->incarnation = clock_wall(a->w->vt.timers.clock).ms;
    a->seq = a->space_seq = 0;
    a->is_full_reported = false;
    prefetches_forget(a);
    poll_after(a, false);
}

/* kill -9 of the agent alone: programs continue, a running save is lost. */
static void on_crash(struct timer *t, void *ctx)
{
    struct sim_agent *a = ctx;
    struct world *w = a->w;
    (void)t;
    if (a->dead || w->faults_over)
        return;
    a->up = false;
    w->kills++;
    timer_stop(timers(a), &a->poll);
    LIST_FOREACH (&a->attempts, l) {
        struct sim_attempt *x = LIST_ENTRY(l, struct sim_attempt, in_agent);
        timer_stop(timers(a), &x->save_done);
        if (x->saving && x->stop_after_save)
            timer_start(timers(a), &x->save_done,
                world_between(w, 1000, 9000)); /* delay until the agent starts again */
        else {
            x->saving = false;
            pauses_end(x, false); /* the program goes on */
        }
    }
    timer_start(timers(a), &a->restart, world_between(w, 500, 8000));
    timer_start(timers(a), &a->crash, (int64_t)prng_exponential(&w->prng, 1200000));
}

void agent_boot(struct world *w, struct sim_machine *m)
{
    struct sim_agent *a = mem_alloc(sizeof(*a));
    static const char reserved[] = "reserved";
    a->w = w;
    a->machine = m;
    a->up = true;
    a->incarnation = clock_wall(w->vt.timers.clock).ms;
    a->notice.deadline = WIRE_NONE;
    if (m) {
        snprintf(a->key, sizeof(a->key), "key-%s", m->id);
        m->agent = a;
    } else {
        int n = 0;
        LIST_FOREACH (&w->agents, l)
            n++;
        snprintf(a->key, sizeof(a->key), "key-%s-%d", reserved, n);
    }
    prefetches_init(a);
    timer_init(&a->poll, on_poll, a);
    timer_init(&a->restart, on_restart, a);
    timer_init(&a->crash, on_crash, a);
    list_push_back(&w->agents, &a->in_world);
    timer_start(timers(a), &a->poll, 0);
    timer_start(timers(a), &a->crash, (int64_t)prng_exponential(&w->prng, 1200000));
}

void agent_notice(struct sim_agent *a, enum wire_notice_kind kind, int64_t deadline_ms)
{
    a->notice.kind = kind;
    a->notice.deadline = deadline_ms;
    a->notice.seen = clock_wall(a->w->vt.timers.clock).ms;
    LIST_FOREACH (&a->attempts, l) {
        struct sim_attempt *x = LIST_ENTRY(l, struct sim_attempt, in_agent);
        if (kind == WIRE_NOTICE_RECLAIM)
            save_and_stop(x, WIRE_END_RECLAIMED);
        else
            start_save(x, WIRE_CAUSE_REBALANCE);
    }
    agent_report(a);
}

void agent_kill(struct sim_agent *a)
{
    a->dead = true;
    a->up = false;
    a->machine = NULL;
    timer_stop(timers(a), &a->poll);
    timer_stop(timers(a), &a->restart);
    timer_stop(timers(a), &a->crash);
    prefetches_forget(a);
    for (struct link *l; (l = list_first(&a->attempts));)
        forget(LIST_ENTRY(l, struct sim_attempt, in_agent));
}

bool agent_has(const struct world *w, const struct attempt_row *r)
{
    LIST_FOREACH (&w->agents, l) {
        struct sim_agent *a = LIST_ENTRY(l, struct sim_agent, in_world);
        if (a->node == r->node && !a->dead && find(a, r->job, r->attempt))
            return true;
    }
    return false;
}

void agent_destroy_all(struct world *w)
{
    for (struct link *l; (l = list_first(&w->calls));)
        call_free(LIST_ENTRY(l, struct sim_call, in_world));
    for (struct link *l; (l = list_pop(&w->agents));) {
        struct sim_agent *a = LIST_ENTRY(l, struct sim_agent, in_world);
        agent_kill(a);
        free(a);
    }
}
