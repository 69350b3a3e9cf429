/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/use: the capacity of the nodes and its use.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define PERIOD_MS (28 * DAY_MS)
#define STEP_MIN_MS 60000
#define STEP_MAX_MS (31 * DAY_MS)
#define STEPS_MAX 10000

static json_t *sum_json(const struct use_sum *s)
{
    return json_pack("{s:I,s:I,s:I,s:I}", "there_ms", (json_int_t)s->there_ms, "held_ms",
        (json_int_t)s->held_ms, "useful_ms", (json_int_t)s->useful_ms, "running_ms",
        (json_int_t)s->running_ms);
}

static int add_pool(void *ctx, const struct use_pool *p)
{
    json_array_append_new(
        ctx, json_pack("{s:o,s:b,s:o,s:o,s:I,s:I,s:I}", "pool", json_text(p->pool), "elastic",
                 (int)p->elastic, "cpus", sum_json(&p->cpus), "gpus", sum_json(&p->gpus),
                 "on_demand_uusd", (json_int_t)p->on_demand_uusd, "gpu_measured_ms",
                 (json_int_t)p->gpu_measured_ms, "gpu_busy_ms", (json_int_t)p->gpu_busy_ms));
    return 0;
}

struct use_request {
    struct use_of of;
    char pool[CORE_NAME_MAX];
};

/* False after an error reply. */
static bool read_period(struct request *q, struct use_of *of)
{
    struct wall now = clock_wall(q->api->o.timers->clock);
    if (!api_query_time(q, "from", &of->from) || !api_query_time(q, "to", &of->to) ||
        !api_query_i64(q, "step_ms", STEP_MIN_MS, STEP_MAX_MS, 0, &of->step_ms))
        return false;
    if (!wall_is_set(of->to) || of->to.ms > now.ms)
        of->to = now;
    if (!wall_is_set(of->from))
        of->from.ms = of->to.ms - PERIOD_MS;
    if (of->from.ms >= of->to.ms)
        api_reply_failure(
            q->x, ERR_INVALID, "from: expected a time before that of to, and before now");
    else if (of->step_ms > 0 && (of->to.ms - of->from.ms) / of->step_ms >= STEPS_MAX)
        api_reply_failure(q->x, ERR_INVALID,
            "step_ms: more than %d steps: expected longer ones, or a shorter time", STEPS_MAX);
    else
        return true;
    return false;
}

static int use_read(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    const struct use_of *u = &((struct use_request *)of)->of;
    size_t n = u->step_ms > 0 ? (size_t)((u->to.ms - u->from.ms + u->step_ms - 1) / u->step_ms) : 0;
    struct use_step *steps = mem_array(n + 1, sizeof *steps);
    json_t *pools = json_array(), *list = json_array();
    int rc = db_read_use(r, u, steps, add_pool, pools, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        json_array_append_new(list, json_pack("{s:o,s:o}", "cpus", sum_json(&steps[i].cpus), "gpus",
                                        sum_json(&steps[i].gpus)));
    free(steps);
    *ret_reply = json_pack("{s:o,s:o,s:o,s:o,s:o}", "from", api_json_time(u->from), "to",
        api_json_time(u->to), "pools", pools, "step_ms",
        u->step_ms > 0 ? json_integer(u->step_ms) : json_null(), "steps", list);
    return rc;
}

void api_use(struct request *q)
{
    struct use_request a = {0}, *kept;
    const char *pool = http_request_query(q->x, "pool");
    if (!read_period(q, &a.of))
        return;
    STR_COPY(a.pool, pool ? pool : "");
    kept = mem_dup(&a, sizeof(a));
    kept->of.pool = pool ? kept->pool : NULL;
    read_pool_run(q->api, q->x, &q->caller, READ_POOL_WAIT_MS, use_read, kept, free);
}
