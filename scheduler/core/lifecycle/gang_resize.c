/* SPDX-License-Identifier: Apache-2.0
 *
 * Gangs between their attempts: with how many nodes the next may start, and which nodes are kept
 * for it.
 *
 * Nodes that its ranks leave while others still run are kept for the gang, since otherwise other
 * jobs would take them before the last rank has ended. They are kept until the next attempt is
 * placed, at most for KEEP_MS, by the wall clock across a restart.
 *
 * A gang of 2 to 8 nodes starts with as many as are available. It waits for 8 until no more are
 * available (launch_gang.c decides) or the time is over, and then starts with 2 or more:
 *
 *   queued first, or requeued by its user:          8, then settles for 2
 *   after the loss of one of 5, LOSS_SHRINK:        2: continues with the remaining 4 at once
 *   the same, LOSS_WAIT:                            5, then settles for 2
 *
 * A gang of 8 nodes waits for 8; when the time is over its nodes are not kept any longer.
 */
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/queue.h"

#include <inttypes.h>

#define KEEP_MS 600000 /* about the maximum time of a machine's launch and boot */

bool node_is_kept_from(const struct node *n, const struct shape *s)
{
    return n->kept_for && n->kept_for->row.id != s->owner;
}

void gang_keep(struct model *m, struct job *j, struct node *n)
{
    if (j->row.spec.nodes == 1 || j->row.state != JOB_RUNNING || !node_takes_work(n) ||
        n->kept_for || n->claims > 0)
        return;
    n->kept_for = j;
    n->row.kept_for = j->row.id;
    list_push_back(&job_make_side(j)->kept, &n->in_kept);
    touch_node(m, n);
    model_note_change(m);
}

void gang_node_leaves(struct model *m, struct node *n)
{
    if (!n->kept_for)
        return;
    n->kept_for = NULL;
    n->row.kept_for = CORE_ID_NONE;
    link_remove(&n->in_kept);
    touch_node(m, n);
}

static void set_until(struct model *m, struct job *j, struct wall until)
{
    if (j->row.gang_resize_until.ms == until.ms)
        return;
    j->row.gang_resize_until = until;
    touch_job(m, j);
}

static void leave_resizes(struct job *j)
{
    if (j->side)
        link_remove(&j->side->gang_resizes);
}

void gang_release(struct model *m, struct job *j)
{
    leave_resizes(j);
    set_until(m, j, WALL_NONE);
    LIST_FOREACH (&job_side(j)->kept, l) {
        struct node *n = LIST_ENTRY(l, struct node, in_kept);
        gang_node_leaves(m, n);
        node_refresh(m, n, true); /* other jobs may use it now */
    }
}

static bool is_loss(enum end_kind end)
{
    return end == END_RECLAIMED || end == END_NODE_LOST || end == END_DRAINED;
}

static int32_t min_nodes_after(const struct job_row *r, enum end_kind end)
{
    if (!is_loss(end))
        return r->spec.nodes;
    return r->spec.on_loss == LOSS_WAIT && r->ranks > r->spec.nodes_min ? r->ranks
                                                                        : r->spec.nodes_min;
}

/* waits: it waits for more nodes than its minimum. */
static void set_wanted_nodes(struct model *m, struct job *j, bool waits)
{
    bool is_fixed = j->row.spec.nodes_min == j->row.spec.nodes;
    j->least = is_fixed || !waits ? j->row.spec.nodes_min : min_nodes_after(&j->row, j->row.end);
    j->gathers = waits && !is_fixed && !is_loss(j->row.end);
    queue_reshape(m, j);
}

/* Waiting jobs are ordered by time; a new one is nearly always the last. */
static void wait_until(struct model *m, struct job *j, struct mono until)
{
    struct link *after = NULL;
    struct job_side *side = job_make_side(j);
    side->gang_resize_until = until;
    LIST_FOREACH (&m->lifecycle.gang_resizes, l)
        if (!after && LIST_ENTRY(l, struct job_side, gang_resizes)->gang_resize_until.ms > until.ms)
            after = l;
    if (after)
        list_insert_before(after, &side->gang_resizes);
    else
        list_push_back(&m->lifecycle.gang_resizes, &side->gang_resizes);
}

void gang_queued(struct model *m, struct job *j, struct stamp now)
{
    if (j->row.spec.nodes == 1)
        return;
    set_wanted_nodes(m, j, true);
    leave_resizes(j);
    bool waits = j->least > j->row.spec.nodes_min || !list_is_empty(&job_side(j)->kept);
    set_until(m, j, waits ? (struct wall){now.wall.ms + KEEP_MS} : WALL_NONE);
    if (waits)
        wait_until(m, j, (struct mono){now.mono.ms + KEEP_MS});
}

/* ---- recovery ---- */

struct mono gang_until(const struct job_row *r, struct stamp now)
{
    int64_t left = wall_is_set(r->gang_resize_until) ? r->gang_resize_until.ms - now.wall.ms : 0;
    left = left < 0 ? 0 : left > KEEP_MS ? KEEP_MS : left; /* the wall clock may have jumped */
    return (struct mono){now.mono.ms + left};
}

void gang_load(struct model *m, struct job *j)
{
    bool waits = wall_is_set(j->row.gang_resize_until);
    if (j->row.spec.nodes == 1)
        return;
    set_wanted_nodes(m, j, waits);
    if (waits)
        wait_until(m, j, job_side(j)->gang_resize_until);
}

int gang_load_kept(struct model *m, struct node *n, struct err *e)
{
    struct job *j = model_job(m, n->row.kept_for);
    if (n->row.kept_for == CORE_ID_NONE)
        return 0;
    if (!j || j->row.spec.nodes == 1 || !node_takes_work(n) ||
        (j->row.state == JOB_PENDING && !wall_is_set(j->row.gang_resize_until)))
        return err_set(e, ERR_CORRUPT,
            "stored node %" PRId64 " is kept for job %" PRId64 ", which has no use for it",
            n->row.id, n->row.kept_for);
    n->kept_for = j;
    list_push_back(&job_make_side(j)->kept, &n->in_kept);
    return 0;
}

void gang_stop_waiting(struct model *m, struct job *j)
{
    gang_release(m, j);
    if (j->shape->owner != CORE_ID_NONE)
        queue_reshape(m, j);
}

struct mono gang_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    (void)now;
    struct link *l = list_first(&m->lifecycle.gang_resizes);
    if (!l)
        return MONO_NONE;
    const struct job_side *s = LIST_ENTRY(l, struct job_side, gang_resizes);
    *ret_event = (struct event){.type = EV_SETTLE, .settle.job = s->job->row.id};
    return s->gang_resize_until;
}

int apply_settle(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->settle.job);
    if (!j || j->row.state != JOB_PENDING || !link_is_in(&job_side(j)->gang_resizes))
        return err_set(e, ERR_CONFLICT, "job %" PRId64 " does not wait for more nodes (any more)",
            ev->settle.job);
    const char *why =
        ev->settle.nothing_more ? "no more are available now" : "it has waited for ten minutes";
    if (j->least > j->row.spec.nodes_min)
        history(m, ev->now, "settled", (struct history_of){.job = j},
            "starts with %" PRId32 " or more nodes instead of %" PRId32 ": %s",
            j->row.spec.nodes_min, j->least, why);
    else
        history(m, ev->now, "settled", (struct history_of){.job = j},
            "no nodes are reserved for it any more: %s", why);
    gang_release(m, j);
    j->least = j->row.spec.nodes_min;
    j->gathers = false;
    queue_reshape(m, j);
    ret_outcome->id = j->row.id;
    return 0;
}
