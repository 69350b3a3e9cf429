/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's jobs in Slurm's words (see slurm.h).
 */
#include "cli/slurm.h"

#include "base/mem.h"
#include "base/pattern.h"
#include "base/str.h"
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REASONS_MAX 100 /* of jobs that are named, asked for one by one */
#define PAGE 200
#define WORDS_MAX 16 /* names in one parameter of belayd's, */
#define NAME_MAX_BYTES 64 /* each shorter than this */

/* ---- states ---- */

static const struct slurm_state states[] = {{"PENDING", "PD"}, {"CONFIGURING", "CF"}, {"RUNNING", "R"}, {"COMPLETING", "CG"},
    {"COMPLETED", "CD"}, {"FAILED", "F"}, {"OUT_OF_MEMORY", "OOM"}, {"CANCELLED", "CA"}, {"TIMEOUT", "TO"},
    {"PREEMPTED", "PR"}, {"NODE_FAIL", "NF"}, {"BOOT_FAIL", "BF"}, {"DEADLINE", "DL"}, {"SUSPENDED", "S"},
    {"REQUEUED", "RQ"}, {"REQUEUE_HOLD", "RH"}, {"RESIZING", "RS"}, {"REVOKED", "RV"}, {"SIGNALING", "SI"},
    {"SPECIAL_EXIT", "SE"}, {"STAGE_OUT", "SO"}, {"STOPPED", "ST"}, {NULL, NULL}};

const struct slurm_state *slurm_state_find(const char *word)
{
    for (const struct slurm_state *s = states; s->name; s++)
        if (strcasecmp(s->name, word) == 0 || strcasecmp(s->compact, word) == 0)
            return s;
    return NULL;
}

/* Why its last attempt ended, for people; "" when it is not known. */
static const char *end_text(const struct slurm_job *j)
{
    const json_t *attempts = json_object_get(j->detail, "attempts");
    const char *text =
        json_string_value(json_object_get(json_array_get(attempts, json_array_size(attempts) - 1), "text"));
    return text ? text : "";
}

static const char *ended_state(const struct slurm_job *j)
{
    static const struct {
        const char *end, *state;
    } ends[] = {{"succeeded", "COMPLETED"}, {"failed", "FAILED"}, {"checkpointed", "FAILED"}, {"user", "CANCELLED"},
        {"timeout", "TIMEOUT"}, {"dependency", "CANCELLED"}, {"reclaimed", "PREEMPTED"}, {"evicted", "PREEMPTED"}, {"drained", "PREEMPTED"},
        {"drilled", "PREEMPTED"}, {"node-lost", "NODE_FAIL"}, {"gang", "NODE_FAIL"}, {"capacity", "BOOT_FAIL"},
        {"budget", "DEADLINE"}, {"window", "DEADLINE"}, {"deadline", "DEADLINE"}};
    const char *end = cli_text(j->job, "end");
    if (str_eq(end, "failed") && strstr(end_text(j), "it used all of the"))
        return "OUT_OF_MEMORY";
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (str_eq(ends[i].end, end))
            return ends[i].state;
    return "FAILED";
}

static struct wall time_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    struct wall at = WALL_NONE;
    struct err e;
    if (text && time_parse_iso(text, &at, &e) != 0)
        return WALL_NONE;
    return at;
}

/* Time limits count from here: of a job that runs its attempt's start; to Slurm one that is queued again has not started. */
static struct wall start_of(const struct slurm_job *j)
{
    const char *state = cli_text(j->job, "state");
    if (str_eq(state, "pending"))
        return WALL_NONE;
    bool of_attempt = json_object_get(j->job, "attempt_started_at") && !str_eq(state, "ended");
    return time_of(j->job, of_attempt ? "attempt_started_at" : "started_at");
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
    bool killed = code > 128 && (!j->detail || strstr(end_text(j), "signal") || !str_eq(end, "failed"));
    *ret_code = killed ? 0 : code;
    *ret_signal = killed ? code - 128 : 0;
    if (ended && (str_eq(end, "user") || str_eq(end, "timeout"))) {
        *ret_code = 0;
        *ret_signal = str_eq(end, "user") ? 15 : 0;
    }
}

/* Slurm's word for a code of `belay why`. */
static const char *slurm_reason(const char *code)
{
    static const struct {
        const char *code, *reason;
    } reasons[] = {{"no-pool", "PartitionDown"}, {"too-large", "PartitionNodeLimit"}, {"too-many-nodes", "PartitionNodeLimit"},
        {"market", "BadConstraints"}, {"criu", "BadConstraints"}, {"queue-ahead", "Priority"}, {"priority", "Priority"},
        {"held", "JobHeldUser"}, {"begin", "BeginTime"}, {"dependency", "Dependency"}, {"dependency-never", "DependencyNeverSatisfied"}, {"limit", "AssocGrpNodeLimit"},
        {"array-limit", "JobArrayTaskLimit"}, {"licences", "Licenses"}, {"window", "BeginTime"}, {"max-running", "AssocMaxJobsLimit"},
        {"max-gpus", "AssocGrpGRES"}, {"max-cpus", "AssocGrpCpuLimit"}, {"disk-full", "SystemFailure"}};
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
    struct wall from = start_of(j), to = time_of(j->job, "ended_at");
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
    const char *team = json_string_value(json_object_get(j->job, "team"));
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
    int64_t nodes = cli_int(j->job, "nodes", 1), mib = cli_int(j->job, "memory_mib", 0), gpus = cli_int(j->job, "gpus", 0);
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

/* As the agent names it; on the machine that asks, relative paths are made absolute as they are there. */
static void add_file(struct buf *out, const struct slurm_job *j, const char *key)
{
    const json_t *launch = json_object_get(spec_of(j), "launch");
    const char *pattern = json_string_value(json_object_get(launch, key)), *cwd = cli_text(spec_of(j), "cwd");
    if (!pattern || !*pattern)
        pattern = json_string_value(json_object_get(launch, "output"));
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

/* "afterok:17,after:18+5,singleton"; those that have come true are left out, as in Slurm. */
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

/* Of "42_[1-3%2]" what stands in the brackets: the tasks of an array that have not begun. */
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
        buf_printf(out, "%lld", (long long)(tasks ? json_integer_value(tasks) : cli_int(job, "nodes", 1)));
        return;
    }
    case JOB_MEMORY:
        add_memory(out, cli_int(job, "memory_mib", 0));
        return;
    case JOB_GRES:
        before = out->len;
        slurm_gres(job, "gres:", out);
        if (out->len == before)
            buf_adds(out, "N/A");
        return;
    case JOB_FEATURES:
        buf_adds(out, json_is_string(json_object_get(job, "constraint")) ? cli_text(job, "constraint") : "(null)");
        return;
    case JOB_DEADLINE:
        slurm_time_at(time_of(job, "deadline_at"), "N/A", out);
        return;
    case JOB_NODES_WANTED:
        buf_adds(out, json_is_string(json_object_get(job, "nodelist")) ? cli_text(job, "nodelist") : "(null)");
        return;
    case JOB_NODES_EXCLUDED:
        buf_adds(out, json_is_string(json_object_get(job, "exclude")) ? cli_text(job, "exclude") : "(null)");
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
            buf_printf(out, "%lld", (long long)((cli_int(job, "time_limit_ms", 0) + 59999) / 60000));
        return;
    case JOB_LEFT:
        add_limit_left(out, j);
        return;
    case JOB_SUBMITTED:
        slurm_time_at(time_of(job, "submitted_at"), "N/A", out);
        return;
    case JOB_STARTED:
        if (j->expected && time_parse_iso(j->expected, &expected, NULL) == 0)
            slurm_time_at(expected, "N/A", out);
        else
            slurm_time_at(start_of(j), "N/A", out);
        return;
    case JOB_ENDED:
        slurm_time_at(time_of(job, "ended_at"), "N/A", out);
        return;
    case JOB_STARTED_LONG:
        slurm_time_at(start_of(j), has_ended(j) ? "None" : "Unknown", out);
        return;
    case JOB_ENDED_LONG:
        slurm_time_at(time_of(job, "ended_at"), "Unknown", out);
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
        buf_printf(out, "%lld", (long long)cli_int(job, "priority", str_eq(cli_text(job, "hold"), "none") ? 1 : 0));
        return;
    case JOB_NICE:
        buf_printf(out, "%lld", (long long)cli_int(job, "nice", 0));
        return;
    case JOB_DEPENDENCY:
        add_dependency(out, j);
        return;
    case JOB_ELIGIBLE:
        slurm_time_at(time_of(job, "eligible_at"), "Unknown", out);
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
    case JOB_CLUSTER:
        buf_adds(out, "belay");
        return;
    case JOB_SHARED:
        buf_adds(out, json_is_true(json_object_get(job, "exclusive")) ? "NO" : "OK");
        return;
    case JOB_ZERO:
        buf_adds(out, "0");
        return;
    case JOB_COMMENT:
    case JOB_NULL:
        buf_adds(out, "(null)");
        return;
    case JOB_NOTHING:
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
    struct wall at = time_of(job, key);
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
        cli_int(j->job, "array_index", -1) >= 0 ? json_integer(cli_int(j->job, "array_index", 0)) : json_null());
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
    json_object_set_new(o, "time_limit", json_integer((cli_int(j->job, "time_limit_ms", 0) + 59999) / 60000));
    json_object_set_new(o, "submit_time", seconds(j->job, "submitted_at"));
    json_object_set_new(o, "start_time", json_integer(wall_is_set(start_of(j)) ? start_of(j).ms / 1000 : 0));
    json_object_set_new(o, "end_time", seconds(j->job, "ended_at"));
    json_object_set_new(o, "exit_code", json_integer(code << 8 | signal));
    json_object_set_new(o, "restart_cnt", json_integer(cli_int(j->job, "attempts", 1) > 1 ? cli_int(j->job, "attempts", 1) - 1 : 0));
    json_object_set_new(o, "current_working_directory", value_text(j, JOB_DIR));
    json_object_set_new(o, "standard_output", value_text(j, JOB_OUTPUT));
    json_object_set_new(o, "standard_error", value_text(j, JOB_ERROR));
    return o;
}

/* ---- belayd ---- */

json_t *slurm_get(const char *program, struct client *c, const char *path)
{
    json_t *v = NULL;
    struct err e;
    if (client_json(c, "GET", path, NULL, &v, &e) == 0)
        return v;
    slurm_error(program, "%s", e.text);
    return NULL;
}

int64_t slurm_job_number(const char *text)
{
    char number[24] = "";
    size_t n = strspn(text, "0123456789");
    int64_t id = 0;
    if (n == 0 || n >= sizeof(number) || (text[n] && text[n] != '.' && text[n] != '+'))
        return 0;
    memcpy(number, text, n);
    return str_to_i64(number, 1, INT64_MAX, "job", &id, NULL) == 0 ? id : 0;
}

bool slurm_job_name(const char *text, int64_t *ret_id, char ret_tasks[SLURM_TASKS_MAX])
{
    char number[24] = "";
    size_t n = strspn(text, "0123456789");
    const char *tasks = text[n] == '_' ? text + n + 1 : "";
    size_t len = strlen(tasks);
    bool brackets = tasks[0] == '[' && str_ends(tasks, "]");
    ret_tasks[0] = '\0';
    if (text[n] != '_') {
        *ret_id = slurm_job_number(text);
        return *ret_id > 0;
    }
    if (n == 0 || n >= sizeof(number) || len == 0 || len >= SLURM_TASKS_MAX ||
        (!brackets && strspn(tasks, "0123456789") != strcspn(tasks, ".+")))
        return false;
    memcpy(number, text, n);
    memcpy(ret_tasks, tasks + brackets, brackets ? len - 2 : strcspn(tasks, ".+"));
    ret_tasks[brackets ? len - 2 : strcspn(tasks, ".+")] = '\0';
    return ret_tasks[0] && str_to_i64(number, 1, INT64_MAX, "job", ret_id, NULL) == 0;
}

struct walk {
    struct client *c;
    const struct slurm_query *q;
    slurm_job_fn on_job;
    void *ctx;
    json_t *nodes; /* all, live and gone; read when first needed */
    json_t *pools; /* in force; likewise */
    int reasons;
    int starts;
};

static const char *node_name(struct walk *w, int64_t id)
{
    size_t i;
    const json_t *node;
    if (!w->nodes)
        w->nodes = slurm_get(w->q->program, w->c, "/api/v1/nodes?state=all");
    json_array_foreach(json_object_get(w->nodes, "nodes"), i, node)
    {
        if (cli_int(node, "id", 0) == id)
            return cli_text(node, "name");
    }
    return NULL;
}

/* Of its newest attempt, by rank. */
static void add_nodes(struct walk *w, const json_t *detail, const json_t *job, struct buf *out)
{
    const json_t *attempts = json_object_get(detail, "attempts"), *a;
    size_t i;
    json_array_foreach(attempts, i, a)
    {
        const char *name = cli_int(a, "attempt", 0) == cli_int(job, "attempts", 0) ? node_name(w, cli_int(a, "node", 0)) : NULL;
        if (name)
            buf_printf(out, "%s%s", out->len ? "," : "", name);
    }
}

/* A job that names none may run in any. */
static void add_all_pools(struct walk *w, struct buf *out)
{
    size_t i;
    const json_t *pool;
    if (!w->pools)
        w->pools = slurm_get(w->q->program, w->c, "/api/v1/pools");
    json_array_foreach(json_object_get(w->pools, "pools"), i, pool)
        buf_printf(out, "%s%s", out->len ? "," : "", cli_text(pool, "name"));
}

static void add_pools(struct walk *w, const json_t *job, struct buf *out)
{
    const char *used = json_string_value(json_object_get(job, "pool_used")), *asked = json_string_value(json_object_get(job, "pool"));
    if (used && !str_eq(cli_text(job, "state"), "pending"))
        buf_adds(out, used);
    else if (asked)
        buf_adds(out, asked);
    else
        add_all_pools(w, out);
}

/* An array of which all has begun: its tasks tell of themselves. One that has ended has had no attempt, and ended as they did. */
static bool is_all_tasks(const json_t *job)
{
    const char *state = cli_text(job, "state"), *end = cli_text(job, "end");
    return str_eq(state, "unfolded") || (str_eq(state, "ended") && cli_int(job, "attempts", 0) == 0 && !str_eq(end, "user") &&
                                            !str_eq(end, "dependency") && !str_eq(end, "deadline"));
}

static bool is_wanted(const struct slurm_query *q, const struct slurm_job *j)
{
    const struct slurm_state *s = slurm_job_state(j);
    struct wall ended = time_of(j->job, "ended_at"), submitted = time_of(j->job, "submitted_at");
    if (!q->jobs && is_all_tasks(j->job))
        return false;
    if (q->states && !slurm_list_has(q->states, s->name) && !slurm_list_has(q->states, s->compact) &&
        !slurm_list_has(q->states, "all"))
        return false;
    if (wall_is_set(q->ended_after) && wall_is_set(ended) && ended.ms < q->ended_after.ms)
        return false;
    if (wall_is_set(q->submitted_until) && wall_is_set(submitted) && submitted.ms > q->submitted_until.ms)
        return false;
    return slurm_list_has(q->user, cli_text(j->job, "user")) && slurm_list_has(q->name, cli_text(j->job, "name")) &&
           slurm_lists_meet(q->pool, j->pools);
}

/* Takes nothing; detail NULL: read when the query wants it. */
static void visit(struct walk *w, const json_t *job, const json_t *detail)
{
    struct slurm_job j = {.job = job, .detail = detail};
    struct buf nodes = {0}, pools = {0};
    json_t *own = NULL, *why = NULL, *start = NULL;
    char *path = mem_printf("/api/v1/jobs/%lld", (long long)cli_int(job, "id", 0));
    bool pending = str_eq(cli_text(job, "state"), "pending"), ended = str_eq(cli_text(job, "state"), "ended");
    if (!detail && str_eq(cli_text(job, "end"), "failed") && cli_int(job, "exit_code", 0) > 128)
        j.detail = detail = own = slurm_get(w->q->program, w->c, path); /* out of memory, or killed? */
    add_pools(w, job, &pools);
    j.pools = buf_str(&pools);
    if (!is_wanted(w->q, &j))
        goto out;
    const char *node = json_string_value(json_object_get(job, "node"));
    bool asks_attempts = w->q->wants_nodes && !pending && (ended || cli_int(job, "nodes", 1) > 1 || !node);
    if (!detail && (asks_attempts || w->q->wants_detail))
        j.detail = own = slurm_get(w->q->program, w->c, path);
    if (asks_attempts)
        add_nodes(w, j.detail, job, &nodes);
    else if (!pending && node)
        buf_adds(&nodes, node);
    const char *listed = json_string_value(json_object_get(json_object_get(job, "why"), "code"));
    if (pending && listed)
        j.reason = slurm_reason(listed);
    else if (pending && w->q->wants_reasons && w->reasons < REASONS_MAX) {
        struct err e;
        char *ask = mem_printf("%s/why?brief=1", path);
        w->reasons++;
        if (client_json(w->c, "GET", ask, NULL, &why, &e) == 0)
            j.reason = slurm_reason(cli_text(json_array_get(json_object_get(why, "reasons"), 0), "code"));
        free(ask);
    }
    if (pending && w->q->wants_starts && w->starts++ < STARTS_MAX) {
        struct err e;
        char *ask = mem_printf("%s/why", path);
        if (client_json(w->c, "GET", ask, NULL, &start, &e) == 0)
            j.expected = json_string_value(json_object_get(json_object_get(start, "estimate"), "median"));
        free(ask);
    }
    j.nodes = buf_str(&nodes);
    w->on_job(w->ctx, &j);
out:
    json_decref(start);
    json_decref(own);
    json_decref(why);
    buf_deinit(&nodes);
    buf_deinit(&pools);
    free(path);
}

static int read_pages(struct walk *w, int64_t array, json_t *all);

/* Of an array: what of it has not begun, then its tasks that have, in their order; index < 0: all. */
static int visit_tasks(struct walk *w, const json_t *detail, const char *tasks)
{
    const json_t *job = json_object_get(detail, "job"), *task;
    json_t *all = json_array();
    bool found = false;
    int rc = read_pages(w, cli_int(job, "id", 0), all);
    for (size_t i = json_array_size(all); rc == CLI_OK && i-- > 0;) {
        char index[24];
        task = json_array_get(all, i);
        snprintf(index, sizeof(index), "%lld", (long long)cli_int(task, "array_index", -1));
        if (*tasks && !slurm_list_has(tasks, index))
            continue;
        found = true;
        visit(w, task, NULL);
    }
    json_decref(all);
    if (rc == CLI_OK && !found && strchr(cli_text(job, "ref"), '_'))
        visit(w, job, detail); /* it has not begun */
    else if (rc == CLI_OK && !*tasks && strchr(cli_text(job, "ref"), '_'))
        visit(w, job, detail);
    return rc;
}

/* A list of tasks may stand in brackets, with commas of its own. */
static bool next_job(const char **list, struct buf *out)
{
    bool inside = false;
    const char *p = *list + strspn(*list, ", ");
    size_t n = 0;
    for (; p[n] && (inside || p[n] != ','); n++)
        inside = p[n] == '[' || (inside && p[n] != ']');
    buf_clear(out);
    buf_add(out, p, n);
    buf_adds(out, "");
    *list = p + n;
    return n > 0;
}

static int visit_named(struct walk *w, bool strict)
{
    struct buf item = {0};
    const char *list = w->q->jobs;
    int rc = CLI_OK;
    while (next_job(&list, &item)) {
        char tasks[SLURM_TASKS_MAX];
        int64_t id;
        struct err e = {0};
        json_t *v = NULL;
        int failed = ERR_NOT_FOUND;
        if (slurm_job_name(buf_str(&item), &id, tasks)) {
            char *path = mem_printf("/api/v1/jobs/%lld", (long long)id);
            failed = client_json(w->c, "GET", path, NULL, &v, &e);
            free(path);
        }
        if (failed == 0 && json_is_object(json_object_get(v, "array")))
            rc = visit_tasks(w, v, tasks) == CLI_OK ? rc : CLI_FAILED;
        else if (failed == 0)
            visit(w, json_object_get(v, "job"), v);
        else if (failed != ERR_NOT_FOUND)
            slurm_error(w->q->program, "%s", e.text);
        else if (strict)
            fputs("slurm_load_jobs error: Invalid job id specified\n", stderr);
        rc = failed == 0 || (failed == ERR_NOT_FOUND && !strict) ? rc : CLI_FAILED;
        json_decref(v);
    }
    buf_deinit(&item);
    return rc;
}

/* "&user=ann,bob": what belayd may leave out. What it would not take is left to is_wanted. */
static void add_words(struct buf *path, const char *name, const char *list)
{
    struct buf words = {0}, item = {0};
    size_t n = 0;
    bool fits = list != NULL;
    while (fits && slurm_next_item(&list, &item)) {
        fits = item.len > 0 && item.len < NAME_MAX_BYTES && ++n <= WORDS_MAX;
        buf_adds(&words, n > 1 ? "," : "");
        str_url_encode(&words, buf_str(&item), item.len);
    }
    if (fits && n > 0)
        buf_printf(path, "&%s=%s", name, buf_str(&words));
    buf_deinit(&words);
    buf_deinit(&item);
}

static void add_moment(struct buf *path, const char *name, struct wall at)
{
    char iso[TIME_ISO_MAX];
    if (!wall_is_set(at))
        return;
    time_format_iso(at, iso);
    buf_printf(path, "&%s=%s", name, iso);
}

/* All pages of this list. */
static int read_list(struct walk *w, const char *which, json_t *all)
{
    int64_t before = 0;
    do {
        struct buf path = {0};
        buf_printf(&path, "/api/v1/jobs?limit=%d&%s", PAGE, which);
        add_words(&path, "user", w->q->user);
        add_words(&path, "pool", w->q->pool);
        if (w->q->wants_reasons)
            buf_adds(&path, "&why=1");
        if (before > 0)
            buf_printf(&path, "&before=%lld", (long long)before);
        json_t *v = slurm_get(w->q->program, w->c, buf_str(&path));
        buf_deinit(&path);
        if (!v)
            return CLI_FAILED;
        json_array_extend(all, json_object_get(v, "jobs"));
        before = cli_int(v, "next", 0);
        json_decref(v);
    } while (before > 0);
    return CLI_OK;
}

struct numbered {
    int64_t id;
    size_t place;
    json_t *job;
};

/* Newest first; of one that was read twice, for it has ended in between, the later. */
static int compare_jobs(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? 1 : -1;
    return x->place < y->place ? 1 : -1;
}

static void merge(const json_t *read, json_t *all)
{
    size_t n = json_array_size(read), i;
    struct numbered *list = mem_array(n + 1, sizeof(*list));
    json_t *job;
    json_array_foreach(read, i, job) list[i] = (struct numbered){cli_int(job, "id", 0), i, job};
    qsort(list, n, sizeof(*list), compare_jobs);
    for (i = 0; i < n; i++)
        if (i == 0 || list[i].id != list[i - 1].id)
            json_array_append(all, list[i].job);
    free(list);
}

/* Those that have ended since a moment stand in an order of their own, that an index answers. */
static int read_since(struct walk *w, json_t *all)
{
    struct buf live = {0}, ended = {0};
    json_t *read = json_array();
    buf_adds(&live, "state=active");
    buf_adds(&ended, "state=ended&sort=ended");
    add_moment(&ended, "since", w->q->ended_after);
    add_moment(&live, "until", w->q->submitted_until);
    add_moment(&ended, "until", w->q->submitted_until);
    int rc = read_list(w, buf_str(&live), read);
    if (rc == CLI_OK)
        rc = read_list(w, buf_str(&ended), read);
    if (rc == CLI_OK)
        merge(read, all);
    json_decref(read);
    buf_deinit(&live);
    buf_deinit(&ended);
    return rc;
}

/* Newest first: all are read before the first is shown. */
static int read_pages(struct walk *w, int64_t array, json_t *all)
{
    struct buf which = {0};
    if (array == 0 && w->q->ended && wall_is_set(w->q->ended_after))
        return read_since(w, all);
    buf_printf(&which, "state=%s", w->q->ended || array > 0 ? "all" : "active");
    if (array > 0)
        buf_printf(&which, "&array=%lld", (long long)array);
    add_moment(&which, "until", w->q->submitted_until);
    int rc = read_list(w, buf_str(&which), all);
    buf_deinit(&which);
    return rc;
}

int slurm_each_job(struct client *c, const struct slurm_query *q, bool strict, slurm_job_fn on_job, void *ctx)
{
    struct walk w = {.c = c, .q = q, .on_job = on_job, .ctx = ctx};
    int rc;
    if (q->jobs) {
        rc = visit_named(&w, strict);
    } else {
        json_t *all = json_array();
        rc = read_pages(&w, 0, all);
        for (size_t i = json_array_size(all); rc == CLI_OK && i-- > 0;)
            visit(&w, json_array_get(all, i), NULL);
        json_decref(all);
    }
    json_decref(w.nodes);
    json_decref(w.pools);
    return rc;
}
