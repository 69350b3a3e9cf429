/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/telemetry.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define FLUSH_MS 5000
#define EARLY_MS 600000  /* how far a node's clock may be ahead */
#define LATE_MS 86400000 /* age of the oldest report that is stored */
#define LOOKED_UP_MAX 64 /* ended attempts in one status that are looked up in the database */
#define VALUE_MAX (INT64_C(1) << 58)

static const int64_t spans[LOAD_SPANS] = LOAD_SPANS_MS;

struct telemetry {
    struct telemetry_options o;
    struct loads_batch waiting;
    struct timer flush;
    bool posted; /* store_waiting is queued at the tick */
    bool was_full;
};

/* ---- incoming loads ---- */

struct attempt_place {
    int64_t attempt, node;
    int32_t rank; /* -1 = unknown */
};

static int find_rank(void *ctx, const struct attempt_row *a)
{
    struct attempt_place *w = ctx;
    if (a->attempt == w->attempt && a->node == w->node)
        w->rank = a->rank;
    return 0;
}

/* Returns the rank of an attempt on this node; -1 if there is none. *lookups: remaining number of
 * searches in the database, for attempts that have ended. */
static int32_t rank_of(
    const struct telemetry *t, int64_t job, int64_t attempt, int64_t node, int *lookups)
{
    const struct attempt *a = job_attempt_on(model_job(tick_model(t->o.tick), job), attempt, node);
    struct attempt_place w = {.attempt = attempt, .node = node, .rank = -1};
    struct err e;
    if (a)
        return a->row.rank;
    if ((*lookups)-- > 0 && db_read_attempts(t->o.reader, job, find_rank, &w, &e) != 0)
        log_warn("the attempts of a job cannot be read", log_i("job", job), log_err(&e));
    return w.rank;
}

static bool is_timely(const struct telemetry *t, int64_t at)
{
    int64_t now = clock_wall(t->o.timers->clock).ms;
    return at <= now + EARLY_MS && at >= now - LATE_MS;
}

/* Limits values so that their sums do not overflow. */
static void clamp_values(void *load, size_t size)
{
    int64_t *v = load;
    for (size_t i = 0; i < size / sizeof(*v); i++)
        v[i] = v[i] < 0 ? 0 : v[i] > VALUE_MAX ? VALUE_MAX : v[i];
}

static bool has_space(struct telemetry *t)
{
    bool full =
        t->waiting.n_tasks + t->waiting.n_gpus >= (size_t)TELEMETRY_WAITING_MAX * LOAD_SPANS;
    if (full && !t->was_full)
        log_warn("more telemetry arrives than can be stored: dropping some");
    t->was_full = full;
    return !full;
}

static void add_task(
    struct telemetry *t, int64_t node, int32_t rank, const struct wire_task_load *l)
{
    struct loads_batch *b = &t->waiting;
    b->tasks = mem_resize(b->tasks, b->n_tasks + LOAD_SPANS, sizeof(*b->tasks));
    for (int i = 0; i < LOAD_SPANS; i++) {
        struct task_load_row *r = &b->tasks[b->n_tasks++];
        *r = (struct task_load_row){.job = l->job,
            .attempt = l->attempt,
            .rank = rank,
            .node = node,
            .span_ms = spans[i],
            .at = l->at / spans[i] * spans[i],
            .load = l->load};
        clamp_values(&r->load, sizeof(r->load));
    }
}

static void add_gpu(struct telemetry *t, int64_t node, bool has_job, const struct wire_gpu_load *l)
{
    struct loads_batch *b = &t->waiting;
    b->gpus = mem_resize(b->gpus, b->n_gpus + LOAD_SPANS, sizeof(*b->gpus));
    for (int i = 0; i < LOAD_SPANS; i++) {
        struct gpu_load_row *r = &b->gpus[b->n_gpus++];
        *r = (struct gpu_load_row){.job = has_job ? l->job : 0,
            .attempt = has_job ? l->attempt : 0,
            .node = node,
            .span_ms = spans[i],
            .at = l->at / spans[i] * spans[i],
            .gpu_index = l->index,
            .is_slice = l->is_slice,
            .load = l->load};
        STR_COPY(r->gpu, l->gpu);
        clamp_values(&r->load, sizeof(r->load));
    }
}

void telemetry_take(
    void *ctx, int64_t node, const struct wire_status *st, int64_t tasks_above, int64_t gpus_above)
{
    struct telemetry *t = ctx;
    int lookups = LOOKED_UP_MAX;
    for (size_t i = 0; i < st->n_task_loads; i++) {
        const struct wire_task_load *l = &st->task_loads[i];
        int32_t rank = l->no > tasks_above && is_timely(t, l->at) && has_space(t)
                           ? rank_of(t, l->job, l->attempt, node, &lookups)
                           : -1;
        if (rank >= 0)
            add_task(t, node, rank, l);
    }
    for (size_t i = 0; i < st->n_gpu_loads; i++) {
        const struct wire_gpu_load *l = &st->gpu_loads[i];
        if (l->no > gpus_above && is_timely(t, l->at) && has_space(t))
            add_gpu(t, node, l->job > 0 && rank_of(t, l->job, l->attempt, node, &lookups) >= 0, l);
    }
    if (t->waiting.n_tasks + t->waiting.n_gpus > 0 && !t->posted && !timer_is_running(&t->flush))
        timer_start(t->o.timers, &t->flush, FLUSH_MS);
}

/* ---- storing ---- */

static int store_waiting(void *ctx, struct tick *tick, int64_t *ret_id, struct err *e)
{
    struct telemetry *t = ctx;
    (void)ret_id, (void)e;
    for (int i = 0; i < LOAD_SPANS; i++)
        t->waiting.from[i] = clock_wall(t->o.timers->clock).ms - t->o.keep_ms[i];
    tick_put_loads(tick, &t->waiting);
    return 0;
}

static void on_put(void *ctx, const struct err *e, int64_t id)
{
    struct telemetry *t = ctx;
    (void)id;
    t->posted = false;
    if (e && e->kind == ERR_UNAVAILABLE)
        return; /* belayd is stopping */
    if (t->waiting.n_tasks + t->waiting.n_gpus > 0)
        timer_start(t->o.timers, &t->flush, FLUSH_MS);
}

static void on_flush(struct timer *timer, void *ctx)
{
    struct telemetry *t = ctx;
    (void)timer;
    t->posted = true;
    tick_post_work(t->o.tick, store_waiting, on_put, t);
}

struct telemetry *telemetry_create(const struct telemetry_options *o)
{
    struct telemetry *t = mem_alloc(sizeof(*t));
    t->o = *o;
    timer_init(&t->flush, on_flush, t);
    return t;
}

void telemetry_set_ages(struct telemetry *t, const int64_t keep_ms[LOAD_SPANS])
{
    memcpy(t->o.keep_ms, keep_ms, sizeof(t->o.keep_ms));
}

void telemetry_destroy(struct telemetry *t)
{
    if (!t)
        return;
    timer_stop(t->o.timers, &t->flush);
    free(t->waiting.tasks);
    free(t->waiting.gpus);
    free(t);
}
