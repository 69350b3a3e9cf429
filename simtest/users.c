/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulated users and an operator: they submit, cancel, requeue and drain, remember the responses,
 * and repeat requests if belayd died before it responded.
 */
#include "simtest/options.h"
#include "simtest/world.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/placement/constraints.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cancel_request {
    struct world *w;
    int64_t job;
};

static const char *const users[] = {"ann", "bob", "cho"};

static const char script[] = "#!/bin/sh\ntrue\n";

/* ---- submit ---- */

struct submission {
    struct world *w;
    struct job_row row;
    struct job_texts texts; /* owned */
    bool asks, by_task;     /* has a dependency; on an array, task by task */
    struct depend_ask after;
    struct ranges tasks; /* empty: no array */
    int32_t at_once;
};

static void submission_free(struct submission *s)
{
    if (s->after.array)
        bits_deinit(&s->after.array->succeeded);
    free(s->after.array);
    job_texts_deinit(&s->texts);
    free(s);
}

static void on_submitted(void *ctx, const struct err *e, int64_t id)
{
    struct submission *s = ctx;
    struct world *w = s->w;
    if (e) {
        w->n_submits--; /* refused, or unknown: tried again later */
    } else {
        for (int i = 0; i < w->n_acked; i++)
            if (w->acked[i] == id)
                world_fail(w, "job number %lld was assigned twice", (long long)id);
        struct sim_job *j = world_job(w, id);
        j->id = id;
        w->acked[w->n_acked++] = id;
    }
    submission_free(s);
}

static int note_task(void *ctx, const struct job_row *row)
{
    *(struct job_row *)ctx = *row;
    return 1;
}

/* Replaces an array as dependency by one of its tasks, as the API does. */
static bool ask_for_a_task(struct world *w, struct depend_ask *a)
{
    struct job_row row = {0};
    struct array_row array;
    struct ranges all;
    struct err e;
    if (db_read_array(w->reader, a->on, &array, &e) != 0)
        return true;
    if (ranges_parse(array.tasks, &all, &e) != 0)
        return false;
    a->of_task = true;
    a->task = (int32_t)world_between(w, ranges_first(&all), ranges_last(&all));
    const struct job_filter f = {.array = a->on, .index = a->task, .limit = 1};
    if (db_read_jobs(w->reader, &f, note_task, &row, NULL, &e) != 0)
        return false;
    bool never_began = row.id == CORE_ID_NONE && a->has_ended;
    a->has_ended = never_began || (row.id != CORE_ID_NONE && row.state == JOB_ENDED);
    a->end = never_began ? END_CANCELLED : row.end;
    a->started_at = never_began ? WALL_NONE : row.started_at;
    return true;
}

/* Depends on an earlier job, in any state. */
static bool ask_for_an_older_one(struct world *w, struct depend_ask *ret_ask)
{
    struct job_row row;
    struct err e;
    int64_t on = w->n_acked > 0 ? w->acked[world_between(w, 0, w->n_acked - 1)] : CORE_ID_NONE;
    if (on == CORE_ID_NONE || db_read_job(w->reader, on, &row, &e) != 0)
        return false;
    *ret_ask = (struct depend_ask){
        .kind = (enum depend_kind)world_between(w, DEPEND_AFTER, DEPEND_AFTERNOTOK),
        .on = on,
        .has_ended = row.state == JOB_ENDED,
        .end = row.end,
        .started_at = row.started_at};
    if (ret_ask->kind == DEPEND_AFTER)
        ret_ask->delay_ms = world_between(w, 0, 20000);
    return world_chance(w, 0.5) || ask_for_a_task(w, ret_ask);
}

/* Depends, task by task, on another array, or on other jobs. */
static bool depend_by_task(struct world *w, struct submission *s)
{
    struct array_ends ends;
    struct job_row row;
    struct err e;
    int64_t on = CORE_ID_NONE;
    for (int k = 0; k < w->n_acked && on == CORE_ID_NONE; k++) {
        int64_t id = w->acked[world_between(w, 0, w->n_acked - 1)];
        on = db_read_array_ends(w->reader, id, &ends, &e) == 0 ? id : CORE_ID_NONE;
    }
    if (on == CORE_ID_NONE || db_read_job(w->reader, on, &row, &e) != 0)
        return false;
    s->after = (struct depend_ask){.kind = DEPEND_AFTERCORR,
        .on = on,
        .has_ended = row.state == JOB_ENDED,
        .end = row.end,
        .started_at = row.started_at,
        .array = mem_dup(&ends, sizeof(ends))};
    if (world_chance(w, 0.9))
        s->tasks = ends.all;
    return true;
}

/* As the API: looks up ended jobs on disk after everything posted before is committed. */
static int apply_submission(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct submission *s = ctx;
    struct event ev = {
        .type = EV_SUBMIT, .submit = {.job = &s->row, .texts = &s->texts, .depends = &s->after}};
    if (s->asks && !(s->by_task && depend_by_task(s->w, s)) &&
        !ask_for_an_older_one(s->w, &s->after))
        s->asks = false;
    ev.submit.n_depends = s->asks;
    ev.submit.tasks = s->tasks.n > 0 ? &s->tasks : NULL;
    ev.submit.at_once = s->at_once;
    return tick_apply(t, &ev, ret_id, e);
}

/* More than the simulated failures use up. */
static struct retries some_retries(struct world *w)
{
    struct retries r = {0};
    for (int k = 0; world_chance(w, 0.1) && k < RETRY_KINDS; k++)
        r.n[k] = (int32_t)world_between(w, 1, 4);
    return r;
}

#define SIM_CONSTRAINED 4

/* Constraints that launchable machines meet, since not every world has reserved nodes. */
static const char *constraints_of(struct world *w)
{
    static const char *const all[] = {"licences=matlab:1", "licences=matlab:3 input=store:16384",
        "licences=ansys:1,matlab:2", "resources=lego:1 input=gcp/us-central1:1000000",
        "constraint=(ib|r1)&(spot|on-demand|ib)", "resources=lego:1 licences=matlab:1",
        "constraint=z2 input=aws/us-east-1:20000000", "constraint=ib|z2"};
    /* z2 has spot machines only: the last job might wait forever */
    int n = w->seed % SIM_REQUIRE == 0 ? 6 : 8;
    int which = (int)world_between(w, 0, n - 1);
    if (w->seed % SIM_CONSTRAINED != 0 && str_starts(all[which], "constraint="))
        /* a constraint prevents alternatives in launches of a fleet, so most worlds have none */
        which -= 4;
    return world_chance(w, 0.2) ? all[which] : NULL;
}

/* Adds, occasionally and in some worlds, exclusive nodes or an excluded node; out is the buffer. */
static const char *add_exclusions(
    struct world *w, const char *constraints, char out[CONSTRAINTS_TEXT_MAX])
{
    bool alone = w->seed % SIM_ALONE == 0 && world_chance(w, 0.25);
    struct link *first = list_first(model_nodes(w->model));
    bool excludes = w->seed % SIM_EXCLUDE == 0 && first && world_chance(w, 0.25);
    if (!alone && !excludes)
        return constraints;
    snprintf(out, CONSTRAINTS_TEXT_MAX, "%s%s%s%s%s%s", constraints ? constraints : "",
        constraints ? " " : "", alone ? "exclusive=yes" : "", alone && excludes ? " " : "",
        excludes ? "exclude=" : "",
        excludes ? LIST_ENTRY(first, struct node, in_all)->row.name : "");
    return out;
}

/* Begin, deadline, and the machines on which the job may run. */
static void random_times_and_market(struct world *w, const char *constraints, struct job_row *row)
{
    row->hold = world_chance(w, 0.05) ? HOLD_USER : HOLD_NONE;
    row->spec.begin_at.ms =
        world_chance(w, 0.05) ? world_stamp(w).wall.ms + world_between(w, 0, 30000) : WALL_NONE.ms;
    row->spec.deadline_ms =
        world_chance(w, 0.05)
            ? world_stamp(w).wall.ms + row->spec.time_limit_ms + world_between(w, 60000, 1800000)
            : 0;
    row->spec.market = (enum market_wish)world_between(w, 0, 2);
    if (w->seed % SIM_REQUIRE == 0 && row->spec.market == WISH_SPOT)
        row->spec.market = WISH_ANY; /* else it may wait forever */
    if (constraints && strstr(constraints, "z2"))
        row->spec.market = WISH_ANY; /* else it may wait forever */
    if (row->spec.market == WISH_ANY && world_chance(w, 0.1)) {
        row->spec.work_ms = world_between(w, 1000, 1800000);
        row->spec.finish_ms = world_stamp(w).wall.ms + world_between(w, 1, 4 * row->spec.work_ms);
    }
    pauses_make_submission(w, row);
    reservations_make_submission(w, w->n_submits, row);
}

/* A job's behaviour follows from its number, so that it is known even if its user never got a
 * response. */
static void submit(struct world *w)
{
    /* ignored without classes */
    static const char *const qos[] = {"", "low", "low", "high"};
    int32_t nodes = world_chance(w, 0.15) ? (int32_t)world_between(w, 2, 3) : 1;
    struct job_row row = {.spec.nodes = nodes,
        .spec.nodes_min = world_chance(w, 0.5) ? nodes : (int32_t)world_between(w, 1, nodes),
        .spec.script_on = world_chance(w, 0.3) ? SCRIPT_ON_FIRST : SCRIPT_ON_EACH,
        .spec.on_loss = world_chance(w, 0.5) ? LOSS_SHRINK : LOSS_WAIT,
        .spec.need = {.cpus = (int32_t)world_between(w, 1, 4),
            .memory_mib = world_between(w, 0, 4096)},
        .spec.ckpt_keep = 3,
        .spec.ckpt_signal = SIGUSR1,
        .spec.method = CKPT_COOP,
        .spec.ckpt_after = (enum ckpt_after)world_between(w, AFTER_AUTO, AFTER_ALL),
        .spec.ckpt_every_ms = world_chance(w, 0.5) ? 0 : world_between(w, 2000, 60000),
        /* agents here ignore it */
        .spec.time_limit_ms = world_chance(w, 0.5) ? world_between(w, 60000, 1200000) : 0,
        .spec.drill_tries = world_chance(w, 0.2) ? DRILL_TRIES_DEFAULT : 0};
    char text[CONSTRAINTS_TEXT_MAX], *document = options_document(w);
    struct job_texts texts = {script, "[\"a\"]", "{\"B\":\"c\"}", "/tmp", "{}",
        .constraints = add_exclusions(w, constraints_of(w), text), .document_json = document};
    options_random(w, &row.spec);
    STR_COPY(row.spec.name, "sim");
    STR_COPY(row.user, users[world_between(w, 0, 2)]);
    row.spec.retries = some_retries(w);
    STR_COPY(row.spec.qos, qos[world_between(w, 0, 3)]);
    row.spec.nice = world_chance(w, 0.2) ? (int32_t)world_between(w, 1, 120) : 0;
    snprintf(
        row.script_key, sizeof(row.script_key), "script-%lld", (long long)world_between(w, 1, 3));
    if (world_chance(w, 0.3))
        STR_COPY(row.spec.pool,
            ((const char *[]){"burst", "burst,base", "absent,burst"})[world_between(w, 0, 2)]);
    if (world_chance(w, 0.2))
        snprintf(row.spec.ckpt_at, sizeof(row.spec.ckpt_at), "%02d:%02d,12:00",
            (int)world_between(w, 0, 11), 30);
    random_times_and_market(w, texts.constraints, &row);
    bool asks = world_chance(w, 0.1), is_array = world_chance(w, 0.15);
    if (!is_array)
        texts.labels_json = paid_labels(w, &row);
    struct submission *s = mem_alloc(sizeof(*s));
    *s = (struct submission){.w = w, .row = row, .texts = job_texts_copy(&texts), .asks = asks};
    free(document);
    if (is_array) {
        s->tasks = (struct ranges){1, {{0, (int32_t)world_between(w, 0, 3), 1}}};
        s->at_once = (int32_t)world_between(w, 0, 2);
        s->by_task = world_chance(w, 0.5);
        s->asks |= s->by_task;
    }
    w->n_submits++;
    tick_post_work(w->tick, apply_submission, on_submitted, s);
}

/* ---- cancels and requeues ---- */

static void on_cancelled(void *ctx, const struct err *e, int64_t id)
{
    struct cancel_request *x = ctx;
    (void)id;
    if (!e)
        world_job(x->w, x->job)->cancelled = true;
    free(x);
}

static void on_done(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

/* ---- updates ---- */

struct updating {
    struct world *w;
    int64_t job;
    uint64_t fields;
    int32_t at_once;
    struct job_row to;
    const char *constraints;
    char *document;
    struct submission s; /* its new dependencies */
};

static int apply_updating(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct updating *u = ctx;
    struct event ev = {.type = EV_UPDATE,
        .update = {.job = u->job,
            .by = "ann",
            .fields = u->fields,
            .to = &u->to,
            .constraints = u->constraints,
            .document = u->document,
            .at_once = u->at_once,
            .depends = &u->s.after}};
    bool asks = (u->fields & UPDATE_BIT(UPDATE_DEPENDS)) && u->s.asks;
    if (asks && !(u->s.by_task && depend_by_task(u->w, &u->s)))
        asks = ask_for_an_older_one(u->w, &u->s.after);
    ev.update.n_depends = asks;
    return tick_apply(t, &ev, ret_id, e);
}

static void on_updated(void *ctx, const struct err *e, int64_t id)
{
    struct updating *u = ctx;
    (void)e, (void)id;
    if (u->s.after.array)
        bits_deinit(&u->s.after.array->succeeded);
    free(u->s.after.array);
    free(u->document);
    free(u);
}

/* Only to values that a submit could have, so that the job ends. */
static void update_a_job(struct world *w, int64_t job)
{
    static const enum job_field all[] = {UPDATE_NAME, UPDATE_TIME_LIMIT, UPDATE_RETRIES,
        UPDATE_NICE, UPDATE_DEADLINE, UPDATE_FINISH, UPDATE_WORK, UPDATE_AT_ONCE, UPDATE_POOL,
        UPDATE_TEAM, UPDATE_QOS, UPDATE_BEGIN, UPDATE_DEPENDS, UPDATE_CPUS, UPDATE_MEMORY,
        UPDATE_NODES, UPDATE_ON_LOSS, UPDATE_LICENCES};
    static const char *const licences[] = {"", "licences=matlab:1", "licences=matlab:3"},
                             *const qos[] = {"", "low", "high"};
    struct updating *u = mem_alloc(sizeof(*u));
    *u = (struct updating){.w = w,
        .job = job,
        .at_once = (int32_t)world_between(w, 0, 2),
        .s = {.w = w, .asks = world_chance(w, 0.5)}};
    for (int64_t n = world_between(w, 1, 3); n > 0; n--)
        u->fields |=
            UPDATE_BIT(all[world_between(w, 0, (int64_t)(sizeof(all) / sizeof(all[0])) - 1)]);
    u->fields |= options_fields(w);
    if (paid_is(w, job))
        u->fields &= ~(
            UPDATE_BIT(UPDATE_RETRIES) | UPDATE_BIT(UPDATE_NODES) | UPDATE_BIT(UPDATE_TIME_LIMIT));
    u->s.by_task = world_chance(w, 0.3);
    u->constraints = licences[world_between(w, 0, 2)];
    u->document = options_document(w);
    options_random(w, &u->to.spec);
    u->to.spec.nodes = (int32_t)world_between(w, 1, 3);
    u->to.spec.nodes_min = (int32_t)world_between(w, 0, u->to.spec.nodes);
    u->to.spec.script_on = world_chance(w, 0.3) ? SCRIPT_ON_FIRST : SCRIPT_ON_EACH;
    u->to.spec.on_loss = world_chance(w, 0.5) ? LOSS_SHRINK : LOSS_WAIT;
    u->to.spec.need = (struct resources){
        .cpus = (int32_t)world_between(w, 1, 4), .memory_mib = world_between(w, 0, 4096)};
    u->to.spec.time_limit_ms = world_chance(w, 0.5) ? world_between(w, 60000, 1200000) : 0;
    u->to.spec.retries = some_retries(w);
    u->to.spec.deadline_ms =
        world_chance(w, 0.2) ? world_stamp(w).wall.ms + world_between(w, 1, 4000000) : 0;
    u->to.spec.finish_ms =
        world_chance(w, 0.5) ? world_stamp(w).wall.ms + world_between(w, 1, 4000000) : 0;
    u->to.spec.work_ms = world_chance(w, 0.8) ? world_between(w, 1000, 1200000) : 0;
    u->to.spec.nice = (int32_t)world_between(w, 0, 120);
    u->to.spec.begin_at.ms =
        world_chance(w, 0.5) ? world_stamp(w).wall.ms + world_between(w, 0, 30000) : WALL_NONE.ms;
    STR_COPY(u->to.spec.name, world_chance(w, 0.5) ? "sim" : "sim-2");
    STR_COPY(u->to.spec.pool,
        ((const char *[]){"", "", "", "burst", "base,burst"})[world_between(w, 0, 4)]);
    STR_COPY(u->to.spec.team, world_chance(w, 0.5) ? "red" : "blue");
    STR_COPY(u->to.spec.qos, qos[world_between(w, 0, 2)]);
    tick_post_work(w->tick, apply_updating, on_updated, u);
}

static void change_a_job(struct world *w)
{
    if (w->n_acked == 0)
        return;
    int64_t job = w->acked[world_between(w, 0, w->n_acked - 1)];
    if (world_chance(w, 0.4)) {
        update_a_job(w, job);
        return;
    }
    if (world_chance(w, 0.5)) {
        struct event drill = {.type = EV_DRILL,
            .drill = {.job = job, .by = "ann", .without_notice = world_chance(w, 0.3)}};
        tick_post(w->tick, &drill, on_done, NULL);
        return;
    }
    if (world_chance(w, 0.1)) {
        struct event hold = {.type = EV_HOLD, .hold = {.job = job, .by = "ann"}};
        tick_post(w->tick, &hold, on_done, NULL);
        return;
    }
    struct event ev = {.type = world_chance(w, 0.4)   ? EV_CANCEL
                               : world_chance(w, 0.5) ? EV_SAVE
                                                      : EV_REQUEUE,
        .cancel = {.job = job}};
    STR_COPY(ev.cancel.by, "ann");
    if (ev.type == EV_REQUEUE)
        ev.requeue.force = world_chance(w, 0.3);
    if (ev.type == EV_REQUEUE && w->seed % SIM_AWAY == 0)
        ev.requeue.from_scratch = world_chance(w, 0.3);
    if (ev.type == EV_CANCEL) {
        static const struct ranges some = {1, {{1, 2, 1}}};
        ev.cancel.tasks = world_chance(w, 0.2) ? &some : NULL;
        struct cancel_request *x = mem_alloc(sizeof(*x));
        *x = (struct cancel_request){w, job};
        tick_post(w->tick, &ev, on_cancelled, x);
    } else {
        tick_post(w->tick, &ev, on_done, NULL);
    }
}

static void drain_a_node(struct world *w)
{
    const struct link *l = list_first(model_nodes(w->model));
    int64_t skip = world_between(w, 0, 3);
    while (l && skip-- > 0)
        l = list_next(model_nodes(w->model), l);
    if (!l)
        return;
    struct event ev = {.type = world_chance(w, 0.5) ? EV_DRAIN : EV_UNDRAIN,
        .drain = {.node = LIST_ENTRY(l, struct node, in_all)->row.id}};
    /* by the time instead of by chance, so that seeds do what they did before there were reasons */
    static const char *const reasons[] = {"", "disk is swapped", "new driver"};
    if (ev.type == EV_DRAIN)
        STR_COPY(ev.drain.text, reasons[world_now(w) / 1000 % 3]);
    tick_post(w->tick, &ev, on_done, NULL);
}

/* Reserved nodes must not stay drained, or the last jobs may have no place. */
static void undrain_all(struct world *w)
{
    LIST_FOREACH (model_nodes(w->model), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        struct event ev = {.type = EV_UNDRAIN, .undrain = {.node = n->row.id}};
        if (n->row.drain)
            tick_post(w->tick, &ev, on_done, NULL);
    }
}

static void release_all(struct world *w)
{
    /* also tasks, which belayd holds when they make no progress */
    for (int64_t id = 1; id <= SIM_JOBS_MAX; id++) {
        const struct job *j = model_job(w->model, id);
        struct event ev = {.type = EV_RELEASE, .release = {.job = id, .by = "ann"}};
        if (j && j->row.hold == HOLD_STORE && world_chance(w, 0.5))
            store_unhide(w, id);
        else if (j && j->row.hold == HOLD_STORE)
            ev.release.from_scratch = true;
        if (j && j->row.hold != HOLD_NONE)
            tick_post(w->tick, &ev, on_done, NULL);
    }
}

/* ---- timers ---- */

static void on_user(struct timer *t, void *ctx)
{
    struct world *w = ctx;
    (void)t;
    if (w->up && !w->faults_over && w->n_acked > 0 && world_chance(w, 0.15))
        update_a_job(w, w->acked[world_between(w, 0, w->n_acked - 1)]);
    else if (w->up && w->n_submits < w->n_jobs)
        submit(w);
    else if (w->up && !w->faults_over && world_chance(w, 0.3))
        change_a_job(w);
    else if (w->up && !w->faults_over && world_chance(w, 0.2))
        drain_a_node(w);
    else if (w->up && w->faults_over)
        undrain_all(w);
    if (w->up && w->faults_over)
        racks_restore(w);
    else if (w->up)
        racks_disturb(w);
    if (w->up && !w->faults_over)
        quotas_disturb(w);
    if (w->up)
        idle_gpus_disturb(w);
    if (w->up)
        reservations_disturb(w);
    disks_disturb(w);
    holes_disturb(w);
    if (w->up && world_chance(w, 0.5))
        release_all(w);
    if (w->up)
        crons_ask(w);
    if (w->up)
        digests_ask(w);
    if (w->up)
        anomalies_ask(w);
    timer_start(&w->vt.timers, &w->user_timer,
        world_between(w, 100, w->n_submits < w->n_jobs ? 20000 : 60000));
}

void users_start(struct world *w)
{
    timer_init(&w->user_timer, on_user, w);
    timer_start(&w->vt.timers, &w->user_timer, 10);
}

void users_stop(struct world *w)
{
    timer_stop(&w->vt.timers, &w->user_timer);
}

/* True when everything was submitted, has ended and was cleaned. */
bool users_done(const struct world *w)
{
    struct model_counts c;
    if (!w->up || w->committing || tick_is_full(w->tick) || w->n_submits < w->n_jobs)
        return false;
    model_counts(w->model, &c);
    return c.pending == 0 && c.running == 0 && c.ckpt_gc == 0 && c.outbox == 0 && crons_done(w);
}
