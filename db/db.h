/* SPDX-License-Identifier: Apache-2.0
 *
 * The database: SQLite, WAL, synchronous=FULL. One function per statement; bound parameters only.
 *
 *   struct db        the write connection. db_commit writes one tick's changes in ONE transaction.
 *   struct db_writer a thread that owns the struct db while the daemon runs: at most one commit
 *   under way. struct db_reader a read-only connection: what the API answers with. It sees only
 *   what is committed.
 *
 * Commit errors are of two kinds. ERR_NO_SPACE: it has surely rolled back; keep the changes and try
 * again. Anything else: the outcome on disk is unknown; the process must end and re-read.
 */
#ifndef BELAY_DB_DB_H
#define BELAY_DB_DB_H

#include "base/json.h"
#include "db/loads.h"
#include "scheduler/core/model/model.h"
#include <stdatomic.h>

#define DB_SCHEMA_VERSION 1 /* schema.c */

struct db;

/* Opens or makes the file (mode 0600), applies missing migrations one transaction each, refuses a
 * newer schema (ERR_CONFIG, says which belay is needed), one of a build before the first release
 * (ERR_CONFIG, says what to do) and a damaged file (ERR_CORRUPT).
 * ":memory:" for tests. Takes an exclusive lock next to it (path.lock): a second belayd on the same
 * state gets ERR_CONFLICT. */
int db_open(const char *path, struct db **ret_db, struct err *e);
/* As it was when it was made, but for the cluster's name and secret, which stay: for simulations,
 * which need thousands of new ones. Only one in memory. */
int db_empty(struct db *d, struct err *e);
void db_close(struct db *d); /* NULL is fine */

struct db_meta {
    char cluster_uid[17];
    /* 32 random bytes, hex: from it one-use join tokens of instances are derived. Never logged */
    char secret[65];
    int64_t boots; /* how often belayd opened it: the high part of revisions */
    struct model_counters counters;
};

/* Reads the meta row (made at the first open) and counts this boot, durably. */
int db_boot(struct db *d, struct db_meta *ret_meta, struct err *e);

/* Before db_load, and the writer: no job gets a number below `next` from now on. Durable when it
 * returns 0. */
int db_raise_next_job(struct db *d, struct db_meta *meta, int64_t next, struct err *e);
/* Whether a checkpoint of any job was ever recorded. */
int db_has_checkpoints(struct db *d, bool *ret_has, struct err *e);
/* The cluster's uid, and that, of a database which may be in use and of another schema. Changes
 * nothing. ERR_NOT_FOUND: there is none. */
int db_peek(const char *path, char ret_uid[17], bool *ret_has_checkpoints, struct err *e);

/* Loads every live row into m, as model.h's recovery wants it. */
int db_load(struct db *d, struct model *m, struct stamp now, struct err *e);

/* Token rows travel with a tick's changes. */
struct token_row {
    int64_t id;               /* 0: new */
    char hash[65];            /* SHA-256 of the token, hex */
    bool join;                /* a one-use join token; else an API token */
    char user[CORE_NAME_MAX]; /* API token: whose */
    bool admin;
    char pool[CORE_NAME_MAX];                    /* join token: the pool the node joins */
    struct wall created_at, expires_at, used_at; /* used_at WALL_NONE: not yet */
    char key_hash[65];                           /* join: the key it was used with */
    bool revoked;
};

struct db_batch {
    struct changes changes;
    struct token_row *tokens;
    size_t n_tokens; /* new (id 0) or changed */
    struct loads_batch loads;
};

void db_batch_deinit(struct db_batch *b);

/* All or nothing. Rows of the outbox replace theirs, and go when they are delivered. Pools, offers,
 * instances, nodes, jobs, attempts, leftovers, drills, arrays, dependencies, cron entries and
 * tokens replace their row; specs, checkpoints, runs of cron entries and history are written once
 * (a second time is ERR_INTERNAL). Counters never go down. */
int db_commit(struct db *d, const struct db_batch *b, struct err *e);

/* Fault injection for tests: the n-th SQLite write step from now fails with this SQLite code; 0:
 * off. */
void db_fail_at(struct db *d, int64_t n, int sqlite_code);

/* ---- writer thread ---- */
struct db_writer;
/* wake is called on the writer thread when a commit ended: it must only signal (uv_async_send).
 * Takes d. */
struct db_writer *db_writer_create(struct db *d, void (*wake)(void *ctx), void *ctx);
/* Starts committing b (borrowed until db_writer_finished says so). None may be under way. */
void db_writer_start(struct db_writer *w, const struct db_batch *b);
/* False: still under way. True: *ret_rc 0 or the kind, e filled. */
bool db_writer_finished(struct db_writer *w, int *ret_rc, struct err *e);
/* waits for a commit under way; closes d. NULL is fine */
void db_writer_destroy(struct db_writer *w);

/* ---- reader ---- */
struct db_reader;
int db_reader_open(const char *path, struct db_reader **ret_reader, struct err *e);
/* On the same connection, and so on the same thread as its commits: simulator, tests. Closed before
 * d. */
int db_reader_of(struct db *d, struct db_reader **ret_reader, struct err *e);
void db_reader_close(struct db_reader *r);
/* For several statements that are to see the same commit: between these two they do. Not of a
 * db_reader_of. */
int db_reader_begin(struct db_reader *r, struct err *e);
void db_reader_end(struct db_reader *r);
/* A statement ends early with ERR_CANCELLED once *cancel is not 0, which another thread may set.
 * Borrowed; NULL: no more. */
void db_reader_cancel_by(struct db_reader *r, atomic_int *cancel);

/* ERR_NOT_FOUND */
int db_read_job(struct db_reader *r, int64_t id, struct job_row *ret_job, struct err *e);
/* Script and the other texts of a job; the caller frees with spec_change's members (changes.specs
 * rules). */
int db_read_spec(struct db_reader *r, int64_t job, struct spec_change *ret_spec, struct err *e);
void spec_change_deinit(struct spec_change *s);
/* The options of a job that are only stored, those that differ from the default: a JSON object, the
 * caller frees; NULL: none. Of a task that has none of its own those of its array. */
int db_read_document(struct db_reader *r, int64_t job, char **ret_json, struct err *e);

/* Cron entries, by id: of one user or all (NULL); those that were removed only when they are asked
 * for by id. */
typedef int (*db_cron_fn)(void *ctx, const struct cron_row *row);
int db_read_crons(struct db_reader *r, const char *user, db_cron_fn fn, void *ctx, struct err *e);
/* ERR_NOT_FOUND */
int db_read_cron(struct db_reader *r, int64_t id, struct cron_row *ret_row, struct err *e);
/* What its jobs are submitted with, as JSON: free with free(). ERR_NOT_FOUND. */
int db_read_cron_job(struct db_reader *r, int64_t id, char **ret_json, struct err *e);
/* What became of its times, the newest first: numbers below before (0: from the newest), at most
 * limit (1 .. 1000). */
typedef int (*db_cron_run_fn)(void *ctx, const struct cron_run_row *row);
int db_read_cron_runs(struct db_reader *r, int64_t id, int64_t before, int32_t limit,
    db_cron_run_fn fn, void *ctx, struct err *e);

#define JOB_WORDS_MAX 16
#define JOB_LABELS_MAX 8

struct job_words { /* any of these; n 0: whatever it is */
    const char *words[JOB_WORDS_MAX];
    size_t n;
};

enum job_sort {
    JOBS_NEWEST, /* by number, the highest first */
    JOBS_OLDEST, /* by number */
    JOBS_BY_END, /* those that have ended only, the last that did first */
};

/* Zeroed it is all jobs but for the limit. Texts are borrowed. */
struct job_filter {
    uint32_t states; /* 1 << enum job_state, and ... */
    uint32_t ends;   /* ... 1 << enum end_kind of those that have ended; neither: any */
    struct job_words users, teams, pools; /* the pool that was asked for */
    struct job_words names;               /* in each '*' stands for any text */
    struct {
        const char *name, *value; /* value NULL: any */
    } labels[JOB_LABELS_MAX];     /* all of these */
    size_t n_labels;
    int64_t since_ms; /* wall: live, or ended then or later; 0: open */
    int64_t until_ms; /* wall: submitted then or before; 0: open */
    int64_t array;    /* not 0: its tasks that have begun, those that have ended too ... */
    int32_t index;    /* ... or the one with this index; negative: all */
    enum job_sort sort;
    int64_t before; /* those behind this job in that order; 0: from the first */
    int32_t limit;  /* 1 .. 1000, else ERR_INVALID; for history too */
    /* not NULL: CORE_NAME_MAX bytes, which have at each row the pool that its newest attempt is or
     * was in; "": there is none */
    char *pool_used;
};
#define JOBS_LIVE ((1u << JOB_ENDED) - 1) /* states */

typedef int (*db_job_fn)(void *ctx, const struct job_row *row);
typedef int (*db_attempt_fn)(void *ctx, const struct attempt_row *row);
typedef int (*db_history_fn)(void *ctx, const struct history_row *row);
typedef int (*db_checkpoint_fn)(void *ctx, const struct checkpoint_row *row);
typedef int (*db_ledger_fn)(void *ctx, const struct ledger_row *row);
typedef int (*db_node_fn)(void *ctx, const struct node_row *row);
typedef int (*db_instance_fn)(void *ctx, const struct instance_row *row);
typedef int (*db_offer_fn)(void *ctx, const struct offer_row *row);
typedef int (*db_token_fn)(void *ctx, const struct token_row *row);

/* Each calls fn per row while it returns 0. A positive number ends the walk and 0 is returned; a
 * negative kind ends it and is returned, and then fn has filled the same e. What a row does not
 * store (queued_mono, avoid_until) is NONE. */
/* At most so many rows are looked at, however few of them the filter lets through, so that no page
 * holds up the caller for long. *ret_next (may be NULL) is `before` for the page behind this one;
 * 0: there is none. ERR_INVALID: `before` is of another list. */
int db_read_jobs(struct db_reader *r, const struct job_filter *f, db_job_fn fn, void *ctx,
    int64_t *ret_next, struct err *e);
#define JOBS_LOOKED_AT_MAX 5000
/* by number */
int db_read_attempts(struct db_reader *r, int64_t job, db_attempt_fn fn, void *ctx, struct err *e);
/* History after `after`, of one job or (job 0) all, oldest first, at most limit. */
/* How long an attempt that is restored from this checkpoint (attempt 0: from none) does what the
 * ledger has as useful of those before; 0: nothing, or it is not known. And whether one of those
 * from `from` up to the one before it has had to. */
int db_read_behind(struct db_reader *r, int64_t job, int64_t attempt, struct ckpt_ref restored,
    int64_t *ret_ms, struct err *e);
int db_read_was_behind(
    struct db_reader *r, int64_t job, int64_t from, int64_t attempt, bool *ret_was, struct err *e);
int db_read_history(struct db_reader *r, int64_t job, int64_t after, int32_t limit,
    db_history_fn fn, void *ctx, struct err *e);
/* How often the timeline says that this attempt, on this node, could not save. */
int db_read_failed_saves(
    struct db_reader *r, int64_t job, int64_t attempt, int64_t node, int64_t *ret_n, struct err *e);
/* newest first */
int db_read_checkpoints(
    struct db_reader *r, int64_t job, db_checkpoint_fn fn, void *ctx, struct err *e);
/* Checkpoints of jobs that ended before, and stay for good: of one user or all (NULL), the largest
 * first, at most limit. Of the newest jobs that left any at most 100,000 are looked at. */
struct kept_row {
    int64_t job;
    char name[CORE_NAME_MAX], user[CORE_NAME_MAX];
    struct wall ended_at;
    int64_t bytes; /* at most, without what is pinned */
};
typedef int (*db_kept_fn)(void *ctx, const struct kept_row *row);
int db_read_kept(struct db_reader *r, struct wall before, const char *user, int32_t limit,
    db_kept_fn fn, void *ctx, struct err *e);
/* job 0: all */
int db_read_ledger(struct db_reader *r, int64_t job, db_ledger_fn fn, void *ctx, struct err *e);
int db_read_nodes(struct db_reader *r, bool live_only, db_node_fn fn, void *ctx, struct err *e);
int db_read_instances(
    struct db_reader *r, bool live_only, db_instance_fn fn, void *ctx, struct err *e);
/* The latest so many, that one first. */
int db_read_newest_instances(
    struct db_reader *r, int64_t limit, db_instance_fn fn, void *ctx, struct err *e);
int db_read_offers(struct db_reader *r, db_offer_fn fn, void *ctx, struct err *e);
int db_read_token_by_hash(
    struct db_reader *r, const char *hash, struct token_row *ret_token, struct err *e);
int db_read_tokens(struct db_reader *r, db_token_fn fn, void *ctx, struct err *e);

/* A job or a cron entry that has not ended has this working directory (launch.workdir of its
 * spec). */
int db_workdir_is_wanted(struct db_reader *r, const char *hash, bool *ret_wanted, struct err *e);

/* that it was placed in; "": there is none */
int db_read_pool_used(
    struct db_reader *r, int64_t job, int64_t attempt, char ret_pool[CORE_NAME_MAX], struct err *e);
/* ERR_NOT_FOUND */
int db_read_extras(struct db_reader *r, int64_t id, struct extras_row *ret_row, struct err *e);
/* ERR_NOT_FOUND: it is none */
int db_read_array(struct db_reader *r, int64_t job, struct array_row *ret_row, struct err *e);
/* Its tasks, and which of them have succeeded; ret->succeeded is the caller's to deinit.
 * ERR_NOT_FOUND: it is none. */
int db_read_array_ends(struct db_reader *r, int64_t job, struct array_ends *ret, struct err *e);
/* What a job depends on, or did, by job. */
typedef int (*db_dependency_fn)(void *ctx, const struct dependency_row *row);
int db_read_dependencies(
    struct db_reader *r, int64_t job, db_dependency_fn fn, void *ctx, struct err *e);
/* The drills of a job, by number. */
typedef int (*db_drill_fn)(void *ctx, const struct drill_row *row);
int db_read_job_drills(struct db_reader *r, int64_t job, db_drill_fn fn, void *ctx, struct err *e);
/* Of one user or all (NULL), the newest first, at most limit (1 .. 1000, else ERR_INVALID). */
int db_read_drills(
    struct db_reader *r, const char *user, int32_t limit, db_drill_fn fn, void *ctx, struct err *e);
/* The newest drill of these scripts that passed or failed: a certificate if it passed.
 * ERR_NOT_FOUND: none. */
int db_read_certificate(
    struct db_reader *r, const char *script_key, struct drill_row *ret_row, struct err *e);

/* What an ended job left in the store; ERR_NOT_FOUND: nothing, or it lives. */
int db_read_leftover(struct db_reader *r, int64_t job, struct leftover_row *ret_row, struct err *e);

/* Cost sums for `belay cost`: by what ("job" "user" "pool" "kind" "day" in UTC; else ERR_INVALID),
 * for one user or all (NULL), from one wall time to before another (WALL_NONE: open), ordered by
 * key. A stretch counts in each period by its share of the time: the sums of periods add up
 * exactly, and are final when all that ran in them has ended. The key "" is boot and idle time,
 * which is no job's and no user's. */
struct cost_line {
    char key[CORE_NAME_MAX];
    int64_t jobs, uusd, on_demand_uusd, useful_ms, lost_ms, total_ms;
};
typedef int (*db_cost_fn)(void *ctx, const struct cost_line *line);
int db_read_cost(struct db_reader *r, const char *by, const char *user, struct wall from,
    struct wall to, db_cost_fn fn, void *ctx, struct err *e);

/* How much of the nodes there was, and what it was used for: time times their cpus, or GPUs. */
struct use_sum {
    int64_t there_ms;   /* of nodes that had joined and were not gone */
    int64_t held_ms;    /* of these by jobs, */
    int64_t useful_ms;  /* which the ledger calls useful, */
    int64_t running_ms; /* or does not know yet: the attempt has not ended */
};
struct use_pool {
    char pool[CORE_NAME_MAX];
    bool elastic; /* its nodes are instances */
    struct use_sum cpus, gpus;
    /* what the nodes would have cost on-demand while they were there; 0: not known */
    int64_t on_demand_uusd;
};
struct use_step {
    struct use_sum cpus, gpus;
};
struct use_of {
    const char *pool;     /* NULL: all */
    struct wall from, to; /* to: not after now */
    int64_t step_ms;      /* 0: no steps are wanted */
};
typedef int (*db_use_fn)(void *ctx, const struct use_pool *p);
/* Calls fn for each pool that had nodes then, with the sums of the period, and adds what there was
 * in each step of it, of all those pools together, to steps: zeroed, (to - from) / step_ms of them,
 * rounded up. */
int db_read_use(struct db_reader *r, const struct use_of *of, struct use_step *steps, db_use_fn fn,
    void *ctx, struct err *e);

/* What the ledger says of an instance, summed, for those that it has rows of, by number. */
struct ledger_sum {
    int64_t instance;
    int64_t uusd;          /* of all its rows */
    int64_t attempts_uusd; /* of those of attempts */
    int64_t ms;            /* of the node's time, of all its rows */
};
typedef int (*db_ledger_sum_fn)(void *ctx, const struct ledger_sum *sum);
int db_read_ledger_sums(struct db_reader *r, db_ledger_sum_fn fn, void *ctx, struct err *e);

/* Reserved nodes whose ledger rows do not add up to what the node's row says is in the ledger. */
struct ledger_node {
    int64_t node, ms, row_ms;
};
typedef int (*db_ledger_node_fn)(void *ctx, const struct ledger_node *node);
int db_read_ledger_nodes(struct db_reader *r, db_ledger_node_fn fn, void *ctx, struct err *e);

/* Attempts whose stretches do not add up to their time, or are of several times; none unless the
 * ledger is damaged. */
struct ledger_gap {
    int64_t job, attempt, instance;
    int64_t ms, span_ms; /* of the stretches; from their begin to their end */
};
typedef int (*db_ledger_gap_fn)(void *ctx, const struct ledger_gap *gap);
int db_read_ledger_gaps(struct db_reader *r, db_ledger_gap_fn fn, void *ctx, struct err *e);

/* Where the sums of the ledger by day and month (rollup.c) are not what its rows add up to, or not
 * what other sums of the same are: text says of what, and is borrowed for the call. None unless the
 * database is damaged. Reads all of the ledger: a million rows take seconds. */
typedef int (*db_rollup_gap_fn)(void *ctx, const char *text);
int db_read_rollup_gaps(struct db_reader *r, db_rollup_gap_fn fn, void *ctx, struct err *e);
/* Likewise where the ledger has another egress of an attempt, or another storage of a job, than its
 * row. */
int db_read_data_gaps(struct db_reader *r, db_rollup_gap_fn fn, void *ctx, struct err *e);
/* Likewise where a job has cost something else than the ledger has of it. */
int db_read_job_gaps(struct db_reader *r, db_rollup_gap_fn fn, void *ctx, struct err *e);

#endif
