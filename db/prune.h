/* SPDX-License-Identifier: Apache-2.0
 *
 * The retention: deletes rows that are older than the configured ages, a limited number in each
 * commit, so that no commit takes long.
 *
 * A job is deleted with everything that is stored of it, when it has ended long enough ago and
 * nothing needs it: no live job depends on it, it is no array with tasks left and no task of an
 * array that stays, its checkpoints are cleaned and cost nothing, no cron entry names it as its
 * last one, no notification of it waits. What it cost stays in the sums (rollup.h). Numbers are
 * never used again, because the counters of meta only grow.
 *
 * Rows of the ledger go with their job. Those of no job (boot and idle time) and machines go by
 * the same age.
 */
#ifndef BELAY_DB_PRUNE_H
#define BELAY_DB_PRUNE_H

#include "base/buf.h"
#include "base/time.h"
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define PRUNE_JOBS_MAX 50   /* jobs that one commit deletes, at most */
#define PRUNE_ROWS_MAX 1000 /* rows of each other kind, and rows that it looks at */
#define PRUNE_STATEMENTS_MAX 80

enum prune_kind {
    PRUNE_JOBS,   /* ended jobs, their ledger, machines that are gone, cron runs, tokens */
    PRUNE_EVENTS, /* the history, except of live jobs */
    PRUNE_AUDIT,  /* the beginning of the audit log */
    PRUNE_DAYS,   /* sums of the ledger by day; those by month stay */
    PRUNE_KINDS
};

/* What a commit is to delete. Zeroed: nothing. */
struct prune {
    bool is_due;
    struct wall now;
    int64_t age_ms[PRUNE_KINDS]; /* 0 = kept for ever */
};

/* What the last such commit has deleted. */
struct pruned {
    int64_t jobs, events, audit_rows, other_rows;
    bool is_more; /* there may be more to delete */
};

struct db_reader;
struct err;
struct pruner {
    sqlite3_stmt *statements[PRUNE_STATEMENTS_MAX];
    int at; /* the statement whose result is counted next */
    struct pruned now;
};

int prune_prepare(struct pruner *p, sqlite3 *sql, struct err *e);
void prune_deinit(struct pruner *p);
/* Begins the deletions of a commit. */
void prune_begin(struct pruner *p);
/* Returns the next statement with its parameters bound, which the caller steps and resets in its
 * transaction, and its table in *ret_what; NULL when there are no more. */
sqlite3_stmt *prune_next(
    struct pruner *p, sqlite3 *sql, const struct prune *ask, const char **ret_what);

/* Adds to e the reason, if the job with this number was deleted. */
void prune_explain(struct db_reader *r, int64_t job, struct err *e);
/* Returns whether the job with this number was deleted, and if so when and at which age. */
int prune_read_deleted(struct db_reader *r, int64_t job, bool *ret_was, struct wall *ret_at,
    int64_t *ret_age_ms, struct err *e);
/* Up to when rows may be missing; WALL_NONE = all are there. */
enum prune_cut { CUT_LEDGER, CUT_DAYS };
int prune_read_cut(struct db_reader *r, enum prune_cut cut, struct wall *ret_at, struct err *e);
/* ERR_INVALID if rows of from (WALL_NONE = from the first) or later may be missing. what names
 * them, instead is what may be asked for: ", or ...", or "". */
int prune_check_cut(struct db_reader *r, enum prune_cut cut, struct wall from, const char *what,
    const char *instead, struct err *e);

#endif
