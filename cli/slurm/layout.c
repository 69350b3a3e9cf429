/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/slurm/layout.h"

#include "base/minmax.h"

int layout_make(const struct layout_ask *ask, struct layout *ret_layout, struct err *e)
{
    int64_t each = ask->tasks_per_node > 0 ? ask->tasks_per_node : 1;
    struct layout l = {
        .nodes = min_i64(ask->nodes_max > 0 ? ask->nodes_max : ask->job_nodes, ask->job_nodes)};
    if (ask->nodes_min > ask->job_nodes)
        return err_set(e, ERR_INVALID, "Only %lld node%s can be used, asked for %lld",
            (long long)ask->job_nodes, ask->job_nodes == 1 ? "" : "s", (long long)ask->nodes_min);
    l.tasks = ask->tasks > 0 ? ask->tasks : l.nodes * each;
    l.nodes = min_i64(l.nodes, l.tasks);
    if (ask->tasks > 0 && ask->tasks_per_node > 0 && l.tasks > l.nodes * ask->tasks_per_node)
        return err_set(e, ERR_INVALID, "%lld tasks on %lld node%s are more than %lld for each",
            (long long)l.tasks, (long long)l.nodes, l.nodes == 1 ? "" : "s",
            (long long)ask->tasks_per_node);
    if (l.tasks > LAYOUT_TASKS_MAX)
        return err_set(e, ERR_INVALID, "a step has at most %d tasks, asked for %lld",
            LAYOUT_TASKS_MAX, (long long)l.tasks);
    *ret_layout = l;
    return 0;
}

int64_t layout_count(const struct layout *l, int64_t node)
{
    return l->tasks / l->nodes + (node < l->tasks % l->nodes);
}

int64_t layout_task(const struct layout *l, int64_t node, int64_t i)
{
    if (l->cyclic)
        return i * l->nodes + node;
    return node * (l->tasks / l->nodes) + min_i64(node, l->tasks % l->nodes) + i;
}

void layout_format(const struct layout *l, struct buf *out)
{
    for (int64_t node = 0, same; node < l->nodes; node += same) {
        same = node < l->tasks % l->nodes ? l->tasks % l->nodes - node : l->nodes - node;
        buf_printf(out, "%s%lld", node ? "," : "", (long long)layout_count(l, node));
        if (same > 1)
            buf_printf(out, "(x%lld)", (long long)same);
    }
}
