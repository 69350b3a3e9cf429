/* SPDX-License-Identifier: Apache-2.0
 *
 * sacct: past jobs. belay keeps no accounts of steps: each job has one line, as with sacct -X.
 */
#include "cli/slurm/slurm_programs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/slurm/slurm.h"
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DEFAULT_FORMAT "jobid,jobname,partition,account,alloccpus,state,exitcode"
#define BRIEF_FORMAT "jobid,state,exitcode"
#define LONG_FORMAT                                                                                \
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,"     \
    "maxrssnode,maxrsstask,averss,"                                                                \
    "mincpu,ntasks,alloccpus,elapsed,state,exitcode,reqcpufreqmin,reqcpufreqmax,reqmem,"           \
    "consumedenergy,maxdiskread,"                                                                  \
    "maxdiskwrite,reqtres,alloctres"

static const struct slurm_field fields[] = {
    {"Account", 0, "Account", 10, JOB_ACCOUNT},
    {"AdminComment", 0, "AdminComment", 19, .fixed = ""},
    {"AllocCPUS", 0, "AllocCPUS", 10, JOB_CPUS},
    {"AllocNodes", 0, "AllocNodes", 10, JOB_N_NODES},
    {"AllocTRES", 0, "AllocTRES", 10, JOB_TRES},
    {"AveCPU", 0, "AveCPU", 10, JOB_AVE_CPU},
    {"AveDiskRead", 0, "AveDiskRead", 14, .fixed = ""},
    {"AveDiskWrite", 0, "AveDiskWrite", 14, .fixed = ""},
    {"AveRSS", 0, "AveRSS", 10, JOB_AVE_RSS},
    {"AveVMSize", 0, "AveVMSize", 10, .fixed = ""},
    {"Cluster", 0, "Cluster", 10, .fixed = "belay"},
    {"Comment", 0, "Comment", 14, .fixed = ""},
    {"ConsumedEnergy", 0, "ConsumedEnergy", 14, .fixed = ""},
    {"CPUTime", 0, "CPUTime", 10, JOB_CPU_TIME},
    {"CPUTimeRAW", 0, "CPUTimeRAW", 10, JOB_CPU_TIME_S},
    {"DerivedExitCode", 0, "DerivedExitCode", 15, JOB_EXIT},
    {"Elapsed", 0, "Elapsed", 10, JOB_USED_LONG},
    {"ElapsedRaw", 0, "ElapsedRaw", 10, JOB_USED_S},
    {"Eligible", 0, "Eligible", 19, JOB_ELIGIBLE},
    {"End", 0, "End", 19, JOB_ENDED_LONG},
    {"ExitCode", 0, "ExitCode", 8, JOB_EXIT},
    {"JobID", 0, "JobID", -12, JOB_ID},
    {"JobIDRaw", 0, "JobIDRaw", -12, JOB_ID_RAW},
    {"JobName", 0, "JobName", 10, JOB_NAME},
    {"MaxDiskRead", 0, "MaxDiskRead", 12, .fixed = ""},
    {"MaxDiskWrite", 0, "MaxDiskWrite", 12, .fixed = ""},
    {"MaxRSS", 0, "MaxRSS", 10, JOB_MAX_RSS},
    {"MaxRSSNode", 0, "MaxRSSNode", 10, JOB_MAX_RSS_NODE},
    {"MaxRSSTask", 0, "MaxRSSTask", 10, JOB_MAX_RSS_TASK},
    {"MaxVMSize", 0, "MaxVMSize", 10, .fixed = ""},
    {"MaxVMSizeNode", 0, "MaxVMSizeNode", 14, .fixed = ""},
    {"MaxVMSizeTask", 0, "MaxVMSizeTask", 14, .fixed = ""},
    {"MinCPU", 0, "MinCPU", 10, .fixed = ""},
    {"NCPUS", 0, "NCPUS", 10, JOB_CPUS},
    {"NNodes", 0, "NNodes", 8, JOB_N_NODES},
    {"NodeList", 0, "NodeList", 15, JOB_NODES},
    {"NTasks", 0, "NTasks", 8, JOB_TASKS},
    {"Partition", 0, "Partition", 10, JOB_PARTITION},
    {"Priority", 0, "Priority", 10, JOB_PRIORITY},
    {"QOS", 0, "QOS", 10, JOB_QOS},
    {"Reason", 0, "Reason", 22, JOB_REASON},
    {"ReqCPUFreqMax", 0, "ReqCPUFreqMax", 13, .fixed = ""},
    {"ReqCPUFreqMin", 0, "ReqCPUFreqMin", 13, .fixed = ""},
    {"ReqCPUS", 0, "ReqCPUS", 8, JOB_CPUS},
    {"ReqMem", 0, "ReqMem", 10, JOB_ALL_MEMORY},
    {"ReqNodes", 0, "ReqNodes", 8, JOB_N_NODES},
    {"ReqTRES", 0, "ReqTRES", 10, JOB_TRES},
    {"Restarts", 0, "Restarts", 8, JOB_RESTARTS},
    {"Start", 0, "Start", 19, JOB_STARTED_LONG},
    {"State", 0, "State", 10, JOB_STATE},
    {"Submit", 0, "Submit", 19, JOB_SUBMITTED},
    {"SystemCPU", 0, "SystemCPU", 10, JOB_SYSTEM_CPU},
    {"Timelimit", 0, "Timelimit", 10, JOB_LIMIT_LONG},
    {"TimelimitRaw", 0, "TimelimitRaw", 12, JOB_LIMIT_MINUTES},
    {"TotalCPU", 0, "TotalCPU", 10, JOB_TOTAL_CPU},
    {"UID", 0, "UID", 6, JOB_UID},
    {"User", 0, "User", 9, JOB_USER},
    {"UserCPU", 0, "UserCPU", 10, JOB_USER_CPU},
    {"WorkDir", 0, "WorkDir", 20, JOB_DIR},
    {NULL, 0, NULL, 0, 0},
};

enum { VAL_JSON = 300, VAL_HELP, VAL_IGNORED, VAL_NAME, VAL_DELIMITER, VAL_REFUSED };

static const struct option options[] = {
    {"accounts", required_argument, NULL, 'A'},
    {"allclusters", no_argument, NULL, 'L'},
    {"allocations", no_argument, NULL, 'X'},
    {"allusers", no_argument, NULL, 'a'},
    {"array", no_argument, NULL, VAL_IGNORED},
    {"batch-script", no_argument, NULL, VAL_REFUSED},
    {"brief", no_argument, NULL, 'b'},
    {"clusters", required_argument, NULL, 'M'},
    {"completion", no_argument, NULL, 'c'},
    {"delimiter", required_argument, NULL, VAL_DELIMITER},
    {"duplicates", no_argument, NULL, 'D'},
    {"endtime", required_argument, NULL, 'E'},
    {"federation", no_argument, NULL, VAL_IGNORED},
    {"format", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, VAL_HELP},
    {"helpformat", no_argument, NULL, 'e'},
    {"jobs", required_argument, NULL, 'j'},
    {"json", no_argument, NULL, VAL_JSON},
    {"local", no_argument, NULL, VAL_IGNORED},
    {"long", no_argument, NULL, 'l'},
    {"name", required_argument, NULL, VAL_NAME},
    {"ncpus", required_argument, NULL, VAL_REFUSED},
    {"nnodes", required_argument, NULL, VAL_REFUSED},
    {"noconvert", no_argument, NULL, VAL_IGNORED},
    {"nodelist", required_argument, NULL, 'N'},
    {"noheader", no_argument, NULL, 'n'},
    {"parsable", no_argument, NULL, 'p'},
    {"parsable2", no_argument, NULL, 'P'},
    {"partition", required_argument, NULL, 'r'},
    {"qos", required_argument, NULL, 'q'},
    {"starttime", required_argument, NULL, 'S'},
    {"state", required_argument, NULL, 's'},
    {"truncate", no_argument, NULL, 'T'},
    {"uid", required_argument, NULL, 'u'},
    {"units", required_argument, NULL, VAL_IGNORED},
    {"usage", no_argument, NULL, VAL_HELP},
    {"user", required_argument, NULL, 'u'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};
const struct option *const sacct_options = options;

struct sacct {
    struct slurm_query q;
    struct slurm_format format;
    const char *names, *start, *end, *nodes, *account, *delimiter;
    enum { ALIGNED, BARS, BARS_TRAILING } style;
    bool no_header, json, all_users;
    char me[64];
    /* values of repeated options, joined by commas */
    struct buf jobs_named, users, job_names, pools, states, accounts;
    struct buf out;
    json_t *jobs;
};

static void add_line(struct sacct *s, const struct slurm_job *j)
{
    if (s->style == ALIGNED)
        slurm_format_line(&s->format, slurm_job_value, j, &s->out);
    else
        slurm_format_plain(
            &s->format, s->delimiter, s->style == BARS_TRAILING, slurm_job_value, j, &s->out);
}

static void on_job(void *ctx, const struct slurm_job *j)
{
    struct sacct *s = ctx;
    struct buf account = {0};
    slurm_job_value(j, JOB_ACCOUNT, &account);
    bool wanted = slurm_hosts_intersect(s->nodes, j->nodes) &&
                  (!s->account || slurm_list_has(s->account, buf_str(&account)));
    buf_deinit(&account);
    if (wanted && s->json)
        json_array_append_new(s->jobs, slurm_job_json(j));
    else if (wanted)
        add_line(s, j);
}

static void add_header(struct sacct *s)
{
    add_line(s, NULL);
    for (size_t i = 0; s->style == ALIGNED && i < s->format.n; i++) {
        for (int k = 0; k < s->format.pieces[i].width; k++)
            buf_addc(&s->out, '-');
        buf_addc(&s->out, ' ');
    }
    if (s->style == ALIGNED)
        buf_addc(&s->out, '\n');
}

static void list_fields(void)
{
    int column = 0;
    for (const struct slurm_field *f = fields; f->name; f++)
        printf("%-20s%s", f->name, ++column % 4 == 0 || !f[1].name ? "\n" : "");
}

static void help(void)
{
    puts("Usage: sacct [-a] [-j JOBS] [-u USERS] [--name NAMES] [-r PARTITIONS] [-s STATES] [-S "
         "TIME] [-E TIME]\n"
         "             [-o FIELDS] [-n] [-p | -P] [--delimiter TEXT] [--json]\n\n"
         "Shows past jobs of belay: those of today, unless -S or -j is given.\n"
         "Fields:");
    list_fields();
}

static int refuse(const char *what)
{
    slurm_error("sacct", "%s is not supported", what);
    return CLI_FAILED;
}

/* Stores the value of an option. The values of a repeated list option accumulate: "-j 1 -j 2".
 * False if the option takes no value. */
static bool keep_value(struct sacct *s, int c, const char *value)
{
    const struct {
        int c;
        const char **text;
        struct buf *list; /* NULL: the last one counts */
    } kept[] = {{'A', &s->account, &s->accounts}, {'j', &s->q.jobs, &s->jobs_named},
        {'u', &s->q.user, &s->users}, {VAL_NAME, &s->q.name, &s->job_names},
        {'r', &s->q.pool, &s->pools}, {'s', &s->q.states, &s->states}, {'o', &s->names, NULL},
        {'N', &s->nodes, NULL}, {'S', &s->start, NULL}, {'E', &s->end, NULL},
        {VAL_DELIMITER, &s->delimiter, NULL}};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (kept[i].c != c)
            continue;
        if (kept[i].list)
            buf_printf(kept[i].list, "%s%s", kept[i].list->len ? "," : "", value);
        *kept[i].text = kept[i].list ? buf_str(kept[i].list) : value;
        return true;
    }
    return false;
}

/* Returns -1 to continue; else the exit code. */
static int option(struct sacct *s, int c, const char *word)
{
    if (keep_value(s, c, optarg))
        return c != 'N' || slurm_is_hosts("sacct", optarg) ? -1 : CLI_FAILED;
    switch (c) {
    case 'a':
        s->all_users = true;
        return -1;
    case 'b':
        s->names = BRIEF_FORMAT;
        return -1;
    case 'l':
        s->names = LONG_FORMAT;
        return -1;
    case 'n':
        s->no_header = true;
        return -1;
    case 'p':
    case 'P':
        s->style = c == 'P' ? BARS : BARS_TRAILING;
        return -1;
    case VAL_JSON:
        s->json = true;
        return -1;
    case 'e':
        list_fields();
        return CLI_OK;
    case VAL_HELP:
        help();
        return CLI_OK;
    case 'V':
        puts(SLURM_VERSION);
        return CLI_OK;
    case 'M':
        return slurm_is_this_cluster(optarg) ? -1 : refuse(word);
    case 'q':
    case 'c':
    case VAL_REFUSED:
        return refuse(word);
    case '?':
        return CLI_FAILED;
    default: /* D, X, L, T, v: there are no steps, duplicates or clusters to add or leave out */
        return -1;
    }
}

static int read_time(const char *text, struct wall *ret_at)
{
    struct err e;
    if (slurm_time_parse(text, clock_wall(&clock_system), ret_at, &e) == 0)
        return CLI_OK;
    slurm_error("sacct", "Invalid time specification: %s", e.text);
    return CLI_FAILED;
}

/* Completes the query. The default period is today, for named jobs any time. */
static int prepare(struct sacct *s)
{
    struct err e;
    const char *from = getenv("SACCT_FORMAT");
    s->names = s->names ? s->names : from && *from ? from : DEFAULT_FORMAT;
    if (slurm_format_sacct(s->names, fields, &s->format, &e) != 0) {
        slurm_error("sacct", "%s", e.text);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < s->format.n; i++) {
        int what = s->format.pieces[i].field->what;
        s->q.wants_nodes = s->q.wants_nodes || what == JOB_NODES || what == JOB_MAX_RSS_NODE;
        s->q.wants_reasons = s->q.wants_reasons || what == JOB_REASON;
        s->q.wants_detail =
            s->q.wants_detail || what == JOB_DIR || what == JOB_TASKS || slurm_is_usage(what);
    }
    s->q.wants_nodes = s->q.wants_nodes || s->nodes || s->json;
    s->q.wants_detail = s->q.wants_detail || s->json;
    if (!s->all_users && !s->q.user && !s->q.jobs && getuid() != 0)
        s->q.user = s->me;
    int rc = CLI_OK;
    if (s->start || !s->q.jobs)
        rc = read_time(s->start                ? s->start
                       : s->q.states && s->end ? s->end
                                               : "today",
            &s->q.ended_after);
    return rc == CLI_OK && s->end ? read_time(s->end, &s->q.submitted_until) : rc;
}

static int show(struct sacct *s)
{
    struct client *c = NULL;
    struct err e;
    int rc = prepare(s);
    if (rc == CLI_OK && client_create(&c, &e) != 0) {
        slurm_error("sacct", "%s", e.text);
        rc = CLI_FAILED;
    }
    if (rc == CLI_OK) {
        if (!s->no_header && !s->json)
            add_header(s);
        rc = slurm_each_job(c, &s->q, false, on_job, s);
        fputs(buf_str(&s->out), stdout);
        json_t *o = json_pack("{s:O,s:{s:s}}", "jobs", s->jobs, "meta", "name", SLURM_VERSION);
        if (s->json)
            cli_print_json(o);
        json_decref(o);
    }
    client_destroy(c);
    return rc;
}

int sacct_main(int argc, char **argv)
{
    struct sacct s = {.q = {.program = "sacct",
                          .ended = true,
                          .ended_after = WALL_NONE,
                          .submitted_until = WALL_NONE},
        .delimiter = "|",
        .jobs = json_array()};
    const struct passwd *me = getpwuid(getuid());
    int c, rc = -1;
    STR_COPY(s.me, me ? me->pw_name : "");
    optind = 0;
    while (rc < 0 && (c = getopt_long(argc, argv, "aA:bcDeE:hj:lLM:nN:o:pPq:r:s:S:Tu:vVX", options,
                          NULL)) != -1)
        rc = option(&s, c == 'h' ? VAL_HELP : c, argv[optind - 1]);
    if (rc < 0 && optind < argc) {
        slurm_error("sacct", "unexpected word: %s", argv[optind]);
        rc = CLI_FAILED;
    }
    if (rc < 0)
        rc = show(&s);
    slurm_format_deinit(&s.format);
    struct buf *lists[] = {
        &s.jobs_named, &s.users, &s.job_names, &s.pools, &s.states, &s.accounts, &s.out};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        buf_deinit(lists[i]);
    json_decref(s.jobs);
    return rc;
}
