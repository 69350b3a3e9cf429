/* SPDX-License-Identifier: Apache-2.0
 *
 * What explain.c, which says why a job waits, and explain_room.c, which says it of machines, share.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_EXPLAIN_PRIVATE_H
#define BELAY_SCHEDULER_CORE_FORECAST_EXPLAIN_PRIVATE_H

#include "scheduler/core/forecast/ahead.h"
#include "scheduler/core/forecast/explain.h"
#include "scheduler/core/model/state.h"

struct answer {
    struct reason *out;
    size_t n, max;
    const struct ahead *ahead; /* or NULL: it is worked out when it is needed */
};

/* Adds a reason if there is room for one more. */
void explain_say(struct answer *a, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static inline const char *explain_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* What there is for a job of this kind of demand. */
struct survey {
    struct stamp now;
    int64_t reserved;     /* nodes that have room, for others */
    int64_t reserved_for; /* the job of the first of those */
    int64_t reserved_until;
    int64_t unpowered; /* nodes that have room, in racks that may not draw so much more */
    const struct node *lacks_power;         /* the first of those */
    int64_t nodes, other_market, too_small; /* nodes and offers that are large enough, but ... */
    /* of a market that it may not be given just now, done by its time for the least money */
    int64_t other_procurement;
    int64_t uncertified; /* of pools that ask for a drill first */
    const char *asks;    /* the first of those */
    /* that have room, but cost more than budgets, its own cap, or what it takes an hour allow
     * ... */
    int64_t unpaid;
    int64_t unpaid_uusd_h;        /* ... all of its nodes on the cheapest of those ... */
    const struct pool *unpaid_in; /* ... which is there */
    /* the first that could hold it, but asks for labels that it has not */
    const struct pool *unlabelled;
    /* nodes and offers that cost more than its user or team may still pay, or have more than they
     * may have */
    int64_t dear;
    int64_t no_constraints;        /* that lack features or named resources */
    char no_constraints_what[128]; /* of the first of those */
    int64_t no_criu;
    const char *no_criu_who, *no_criu_why; /* the first of those */
    int64_t throttled;                     /* that are UP */
    const struct node *throttles;          /* the first of those */
    int64_t full;                          /* likewise, with full disks */
    const struct node *fulls;
    int64_t busy, draining, noticed, lost, kept, ready; /* nodes of the right market and size */
    int64_t offers, coming;
    struct resources largest; /* of the right pool, node or offer */
};

/* ---- of machines (explain_room.c) ---- */

/* Looks at every node; at every offer. */
void explain_survey_nodes(const struct model *m, const struct shape *s, struct survey *v);
void explain_survey_offers(const struct model *m, const struct shape *s, struct survey *v);

/* true: nothing could ever hold it, as is told */
bool explain_impossible(const struct model *m, const struct job *j, const struct shape *s,
    const struct survey *v, struct answer *a);
/* how many of its nodes could be had at once */
void explain_gang(const struct model *m, const struct job *j, struct answer *a);
/* that it waits for those it had, and how long */
void explain_gang_resize(const struct job *j, struct stamp now, struct answer *a);
void explain_reserved(
    const struct survey *v, const struct job *j, struct stamp now, struct answer *a);
/* machines that boot */
void explain_coming(
    const struct model *m, const struct shape *s, struct stamp now, struct answer *a);
/* why none is launched */
void explain_offers(
    const struct model *m, const struct shape *s, struct stamp now, struct answer *a);
/* why those that are large enough do not take it */
void explain_nodes(const struct survey *v, const struct shape *s, struct answer *a);
/* what others lack */
void explain_lacking(const struct survey *v, const struct job *j, struct answer *a);
/* only: nothing else is there for it */
void explain_uncertified(const struct survey *v, const struct job *j, bool only, struct answer *a);

#endif
