/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds the reserved nodes are in a rack with less power than all of them need, and so are
 * launched machines. Their draw is recomputed here from running jobs after every event.
 */
#include "simtest/world.h"

#include "base/str.h"

/* Power for four idle nodes plus two at full load; for five plus three: any gang alone fits. */
static const struct rack_options racks[] = {
    {.name = "rack", .max_w = 1200, .nodes = {{"key-reserved-[0-3]", 4, 100, 500}}, .n_nodes = 1},
    {.name = "launched", .max_w = 1700, .nodes = {{"", 5, 100, 500, "burst"}}, .n_nodes = 1},
};
#define RACKS (sizeof racks / sizeof racks[0])

bool racks_enabled(const struct world *w)
{
    return w->seed % SIM_RACKS == 2 && w->seed % SIM_QUOTAS != 1;
}

size_t racks_of(const struct world *w, const struct rack_options **ret_racks)
{
    *ret_racks = racks;
    return racks_enabled(w) ? RACKS : 0;
}

static void on_applied(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

static void post_condition(
    struct world *w, const struct node *n, enum node_throttle throttle, int64_t watts)
{
    struct event ev = {.type = EV_CONDITION,
        .condition = {.node = n->row.id, .throttle = throttle, .watts = watts}};
    tick_post(w->tick, &ev, on_applied, NULL);
}

/* At random times. */
void racks_disturb(struct world *w)
{
    const struct link *l = list_first(model_nodes(w->model));
    if (!racks_enabled(w) || !world_chance(w, 0.2))
        return;
    for (int64_t skip = world_between(w, 0, 3); l && skip > 0; skip--)
        l = list_next(model_nodes(w->model), l);
    if (l)
        post_condition(w, LIST_ENTRY(l, struct node, in_all),
            (enum node_throttle)world_between(w, NODE_THROTTLE_NONE, NODE_THROTTLE_BOARD),
            world_between(w, 0, 700));
}

void racks_restore(struct world *w)
{
    if (!racks_enabled(w))
        return;
    LIST_FOREACH (model_nodes(w->model), l)
        post_condition(w, LIST_ENTRY(l, struct node, in_all), NODE_THROTTLE_NONE, 0);
}

/* The draw grows with the greater of the used shares of CPUs and GPUs. */
static int64_t draw_of(const struct node *n, const struct rack_nodes *k)
{
    int64_t cpus = 0;
    LIST_FOREACH (&n->attempts, l)
        cpus += LIST_ENTRY(l, struct attempt, on_node)->allocated.cpus;
    return (k->full_w - k->idle_w) * cpus / n->row.total.cpus; /* they have no GPUs */
}

static void check_rack(struct world *w, const struct rack_options *r)
{
    const struct rack_nodes *k = &r->nodes[0];
    int64_t draw = k->n * k->idle_w, machines = 0;
    LIST_FOREACH (model_nodes(w->model), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (k->pool[0] ? str_eq(n->row.pool, k->pool) : str_starts(n->row.name, "key-reserved-"))
            draw += draw_of(n, k);
    }
    LIST_FOREACH (model_instances(w->model), l) {
        const struct instance_row *i = &LIST_ENTRY(l, struct instance, in_all)->row;
        machines += str_eq(i->pool, k->pool) && !i->reclaimed;
    }
    if (draw > r->max_w)
        world_fail(w, "rack %s draws %lld W, above its limit of %lld", r->name, (long long)draw,
            (long long)r->max_w);
    if (k->pool[0] && machines > k->n)
        world_fail(w, "there are %lld machines, but only %lld places in rack %s",
            (long long)machines, (long long)k->n, r->name);
}

void racks_check(struct world *w)
{
    for (size_t i = 0; i < RACKS && racks_enabled(w); i++)
        check_rack(w, &racks[i]);
}
