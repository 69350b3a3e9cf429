/* SPDX-License-Identifier: Apache-2.0
 *
 * Policy of the queue, as configured: teams with their shares, quotas and limits, quality of
 * service (QOS), and the weights of a job's priority (priority.h).
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_POLICY_H
#define BELAY_SCHEDULER_CORE_QUEUE_POLICY_H

#include "base/bits.h"
#include "base/map.h"
#include "scheduler/core/model/rows.h"
#include <stddef.h>

#define POLICY_QOS_MAX 32 /* size of a QOS's name with its NUL */
#define POLICY_SHARES_MAX 1000000
/* maximum of weights and boosts, of either sign */
#define POLICY_TIME_MAX_MS (3650LL * 86400 * 1000)
#define POLICY_HALF_LIFE_MIN_MS 60000LL
#define POLICY_HALF_LIFE_MAX_MS (90LL * 86400 * 1000)
#define POLICY_RESERVE_MAX 1000
#define POLICY_CPU_MAX_MCPU 1000000 /* maximum weight of a GPU or a GiB */

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
#define POLICY_LIMIT_MAX 1000000000LL /* jobs, GPUs, cpus */

struct policy_limits {
    bool is_set[LIMIT_KINDS]; /* unset: the next level applies (policy_limit) */
    int64_t max[LIMIT_KINDS]; /* LIMIT_NONE: no limit, whatever the next level has */
};

struct policy_user {
    char name[CORE_NAME_MAX];
    int32_t shares; /* of the team's; 1 .. POLICY_SHARES_MAX */
    bool is_lead;   /* may act on the jobs of the team (scheduler/access) */
    struct policy_limits limits;
};

struct policy_team {
    char name[CORE_NAME_MAX];
    int32_t shares;
    struct policy_user *users; /* its members; none: anyone may be one, with one share */
    size_t n_users;
    bool by_groups;                 /* members also join by signing in: never "anyone" */
    struct policy_limits limits;    /* of all its jobs together */
    struct policy_limits each_user; /* of each member */
    /* Guaranteed on demand; beyond it the team may borrow unused quota of others. 0 = none. */
    int64_t quota_mcpu;
};

struct policy_qos {
    char name[POLICY_QOS_MAX];
    int64_t boost_ms; /* as if submitted this much earlier */
    /* By index: those whose jobs are preempted for jobs of this one. Acyclic. */
    struct bits preempts;
};

struct queue_policy {
    int64_t half_life_ms; /* of usage */
    int64_t fair_ms;      /* 0 = fair share is off */
    int64_t age_max_ms;
    int64_t size_ms; /* per doubling of size; negative: small jobs first */
    int64_t gpu_mcpu, gib_mcpu;
    /* how many shapes at the head of the queue get reservations (reserve.c) */
    int32_t reserve;
    /* Of users without a team. "": each such user is a team of its own, with one share. */
    char default_team[CORE_NAME_MAX];
    struct policy_team *teams;
    size_t n_teams;
    struct policy_qos *qos;
    size_t n_qos;
    struct policy_limits each_user; /* of every user's jobs in a team */
    /* user -> char *, the list of further teams that their groups at the identity provider gave
     * them at their last sign-in; a team that they lead is there again, with POLICY_LEADS. The one
     * part that changes while belayd runs:
     * between two ticks. NULL: nobody signs in. */
    struct smap *joined;
};

/* 7 days; 60 days; 6 hours; 0; 16 cpus per GPU and 1/4 per GiB; 8; no teams, no QOS. */
extern const struct queue_policy queue_policy_defaults;

/* NULL if unknown. */
const struct policy_qos *policy_qos(const struct queue_policy *o, const char *name);

#define POLICY_LEADS ":lead"

/* Replaces the teams that the user has joined; o->joined is set. */
void policy_join(const struct queue_policy *o, const char *user, const char *teams);

/* Default team of the user's jobs. Borrowed from o or user. */
const char *policy_team_of(const struct queue_policy *o, const char *user);
/* Whether the user may belong to the team: ERR_INVALID if the team is unknown, ERR_DENIED if not a
 * member. Without configured teams any user may. */
int policy_check_member(
    const struct queue_policy *o, const char *team, const char *user, struct err *e);
/* Whether the user is one of the team, not only someone who may submit to it: named in the team's
 * list, or without a list of any team if it is the default team. */
bool policy_is_member(const struct queue_policy *o, const char *team, const char *user);
bool policy_is_lead(const struct queue_policy *o, const char *team, const char *user);
/* A user of a team, who is in its list or has joined it; not of the default team, which has those
 * without another one. Borrowed name. */
struct policy_membership {
    const char *user;
    size_t team; /* index of teams */
    bool leads;
};
/* All of them, each once, by user (strcmp) and then in the order of teams; returns their number.
 * For many users: its time grows with the lists' length, not with users times teams. Free
 * *ret_list. */
size_t policy_memberships(const struct queue_policy *o, struct policy_membership **ret_list);
/* Calls each once for every user who leads the team. */
void policy_leads(const struct queue_policy *o, const char *team,
    void (*each)(void *ctx, const char *user), void *ctx);
/* Sets the row's team and QOS to the effective ones. Without configured teams the team is the
 * user's own, and without a configured QOS there is none, whatever the row names, so that scripts
 * from other clusters run. ERR_INVALID: unknown team or QOS; ERR_DENIED: the user is not a
 * member. */
int policy_resolve(const struct queue_policy *o, struct job_row *r, struct err *e);

/* Limit of the user's jobs in the team; user NULL: of the whole team. The most specific level that
 * is set applies: the user's own, the team's for each member, the default for all. LIMIT_NONE if
 * none is set. */
int64_t policy_limit(
    const struct queue_policy *o, const char *team, const char *user, enum limit_kind kind);

int64_t policy_quota_mcpu(const struct queue_policy *o, const char *team);

#endif
