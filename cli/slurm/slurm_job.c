/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's jobs in Slurm's words (see slurm.h).
 */
#include "cli/slurm/slurm.h"

#include "base/mem.h"
#include "job/pattern.h"
#include "base/str.h"
#include <assert.h>
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
        {"cancelled", "CANCELLED"}, {"timeout", "TIMEOUT"}, {"dependency", "CANCELLED"},
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
    if (ended && (str_eq(end, "cancelled") || str_eq(end, "timeout"))) {
        *ret_code = 0;
        *ret_signal = str_eq(end, "cancelled") ? 15 : 0;
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

static int64_t used_s(const struct slurm_job *j)
{
    return used_ms(j) / 1000;
}

static int64_t limit_ms(const struct slurm_job *j)
{
    return cli_int(j->job, "time_limit_ms", 0);
}

static int64_t limit_minutes(const struct slurm_job *j)
{
    return (limit_ms(j) + 59999) / 60000;
}

static int64_t job_number(const struct slurm_job *j)
{
    return cli_int(j->job, "id", 0);
}

static int64_t array_number(const struct slurm_job *j)
{
    return cli_int(j->job, "array_id", job_number(j));
}

static int64_t n_nodes(const struct slurm_job *j)
{
    return cli_int(j->job, "nodes", 1);
}

static int64_t n_cpus(const struct slurm_job *j)
{
    return cli_int(j->job, "cpus", 1) * n_nodes(j);
}

static int64_t cpu_ms(const struct slurm_job *j)
{
    return used_ms(j) * n_cpus(j);
}

static int64_t cpu_s(const struct slurm_job *j)
{
    return used_s(j) * n_cpus(j);
}

static int64_t memory_mib(const struct slurm_job *j)
{
    return cli_int(j->job, "memory_mib", 0);
}

static int64_t all_memory_mib(const struct slurm_job *j)
{
    return memory_mib(j) * n_nodes(j);
}

static const json_t *spec_of(const struct slurm_job *j)
{
    return json_object_get(j->detail, "spec");
}

static const json_t *launch_of(const struct slurm_job *j)
{
    return json_object_get(spec_of(j), "launch");
}

static int64_t n_tasks(const struct slurm_job *j)
{
    const json_t *tasks = json_object_get(launch_of(j), "tasks");
    return tasks ? json_integer_value(tasks) : n_nodes(j);
}

static int64_t n_restarts(const struct slurm_job *j)
{
    int64_t attempts = cli_int(j->job, "attempts", 0);
    return attempts > 0 ? attempts - 1 : 0;
}

static int64_t priority(const struct slurm_job *j)
{
    return cli_int(j->job, "priority", str_eq(cli_text(j->job, "hold"), "none") ? 1 : 0);
}

static int64_t nice_value(const struct slurm_job *j)
{
    return cli_int(j->job, "nice", 0);
}

static int64_t uid_of(const struct slurm_job *j)
{
    const struct passwd *p = getpwnam(cli_text(j->job, "user"));
    return p ? (int64_t)p->pw_uid : -1;
}

static void add_number(struct buf *out, int64_t n)
{
    buf_printf(out, "%lld", (long long)n);
}

static void add_text(struct buf *out, const char *text, const char *fallback)
{
    buf_adds(out, text && *text && !str_eq(text, "-") ? text : fallback);
}

/* "4G", "512M", "0" */
static void add_mib(struct buf *out, int64_t mib)
{
    if (mib > 0 && mib % 1024 == 0)
        buf_printf(out, "%lldG", (long long)(mib / 1024));
    else
        buf_printf(out, "%lld%s", (long long)mib, mib > 0 ? "M" : "");
}

/* For a task its index; for an array the text in the brackets of "42_[1-3%2]": the tasks that have
 * not started. */
static void add_array_index(struct buf *out, const struct slurm_job *j)
{
    const char *ref = cli_text(j->job, "ref"), *from = strchr(ref, '['), *to = strchr(ref, ']');
    if (cli_int(j->job, "array_index", -1) >= 0)
        add_number(out, cli_int(j->job, "array_index", 0));
    else if (from && to)
        buf_add(out, from + 1, (size_t)(to - from - 1));
    else
        buf_adds(out, "N/A");
}

static void add_partition(struct buf *out, const struct slurm_job *j)
{
    add_text(out, j->pools, "any");
}

static void add_state(struct buf *out, const struct slurm_job *j)
{
    buf_adds(out, slurm_job_state(j)->name);
}

static void add_state_short(struct buf *out, const struct slurm_job *j)
{
    buf_adds(out, slurm_job_state(j)->compact);
}

static void add_reason(struct buf *out, const struct slurm_job *j)
{
    static const char *const reasons[][2] = {{"FAILED", "NonZeroExitCode"},
        {"TIMEOUT", "TimeLimit"}, {"NODE_FAIL", "NodeDown"}, {"OUT_OF_MEMORY", "OutOfMemory"}};
    const char *state = slurm_job_state(j)->name, *reason = "None";
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (str_eq(reasons[i][0], state))
            reason = reasons[i][1];
    add_text(out, str_eq(state, "PENDING") ? j->reason : reason, "None");
}

static void add_nodes(struct buf *out, const struct slurm_job *j)
{
    slurm_hosts_fold(j->nodes ? j->nodes : "", out);
}

static void add_nodes_or_reason(struct buf *out, const struct slurm_job *j)
{
    if (j->nodes && *j->nodes && !str_eq(cli_text(j->job, "state"), "pending")) {
        add_nodes(out, j);
        return;
    }
    buf_addc(out, '(');
    add_reason(out, j);
    buf_addc(out, ')');
}

static void add_batch_host(struct buf *out, const struct slurm_job *j)
{
    const char *nodes = j->nodes ? j->nodes : "";
    buf_add(out, nodes, strcspn(nodes, ","));
}

static void add_gres(struct buf *out, const struct slurm_job *j)
{
    size_t before = out->len;
    slurm_gres(j->job, "gres:", out);
    if (out->len == before)
        buf_adds(out, "N/A");
}

static void add_licences(struct buf *out, const struct slurm_job *j)
{
    size_t before = out->len;
    cli_words(json_object_get(j->job, "licences"), out);
    if (out->len == before)
        buf_adds(out, "(null)");
}

static void add_tres(struct buf *out, const struct slurm_job *j)
{
    int64_t gpus = cli_int(j->job, "gpus", 0);
    buf_printf(out, "cpu=%lld", (long long)n_cpus(j));
    if (memory_mib(j) > 0) {
        buf_adds(out, ",mem=");
        add_mib(out, all_memory_mib(j));
    }
    buf_printf(out, ",node=%lld,billing=%lld", (long long)n_nodes(j), (long long)n_cpus(j));
    if (gpus > 0)
        buf_printf(out, ",gres/gpu=%lld", (long long)(gpus * n_nodes(j)));
}

static void add_limit_minutes(struct buf *out, const struct slurm_job *j)
{
    if (limit_ms(j) > 0)
        add_number(out, limit_minutes(j));
}

static void add_limit_left(struct buf *out, const struct slurm_job *j)
{
    int64_t limit = limit_ms(j);
    if (limit <= 0)
        buf_adds(out, "UNLIMITED");
    else
        slurm_time_used(limit > used_ms(j) ? limit - used_ms(j) : 0, false, out);
}

/* The start; for a job that waits the expected start, if it was requested. */
static void add_started(struct buf *out, const struct slurm_job *j)
{
    struct wall at;
    if (!j->expected || time_parse_iso(j->expected, &at, NULL) != 0)
        at = start_of(j);
    slurm_time_at(at, "N/A", out);
}

static void add_started_long(struct buf *out, const struct slurm_job *j)
{
    slurm_time_at(start_of(j), has_ended(j) ? "None" : "Unknown", out);
}

static void add_exit(struct buf *out, const struct slurm_job *j)
{
    int code, signal;
    slurm_job_exit(j, &code, &signal);
    buf_printf(out, "%d:%d", code, signal);
}

static void add_shared(struct buf *out, const struct slurm_job *j)
{
    buf_adds(out, json_is_true(json_object_get(j->job, "exclusive")) ? "NO" : "OK");
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

static void add_dir(struct buf *out, const struct slurm_job *j)
{
    add_text(out, cli_text(spec_of(j), "cwd"), "");
}

/* As the agent names it; relative paths are made absolute on the asking machine in the same way. */
static void add_file(struct buf *out, const struct slurm_job *j, const char *key)
{
    const char *pattern = cli_string(json_object_get(launch_of(j), key)),
               *cwd = cli_text(spec_of(j), "cwd");
    if (!pattern || !*pattern)
        pattern = cli_string(json_object_get(launch_of(j), "output"));
    struct pattern_values v = {.job = cli_int(j->job, "id", 0),
        .array = cli_int(j->job, "array_id", 0),
        .index = cli_int(j->job, "array_index", 0),
        .name = cli_text(j->job, "name"),
        .user = cli_text(j->job, "user"),
        .node = cli_text(j->job, "node"),
        .restarts = n_restarts(j)};
    char *name = NULL;
    struct err e;
    if (!pattern || !*pattern || pattern_expand(pattern, &v, &name, &e) != 0)
        return;
    buf_printf(out, "%s%s%s", *name == '/' ? "" : cwd, *name == '/' ? "" : "/", name);
    free(name);
}

static void add_output(struct buf *out, const struct slurm_job *j)
{
    add_file(out, j, "output");
}

static void add_error(struct buf *out, const struct slurm_job *j)
{
    add_file(out, j, "error");
}

/* For each value: where it comes from, and how it is written. */
static const struct value {
    enum { MADE, TEXT, TIME, NUMBER, MIB, DURATION, DURATION_LONG, LIMIT, LIMIT_LONG } type;
    const char *member, *absent; /* TEXT, TIME: a member of the job; the text if it is missing */
    int64_t (*of)(const struct slurm_job *j);                /* NUMBER and following */
    void (*add)(struct buf *out, const struct slurm_job *j); /* MADE */
} values[] = {
    [JOB_ID] = {TEXT, "ref", "-"}, /* "42", "42_7", "42_[8-99%10]" */
    [JOB_ID_RAW] = {NUMBER, .of = job_number},
    [JOB_ARRAY_ID] = {NUMBER, .of = array_number},
    [JOB_ARRAY_INDEX] = {.add = add_array_index},
    [JOB_NAME] = {TEXT, "name", "-"},
    [JOB_USER] = {TEXT, "user", "-"},
    [JOB_UID] = {NUMBER, .of = uid_of},
    [JOB_ACCOUNT] = {TEXT, "team", ""},
    [JOB_QOS] = {TEXT, "qos", "normal"},
    [JOB_PRIORITY] = {NUMBER, .of = priority},
    [JOB_NICE] = {NUMBER, .of = nice_value},
    [JOB_PARTITION] = {.add = add_partition},
    [JOB_STATE] = {.add = add_state},
    [JOB_STATE_SHORT] = {.add = add_state_short},
    [JOB_REASON] = {.add = add_reason},
    [JOB_REASON_LIST] = {.add = add_nodes_or_reason},
    [JOB_NODES] = {.add = add_nodes},
    [JOB_BATCH_HOST] = {.add = add_batch_host},
    [JOB_N_NODES] = {NUMBER, .of = n_nodes},
    [JOB_CPUS] = {NUMBER, .of = n_cpus},
    [JOB_TASKS] = {NUMBER, .of = n_tasks},
    [JOB_MEMORY] = {MIB, .of = memory_mib},
    [JOB_ALL_MEMORY] = {MIB, .of = all_memory_mib},
    [JOB_GRES] = {.add = add_gres},
    [JOB_TRES] = {.add = add_tres},
    [JOB_FEATURES] = {TEXT, "constraint", "(null)"},
    [JOB_NODES_WANTED] = {TEXT, "nodelist", "(null)"},
    [JOB_NODES_EXCLUDED] = {TEXT, "exclude", "(null)"},
    [JOB_LICENCES] = {.add = add_licences},
    [JOB_SHARED] = {.add = add_shared},
    [JOB_DEPENDENCY] = {.add = add_dependency},
    [JOB_USED] = {DURATION, .of = used_ms},
    [JOB_USED_LONG] = {DURATION_LONG, .of = used_ms},
    [JOB_USED_S] = {NUMBER, .of = used_s},
    [JOB_CPU_TIME] = {DURATION_LONG, .of = cpu_ms},
    [JOB_CPU_TIME_S] = {NUMBER, .of = cpu_s},
    [JOB_LIMIT] = {LIMIT, .of = limit_ms},
    [JOB_LIMIT_LONG] = {LIMIT_LONG, .of = limit_ms},
    [JOB_LIMIT_MINUTES] = {.add = add_limit_minutes},
    [JOB_LEFT] = {.add = add_limit_left},
    [JOB_SUBMITTED] = {TIME, "submitted_at", "N/A"},
    [JOB_ELIGIBLE] = {TIME, "eligible_at", "Unknown"},
    [JOB_DEADLINE] = {TIME, "deadline_at", "N/A"},
    [JOB_STARTED] = {.add = add_started},
    [JOB_STARTED_LONG] = {.add = add_started_long},
    [JOB_ENDED] = {TIME, "ended_at", "N/A"},
    [JOB_ENDED_LONG] = {TIME, "ended_at", "Unknown"},
    [JOB_EXIT] = {.add = add_exit},
    [JOB_RESTARTS] = {NUMBER, .of = n_restarts},
    [JOB_COMMAND] = {TEXT, "name", "(null)"},
    [JOB_DIR] = {.add = add_dir},
    [JOB_OUTPUT] = {.add = add_output},
    [JOB_ERROR] = {.add = add_error},
};

void slurm_job_value(const void *row, int what, struct buf *out)
{
    const struct slurm_job *j = row;
    if (slurm_is_usage(what)) {
        slurm_used_value(j, what, out);
        return;
    }
    const struct value *v = &values[what];
    switch (v->type) {
    case MADE:
        assert(v->add);
        v->add(out, j);
        return;
    case TEXT:
        add_text(out, cli_text(j->job, v->member), v->absent);
        return;
    case TIME:
        slurm_time_at(cli_time(j->job, v->member), v->absent, out);
        return;
    case NUMBER:
        add_number(out, v->of(j));
        return;
    case MIB:
        add_mib(out, v->of(j));
        return;
    case DURATION:
    case DURATION_LONG:
        slurm_time_used(v->of(j), v->type == DURATION_LONG, out);
        return;
    case LIMIT:
    case LIMIT_LONG:
        slurm_time_limit(v->of(j), v->type == LIMIT_LONG, out);
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
    json_object_set_new(o, "job_id", json_integer(job_number(j)));
    json_object_set_new(o, "array_job_id", json_integer(cli_int(j->job, "array_id", 0)));
    json_object_set_new(o, "array_task_id",
        cli_int(j->job, "array_index", -1) >= 0 ? json_integer(cli_int(j->job, "array_index", 0))
                                                : json_null());
    json_object_set_new(o, "name", value_text(j, JOB_NAME));
    json_object_set_new(o, "user_name", value_text(j, JOB_USER));
    json_object_set_new(o, "user_id", json_integer(uid_of(j)));
    json_object_set_new(o, "account", value_text(j, JOB_ACCOUNT));
    json_object_set_new(o, "partition", value_text(j, JOB_PARTITION));
    json_object_set_new(o, "job_state", value_text(j, JOB_STATE));
    json_object_set_new(o, "state_reason", value_text(j, JOB_REASON));
    json_object_set_new(o, "nodes", value_text(j, JOB_NODES));
    json_object_set_new(o, "batch_host", value_text(j, JOB_BATCH_HOST));
    json_object_set_new(o, "node_count", json_integer(n_nodes(j)));
    json_object_set_new(o, "cpus", json_integer(n_cpus(j)));
    json_object_set_new(o, "memory_per_node", json_integer(memory_mib(j)));
    json_object_set_new(o, "tres_req_str", value_text(j, JOB_TRES));
    json_object_set_new(o, "time_limit", json_integer(limit_minutes(j)));
    json_object_set_new(o, "submit_time", seconds(j->job, "submitted_at"));
    json_object_set_new(
        o, "start_time", json_integer(wall_is_set(start_of(j)) ? start_of(j).ms / 1000 : 0));
    json_object_set_new(o, "end_time", seconds(j->job, "ended_at"));
    json_object_set_new(o, "exit_code", json_integer(code << 8 | signal));
    json_object_set_new(o, "restart_cnt", json_integer(n_restarts(j)));
    json_object_set_new(o, "current_working_directory", value_text(j, JOB_DIR));
    json_object_set_new(o, "standard_output", value_text(j, JOB_OUTPUT));
    json_object_set_new(o, "standard_error", value_text(j, JOB_ERROR));
    return o;
}
