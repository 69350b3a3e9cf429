/* SPDX-License-Identifier: Apache-2.0
 *
 * A SELECT whose rows are read ahead: if there are many, a separate thread reads them while the
 * caller processes earlier ones. Until read_ahead_finish only that thread may use the connection.
 * Reading rows is a third of the time of a restart with a long queue.
 *
 *     struct read_ahead *a = read_ahead_start(
 *         statements, TABLE_JOBS, "WHERE ...", &blank, sizeof(blank));
 *     while ((row = read_ahead_next(a)) != NULL && (rc = fn(ctx, row, e)) == 0)
 *         ;
 *     return read_ahead_finish(a, rc, e);
 */
#ifndef BELAY_DB_READ_AHEAD_H
#define BELAY_DB_READ_AHEAD_H

#include "db/statements.h"
#include "db/table.h"

struct read_ahead;

/* tail as for query_init_plain. A row has `size` bytes and starts as a copy of `blank`, whose rare
 * columns are empty; its columns own no memory. */
struct read_ahead *read_ahead_start(struct statements *statements, enum table_id table,
    const char *tail, const void *blank, size_t size);
/* Returns the next row, valid until the next call, or NULL at the end or after an error. Blocks on
 * the disk, as a SELECT does. */
const void *read_ahead_next(struct read_ahead *a);
/* May be called before the last row. rc is the result of the caller's own work, with its error in
 * e; if it is 0, returns the result of the reading. */
int read_ahead_finish(struct read_ahead *a, int rc, struct err *e);

#endif
