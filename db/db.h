/* SPDX-License-Identifier: Apache-2.0
 *
 * The database: SQLite, WAL, synchronous=FULL. One function per statement; bound parameters only.
 *
 *   struct db         the write connection. db_commit writes one tick's changes in ONE transaction.
 *   struct db_writer  a thread that owns the struct db while the daemon runs: at most one commit in
 *                     progress.
 *   struct db_reader  a read-only connection, for the API. It sees only committed data.
 *
 * There are two kinds of commit errors. ERR_NO_SPACE: the transaction has certainly rolled back;
 * keep the changes and try again. Any other: the outcome on disk is unknown; the process must end
 * and read the file again.
 */
#ifndef BELAY_DB_DB_H
#define BELAY_DB_DB_H

#include "base/json.h"
#include "db/prune.h"
#include "db/telemetry.h"
#include "scheduler/core/ledger/restart.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/model/text.h"
#include <stdatomic.h>

#define DB_SCHEMA_VERSION 1 /* schema.c */

struct db;

/* Opens or creates the file (mode 0600) and applies missing migrations, one transaction each.
 * Refuses a newer schema (ERR_CONFIG, names the belay that is needed), one of a build before the
 * first release (ERR_CONFIG, says what to do) and a damaged file (ERR_CORRUPT). ":memory:" is for
 * tests. Takes an exclusive lock next to it (path.lock): a second belayd on the same state gets
 * ERR_CONFLICT. */
int db_open(const char *path, struct db **ret_db, struct err *e);
/* Resets the database to its initial state, except the cluster's name and key: for simulations,
 * which need thousands of new ones. Only for a database in memory. */
int db_empty(struct db *d, struct err *e);
void db_close(struct db *d); /* d may be NULL */

struct db_meta {
    char cluster_uid[17];
    /* id of the key that the database was last sealed with (scheduler/secrets/seal.h); "" = nothing
     * is sealed yet */
    char seal_key[17];
    int64_t boots; /* how often belayd has opened it; the high part of revisions */
    int64_t epoch; /* how often the cluster was restored from a backup */
    struct model_counters counters;
};

/* Reads the meta row (created at the first open) and counts this start of belayd, durably. */
int db_startup(struct db *d, struct db_meta *ret_meta, struct err *e);

/* Records the key that seals from now on; call before the writer is created. Durable when it
 * returns 0. */
int db_set_seal_key(struct db *d, struct db_meta *meta, const char *id, struct err *e);
/* Call before db_load and before the writer is created: no job gets a number below `next` from now
 * on. Durable when it returns 0. */
int db_raise_next_job(struct db *d, struct db_meta *meta, int64_t next, struct err *e);
/* Returns whether a checkpoint of any job was ever recorded. */
int db_has_checkpoints(struct db *d, bool *ret_has, struct err *e);
struct db_identity {
    char uid[17]; /* the cluster's */
    int64_t schema, epoch;
    bool has_checkpoints;
};
/* Reads them from a database that may be in use and of any schema. Changes nothing. ERR_NOT_FOUND
 * if there is no database. */
int db_identify(const char *path, struct db_identity *ret_identity, struct err *e);

/* Loads every live row into m, as model.h's recovery requires. */
int db_load(struct db *d, struct model *m, struct stamp now, struct err *e);

/* Token rows are part of a tick's changes. */
struct token_row {
    int64_t id;               /* 0 = new */
    char hash[65];            /* SHA-256 of the token, hex */
    bool join;                /* a one-use join token; else an API token */
    char user[CORE_NAME_MAX]; /* API token: its user */
    bool admin;
    char role[16]; /* API token: gives no more than this role; "" = what its user has */
    char scope[CORE_NAME_MAX + 8];               /* API token: its scope; "" = unlimited */
    char pool[CORE_NAME_MAX];                    /* join token: the pool the node joins */
    struct wall created_at, expires_at, used_at; /* used_at WALL_NONE = never */
    char key_hash[65];                           /* join token: the key that used it */
    bool revoked;
    /* Made by a sign-in at the identity provider: then role is what the user's groups give at
     * least, and teams is the list (base/names.h) of the teams that they give. */
    bool login;
    char teams[1024];
    /* Of a browser's session (scheduler/api/login/session.h). Ends with the token `parent`; 0: made
     * by a link of the UNIX socket. */
    bool session;
    int64_t parent;
};

/* Secrets of users: likewise part of a tick's changes. */
#define DB_SECRET_NAME_MAX 64
#define DB_SECRET_GRANTS_MAX 4096
struct secret_row {
    char owner[CORE_NAME_MAX];
    char name[DB_SECRET_NAME_MAX];
    char *sealed;  /* owned */
    int64_t bytes; /* of the value */
    /* who may use it besides its owner, "user:NAME", "team:NAME" or "pool:NAME", with blanks */
    char grants[DB_SECRET_GRANTS_MAX];
    struct wall set_at;
    char set_by[CORE_NAME_MAX];
    bool removed; /* not stored: the row is to be deleted */
};
void secret_row_deinit(struct secret_row *row);

/* A call that changes something, or tried to: who made it, from where, and what came of it. */
struct audit_row {
    int64_t seq; /* 1, 2, ... without gaps; set by the commit */
    struct wall at;
    char request[40];         /* X-Request-Id of its reply */
    char user[CORE_NAME_MAX]; /* "" = not authenticated */
    char source[128];         /* address or socket, with uid, token or node */
    char route[72];           /* "POST /api/v1/jobs/#/cancel" */
    char object[48];          /* the numbers in its path, or of what it made; may be "" */
    char result[24];          /* "ok", or the kind of the error */
    char hash[65];            /* of the row before and this one (audit_log.h); set by the commit */
};

struct db_batch {
    struct changes changes;
    struct secret_row *secrets;
    size_t n_secrets; /* new, changed or removed */
    struct token_row *tokens;
    size_t n_tokens; /* new (id 0) or changed */
    struct loads_batch loads;
    struct audit_row *audit;
    size_t n_audit;     /* appended to the audit log, in this order */
    struct prune prune; /* what is deleted, after all of the above is written */
};

void db_batch_deinit(struct db_batch *b);

/* Commits all changes or none. Rows of the outbox replace theirs, and are removed when they are
 * delivered. Pools, offers, instances, nodes, jobs, attempts, leftovers, drills, arrays,
 * dependencies, cron entries and tokens replace their row; specs, checkpoints, runs of cron entries
 * and history are written once (a second time is ERR_INTERNAL). Counters never decrease. */
int db_commit(struct db *d, const struct db_batch *b, struct err *e);

/* Fault injection for tests: the n-th SQLite write step from now fails with this SQLite code; 0 =
 * off. */
void db_fail_at(struct db *d, int64_t n, int sqlite_code);

/* ---- writer thread ---- */
struct db_writer;
/* Takes d. wake is called on the writer thread when a commit has ended: it must only signal
 * (uv_async_send). */
struct db_writer *db_writer_create(struct db *d, void (*wake)(void *ctx), void *ctx);
/* Starts committing b (borrowed until db_writer_finished reports the end). No commit may be in
 * progress. */
void db_writer_start(struct db_writer *w, const struct db_batch *b);
/* Returns false while the commit is in progress; else true, with *ret_rc 0 or the kind, and e
 * filled. */
bool db_writer_finished(struct db_writer *w, int *ret_rc, struct err *e);
/* The last row of the audit log that is committed; no commit may be in progress. */
struct audit_head;
void db_get_audit_head(const struct db *d, struct audit_head *ret_head);
void db_writer_get_audit_head(const struct db_writer *w, struct audit_head *ret_head);
/* Likewise what the last commit with a struct prune that was due has deleted. */
void db_get_pruned(const struct db *d, struct pruned *ret_pruned);
void db_writer_get_pruned(const struct db_writer *w, struct pruned *ret_pruned);
/* waits for a commit in progress; closes d. w may be NULL */
void db_writer_destroy(struct db_writer *w);

/* ---- reader ---- */
struct db_reader;
int db_reader_open(const char *path, struct db_reader **ret_reader, struct err *e);
/* A reader on the write connection, and therefore on the same thread as its commits: for simulator
 * and tests. Close it before d. */
int db_reader_of(struct db *d, struct db_reader **ret_reader, struct err *e);
void db_reader_close(struct db_reader *r);
/* Between these two calls all statements see the same commit. Not for a db_reader_of. */
int db_reader_begin(struct db_reader *r, struct err *e);
void db_reader_end(struct db_reader *r);
/* Opens a reader, calls fn with it between these two calls, and closes it; for a thread. */
typedef int (*db_once_fn)(void *ctx, struct db_reader *r, struct err *e);
int db_read_once(const char *path, db_once_fn fn, void *ctx, struct err *e);
/* Statements end early with ERR_CANCELLED once *cancel is not 0, which another thread may set.
 * Borrowed; NULL removes it. */
void db_reader_cancel_by(struct db_reader *r, atomic_int *cancel);

/* ERR_NOT_FOUND */
/* Bytes of the database file: of all of it, and of what is in use, without free pages. */
int db_read_size(struct db_reader *r, int64_t *ret_file, int64_t *ret_used, struct err *e);
/* When the job ended that n others ended before; WALL_NONE if there are not so many. */
int db_read_nth_end(struct db_reader *r, int64_t n, struct wall *ret_at, struct err *e);
/* Labels of all live jobs that have any, by job; an array's apply to its tasks. */
typedef int (*db_labels_fn)(void *ctx, int64_t job, const char *labels_json);
int db_read_live_labels(struct db_reader *r, db_labels_fn fn, void *ctx, struct err *e);
int db_read_job(struct db_reader *r, int64_t id, struct job_row *ret_job, struct err *e);
/* The number of a job as users name it; of a job that is not stored, or after a failure, its id. */
int db_read_job_ref(struct db_reader *r, int64_t id, struct job_ref *ret_ref, struct err *e);
/* Script and the other texts of a job; the caller frees with spec_change's members (changes.specs
 * rules). */
int db_read_spec(struct db_reader *r, int64_t job, struct spec_change *ret_spec, struct err *e);
void spec_change_deinit(struct spec_change *s);
/* The options of a job that are only stored and differ from the default: a JSON object, which the
 * caller frees, or NULL for none. A task without its own gets those of its array. */
int db_read_document(struct db_reader *r, int64_t job, char **ret_json, struct err *e);

/* Reads cron entries by id, of one user or all (NULL); removed ones only when requested by id. */
typedef int (*db_cron_fn)(void *ctx, const struct cron_row *row);
int db_read_crons(struct db_reader *r, const char *user, db_cron_fn fn, void *ctx, struct err *e);
/* ERR_NOT_FOUND */
int db_read_cron(struct db_reader *r, int64_t id, struct cron_row *ret_row, struct err *e);
/* The specification of its jobs as JSON: free with free(). ERR_NOT_FOUND. */
int db_read_cron_job(struct db_reader *r, int64_t id, char **ret_json, struct err *e);
/* Reads the outcomes of its times, the newest first: numbers below before (0 = from the newest), at
 * most limit (1 .. 1000). */
typedef int (*db_cron_run_fn)(void *ctx, const struct cron_run_row *row);
int db_read_cron_runs(struct db_reader *r, int64_t id, int64_t before, int32_t limit,
    db_cron_run_fn fn, void *ctx, struct err *e);
/* Calls fn for each run of the entry that was started for a time in first..last. */
int db_read_cron_started(struct db_reader *r, int64_t id, struct wall first, struct wall last,
    db_cron_run_fn fn, void *ctx, struct err *e);

#define JOB_WORDS_MAX 16
#define JOB_LABELS_MAX 8

struct job_words { /* any of these; n 0 = any */
    const char *words[JOB_WORDS_MAX];
    size_t n;
};

enum job_sort {
    JOBS_NEWEST, /* by number, the highest first */
    JOBS_OLDEST, /* by number */
    JOBS_BY_END, /* only ended jobs, the most recently ended first */
};

/* Zeroed, except for the limit, it selects all jobs. Texts are borrowed. */
struct job_filter {
    uint32_t states;                      /* 1 << enum job_state, and ... */
    uint32_t ends;                        /* ... 1 << enum end_kind for ended jobs; both 0 = any */
    struct job_words users, teams, pools; /* pools: the requested pool */
    struct job_words names;               /* in each, '*' stands for any text */
    struct {
        const char *name, *value; /* value NULL = any */
    } labels[JOB_LABELS_MAX];     /* all of these */
    size_t n_labels;
    int64_t since_ms; /* wall: live, or ended then or later; 0 = open */
    int64_t until_ms; /* wall: submitted then or before; 0 = open */
    int64_t node;     /* if not 0: jobs that have an attempt there which has not ended */
    int64_t array;    /* if not 0: its tasks that have begun, including ended ones ... */
    int32_t index;    /* ... or the one with this index; negative = all */
    enum job_sort sort;
    int64_t before; /* jobs after this one in that order; 0 = from the first */
    int32_t limit;  /* 1 .. 1000, else ERR_INVALID; also for history */
    /* may be NULL; else CORE_NAME_MAX bytes that have the pool of the current row's newest attempt;
     * "" = none */
    char *pool_used;
};
#define JOBS_LIVE ((1u << JOB_ENDED) - 1) /* states */

typedef int (*db_job_fn)(void *ctx, const struct job_row *row);
typedef int (*db_attempt_fn)(void *ctx, const struct attempt_row *row);
typedef int (*db_restart_fn)(void *ctx, const struct restart_moments *m);
typedef int (*db_history_fn)(void *ctx, const struct history_row *row);
typedef int (*db_checkpoint_fn)(void *ctx, const struct checkpoint_row *row);
typedef int (*db_ledger_fn)(void *ctx, const struct ledger_row *row);
typedef int (*db_node_fn)(void *ctx, const struct node_row *row);
typedef int (*db_instance_fn)(void *ctx, const struct instance_row *row);
typedef int (*db_offer_fn)(void *ctx, const struct offer_row *row);
typedef int (*db_token_fn)(void *ctx, const struct token_row *row);

/* Each function calls fn for each row while fn returns 0. A positive number ends the walk and 0 is
 * returned; a negative kind ends it and is returned, and fn must have filled the same e. Members
 * that are not stored (queued_mono, avoid_until) are NONE. */
/* Reads at most this many rows, however few of them match the filter, so that no page delays the
 * caller for long. *ret_next (may be NULL) is `before` for the next page, 0 on the last.
 * ERR_INVALID if `before` is not in this list. */
int db_read_jobs(struct db_reader *r, const struct job_filter *f, db_job_fn fn, void *ctx,
    int64_t *ret_next, struct err *e);
#define JOBS_EXAMINED_MAX 5000
/* by number */
int db_read_attempts(struct db_reader *r, int64_t job, db_attempt_fn fn, void *ctx, struct err *e);
/* Of each rank that has started, by attempt and rank, from the second attempt on. */
int db_read_restarts(struct db_reader *r, int64_t job, db_restart_fn fn, void *ctx, struct err *e);
/* History after `after`, of one job or (job 0) all, oldest first, at most limit. */
/* Returns how long an attempt that is restored from this checkpoint (attempt 0 = none) repeats work
 * that the ledger counts as useful for earlier attempts; 0 if none or unknown. Also returns whether
 * an attempt from `from` up to the previous one had to repeat work. */
int db_read_repeated_work(struct db_reader *r, int64_t job, int64_t attempt,
    struct ckpt_ref restored, int64_t *ret_ms, struct err *e);
int db_read_has_repeated(
    struct db_reader *r, int64_t job, int64_t from, int64_t attempt, bool *ret_was, struct err *e);
int db_read_history(struct db_reader *r, int64_t job, int64_t after, int32_t limit,
    db_history_fn fn, void *ctx, struct err *e);
/* The last of one job's history, oldest first, at most limit. */
int db_read_last_history(
    struct db_reader *r, int64_t job, int32_t limit, db_history_fn fn, void *ctx, struct err *e);
/* The newest history before `before` (0 = up to the last), oldest first, at most limit. Examines at
 * most RECENT_EXAMINED_MAX rows, however few of them match. *ret_next is `before` for the page
 * before this one; 0 = there is none. */
struct recent_filter {
    int64_t node, instance; /* 0 = any */
    const char *kinds;      /* ",saved,lost,"; "" = any */
    int64_t before;
    int32_t limit; /* 1 .. 1000, else ERR_INVALID */
};
int db_read_recent_history(struct db_reader *r, const struct recent_filter *f, db_history_fn fn,
    void *ctx, int64_t *ret_next, struct err *e);
#define RECENT_EXAMINED_MAX 20000
/* The last `save-failed` of an attempt that has begun and has saved nothing since; ERR_NOT_FOUND:
 * none. A checkpoint that is refused before the attempt begins (CRIU) does not count. */
int db_read_failed_save(
    struct db_reader *r, int64_t job, int64_t attempt, struct history_row *ret_row, struct err *e);
/* Returns how many failed saves and restores of this attempt, on this node, are in the history. */
int db_read_failed_saves(
    struct db_reader *r, int64_t job, int64_t attempt, int64_t node, int64_t *ret_n, struct err *e);
/* newest first */
int db_read_checkpoints(
    struct db_reader *r, int64_t job, db_checkpoint_fn fn, void *ctx, struct err *e);
/* Reads the checkpoints of jobs that ended earlier and that stay permanently: of one user or all
 * (NULL), the largest first, at most limit. Examines at most the newest 100,000 jobs that left
 * any. */
struct kept_row {
    int64_t job;
    char name[CORE_NAME_MAX], user[CORE_NAME_MAX];
    struct wall ended_at;
    int64_t bytes; /* upper bound, without pinned ones */
};
typedef int (*db_kept_fn)(void *ctx, const struct kept_row *row);
int db_read_kept(struct db_reader *r, struct wall before, const char *user, int32_t limit,
    db_kept_fn fn, void *ctx, struct err *e);
/* job 0 = all */
int db_read_ledger(struct db_reader *r, int64_t job, db_ledger_fn fn, void *ctx, struct err *e);
int db_read_nodes(struct db_reader *r, bool live_only, db_node_fn fn, void *ctx, struct err *e);
int db_read_instances(
    struct db_reader *r, bool live_only, db_instance_fn fn, void *ctx, struct err *e);
/* Reads at most `limit` of the nodes, of the instances, with an id below `before`, the latest
 * first. */
int db_read_newest_nodes(
    struct db_reader *r, int64_t before, int64_t limit, db_node_fn fn, void *ctx, struct err *e);
int db_read_newest_instances(struct db_reader *r, int64_t before, int64_t limit, db_instance_fn fn,
    void *ctx, struct err *e);
int db_read_offers(struct db_reader *r, db_offer_fn fn, void *ctx, struct err *e);
int db_read_token_by_hash(
    struct db_reader *r, const char *hash, struct token_row *ret_token, struct err *e);
int db_read_token(struct db_reader *r, int64_t id, struct token_row *ret_token, struct err *e);
int db_read_tokens(struct db_reader *r, db_token_fn fn, void *ctx, struct err *e);
/* A secret with its sealed value; secret_row_deinit frees. ERR_NOT_FOUND. */
int db_read_secret(struct db_reader *r, const char *owner, const char *name,
    struct secret_row *ret_row, struct err *e);
/* Reads the secrets by owner and name, of one owner or all (NULL). */
typedef int (*db_secret_fn)(void *ctx, const struct secret_row *row);
int db_read_secrets(
    struct db_reader *r, const char *owner, db_secret_fn fn, void *ctx, struct err *e);

/* Returns whether a live job or cron entry has this working directory (launch.workdir of its
 * spec). */
int db_workdir_is_wanted(struct db_reader *r, const char *hash, bool *ret_wanted, struct err *e);

/* the pool of that attempt; "" = none */
int db_read_pool_used(
    struct db_reader *r, int64_t job, int64_t attempt, char ret_pool[CORE_NAME_MAX], struct err *e);
/* ERR_NOT_FOUND */
int db_read_constraints(
    struct db_reader *r, int64_t id, struct constraints_row *ret_row, struct err *e);
/* ERR_NOT_FOUND if it is not an array */
int db_read_array(struct db_reader *r, int64_t job, struct array_row *ret_row, struct err *e);
/* Reads its tasks, and which of them have succeeded; the caller deinits ret->succeeded.
 * ERR_NOT_FOUND if it is not an array. */
int db_read_array_ends(struct db_reader *r, int64_t job, struct array_ends *ret, struct err *e);
/* Reads the current and past dependencies of a job, by job. */
typedef int (*db_dependency_fn)(void *ctx, const struct dependency_row *row);
int db_read_dependencies(
    struct db_reader *r, int64_t job, db_dependency_fn fn, void *ctx, struct err *e);
/* The drills of a job, by number. */
typedef int (*db_drill_fn)(void *ctx, const struct drill_row *row);
int db_read_job_drills(struct db_reader *r, int64_t job, db_drill_fn fn, void *ctx, struct err *e);
/* Reads drills of one user or all (NULL), the newest first, at most limit (1 .. 1000, else
 * ERR_INVALID). */
int db_read_drills(
    struct db_reader *r, const char *user, int32_t limit, db_drill_fn fn, void *ctx, struct err *e);
/* Reads the newest drill of this script that passed or failed: a certificate if it passed.
 * ERR_NOT_FOUND if there is none. */
int db_read_certificate(
    struct db_reader *r, const char *script_key, struct drill_row *ret_row, struct err *e);

/* Reads what an ended job left in the store; ERR_NOT_FOUND if nothing, or if it is live. */
int db_read_ckpt_gc(struct db_reader *r, int64_t job, struct ckpt_gc_row *ret_row, struct err *e);

/* Cost sums for `belay cost`, by "job" "user" "pool" "kind" or "day" (UTC; else ERR_INVALID), for
 * one user or all (NULL), from one wall time to before another (WALL_NONE = open), ordered by key.
 * A ledger row counts in each period in proportion to its time: the sums of periods add up exactly,
 * and are final when everything that ran in them has ended. The key "" is boot and idle time, which
 * belongs to no job and no user; by job and user idle time of owned machines has the key
 * COST_IDLE_OWNED instead (cost_sums.h). jobs counts those that ended in the period, by day on that
 * day; by pool and kind it is 0. */
struct cost_line {
    char key[CORE_NAME_MAX];
    int64_t jobs, uusd, on_demand_uusd, useful_ms, lost_ms, total_ms;
};
typedef int (*db_cost_fn)(void *ctx, const struct cost_line *line);
int db_read_cost(struct db_reader *r, const char *by, const char *user, struct wall from,
    struct wall to, db_cost_fn fn, void *ctx, struct err *e);
/* Jobs that ended in the period, of one user or all (NULL); of an array only its tasks count. */
int db_count_ended_jobs(struct db_reader *r, const char *user, struct wall from, struct wall to,
    int64_t *ret_n, struct err *e);

/* The capacity of the nodes and its use: time multiplied by cpus, or by GPUs. */
struct use_sum {
    int64_t there_ms;   /* of nodes between their join and their end */
    int64_t held_ms;    /* the part held by jobs, */
    int64_t useful_ms;  /* the part of that which the ledger counts as useful, */
    int64_t running_ms; /* or does not have yet, because the attempt has not ended */
};
struct use_pool {
    char pool[CORE_NAME_MAX];
    bool elastic; /* its nodes are instances */
    struct use_sum cpus, gpus;
    /* the on-demand cost of the nodes for that time; 0 = unknown */
    int64_t on_demand_uusd;
    /* time of GPUs that attempts had and whose utilisation was reported, in hours that began in the
     * period; the part of that in which they were busy */
    int64_t gpu_measured_ms, gpu_busy_ms;
};
struct use_step {
    struct use_sum cpus, gpus;
};
struct use_of {
    const char *pool;     /* NULL = all */
    struct wall from, to; /* to must not be after now */
    int64_t step_ms;      /* 0 = no steps */
};
typedef int (*db_use_fn)(void *ctx, const struct use_pool *p);
/* Calls fn for each pool that had nodes in the period, with the sums of the period. Adds the
 * capacity in each step, of all these pools together, to steps: a zeroed array of (to - from) /
 * step_ms elements, rounded up. */
int db_read_use(struct db_reader *r, const struct use_of *of, struct use_step *steps, db_use_fn fn,
    void *ctx, struct err *e);

/* The sums of an instance's ledger rows, for instances that have any, by number. */
struct ledger_sum {
    int64_t instance;
    int64_t uusd;          /* of all its rows */
    int64_t attempts_uusd; /* of the rows of attempts */
    int64_t ms;            /* of the node's time, of all its rows */
};
typedef int (*db_ledger_sum_fn)(void *ctx, const struct ledger_sum *sum);
int db_read_ledger_sums(struct db_reader *r, db_ledger_sum_fn fn, void *ctx, struct err *e);

/* Reserved nodes whose ledger rows do not add up to the amount recorded in the node's row. */
struct ledger_node {
    int64_t node, ms, row_ms;
};
typedef int (*db_ledger_node_fn)(void *ctx, const struct ledger_node *node);
int db_read_ledger_nodes(struct db_reader *r, db_ledger_node_fn fn, void *ctx, struct err *e);

/* Attempts whose ledger rows do not add up to their time, or overlap several times; none unless the
 * ledger is damaged. */
struct ledger_gap {
    int64_t job, attempt, instance;
    int64_t ms, span_ms; /* the sum of the rows; the time from their beginning to their end */
};
typedef int (*db_ledger_gap_fn)(void *ctx, const struct ledger_gap *gap);
int db_read_ledger_gaps(struct db_reader *r, db_ledger_gap_fn fn, void *ctx, struct err *e);

/* Reports where the ledger's sums by day and month (rollup.c) differ from its rows, or from other
 * sums of the same; text names the place and is borrowed for the call. None unless the database is
 * damaged. Reads the whole ledger: a million rows take seconds. */
typedef int (*db_rollup_gap_fn)(void *ctx, const char *text);
int db_read_rollup_gaps(struct db_reader *r, db_rollup_gap_fn fn, void *ctx, struct err *e);
/* Likewise where the ledger's egress of an attempt, or storage of a job, differs from its row. */
int db_read_data_gaps(struct db_reader *r, db_rollup_gap_fn fn, void *ctx, struct err *e);
/* Likewise where the cost of a job differs from its ledger rows. */
int db_read_job_gaps(struct db_reader *r, db_rollup_gap_fn fn, void *ctx, struct err *e);

#endif
