/* SPDX-License-Identifier: Apache-2.0
 *
 * belay cost: what was spent, on what, and what it would have been on-demand; and, with the word forecast, what a job is going
 * to cost (forecast.c).
 */
#include "cli/verbs.h"

#include "base/str.h"
#include "base/time.h"
#include "cli/forecast.h"
#include <stdio.h>
#include <math.h>
#include <string.h>

enum { VAL_BY = 1, VAL_USER, VAL_FROM, VAL_TO, VAL_POOL, VAL_MONTH, VAL_CSV };

struct query {
    struct buf path;
    bool jobs_add_up, csv;
    struct forecast *forecast;
};

static void add_parameter(struct query *q, const char *name, const char *value)
{
    buf_printf(&q->path, "%c%s=", strchr(buf_str(&q->path), '?') ? '&' : '?', name);
    str_url_encode(&q->path, value, strlen(value));
}

/* 2026-11: from its first day up to that of the next. */
static int add_month(struct query *q, const char *arg)
{
    struct wall w;
    struct err e;
    char from[40], to[40];
    int year, month, end = 0;
    if (sscanf(arg, "%4d-%2d%n", &year, &month, &end) != 2 || arg[end] || end != 7 || month < 1 || month > 12) {
        cli_error("--month: expected a month as 2026-11, found \"%s\"", arg);
        return CLI_USAGE;
    }
    snprintf(from, sizeof(from), "%04d-%02d-01T00:00:00Z", year, month);
    snprintf(to, sizeof(to), "%04d-%02d-01T00:00:00Z", month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1);
    if (time_parse_iso(from, &w, &e) != 0 || time_parse_iso(to, &w, &e) != 0) {
        cli_error("--month: %s", e.text);
        return CLI_USAGE;
    }
    add_parameter(q, "from", from);
    add_parameter(q, "to", to);
    return CLI_OK;
}

static int on_option(void *ctx, int val, const char *arg)
{
    static const char *const names[] = {"by", "user", "from", "to", "pool"};
    static const char *const ways[] = {"job", "user", "team", "pool", "market", "kind", "day", "week", "month", NULL};
    struct query *q = ctx;
    struct wall w;
    struct err e;
    if (val >= FORECAST_OPTION)
        return forecast_option(q->forecast, val, arg);
    if (val == VAL_BY) {
        size_t i = 0;
        while (ways[i] && !str_eq(ways[i], arg))
            i++;
        if (!ways[i] && !(str_starts(arg, "label:") && arg[6])) {
            cli_error("--by: expected job, user, team, pool, market, kind, day, week, month or label:NAME, found \"%s\"", arg);
            return CLI_USAGE;
        }
        q->jobs_add_up = !str_eq(arg, "pool") && !str_eq(arg, "kind") && !str_eq(arg, "day") && !str_eq(arg, "market");
    } else if (val == VAL_CSV) {
        q->csv = true;
        return CLI_OK;
    } else if (val == VAL_MONTH) {
        return add_month(q, arg);
    } else if (val != VAL_USER && val != VAL_POOL && time_parse_iso(arg, &w, &e) != 0) {
        cli_error("--%s: %s", names[val - 1], e.text);
        return CLI_USAGE;
    }
    add_parameter(q, names[val - 1], arg);
    return CLI_OK;
}

/* What reclaims cost: what was lost, and bringing jobs back. */
static int64_t reclaims_uusd(const json_t *line)
{
    const json_t *spent = json_object_get(line, "spent_uusd");
    return cli_int(spent, "lost", 0) + cli_int(spent, "restore", 0);
}

static void add_more(struct table *t, int64_t reclaims, int64_t succeeded, int64_t uusd)
{
    char a[32], b[32];
    table_cell(t, "%s", cli_usd(reclaims, a, sizeof(a)));
    if (succeeded > 0)
        table_cell(t, "%s", cli_usd(uusd / succeeded, b, sizeof(b)));
    else
        table_cell(t, "-");
}

/* jobs < 0: not known. */
static void add_line(struct table *t, const char *key, int64_t jobs, int64_t uusd, int64_t on_demand,
    int64_t useful, int64_t total)
{
    char a[32], b[32], c[32];
    table_row(t);
    table_cell(t, "%s", key);
    if (jobs >= 0)
        table_cell(t, "%lld", (long long)jobs);
    else
        table_cell(t, "-");
    table_cell(t, "%s", cli_usd(uusd, a, sizeof(a)));
    table_cell(t, "%s", cli_usd(on_demand, b, sizeof(b)));
    if (on_demand > 0)
        table_cell(t, "%ld %%", lround(100.0 * (double)(on_demand - uusd) / (double)on_demand));
    else
        table_cell(t, "-");
    table_cell(t, "%s", cli_duration(total, c, sizeof(c)));
    if (total > 0)
        table_cell(t, "%.0f %%", 100.0 * (double)useful / (double)total);
    else
        table_cell(t, "-");
}

/* A job is in one line of its own, and in one of its user; in several of the others, and counts once. */
static void print_lines(const json_t *lines, bool jobs_add_up)
{
    struct table *t = table_create();
    int64_t sum[5] = {0};
    static const char *const keys[5] = {"jobs", "uusd", "on_demand_uusd", "useful_ms", "total_ms"};
    size_t i;
    json_t *l;
    bool more = json_object_get(json_array_get(lines, 0), "spent_uusd") != NULL;
    int64_t reclaims = 0, succeeded = 0;
    table_column(t, "WHAT", false);
    table_column(t, "JOBS", true);
    table_column(t, "COST", true);
    table_column(t, "ON-DEMAND", true);
    table_column(t, "SAVED", true);
    table_column(t, "TIME", true);
    table_column(t, "USEFUL", true);
    if (more) {
        table_column(t, "LOST+RESTORE", true);
        table_column(t, "A JOB DONE", true);
    }
    json_array_foreach(lines, i, l)
    {
        int64_t v[5];
        for (int k = 0; k < 5; k++)
            sum[k] += v[k] = cli_int(l, keys[k], 0);
        add_line(t, cli_text(l, "key"), v[0], v[1], v[2], v[3], v[4]);
        if (more)
            add_more(t, reclaims_uusd(l), cli_int(l, "succeeded", 0), v[1]);
        reclaims += reclaims_uusd(l);
        succeeded += cli_int(l, "succeeded", 0);
    }
    add_line(t, "total", jobs_add_up ? sum[0] : -1, sum[1], sum[2], sum[3], sum[4]);
    if (more)
        add_more(t, reclaims, succeeded, sum[1]);
    table_print(t);
}

static void print_csv_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

/* A line a row, numbers as the API has them: micro-dollars and milliseconds. */
static void print_csv(const json_t *lines)
{
    static const char *const keys[] = {"jobs", "succeeded", "uusd", "on_demand_uusd", "useful_ms", "lost_ms", "total_ms"};
    static const char *const kinds[] = {"useful", "lost", "boot", "restore", "save", "gang-wait", "idle"};
    size_t i;
    json_t *l;
    printf("key,jobs,succeeded,uusd,on_demand_uusd,useful_ms,lost_ms,total_ms");
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        printf(",%s_uusd", kinds[k]);
    putchar('\n');
    json_array_foreach(lines, i, l)
    {
        const json_t *spent = json_object_get(l, "spent_uusd");
        print_csv_text(cli_text(l, "key"));
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            if (json_object_get(l, keys[k]))
                printf(",%lld", (long long)cli_int(l, keys[k], 0));
            else
                putchar(',');
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
            if (spent)
                printf(",%lld", (long long)cli_int(spent, kinds[k], 0));
            else
                putchar(',');
        putchar('\n');
    }
}

static int print_past(const struct query *q, bool as_json)
{
    json_t *v = cli_get(buf_str(&q->path));
    if (v && as_json)
        cli_print_json(v);
    else if (v && q->csv)
        print_csv(json_object_get(v, "lines"));
    else if (v)
        print_lines(json_object_get(v, "lines"), q->jobs_add_up);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static int answer(const struct query *q, const struct cli_args *a)
{
    bool forecast = a->n_rest == 1 && str_eq(a->rest[0], "forecast"), of_past = q->csv || strchr(buf_str(&q->path), '?') != NULL;
    if (a->n_rest > 0 && !forecast) {
        cli_error("unexpected word \"%s\": belay cost says what was spent, belay cost forecast what a job is going to cost", a->rest[0]);
        return CLI_USAGE;
    }
    if (forecast != forecast_was_asked(q->forecast) || (forecast && of_past)) {
        cli_error("%s", forecast ? of_past ? "--by, --user, --pool, --month, --from, --to and --csv are of what was spent; belay cost forecast takes a job"
                                            : "which job, and where? belay cost forecast --work 48h --pools FILE"
                                 : "these are options of belay cost forecast");
        return CLI_USAGE;
    }
    return forecast ? forecast_run(q->forecast, a->json) : print_past(q, a->json);
}

static int run(int argc, const char **argv)
{
    struct query q = {.jobs_add_up = true, .forecast = forecast_create()};
    struct cli_args a;
    buf_adds(&q.path, "/api/v1/cost");
    int rc = cli_parse(&verb_cost, argc, argv, false, on_option, &q, &a);
    if (rc == 0)
        rc = answer(&q, &a);
    cli_args_deinit(&a);
    forecast_destroy(q.forecast);
    buf_deinit(&q.path);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"by", 0, POPT_ARG_STRING, NULL, VAL_BY, "one line each (default job)", "job|user|team|pool|market|kind|day|week|month|label:NAME"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "only this user's jobs", "NAME"},
    {"pool", 0, POPT_ARG_STRING, NULL, VAL_POOL, "only in this pool; not by job", "NAME"},
    {"month", 0, POPT_ARG_STRING, NULL, VAL_MONTH, "only this month (UTC)", "2026-11"},
    {"csv", 0, POPT_ARG_NONE, NULL, VAL_CSV, "a line a row, for a spreadsheet", NULL},
    {"from", 0, POPT_ARG_STRING, NULL, VAL_FROM, "what ended from this moment on (2026-08-01T00:00:00Z)",
        "TIME"},
    {"to", 0, POPT_ARG_STRING, NULL, VAL_TO, "what ended before this moment", "TIME"},
    {"work", 'w', POPT_ARG_STRING, NULL, FORECAST_WORK, "forecast: how long the job runs, undisturbed", "DURATION"},
    {"pools", 'p', POPT_ARG_STRING, NULL, FORECAST_POOLS, "forecast: what it could run on, a file of pools or a configuration of belayd's", "FILE"},
    {"trace", 't', POPT_ARG_STRING, NULL, FORECAST_TRACE, "forecast: availability and prices of spot offers, as belay simulate takes them; several", "FILE"},
    {"finish-by", 0, POPT_ARG_STRING, NULL, FORECAST_FINISH_BY, "forecast: when it has to be done, from now (60h) or a moment", "TIME"},
    {"cpus", 'c', POPT_ARG_STRING, NULL, FORECAST_CPUS, "forecast: of each of its nodes (default 1)", "N"},
    {"gpus", 'G', POPT_ARG_STRING, NULL, FORECAST_GPUS, "forecast: of each of its nodes", "N"},
    {"memory", 'm', POPT_ARG_STRING, NULL, FORECAST_MEMORY, "forecast: of each of its nodes", "SIZE"},
    {"nodes", 'N', POPT_ARG_STRING, NULL, FORECAST_NODES, "forecast: at once (default 1)", "N"},
    {"market", 0, POPT_ARG_STRING, NULL, FORECAST_MARKET, "forecast: on which machines (default any)", "any|spot|on-demand"},
    {"boot", 0, POPT_ARG_STRING, NULL, FORECAST_BOOT, "forecast: of a machine (default 2m)", "DURATION"},
    {"restore", 0, POPT_ARG_STRING, NULL, FORECAST_RESTORE, "forecast: of a checkpoint (default 30s)", "DURATION"},
    {"save", 0, POPT_ARG_STRING, NULL, FORECAST_SAVE, "forecast: for which its program waits each time (default 15s)", "DURATION"},
    {"no-checkpoints", 0, POPT_ARG_NONE, NULL, FORECAST_NO_CHECKPOINTS, "forecast: it cannot be saved, and begins again", NULL},
    {"notice", 0, POPT_ARG_STRING, NULL, FORECAST_NOTICE, "forecast: before a spot machine is taken back (default: the provider's)", "DURATION"},
    {"starts", 0, POPT_ARG_STRING, NULL, FORECAST_STARTS, "forecast: from how many moments of the traces on it is played (default 50)", "N"},
    POPT_TABLEEND,
};

const struct verb verb_cost = {
    "cost", "[forecast]", "what was spent, or what a job is going to cost (forecast)", run, options, false};
