/* SPDX-License-Identifier: Apache-2.0 */
#include "db/query.h"

#include "db/conn.h"

void query_init_text(struct query *q, sqlite3 *sql, const char *text, struct err *e)
{
    *q = (struct query){.sql = sql, .e = e};
    int code = sqlite3_prepare_v2(sql, text, -1, &q->stmt, NULL);
    if (code != SQLITE_OK)
        q->rc = sql_err(e, sql, code, "read the database");
}

void query_init(struct query *q, sqlite3 *sql, enum table_id table, const char *tail, struct err *e)
{
    query_init_with(q, sql, table, "", tail, e);
}

void query_init_with(struct query *q, sqlite3 *sql, enum table_id table, const char *more, const char *tail, struct err *e)
{
    struct buf text = {0};

    table_select_sql(&tables[table], more, &text);
    buf_printf(&text, " %s", tail);
    query_init_text(q, sql, buf_str(&text), e);
    q->table = &tables[table];
    buf_deinit(&text);
}

void query_init_kept(struct query *q, sqlite3 *sql, sqlite3_stmt **kept, enum table_id table, const char *tail, struct err *e)
{
    struct buf text = {0};

    *q = (struct query){.sql = sql, .table = &tables[table], .e = e, .is_kept = true};
    if (!*kept) {
        table_select_sql(&tables[table], "", &text);
        buf_printf(&text, " %s", tail);
        q->rc = sql_prepare(sql, buf_str(&text), kept, e);
        buf_deinit(&text);
    }
    q->stmt = *kept;
}

static void check(struct query *q, int code)
{
    if (q->rc == 0 && code != SQLITE_OK)
        q->rc = sql_err(q->e, q->sql, code, "read %s", q->table ? q->table->name : "the database");
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

bool query_next(struct query *q, void *row)
{
    return query_step(q) && (q->rc = table_read(q->table, q->stmt, row, q->e)) == 0;
}

bool query_goes_on(struct query *q, int answer)
{
    if (answer < 0)
        q->rc = answer;
    return answer == 0;
}

int query_finish(struct query *q)
{
    if (q->is_kept)
        sqlite3_reset(q->stmt); /* it would hold on to what is in the database now */
    else
        sqlite3_finalize(q->stmt);
    q->stmt = NULL;
    return q->rc;
}
