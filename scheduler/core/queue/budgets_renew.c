/* SPDX-License-Identifier: Apache-2.0
 *
 * The stored rows of budgets, and other budgets while the model lives.
 *
 * A budget that is configured again, after it was not for a while, counts on from its row. So the
 * rows of those that are not configured are kept, and a reload ends where a restart would.
 */
#include "scheduler/core/lifecycle/ckpt_gc.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/budgets_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define DORMANT_MAX (4 * BUDGETS_MAX) /* beyond that, the oldest is forgotten */

static bool is_of(const struct budget_row *r, const struct budget *b)
{
    return str_eq(b->row.name, r->name) && str_eq(b->row.about, r->about);
}

static void count_on(struct budget *b, const struct budget_row *r)
{
    int64_t cap = b->row.cap_uusd;
    b->row = *r;
    b->row.cap_uusd = cap;
    b->is_open = wall_is_set(r->since);
    if (cap > r->cap_uusd)
        b->row.is_closed = false; /* the cap was raised */
    b->is_recapped = cap != r->cap_uusd;
}

static void forget_dormant(struct model *m, size_t k)
{
    struct budget_row *all = m->queue.dormant_budgets;
    memmove(&all[k], &all[k + 1], (--m->queue.n_dormant_budgets - k) * sizeof *all);
}

/* The row is discarded if the budget now counts something else. */
int model_load_budget(struct model *m, const struct budget_row *r, struct err *e)
{
    (void)e;
    for (size_t k = 0; k < m->queue.n_budgets; k++) {
        struct budget *b = &m->queue.budgets[k];
        if (is_of(r, b))
            count_on(b, r);
        if (str_eq(b->row.name, r->name))
            return 0;
    }
    if (m->queue.n_dormant_budgets == DORMANT_MAX)
        forget_dormant(m, 0);
    *GROW(m->queue.dormant_budgets, m->queue.n_dormant_budgets) = *r;
    return 0;
}

/* Those that are configured again. */
static void wake(struct model *m)
{
    for (size_t k = m->queue.n_dormant_budgets; k-- > 0;) {
        const struct budget_row r = m->queue.dormant_budgets[k];
        for (size_t i = 0; i < m->queue.n_budgets; i++) {
            if (!str_eq(m->queue.budgets[i].row.name, r.name))
                continue;
            if (is_of(&r, &m->queue.budgets[i]))
                count_on(&m->queue.budgets[i], &r);
            forget_dormant(m, k);
            break;
        }
    }
}

static void drop_stakes(struct model *m)
{
    struct job *j;
    for (size_t pos = 0; (j = model_next_job(m, &pos)) != NULL;) {
        LIST_FOREACH (&j->ranks, lr) {
            LIST_FOREACH (&LIST_ENTRY(lr, struct attempt, in_job)->stakes, l) {
                struct stake *s = LIST_ENTRY(l, struct stake, of_attempt);
                if (s->budget->job)
                    continue;
                link_remove(&s->in_budget);
                link_remove(&s->of_attempt);
                free(s);
            }
        }
    }
}

void budgets_renew(struct model *m, const struct budget_options *options, size_t n)
{
    struct budget *former = m->queue.budgets;
    size_t n_former = m->queue.n_budgets;
    uint64_t now_at[BUDGETS_MAX] = {0};
    wake(m);
    drop_stakes(m);
    for (size_t k = 0; k < n_former; k++) {
        tree_remove(&m->queue.budgets_due, &former[k].by_due);
        if (!link_is_in(&former[k].dirty))
            continue;
        link_remove(&former[k].dirty);
        *ADD_ROW(m, budgets) = former[k].row;
    }
    budgets_init(m, options, n);
    for (size_t k = 0; k < n_former; k++)
        model_load_budget(m, &former[k].row, NULL);
    wake(m);
    for (size_t k = 0; k < n_former; k++)
        for (size_t i = 0; i < n; i++)
            if (is_of(&former[k].row, &m->queue.budgets[i]))
                now_at[k] = 1ULL << i;
    ckpt_gc_renew_budgets(m, now_at);
    free(former);
}

void budgets_move(struct model *m, const struct budget_options *options)
{
    for (size_t k = 0; k < m->queue.n_budgets; k++)
        m->queue.budgets[k].options = &options[k];
}

void budgets_rejoin_all(struct model *m)
{
    int64_t *ids;
    size_t n = model_jobs_between(m, 1, INT64_MAX, &ids);
    for (size_t i = 0; i < n; i++) {
        const struct job *j = model_job(m, ids[i]);
        LIST_FOREACH (&j->ranks, l) {
            struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
            for (size_t k = 0; k < m->queue.n_budgets; k++) {
                struct budget *b = &m->queue.budgets[k];
                if ((j->shape->in_budgets >> k & 1) && budget_is_of_pool(b, a->node->pool))
                    budget_stake_new(b, a);
            }
        }
    }
    free(ids);
}
