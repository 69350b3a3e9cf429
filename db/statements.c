/* SPDX-License-Identifier: Apache-2.0 */
#include "db/statements.h"

#include "base/str.h"

static sqlite3_stmt *take_out(struct statements *s, size_t at)
{
    sqlite3_stmt *stmt = s->idle[at];
    for (s->n--; at < s->n; at++)
        s->idle[at] = s->idle[at + 1];
    return stmt;
}

int statements_take(struct statements *s, const char *text, sqlite3_stmt **ret_stmt)
{
    for (size_t i = s->n; i-- > 0;) {
        if (str_eq(sqlite3_sql(s->idle[i]), text)) {
            *ret_stmt = take_out(s, i);
            return SQLITE_OK;
        }
    }
    return sqlite3_prepare_v3(s->sql, text, -1, SQLITE_PREPARE_PERSISTENT, ret_stmt, NULL);
}

void statements_give(struct statements *s, sqlite3_stmt *stmt)
{
    if (!stmt)
        return;
    sqlite3_reset(stmt);          /* ends its read transaction */
    sqlite3_clear_bindings(stmt); /* the bound texts are borrowed */
    if (s->n == STATEMENTS_MAX)
        sqlite3_finalize(take_out(s, 0));
    s->idle[s->n++] = stmt;
}

void statements_deinit(struct statements *s)
{
    while (s->n > 0)
        sqlite3_finalize(s->idle[--s->n]);
}
