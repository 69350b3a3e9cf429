/* SPDX-License-Identifier: Apache-2.0
 *
 * The attempts of a replay:
 *
 *   RESTORE --> RUN <--> SAVE      notice, move: from RUN or SAVE to a last SAVE, then its end
 *                |
 *                +--> succeeded
 */
#include "sim/replay_parts.h"

#include "base/mem.h"
#include <stdlib.h>

static void enter(struct run *r, enum phase phase, int64_t ms)
{
    r->phase = phase;
    r->since = clock_mono(&r->w->vt.clock);
    timer_start(&r->w->vt.timers, &r->next, ms);
}

static void drop(struct run *r)
{
    timer_stop(&r->w->vt.timers, &r->next);
    link_remove(&r->in_all);
    free(r);
}

/* Its machine is taken. */
static void note_loss(struct run *r)
{
    struct progress *p = &r->w->jobs[r->id];
    if (r->phase == RESTORE)
        return;
    int64_t since = r->phase == RUN ? clock_mono(&r->w->vt.clock).ms - r->since.ms : 0;
    p->loss = (struct replay_loss){.job = r->id,
        .attempt = r->attempt,
        .save_ms = r->job->save_ms,
        .interval_ms = r->every_ms,
        .work_ms = r->done_ms + since - p->saved_ms};
}

static void end(struct run *r, enum end_kind kind)
{
    struct replay *w = r->w;
    if (kind == END_RECLAIMED)
        note_loss(r);
    struct event ev = {.type = EV_ATTEMPT_ENDED, .ended = {r->id, r->attempt, r->node, kind, 0, ""}};
    drop(r);
    replay_apply(w, ev);
}

static void go_on(struct run *r)
{
    int64_t left = r->job->work_ms - r->done_ms, ms = left;
    if (r->job->save_ms > 0) {
        r->every_ms = core_interval_ms(job_attempt(model_job(r->w->m, r->id)));
        ms = r->every_ms < left ? r->every_ms : left;
    }
    enter(r, RUN, ms);
}

static void started(struct run *r)
{
    struct replay *w = r->w;
    struct progress *p = &w->jobs[r->id];
    struct event ev = {.type = EV_ATTEMPT_STARTED,
        .started = {
            .job = r->id, .attempt = r->attempt, .node = r->node, .restored_progress = PROGRESS_NONE}};
    if (p->saved_ms > 0) {
        ev.started.restored = model_job(w->m, r->id)->row.last_good;
        ev.started.restore_ms = w->o->restore_ms;
    }
    replay_apply(w, ev);
    if (!p->started)
        w->r.wait_ms += clock_mono(&w->vt.clock).ms - p->submit_ms;
    p->started = true;
    go_on(r);
}

static void saved(struct run *r)
{
    struct event ev = {.type = EV_CHECKPOINT,
        .checkpoint = {.job = r->id,
            .node = r->node,
            .ref = {r->attempt, ++r->sequence},
            .bytes = r->job->ckpt_bytes,
            .stored_bytes = r->job->ckpt_bytes,
            .took_ms = r->job->save_ms,
            .pause_ms = r->job->save_ms,
            .progress = PROGRESS_NONE,
            .saved_at = clock_wall(&r->w->vt.clock),
            .cause = "periodic"}};
    r->w->jobs[r->id].saved_ms = r->done_ms;
    replay_apply(r->w, ev);
}

static void finished(struct run *r)
{
    struct replay *w = r->w;
    w->r.finished++;
    w->r.end_ms = clock_mono(&w->vt.clock).ms;
    w->r.spent_time_ms += w->r.end_ms - w->jobs[r->id].submit_ms;
    end(r, END_SUCCEEDED);
}

static void on_run(struct timer *t, void *ctx)
{
    struct run *r = ctx;
    struct replay *w = r->w;
    (void)t;
    switch (r->phase) {
    case RESTORE:
        started(r);
        break;
    case RUN:
        r->done_ms += clock_mono(&w->vt.clock).ms - r->since.ms;
        if (r->done_ms >= r->job->work_ms)
            finished(r);
        else
            enter(r, SAVE, r->job->save_ms);
        break;
    case SAVE:
        saved(r);
        go_on(r);
        break;
    case SAVE_AND_STOP:
        saved(r);
        end(r, r->stop_as);
        break;
    }
    replay_settle(w);
}

static struct run *run_of(const struct replay *w, int64_t job)
{
    LIST_FOREACH (&w->runs, l)
        if (LIST_ENTRY(l, struct run, in_all)->id == job)
            return LIST_ENTRY(l, struct run, in_all);
    return NULL;
}

/* A last save, and its end. Who cannot save runs on until its machine is gone; who is saving has done so already. */
static void stop(struct run *r, enum end_kind as)
{
    int64_t ran = clock_mono(&r->w->vt.clock).ms - r->since.ms;
    if (r->phase == SAVE_AND_STOP || r->job->save_ms == 0)
        return;
    r->stop_as = as;
    if (r->phase == RESTORE) {
        end(r, as);
    } else if (r->phase == SAVE) {
        r->phase = SAVE_AND_STOP;
    } else {
        r->done_ms += ran;
        enter(r, SAVE_AND_STOP, r->job->save_ms);
    }
}

void replay_place(struct replay *w, int64_t job, int64_t node)
{
    struct run *r = mem_alloc(sizeof *r);
    *r = (struct run){.w = w,
        .job = &w->o->jobs[job - 1],
        .id = job,
        .attempt = model_job(w->m, job)->row.attempts,
        .node = node,
        .done_ms = w->jobs[job].saved_ms};
    timer_init(&r->next, on_run, r);
    list_push_back(&w->runs, &r->in_all);
    w->r.attempts++;
    enter(r, RESTORE, r->done_ms > 0 ? w->o->restore_ms : 0);
}

void replay_move(struct replay *w, int64_t job)
{
    stop(run_of(w, job), END_EVICTED);
}

void replay_warn_runs(struct replay *w, int64_t node)
{
    LIST_FOREACH (&w->runs, l) {
        struct run *r = LIST_ENTRY(l, struct run, in_all);
        if (r->node == node)
            stop(r, END_RECLAIMED);
    }
}

void replay_drop_runs(struct replay *w, int64_t node)
{
    LIST_FOREACH (&w->runs, l) {
        struct run *r = LIST_ENTRY(l, struct run, in_all);
        if (r->node != node)
            continue;
        note_loss(r);
        drop(r);
    }
}
