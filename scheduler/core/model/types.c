/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of all stored or shown enums, and the legal transitions drawn in types.h.
 */
#include "scheduler/core/model/event.h"
#include "scheduler/core/model/types.h"

#include "base/names.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char *const job_states[] = {
    "pending", "running", "cancelling", "unfolded", "ended", NULL};
static const struct sm_transition job_moves[] = {
    {JOB_PENDING, JOB_RUNNING},
    {JOB_PENDING, JOB_ENDED},
    {JOB_RUNNING, JOB_PENDING},
    {JOB_RUNNING, JOB_CANCELLING},
    {JOB_RUNNING, JOB_ENDED},
    {JOB_CANCELLING, JOB_ENDED},
    {JOB_PENDING, JOB_UNFOLDED},
    {JOB_UNFOLDED, JOB_ENDED},
};
const struct sm job_sm = {"job", job_states, job_moves, N(job_moves)};

static const char *const attempt_states[] = {"assigned", "running", "stopping", "ended", NULL};
static const struct sm_transition attempt_moves[] = {
    {ATTEMPT_ASSIGNED, ATTEMPT_RUNNING},
    {ATTEMPT_ASSIGNED, ATTEMPT_STOPPING},
    {ATTEMPT_ASSIGNED, ATTEMPT_ENDED},
    {ATTEMPT_RUNNING, ATTEMPT_STOPPING},
    {ATTEMPT_RUNNING, ATTEMPT_ENDED},
    {ATTEMPT_STOPPING, ATTEMPT_ENDED},
};
const struct sm attempt_sm = {"attempt", attempt_states, attempt_moves, N(attempt_moves)};

static const char *const node_states[] = {"up", "noticed", "draining", "lost", "gone", NULL};
static const struct sm_transition node_moves[] = {
    {NODE_UP, NODE_NOTICED},
    {NODE_UP, NODE_DRAINING},
    {NODE_UP, NODE_LOST},
    {NODE_UP, NODE_GONE},
    {NODE_DRAINING, NODE_UP},
    {NODE_DRAINING, NODE_LOST},
    {NODE_DRAINING, NODE_GONE},
    {NODE_DRAINING, NODE_NOTICED},
    {NODE_NOTICED, NODE_UP}, /* the machine shut down and returned */
    {NODE_NOTICED, NODE_DRAINING},
    {NODE_NOTICED, NODE_LOST},
    {NODE_NOTICED, NODE_GONE},
    {NODE_LOST, NODE_UP},
    {NODE_LOST, NODE_DRAINING},
    {NODE_LOST, NODE_NOTICED},
    {NODE_LOST, NODE_GONE},
};
const struct sm node_sm = {"node", node_states, node_moves, N(node_moves)};

static const char *const instance_states[] = {
    "intended", "queued", "launched", "running", "ending", "gone", NULL};
static const struct sm_transition instance_moves[] = {
    {INSTANCE_INTENDED, INSTANCE_QUEUED},
    {INSTANCE_INTENDED, INSTANCE_LAUNCHED},
    {INSTANCE_INTENDED, INSTANCE_RUNNING},
    {INSTANCE_INTENDED, INSTANCE_ENDING},
    {INSTANCE_INTENDED, INSTANCE_GONE},
    {INSTANCE_QUEUED, INSTANCE_LAUNCHED},
    {INSTANCE_QUEUED, INSTANCE_RUNNING},
    {INSTANCE_QUEUED, INSTANCE_ENDING},
    {INSTANCE_QUEUED, INSTANCE_GONE},
    {INSTANCE_LAUNCHED, INSTANCE_RUNNING},
    {INSTANCE_LAUNCHED, INSTANCE_ENDING},
    {INSTANCE_LAUNCHED, INSTANCE_GONE},
    {INSTANCE_RUNNING, INSTANCE_ENDING},
    {INSTANCE_RUNNING, INSTANCE_GONE},
    {INSTANCE_ENDING, INSTANCE_GONE},
};
const struct sm instance_sm = {"instance", instance_states, instance_moves, N(instance_moves)};

static const char *const ckpt_gc_states[] = {"waiting", "cleaning", "done", NULL};
static const struct sm_transition ckpt_gc_moves[] = {
    {CKPT_GC_WAITING, CKPT_GC_CLEANING},
    {CKPT_GC_CLEANING, CKPT_GC_WAITING},
    {CKPT_GC_CLEANING, CKPT_GC_DONE},
};
const struct sm ckpt_gc_sm = {"ckpt_gc", ckpt_gc_states, ckpt_gc_moves, N(ckpt_gc_moves)};

static const char *const depend_states[] = {"waits", "met", "never", "dropped", NULL};
static const struct sm_transition depend_moves[] = {
    {DEPEND_WAITS, DEPEND_MET},
    {DEPEND_WAITS, DEPEND_NEVER},
    {DEPEND_WAITS, DEPEND_DROPPED},
    {DEPEND_NEVER, DEPEND_DROPPED},
};
const struct sm depend_sm = {"dependency", depend_states, depend_moves, N(depend_moves)};

static const char *const drill_states[] = {
    "stopping", "queued", "resumed", "passed", "failed", "interrupted", NULL};
static const struct sm_transition drill_moves[] = {
    {DRILL_STOPPING, DRILL_QUEUED},
    {DRILL_STOPPING, DRILL_FAILED},
    {DRILL_STOPPING, DRILL_INTERRUPTED},
    {DRILL_QUEUED, DRILL_RESUMED},
    {DRILL_QUEUED, DRILL_FAILED},
    {DRILL_QUEUED, DRILL_INTERRUPTED},
    {DRILL_RESUMED, DRILL_PASSED},
    {DRILL_RESUMED, DRILL_FAILED},
    {DRILL_RESUMED, DRILL_INTERRUPTED},
    {DRILL_PASSED, DRILL_FAILED},
};
const struct sm drill_sm = {"drill", drill_states, drill_moves, N(drill_moves)};

static const char *const cron_states[] = {"active", "paused", "removed", NULL};
static const struct sm_transition cron_moves[] = {
    {CRON_ACTIVE, CRON_PAUSED},
    {CRON_PAUSED, CRON_ACTIVE},
    {CRON_ACTIVE, CRON_REMOVED},
    {CRON_PAUSED, CRON_REMOVED},
};
const struct sm cron_sm = {"cron entry", cron_states, cron_moves, N(cron_moves)};

const char *const end_kind_names[] = {
    "none",
    "succeeded",
    "failed",
    "cancelled",
    "timeout",
    "reclaimed",
    "node-lost",
    "capacity",
    "evicted",
    "budget",
    "window",
    "drained",
    "gang",
    "checkpointed",
    "store",
    "store-away",
    "drilled",
    "dependency",
    "deadline",
    NULL,
};
const char *const procurement_names[] = {"free", "wait", "spot", "on-demand", NULL};
const char *const node_throttle_names[] = {"none", "heat", "power", "board", NULL};
const char *const hold_names[] = {"none", "store", "idle-gpus", "user", "operator", NULL};
const char *const idle_gpus_then_names[] = {"ignore", "tell", "park", NULL};
const char *const depend_kind_names[] = {
    "after", "afterany", "afterok", "afternotok", "aftercorr", "singleton", NULL};
const char *const market_names[] = {"owned", "spot", "on-demand", NULL};
const char *const boot_verdict_names[] = {"open", "failed", "works", NULL};
const char *const criu_ability_names[] = {"unknown", "no", "cpu", "gpu", NULL};
const char *const ckpt_gc_keep_names[] = {"all", "last", "none", NULL};
const char *const notice_type_names[] = {"none", "rebalance", "maintenance", "reclaim", NULL};
const char *const notify_event_names[] = {"begin", "end", "fail", "requeue", "time-limit",
    "time-limit-50", "time-limit-80", "time-limit-90", "invalid-depend", "budget", "boots-fail",
    "late", "idle-gpus", "node-drained", "digest", "spend", NULL};
const char *const notify_format_names[] = {"json", "slack", "teams", "pagerduty", NULL};
const char *const spend_of_names[] = {"none", "user", "team", "pool", NULL};
const char *const cron_overlap_names[] = {"skip", "queue", "replace", NULL};
const char *const cron_catch_up_names[] = {"none", "last", "all", NULL};
const char *const cron_after_end_names[] = {"well", "any", NULL};
const char *const cron_outcome_names[] = {"started", "skipped", "missed", "refused", NULL};
const char *const ledger_kind_names[] = {"useful", "lost", "boot", "start", "restore", "save",
    "gang-wait", "idle", "egress", "storage", NULL};

const char *const history_kinds[] = {
    "budget",
    "spend-anomaly",
    "base-load",
    "submitted",
    "updated",
    "held",
    "idle-gpus",
    "late",
    "park",
    "reclaim",
    "preempt",
    "in-vain",
    "released",
    "eligible",
    "placed",
    "started",
    "damaged",
    "restored",
    "saved",
    "save-failed",
    "restore-failed",
    "output-cut",
    "save",
    "enter",
    "no-credentials",
    "store-refused",
    "cancel",
    "requeue",
    "ended",
    "requeued",
    "settled",
    "joined",
    "notice",
    "lost",
    "returned",
    "drain",
    "auto-drain",
    "undrain",
    "reservation",
    "reservation-over",
    "throttled",
    "recovered",
    "disk-full",
    "disk-room",
    "fault",
    "gone",
    "launch",
    "launched",
    "move",
    "prefetch",
    "prefetched",
    "prefetch-failed",
    "pace",
    "launch-refused",
    "offer-refused",
    "boot-failed",
    "boot-console",
    "boots-again",
    "ending",
    "cleaned",
    "clean-failed",
    "drill",
    "drill-passed",
    "drill-compared",
    "drill-failed",
    "drill-interrupted",
    "requeue-dropped",
    "time-limit",
    "not-told",
    NULL,
};

const char *const event_type_names[] = {
    "submit",
    "cancel",
    "requeue",
    "save",
    "enter",
    "update",
    "hold",
    "release",
    "join",
    "heartbeat",
    "facts",
    "condition",
    "gpus",
    "disk",
    "fault",
    "prefetched",
    "notice",
    "attempt-started",
    "attempt-ended",
    "checkpoint",
    "save-failed",
    "output-cut",
    "no-credentials",
    "store-refused",
    "withheld",
    "progress",
    "usage",
    "kept",
    "drain",
    "undrain",
    "node-delete",
    "pool",
    "offer",
    "limits",
    "settings",
    "price",
    "score",
    "launched",
    "launch-refused",
    "offer-refused",
    "boot-console",
    "pool-retry",
    "instance-gone",
    "cleaned",
    "drill-compared",
    "drill",
    "cron-put",
    "cron-set",
    "cron-run",
    "digest-set",
    "anomaly",
    "reservation-add",
    "reservation-remove",
    "calendar-set",
    "calendar-remove",
    "eligible",
    "unmeetable",
    "place",
    "launch",
    "end-instance",
    "node-lost",
    "prefetch",
    "move",
    "clean",
    "settle",
    "requeue-due",
    "withheld-due",
    "drill-due",
    "avoided",
    "order",
    "reserve",
    "cron-due",
    "digest",
    "park",
    "budget",
    "base-load",
    "deadline",
    "pace",
    "table",
    "put-aside",
    "take-up",
    "reclaim",
    "delivered",
    "warn",
    "idle-gpus",
    "reservation-due",
    NULL,
};

bool job_pools_allow(const char *pools, const char *pool)
{
    return !pools[0] || names_has(pools, pool);
}
