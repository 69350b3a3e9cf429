/* SPDX-License-Identifier: Apache-2.0
 *
 * scancel: cancels jobs, by number or by common properties, or sends their processes a signal: by a
 * session (cli/session.h) with each rank, so that a signal reported as sent was received by its
 * node.
 */
#include "cli/slurm/slurm_programs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/flags/grace.h"
#include "cli/session.h"
#include "cli/slurm/slurm.h"
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { VAL_ME = 300, VAL_HELP, VAL_IGNORED };

static const struct option options[] = {
    {"account", required_argument, NULL, 'A'},
    {"batch", no_argument, NULL, 'b'},
    {"clusters", required_argument, NULL, 'M'},
    {"ctld", no_argument, NULL, VAL_IGNORED},
    {"cron", no_argument, NULL, VAL_IGNORED},
    {"full", no_argument, NULL, 'f'},
    {"help", no_argument, NULL, VAL_HELP},
    {"hurry", no_argument, NULL, 'H'},
    {"interactive", no_argument, NULL, 'i'},
    {"jobname", required_argument, NULL, 'n'},
    {"me", no_argument, NULL, VAL_ME},
    {"name", required_argument, NULL, 'n'},
    {"nodelist", required_argument, NULL, 'w'},
    {"partition", required_argument, NULL, 'p'},
    {"qos", required_argument, NULL, 'q'},
    {"quiet", no_argument, NULL, 'Q'},
    {"reservation", required_argument, NULL, 'R'},
    {"signal", required_argument, NULL, 's'},
    {"state", required_argument, NULL, 't'},
    {"usage", no_argument, NULL, VAL_HELP},
    {"user", required_argument, NULL, 'u'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};
const struct option *const scancel_options = options;

#define RECEIVE_MS 20000
#define PIECES_MAX 1000 /* in one request, which is then at most 40 KB long */

struct scancel {
    struct slurm_query q;
    const char *nodes;
    bool quiet, verbose, picks; /* picks: jobs are selected by properties */
    int signal;                 /* signal to send instead of cancelling; 0 = cancel */
    const char *to;             /* as in session.h */
    int rc;                     /* exit code so far */
    char me[64];
    struct client *c;
    int64_t *ids;
    size_t n_ids;
};

static void on_job(void *ctx, const struct slurm_job *j)
{
    struct scancel *s = ctx;
    if (!slurm_hosts_intersect(s->nodes, j->nodes))
        return;
    s->ids = mem_resize(s->ids, s->n_ids + 1, sizeof(*s->ids));
    s->ids[s->n_ids++] = cli_int(j->job, "id", 0);
}

/* Cancelling an ended job succeeds, and a job that never existed counts as ended, as in Slurm: -v
 * reports it. */
static int cancel(struct scancel *s, const char *shown, int64_t id, const char *tasks)
{
    const char *path = CLI_PATH("/api/v1/jobs/%lld/cancel", (long long)id);
    json_t *v = NULL, *body = *tasks ? json_pack("{s:o}", "tasks", json_text(tasks)) : NULL;
    struct err e = {0};
    int rc = id > 0 ? client_json(s->c, "POST", path, body, &v, &e) : ERR_NOT_FOUND;
    json_decref(body);
    json_decref(v);
    if (rc == 0 || rc == ERR_CONFLICT) {
        if (s->verbose)
            fprintf(stderr,
                rc == 0 ? "scancel: Terminating job %s\n" : "scancel: job %s has ended already\n",
                shown);
        return CLI_OK;
    }
    bool never_was = id > 0 && rc == ERR_NOT_FOUND;
    if (never_was ? s->verbose : !s->quiet)
        slurm_error("scancel", "Kill job error on job id %s: %s", shown,
            rc == ERR_NOT_FOUND ? "Invalid job id specified" : e.text);
    return never_was ? CLI_OK : CLI_FAILED;
}

static int cancel_word(struct scancel *s, const char *word)
{
    char tasks[SLURM_TASKS_MAX];
    int64_t id = 0;
    if (strchr(word, '.')) {
        slurm_error(
            "scancel", "%s: belay has no numbers for the steps of a job: name the job", word);
        return CLI_FAILED;
    }
    return cancel(s, word, slurm_job_name(word, &id, tasks) ? id : 0, tasks);
}

static int cancel_named(struct scancel *s, char **words, int n)
{
    int rc = CLI_OK;
    for (int i = 0; i < n; i++) {
        struct buf item = {0};
        const char *list = words[i];
        while (slurm_next_item(&list, &item)) {
            int one = cancel_word(s, buf_str(&item));
            rc = one > rc ? one : rc;
        }
        buf_deinit(&item);
    }
    return rc;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Adds up to PIECES_MAX pieces; consecutive numbers are one piece, "42-45". */
static void add_pieces(const struct scancel *s, size_t *at, json_t *pieces)
{
    while (*at < s->n_ids && json_array_size(pieces) < PIECES_MAX) {
        size_t from = (*at)++;
        while (*at < s->n_ids && s->ids[*at] == s->ids[*at - 1] + 1)
            (*at)++;
        char *text = from + 1 == *at ? mem_printf("%lld", (long long)s->ids[from])
                                     : mem_printf("%lld-%lld", (long long)s->ids[from],
                                           (long long)s->ids[*at - 1]);
        json_array_append_new(pieces, json_string(text));
        free(text);
    }
}

static int cancel_picked(struct scancel *s)
{
    int rc = slurm_each_job(s->c, &s->q, false, on_job, s);
    if (s->n_ids > 1)
        qsort(s->ids, s->n_ids, sizeof(*s->ids), by_number);
    for (size_t at = 0; rc == CLI_OK && at < s->n_ids;) {
        json_t *pieces = json_array(), *v = NULL, *body = json_pack("{s:o}", "jobs", pieces);
        struct err e = {0};
        add_pieces(s, &at, pieces);
        rc = client_json(s->c, "POST", "/api/v1/jobs/cancel", body, &v, &e) == 0 ? CLI_OK
                                                                                 : CLI_FAILED;
        if (rc != CLI_OK)
            slurm_error("scancel", "%s", e.text);
        else if (s->verbose)
            fprintf(
                stderr, "scancel: Terminating %lld jobs\n", (long long)cli_int(v, "cancelled", 0));
        if (rc == CLI_OK && cli_int(v, "denied", 0) > 0) {
            slurm_error("scancel", "%lld jobs belong to other users, and were not cancelled",
                (long long)cli_int(v, "denied", 0));
            rc = CLI_FAILED;
        }
        json_decref(body);
        json_decref(v);
    }
    return rc;
}

/* Waits until the rank's node has sent the signal. *ret_code: 1 if no process would receive it. */
static int send_signal(
    struct client *c, const struct session_request *request, int *ret_code, struct err *e)
{
    struct session s = {.client = c};
    *ret_code = -1;
    int rc = session_begin(&s, request, e);
    while (rc == 0 && *ret_code < 0)
        rc = session_receive(&s, RECEIVE_MS, ret_code, e);
    session_finish(&s);
    return rc;
}

/* Sends to each rank. A rank without a receiving process is not an error, as in Slurm. */
static void signal_job(void *ctx, const struct slurm_job *j)
{
    struct scancel *s = ctx;
    int64_t id = cli_int(j->job, "id", 0);
    const char *state = cli_text(j->job, "state"), *shown = cli_text(j->job, "ref");
    if (!slurm_hosts_intersect(s->nodes, j->nodes))
        return;
    if (!str_eq(state, "running")) {
        if (!s->quiet)
            slurm_error("scancel",
                "Kill job error on job id %s: the job is %s, and only a running job can get a "
                "signal",
                shown, state);
        s->rc = CLI_FAILED;
        return;
    }
    for (int64_t rank = 0; rank < cli_int(j->job, "ranks", 1); rank++) {
        const struct session_request request = {
            .job = id, .rank = rank, .signal = s->signal, .to = s->to};
        struct err e;
        int code;
        int rc = send_signal(s->c, &request, &code, &e);
        if (rc == 0 && s->verbose)
            fprintf(stderr, "scancel: Signal %d to job %s%s\n", s->signal, shown,
                code ? ": no process receives it" : "");
        if (rc == 0)
            continue;
        if (!s->quiet)
            slurm_error("scancel", "Kill job error on job id %s: %s", shown, e.text);
        s->rc = CLI_FAILED;
        return;
    }
}

static int signal_jobs(struct scancel *s)
{
    int rc = slurm_each_job(s->c, &s->q, !s->quiet, signal_job, s);
    return rc > s->rc ? rc : s->rc;
}

static int refuse(const char *what, const char *instead)
{
    slurm_error("scancel", "%s is not supported: %s", what, instead);
    return CLI_FAILED;
}

/* Returns -1 to continue; else the exit code. */
static int option(struct scancel *s, int c)
{
    const char **filter = c == 'n'   ? &s->q.name
                          : c == 'p' ? &s->q.pool
                          : c == 't' ? &s->q.states
                          : c == 'w' ? &s->nodes
                                     : NULL;
    if (c == 'w' && !slurm_is_hosts("scancel", optarg))
        return CLI_FAILED;
    if (filter) {
        *filter = optarg;
        s->picks = true;
        s->q.wants_nodes = s->q.wants_nodes || c == 'w';
    } else if (c == 'u' || c == VAL_ME) {
        s->q.user = c == 'u' ? optarg : s->me;
        s->picks = true;
    } else if (c == 'Q' || c == 'v') {
        *(c == 'Q' ? &s->quiet : &s->verbose) = true;
    } else if (c == 's') {
        s->signal = grace_signal(optarg);
        if (s->signal == 0) {
            slurm_error("scancel", "Unknown job signal: %s", optarg);
            return CLI_FAILED;
        }
    } else if (c == 'b' || c == 'f') {
        s->to = c == 'b' ? "script" : "all";
    } else if (c == 'A' || c == 'q' || c == 'R' || c == 'i') {
        return refuse(c == 'A'   ? "--account"
                      : c == 'q' ? "--qos"
                      : c == 'R' ? "--reservation"
                                 : "--interactive",
            "name the jobs, or pick them by --user, --name, --partition, --state or --nodelist");
    } else if (c == 'M' && !slurm_is_this_cluster(optarg)) {
        return refuse("--clusters", "there is only one cluster");
    } else if (c == VAL_HELP) {
        puts("Usage: scancel [-s SIGNAL [-b | -f]] [-n NAME] [-p PARTITION] [-t STATE] [-u USER] "
             "[--me] [-w NODE] [-Q] [-v] "
             "[JOB...]\n\nEnds belay's jobs, or sends their programs (-b: their scripts, -f: both) "
             "a signal.");
        return CLI_OK;
    } else if (c == 'V') {
        puts(SLURM_VERSION);
        return CLI_OK;
    } else if (c == '?') {
        return CLI_FAILED;
    }
    return -1;
}

static void named_list(struct scancel *s, struct buf *list, char **words, int n)
{
    for (int i = 0; i < n; i++)
        buf_printf(list, "%s%s", i ? "," : "", words[i]);
    s->q.jobs = n ? buf_str(list) : NULL;
}

int scancel_main(int argc, char **argv)
{
    struct scancel s = {
        .q = {.program = "scancel", .ended_after = WALL_NONE, .submitted_until = WALL_NONE}};
    struct buf list = {0};
    struct err e;
    const struct passwd *me = getpwuid(getuid());
    int c, rc = -1;
    STR_COPY(s.me, me ? me->pw_name : "");
    optind = 0;
    while (
        rc < 0 && (c = getopt_long(argc, argv, "A:bfHiM:n:p:q:QR:s:t:u:vVw:", options, NULL)) != -1)
        rc = option(&s, c);
    if (rc < 0 && optind == argc && !s.picks) {
        slurm_error("scancel", "No job identification provided");
        rc = CLI_FAILED;
    }
    if (rc < 0 && client_create(&s.c, &e) != 0) {
        slurm_error("scancel", "%s", e.text);
        rc = CLI_FAILED;
    }
    /* a job whose programs are all killed has ended */
    bool ends = s.signal == 0 || (s.signal == SIGKILL && !s.to);
    s.to = s.to ? s.to : "programs";
    if (rc < 0 && (s.picks || !ends)) {
        named_list(&s, &list, argv + optind, argc - optind);
        if (!s.q.states && s.picks)
            s.q.states = ends ? "PENDING,CONFIGURING,RUNNING,SUSPENDED" : "RUNNING";
        rc = ends ? cancel_picked(&s) : signal_jobs(&s);
    } else if (rc < 0) {
        rc = cancel_named(&s, argv + optind, argc - optind);
    }
    client_destroy(s.c);
    buf_deinit(&list);
    free(s.ids);
    return rc;
}
