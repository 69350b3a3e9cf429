/* SPDX-License-Identifier: Apache-2.0 */
#include "db/night.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- of several users ---- */

struct nights {
    struct night all;
    struct smap users; /* struct night by user */
};

struct nights *nights_create(void)
{
    return mem_alloc(sizeof(struct nights));
}

void nights_add(struct nights *n, const char *user)
{
    if (!smap_get(&n->users, user))
        smap_put(&n->users, user, mem_alloc(sizeof(struct night)));
}

const struct night *nights_of(const struct nights *n, const char *user)
{
    return user[0] ? smap_get(&n->users, user) : &n->all;
}

size_t nights_users(const struct nights *n)
{
    return smap_size(&n->users);
}

void nights_destroy(struct nights *n)
{
    struct night *own;
    if (!n)
        return;
    for (size_t pos = 0; (own = smap_next(&n->users, &pos, NULL)) != NULL;)
        free(own);
    smap_deinit(&n->users);
    free(n);
}

/* ---- rows ---- */

struct reading {
    struct db_reader *r;
    struct wall from, to;
    const char *user;      /* whose rows are read; "" = all */
    struct night *night;   /* of them */
    struct nights *nights; /* gets the rows of its users, too; may be NULL */
    struct err *e;
};

/* The nights that a row of the user belongs to; returns their number. */
static size_t nights_with(const struct reading *x, const char *user, struct night *ret_nights[2])
{
    ret_nights[0] = x->night;
    ret_nights[1] = x->nights && user ? smap_get(&x->nights->users, user) : NULL;
    return ret_nights[1] ? 2 : 1;
}

static void bind(const struct reading *x, struct query *q)
{
    query_i64(q, 1, x->from.ms);
    query_i64(q, 2, x->to.ms);
    query_text(q, 3, x->user);
}

static const char *text_in(const struct query *q, int column)
{
    return (const char *)sqlite3_column_text(q->stmt, column);
}

/* ---- jobs ---- */

static void add_job(struct night_jobs *list, const struct job_row *r)
{
    if (list->n++ >= NIGHT_LISTED_MAX)
        return;
    struct night_job *j = &list->first[list->n - 1];
    j->id = r->id;
    j->ref = job_ref(r);
    j->end = r->state == JOB_ENDED ? r->end : END_NONE;
    j->exit_code = r->exit_code;
    j->finish_by.ms = r->spec.finish_ms;
    STR_COPY(j->name, r->spec.name);
    STR_COPY(j->user, r->user);
}

static void count_ended(struct night *n, const struct job_row *r)
{
    if (r->end == END_SUCCEEDED)
        n->ended_well++;
    else if (r->end == END_CANCELLED)
        n->cancelled++;
    else
        add_job(&n->failed, r);
    if (r->spec.finish_ms > 0 && r->ended_at.ms > r->spec.finish_ms && r->end != END_CANCELLED)
        add_job(&n->late, r);
}

/* An array is counted by its tasks. */
static int read_ended(const struct reading *x)
{
    struct job_row row = {0};
    struct query q;
    query_init(&q, x->r->statements, TABLE_JOBS,
        "WHERE state = 'ended' AND ended_at >= ?1 AND ended_at < ?2 AND (?3 = '' OR user = ?3) AND "
        "NOT EXISTS (SELECT 1 FROM arrays WHERE arrays.job = jobs.id) ORDER BY ended_at, id",
        x->e);
    bind(x, &q);
    while (query_next(&q, &row)) {
        struct night *of[2];
        for (size_t i = nights_with(x, row.user, of); i-- > 0;)
            count_ended(of[i], &row);
    }
    return query_finish(&q);
}

/* Live jobs whose time of --finish-by has passed. Only those with one are not 'free'. */
static int read_unfinished(const struct reading *x)
{
    struct job_row row = {0};
    struct query q;
    query_init(&q, x->r->statements, TABLE_JOBS,
        "WHERE state <> 'ended' AND procurement <> 'free' AND (?3 = '' OR user = ?3) AND ?1 <= ?2 "
        "ORDER BY id",
        x->e);
    bind(x, &q);
    while (query_next(&q, &row)) {
        struct night *of[2];
        bool is_late = row.spec.finish_ms > 0 && row.spec.finish_ms < x->to.ms;
        for (size_t i = is_late ? nights_with(x, row.user, of) : 0; i-- > 0;)
            add_job(&of[i]->late, &row);
    }
    return query_finish(&q);
}

/* Every attempt has rows in the ledger at its end. */
static int read_reclaims(const struct reading *x)
{
    struct query q;
    query_init_text(&q, x->r->statements,
        "SELECT j.user, count(*), count(DISTINCT a.job) FROM (SELECT DISTINCT job, attempt FROM "
        "ledger "
        "WHERE to_at >= ?1 AND to_at < ?2 AND job <> 0 AND attempt <> 0) l JOIN attempts a ON "
        "a.job = l.job AND a.attempt = l.attempt AND a.rank = 0 JOIN jobs j ON j.id = a.job WHERE "
        "a.end_kind IN ('reclaimed', 'node-lost') AND a.ended_at >= ?1 AND a.ended_at < ?2 AND "
        "(j.state <> 'ended' OR j.end_kind = 'succeeded') AND (?3 = '' OR j.user = ?3) "
        "GROUP BY j.user",
        x->e);
    bind(x, &q);
    while (query_step(&q)) {
        struct night *of[2];
        for (size_t i = nights_with(x, text_in(&q, 0), of); i-- > 0;) {
            of[i]->reclaims += sqlite3_column_int64(q.stmt, 1);
            of[i]->reclaimed_jobs += sqlite3_column_int64(q.stmt, 2);
        }
    }
    return query_finish(&q);
}

/* ---- money ---- */

static int add_cost(void *ctx, const struct cost_line *line)
{
    struct night *of[2];
    for (size_t i = nights_with(ctx, line->key, of); i-- > 0;) {
        of[i]->uusd += line->uusd;
        of[i]->on_demand_uusd += line->on_demand_uusd;
    }
    return 0;
}

/* ---- cron entries ---- */

/* Columns of the statement, from 0: number, name and user of the entry, the text. */
static void add_cron(struct night_crons *list, sqlite3_stmt *row, int64_t times, const char *text)
{
    list->n += times;
    if (list->n_rows++ >= NIGHT_LISTED_MAX)
        return;
    struct night_cron *c = &list->first[list->n_rows - 1];
    c->cron = sqlite3_column_int64(row, 0);
    STR_COPY(c->name, (const char *)sqlite3_column_text(row, 1));
    STR_COPY(c->user, (const char *)sqlite3_column_text(row, 2));
    STR_COPY(c->text, text);
}

static void count_run(struct night *n, sqlite3_stmt *row)
{
    const char *outcome = (const char *)sqlite3_column_text(row, 3),
               *end = (const char *)sqlite3_column_text(row, 6);
    int64_t times = sqlite3_column_int64(row, 4);
    char text[CORE_TEXT_MAX];
    if (!str_eq(outcome, cron_outcome_names[CRON_STARTED])) {
        add_cron(&n->cron_skipped, row, times, (const char *)sqlite3_column_text(row, 5));
        return;
    }
    n->cron_runs += times;
    n->cron_well += end && str_eq(end, end_kind_names[END_SUCCEEDED]);
    if (!end || str_eq(end, end_kind_names[END_SUCCEEDED]))
        return;
    snprintf(
        text, sizeof(text), "job %lld ended: %.80s", (long long)sqlite3_column_int64(row, 7), end);
    add_cron(&n->cron_failed, row, times, text);
}

static int read_crons(const struct reading *x)
{
    struct query q;
    query_init_text(&q, x->r->statements,
        "SELECT c.id, c.name, c.user, r.outcome, r.times, r.text, CASE j.state WHEN 'ended' THEN "
        "j.end_kind END, j.id FROM cron_runs r JOIN crons c ON c.id = r.cron LEFT JOIN jobs j ON "
        "j.id = r.job WHERE r.decided_at >= ?1 AND r.decided_at < ?2 AND (?3 = '' OR c.user = ?3) "
        "ORDER BY r.decided_at, r.cron, r.number",
        x->e);
    bind(x, &q);
    while (query_step(&q)) {
        struct night *of[2];
        for (size_t i = nights_with(x, text_in(&q, 2), of); i-- > 0;)
            count_run(of[i], q.stmt);
    }
    return query_finish(&q);
}

/* ---- the history ---- */

/* The time of the first row from this number on; false at the end of the history. */
static int read_at(const struct reading *x, int64_t id, struct wall *ret_at, bool *ret_found)
{
    struct query q;
    *ret_found = false;
    query_init_text(
        &q, x->r->statements, "SELECT at FROM history WHERE id >= ?1 ORDER BY id LIMIT 1", x->e);
    query_i64(&q, 1, id);
    while (query_step(&q)) {
        ret_at->ms = sqlite3_column_int64(q.stmt, 0);
        *ret_found = true;
    }
    return query_finish(&q);
}

/* The number of the first row of the period: numbers grow with time, and have the only index. */
static int find_first(const struct reading *x, int64_t *ret_id)
{
    int64_t low = 1, high = INT64_C(1) << 40;
    int rc = 0;
    while (rc == 0 && low < high) {
        int64_t middle = low + (high - low) / 2;
        struct wall at = WALL_NONE;
        bool found;
        rc = read_at(x, middle, &at, &found);
        if (found && at.ms < x->from.ms)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_id = low;
    return rc;
}

static int read_drained(const struct reading *x, int64_t first)
{
    struct night *n = x->night;
    struct query q;
    query_init_text(&q, x->r->statements,
        "SELECT text FROM history WHERE id >= ?4 AND kind = 'auto-drain' AND at >= ?1 AND at < ?2 "
        "AND ?3 = '' ORDER BY id",
        x->e);
    bind(x, &q);
    query_i64(&q, 4, first);
    while (query_step(&q))
        if (n->n_drained++ < NIGHT_LISTED_MAX)
            STR_COPY(n->drained[n->n_drained - 1], (const char *)sqlite3_column_text(q.stmt, 0));
    return query_finish(&q);
}

static int read_late_crons(const struct reading *x, int64_t first)
{
    struct query q;
    query_init_text(&q, x->r->statements,
        "SELECT c.id, c.name, c.user, h.text FROM history h JOIN crons c ON c.id = h.a WHERE h.id "
        ">= ?4 AND h.kind = 'late' AND h.at >= ?1 AND h.at < ?2 AND (?3 = '' OR c.user = ?3) ORDER "
        "BY h.id",
        x->e);
    bind(x, &q);
    query_i64(&q, 4, first);
    while (query_step(&q)) {
        struct night *of[2];
        for (size_t i = nights_with(x, text_in(&q, 2), of); i-- > 0;)
            add_cron(&of[i]->cron_late, q.stmt, 1, (const char *)sqlite3_column_text(q.stmt, 3));
    }
    return query_finish(&q);
}

static void add_anomaly(struct night *n, const char *text)
{
    if (n->n_anomalies++ < NIGHT_LISTED_MAX)
        STR_COPY(n->anomalies[n->n_anomalies - 1], text);
}

/* Users get those of their own: the text begins with the subject (core_anomaly_text). */
static int read_anomalies(const struct reading *x, int64_t first)
{
    struct query q;
    query_init_text(&q, x->r->statements,
        "SELECT text, CASE WHEN text LIKE 'user % spent %' THEN substr(text, 6, instr(text, "
        "' spent ') - 6) END AS subject FROM history WHERE id >= ?4 AND kind = 'spend-anomaly' AND "
        "at >= ?1 AND at < ?2 AND (?3 = '' OR subject = ?3) ORDER BY id",
        x->e);
    bind(x, &q);
    query_i64(&q, 4, first);
    while (query_step(&q)) {
        struct night *of[2];
        for (size_t i = nights_with(x, text_in(&q, 1), of); i-- > 0;)
            add_anomaly(of[i], text_in(&q, 0));
    }
    return query_finish(&q);
}

static int read_history(const struct reading *x)
{
    int64_t first = 0;
    int rc = find_first(x, &first);
    if (rc == 0)
        rc = read_drained(x, first);
    if (rc == 0)
        rc = read_anomalies(x, first);
    return rc ? rc : read_late_crons(x, first);
}

/* The cost by user has the same sum as that by kind, and less detail is enough. */
static int read_all(struct reading *x)
{
    static int (*const steps[])(const struct reading *x) = {
        read_ended, read_unfinished, read_reclaims, read_crons, read_history};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
        rc = steps[i](x);
    return rc ? rc
              : db_read_cost(
                    x->r, "user", x->user[0] ? x->user : NULL, x->from, x->to, add_cost, x, x->e);
}

int db_read_night(struct db_reader *r, struct wall from, struct wall to, const char *user,
    struct night *ret_night, struct err *e)
{
    struct reading x = {
        .r = r, .from = from, .to = to, .user = user ? user : "", .night = ret_night, .e = e};
    *ret_night = (struct night){0};
    return read_all(&x);
}

int db_read_nights(
    struct db_reader *r, struct wall from, struct wall to, struct nights *n, struct err *e)
{
    struct reading x = {
        .r = r, .from = from, .to = to, .user = "", .night = &n->all, .nights = n, .e = e};
    return read_all(&x);
}
