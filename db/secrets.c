/* SPDX-License-Identifier: Apache-2.0
 *
 * The secrets of users, as they are stored: sealed.
 */
#include "db/db.h"
#include "db/query.h"
#include "db/reader.h"

#include <stdlib.h>

void secret_row_deinit(struct secret_row *row)
{
    free(row->sealed);
    *row = (struct secret_row){0};
}

int db_read_secret(struct db_reader *r, const char *owner, const char *name,
    struct secret_row *ret_row, struct err *e)
{
    struct secret_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_SECRETS, "WHERE owner = ?1 AND name = ?2", e);
    query_text(&q, 1, owner);
    query_text(&q, 2, name);
    int rc = query_one(&q, &row, "%s has no secret %s", owner, name);
    if (rc == 0)
        *ret_row = row;
    else
        secret_row_deinit(&row);
    return rc;
}

int db_read_secrets(
    struct db_reader *r, const char *owner, db_secret_fn fn, void *ctx, struct err *e)
{
    struct secret_row row = {0};
    struct query q;
    bool goes_on = true;

    query_init(&q, r->statements, TABLE_SECRETS,
        owner ? "WHERE owner = ?1 ORDER BY name" : "ORDER BY owner, name", e);
    if (owner)
        query_text(&q, 1, owner);
    while (goes_on && query_next(&q, &row)) {
        goes_on = query_goes_on(&q, fn(ctx, &row));
        secret_row_deinit(&row);
    }
    secret_row_deinit(&row);
    return query_finish(&q);
}
