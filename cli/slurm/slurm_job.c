/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's jobs in Slurm's words (see slurm.h).
 */
#include "cli/slurm/slurm.h"

#include "base/mem.h"
#include "job/pattern.h"
#include "base/str.h"
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- states ---- */

static const struct slurm_state states[] = {{"PENDING", "PD"}, {"CONFIGURING", "CF"},
    {"RUNNING", "R"}, {"COMPLETING", "CG"}, {"COMPLETED", "CD"}, {"FAILED", "F"},
    {"OUT_OF_MEMORY", "OOM"}, {"CANCELLED", "CA"}, {"TIMEOUT", "TO"}, {"PREEMPTED", "PR"},
    {"NODE_FAIL", "NF"}, {"BOOT_FAIL", "BF"}, {"DEADLINE", "DL"}, {"SUSPENDED", "S"},
    {"REQUEUED", "RQ"}, {"REQUEUE_HOLD", "RH"}, {"RESIZING", "RS"}, {"REVOKED", "RV"},
    {"SIGNALING", "SI"}, {"SPECIAL_EXIT", "SE"}, {"STAGE_OUT", "SO"}, {"STOPPED", "ST"},
    {NULL, NULL}};

const struct slurm_state *slurm_state_find(const char *word)
{
    for (const struct slurm_state *s = states; s->name; s++)
        if (strcasecmp(s->name, word) == 0 || strcasecmp(s->compact, word) == 0)
            return s;
    return NULL;
}

/* Why its last attempt ended, for people; "" if unknown. */
static const char *end_text(const struct slurm_job *j)
{
    const json_t *attempts = json_object_get(j->detail, "attempts");
    const char *text = cli_string(
        json_object_get(json_array_get(attempts, json_array_size(attempts) - 1), "text"));
    return text ? text : "";
}

static const char *ended_state(const struct slurm_job *j)
{
    static const struct {
        const char *end, *state;
    } ends[] = {{"succeeded", "COMPLETED"}, {"failed", "FAILED"}, {"checkpointed", "FAILED"},
        {"user", "CANCELLED"}, {"timeout", "TIMEOUT"}, {"dependency", "CANCELLED"},
        {"reclaimed", "PREEMPTED"}, {"evicted", "PREEMPTED"}, {"drained", "PREEMPTED"},
        {"drilled", "PREEMPTED"}, {"store", "PREEMPTED"}, {"store-away", "PREEMPTED"},
        {"node-lost", "NODE_FAIL"}, {"gang", "NODE_FAIL"}, {"capacity", "BOOT_FAIL"},
        {"budget", "DEADLINE"}, {"window", "DEADLINE"}, {"deadline", "DEADLINE"}};
    const char *end = cli_text(j->job, "end");
    if (str_eq(end, "failed") && strstr(end_text(j), "it used all of the"))
        return "OUT_OF_MEMORY";
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (str_eq(ends[i].end, end))
            return ends[i].state;
    return "FAILED";
}

/* Start for time limits: the attempt's start if it runs; in Slurm a requeued job has not started.
 */
static struct wall start_of(const struct slurm_job *j)
{
    const char *state = cli_text(j->job, "state");
    if (str_eq(state, "pending"))
        return WALL_NONE;
    bool of_attempt = json_object_get(j->job, "attempt_started_at") && !str_eq(state, "ended");
    return cli_time(j->job, of_attempt ? "attempt_started_at" : "started_at");
}

const struct slurm_state *slurm_job_state(const struct slurm_job *j)
{
    const char *state = cli_text(j->job, "state");
    bool started = wall_is_set(start_of(j));
    const char *name = str_eq(state, "pending")      ? "PENDING"
                       : str_eq(state, "cancelling") ? "COMPLETING"
                       : str_eq(state, "ended")      ? ended_state(j)
                       : started                     ? "RUNNING"
                                                     : "CONFIGURING";
    return slurm_state_find(name);
}

/* Slurm's exit code and signal. */
static void slurm_job_exit(const struct slurm_job *j, int *ret_code, int *ret_signal)
{
    bool ended = str_eq(cli_text(j->job, "state"), "ended");
    int code = ended ? (int)cli_int(j->job, "exit_code", 0) : 0;
    const char *end = cli_text(j->job, "end");
    bool killed =
        code > 128 && (!j->detail || strstr(end_text(j), "signal") || !str_eq(end, "failed"));
    *ret_code = killed ? 0 : code;
    *ret_signal = killed ? code - 128 : 0;
    if (ended && (str_eq(end, "user") || str_eq(end, "timeout"))) {
        *ret_code = 0;
        *ret_signal = str_eq(end, "user") ? 15 : 0;
    }
}

const char *slurm_reason(const char *code)
{
    static const struct {
        const char *code, *reason;
    } reasons[] = {{"no-pool", "PartitionDown"}, {"too-large", "PartitionNodeLimit"},
        {"too-many-nodes", "PartitionNodeLimit"}, {"market", "BadConstraints"},
        {"criu", "BadConstraints"}, {"queue-ahead", "Priority"}, {"priority", "Priority"},
        {"held", "JobHeldUser"}, {"no-room", "JobHeldUser"}, {"store", "JobHeldAdmin"},
        {"store-away", "BeginTime"}, {"begin", "BeginTime"}, {"dependency", "Dependency"},
        {"dependency-never", "DependencyNeverSatisfied"}, {"limit", "AssocGrpNodeLimit"},
        {"array-limit", "JobArrayTaskLimit"}, {"licences", "Licenses"}, {"window", "BeginTime"},
        {"max-running", "AssocMaxJobsLimit"}, {"max-gpus", "AssocGrpGRES"},
        {"max-cpus", "AssocGrpCpuLimit"}, {"disk-full", "SystemFailure"}};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (str_eq(reasons[i].code, code))
            return reasons[i].reason;
    return "Resources";
}

/* ---- values ---- */

static bool has_ended(const struct slurm_job *j)
{
    return str_eq(cli_text(j->job, "state"), "ended");
}

static int64_t used_ms(const struct slurm_job *j)
{
    struct wall from = start_of(j), to = cli_time(j->job, "ended_at");
    if (!wall_is_set(from))
        return 0;
    if (!wall_is_set(to))
        to = clock_wall(&clock_system);
    return to.ms > from.ms ? to.ms - from.ms : 0;
}

static int64_t n_cpus(const struct slurm_job *j)
{
    return cli_int(j->job, "cpus", 1) * cli_int(j->job, "nodes", 1);
}

static const json_t *spec_of(const struct slurm_job *j)
{
    return json_object_get(j->detail, "spec");
}

static const char *account(const struct slurm_job *j)
{
    const char *team = cli_string(json_object_get(j->job, "team"));
    return team ? team : "";
}

static long uid_of(const char *user)
{
    const struct passwd *p = getpwnam(user);
    return p ? (long)p->pw_uid : -1;
}

static void add_text(struct buf *out, const char *text, const char *fallback)
{
    buf_adds(out, text && *text && !str_eq(text, "-") ? text : fallback);
}

/* "4G", "512M", "0" */
static void add_memory(struct buf *out, int64_t mib)
{
    if (mib > 0 && mib % 1024 == 0)
        buf_printf(out, "%lldG", (long long)(mib / 1024));
    else
        buf_printf(out, "%lld%s", (long long)mib, mib > 0 ? "M" : "");
}

static void add_tres(struct buf *out, const struct slurm_job *j)
{
    int64_t nodes = cli_int(j->job, "nodes", 1), mib = cli_int(j->job, "memory_mib", 0),
            gpus = cli_int(j->job, "gpus", 0);
    buf_printf(out, "cpu=%lld", (long long)n_cpus(j));
    if (mib > 0) {
        buf_adds(out, ",mem=");
        add_memory(out, mib * nodes);
    }
    buf_printf(out, ",node=%lld,billing=%lld", (long long)nodes, (long long)n_cpus(j));
    if (gpus > 0)
        buf_printf(out, ",gres/gpu=%lld", (long long)(gpus * nodes));
}

static void add_limit_left(struct buf *out, const struct slurm_job *j)
{
    int64_t limit = cli_int(j->job, "time_limit_ms", 0);
    if (limit <= 0)
        buf_adds(out, "UNLIMITED");
    else
        slurm_time_used(limit > used_ms(j) ? limit - used_ms(j) : 0, false, out);
}

static void add_reason(struct buf *out, const struct slurm_job *j)
{
    const char *state = slurm_job_state(j)->name;
    if (str_eq(state, "PENDING"))
        add_text(out, j->reason, "None");
    else if (str_eq(state, "FAILED"))
        buf_adds(out, "NonZeroExitCode");
    else if (str_eq(state, "TIMEOUT"))
        buf_adds(out, "TimeLimit");
    else if (str_eq(state, "NODE_FAIL"))
        buf_adds(out, "NodeDown");
    else if (str_eq(state, "OUT_OF_MEMORY"))
        buf_adds(out, "OutOfMemory");
    else
        buf_adds(out, "None");
}

/* As the agent names it; relative paths are made absolute on the asking machine in the same way. */
static void add_file(struct buf *out, const struct slurm_job *j, const char *key)
{
    const json_t *launch = json_object_get(spec_of(j), "launch");
    const char *pattern = cli_string(json_object_get(launch, key)),
               *cwd = cli_text(spec_of(j), "cwd");
    if (!pattern || !*pattern)
        pattern = cli_string(json_object_get(launch, "output"));
    struct pattern_values v = {.job = cli_int(j->job, "id", 0),
        .array = cli_int(j->job, "array_id", 0),
        .index = cli_int(j->job, "array_index", 0),
        .name = cli_text(j->job, "name"),
        .user = cli_text(j->job, "user"),
        .node = cli_text(j->job, "node"),
        .restarts = cli_int(j->job, "attempts", 1) > 0 ? cli_int(j->job, "attempts", 1) - 1 : 0};
    char *name = NULL;
    struct err e;
    if (!pattern || !*pattern || pattern_expand(pattern, &v, &name, &e) != 0)
        return;
    buf_printf(out, "%s%s%s", *name == '/' ? "" : cwd, *name == '/' ? "" : "/", name);
    free(name);
}

/* "afterok:17,after:18+5,singleton", without satisfied ones, as in Slurm. */
static void add_dependency(struct buf *out, const struct slurm_job *j)
{
    const json_t *list = json_object_get(j->detail, "depends"), *d;
    const char *between = "";
    size_t i;
    json_array_foreach(list, i, d)
    {
        if (str_eq(cli_text(d, "state"), "true"))
            continue;
        buf_printf(out, "%s%s", between, cli_text(d, "kind"));
        if (cli_int(d, "job", 0) > 0)
            buf_printf(out, ":%lld", (long long)cli_int(d, "job", 0));
        if (cli_int(d, "task", -1) >= 0)
            buf_printf(out, "_%lld", (long long)cli_int(d, "task", 0));
        if (cli_int(d, "delay_ms", 0) > 0)
            buf_printf(out, "+%lld", (long long)(cli_int(d, "delay_ms", 0) / 60000));
        between = json_is_true(json_object_get(j->job, "depends_any")) ? "?" : ",";
    }
    if (!*between)
        buf_adds(out, "(null)");
}

/* The text in the brackets of "42_[1-3%2]": the tasks of an array that have not started. */
static void add_indexes(struct buf *out, const char *ref)
{
    const char *from = strchr(ref, '['), *to = strchr(ref, ']');
    if (from && to)
        buf_add(out, from + 1, (size_t)(to - from - 1));
    else
        buf_adds(out, "N/A");
}

void slurm_job_value(const void *row, int what, struct buf *out)
{
    const struct slurm_job *j = row;
    const json_t *job = j->job;
    int code, signal;
    struct wall expected;
    size_t before;
    switch ((enum slurm_job_value)what) {
    case JOB_ID: /* "42", "42_7", "42_[8-99%10]" */
        buf_adds(out, cli_text(job, "ref"));
        return;
    case JOB_ID_RAW:
        buf_printf(out, "%lld", (long long)cli_int(job, "id", 0));
        return;
    case JOB_ARRAY_ID:
        buf_printf(out, "%lld", (long long)cli_int(job, "array_id", cli_int(job, "id", 0)));
        return;
    case JOB_ARRAY_INDEX:
        if (cli_int(job, "array_index", -1) >= 0)
            buf_printf(out, "%lld", (long long)cli_int(job, "array_index", 0));
        else
            add_indexes(out, cli_text(job, "ref"));
        return;
    case JOB_NAME:
        buf_adds(out, cli_text(job, "name"));
        return;
    case JOB_USER:
        buf_adds(out, cli_text(job, "user"));
        return;
    case JOB_UID:
        buf_printf(out, "%ld", uid_of(cli_text(job, "user")));
        return;
    case JOB_PARTITION:
        add_text(out, j->pools, "any");
        return;
    case JOB_STATE:
        buf_adds(out, slurm_job_state(j)->name);
        return;
    case JOB_STATE_SHORT:
        buf_adds(out, slurm_job_state(j)->compact);
        return;
    case JOB_REASON:
        add_reason(out, j);
        return;
    case JOB_REASON_LIST:
        if (j->nodes && *j->nodes && !str_eq(cli_text(job, "state"), "pending")) {
            slurm_hosts_fold(j->nodes, out);
            return;
        }
        buf_addc(out, '(');
        add_reason(out, j);
        buf_addc(out, ')');
        return;
    case JOB_NODES:
        slurm_hosts_fold(j->nodes ? j->nodes : "", out);
        return;
    case JOB_N_NODES:
        buf_printf(out, "%lld", (long long)cli_int(job, "nodes", 1));
        return;
    case JOB_CPUS:
        buf_printf(out, "%lld", (long long)n_cpus(j));
        return;
    case JOB_TASKS: {
        const json_t *tasks = json_object_get(json_object_get(spec_of(j), "launch"), "tasks");
        buf_printf(
            out, "%lld", (long long)(tasks ? json_integer_value(tasks) : cli_int(job, "nodes", 1)));
        return;
    }
    case JOB_MEMORY:
        add_memory(out, cli_int(job, "memory_mib", 0));
        return;
    case JOB_ALL_MEMORY:
        add_memory(out, cli_int(job, "memory_mib", 0) * cli_int(job, "nodes", 1));
        return;
    case JOB_GRES:
        before = out->len;
        slurm_gres(job, "gres:", out);
        if (out->len == before)
            buf_adds(out, "N/A");
        return;
    case JOB_FEATURES:
        buf_adds(out, json_is_string(json_object_get(job, "constraint"))
                          ? cli_text(job, "constraint")
                          : "(null)");
        return;
    case JOB_DEADLINE:
        slurm_time_at(cli_time(job, "deadline_at"), "N/A", out);
        return;
    case JOB_NODES_WANTED:
        buf_adds(out, json_is_string(json_object_get(job, "nodelist")) ? cli_text(job, "nodelist")
                                                                       : "(null)");
        return;
    case JOB_NODES_EXCLUDED:
        buf_adds(out,
            json_is_string(json_object_get(job, "exclude")) ? cli_text(job, "exclude") : "(null)");
        return;
    case JOB_LICENCES:
        before = out->len;
        cli_words(json_object_get(job, "licences"), out);
        if (out->len == before)
            buf_adds(out, "(null)");
        return;
    case JOB_TRES:
        add_tres(out, j);
        return;
    case JOB_USED:
    case JOB_USED_LONG:
        slurm_time_used(used_ms(j), what == JOB_USED_LONG, out);
        return;
    case JOB_USED_S:
        buf_printf(out, "%lld", (long long)(used_ms(j) / 1000));
        return;
    case JOB_LIMIT:
    case JOB_LIMIT_LONG:
        slurm_time_limit(cli_int(job, "time_limit_ms", 0), what == JOB_LIMIT_LONG, out);
        return;
    case JOB_LIMIT_MINUTES:
        if (cli_int(job, "time_limit_ms", 0) > 0)
            buf_printf(
                out, "%lld", (long long)((cli_int(job, "time_limit_ms", 0) + 59999) / 60000));
        return;
    case JOB_LEFT:
        add_limit_left(out, j);
        return;
    case JOB_SUBMITTED:
        slurm_time_at(cli_time(job, "submitted_at"), "N/A", out);
        return;
    case JOB_STARTED:
        if (j->expected && time_parse_iso(j->expected, &expected, NULL) == 0)
            slurm_time_at(expected, "N/A", out);
        else
            slurm_time_at(start_of(j), "N/A", out);
        return;
    case JOB_ENDED:
        slurm_time_at(cli_time(job, "ended_at"), "N/A", out);
        return;
    case JOB_STARTED_LONG:
        slurm_time_at(start_of(j), has_ended(j) ? "None" : "Unknown", out);
        return;
    case JOB_ENDED_LONG:
        slurm_time_at(cli_time(job, "ended_at"), "Unknown", out);
        return;
    case JOB_EXIT:
        slurm_job_exit(j, &code, &signal);
        buf_printf(out, "%d:%d", code, signal);
        return;
    case JOB_ACCOUNT:
        buf_adds(out, account(j));
        return;
    case JOB_QOS:
        add_text(out, cli_text(job, "qos"), "normal");
        return;
    case JOB_PRIORITY:
        buf_printf(out, "%lld",
            (long long)cli_int(job, "priority", str_eq(cli_text(job, "hold"), "none") ? 1 : 0));
        return;
    case JOB_NICE:
        buf_printf(out, "%lld", (long long)cli_int(job, "nice", 0));
        return;
    case JOB_DEPENDENCY:
        add_dependency(out, j);
        return;
    case JOB_ELIGIBLE:
        slurm_time_at(cli_time(job, "eligible_at"), "Unknown", out);
        return;
    case JOB_DIR:
        add_text(out, cli_text(spec_of(j), "cwd"), "");
        return;
    case JOB_COMMAND:
        add_text(out, cli_text(job, "name"), "(null)");
        return;
    case JOB_OUTPUT:
        add_file(out, j, "output");
        return;
    case JOB_ERROR:
        add_file(out, j, "error");
        return;
    case JOB_RESTARTS: {
        int64_t attempts = cli_int(job, "attempts", 0);
        buf_printf(out, "%lld", (long long)(attempts > 0 ? attempts - 1 : 0));
        return;
    }
    case JOB_BATCH_HOST: {
        size_t n = j->nodes ? strcspn(j->nodes, ",") : 0;
        buf_add(out, j->nodes ? j->nodes : "", n);
        return;
    }
    case JOB_TOTAL_CPU:
    case JOB_AVE_CPU:
    case JOB_USER_CPU:
    case JOB_SYSTEM_CPU:
    case JOB_MAX_RSS:
    case JOB_MAX_RSS_NODE:
    case JOB_MAX_RSS_TASK:
    case JOB_AVE_RSS:
        slurm_used_value(j, what, out);
        return;
    case JOB_CPU_TIME:
        slurm_time_used(used_ms(j) * n_cpus(j), true, out);
        return;
    case JOB_CPU_TIME_S:
        buf_printf(out, "%lld", (long long)(used_ms(j) / 1000 * n_cpus(j)));
        return;
    case JOB_SHARED:
        buf_adds(out, json_is_true(json_object_get(job, "exclusive")) ? "NO" : "OK");
        return;
    }
}

/* ---- JSON ---- */

static json_t *value_text(const struct slurm_job *j, int what)
{
    struct buf text = {0};
    slurm_job_value(j, what, &text);
    json_t *v = json_text(buf_str(&text));
    buf_deinit(&text);
    return v;
}

static json_t *seconds(const json_t *job, const char *key)
{
    struct wall at = cli_time(job, key);
    return json_integer(wall_is_set(at) ? at.ms / 1000 : 0);
}

json_t *slurm_job_json(const struct slurm_job *j)
{
    int code, signal;
    json_t *o = json_object();
    slurm_job_exit(j, &code, &signal);
    json_object_set_new(o, "job_id", json_integer(cli_int(j->job, "id", 0)));
    json_object_set_new(o, "array_job_id", json_integer(cli_int(j->job, "array_id", 0)));
    json_object_set_new(o, "array_task_id",
        cli_int(j->job, "array_index", -1) >= 0 ? json_integer(cli_int(j->job, "array_index", 0))
                                                : json_null());
    json_object_set_new(o, "name", value_text(j, JOB_NAME));
    json_object_set_new(o, "user_name", value_text(j, JOB_USER));
    json_object_set_new(o, "user_id", json_integer(uid_of(cli_text(j->job, "user"))));
    json_object_set_new(o, "account", value_text(j, JOB_ACCOUNT));
    json_object_set_new(o, "partition", value_text(j, JOB_PARTITION));
    json_object_set_new(o, "job_state", value_text(j, JOB_STATE));
    json_object_set_new(o, "state_reason", value_text(j, JOB_REASON));
    json_object_set_new(o, "nodes", value_text(j, JOB_NODES));
    json_object_set_new(o, "batch_host", value_text(j, JOB_BATCH_HOST));
    json_object_set_new(o, "node_count", json_integer(cli_int(j->job, "nodes", 1)));
    json_object_set_new(o, "cpus", json_integer(n_cpus(j)));
    json_object_set_new(o, "memory_per_node", json_integer(cli_int(j->job, "memory_mib", 0)));
    json_object_set_new(o, "tres_req_str", value_text(j, JOB_TRES));
    json_object_set_new(
        o, "time_limit", json_integer((cli_int(j->job, "time_limit_ms", 0) + 59999) / 60000));
    json_object_set_new(o, "submit_time", seconds(j->job, "submitted_at"));
    json_object_set_new(
        o, "start_time", json_integer(wall_is_set(start_of(j)) ? start_of(j).ms / 1000 : 0));
    json_object_set_new(o, "end_time", seconds(j->job, "ended_at"));
    json_object_set_new(o, "exit_code", json_integer(code << 8 | signal));
    json_object_set_new(o, "restart_cnt",
        json_integer(cli_int(j->job, "attempts", 1) > 1 ? cli_int(j->job, "attempts", 1) - 1 : 0));
    json_object_set_new(o, "current_working_directory", value_text(j, JOB_DIR));
    json_object_set_new(o, "standard_output", value_text(j, JOB_OUTPUT));
    json_object_set_new(o, "standard_error", value_text(j, JOB_ERROR));
    return o;
}
