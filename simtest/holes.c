/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds nodes fail all jobs for a while, at once (scheduler/core/lifecycle/
 * node_failures.h). Checked against committed data: belayd drains a node itself only after enough
 * jobs of enough users have failed there soon after their start; it drains it then, unless the pool
 * has lost enough nodes; and a job whose failure counts as a drain does not pay for it. A restart
 * of belayd forgets no failure: what it loads is what was committed.
 *
 * Within a batch the order of events is unknown. After a batch in which jobs failed on a node and
 * something worked there, belayd may have counted anew, or may not.
 */
#include "simtest/world.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include <stdlib.h>

#define HOLE_MAX_MS 900000
#define PART_OF_POOL 4        /* scheduler/core/lifecycle/node_failures.c */
#define COMMIT_LATE_MS 120000 /* how long a commit may lag behind its event: the disk is full */

/* A job that failed on a node. */
struct sim_failure {
    int64_t of; /* the job, or its array */
    char user[CORE_NAME_MAX];
    int64_t at_ms; /* virtual time of the commit */
    bool is_sure;  /* else belayd may have counted anew since */
};

/* A node, as committed. */
struct sim_hole {
    struct sim_failure failures[SIM_JOBS_MAX];
    int n;
    /* In batch `batch`: a job failed there, something worked there, it was drained. */
    int64_t batch;
    bool failed, worked, drained;
    bool is_drained, by_belay;
    struct node_failure_row stored[NODE_FAILURES_MAX];
    int32_t n_stored;
};

const struct node_failures_options sim_holes = {
    .jobs = 2, .users = 2, .within_ms = 300000, .quick_ms = 20000};

bool holes_enabled(const struct world *w)
{
    return w->seed % SIM_HOLES == 2;
}

void holes_disturb(struct world *w)
{
    const struct link *l = list_first(&w->agents);
    if (!holes_enabled(w) || w->faults_over || !world_chance(w, 0.1))
        return;
    for (int64_t skip = world_between(w, 0, 5); l && skip > 0; skip--)
        l = list_next(&w->agents, l);
    if (l)
        LIST_ENTRY(l, struct sim_agent, in_world)->hole_until_ms =
            world_now(w) + world_between(w, 10000, HOLE_MAX_MS);
}

bool holes_swallow(const struct sim_agent *a)
{
    return !a->w->faults_over && world_now(a->w) < a->hole_until_ms;
}

static struct sim_hole *hole_of(struct world *w, int64_t node)
{
    struct sim_hole *h = map_get(&w->holes, node);
    if (!h) {
        h = mem_alloc(sizeof(*h));
        map_put(&w->holes, node, h);
    }
    if (h->batch != w->n_batches)
        h->failed = h->worked = h->drained = false;
    h->batch = w->n_batches;
    return h;
}

static void doubt(struct sim_hole *h)
{
    for (int k = 0; k < h->n; k++)
        h->failures[k].is_sure = false;
}

static const struct job_row *job_in(const struct changes *c, int64_t id)
{
    for (size_t i = 0; i < c->n_jobs; i++)
        if (c->jobs[i].id == id)
            return &c->jobs[i];
    return NULL;
}

static void add(struct sim_hole *h, const struct job_row *j, int64_t now_ms)
{
    int64_t of = j->array != CORE_ID_NONE ? j->array : j->id;
    int k = 0;
    while (k < h->n && h->failures[k].of != of)
        k++;
    if (k == SIM_JOBS_MAX)
        return;
    h->n = k == h->n ? h->n + 1 : h->n;
    h->failures[k] = (struct sim_failure){.of = of, .at_ms = now_ms, .is_sure = !h->is_drained};
    STR_COPY(h->failures[k].user, j->user);
}

static bool counts(const struct sim_failure *f, int64_t since_ms, bool sure)
{
    return f->at_ms >= since_ms && (f->is_sure || !sure);
}

/* Jobs that failed since then; *ret_users: of how many users. */
static int count(const struct sim_hole *h, int64_t since_ms, bool sure, int *ret_users)
{
    int jobs = 0, users = 0;
    for (int k = 0; k < h->n; k++) {
        const struct sim_failure *f = &h->failures[k];
        bool is_new = counts(f, since_ms, sure);
        jobs += is_new;
        for (int i = 0; i < k; i++)
            is_new &=
                !counts(&h->failures[i], since_ms, sure) || !str_eq(h->failures[i].user, f->user);
        users += is_new;
    }
    *ret_users = users;
    return jobs;
}

static void note_attempt(struct world *w, const struct changes *c, const struct attempt_row *r)
{
    const struct job_row *j = job_in(c, r->job);
    if (r->state != ATTEMPT_ENDED || !j || j->spec.nodes > 1)
        return;
    struct sim_hole *h = hole_of(w, r->node);
    int64_t ran_ms = wall_is_set(r->started_at) ? r->ended_at.ms - r->started_at.ms : 0;
    bool failed = r->end == END_FAILED || (r->end == END_DRAINED && r->exit_code == SIM_HOLE_CODE);
    if (r->end == END_SUCCEEDED || ran_ms >= sim_holes.quick_ms) {
        h->worked = true;
    } else if (failed) {
        h->failed = true;
        add(h, j, world_now(w));
    }
}

static void check_excused(struct world *w, const struct job_row *r)
{
    const struct sim_job *j = world_job(w, r->id);
    if (r->state == JOB_PENDING && r->end == END_DRAINED && r->exit_code == SIM_HOLE_CODE &&
        j->seen == JOB_RUNNING && r->used[RETRY_FAILED] > j->used_failed)
        world_fail(
            w, "job %lld: a failure because of its node was counted as its own", (long long)r->id);
    world_job(w, r->id)->used_failed = r->used[RETRY_FAILED];
}

static void note_node(struct world *w, const struct node_row *r)
{
    struct sim_hole *h = hole_of(w, r->id);
    bool by_belay = r->drained_by_belay;
    int users = 0,
        jobs = count(h, world_now(w) - sim_holes.within_ms - COMMIT_LATE_MS, false, &users);
    if (by_belay && !h->by_belay && (jobs < sim_holes.jobs || users < sim_holes.users))
        world_fail(w,
            "belayd drained node %lld, but only %d jobs of %d users have failed there in a row",
            (long long)r->id, jobs, users);
    if (h->is_drained && !r->drain)
        doubt(h);
    h->is_drained = r->drain;
    h->by_belay = by_belay;
}

/* Whether a further node of the pool may be drained, by the model right after the commit. */
static bool may_lose_one(const struct world *w, int64_t node)
{
    const struct node *of = model_node(w->model, node);
    int64_t nodes = 0, drained = 0;
    LIST_FOREACH (model_nodes(w->model), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        nodes += of && n->pool == of->pool;
        drained += of && n->pool == of->pool && n->row.drained_by_belay;
    }
    return of && drained < (nodes / PART_OF_POOL > 1 ? nodes / PART_OF_POOL : 1);
}

/* At the end of a batch that named it. */
static void check_node(struct world *w, int64_t id, struct sim_hole *h)
{
    int users = 0,
        jobs = count(h, world_now(w) - sim_holes.within_ms + COMMIT_LATE_MS, true, &users);
    if (h->worked && !h->failed)
        h->n = 0;
    else if (h->worked)
        doubt(h);
    else if (h->failed && !h->is_drained && !h->drained && jobs >= sim_holes.jobs &&
             users >= sim_holes.users && w->up && may_lose_one(w, id))
        world_fail(w, "%d jobs of %d users failed at once on node %lld, but it is not drained",
            jobs, users, (long long)id);
}

static void note_stored(struct world *w, const struct node_failure_row *r)
{
    struct sim_hole *h = hole_of(w, r->node);
    if (r->is_removed) {
        h->n_stored = (int32_t)min_i64(h->n_stored, r->place);
    } else {
        h->stored[r->place] = *r;
        h->n_stored = (int32_t)max_i64(h->n_stored, r->place + 1);
    }
}

void holes_loaded(struct world *w)
{
    size_t at = 0;
    int64_t id = 0;
    for (struct sim_hole *h; (h = map_next(&w->holes, &at, &id));) {
        const struct node *n = model_node(w->model, id);
        const struct node_failures *f = n ? n->failures : NULL;
        bool same = !n || h->n_stored == (f ? f->n : 0);
        for (int32_t k = 0; f && same && k < f->n; k++)
            same = f->last[k].job == h->stored[k].job && f->last[k].retries == h->stored[k].retries;
        if (!same)
            world_fail(w,
                "node %lld was loaded with %d failures of jobs, not the %d committed ones",
                (long long)id, f ? f->n : 0, h->n_stored);
    }
}

void holes_committed(struct world *w, const struct changes *c)
{
    w->n_batches++;
    if (!holes_enabled(w))
        return;
    for (size_t i = 0; i < c->n_node_failures; i++)
        note_stored(w, &c->node_failures[i]);
    for (size_t i = 0; i < c->n_attempts; i++)
        note_attempt(w, c, &c->attempts[i]);
    for (size_t i = 0; i < c->n_jobs; i++)
        check_excused(w, &c->jobs[i]);
    for (size_t i = 0; i < c->n_nodes; i++)
        note_node(w, &c->nodes[i]);
    for (size_t i = 0; i < c->n_history; i++)
        if (sim_is_drain(&c->history[i]))
            hole_of(w, c->history[i].node)->drained = true;
    size_t at = 0;
    int64_t id = 0;
    for (struct sim_hole *h; (h = map_next(&w->holes, &at, &id));)
        if (h->batch == w->n_batches)
            check_node(w, id, h);
}

void holes_deinit(struct world *w)
{
    size_t at = 0;
    for (struct sim_hole *h; (h = map_next(&w->holes, &at, NULL));)
        free(h);
    map_deinit(&w->holes);
}
