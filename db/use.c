/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the capacity of the nodes in a period, and how much of it was held and useful by the
 * ledger.
 *
 * Invariant: as in cost.c, wherever a period is cut, the parts of a stretch add up to the whole, to
 * the millisecond times cpus or GPUs: a part is the amount due at its end minus the amount due at
 * its beginning, both rounded down.
 */
#include "base/mem.h"
#include "base/str.h"
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"

#include <stdlib.h>

enum part { PART_THERE, PART_USEFUL, PART_OTHER, PART_RUNNING };

struct stretch {
    const char *pool; /* borrowed from the statement */
    bool elastic;
    enum part part;
    int64_t cpus, gpus, on_demand_uusd_h;
    int64_t start, end, ms; /* ms of it count, distributed evenly */
};

struct use {
    const struct use_of *of;
    struct use_step *steps;
    struct use_pool *pools;
    size_t n_pools, last; /* the last pool found, because rows of one pool are adjacent */
};

static struct use_pool *find_pool(struct use *u, const struct stretch *s)
{
    for (size_t i = 0; i < u->n_pools; i++) {
        size_t at = (u->last + i) % u->n_pools;
        if (str_eq(u->pools[at].pool, s->pool)) {
            u->last = at;
            return &u->pools[at];
        }
    }
    u->pools = mem_resize(u->pools, u->n_pools + 1, sizeof *u->pools);
    u->last = u->n_pools++;
    u->pools[u->last] = (struct use_pool){.elastic = s->elastic};
    STR_COPY(u->pools[u->last].pool, s->pool);
    return &u->pools[u->last];
}

static void add_sum(struct use_sum *sum, enum part part, int64_t ms)
{
    if (part == PART_THERE) {
        sum->there_ms += ms;
        return;
    }
    sum->held_ms += ms;
    if (part == PART_USEFUL)
        sum->useful_ms += ms;
    else if (part == PART_RUNNING)
        sum->running_ms += ms;
}

/* The part of the stretch that is due by then. */
static int64_t due(const struct stretch *s, int64_t at)
{
    if (at <= s->start)
        return 0;
    return at >= s->end
               ? s->ms
               : (int64_t)((__extension__(__int128) s->ms) * (at - s->start) / (s->end - s->start));
}

static void add_stretch(struct use *u, const struct stretch *s)
{
    const struct use_of *of = u->of;
    int64_t a = s->start > of->from.ms ? s->start : of->from.ms,
            b = s->end < of->to.ms ? s->end : of->to.ms;
    if (a >= b)
        return;
    struct use_pool *p = find_pool(u, s);
    int64_t ms = due(s, b) - due(s, a);
    add_sum(&p->cpus, s->part, ms * s->cpus);
    add_sum(&p->gpus, s->part, ms * s->gpus);
    if (s->part == PART_THERE)
        p->on_demand_uusd +=
            (int64_t)((__extension__(__int128) s->on_demand_uusd_h) * ms / 3600000);
    for (int64_t i = of->step_ms > 0 ? (a - of->from.ms) / of->step_ms : 0;
         a < b && of->step_ms > 0; i++) {
        int64_t end = of->from.ms + (i + 1) * of->step_ms, until = end < b ? end : b;
        ms = due(s, until) - due(s, a);
        add_sum(&u->steps[i].cpus, s->part, ms * s->cpus);
        add_sum(&u->steps[i].gpus, s->part, ms * s->gpus);
        a = until;
    }
}

/* Each statement returns: pool, elastic, cpus, gpus, start, end, ms, useful or not, on-demand
 * price. */
static int walk(struct use *u, struct db_reader *r, const char *text, enum part part, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements, text, e);
    query_i64(&q, 1, u->of->from.ms);
    query_i64(&q, 2, u->of->to.ms);
    while (query_step(&q)) {
        struct stretch s = {.pool = (const char *)sqlite3_column_text(q.stmt, 0),
            .elastic = sqlite3_column_int(q.stmt, 1) != 0,
            .part = part == PART_USEFUL && !sqlite3_column_int(q.stmt, 7) ? PART_OTHER : part,
            .cpus = sqlite3_column_int64(q.stmt, 2),
            .gpus = sqlite3_column_int64(q.stmt, 3),
            .on_demand_uusd_h = sqlite3_column_int64(q.stmt, 8),
            .start = sqlite3_column_int64(q.stmt, 4),
            .end = sqlite3_column_int64(q.stmt, 5),
            .ms = sqlite3_column_int64(q.stmt, 6)};
        if (!u->of->pool || str_eq(u->of->pool, s.pool))
            add_stretch(u, &s);
    }
    return query_finish(&q);
}

/* Adds what agents measured, from the rows of an hour, which are kept for longest. */
static int add_busy(struct use *u, struct db_reader *r, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements,
        "SELECT n.pool, sum(g.known_ms), sum(g.busy_ms) FROM gpu_loads g JOIN nodes n ON n.id = "
        "g.node WHERE g.span_ms = 3600000 AND g.at >= ?1 AND g.at < ?2 AND g.job <> 0 GROUP BY "
        "n.pool",
        e);
    query_i64(&q, 1, u->of->from.ms);
    query_i64(&q, 2, u->of->to.ms);
    while (query_step(&q)) {
        const char *pool = (const char *)sqlite3_column_text(q.stmt, 0);
        for (size_t i = 0; i < u->n_pools; i++) {
            if (!str_eq(u->pools[i].pool, pool))
                continue;
            u->pools[i].gpu_measured_ms = sqlite3_column_int64(q.stmt, 1);
            u->pools[i].gpu_busy_ms = sqlite3_column_int64(q.stmt, 2);
        }
    }
    return query_finish(&q);
}

/* Per node of a job; an exclusive job holds the whole node. */
#define HELD(what) "CASE WHEN x.text LIKE '%exclusive=yes%' THEN n." what " ELSE j." what " END"
#define OF_JOB                                                                                     \
    " JOIN jobs j ON j.id = a.job JOIN nodes n ON n.id = a.node LEFT JOIN constraints x ON x.id "  \
    "= "                                                                                           \
    "j.constraints "
#define NODE_COLUMNS "SELECT n.pool, n.instance <> 0, "

int db_read_use(struct db_reader *r, const struct use_of *of, struct use_step *steps, db_use_fn fn,
    void *ctx, struct err *e)
{
    struct use u = {.of = of, .steps = steps};
    int rc = prune_check_cut(r, CUT_LEDGER, of->from, "machines and rows of the ledger", "", e);
    if (rc == 0)
        rc = walk(&u, r,
            NODE_COLUMNS "n.cpus, n.gpus, n.joined_at, ifnull(n.gone_at, ?2), ifnull(n.gone_at, "
                         "?2) - n.joined_at, "
                         "0, n.on_demand_uusd_h FROM nodes n WHERE n.joined_at < ?2 AND "
                         "ifnull(n.gone_at, ?2) > ?1"
                         " ORDER BY n.pool",
            PART_THERE, e);
    if (rc == 0)
        rc = walk(&u, r,
            NODE_COLUMNS HELD("cpus") ", " HELD(
                "gpus") ", min(ifnull(a.from_at, a.to_at), a.to_at), a.to_at, a.ms, a.kind = "
                        "'useful', 0 FROM ledger a" OF_JOB
                        "WHERE a.to_at > ?1 AND a.job <> 0 AND ifnull(a.from_at, a.to_at) < ?2",
            PART_USEFUL, e);
    if (rc == 0)
        rc = walk(&u, r,
            NODE_COLUMNS HELD("cpus") ", " HELD(
                "gpus") ", a.assigned_at, ?2, ?2 - a.assigned_at, 0, 0"
                        " FROM attempts a" OF_JOB
                        "WHERE a.state <> 'ended' AND a.assigned_at < ?2 AND ?1 < ?2",
            PART_RUNNING, e);
    if (rc == 0)
        rc = add_busy(&u, r, e);
    for (size_t i = 0; rc == 0 && i < u.n_pools; i++)
        rc = fn(ctx, &u.pools[i]);
    free(u.pools);
    return rc;
}
