/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of the database: making one while belayd writes to it, checking one, and giving a restored
 * one the numbers with which belayd may start.
 */
#ifndef BELAY_DB_COPY_H
#define BELAY_DB_COPY_H

#include "db/db.h"

/* Copies the database at path, which may be in use and of any schema, to the new file `to` (mode
 * 0600): the contents of one commit. Reads page by page in one transaction, so that it never waits
 * for the writer and the writer never waits for it; meanwhile the write-ahead log grows.
 * ERR_NOT_FOUND if there is no database; ERR_CONFLICT if `to` exists. */
int db_copy(const char *path, const char *to, struct err *e);

/* Reads every page and index: ERR_CORRUPT with the first fault. */
int db_check_integrity(struct db *d, struct err *e);

/* The copy continues as the cluster's `epoch`, and no number below its own plus `skip` is given
 * out again: of jobs, nodes, machines, cron entries and starts of belayd. */
int db_begin_epoch(struct db *d, int64_t epoch, int64_t skip, struct err *e);

#endif
