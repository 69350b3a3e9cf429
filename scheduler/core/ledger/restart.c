/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/ledger/restart.h"

#include "base/minmax.h"

/* Returns the time from *at to `to` and moves *at there. 0 if `to` is unknown or not after *at. Not
 * beyond `end`: the clock of a provider may be ahead. */
static int64_t pass(int64_t *at, struct wall to, int64_t end)
{
    if (!wall_is_set(to) || to.ms <= *at)
        return 0;
    const int64_t until = min_i64(to.ms, end), ms = max_i64(0, until - *at);
    *at += ms;
    return ms;
}

void restart_parts(const struct restart_moments *m, struct restart_parts *ret)
{
    const int64_t end = max_i64(m->stopped_at.ms, m->started_at.ms);
    const int64_t joined = wall_is_set(m->joined_at) ? min_i64(m->joined_at.ms, end) : end;
    struct wall booted = m->joined_at;
    int64_t at = m->stopped_at.ms;

    if (wall_is_set(booted))
        booted.ms = max_i64(0, booted.ms - m->start_ms);
    *ret = (struct restart_parts){.warm_up_ms = m->warm_up_ms};
    ret->wait_ms = pass(&at, m->intended_at, joined);
    ret->launch_ms = pass(&at, m->launched_at, joined);
    ret->boot_ms = pass(&at, booted, joined);
    ret->agent_ms = pass(&at, m->joined_at, joined);
    ret->place_ms = pass(&at, m->assigned_at, end);
    ret->prepare_ms = pass(&at, m->started_at, end);
    ret->restore_ms = max_i64(0, min_i64(m->restore_ms, ret->prepare_ms));
    ret->prepare_ms -= ret->restore_ms;
}
