/* SPDX-License-Identifier: Apache-2.0
 *
 * squeue: jobs that have not ended.
 */
#include "cli/slurm/slurm_programs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/slurm/slurm.h"
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_FORMAT "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#define START_FORMAT "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R"
#define LONG_FORMAT "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"

/* how long ended jobs stay in a list of all jobs: Slurm's default of MinJobAge */
#define REMEMBERED_MS (5 * 60 * 1000)

static const struct slurm_field fields[] = {
    {"account", 'a', "ACCOUNT", 0, JOB_ACCOUNT},
    {"arrayjobid", 'F', "ARRAY_JOB_ID", 0, JOB_ARRAY_ID},
    {"arraytaskid", 'K', "ARRAY_TASK_ID", 0, JOB_ARRAY_INDEX},
    {"batchhost", 'B', "EXEC_HOST", 0, JOB_BATCH_HOST},
    {"command", 'o', "COMMAND", 0, JOB_COMMAND},
    {"comment", 'k', "COMMENT", 0, .fixed = "(null)"},
    {"cluster", 0, "CLUSTER", 0, .fixed = "belay"},
    {"deadline", 0, "DEADLINE", 0, JOB_DEADLINE},
    {"dependency", 'E', "DEPENDENCY", 0, JOB_DEPENDENCY},
    {"endtime", 'e', "END_TIME", 0, JOB_ENDED},
    {"excnodes", 'x', "EXC_NODES", 0, JOB_NODES_EXCLUDED},
    {"exit_code", 0, "EXIT_CODE", 0, JOB_EXIT},
    {"feature", 'f', "FEATURES", 0, JOB_FEATURES},
    {"gres", 'b', "TRES_PER_NODE", 0, JOB_GRES},
    {"tres-per-node", 0, "TRES_PER_NODE", 0, JOB_GRES},
    {"jobarrayid", 'i', "JOBID", 0, JOB_ID},
    {"jobid", 'A', "JOBID", 0, JOB_ID_RAW},
    {"licenses", 'W', "LICENSES", 0, JOB_LICENCES},
    {"mincpus", 'c', "MIN_CPUS", 0, JOB_CPUS},
    {"minmemory", 'm', "MIN_MEMORY", 0, JOB_MEMORY},
    {"mintmpdisk", 'd', "MIN_TMP_DISK", 0, .fixed = "0"},
    {"name", 'j', "NAME", 0, JOB_NAME},
    {"nice", 'y', "NICE", 0, JOB_NICE},
    {"nodelist", 'N', "NODELIST", 0, JOB_NODES},
    {"numcpus", 'C', "CPUS", 0, JOB_CPUS},
    {"numnodes", 'D', "NODES", 0, JOB_N_NODES},
    {"numtasks", 0, "TASKS", 0, JOB_TASKS},
    {"oversubscribe", 'h', "OVER_SUBSCRIBE", 0, JOB_SHARED},
    {"partition", 'P', "PARTITION", 0, JOB_PARTITION},
    {"priority", 'p', "PRIORITY", 0, JOB_PRIORITY},
    {"prioritylong", 'Q', "PRIORITY", 0, JOB_PRIORITY},
    {"qos", 'q', "QOS", 0, JOB_QOS},
    {"reason", 'r', "REASON", 0, JOB_REASON},
    {"reasonlist", 'R', "NODELIST(REASON)", 0, JOB_REASON_LIST},
    {"reqnodes", 'n', "REQ_NODES", 0, JOB_NODES_WANTED},
    {"reservation", 'v', "RESERVATION", 0, .fixed = "(null)"},
    {"restartcnt", 0, "RESTARTS", 0, JOB_RESTARTS},
    {"starttime", 'S', "START_TIME", 0, JOB_STARTED},
    {"state", 'T', "STATE", 0, JOB_STATE},
    {"statecompact", 't', "ST", 0, JOB_STATE_SHORT},
    {"stderr", 0, "STDERR", 0, JOB_ERROR},
    {"stdout", 0, "STDOUT", 0, JOB_OUTPUT},
    {"submittime", 'V', "SUBMIT_TIME", 0, JOB_SUBMITTED},
    {"timeleft", 'L', "TIME_LEFT", 0, JOB_LEFT},
    {"timelimit", 'l', "TIME_LIMIT", 0, JOB_LIMIT},
    {"timeused", 'M', "TIME", 0, JOB_USED},
    {"tres-alloc", 0, "TRES_ALLOC", 0, JOB_TRES},
    {"userid", 'U', "UID", 0, JOB_UID},
    {"username", 'u', "USER", 0, JOB_USER},
    {"wckey", 'w', "WCKEY", 0, .fixed = "(null)"},
    {"workdir", 'Z', "WORK_DIR", 0, JOB_DIR},
    {NULL, 0, NULL, 0, 0},
};

enum { VAL_ME = 300, VAL_JSON, VAL_HELP, VAL_IGNORED, VAL_START };

static const struct option options[] = {
    {"account", required_argument, NULL, 'A'},
    {"all", no_argument, NULL, 'a'},
    {"array", no_argument, NULL, 'r'},
    {"array-unique", no_argument, NULL, VAL_IGNORED},
    {"clusters", required_argument, NULL, 'M'},
    {"federation", no_argument, NULL, VAL_IGNORED},
    {"format", required_argument, NULL, 'o'},
    {"Format", required_argument, NULL, 'O'},
    {"help", no_argument, NULL, VAL_HELP},
    {"hide", no_argument, NULL, VAL_IGNORED},
    {"iterate", required_argument, NULL, 'i'},
    {"jobs", optional_argument, NULL, 'j'},
    {"json", no_argument, NULL, VAL_JSON},
    {"local", no_argument, NULL, VAL_IGNORED},
    {"long", no_argument, NULL, 'l'},
    {"me", no_argument, NULL, VAL_ME},
    {"name", required_argument, NULL, 'n'},
    {"nodelist", required_argument, NULL, 'w'},
    {"noheader", no_argument, NULL, 'h'},
    {"partition", required_argument, NULL, 'p'},
    {"priority", no_argument, NULL, 'P'},
    {"qos", required_argument, NULL, 'q'},
    {"sibling", no_argument, NULL, VAL_IGNORED},
    {"sort", required_argument, NULL, 'S'},
    {"start", no_argument, NULL, VAL_START},
    {"states", required_argument, NULL, 't'},
    {"usage", no_argument, NULL, VAL_HELP},
    {"user", required_argument, NULL, 'u'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};
const struct option *const squeue_options = options;

struct line {
    char *text;
    struct buf keys; /* values of the keys of --sort, each terminated by NUL */
};

struct squeue {
    struct slurm_query q;
    struct slurm_format format;
    const char *letters, *names, *sort, *nodes, *account, *qos;
    bool no_header, long_form, json, by_task;
    char me[64];
    json_t *jobs;
    struct line *lines;
    size_t n_lines;
};

static bool has_value(const char *list, const struct slurm_job *j, int what)
{
    struct buf text = {0};
    if (!list)
        return true;
    slurm_job_value(j, what, &text);
    bool found = slurm_list_has(list, buf_str(&text));
    buf_deinit(&text);
    return found;
}

static void show_job(struct squeue *s, const struct slurm_job *j)
{
    struct buf text = {0};
    if (s->json) {
        json_array_append_new(s->jobs, slurm_job_json(j));
        return;
    }
    s->lines = mem_resize(s->lines, s->n_lines + 1, sizeof(*s->lines));
    struct line *l = &s->lines[s->n_lines++];
    *l = (struct line){0};
    slurm_format_line(&s->format, slurm_job_value, j, &text);
    l->text = buf_take(&text);
    for (const char *p = s->sort; p && *p; p++)
        for (const struct slurm_field *f = fields; f->name; f++)
            if (f->letter == *p) {
                slurm_field_text(f, slurm_job_value, j, &l->keys);
                buf_addc(&l->keys, '\0');
            }
}

/* A task of an array that has not started, for --array: the array's job under another name. */
struct task {
    struct squeue *s;
    struct slurm_job j;
    json_t *job; /* the array's, with the differences */
    int64_t array;
};

static void show_task(void *ctx, int64_t index)
{
    struct task *t = ctx;
    char *ref = mem_printf("%lld_%lld", (long long)t->array, (long long)index);
    json_object_set_new(t->job, "ref", json_string(ref));
    json_object_set_new(t->job, "array_id", json_integer(t->array));
    json_object_set_new(t->job, "array_index", json_integer(index));
    free(ref);
    show_job(t->s, &t->j);
}

static void on_job(void *ctx, const struct slurm_job *j)
{
    struct squeue *s = ctx;
    const char *indexes = strchr(cli_text(j->job, "ref"), '[');
    if (!slurm_hosts_intersect(s->nodes, j->nodes) || !has_value(s->account, j, JOB_ACCOUNT) ||
        !has_value(s->qos, j, JOB_QOS))
        return;
    if (!s->by_task || !indexes) {
        show_job(s, j);
        return;
    }
    struct task t = {.s = s,
        .j = *j,
        .job = json_copy((json_t *)(uintptr_t)j->job),
        .array = cli_int(j->job, "id", 0)};
    t.j.job = t.job;
    slurm_each_index(indexes + 1, show_task, &t);
    json_decref(t.job);
}

/* Compares numbers as numbers, everything else bytewise. */
static int compare_keys(const char *a, const char *b)
{
    int64_t x, y;
    if (str_to_i64(a, INT64_MIN, INT64_MAX, "", &x, NULL) == 0 &&
        str_to_i64(b, INT64_MIN, INT64_MAX, "", &y, NULL) == 0)
        return (x > y) - (x < y);
    return strcmp(a, b);
}

static int compare_lines(const void *a, const void *b, void *ctx)
{
    const char *p = buf_str(&((const struct line *)a)->keys),
               *q = buf_str(&((const struct line *)b)->keys);
    int sign = 1;
    for (const char *s = ctx; *s; s++) {
        if (*s == '-' || *s == '+' || *s == ',') {
            sign = *s == '-' ? -1 : 1;
            continue;
        }
        int order = compare_keys(p, q);
        if (order != 0)
            return order * sign;
        p += strlen(p) + 1;
        q += strlen(q) + 1;
        sign = 1;
    }
    return 0;
}

static int check_sort(const char *sort)
{
    for (const char *p = sort; p && *p; p++) {
        bool known = strchr("+-,", *p);
        for (const struct slurm_field *f = fields; !known && f->name; f++)
            known = f->letter == *p;
        if (!known) {
            slurm_error("squeue", "Invalid sort specification: %c", *p);
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

static int check_states(const char *list)
{
    struct buf item = {0};
    int rc = CLI_OK;
    while (list && rc == CLI_OK && slurm_next_item(&list, &item))
        if (!slurm_state_find(buf_str(&item)) && strcasecmp(buf_str(&item), "all") != 0) {
            slurm_error("squeue", "Invalid job state specified: %s", buf_str(&item));
            rc = CLI_FAILED;
        }
    buf_deinit(&item);
    return rc;
}

static void help(void)
{
    puts("Usage: squeue [-h] [-l] [-j JOBS] [-u USERS] [--me] [-n NAMES] [-p PARTITIONS] [-t "
         "STATES] [-w NODES]\n"
         "              [-r] [-o FORMAT | -O FIELDS] [-S KEYS] [--json]\n\nLists belay's jobs as "
         "Slurm's squeue does.");
    for (const struct slurm_field *f = fields; f->name; f++)
        if (f->letter)
            printf("  %%%c  %s\n", f->letter, f->name);
}

static void option(struct squeue *s, int c)
{
    switch (c) {
    case VAL_START:
        s->q.wants_starts = true;
        break;
    case 'o':
        s->letters = optarg;
        s->names = NULL;
        break;
    case 'O':
        s->names = optarg;
        break;
    case 'j':
        s->q.jobs = optarg;
        break;
    case 'u':
        s->q.user = optarg;
        break;
    case VAL_ME:
        s->q.user = s->me;
        break;
    case 'n':
        s->q.name = optarg;
        break;
    case 'p':
        s->q.pool = optarg;
        break;
    case 't':
        s->q.states = optarg;
        break;
    case 'A':
        s->account = optarg;
        break;
    case 'q':
        s->qos = optarg;
        break;
    case 'w':
        s->nodes = optarg;
        break;
    case 'S':
        s->sort = optarg;
        break;
    case 'h':
        s->no_header = true;
        break;
    case 'l':
        s->long_form = true;
        break;
    case VAL_JSON:
        s->json = true;
        break;
    case 'r':
        s->by_task = true;
        break;
    default: /* a, v, P, M: control details that belay does not have */
        break;
    }
}

static int read_options(struct squeue *s, int argc, char **argv)
{
    int c;
    optind = 0;
    while (
        (c = getopt_long(argc, argv, "aA:hi:j::lM:n:o:O:p:Pq:rS:t:u:vVw:", options, NULL)) != -1) {
        if (c == VAL_HELP || c == 'V') {
            c == 'V' ? (void)puts(SLURM_VERSION) : help();
            return 0;
        }
        if (c == '?') {
            fputs("Try \"squeue --help\" for more information\n", stderr);
            return CLI_FAILED;
        }
        if (c == 'i' || (c == 'M' && !slurm_is_this_cluster(optarg))) {
            slurm_error("squeue", "%s is not supported (%s)", c == 'i' ? "--iterate" : "--clusters",
                c == 'i' ? "watch squeue does it" : "there is only one cluster");
            return CLI_FAILED;
        }
        /* "-j 42", where getopt leaves 42 as a word */
        if (c == 'j' && !optarg && optind < argc && argv[optind][0] != '-')
            optarg = argv[optind++];
        option(s, c);
    }
    if (optind < argc) {
        slurm_error("squeue", "Unrecognized option: %s", argv[optind]);
        return CLI_FAILED;
    }
    return -1;
}

static int read_format(struct squeue *s)
{
    struct err e;
    const char *from = getenv("SQUEUE_FORMAT");
    const char *letters = s->letters          ? s->letters
                          : s->q.wants_starts ? START_FORMAT
                          : s->long_form      ? LONG_FORMAT
                          : from && *from     ? from
                                              : DEFAULT_FORMAT;
    int rc = s->names ? slurm_format_names(s->names, fields, &s->format, &e)
                      : slurm_format_letters(letters, fields, &s->format, &e);
    if (rc != 0)
        slurm_error("squeue", "%s", e.text);
    for (size_t i = 0; rc == 0 && i < s->format.n; i++) {
        int what = s->format.pieces[i].field ? s->format.pieces[i].field->what : 0;
        s->q.wants_nodes = s->q.wants_nodes || what == JOB_NODES || what == JOB_REASON_LIST ||
                           what == JOB_BATCH_HOST;
        s->q.wants_starts = s->q.wants_starts || what == JOB_STARTED;
        s->q.wants_reasons = s->q.wants_reasons || what == JOB_REASON || what == JOB_REASON_LIST;
        s->q.wants_detail = s->q.wants_detail || what == JOB_DEPENDENCY || what == JOB_DIR ||
                            what == JOB_OUTPUT || what == JOB_ERROR || what == JOB_TASKS;
    }
    s->q.wants_detail = s->q.wants_detail || s->json;
    s->q.wants_nodes = s->q.wants_nodes || s->nodes || s->json;
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

static void print(struct squeue *s)
{
    struct buf title = {0};
    if (s->json) {
        json_t *o = json_pack("{s:O,s:{s:s}}", "jobs", s->jobs, "meta", "name", SLURM_VERSION);
        cli_print_json(o);
        json_decref(o);
        return;
    }
    if (s->long_form && !s->no_header) {
        char now[64];
        time_t t = time(NULL);
        struct tm tm;
        strftime(now, sizeof(now), "%a %b %d %H:%M:%S %Y", localtime_r(&t, &tm));
        puts(now);
    }
    if (!s->no_header)
        slurm_format_line(&s->format, slurm_job_value, NULL, &title);
    fputs(buf_str(&title), stdout);
    if (s->sort)
        qsort_r(s->lines, s->n_lines, sizeof(*s->lines), compare_lines, (void *)(uintptr_t)s->sort);
    for (size_t i = 0; i < s->n_lines; i++)
        fputs(s->lines[i].text, stdout);
    buf_deinit(&title);
}

static int show(struct squeue *s)
{
    struct client *c = NULL;
    struct err e;
    int rc = read_format(s);
    if (rc == CLI_OK)
        rc = check_sort(s->sort);
    if (rc == CLI_OK)
        rc = check_states(s->q.states);
    if (rc == CLI_OK && s->nodes && !slurm_is_hosts("squeue", s->nodes))
        rc = CLI_FAILED;
    if (rc == CLI_OK && client_create(&c, &e) != 0) {
        slurm_error("squeue", "%s", e.text);
        rc = CLI_FAILED;
    }
    if (rc == CLI_OK)
        rc = slurm_each_job(c, &s->q, true, on_job, s);
    if (rc == CLI_OK || s->n_lines > 0)
        print(s);
    client_destroy(c);
    return rc;
}

int squeue_main(int argc, char **argv)
{
    struct squeue s = {
        .q = {.program = "squeue", .ended_after = WALL_NONE, .submitted_until = WALL_NONE},
        .jobs = json_array()};
    const struct passwd *me = getpwuid(getuid());
    STR_COPY(s.me, me ? me->pw_name : "");
    int rc = read_options(&s, argc, argv);
    if (rc < 0) {
        s.q.ended = s.q.states;
        /* Slurm forgets ended jobs after that time, and tools ask for all of them again and again
         */
        if (s.q.ended && !s.q.jobs)
            s.q.ended_after.ms = clock_wall(&clock_system).ms - REMEMBERED_MS;
        s.q.states = s.q.states         ? s.q.states
                     : s.q.wants_starts ? "PENDING"
                                        : "PENDING,CONFIGURING,RUNNING,COMPLETING,SUSPENDED";
        rc = show(&s);
    }
    for (size_t i = 0; i < s.n_lines; i++) {
        free(s.lines[i].text);
        buf_deinit(&s.lines[i].keys);
    }
    free(s.lines);
    json_decref(s.jobs);
    slurm_format_deinit(&s.format);
    return rc;
}
