/* SPDX-License-Identifier: Apache-2.0
 *
 * What belay top prints: the cluster, its pools, and the running jobs in a chosen order.
 */
#ifndef BELAY_CLI_TOP_VIEW_H
#define BELAY_CLI_TOP_VIEW_H

#include "base/json.h"
#include <stdbool.h>
#include <stddef.h>

#define VIEW_FILTER_MAX 64

enum view_order {
    VIEW_BY_ID, /* the newest first */
    VIEW_BY_CPU,
    VIEW_BY_MEMORY,
    VIEW_BY_TIME,
    VIEW_BY_COST,
    VIEW_BY_NAME
};

struct view_choice {
    enum view_order order;
    bool reverse;
    char filter[VIEW_FILTER_MAX]; /* only jobs with it in number, name, user, team, node or pool */
};

/* summary, pools: of GET /summary. */
void view_head(const json_t *summary);
void view_pools(const json_t *pools);

/* The jobs that are chosen, in order, as borrowed references. The caller frees *ret_selected. */
size_t view_select(const json_t *jobs, const struct view_choice *v, json_t ***ret_selected);

/* The table of n jobs, for a terminal of this width; 0: with all columns. */
void view_jobs(json_t *const *jobs, size_t n, int columns);

#endif
