/* SPDX-License-Identifier: Apache-2.0
 *
 * See launch_pace.h.
 */
#include "scheduler/engine/launch_pace.h"

#include "base/minmax.h"
#include "base/str.h"

#define TOKEN 60000           /* units in one token; a rate of 1/min adds 1 unit per ms */
#define DEBT_MAX (60 * TOKEN) /* maximum debt by repeated calls */

static struct mono now(const struct launch_pace *p)
{
    return clock_mono(p->timers->clock);
}

static int64_t full_level(const struct launch_pace *p)
{
    return max_i64(p->ops->launch_burst, 1) * TOKEN;
}

static void refill(struct launch_pace *p)
{
    int64_t ms = max_i64(now(p).ms - p->filled_at.ms, 0), full = full_level(p);
    p->filled_at = now(p);
    p->level = ms >= (full - p->level) / p->per_minute ? full : p->level + ms * p->per_minute;
}

static bool take_token(struct launch_pace *p)
{
    if (p->per_minute == 0)
        return true;
    refill(p);
    if (p->level < TOKEN)
        return false;
    p->level -= TOKEN;
    return true;
}

static void wait_for_token(struct launch_pace *p)
{
    timer_start(p->timers, &p->timer, (TOKEN - p->level + p->per_minute - 1) / p->per_minute);
}

static void on_timer(struct timer *t, void *ctx)
{
    struct launch_pace *p = ctx;
    (void)t;
    while (!list_is_empty(&p->waiting) && take_token(p)) {
        struct launch_turn *turn = LIST_ENTRY(list_pop(&p->waiting), struct launch_turn, link);
        turn->start(turn);
    }
    if (!list_is_empty(&p->waiting))
        wait_for_token(p);
}

void launch_pace_init(struct launch_pace *p, struct timers *timers,
    const struct cloud_driver_ops *ops, const char *region)
{
    *p = (struct launch_pace){.timers = timers, .ops = ops, .per_minute = ops->launches_per_minute};
    STR_COPY(p->region, region);
    p->level = full_level(p);
    p->filled_at = now(p);
    timer_init(&p->timer, on_timer, p);
}

void launch_pace_deinit(struct launch_pace *p)
{
    timer_stop(p->timers, &p->timer);
}

void launch_pace_set_rate(struct launch_pace *p, int64_t per_minute)
{
    if (p->per_minute > 0)
        refill(p);
    p->per_minute = per_minute;
    if (!list_is_empty(&p->waiting))
        timer_start(p->timers, &p->timer, 0);
}

bool launch_pace_enter(struct launch_pace *p, struct launch_turn *turn)
{
    if (list_is_empty(&p->waiting) && take_token(p))
        return true;
    if (list_is_empty(&p->waiting))
        wait_for_token(p);
    list_push_back(&p->waiting, &turn->link);
    return false;
}

bool launch_turn_is_waiting(const struct launch_turn *turn)
{
    return link_is_in(&turn->link);
}

void launch_turn_leave(struct launch_turn *turn)
{
    link_remove(&turn->link);
}

void launch_pace_repeat(struct launch_pace *p)
{
    if (p->per_minute > 0 && !take_token(p))
        p->level = max_i64(p->level - TOKEN, -DEBT_MAX);
}

void launch_pace_throttled(struct launch_pace *p)
{
    if (p->per_minute == 0)
        return;
    refill(p);
    p->level = min_i64(p->level, 0);
}
