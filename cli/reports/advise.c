/* SPDX-License-Identifier: Apache-2.0
 *
 * belay advise: resources that are held and not used (advise_jobs.c), unusual spending
 * (advise_anomalies.c). belay advise reserve: how many GPUs to reserve, from the work of past
 * weeks, and its trend. The load is the busy part of what jobs held (of all hours together: it is
 * not known hour by hour), or what they held; not what they waited for.
 */
#include "cli/reports/advise.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/reports/node_use.h"
#include "money/reserve.h"
#include "money/trend.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_MS 3600000LL
#define CURVE_POINTS 20
#define DAYS_DEFAULT 2
#define DAYS_MAX 28
#define PARTIAL_HOURS 2 /* at the ends of the time, which are left out */

enum {
    VAL_WEEKS = 1,
    VAL_POOL,
    VAL_RESERVED,
    VAL_ON_DEMAND,
    VAL_USER,
    VAL_RECLAIM,
    VAL_FORGOTTEN,
    VAL_FOR,
    VAL_VOLUMES,
    VAL_BY,
    VAL_ANOMALIES,
    VAL_INSTANCES,
    VAL_DAYS
};

struct request {
    int64_t weeks;
    char *pool;
    char *user, *reclaim; /* may be NULL */
    bool forgotten;
    const char *volumes;   /* own, all or none; NULL if not given */
    const char *instances; /* all or none; NULL if not given */
    int64_t for_ms;        /* -1 if not given */
    bool anomalies;
    int64_t days;                          /* 0 if not given */
    bool reserves;                         /* an option of reserve was given */
    int64_t reserved_uusd, on_demand_uusd; /* per GPU and hour; 0 if not given */
    bool by_held;                          /* --by held */
    struct use use;
    double *held, *work;           /* work: the busy part of held */
    struct reserve_load held_load; /* what jobs held, */
    struct reserve_load load;      /* and what the size is judged by: that, or its busy part */
};

static int read_days(const char *arg, int64_t *ret_days)
{
    struct err e;
    if (str_to_i64(arg, 1, DAYS_MAX, "--days", ret_days, &e) == 0)
        return CLI_OK;
    cli_error("%s", e.text);
    return CLI_USAGE;
}

/* --volumes, --instances */
static int read_whose(struct request *q, bool of_volumes, const char *arg)
{
    static const char *const words[] = {"all", "none", "own"};
    for (int i = 0; i < (of_volumes ? 3 : 2); i++)
        if (str_eq(arg, words[i])) {
            *(of_volumes ? &q->volumes : &q->instances) = words[i];
            return CLI_OK;
        }
    cli_error("%s, found \"%.64s\"",
        of_volumes ? "--volumes: expected own, all or none" : "--instances: expected all or none",
        arg);
    return CLI_USAGE;
}

static int on_option(void *ctx, int val, const char *arg)
{
    struct request *q = ctx;
    struct err e;
    if (val == VAL_USER || val == VAL_RECLAIM) {
        char **to = val == VAL_USER ? &q->user : &q->reclaim;
        free(*to);
        *to = mem_strdup(arg);
        return CLI_OK;
    }
    if (val == VAL_FORGOTTEN) {
        q->forgotten = true;
        return CLI_OK;
    }
    if (val == VAL_VOLUMES || val == VAL_INSTANCES)
        return read_whose(q, val == VAL_VOLUMES, arg);
    if (val == VAL_FOR) {
        if (time_parse_duration(arg, false, &q->for_ms, &e) == 0)
            return CLI_OK;
        cli_error("--for: %s", e.text);
        return CLI_USAGE;
    }
    if (val == VAL_ANOMALIES) {
        q->anomalies = true;
        return CLI_OK;
    }
    if (val == VAL_DAYS)
        return read_days(arg, &q->days);
    q->reserves = true;
    if (val == VAL_BY) {
        q->by_held = str_eq(arg, "held");
        if (q->by_held || str_eq(arg, "busy"))
            return CLI_OK;
        cli_error("--by: expected busy or held, found \"%.64s\"", arg);
        return CLI_USAGE;
    }
    if (val == VAL_WEEKS)
        return use_read_weeks(arg, &q->weeks);
    if (val == VAL_POOL) {
        free(q->pool);
        q->pool = mem_strdup(arg);
    } else if (str_to_uusd(arg, val == VAL_RESERVED ? &q->reserved_uusd : &q->on_demand_uusd, &e) !=
               0) {
        cli_error("--%s: %s", val == VAL_RESERVED ? "reserved" : "on-demand", e.text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int64_t of_step(const struct request *q, size_t i, const char *key)
{
    return cli_int(
        json_object_get(json_array_get(json_object_get(q->use.reply, "steps"), i), q->use.unit),
        key, 0);
}

static bool is_by_busy(const struct request *q)
{
    return !q->by_held && use_busy(&q->use) >= 0;
}

/* Starts with the first full hour that had nodes, and leaves out the last hour, which may be
 * partial. */
static void fill_load(struct request *q)
{
    size_t n = json_array_size(json_object_get(q->use.reply, "steps")), first = 0;
    while (first < n && of_step(q, first, "there_ms") == 0)
        first++;
    if (first > 0 && first < n)
        first++;
    q->held = mem_array(n + 1, sizeof *q->held);
    q->work = mem_array(n + 1, sizeof *q->work);
    q->load = (struct reserve_load){.held = q->work, .step_h = 1};
    for (size_t i = first; i + 1 < n; i++) {
        q->held[q->load.n] = (double)of_step(q, i, "held_ms") / STEP_MS;
        q->work[q->load.n] = q->held[q->load.n] * (is_by_busy(q) ? use_busy(&q->use) : 1);
        q->load.n++;
    }
    q->load.reserved_uusd_h = (double)q->reserved_uusd;
    q->load.on_demand_uusd_h =
        q->on_demand_uusd > 0 ? (double)q->on_demand_uusd : q->use.on_demand_uusd_h;
    q->held_load = q->load;
    q->held_load.held = q->held;
}

/* The base of a demand that is `times` the load. */
static int64_t size_times(const struct request *q, double times)
{
    double *scaled = mem_array(q->load.n + 1, sizeof *scaled);
    struct reserve_load l = q->load;
    for (size_t i = 0; i < l.n; i++)
        scaled[i] = q->load.held[i] * times;
    l.held = scaled;
    int64_t size = reserve_size(&l);
    free(scaled);
    return size;
}

/* Null: too little history. */
static json_t *trend_json(const struct request *q)
{
    double weeks[TREND_WEEKS_MAX], mean = reserve_mean(&q->load);
    size_t n = trend_weeks(q->load.held, q->load.n, PARTIAL_HOURS, weeks);
    struct trend t;
    if (!trend_of(weeks, n, &t) || mean <= 0)
        return json_null();
    return json_pack("{s:I,s:f,s:f,s:f,s:f,s:I,s:I,s:I}", "weeks", (json_int_t)n, "per_week",
        t.slope, "next", t.next, "low", t.low, "high", t.high, "size",
        (json_int_t)size_times(q, t.next / mean), "size_low",
        (json_int_t)size_times(q, t.low / mean), "size_high",
        (json_int_t)size_times(q, t.high / mean));
}

static json_t *point_json(const struct request *q, int64_t size)
{
    struct reserve_point p = reserve_at(&q->load, size);
    bool priced = q->load.reserved_uusd_h > 0 && q->load.on_demand_uusd_h > 0;
    json_t *o = json_pack("{s:I,s:f}", "size", (json_int_t)size, "use", p.use);
    json_object_set_new(
        o, "reserved_uusd", priced ? json_integer(llround(p.reserved_uusd)) : json_null());
    json_object_set_new(
        o, "beyond_uusd", priced ? json_integer(llround(p.beyond_uusd)) : json_null());
    json_object_set_new(o, "cost_uusd",
        priced ? json_integer(llround(p.reserved_uusd) + llround(p.beyond_uusd)) : json_null());
    return o;
}

/* The sizes to show: evenly up to the peak, and the advised ones. */
static json_t *curve_json(const struct request *q, int64_t size, int64_t cheapest)
{
    json_t *a = json_array();
    int64_t peak = reserve_peak(&q->load), step = (peak + CURVE_POINTS - 1) / CURVE_POINTS;
    for (int64_t s = 0; s <= peak; s++)
        if (s == peak || s == size || s == cheapest || s % (step > 0 ? step : 1) == 0)
            json_array_append_new(a, point_json(q, s));
    return a;
}

static json_t *result_json(const struct request *q)
{
    int64_t size = reserve_size(&q->load), cheapest = reserve_cheapest(&q->load);
    json_t *o = json_pack("{s:s,s:I,s:I,s:s,s:f,s:I}", "unit", q->use.unit, "weeks",
        (json_int_t)q->weeks, "hours", (json_int_t)q->load.n, "pools", q->use.pools, "mean",
        reserve_mean(&q->held_load), "peak", (json_int_t)reserve_peak(&q->held_load));
    json_object_set_new(o, "by", json_string(is_by_busy(q) ? "busy" : "held"));
    json_object_set_new(o, "size_by_held", json_integer(reserve_size(&q->held_load)));
    json_object_set_new(o, "trend", trend_json(q));
    json_object_set_new(o, "reserved_uusd_per_hour",
        q->reserved_uusd > 0 ? json_integer(q->reserved_uusd) : json_null());
    json_object_set_new(o, "on_demand_uusd_per_hour",
        q->load.on_demand_uusd_h > 0 ? json_integer(llround(q->load.on_demand_uusd_h))
                                     : json_null());
    json_object_set_new(o, "size", json_integer((json_int_t)size));
    json_object_set_new(o, "use", json_real(reserve_at(&q->load, size).use));
    json_object_set_new(
        o, "cheapest", cheapest >= 0 ? json_integer((json_int_t)cheapest) : json_null());
    json_object_set_new(o, "sizes", curve_json(q, size, cheapest));
    double busy = use_busy(&q->use);
    json_object_set_new(o, "gpu_busy", busy < 0 ? json_null() : json_real(busy));
    json_object_set_new(
        o, "mean_busy", busy < 0 ? json_null() : json_real(reserve_mean(&q->held_load) * busy));
    return o;
}

static void cell_usd(struct table *t, const json_t *point, const char *key)
{
    char text[32];
    if (json_is_integer(json_object_get(point, key)))
        table_cell(t, "%s", cli_usd(cli_int(point, key, 0), text, sizeof text));
    else
        table_cell(t, "-");
}

static void print_curve(const json_t *result)
{
    struct table *t = table_create();
    int64_t size = cli_int(result, "size", 0), cheapest = cli_int(result, "cheapest", -1);
    size_t i;
    json_t *p;
    table_column(t, "RESERVED", true);
    table_column(t, "USE", true);
    table_column(t, "RESERVED COST", true);
    table_column(t, "ON-DEMAND BEYOND", true);
    table_column(t, "TOGETHER", true);
    table_column(t, "", false);
    json_array_foreach(json_object_get(result, "sizes"), i, p)
    {
        int64_t at = cli_int(p, "size", 0);
        table_row(t);
        table_cell(t, "%lld", (long long)at);
        if (at > 0)
            table_cell(t, "%.1f %%", 100 * json_real_value(json_object_get(p, "use")));
        else
            table_cell(t, "-");
        cell_usd(t, p, "reserved_uusd");
        cell_usd(t, p, "beyond_uusd");
        cell_usd(t, p, "cost_uusd");
        table_cell(t, "%s%s%s", at == size && size > 0 ? "by use" : "",
            at == size && size > 0 && at == cheapest ? ", " : "", at == cheapest ? "cheapest" : "");
    }
    table_print(t);
}

static double real_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void print_trend(const json_t *t, const char *unit)
{
    if (!json_is_object(t)) {
        printf("Next month: too little history for a forecast, which takes %d weeks (--weeks).\n",
            TREND_WEEKS_MIN);
        return;
    }
    printf("Next month: the demand of %lld weeks changes by %+.2f %s a week. It is expected to be "
           "%.1f on average (%.1f to %.1f): a base of %lld (%lld to %lld).\n",
        (long long)cli_int(t, "weeks", 0), real_of(t, "per_week"), unit, real_of(t, "next"),
        real_of(t, "low"), real_of(t, "high"), (long long)cli_int(t, "size", 0),
        (long long)cli_int(t, "size_low", 0), (long long)cli_int(t, "size_high", 0));
}

static void print_result(const struct request *q, const json_t *result)
{
    int64_t size = cli_int(result, "size", 0);
    double use = json_real_value(json_object_get(result, "use"));
    const char *unit = q->use.unit[0] == 'g' ? "GPUs" : "cpus";
    char text[32];
    printf(
        "In the last %lld weeks there were nodes in %zu hours. In these hours jobs held %.1f %s on "
        "average, and at most %lld in one hour (pools: %s).\n",
        (long long)q->weeks, q->load.n, reserve_mean(&q->held_load), unit,
        (long long)reserve_peak(&q->held_load), q->use.pools);
    if (use_busy(&q->use) >= 0)
        printf("GPUs that jobs held were busy %.1f %% of the time: the work of %.1f GPUs (belay "
               "advise names the jobs). The sizes are by %s time.\n",
            100 * use_busy(&q->use), reserve_mean(&q->held_load) * use_busy(&q->use),
            is_by_busy(q) ? "busy" : "held");
    if (size == 0)
        printf("Reserve none: a single one would have been used less than %.0f %% of the time.\n",
            100 * RESERVE_USE_MIN);
    else
        printf("Reserve %lld: %.1f %% of them would have been used on average%s.\n",
            (long long)size, 100 * use,
            use > RESERVE_USE_MAX ? "; jobs hardly ever used more" : "");
    if (is_by_busy(q) && cli_int(result, "size_by_held", 0) != size)
        printf("As long as jobs leave theirs idle, it takes %lld (--by held).\n",
            (long long)cli_int(result, "size_by_held", 0));
    print_trend(json_object_get(result, "trend"), unit);
    printf("\n");
    print_curve(result);
    if (q->load.on_demand_uusd_h > 0)
        printf("\nOn-demand price of one: %s an hour%s.",
            cli_usd(llround(q->load.on_demand_uusd_h), text, sizeof text),
            q->on_demand_uusd > 0 ? "" : ", the list price of the nodes that were there");
    else
        printf("\nThe on-demand price of these nodes is unknown: give it with --on-demand.");
    printf("%s\n",
        q->reserved_uusd > 0 ? "" : " Give the hourly price of a reserved one with --reserved.");
    printf("This counts what jobs used, not jobs that waited for capacity or were not submitted "
           "for lack of it.\nThe coming weeks may differ from the past ones.\n");
}

/* Whether all given options belong to one kind of advice. */
static bool options_fit(const struct request *q, bool reserve)
{
    bool forgotten = q->forgotten || q->for_ms >= 0 || q->volumes || q->instances;
    bool anomalies = q->anomalies || q->days > 0;
    if (reserve || anomalies)
        return !q->user && !q->reclaim && !forgotten &&
               (reserve ? !anomalies : q->anomalies && !q->reserves);
    return !q->reserves && !(q->user && q->reclaim) &&
           (!forgotten || (!q->reclaim && q->forgotten));
}

static int advise(struct request *q, const struct cli_args *a)
{
    struct err e;
    bool reserve = a->n_rest == 1 && str_eq(a->rest[0], "reserve");
    if (a->n_rest > 0 && !reserve) {
        cli_error("unknown kind of advice: belay advise lists what is held and not used, belay "
                  "advise reserve how many GPUs to reserve");
        return CLI_USAGE;
    }
    if (!options_fit(q, reserve)) {
        cli_error("these options do not go together: --user or --reclaim alone, --for, "
                  "--volumes and --instances with --forgotten, --days with --anomalies, the others "
                  "with belay advise reserve");
        return CLI_USAGE;
    }
    if (q->anomalies)
        return advise_anomalies(q->days > 0 ? q->days : DAYS_DEFAULT, a->json);
    if (q->forgotten)
        return advise_forgotten(q->user, q->for_ms, q->volumes, q->instances, a->json);
    if (!reserve)
        return q->reclaim ? advise_reclaim(q->reclaim, a->json) : advise_jobs(q->user, a->json);
    if (use_read(q->weeks, q->pool, true, STEP_MS, &q->use, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_FAILED;
    }
    fill_load(q);
    json_t *result = result_json(q);
    if (a->json)
        cli_print_json(result);
    else
        print_result(q, result);
    json_decref(result);
    return CLI_OK;
}

static int run(int argc, const char **argv)
{
    struct request q = {.weeks = USE_WEEKS, .for_ms = -1};
    struct cli_args a;
    int rc = cli_parse(&verb_advise, argc, argv, false, on_option, &q, &a);
    if (rc == 0)
        rc = advise(&q, &a);
    cli_args_deinit(&a);
    use_deinit(&q.use);
    free(q.held);
    free(q.work);
    free(q.pool);
    free(q.user);
    free(q.reclaim);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "only this user's jobs", "USER"},
    {"reclaim", 0, POPT_ARG_STRING, NULL, VAL_RECLAIM,
        "save a job and hold it until it is released", "JOB"},
    {"forgotten", 0, POPT_ARG_NONE, NULL, VAL_FORGOTTEN,
        "checkpoints, held jobs, nodes and volumes left unused for a while, with their cost per "
        "day",
        NULL},
    {"for", 0, POPT_ARG_STRING, NULL, VAL_FOR,
        "forgotten: unused for this long (default: as belayd is configured, 30d)", "DURATION"},
    {"volumes", 0, POPT_ARG_STRING, NULL, VAL_VOLUMES,
        "forgotten: whose volumes: own (default), all of the account, or none", "own|all|none"},
    {"instances", 0, POPT_ARG_STRING, NULL, VAL_INSTANCES,
        "forgotten: all instances of the account without this cluster's tag, or none (default)",
        "all|none"},
    {"anomalies", 0, POPT_ARG_NONE, NULL, VAL_ANOMALIES,
        "users, teams and pools that spent far more than on the same weekday of the weeks before",
        NULL},
    {"days", 0, POPT_ARG_STRING, NULL, VAL_DAYS,
        "anomalies: today and the days before to examine, 1 to 28 (default 2)", "N"},
    {"weeks", 'w', POPT_ARG_STRING, NULL, VAL_WEEKS,
        "reserve: weeks to examine, 1 to 52 (default 4)", "N"},
    {"pool", 'p', POPT_ARG_STRING, NULL, VAL_POOL, "reserve: only this pool's nodes (default: all)",
        "POOL"},
    {"by", 0, POPT_ARG_STRING, NULL, VAL_BY,
        "reserve: what sizes the base: the busy time of GPUs (default, if measured), or all that "
        "jobs held",
        "busy|held"},
    {"reserved", 0, POPT_ARG_STRING, NULL, VAL_RESERVED,
        "reserve: the price of an hour of a reserved GPU", "USD"},
    {"on-demand", 0, POPT_ARG_STRING, NULL, VAL_ON_DEMAND,
        "reserve: the on-demand price of an hour of a GPU (default: the list price of the nodes)",
        "USD"},
    POPT_TABLEEND,
};

const struct verb verb_advise = {"advise", "[reserve] [OPTION...]",
    "list what is held and not used, and advise how many GPUs to reserve", run, options, false,
    .folds = true,
    .examples = "belay advise\n"
                "belay advise reserve\n"};
