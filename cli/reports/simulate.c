/* SPDX-License-Identifier: Apache-2.0
 *
 * belay simulate: how other pool files would have run a log of jobs. Needs no belayd: the same
 * decisions run here, in virtual time.
 */
#include "cli/verbs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/html/page.h"
#include "cli/html/simulate_page.h"
#include "cli/reports/simulate_sums.h"
#include "replay/history.h"
#include "replay/study.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MAX 16
#define OWNED_MAX 64
#define TRACES_MAX 256
#define BAR_WIDTH 40

enum {
    VAL_POOLS = 1,
    VAL_JOBS,
    VAL_TRACE,
    VAL_OBSERVED,
    VAL_OWNED,
    VAL_FROM,
    VAL_TO,
    VAL_DAYS,
    VAL_BOOT,
    VAL_BOOT_TAIL,
    VAL_ANSWER,
    VAL_GONE,
    VAL_RESTORE,
    VAL_SAVE,
    VAL_NO_CHECKPOINTS,
    VAL_NOTICE,
    VAL_TRACE_FROM,
    VAL_TRACE_TIMES,
    VAL_AFTER,
    VAL_SEED,
    VAL_HTML
};

/* Arguments of --trace or of --observed. */
struct trace_words {
    const char *option;
    char *list[TRACES_MAX];
    size_t n;
};

struct request {
    char *pools[FILES_MAX];
    struct config *configs[FILES_MAX];
    size_t n_pools;
    char *jobs, *html;
    char *command; /* for the page */
    struct trace_words traced, observed;
    struct joblog log;
    struct traces traces, observed_traces;
    struct study_owned owned[OWNED_MAX];
    size_t n_owned;
    struct wall from, to;
    int64_t days;
    struct study_options o;
    int shown; /* percentage that the progress bar shows; -1 = no bar */
};

/* ---- the command line ---- */

static int usage(const char *option, const struct err *e)
{
    cli_error("--%s: %s", option, e->text);
    return CLI_USAGE;
}

static int too_many(const char *option, int most)
{
    cli_error("--%s: given more than %d times", option, most);
    return CLI_USAGE;
}

static int add_pools(struct request *q, const char *arg)
{
    if (q->n_pools == FILES_MAX)
        return too_many("pools", FILES_MAX);
    q->pools[q->n_pools++] = mem_strdup(arg);
    return CLI_OK;
}

static int add_word(struct trace_words *w, const char *arg)
{
    if (w->n == TRACES_MAX)
        return too_many(w->option, TRACES_MAX);
    w->list[w->n++] = mem_strdup(arg);
    return CLI_OK;
}

static int add_owned(struct request *q, const char *arg)
{
    struct err e;
    if (q->n_owned == OWNED_MAX)
        return too_many("owned", OWNED_MAX);
    if (study_parse_owned(arg, &q->owned[q->n_owned], &e) != 0)
        return usage("owned", &e);
    q->n_owned++;
    return CLI_OK;
}

static int read_duration(const char *option, const char *arg, int64_t *ret_ms)
{
    struct err e;
    return time_parse_duration(arg, false, ret_ms, &e) == 0 ? CLI_OK : usage(option, &e);
}

/* A duration other than 0. */
static int read_some_time(const char *option, const char *arg, int64_t *ret_ms)
{
    struct err e;
    int rc = read_duration(option, arg, ret_ms);
    if (rc != CLI_OK || *ret_ms > 0)
        return rc;
    err_set(&e, ERR_INVALID, "expected a duration above 0, as in 100ms");
    return usage(option, &e);
}

static int read_number(
    const char *option, const char *arg, int64_t min, int64_t max, int64_t *ret_n)
{
    struct err e;
    return str_to_i64(arg, min, max, "number", ret_n, &e) == 0 ? CLI_OK : usage(option, &e);
}

static int read_moment(const char *option, const char *arg, struct wall *ret_at)
{
    struct err e;
    char midnight[40];
    snprintf(midnight, sizeof midnight, "%.20sT00:00:00", arg);
    if (strlen(arg) == 10 && joblog_time(midnight, ret_at, &e) == 0)
        return CLI_OK;
    return joblog_time(arg, ret_at, &e) == 0 ? CLI_OK : usage(option, &e);
}

static int set_text(char **text, const char *arg)
{
    free(*text);
    *text = mem_strdup(arg);
    return CLI_OK;
}

static int on_option(void *ctx, int val, const char *arg)
{
    struct request *q = ctx;
    int64_t n = 0;
    int rc;
    switch (val) {
    case VAL_POOLS:
        return add_pools(q, arg);
    case VAL_JOBS:
        return set_text(&q->jobs, arg);
    case VAL_HTML:
        return set_text(&q->html, arg);
    case VAL_TRACE:
        return add_word(&q->traced, arg);
    case VAL_OBSERVED:
        return add_word(&q->observed, arg);
    case VAL_OWNED:
        return add_owned(q, arg);
    case VAL_FROM:
        return read_moment("from", arg, &q->from);
    case VAL_TO:
        return read_moment("to", arg, &q->to);
    case VAL_DAYS:
        return read_number("days", arg, 1, 36600, &q->days);
    case VAL_BOOT:
        return read_duration("boot", arg, &q->o.boot_ms);
    case VAL_BOOT_TAIL:
        return read_some_time("boot-tail", arg, &q->o.boot_p95_ms);
    case VAL_ANSWER:
        return read_some_time("answer", arg, &q->o.answer_ms);
    case VAL_GONE:
        return read_some_time("gone", arg, &q->o.gone_ms);
    case VAL_RESTORE:
        return read_duration("restore", arg, &q->o.restore_ms);
    case VAL_SAVE:
        return read_duration("save", arg, &q->o.save_ms);
    case VAL_NO_CHECKPOINTS:
        q->o.save_ms = 0;
        return CLI_OK;
    case VAL_NOTICE:
        return read_duration("notice", arg, &q->o.notice_ms);
    case VAL_TRACE_FROM:
        return read_duration("trace-from", arg, &q->o.trace_from_ms);
    case VAL_AFTER:
        return read_duration("after", arg, &q->o.after_ms);
    case VAL_TRACE_TIMES:
        rc = read_number("machines", arg, 1, 1000000, &n);
        q->o.trace_times = (int32_t)n;
        return rc;
    default:
        rc = read_number("seed", arg, 0, INT64_MAX, &n);
        q->o.seed = (uint64_t)n;
        return rc;
    }
}

/* ---- input ---- */

static int read_log(struct request *q, struct err *e)
{
    struct buf text = {0};
    if (history_is_database(q->jobs))
        return history_read_jobs(q->jobs, &q->log, e);
    int rc = fs_read(q->jobs, JOBLOG_BYTES_MAX, &text, e);
    if (rc == 0)
        rc = joblog_parse(q->jobs, buf_str(&text), text.len, &q->log, e);
    buf_deinit(&text);
    return rc;
}

/* Reports why no job is left to run. n: jobs of the log that ran. */
static int no_jobs(const struct request *q, struct wall first, struct wall last, size_t n)
{
    char from[TIME_ISO_MAX], to[TIME_ISO_MAX];
    if (n == 0) {
        cli_error("%s: no job of the log ran (%zu never did)", q->jobs, q->log.n_never_ran);
        return CLI_USAGE;
    }
    time_format_iso(first, from);
    time_format_iso(last, to);
    cli_error("%s: none of its jobs was submitted in the time of --from, --to or --days: its %zu "
              "jobs were submitted from %s to %s",
        q->jobs, n, from, to);
    return CLI_USAGE;
}

static int load_log(struct request *q)
{
    struct err e;
    if (read_log(q, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    if (q->log.ignored[0])
        cli_warn("%s: unknown columns are ignored: %s", q->jobs, q->log.ignored);
    if (q->days && !wall_is_set(q->from) && q->log.n > 0)
        q->from = q->log.jobs[0].submit;
    if (q->days)
        q->to.ms = q->from.ms + q->days * DAY_MS;
    size_t n = q->log.n;
    struct wall first = n > 0 ? q->log.jobs[0].submit : WALL_NONE,
                last = n > 0 ? q->log.jobs[n - 1].submit : WALL_NONE;
    joblog_select(&q->log, q->from, q->to);
    return q->log.n > 0 ? CLI_OK : no_jobs(q, first, last, n);
}

/* The trace of a database begins at `from`, or else with its first observation. */
static int load_traces(const struct trace_words *w, struct wall from, struct traces *traces)
{
    struct err e;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < w->n; i++)
        rc = history_is_database(w->list[i]) ? history_read_traces(w->list[i], from, traces, &e)
                                             : market_read(traces, w->list[i], &e);
    return rc == 0 ? CLI_OK : usage(w->option, &e);
}

static int load(struct request *q)
{
    struct err e;
    if (q->n_pools == 0 || !q->jobs) {
        cli_error(
            "nothing to simulate: give the pools, --pools FILE, and the log of jobs, --jobs FILE");
        return CLI_USAGE;
    }
    if (q->days && wall_is_set(q->to)) {
        cli_error("--days and --to exclude each other: give one of them");
        return CLI_USAGE;
    }
    for (size_t i = 0; i < q->n_pools; i++) {
        if (study_load_pools(q->pools[i], &q->configs[i], &e) != 0) {
            cli_error("%s", e.text);
            return CLI_USAGE;
        }
    }
    int rc = load_log(q);
    if (rc == CLI_OK)
        rc = load_traces(&q->traced, q->log.n > 0 ? q->log.jobs[0].submit : WALL_NONE, &q->traces);
    return rc == CLI_OK ? load_traces(&q->observed, WALL_NONE, &q->observed_traces) : rc;
}

/* ---- output ---- */

static void on_progress(void *ctx, int64_t ended, int64_t of)
{
    struct request *q = ctx;
    int percent = (int)(ended * 100 / of);
    if (q->shown < 0 || percent == q->shown)
        return;
    q->shown = percent;
    fprintf(stderr, "\r%s: [", q->o.file);
    for (int i = 0; i < BAR_WIDTH; i++)
        putc(i * 100 < percent * BAR_WIDTH ? '#' : ' ', stderr);
    fprintf(stderr, "] %3d %%", percent);
}

static void clear_bar(struct request *q)
{
    if (q->shown > 0)
        fprintf(stderr, "\r\033[K");
    q->shown = q->shown < 0 ? -1 : 0;
}

static void cell_usd(struct table *t, int64_t uusd)
{
    char text[32];
    table_cell(t, "%s", cli_usd(uusd, text, sizeof text));
}

static void cell_time(struct table *t, int64_t ms)
{
    char text[32];
    table_cell(t, "%s", cli_duration(ms, text, sizeof text));
}

static void cell_part(struct table *t, double part, double whole)
{
    if (whole > 0)
        table_cell(t, "%.1f %%", 100 * part / whole);
    else
        table_cell(t, "-");
}

static void print_sums(const struct study *s, size_t n)
{
    struct sums_column *columns = mem_array(n, sizeof *columns);
    struct table *t = table_create();
    struct sums_wanted w = sums_find(s, n);
    table_column(t, "", false);
    for (size_t i = 0; i < n; i++) {
        table_column(t, s[i].file, true);
        sums_fill(&columns[i], &s[i], &w);
    }
    for (size_t line = 0; line < columns[0].n; line++) {
        table_row(t);
        table_cell(t, "%s", columns[0].names[line]);
        for (size_t i = 0; i < n; i++)
            table_cell(t, "%s", columns[i].texts[line]);
    }
    table_print(t);
    free(columns);
}

/* The kinds of time of a pool's machines. */
static const struct {
    const char *name;
    enum ledger_kind kind;
} times[] = {{"USEFUL", LEDGER_USEFUL}, {"LOST", LEDGER_LOST}, {"BOOT", LEDGER_BOOT},
    {"START", LEDGER_START}, {"RESTORE", LEDGER_RESTORE}, {"SAVE", LEDGER_SAVE},
    {"GANG-WAIT", LEDGER_GANG_WAIT}, {"IDLE", LEDGER_IDLE}};
#define TIMES (sizeof times / sizeof times[0])

/* Only the time that ranks of a gang wait for each other is left out, if there is none. */
static bool is_shown(const struct study *s, enum ledger_kind kind)
{
    return kind != LEDGER_GANG_WAIT || s->r.ms[kind] > 0;
}

static void add_columns(struct table *t, const char *const *names)
{
    for (; *names; names++)
        table_column(t, *names, true);
}

static void print_pools(const struct study *s)
{
    struct table *t = table_create();
    bool has_data = s->r.spent[LEDGER_EGRESS] > 0;
    table_column(t, "POOL", false);
    add_columns(
        t, (const char *const[]){"JOBS", "WAIT", "LATE", "COST", has_data ? "DATA" : NULL, NULL});
    for (size_t k = 0; k < TIMES; k++)
        if (is_shown(s, times[k].kind))
            table_column(t, times[k].name, true);
    add_columns(t, (const char *const[]){"CPUS", "GPUS", "LAUNCHES", "REFUSED", "RECLAIMS", NULL});
    for (size_t i = 0; i < s->n_pools; i++) {
        const struct replay_pool *p = &s->pools[i];
        const struct study_jobs *g = &s->pool_jobs[i];
        table_row(t);
        table_cell(t, "%s", s->pool_names[i]);
        table_cell(t, "%lld", (long long)g->jobs);
        cell_time(t, g->wait_mean_ms);
        table_cell(t, "%lld", (long long)g->late);
        cell_usd(t, p->uusd);
        if (has_data)
            cell_usd(t, p->spent[LEDGER_EGRESS]);
        for (size_t k = 0; k < TIMES; k++)
            if (is_shown(s, times[k].kind))
                cell_time(t, p->ms[times[k].kind]);
        cell_part(t, p->used_ms[0], p->have_ms[0]);
        cell_part(t, p->used_ms[1], p->have_ms[1]);
        table_cell(t, "%lld", (long long)p->launches);
        table_cell(t, "%lld", (long long)p->refusals);
        table_cell(t, "%lld", (long long)p->reclaims);
    }
    table_print(t);
}

static void print_racks(const struct study *s)
{
    static const char *const names[] = {"MAX KW", "MOST KW", "MEAN KW"};
    struct table *t = table_create();
    table_column(t, "RACK", false);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        table_column(t, names[i], true);
    for (size_t i = 0; i < s->n_racks; i++) {
        table_row(t);
        table_cell(t, "%s", s->rack_options[i].name);
        table_cell(t, "%.2f", (double)s->rack_options[i].max_w / 1e3);
        table_cell(t, "%.2f", (double)s->racks[i].most_w / 1e3);
        table_cell(
            t, "%.2f", s->r.end_ms > 0 ? s->racks[i].watt_ms / (double)s->r.end_ms / 1e3 : 0);
    }
    table_print(t);
}

static void print_teams(const struct study *s)
{
    static const char *const names[] = {
        "JOBS", "COST", "WAIT", "MEDIAN", "P95", "LATE", "RECLAIMS", "LOST"};
    struct table *t = table_create();
    table_column(t, "TEAM", false);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        table_column(t, names[i], true);
    for (size_t i = 0; i < s->n_teams; i++) {
        const struct study_jobs *g = &s->teams[i];
        table_row(t);
        table_cell(t, "%s", g->name);
        table_cell(t, "%lld", (long long)g->jobs);
        cell_usd(t, g->uusd);
        cell_time(t, g->wait_mean_ms);
        cell_time(t, g->wait_median_ms);
        cell_time(t, g->wait_p95_ms);
        table_cell(t, "%lld", (long long)g->late);
        table_cell(t, "%lld", (long long)g->reclaims);
        cell_time(t, g->lost_ms);
    }
    table_print(t);
}

static void print_all(const struct request *q, const struct study *s, size_t n)
{
    print_sums(s, n);
    for (size_t i = 0; i < n; i++) {
        printf(n > 1 ? "\n%s\n" : "\n", s[i].file);
        print_pools(&s[i]);
        printf("\n");
        print_teams(&s[i]);
        if (s[i].n_racks > 0) {
            printf("\n");
            print_racks(&s[i]);
        }
        for (size_t k = 0; k < s[i].n_notes; k++)
            printf("%s%s.\n", k == 0 ? "\n" : "", s[i].notes[k]);
    }
    if (q->log.n_never_ran > 0)
        printf("\n%zu jobs of the log never ran, and are left out.\n", q->log.n_never_ran);
}

static int write_page(
    const struct request *q, const struct study *s, size_t n, const json_t *result)
{
    struct buf page = {0};
    const struct simulate_page about = {.studies = s,
        .n = n,
        .result = result,
        .jobs = q->jobs,
        .seed = q->o.seed,
        .n_never_ran = q->log.n_never_ran,
        .command = q->command,
        .now = clock_wall(&clock_system)};
    simulate_page_write(&about, &page);
    return page_save(&page, q->html);
}

static int report(const struct request *q, const struct study *s, size_t n, bool as_json)
{
    json_t *result = study_json(s, n);
    json_object_set_new(result, "never_ran", json_integer((json_int_t)q->log.n_never_ran));
    int rc = q->html ? write_page(q, s, n, result) : CLI_OK;
    if (as_json)
        cli_print_json(result);
    else
        print_all(q, s, n);
    json_decref(result);
    return rc;
}

static int simulate(struct request *q, bool as_json)
{
    struct study studies[FILES_MAX];
    size_t n = 0;
    struct err e;
    int rc = CLI_OK;
    q->shown = !as_json && isatty(STDERR_FILENO) ? 0 : -1;
    q->o.log = &q->log;
    q->o.traces = &q->traces;
    q->o.observed = q->observed.n > 0 ? &q->observed_traces : NULL;
    q->o.owned = q->owned;
    q->o.n_owned = q->n_owned;
    q->o.progress = on_progress;
    q->o.ctx = q;
    for (size_t i = 0; rc == CLI_OK && i < q->n_pools; i++) {
        q->o.file = q->pools[i];
        q->o.config = q->configs[i];
        if (study_run(&q->o, &studies[n], &e) == 0)
            n++;
        else
            rc = CLI_USAGE;
        clear_bar(q);
    }
    if (rc == CLI_OK)
        rc = report(q, studies, n, as_json);
    else
        cli_error("%s", e.text);
    for (size_t i = 0; i < n; i++)
        study_deinit(&studies[i]);
    return rc;
}

static void free_words(struct trace_words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->list[i]);
}

static int run(int argc, const char **argv)
{
    struct request *q = mem_alloc(sizeof *q);
    struct cli_args a;
    q->command = page_command(argc, argv);
    q->from = q->to = WALL_NONE;
    q->traced.option = "trace";
    q->observed.option = "observed";
    q->o = (struct study_options){.boot_ms = SECONDS_MS(120),
        .restore_ms = SECONDS_MS(30),
        .save_ms = SECONDS_MS(15),
        .notice_ms = STUDY_BY_PROVIDER,
        .after_ms = 30 * DAY_MS,
        .seed = 1};
    int rc = cli_parse(&verb_simulate, argc, argv, false, on_option, q, &a);
    if (rc == 0)
        rc = load(q);
    if (rc == 0)
        rc = simulate(q, a.json);
    cli_args_deinit(&a);
    for (size_t i = 0; i < q->n_pools; i++) {
        free(q->pools[i]);
        study_free_pools(q->configs[i]);
    }
    free_words(&q->traced);
    free_words(&q->observed);
    free(q->jobs);
    free(q->html);
    free(q->command);
    joblog_deinit(&q->log);
    market_deinit(&q->traces);
    market_deinit(&q->observed_traces);
    free(q);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"pools", 'p', POPT_ARG_STRING, NULL, VAL_POOLS,
        "the pools: a file of pools, or belayd's configuration; several files are compared",
        "FILE"},
    {"jobs", 'l', POPT_ARG_STRING, NULL, VAL_JOBS,
        "the log of jobs: CSV, the output of sacct -P, .swf, the JSON of belay list, or belayd's "
        "database",
        "FILE"},
    {"trace", 't', POPT_ARG_STRING, NULL, VAL_TRACE,
        "availability and prices of spot offers: a directory, a file, OFFER=FILE, or belayd's "
        "database; repeatable",
        "FILE"},
    {"observed", 0, POPT_ARG_STRING, NULL, VAL_OBSERVED,
        "availability before the first job, from which belayd has learned; as --trace; repeatable",
        "FILE"},
    {"owned", 'o', POPT_ARG_STRING, NULL, VAL_OWNED,
        "machines of a reserved pool: base=4,cpus=8,memory=60G,gpus=1; repeatable", "POOL=N,..."},
    {"from", 0, POPT_ARG_STRING, NULL, VAL_FROM,
        "only jobs submitted from this moment on (2026-08-01)", "TIME"},
    {"to", 0, POPT_ARG_STRING, NULL, VAL_TO, "only jobs submitted before this moment", "TIME"},
    {"days", 'd', POPT_ARG_STRING, NULL, VAL_DAYS,
        "only this many days of the log, from --from or its beginning", "N"},
    {"answer", 0, POPT_ARG_STRING, NULL, VAL_ANSWER,
        "time of a provider to answer a launch (default 2s)", "DURATION"},
    {"gone", 0, POPT_ARG_STRING, NULL, VAL_GONE,
        "time until an ended machine is no longer paid for (default 30s)", "DURATION"},
    {"boot", 0, POPT_ARG_STRING, NULL, VAL_BOOT,
        "time from the answer until the machine joins (default 2m)", "DURATION"},
    {"boot-tail", 0, POPT_ARG_STRING, NULL, VAL_BOOT_TAIL,
        "boots vary: --boot is the median, and one in 20 takes longer than this", "DURATION"},
    {"restore", 0, POPT_ARG_STRING, NULL, VAL_RESTORE, "restore time of a checkpoint (default 30s)",
        "DURATION"},
    {"save", 0, POPT_ARG_STRING, NULL, VAL_SAVE,
        "pause at each save, for jobs without one in the log (default 15s)", "DURATION"},
    {"no-checkpoints", 0, POPT_ARG_NONE, NULL, VAL_NO_CHECKPOINTS,
        "jobs without a pause in the log cannot be saved, and start from the beginning", NULL},
    {"notice", 0, POPT_ARG_STRING, NULL, VAL_NOTICE,
        "notice before a spot machine is reclaimed (default: the provider's)", "DURATION"},
    {"trace-from", 0, POPT_ARG_STRING, NULL, VAL_TRACE_FROM, "offset into the traces (default 0)",
        "DURATION"},
    {"machines", 0, POPT_ARG_STRING, NULL, VAL_TRACE_TIMES,
        "machines per count of a trace (default: unlimited while the count is not 0)", "N"},
    {"after", 0, POPT_ARG_STRING, NULL, VAL_AFTER, "time limit after the last submit (default 30d)",
        "DURATION"},
    {"seed", 0, POPT_ARG_STRING, NULL, VAL_SEED,
        "selects the machines that are reclaimed, and the times of boots (default 1)", "N"},
    {"html", 0, POPT_ARG_STRING, NULL, VAL_HTML,
        "also write a page with plots, self-contained in one file", "FILE"},
    POPT_TABLEEND,
};

const struct verb verb_simulate = {"simulate", CLI_NO_WORDS,
    "simulate other pools on the jobs that ran", run, options, false, .folds = true,
    .examples = "belay simulate --pools=pools.yaml --jobs=jobs.csv\n"};
