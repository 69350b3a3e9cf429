/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/metrics/node_gpus.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/metrics/by_node.h"
#include <stdlib.h>

/* Zeroed: not reported. */
struct node_loads {
    struct gpu_load last[NODE_GPUS_MAX];
};

struct node_gpus {
    struct map nodes; /* node -> struct node_loads */
    int64_t finest_ms;
};

struct node_gpus *node_gpus_create(void)
{
    struct node_gpus *g = mem_alloc(sizeof *g);
    g->finest_ms = (int64_t[])LOAD_SPANS_MS[0];
    return g;
}

void node_gpus_destroy(struct node_gpus *g)
{
    by_node_deinit(&g->nodes);
    free(g);
}

static struct node_loads *loads_of(struct node_gpus *g, int64_t node)
{
    struct node_loads *n = map_get(&g->nodes, node);
    if (!n) {
        n = mem_alloc(sizeof *n);
        map_put(&g->nodes, node, n);
    }
    return n;
}

void node_gpus_committed(
    struct node_gpus *g, const struct model *m, const struct loads_batch *loads)
{
    for (size_t i = 0; i < loads->n_gpus; i++) {
        const struct gpu_load_row *r = &loads->gpus[i];
        if (r->span_ms == g->finest_ms && !r->is_slice && r->load.ms > 0 && r->gpu_index >= 0 &&
            r->gpu_index < NODE_GPUS_MAX && model_node(m, r->node))
            loads_of(g, r->node)->last[r->gpu_index] = r->load;
    }
    by_node_trim(&g->nodes, m);
}

/* ---- what is written ---- */

static double ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

enum gauge { BUSY, MEMORY_USED, MEMORY, POWER, TEMPERATURE, THROTTLED, GAUGES };

static const struct {
    const char *name, *help;
} gauges[GAUGES] = {
    [BUSY] = {"belay_node_gpu_busy_ratio", "Part of the time in which a node's GPUs were busy."},
    [MEMORY_USED] = {"belay_node_gpu_memory_used_bytes", "Memory of a node's GPUs in use."},
    [MEMORY] = {"belay_node_gpu_memory_bytes", "Memory of a node's GPUs."},
    [POWER] = {"belay_node_gpu_power_watts", "Power that a node's GPUs draw."},
    [TEMPERATURE] = {"belay_node_gpu_temperature_celsius",
        "Temperature of the warmest GPU of a node."},
    [THROTTLED] = {"belay_node_gpu_throttled_ratio",
        "Part of the time in which a node's GPUs were slowed down by heat, power or the board."},
};

static double value_of(const struct node_loads *n, enum gauge g)
{
    double power_w = 0;
    struct gpu_load sum = {0};
    for (int i = 0; i < NODE_GPUS_MAX; i++) {
        const struct gpu_load *l = &n->last[i];
        power_w += ratio(l->energy_mj, l->ms);
        sum.ms += l->ms;
        sum.known_ms += l->known_ms;
        sum.busy_ms += l->busy_ms;
        sum.slowed_ms += l->slowed_ms;
        sum.memory_bytes += l->memory_bytes;
        sum.memory_total_bytes += l->memory_total_bytes;
        sum.temperature_c = max_i64(sum.temperature_c, l->temperature_c);
    }
    const double values[GAUGES] = {
        [BUSY] = ratio(sum.busy_ms, sum.known_ms),
        [MEMORY_USED] = (double)sum.memory_bytes,
        [MEMORY] = (double)sum.memory_total_bytes,
        [POWER] = power_w,
        [TEMPERATURE] = (double)sum.temperature_c,
        [THROTTLED] = ratio(sum.slowed_ms, sum.ms),
    };
    return values[g];
}

void node_gpus_write(const struct node_gpus *g, const struct model *m, struct exposition *x)
{
    for (int k = 0; k < GAUGES; k++) {
        int left = BY_NODE_WRITTEN_MAX;
        exposition_family(x, METRIC_GAUGE, gauges[k].name, gauges[k].help);
        LIST_FOREACH (model_nodes(m), l) {
            const struct node *n = LIST_ENTRY(l, struct node, in_all);
            const struct node_loads *loads = map_get(&g->nodes, n->row.id);
            struct metric_labels labels = {0};
            if (!loads || left-- <= 0)
                continue;
            metric_labels_add(&labels, "node", n->row.name);
            metric_labels_add(&labels, "pool", n->row.pool);
            exposition_sample(x, labels.text, value_of(loads, (enum gauge)k));
        }
    }
}
