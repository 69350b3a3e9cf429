/* SPDX-License-Identifier: Apache-2.0
 *
 * The attempts of a replay:
 *
 *   RESTORE --> RUN <--> SAVE      notice, move: from RUN or SAVE to a last SAVE, then its end
 *                |
 *                +--> succeeded
 *
 * An attempt on several nodes is BROKEN when one of its machines has gone: it makes no further
 * progress, and the core stops its other ranks.
 */
#include "replay/replay_parts.h"

#include "base/mem.h"
#include "scheduler/core/lifecycle/save_interval.h"
#include <stdlib.h>
#include <string.h>

static void enter(struct run *r, enum phase phase, int64_t ms)
{
    r->phase = phase;
    r->since = clock_mono(&r->w->vt.clock);
    timer_start(&r->w->vt.timers, &r->next, ms);
}

void replay_free_run(struct run *r)
{
    free(r->nodes);
    free(r);
}

static void drop(struct run *r)
{
    timer_stop(&r->w->vt.timers, &r->next);
    r->w->jobs[r->id].run = NULL;
    r->w->n_runs--;
    link_remove(&r->in_all);
    replay_free_run(r);
}

/* Removes a rank that has ended, and with the last one the run. */
static void drop_rank(struct run *r, size_t i)
{
    struct replay_pool *p = replay_pool_of_node(r->w, r->nodes[i]);
    double ms = (double)(clock_mono(&r->w->vt.clock).ms - r->placed_ms);
    if (p) {
        p->used_ms[0] += ms * r->job->need.cpus;
        p->used_ms[1] += ms * r->job->need.gpus;
    }
    memmove(&r->nodes[i], &r->nodes[i + 1], (r->n_nodes - i - 1) * sizeof *r->nodes);
    if (--r->n_nodes == 0)
        drop(r);
}

/* Records what the run loses: its machine is reclaimed. */
static void note_loss(struct run *r)
{
    struct progress *p = &r->w->jobs[r->id];
    if (r->phase == RESTORE || r->phase == BROKEN)
        return;
    int64_t since = r->phase == RUN ? clock_mono(&r->w->vt.clock).ms - r->since.ms : 0;
    p->loss = (struct replay_loss){.job = r->id,
        .attempt = r->attempt,
        .save_ms = r->job->save_ms,
        .interval_ms = r->every_ms,
        .work_ms = r->done_ms + since - p->saved_ms};
}

/* Ends a rank, for the reason that the core stops it for. On a reclaimed machine the reason is the
 * reclaim, as an agent would report it, whatever else stops the job. */
static void end_rank(struct run *r, size_t i, enum end_kind kind)
{
    struct replay *w = r->w;
    const struct attempt *a = job_attempt_on(model_job(w->m, r->id), r->attempt, r->nodes[i]);
    if (kind != END_SUCCEEDED && a && a->row.state == ATTEMPT_STOPPING)
        kind = a->node->row.notice == NOTICE_TYPE_RECLAIM ? END_RECLAIMED : a->row.stop_reason;
    struct event ev = {
        .type = EV_ATTEMPT_ENDED, .ended = {r->id, r->attempt, r->nodes[i], kind, 0, ""}};
    drop_rank(r, i);
    replay_apply(w, ev);
}

static void end(struct run *r, enum end_kind kind)
{
    if (kind == END_RECLAIMED)
        note_loss(r);
    for (size_t n = r->n_nodes; n > 0; n--)
        end_rank(r, 0, kind);
}

static void run_until_next_save(struct run *r)
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
        .started = {.job = r->id, .attempt = r->attempt, .restored_progress = PROGRESS_NONE}};
    if (p->saved_ms > 0) {
        ev.started.restored = model_job(w->m, r->id)->row.last_good;
        ev.started.restore_ms = w->o->restore_ms;
    }
    for (size_t i = 0; i < r->n_nodes; i++) { /* each rank reads its part of the checkpoint */
        int64_t n = (int64_t)r->n_nodes, k = (int64_t)i;
        ev.started.node = r->nodes[i];
        ev.started.bytes =
            p->saved_ms > 0 ? r->job->ckpt_bytes * (k + 1) / n - r->job->ckpt_bytes * k / n : 0;
        replay_apply(w, ev);
    }
    if (!p->started) {
        w->r.wait_ms += clock_mono(&w->vt.clock).ms - p->submit_ms;
        if (w->o->outcomes) {
            struct replay_outcome *o = &w->o->outcomes[r->id - 1];
            o->started_ms = clock_mono(&w->vt.clock).ms;
            o->pool = (size_t)map_get(&w->pool_of_node, r->nodes[0]) - 1;
        }
    }
    p->started = true;
    run_until_next_save(r);
}

/* Counts the checkpoints in the store, of which those beyond REPLAY_KEEP are deleted at once, and
 * reports their size if storage costs money. */
static void report_kept(struct run *r)
{
    struct progress *p = &r->w->jobs[r->id];
    p->kept += p->kept < REPLAY_KEEP;
    if (r->w->o->limits.store_uusd_gib_month > 0)
        replay_apply(r->w, (struct event){.type = EV_KEPT,
                               .kept = {.job = r->id,
                                   .attempt = r->attempt,
                                   .node = r->nodes[0],
                                   .bytes = p->kept * r->job->ckpt_bytes}});
}

static void saved(struct run *r)
{
    struct event ev = {.type = EV_CHECKPOINT,
        .checkpoint = {.job = r->id,
            .ref = {r->attempt, ++r->sequence},
            .bytes = r->job->ckpt_bytes,
            .stored_bytes = r->job->ckpt_bytes,
            .took_ms = r->job->save_ms,
            .pause_ms = r->job->save_ms,
            .progress = r->job->finish_ms > 0 ? r->done_ms : PROGRESS_NONE,
            .saved_at = clock_wall(&r->w->vt.clock),
            .cause = "periodic"}};
    r->w->jobs[r->id].saved_ms = r->done_ms;
    for (size_t i = 0; i < r->n_nodes; i++) { /* each rank reports the checkpoint */
        ev.checkpoint.node = r->nodes[i];
        replay_apply(r->w, ev);
    }
    report_kept(r);
}

/* The program reports its progress, and waits for its save. */
static void save(struct run *r, enum phase phase)
{
    if (r->job->finish_ms > 0)
        replay_apply(r->w, (struct event){.type = EV_PROGRESS,
                               .progress = {.job = r->id,
                                   .attempt = r->attempt,
                                   .done = r->done_ms,
                                   .total = r->job->work_ms}});
    enter(r, phase, r->job->save_ms);
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
            save(r, SAVE);
        break;
    case SAVE:
        saved(r);
        run_until_next_save(r);
        break;
    case SAVE_AND_STOP:
        saved(r);
        end(r, r->stop_as);
        break;
    case BROKEN:
        break;
    }
    replay_settle(w);
}

/* Begins a last save, after which the run ends. A save in progress becomes the last one. */
static void stop(struct run *r, enum end_kind as)
{
    int64_t ran = clock_mono(&r->w->vt.clock).ms - r->since.ms;
    if (r->phase == SAVE_AND_STOP || r->phase == BROKEN)
        return;
    r->stop_as = as;
    if (r->phase == RESTORE) {
        end(r, as);
    } else if (r->phase == SAVE) {
        r->phase = SAVE_AND_STOP;
    } else {
        r->done_ms += ran;
        save(r, SAVE_AND_STOP);
    }
}

static size_t rank_on(const struct run *r, int64_t node)
{
    size_t i = 0;
    while (i < r->n_nodes && r->nodes[i] != node)
        i++;
    return i;
}

void replay_place(struct replay *w, int64_t job)
{
    const struct job *j = model_job(w->m, job);
    struct run *r = mem_alloc(sizeof *r);
    *r = (struct run){.w = w,
        .job = &w->o->jobs[job - 1],
        .id = job,
        .attempt = j->row.attempts,
        .nodes = mem_array((size_t)j->row.ranks, sizeof *r->nodes),
        .placed_ms = clock_mono(&w->vt.clock).ms,
        .done_ms = w->jobs[job].saved_ms};
    LIST_FOREACH (&j->ranks, l)
        r->nodes[r->n_nodes++] = LIST_ENTRY(l, struct attempt, in_job)->row.node;
    timer_init(&r->next, on_run, r);
    list_push_back(&w->runs, &r->in_all);
    w->n_runs++;
    w->jobs[job].run = r;
    w->r.attempts++;
    enter(r, RESTORE, r->done_ms > 0 ? w->o->restore_ms : 0);
}

/* A run that cannot save stops at once. */
void replay_stop(struct replay *w, const struct attempt_row *a)
{
    struct run *r = w->jobs[a->job].run;
    size_t i = r && r->attempt == a->attempt ? rank_on(r, a->node) : 0;
    if (!r || r->attempt != a->attempt || i == r->n_nodes)
        return;
    if (a->save_first && r->job->save_ms > 0 && r->phase != BROKEN)
        stop(r, a->stop_reason);
    else
        end_rank(r, i, a->stop_reason);
}

/* A run that cannot save continues until its machine is gone. */
void replay_warn_runs(struct replay *w, int64_t node)
{
    LIST_FOREACH (&w->runs, l) {
        struct run *r = LIST_ENTRY(l, struct run, in_all);
        if (r->job->save_ms > 0 && rank_on(r, node) < r->n_nodes)
            stop(r, END_RECLAIMED);
    }
}

void replay_drop_runs(struct replay *w, int64_t node)
{
    LIST_FOREACH (&w->runs, l) {
        struct run *r = LIST_ENTRY(l, struct run, in_all);
        size_t i = rank_on(r, node);
        if (i == r->n_nodes)
            continue;
        note_loss(r);
        timer_stop(&w->vt.timers, &r->next);
        r->phase = BROKEN;
        drop_rank(r, i);
    }
}

/* Work that is not saved is lost, as on a machine that disappears. */
void replay_end_runs(struct replay *w)
{
    for (struct link *l; (l = list_first(&w->runs));)
        end(LIST_ENTRY(l, struct run, in_all), END_DRAINED);
}
