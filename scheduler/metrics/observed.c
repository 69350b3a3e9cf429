/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/metrics/observed.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/metrics/node_gpus.h"
#include "scheduler/metrics/series.h"
#include <stdlib.h>

enum family {
    JOBS,
    DEADLINE_JOBS,
    QUEUE_WAIT,
    START,
    ATTEMPTS_ENDED,
    LOST,
    NOTICES,
    NOTICE_SAVED,
    RECLAIMED,
    SAVES,
    SAVED_BYTES,
    STORED_BYTES,
    NODE_SECONDS,
    DOLLARS,
    ON_DEMAND_DOLLARS,
    FAMILIES
};

static const struct {
    enum metric_type type;
    const char *name, *help;
    const double *bounds;
} families[FAMILIES] = {
    [JOBS] = {METRIC_GAUGE, "belay_jobs",
        "Live jobs, and tasks of arrays that have not begun, by state and by what a pending one "
        "waits for."},
    [DEADLINE_JOBS] = {METRIC_GAUGE, "belay_deadline_jobs",
        "Live jobs with a time to finish by, by which machines they may use now."},
    [QUEUE_WAIT] = {METRIC_HISTOGRAM, "belay_job_queue_wait_seconds",
        "Time from when a job could run to its place on a node.", histogram_waits},
    [START] = {METRIC_HISTOGRAM, "belay_job_start_seconds",
        "Time from a job's place on a node to its program's start, with the restore.",
        histogram_waits},
    [ATTEMPTS_ENDED] = {METRIC_COUNTER, "belay_attempts_ended",
        "Attempts that have ended, one for each node, by their ends."},
    [LOST] = {METRIC_COUNTER, "belay_lost_work_seconds",
        "Work that is repeated, because it was not in a checkpoint."},
    [NOTICES] = {METRIC_COUNTER, "belay_reclaim_notices",
        "Notices of nodes that the provider takes back."},
    [NOTICE_SAVED] = {METRIC_HISTOGRAM, "belay_notice_saved_seconds",
        "Time from a notice to the end of a save that it caused.", histogram_notices},
    [RECLAIMED] = {METRIC_COUNTER, "belay_reclaimed_attempts",
        "Attempts that ended because their node was reclaimed or lost, by whether they were saved "
        "after the notice."},
    [SAVES] = {METRIC_HISTOGRAM, "belay_checkpoint_seconds",
        "Durations of saves, by what caused them.", histogram_waits},
    [SAVED_BYTES] = {METRIC_COUNTER, "belay_checkpoint_bytes", "Content of checkpoints."},
    [STORED_BYTES] = {METRIC_COUNTER, "belay_checkpoint_stored_bytes",
        "Bytes of checkpoints that were new in the store, as written to it."},
    [NODE_SECONDS] = {METRIC_COUNTER, "belay_node_seconds", "Time of nodes, by its use."},
    [DOLLARS] = {METRIC_COUNTER, "belay_cost_dollars", "Cost, by its kind in the ledger."},
    [ON_DEMAND_DOLLARS] = {METRIC_COUNTER, "belay_cost_on_demand_dollars",
        "What the same would have cost at on-demand prices, without reclaims."},
};

/* What a live job counts as. */
struct mark {
    struct series_one *in, *deadline; /* deadline: NULL without one */
    double n;
};

struct observed {
    struct series series[FAMILIES];
    struct map marks;   /* job -> struct mark */
    struct map notices; /* node -> struct wall: its notice of a reclaim */
    struct node_gpus *gpus;
};

static struct series_one *series(
    struct observed *o, enum family f, const struct metric_labels *labels)
{
    return series_get(&o->series[f], labels, families[f].bounds);
}

/* ---- jobs ---- */

static const char *reason_of(const struct job *j)
{
    const struct job_side *side = job_side(j);
    return j->row.state != JOB_PENDING             ? ""
           : j->row.hold != HOLD_NONE              ? "hold"
           : side->n_open > 0 || side->n_never > 0 ? "dependency"
           : j->is_waiting                         ? "time"
                                                   : "capacity";
}

static double count_of(const struct job *j)
{
    return j->row.state == JOB_PENDING && j->array ? (double)array_left(j->array) : 1;
}

static void count_mark(const struct mark *mark, double sign)
{
    mark->in->value += sign * mark->n;
    if (mark->deadline)
        mark->deadline->value += sign * mark->n;
}

static struct series_one *deadline_of(struct observed *o, const struct job *j)
{
    struct metric_labels l = {0};
    if (j->row.spec.finish_ms == 0)
        return NULL;
    metric_labels_add(&l, "state", sm_name(&job_sm, (int)j->row.state));
    metric_labels_add(&l, "machines", procurement_names[j->row.procurement]);
    metric_labels_add(&l, "team", j->row.spec.team);
    return series(o, DEADLINE_JOBS, &l);
}

static void mark_job(struct observed *o, const struct model *m, int64_t id)
{
    const struct job *j = model_job(m, id);
    struct mark *mark = map_get(&o->marks, id);
    if (mark)
        count_mark(mark, -1);
    if (!j || j->row.state == JOB_ENDED) {
        free(map_remove(&o->marks, id));
        return;
    }
    struct metric_labels l = {0};
    metric_labels_add(&l, "state", sm_name(&job_sm, (int)j->row.state));
    metric_labels_add(&l, "reason", reason_of(j));
    metric_labels_add(&l, "team", j->row.spec.team);
    metric_labels_add(&l, "qos", j->row.spec.qos);
    if (!mark) {
        mark = mem_alloc(sizeof *mark);
        map_put(&o->marks, id, mark);
    }
    *mark =
        (struct mark){.in = series(o, JOBS, &l), .deadline = deadline_of(o, j), .n = count_of(j)};
    count_mark(mark, 1);
}

void observed_load(struct observed *o, const struct model *m)
{
    const struct job *j;
    for (size_t at = 0; (j = model_next_job(m, &at));)
        mark_job(o, m, j->row.id);
}

/* ---- where ---- */

/* Labels pool and market of a node or an instance, in the model or going with this commit. */
static void add_place(struct metric_labels *l, const struct model *m, const struct changes *c,
    int64_t node, int64_t instance)
{
    if (node == CORE_ID_NONE && instance == CORE_ID_NONE)
        return;
    const struct node *n = model_node(m, node);
    const struct instance *i = n ? NULL : model_instance(m, instance);
    const struct node_row *row = n ? &n->row : NULL;
    const struct instance_row *machine = i ? &i->row : NULL;
    for (size_t k = 0; !row && !machine && k < c->n_nodes; k++)
        row = c->nodes[k].id == node ? &c->nodes[k] : NULL;
    for (size_t k = 0; !row && !machine && k < c->n_instances; k++)
        machine = c->instances[k].id == instance ? &c->instances[k] : NULL;
    metric_labels_add(l, "pool", row ? row->pool : machine ? machine->pool : "");
    metric_labels_add(l, "market",
        row       ? market_names[row->market]
        : machine ? market_names[machine->market]
                  : "");
}

/* ---- what happened ---- */

/* A gang has a row for each rank, one after the other. */
static bool is_first_of_gang(const struct changes *c, size_t i)
{
    const struct history_row *r = &c->history[i];
    return i == 0 || !str_eq(r[-1].kind, r->kind) || r[-1].job != r->job ||
           r[-1].attempt != r->attempt;
}

static void note_placed(struct observed *o, const struct model *m, const struct history_row *r)
{
    const struct job *j = model_job(m, r->job);
    struct metric_labels l = {0};
    if (!j || !wall_is_set(j->row.eligible_at))
        return;
    metric_labels_add(&l, "team", j->row.spec.team);
    metric_labels_add(&l, "qos", j->row.spec.qos);
    histogram_add(&series(o, QUEUE_WAIT, &l)->histogram,
        (double)max_i64(r->at.ms - j->row.eligible_at.ms, 0) / 1000);
}

static void note_started(
    struct observed *o, const struct model *m, const struct changes *c, const struct history_row *r)
{
    struct metric_labels l = {0};
    const struct node *n = model_node(m, r->node);
    const struct attempt *a = NULL;
    if (n)
        LIST_FOREACH (&n->attempts, k) {
            const struct attempt *other = LIST_ENTRY(k, struct attempt, on_node);
            a = other->row.job == r->job && other->row.attempt == r->attempt ? other : a;
        }
    if (!a || !wall_is_set(a->row.started_at))
        return;
    add_place(&l, m, c, r->node, r->instance);
    histogram_add(&series(o, START, &l)->histogram,
        (double)max_i64(a->row.started_at.ms - a->row.assigned_at.ms, 0) / 1000);
}

static void note_notice(
    struct observed *o, const struct model *m, const struct changes *c, const struct history_row *r)
{
    const struct node *n = model_node(m, r->node);
    if (!n || n->row.notice != NOTICE_TYPE_RECLAIM || map_get(&o->notices, r->node))
        return; /* a job on the node has a row too */
    struct metric_labels l = {0};
    add_place(&l, m, c, r->node, r->instance);
    series(o, NOTICES, &l)->value++;
    struct wall *at = mem_alloc(sizeof *at);
    *at = r->at;
    map_put(&o->notices, r->node, at);
}

static void forget_notice(struct observed *o, int64_t node)
{
    free(map_remove(&o->notices, node));
}

static void note_history(
    struct observed *o, const struct model *m, const struct changes *c, size_t i)
{
    const struct history_row *r = &c->history[i];
    if (str_eq(r->kind, "placed") && is_first_of_gang(c, i))
        note_placed(o, m, r);
    else if (str_eq(r->kind, "started"))
        note_started(o, m, c, r);
    else if (str_eq(r->kind, "notice"))
        note_notice(o, m, c, r);
    else if (str_eq(r->kind, "returned"))
        forget_notice(o, r->node);
    else if (str_eq(r->kind, "ended") && r->b > 0) {
        struct metric_labels l = {0};
        add_place(&l, m, c, r->node, r->instance);
        series(o, LOST, &l)->value += (double)r->b / 1000;
    }
}

/* An ended attempt has its last row in the commit of its end. */
static void note_ended(
    struct observed *o, const struct model *m, const struct changes *c, const struct attempt_row *r)
{
    const struct wall *noticed = map_get(&o->notices, r->node);
    const bool saved = noticed && wall_is_set(r->kept_at) && r->kept_at.ms >= noticed->ms;
    struct metric_labels l = {0}, reclaimed = {0};
    add_place(&l, m, c, r->node, CORE_ID_NONE);
    reclaimed = l;
    metric_labels_add(&l, "end", end_kind_names[r->end]);
    series(o, ATTEMPTS_ENDED, &l)->value++;
    if (r->end != END_RECLAIMED && r->end != END_NODE_LOST)
        return;
    metric_labels_add(&reclaimed, "saved", saved ? "yes" : "no");
    series(o, RECLAIMED, &reclaimed)->value++;
}

static void note_checkpoint(struct observed *o, const struct model *m, const struct changes *c,
    const struct checkpoint_row *r)
{
    struct metric_labels place = {0}, cause = {0};
    const struct wall *noticed = map_get(&o->notices, r->node);
    metric_labels_add(&cause, "cause", r->cause);
    add_place(&place, m, c, r->node, CORE_ID_NONE);
    histogram_add(&series(o, SAVES, &cause)->histogram, (double)r->took_ms / 1000);
    series(o, SAVED_BYTES, &place)->value += (double)r->bytes;
    series(o, STORED_BYTES, &place)->value += (double)r->stored_bytes;
    if (noticed && r->saved_at.ms >= noticed->ms && str_eq(r->cause, "notice"))
        histogram_add(&series(o, NOTICE_SAVED, &place)->histogram,
            (double)(r->saved_at.ms + r->took_ms - noticed->ms) / 1000);
}

static void note_cost(
    struct observed *o, const struct model *m, const struct changes *c, const struct ledger_row *r)
{
    struct metric_labels l = {0};
    add_place(&l, m, c, r->node, r->instance);
    metric_labels_add(&l, "kind", ledger_kind_names[r->kind]);
    series(o, NODE_SECONDS, &l)->value += (double)r->node_ms / 1000;
    series(o, DOLLARS, &l)->value += (double)r->uusd / 1e6;
    series(o, ON_DEMAND_DOLLARS, &l)->value += (double)r->on_demand_uusd / 1e6;
}

void observed_committed(struct observed *o, const struct model *m, const struct db_batch *b)
{
    const struct changes *c = &b->changes;
    for (size_t i = 0; i < c->n_jobs; i++)
        mark_job(o, m, c->jobs[i].id);
    for (size_t i = 0; i < c->n_arrays; i++)
        mark_job(o, m, c->arrays[i].job);
    for (size_t i = 0; i < c->n_history; i++)
        note_history(o, m, c, i);
    for (size_t i = 0; i < c->n_checkpoints; i++)
        note_checkpoint(o, m, c, &c->checkpoints[i]);
    for (size_t i = 0; i < c->n_attempts; i++)
        if (c->attempts[i].state == ATTEMPT_ENDED)
            note_ended(o, m, c, &c->attempts[i]);
    for (size_t i = 0; i < c->n_ledger; i++)
        note_cost(o, m, c, &c->ledger[i]);
    for (size_t i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].state == NODE_GONE)
            forget_notice(o, c->nodes[i].id);
    node_gpus_committed(o->gpus, m, &b->loads);
}

void observed_write(const struct observed *o, const struct model *m, struct exposition *x)
{
    for (int f = 0; f < FAMILIES; f++) {
        exposition_family(x, families[f].type, families[f].name, families[f].help);
        series_write(&o->series[f], x);
    }
    node_gpus_write(o->gpus, m, x);
}

/* ---- life ---- */

struct observed *observed_create(void)
{
    struct observed *o = mem_alloc(sizeof *o);
    o->gpus = node_gpus_create();
    return o;
}

static void free_values(struct map *m)
{
    size_t at = 0;
    for (void *value; (value = map_next(m, &at, NULL));)
        free(value);
    map_deinit(m);
}

void observed_destroy(struct observed *o)
{
    if (!o)
        return;
    for (int f = 0; f < FAMILIES; f++)
        series_deinit(&o->series[f]);
    free_values(&o->marks);
    free_values(&o->notices);
    node_gpus_destroy(o->gpus);
    free(o);
}
