/* SPDX-License-Identifier: Apache-2.0
 *
 * What belayd does with the database once per start: counts the start in the meta row and reads
 * that row, raises the number of the next job, records the key that seals, and checks whether there
 * are checkpoints.
 */
#include "base/str.h"
#include "db/conn.h"
#include "db/query.h"

int db_startup(struct db *d, struct db_meta *ret_meta, struct err *e)
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
        return err_set(
            e, ERR_CORRUPT, "%s has no meta row: restore a backup in its place", d->path);
    *ret_meta = meta;
    return 0;
}

int db_raise_next_job(struct db *d, struct db_meta *meta, int64_t next, struct err *e)
{
    struct query q;

    query_init_text(&q, &d->statements, "UPDATE meta SET next_job = max(next_job, ?1)", e);
    query_i64(&q, 1, next);
    query_step(&q);
    if (query_finish(&q) != 0)
        return err_wrap(e, "the database %s", d->path);
    if (meta->counters.next_job < next)
        meta->counters.next_job = next;
    return 0;
}

int db_set_seal_key(struct db *d, struct db_meta *meta, const char *id, struct err *e)
{
    struct query q;

    query_init_text(&q, &d->statements, "UPDATE meta SET seal_key = ?1", e);
    query_text(&q, 1, id);
    query_step(&q);
    if (query_finish(&q) != 0)
        return err_wrap(e, "the database %s", d->path);
    STR_COPY(meta->seal_key, id);
    return 0;
}

int db_has_checkpoints(struct db *d, bool *ret_has, struct err *e)
{
    int64_t has = 0;
    int rc = sql_get_i64(d->sql, "SELECT EXISTS (SELECT 1 FROM checkpoints)", &has, e);

    *ret_has = has != 0;
    return rc;
}
