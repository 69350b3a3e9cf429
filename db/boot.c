/* SPDX-License-Identifier: Apache-2.0 */
#include "db/conn.h"
#include "db/query.h"

int db_boot(struct db *d, struct db_meta *ret_meta, struct err *e)
{
    struct db_meta meta = {0};
    struct query q;

    if (sql_exec(d->sql, "UPDATE meta SET boots = boots + 1", e) != 0)
        return err_wrap(e, "the database %s", d->path);
    query_init(&q, &d->statements, TABLE_META, "", e);
    bool found = query_next(&q, &meta);
    if (query_finish(&q) != 0)
        return err_wrap(e, "the database %s", d->path);
    if (!found)
        return err_set(e, ERR_CORRUPT, "%s has lost its meta row: put a backup in its place", d->path);
    *ret_meta = meta;
    return 0;
}
