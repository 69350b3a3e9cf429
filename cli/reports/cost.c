/* SPDX-License-Identifier: Apache-2.0
 *
 * belay cost: what was spent, on what, and its on-demand equivalent; belay cost forecast: the
 * expected cost of a job (forecast.c).
 */
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/reports/cost_print.h"
#include "cli/reports/forecast.h"
#include "cli/flags/notify.h"
#include "cli/reports/report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VAL_BY = 1,
    VAL_USER,
    VAL_TEAM,
    VAL_POOL,
    VAL_FROM,
    VAL_TO,
    VAL_MONTH,
    VAL_WEEK,
    VAL_DAY,
    VAL_CSV,
    VAL_REPORT,
    VAL_HTML,
    VAL_MAIL,
    VAL_POST
};

struct query {
    struct buf by, path;
    struct wall from, to;
    bool has_period, csv, was_asked, weekly_report;
    char *team, *html, *mail, *post; /* NULL if not given */
    struct forecast *forecast;
};

/* ---- the request ---- */

static bool is_key(const char *word)
{
    static const char *const keys[] = {"job", "user", "team", "project", "pool", "type", "market",
        "kind", "day", "week", "month", NULL};
    size_t i = 0;
    while (keys[i] && !str_eq(keys[i], word))
        i++;
    return keys[i] || (str_starts(word, "label:") && word[6]);
}

/* Adds comma-separated keys to those of earlier options. */
static int add_keys(struct query *q, const char *words)
{
    struct buf copy = {0};
    int rc = CLI_OK;
    buf_adds(&copy, words);
    char *rest = copy.data;
    for (const char *word; rc == CLI_OK && (word = strsep(&rest, ",")) != NULL;)
        if (is_key(word)) {
            buf_printf(&q->by, "%s%s", q->by.len > 0 ? "," : "", word);
        } else {
            cli_error("--by: expected some of job, user, team, project, pool, type, market, kind, "
                      "day, week, month and label:NAME, separated by "
                      "commas, found \"%s\"",
                word);
            rc = CLI_USAGE;
        }
    buf_deinit(&copy);
    return rc;
}

/* The first moment (UTC) of "2026-11" or "2026-11-22". */
static bool read_date(const char *text, bool has_day, struct wall *ret_wall)
{
    struct err e;
    char iso[TIME_ISO_MAX];
    int n = snprintf(iso, sizeof(iso), "%s%sT00:00:00Z", text, has_day ? "" : "-01");
    return strlen(text) == (has_day ? 10 : 7) && n > 0 && n < (int)sizeof(iso) &&
           time_parse_iso(iso, ret_wall, &e) == 0;
}

/* The first day of the next month. */
static struct wall next_month(struct wall first)
{
    char iso[TIME_ISO_MAX], month[8];
    time_format_iso((struct wall){first.ms + 31 * DAY_MS}, iso);
    struct wall w = first;
    snprintf(month, sizeof(month), "%.7s", iso);
    read_date(month, false, &w);
    return w;
}

/* --month, --week and --day with a date: only that period, without a line for each. */
static int add_calendar(struct query *q, int val, const char *arg)
{
    static const char *const names[] = {"month", "week", "day"};
    const char *name = names[val - VAL_MONTH];
    if (!arg)
        return add_keys(q, name);
    if (!read_date(arg, val != VAL_MONTH, &q->from)) {
        cli_error("--%s: expected %s, or no value (one line for each %s), found \"%s\"", name,
            val == VAL_MONTH ? "a month as 2026-11" : "a day as 2026-11-22", name, arg);
        return CLI_USAGE;
    }
    if (q->has_period) {
        cli_error("--%s: one period at a time: --month, --week or --day, or --from and --to", name);
        return CLI_USAGE;
    }
    q->has_period = true;
    if (val == VAL_WEEK)
        q->from.ms -= (q->from.ms / DAY_MS + 3) % 7 * DAY_MS; /* the Monday of its week */
    q->to = val == VAL_MONTH ? next_month(q->from)
                             : (struct wall){q->from.ms + (val == VAL_WEEK ? 7 : 1) * DAY_MS};
    return CLI_OK;
}

static int add_moment(struct query *q, int val, const char *arg)
{
    struct err e;
    char shown[STR_SHOW_MAX];
    struct wall *at = val == VAL_FROM ? &q->from : &q->to;
    if (read_date(arg, true, at) || time_parse_iso(arg, at, &e) == 0)
        return CLI_OK;
    cli_error("--%s: expected a day such as 2026-12-01, which begins at midnight UTC, or a time in "
              "UTC such as 2026-12-01T08:00:00Z, found %s",
        val == VAL_FROM ? "from" : "to", str_show(arg, shown));
    return CLI_USAGE;
}

static void set_text(char **text, const char *arg)
{
    free(*text);
    *text = mem_strdup(arg);
}

/* A URL, or "@FILE" with one in its first line, because it may be a secret. */
static int take_url(struct query *q, const char *arg)
{
    json_t *spec = json_object();
    struct err e;
    int rc = notify_url_parse(arg, spec, &e);
    if (rc == 0)
        set_text(&q->post, json_string_value(json_array_get(
                               json_object_get(json_object_get(spec, "notify"), "urls"), 0)));
    else
        cli_error("--post: %s", e.text);
    json_decref(spec);
    return rc == 0 ? CLI_OK : CLI_USAGE;
}

static int on_option(void *ctx, int val, const char *arg)
{
    struct query *q = ctx;
    if (val >= FORECAST_OPTION)
        return forecast_option(q->forecast, val, arg);
    q->was_asked = true;
    switch (val) {
    case VAL_BY:
        return add_keys(q, arg);
    case VAL_MONTH:
    case VAL_WEEK:
    case VAL_DAY:
        return add_calendar(q, val, arg);
    case VAL_FROM:
    case VAL_TO:
        return add_moment(q, val, arg);
    case VAL_CSV:
        q->csv = true;
        return CLI_OK;
    case VAL_REPORT:
        q->weekly_report = true;
        return CLI_OK;
    case VAL_HTML:
        set_text(&q->html, arg);
        return CLI_OK;
    case VAL_MAIL:
        set_text(&q->mail, arg);
        return CLI_OK;
    case VAL_POST:
        return take_url(q, arg);
    case VAL_TEAM:
        set_text(&q->team, arg);
        return CLI_OK;
    default:
        cli_add_parameter(&q->path, val == VAL_USER ? "user" : "pool", arg);
        return CLI_OK;
    }
}

/* ---- the reply ---- */

static int print_past(struct query *q, bool as_json)
{
    char iso[TIME_ISO_MAX];
    if (q->by.len == 0)
        buf_adds(&q->by, "job");
    cli_add_parameter(&q->path, "by", buf_str(&q->by));
    if (q->team)
        cli_add_parameter(&q->path, "team", q->team);
    if (wall_is_set(q->from))
        cli_add_parameter(&q->path, "from", (time_format_iso(q->from, iso), iso));
    if (wall_is_set(q->to))
        cli_add_parameter(&q->path, "to", (time_format_iso(q->to, iso), iso));
    json_t *v = cli_get(buf_str(&q->path));
    if (v && as_json)
        cli_print_json(v);
    else if (v && q->csv)
        cost_print_csv(v, buf_str(&q->by));
    else if (v)
        cost_print_table(v, buf_str(&q->by));
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static bool is_a_week(const struct query *q)
{
    return !q->has_period ||
           (q->to.ms - q->from.ms == 7 * DAY_MS && (q->from.ms / DAY_MS + 3) % 7 == 0);
}

/* For the week of --week, or the last completed one. */
static int print_report(const struct query *q, bool as_json)
{
    bool others = q->by.len > 0 || q->csv || strchr(buf_str(&q->path), '?') || !is_a_week(q) ||
                  (!q->has_period && (wall_is_set(q->from) || wall_is_set(q->to)));
    if (others) {
        cli_error("--weekly-report takes --team, --week DATE, --html, --mail, --post and --json, "
                  "and nothing else");
        return CLI_USAGE;
    }
    return report_run(&(struct report_options){.team = q->team,
        .from = q->has_period ? q->from : report_last_week(clock_wall(&clock_system)),
        .html = q->html,
        .mail = q->mail,
        .post = q->post,
        .json = as_json});
}

static int answer(struct query *q, const struct cli_args *a)
{
    bool forecast = a->n_rest > 0 && str_eq(a->rest[0], "forecast"), is_past = q->was_asked;
    if (forecast && a->n_rest > 1) {
        cli_error(
            "unexpected word \"%s\": belay cost forecast reads no script; options describe the "
            "job, such as --work 48h --cpus 4 --gpus 1 --pools FILE (belay cost --help lists "
            "them)",
            a->rest[1]);
        return CLI_USAGE;
    }
    if (a->n_rest > 0 && !forecast) {
        cli_error("unexpected word \"%s\": belay cost shows what was spent, belay cost forecast "
                  "estimates what a job will cost",
            a->rest[0]);
        return CLI_USAGE;
    }
    if (forecast != forecast_was_asked(q->forecast) || (forecast && is_past)) {
        cli_error("%s",
            forecast ? is_past
                           ? "--by, --user, --team, --pool, --month, --week, --day, --from, --to "
                             "and --csv select past costs; belay cost forecast takes a job"
                           : "expected a job and pools: belay cost forecast --work 48h --pools FILE"
                     : "these options belong to belay cost forecast");
        return CLI_USAGE;
    }
    if ((q->html || q->mail || q->post) && !q->weekly_report) {
        cli_error("--html, --mail and --post need --weekly-report");
        return CLI_USAGE;
    }
    return forecast           ? forecast_run(q->forecast, a->json)
           : q->weekly_report ? print_report(q, a->json)
                              : print_past(q, a->json);
}

static int run(int argc, const char **argv)
{
    struct query q = {.from = WALL_NONE, .to = WALL_NONE, .forecast = forecast_create()};
    struct cli_args a;
    buf_adds(&q.path, "/api/v1/cost");
    int rc = cli_parse(&verb_cost, argc, argv, false, on_option, &q, &a);
    if (rc == 0 && q.csv)
        fold_end(&a.fold);
    if (rc == 0)
        rc = answer(&q, &a);
    cli_args_deinit(&a);
    forecast_destroy(q.forecast);
    buf_deinit(&q.by);
    free(q.team);
    free(q.html);
    free(q.mail);
    free(q.post);
    buf_deinit(&q.path);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"by", 0, POPT_ARG_STRING, NULL, VAL_BY,
        "one line for each value of these (default job); several are separated by commas: "
        "team,month",
        "job|user|team|project|pool|type|market|kind|day|week|month|label:NAME"},
    {"month", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, VAL_MONTH,
        "also split by month; with a month, only that one (UTC)", "2026-11"},
    {"week", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, VAL_WEEK,
        "also split by week; with a day, only its week", "2026-11-22"},
    {"day", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, VAL_DAY,
        "also split by day; with a day, only that one", "2026-11-22"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "only this user's jobs", "NAME"},
    {"team", 0, POPT_ARG_STRING, NULL, VAL_TEAM, "only costs charged to this team; not by job",
        "NAME"},
    {"pool", 0, POPT_ARG_STRING, NULL, VAL_POOL, "only costs in this pool; not by job", "NAME"},
    {"csv", 0, POPT_ARG_NONE, NULL, VAL_CSV, "print CSV, for a spreadsheet", NULL},
    {"weekly-report", 0, POPT_ARG_NONE, NULL, VAL_REPORT,
        "report on the last week, or on --week DATE, for a team (--team) or for all", NULL},
    {"html", 0, POPT_ARG_STRING, NULL, VAL_HTML,
        "with --weekly-report: also write a page, self-contained in one file", "FILE"},
    {"mail", 0, POPT_ARG_STRING, NULL, VAL_MAIL,
        "with --weekly-report: have belayd mail the report, as text and page (administrators)",
        "ADDRESS"},
    {"post", 0, POPT_ARG_STRING, NULL, VAL_POST,
        "with --weekly-report: have belayd post the report to the URL, or to the one in FILE "
        "(administrators)",
        "URL|@FILE"},
    {"from", 0, POPT_ARG_STRING, NULL, VAL_FROM,
        "only costs from this moment on (2026-08-01, or 2026-08-01T08:00:00Z)", "TIME"},
    {"to", 0, POPT_ARG_STRING, NULL, VAL_TO, "only costs before this moment", "TIME"},
    {"work", 'w', POPT_ARG_STRING, NULL, FORECAST_WORK,
        "forecast: how long the job runs without interruptions", "DURATION"},
    {"time", 0, POPT_ARG_STRING, NULL, FORECAST_TIME,
        "forecast: the job's time limit, as for submit (a bare number is minutes): without --work, "
        "how long it runs",
        "LIMIT"},
    {"pools", 'p', POPT_ARG_STRING, NULL, FORECAST_POOLS,
        "forecast: the pools that the job may run in: a file of pools, or belayd's configuration",
        "FILE"},
    {"trace", 't', POPT_ARG_STRING, NULL, FORECAST_TRACE,
        "forecast: availability and prices of spot offers, as belay simulate takes them; "
        "repeatable",
        "FILE"},
    {"finish-by", 0, POPT_ARG_STRING, NULL, FORECAST_FINISH_BY,
        "forecast: the deadline, from now (60h) or a moment, as for belay submit", "TIME"},
    {"cpus", 'c', POPT_ARG_STRING, NULL, FORECAST_CPUS, "forecast: CPUs on each node (default 1)",
        "N"},
    {"gpus", 'G', POPT_ARG_STRING, NULL, FORECAST_GPUS, "forecast: GPUs on each node", "N"},
    {"memory", 'm', POPT_ARG_STRING, NULL, FORECAST_MEMORY, "forecast: memory on each node",
        "SIZE"},
    {"nodes", 'N', POPT_ARG_STRING, NULL, FORECAST_NODES,
        "forecast: the number of nodes (default 1)", "N"},
    {"input", 'i', POPT_ARG_STRING, NULL, FORECAST_INPUT,
        "forecast: data that the job reads at each start, as for submit: "
        "s3://bucket/prefix,size=140G,place=aws/us-east-1",
        "URI,size=SIZE"},
    {"market", 0, POPT_ARG_STRING, NULL, FORECAST_MARKET,
        "forecast: the machines to use (default any)", "any|spot|on-demand"},
    {"boot", 0, POPT_ARG_STRING, NULL, FORECAST_BOOT,
        "forecast: boot time of a machine (default 2m)", "DURATION"},
    {"restore", 0, POPT_ARG_STRING, NULL, FORECAST_RESTORE,
        "forecast: restore time of a checkpoint (default 30s)", "DURATION"},
    {"save", 0, POPT_ARG_STRING, NULL, FORECAST_SAVE,
        "forecast: pause of the program at each save (default 15s)", "DURATION"},
    {"no-checkpoints", 0, POPT_ARG_NONE, NULL, FORECAST_NO_CHECKPOINTS,
        "forecast: the job cannot be saved, and starts from the beginning", NULL},
    {"notice", 0, POPT_ARG_STRING, NULL, FORECAST_NOTICE,
        "forecast: notice before a spot machine is reclaimed (default: the provider's)",
        "DURATION"},
    {"starts", 0, POPT_ARG_STRING, NULL, FORECAST_STARTS,
        "forecast: number of starting points in the traces (default 50)", "N"},
    {"limit", 0, POPT_ARG_STRING, NULL, FORECAST_LIMIT,
        "forecast: at most N lines of offers, or with --json offers, the best first, 1 to 1000 "
        "(default 20, with --json 1000)",
        "N"},
    POPT_TABLEEND,
};

const struct verb verb_cost = {"cost", "[forecast] [OPTION...]",
    "show what was spent, or forecast what a job will cost", run, options, false, .folds = true,
    .examples = "belay cost --by team,month\n"
                "belay cost forecast -G 8 -t 24h\n"};
