/* SPDX-License-Identifier: Apache-2.0
 *
 * Which columns each table has, and which member of its row each is (table.h).
 */
#include "db/table.h"

#include "db/db.h"
#include <stddef.h>

#define MEMBER(row, member) (((struct row *)0)->member)
#define PLACE(row, member)                                                                         \
    .offset = offsetof(struct row, member), .size = sizeof(MEMBER(row, member))
/* The C type of the member decides how it is stored; what the type cannot say has a macro of its
 * own. */
#define STORED_AS(m)                                                                               \
    _Generic((m), int64_t                                                                                    \
             : COLUMN_I64, int32_t                                                                           \
             : COLUMN_I32, bool                                                                              \
             : COLUMN_BOOL, struct wall                                                                      \
             : COLUMN_OPTIONAL, char *                                                                       \
             : COLUMN_TEXT)
/* Behind the arguments may stand RARE. */
#define COL_AS(row, column, member, ...)                                                           \
    {                                                                                              \
        .name = column, .type = STORED_AS(MEMBER(row, member)), PLACE(row, member), __VA_ARGS__    \
    }
#define COL(row, member, ...) COL_AS(row, #member, member, __VA_ARGS__)
#define COL_ADDED(row, column, member)                                                             \
    {                                                                                              \
        .name = column, .type = COLUMN_I64, PLACE(row, member), .merges = MERGE_SUM                \
    }
#define COL_MOST(row, column, member)                                                              \
    {                                                                                              \
        .name = column, .type = COLUMN_I64, PLACE(row, member), .merges = MERGE_MOST               \
    }
#define COL_TYPED(row, member, t, ...)                                                             \
    {                                                                                              \
        .name = #member, .type = t, PLACE(row, member), __VA_ARGS__                                \
    }
#define COL_STATE(row, member, machine)                                                            \
    {                                                                                              \
        .name = #member, .type = COLUMN_NAMED, PLACE(row, member), .sm = &machine                  \
    }
#define COL_KIND(row, column, member, list, ...)                                                   \
    {                                                                                              \
        .name = column, .type = COLUMN_NAMED, PLACE(row, member), .names = list, __VA_ARGS__       \
    }
#define COL_PLAIN                                                                                  \
    {                                                                                              \
        .name = "plain", .type = COLUMN_PLAIN                                                      \
    }
#define RARE .is_rare = true
#define TABLE(sql_name, list, keys, may_replace)                                                   \
    {                                                                                              \
        .name = sql_name, .columns = list, .n_columns = (int)(sizeof(list) / sizeof(list[0])),     \
        .n_keys = keys, .replaces = may_replace                                                    \
    }

/* clang-format off */
static const struct column meta_columns[] = {
    COL(db_meta, cluster_uid),
    COL(db_meta, secret),
    COL(db_meta, boots),
    COL_AS(db_meta, "next_job", counters.next_job),
    COL_AS(db_meta, "next_node", counters.next_node),
    COL_AS(db_meta, "next_instance", counters.next_instance),
    COL_AS(db_meta, "next_history", counters.next_history),
    COL_AS(db_meta, "next_offer", counters.next_offer),
    COL_AS(db_meta, "next_cron", counters.next_cron),
    COL_AS(db_meta, "next_extras", counters.next_extras),
};

static const struct column pool_columns[] = {
    COL(pool_row, name),
    COL(pool_row, elastic),
    COL(pool_row, provider),
    COL(pool_row, region),
    COL(pool_row, max_nodes),
    COL(pool_row, idle_timeout_ms),
    COL(pool_row, cooldown_ms),
    COL(pool_row, boot_timeout_ms),
    COL(pool_row, refusal_backoff_ms),
    COL(pool_row, usd_per_hour_uusd),
    COL(pool_row, max_gpus),
    COL(pool_row, max_uusd_h),
    COL(pool_row, min_paid_ms),
    COL(pool_row, spread_pct),
    COL(pool_row, return_ms),
    COL(pool_row, egress_uusd_gib),
    COL(pool_row, upload_uusd_gib),
    COL(pool_row, by_price),
    COL(pool_row, fleet),
    COL(pool_row, require_drill),
    COL(pool_row, drill_valid_ms),
    COL_KIND(pool_row, "criu", criu, criu_ability_names),
    COL_KIND(pool_row, "criu_seen", criu_seen, criu_ability_names),
    COL(pool_row, criu_text),
    COL(pool_row, retries),
    COL(pool_row, required_labels),
    COL(pool_row, features),
    COL(pool_row, resources),
    COL_AS(pool_row, "boots_failed", boots.failed),
    COL_AS(pool_row, "boots_wait_ms", boots.wait_ms),
    COL_AS(pool_row, "boots_next_at", boots.next_at),
    COL_AS(pool_row, "boots_instance", boots.instance),
    COL_AS(pool_row, "boots_text", boots.text),
    COL_AS(pool_row, "boots_console", boots.console),
};

static const struct column offer_columns[] = {
    COL(offer_row, id),
    COL(offer_row, pool),
    COL(offer_row, zone),
    COL(offer_row, type),
    COL_KIND(offer_row, "market", market, market_names),
    COL(offer_row, rank),
    COL_AS(offer_row, "cpus", total.cpus),
    COL_AS(offer_row, "gpus", total.gpus),
    COL_AS(offer_row, "memory_mib", total.memory_mib),
    COL(offer_row, price_uusd_h),
    COL(offer_row, on_demand_uusd_h),
    COL(offer_row, launches),
    COL(offer_row, refusals),
    COL(offer_row, reclaims),
    COL(offer_row, refused_in_a_row),
    COL(offer_row, up_ms),
    COL(offer_row, boots),
    COL(offer_row, boot_ms),
    COL(offer_row, rebalances),
    COL(offer_row, rebalances_true),
    COL(offer_row, arch),
    COL_AS(offer_row, "gpu_model", gpu.model),
    COL_AS(offer_row, "gpu_memory_mib", gpu.memory_mib),
    COL(offer_row, price_told),
};

static const struct column instance_columns[] = {
    COL(instance_row, id),
    COL(instance_row, token),
    COL(instance_row, pool),
    COL(instance_row, zone),
    COL(instance_row, type),
    COL_KIND(instance_row, "market", market, market_names),
    COL_STATE(instance_row, state, instance_sm),
    COL(instance_row, provider_id),
    COL(instance_row, node),
    COL(instance_row, price_uusd_h),
    COL(instance_row, on_demand_uusd_h),
    COL(instance_row, intended_at),
    COL(instance_row, launched_at),
    COL(instance_row, joined_at),
    COL(instance_row, ended_at),
    COL(instance_row, reclaimed),
    COL(instance_row, attempts_uusd),
    COL(instance_row, attempts_ms),
    COL(instance_row, text),
    COL(instance_row, rebalanced),
    COL(instance_row, alternatives),
    COL(instance_row, priced_at),
    COL(instance_row, accrued_uusd),
    COL(instance_row, boot_uusd),
    COL(instance_row, used_until),
    COL(instance_row, settled_at),
    COL(instance_row, idle_uusd),
    COL(instance_row, idle_ms),
    COL(instance_row, before_uusd_h),
    COL(instance_row, before_uusd),
    COL(instance_row, before_at),
    COL(instance_row, launch_told),
};

static const struct column node_columns[] = {
    COL(node_row, id),
    COL(node_row, name),
    COL(node_row, pool),
    COL(node_row, instance),
    COL_STATE(node_row, state, node_sm),
    COL_AS(node_row, "cpus", total.cpus),
    COL_AS(node_row, "gpus", total.gpus),
    COL_AS(node_row, "memory_mib", total.memory_mib),
    COL(node_row, price_uusd_h),
    COL(node_row, on_demand_uusd_h),
    COL_KIND(node_row, "market", market, market_names),
    COL_KIND(node_row, "notice", notice, notice_type_names),
    COL(node_row, notice_deadline),
    COL(node_row, joined_at),
    COL(node_row, gone_at),
    COL(node_row, address),
    COL(node_row, key_hash),
    COL(node_row, version),
    COL(node_row, drain),
    COL_KIND(node_row, "criu", criu, criu_ability_names),
    COL(node_row, criu_text),
    COL(node_row, kept_for),
    COL(node_row, features),
    COL(node_row, resources),
    COL_AS(node_row, "gpu_model", gpu.model),
    COL_AS(node_row, "gpu_memory_mib", gpu.memory_mib),
    COL(node_row, priced_at),
    COL(node_row, accrued_uusd),
    COL(node_row, attempts_uusd),
    COL(node_row, attempts_ms),
    COL(node_row, idle_uusd),
    COL(node_row, idle_ms),
    COL(node_row, used_until),
    COL(node_row, settled_at),
};

static const struct column job_columns[] = {
    COL(job_row, id),
    COL(job_row, name),
    COL(job_row, user),
    COL(job_row, pool),
    COL_STATE(job_row, state, job_sm),
    COL_KIND(job_row, "end_kind", end, end_kind_names, RARE),
    COL(job_row, exit_code, RARE),
    COL_AS(job_row, "cpus", need.cpus),
    COL_AS(job_row, "gpus", need.gpus),
    COL_AS(job_row, "memory_mib", need.memory_mib),
    COL(job_row, time_limit_ms),
    COL_KIND(job_row, "market", market, market_wish_names),
    COL_KIND(job_row, "method", method, ckpt_method_names),
    COL(job_row, ckpt_signal),
    COL(job_row, ckpt_every_ms),
    COL(job_row, ckpt_keep),
    COL_AS(job_row, "retries_failed", retries.n[RETRY_FAILED]),
    COL_AS(job_row, "used_failed", used[RETRY_FAILED], RARE),
    COL_AS(job_row, "used_node_lost", used[RETRY_NODE_LOST], RARE),
    COL(job_row, used_checkpointed, RARE),
    COL(job_row, attempts, RARE),
    COL(job_row, reclaims, RARE),
    COL(job_row, submitted_at),
    COL(job_row, started_at, RARE),
    COL(job_row, ended_at, RARE),
    COL_AS(job_row, "last_good_attempt", last_good.attempt, RARE),
    COL_AS(job_row, "last_good_sequence", last_good.sequence, RARE),
    COL_TYPED(job_row, last_good_progress, COLUMN_OPTIONAL, RARE),
    COL(job_row, last_good_at, RARE),
    COL(job_row, save_ms, RARE),
    COL(job_row, ckpt_bytes, RARE),
    COL_TYPED(job_row, progress, COLUMN_OPTIONAL, RARE),
    COL_TYPED(job_row, progress_total, COLUMN_OPTIONAL, RARE),
    COL(job_row, lost_ms, RARE),
    COL(job_row, lost_steps, RARE),
    COL(job_row, cost_uusd, RARE),
    COL(job_row, on_demand_uusd, RARE),
    COL(job_row, ckpt_keep_every),
    COL_KIND(job_row, "ckpt_after", ckpt_after, ckpt_after_names),
    COL(job_row, ckpt_at, RARE),
    COL(job_row, script_key),
    COL(job_row, drills, RARE),
    COL(job_row, drill_tries, RARE),
    COL(job_row, mail),
    COL(job_row, urls, RARE),
    COL(job_row, warned, RARE),
    COL_AS(job_row, "retries_timeout", retries.n[RETRY_TIMEOUT]),
    COL_AS(job_row, "retries_node_lost", retries.n[RETRY_NODE_LOST]),
    COL_AS(job_row, "retries_reclaimed", retries.n[RETRY_RECLAIMED]),
    COL_AS(job_row, "retries_evicted", retries.n[RETRY_EVICTED]),
    COL_AS(job_row, "retries_drained", retries.n[RETRY_DRAINED]),
    COL_AS(job_row, "used_timeout", used[RETRY_TIMEOUT], RARE),
    COL_AS(job_row, "used_reclaimed", used[RETRY_RECLAIMED], RARE),
    COL_AS(job_row, "used_evicted", used[RETRY_EVICTED], RARE),
    COL_AS(job_row, "used_drained", used[RETRY_DRAINED], RARE),
    COL(job_row, nodes),
    COL(job_row, nodes_min),
    COL_KIND(job_row, "on_loss", on_loss, gang_loss_names, RARE),
    COL_KIND(job_row, "script_on", script_on, script_on_names, RARE),
    COL(job_row, ranks, RARE),
    COL_KIND(job_row, "gang_end", gang_end, end_kind_names, RARE),
    COL(job_row, gang_code, RARE),
    COL(job_row, pause_ms, RARE),
    COL(job_row, quick_ends, RARE),
    COL(job_row, in_vain, RARE),
    COL(job_row, in_vain_last, RARE),
    COL_TYPED(job_row, best_progress, COLUMN_OPTIONAL, RARE),
    COL(job_row, team),
    COL(job_row, qos),
    COL(job_row, nice, RARE),
    COL_KIND(job_row, "hold", hold, hold_names, RARE),
    COL(job_row, begin_at, RARE),
    COL(job_row, deadline_ms, RARE),
    COL(job_row, finish_ms, RARE),
    COL(job_row, work_ms, RARE),
    COL(job_row, done_ms, RARE),
    COL(job_row, shown_ms, RARE),
    COL_AS(job_row, "rival_at_ms", rival.at_ms, RARE),
    COL_AS(job_row, "rival_done_ms", rival.done_ms, RARE),
    COL_AS(job_row, "rival_starting_ms", rival.starting_ms, RARE),
    COL_AS(job_row, "rival_on", rival.on, RARE),
    COL_AS(job_row, "rival_last", rival.last, RARE),
    COL_AS(job_row, "rival_price_uusd_h", rival.price_uusd_h, RARE),
    COL_AS(job_row, "rival_paid_uusd", rival.paid_uusd, RARE),
    COL_AS(job_row, "job_price_uusd_h", rival.job_price_uusd_h, RARE),
    COL_AS(job_row, "job_paid_uusd", rival.job_paid_uusd, RARE),
    COL(job_row, max_uusd, RARE),
    COL(job_row, max_uusd_h, RARE),
    COL_KIND(job_row, "pace", pace, pace_names, RARE),
    COL(job_row, keep_unmeetable, RARE),
    COL(job_row, depends_any, RARE),
    COL(job_row, eligible_at),
    COL(job_row, window, RARE),
    COL(job_row, cron, RARE),
    COL(job_row, cron_at, RARE),
    COL_AS(job_row, "array_id", array, RARE),
    COL(job_row, array_index, RARE),
    COL(job_row, regroups_until, RARE),
    COL(job_row, extras),
    COL(job_row, evicted_at, RARE),
    COL_PLAIN,
    COL(job_row, from_attempt, RARE),
};

static const struct column spec_columns[] = {
    COL(spec_change, job),
    COL_TYPED(spec_change, script, COLUMN_TEXT_HEAP),
    COL_TYPED(spec_change, args_json, COLUMN_TEXT_HEAP),
    COL_TYPED(spec_change, env_json, COLUMN_TEXT_HEAP),
    COL_TYPED(spec_change, cwd, COLUMN_TEXT_HEAP),
    COL_TYPED(spec_change, labels_json, COLUMN_TEXT_HEAP),
    COL_TYPED(spec_change, launch_json, COLUMN_TEXT_HEAP),
    COL_TYPED(spec_change, notify_json, COLUMN_TEXT_HEAP),
};

static const struct column attempt_columns[] = {
    COL(attempt_row, job),
    COL(attempt_row, attempt),
    COL(attempt_row, rank),
    COL(attempt_row, node),
    COL_STATE(attempt_row, state, attempt_sm),
    COL_KIND(attempt_row, "end_kind", end, end_kind_names),
    COL_KIND(attempt_row, "stop_reason", stop_reason, end_kind_names),
    COL(attempt_row, save_first),
    COL(attempt_row, exit_code),
    COL(attempt_row, assigned_at),
    COL(attempt_row, started_at),
    COL(attempt_row, ended_at),
    COL_AS(attempt_row, "restored_attempt", restored.attempt),
    COL_AS(attempt_row, "restored_sequence", restored.sequence),
    COL_TYPED(attempt_row, restored_progress, COLUMN_OPTIONAL),
    COL(attempt_row, restored_bytes),
    COL(attempt_row, nearby_bytes),
    COL(attempt_row, restore_ms),
    COL(attempt_row, save_ms),
    COL(attempt_row, sequence),
    COL(attempt_row, price_uusd_h),
    COL(attempt_row, on_demand_uusd_h),
    COL(attempt_row, text),
    COL(attempt_row, base_uusd),
    COL(attempt_row, saves_asked),
    COL(attempt_row, cpu_ms),
    COL(attempt_row, cpu_user_ms),
    COL(attempt_row, memory_peak),
    COL(attempt_row, started_uusd),
    COL(attempt_row, gathered_at),
    COL(attempt_row, gathered_uusd),
    COL(attempt_row, kept_at),
    COL(attempt_row, kept_uusd),
    COL(attempt_row, save_uusd),
    COL(attempt_row, egress_uusd),
    COL(attempt_row, behind_ms),
    COL(attempt_row, requeue_asked_at),
};

static const struct column checkpoint_columns[] = {
    COL(checkpoint_row, job),
    COL_AS(checkpoint_row, "attempt", ref.attempt),
    COL_AS(checkpoint_row, "sequence", ref.sequence),
    COL(checkpoint_row, node),
    COL(checkpoint_row, saved_at),
    COL(checkpoint_row, bytes),
    COL(checkpoint_row, stored_bytes),
    COL(checkpoint_row, took_ms),
    COL_TYPED(checkpoint_row, progress, COLUMN_OPTIONAL),
    COL(checkpoint_row, cause),
    COL(checkpoint_row, pause_ms),
};

static const struct column history_columns[] = {
    COL(history_row, id),
    COL(history_row, job),
    COL(history_row, attempt),
    COL(history_row, node),
    COL(history_row, instance),
    COL(history_row, at),
    COL(history_row, kind),
    COL(history_row, text),
    COL(history_row, a),
    COL(history_row, b),
};

static const struct column ledger_columns[] = {
    COL(ledger_row, job),
    COL(ledger_row, attempt),
    COL(ledger_row, node),
    COL(ledger_row, instance),
    COL_KIND(ledger_row, "kind", kind, ledger_kind_names),
    COL_AS(ledger_row, "from_at", from),
    COL_AS(ledger_row, "to_at", to),
    COL(ledger_row, ms),
    COL(ledger_row, uusd),
    COL(ledger_row, on_demand_uusd),
    COL(ledger_row, node_ms),
};

static const struct column array_columns[] = {
    COL(array_row, job),
    COL(array_row, tasks),
    COL_AS(array_row, "tasks_left", left),
    COL(array_row, at_once),
    COL(array_row, n_succeeded),
    COL(array_row, n_other),
    COL_KIND(array_row, "end_kind", end, end_kind_names),
    COL(array_row, exit_code),
};

static const struct column dependency_columns[] = {
    COL(dependency_row, job),
    COL_AS(dependency_row, "on_job", on),
    COL_KIND(dependency_row, "kind", kind, depend_kind_names),
    COL(dependency_row, of_task),
    COL(dependency_row, task),
    COL(dependency_row, delay_ms),
    COL_STATE(dependency_row, state, depend_sm),
};

static const struct column outbox_columns[] = {
    COL(outbox_row, event),
    COL_AS(outbox_row, "target", target),
    COL(outbox_row, job),
    COL(outbox_row, attempt),
    COL_KIND(outbox_row, "kind", kind, notify_event_names),
    COL_KIND(outbox_row, "end_kind", end, end_kind_names),
    COL(outbox_row, exit_code),
    COL_AS(outbox_row, "user", user),
    COL(outbox_row, at),
    COL(outbox_row, due_at),
    COL(outbox_row, tries),
    COL(outbox_row, budget),
    COL(outbox_row, pct),
    COL(outbox_row, spent_uusd),
    COL(outbox_row, cap_uusd),
    COL(outbox_row, pool),
};

static const struct column stored_columns[] = {
    COL(stored_row, job),
    COL(stored_row, bytes),
    COL(stored_row, at),
    COL(stored_row, settled_at),
    COL(stored_row, parts),
    COL(stored_row, uusd),
};

static const struct column leftover_columns[] = {
    COL(leftover_row, job),
    COL_STATE(leftover_row, state, leftover_sm),
    COL_KIND(leftover_row, "after", after, ckpt_after_names),
    COL(leftover_row, succeeded),
    COL(leftover_row, closed),
    COL(leftover_row, due_at),
    COL(leftover_row, last_at),
    COL(leftover_row, tries),
};

static const struct column drill_columns[] = {
    COL(drill_row, job),
    COL(drill_row, number),
    COL(drill_row, script_key),
    COL(drill_row, user),
    COL(drill_row, name),
    COL_KIND(drill_row, "method", method, ckpt_method_names),
    COL_STATE(drill_row, state, drill_sm),
    COL(drill_row, without_notice),
    COL(drill_row, avoids),
    COL_AS(drill_row, "asked_by", by),
    COL(drill_row, version),
    COL(drill_row, method_version),
    COL(drill_row, attempt),
    COL(drill_row, node),
    COL(drill_row, before_sequence),
    COL(drill_row, asked_at),
    COL(drill_row, killed_at),
    COL(drill_row, resumed_at),
    COL(drill_row, ended_at),
    COL_AS(drill_row, "saved_attempt", saved.attempt),
    COL_AS(drill_row, "saved_sequence", saved.sequence),
    COL_TYPED(drill_row, saved_progress, COLUMN_OPTIONAL),
    COL(drill_row, bytes),
    COL(drill_row, save_ms),
    COL(drill_row, lost_ms),
    COL_TYPED(drill_row, lost_steps, COLUMN_OPTIONAL),
    COL(drill_row, resumed_attempt),
    COL(drill_row, resumed_node),
    COL(drill_row, restore_ms),
    COL_TYPED(drill_row, progress, COLUMN_OPTIONAL),
    COL(drill_row, resume_ms),
    COL(drill_row, compared_with),
    COL(drill_row, text),
};

static const struct column extras_columns[] = {
    COL(extras_row, id),
    COL(extras_row, text),
};

static const struct column account_columns[] = {
    COL(account_row, team),
    COL(account_row, user),
    COL(account_row, used),
    COL_AS(account_row, "used_at", at),
};

static const struct column budget_columns[] = {
    COL(budget_row, name),
    COL(budget_row, about),
    COL(budget_row, since),
    COL_AS(budget_row, "until_at", until),
    COL(budget_row, booked_uusd),
    COL(budget_row, cap_uusd),
    COL(budget_row, told),
    COL(budget_row, is_closed),
};

static const struct column cron_columns[] = {
    COL(cron_row, id),
    COL(cron_row, name),
    COL(cron_row, user),
    COL_STATE(cron_row, state, cron_sm),
    COL(cron_row, schedule),
    COL(cron_row, zone),
    COL_KIND(cron_row, "gap", gap, cron_gap_names),
    COL_KIND(cron_row, "twice", twice, cron_twice_names),
    COL_KIND(cron_row, "overlap", overlap, cron_overlap_names),
    COL_KIND(cron_row, "catch_up", catch_up, cron_catch_up_names),
    COL(cron_row, catch_up_max),
    COL(cron_row, script_key),
    COL(cron_row, created_at),
    COL(cron_row, next_at),
    COL(cron_row, decided_at),
    COL(cron_row, last_job),
    COL(cron_row, waiting),
    COL(cron_row, runs),
    COL(cron_row, started),
    COL(cron_row, skipped),
    COL(cron_row, missed),
};

static const struct column cron_job_columns[] = {
    COL(cron_job_change, cron),
    COL_TYPED(cron_job_change, job_json, COLUMN_TEXT_HEAP),
};

static const struct column cron_run_columns[] = {
    COL(cron_run_row, cron),
    COL(cron_run_row, number),
    COL(cron_run_row, at),
    COL(cron_run_row, by_hand),
    COL_KIND(cron_run_row, "outcome", outcome, cron_outcome_names),
    COL(cron_run_row, times),
    COL(cron_run_row, job),
    COL(cron_run_row, decided_at),
    COL(cron_run_row, text),
};

static const struct column task_load_columns[] = {
    COL(task_load_row, job),
    COL(task_load_row, attempt),
    COL(task_load_row, rank),
    COL(task_load_row, span_ms),
    COL(task_load_row, at),
    COL(task_load_row, node),
    COL_ADDED(task_load_row, "ms", load.ms),
    COL_ADDED(task_load_row, "cpu_ms", load.cpu_ms),
    COL_ADDED(task_load_row, "busiest_ms", load.busiest_ms),
    COL_ADDED(task_load_row, "blocked_ms", load.blocked_ms),
    COL_ADDED(task_load_row, "stall_ms", load.stall_ms),
    COL_ADDED(task_load_row, "waited_ms", load.waited_ms),
    COL_MOST(task_load_row, "memory_bytes", load.memory_bytes),
    COL_MOST(task_load_row, "swap_bytes", load.swap_bytes),
    COL_ADDED(task_load_row, "read_bytes", load.read_bytes),
    COL_ADDED(task_load_row, "write_bytes", load.write_bytes),
    COL_ADDED(task_load_row, "faults", load.faults),
    COL_ADDED(task_load_row, "refaults", load.refaults),
    COL_ADDED(task_load_row, "net_in_bytes", load.net_in_bytes),
    COL_ADDED(task_load_row, "net_out_bytes", load.net_out_bytes),
    COL_MOST(task_load_row, "net_is_nodes", load.net_is_nodes),
    COL_MOST(task_load_row, "link_bytes_s", load.link_bytes_s),
    COL_MOST(task_load_row, "node_cpus", load.node_cpus),
    COL_ADDED(task_load_row, "node_cpu_ms", load.node_cpu_ms),
    COL_ADDED(task_load_row, "node_iowait_ms", load.node_iowait_ms),
    COL_ADDED(task_load_row, "node_swapped_bytes", load.node_swapped_bytes),
};

static const struct column gpu_load_columns[] = {
    COL(gpu_load_row, job),
    COL(gpu_load_row, attempt),
    COL(gpu_load_row, node),
    COL(gpu_load_row, gpu),
    COL(gpu_load_row, span_ms),
    COL(gpu_load_row, at),
    COL(gpu_load_row, gpu_index),
    COL(gpu_load_row, is_slice),
    COL_ADDED(gpu_load_row, "ms", load.ms),
    COL_ADDED(gpu_load_row, "known_ms", load.known_ms),
    COL_ADDED(gpu_load_row, "busy_ms", load.busy_ms),
    COL_MOST(gpu_load_row, "memory_bytes", load.memory_bytes),
    COL_MOST(gpu_load_row, "memory_total_bytes", load.memory_total_bytes),
    COL_ADDED(gpu_load_row, "energy_mj", load.energy_mj),
    COL_MOST(gpu_load_row, "power_limit_mw", load.power_limit_mw),
    COL_MOST(gpu_load_row, "temperature_c", load.temperature_c),
    COL_ADDED(gpu_load_row, "clock_permille_ms", load.clock_permille_ms),
    COL_ADDED(gpu_load_row, "thermal_ms", load.thermal_ms),
    COL_ADDED(gpu_load_row, "power_ms", load.power_ms),
    COL_ADDED(gpu_load_row, "slowed_ms", load.slowed_ms),
    COL_ADDED(gpu_load_row, "ecc_corrected", load.ecc_corrected),
    COL_ADDED(gpu_load_row, "ecc_uncorrected", load.ecc_uncorrected),
    COL_MOST(gpu_load_row, "processes", load.processes),
};

static const struct column token_columns[] = {
    COL_TYPED(token_row, id, COLUMN_NEW_ID),
    COL(token_row, hash),
    COL_AS(token_row, "is_join", join),
    COL(token_row, user),
    COL(token_row, admin),
    COL(token_row, pool),
    COL(token_row, created_at),
    COL(token_row, expires_at),
    COL(token_row, used_at),
    COL(token_row, key_hash),
    COL(token_row, revoked),
};
/* clang-format on */

const struct table tables[TABLE_COUNT] = {
    [TABLE_META] = TABLE("meta", meta_columns, 0, false),
    [TABLE_POOLS] = TABLE("pools", pool_columns, 1, true),
    [TABLE_OFFERS] = TABLE("offers", offer_columns, 1, true),
    [TABLE_INSTANCES] = TABLE("instances", instance_columns, 1, true),
    [TABLE_NODES] = TABLE("nodes", node_columns, 1, true),
    [TABLE_JOBS] = TABLE("jobs", job_columns, 1, true),
    [TABLE_SPECS] = TABLE("job_specs", spec_columns, 1, false),
    [TABLE_ATTEMPTS] = TABLE("attempts", attempt_columns, 3, true),
    [TABLE_CHECKPOINTS] = TABLE("checkpoints", checkpoint_columns, 3, false),
    [TABLE_HISTORY] = TABLE("history", history_columns, 1, false),
    [TABLE_LEDGER] = TABLE("ledger", ledger_columns, 0, false),
    [TABLE_STORED] = TABLE("stored", stored_columns, 1, true),
    [TABLE_LEFTOVERS] = TABLE("leftovers", leftover_columns, 1, true),
    [TABLE_DRILLS] = TABLE("drills", drill_columns, 2, true),
    [TABLE_ACCOUNTS] = TABLE("accounts", account_columns, 2, true),
    [TABLE_BUDGETS] = TABLE("budgets", budget_columns, 1, true),
    [TABLE_EXTRAS] = TABLE("extras", extras_columns, 1, false),
    [TABLE_ARRAYS] = TABLE("arrays", array_columns, 1, true),
    [TABLE_DEPENDENCIES] = TABLE("dependencies", dependency_columns, 5, true),
    [TABLE_CRONS] = TABLE("crons", cron_columns, 1, true),
    [TABLE_CRON_JOBS] = TABLE("cron_jobs", cron_job_columns, 1, true),
    [TABLE_CRON_RUNS] = TABLE("cron_runs", cron_run_columns, 2, false),
    [TABLE_OUTBOX] = TABLE("outbox", outbox_columns, 2, true),
    [TABLE_TASK_LOADS] = TABLE("task_loads", task_load_columns, 5, true),
    [TABLE_GPU_LOADS] = TABLE("gpu_loads", gpu_load_columns, 6, true),
    [TABLE_TOKENS] = TABLE("tokens", token_columns, 1, true),
};
