/* SPDX-License-Identifier: Apache-2.0
 *
 * See offer_avoid.h.
 */
#include "scheduler/core/supply/offer_avoid.h"
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/deadline/spot_observations.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include "base/minmax.h"
#include "base/str.h"

#define AVOID_MAX 60 /* multiple of the first avoidance */

/* in_a_row: the counter that doubles the time; several refusals at one moment count once. */
static void avoid(struct model *m, struct offer *o, struct stamp now, int32_t *in_a_row,
    bool longest, const char *why)
{
    bool avoided = mono_is_set(o->row.avoid_until) && o->row.avoid_until.ms > now.mono.ms;
    int64_t times = 1;
    if (!avoided)
        ++*in_a_row;
    for (int n = 1; n < *in_a_row && times < AVOID_MAX; n++)
        times *= 2;
    if (longest || times > AVOID_MAX)
        times = AVOID_MAX;
    if (!avoided || longest)
        o->row.avoid_until = (struct mono){now.mono.ms + o->pool->row.refusal_backoff_ms * times};
    STR_COPY(o->why, why);
    model_note_reserve(m);
    model_note_change(m);
}

int64_t offer_avoid(
    struct model *m, struct offer *o, struct stamp now, bool longest, const char *why)
{
    avoid(m, o, now, &o->row.refused_in_a_row, longest, why);
    touch_offer(m, o);
    spot_observations_note(m, o, SPOT_AWAY, now.wall);
    procurement_refused(m, o, now);
    return o->row.avoid_until.ms - now.mono.ms;
}

void offer_note_life(struct model *m, const struct instance *i, struct stamp now)
{
    struct offer *o = i->offer;
    const struct instance_row *r = &i->row;
    if (!o || !wall_is_set(r->joined_at))
        return;
    int64_t boot_ms = r->joined_at.ms - max_i64(r->launched_at.ms, r->intended_at.ms);
    int64_t life_ms = now.wall.ms - r->joined_at.ms;
    if (life_ms >= boot_ms) {
        o->early_reclaims_in_a_row = 0;
        return;
    }
    if (!r->reclaimed)
        return;
    char after[32], why[CORE_TEXT_MAX];
    time_format_duration(max_i64(life_ms, 0), after, sizeof after);
    text_format(why, sizeof why, "reclaimed %s after it joined", after);
    avoid(m, o, now, &o->early_reclaims_in_a_row, false, why);
    procurement_refused(m, o, now);
}
