/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/metrics/by_node.h"

#include "scheduler/core/model/model_access.h"
#include <stdlib.h>

void by_node_trim(struct map *values, const struct model *m)
{
    struct model_counts c;
    struct map left = {0};
    size_t at = 0;
    int64_t node;
    model_counts(m, &c);
    if (map_size(values) <= 2 * (size_t)(c.nodes_up + c.nodes_lost) + 16)
        return;
    for (void *value; (value = map_next(values, &at, &node));)
        if (model_node(m, node))
            map_put(&left, node, value);
        else
            free(value);
    map_deinit(values);
    *values = left;
}

void by_node_deinit(struct map *values)
{
    size_t at = 0;
    for (void *value; (value = map_next(values, &at, NULL));)
        free(value);
    map_deinit(values);
}
