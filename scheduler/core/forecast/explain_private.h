/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by explain.c and explain_capacity.c.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_EXPLAIN_PRIVATE_H
#define BELAY_SCHEDULER_CORE_FORECAST_EXPLAIN_PRIVATE_H

#include "scheduler/core/forecast/ahead.h"
#include "scheduler/core/forecast/explain.h"
#include "scheduler/core/model/state.h"

struct answer {
    struct reason *out;
    size_t n, max;
    const struct ahead *ahead; /* may be NULL: computed on demand */
};

/* Adds a reason if there is space. */
void explain_add_reason(struct answer *a, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static inline const char *explain_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* Existing and launchable machines, for one demand class. */
struct survey {
    struct stamp now;
    int64_t reserved;     /* nodes with capacity that are reserved for others */
    int64_t reserved_for; /* the job of the first of those */
    int64_t reserved_until;
    int64_t unpowered;              /* nodes with capacity but without rack power */
    const struct node *lacks_power; /* the first of those */
    /* large enough nodes and offers, by what excludes them */
    int64_t nodes, other_market, too_small;
    /* a market that its procurement excludes now */
    int64_t other_procurement;
    int64_t uncertified; /* pools that require a drill */
    const char *asks;    /* the first of those */
    /* With capacity, but too expensive for budgets, its own cap, or its maximum hourly cost. */
    int64_t unpaid;
    int64_t unpaid_uusd_h;        /* cost of all its nodes on the cheapest of those */
    const struct pool *unpaid_in; /* the pool of the cheapest */
    /* The first that could serve it, but requires labels that it lacks. */
    const struct pool *unlabelled;
    /* Nodes and offers that exceed what its user or team can still pay, or their limits on size. */
    int64_t too_expensive;
    int64_t no_constraints;        /* without required features or named resources */
    char no_constraints_what[128]; /* of the first of those */
    int64_t no_criu;
    const char *no_criu_who, *no_criu_why; /* the first of those */
    int64_t throttled;                     /* that are UP */
    const struct node *throttles;          /* the first of those */
    int64_t full;                          /* with full disks */
    const struct node *full_node;
    int64_t n_maintained;          /* UP, and reserved for maintenance */
    const struct node *maintained; /* the first of the nodes that n_maintained counts */
    const struct node *drained;    /* the first that belay itself drains; may be NULL */
    int64_t busy, draining, noticed, lost, kept, ready; /* nodes of the right market and size */
    int64_t offers, coming;
    struct resources largest; /* node or offer of the right pool */
};

/* ---- --finish-by (explain_finish_by.c) ---- */

/* No-op for a job without a deadline. */
void explain_finish_by(
    const struct model *m, struct stamp now, const struct job *j, struct answer *a);

/* ---- machines (explain_capacity.c) ---- */

/* Examine every node; every offer. */
void explain_survey_nodes(const struct model *m, const struct shape *s, struct survey *v);
void explain_survey_offers(const struct model *m, const struct shape *s, struct survey *v);

/* True, with a reason added: nothing could ever serve it. */
bool explain_impossible(const struct model *m, const struct job *j, const struct shape *s,
    const struct survey *v, struct answer *a);
/* How many of its nodes are available at once. */
void explain_gang(const struct model *m, const struct job *j, struct answer *a);
/* That it waits for its former nodes, and for how long. */
void explain_gang_resize(const struct job *j, struct stamp now, struct answer *a);
void explain_reserved(const struct model *m, const struct survey *v, const struct job *j,
    struct stamp now, struct answer *a);
void explain_base_load(
    const struct model *m, const struct shape *s, struct stamp now, struct answer *a);
/* reservations for maintenance */
void explain_maintenance(
    const struct model *m, const struct survey *v, const struct job *j, struct answer *a);
/* booting machines */
void explain_coming(
    const struct model *m, const struct shape *s, struct stamp now, struct answer *a);
/* why none is launched */
void explain_offers(
    const struct model *m, const struct shape *s, struct stamp now, struct answer *a);
/* Why large enough nodes do not take it. */
void explain_nodes(const struct survey *v, const struct shape *s, struct answer *a);
/* What other nodes lack. */
void explain_lacking(const struct survey *v, const struct job *j, struct answer *a);
/* only: there is no alternative */
void explain_uncertified(const struct survey *v, const struct job *j, bool only, struct answer *a);

#endif
