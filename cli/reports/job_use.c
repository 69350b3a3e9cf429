/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reports/job_use.h"

#include "base/time.h"
#include "cli/cli.h"

static void add(const json_t *a, struct used *u)
{
    struct wall from = cli_time(a, "started_at"), to = cli_time(a, "ended_at");
    int64_t peak = cli_int(a, "memory_peak_bytes", 0), cpu_ms = cli_int(a, "cpu_ms", 0);
    to = wall_is_set(to) ? to : clock_wall(&clock_system);
    if (!wall_is_set(from) || (peak == 0 && cpu_ms == 0))
        return;
    u->cpu_ms += cpu_ms;
    u->user_ms += cli_int(a, "cpu_user_ms", 0);
    u->ranks++;
    u->ran_ms = to.ms - from.ms > u->ran_ms ? to.ms - from.ms : u->ran_ms;
    u->peak_sum += peak;
    if (peak > u->peak_most) {
        u->peak_most = peak;
        u->peak_rank = cli_int(a, "rank", 0);
    }
}

bool used_of(const json_t *detail, struct used *ret_used)
{
    const json_t *job = json_object_get(detail, "job"), *now = json_object_get(job, "usage"), *a;
    struct used u = {.peak_rank = -1};
    size_t i;
    json_array_foreach(json_object_get(detail, "attempts"), i, a)
    {
        if (cli_int(a, "attempt", 0) == cli_int(job, "attempts", 0))
            add(a, &u);
    }
    if (json_is_object(now)) { /* the job runs: the stored values are older */
        int64_t ranks = cli_int(job, "ranks", 1);
        struct wall from = WALL_NONE;
        json_array_foreach(json_object_get(detail, "attempts"), i, a)
        {
            if (cli_int(a, "attempt", 0) == cli_int(job, "attempts", 0))
                from = cli_time(a, "started_at");
        }
        u = (struct used){.cpu_ms = cli_int(now, "cpu_ms", 0),
            .user_ms = cli_int(now, "cpu_user_ms", 0),
            .ran_ms = wall_is_set(from) ? clock_wall(&clock_system).ms - from.ms : 0,
            .ranks = ranks,
            .peak_sum = cli_int(now, "memory_peak_bytes", 0)};
        u.peak_rank = u.peak_sum > 0 && ranks == 1 ? 0 : -1;
        u.peak_most = u.peak_sum / ranks;
    }
    *ret_used = u;
    return u.ranks > 0;
}
