/* SPDX-License-Identifier: Apache-2.0
 *
 * No job waits for spot when its time left is less than its work.
 */
#include "simtest/world.h"

#define DEADLINES_EVERY_MS 10000
#define NET_LATE_MS 120000 /* two examinations */

static bool is_spot_coming(const struct world *w, bool or_asked)
{
    LIST_FOREACH (model_instances(w->model), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (((or_asked && i->row.state == INSTANCE_INTENDED) ||
                i->row.state == INSTANCE_LAUNCHED) &&
            i->offer->row.market == MARKET_SPOT)
            return true;
    }
    return false;
}

/* Work left, and the pauses of its saves. */
static int64_t takes_ms(const struct world *w, const struct job *j)
{
    const struct job_row *r = &j->row;
    int64_t whole_ms = r->shown_ms > 0       ? r->shown_ms
                       : r->spec.work_ms > 0 ? r->spec.work_ms
                                             : r->spec.time_limit_ms,
            work_ms = whole_ms - r->done_ms;
    return work_ms + (pauses_enabled(w) ? pauses_left_ms(j, work_ms) : 0);
}

/* A job with less time left than work has had on-demand procurement for long: only on-demand
 * guarantees the deadline, and late jobs must finish as early as possible. While a launch on spot
 * is only asked for, it is not decided again. */
void check_deadlines(struct world *w)
{
    const struct stamp now = world_stamp(w);
    const bool is_new = w->checked_at < 0; /* belayd has just started and examined none yet */
    if (now.mono.ms < w->deadlines_at && !is_new)
        return;
    const int64_t passed_ms = now.mono.ms - w->deadlines_at + DEADLINES_EVERY_MS;
    w->deadlines_at = now.mono.ms + DEADLINES_EVERY_MS;
    for (int i = 0; i < w->n_acked; i++) {
        const struct job *j = model_job(w->model, w->acked[i]);
        struct sim_job *seen = world_job(w, w->acked[i]);
        if (!j || j->row.spec.finish_ms == 0)
            continue;
        int64_t left_ms = j->row.spec.finish_ms - now.wall.ms;
        if (is_new || j->row.state != JOB_PENDING ||
            (j->row.procurement != PROCURE_WAIT && j->row.procurement != PROCURE_SPOT) ||
            left_ms >= takes_ms(w, j) || is_spot_coming(w, false))
            seen->waits_ms = 0;
        else if (!is_spot_coming(w, true))
            seen->waits_ms += passed_ms;
        if (seen->waits_ms > NET_LATE_MS)
            world_fail(w,
                "job %lld waits for spot and takes %lld ms, with %lld ms left until its "
                "--finish-by",
                (long long)j->row.id, (long long)takes_ms(w, j), (long long)left_ms);
    }
}
