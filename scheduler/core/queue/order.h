/* SPDX-License-Identifier: Apache-2.0
 *
 * Priority of jobs, in units of waiting time. The position of a job is that of a job submitted
 * earlier or later by the sum of:
 *
 *   waited     time since it is eligible; time beyond `age_max` counts a sixteenth
 *   fair share fair * (2^-t + 2^-u / 4). t is the team's part of all usage, divided by its part of
 *              all shares; u the same for the user within the team. Only teams and users with jobs
 *              count
 *   boosts     of its QOS; of its size, for each doubling of its cpu usage; minus its `nice`
 *
 * Usage is in cpus: on each of its nodes a job uses the maximum of its cpus, its GPUs times
 * `gpu_mcpu` and its memory times `gib_mcpu`. Usage is halved after each half-life.
 *
 * Long waiting counts little and fair share much more. Teams that always have queued jobs
 * therefore use what their shares say. A job that waits long enough still reaches the front.
 *
 * Positions are computed in shares.c (shape_place_16) and compared in queue.c (place_order).
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_ORDER_H
#define BELAY_SCHEDULER_CORE_QUEUE_ORDER_H

#include "base/bits.h"
#include "scheduler/core/model/rows.h"
#include <stddef.h>

#define ORDER_QOS_MAX 32 /* size of a class's name with its NUL */
#define ORDER_SHARES_MAX 1000000
/* maximum of weights and boosts, of either sign */
#define ORDER_TIME_MAX_MS (3650LL * 86400 * 1000)
#define ORDER_HALF_LIFE_MIN_MS 60000LL
#define ORDER_HALF_LIFE_MAX_MS (90LL * 86400 * 1000)
#define ORDER_RESERVE_MAX 1000
#define ORDER_CPU_MAX_MCPU 1000000 /* maximum weight of a GPU or a GiB */

/* Limits on the jobs of a user in a team, and of a whole team, at a time. All but the last are on
 * running jobs. */
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
    bool is_set[LIMIT_KINDS];  /* unset: the next level applies (order_limit) */
    int64_t most[LIMIT_KINDS]; /* LIMIT_NONE: no limit, whatever the next level has */
};

struct order_user {
    char name[CORE_NAME_MAX];
    int32_t shares; /* of the team's; 1 .. ORDER_SHARES_MAX */
    struct order_limits limits;
};

struct order_team {
    char name[CORE_NAME_MAX];
    int32_t shares;
    struct order_user *users; /* its members; none: anyone may be one, with one share */
    size_t n_users;
    struct order_limits limits;    /* of all its jobs together */
    struct order_limits each_user; /* of each member */
    /* Guaranteed on demand; beyond it the team may borrow unused quota of others. 0 = none. */
    int64_t quota_mcpu;
};

struct order_qos {
    char name[ORDER_QOS_MAX];
    int64_t boost_ms; /* as if submitted this much earlier */
    /* By index: classes whose jobs are preempted for jobs of this one. Acyclic. */
    struct bits preempts;
};

struct order_options {
    int64_t half_life_ms; /* of usage */
    int64_t fair_ms;      /* 0 = fair share is off */
    int64_t age_max_ms;
    int64_t size_ms; /* per doubling of size; negative: small jobs first */
    int64_t gpu_mcpu, gib_mcpu;
    /* how many shapes at the head of the queue get reservations (reserve.c) */
    int32_t reserve;
    /* Of users without a team. "": each such user is a team of its own, with one share. */
    char default_team[CORE_NAME_MAX];
    struct order_team *teams;
    size_t n_teams;
    struct order_qos *qos;
    size_t n_qos;
    struct order_limits each_user; /* of every user's jobs in a team */
};

/* 7 days; 60 days; 6 hours; 0; 16 cpus per GPU and 1/4 per GiB; 8; no teams, no classes. */
extern const struct order_options order_defaults;

/* NULL if unknown. */
const struct order_qos *order_qos(const struct order_options *o, const char *name);

/* Default team of the user's jobs. Borrowed from o or user. */
const char *order_team_of(const struct order_options *o, const char *user);
/* Whether the user may belong to the team: ERR_INVALID if the team is unknown, ERR_DENIED if not a
 * member. Without configured teams any user may. */
int order_check_member(
    const struct order_options *o, const char *team, const char *user, struct err *e);
/* Sets the row's team and QOS to the effective ones. Without configured teams the team is the
 * user's own, and without classes there is no QOS, whatever the row names, so that scripts from
 * other clusters run. ERR_INVALID: unknown team or class; ERR_DENIED: the user is not a member. */
int order_resolve(const struct order_options *o, struct job_row *r, struct err *e);
/* The constant part of the priority without nice: QOS and size. */
int64_t order_qos_ms(const struct order_options *o, const struct job_row *r);
int64_t order_size_ms(const struct order_options *o, const struct job_row *r);
/* Priority of this waiting time, in sixteenths of a millisecond; monotonic. */
int64_t order_age_16(const struct order_options *o, int64_t waited_ms);

/* Limit of the user's jobs in the team; user NULL: of the whole team. The most specific level that
 * is set applies: the user's own, the team's for each member, the default for all. LIMIT_NONE if
 * none is set. */
int64_t order_limit(
    const struct order_options *o, const char *team, const char *user, enum limit_kind kind);

int64_t order_quota_mcpu(const struct order_options *o, const char *team);

/* Usage of one node of such a job, in thousandths of a cpu. */
int64_t order_mcpu(const struct order_options *o, const struct resources *need);

/* value * 2^-(steps / ORDER_STEPS) in integers, equal on every machine. value 0 .. 2^62, steps >=
 * 0. */
#define ORDER_STEPS 1024
int64_t order_halve(int64_t value, int64_t steps);

#endif
