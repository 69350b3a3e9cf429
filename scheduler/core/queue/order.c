/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of the parts of a job's priority (order.h). Integers only, except for one quotient: the
 * order must be equal on every machine.
 */
#include "scheduler/core/queue/order.h"

#include "base/str.h"
#include <assert.h>

#define HOUR_MS 3600000LL
#define MIB_A_GIB 1024

const struct order_options order_defaults = {.half_life_ms = 7 * 24 * HOUR_MS,
    .fair_ms = 60 * 24 * HOUR_MS,
    .age_max_ms = 6 * HOUR_MS,
    .gpu_mcpu = 16000,
    .gib_mcpu = 250,
    .reserve = 8};

static const struct order_team *find_team(const struct order_options *o, const char *name)
{
    for (size_t k = 0; k < o->n_teams; k++)
        if (str_eq(o->teams[k].name, name))
            return &o->teams[k];
    return NULL;
}

const struct order_qos *order_qos(const struct order_options *o, const char *name)
{
    for (size_t k = 0; k < o->n_qos; k++)
        if (str_eq(o->qos[k].name, name))
            return &o->qos[k];
    return NULL;
}

const char *const limit_names[] = {
    "max_running", "max_gpus", "max_usd_per_hour", "max_cpus", "max_submitted", NULL};

static const struct order_user *find_user(const struct order_team *t, const char *name)
{
    for (size_t k = 0; k < t->n_users; k++)
        if (str_eq(t->users[k].name, name))
            return &t->users[k];
    return NULL;
}

static bool names_user(const struct order_team *t, const char *user)
{
    return find_user(t, user) != NULL;
}

const char *order_team_of(const struct order_options *o, const char *user)
{
    for (size_t k = 0; k < o->n_teams; k++)
        if (names_user(&o->teams[k], user))
            return o->teams[k].name;
    return o->default_team[0] ? o->default_team : user;
}

int order_check_member(
    const struct order_options *o, const char *team, const char *user, struct err *e)
{
    const struct order_team *t = find_team(o, team);
    if (o->n_teams == 0)
        return 0;
    if (!t)
        return err_set(e, ERR_INVALID, "there is no team '%s' (belay shares lists them)", team);
    if (t->n_users > 0 && !names_user(t, user) && !str_eq(o->default_team, t->name))
        return err_set(e, ERR_DENIED,
            "%s is not a member of team '%s': an administrator can add them in belayd's "
            "configuration",
            user, team);
    return 0;
}

static int resolve_team(const struct order_options *o, struct job_row *r, struct err *e)
{
    if (o->n_teams > 0 && r->spec.team[0])
        return order_check_member(o, r->spec.team, r->user, e);
    STR_COPY(r->spec.team, order_team_of(o, r->user));
    return 0;
}

int order_resolve(const struct order_options *o, struct job_row *r, struct err *e)
{
    int rc = resolve_team(o, r, e);
    if (rc)
        return rc;
    if (o->n_qos == 0 || (str_eq(r->spec.qos, "normal") && !order_qos(o, r->spec.qos)))
        r->spec.qos[0] = '\0'; /* Slurm's default QOS, which scripts name, means no QOS */
    if (r->spec.qos[0] && !order_qos(o, r->spec.qos))
        return err_set(e, ERR_INVALID, "there is no QOS '%s'; there is '%s'%s", r->spec.qos,
            o->qos[0].name, o->n_qos > 1 ? " and others (qos: in belayd's configuration)" : "");
    return 0;
}

int64_t order_limit(
    const struct order_options *o, const char *team, const char *user, enum limit_kind kind)
{
    const struct order_team *t = find_team(o, team);
    const struct order_user *u = t && user ? find_user(t, user) : NULL;
    if (!user)
        return t && t->limits.is_set[kind] ? t->limits.most[kind] : LIMIT_NONE;
    if (u && u->limits.is_set[kind])
        return u->limits.most[kind];
    if (t && t->each_user.is_set[kind])
        return t->each_user.most[kind];
    return o->each_user.is_set[kind] ? o->each_user.most[kind] : LIMIT_NONE;
}

int64_t order_quota_mcpu(const struct order_options *o, const char *team)
{
    const struct order_team *t = find_team(o, team);
    return t ? t->quota_mcpu : 0;
}

int64_t order_mcpu(const struct order_options *o, const struct resources *need)
{
    int64_t most = need->cpus * 1000LL, gpus = need->gpus * o->gpu_mcpu;
    int64_t memory = need->memory_mib / MIB_A_GIB * o->gib_mcpu +
                     need->memory_mib % MIB_A_GIB * o->gib_mcpu / MIB_A_GIB;
    most = gpus > most ? gpus : most;
    return memory > most ? memory : most;
}

int64_t order_qos_ms(const struct order_options *o, const struct job_row *r)
{
    const struct order_qos *q = r->spec.qos[0] ? order_qos(o, r->spec.qos) : NULL;
    return q ? q->boost_ms : 0;
}

int64_t order_size_ms(const struct order_options *o, const struct job_row *r)
{
    int64_t doublings = 0;
    for (int64_t cpus = order_mcpu(o, &r->spec.need) * r->spec.nodes / 1000; cpus > 1; cpus /= 2)
        doublings++;
    return doublings * o->size_ms;
}

int64_t order_age_16(const struct order_options *o, int64_t waited_ms)
{
    if (waited_ms <= o->age_max_ms)
        return 16 * waited_ms;
    return 16 * o->age_max_ms + (waited_ms - o->age_max_ms);
}

/* 2^-(2^k / ORDER_STEPS), scaled by 2^32. */
static const uint32_t factors[] = {4292061010U, 4289156690U, 4283353945U, 4271771996U, 4248701965U,
    4202935003U, 4112874773U, 3938502376U, 3611622603U, 3037000500U};

static int64_t multiply(int64_t value, uint32_t factor)
{
    uint64_t v = (uint64_t)value;
    return (int64_t)((v >> 32) * factor + (((v & UINT32_MAX) * factor) >> 32));
}

int64_t order_halve(int64_t value, int64_t steps)
{
    assert(value >= 0 && steps >= 0);
    int64_t halvings = steps / ORDER_STEPS;
    value = halvings < 63 ? value >> halvings : 0;
    for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++)
        if (steps >> k & 1)
            value = multiply(value, factors[k]);
    return value;
}
