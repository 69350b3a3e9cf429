/* SPDX-License-Identifier: Apache-2.0
 *
 * What the order of the queue is made of. A job stands where a job would that was submitted earlier
 * or later by what is added up here, in waiting time:
 *
 *   waited     since it is eligible; what goes beyond `age_max` counts a sixteenth
 *   fair share fair * (2^-t + 2^-u / 4): t is what its team used of what all teams used, over the
 *              team's share of all shares; u the same of the user within the team. Only teams and
 *              users that have jobs count
 *   boosts     of its QOS; of its size, for each doubling of what its nodes take in cpus; less its
 *              `nice`
 *
 * What was used is told in cpus: a job takes the greatest of its cpus, its GPUs times `gpu_mcpu`
 * and its memory times `gib_mcpu`, on each of its nodes. It counts half after each half-life.
 *
 * Since waiting that is long counts little more, and fair share is worth much more than that, teams
 * that always have jobs in the queue use what their shares say; who waits for long enough comes to
 * the front all the same.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_ORDER_H
#define BELAY_SCHEDULER_CORE_QUEUE_ORDER_H

#include "base/bits.h"
#include "scheduler/core/model/types.h"
#include <stddef.h>

#define ORDER_QOS_MAX 32        /* a class's name, with its NUL */
#define ORDER_NICE_MAX 10000000 /* minutes */
#define ORDER_SHARES_MAX 1000000
#define ORDER_TIME_MAX_MS (3650LL * 86400 * 1000) /* of weights and boosts, either way */
#define ORDER_HALF_LIFE_MIN_MS 60000LL
#define ORDER_HALF_LIFE_MAX_MS (90LL * 86400 * 1000)
#define ORDER_RESERVE_MAX 1000
#define ORDER_CPU_MAX_MCPU 1000000 /* that a GPU or a GiB may count as */

/* What the jobs of a user in a team may come to at a time, and those of all of a team. All but the
 * last are of what runs. */
enum limit_kind {
    LIMIT_RUNNING,
    LIMIT_GPUS,
    LIMIT_UUSD_H,
    LIMIT_MCPU,
    LIMIT_SUBMITTED,
    LIMIT_KINDS
};
/* "max_running" "max_gpus" ... as in the configuration; NULL-terminated */
extern const char *const limit_names[];
#define LIMIT_NONE INT64_MAX
#define ORDER_LIMIT_MAX 1000000000LL /* jobs, GPUs, cpus */

struct order_limits {
    bool is_set[LIMIT_KINDS];  /* what is not set is as the next says (order_limit) */
    int64_t most[LIMIT_KINDS]; /* LIMIT_NONE: no limit, whatever the next says */
};

struct order_user {
    char name[CORE_NAME_MAX];
    int32_t shares; /* of the team's; 1 .. ORDER_SHARES_MAX */
    struct order_limits limits;
};

struct order_team {
    char name[CORE_NAME_MAX];
    int32_t shares;
    struct order_user *users; /* its members; none: everybody may be one, with one share */
    size_t n_users;
    struct order_limits limits;    /* of all its jobs together */
    struct order_limits each_user; /* of each member's */
    /* what it gets whenever it asks for it; what others do not use of theirs it may borrow. 0:
     * nothing */
    int64_t quota_mcpu;
};

struct order_qos {
    char name[ORDER_QOS_MAX];
    int64_t boost_ms; /* as if submitted so much earlier */
    /* by their index: classes whose jobs give their places up to jobs of this one. No class does so
     * to itself, by whatever way round */
    struct bits preempts;
};

struct order_options {
    int64_t half_life_ms; /* of usage */
    int64_t fair_ms;      /* 0: fair share counts nothing */
    int64_t age_max_ms;
    int64_t size_ms; /* a doubling of size; negative: small ones first */
    int64_t gpu_mcpu, gib_mcpu;
    int32_t reserve; /* shapes at the head of the queue that nodes are kept for (reserve.c) */
    /* of users that no team names; "": each is a team of its own, with one share */
    char default_team[CORE_NAME_MAX];
    struct order_team *teams;
    size_t n_teams;
    struct order_qos *qos;
    size_t n_qos;
    struct order_limits each_user; /* of every user's jobs in a team */
};

/* 7 days; 60 days; 6 hours; nothing; 16 cpus a GPU and a quarter of one a GiB; 8; no teams, no
 * classes. */
extern const struct order_options order_defaults;

/* NULL: there is none */
const struct order_qos *order_qos(const struct order_options *o, const char *name);

/* The team that jobs of the user belong to if they name none. Borrowed from o or user. */
const char *order_team_of(const struct order_options *o, const char *user);
/* Whether the user may be counted as that team's: INVALID if there is no such team, DENIED if not a
 * member. Without teams anybody may. */
int order_check_member(
    const struct order_options *o, const char *team, const char *user, struct err *e);
/* The row's team and QOS become what they count as: without teams configured each user's own team,
 * without classes none, whatever they name; so that scripts written for another cluster run.
 * ERR_INVALID: there is no such team or class; ERR_DENIED: the user is not a member. */
int order_resolve(const struct order_options *o, struct job_row *r, struct err *e);
/* What does not change while a job waits, but its nice: of its QOS and of its size. */
int64_t order_qos_ms(const struct order_options *o, const struct job_row *r);
int64_t order_size_ms(const struct order_options *o, const struct job_row *r);
/* What has waited for so long counts so much, in sixteenths of a millisecond; grows with it. */
int64_t order_age_16(const struct order_options *o, int64_t waited_ms);

/* What the user's jobs in the team may come to; user NULL: all of the team's. The nearest that says
 * something counts: the user's own, then what the team says of each, then what is said of all.
 * LIMIT_NONE: nothing does. */
int64_t order_limit(
    const struct order_options *o, const char *team, const char *user, enum limit_kind kind);

int64_t order_quota_mcpu(const struct order_options *o, const char *team);

/* What one node of such a job takes, in thousandths of a cpu. */
int64_t order_mcpu(const struct order_options *o, const struct resources *need);

/* value * 2^-(steps / ORDER_STEPS), in whole numbers: the same on every machine. value 0 .. 2^62,
 * steps >= 0. */
#define ORDER_STEPS 1024
int64_t order_halve(int64_t value, int64_t steps);

#endif
