/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of jobs. A statement has two parts: its *base*, which an index answers in the order of
 * the list, and the filters, which are applied to the resulting rows. If few rows match, a page
 * ends after JOBS_EXAMINED_MAX rows: its *floor* is the last of those, found beforehand using only
 * the index.
 */
#include "db/db.h"
#include "db/query.h"
#include "db/reader.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 128

/* A WHERE clause and the values of its parameters, ?1 first. */
struct conditions {
    struct buf text;
    struct {
        const char *text; /* NULL if it is a number */
        int64_t number;
    } values[VALUES_MAX];
    int n;
};

static struct buf *begin_condition(struct conditions *c)
{
    buf_adds(&c->text, c->text.len ? " AND " : "WHERE ");
    return &c->text;
}

static int number(struct conditions *c, int64_t value)
{
    assert(c->n < VALUES_MAX);
    c->values[c->n].number = value;
    return ++c->n;
}

static int text(struct conditions *c, const char *value)
{
    assert(c->n < VALUES_MAX);
    c->values[c->n].text = value;
    return ++c->n;
}

static void bind(const struct conditions *c, int n, struct query *q)
{
    for (int i = 0; i < n; i++) {
        if (c->values[i].text)
            query_text(q, i + 1, c->values[i].text);
        else
            query_i64(q, i + 1, c->values[i].number);
    }
}

/* ---- the base ---- */

static bool is_live_only(const struct job_filter *f)
{
    return f->sort != JOBS_BY_END && f->ends == 0 && f->states != 0 &&
           (f->states & ~JOBS_LIVE) == 0;
}

/* True for filters that the index of live attempts answers: jobs in these states have one, and in a
 * long queue they are few and far from the newest. */
static bool attempts_are_base(const struct job_filter *f)
{
    const uint32_t begun = 1u << JOB_RUNNING | 1u << JOB_CANCELLING;
    return is_live_only(f) && (f->states & ~begun) == 0 && f->array == 0 && f->node == 0;
}

/* True for filters that the index by user answers. */
static bool user_is_base(const struct job_filter *f)
{
    return f->users.n == 1 && f->array == 0 && f->node == 0 && f->sort != JOBS_BY_END &&
           !attempts_are_base(f);
}

/* The + makes SQLite look at the attempts that have not ended, not at all that were on the node. */
static void add_node(struct conditions *c, int64_t node)
{
    buf_printf(begin_condition(c),
        "id IN (SELECT job FROM attempts WHERE state <> 'ended' AND +node = ?%d)", number(c, node));
}

static void add_base(struct conditions *c, const struct job_filter *f)
{
    if (f->node > 0)
        add_node(c, f->node);
    if (f->array > 0) {
        buf_printf(begin_condition(c), "array_id = ?%d AND array_id <> 0", number(c, f->array));
        if (f->index >= 0)
            buf_printf(begin_condition(c), "array_index = ?%d", number(c, f->index));
        return;
    }
    if (f->sort == JOBS_BY_END) {
        buf_adds(begin_condition(c), "state = 'ended'");
        if (f->since_ms > 0)
            buf_printf(begin_condition(c), "ended_at >= ?%d", number(c, f->since_ms));
    } else if (attempts_are_base(f)) {
        buf_adds(begin_condition(c), "id IN (SELECT job FROM attempts WHERE state <> 'ended')");
    } else if (is_live_only(f)) {
        buf_printf(begin_condition(c), "%sstate <> 'ended'", f->node > 0 ? "+" : "");
    }
    if (user_is_base(f))
        buf_printf(begin_condition(c), "user = ?%d", text(c, f->users.words[0]));
}

/* Reads when this job ended, for the order by ends. */
static int read_end(struct db_reader *r, int64_t id, int64_t *ret_ended_ms, struct err *e)
{
    struct query q;
    bool found = false;
    query_init_text(&q, r->statements,
        "SELECT ended_at FROM jobs WHERE id = ?1 AND state = 'ended' AND ended_at IS NOT NULL", e);
    query_i64(&q, 1, id);
    if (query_step(&q)) {
        *ret_ended_ms = sqlite3_column_int64(q.stmt, 0);
        found = true;
    }
    int rc = query_finish(&q);
    if (rc == 0 && !found)
        rc = err_set(e, ERR_INVALID, "before: job %lld has not ended", (long long)id);
    return rc;
}

/* Adds the condition: after this job in the order (excluding it), or up to it (including it). */
static int add_bound(struct conditions *c, struct db_reader *r, const struct job_filter *f,
    int64_t id, bool behind, struct err *e)
{
    static const char *const signs[3][2] = {
        [JOBS_NEWEST] = {">=", "<"}, [JOBS_OLDEST] = {"<=", ">"}, [JOBS_BY_END] = {">=", "<"}};
    const char *sign = signs[f->sort][behind];
    int64_t ended_ms = 0;
    if (f->sort != JOBS_BY_END) {
        buf_printf(begin_condition(c), "id %s ?%d", sign, number(c, id));
        return 0;
    }
    int rc = read_end(r, id, &ended_ms, e);
    int at = number(c, ended_ms);
    buf_printf(begin_condition(c), "(ended_at, id) %s (?%d, ?%d)", sign, at, number(c, id));
    return rc;
}

static const char *order_of(const struct job_filter *f)
{
    static const char *const orders[] = {[JOBS_NEWEST] = "ORDER BY id DESC",
        [JOBS_OLDEST] = "ORDER BY id",
        [JOBS_BY_END] = "ORDER BY ended_at DESC, id DESC"};
    return orders[f->sort];
}

/* ---- the filters ---- */

/* Adds the names of states or items with these bits; all are constants of ours. */
static void add_states(struct buf *out, uint32_t bits)
{
    const char *sep = "";
    for (int i = 0; i < JOB_ENDED + 1; i++)
        if (bits & 1u << i) {
            buf_printf(out, "%s'%s'", sep, sm_name(&job_sm, i));
            sep = ", ";
        }
}

static void add_ends(struct buf *out, uint32_t bits)
{
    const char *sep = "";
    for (int i = 0; end_kind_names[i]; i++)
        if (bits & 1u << i) {
            buf_printf(out, "%s'%s'", sep, end_kind_names[i]);
            sep = ", ";
        }
}

static void filter_states(struct conditions *c, const struct job_filter *f)
{
    if (f->states == 0 && f->ends == 0)
        return;
    if ((f->states & JOBS_LIVE) == JOBS_LIVE && (is_live_only(f) || f->states & 1u << JOB_ENDED))
        return;
    if (f->sort == JOBS_BY_END && f->states & 1u << JOB_ENDED)
        return;
    struct buf *out = begin_condition(c);
    buf_adds(out, "(+state IN (");
    add_states(out, f->states);
    buf_adds(out, ")");
    if (f->ends) {
        buf_adds(out, " OR (+state = 'ended' AND end_kind IN (");
        add_ends(out, f->ends);
        buf_adds(out, "))");
    }
    buf_adds(out, ")");
}

/* The + prevents SQLite from using an index whose result would have to be sorted. */
static void filter_words(struct conditions *c, const char *column, const struct job_words *w)
{
    if (w->n == 0)
        return;
    struct buf *out = begin_condition(c);
    buf_printf(out, "+%s IN (", column);
    for (size_t i = 0; i < w->n; i++)
        buf_printf(out, "%s?%d", i ? ", " : "", text(c, w->words[i]));
    buf_adds(out, ")");
}

/* A pending job matches if it may run in one of the pools, because it names one of them or none;
 * any other job if its newest attempt is or was in one. */
static void filter_pools(struct conditions *c, const struct job_words *w)
{
    if (w->n == 0)
        return;
    struct buf *out = begin_condition(c);
    int first = c->n + 1;
    buf_adds(out, "CASE WHEN state = 'pending' OR attempts = 0 THEN pool = ''");
    for (size_t i = 0; i < w->n; i++)
        buf_printf(out, " OR instr(',' || pool || ',', ',' || ?%d || ',')", text(c, w->words[i]));
    buf_adds(out,
        " ELSE EXISTS (SELECT 1 FROM attempts a JOIN nodes n ON n.id = a.node"
        " WHERE a.job = jobs.id AND a.attempt = jobs.attempts AND a.rank = 0 AND n.pool IN (");
    for (int i = first; i <= c->n; i++)
        buf_printf(out, "%s?%d", i > first ? ", " : "", i);
    buf_adds(out, ")) END");
}

/* Returns the pattern for GLOB, which has more special characters than '*'. The caller frees it. */
static char *glob_of(const char *name)
{
    struct buf out = {0};
    for (; *name; name++) {
        if (*name == '[' || *name == '?')
            buf_printf(&out, "[%c]", *name);
        else
            buf_addc(&out, *name);
    }
    return buf_take(&out);
}

static void filter_names(
    struct conditions *c, const struct job_words *w, char *globs[JOB_WORDS_MAX])
{
    if (w->n == 0)
        return;
    struct buf *out = begin_condition(c);
    for (size_t i = 0; i < w->n; i++) {
        globs[i] = glob_of(w->words[i]);
        buf_printf(out, "%sname GLOB ?%d", i ? " OR " : "(", text(c, globs[i]));
    }
    buf_adds(out, ")");
}

/* A task has the labels of its array. */
static void filter_labels(struct conditions *c, const struct job_filter *f)
{
    for (size_t i = 0; i < f->n_labels; i++) {
        struct buf *out = begin_condition(c);
        buf_printf(out,
            "EXISTS (SELECT 1 FROM job_labels AS l WHERE l.job = CASE jobs.array_id WHEN 0 THEN "
            "jobs.id ELSE jobs.array_id END"
            " AND l.name = ?%d",
            text(c, f->labels[i].name));
        if (f->labels[i].value)
            buf_printf(out, " AND l.value = ?%d", text(c, f->labels[i].value));
        buf_adds(out, ")");
    }
}

static void add_filters(
    struct conditions *c, const struct job_filter *f, char *globs[JOB_WORDS_MAX])
{
    filter_states(c, f);
    if (!user_is_base(f))
        filter_words(c, "user", &f->users);
    filter_words(c, "team", &f->teams);
    filter_pools(c, &f->pools);
    filter_names(c, &f->names, globs);
    filter_labels(c, f);
    if (f->since_ms > 0 && f->sort != JOBS_BY_END && !is_live_only(f))
        buf_printf(
            begin_condition(c), "(+state <> 'ended' OR +ended_at >= ?%d)", number(c, f->since_ms));
    if (f->until_ms > 0)
        buf_printf(begin_condition(c), "submitted_at <= ?%d", number(c, f->until_ms));
}

/* ---- the list ---- */

/* Finds the last row that this page reads; 0 = all. base: the first n_base values, and this
 * text. */
static int find_floor(struct db_reader *r, const struct job_filter *f, const struct conditions *c,
    const char *base, int n_base, int64_t *ret_floor, struct err *e)
{
    struct buf statement = {0};
    struct query q;
    buf_printf(&statement, "SELECT id FROM jobs %s %s LIMIT 1 OFFSET %d", base, order_of(f),
        JOBS_EXAMINED_MAX - 1);
    query_init_text(&q, r->statements, buf_str(&statement), e);
    bind(c, n_base, &q);
    if (query_step(&q))
        *ret_floor = sqlite3_column_int64(q.stmt, 0);
    buf_deinit(&statement);
    return query_finish(&q);
}

/* The pool of the node of its newest attempt. */
#define POOL_USED                                                                                  \
    ", (SELECT n.pool FROM attempts a JOIN nodes n ON n.id = a.node WHERE a.job = jobs.id AND "    \
    "a.attempt = jobs.attempts AND a.rank = 0)"

static void read_pool(const struct query *q, char ret_pool[CORE_NAME_MAX])
{
    const char *pool = (const char *)sqlite3_column_text(q->stmt, q->table->n_columns);
    str_copy(ret_pool, CORE_NAME_MAX, pool ? pool : "");
}

static int walk(struct db_reader *r, const struct job_filter *f, struct conditions *c,
    int64_t floor, db_job_fn fn, void *ctx, int64_t *ret_next, struct err *e)
{
    struct job_row row = {.queued_mono = MONO_NONE};
    struct query q;
    int32_t n = 0;
    bool goes_on = true;
    buf_printf(&c->text, " %s LIMIT ?%d", order_of(f), number(c, f->limit));
    query_init_with(
        &q, r->statements, TABLE_JOBS, f->pool_used ? POOL_USED : "", buf_str(&c->text), e);
    bind(c, c->n, &q);
    for (; goes_on && query_next(&q, &row); n++) {
        if (f->pool_used)
            read_pool(&q, f->pool_used);
        goes_on = query_goes_on(&q, fn(ctx, &row));
    }
    int rc = query_finish(&q);
    if (rc == 0 && ret_next)
        *ret_next = n == f->limit || !goes_on ? row.id : floor;
    return rc;
}

int db_read_jobs(struct db_reader *r, const struct job_filter *f, db_job_fn fn, void *ctx,
    int64_t *ret_next, struct err *e)
{
    struct conditions c = {0};
    char *globs[JOB_WORDS_MAX] = {0};
    int64_t floor = 0;
    int rc = query_check_limit(f->limit, e);
    if (rc != 0)
        return rc;
    add_base(&c, f);
    if (f->before > 0 || f->sort == JOBS_NEWEST)
        rc = add_bound(&c, r, f, f->before > 0 ? f->before : INT64_MAX, true, e);
    char *base = mem_strdup(buf_str(&c.text));
    size_t base_len = c.text.len;
    int n_base = c.n;
    add_filters(&c, f, globs);
    if (rc == 0 && f->array == 0 && c.text.len > base_len)
        rc = find_floor(r, f, &c, base, n_base, &floor, e);
    if (rc == 0 && floor > 0)
        rc = add_bound(&c, r, f, floor, false, e);
    if (rc == 0)
        rc = walk(r, f, &c, floor, fn, ctx, ret_next, e);
    free(base);
    for (size_t i = 0; i < JOB_WORDS_MAX; i++)
        free(globs[i]);
    buf_deinit(&c.text);
    return rc;
}
