/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/conditions.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "telemetry/throttle.h"
#include <stdlib.h>

#define EARLY_MS 600000 /* how far a node's clock may be ahead */
#define LATE_MS 180000  /* age of the oldest minute that is used for decisions */

/* The condition of a node that has reported something. */
struct condition {
    enum node_throttle throttle; /* the last cause of throttling */
    int64_t throttled_at;        /* wall time of throttle, in ms; 0 = never */
    int64_t watts;               /* the power draw of its GPUs */
    int64_t drawn_at;            /* wall time of watts, in ms; 0 = never */
    enum node_throttle posted_throttle;
    int64_t posted_watts;
};

struct conditions {
    struct conditions_options o;
    struct map nodes; /* struct condition by id */
};

struct conditions *conditions_create(const struct conditions_options *o)
{
    struct conditions *c = mem_alloc(sizeof(*c));
    c->o = *o;
    return c;
}

void conditions_set_throttled(struct conditions *c, int64_t throttled_ms)
{
    c->o.throttled_ms = throttled_ms;
}

void conditions_destroy(struct conditions *c)
{
    if (!c)
        return;
    struct condition *k;
    for (size_t pos = 0; (k = map_next(&c->nodes, &pos, &(int64_t){0})) != NULL;)
        free(k);
    map_deinit(&c->nodes);
    free(c);
}

/* ---- one minute ---- */

/* Returns the start of the newest minute that was not reported before and may be used for
 * decisions; -1 if there is none. */
static int64_t newest_minute(const struct wire_status *st, int64_t above, int64_t now)
{
    int64_t newest = -1;
    for (size_t i = 0; i < st->n_gpu_loads; i++) {
        const struct wire_gpu_load *l = &st->gpu_loads[i];
        if (l->no > above && l->at > newest && l->at <= now + EARLY_MS && l->at >= now - LATE_MS)
            newest = l->at;
    }
    return newest;
}

static bool is_countable(const struct wire_gpu_load *l, int64_t at)
{
    return l->at == at && !l->is_slice && l->load.ms > 0;
}

/* Returns the mean power draw in watts of the GPU of load `first` over its minute, in which several
 * attempts may have used it; 0 if unknown, or if an earlier load counted this GPU. */
static int64_t watts_of(const struct wire_status *st, size_t first)
{
    const struct wire_gpu_load *of = &st->gpu_loads[first];
    int64_t energy_mj = 0, ms = 0;
    for (size_t i = 0; i < st->n_gpu_loads; i++) {
        const struct wire_gpu_load *l = &st->gpu_loads[i];
        bool same = is_countable(l, of->at) && str_eq(l->gpu, of->gpu);
        if (same && i < first)
            return 0; /* counted already */
        if (same && l->load.energy_mj > 0 && l->load.energy_mj < RACK_WATTS_MAX * l->load.ms) {
            energy_mj += l->load.energy_mj;
            ms += l->load.ms;
        }
    }
    return ms > 0 ? energy_mj / ms : 0;
}

static void update_condition(
    struct conditions *c, struct condition *k, const struct wire_status *st, int64_t at)
{
    static const enum node_throttle throttles[] = {[GPU_THROTTLE_NONE] = NODE_THROTTLE_NONE,
        [GPU_THROTTLE_POWER] = NODE_THROTTLE_POWER,
        [GPU_THROTTLE_BOARD] = NODE_THROTTLE_BOARD,
        [GPU_THROTTLE_HEAT] = NODE_THROTTLE_HEAT};
    enum gpu_throttle worst = GPU_THROTTLE_NONE;
    k->watts = 0;
    for (size_t i = 0; i < st->n_gpu_loads; i++) {
        if (!is_countable(&st->gpu_loads[i], at))
            continue;
        enum gpu_throttle by = gpu_throttle_of(&st->gpu_loads[i].load, c->o.limits);
        worst = by > worst ? by : worst;
        k->watts += watts_of(st, i);
    }
    k->drawn_at = clock_wall(c->o.timers->clock).ms;
    if (worst == GPU_THROTTLE_NONE)
        return;
    k->throttle = throttles[worst];
    k->throttled_at = k->drawn_at;
}

/* ---- facts ---- */

static void on_posted(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

/* cpu_mw: the CPUs' power draw that the node reports now, in mW; 0 = not reported. */
static void post_node_condition(
    struct conditions *c, int64_t node, struct condition *k, int64_t cpu_mw)
{
    int64_t now = clock_wall(c->o.timers->clock).ms;
    const struct node *n = model_node(tick_model(c->o.tick), node);
    bool is_throttled = k->throttled_at > 0 && now - k->throttled_at < c->o.throttled_ms;
    int64_t gpus_w = k->drawn_at > 0 && now - k->drawn_at < CONDITION_STALE_MS ? k->watts : 0;
    int64_t watts = n && n->rack ? gpus_w + (cpu_mw + 999) / 1000 : 0;
    struct event ev = {.type = EV_CONDITION,
        .condition = {.node = node,
            .throttle = is_throttled ? k->throttle : NODE_THROTTLE_NONE,
            .watts = watts}};
    if (ev.condition.throttle == k->posted_throttle && ev.condition.watts == k->posted_watts)
        return;
    k->posted_throttle = ev.condition.throttle;
    k->posted_watts = ev.condition.watts;
    tick_post(c->o.tick, &ev, on_posted, NULL);
}

void conditions_take(
    struct conditions *c, int64_t node, const struct wire_status *st, int64_t above)
{
    int64_t at = newest_minute(st, above, clock_wall(c->o.timers->clock).ms);
    struct condition *k = map_get(&c->nodes, node);
    if (!k && at < 0 && st->cpu_mw == 0)
        return;
    if (!k) {
        k = mem_alloc(sizeof(*k));
        map_put(&c->nodes, node, k);
    }
    if (at >= 0)
        update_condition(c, k, st, at);
    post_node_condition(c, node, k, st->cpu_mw);
}
