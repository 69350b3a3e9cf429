/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of belay breakeven: accepted values are within their limits, and the results add up.
 */
#include "fuzz/check.h"
#include "base/mem.h"
#include "money/plan.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_figures(const struct figure *f, const struct figure_info *info, int n)
{
    for (int i = 0; i < n; i++)
        assert(f[i].origin == FIGURE_DEFAULT ||
               (f[i].micro >= info[i].min && f[i].micro <= info[i].max));
}

static void check_side(const struct breakeven_side *s)
{
    int64_t cost = 0, cash = 0;
    assert(s->n_items <= BREAKEVEN_ITEMS_MAX);
    for (int kind = 0; kind < ITEM_KINDS; kind++) {
        cost += side_cost(s, ITEM_BIT(kind), BREAKEVEN_MONTHS);
        cash += side_cash(s, ITEM_BIT(kind), BREAKEVEN_MONTHS);
    }
    assert(cost == side_cost(s, ITEMS_ALL, BREAKEVEN_MONTHS) &&
           cash == side_cash(s, ITEMS_ALL, BREAKEVEN_MONTHS));
    assert(cost >= 0 && cash >= cost); /* the remaining value is not negative */
}

static void check_versus(const struct breakeven_versus *v)
{
    assert(v->month >= 0 && v->month <= BREAKEVEN_MONTHS &&
           (v->behind_from == 0 || v->behind_from > v->month));
    assert(isfinite(v->all.utilisation) && v->all.utilisation >= 0 && v->all.utilisation <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct breakeven_plan *p = mem_alloc(sizeof *p);
    struct breakeven_result *r = mem_alloc(sizeof *r);
    struct err e = {0};
    plan_init(p);
    int rc = plan_read("f", (const char *)data, size, p, &e);
    if (rc == 0) {
        check_figures(p->own, own_figures, OWN_FIGURES);
        for (size_t i = 0; i < p->n_rents; i++)
            check_figures(p->rents[i].f, rent_figures, RENT_FIGURES);
        rc = plan_complete(p, &e);
    }
    if (rc == 0)
        rc = breakeven_run(p, r, &e);
    if (rc != 0)
        check_error(rc, &e);
    for (size_t i = 0; rc == 0 && i < p->n_rents; i++) {
        check_side(&r->own);
        check_side(&r->rents[i]);
        check_versus(&r->versus[i]);
    }
    free(r);
    free(p);
    return 0;
}
