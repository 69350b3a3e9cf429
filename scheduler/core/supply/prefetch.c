/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/supply/prefetch.h"

#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/reserve.h"

#include "base/minmax.h"
#include <inttypes.h>

#define WAIT_MIN_MS 30000
#define BYTES_PER_MS ((10 << 20) / 1000) /* slower ones are not waited for */
#define LEAST_UNCHANGED 2 /* divisor: this part of the content must have been in the store */

void prefetch_note_save(struct attempt *a, int64_t bytes, int64_t stored_bytes)
{
    a->prefetch.unchanged_bytes = bytes > stored_bytes ? bytes - stored_bytes : 0;
}

static bool helps(const struct attempt *a)
{
    const struct job_row *j = &a->job->row;
    return j->spec.nodes == 1 && j->spec.method != CKPT_NONE && a->row.sequence > 0 &&
           a->prefetch.unchanged_bytes > j->ckpt_bytes / LEAST_UNCHANGED;
}

static bool was_asked_lately(const struct attempt *a, struct mono now)
{
    return a->prefetch.node != CORE_ID_NONE && now.ms - a->prefetch.asked_at.ms < PREFETCH_AGAIN_MS;
}

bool prefetch_is_of_use(const struct attempt *a, const struct node *to, struct mono now)
{
    return helps(a) && to->pool->row.egress_uusd_gib == 0 && node_takes_work(to) &&
           list_is_empty(&to->attempts) && !was_asked_lately(a, now);
}

int64_t prefetch_wait_ms(const struct attempt *a)
{
    return min_i64(WAIT_MIN_MS + a->job->row.ckpt_bytes / BYTES_PER_MS, PREFETCH_WAIT_MAX_MS);
}

enum prefetch_step prefetch_step(
    const struct attempt *a, const struct node *to, struct mono now, struct mono *ret_until)
{
    if (prefetch_is_of_use(a, to, now))
        return PREFETCH_ASK;
    *ret_until = (struct mono){a->prefetch.asked_at.ms + prefetch_wait_ms(a)};
    return a->prefetch.node == to->row.id && !a->prefetch.is_over && now.ms < ret_until->ms
               ? PREFETCH_WAIT
               : PREFETCH_MOVE;
}

/* The attempt that the node fetches for, if it still runs elsewhere. */
static const struct attempt *attempt_of(const struct model *m, const struct node *n)
{
    const struct job *j = n->prefetch.job ? model_job(m, n->prefetch.job) : NULL;
    const struct attempt *a = j ? job_attempt(j) : NULL;
    return a && a->row.attempt == n->prefetch.attempt && a->prefetch.node == n->row.id ? a : NULL;
}

bool prefetch_is_of_other(
    const struct node *n, const struct attempt *a, const struct model *m, struct mono now)
{
    const struct attempt *of = attempt_of(m, n);
    return of && of != a && now.ms - of->prefetch.asked_at.ms < prefetch_wait_ms(of);
}

bool prefetch_order_of(const struct model *m, const struct node *n, struct prefetch_order *ret)
{
    const struct job *j = n->prefetch.job ? model_job(m, n->prefetch.job) : NULL;
    const struct attempt *a = attempt_of(m, n);
    if (!j || j->row.state == JOB_ENDED)
        return false;
    bool is_here = job_attempt_on(j, j->row.attempts, n->row.id);
    if (!is_here && !list_is_empty(&n->attempts))
        return false;
    *ret = (struct prefetch_order){
        .job = j->row.id, .attempt = n->prefetch.attempt, .sequence = a ? a->row.sequence : 0};
    return a || is_here || j->row.attempts == n->prefetch.attempt; /* or between two attempts */
}

/* As good as `best` otherwise. */
static bool may_replace(
    const struct node *n, const struct node *best, const struct shape *s, struct stamp now)
{
    return n->pool == best->pool && n->row.market == best->row.market &&
           n->row.price_uusd_h <= best->row.price_uusd_h && node_takes_work(n) &&
           node_has_capacity(n, s) && node_suits(n, s) && reserve_allows(n, s, now) &&
           maintenance_allows(n, s, now.wall);
}

const struct node *prefetch_place(
    const struct model *m, const struct shape *s, const struct node *best, struct stamp now)
{
    const struct job *j = model_job(m, s->head);
    LIST_FOREACH (&m->supply.prefetches, l) {
        const struct node *n = LIST_ENTRY(l, struct node, prefetch.in_all);
        if (n->prefetch.job == s->head && n->prefetch.attempt == j->row.attempts &&
            may_replace(n, best, s, now))
            return n;
    }
    return best;
}

int apply_prefetch(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->prefetch.job);
    struct node *n = model_node(m, ev->prefetch.node);
    struct attempt *a = j ? job_attempt(j) : NULL;
    if (!n || !a || a->row.attempt != ev->prefetch.ref.attempt)
        return err_set(e, ERR_CONFLICT,
            "attempt %" PRId64 " of job %" PRId64 " or node %" PRId64 " is gone",
            ev->prefetch.ref.attempt, ev->prefetch.job, ev->prefetch.node);
    a->prefetch.node = n->row.id;
    a->prefetch.asked_at = ev->now.mono;
    a->prefetch.is_over = false;
    n->prefetch.job = j->row.id;
    n->prefetch.attempt = a->row.attempt;
    link_remove(&n->prefetch.in_all);
    list_push_back(&m->supply.prefetches, &n->prefetch.in_all);
    *ADD_ROW(m, prefetches) = n->row.id;
    model_note_change(m);
    history(m, ev->now, "prefetch", (struct history_of){.attempt = a, .node = n},
        "%s fetches its newest checkpoint while it runs on %s", n->row.name, a->node->row.name);
    ret_outcome->id = n->row.id;
    return 0;
}

static void describe_prefetched(struct model *m, const struct event *ev, const struct attempt *a)
{
    const struct node *n = model_node(m, ev->prefetch.node);
    const struct history_of of = {.attempt = a, .node = n};
    const char *name = n ? n->row.name : "the node";
    if (ev->prefetch.text[0])
        history(m, ev->now, "prefetch-failed", of, "%s could not fetch its checkpoint: %.160s",
            name, ev->prefetch.text);
    else
        history(m, ev->now, "prefetched", of, "%s has its checkpoint %" PRId64 ".%" PRId64, name,
            ev->prefetch.ref.attempt, ev->prefetch.ref.sequence);
}

/* Later reports of the same attempt, of newer checkpoints or failures, change nothing. */
int apply_prefetched(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct job *j = model_job(m, ev->prefetch.job);
    struct attempt *a = j ? job_attempt(j) : NULL;
    (void)e;
    ret_outcome->id = ev->prefetch.node;
    if (!a || a->row.attempt != ev->prefetch.ref.attempt || a->prefetch.node != ev->prefetch.node ||
        a->prefetch.is_over)
        return 0;
    a->prefetch.is_over = true;
    model_note_change(m);
    describe_prefetched(m, ev, a);
    return 0;
}
