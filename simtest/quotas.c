/* SPDX-License-Identifier: Apache-2.0
 *
 * Teams of the simulated users, with quotas in some worlds and limits in others, or with a
 * preempting QOS, and their invariants. Usage is recomputed here from running jobs.
 */
#include "simtest/world.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define PAUSE_MS (15 * 60000LL)   /* minimum interval between two preemptions of a job */
#define OWED_MAX_MS (5 * 60000LL) /* a disk may be full for one minute, belayd down for two */

static void add_team(struct world *w, int of, const char *name, int64_t quota_mcpu, size_t n_users,
    const char *const *users)
{
    struct queue_policy *o = &w->policies[of];
    struct policy_team *t = &w->teams[of][o->n_teams];
    *t = (struct policy_team){.shares = 1 + of,
        .quota_mcpu = quota_mcpu,
        .users = w->members[of][o->n_teams++],
        .n_users = n_users};
    STR_COPY(t->name, name);
    for (size_t k = 0; k < n_users; k++) {
        t->users[k] = (struct policy_user){.shares = 1 + of * (int32_t)k};
        STR_COPY(t->users[k].name, users[k]);
    }
}

static void set_limit(struct policy_limits *l, enum limit_kind kind, int64_t most)
{
    l->is_set[kind] = true;
    l->max[kind] = most;
}

static void make_policy(struct world *w, int of)
{
    static const char *const users[] = {"ann", "bob", "cho"};
    struct queue_policy *o = &w->policies[of];
    *o = queue_policy_defaults;
    o->fair_ms >>= of;
    if (w->seed % SIM_QUOTAS == 0) {
        o->qos = w->qos;
        o->n_qos = 2;
        return;
    }
    o->gib_mcpu = 0;
    o->teams = w->teams[of];
    if (w->seed % SIM_QUOTAS == 1) {
        add_team(w, of, "red", of ? 2000 : 4000, 1, &users[0]);
        add_team(w, of, "blue", of ? 6000 : 4000, 1, &users[1]);
        add_team(w, of, "grey", 0, 1, &users[2]);
    } else {
        add_team(w, of, "red", 0, 2, users);
        set_limit(&o->teams[0].users[0].limits, LIMIT_RUNNING, 2 + of);
        set_limit(&o->teams[0].limits, LIMIT_RUNNING, 4 + of);
        set_limit(&o->teams[0].limits, LIMIT_MCPU, 12000 + 4000 * of);
        add_team(w, of, "blue", 0, 2, users);
    }
}

/* By seed. Either ann and bob have a quota of half of two small machines each, and cho has none and
 * uses spare capacity. Or ann may run two jobs at a time, and she and bob together four, with 12
 * CPUs; jobs moved to their other team are not limited. The other policy has other quotas, and
 * higher limits. */
const struct queue_policy *quotas_policy(struct world *w)
{
    w->preempted = 2; /* bit of the second QOS */
    w->qos[0] =
        (struct policy_qos){.name = "high", .boost_ms = 3600000, .preempts = {&w->preempted, 2}};
    w->qos[1] = (struct policy_qos){.name = "low"};
    make_policy(w, 0);
    make_policy(w, 1);
    return &w->policies[w->policy];
}

static int add_labels(void *ctx, int64_t job, const char *labels_json)
{
    struct settings_tables *t = ctx;
    struct job_labels_text *all = (struct job_labels_text *)t->labels;
    all = mem_resize(all, t->n_labels + 1, sizeof(*all));
    all[t->n_labels++] = (struct job_labels_text){.job = job, .json = mem_strdup(labels_json)};
    t->labels = all;
    return 0;
}

static void free_labels(struct settings_tables *t)
{
    for (size_t i = 0; i < t->n_labels; i++)
        free(t->labels[i].json);
    free((void *)t->labels);
    t->labels = NULL;
    t->n_labels = 0;
}

/* The tables of the start, as other ones: all that the model knows of them is built anew. */
static int make_tables(struct world *w, struct err *e)
{
    struct settings_tables *t = &w->tables;
    w->budgets[w->policy] = w->budget;
    t->to.budgets = &w->budgets[w->policy];
    return db_read_live_labels(w->reader, add_labels, t, e);
}

static int apply_other(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct world *w = ctx;
    w->policy = !w->policy;
    w->owed_since_ms = world_now(w);
    w->settings.policy = &w->policies[w->policy];
    w->settings.tables = &w->tables;
    int rc = make_tables(w, e);
    if (rc == 0)
        rc = tick_apply(
            t, &(struct event){.type = EV_SETTINGS, .settings = &w->settings}, ret_id, e);
    if (rc != 0)
        world_fail(w, "the settings were refused: %s", e->text);
    free_labels(&w->tables);
    return rc;
}

static void on_other(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

void quotas_disturb(struct world *w)
{
    if (w->seed % SIM_RELOADS == 3 && world_chance(w, 0.1))
        tick_post_work(w->tick, apply_other, on_other, w);
}

/* ---- usage ---- */

struct use {
    int64_t jobs, mcpu;
};

/* user: NULL for the whole team. */
static struct use use_of(const struct world *w, const char *team, const char *user)
{
    struct use u = {0};
    LIST_FOREACH (model_nodes(w->model), ln) {
        LIST_FOREACH (&LIST_ENTRY(ln, struct node, in_all)->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            if (!str_eq(a->job->row.spec.team, team) || (user && !str_eq(a->job->row.user, user)))
                continue;
            u.jobs += job_attempt(a->job) == a;
            u.mcpu += a->allocated.cpus * 1000LL;
        }
    }
    return u;
}

static void check_use(struct world *w, const char *team, const char *user)
{
    const struct use u = use_of(w, team, user);
    /* what runs may stay beyond a limit that was lowered */
    const struct queue_policy *o = &w->policies[w->seed % SIM_RELOADS == 3];
    if (u.jobs > policy_limit(o, team, user, LIMIT_RUNNING) ||
        u.mcpu > policy_limit(o, team, user, LIMIT_MCPU))
        world_fail(w, "%s of team %s runs %lld jobs of %lld mcpu, above the limit",
            user ? user : "all", team, (long long)u.jobs, (long long)u.mcpu);
}

/* ---- quota ---- */

/* True if all jobs on the node can be preempted. */
static bool is_lent(const struct world *w, const struct node *n)
{
    struct wall now = world_stamp(w).wall;
    if (n->row.state != NODE_UP || n->row.market != MARKET_OWNED || n->kept_for ||
        n->reserved_for || list_is_empty(&n->attempts))
        return false;
    LIST_FOREACH (&n->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        const struct job_row *r = &a->job->row;
        if (a->row.state == ATTEMPT_STOPPING || r->state != JOB_RUNNING || r->spec.nodes > 1 ||
            !str_eq(r->spec.team, "grey") ||
            (wall_is_set(r->evicted_at) && now.ms - r->evicted_at.ms < PAUSE_MS))
            return false;
    }
    return true;
}

/* True if the pending job could use a node that runs only jobs without quota. */
static bool is_kept_from(const struct world *w, const struct job *j)
{
    const struct team *t = j->account->team;
    int64_t mcpu = j->row.spec.need.cpus * 1000LL;
    if (wants_exclusive(w, j) || !tree_has(&j->in_shape) || j->row.spec.nodes > 1 ||
        j->row.spec.pool[0] || job_side(j)->avoid != CORE_ID_NONE || t->claimed_mcpu > 0 ||
        use_of(w, t->name, NULL).mcpu + mcpu > policy_quota_mcpu(&w->policies[w->policy], t->name))
        return false;
    LIST_FOREACH (model_nodes(w->model), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (is_lent(w, n) && n->row.total.cpus >= j->row.spec.need.cpus &&
            n->row.total.memory_mib >= j->row.spec.need.memory_mib)
            return true;
    }
    return false;
}

static bool may_launch(const struct world *w)
{
    LIST_FOREACH (model_pools(w->model), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (p->row.elastic && (p->used.nodes < p->row.max_nodes || !list_is_empty(&p->booting)))
            return true;
    }
    return false;
}

/* No job within its quota waits longer than a preemption takes. */
static void check_owed(struct world *w)
{
    bool waits = false;
    for (int i = 0; i < SIM_JOBS_MAX && !waits; i++) {
        const struct job *j = model_job(w->model, i + 1);
        waits = j && j->account->team->quota_mcpu > 0 && is_kept_from(w, j);
    }
    if (!waits || may_launch(w))
        w->owed_since_ms = world_now(w);
    else if (world_now(w) - w->owed_since_ms > OWED_MAX_MS)
        world_fail(w,
            "a job within its quota has waited for %lld ms while others use that capacity",
            (long long)(world_now(w) - w->owed_since_ms));
}

void quotas_check(struct world *w)
{
    if (w->seed % SIM_QUOTAS == 1)
        check_owed(w);
    if (w->seed % SIM_QUOTAS != 2)
        return;
    check_use(w, "red", NULL);
    check_use(w, "red", "ann");
}

/* ---- preemptions ---- */

static int64_t unsaved_ms(const struct attempt *a, struct wall at)
{
    const struct job_row *r = &a->job->row;
    bool saved = a->row.sequence > 0 && r->last_good.attempt == a->row.attempt;
    struct wall since = saved                            ? r->last_good_at
                        : wall_is_set(a->row.started_at) ? a->row.started_at
                                                         : at;
    return since.ms < at.ms ? (at.ms - since.ms) * a->allocated.cpus : 0;
}

/* No job is preempted twice within PAUSE_MS. */
static void check_pause(struct world *w, const struct history_row *r)
{
    struct sim_job *j = world_job(w, r->job);
    if (j->evicted_at.ms && r->at.ms - j->evicted_at.ms < PAUSE_MS)
        world_fail(w, "job %lld was evicted twice within %lld ms", (long long)r->job,
            (long long)(r->at.ms - j->evicted_at.ms));
    j->evicted_at = r->at;
}

/* Fails if another job of the same team, or QOS, on the same node is at least as large and has
 * less to lose: preempting that one would have sufficed. */
static void check_choice(struct world *w, const struct attempt *a, bool by_qos)
{
    const struct job_row *r = &a->job->row;
    LIST_FOREACH (&a->node->attempts, l) {
        const struct attempt *other = LIST_ENTRY(l, struct attempt, on_node);
        const struct job_row *o = &other->job->row;
        if (other->row.state == ATTEMPT_STOPPING || o->state != JOB_RUNNING || o->spec.nodes > 1 ||
            !str_eq(by_qos ? o->spec.qos : o->spec.team, by_qos ? r->spec.qos : r->spec.team) ||
            o->constraints != r->constraints || wall_is_set(o->evicted_at) ||
            other->allocated.cpus < a->allocated.cpus ||
            other->allocated.memory_mib < a->allocated.memory_mib)
            continue;
        if (unsaved_ms(other, r->evicted_at) < unsaved_ms(a, r->evicted_at))
            world_fail(w, "job %lld was evicted although job %lld on its node had less to lose",
                (long long)r->id, (long long)o->id);
    }
}

void quotas_committed(struct world *w, const struct changes *c)
{
    for (size_t i = 0; i < c->n_attempts; i++) {
        const struct attempt_row *r = &c->attempts[i];
        if ((r->state == ATTEMPT_STOPPING && r->stop_reason == END_EVICTED && !r->save_first) ||
            (r->end == END_EVICTED && !r->save_first))
            world_fail(
                w, "job %lld was evicted without having been asked to save", (long long)r->job);
    }
    for (size_t i = 0; i < c->n_history; i++) {
        const struct history_row *r = &c->history[i];
        bool by_qos = str_eq(r->kind, "preempt"),
             is_eviction = by_qos || str_eq(r->kind, "reclaim");
        const struct job *j = is_eviction ? model_job(w->model, r->job) : NULL;
        const struct attempt *a = j ? job_attempt(j) : NULL;
        w->evictions += is_eviction;
        if (is_eviction)
            check_pause(w, r);
        if (by_qos && j && !str_eq(j->row.spec.qos, "low"))
            world_fail(w, "job %lld of QOS '%s' was preempted", (long long)r->job, j->row.spec.qos);
        if (a && j->row.spec.nodes == 1 && a->row.attempt == r->attempt)
            check_choice(w, a, by_qos);
    }
}
