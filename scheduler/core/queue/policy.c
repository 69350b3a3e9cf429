/* SPDX-License-Identifier: Apache-2.0
 *
 * Teams, QOS and limits by name (policy.h).
 */
#include "scheduler/core/queue/policy.h"

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "scheduler/core/model/changes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS 3600000LL

const struct queue_policy queue_policy_defaults = {.half_life_ms = 7 * 24 * HOUR_MS,
    .fair_ms = 60 * 24 * HOUR_MS,
    .age_max_ms = 6 * HOUR_MS,
    .gpu_mcpu = 16000,
    .gib_mcpu = 250,
    .reserve = 8};

static const struct policy_team *find_team(const struct queue_policy *o, const char *name)
{
    for (size_t k = 0; k < o->n_teams; k++)
        if (str_eq(o->teams[k].name, name))
            return &o->teams[k];
    return NULL;
}

const struct policy_qos *policy_qos(const struct queue_policy *o, const char *name)
{
    for (size_t k = 0; k < o->n_qos; k++)
        if (str_eq(o->qos[k].name, name))
            return &o->qos[k];
    return NULL;
}

const char *const limit_names[] = {
    "max_running", "max_gpus", "max_usd_per_hour", "max_cpus", "max_submitted", NULL};

static const struct policy_user *find_user(const struct policy_team *t, const char *name)
{
    for (size_t k = 0; k < t->n_users; k++)
        if (str_eq(t->users[k].name, name))
            return &t->users[k];
    return NULL;
}

void policy_join(const struct queue_policy *o, const char *user, const char *teams)
{
    free(smap_remove(o->joined, user));
    if (teams[0])
        smap_put(o->joined, user, mem_strdup(teams));
}

static bool has_joined(const struct queue_policy *o, const struct policy_team *t, const char *user)
{
    const char *teams = o->joined ? smap_get(o->joined, user) : NULL;
    return teams && names_has(teams, t->name);
}

/* Whether the team lists the user, or they joined it. */
static bool names_user(const struct queue_policy *o, const struct policy_team *t, const char *user)
{
    return find_user(t, user) || has_joined(o, t, user);
}

const char *policy_team_of(const struct queue_policy *o, const char *user)
{
    for (size_t k = 0; k < o->n_teams; k++)
        if (find_user(&o->teams[k], user))
            return o->teams[k].name;
    for (size_t k = 0; k < o->n_teams; k++)
        if (has_joined(o, &o->teams[k], user))
            return o->teams[k].name;
    return o->default_team[0] ? o->default_team : user;
}

bool policy_is_member(const struct queue_policy *o, const char *team, const char *user)
{
    const struct policy_team *t = find_team(o, team);
    bool is_listed = false;
    if (!t || names_user(o, t, user))
        return t != NULL;
    for (size_t k = 0; k < o->n_teams; k++)
        is_listed = is_listed || names_user(o, &o->teams[k], user);
    return !is_listed && str_eq(o->default_team, team);
}

bool policy_is_lead(const struct queue_policy *o, const char *team, const char *user)
{
    const struct policy_team *t = find_team(o, team);
    const struct policy_user *u = t ? find_user(t, user) : NULL;
    const char *joined = t && o->joined ? smap_get(o->joined, user) : NULL;
    char leads[CORE_NAME_MAX + sizeof(POLICY_LEADS)];
    snprintf(leads, sizeof(leads), "%s" POLICY_LEADS, team);
    return (u && u->is_lead) || (joined && names_has(joined, leads));
}

static int by_user(const void *a, const void *b)
{
    const struct policy_membership *x = a, *y = b;
    int rc = strcmp(x->user, y->user);
    return rc != 0 ? rc : (x->team > y->team) - (x->team < y->team);
}

/* Those whom the user's groups gave: words TEAM, and TEAM:lead beside it. */
static size_t add_joined(const struct queue_policy *o, const char *user, const char *teams,
    struct policy_membership **list, size_t n)
{
    char word[CORE_NAME_MAX + sizeof(POLICY_LEADS)];
    while (names_next(&teams, word, sizeof(word))) {
        bool leads = str_ends(word, POLICY_LEADS);
        if (leads)
            word[strlen(word) - strlen(POLICY_LEADS)] = '\0';
        const struct policy_team *t = find_team(o, word);
        if (t)
            *GROW(*list, n) = (struct policy_membership){user, (size_t)(t - o->teams), leads};
    }
    return n;
}

/* Of a sorted list: each user and team once, leading if any of its entries does. */
static size_t merge(struct policy_membership *list, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct policy_membership *last = kept > 0 ? &list[kept - 1] : NULL;
        if (last && last->team == list[i].team && str_eq(last->user, list[i].user))
            last->leads |= list[i].leads;
        else
            list[kept++] = list[i];
    }
    return kept;
}

size_t policy_memberships(const struct queue_policy *o, struct policy_membership **ret_list)
{
    struct policy_membership *list = NULL;
    const char *user, *teams;
    size_t n = 0;
    for (size_t i = 0; i < o->n_teams; i++)
        for (size_t k = 0; k < o->teams[i].n_users; k++)
            *GROW(list, n) = (struct policy_membership){
                o->teams[i].users[k].name, i, o->teams[i].users[k].is_lead};
    for (size_t pos = 0; o->joined && (teams = smap_next(o->joined, &pos, &user));)
        n = add_joined(o, user, teams, &list, n);
    if (n > 1)
        qsort(list, n, sizeof(*list), by_user);
    *ret_list = list;
    return merge(list, n);
}

void policy_leads(const struct queue_policy *o, const char *team,
    void (*each)(void *ctx, const char *user), void *ctx)
{
    const struct policy_team *t = find_team(o, team);
    const char *user;
    for (size_t k = 0; t && k < t->n_users; k++)
        if (t->users[k].is_lead)
            each(ctx, t->users[k].name);
    for (size_t pos = 0; t && o->joined && smap_next(o->joined, &pos, &user);) {
        const struct policy_user *u = find_user(t, user);
        if (!(u && u->is_lead) && policy_is_lead(o, team, user))
            each(ctx, user);
    }
}

int policy_check_member(
    const struct queue_policy *o, const char *team, const char *user, struct err *e)
{
    const struct policy_team *t = find_team(o, team);
    if (o->n_teams == 0)
        return 0;
    if (!t)
        return err_set(e, ERR_INVALID, "there is no team '%s' (belay shares lists them)", team);
    if ((t->n_users > 0 || t->by_groups) && !names_user(o, t, user) &&
        !str_eq(o->default_team, t->name))
        return err_set(e, ERR_DENIED,
            "%s is not a member of team '%s': an administrator can add them in %s", user, team,
            t->by_groups ? "belayd's configuration, or to the team's group at the identity "
                           "provider (then: belay login)"
                         : "belayd's configuration");
    return 0;
}

static int resolve_team(const struct queue_policy *o, struct job_row *r, struct err *e)
{
    if (o->n_teams > 0 && r->spec.team[0])
        return policy_check_member(o, r->spec.team, r->user, e);
    STR_COPY(r->spec.team, policy_team_of(o, r->user));
    return 0;
}

int policy_resolve(const struct queue_policy *o, struct job_row *r, struct err *e)
{
    int rc = resolve_team(o, r, e);
    if (rc)
        return rc;
    if (o->n_qos == 0 || (str_eq(r->spec.qos, "normal") && !policy_qos(o, r->spec.qos)))
        r->spec.qos[0] = '\0'; /* Slurm's default QOS, which scripts name, means no QOS */
    if (r->spec.qos[0] && !policy_qos(o, r->spec.qos))
        return err_set(e, ERR_INVALID, "there is no QOS '%s'; there is '%s'%s", r->spec.qos,
            o->qos[0].name, o->n_qos > 1 ? " and others (qos: in belayd's configuration)" : "");
    return 0;
}

int64_t policy_limit(
    const struct queue_policy *o, const char *team, const char *user, enum limit_kind kind)
{
    const struct policy_team *t = find_team(o, team);
    const struct policy_user *u = t && user ? find_user(t, user) : NULL;
    if (!user)
        return t && t->limits.is_set[kind] ? t->limits.max[kind] : LIMIT_NONE;
    if (u && u->limits.is_set[kind])
        return u->limits.max[kind];
    if (t && t->each_user.is_set[kind])
        return t->each_user.max[kind];
    return o->each_user.is_set[kind] ? o->each_user.max[kind] : LIMIT_NONE;
}

int64_t policy_quota_mcpu(const struct queue_policy *o, const char *team)
{
    const struct policy_team *t = find_team(o, team);
    return t ? t->quota_mcpu : 0;
}
