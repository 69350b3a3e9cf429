/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of a tick. Live objects are kept in dirty lists and copied once, when the changes are
 * taken. Final rows (history, ledger, objects that left the model) are copied at once.
 */
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include "base/str.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES ((size_t)8 << 20) /* per array of rows */
#define LINE 64                      /* bytes of a cache line */

static void touch(struct list *dirty, struct link *l)
{
    if (!link_is_in(l))
        list_push_back(dirty, l);
}

void touch_job(struct model *m, struct job *j)
{
    touch(&m->changes.dirty_jobs, &j->dirty);
}

void touch_attempt(struct model *m, struct attempt *a)
{
    touch(&m->changes.dirty_attempts, &a->dirty);
}

void touch_node(struct model *m, struct node *n)
{
    touch(&m->changes.dirty_nodes, &n->dirty);
}

void touch_instance(struct model *m, struct instance *i)
{
    touch(&m->changes.dirty_instances, &i->dirty);
}

void touch_pool(struct model *m, struct pool *p)
{
    touch(&m->changes.dirty_pools, &p->dirty);
}

void touch_offer(struct model *m, struct offer *o)
{
    touch(&m->changes.dirty_offers, &o->dirty);
}

void touch_account(struct model *m, struct account *a)
{
    touch(&m->changes.dirty_accounts, &a->dirty);
}

void touch_budget(struct model *m, struct budget *b)
{
    if (b->options)
        touch(&m->changes.dirty_budgets, &b->dirty);
}

void touch_cron(struct model *m, struct cron_entry *c)
{
    touch(&m->changes.dirty_crons, &c->dirty);
}

void retire_job(struct model *m, struct job *j)
{
    link_remove(&j->dirty);
    *CHANGED(m, jobs) = j->row;
    free(j->side);
    slab_give(&m->rows.job_slab, j);
}

void retire_attempt(struct model *m, struct attempt *a)
{
    link_remove(&a->dirty);
    *CHANGED(m, attempts) = a->row;
    slab_give(&m->rows.attempt_slab, a);
}

void retire_node(struct model *m, struct node *n)
{
    link_remove(&n->dirty);
    *CHANGED(m, nodes) = n->row;
    slab_give(&m->rows.node_slab, n);
}

void retire_instance(struct model *m, struct instance *i)
{
    link_remove(&i->dirty);
    *GROW(m->changes.out.instances, m->changes.out.n_instances) = i->row;
    free(i);
}

void history(
    struct model *m, struct stamp now, const char *kind, struct history_of of, const char *fmt, ...)
{
    struct history_row *h = CHANGED(m, history);
    *h = (struct history_row){
        .id = m->changes.next_ids.next_history++, .at = now.wall, .a = of.a, .b = of.b};
    if (of.attempt) {
        h->job = of.attempt->row.job;
        h->attempt = of.attempt->row.attempt;
        h->node = of.attempt->row.node;
    }
    if (of.job)
        h->job = of.job->row.id;
    if (of.node)
        h->node = of.node->row.id;
    if (of.instance)
        h->instance = of.instance->row.id;
    else if (of.node)
        h->instance = of.node->row.instance;
    STR_COPY(h->kind, kind);
    va_list ap;
    va_start(ap, fmt);
    text_vformat(h->text, sizeof h->text, fmt, ap);
    va_end(ap);
}

void ledger_add(struct model *m, const struct ledger_row *row)
{
    if (row->ms != 0 || row->uusd != 0)
        *CHANGED(m, ledger) = *row;
}

#define TAKE_DIRTY(m, type, list, array, count)                                                    \
    for (struct link * l_; (l_ = list_pop(&(m)->changes.list)) != NULL;)                           \
    *GROW((m)->changes.out.array, (m)->changes.out.count) = LIST_ENTRY(l_, type, dirty)->row

/* As TAKE_DIRTY, for thousands of objects that are no longer cached: prefetches one while the
 * previous one is copied. */
#define TAKE_MANY_DIRTY(m, type, list, array)                                                      \
    for (struct link *l_ = list_first(&(m)->changes.list), *next_; l_; l_ = next_) {               \
        next_ = list_next(&(m)->changes.list, l_);                                                 \
        if (next_)                                                                                 \
            prefetch_row(&LIST_ENTRY(next_, type, dirty)->row, sizeof(((type *)NULL)->row));       \
        link_remove(l_);                                                                           \
        *CHANGED(m, array) = LIST_ENTRY(l_, type, dirty)->row;                                     \
    }

static void prefetch_row(const void *p, size_t size)
{
    for (size_t at = 0; at < size; at += LINE)
        __builtin_prefetch((const char *)p + at);
}

void *changes_grow(void *rows, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return rows;
    *cap = n ? 2 * n : 1;
    return mem_resize(rows, *cap, size);
}

/* Keeps the memory of a tick of about ten thousand rows, but not that of the submission of a
 * million. */
static void *shrink_rows(void *rows, size_t *cap, size_t size)
{
    if (*cap <= KEPT_BYTES / size)
        return rows;
    *cap = KEPT_BYTES / size;
    return mem_resize(rows, *cap, size);
}

#define KEEP(from, to, rows)                                                                       \
    ((to)->cap.rows = (from)->cap.rows,                                                            \
        (to)->rows = shrink_rows((from)->rows, &(to)->cap.rows, sizeof *(to)->rows),               \
        (from)->rows = NULL)

void model_return_changes(struct model *m, struct changes *c)
{
    if (changes_is_empty(&m->changes.out)) {
        struct changes kept = {0};
        KEEP(c, &kept, jobs);
        KEEP(c, &kept, attempts);
        KEEP(c, &kept, nodes);
        KEEP(c, &kept, history);
        KEEP(c, &kept, ledger);
        changes_deinit(&m->changes.out);
        m->changes.out = kept;
    }
    changes_deinit(c);
}

void model_take_changes(struct model *m, struct changes *ret_changes)
{
    TAKE_MANY_DIRTY(m, struct job, dirty_jobs, jobs);
    TAKE_MANY_DIRTY(m, struct attempt, dirty_attempts, attempts);
    TAKE_MANY_DIRTY(m, struct node, dirty_nodes, nodes);
    TAKE_DIRTY(m, struct instance, dirty_instances, instances, n_instances);
    TAKE_DIRTY(m, struct pool, dirty_pools, pools, n_pools);
    TAKE_DIRTY(m, struct offer, dirty_offers, offers, n_offers);
    TAKE_DIRTY(m, struct account, dirty_accounts, accounts, n_accounts);
    TAKE_DIRTY(m, struct budget, dirty_budgets, budgets, n_budgets);
    TAKE_DIRTY(m, struct cron_entry, dirty_crons, crons, n_crons);
    *ret_changes = m->changes.out;
    m->changes.out = (struct changes){0};
    ret_changes->next_job = m->changes.next_ids.next_job;
    ret_changes->next_node = m->changes.next_ids.next_node;
    ret_changes->next_instance = m->changes.next_ids.next_instance;
    ret_changes->next_history = m->changes.next_ids.next_history;
    ret_changes->next_offer = m->changes.next_ids.next_offer;
    ret_changes->next_cron = m->changes.next_ids.next_cron;
    ret_changes->next_constraints = m->changes.next_ids.next_constraints;
    ret_changes->next_reservation = m->changes.next_ids.next_reservation;
}

bool changes_is_empty(const struct changes *c)
{
    return c->n_jobs + c->n_attempts + c->n_nodes + c->n_instances + c->n_pools + c->n_offers +
               c->n_history + c->n_checkpoints + c->n_ledger + c->n_specs + c->n_ckpt_gc +
               c->n_stored + c->n_drills + c->n_crons + c->n_cron_jobs + c->n_cron_runs +
               c->n_outbox + c->n_outbox_done + c->n_late_costs + c->n_node_failures +
               c->n_accounts + c->n_budgets + c->n_depends + c->n_arrays + c->n_constraints +
               c->n_documents + c->n_digests + c->n_reservations + c->n_calendars +
               c->n_anomalies ==
           0;
}

void changes_deinit(struct changes *c)
{
    for (size_t i = 0; i < c->n_specs; i++) {
        struct spec_change *s = &c->specs[i];
        free(s->script);
        free(s->args_json);
        free(s->env_json);
        free(s->cwd);
        free(s->labels_json);
        free(s->launch_json);
        free(s->notify_json);
    }
    for (size_t i = 0; i < c->n_documents; i++)
        free(c->documents[i].patch_json);
    free(c->documents);
    free(c->jobs);
    free(c->attempts);
    free(c->nodes);
    free(c->node_failures);
    free(c->prefetches);
    free(c->instances);
    free(c->pools);
    free(c->offers);
    free(c->history);
    free(c->checkpoints);
    free(c->ledger);
    free(c->specs);
    free(c->ckpt_gc);
    free(c->stored);
    for (size_t i = 0; i < c->n_cron_jobs; i++)
        free(c->cron_jobs[i].job_json);
    free(c->drills);
    free(c->accounts);
    free(c->budgets);
    free(c->constraints);
    free(c->depends);
    free(c->crons);
    free(c->cron_jobs);
    free(c->cron_runs);
    free(c->digests);
    free(c->anomalies);
    free(c->reservations);
    for (size_t i = 0; i < c->n_calendars; i++)
        free(c->calendars[i].days);
    free(c->calendars);
    free(c->arrays);
    free(c->outbox);
    free(c->outbox_done);
    free(c->late_costs);
    *c = (struct changes){0};
}
