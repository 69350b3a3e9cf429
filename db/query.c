/* SPDX-License-Identifier: Apache-2.0 */
#include "db/query.h"

#include "db/conn.h"

void query_init_text(struct query *q, struct statements *of, const char *text, struct err *e)
{
    *q = (struct query){.of = of, .e = e};
    int code = statements_take(of, text, &q->stmt);
    if (code != SQLITE_OK)
        q->rc = sql_err(e, of->sql, code, "read the database");
}

void query_init(struct query *q, struct statements *of, enum table_id table, const char *tail, struct err *e)
{
    query_init_with(q, of, table, "", tail, e);
}

void query_init_with(struct query *q, struct statements *of, enum table_id table, const char *more, const char *tail, struct err *e)
{
    struct buf text = {0};

    table_select_sql(&tables[table], more, &text);
    buf_printf(&text, " %s", tail);
    query_init_text(q, of, buf_str(&text), e);
    q->table = &tables[table];
    buf_deinit(&text);
}

static void check(struct query *q, int code)
{
    if (q->rc == 0 && code != SQLITE_OK)
        q->rc = sql_err(q->e, q->of->sql, code, "read %s", q->table ? q->table->name : "the database");
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
    statements_give(q->of, q->stmt);
    q->stmt = NULL;
    return q->rc;
}
