/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/metrics/log_lag.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/metrics/by_node.h"
#include <stdlib.h>

struct attempt_lag {
    struct log_lag_report last;
    int64_t due_bytes;     /* the first reported size that has not arrived, or the last one */
    struct mono due_since; /* its report */
};

struct node_lag {
    size_t n;
    struct attempt_lag attempts[];
};

struct log_lag {
    struct map nodes; /* node -> struct node_lag */
};

struct log_lag *log_lag_create(void)
{
    return mem_alloc(sizeof(struct log_lag));
}

void log_lag_destroy(struct log_lag *g)
{
    if (!g)
        return;
    by_node_deinit(&g->nodes);
    free(g);
}

/* at: where it is expected, because agents report in the same order each time. */
static struct attempt_lag *lag_of(struct node_lag *node, int64_t job, int64_t attempt, size_t at)
{
    for (size_t i = 0; node && i < node->n; i++) {
        struct attempt_lag *a = &node->attempts[(at + i) % node->n];
        if (a->last.job == job && a->last.attempt == attempt)
            return a;
    }
    return NULL;
}

void log_lag_reported(struct log_lag *g, const struct model *m, int64_t node,
    const struct log_lag_report *reports, size_t n, struct mono now)
{
    struct node_lag *former = map_remove(&g->nodes, node);
    if (n > 0) {
        struct node_lag *lag = mem_alloc(sizeof(*lag) + n * sizeof(lag->attempts[0]));
        lag->n = n;
        for (size_t i = 0; i < n; i++) {
            const struct log_lag_report *r = &reports[i];
            const struct attempt_lag *a = lag_of(former, r->job, r->attempt, i);
            const bool is_due = a && a->due_bytes > r->stored_bytes;
            lag->attempts[i] = (struct attempt_lag){.last = *r,
                .due_bytes = is_due ? a->due_bytes : r->written_bytes,
                .due_since = is_due ? a->due_since : now};
        }
        map_put(&g->nodes, node, lag);
    }
    free(former);
    by_node_trim(&g->nodes, m);
}

void log_lag_arrived(
    struct log_lag *g, int64_t node, int64_t job, int64_t attempt, int64_t stored_bytes)
{
    struct attempt_lag *a = lag_of(map_get(&g->nodes, node), job, attempt, 0);
    if (a)
        a->last.stored_bytes = stored_bytes;
}

int64_t log_lag_stored(const struct log_lag *g, int64_t node, int64_t job, int64_t attempt)
{
    const struct attempt_lag *a = lag_of(map_get(&g->nodes, node), job, attempt, 0);
    return a ? a->last.stored_bytes : 0;
}

static double bytes_of(const struct node_lag *lag, struct mono now)
{
    int64_t sum = 0;
    (void)now;
    for (size_t i = 0; i < lag->n; i++)
        sum += max_i64(lag->attempts[i].last.written_bytes - lag->attempts[i].last.stored_bytes, 0);
    return (double)sum;
}

static double seconds_of(const struct node_lag *lag, struct mono now)
{
    int64_t most_ms = 0;
    for (size_t i = 0; i < lag->n; i++)
        if (lag->attempts[i].due_bytes > lag->attempts[i].last.stored_bytes)
            most_ms = max_i64(most_ms, now.ms - lag->attempts[i].due_since.ms);
    return (double)most_ms / 1000;
}

static const struct {
    const char *name, *help;
    double (*value)(const struct node_lag *lag, struct mono now);
} gauges[] = {
    {"belay_node_log_lag_bytes", "Output of the attempts on a node that belayd does not have yet.",
        bytes_of},
    {"belay_node_log_lag_seconds",
        "How long ago the oldest output on a node was reported that belayd does not have yet.",
        seconds_of},
};

void log_lag_write(
    const struct log_lag *g, const struct model *m, struct mono now, struct exposition *x)
{
    for (size_t k = 0; k < sizeof(gauges) / sizeof(gauges[0]); k++) {
        int left = BY_NODE_WRITTEN_MAX;
        exposition_family(x, METRIC_GAUGE, gauges[k].name, gauges[k].help);
        LIST_FOREACH (model_nodes(m), l) {
            const struct node *n = LIST_ENTRY(l, struct node, in_all);
            const struct node_lag *lag = map_get(&g->nodes, n->row.id);
            struct metric_labels labels = {0};
            if (!lag || left-- <= 0)
                continue;
            metric_labels_add(&labels, "node", n->row.name);
            metric_labels_add(&labels, "pool", n->row.pool);
            exposition_sample(x, labels.text, gauges[k].value(lag, now));
        }
    }
}
