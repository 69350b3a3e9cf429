/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reports/forecast.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/flags/begin.h"
#include "cli/flags/directives.h"
#include "replay/history.h"
#include "replay/outlook.h"
#include <stdlib.h>
#include <string.h>

#define TRACES_MAX 256 /* arguments of --trace */

struct forecast {
    struct outlook_options o;
    struct config *config;
    struct traces traces;
    char *pools, *input;
    char *trace_words[TRACES_MAX];
    size_t n_trace_words;
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

/* "60h" or "+60h", or a time as for submit --finish-by. */
static int read_finish_by(const char *arg, int64_t *ret_within_ms)
{
    struct wall at, now = clock_wall(&clock_system);
    struct err e;
    if (time_parse_duration(arg + (*arg == '+'), false, ret_within_ms, NULL) == 0 &&
        *ret_within_ms > 0)
        return CLI_OK;
    if (begin_parse(arg, now, &at, &e) != 0)
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
        return read_duration("work", arg, &f->o.job.work_ms);
    case FORECAST_TIME:
        return read_time("time", arg, true, &f->o.job.work_ms);
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

static void print(const struct forecast *f, const struct outlook *list, size_t n)
{
    static const char *const names[] = {
        "COST", "MEDIAN", "95 OF 100", "DONE AFTER", "95 OF 100", "LATE", "RECLAIMS"};
    struct table *t = table_create();
    size_t without = 0;
    bool prices, has_data = false;
    for (size_t i = 0; i < n; i++)
        has_data = has_data || list[i].data_uusd > 0;
    table_column(t, "ON", false);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        table_column(t, names[i], true);
        if (i == 0 && has_data)
            table_column(t, "DATA", true);
    }
    for (size_t i = 0; i < n; i++) {
        const struct outlook *l = &list[i];
        table_row(t);
        if (i == 0)
            table_cell(t, "all, as belay chooses");
        else
            table_cell(t, "%s/%s/%s %s", l->offer.pool, l->offer.zone, l->offer.type,
                market_names[l->offer.market]);
        cell_usd(t, l->mean_uusd);
        if (has_data)
            cell_usd(t, l->data_uusd);
        cell_usd(t, l->median_uusd);
        cell_usd(t, l->p95_uusd);
        cell_time(t, l->median_ms);
        cell_time(t, l->p95_ms);
        if (f->o.within_ms > 0)
            table_cell(t, "%.1f %%", 100.0 * l->late / l->starts);
        else
            table_cell(t, "-");
        table_cell(t, "%.1f", l->reclaims);
        without +=
            i > 0 && l->offer.market == MARKET_SPOT && !market_find(&f->traces, &l->offer, &prices);
    }
    table_print(t);
    if (without > 0)
        printf("\n%zu spot offers have no trace: they are always available and never reclaimed.\n",
            without);
}

static int load(struct forecast *f)
{
    struct err e;
    if (!f->pools || f->o.job.work_ms <= 0 || f->o.job.work_ms > OUTLOOK_WORK_MAX_MS) {
        cli_error("expected a job and pools: --work, how long it runs (at most 100d), and --pools "
                  "FILE, what it may run on");
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
        json_t *v = outlook_json(list, n, &f->o);
        cli_print_json(v);
        json_decref(v);
    } else {
        print(f, list, n);
    }
    free(list);
    return CLI_OK;
}
