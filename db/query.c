/* SPDX-License-Identifier: Apache-2.0 */
#include "db/query.h"

#include "base/vformat.h"
#include "db/conn.h"

#include <stdio.h>

#define READ_LIMIT_MAX 1000

static void take_statement(struct query *q, const char *text, sqlite3_stmt **ret_stmt)
{
    int code = statements_take(q->of, text, ret_stmt);
    if (code != SQLITE_OK)
        q->rc = sql_err(q->e, q->of->sql, code, "read the database");
}

void query_init_text(struct query *q, struct statements *of, const char *text, struct err *e)
{
    *q = (struct query){.of = of, .e = e};
    take_statement(q, text, &q->stmt);
}

void query_init(
    struct query *q, struct statements *of, enum table_id table, const char *tail, struct err *e)
{
    query_init_with(q, of, table, "", tail, e);
}

void query_init_with(struct query *q, struct statements *of, enum table_id table, const char *more,
    const char *tail, struct err *e)
{
    struct buf text = {0};

    table_select_sql(&tables[table], TABLE_WHOLE, more, &text);
    buf_printf(&text, " %s", tail);
    query_init_text(q, of, buf_str(&text), e);
    q->table = &tables[table];
    buf_deinit(&text);
}

void query_init_plain(
    struct query *q, struct statements *of, enum table_id table, const char *tail, struct err *e)
{
    const struct table *t = &tables[table];
    struct buf text = {0};

    table_select_sql(t, TABLE_DEFAULT, "", &text);
    buf_printf(&text, " %s", tail);
    query_init_text(q, of, buf_str(&text), e);
    q->table = t;
    buf_clear(&text);
    table_select_sql(t, TABLE_WHOLE, "", &text);
    buf_printf(&text, " WHERE %s = ?1", t->columns[0].name);
    if (q->rc == 0)
        take_statement(q, buf_str(&text), &q->whole);
    buf_deinit(&text);
}

static void check(struct query *q, int code)
{
    if (q->rc == 0 && code != SQLITE_OK)
        q->rc =
            sql_err(q->e, q->of->sql, code, "read %s", q->table ? q->table->name : "the database");
}

void query_i64(struct query *q, int parameter, int64_t value)
{
    if (q->rc == 0)
        check(q, sqlite3_bind_int64(q->stmt, parameter, value));
}

void query_text(struct query *q, int parameter, const char *text)
{
    if (q->rc == 0)
        check(q, sqlite3_bind_text(q->stmt, parameter, text, -1, SQLITE_STATIC));
}

bool query_step(struct query *q)
{
    if (q->rc != 0)
        return false;
    int code = sqlite3_step(q->stmt);
    if (code == SQLITE_ROW)
        return true;
    check(q, code == SQLITE_DONE ? SQLITE_OK : code);
    return false;
}

/* Reads all columns of a row that is not plain. */
static bool read_whole(struct query *q, void *row)
{
    check(q, sqlite3_bind_value(q->whole, 1, sqlite3_column_value(q->stmt, 0)));
    if (q->rc != 0)
        return false;
    int code = sqlite3_step(q->whole);
    if (code == SQLITE_ROW)
        q->rc = table_read(q->table, TABLE_WHOLE, q->whole, row, q->e);
    else
        check(q, code == SQLITE_DONE ? SQLITE_CORRUPT : code);
    sqlite3_reset(q->whole);
    return q->rc == 0;
}

bool query_next(struct query *q, void *row)
{
    if (!query_step(q))
        return false;
    if (q->whole && !table_is_plain(q->stmt))
        return read_whole(q, row);
    return (q->rc = table_read(
                q->table, q->whole ? TABLE_DEFAULT : TABLE_WHOLE, q->stmt, row, q->e)) == 0;
}

bool query_goes_on(struct query *q, int answer)
{
    if (answer < 0)
        q->rc = answer;
    return answer == 0;
}

int query_check_limit(int32_t limit, struct err *e)
{
    if (limit >= 1 && limit <= READ_LIMIT_MAX)
        return 0;
    return err_set(e, ERR_INVALID, "a limit of %d rows: it must be 1 to %d", limit, READ_LIMIT_MAX);
}

int query_finish(struct query *q)
{
    statements_give(q->of, q->stmt);
    statements_give(q->of, q->whole);
    q->stmt = q->whole = NULL;
    return q->rc;
}

int query_one(struct query *q, void *row, const char *none, ...)
{
    char text[ERR_TEXT_MAX];
    bool found = query_next(q, row);
    if (query_finish(q) != 0 || found)
        return q->rc;
    VFORMAT(text, none);
    return err_set(q->e, ERR_NOT_FOUND, "%s", text);
}
