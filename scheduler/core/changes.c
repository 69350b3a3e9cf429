/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tick changed: things that still live are remembered in dirty lists and copied once, when they are
 * asked for; what is final (history, ledger, rows of things that left the model) is copied when it happens.
 */
#include "scheduler/core/impl.h"

#include "base/str.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

static void touch(struct list *dirty, struct link *l)
{
    if (!link_is_in(l))
        list_push_back(dirty, l);
}

void touch_job(struct model *m, struct job *j)
{
    touch(&m->dirty_jobs, &j->dirty);
}

void touch_attempt(struct model *m, struct attempt *a)
{
    touch(&m->dirty_attempts, &a->dirty);
}

void touch_node(struct model *m, struct node *n)
{
    touch(&m->dirty_nodes, &n->dirty);
}

void touch_instance(struct model *m, struct instance *i)
{
    touch(&m->dirty_instances, &i->dirty);
}

void touch_pool(struct model *m, struct pool *p)
{
    touch(&m->dirty_pools, &p->dirty);
}

void touch_offer(struct model *m, struct offer *o)
{
    touch(&m->dirty_offers, &o->dirty);
}

void touch_account(struct model *m, struct account *a)
{
    touch(&m->dirty_accounts, &a->dirty);
}

void retire_job(struct model *m, struct job *j)
{
    link_remove(&j->dirty);
    *GROW(m->out.jobs, m->out.n_jobs) = j->row;
    free(j);
}

void retire_attempt(struct model *m, struct attempt *a)
{
    link_remove(&a->dirty);
    *GROW(m->out.attempts, m->out.n_attempts) = a->row;
    free(a);
}

void retire_node(struct model *m, struct node *n)
{
    link_remove(&n->dirty);
    *GROW(m->out.nodes, m->out.n_nodes) = n->row;
    free(n);
}

void retire_instance(struct model *m, struct instance *i)
{
    link_remove(&i->dirty);
    *GROW(m->out.instances, m->out.n_instances) = i->row;
    free(i);
}

void history(struct model *m, struct stamp now, const char *kind, struct history_of of, const char *fmt, ...)
{
    struct history_row *h = GROW(m->out.history, m->out.n_history);
    *h = (struct history_row){.id = m->next.next_history++, .at = now.wall, .a = of.a, .b = of.b};
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
        *GROW(m->out.ledger, m->out.n_ledger) = *row;
}

#define TAKE_DIRTY(m, type, list, array, count)                                                              \
    for (struct link * l_; (l_ = list_pop(&(m)->list)) != NULL;)                                             \
    *GROW((m)->out.array, (m)->out.count) = LIST_ENTRY(l_, type, dirty)->row

void model_take_changes(struct model *m, struct changes *ret_changes)
{
    TAKE_DIRTY(m, struct job, dirty_jobs, jobs, n_jobs);
    TAKE_DIRTY(m, struct attempt, dirty_attempts, attempts, n_attempts);
    TAKE_DIRTY(m, struct node, dirty_nodes, nodes, n_nodes);
    TAKE_DIRTY(m, struct instance, dirty_instances, instances, n_instances);
    TAKE_DIRTY(m, struct pool, dirty_pools, pools, n_pools);
    TAKE_DIRTY(m, struct offer, dirty_offers, offers, n_offers);
    TAKE_DIRTY(m, struct account, dirty_accounts, accounts, n_accounts);
    TAKE_DIRTY(m, struct cron_entry, dirty_crons, crons, n_crons);
    *ret_changes = m->out;
    m->out = (struct changes){0};
    ret_changes->next_job = m->next.next_job;
    ret_changes->next_node = m->next.next_node;
    ret_changes->next_instance = m->next.next_instance;
    ret_changes->next_history = m->next.next_history;
    ret_changes->next_offer = m->next.next_offer;
    ret_changes->next_cron = m->next.next_cron;
    ret_changes->next_extras = m->next.next_extras;
}

bool changes_is_empty(const struct changes *c)
{
    return c->n_jobs + c->n_attempts + c->n_nodes + c->n_instances + c->n_pools + c->n_offers + c->n_history +
               c->n_checkpoints + c->n_ledger + c->n_specs + c->n_leftovers + c->n_drills + c->n_crons +
               c->n_cron_jobs + c->n_cron_runs + c->n_outbox + c->n_told + c->n_accounts + c->n_depends + c->n_arrays + c->n_extras ==
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
    free(c->jobs);
    free(c->attempts);
    free(c->nodes);
    free(c->instances);
    free(c->pools);
    free(c->offers);
    free(c->history);
    free(c->checkpoints);
    free(c->ledger);
    free(c->specs);
    free(c->leftovers);
    for (size_t i = 0; i < c->n_cron_jobs; i++)
        free(c->cron_jobs[i].job_json);
    free(c->drills);
    free(c->accounts);
    free(c->extras);
    free(c->depends);
    free(c->crons);
    free(c->cron_jobs);
    free(c->cron_runs);
    free(c->arrays);
    free(c->outbox);
    free(c->told);
    *c = (struct changes){0};
}
