/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the promises of docs/architecture.md after every event: nothing acknowledged, saved or
 * paid for is lost, and one attempt of a job may save. Keeps its own copy of committed data, from
 * the change sets at their commit, and compares everything that leaves belayd with it.
 */
#include "simtest/options.h"
#include "simtest/world.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/placement/constraints.h"

static int64_t drill_key(int64_t job, int64_t number)
{
    return (job << 20) + number;
}

/* The rank of an attempt is identified by its node. */
static int64_t rank_key(int64_t job, int64_t attempt, int64_t node)
{
    return (job << 40) + (attempt << 20) + node;
}

bool check_is_known(const struct world *w, const struct attempt_row *r)
{
    return map_get(&w->attempts, rank_key(r->job, r->attempt, r->node)) != NULL;
}

/* ---- committed data ---- */

static const struct sim_job *task_of(const struct world *w, int64_t array, int32_t index)
{
    for (int i = 0; i < SIM_JOBS_MAX; i++)
        if (w->jobs[i].array == array && w->jobs[i].index == index)
            return &w->jobs[i];
    return NULL;
}

/* True if the awaited task may still run or has succeeded; *ret_succeeded: it has succeeded. */
static bool may_succeed(struct world *w, int64_t array, int32_t index, bool *ret_succeeded)
{
    const struct sim_job *t = task_of(w, array, index);
    *ret_succeeded = t && t->ends > 0 && t->end == END_SUCCEEDED;
    return *ret_succeeded || (t ? t->ends == 0 : ranges_has(&world_job(w, array)->left, index));
}

/* Returns the reason why the dependency is not satisfied, judged by committed data of ended jobs;
 * NULL if it is satisfied. index: of a task, else -1. */
static const char *unmet(struct world *w, const struct dependency_row *r, int32_t index)
{
    const struct sim_job *on = r->on != CORE_ID_NONE ? world_job(w, r->on) : NULL;
    bool has_succeeded = false;
    if (r->kind == DEPEND_AFTERCORR && index >= 0)
        may_succeed(w, r->on, index, &has_succeeded);
    if (r->kind == DEPEND_AFTERCORR)
        return has_succeeded ? NULL : depend_kind_names[r->kind];
    /* the awaited task has not begun, or never will */
    if (r->of_task && !task_of(w, r->on, r->task)) {
        bool never = !ranges_has(&on->left, r->task);
        return never && r->kind != DEPEND_AFTEROK ? NULL : depend_kind_names[r->kind];
    }
    if (r->of_task)
        on = task_of(w, r->on, r->task);
    bool ended = on && on->ends > 0, succeeded = ended && on->end == END_SUCCEEDED;
    if (!on || (r->kind == DEPEND_AFTER && on->attempts > 0))
        return NULL;
    bool is_met = r->kind == DEPEND_AFTEROK      ? succeeded
                  : r->kind == DEPEND_AFTERNOTOK ? ended && !succeeded
                                                 : ended;
    return is_met ? NULL : depend_kind_names[r->kind];
}

/* At the first placement of a job. A task waits for the dependencies of its array. */
static void check_eligible(struct world *w, const struct job_row *r, const struct sim_job *j)
{
    const struct dependency_row *after =
        r->array != CORE_ID_NONE ? &world_job(w, r->array)->after : &j->after;
    const char *kind = unmet(w, after, r->array != CORE_ID_NONE ? r->array_index : -1);
    if (kind)
        world_fail(w, "job %lld was started before its dependency %s:%lld was satisfied",
            (long long)r->id, kind, (long long)after->on);
    if (r->spec.begin_at.ms > world_stamp(w).wall.ms)
        world_fail(w, "job %lld was started before its begin time", (long long)r->id);
}

/* A task ended as DEPENDENCY waited for a task of another array that can no longer succeed. */
static void check_given_up(struct world *w, const struct job_row *r)
{
    const struct dependency_row *after = &world_job(w, r->array)->after;
    bool unused;
    if (after->kind != DEPEND_AFTERCORR || may_succeed(w, after->on, r->array_index, &unused))
        world_fail(w,
            "task %d of array %lld was ended as DEPENDENCY, but its dependency may still be "
            "satisfied",
            (int)r->array_index, (long long)r->array);
}

static struct ranges left_of(struct world *w, const struct array_row *r)
{
    struct ranges left = {0};
    struct err e;
    if (r->left[0] && ranges_parse(r->left, &left, &e) != 0)
        world_fail(w, "array %lld: %s", (long long)r->job, e.text);
    return left;
}

/* Compares belayd's counts of ended tasks with an independent count. */
static void check_array(struct world *w, const struct array_row *r)
{
    struct sim_job *j = world_job(w, r->job);
    /* as of this row: a batch may have several rows of one array */
    const struct ranges left = left_of(w, r);
    struct ranges all;
    struct err e;
    if (ranges_parse(r->tasks, &all, &e) != 0) {
        world_fail(w, "array %lld: %s", (long long)r->job, e.text);
        return;
    }
    j->n_tasks = ranges_count(&all);
    if (r->n_succeeded > j->n_tasks_succeeded ||
        r->n_succeeded + r->n_other + ranges_count(&left) > j->n_tasks)
        world_fail(w, "array %lld counts %d tasks as succeeded and %d as otherwise ended, of %lld",
            (long long)r->job, (int)r->n_succeeded, (int)r->n_other, (long long)j->n_tasks);
    int64_t living = j->n_tasks - ranges_count(&left) - r->n_succeeded - r->n_other;
    /* the limit may have been lowered */
    if (r->at_once > 0 && living > r->at_once && living > j->n_living)
        world_fail(w, "array %lld runs more tasks at once than its limit", (long long)r->job);
    j->n_living = living;
}

/* Every task ran to its end, unless some were cancelled. */
static void check_tasks(struct world *w, const struct sim_job *j, const struct job_row *r)
{
    /* including an array of which a task that ran has failed */
    bool may_be_given_up =
        r->spec.deadline_ms > 0 || j->waited_for_others || j->after.on != CORE_ID_NONE;
    if (!j->cancelled && !may_be_given_up && r->end != END_CANCELLED && r->end != END_DEPENDENCY &&
        r->end != END_DEADLINE && j->n_tasks_ended != j->n_tasks)
        world_fail(w, "array %lld ended after only %lld of its %lld tasks had ended",
            (long long)r->id, (long long)j->n_tasks_ended, (long long)j->n_tasks);
    if ((r->end == END_SUCCEEDED) != (j->n_tasks_succeeded == j->n_tasks))
        world_fail(w, "array %lld ended as %s, but %lld of its %lld tasks succeeded",
            (long long)r->id, end_kind_names[r->end], (long long)j->n_tasks_succeeded,
            (long long)j->n_tasks);
}

/* A store that refuses requests does not end a job and costs it neither retries nor checkpoints:
 * other nodes are tried, then the job is held. */
static void check_store(struct world *w, struct sim_job *j, const struct job_row *r)
{
    bool is_back = j->seen == JOB_RUNNING && r->state == JOB_PENDING;
    if (r->state == JOB_ENDED && (r->end == END_STORE || r->end == END_STORE_AWAY))
        world_fail(w, "job %lld was ended because its store refused requests", (long long)r->id);
    if (r->state == JOB_ENDED && r->end == END_CAPACITY)
        world_fail(w, "job %lld was ended because the disk of a node was full", (long long)r->id);
    if (is_back && r->end == END_CAPACITY &&
        r->used[RETRY_FAILED] + r->used[RETRY_NODE_LOST] > j->used)
        world_fail(w, "job %lld: the full disk of a node was counted as a failure of the job",
            (long long)r->id);
    j->no_space_starts =
        r->end == END_CAPACITY && r->hold == HOLD_NONE ? j->no_space_starts + is_back : 0;
    if (j->no_space_starts >= JOB_NO_SPACE_MAX)
        world_fail(w,
            "job %lld found the disk of a node full %d times in a row, but is queued again",
            (long long)r->id, (int)j->no_space_starts);
    j->away = r->end == END_STORE_AWAY ? j->away + is_back : 0;
    if (j->away >= JOB_STORE_MAX)
        world_fail(w, "job %lld could not use its store %d times in a row, but is queued again",
            (long long)r->id, (int)j->away);
    if (is_back && r->end == END_STORE && r->hold == HOLD_NONE)
        world_fail(
            w, "job %lld cannot use its store, but is queued without a hold", (long long)r->id);
    if (is_back && (r->end == END_STORE || r->end == END_STORE_AWAY) &&
        r->used[RETRY_FAILED] + r->used[RETRY_NODE_LOST] > j->used)
        world_fail(w, "job %lld: a refusal of its store was counted as a failure of the job",
            (long long)r->id);
    j->used = r->used[RETRY_FAILED] + r->used[RETRY_NODE_LOST];
}

/* The last good checkpoint is never an earlier one, unless the user discarded work. */
static void check_last_good(struct world *w, struct sim_job *j, const struct job_row *r)
{
    bool given_up = r->from_attempt > j->from_attempt; /* its user discarded the work */
    if (r->from_attempt < j->from_attempt)
        world_fail(
            w, "job %lld: checkpoints that its user discarded are valid again", (long long)r->id);
    j->from_attempt = r->from_attempt;
    if (ckpt_ref_compare(r->last_good, j->last_good) < 0 && !given_up)
        world_fail(w, "job %lld: the last good checkpoint went back from %lld.%lld to %lld.%lld",
            (long long)r->id, (long long)j->last_good.attempt, (long long)j->last_good.sequence,
            (long long)r->last_good.attempt, (long long)r->last_good.sequence);
    if (r->last_good.attempt && !store_has(w, r->id, r->last_good))
        world_fail(w, "job %lld: the last good checkpoint %lld.%lld is not in the store",
            (long long)r->id, (long long)r->last_good.attempt, (long long)r->last_good.sequence);
}

/* Progress only goes forward, and a job ends once. */
static void check_job(struct world *w, const struct job_row *r)
{
    if (r->id < 1 || r->id > SIM_JOBS_MAX) {
        world_fail(
            w, "job number %lld was assigned, but fewer jobs were submitted", (long long)r->id);
        return;
    }
    struct sim_job *j = world_job(w, r->id);
    if (j->ends > 0)
        world_fail(w, "job %lld was changed after its end", (long long)r->id);
    if (r->no_progress > 0 && !j->forgets)
        world_fail(w,
            "job %lld resumes from its checkpoints, but is counted as restarted from scratch %d "
            "times",
            (long long)r->id, (int)r->no_progress);
    if (r->state == JOB_PENDING && j->seen == JOB_RUNNING && w->no_progress_max > 0 &&
        r->no_progress >= w->no_progress_max && r->hold == HOLD_NONE)
        world_fail(w, "job %lld restarted from scratch %d times in a row, but is queued again",
            (long long)r->id, (int)r->no_progress);
    if (j->seen == JOB_CANCELLING && r->state != JOB_CANCELLING && r->state != JOB_ENDED)
        world_fail(
            w, "job %lld was being cancelled, but is pending or running again", (long long)r->id);
    check_last_good(w, j, r);
    j->was_gang |= r->spec.nodes > 1;
    /* a gang may lose two nodes at once */
    if (!j->was_gang ? r->reclaims != j->losses : r->reclaims > j->losses)
        world_fail(w, "job %lld: %lld reclaims are counted, but it had %lld", (long long)r->id,
            (long long)r->reclaims, (long long)j->losses);
    if (r->attempts < j->attempts)
        world_fail(w, "job %lld: the number of attempts decreased", (long long)r->id);
    if (r->attempts > 0 && j->attempts == 0)
        check_eligible(w, r, j);
    if (r->array != CORE_ID_NONE && r->end == END_DEPENDENCY)
        check_given_up(w, r);
    check_store(w, j, r);
    j->end = r->end;
    j->seen = r->state;
    j->array = r->array;
    j->index = r->array_index;
    STR_COPY(j->script, r->script_key);
    j->last_good = r->last_good;
    j->attempts = r->attempts;
    j->has_begun |= r->attempts > 0;
    if (r->array != CORE_ID_NONE)
        world_job(w, r->array)->has_begun |= r->attempts > 0;
    j->ends += r->state == JOB_ENDED;
    if (r->array != CORE_ID_NONE && r->state == JOB_ENDED) {
        struct sim_job *array = world_job(w, r->array);
        array->n_tasks_ended++;
        array->n_tasks_succeeded += r->end == END_SUCCEEDED;
    }
}

static void check_checkpoint(struct world *w, const struct checkpoint_row *r)
{
    const struct sim_job *j = world_job(w, r->job);
    if (r->ref.attempt < j->attempts)
        world_fail(w,
            "job %lld: a checkpoint of attempt %lld was committed, but attempt %lld owns the job",
            (long long)r->job, (long long)r->ref.attempt, (long long)j->attempts);
    if (!store_has(w, r->job, r->ref))
        world_fail(w, "job %lld: checkpoint %lld.%lld was committed but is not in the store",
            (long long)r->job, (long long)r->ref.attempt, (long long)r->ref.sequence);
}

/* Work never starts over silently, and is never resumed after its user discarded it. */
static void check_begin(struct world *w, const struct attempt_row *r)
{
    const struct sim_job *j = world_job(w, r->job);
    bool has_begun = wall_is_set(r->started_at) && r->rank == 0 && r->attempt == j->attempts;
    if (!has_begun || r->state != ATTEMPT_RUNNING)
        return;
    if (r->restored.attempt == 0 && j->last_good.attempt > 0 && j->last_good.attempt < r->attempt)
        world_fail(w,
            "job %lld attempt %lld restarted from scratch, but checkpoint %lld.%lld had been "
            "committed",
            (long long)r->job, (long long)r->attempt, (long long)j->last_good.attempt,
            (long long)j->last_good.sequence);
    if (r->restored.attempt > 0 && r->restored.attempt < j->from_attempt)
        world_fail(w,
            "job %lld attempt %lld resumed from checkpoint %lld.%lld, which its user had discarded",
            (long long)r->job, (long long)r->attempt, (long long)r->restored.attempt,
            (long long)r->restored.sequence);
}

/* An attempt that its agent still has is never ended silently. */
static void check_attempt(struct world *w, const struct attempt_row *r)
{
    grants_committed_attempt(w, r);
    if (!map_get(&w->attempts, rank_key(r->job, r->attempt, r->node)))
        disks_committed_attempt(w, r);
    if (r->state == ATTEMPT_ENDED && str_eq(r->text, AGENT_SYNC_VANISHED) && agent_has(w, r))
        world_fail(w, "job %lld attempt %lld was ended as lost, but its agent still runs it",
            (long long)r->job, (long long)r->attempt);
}

/* ---- drills ---- */

/* Each drill has one end, and PASSED requires that the job resumed where it was. */
static void check_drill(struct world *w, const struct drill_row *r)
{
    int64_t key = drill_key(r->job, r->number);
    uintptr_t before = (uintptr_t)map_get(&w->drills, key);
    const struct sim_job *j = world_job(w, r->job);
    if (before && (before - 1 >= DRILL_PASSED || (uintptr_t)r->state < before - 1))
        world_fail(w, "drill %lld of job %lld went from %s to %s", (long long)r->number,
            (long long)r->job, sm_name(&drill_sm, (int)before - 1),
            sm_name(&drill_sm, (int)r->state));
    map_put(&w->drills, key, (void *)(uintptr_t)((uintptr_t)r->state + 1));
    w->drilled += !before;
    if (r->state != DRILL_PASSED)
        return;
    smap_put(&w->proven, r->script_key, (void *)(uintptr_t)(r->ended_at.ms + 1));
    if (j->forgets || !r->saved.attempt || r->progress < r->saved_progress)
        world_fail(w, "job %lld was certified, but it %s", (long long)r->job,
            j->forgets ? "always starts from scratch" : "did not resume where it was saved");
    if (!map_get(&w->attempts, rank_key(r->job, r->attempt, r->node)) ||
        r->resumed_attempt <= r->attempt)
        world_fail(w, "job %lld was certified, but was not killed and resumed", (long long)r->job);
}

/* In pools that require drills, no job without a recent passed drill is placed on a spot machine.
 * The wall clock may have been set meanwhile. */
static void check_market(struct world *w, const struct attempt_row *r)
{
    uintptr_t at = (uintptr_t)smap_get(&w->proven, world_job(w, r->job)->script);
    bool is_new = !map_get(&w->attempts, rank_key(r->job, r->attempt, r->node));
    if (w->seed % SIM_REQUIRE != 0 || !is_new || !map_get(&w->spot, r->node))
        return;
    if (!at || r->assigned_at.ms - (int64_t)(at - 1) > SIM_VALID_MS + 60000)
        world_fail(w, "job %lld was placed on a spot machine, but %s", (long long)r->job,
            at ? "its last passed drill is too old" : "it never passed a drill");
}

/* Drills do not count as reclaims, nor reclaims as drills. */
static void count_loss(struct world *w, const struct attempt_row *r)
{
    bool lost = r->end == END_RECLAIMED || r->end == END_NODE_LOST;
    if (r->state == ATTEMPT_ENDED && lost)
        world_job(w, r->job)->losses++;
}

/* ---- money: the ledger has exactly the cost of each instance ---- */

/* id: an instance, or minus the number of a reserved node. */
static struct sim_spent *spent_of(struct world *w, int64_t id)
{
    struct sim_spent *s = map_get(&w->spent, id);
    if (!s) {
        s = mem_alloc(sizeof(*s));
        map_put(&w->spent, id, s);
    }
    return s;
}

static void add_ledger(struct world *w, const struct ledger_row *r)
{
    /* idle rows may correct earlier ones */
    if (r->kind != LEDGER_IDLE && (r->uusd < 0 || r->ms < 0 || r->node_ms < 0))
        world_fail(w, "instance %lld: a ledger row has %lld ms and %lld uusd, one of them negative",
            (long long)r->instance, (long long)r->ms, (long long)r->uusd);
    if (r->kind == LEDGER_EGRESS || r->kind == LEDGER_STORAGE)
        return; /* not part of a machine's bill (see traffic.c) */
    struct sim_spent *s = spent_of(w, r->instance != CORE_ID_NONE ? r->instance : -r->node);
    s->uusd += r->uusd;
    s->ms += r->node_ms;
}

static void check_instance(struct world *w, const struct instance_row *r)
{

    struct sim_spent *s = spent_of(w, r->id);
    int64_t cost = core_instance_uusd(r, r->ended_at);
    STR_COPY(s->token, r->token);
    s->is_launched = wall_is_set(r->launched_at);
    s->is_reported = r->launched_at_from_provider || r->provider_id[0];
    if (r->state != INSTANCE_GONE)
        return;
    s->is_over = true;
    if (s->uusd != cost)
        world_fail(w, "instance %lld cost %lld uusd, but the ledger has %lld", (long long)r->id,
            (long long)cost, (long long)s->uusd);
}

/* A reserved node, from its join to the end of the world. */
static void check_reserved(struct world *w, const struct node_row *r)
{
    const struct sim_spent *s = spent_of(w, -r->id);
    if (r->state != NODE_GONE || r->instance != CORE_ID_NONE)
        return;
    if (s->ms != (r->gone_at.ms > r->joined_at.ms ? r->gone_at.ms - r->joined_at.ms : 0))
        world_fail(w, "node %lld existed for %lld ms, but the ledger has %lld", (long long)r->id,
            (long long)(r->gone_at.ms - r->joined_at.ms), (long long)s->ms);
}

/* The ledger matches the bill to the millisecond and the micro-dollar. Exceptions: a machine from a
 * launch that had been refused (a delayed call of a killed belayd) has no row; the sweep ends it,
 * and the audit reports it. A machine that the listing omitted before it was read is known by its
 * agent alone, and its start is never reported. */
static void check_bill(struct world *w)
{
    size_t pos = 0;
    cloud_forget_unstored_prices(w);
    for (const struct sim_spent *s; (s = map_next(&w->spent, &pos, NULL)) && cloud_bills(w);) {
        int64_t ms = 0, uusd = 0;
        for (int i = 0; i < w->n_machines; i++)
            if (str_eq(w->machines[i]->token, s->token))
                cloud_bill(w->machines[i], &ms, &uusd);
        if (s->is_over && s->is_reported && (s->ms != ms || s->uusd != uusd))
            world_fail(w,
                "the provider bills %lld ms and %lld uusd under token %s, but the ledger has %lld "
                "and %lld",
                (long long)ms, (long long)uusd, s->token, (long long)s->ms, (long long)s->uusd);
    }
}

/* A reported launch is in the zone that its row names. */
static void check_zone(struct world *w, const struct instance_row *r)
{
    for (int i = 0; i < w->n_machines && r->provider_id[0]; i++)
        if (str_eq(w->machines[i]->id, r->provider_id) && !str_eq(w->machines[i]->zone, r->zone))
            world_fail(w, "instance %lld is in zone %s, but its row has %s", (long long)r->id,
                w->machines[i]->zone, r->zone);
}

/* A job's cost is the sum of its machines, traffic and storage, also after its end. */
static void check_costs(struct world *w, const struct changes *c)
{
    for (size_t i = 0; i < c->n_ledger; i++)
        if (c->ledger[i].job != CORE_ID_NONE)
            world_job(w, c->ledger[i].job)->ledger_uusd += c->ledger[i].uusd;
    for (size_t i = 0; i < c->n_jobs; i++)
        world_job(w, c->jobs[i].id)->cost_uusd = c->jobs[i].cost_uusd;
    for (size_t i = 0; i < c->n_late_costs; i++)
        world_job(w, c->late_costs[i].job)->cost_uusd += c->late_costs[i].uusd;
    for (int64_t id = 1; id <= SIM_JOBS_MAX; id++) {
        const struct sim_job *j = &w->jobs[id - 1];
        if (j->cost_uusd != j->ledger_uusd)
            world_fail(w, "job %lld cost %lld uusd, but the ledger has %lld", (long long)id,
                (long long)j->cost_uusd, (long long)j->ledger_uusd);
    }
}

bool sim_is_drain(const struct history_row *h)
{
    return str_eq(h->kind, "drain") || str_eq(h->kind, "auto-drain");
}

static bool is_history_kind(const char *kind)
{
    for (size_t i = 0; history_kinds[i]; i++)
        if (str_eq(history_kinds[i], kind))
            return true;
    return false;
}

static void note_dependency(struct world *w, const struct dependency_row *r)
{
    struct sim_job *j = world_job(w, r->job);
    bool dropped = r->state == DEPEND_DROPPED; /* or the job has ended */
    j->waited_for_others |= dropped || (j->after.on != CORE_ID_NONE &&
                                           (j->after.on != r->on || j->after.kind != r->kind));
    j->after = dropped ? (struct dependency_row){0} : *r;
}

static void check_history(struct world *w, const struct history_row *h)
{
    if (h->id <= w->last_history)
        world_fail(w, "history row %lld has a number that is not above all earlier ones",
            (long long)h->id);
    w->last_history = h->id;
    if (!is_history_kind(h->kind))
        world_fail(w, "a history row has the unknown kind '%s'", h->kind);
}

void check_committed(struct world *w, const struct db_batch *b)
{
    const struct changes *c = &b->changes;
    /* before the jobs: they belong to the previous attempt */
    for (size_t i = 0; i < c->n_checkpoints; i++)
        check_checkpoint(w, &c->checkpoints[i]);
    for (size_t i = 0; i < c->n_drills; i++)
        check_drill(w, &c->drills[i]);
    for (size_t i = 0; i < c->n_attempts; i++)
        count_loss(w, &c->attempts[i]);
    for (size_t i = 0; i < c->n_depends; i++)
        note_dependency(w, &c->depends[i]);
    for (size_t i = 0; i < c->n_arrays; i++) /* of several rows of one array, the last one counts */
        world_job(w, c->arrays[i].job)->left = left_of(w, &c->arrays[i]);
    holes_committed(w, c);
    for (size_t i = 0; i < c->n_jobs; i++)
        check_job(w, &c->jobs[i]);
    for (size_t i = 0; i < c->n_arrays; i++)
        check_array(w, &c->arrays[i]);
    options_committed(w, c);
    idle_gpus_committed(w, c);
    reservations_committed(w, c);
    crons_committed(w, c);
    digests_committed(w, c);
    anomalies_committed(w, c);
    quotas_committed(w, c);
    paid_committed(w, c);
    boots_committed(w, c);
    bases_committed(w, c);
    traffic_committed(w, c);
    check_costs(w, c);
    for (size_t i = 0; i < c->n_attempts; i++)
        check_attempt(w, &c->attempts[i]);
    for (size_t i = 0; i < c->n_attempts; i++)
        check_begin(w, &c->attempts[i]);
    for (size_t i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].market == MARKET_SPOT)
            map_put(&w->spot, c->nodes[i].id, w);
    for (size_t i = 0; i < c->n_attempts; i++)
        check_market(w, &c->attempts[i]);
    for (size_t i = 0; i < c->n_attempts; i++)
        map_put(&w->attempts,
            rank_key(c->attempts[i].job, c->attempts[i].attempt, c->attempts[i].node), w);
    for (size_t i = 0; i < c->n_offers; i++)
        cloud_price_stored(w, &c->offers[i]);
    for (size_t i = 0; i < c->n_instances; i++)
        check_zone(w, &c->instances[i]);
    for (size_t i = 0; i < c->n_instances; i++)
        smap_put(&w->tokens, c->instances[i].token, (void *)(uintptr_t)(c->instances[i].state + 1));
    for (size_t i = 0; i < c->n_ledger; i++)
        add_ledger(w, &c->ledger[i]);
    for (size_t i = 0; i < c->n_instances; i++)
        check_instance(w, &c->instances[i]);
    for (size_t i = 0; i < c->n_nodes; i++)
        check_reserved(w, &c->nodes[i]);
    for (size_t i = 0; i < c->n_history; i++)
        check_history(w, &c->history[i]);
}

/* ---- outgoing calls ---- */

void check_launch(struct world *w, const char *token)
{
    uintptr_t state = (uintptr_t)smap_get(&w->tokens, token);
    if (state == 0)
        world_fail(w, "a launch was sent under token %s before its intent was committed", token);
    else if (state - 1 == INSTANCE_GONE)
        world_fail(w, "a launch was sent under token %s, but its instance is gone", token);
}

/* A launch repeated under one token has the same parameters, or a provider would refuse it. */
void check_alternatives(struct world *w, const struct cloud_launch *l)
{
    struct buf offers = {0};
    buf_printf(&offers, "%s/%s", l->zone, l->type);
    for (size_t i = 0; i < l->n_alternatives; i++)
        buf_printf(&offers, " %s/%s", l->alternatives[i].zone, l->alternatives[i].type);
    const char *first = smap_get(&w->alternatives, l->token);
    if (!first)
        smap_put(&w->alternatives, l->token, mem_strdup(buf_str(&offers)));
    else if (!str_eq(first, buf_str(&offers)))
        world_fail(w, "the launch of token %s was sent for %s, then again for %s", l->token, first,
            buf_str(&offers));
    buf_deinit(&offers);
}

void check_terminate(struct world *w, const char *token)
{
    uintptr_t state = (uintptr_t)smap_get(&w->tokens, token);
    if (state && (state - 1 == INSTANCE_LAUNCHED || state - 1 == INSTANCE_RUNNING ||
                     state - 1 == INSTANCE_INTENDED))
        world_fail(
            w, "the machine of token %s was terminated before the decision was committed", token);
}

void check_desired(struct world *w, int64_t job, int64_t attempt, int64_t node)
{
    if (!map_get(&w->attempts, rank_key(job, attempt, node)))
        world_fail(w,
            "job %lld attempt %lld was sent to node %lld before its placement there was "
            "committed",
            (long long)job, (long long)attempt, (long long)node);
}

bool wants_exclusive(const struct world *w, const struct job *j)
{
    const struct constraints *x = model_constraints(w->model, j->row.constraints);
    return x && x->exclusive;
}

static bool excludes_node(const struct world *w, const struct attempt *a)
{
    const struct constraints *x = model_constraints(w->model, a->job->row.constraints);
    return x && hosts_has(x->exclude, a->node->row.name);
}

/* Exclusive jobs are alone on their nodes, and no job is on an excluded node. */
static void check_nodes(struct world *w)
{
    LIST_FOREACH (model_nodes(w->model), ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, in_all);
        LIST_FOREACH (&n->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            if (excludes_node(w, a))
                world_fail(w, "job %lld is on node %lld, which it excludes", (long long)a->row.job,
                    (long long)n->row.id);
            if (!wants_exclusive(w, a->job))
                continue;
            if (list_first(&n->attempts) != list_last(&n->attempts) ||
                a->allocated.cpus != n->row.total.cpus ||
                a->allocated.memory_mib != n->row.total.memory_mib)
                world_fail(w, "job %lld is exclusive, but not alone on node %lld",
                    (long long)a->row.job, (long long)n->row.id);
        }
    }
}

/* True if the model has changed since the last check. Only applied events change it (tick.c), and
 * most events of the world are others. */
static bool model_has_changed(struct world *w)
{
    struct tick_stats stats;
    tick_get_stats(w->tick, &stats);
    bool has = stats.events != w->checked_at;
    w->checked_at = stats.events;
    return has;
}

void check_model(struct world *w)
{
    struct err e = {0};
    if (!w->up)
        return;
    check_deadlines(w);
    bool has_changed = model_has_changed(w);
    if (has_changed && model_check(w->model, &e) != 0)
        world_fail(w, "the model is inconsistent: %s", e.text);
    if (has_changed && (w->seed % SIM_ALONE == 0 || w->seed % SIM_EXCLUDE == 0))
        check_nodes(w);
    quotas_check(w); /* checked every time: they also depend on the clock */
    paid_check(w);
    racks_check(w);
    bases_check(w);
    digests_check(w);
}

/* ---- end of the run ---- */

/* The remaining checkpoints of an ended job are those that its user asked to keep; none can be
 * added. */
static void check_ckpt_gc(struct world *w, const struct job_row *r)
{
    const struct sim_store_job *s = &w->store[r->id - 1];
    bool deletes = r->spec.ckpt_after == AFTER_DELETE || r->spec.ckpt_after == AFTER_AUTO;
    bool none = deletes && r->end == END_SUCCEEDED;
    if (r->attempts == 0)
        return; /* it never had data there */
    if (s->fence != SIM_CLOSED)
        world_fail(w, "job %lld has ended, but its store still accepts data", (long long)r->id);
    if (none ? s->n != 0 : r->spec.ckpt_after != AFTER_ALL && s->n > 1)
        world_fail(w, "job %lld left %zu checkpoints, more than its user asked to keep",
            (long long)r->id, s->n);
    if (!none && r->last_good.attempt &&
        (s->n == 0 || ckpt_ref_compare(s->manifests[s->n - 1].ref, r->last_good) < 0))
        world_fail(w, "job %lld has lost its last checkpoint", (long long)r->id);
    if (!none && r->spec.ckpt_after == AFTER_ALL && r->last_good.attempt &&
        !store_has(w, r->id, r->last_good))
        world_fail(w, "job %lld has lost checkpoint %lld.%lld", (long long)r->id,
            (long long)r->last_good.attempt, (long long)r->last_good.sequence);
}

/* True if the job used up its retries for this kind of end. */
static bool retries_used_up(const struct job_row *r)
{
    for (int k = 0; k < RETRY_KINDS; k++)
        if (str_eq(retry_kind_names[k], end_kind_names[r->end]))
            return r->used[k] == r->spec.retries.n[k];
    return false;
}

static int on_rollup_gap(void *ctx, const char *text)
{
    world_fail(ctx, "%s", text);
    return 1;
}

/* Bills are read from sums that are updated with the ledger. They must equal sums over its rows. */
static void check_rollups(struct world *w)
{
    struct err e = {0};
    if (db_read_rollup_gaps(w->reader, on_rollup_gap, w, &e) != 0 ||
        db_read_data_gaps(w->reader, on_rollup_gap, w, &e) != 0 ||
        db_read_job_gaps(w->reader, on_rollup_gap, w, &e) != 0)
        world_fail(w, "the sums of the ledger cannot be read: %s", e.text);
}

static int add_useful(void *ctx, const struct ledger_row *l)
{
    *(int64_t *)ctx += l->kind == LEDGER_USEFUL ? l->ms : 0;
    return 0;
}

/* An end is reported late if an agent dies or its messages are lost; belayd charges until then. */
#define REPORT_LATE_MS 300000
#define ATTEMPT_LATE_MS 10000 /* a job may have dozens of attempts, each with an end */

/* Useful time is exactly the program's work, counted once, even if checkpoints were damaged or a
 * user discarded work (--from-scratch). */
static void check_useful(struct world *w, const struct job_row *r)
{
    const struct sim_job *j = world_job(w, r->id);
    struct err e = {0};
    int64_t ms = 0, need_ms = j->total_steps * STEP_MS;
    bool was = false;
    if (r->end != END_SUCCEEDED || j->forgets || r->spec.nodes > 1 || j->was_gang)
        return;
    if (db_read_has_repeated(w->reader, r->id, 0, INT64_MAX, &was, &e) != 0 ||
        db_read_ledger(w->reader, r->id, add_useful, &ms, &e) != 0)
        world_fail(w, "the ledger of job %lld cannot be read: %s", (long long)r->id, e.text);
    int64_t late_ms = REPORT_LATE_MS + r->attempts * ATTEMPT_LATE_MS;
    if ((was || r->from_attempt > 0) && ms > need_ms + j->unreported_ms + late_ms)
        world_fail(w, "job %lld needed %lld ms of work, but %lld ms are counted as useful",
            (long long)r->id, (long long)need_ms, (long long)ms);
}

/* At the end: no job is lost, each has ended once, and no machine or data remains. */
void check_end(struct world *w)
{
    for (int i = 0; i < w->n_acked; i++) {
        struct job_row row;
        struct err e = {0};
        int64_t id = w->acked[i];
        const struct sim_job *j = world_job(w, id);
        int rc = db_read_job(w->reader, id, &row, &e);
        if (rc == ERR_NOT_FOUND && prunes_deleted(w, id) && j->ends == 1)
            continue;
        if (rc != 0)
            world_fail(
                w, "job %lld was acknowledged but cannot be read: %s", (long long)id, e.text);
        else if (row.state != JOB_ENDED || j->ends != 1)
            world_fail(w, "job %lld ended %lld times, state %s", (long long)id, (long long)j->ends,
                sm_name(&job_sm, row.state));
        else if (row.end == END_DEPENDENCY && !j->waited_for_others && !unmet(w, &j->after, -1))
            world_fail(w, "job %lld was ended as DEPENDENCY, but its dependency was satisfied",
                (long long)id);
        else if (row.end == END_DEADLINE && j->n_tasks == 0 &&
                 row.ended_at.ms + row.spec.time_limit_ms <= row.spec.deadline_ms)
            world_fail(w,
                "job %lld was ended as DEADLINE, but could still have finished by its deadline",
                (long long)id);
        else if (j->n_tasks > 0)
            check_tasks(w, j, &row);
        /* or cancelled by a request whose response was lost */
        else if (!j->cancelled && row.end != END_CANCELLED && row.end != END_DEPENDENCY &&
                 row.end != END_DEADLINE && row.end != (j->fails ? END_FAILED : END_SUCCEEDED) &&
                 !retries_used_up(&row))
            world_fail(w, "job %lld ended as %s instead of %s after %lld attempts", (long long)id,
                end_kind_names[row.end], j->fails ? "failed" : "succeeded",
                (long long)row.attempts);
        if (!w->failure[0])
            check_useful(w, &row);
        if (!w->failure[0])
            outbox_check(w, &row);
        if (!w->failure[0])
            check_ckpt_gc(w, &row);
        for (int64_t n = 1; n <= row.drills && !w->failure[0]; n++)
            if ((uintptr_t)map_get(&w->drills, drill_key(id, n)) < DRILL_PASSED + 1)
                world_fail(w, "drill %lld of job %lld has not ended", (long long)n, (long long)id);
    }
    if (cloud_alive(w) > 0)
        world_fail(w, "%d machines still exist at the end", cloud_alive(w));
    if (!w->failure[0])
        traffic_check(w);
    if (!w->failure[0])
        check_bill(w);
    if (!w->failure[0])
        check_rollups(w);
}
