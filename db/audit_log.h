/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit log: a row for each call that changes something, chained by hashes. A row's hash is the
 * SHA-256 of the hash of the row before and of its own columns, so no row can be changed, removed
 * or inserted without changing all that follow. The end can be cut off: the *head* (the last row's
 * number and hash) is therefore kept outside of the database too, and compared.
 *
 * Rows are only inserted, until they are old enough for the retention. It deletes the begin of the
 * log up to some row, and inserts in the same commit a row AUDIT_LOG_CUT that has the number (in
 * object) and the hash (in source) of that row, the *anchor*: the chain is followed from there.
 * Like any row it cannot be changed, removed or inserted without changing all that follow.
 */
#ifndef BELAY_DB_AUDIT_LOG_H
#define BELAY_DB_AUDIT_LOG_H

#include "db/db.h"

struct audit_head {
    int64_t seq;   /* 0 = the log is empty */
    char hash[65]; /* "" if so */
};

/* Gives the row the place after the head: its seq and hash. The head becomes the row's. */
void audit_log_link(struct audit_head *head, struct audit_row *row);

#define AUDIT_LOG_CUT "retention: the rows up to object were deleted" /* the route of such a row */
#define AUDIT_LOG_CUT_ROWS_MAX 5000                                   /* deleted by one commit */
/* Plans the next cut: rows up to *ret_up_to, which *ret_row records; 0 = none is due, because no
 * row is a day older than the age. On the write connection, in the transaction that deletes.
 * Returns SQLite's code. */
struct prune;
int audit_log_plan_cut(
    struct db *d, const struct prune *p, int64_t *ret_up_to, struct audit_row *ret_row);

/* Reads the head when the database is opened. */
int audit_log_load(struct db *d, struct audit_head *ret_head, struct err *e);

struct audit_filter {
    int64_t after;     /* rows with a higher seq */
    int64_t before;    /* > 0: rows with a lower seq, and the newest first; 0 = oldest first */
    struct wall since; /* made at or after this time; WALL_NONE = any */
    char user[CORE_NAME_MAX]; /* "" = of any user */
    int32_t limit;            /* 1 .. 1000 rows */
};

/* Reads rows. Callbacks as in db.h. */
typedef int (*audit_log_fn)(void *ctx, const struct audit_row *row);
int audit_log_read(
    struct db_reader *r, const struct audit_filter *f, audit_log_fn fn, void *ctx, struct err *e);

/* Whether the log has the head's row; true for an empty head. */
int audit_log_has(struct db_reader *r, const struct audit_head *head, bool *ret_has, struct err *e);

/* Follows the whole chain. ERR_CORRUPT: a row was changed, removed or inserted, the text says
 * which; or the log does not have the row of `kept` (may be NULL, or empty), so its end was cut off
 * or all of it replaced. ERR_INVALID: the row of `kept` was deleted by the retention. ret_head is
 * the head that was found. */
int audit_log_verify(
    struct db_reader *r, const struct audit_head *kept, struct audit_head *ret_head, struct err *e);

#endif
