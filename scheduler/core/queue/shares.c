/* SPDX-License-Identifier: Apache-2.0
 *
 * Usage of accounts and its effect on the queue. Usage grows and decays between events by itself: a
 * row has its value at a time, and changes only when the current usage of the account's jobs does.
 * Decay has steps of half_life / PRIORITY_STEPS on a grid of the wall clock, so the result does not
 * depend on the times of evaluation.
 *
 * Current shares are applied periodically (EV_ORDER), and only after changes that could make a
 * difference; then the shapes move, which are few, and no job.
 */
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/priority.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define SORT_INTERVAL_MS 5000
/* Shapes sorted per ms of the interval between two sorts, which keeps the cost negligible. */
#define SHAPES_A_MS 4
#define FORGET_STEPS (64LL * PRIORITY_STEPS)
#define USED_MAX (1LL << 62)
#define RATIO_MAX 32.0 /* more usage than this many shares counts as this: 2^-32 is almost 0 */
/* Weight of fair share between the users of a team, as a fraction of that between teams. */
#define USER_PART 4
#define KEY_MAX (2 * CORE_NAME_MAX)

const struct queue_policy *model_policy(const struct model *m)
{
    return m->options.policy ? m->options.policy : &queue_policy_defaults;
}

const struct list *model_teams(const struct model *m)
{
    return &m->queue.all_teams;
}

/* ---- teams and accounts ---- */

static int32_t configured(const struct queue_policy *o, const char *team, const char *user)
{
    for (size_t k = 0; k < o->n_teams; k++) {
        const struct policy_team *t = &o->teams[k];
        if (!str_eq(t->name, team))
            continue;
        if (!user)
            return t->shares;
        for (size_t u = 0; u < t->n_users; u++)
            if (str_eq(t->users[u].name, user))
                return t->users[u].shares;
    }
    return 1;
}

static struct team *team_of(struct model *m, const char *name)
{
    struct team *t = smap_get(&m->queue.teams, name);
    if (t)
        return t;
    t = mem_alloc(sizeof *t);
    STR_COPY(t->name, name);
    t->shares = configured(model_policy(m), name, NULL);
    allowance_init(m, &t->allowance, name, NULL);
    t->quota_mcpu = policy_quota_mcpu(model_policy(m), name);
    if (t->quota_mcpu > 0)
        list_push_back(&m->queue.quotas, &t->in_quotas);
    smap_put(&m->queue.teams, name, t);
    list_push_back(&m->queue.all_teams, &t->in_all);
    return t;
}

struct account *account_find(const struct model *m, const char *team, const char *user)
{
    char key[KEY_MAX];
    text_format(key, sizeof key, "%s\n%s", team, user);
    return smap_get(&m->queue.accounts, key);
}

struct account *account_of(struct model *m, const char *team, const char *user)
{
    char key[KEY_MAX];
    struct account *a = account_find(m, team, user);
    if (a)
        return a;
    text_format(key, sizeof key, "%s\n%s", team, user);
    a = mem_alloc(sizeof *a);
    a->id = (int64_t)smap_size(&m->queue.accounts) + 1;
    a->row.at = WALL_NONE;
    STR_COPY(a->row.team, team);
    STR_COPY(a->row.user, user);
    a->team = team_of(m, team);
    a->shares = configured(model_policy(m), team, user);
    allowance_init(m, &a->allowance, team, user);
    smap_put(&m->queue.accounts, key, a);
    list_push_back(&a->team->accounts, &a->in_team);
    return a;
}

void accounts_renew(struct model *m)
{
    const struct queue_policy *o = model_policy(m);
    LIST_FOREACH (&m->queue.all_teams, lt) {
        struct team *t = LIST_ENTRY(lt, struct team, in_all);
        t->shares = configured(o, t->name, NULL);
        t->quota_mcpu = policy_quota_mcpu(o, t->name);
        link_remove(&t->in_quotas);
        if (t->quota_mcpu > 0)
            list_push_back(&m->queue.quotas, &t->in_quotas);
        allowance_renew(m, &t->allowance, t->name, NULL);
        LIST_FOREACH (&t->accounts, la) {
            struct account *a = LIST_ENTRY(la, struct account, in_team);
            a->shares = configured(o, t->name, a->row.user);
            allowance_renew(m, &a->allowance, t->name, a->row.user);
        }
    }
    m->queue.ordered_mono = MONO_NONE;
}

void account_init_hypothetical(const struct model *m, const char *team, const char *user,
    struct account *ret_account, struct team *ret_team)
{
    struct team *is = smap_get(&m->queue.teams, team);
    int64_t fair_ms = model_policy(m)->fair_ms;
    *ret_team = (struct team){.shares = configured(model_policy(m), team, NULL),
        .quota_mcpu = policy_quota_mcpu(model_policy(m), team)};
    *ret_account = (struct account){.team = is ? is : ret_team,
        .shares = configured(model_policy(m), team, user),
        .fair_ms = fair_ms + fair_ms / USER_PART};
    STR_COPY(ret_team->name, team);
    STR_COPY(ret_account->row.team, team);
    STR_COPY(ret_account->row.user, user);
    ret_account->row.at = WALL_NONE;
    allowance_init_hypothetical(m, &ret_team->allowance, team, NULL);
    allowance_init_hypothetical(m, &ret_account->allowance, team, user);
    ret_team->allowance.index = m->queue.n_allowances;
    ret_account->allowance.index = m->queue.n_allowances + 1;
}

void accounts_destroy_all(struct model *m)
{
    const char *key;
    void *p;
    for (size_t pos = 0; (p = smap_next(&m->queue.accounts, &pos, &key)) != NULL;)
        free(p);
    for (size_t pos = 0; (p = smap_next(&m->queue.teams, &pos, &key)) != NULL;)
        free(p);
    smap_deinit(&m->queue.accounts);
    smap_deinit(&m->queue.teams);
}

/* ---- usage ---- */

static int64_t add(int64_t used, int64_t mcpu, int64_t ms)
{
    int64_t more = mcpu * ms;
    return used > USED_MAX - more ? USED_MAX : used + more;
}

int64_t account_used(const struct model *m, const struct account *a, struct wall now)
{
    int64_t step = model_policy(m)->half_life_ms / PRIORITY_STEPS, used = a->row.used,
            at = a->row.at.ms;
    if (!wall_is_set(a->row.at) || now.ms <= at)
        return used;
    int64_t steps = now.ms / step - at / step;
    if (steps == 0)
        return add(used, a->mcpu, now.ms - at);
    if (steps > FORGET_STEPS) {
        used = 0;
        steps = FORGET_STEPS;
        at = (now.ms / step - steps) * step;
    }
    used = priority_halve(add(used, a->mcpu, step - at % step), 1);
    if (a->mcpu == 0)
        used = priority_halve(used, steps - 1);
    for (int64_t k = 1; k < steps && a->mcpu > 0; k++)
        used = priority_halve(add(used, a->mcpu, step), 1);
    return add(used, a->mcpu, now.ms % step);
}

void account_charge(struct model *m, struct account *a, int64_t mcpu, struct stamp now)
{
    a->row.used = account_used(m, a, now.wall);
    a->row.at = now.wall;
    a->mcpu += mcpu;
    touch_account(m, a);
}

/* ---- fair share ---- */

/* Sums over the teams, or the users of a team, that have jobs. */
struct sums {
    int64_t used, shares;
};

static int64_t team_used(const struct model *m, const struct team *t, struct wall now)
{
    int64_t used = 0;
    LIST_FOREACH (&t->accounts, l)
        used = add(used, 1, account_used(m, LIST_ENTRY(l, struct account, in_team), now));
    return used;
}

static bool has_jobs(const struct team *t)
{
    LIST_FOREACH (&t->accounts, l)
        if (LIST_ENTRY(l, struct account, in_team)->n_jobs > 0)
            return true;
    return false;
}

static struct sums sum_teams(const struct model *m, struct wall now)
{
    struct sums s = {0};
    LIST_FOREACH (&m->queue.all_teams, l) {
        const struct team *t = LIST_ENTRY(l, struct team, in_all);
        if (!has_jobs(t))
            continue;
        s.used = add(s.used, 1, team_used(m, t, now));
        s.shares += t->shares;
    }
    return s;
}

static struct sums sum_users(const struct model *m, const struct team *t, struct wall now)
{
    struct sums s = {0};
    LIST_FOREACH (&t->accounts, l) {
        const struct account *a = LIST_ENTRY(l, struct account, in_team);
        if (a->n_jobs == 0)
            continue;
        s.used = add(s.used, 1, account_used(m, a, now));
        s.shares += a->shares;
    }
    return s;
}

/* worth_ms * 2^-(usage / share), both as parts of all (Slurm, "Classic Fairshare Algorithm").
 * Products and one quotient, no sums: rounding is equal on every machine. */
static int64_t fair_share_ms(int64_t worth_ms, int64_t used, int64_t shares, const struct sums *all)
{
    if (used == 0 || all->used == 0)
        return worth_ms;
    double ratio = (double)used * (double)all->shares / ((double)all->used * (double)shares);
    return priority_halve(
        worth_ms, (int64_t)((ratio < RATIO_MAX ? ratio : RATIO_MAX) * PRIORITY_STEPS));
}

static void weigh_team(
    struct model *m, const struct team *t, const struct sums *teams, struct wall now)
{
    int64_t fair_ms = model_policy(m)->fair_ms;
    int64_t of_team = fair_share_ms(fair_ms, team_used(m, t, now), t->shares, teams);
    const struct sums users = sum_users(m, t, now);
    LIST_FOREACH (&t->accounts, l) {
        struct account *a = LIST_ENTRY(l, struct account, in_team);
        a->is_ordered = a->n_jobs > 0;
        if (a->is_ordered)
            a->fair_ms = of_team + fair_share_ms(fair_ms / USER_PART, account_used(m, a, now),
                                       a->shares, &users);
    }
}

struct mono order_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    if (m->queue.n_queued_accounts < 2 ||
        m->queue.ordered_change == model_versions(m)->rewind + model_versions(m)->arrivals)
        return MONO_NONE;
    *ret_event = (struct event){.type = EV_ORDER};
    if (!mono_is_set(m->queue.ordered_mono))
        return now.mono;
    return (struct mono){
        m->queue.ordered_mono.ms + SORT_INTERVAL_MS + m->queue.n_queued_shapes / SHAPES_A_MS};
}

int apply_order(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    const struct sums teams = sum_teams(m, ev->now.wall);
    LIST_FOREACH (&m->queue.all_teams, l) {
        const struct team *t = LIST_ENTRY(l, struct team, in_all);
        if (has_jobs(t))
            weigh_team(m, t, &teams, ev->now.wall);
    }
    m->queue.ordered_at = ev->now.wall;
    m->queue.ordered_mono = ev->now.mono;
    queue_order(m);
    m->queue.ordered_change = model_versions(m)->rewind + model_versions(m)->arrivals;
    ret_outcome->id = CORE_ID_NONE;
    return 0;
}

/* ---- parts of a job's priority ---- */

int64_t job_since_ms(const struct job *j)
{
    return j->row.eligible_at.ms + j->row.spec.nice * 60000LL;
}

int64_t shape_position_16(const struct model *m, const struct shape *s, int64_t since_ms)
{
    int64_t worth_ms = s->boost_ms + s->account->fair_ms;
    return 16 * (m->queue.ordered_at.ms - worth_ms) -
           priority_age_16(model_policy(m), m->queue.ordered_at.ms - since_ms);
}

int64_t job_position_16(const struct model *m, const struct job *j)
{
    return shape_position_16(m, j->shape, job_since_ms(j));
}

void core_priority(
    const struct model *m, const struct job *j, struct wall now, struct priority *ret_priority)
{
    const struct queue_policy *o = model_policy(m);
    struct priority p = {
        .fair_ms = j->account->fair_ms,
        .qos_ms = priority_qos_ms(o, &j->row),
        .size_ms = priority_size_ms(o, &j->row),
        .nice_ms = -60000LL * j->row.spec.nice,
    };
    p.total_ms =
        priority_age_16(o, now.ms - job_since_ms(j)) / 16 + p.fair_ms + p.qos_ms + p.size_ms;
    p.age_ms = p.total_ms - p.fair_ms - p.qos_ms - p.size_ms - p.nice_ms;
    *ret_priority = p;
}
