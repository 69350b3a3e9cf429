/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/idle_gpus.h"

#include "base/load.h"
#include "scheduler/core/lifecycle/idle_gpus.h"

#define JUDGED_MS 30000  /* minimum of an observed minute */
#define EARLY_MS 600000  /* how far a node's clock may be ahead */
#define LATE_MS 86400000 /* age of the oldest minute that counts */

enum verdict { UNKNOWN, IDLE, BUSY };

static bool is_of(const struct wire_gpu_load *l, const struct wire_gpu_load *minute)
{
    return l->at == minute->at && l->job == minute->job && l->attempt == minute->attempt;
}

/* One busy GPU suffices for BUSY; IDLE needs a reading of every GPU. */
static enum verdict judge(const struct wire_status *st, const struct wire_gpu_load *minute,
    int64_t above, int64_t n_gpus, int32_t busy_pct)
{
    int64_t n_idle = 0;
    for (size_t i = 0; i < st->n_gpu_loads; i++) {
        const struct wire_gpu_load *l = &st->gpu_loads[i];
        if (l->no <= above || !is_of(l, minute) || l->is_slice || l->load.known_ms < JUDGED_MS)
            continue;
        if (l->load.busy_ms * 100 >= busy_pct * l->load.known_ms)
            return BUSY;
        n_idle++;
    }
    return n_idle >= n_gpus ? IDLE : UNKNOWN;
}

static void on_posted(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

/* Judges the minute that begins with load `i`, unless an earlier load is of the same minute. */
static void take_minute(
    struct tick *t, int64_t node, const struct wire_status *st, int64_t above, size_t i)
{
    const struct wire_gpu_load *minute = &st->gpu_loads[i];
    const struct job *j = model_job(tick_model(t), minute->job);
    const struct attempt *a = j ? job_attempt_on(j, minute->attempt, node) : NULL;
    const struct idle_gpus_policy *p = a ? idle_gpus_policy_of(j) : NULL;
    for (size_t k = 0; k < i; k++)
        if (st->gpu_loads[k].no > above && is_of(&st->gpu_loads[k], minute))
            return;
    if (!p || a->allocated.gpus == 0 || !wall_is_set(a->row.started_at))
        return;
    enum verdict v = judge(st, minute, above, a->allocated.gpus, p->busy_pct);
    if (v == UNKNOWN || (v == IDLE && minute->at < a->row.started_at.ms))
        return;
    struct event ev = {.type = EV_GPUS,
        .gpus = {.job = minute->job,
            .attempt = minute->attempt,
            .node = node,
            .idle_since = v == IDLE ? (struct wall){minute->at} : WALL_NONE}};
    tick_post(t, &ev, on_posted, NULL);
}

void idle_gpus_take(
    struct tick *t, int64_t node, const struct wire_status *st, int64_t above, struct wall now)
{
    for (size_t i = 0; i < st->n_gpu_loads; i++) {
        const struct wire_gpu_load *l = &st->gpu_loads[i];
        if (l->no > above && l->job > 0 && l->at <= now.ms + EARLY_MS && l->at >= now.ms - LATE_MS)
            take_minute(t, node, st, above, i);
    }
}
