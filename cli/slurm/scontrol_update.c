/* SPDX-License-Identifier: Apache-2.0
 *
 * See scontrol_update.h.
 */
#include "cli/slurm/scontrol_update.h"

#include "base/mem.h"
#include "job/attributes.h"
#include "job/ranges.h"
#include "base/str.h"
#include "cli/slurm/slurm.h"
#include "cli/flags/updates.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- words of jobs ---- */

/* Words that are keys of belay update, with Slurm's interpretation of values. */
static const struct {
    const char *slurm, *key;
} same[] = {{"JobName", "name"}, {"Name", "name"}, {"Partition", "partition"}, {"QOS", "qos"},
    {"Nice", "nice"}, {"StartTime", "begin"}, {"EligibleTime", "begin"}, {"Deadline", "deadline"},
    {"Dependency", "dependency"}, {"Account", "account"}, {"MinMemoryNode", "mem"},
    {"Features", "constraint"}, {"Licenses", "licenses"}, {"ArrayTaskThrottle", "at-once"},
    {"Requeue", "requeue"}, {"ReqNodeList", "nodelist"}, {"ExcNodeList", "exclude"}};

/* Words without effect: no decision of belay depends on them. */
static const char *const harmless[] = {"Comment", "AdminComment", "SystemComment", "WCKey",
    "BurstBuffer", "Profile", "ResetAccrueTime", "SiteFactor", NULL};

static const struct {
    const char *slurm, *instead;
} refused[] = {{"Priority", "the order is computed continuously: Nice= lowers a job's priority, "
                            "QOS= changes its class, scontrol hold keeps it from starting"},
    {"TimeMin", "belay does not shorten time limits: TimeLimit= sets the limit"},
    {"EndTime", "TimeLimit= sets how long the job may run, counted from its start"},
    {"NumTasks", "submit the job again"}, {"CPUsPerTask", "NumCPUs= changes the CPUs of the job"},
    {"NtasksPerNode", "submit the job again"},
    {"MinCPUsNode", "NumCPUs= changes the CPUs of the job"},
    {"MinTmpDiskNode", "submit the job again"}, {"Contiguous", "submit the job again"},
    {"OverSubscribe", "belay update JOB exclusive=yes|no"},
    {"Shared", "belay update JOB exclusive=yes|no"},
    {"NodeList", "a running job keeps its nodes; ReqNodeList= changes those of a pending job"},
    {"ReservationName", "belay has no reservations"}, {"StdOut", "submit the job again"},
    {"StdErr", "submit the job again"}, {"StdIn", "submit the job again"},
    {"WorkDir", "submit the job again"}, {"MailType", "submit the job again"},
    {"MailUser", "submit the job again"}, {"UserID", "the user of a job cannot be changed"},
    {"Switches", "submit the job again"}, {"CoreSpec", "submit the job again"},
    {"ThreadSpec", "submit the job again"}, {"ClusterFeatures", "submit the job again"},
    {"Clusters", "submit the job again"}, {"DelayBoot", "submit the job again"},
    {"Prefer", "Features= sets the features that the job's nodes must have"}};

static void on_warning(void *ctx, const char *text)
{
    char **warning = ctx;
    free(*warning);
    *warning = mem_strdup(text);
}

static int put(json_t *changes, const char *key, const char *value, char **warning, struct err *e)
{
    return updates_put(changes, key, value, true, on_warning, warning, e);
}

static int refuse(const char *name, struct err *e)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (strcasecmp(refused[i].slurm, name) == 0)
            return err_set(e, ERR_UNSUPPORTED, "%s cannot be changed: %s", refused[i].slurm,
                refused[i].instead);
    return err_set(e, ERR_UNSUPPORTED, "Update of this parameter is not supported: %s", name);
}

/* TimeLimit=30, +30, -1:00:00 or UNLIMITED; a bare number is minutes. */
static int put_limit(
    const char *value, const json_t *job, json_t *changes, char **warning, struct err *e)
{
    int64_t now = cli_int(job, "time_limit_ms", 0), ms;
    if (!value[0])
        return err_set(e, ERR_INVALID, "expected a time, +TIME, -TIME or UNLIMITED");
    if (value[0] != '+' && value[0] != '-')
        return put(changes, "time", value, warning, e);
    int rc = time_parse_duration(value + 1, true, &ms, e);
    if (rc)
        return rc;
    if (now == 0)
        return err_set(
            e, ERR_INVALID, "%s: the job has no time limit to change: use TimeLimit=TIME", value);
    now = value[0] == '+' ? now + ms : now - ms;
    if (now <= 0)
        return err_set(e, ERR_INVALID, "%s: the time limit would be 0 or less", value);
    json_object_set_new(changes, "time_limit_ms", json_integer(now));
    return 0;
}

/* NumCPUs= counts the job's CPUs in Slurm, each node's in belay. */
static int put_cpus(const char *value, const json_t *job, json_t *changes, struct err *e)
{
    const json_t *changed = json_object_get(changes, "nodes");
    int64_t nodes = changed ? json_integer_value(changed) : cli_int(job, "nodes", 1), n;
    int rc = str_to_i64(
        value, 1, job_attribute_max("cpus") * nodes, "how many CPUs, without a range", &n, e);
    if (rc)
        return rc;
    if (n % nodes != 0)
        return err_set(e, ERR_UNSUPPORTED,
            "%lld CPUs are not the same number on each of %lld nodes", (long long)n,
            (long long)nodes);
    json_object_set_new(changes, "cpus", json_integer(n / nodes));
    return 0;
}

static int put_memory_per_cpu(const char *value, const json_t *job, json_t *changes, struct err *e)
{
    const json_t *changed = json_object_get(changes, "cpus");
    int64_t cpus = changed ? json_integer_value(changed) : cli_int(job, "cpus", 1), mib;
    int rc = str_to_mib(value, &mib, e);
    if (!rc && mib > job_attribute_max("memory_mib") / cpus)
        rc = err_set(e, ERR_INVALID, "the job would have more memory than a node can have");
    if (!rc)
        json_object_set_new(changes, "memory_mib", json_integer(mib * cpus));
    return rc;
}

/* The script of a job that becomes multi-node runs on the first node, as in Slurm. */
static int put_nodes(
    const char *value, const json_t *job, json_t *changes, char **warning, struct err *e)
{
    int rc = put(changes, "nodes", value, warning, e);
    json_object_del(changes, "nodes_by_slurm");
    if (!rc && cli_int(job, "nodes", 1) == 1 &&
        json_integer_value(json_object_get(changes, "nodes")) > 1)
        json_object_set_new(changes, "script_on", json_string("first"));
    return rc;
}

/* "gres/gpu:2,gres:lego:1", "gpu:2" */
static int put_gres(const char *value, json_t *changes, char **warning, struct err *e)
{
    struct buf list = {0}, item = {0};
    while (slurm_next_item(&value, &item)) {
        const char *text = buf_str(&item);
        bool prefix = strncasecmp(text, "gres/", 5) == 0 || strncasecmp(text, "gres:", 5) == 0;
        buf_printf(&list, "%s%s", list.len ? "," : "", text + (prefix ? 5 : 0));
    }
    int rc = put(changes, "gres", buf_str(&list), warning, e);
    buf_deinit(&list);
    buf_deinit(&item);
    return rc;
}

static int put_named(const char *name, const char *value, const json_t *job, json_t *changes,
    char **warning, struct err *e)
{
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        if (strcasecmp(same[i].slurm, name) == 0)
            return put(changes, same[i].key, value, warning, e);
    for (size_t i = 0; harmless[i]; i++)
        if (strcasecmp(harmless[i], name) == 0) {
            *warning = mem_printf("%s has no effect in belay", harmless[i]);
            return 0;
        }
    if (strcasecmp(name, "TimeLimit") == 0)
        return put_limit(value, job, changes, warning, e);
    if (strcasecmp(name, "NumCPUs") == 0)
        return put_cpus(value, job, changes, e);
    if (strcasecmp(name, "MinMemoryCPU") == 0)
        return put_memory_per_cpu(value, job, changes, e);
    if (strcasecmp(name, "NumNodes") == 0 || strcasecmp(name, "ReqNodes") == 0)
        return put_nodes(value, job, changes, warning, e);
    if (strcasecmp(name, "Gres") == 0 || strcasecmp(name, "TresPerNode") == 0)
        return put_gres(value, changes, warning, e);
    return refuse(name, e);
}

int scontrol_update_word(
    const char *word, const json_t *job, json_t *changes, char **ret_warning, struct err *e)
{
    const char *eq = strchr(word, '=');
    char shown[STR_SHOW_MAX];
    *ret_warning = NULL;
    if (!eq || eq == word)
        return err_set(e, ERR_INVALID, "expected Name=Value, found %s", str_show(word, shown));
    char *name = mem_strndup(word, (size_t)(eq - word));
    int rc = put_named(name, eq + 1, job, changes, ret_warning, e);
    if (rc && rc != ERR_UNSUPPORTED)
        err_wrap(e, "%s", name);
    free(name);
    return rc;
}

/* ---- which jobs ---- */

struct update {
    struct client *c;
    char **words;
    int n, skip; /* skip: the word that selects the jobs */
};

static int fail(const char *which, const char *text)
{
    slurm_error("scontrol", "%s: %s", which, text);
    return CLI_FAILED;
}

static bool is_named(const char *word, const char *name)
{
    size_t n = strlen(name);
    return strncasecmp(word, name, n) == 0 && word[n] == '=';
}

/* The changes that the words make to this job. False after a report. */
static bool read_words(
    const struct update *u, const char *which, const json_t *job, json_t *changes)
{
    struct err e = {0};
    int rc = 0;
    for (int i = 0; rc == 0 && i < u->n; i++) {
        char *warning = NULL;
        if (i == u->skip)
            continue;
        rc = scontrol_update_word(u->words[i], job, changes, &warning, &e);
        if (warning && rc == 0)
            slurm_warn("scontrol", "%s", warning);
        free(warning);
    }
    char *warning = NULL;
    if (rc == 0)
        rc = updates_finish(changes, on_warning, &warning, &e);
    free(warning);
    if (rc)
        fail(which, e.text);
    return rc == 0;
}

/* Updates a job, or the tasks of an array that have not started. only: a started task of an updated
 * array; leaves out at_once, which belongs to the array. */
static int update_one(const struct update *u, const char *which, const json_t *job, bool only)
{
    json_t *changes = json_object(), *v = NULL;
    struct err e = {0};
    int rc = read_words(u, which, job, changes) ? CLI_OK : CLI_FAILED;
    if (only)
        json_object_del(changes, "at_once");
    if (rc == CLI_OK && json_object_size(changes) > 0) {
        const char *path = CLI_PATH("/api/v1/jobs/%lld/update", (long long)cli_int(job, "id", 0));
        rc = client_json(u->c, "POST", path, changes, &v, &e) == 0 ? CLI_OK : fail(which, e.text);
    }
    json_decref(v);
    json_decref(changes);
    return rc;
}

static bool has_index(const char *tasks, int64_t index)
{
    struct ranges set;
    struct err unused;
    return !*tasks || (ranges_parse(tasks, &set, &unused) == 0 && ranges_has(&set, (int32_t)index));
}

/* Updates the started tasks, which are jobs of their own: the named ones, or all. */
static int update_tasks(
    const struct update *u, const char *which, const json_t *array, const char *tasks, int *seen)
{
    int64_t before = 0;
    int rc = CLI_OK;
    do {
        char *path = before
                         ? mem_printf("/api/v1/jobs?state=active&limit=200&array=%lld&before=%lld",
                               (long long)cli_int(array, "id", 0), (long long)before)
                         : mem_printf("/api/v1/jobs?state=active&limit=200&array=%lld",
                               (long long)cli_int(array, "id", 0));
        json_t *v = slurm_get("scontrol", u->c, path);
        const json_t *task;
        size_t i;
        free(path);
        if (!v)
            return CLI_FAILED;
        json_array_foreach(json_object_get(v, "jobs"), i, task)
        {
            if (!has_index(tasks, cli_int(task, "array_index", -1)))
                continue;
            char *name = mem_printf("%s_%lld", which, (long long)cli_int(task, "array_index", -1));
            int one = update_one(u, name, task, !*tasks);
            rc = one > rc ? one : rc;
            free(name);
            ++*seen;
        }
        before = cli_int(v, "next", 0);
        json_decref(v);
    } while (before > 0);
    return rc;
}

static int update_array(const struct update *u, const json_t *detail, const char *tasks)
{
    const json_t *job = json_object_get(detail, "job");
    char *which = mem_printf("%lld", (long long)cli_int(job, "id", 0));
    int seen = 0, rc = CLI_OK;
    if (!*tasks && json_is_string(json_object_get(json_object_get(detail, "array"), "left"))) {
        rc = update_one(u, which, job, false);
        seen++;
    }
    int more = rc == CLI_OK || *tasks ? update_tasks(u, which, job, tasks, &seen) : rc;
    rc = more > rc ? more : rc;
    if (rc == CLI_OK && seen == 0)
        rc = *tasks ? fail(which, "each of these tasks has ended or not started: tasks that have "
                                  "not started are changed together, by the number of the array")
                    : fail(which, "Job/step already completing or completed");
    free(which);
    return rc;
}

static int update_named(const struct update *u, const char *word)
{
    char tasks[SLURM_TASKS_MAX];
    int64_t id;
    json_t *v = NULL;
    struct err e = {0};
    if (!slurm_job_name(word, &id, tasks))
        return fail(word, "Invalid job id specified");
    int rc = client_json(u->c, "GET", CLI_PATH("/api/v1/jobs/%lld", (long long)id), NULL, &v, &e);
    if (rc)
        return fail(word, rc == ERR_NOT_FOUND ? "Invalid job id specified" : e.text);
    bool is_array = json_is_object(json_object_get(v, "array"));
    if (is_array)
        rc = update_array(u, v, tasks);
    else
        rc = *tasks ? fail(word, "Invalid job id specified")
                    : update_one(u, word, json_object_get(v, "job"), false);
    json_decref(v);
    return rc;
}

/* "42,43_[1,3],44" */
static int update_jobs(const struct update *u, const char *list)
{
    int rc = CLI_OK, n = 0;
    while (*list) {
        bool inside = false;
        size_t len = 0;
        for (; list[len] && (inside || list[len] != ','); len++)
            inside = list[len] == '[' || (inside && list[len] != ']');
        char *word = mem_strndup(list, len);
        int one = update_named(u, word);
        rc = one > rc ? one : rc;
        free(word);
        list += len + (list[len] == ',');
        n++;
    }
    return n ? rc : fail("JobId", "expected the number of a job");
}

/* ---- nodes ---- */

static const struct {
    const char *state, *action;
} states[] = {
    {"DRAIN", "drain"}, {"RESUME", "undrain"}, {"UNDRAIN", "undrain"}, {"IDLE", "undrain"}};

/* "drain" or "undrain", or NULL after a report. */
static const char *node_action(const struct update *u)
{
    const char *action = NULL;
    for (int i = 0; i < u->n; i++) {
        const char *word = u->words[i];
        if (i == u->skip || is_named(word, "Reason") || is_named(word, "Comment"))
            continue;
        for (size_t k = 0; is_named(word, "State") && k < sizeof(states) / sizeof(states[0]); k++)
            if (strcasecmp(word + strlen("State="), states[k].state) == 0)
                action = states[k].action;
        if (!is_named(word, "State") || !action) {
            slurm_error("scontrol",
                "update: %s of a node is not supported: State=DRAIN and State=RESUME are", word);
            return NULL;
        }
    }
    if (!action)
        slurm_error("scontrol", "update: expected State=DRAIN or State=RESUME for the node");
    return action;
}

static int change_node(
    const struct update *u, const json_t *nodes, const char *name, const char *action)
{
    const json_t *node, *found = NULL;
    size_t i;
    json_array_foreach(nodes, i, node)
    {
        if (str_eq(cli_text(node, "name"), name))
            found = node;
    }
    if (!found)
        return fail(name, "Invalid node name specified");
    const char *path =
        CLI_PATH("/api/v1/nodes/%lld/%s", (long long)cli_int(found, "id", 0), action);
    struct err e = {0};
    json_t *v = NULL;
    int rc = client_json(u->c, "POST", path, NULL, &v, &e) == 0 ? CLI_OK : fail(name, e.text);
    if (rc == CLI_OK && str_eq(action, "drain") && cli_int(found, "jobs", 0) > 0)
        slurm_warn("scontrol",
            "%s: its running jobs are saved, stopped and queued again, unlike in Slurm", name);
    json_decref(v);
    return rc;
}

static int update_nodes(const struct update *u, const char *list)
{
    const char *action = node_action(u);
    struct buf names = {0};
    struct err e;
    int rc = CLI_OK;
    if (!action)
        return CLI_FAILED;
    if (slurm_hosts_expand(list, &names, &e) != 0 || names.len == 0)
        rc = fail(list, "Invalid node name specified");
    json_t *v = rc == CLI_OK ? slurm_get("scontrol", u->c, "/api/v1/nodes") : NULL;
    char *save = NULL;
    if (!v)
        rc = CLI_FAILED;
    for (char *name = v ? strtok_r((char *)(uintptr_t)buf_str(&names), "\n", &save) : NULL; name;
         name = strtok_r(NULL, "\n", &save)) {
        int one = change_node(u, json_object_get(v, "nodes"), name, action);
        rc = one > rc ? one : rc;
    }
    json_decref(v);
    buf_deinit(&names);
    return rc;
}

int scontrol_update(struct client *c, char **words, int n)
{
    static const char *const of_jobs[] = {"JobId", "Job", NULL};
    struct update u = {.c = c, .words = words, .n = n};
    for (u.skip = 0; u.skip < n; u.skip++) {
        const char *word = words[u.skip];
        for (size_t k = 0; of_jobs[k]; k++)
            if (is_named(word, of_jobs[k]))
                return n > 1 ? update_jobs(&u, strchr(word, '=') + 1)
                             : fail(word, "No changes specified");
        if (is_named(word, "NodeName"))
            return update_nodes(&u, strchr(word, '=') + 1);
    }
    slurm_error("scontrol", "update: JobId=JOB or NodeName=NODE is needed; partitions are the "
                            "pools of belayd's configuration");
    return CLI_FAILED;
}
