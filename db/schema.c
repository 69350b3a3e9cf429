/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema: the tables of version 1, and the steps that lead to each later version. A new column
 * needs a line in columns.c and a step here. The steps after a release are kept for ever, so that
 * every database of a release can be opened.
 *
 * To change the schema:
 *   1. Append to `steps` the SQL text that leads from the previous version to the new one. It is
 *      executed in one transaction, which also stores the version. A released text and the baseline
 *      are never changed: the next step corrects a mistake.
 *   2. Raise DB_SCHEMA_VERSION (db.h).
 *   3. Record the resulting schema as tests/db/schema_v<N>.sql (test_migrate.c describes how), next
 *      to those of all earlier versions. A migration from each of them must lead to the same
 *      schema.
 *
 * A column that a step adds is the table's last one, and so is its line in columns.c.
 *
 * All tables are STRICT: a value of the wrong type is an error, not a row. Times are milliseconds
 * since 1970, money is micro-dollars (uusd); an unknown value is NULL. columns.c has the C type of
 * each column; tests/db/test_table.c compares the two.
 *
 * Each index serves the statement that its comment names. With the indexes *_live, a start of
 * belayd and lists of live objects do not read rows that have ended.
 */
#include "db/schema.h"

#include "db/db.h"

/* clang-format off */
static const char baseline[] =
    /* One row: the identity of this cluster, and the next id of each kind. */
    "CREATE TABLE meta ("
        " one INTEGER PRIMARY KEY CHECK (one = 1),"
        /* the release that created or last migrated the file */
        " belay_version TEXT NOT NULL,"
        " cluster_uid TEXT NOT NULL,"
        /* id of the key with which the database is sealed (scheduler/secrets/seal.h) */
        " seal_key TEXT NOT NULL DEFAULT '',"
        " boots INTEGER NOT NULL DEFAULT 0,"
        /* grows with each restore of a backup: the store's marker has the highest */
        " epoch INTEGER NOT NULL DEFAULT 0,"
        /* ids are never reused, so these only grow */
        " next_job INTEGER NOT NULL DEFAULT 1,"
        " next_node INTEGER NOT NULL DEFAULT 1,"
        " next_instance INTEGER NOT NULL DEFAULT 1,"
        " next_history INTEGER NOT NULL DEFAULT 1,"
        " next_offer INTEGER NOT NULL DEFAULT 1,"
        " next_cron INTEGER NOT NULL DEFAULT 1,"
        " next_constraints INTEGER NOT NULL DEFAULT 1,"
        " next_reservation INTEGER NOT NULL DEFAULT 1"
    ") STRICT;"

    /* Pools as configured at the last start, and what was observed of their machines. */
    "CREATE TABLE pools ("
        " name TEXT NOT NULL PRIMARY KEY,"
        " elastic INTEGER NOT NULL,"
        " provider TEXT NOT NULL,"
        " region TEXT NOT NULL,"
        /* limits */
        " max_nodes INTEGER NOT NULL,"
        " max_gpus INTEGER NOT NULL DEFAULT 0,"
        " max_uusd_h INTEGER NOT NULL DEFAULT 0,"
        /* when machines are ended, and when a refused offer is tried again */
        " idle_timeout_ms INTEGER NOT NULL,"
        " min_paid_ms INTEGER NOT NULL DEFAULT 0,"
        " cooldown_ms INTEGER NOT NULL,"
        " boot_timeout_ms INTEGER NOT NULL,"
        " queue_patience_ms INTEGER NOT NULL DEFAULT 0,"
        " refusal_backoff_ms INTEGER NOT NULL,"
        /* prices, and which offer is chosen by them */
        " usd_per_hour_uusd INTEGER NOT NULL,"
        " egress_uusd_gib INTEGER NOT NULL DEFAULT 0,"
        " upload_uusd_gib INTEGER NOT NULL DEFAULT 0,"
        " spread_pct INTEGER NOT NULL DEFAULT 0,"
        " return_ms INTEGER NOT NULL DEFAULT 0,"
        " by_price INTEGER NOT NULL DEFAULT 0,"
        " fleet INTEGER NOT NULL DEFAULT 0,"
        /* which jobs may run here */
        " require_drill INTEGER NOT NULL DEFAULT 0,"
        " drill_valid_ms INTEGER NOT NULL DEFAULT 0,"
        " required_labels TEXT NOT NULL DEFAULT '',"
        " retries TEXT NOT NULL DEFAULT '',"
        /* what its nodes have */
        " features TEXT NOT NULL DEFAULT '',"
        " resources TEXT NOT NULL DEFAULT '',"
        /* machines kept without demand, and other numbers in windows (pool_windows.h) */
        " min_nodes INTEGER NOT NULL DEFAULT 0,"
        " warm_nodes INTEGER NOT NULL DEFAULT 0,"
        " windows TEXT NOT NULL DEFAULT '',"
        " criu TEXT NOT NULL DEFAULT 'unknown',"
        /* support of CRIU as reported by the last machine */
        " criu_seen TEXT NOT NULL DEFAULT 'unknown',"
        " criu_text TEXT NOT NULL DEFAULT '',"
        /* failed boots: machines that never joined, or had full disks before their first job */
        " boots_failed INTEGER NOT NULL DEFAULT 0,"
        " boots_wait_ms INTEGER NOT NULL DEFAULT 0,"
        " boots_next_at INTEGER,"
        " boots_instance INTEGER NOT NULL DEFAULT 0,"
        " boots_text TEXT NOT NULL DEFAULT '',"
        " boots_console TEXT NOT NULL DEFAULT '',"
        /* what it does about jobs with idle GPUs */
        " idle_gpus_then TEXT NOT NULL DEFAULT 'ignore',"
        " idle_gpus_busy_pct INTEGER NOT NULL DEFAULT 0,"
        " idle_gpus_for_ms INTEGER NOT NULL DEFAULT 0,"
        " idle_gpus_grace_ms INTEGER NOT NULL DEFAULT 0"
    ") STRICT, WITHOUT ROWID;"

    /* One (pool, zone, type, market), with what was observed of it. */
    "CREATE TABLE offers ("
        " id INTEGER PRIMARY KEY,"
        " pool TEXT NOT NULL,"
        " zone TEXT NOT NULL,"
        " type TEXT NOT NULL,"
        " market TEXT NOT NULL,"
        " rank INTEGER NOT NULL,"
        /* what one machine has */
        " cpus INTEGER NOT NULL,"
        " gpus INTEGER NOT NULL,"
        " memory_mib INTEGER NOT NULL,"
        " arch TEXT NOT NULL DEFAULT '',"
        " gpu_model TEXT NOT NULL DEFAULT '',"
        " gpu_memory_mib INTEGER NOT NULL DEFAULT 0,"
        /* price_from_provider: the provider's price, which takes precedence over the configuration
         */
        " price_uusd_h INTEGER NOT NULL,"
        " on_demand_uusd_h INTEGER NOT NULL,"
        " price_from_provider INTEGER NOT NULL DEFAULT 0,"
        /* observed: counters are never reset */
        " launches INTEGER NOT NULL,"
        " refusals INTEGER NOT NULL,"
        " refused_in_a_row INTEGER NOT NULL,"
        " boots INTEGER NOT NULL DEFAULT 0,"
        " boot_ms INTEGER NOT NULL DEFAULT 0,"
        " boot_ms2 INTEGER NOT NULL DEFAULT 0,"
        " up_ms INTEGER NOT NULL,"
        " reclaims INTEGER NOT NULL,"
        " rebalances INTEGER NOT NULL DEFAULT 0,"
        " rebalances_true INTEGER NOT NULL DEFAULT 0"
    ") STRICT;"

    /* Machines of providers. Committed before the launch, under its idempotency token. */
    "CREATE TABLE instances ("
        " id INTEGER PRIMARY KEY,"
        " token TEXT NOT NULL,"
        " pool TEXT NOT NULL,"
        " zone TEXT NOT NULL,"
        " type TEXT NOT NULL,"
        " market TEXT NOT NULL,"
        " state TEXT NOT NULL,"
        " provider_id TEXT NOT NULL,"
        " node INTEGER NOT NULL,"
        /* other offers from which the provider may choose */
        " alternatives TEXT NOT NULL DEFAULT '',"
        /* its life; launched_at_from_provider: launched_at was stated by the provider */
        " intended_at INTEGER,"
        " launched_at INTEGER,"
        " launched_at_from_provider INTEGER NOT NULL DEFAULT 1,"
        " joined_at INTEGER,"
        " start_ms INTEGER NOT NULL DEFAULT 0,"
        " ended_at INTEGER,"
        /* whether it was reclaimed; whether it got a rebalance recommendation; whether it counts as
         * a failed boot; why it ended */
        " reclaimed INTEGER NOT NULL,"
        " rebalanced INTEGER NOT NULL DEFAULT 0,"
        " boot TEXT NOT NULL DEFAULT 'open',"
        " text TEXT NOT NULL,"
        /* price in force, since when, the cost until then; before_*: the previous price */
        " price_uusd_h INTEGER NOT NULL,"
        " on_demand_uusd_h INTEGER NOT NULL,"
        " priced_at INTEGER,"
        " accrued_uusd INTEGER NOT NULL DEFAULT 0,"
        " before_uusd_h INTEGER NOT NULL DEFAULT 0,"
        " before_uusd INTEGER NOT NULL DEFAULT 0,"
        " before_at INTEGER,"
        /* how the cost is divided: boot, attempts, idle time */
        " boot_uusd INTEGER NOT NULL DEFAULT 0,"
        " attempts_uusd INTEGER NOT NULL,"
        " attempts_ms INTEGER NOT NULL,"
        " idle_uusd INTEGER NOT NULL DEFAULT 0,"
        " idle_ms INTEGER NOT NULL DEFAULT 0,"
        " used_until INTEGER,"
        " settled_at INTEGER"
    ") STRICT;"
    /* Recovery, and lists of live instances. */
    "CREATE INDEX instances_live ON instances (id) WHERE state <> 'gone';"
    /* Those that are old enough to be deleted, here and below (prune.c). */
    "CREATE INDEX instances_gone ON instances (ended_at) WHERE state = 'gone';"

    /* Machines with an agent: of an instance, or reserved. */
    "CREATE TABLE nodes ("
        " id INTEGER PRIMARY KEY,"
        " name TEXT NOT NULL,"
        " pool TEXT NOT NULL,"
        " instance INTEGER NOT NULL,"
        " state TEXT NOT NULL,"
        /* the agent: its address, key and version */
        " address TEXT NOT NULL,"
        " key_hash TEXT NOT NULL,"
        " version TEXT NOT NULL,"
        /* what it has */
        " cpus INTEGER NOT NULL,"
        " gpus INTEGER NOT NULL,"
        " memory_mib INTEGER NOT NULL,"
        " gpu_model TEXT NOT NULL DEFAULT '',"
        " gpu_memory_mib INTEGER NOT NULL DEFAULT 0,"
        " features TEXT NOT NULL DEFAULT '',"
        " resources TEXT NOT NULL DEFAULT '',"
        " criu TEXT NOT NULL DEFAULT 'unknown',"
        " criu_text TEXT NOT NULL DEFAULT '',"
        /* its life */
        " market TEXT NOT NULL,"
        " joined_at INTEGER,"
        " gone_at INTEGER,"
        /* drain_text: why; empty if an operator has not said */
        " drain INTEGER NOT NULL,"
        " drained_by_belay INTEGER NOT NULL DEFAULT 0,"
        " drain_text TEXT NOT NULL DEFAULT '',"
        /* as last reported by its agent */
        " fault TEXT NOT NULL DEFAULT '',"
        " notice TEXT NOT NULL,"
        " notice_deadline INTEGER,"
        /* the gang that it is kept for between two attempts */
        " kept_for INTEGER NOT NULL DEFAULT 0,"
        /* price and cost of a reserved node, as in instances */
        " price_uusd_h INTEGER NOT NULL,"
        " on_demand_uusd_h INTEGER NOT NULL,"
        " priced_at INTEGER,"
        " accrued_uusd INTEGER NOT NULL DEFAULT 0,"
        " attempts_uusd INTEGER NOT NULL DEFAULT 0,"
        " attempts_ms INTEGER NOT NULL DEFAULT 0,"
        " idle_uusd INTEGER NOT NULL DEFAULT 0,"
        " idle_ms INTEGER NOT NULL DEFAULT 0,"
        " used_until INTEGER,"
        " settled_at INTEGER"
    ") STRICT;"
    "CREATE INDEX nodes_live ON nodes (id) WHERE state <> 'gone';"
    "CREATE INDEX nodes_gone ON nodes (gone_at) WHERE state = 'gone';"

    /* Jobs that failed in a row on a live node soon after their start; place 0 is the oldest. */
    "CREATE TABLE node_failures ("
        " node INTEGER NOT NULL,"
        " place INTEGER NOT NULL,"
        /* the job, or the array of a task */
        " of_job INTEGER NOT NULL,"
        /* the job, or the task that failed last, and the retries that it used for that */
        " job INTEGER NOT NULL,"
        " retries INTEGER NOT NULL,"
        " user TEXT NOT NULL,"
        " at INTEGER,"
        " PRIMARY KEY (node, place)"
    ") STRICT, WITHOUT ROWID;"

    /* What a job asks for and what became of it. An option has a column only if jobs are searched
     * by it or a start reads it of most jobs; all others are in `spec`, so that a new one needs no
     * step here. Columns that are empty in most rows (RARE in columns.c) come last: a start reads a
     * row that has `plain` = 1 only up to that column. */
    "CREATE TABLE jobs ("
        " id INTEGER PRIMARY KEY,"
        /* JSON: its options that differ from the default and have no column (job/spec_json.h) */
        " spec TEXT,"
        " name TEXT NOT NULL,"
        " user TEXT NOT NULL,"
        " team TEXT NOT NULL DEFAULT '',"
        " qos TEXT NOT NULL DEFAULT '',"
        " pool TEXT NOT NULL,"
        " state TEXT NOT NULL,"
        /* the demand */
        " cpus INTEGER NOT NULL,"
        " gpus INTEGER NOT NULL,"
        " memory_mib INTEGER NOT NULL,"
        " nodes INTEGER NOT NULL DEFAULT 1,"
        " nodes_min INTEGER NOT NULL DEFAULT 1,"
        " time_limit_ms INTEGER NOT NULL,"
        " market TEXT NOT NULL,"
        " constraints INTEGER NOT NULL DEFAULT 0,"
        /* how it is saved, and the key by which a drill certifies its script */
        " method TEXT NOT NULL,"
        " script_key TEXT NOT NULL DEFAULT '',"
        /* eligible_at determines its position in the queue */
        " submitted_at INTEGER,"
        " eligible_at INTEGER,"
        /* 1: all columns below are empty. 0, the default: read the whole row. Rows that are
         * edited by hand keep or get 0 */
        " plain INTEGER NOT NULL DEFAULT 0,"
        /* the number of the newest attempt, and how the last one ended */
        " attempts INTEGER NOT NULL,"
        " started_at INTEGER,"
        " ended_at INTEGER,"
        " end_kind TEXT NOT NULL,"
        " exit_code INTEGER NOT NULL,"
        " reclaims INTEGER NOT NULL,"
        /* gangs: ranks of the newest attempt, and how it will count */
        " ranks INTEGER NOT NULL DEFAULT 1,"
        " gang_end TEXT NOT NULL DEFAULT 'none',"
        " gang_code INTEGER NOT NULL DEFAULT 0,"
        " gang_resize_until INTEGER,"
        /* retries that were used */
        " used_failed INTEGER NOT NULL,"
        " used_timeout INTEGER NOT NULL DEFAULT 0,"
        " used_node_lost INTEGER NOT NULL,"
        " used_reclaimed INTEGER NOT NULL DEFAULT 0,"
        " used_evicted INTEGER NOT NULL DEFAULT 0,"
        " used_drained INTEGER NOT NULL DEFAULT 0,"
        " used_checkpointed INTEGER NOT NULL,"
        /* attempts in a row that ended at once, or made no progress */
        " quick_ends INTEGER NOT NULL DEFAULT 0,"
        " no_progress INTEGER NOT NULL DEFAULT 0,"
        " no_progress_last INTEGER NOT NULL DEFAULT 0,"
        " best_progress INTEGER,"
        /* the newest good checkpoint, and what saves take */
        " last_good_attempt INTEGER NOT NULL,"
        " last_good_sequence INTEGER NOT NULL,"
        " last_good_progress INTEGER,"
        " last_good_at INTEGER,"
        " ckpt_bytes INTEGER NOT NULL,"
        " save_ms INTEGER NOT NULL,"
        " pause_ms INTEGER NOT NULL DEFAULT 0,"
        /* checkpoints before this attempt are not used (release --from-scratch) */
        " from_attempt INTEGER NOT NULL DEFAULT 0,"
        /* progress, and work that was lost */
        " progress INTEGER,"
        " progress_total INTEGER,"
        " lost_ms INTEGER NOT NULL,"
        " lost_steps INTEGER NOT NULL,"
        /* what it cost, and what it would have cost on on-demand */
        " cost_uusd INTEGER NOT NULL,"
        " on_demand_uusd INTEGER NOT NULL,"
        /* --finish-by: the work done, and the state and cost of the Uniform Progress baseline */
        " done_ms INTEGER NOT NULL DEFAULT 0,"
        " shown_ms INTEGER NOT NULL DEFAULT 0,"
        " procurement TEXT NOT NULL DEFAULT 'free',"
        " baseline_at_ms INTEGER NOT NULL DEFAULT 0,"
        " baseline_done_ms INTEGER NOT NULL DEFAULT 0,"
        " baseline_starting_ms INTEGER NOT NULL DEFAULT 0,"
        " baseline_on INTEGER NOT NULL DEFAULT 0,"
        " baseline_last INTEGER NOT NULL DEFAULT 0,"
        " baseline_price_uusd_h INTEGER NOT NULL DEFAULT 0,"
        " baseline_paid_uusd INTEGER NOT NULL DEFAULT 0,"
        " job_price_uusd_h INTEGER NOT NULL DEFAULT 0,"
        " job_paid_uusd INTEGER NOT NULL DEFAULT 0,"
        /* what keeps it from being eligible */
        " hold TEXT NOT NULL DEFAULT 'none',"
        " evicted_at INTEGER,"
        /* where it comes from */
        " cron INTEGER NOT NULL DEFAULT 0,"
        " cron_at INTEGER,"
        " cron_dated INTEGER NOT NULL DEFAULT 0,"
        " array_id INTEGER NOT NULL DEFAULT 0,"
        " array_index INTEGER NOT NULL DEFAULT 0,"
        /* drills that were begun; notifications of its time limit */
        " drills INTEGER NOT NULL DEFAULT 0,"
        " warned INTEGER NOT NULL DEFAULT 0,"
        " idle_gpus_told_at INTEGER"
    ") STRICT;"
    "CREATE INDEX jobs_live ON jobs (id) WHERE state <> 'ended';"
    /* The list of one user's jobs. */
    "CREATE INDEX jobs_user ON jobs (user);"
    "CREATE INDEX jobs_user_live ON jobs (user) WHERE state <> 'ended';"
    /* Which constraints are still in use. */
    "CREATE INDEX jobs_constraints ON jobs (constraints)"
    " WHERE constraints <> 0 AND state <> 'ended';"
    /* Which constraints no job has any more (prune.c). */
    "CREATE INDEX jobs_constraints_any ON jobs (constraints) WHERE constraints <> 0;"
    /* The tasks of an array. */
    "CREATE INDEX jobs_tasks ON jobs (array_id, array_index) WHERE array_id <> 0;"
    /* Jobs that ended last, or since a given time. */
    "CREATE INDEX jobs_ended ON jobs (ended_at) WHERE state = 'ended';"

    /* The script of a job and what else starts it: read once per start. */
    "CREATE TABLE job_specs ("
        " job INTEGER PRIMARY KEY,"
        " script TEXT,"
        " args_json TEXT,"
        " env_json TEXT,"
        " cwd TEXT,"
        " labels_json TEXT,"
        " launch_json TEXT,"
        " notify_json TEXT"
    ") STRICT;"

    /* The options that no decision reads (job/attributes.h), of jobs where one differs from its
     * default. */
    "CREATE TABLE job_documents ("
        " job INTEGER PRIMARY KEY,"
        " json TEXT NOT NULL"
    ") STRICT;"

    /* Labels one by one, for selections, and as sets, for sums. Each set is stored once. */
    "CREATE TABLE job_labels ("
        " job INTEGER NOT NULL,"
        " name TEXT NOT NULL,"
        " value TEXT NOT NULL,"
        " PRIMARY KEY (job, name)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE label_sets ("
        " id INTEGER PRIMARY KEY,"
        " labels_json TEXT NOT NULL UNIQUE"
    ") STRICT;"

    "CREATE TABLE job_label_sets ("
        " job INTEGER PRIMARY KEY,"
        " labels INTEGER NOT NULL"
    ") STRICT;"

    /* The working directory that was uploaded with a job: kept while a job names its hash. */
    "CREATE TABLE job_workdirs ("
        " job INTEGER PRIMARY KEY,"
        " hash TEXT NOT NULL"
    ") STRICT;"
    /* Lookup of whether an uploaded directory is still in use. */
    "CREATE INDEX job_workdirs_hash ON job_workdirs (hash);"

    /* Constraints of jobs, as text. Jobs with the same ones share a row. */
    "CREATE TABLE constraints ("
        " id INTEGER PRIMARY KEY,"
        " text TEXT NOT NULL"
    ") STRICT;"

    /* Tasks of an array that have no job of their own yet, and how many have ended. */
    "CREATE TABLE arrays ("
        " job INTEGER PRIMARY KEY,"
        " tasks TEXT NOT NULL,"
        " tasks_left TEXT NOT NULL,"
        " at_once INTEGER NOT NULL,"
        " n_succeeded INTEGER NOT NULL,"
        " n_other INTEGER NOT NULL,"
        " end_kind TEXT NOT NULL,"
        " exit_code INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE dependencies ("
        " job INTEGER NOT NULL,"
        " on_job INTEGER NOT NULL,"
        " kind TEXT NOT NULL,"
        " of_task INTEGER NOT NULL,"
        " task INTEGER NOT NULL,"
        " delay_ms INTEGER NOT NULL,"
        " state TEXT NOT NULL,"
        " PRIMARY KEY (job, on_job, kind, of_task, task)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX dependencies_open ON dependencies (job) WHERE state IN ('waits', 'never');"
    /* Which jobs depend on one that is old enough to be deleted. */
    "CREATE INDEX dependencies_on ON dependencies (on_job);"
    /* Task-by-task dependencies of arrays. */
    "CREATE INDEX dependencies_of_tasks ON dependencies (job, on_job) WHERE kind = 'aftercorr';"

    /* One row for each node (rank) of an attempt. */
    "CREATE TABLE attempts ("
        " job INTEGER NOT NULL,"
        " attempt INTEGER NOT NULL,"
        " rank INTEGER NOT NULL,"
        " node INTEGER NOT NULL,"
        " state TEXT NOT NULL,"
        /* how it ended, or will: stop_reason and save_first while it is being stopped */
        " end_kind TEXT NOT NULL,"
        " stop_reason TEXT NOT NULL,"
        " save_first INTEGER NOT NULL,"
        " exit_code INTEGER NOT NULL,"
        " text TEXT NOT NULL,"
        /* its life; gathered_at: when the last rank of its gang had started */
        " assigned_at INTEGER,"
        " started_at INTEGER,"
        " gathered_at INTEGER,"
        " ended_at INTEGER,"
        " requeue_asked_at INTEGER,"
        " gpus_idle_since INTEGER,"
        /* what it resumed from */
        " restored_attempt INTEGER NOT NULL,"
        " restored_sequence INTEGER NOT NULL,"
        " restored_progress INTEGER,"
        " restored_bytes INTEGER NOT NULL,"
        " nearby_bytes INTEGER NOT NULL,"
        " restore_ms INTEGER NOT NULL,"
        /* its own checkpoints */
        " sequence INTEGER NOT NULL,"
        " kept_at INTEGER,"
        " saves_asked INTEGER NOT NULL,"
        " save_ms INTEGER NOT NULL,"
        " warm_up_ms INTEGER NOT NULL DEFAULT 0,"
        " behind_ms INTEGER NOT NULL,"
        /* the node's price at the start, and the node's cost so far at each step of the attempt */
        " price_uusd_h INTEGER NOT NULL,"
        " on_demand_uusd_h INTEGER NOT NULL,"
        " base_uusd INTEGER NOT NULL,"
        " started_uusd INTEGER NOT NULL,"
        " gathered_uusd INTEGER NOT NULL,"
        " kept_uusd INTEGER NOT NULL,"
        " save_uusd INTEGER NOT NULL,"
        " egress_uusd INTEGER NOT NULL,"
        /* what its processes used */
        " cpu_ms INTEGER NOT NULL,"
        " cpu_user_ms INTEGER NOT NULL,"
        " memory_peak INTEGER NOT NULL,"
        " PRIMARY KEY (job, attempt, rank)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX attempts_live ON attempts (job) WHERE state <> 'ended';"
    /* Whether an attempt names a node that is old enough to be deleted. */
    "CREATE INDEX attempts_node ON attempts (node);"

    /* Committed checkpoints: a row is never replaced. */
    "CREATE TABLE checkpoints ("
        " job INTEGER NOT NULL,"
        " attempt INTEGER NOT NULL,"
        " sequence INTEGER NOT NULL,"
        " node INTEGER NOT NULL,"
        " saved_at INTEGER,"
        " bytes INTEGER NOT NULL,"
        " stored_bytes INTEGER NOT NULL,"
        " took_ms INTEGER NOT NULL,"
        " pause_ms INTEGER NOT NULL DEFAULT 0,"
        " progress INTEGER,"
        " cause TEXT NOT NULL,"
        " PRIMARY KEY (job, attempt, sequence)"
    ") STRICT, WITHOUT ROWID;"

    /* Size and cost of the checkpoints of a job in the store. */
    "CREATE TABLE stored ("
        " job INTEGER PRIMARY KEY,"
        " bytes INTEGER NOT NULL,"
        " at INTEGER,"
        " settled_at INTEGER,"
        " parts INTEGER NOT NULL,"
        " uusd INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX stored_live ON stored (job) WHERE bytes > 0;"

    /* Checkpoints that are still to be removed after a job's end. */
    "CREATE TABLE ckpt_gc ("
        " job INTEGER PRIMARY KEY,"
        " state TEXT NOT NULL,"
        " after TEXT NOT NULL,"
        " succeeded INTEGER NOT NULL,"
        " closed INTEGER NOT NULL,"
        " due_at INTEGER,"
        " last_at INTEGER,"
        " tries INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX ckpt_gc_live ON ckpt_gc (job) WHERE state <> 'done';"

    /* Drills: a job was stopped on purpose, to see whether it resumes. */
    "CREATE TABLE drills ("
        " job INTEGER NOT NULL,"
        " number INTEGER NOT NULL,"
        " script_key TEXT NOT NULL,"
        " user TEXT NOT NULL,"
        " name TEXT NOT NULL,"
        " method TEXT NOT NULL,"
        " method_version INTEGER NOT NULL,"
        " version TEXT NOT NULL,"
        " state TEXT NOT NULL,"
        " without_notice INTEGER NOT NULL,"
        " avoids INTEGER NOT NULL,"
        " asked_by TEXT NOT NULL,"
        /* the attempt that is stopped */
        " attempt INTEGER NOT NULL,"
        " node INTEGER NOT NULL,"
        " before_sequence INTEGER NOT NULL,"
        /* its life */
        " asked_at INTEGER,"
        " killed_at INTEGER,"
        " resumed_at INTEGER,"
        " ended_at INTEGER,"
        /* the checkpoint from which it must resume */
        " saved_attempt INTEGER NOT NULL,"
        " saved_sequence INTEGER NOT NULL,"
        " saved_progress INTEGER,"
        " bytes INTEGER NOT NULL,"
        " save_ms INTEGER NOT NULL,"
        " lost_ms INTEGER NOT NULL,"
        " lost_steps INTEGER,"
        /* the result */
        " resumed_attempt INTEGER NOT NULL,"
        " resumed_node INTEGER NOT NULL,"
        " restore_ms INTEGER NOT NULL,"
        " progress INTEGER,"
        " resume_ms INTEGER NOT NULL,"
        " compared_with INTEGER NOT NULL,"
        " text TEXT NOT NULL,"
        " PRIMARY KEY (job, number)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX drills_live ON drills (job) WHERE state IN ('stopping', 'queued', 'resumed');"
    /* The newest drill of a script that has a result. */
    "CREATE INDEX drills_key ON drills (script_key, ended_at) WHERE state IN ('passed', 'failed');"
    /* The list of drills. */
    "CREATE INDEX drills_asked ON drills (asked_at);"

    /* The decayed usage of each user as a member of a team, for the shares. */
    "CREATE TABLE accounts ("
        " team TEXT NOT NULL,"
        " user TEXT NOT NULL,"
        " used INTEGER NOT NULL,"
        " used_at INTEGER,"
        " PRIMARY KEY (team, user)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE budgets ("
        " name TEXT NOT NULL PRIMARY KEY,"
        " about TEXT NOT NULL,"
        " since INTEGER,"
        " until_at INTEGER,"
        " booked_uusd INTEGER NOT NULL,"
        " cap_uusd INTEGER NOT NULL,"
        " alerted INTEGER NOT NULL,"
        " is_closed INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    /* Cron entries, what they submit, and what became of each time. */
    "CREATE TABLE crons ("
        " id INTEGER PRIMARY KEY,"
        " name TEXT NOT NULL,"
        " user TEXT NOT NULL,"
        " state TEXT NOT NULL,"
        " schedule TEXT NOT NULL,"
        " zone TEXT NOT NULL,"
        /* times that do not exist or come twice; runs that overlap or were missed */
        " gap TEXT NOT NULL,"
        " twice TEXT NOT NULL,"
        " overlap TEXT NOT NULL,"
        " catch_up TEXT NOT NULL,"
        " catch_up_max INTEGER NOT NULL,"
        /* the job's script_key, and the last and next times */
        " script_key TEXT NOT NULL,"
        " created_at INTEGER,"
        " next_at INTEGER,"
        " decided_at INTEGER,"
        " last_job INTEGER NOT NULL,"
        " waiting TEXT NOT NULL,"
        /* counts since it was created */
        " runs INTEGER NOT NULL,"
        " started INTEGER NOT NULL,"
        " skipped INTEGER NOT NULL,"
        " missed INTEGER NOT NULL,"
        /* the entry that it runs after, how that has to end, and from when */
        " after INTEGER NOT NULL DEFAULT 0,"
        " after_end TEXT NOT NULL DEFAULT 'well',"
        " follows_from INTEGER,"
        /* calendars */
        " skip_on TEXT NOT NULL DEFAULT '',"
        " only_on TEXT NOT NULL DEFAULT '',"
        /* until when a run is to be done; what is known of the last runs */
        " done_by INTEGER NOT NULL DEFAULT 0,"
        " checked_at INTEGER,"
        " done_at INTEGER,"
        " undone_at INTEGER,"
        " undone TEXT NOT NULL DEFAULT ''"
    ") STRICT;"
    "CREATE INDEX crons_live ON crons (id) WHERE state <> 'removed';"

    /* When the last morning digest was sent (user ''), and which users get it. */
    "CREATE TABLE digests ("
        " user TEXT NOT NULL PRIMARY KEY,"
        " told_until INTEGER,"
        " mail TEXT NOT NULL,"
        /* sealed */
        " url TEXT NOT NULL DEFAULT '',"
        " url_format TEXT NOT NULL DEFAULT 'json'"
    ") STRICT, WITHOUT ROWID;"

    /* The last day on which it was notified that more is spent than usual. */
    "CREATE TABLE anomalies ("
        " subject TEXT NOT NULL,"
        /* 'user', 'team' or 'pool' */
        " spend_of TEXT NOT NULL,"
        /* the begin of the UTC day */
        " day INTEGER,"
        " uusd INTEGER NOT NULL,"
        " usual_uusd INTEGER NOT NULL,"
        " weeks INTEGER NOT NULL,"
        " PRIMARY KEY (subject, spend_of)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE cron_jobs ("
        " cron INTEGER PRIMARY KEY,"
        " job_json TEXT"
    ") STRICT;"

    "CREATE TABLE cron_runs ("
        " cron INTEGER NOT NULL,"
        " number INTEGER NOT NULL,"
        " at INTEGER,"
        " by_hand INTEGER NOT NULL,"
        " outcome TEXT NOT NULL,"
        " times INTEGER NOT NULL,"
        " job INTEGER NOT NULL,"
        " decided_at INTEGER,"
        " text TEXT NOT NULL,"
        " PRIMARY KEY (cron, number)"
    ") STRICT, WITHOUT ROWID;"
    /* Makes a transaction fail that decides twice on one time of a schedule. */
    "CREATE UNIQUE INDEX cron_runs_at ON cron_runs (cron, at) WHERE by_hand = 0;"
    /* Whether a time was run for because a user asked for its date. */
    "CREATE INDEX cron_runs_by_hand ON cron_runs (cron, at) WHERE by_hand = 1;"
    /* What was decided in a night. */
    "CREATE INDEX cron_runs_decided ON cron_runs (decided_at);"

    /* Reservations of nodes for maintenance that are not over. */
    "CREATE TABLE reservations ("
        " id INTEGER PRIMARY KEY,"
        " name TEXT NOT NULL,"
        " state TEXT NOT NULL,"
        /* a list of nodes, or a pool; and whose jobs may run there meanwhile */
        " nodes TEXT NOT NULL,"
        " pool TEXT NOT NULL,"
        " users TEXT NOT NULL,"
        " teams TEXT NOT NULL,"
        " reason TEXT NOT NULL,"
        " made_by TEXT NOT NULL,"
        " created_at INTEGER,"
        /* of its current or next time, and whether it is repeated each week in that zone */
        " from_at INTEGER,"
        " for_ms INTEGER NOT NULL,"
        " is_weekly INTEGER NOT NULL,"
        " zone TEXT NOT NULL"
    ") STRICT;"

    /* Calendars of cron entries that operators set. */
    "CREATE TABLE calendars ("
        " name TEXT NOT NULL PRIMARY KEY,"
        " days TEXT,"
        " set_by TEXT NOT NULL,"
        " set_at INTEGER"
    ") STRICT, WITHOUT ROWID;"

    /* The history. The meaning of a and b depends on the kind (history_kinds). */
    "CREATE TABLE history ("
        " id INTEGER PRIMARY KEY,"
        " job INTEGER NOT NULL,"
        " attempt INTEGER NOT NULL,"
        " node INTEGER NOT NULL,"
        " instance INTEGER NOT NULL,"
        " at INTEGER,"
        " kind TEXT NOT NULL,"
        " text TEXT NOT NULL,"
        " a INTEGER NOT NULL,"
        " b INTEGER NOT NULL"
    ") STRICT;"
    /* The timeline of a job. */
    "CREATE INDEX history_job ON history (job);"

    /* Use and cost of every interval of paid time. Rows are never changed. */
    "CREATE TABLE ledger ("
        " job INTEGER NOT NULL,"
        " attempt INTEGER NOT NULL,"
        " node INTEGER NOT NULL,"
        " instance INTEGER NOT NULL,"
        " kind TEXT NOT NULL,"
        " from_at INTEGER,"
        " to_at INTEGER,"
        " ms INTEGER NOT NULL,"
        " node_ms INTEGER NOT NULL DEFAULT 0,"
        " uusd INTEGER NOT NULL,"
        " on_demand_uusd INTEGER NOT NULL"
    ") STRICT;"
    /* What one job cost. */
    "CREATE INDEX ledger_job ON ledger (job);"
    /* What a period cost. */
    "CREATE INDEX ledger_to ON ledger (to_at);"
    /* Boot and idle time that is old enough to be deleted. */
    "CREATE INDEX ledger_no_job ON ledger (to_at) WHERE job = 0;"

    /* The ledger by day and month (rollup.c). */
    "CREATE TABLE cost_sums ("
        /* 1: a day, 31: a month */
        " span INTEGER NOT NULL,"
        /* bits, what has rows of its own besides kinds: 1 people, 2 machines, 4 sets of labels;
         * the market of idle time has its own in any case */
        " detail INTEGER NOT NULL,"
        /* its first day: days since 1970, UTC */
        " since INTEGER NOT NULL,"
        /* 0 or empty where `detail` lacks the bit */
        " labels INTEGER NOT NULL,"
        " team TEXT NOT NULL,"
        " user TEXT NOT NULL,"
        " pool TEXT NOT NULL,"
        " type TEXT NOT NULL,"
        " market TEXT NOT NULL,"
        /* '' in the rows that count ended jobs */
        " kind TEXT NOT NULL,"
        /* the sums; ended and succeeded: numbers of jobs */
        " ms INTEGER NOT NULL,"
        " node_ms INTEGER NOT NULL,"
        " uusd INTEGER NOT NULL,"
        " on_demand_uusd INTEGER NOT NULL,"
        " ended INTEGER NOT NULL,"
        " succeeded INTEGER NOT NULL,"
        " PRIMARY KEY (span, detail, since, labels, team, user, pool, type, market, kind)"
    ") STRICT, WITHOUT ROWID;"

    /* What the retention has deleted (prune.c). Ranges of jobs, with the time of the last one and
     * the age at which they were deleted. */
    "CREATE TABLE deleted_jobs ("
        " first INTEGER PRIMARY KEY,"
        " last INTEGER NOT NULL,"
        " at INTEGER NOT NULL,"
        " age_ms INTEGER NOT NULL"
    ") STRICT;"

    /* The sums of the ledger's deleted rows and of the deleted jobs: with the rows that are left
     * they add up to cost_sums. */
    "CREATE TABLE deleted_costs ("
        " labels INTEGER NOT NULL,"
        " team TEXT NOT NULL,"
        " user TEXT NOT NULL,"
        " pool TEXT NOT NULL,"
        " market TEXT NOT NULL,"
        " kind TEXT NOT NULL,"
        " ms INTEGER NOT NULL,"
        " node_ms INTEGER NOT NULL,"
        " uusd INTEGER NOT NULL,"
        " on_demand_uusd INTEGER NOT NULL,"
        " ended INTEGER NOT NULL,"
        " succeeded INTEGER NOT NULL,"
        " PRIMARY KEY (labels, team, user, pool, market, kind)"
    ") STRICT, WITHOUT ROWID;"

    /* The same for each machine that still has a row. */
    "CREATE TABLE deleted_machine_costs ("
        " node INTEGER NOT NULL,"
        " instance INTEGER NOT NULL,"
        " uusd INTEGER NOT NULL,"
        " attempts_uusd INTEGER NOT NULL,"
        " node_ms INTEGER NOT NULL,"
        " PRIMARY KEY (node, instance)"
    ") STRICT, WITHOUT ROWID;"

    /* Up to when rows may be missing: of the ledger and machines ('ledger'), of cost_sums by day
     * ('days'). */
    "CREATE TABLE retention_cuts ("
        " what TEXT NOT NULL PRIMARY KEY,"
        " at INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    /* Notifications that are not delivered yet. */
    "CREATE TABLE outbox ("
        " event INTEGER NOT NULL,"
        " target TEXT NOT NULL,"
        " kind TEXT NOT NULL,"
        " user TEXT NOT NULL,"
        " at INTEGER,"
        " due_at INTEGER,"
        " tries INTEGER NOT NULL,"
        /* of a job */
        " job INTEGER NOT NULL,"
        " attempt INTEGER NOT NULL,"
        " end_kind TEXT NOT NULL,"
        " exit_code INTEGER NOT NULL,"
        /* of a budget or a pool */
        " budget TEXT NOT NULL,"
        " pool TEXT NOT NULL DEFAULT '',"
        " pct INTEGER NOT NULL,"
        " spent_uusd INTEGER NOT NULL,"
        " cap_uusd INTEGER NOT NULL,"
        /* of a cron entry */
        " cron INTEGER NOT NULL DEFAULT 0,"
        " cron_at INTEGER,"
        " done_by INTEGER,"
        " text TEXT NOT NULL DEFAULT '',"
        /* of a job with idle GPUs */
        " idle_since INTEGER,"
        " parks_at INTEGER,"
        /* of a drained node */
        " node TEXT NOT NULL DEFAULT '',"
        " jobs TEXT NOT NULL DEFAULT '',"
        /* of a morning digest */
        " digest_from INTEGER,"
        " digest_to INTEGER,"
        /* of a day on which more is spent than usual */
        " spend_of TEXT NOT NULL DEFAULT 'none',"
        " subject TEXT NOT NULL DEFAULT '',"
        " day INTEGER,"
        " PRIMARY KEY (event, target)"
    ") STRICT, WITHOUT ROWID;"

    /* Telemetry of tasks and GPUs, thinned out as it ages. */
    "CREATE TABLE task_loads ("
        " job INTEGER NOT NULL,"
        " attempt INTEGER NOT NULL,"
        " rank INTEGER NOT NULL,"
        " span_ms INTEGER NOT NULL,"
        " at INTEGER NOT NULL,"
        " node INTEGER NOT NULL,"
        " ms INTEGER NOT NULL,"
        /* processor and waiting */
        " cpu_ms INTEGER NOT NULL,"
        " busiest_ms INTEGER NOT NULL,"
        " blocked_ms INTEGER NOT NULL,"
        " stall_ms INTEGER NOT NULL,"
        " waited_ms INTEGER NOT NULL,"
        /* memory */
        " memory_bytes INTEGER NOT NULL,"
        " swap_bytes INTEGER NOT NULL,"
        " faults INTEGER NOT NULL,"
        " refaults INTEGER NOT NULL,"
        /* input and output */
        " read_bytes INTEGER NOT NULL,"
        " write_bytes INTEGER NOT NULL,"
        " net_in_bytes INTEGER NOT NULL,"
        " net_out_bytes INTEGER NOT NULL,"
        " net_is_nodes INTEGER NOT NULL,"
        " link_bytes_s INTEGER NOT NULL,"
        /* the whole node */
        " node_cpus INTEGER NOT NULL,"
        " node_cpu_ms INTEGER NOT NULL,"
        " node_iowait_ms INTEGER NOT NULL,"
        " node_swapped_bytes INTEGER NOT NULL,"
        " PRIMARY KEY (job, attempt, rank, span_ms, at)"
    ") STRICT, WITHOUT ROWID;"
    /* Telemetry that is old enough to be thinned. */
    "CREATE INDEX task_loads_age ON task_loads (span_ms, at);"

    "CREATE TABLE gpu_loads ("
        " job INTEGER NOT NULL,"
        " attempt INTEGER NOT NULL,"
        " node INTEGER NOT NULL,"
        " gpu TEXT NOT NULL,"
        " span_ms INTEGER NOT NULL,"
        " at INTEGER NOT NULL,"
        " gpu_index INTEGER NOT NULL,"
        " is_slice INTEGER NOT NULL,"
        " ms INTEGER NOT NULL,"
        " known_ms INTEGER NOT NULL,"
        " busy_ms INTEGER NOT NULL,"
        " processes INTEGER NOT NULL,"
        " memory_bytes INTEGER NOT NULL,"
        " memory_total_bytes INTEGER NOT NULL,"
        " energy_mj INTEGER NOT NULL,"
        " power_limit_mw INTEGER NOT NULL,"
        " temperature_c INTEGER NOT NULL,"
        " clock_permille_ms INTEGER NOT NULL,"
        /* time throttled by heat, by power, or for another reason */
        " thermal_ms INTEGER NOT NULL,"
        " power_ms INTEGER NOT NULL,"
        " slowed_ms INTEGER NOT NULL,"
        /* memory errors */
        " ecc_corrected INTEGER NOT NULL,"
        " ecc_uncorrected INTEGER NOT NULL,"
        " PRIMARY KEY (job, attempt, node, gpu, span_ms, at)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX gpu_loads_age ON gpu_loads (span_ms, at);"

    /* Secrets of users (scheduler/secrets/store.h). The value is sealed. */
    "CREATE TABLE secrets ("
        " owner TEXT NOT NULL,"
        " name TEXT NOT NULL,"
        " sealed TEXT,"
        " bytes INTEGER NOT NULL,"
        /* who may use it besides its owner: "user:NAME", "team:NAME", "pool:NAME", with blanks */
        " grants TEXT NOT NULL,"
        " set_at INTEGER,"
        " set_by TEXT NOT NULL,"
        " PRIMARY KEY (owner, name)"
    ") STRICT, WITHOUT ROWID;"

    /* Calls that change something: append-only, chained by hashes (audit_log.h). */
    "CREATE TABLE audit_log ("
        " seq INTEGER PRIMARY KEY,"
        " at INTEGER,"
        " request TEXT NOT NULL,"
        " user TEXT NOT NULL,"
        " source TEXT NOT NULL,"
        " route TEXT NOT NULL,"
        " object TEXT NOT NULL,"
        " result TEXT NOT NULL,"
        " hash TEXT NOT NULL"
    ") STRICT;"

    /* API tokens, and one-use join tokens of nodes; only their hashes are stored. */
    "CREATE TABLE tokens ("
        " id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,"
        " is_join INTEGER NOT NULL,"
        " user TEXT NOT NULL,"
        " admin INTEGER NOT NULL,"
        " pool TEXT NOT NULL,"
        " created_at INTEGER, expires_at INTEGER, used_at INTEGER,"
        " key_hash TEXT NOT NULL,"
        " revoked INTEGER NOT NULL,"
        /* what limits an API token; '' = nothing does */
        " role TEXT NOT NULL DEFAULT '', scope TEXT NOT NULL DEFAULT '',"
        /* of a sign-in: then the role and the teams are what groups of the provider give */
        " is_login INTEGER NOT NULL DEFAULT 0, teams TEXT NOT NULL DEFAULT '',"
        /* of a browser's session: parent is the token that it came from, 0 = none */
        " is_session INTEGER NOT NULL DEFAULT 0, parent INTEGER NOT NULL DEFAULT 0"
    ") STRICT;"
    /* Those that are old enough to be deleted. */
    "CREATE INDEX tokens_expire ON tokens (expires_at);";
/* clang-format on */

/* None yet. */
static const char *const steps[] = {NULL};

const struct schema belay_schema = {.baseline = baseline, .steps = steps};
_Static_assert(
    sizeof(steps) / sizeof(steps[0]) == DB_SCHEMA_VERSION, "one step for each version after 1");
