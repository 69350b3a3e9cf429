/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that stand still while they are saved, in some worlds: for a good part of their time,
 * which a job with a finish time must not take for work. Spot is away there for an hour of every
 * two, so that such a job has to stop waiting for it.
 */
#include "simtest/world.h"
#include "scheduler/core/lifecycle/save_interval.h"

#include <assert.h>

#define SPELL_MS (3600 * 1000)
#define EVERY_MIN_MS 15000
#define EVERY_MAX_MS 30000
#define STEPS_MIN 3000
#define STEPS_MAX 60000 /* 100 minutes */

bool pauses_enabled(const struct world *w)
{
    return w->seed % SIM_PAUSES == 7 && w->seed % SIM_BUDGETS != 1;
}

bool pauses_spot_is_away(const struct world *w)
{
    return pauses_enabled(w) && !w->faults_over && world_now(w) / SPELL_MS % 2 == 1;
}

void pauses_make_job(const struct world *w, struct prng *p, struct sim_job *j)
{
    if (!pauses_enabled(w))
        return;
    j->total_steps = prng_range(p, STEPS_MIN, STEPS_MAX);
    j->pause_pct = (int32_t)prng_range(p, 50, 100);
}

void pauses_make_submission(struct world *w, struct job_row *row)
{
    if (!pauses_enabled(w) || row->spec.market != WISH_ANY)
        return;
    row->spec.ckpt_every_ms = world_between(w, EVERY_MIN_MS, EVERY_MAX_MS);
    row->spec.work_ms = world_between(w, STEPS_MIN * STEP_MS, STEPS_MAX * STEP_MS);
    row->spec.finish_ms =
        world_stamp(w).wall.ms + row->spec.work_ms + world_between(w, 0, 2 * row->spec.work_ms);
}

/* ---- a program ---- */

static void await_end(struct sim_attempt *x)
{
    struct world *w = x->agent->w;
    int64_t steps = world_job(w, x->job)->total_steps - x->base_steps;
    timer_start(&w->vt.timers, &x->finish, steps * STEP_MS - pauses_ran_ms(x));
}

int64_t pauses_ran_ms(const struct sim_attempt *x)
{
    int64_t until_ms = x->stands_since_ms > 0 ? x->stands_since_ms : world_now(x->agent->w);
    return until_ms - x->ran_from_ms - x->stood_ms;
}

int64_t pauses_begin(struct sim_attempt *x)
{
    struct world *w = x->agent->w;
    if (!pauses_enabled(w) || x->has_no_script)
        return 0;
    assert(x->stands_since_ms == 0);
    x->stands_since_ms = world_now(w);
    timer_stop(&w->vt.timers, &x->finish);
    return x->every_ms * world_job(w, x->job)->pause_pct / 100 + 1;
}

int64_t pauses_end(struct sim_attempt *x, bool is_reported)
{
    struct world *w = x->agent->w;
    if (x->stands_since_ms == 0)
        return 0;
    int64_t ms = world_now(w) - x->stands_since_ms;
    x->stood_ms += ms;
    x->stands_since_ms = 0;
    if (!is_reported)
        world_job(w, x->job)->unreported_ms += ms;
    if (x->phase == SIM_RUNNING)
        await_end(x);
    return ms;
}

int64_t pauses_left_ms(const struct job *j, int64_t work_ms)
{
    int64_t every_ms = core_interval_with(j, j->row.save_ms, j->row.pause_ms);
    return every_ms > 0 && work_ms > 0 ? (work_ms - 1) / every_ms * j->row.pause_ms : 0;
}
