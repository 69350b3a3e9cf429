/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol: shows jobs, nodes and partitions, changes jobs, and expands lists of hosts.
 */
#include "cli/slurm/slurm_programs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/flags/grace.h"
#include "cli/slurm/scontrol_update.h"
#include "cli/slurm/slurm.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { VAL_JSON = 300, VAL_IGNORED };

static const struct option options[] = {
    {"all", no_argument, NULL, 'a'},
    {"details", no_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {"hide", no_argument, NULL, VAL_IGNORED},
    {"json", no_argument, NULL, VAL_JSON},
    {"local", no_argument, NULL, VAL_IGNORED},
    {"oneliner", no_argument, NULL, 'o'},
    {"quiet", no_argument, NULL, 'Q'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};
const struct option *const scontrol_options = options;

struct scontrol {
    struct client *c;
    bool one_line, json;
    json_t *list; /* for --json */
    int shown;
};

static int fail(const char *fmt, const char *text)
{
    slurm_error("scontrol", fmt, text);
    return CLI_FAILED;
}

/* ---- show job ---- */

/* Prints "Name=value" after a blank, or on a new line. */
static void put(const struct scontrol *s, bool new_line, const char *name, const char *value)
{
    printf("%s%s=%s", !new_line ? " " : s->one_line ? " " : "\n   ", name, value);
}

static void put_value(
    const struct scontrol *s, bool new_line, const char *name, const struct slurm_job *j, int what)
{
    struct buf text = {0};
    slurm_job_value(j, what, &text);
    put(s, new_line, name, buf_str(&text));
    buf_deinit(&text);
}

/* The fields after UserId: values of enum slurm_job_value, or ONE (always 1), or REQUEUE. */
enum { ONE = -1, REQUEUE = -2 };
static const struct {
    bool new_line;
    const char *name;
    int what;
} job_rows[] = {{true, "Priority", JOB_PRIORITY}, {false, "Nice", JOB_NICE},
    {false, "Account", JOB_ACCOUNT}, {false, "QOS", JOB_QOS}, {true, "JobState", JOB_STATE},
    {false, "Reason", JOB_REASON}, {false, "Dependency", JOB_DEPENDENCY},
    {true, "Requeue", REQUEUE}, {false, "Restarts", JOB_RESTARTS}, {false, "BatchFlag", ONE},
    {false, "ExitCode", JOB_EXIT}, {true, "RunTime", JOB_USED_LONG},
    {false, "TimeLimit", JOB_LIMIT_LONG}, {true, "SubmitTime", JOB_SUBMITTED},
    {false, "EligibleTime", JOB_ELIGIBLE}, {true, "StartTime", JOB_STARTED_LONG},
    {false, "EndTime", JOB_ENDED_LONG}, {false, "Deadline", JOB_DEADLINE},
    {true, "Partition", JOB_PARTITION}, {true, "ReqNodeList", JOB_NODES_WANTED},
    {false, "ExcNodeList", JOB_NODES_EXCLUDED}, {true, "NodeList", JOB_NODES},
    {true, "BatchHost", JOB_BATCH_HOST}, {true, "NumNodes", JOB_N_NODES},
    {false, "NumCPUs", JOB_CPUS}, {false, "NumTasks", JOB_TASKS}, {true, "TRES", JOB_TRES},
    {true, "MinMemoryNode", JOB_MEMORY}, {true, "Features", JOB_FEATURES},
    {false, "TresPerNode", JOB_GRES}, {true, "Licenses", JOB_LICENCES},
    {true, "Command", JOB_COMMAND}, {true, "WorkDir", JOB_DIR}, {true, "StdErr", JOB_ERROR},
    {true, "StdOut", JOB_OUTPUT}};

/* "ArrayJobId=42 ArrayTaskId=7 ", or of the tasks that have not started "ArrayTaskId=8-99
 * ArrayTaskThrottle=10 ". */
static void print_array(const struct slurm_job *j)
{
    const char *indexes = strchr(cli_text(j->job, "ref"), '['),
               *at_once = indexes ? strchr(indexes, '%') : NULL;
    if (cli_int(j->job, "array_id", 0) > 0)
        printf("ArrayJobId=%lld ArrayTaskId=%lld ", (long long)cli_int(j->job, "array_id", 0),
            (long long)cli_int(j->job, "array_index", 0));
    else if (indexes)
        printf("ArrayJobId=%lld ArrayTaskId=%.*s ", (long long)cli_int(j->job, "id", 0),
            (int)strcspn(indexes + 1, "%]"), indexes + 1);
    if (at_once)
        printf("ArrayTaskThrottle=%.*s ", (int)strcspn(at_once + 1, "]"), at_once + 1);
}

static void put_user(const struct scontrol *s, const struct slurm_job *j)
{
    struct buf uid = {0};
    slurm_job_value(j, JOB_UID, &uid);
    char *text = mem_printf("%s(%s)", cli_text(j->job, "user"), buf_str(&uid));
    put(s, true, "UserId", text);
    free(text);
    buf_deinit(&uid);
}

static void put_signal(const struct scontrol *s, const struct slurm_job *j)
{
    struct buf text = {0};
    grace_format(json_object_get(json_object_get(j->detail, "spec"), "launch"), &text);
    if (text.len > 0)
        put(s, true, "Signal", buf_str(&text));
    buf_deinit(&text);
}

static void print_job(const struct scontrol *s, const struct slurm_job *j)
{
    printf("JobId=%lld ", (long long)cli_int(j->job, "id", 0));
    print_array(j);
    printf("JobName=%s", cli_text(j->job, "name"));
    put_user(s, j);
    for (size_t i = 0; i < sizeof(job_rows) / sizeof(job_rows[0]); i++) {
        bool new_line = job_rows[i].new_line;
        const char *name = job_rows[i].name;
        if (job_rows[i].what == ONE)
            put(s, new_line, name, "1");
        else if (job_rows[i].what == REQUEUE)
            put(s, new_line, name, json_is_false(json_object_get(j->job, "requeue")) ? "0" : "1");
        else
            put_value(s, new_line, name, j, job_rows[i].what);
    }
    put_signal(s, j);
    fputs(s->one_line ? "\n" : "\n\n", stdout);
}

static void on_job(void *ctx, const struct slurm_job *j)
{
    struct scontrol *s = ctx;
    s->shown++;
    if (s->json)
        json_array_append_new(s->list, slurm_job_json(j));
    else
        print_job(s, j);
}

static int show_jobs(struct scontrol *s, const char *jobs)
{
    const struct slurm_query q = {.program = "scontrol",
        .jobs = jobs,
        .wants_nodes = true,
        .wants_reasons = true,
        .wants_detail = true,
        .ended_after = WALL_NONE,
        .submitted_until = WALL_NONE};
    char tasks[SLURM_TASKS_MAX];
    int64_t id;
    if (jobs && !slurm_job_name(jobs, &id, tasks))
        return fail("Invalid job id specified: %s", jobs);
    int rc = slurm_each_job(s->c, &q, true, on_job, s);
    if (rc == CLI_OK && s->shown == 0 && !s->json)
        puts("No jobs in the system");
    return rc;
}

/* ---- show node, partition ---- */

static const char *arch_of(const json_t *node)
{
    static const char *const known[] = {"x86_64", "aarch64", "ppc64le", "riscv64"};
    const json_t *word;
    size_t i;
    json_array_foreach(json_object_get(node, "features"), i, word)
    {
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            if (str_eq(json_string_value(word), known[k]))
                return known[k];
    }
    return "unknown";
}

static void print_node(const struct scontrol *s, const json_t *n)
{
    static const char *const states[][2] = {{"up", "IDLE"}, {"draining", "IDLE+DRAIN"},
        {"noticed", "MIXED+DRAIN"}, {"lost", "DOWN*"}, {"gone", "DOWN"}};
    const char *state = "UNKNOWN", *cut = s->one_line ? " " : "\n   ";
    int64_t cpus = cli_int(n, "cpus", 0), used = cpus - cli_int(n, "cpus_free", cpus),
            mib = cli_int(n, "memory_mib", 0);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (str_eq(cli_text(n, "state"), states[i][0]))
            state = !str_eq(states[i][0], "up") || used == 0 ? states[i][1]
                    : used < cpus                            ? "MIXED"
                                                             : "ALLOCATED";
    printf("NodeName=%s Arch=%s CoresPerSocket=%lld%sCPUAlloc=%lld CPUEfctv=%lld CPUTot=%lld "
           "CPULoad=N/A%s",
        cli_text(n, "name"), arch_of(n), (long long)cpus, cut, (long long)used, (long long)cpus,
        (long long)cpus, cut);
    int address = (int)strcspn(cli_text(n, "address"), ":");
    printf("NodeAddr=%.*s NodeHostName=%s Version=%s%s", address, cli_text(n, "address"),
        cli_text(n, "name"), cli_text(n, "version"), cut);
    printf("RealMemory=%lld AllocMem=%lld FreeMem=N/A Sockets=1 Boards=1%s", (long long)mib,
        (long long)(mib - cli_int(n, "memory_free_mib", mib)), cut);
    struct buf words = {0};
    cli_words(json_object_get(n, "features"), &words);
    printf("AvailableFeatures=%s%sActiveFeatures=%s%s", words.len ? buf_str(&words) : "(null)", cut,
        words.len ? buf_str(&words) : "(null)", cut);
    buf_clear(&words);
    slurm_gres(n, "", &words);
    printf("Gres=%s%s", words.len ? buf_str(&words) : "(null)", cut);
    buf_deinit(&words);
    printf("State=%s ThreadsPerCore=1%sPartitions=%s%s", state, cut, cli_text(n, "pool"),
        s->one_line ? "\n" : "\n\n");
}

static int show_nodes(struct scontrol *s, const char *names)
{
    json_t *v = names && !slurm_is_hosts("scontrol", names)
                    ? NULL
                    : slurm_get("scontrol", s->c, "/api/v1/nodes");
    const json_t *n;
    size_t i;
    if (!v)
        return CLI_FAILED;
    json_array_foreach(json_object_get(v, "nodes"), i, n)
    {
        if (!slurm_hosts_intersect(names, cli_text(n, "name")))
            continue;
        s->shown++;
        if (s->json)
            json_array_append(s->list, (json_t *)(uintptr_t)n);
        else
            print_node(s, n);
    }
    json_decref(v);
    return s->shown == 0 && names ? fail("Node %s not found", names) : CLI_OK;
}

static void print_partition(
    const struct scontrol *s, const json_t *p, const json_t *nodes, bool only)
{
    struct buf names = {0}, folded = {0};
    int64_t cpus = 0, count = 0;
    const json_t *n;
    size_t i;
    const char *cut = s->one_line ? " " : "\n   ";
    json_array_foreach(nodes, i, n)
    {
        if (!str_eq(cli_text(n, "pool"), cli_text(p, "name")))
            continue;
        buf_printf(&names, "%s%s", names.len ? "," : "", cli_text(n, "name"));
        cpus += cli_int(n, "cpus", 0);
        count++;
    }
    printf("PartitionName=%s%sAllowGroups=ALL AllowAccounts=ALL "
           "AllowQos=ALL%sDefault=%s%sMaxNodes=%lld MaxTime=UNLIMITED MinNodes=1%s",
        cli_text(p, "name"), cut, cut, only ? "YES" : "NO", cut,
        (long long)cli_int(p, "max_nodes", count), cut);
    slurm_hosts_fold(buf_str(&names), &folded);
    printf("Nodes=%s%sState=UP TotalCPUs=%lld TotalNodes=%lld%s", buf_str(&folded), cut,
        (long long)cpus, (long long)count, s->one_line ? "\n" : "\n\n");
    buf_deinit(&folded);
    buf_deinit(&names);
}

static int show_partitions(struct scontrol *s, const char *names)
{
    json_t *v = slurm_get("scontrol", s->c, "/api/v1/pools"),
           *w = v ? slurm_get("scontrol", s->c, "/api/v1/nodes") : NULL;
    const json_t *pools = json_object_get(v, "pools"), *p;
    size_t i;
    json_array_foreach(pools, i, p)
    {
        if (!w || !slurm_list_has(names, cli_text(p, "name")))
            continue;
        s->shown++;
        if (s->json)
            json_array_append(s->list, (json_t *)(uintptr_t)p);
        else
            print_partition(s, p, json_object_get(w, "nodes"), json_array_size(pools) == 1);
    }
    json_decref(v);
    json_decref(w);
    return !w                       ? CLI_FAILED
           : s->shown == 0 && names ? fail("Partition %s not found", names)
                                    : CLI_OK;
}

/* ---- hosts ---- */

static int show_hostnames(const char *list)
{
    struct buf out = {0};
    struct err e;
    list = list ? list : getenv("SLURM_JOB_NODELIST");
    if (!list)
        return fail("%s",
            "show hostnames: expected a list of hosts, because SLURM_JOB_NODELIST is not set");
    int rc = slurm_hosts_expand(list, &out, &e);
    if (rc == 0)
        fputs(buf_str(&out), stdout);
    else
        slurm_error("scontrol", "%s", e.text);
    buf_deinit(&out);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

/* Prints the names separated by commas, which is a list of hosts too: they are not folded to
 * n[1-3]. */
static int show_hostlist(const char *list)
{
    struct buf out = {0};
    struct err e;
    if (!list)
        return fail("%s", "show hostlist: expected names of hosts");
    int rc = slurm_hosts_expand(list, &out, &e);
    for (size_t i = 0; i < out.len; i++)
        if (out.data[i] == '\n')
            out.data[i] = i + 1 < out.len ? ',' : '\n';
    fputs(rc == 0 ? buf_str(&out) : "", stdout);
    if (rc != 0)
        slurm_error("scontrol", "%s", e.text);
    buf_deinit(&out);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

/* ---- changing ---- */

static int change_one(struct scontrol *s, const char *word, const char *action)
{
    int64_t id = slurm_job_number(word);
    json_t *v = NULL;
    struct err e = {0};
    if (id == 0)
        return fail("Invalid job id specified: %s", word);
    const char *path = CLI_PATH("/api/v1/jobs/%lld/%s", (long long)id, action);
    int rc = client_json(s->c, "POST", path, NULL, &v, &e);
    json_decref(v);
    if (rc == ERR_NOT_FOUND)
        return fail("Invalid job id specified for job %s", word);
    return rc == 0 ? CLI_OK : fail("%s", e.text);
}

static int change(struct scontrol *s, char **words, int n, const char *action)
{
    int rc = CLI_OK;
    if (n == 0)
        return fail("too few arguments for keyword:%s", action);
    for (int i = 0; i < n; i++) {
        struct buf item = {0};
        const char *list = words[i];
        while (slurm_next_item(&list, &item)) {
            int one = change_one(s, buf_str(&item), action);
            rc = one > rc ? one : rc;
        }
        buf_deinit(&item);
    }
    return rc;
}

static int write_script(struct scontrol *s, char **words, int n)
{
    if (n < 2 || strcasecmp(words[0], "batch_script") != 0)
        return fail("%s", "write: expected batch_script JOB [FILE]");
    int64_t id = slurm_job_number(words[1]);
    char *path = mem_printf("/api/v1/jobs/%lld", (long long)id),
         *own = mem_printf("slurm-%lld.sh", (long long)id);
    json_t *v = slurm_get("scontrol", s->c, path);
    const char *file = n > 2 ? words[2] : own;
    const char *script = json_string_value(json_object_get(json_object_get(v, "spec"), "script"));
    int rc = v && script ? CLI_OK : CLI_FAILED;
    if (v && !script)
        fail("the script of job %s can be read by its user only", words[1]);
    FILE *f = rc != CLI_OK ? NULL : str_eq(file, "-") ? stdout : fopen(file, "we");
    if (rc == CLI_OK && (!f || fputs(script, f) < 0 || fflush(f) != 0))
        rc = fail("%s cannot be written", file);
    if (f && f != stdout) {
        fclose(f);
        printf("batch script for job %lld written to %s\n", (long long)id, file);
    }
    json_decref(v);
    free(path);
    free(own);
    return rc;
}

/* ---- the program ---- */

static int show(struct scontrol *s, char **words, int n)
{
    const char *what = n > 0 ? words[0] : "", *equals = strchr(what, '=');
    size_t len = equals ? (size_t)(equals - what) : strlen(what);
    const char *which = equals ? equals + 1 : n > 1 ? words[1] : NULL;
    for (int i = 1; !equals && i + 1 < n && which && which[0] == '-'; i++)
        which = words[i + 1]; /* show jobid -dd 42 */
#define IS(name) (len > 0 && strncasecmp(what, name, len) == 0 && len <= strlen(name))
    if (IS("jobs") || IS("jobid"))
        return show_jobs(s, which);
    if (IS("nodes"))
        return show_nodes(s, which);
    if (IS("partitions"))
        return show_partitions(s, which);
    if (IS("hostnames"))
        return show_hostnames(which);
    if (IS("hostlist") || IS("hostlistsorted"))
        return show_hostlist(which);
#undef IS
    return fail("show %s is not supported: job, node, partition, hostnames and hostlist are", what);
}

static bool needs_belayd(const char *verb, char **words, int n)
{
    return !(str_eq(verb, "show") && n > 0 && strncasecmp(words[0], "host", 4) == 0);
}

static int act(struct scontrol *s, const char *verb, char **words, int n)
{
    if (str_eq(verb, "show"))
        return show(s, words, n);
    if (str_eq(verb, "requeue") || str_eq(verb, "hold") || str_eq(verb, "release"))
        return change(s, words, n, verb);
    if (str_eq(verb, "update"))
        return scontrol_update(s->c, words, n);
    if (str_eq(verb, "uhold"))
        return change(s, words, n, "hold");
    if (str_eq(verb, "ping")) {
        json_t *v = slurm_get("scontrol", s->c, "/api/v1/version");
        printf("Slurmctld(primary) at belayd is %s\n", v ? "UP" : "DOWN");
        json_decref(v);
        return v ? CLI_OK : CLI_FAILED;
    }
    if (str_eq(verb, "write"))
        return write_script(s, words, n);
    return fail("%s is not supported: show, update, hold, release, requeue, write batch_script and "
                "ping are",
        verb);
}

static void help(void)
{
    puts("Usage: scontrol [-o] [-d] [--json] COMMAND\n\n"
         "  show job [JOB]            show node [NODE]        show partition [NAME]\n"
         "  show hostnames [LIST]     show hostlist HOSTS     requeue JOB...\n"
         "  hold JOB...               release JOB...          ping\n"
         "  write batch_script JOB [FILE]\n"
         "  update JobId=JOB Name=Value...                    update NodeName=NODE "
         "State=DRAIN|RESUME");
}

static void print_list(const struct scontrol *s, const char *what)
{
    const char *name = tolower((unsigned char)what[0]) == 'n'   ? "nodes"
                       : tolower((unsigned char)what[0]) == 'p' ? "partitions"
                                                                : "jobs";
    json_t *o = json_pack("{s:O,s:{s:s}}", name, s->list, "meta", "name", SLURM_VERSION);
    cli_print_json(o);
    json_decref(o);
}

int scontrol_main(int argc, char **argv)
{
    struct scontrol s = {.list = json_array()};
    struct err e;
    int c, rc = -1;
    optind = 0;
    while (rc < 0 && (c = getopt_long(argc, argv, "adhoQvV", options, NULL)) != -1) {
        s.one_line = s.one_line || c == 'o';
        s.json = s.json || c == VAL_JSON;
        if (c == 'h' || c == 'V')
            c == 'V' ? (void)puts(SLURM_VERSION) : help();
        rc = c == '?' ? CLI_FAILED : c == 'h' || c == 'V' ? CLI_OK : -1;
    }
    char **words = argv + optind + 1;
    int n = argc - optind - 1;
    if (rc < 0 && n < 0) {
        help();
        rc = CLI_FAILED;
    }
    if (rc < 0 && needs_belayd(argv[optind], words, n) && client_create(&s.c, &e) != 0)
        rc = fail("%s", e.text);
    if (rc < 0) {
        rc = act(&s, argv[optind], words, n);
        if (s.json && rc == CLI_OK && str_eq(argv[optind], "show") && n > 0 && s.c)
            print_list(&s, words[0]);
    }
    client_destroy(s.c);
    json_decref(s.list);
    return rc;
}
