/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reports/forecast.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/flags/begin.h"
#include "cli/flags/directives.h"
#include "replay/history.h"
#include "replay/outlook.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TRACES_MAX 256 /* arguments of --trace */
#define MINUTE_MS 60000
#define LIMIT_MAX 1000 /* of --limit; the default of --json */
#define LIMIT_USUAL 20
#define SHOWN_MIN 0.01 /* a remedy that saves less of the cost is not printed */

struct forecast {
    struct outlook_options o;
    struct config *config;
    struct traces traces;
    char *pools, *input;
    char *trace_words[TRACES_MAX];
    size_t n_trace_words;
    int64_t work_ms, time_limit_ms; /* 0: not given */
    int32_t limit;                  /* 0: not given */
    bool was_asked;
};

struct forecast *forecast_create(void)
{
    struct forecast *f = mem_alloc(sizeof *f);
    f->o = (struct outlook_options){.starts = OUTLOOK_STARTS,
        .job = {.need.cpus = 1,
            .nodes = 1,
            .save_ms = JOBLOG_UNKNOWN,
            .ckpt_bytes = JOBLOG_UNKNOWN},
        .study = {.boot_ms = SECONDS_MS(120),
            .restore_ms = SECONDS_MS(30),
            .save_ms = SECONDS_MS(15),
            .notice_ms = STUDY_BY_PROVIDER,
            .seed = 1}};
    return f;
}

void forecast_destroy(struct forecast *f)
{
    if (!f)
        return;
    study_free_pools(f->config);
    market_deinit(&f->traces);
    for (size_t i = 0; i < f->n_trace_words; i++)
        free(f->trace_words[i]);
    free(f->pools);
    free(f->input);
    free(f);
}

bool forecast_was_asked(const struct forecast *f)
{
    return f->was_asked;
}

/* ---- options ---- */

static int usage(const char *option, const struct err *e)
{
    cli_error("--%s: %s", option, e->text);
    return CLI_USAGE;
}

/* bare_minutes: a number without unit is minutes, as for a job's --time; else seconds */
static int read_time(const char *option, const char *arg, bool bare_minutes, int64_t *ret_ms)
{
    struct err e;
    return time_parse_duration(arg, bare_minutes, ret_ms, &e) == 0 ? CLI_OK : usage(option, &e);
}

static int read_duration(const char *option, const char *arg, int64_t *ret_ms)
{
    return read_time(option, arg, false, ret_ms);
}

static int read_count(const char *option, const char *arg, int64_t min, int64_t max, int32_t *ret_n)
{
    struct err e;
    int64_t n;
    if (str_to_i64(arg, min, max, "number", &n, &e) != 0)
        return usage(option, &e);
    *ret_n = (int32_t)n;
    return CLI_OK;
}

/* A time as for submit --finish-by, where "+90" is 90 minutes, or "60h". */
static int read_finish_by(const char *arg, int64_t *ret_within_ms)
{
    struct wall at, now = clock_wall(&clock_system);
    struct err e;
    bool has_unit = *arg && isalpha((unsigned char)arg[strlen(arg) - 1]);
    if (*arg == '+') {
        int rc = read_time("finish-by", arg + 1, true, ret_within_ms);
        if (rc == CLI_OK && *ret_within_ms == 0) {
            cli_error("--finish-by: expected at least one second, found \"%s\"", arg);
            rc = CLI_USAGE;
        }
        return rc;
    }
    if (has_unit && time_parse_duration(arg, false, ret_within_ms, NULL) == 0 && *ret_within_ms > 0)
        return CLI_OK;
    if (begin_parse_finish(arg, now, &at, &e) != 0)
        return usage("finish-by", &e);
    *ret_within_ms = at.ms > now.ms ? at.ms - now.ms : 1;
    return CLI_OK;
}

static int read_memory(const char *arg, int64_t *ret_mib)
{
    struct err e;
    return str_to_mib(arg, ret_mib, &e) == 0 ? CLI_OK : usage("memory", &e);
}

static int read_market(const char *arg, enum market_wish *ret_wish)
{
    for (int i = 0; i <= WISH_ON_DEMAND; i++) {
        if (str_eq(market_wish_names[i], arg)) {
            *ret_wish = (enum market_wish)i;
            return CLI_OK;
        }
    }
    cli_error("--market: expected any, spot or on-demand, found \"%s\"", arg);
    return CLI_USAGE;
}

static int add_trace(struct forecast *f, const char *arg)
{
    if (f->n_trace_words == TRACES_MAX) {
        cli_error("--trace: given more than %d times", TRACES_MAX);
        return CLI_USAGE;
    }
    f->trace_words[f->n_trace_words++] = mem_strdup(arg);
    return CLI_OK;
}

static void no_warning(void *ctx, const char *text)
{
    (void)ctx, (void)text;
}

/* As for submit, in the core's representation. */
static int read_input(struct forecast *f, const char *arg)
{
    struct err e;
    json_t *spec = json_object();
    int rc = strstr(arg, "://")
                 ? directives_apply_flag("--input", "input", arg, false, spec, no_warning, NULL, &e)
                 : err_set(&e, ERR_INVALID,
                       "--input: expected data with its size, as in s3://bucket/prefix,size=140G, "
                       "found \"%.100s\"",
                       arg);
    const json_t *data = json_object_get(spec, "input");
    if (rc == 0) {
        const char *location = json_string_value(json_object_get(data, "place"));
        free(f->input);
        f->o.job.constraints = f->input = mem_printf(
            "input=%s:%lld", location ? location : "store", (long long)cli_int(data, "bytes", 0));
    } else {
        cli_error("%s", e.text);
    }
    json_decref(spec);
    return rc == 0 ? CLI_OK : CLI_USAGE;
}

int forecast_option(struct forecast *f, int val, const char *arg)
{
    struct study_options *s = &f->o.study;
    f->was_asked = true;
    switch (val) {
    case FORECAST_POOLS:
        free(f->pools);
        f->pools = mem_strdup(arg);
        return CLI_OK;
    case FORECAST_TRACE:
        return add_trace(f, arg);
    case FORECAST_WORK:
        return read_time("work", arg, true, &f->work_ms);
    case FORECAST_TIME:
        return read_time("time", arg, true, &f->time_limit_ms);
    case FORECAST_FINISH_BY:
        return read_finish_by(arg, &f->o.within_ms);
    case FORECAST_CPUS:
        return read_count("cpus", arg, 1, 65536, &f->o.job.need.cpus);
    case FORECAST_GPUS:
        return read_count("gpus", arg, 0, 64, &f->o.job.need.gpus);
    case FORECAST_MEMORY:
        return read_memory(arg, &f->o.job.need.memory_mib);
    case FORECAST_NODES:
        return read_count("nodes", arg, 1, JOB_NODES_MAX, &f->o.job.nodes);
    case FORECAST_MARKET:
        return read_market(arg, &f->o.job.wish);
    case FORECAST_INPUT:
        return read_input(f, arg);
    case FORECAST_BOOT:
        return read_duration("boot", arg, &s->boot_ms);
    case FORECAST_RESTORE:
        return read_duration("restore", arg, &s->restore_ms);
    case FORECAST_SAVE:
        return read_duration("save", arg, &s->save_ms);
    case FORECAST_NO_CHECKPOINTS:
        s->save_ms = 0;
        return CLI_OK;
    case FORECAST_NOTICE:
        return read_duration("notice", arg, &s->notice_ms);
    case FORECAST_LIMIT:
        return read_count("limit", arg, 1, LIMIT_MAX, &f->limit);
    default:
        return read_count("starts", arg, 1, OUTLOOK_STARTS_MAX, &f->o.starts);
    }
}

/* ---- output ---- */

static void cell_usd(struct table *t, int64_t uusd)
{
    char text[32];
    table_cell(t, "%s", cli_usd(uusd, text, sizeof text));
}

static void cell_time(struct table *t, int64_t ms)
{
    char text[32];
    table_cell(t, "%s", ms == INT64_MAX ? "not done" : cli_duration(ms, text, sizeof text));
}

/* Which columns say something. */
struct columns {
    bool data, spread, late;
};

static struct columns columns_of(
    const struct forecast *f, const struct outlook *list, size_t n, bool is_feasible)
{
    struct columns c = {.late = f->o.within_ms > 0 && is_feasible};
    for (size_t i = 0; i < n; i++) {
        c.data = c.data || list[i].data_uusd > 0;
        c.spread = c.spread || list[i].starts > 1;
    }
    return c;
}

/* The same machine elsewhere, with the same result. */
static bool is_alike(const struct outlook *a, const struct outlook *b)
{
    return str_eq(a->offer.pool, b->offer.pool) && str_eq(a->offer.type, b->offer.type) &&
           a->offer.market == b->offer.market && a->starts == b->starts && a->late == b->late &&
           a->mean_uusd == b->mean_uusd && a->median_uusd == b->median_uusd &&
           a->p95_uusd == b->p95_uusd && a->data_uusd == b->data_uusd &&
           a->median_ms == b->median_ms && a->p95_ms == b->p95_ms && !(a->reclaims < b->reclaims) &&
           !(a->reclaims > b->reclaims);
}

/* Number of offers from `first` on that share its row. */
static size_t alike_from(const struct outlook *list, size_t n, size_t first)
{
    size_t k = 1;
    while (first > 0 && first + k < n && is_alike(&list[first], &list[first + k]))
        k++;
    return k;
}

static void print_row(
    struct table *t, const struct columns *c, const struct outlook *l, bool is_all, size_t alike)
{
    table_row(t);
    if (is_all)
        table_cell(t, "all, as belay chooses");
    else if (alike == 1)
        table_cell(t, "%s/%s/%s %s", l->offer.pool, l->offer.zone, l->offer.type,
            market_names[l->offer.market]);
    else
        table_cell(t, "%s/%s/%s %s (and %zu more zone%s)", l->offer.pool, l->offer.zone,
            l->offer.type, market_names[l->offer.market], alike - 1, alike == 2 ? "" : "s");
    cell_usd(t, l->mean_uusd);
    if (c->data)
        cell_usd(t, l->data_uusd);
    if (c->spread) {
        cell_usd(t, l->median_uusd);
        cell_usd(t, l->p95_uusd);
    }
    cell_time(t, l->median_ms);
    if (c->spread)
        cell_time(t, l->p95_ms);
    if (c->late && c->spread)
        table_cell(t, "%.1f %%", 100.0 * l->late / l->starts);
    else if (c->late)
        table_cell(t, l->late > 0 ? "yes" : "no");
    table_cell(t, "%.1f", l->reclaims);
}

/* At most `rows` below the first; returns the number of offers shown, with that. */
static size_t print_table(
    const struct forecast *f, const struct outlook *list, size_t n, size_t rows, bool is_feasible)
{
    const struct columns c = columns_of(f, list, n, is_feasible);
    struct table *t = table_create();
    table_column(t, "ON", false);
    table_column(t, "COST", true);
    if (c.data)
        table_column(t, "DATA", true);
    if (c.spread) {
        table_column(t, "MEDIAN", true);
        table_column(t, "95 OF 100", true);
    }
    table_column(t, "DONE AFTER", true);
    if (c.spread)
        table_column(t, "95 OF 100", true);
    if (c.late)
        table_column(t, "LATE", true);
    table_column(t, "RECLAIMS", true);
    size_t shown = 0;
    for (size_t row = 0, alike; shown < n && row <= rows; row++, shown += alike) {
        alike = alike_from(list, n, shown);
        print_row(t, &c, &list[shown], row == 0, alike);
    }
    table_print(t);
    return shown;
}

static void print_infeasible(const struct forecast *f, int64_t by_ms)
{
    char by[32], takes[32], within[32];
    printf("infeasible by %s: the fastest run takes %s, and the deadline is %s away\n\n",
        cli_duration(by_ms, by, sizeof by),
        cli_duration(f->o.within_ms + by_ms, takes, sizeof takes),
        cli_duration(f->o.within_ms, within, sizeof within));
}

/* A time limit somewhat above the work: in full hours, or else tens of minutes; 0: none before the
 * deadline. */
static int64_t tighter_limit_ms(const struct forecast *f)
{
    static const int64_t rounds_ms[] = {60 * MINUTE_MS, 10 * MINUTE_MS};
    const int64_t least_ms = f->o.job.work_ms + f->o.job.work_ms / 20;
    for (size_t i = 0; i < sizeof rounds_ms / sizeof rounds_ms[0]; i++) {
        int64_t ms = (least_ms + rounds_ms[i] - 1) / rounds_ms[i] * rounds_ms[i];
        if (ms < f->o.within_ms && (f->time_limit_ms == 0 || ms < f->time_limit_ms))
            return ms;
    }
    return 0;
}

/* The worst case that belayd reckons with, and a time limit with which the job would cost less: as
 * simulated. */
static void print_margin(const struct forecast *f, const struct outlook *all)
{
    const struct outlook_margin g = outlook_margin_of(&f->o);
    char work[32], worst[32], cost[32], instead[32];
    struct outlook_options o = f->o;
    struct outlook tighter;
    struct err e;
    if (g.worst_ms <= f->o.job.work_ms)
        return;
    printf("\nUntil the job reports progress, its %s of work are reckoned as up to %s",
        cli_duration(f->o.job.work_ms, work, sizeof work),
        cli_duration(g.worst_ms, worst, sizeof worst));
    if (g.is_limited)
        printf(" (--time)");
    else
        printf(" (work_margin %d %%)", (int)g.margin_pct);
    o.job.time_limit_ms = tighter_limit_ms(f);
    const bool is_hours = o.job.time_limit_ms % (60 * MINUTE_MS) == 0;
    if (o.job.time_limit_ms > 0 && outlook_run_all(&o, &tighter, &e) == 0 &&
        tighter.late <= all->late &&
        (double)tighter.mean_uusd < (1 - SHOWN_MIN) * (double)all->mean_uusd)
        printf(";\nwith --time %lld%s, after which it is ended, it would cost %s instead of %s",
            (long long)(o.job.time_limit_ms / (is_hours ? 60 * MINUTE_MS : MINUTE_MS)),
            is_hours ? "h" : "m", cli_usd(tighter.mean_uusd, cost, sizeof cost),
            cli_usd(all->mean_uusd, instead, sizeof instead));
    puts(".");
}

static void print(const struct forecast *f, const struct outlook *list, size_t n)
{
    const int64_t infeasible_ms = outlook_infeasible_ms(list, n, &f->o);
    size_t without = 0;
    bool prices;
    for (size_t i = 1; i < n; i++)
        without += list[i].offer.market == MARKET_SPOT &&
                   !market_find(&f->traces, &list[i].offer, &prices);
    if (infeasible_ms > 0)
        print_infeasible(f, infeasible_ms);
    const size_t shown = print_table(
        f, list, n, (size_t)(f->limit > 0 ? f->limit : LIMIT_USUAL), infeasible_ms == 0);
    if (shown < n)
        printf("\n%zu more offer%s not shown (--limit).\n", n - shown,
            n - shown == 1 ? " is" : "s are");
    if (without > 0)
        printf("\n%zu spot offers have no trace: they are always available and never reclaimed.\n",
            without);
    if (f->o.within_ms > 0 && f->o.job.wish == WISH_ANY && infeasible_ms == 0)
        print_margin(f, &list[0]);
}

static int load(struct forecast *f)
{
    struct err e;
    f->o.job.work_ms = f->work_ms > 0 ? f->work_ms : f->time_limit_ms;
    f->o.job.time_limit_ms = f->time_limit_ms;
    if (!f->pools || f->o.job.work_ms <= 0 || f->o.job.work_ms > OUTLOOK_WORK_MAX_MS) {
        cli_error(
            "expected a job and pools: --work or --time, how long it runs (at most 100d), and "
            "--pools FILE, what it may run on");
        return CLI_USAGE;
    }
    if (f->time_limit_ms > 0 && f->work_ms > f->time_limit_ms) {
        cli_error("--time is less than --work: the job would be ended before it is done");
        return CLI_USAGE;
    }
    if (study_load_pools(f->pools, &f->config, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    for (size_t i = 0; i < f->n_trace_words; i++) {
        const char *word = f->trace_words[i];
        int rc = history_is_database(word) ? history_read_traces(word, WALL_NONE, &f->traces, &e)
                                           : market_read(&f->traces, word, &e);
        if (rc != 0)
            return usage("trace", &e);
    }
    return CLI_OK;
}

int forecast_run(struct forecast *f, bool as_json)
{
    struct outlook *list = NULL;
    size_t n = 0;
    struct err e;
    int rc = load(f);
    if (rc != CLI_OK)
        return rc;
    f->o.study.file = f->pools;
    f->o.study.config = f->config;
    f->o.study.traces = &f->traces;
    if (outlook_run(&f->o, &list, &n, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    if (as_json) {
        const size_t most = 1 + (size_t)(f->limit > 0 ? f->limit : LIMIT_MAX);
        json_t *v = outlook_json(list, n, n < most ? n : most, &f->o);
        cli_print_json(v);
        json_decref(v);
    } else {
        print(f, list, n);
    }
    free(list);
    return CLI_OK;
}
