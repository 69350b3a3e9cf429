/* SPDX-License-Identifier: Apache-2.0
 *
 * See digest.h. FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/
 */
#include "simtest/digest.h"

#include "job/member.h"

#define FNV_PRIME UINT64_C(1099511628211)

#define ADD(digest, ...)                                                                           \
    add(digest, (const int64_t[]){__VA_ARGS__},                                                    \
        sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

void sim_digest_number(uint64_t *digest, int64_t n)
{
    for (int i = 0; i < 8; i++)
        *digest = (*digest ^ (uint8_t)((uint64_t)n >> 8 * i)) * FNV_PRIME;
}

static void add(uint64_t *digest, const int64_t *n, size_t n_n)
{
    for (size_t i = 0; i < n_n; i++)
        sim_digest_number(digest, n[i]);
}

/* Texts by their bytes: which pool, class or team it is belongs to a decision. */
static void add_spec(uint64_t *d, const struct job_spec *s)
{
    const struct job_attribute *a;
    for (size_t i = 0; (a = job_member_row(i)); i++)
        if (job_member_is_number(a))
            sim_digest_number(d, job_member_number(a, s));
        else if (a->member_type == JOB_MEMBER_TEXT)
            for (const char *c = job_member_text(a, s); *c; c++)
                sim_digest_number(d, (unsigned char)*c);
        else if (a->member_type != JOB_MEMBER_NONE)
            sim_digest_number(d, job_member_truth(a, s));
}

static void add_job(uint64_t *d, const struct job_row *j)
{
    add_spec(d, &j->spec);
    ADD(d, j->id, j->state, j->end, j->exit_code, j->ranks);
    ADD(d, j->attempts, j->reclaims, j->quick_ends, j->no_progress, j->used_checkpointed,
        j->gang_end, j->gang_code, j->hold);
    for (int k = 0; k < RETRY_KINDS; k++)
        ADD(d, j->used[k]);
    ADD(d, j->submitted_at.ms, j->started_at.ms, j->ended_at.ms, j->eligible_at.ms,
        j->evicted_at.ms, j->gang_resize_until.ms);
    ADD(d, j->last_good.attempt, j->last_good.sequence, j->last_good_progress, j->last_good_at.ms,
        j->best_progress, j->progress, j->progress_total, j->from_attempt);
    ADD(d, j->save_ms, j->pause_ms, j->ckpt_bytes, j->lost_ms, j->lost_steps, j->done_ms,
        j->shown_ms, j->procurement);
    ADD(d, j->cost_uusd, j->on_demand_uusd, j->baseline.paid_uusd, j->baseline.job_paid_uusd);
    ADD(d, j->drills, j->cron, j->cron_at.ms, j->array, j->array_index, j->warned,
        j->idle_gpus_told_at.ms);
}

static void add_attempt(uint64_t *d, const struct attempt_row *a)
{
    ADD(d, a->job, a->attempt, a->node, a->rank, a->state, a->end, a->stop_reason, a->save_first,
        a->exit_code, a->sequence, a->saves_asked);
    ADD(d, a->assigned_at.ms, a->started_at.ms, a->ended_at.ms, a->gathered_at.ms, a->kept_at.ms,
        a->requeue_asked_at.ms, a->restored.attempt, a->restored.sequence, a->restored_progress,
        a->behind_ms, a->gpus_idle_since.ms);
    ADD(d, a->restored_bytes, a->nearby_bytes, a->restore_ms, a->save_ms, a->price_uusd_h,
        a->on_demand_uusd_h, a->base_uusd, a->started_uusd, a->gathered_uusd, a->kept_uusd,
        a->save_uusd, a->egress_uusd, a->warm_up_ms);
}

static void add_node(uint64_t *d, const struct node_row *n)
{
    ADD(d, n->id, n->instance, n->state, n->total.cpus, n->total.gpus, n->total.memory_mib,
        n->price_uusd_h, n->on_demand_uusd_h, n->market, n->notice, n->notice_deadline.ms,
        n->joined_at.ms, n->gone_at.ms, n->drain, n->drained_by_belay, n->kept_for);
    ADD(d, n->priced_at.ms, n->accrued_uusd, n->attempts_uusd, n->attempts_ms, n->idle_uusd,
        n->idle_ms, n->used_until.ms, n->settled_at.ms);
}

static void add_instance(uint64_t *d, const struct instance_row *i)
{
    ADD(d, i->id, i->market, i->state, i->node, i->price_uusd_h, i->on_demand_uusd_h,
        i->priced_at.ms, i->accrued_uusd, i->before_at.ms, i->before_uusd_h, i->before_uusd,
        i->boot_uusd, i->reclaimed, i->rebalanced, i->boot);
    ADD(d, i->intended_at.ms, i->launched_at.ms, i->joined_at.ms, i->ended_at.ms, i->used_until.ms,
        i->settled_at.ms, i->idle_uusd, i->idle_ms, i->attempts_uusd, i->attempts_ms, i->start_ms);
}

static void add_offer(uint64_t *d, const struct offer_row *o)
{
    ADD(d, o->id, o->market, o->rank, o->price_uusd_h, o->on_demand_uusd_h, o->launches,
        o->refusals, o->reclaims, o->refused_in_a_row, o->up_ms, o->boots, o->boot_ms,
        o->rebalances, o->rebalances_true);
}

static void add_drill(uint64_t *d, const struct drill_row *r)
{
    ADD(d, r->job, r->number, r->state, r->without_notice, r->attempt, r->node, r->asked_at.ms,
        r->killed_at.ms, r->resumed_at.ms, r->ended_at.ms, r->lost_ms, r->lost_steps,
        r->resumed_attempt, r->resumed_node, r->restore_ms, r->resume_ms);
}

static void add_cron(uint64_t *d, const struct cron_row *c)
{
    ADD(d, c->id, c->state, c->created_at.ms, c->next_at.ms, c->decided_at.ms, c->last_job, c->runs,
        c->started, c->skipped, c->missed);
}

static void add_small(uint64_t *d, const struct changes *c)
{
    for (size_t i = 0; i < c->n_pools; i++)
        ADD(d, c->pools[i].boots.failed, c->pools[i].boots.wait_ms, c->pools[i].boots.next_at.ms);
    for (size_t i = 0; i < c->n_ckpt_gc; i++)
        ADD(d, c->ckpt_gc[i].job, c->ckpt_gc[i].state, c->ckpt_gc[i].due_at.ms,
            c->ckpt_gc[i].last_at.ms, c->ckpt_gc[i].tries);
    for (size_t i = 0; i < c->n_stored; i++)
        ADD(d, c->stored[i].job, c->stored[i].bytes, c->stored[i].at.ms, c->stored[i].settled_at.ms,
            c->stored[i].uusd);
    for (size_t i = 0; i < c->n_accounts; i++)
        ADD(d, c->accounts[i].used, c->accounts[i].at.ms);
    for (size_t i = 0; i < c->n_budgets; i++)
        ADD(d, c->budgets[i].since.ms, c->budgets[i].until.ms, c->budgets[i].booked_uusd,
            c->budgets[i].cap_uusd, c->budgets[i].alerted, c->budgets[i].is_closed);
    for (size_t i = 0; i < c->n_depends; i++)
        ADD(d, c->depends[i].job, c->depends[i].on, c->depends[i].kind, c->depends[i].state);
    for (size_t i = 0; i < c->n_arrays; i++)
        ADD(d, c->arrays[i].job, c->arrays[i].n_succeeded, c->arrays[i].n_other, c->arrays[i].end);
    for (size_t i = 0; i < c->n_outbox; i++)
        ADD(d, c->outbox[i].event, c->outbox[i].job, c->outbox[i].kind, c->outbox[i].at.ms,
            c->outbox[i].due_at.ms, c->outbox[i].tries);
    for (size_t i = 0; i < c->n_node_failures; i++)
        ADD(d, c->node_failures[i].node, c->node_failures[i].place, c->node_failures[i].job,
            c->node_failures[i].retries, c->node_failures[i].at.ms, c->node_failures[i].is_removed);
    for (size_t i = 0; i < c->n_digests; i++)
        ADD(d, c->digests[i].told_until.ms);
    for (size_t i = 0; i < c->n_anomalies; i++)
        ADD(d, c->anomalies[i].of, c->anomalies[i].day.ms, c->anomalies[i].uusd,
            c->anomalies[i].usual_uusd, c->anomalies[i].weeks);
    for (size_t i = 0; i < c->n_cron_runs; i++)
        ADD(d, c->cron_runs[i].cron, c->cron_runs[i].number, c->cron_runs[i].at.ms,
            c->cron_runs[i].by_hand, c->cron_runs[i].outcome, c->cron_runs[i].times,
            c->cron_runs[i].job, c->cron_runs[i].decided_at.ms);
    for (size_t i = 0; i < c->n_reservations; i++)
        ADD(d, c->reservations[i].id, c->reservations[i].state, c->reservations[i].from_at.ms,
            c->reservations[i].is_over);
    for (size_t i = 0; i < c->n_calendars; i++)
        ADD(d, c->calendars[i].set_at.ms, c->calendars[i].is_removed);
    for (size_t i = 0; i < c->n_late_costs; i++)
        ADD(d, c->late_costs[i].job, c->late_costs[i].uusd);
}

static void add_records(uint64_t *d, const struct changes *c)
{
    for (size_t i = 0; i < c->n_history; i++)
        ADD(d, c->history[i].id, c->history[i].job, c->history[i].attempt, c->history[i].node,
            c->history[i].instance, c->history[i].at.ms, c->history[i].a, c->history[i].b);
    for (size_t i = 0; i < c->n_checkpoints; i++)
        ADD(d, c->checkpoints[i].job, c->checkpoints[i].ref.attempt, c->checkpoints[i].ref.sequence,
            c->checkpoints[i].saved_at.ms, c->checkpoints[i].bytes);
    for (size_t i = 0; i < c->n_ledger; i++)
        ADD(d, c->ledger[i].job, c->ledger[i].attempt, c->ledger[i].instance, c->ledger[i].kind,
            c->ledger[i].from.ms, c->ledger[i].to.ms, c->ledger[i].ms, c->ledger[i].node_ms,
            c->ledger[i].uusd, c->ledger[i].on_demand_uusd);
}

void sim_digest_changes(uint64_t *d, const struct changes *c)
{
    for (size_t i = 0; i < c->n_jobs; i++)
        add_job(d, &c->jobs[i]);
    for (size_t i = 0; i < c->n_attempts; i++)
        add_attempt(d, &c->attempts[i]);
    for (size_t i = 0; i < c->n_nodes; i++)
        add_node(d, &c->nodes[i]);
    for (size_t i = 0; i < c->n_instances; i++)
        add_instance(d, &c->instances[i]);
    for (size_t i = 0; i < c->n_offers; i++)
        add_offer(d, &c->offers[i]);
    for (size_t i = 0; i < c->n_drills; i++)
        add_drill(d, &c->drills[i]);
    for (size_t i = 0; i < c->n_crons; i++)
        add_cron(d, &c->crons[i]);
    add_small(d, c);
    add_records(d, c);
}
