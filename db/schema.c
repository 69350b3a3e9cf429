/* SPDX-License-Identifier: Apache-2.0
 *
 * Migrations: migrations[v - 1] takes the schema from v - 1 to v. A text that was released is never
 * changed; a new version is a new text that states the difference. tests/db keeps a copy of each
 * released schema.
 *
 * An index exists because a named statement needs it:
 *   *_live          recovery and the lists of what is there: what has ended costs nothing
 *   jobs_user*      the list of one user's jobs
 *   jobs_ended      the list of those that ended last, or since a moment
 *   history_job     the timeline of a job
 *   ledger_job      what one job cost
 *   ledger_to       what a period cost
 *   drills_key      the newest drill of a script that says something
 *   drills_asked    the list of drills
 *   *_loads_age     telemetry that is old enough to go
 *   cron_runs_at    no time of a schedule is decided on twice: the transaction that would fails
 */
#include "db/schema.h"

#include "base/prng.h"
#include "db/conn.h"
#include "db/rollup.h"
#include <stdio.h>

/* clang-format off */
static const char schema_1[] =
    "CREATE TABLE meta ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " belay_version TEXT NOT NULL," /* that made or last migrated the file */
    " cluster_uid TEXT NOT NULL,"
    " secret TEXT NOT NULL,"
    " boots INTEGER NOT NULL DEFAULT 0,"
    " next_job INTEGER NOT NULL DEFAULT 1,"
    " next_node INTEGER NOT NULL DEFAULT 1,"
    " next_instance INTEGER NOT NULL DEFAULT 1,"
    " next_history INTEGER NOT NULL DEFAULT 1,"
    " next_offer INTEGER NOT NULL DEFAULT 1"
    ") STRICT;"

    "CREATE TABLE pools ("
    " name TEXT NOT NULL PRIMARY KEY,"
    " elastic INTEGER NOT NULL,"
    " provider TEXT NOT NULL,"
    " region TEXT NOT NULL,"
    " max_nodes INTEGER NOT NULL,"
    " idle_timeout_ms INTEGER NOT NULL,"
    " cooldown_ms INTEGER NOT NULL,"
    " boot_timeout_ms INTEGER NOT NULL,"
    " refusal_backoff_ms INTEGER NOT NULL,"
    " usd_per_hour_uusd INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE offers ("
    " id INTEGER PRIMARY KEY,"
    " pool TEXT NOT NULL,"
    " zone TEXT NOT NULL,"
    " type TEXT NOT NULL,"
    " market TEXT NOT NULL,"
    " rank INTEGER NOT NULL,"
    " cpus INTEGER NOT NULL,"
    " gpus INTEGER NOT NULL,"
    " memory_mib INTEGER NOT NULL,"
    " price_uusd_h INTEGER NOT NULL,"
    " on_demand_uusd_h INTEGER NOT NULL,"
    " launches INTEGER NOT NULL,"
    " refusals INTEGER NOT NULL,"
    " reclaims INTEGER NOT NULL,"
    " refused_in_a_row INTEGER NOT NULL,"
    " up_ms INTEGER NOT NULL"
    ") STRICT;"

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
    " price_uusd_h INTEGER NOT NULL,"
    " on_demand_uusd_h INTEGER NOT NULL,"
    " intended_at INTEGER,"
    " launched_at INTEGER,"
    " joined_at INTEGER,"
    " ended_at INTEGER,"
    " reclaimed INTEGER NOT NULL,"
    " attempts_uusd INTEGER NOT NULL,"
    " attempts_ms INTEGER NOT NULL,"
    " text TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX instances_live ON instances (id) WHERE state <> 'gone';"

    "CREATE TABLE nodes ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " pool TEXT NOT NULL,"
    " instance INTEGER NOT NULL,"
    " state TEXT NOT NULL,"
    " cpus INTEGER NOT NULL,"
    " gpus INTEGER NOT NULL,"
    " memory_mib INTEGER NOT NULL,"
    " price_uusd_h INTEGER NOT NULL,"
    " on_demand_uusd_h INTEGER NOT NULL,"
    " market TEXT NOT NULL,"
    " notice TEXT NOT NULL,"
    " notice_deadline INTEGER,"
    " joined_at INTEGER,"
    " gone_at INTEGER,"
    " address TEXT NOT NULL,"
    " key_hash TEXT NOT NULL,"
    " version TEXT NOT NULL,"
    " drain INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX nodes_live ON nodes (id) WHERE state <> 'gone';"

    "CREATE TABLE jobs ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " user TEXT NOT NULL,"
    " pool TEXT NOT NULL,"
    " state TEXT NOT NULL,"
    " end_kind TEXT NOT NULL,"
    " exit_code INTEGER NOT NULL,"
    " cpus INTEGER NOT NULL,"
    " gpus INTEGER NOT NULL,"
    " memory_mib INTEGER NOT NULL,"
    " time_limit_ms INTEGER NOT NULL,"
    " market TEXT NOT NULL,"
    " method TEXT NOT NULL,"
    " ckpt_signal INTEGER NOT NULL,"
    " ckpt_every_ms INTEGER NOT NULL,"
    " ckpt_keep INTEGER NOT NULL,"
    " retries_failed INTEGER NOT NULL,"
    " used_failed INTEGER NOT NULL,"
    " used_node_lost INTEGER NOT NULL,"
    " used_checkpointed INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL,"
    " reclaims INTEGER NOT NULL,"
    " submitted_at INTEGER,"
    " started_at INTEGER,"
    " ended_at INTEGER,"
    " last_good_attempt INTEGER NOT NULL,"
    " last_good_sequence INTEGER NOT NULL,"
    " last_good_progress INTEGER,"
    " last_good_at INTEGER,"
    " save_ms INTEGER NOT NULL,"
    " ckpt_bytes INTEGER NOT NULL,"
    " progress INTEGER,"
    " progress_total INTEGER,"
    " lost_ms INTEGER NOT NULL,"
    " lost_steps INTEGER NOT NULL,"
    " cost_uusd INTEGER NOT NULL,"
    " on_demand_uusd INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX jobs_live ON jobs (id) WHERE state <> 'ended';"
    "CREATE INDEX jobs_user ON jobs (user);"
    "CREATE INDEX jobs_user_live ON jobs (user) WHERE state <> 'ended';"

    "CREATE TABLE job_specs ("
    " job INTEGER PRIMARY KEY,"
    " script TEXT,"
    " args_json TEXT,"
    " env_json TEXT,"
    " cwd TEXT,"
    " labels_json TEXT"
    ") STRICT;"

    "CREATE TABLE attempts ("
    " job INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " node INTEGER NOT NULL,"
    " state TEXT NOT NULL,"
    " end_kind TEXT NOT NULL,"
    " stop_reason TEXT NOT NULL,"
    " save_first INTEGER NOT NULL,"
    " exit_code INTEGER NOT NULL,"
    " assigned_at INTEGER,"
    " started_at INTEGER,"
    " ended_at INTEGER,"
    " restored_attempt INTEGER NOT NULL,"
    " restored_sequence INTEGER NOT NULL,"
    " restored_progress INTEGER,"
    " restore_ms INTEGER NOT NULL,"
    " save_ms INTEGER NOT NULL,"
    " sequence INTEGER NOT NULL,"
    " price_uusd_h INTEGER NOT NULL,"
    " on_demand_uusd_h INTEGER NOT NULL,"
    " text TEXT NOT NULL,"
    " PRIMARY KEY (job, attempt)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX attempts_live ON attempts (job) WHERE state <> 'ended';"

    "CREATE TABLE checkpoints ("
    " job INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " sequence INTEGER NOT NULL,"
    " node INTEGER NOT NULL,"
    " saved_at INTEGER,"
    " bytes INTEGER NOT NULL,"
    " stored_bytes INTEGER NOT NULL,"
    " took_ms INTEGER NOT NULL,"
    " progress INTEGER,"
    " cause TEXT NOT NULL,"
    " PRIMARY KEY (job, attempt, sequence)"
    ") STRICT, WITHOUT ROWID;"

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
    "CREATE INDEX history_job ON history (job);"

    "CREATE TABLE ledger ("
    " job INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " node INTEGER NOT NULL,"
    " instance INTEGER NOT NULL,"
    " kind TEXT NOT NULL,"
    " from_at INTEGER,"
    " to_at INTEGER,"
    " ms INTEGER NOT NULL,"
    " uusd INTEGER NOT NULL,"
    " on_demand_uusd INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX ledger_job ON ledger (job);"
    "CREATE INDEX ledger_to ON ledger (to_at);"

    "CREATE TABLE tokens ("
    " id INTEGER PRIMARY KEY,"
    " hash TEXT NOT NULL UNIQUE,"
    " is_join INTEGER NOT NULL,"
    " user TEXT NOT NULL,"
    " admin INTEGER NOT NULL,"
    " pool TEXT NOT NULL,"
    " created_at INTEGER,"
    " expires_at INTEGER,"
    " used_at INTEGER,"
    " key_hash TEXT NOT NULL,"
    " revoked INTEGER NOT NULL"
    ") STRICT;";

/* What an instance has cost is kept stretch by stretch, since prices change while it runs; limits
 * of pools, and what was learned of offers; what jobs that ended have left in the store; drills;
 * jobs of several nodes, of which an attempt has a row for each. */
static const char schema_2[] =
    "ALTER TABLE pools ADD COLUMN max_gpus INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN max_uusd_h INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN min_paid_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN spread_pct INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN return_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN egress_uusd_gib INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN upload_uusd_gib INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN by_price INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN fleet INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE nodes ADD COLUMN criu TEXT NOT NULL DEFAULT 'unknown';"
    "ALTER TABLE nodes ADD COLUMN criu_text TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE offers ADD COLUMN boots INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE offers ADD COLUMN boot_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE offers ADD COLUMN rebalances INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE offers ADD COLUMN rebalances_true INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE instances ADD COLUMN rebalanced INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE instances ADD COLUMN alternatives TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE instances ADD COLUMN priced_at INTEGER;"
    "ALTER TABLE instances ADD COLUMN accrued_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE instances ADD COLUMN boot_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE instances ADD COLUMN used_until INTEGER;"
    "ALTER TABLE instances ADD COLUMN settled_at INTEGER;"
    "ALTER TABLE instances ADD COLUMN idle_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE instances ADD COLUMN idle_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE instances ADD COLUMN before_uusd_h INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE instances ADD COLUMN before_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE instances ADD COLUMN before_at INTEGER;"
    "ALTER TABLE instances ADD COLUMN launch_told INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE ledger ADD COLUMN node_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN ckpt_keep_every INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN ckpt_after TEXT NOT NULL DEFAULT 'auto';"
    "ALTER TABLE jobs ADD COLUMN ckpt_at TEXT NOT NULL DEFAULT '';"
    "CREATE TABLE leftovers ("
    " job INTEGER PRIMARY KEY,"
    " state TEXT NOT NULL,"
    " after TEXT NOT NULL,"
    " succeeded INTEGER NOT NULL,"
    " closed INTEGER NOT NULL,"
    " due_at INTEGER,"
    " last_at INTEGER,"
    " tries INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX leftovers_live ON leftovers (job) WHERE state <> 'done';"
    "CREATE TABLE stored ("
    " job INTEGER PRIMARY KEY,"
    " bytes INTEGER NOT NULL,"
    " at INTEGER,"
    " settled_at INTEGER,"
    " parts INTEGER NOT NULL,"
    " uusd INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX stored_live ON stored (job) WHERE bytes > 0;"
    "ALTER TABLE pools ADD COLUMN require_drill INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN drill_valid_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN criu TEXT NOT NULL DEFAULT 'unknown';"
    "ALTER TABLE pools ADD COLUMN criu_seen TEXT NOT NULL DEFAULT 'unknown';"
    "ALTER TABLE pools ADD COLUMN criu_text TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE pools ADD COLUMN retries TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN script_key TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN drills INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN drill_tries INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN mail INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN urls INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN warned INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN retries_timeout INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN retries_node_lost INTEGER NOT NULL DEFAULT 100;"
    "ALTER TABLE jobs ADD COLUMN retries_reclaimed INTEGER NOT NULL DEFAULT 1000000;"
    "ALTER TABLE jobs ADD COLUMN retries_evicted INTEGER NOT NULL DEFAULT 1000000;"
    "ALTER TABLE jobs ADD COLUMN retries_drained INTEGER NOT NULL DEFAULT 1000000;"
    "ALTER TABLE jobs ADD COLUMN used_timeout INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN used_reclaimed INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN used_evicted INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN used_drained INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE drills ("
    " job INTEGER NOT NULL,"
    " number INTEGER NOT NULL,"
    " script_key TEXT NOT NULL,"
    " user TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " method TEXT NOT NULL,"
    " state TEXT NOT NULL,"
    " without_notice INTEGER NOT NULL,"
    " avoids INTEGER NOT NULL,"
    " asked_by TEXT NOT NULL,"
    " version TEXT NOT NULL,"
    " method_version INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " node INTEGER NOT NULL,"
    " before_sequence INTEGER NOT NULL,"
    " asked_at INTEGER,"
    " killed_at INTEGER,"
    " resumed_at INTEGER,"
    " ended_at INTEGER,"
    " saved_attempt INTEGER NOT NULL,"
    " saved_sequence INTEGER NOT NULL,"
    " saved_progress INTEGER,"
    " bytes INTEGER NOT NULL,"
    " save_ms INTEGER NOT NULL,"
    " lost_ms INTEGER NOT NULL,"
    " lost_steps INTEGER,"
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
    "CREATE INDEX drills_key ON drills (script_key, ended_at) WHERE state IN ('passed', 'failed');"
    "CREATE INDEX drills_asked ON drills (asked_at);"
    "ALTER TABLE jobs ADD COLUMN nodes INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE jobs ADD COLUMN nodes_min INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE jobs ADD COLUMN on_loss TEXT NOT NULL DEFAULT 'shrink';"
    "ALTER TABLE jobs ADD COLUMN script_on TEXT NOT NULL DEFAULT 'each';"
    "ALTER TABLE jobs ADD COLUMN ranks INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE jobs ADD COLUMN gang_end TEXT NOT NULL DEFAULT 'none';"
    "ALTER TABLE jobs ADD COLUMN gang_code INTEGER NOT NULL DEFAULT 0;"
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
    "CREATE INDEX dependencies_of_tasks ON dependencies (job, on_job) WHERE kind = 'aftercorr';"
    "ALTER TABLE jobs ADD COLUMN pause_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job_specs ADD COLUMN launch_json TEXT;"
    "ALTER TABLE job_specs ADD COLUMN notify_json TEXT;"
    "CREATE TABLE outbox ("
    " event INTEGER NOT NULL,"
    " target TEXT NOT NULL,"
    " job INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " kind TEXT NOT NULL,"
    " end_kind TEXT NOT NULL,"
    " exit_code INTEGER NOT NULL,"
    " user TEXT NOT NULL,"
    " at INTEGER,"
    " due_at INTEGER,"
    " tries INTEGER NOT NULL,"
    " budget TEXT NOT NULL,"
    " pct INTEGER NOT NULL,"
    " spent_uusd INTEGER NOT NULL,"
    " cap_uusd INTEGER NOT NULL,"
    " PRIMARY KEY (event, target)"
    ") STRICT, WITHOUT ROWID;"
    "UPDATE jobs SET pause_ms = save_ms;"
    "ALTER TABLE checkpoints ADD COLUMN pause_ms INTEGER NOT NULL DEFAULT 0;"
    "UPDATE checkpoints SET pause_ms = took_ms;"
    "ALTER TABLE jobs ADD COLUMN quick_ends INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN in_vain INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN in_vain_last INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN best_progress INTEGER;"
    "ALTER TABLE jobs ADD COLUMN team TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN qos TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN nice INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN hold TEXT NOT NULL DEFAULT 'none';"
    "ALTER TABLE jobs ADD COLUMN begin_at INTEGER;"
    "ALTER TABLE jobs ADD COLUMN deadline_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN finish_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN work_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN done_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN shown_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN rival_at_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN rival_done_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN rival_starting_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN rival_on INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN rival_last INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN rival_price_uusd_h INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN rival_paid_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN job_price_uusd_h INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN job_paid_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN max_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN max_uusd_h INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN pace TEXT NOT NULL DEFAULT 'free';"
    "ALTER TABLE jobs ADD COLUMN keep_unmeetable INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN depends_any INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN eligible_at INTEGER;"
    "UPDATE jobs SET eligible_at = submitted_at;"
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
    " told INTEGER NOT NULL,"
    " is_closed INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "ALTER TABLE attempts RENAME TO attempts_1;"
    "CREATE TABLE attempts ("
    " job INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " rank INTEGER NOT NULL,"
    " node INTEGER NOT NULL,"
    " state TEXT NOT NULL,"
    " end_kind TEXT NOT NULL,"
    " stop_reason TEXT NOT NULL,"
    " save_first INTEGER NOT NULL,"
    " exit_code INTEGER NOT NULL,"
    " assigned_at INTEGER,"
    " started_at INTEGER,"
    " ended_at INTEGER,"
    " restored_attempt INTEGER NOT NULL,"
    " restored_sequence INTEGER NOT NULL,"
    " restored_progress INTEGER,"
    " restored_bytes INTEGER NOT NULL,"
    " nearby_bytes INTEGER NOT NULL,"
    " restore_ms INTEGER NOT NULL,"
    " save_ms INTEGER NOT NULL,"
    " sequence INTEGER NOT NULL,"
    " price_uusd_h INTEGER NOT NULL,"
    " on_demand_uusd_h INTEGER NOT NULL,"
    " text TEXT NOT NULL,"
    " base_uusd INTEGER NOT NULL,"
    " saves_asked INTEGER NOT NULL,"
    " cpu_ms INTEGER NOT NULL,"
    " cpu_user_ms INTEGER NOT NULL,"
    " memory_peak INTEGER NOT NULL,"
    " started_uusd INTEGER NOT NULL,"
    " gathered_at INTEGER,"
    " gathered_uusd INTEGER NOT NULL,"
    " kept_at INTEGER,"
    " kept_uusd INTEGER NOT NULL,"
    " save_uusd INTEGER NOT NULL,"
    " egress_uusd INTEGER NOT NULL,"
    " behind_ms INTEGER NOT NULL,"
    " PRIMARY KEY (job, attempt, rank)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO attempts SELECT job, attempt, 0, node, state, end_kind, stop_reason,"
    " save_first, exit_code, assigned_at,"
    " started_at, ended_at, restored_attempt, restored_sequence, restored_progress, 0, 0,"
    " restore_ms, save_ms, sequence,"
    " price_uusd_h, on_demand_uusd_h, text, 0, 0, 0, 0, 0, 0, NULL, 0, NULL, 0, 0, 0, 0 FROM"
    " attempts_1;DROP TABLE attempts_1;"
    "CREATE INDEX attempts_live ON attempts (job) WHERE state <> 'ended';"
    "ALTER TABLE meta ADD COLUMN next_cron INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE jobs ADD COLUMN window TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN cron INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN cron_at INTEGER;"
    "ALTER TABLE jobs ADD COLUMN array_id INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN array_index INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN regroups_until INTEGER;"
    "ALTER TABLE nodes ADD COLUMN kept_for INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN extras INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX jobs_extras ON jobs (extras) WHERE extras <> 0 AND state <> 'ended';"
    "CREATE TABLE extras ( id INTEGER PRIMARY KEY,"
    " text TEXT NOT NULL"
    ") STRICT;"
    "ALTER TABLE meta ADD COLUMN next_extras INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE nodes ADD COLUMN features TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE nodes ADD COLUMN resources TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE pools ADD COLUMN required_labels TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE pools ADD COLUMN features TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE pools ADD COLUMN resources TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE offers ADD COLUMN arch TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN evicted_at INTEGER;"
    /* who changes a row by hand leaves or makes it 0: it is read whole then */
    "ALTER TABLE jobs ADD COLUMN plain INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE offers ADD COLUMN gpu_model TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE offers ADD COLUMN gpu_memory_mib INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE nodes ADD COLUMN gpu_model TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE nodes ADD COLUMN gpu_memory_mib INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE offers ADD COLUMN price_told INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE nodes ADD COLUMN priced_at INTEGER;"
    "ALTER TABLE nodes ADD COLUMN accrued_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE nodes ADD COLUMN attempts_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE nodes ADD COLUMN attempts_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE nodes ADD COLUMN idle_uusd INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE nodes ADD COLUMN idle_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE nodes ADD COLUMN used_until INTEGER;"
    "ALTER TABLE nodes ADD COLUMN settled_at INTEGER;"
    "CREATE INDEX jobs_tasks ON jobs (array_id, array_index) WHERE array_id <> 0;"
    "CREATE TABLE arrays ( job INTEGER PRIMARY KEY,"
    " tasks TEXT NOT NULL,"
    " tasks_left TEXT NOT NULL,"
    " at_once INTEGER NOT NULL,"
    " n_succeeded INTEGER NOT NULL,"
    " n_other INTEGER NOT NULL,"
    " end_kind TEXT NOT NULL,"
    " exit_code INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE crons ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " user TEXT NOT NULL,"
    " state TEXT NOT NULL,"
    " schedule TEXT NOT NULL,"
    " zone TEXT NOT NULL,"
    " gap TEXT NOT NULL,"
    " twice TEXT NOT NULL,"
    " overlap TEXT NOT NULL,"
    " catch_up TEXT NOT NULL,"
    " catch_up_max INTEGER NOT NULL,"
    " script_key TEXT NOT NULL,"
    " created_at INTEGER,"
    " next_at INTEGER,"
    " decided_at INTEGER,"
    " last_job INTEGER NOT NULL,"
    " waiting TEXT NOT NULL,"
    " runs INTEGER NOT NULL,"
    " started INTEGER NOT NULL,"
    " skipped INTEGER NOT NULL,"
    " missed INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX crons_live ON crons (id) WHERE state <> 'removed';"
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
    "CREATE UNIQUE INDEX cron_runs_at ON cron_runs (cron, at) WHERE by_hand = 0;"
    "CREATE INDEX jobs_ended ON jobs (ended_at) WHERE state = 'ended';"
    "CREATE TABLE job_labels ("
    " job INTEGER NOT NULL,"
    " name TEXT NOT NULL,"
    " value TEXT NOT NULL,"
    " PRIMARY KEY (job, name)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE job_workdirs ("
    " job INTEGER PRIMARY KEY,"
    " hash TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX job_workdirs_hash ON job_workdirs (hash);"
    "CREATE TABLE label_sets ("
    " id INTEGER PRIMARY KEY,"
    " labels_json TEXT NOT NULL UNIQUE"
    ") STRICT;"
    "CREATE TABLE job_label_sets ("
    " job INTEGER PRIMARY KEY,"
    " labels INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE cost_sums ("
    " span INTEGER NOT NULL," /* 1: a day, 31: a month */
    /* what is told apart besides kinds, bits: 1 people, 2 machines, 4 sets of labels */
    " detail INTEGER NOT NULL,"
    " since INTEGER NOT NULL," /* its first day: days since 1970, UTC */
    " labels INTEGER NOT NULL,"
    " team TEXT NOT NULL,"
    " user TEXT NOT NULL,"
    " pool TEXT NOT NULL,"
    " type TEXT NOT NULL,"
    " market TEXT NOT NULL,"
    " kind TEXT NOT NULL," /* '': jobs that ended */
    " ms INTEGER NOT NULL,"
    " node_ms INTEGER NOT NULL,"
    " uusd INTEGER NOT NULL,"
    " on_demand_uusd INTEGER NOT NULL,"
    " ended INTEGER NOT NULL,"
    " succeeded INTEGER NOT NULL,"
    " PRIMARY KEY (span, detail, since, labels, team, user, pool, type, market, kind)"
    ") STRICT, WITHOUT ROWID;CREATE TABLE task_loads ("
    " job INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " rank INTEGER NOT NULL,"
    " span_ms INTEGER NOT NULL,"
    " at INTEGER NOT NULL,"
    " node INTEGER NOT NULL,"
    " ms INTEGER NOT NULL,"
    " cpu_ms INTEGER NOT NULL,"
    " busiest_ms INTEGER NOT NULL,"
    " blocked_ms INTEGER NOT NULL,"
    " stall_ms INTEGER NOT NULL,"
    " waited_ms INTEGER NOT NULL,"
    " memory_bytes INTEGER NOT NULL,"
    " swap_bytes INTEGER NOT NULL,"
    " read_bytes INTEGER NOT NULL,"
    " write_bytes INTEGER NOT NULL,"
    " faults INTEGER NOT NULL,"
    " refaults INTEGER NOT NULL,"
    " net_in_bytes INTEGER NOT NULL,"
    " net_out_bytes INTEGER NOT NULL,"
    " net_is_nodes INTEGER NOT NULL,"
    " link_bytes_s INTEGER NOT NULL,"
    " node_cpus INTEGER NOT NULL,"
    " node_cpu_ms INTEGER NOT NULL,"
    " node_iowait_ms INTEGER NOT NULL,"
    " node_swapped_bytes INTEGER NOT NULL,"
    " PRIMARY KEY (job, attempt, rank, span_ms, at)"
    ") STRICT, WITHOUT ROWID;"
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
    " memory_bytes INTEGER NOT NULL,"
    " memory_total_bytes INTEGER NOT NULL,"
    " energy_mj INTEGER NOT NULL,"
    " power_limit_mw INTEGER NOT NULL,"
    " temperature_c INTEGER NOT NULL,"
    " clock_permille_ms INTEGER NOT NULL,"
    " thermal_ms INTEGER NOT NULL,"
    " power_ms INTEGER NOT NULL,"
    " slowed_ms INTEGER NOT NULL,"
    " ecc_corrected INTEGER NOT NULL,"
    " ecc_uncorrected INTEGER NOT NULL,"
    " processes INTEGER NOT NULL,"
    " PRIMARY KEY (job, attempt, node, gpu, span_ms, at)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX gpu_loads_age ON gpu_loads (span_ms, at);"
    "INSERT INTO label_sets (labels_json) SELECT DISTINCT labels_json FROM job_specs WHERE"
    " labels_json <> '{}' AND json_valid(labels_json);"
    "INSERT INTO job_label_sets SELECT p.job, s.id FROM job_specs AS p JOIN label_sets AS s ON"
    " s.labels_json = p.labels_json;"
    "INSERT INTO job_labels SELECT job, key, value FROM job_specs, json_each(CASE WHEN"
    " json_valid(labels_json) THEN"
    " labels_json END) WHERE type = 'text';"
    "UPDATE instances SET priced_at = launched_at,"
    " used_until = (SELECT max(ended_at) FROM attempts WHERE attempts.node = instances.node);"
    "UPDATE ledger SET node_ms = ms WHERE job = 0;"
    "UPDATE ledger SET node_ms = s.rest FROM (SELECT min(CASE WHEN l.job <> 0 THEN l.rowid END)"
    " AS first, CASE i.state WHEN 'gone' THEN max(i.ended_at - i.launched_at, 0) - sum(CASE WHEN"
    " l.job = 0 THEN l.ms ELSE 0 END)"
    " ELSE i.attempts_ms END AS rest FROM ledger AS l JOIN instances AS i ON i.id = l.instance"
    " GROUP BY l.instance) AS s"
    " WHERE ledger.rowid = s.first;"
    /* there was nothing to restore */
    "UPDATE ledger SET kind = 'start' WHERE kind = 'restore' AND attempt = 1;";
/* clang-format on */

/* Pools whose machines never join. Bit 10 of `mail` was NOTIFY_ARRAY_TASKS, and is NOTIFY_BOOTS
 * now. */
/* clang-format off */
static const char schema_3[] =
    "ALTER TABLE pools ADD COLUMN boots_failed INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN boots_wait_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN boots_next_at INTEGER;"
    "ALTER TABLE pools ADD COLUMN boots_instance INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN boots_text TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE pools ADD COLUMN boots_console TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE outbox ADD COLUMN pool TEXT NOT NULL DEFAULT '';"
    "UPDATE jobs SET mail = mail + 1024 WHERE mail & 1024;";
/* clang-format on */

static const char schema_4[] =
    "ALTER TABLE jobs ADD COLUMN from_attempt INTEGER NOT NULL DEFAULT 0;";

static const char schema_5[] = "ALTER TABLE attempts ADD COLUMN requeue_asked_at INTEGER;";

/* Options of jobs that no decision reads (job/attributes.h): a new one needs no version. */
static const char schema_6[] =
    "CREATE TABLE job_documents ( job INTEGER PRIMARY KEY, json TEXT NOT "
    "NULL) STRICT;";

static const char *const migrations[] = {
    schema_1, schema_2, schema_3, schema_4, schema_5, schema_6};
_Static_assert(
    sizeof(migrations) / sizeof(migrations[0]) == DB_SCHEMA_VERSION, "one text a version");

/* The meta row: what makes this cluster this cluster. */
static int make_meta(sqlite3 *sql, struct err *e)
{
    char uid[17], secret[65];
    sqlite3_stmt *s = NULL;
    int rc;

    random_hex(8, uid);
    random_hex(32, secret);
    if ((rc = sql_prepare(sql,
             "INSERT INTO meta (one, belay_version, cluster_uid, secret) VALUES (1, '', ?1, ?2)",
             &s, e)) != 0)
        return rc;
    sqlite3_bind_text(s, 1, uid, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, secret, -1, SQLITE_STATIC);
    int code = sqlite3_step(s);
    if (code != SQLITE_DONE)
        rc = sql_err(e, sql, code, "make the meta row");
    sqlite3_finalize(s);
    return rc;
}

static int apply(sqlite3 *sql, int version, struct err *e)
{
    char stamp[200];
    int rc;

    if ((rc = sql_exec(sql, migrations[version - 1], e)) != 0)
        return rc;
    if (version == 1 && (rc = make_meta(sql, e)) != 0)
        return rc;
    snprintf(stamp, sizeof(stamp),
        "UPDATE meta SET belay_version = '" BELAY_VERSION
        "'; PRAGMA application_id = %d; PRAGMA user_version = %d",
        DB_APPLICATION_ID, version);
    return sql_exec(sql, stamp, e);
}

/* The last step of a way that began before version 2 sums up the ledger too: with the code of now,
 * so on the newest schema. */
static int migrate_to(sqlite3 *sql, int version, int from, struct err *e)
{
    int rc;

    if ((rc = sql_exec(sql, "BEGIN IMMEDIATE", e)) != 0)
        return rc;
    if ((rc = apply(sql, version, e)) == 0 &&
        (version < DB_SCHEMA_VERSION || from >= 2 || (rc = rollup_all(sql, e)) == 0) &&
        (rc = sql_exec(sql, "COMMIT", e)) == 0)
        return 0;
    sqlite3_exec(sql, "ROLLBACK", NULL, NULL, NULL);
    return err_wrap(e, "bring the database to schema %d", version);
}

static int refuse_newer(sqlite3 *sql, const char *path, int64_t version, struct err *e)
{
    sqlite3_stmt *s = NULL;
    const char *needed = NULL;

    /* A schema we do not know: if even this row has changed, the message is the poorer, nothing
     * else. */
    if (sqlite3_prepare_v2(sql, "SELECT belay_version FROM meta", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        needed = (const char *)sqlite3_column_text(s, 0);
    int rc = err_set(e, ERR_CONFIG,
        "%s was written by a newer belay (schema %lld, this is belay " BELAY_VERSION
        " with schema %d): install belay "
        "%.40s or newer",
        path, (long long)version, DB_SCHEMA_VERSION,
        needed ? needed : "of the release that wrote it");
    sqlite3_finalize(s);
    return rc;
}

/* Ours, or so new that nothing is in it yet. */
static int check_ours(sqlite3 *sql, const char *path, struct err *e)
{
    int64_t id, objects;
    int rc;

    if ((rc = sql_get_i64(sql, "PRAGMA application_id", &id, e)) != 0 ||
        (rc = sql_get_i64(sql, "SELECT count(*) FROM sqlite_schema", &objects, e)) != 0)
        return rc;
    if (id == DB_APPLICATION_ID || objects == 0)
        return 0;
    return err_set(e, ERR_CORRUPT,
        "%s is an SQLite database, but not belay's: give belay a path of its own", path);
}

int schema_migrate(sqlite3 *sql, const char *path, struct err *e)
{
    int64_t version;
    int rc;

    if ((rc = check_ours(sql, path, e)) != 0 ||
        (rc = sql_get_i64(sql, "PRAGMA user_version", &version, e)) != 0)
        return rc;
    if (version < 0)
        return err_set(
            e, ERR_CORRUPT, "%s: its schema number %lld cannot be", path, (long long)version);
    if (version > DB_SCHEMA_VERSION)
        return refuse_newer(sql, path, version, e);
    for (int v = (int)version + 1; v <= DB_SCHEMA_VERSION; v++)
        if ((rc = migrate_to(sql, v, (int)version, e)) != 0)
            return rc;
    return 0;
}
