/* SPDX-License-Identifier: Apache-2.0
 *
 * A SELECT whose rows are read ahead: once there are many, a thread of its own reads them while the
 * caller works on those before. Until ahead_finish the connection is that thread's alone. Reading a
 * row is a third of what a restart with a long queue does.
 *
 *     struct ahead *a = ahead_start(statements, TABLE_JOBS, "WHERE ...", &blank, sizeof(blank));
 *     while ((row = ahead_next(a)) != NULL && (rc = fn(ctx, row, e)) == 0)
 *         ;
 *     return ahead_finish(a, rc, e);
 */
#ifndef BELAY_DB_AHEAD_H
#define BELAY_DB_AHEAD_H

#include "db/statements.h"
#include "db/table.h"

struct ahead;

/* tail as for query_init_plain. A row has `size` bytes and begins as `blank`, which has nothing in
 * the rare columns; its columns own no memory. */
struct ahead *ahead_start(struct statements *statements, enum table_id table, const char *tail,
    const void *blank, size_t size);
/* The next row, until the next call; NULL: no more, or reading failed. Waits for the disk, as a
 * SELECT does. */
const void *ahead_next(struct ahead *a);
/* May come before the last row. rc: how the caller's own work went, with its error in e; if that is
 * well, how the reading went. */
int ahead_finish(struct ahead *a, int rc, struct err *e);

#endif
