/* SPDX-License-Identifier: Apache-2.0
 *
 * belay breakeven: the cost of owning GPUs, item by item, compared with renting for the same work.
 */
#include "cli/verbs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "cli/html/breakeven_page.h"
#include "cli/html/page.h"
#include "cli/reports/breakeven_print.h"
#include "cli/reports/node_use.h"
#include "money/breakeven_json.h"
#include "money/plan.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIVEN_MAX 64

enum {
    VAL_TYPE = 1,
    VAL_PRICE,
    VAL_RESERVED,
    VAL_SPOT,
    VAL_NODES,
    VAL_NODE_USD,
    VAL_YEARS,
    VAL_KW,
    VAL_PUE,
    VAL_KWH,
    VAL_STAFF,
    VAL_UTILIZATION,
    VAL_WEEKS,
    VAL_POOL,
    VAL_INTERRUPTIONS,
    VAL_MONTHS,
    VAL_CASH_FLOW,
    VAL_HTML
};

/* Options are applied after the file, which they override. */
struct request {
    struct {
        int val;
        const char *arg; /* owned */
    } given[GIVEN_MAX];
    size_t n_given;
    const char *html, *interruptions;
    char *command; /* for the page */
    bool cash_flow, measured;
    int64_t weeks; /* 0 if not given */
    const char *pool;
    struct breakeven_plan plan;
    struct breakeven_result result;
};

/* ---- the command line ---- */

static const struct {
    int val;
    const char *name;
    enum own_figure figure;
} own_options[] = {{VAL_NODES, "nodes", OWN_NODES}, {VAL_NODE_USD, "node-usd", OWN_NODE_USD},
    {VAL_YEARS, "years", OWN_YEARS}, {VAL_KW, "kw", OWN_KW}, {VAL_PUE, "pue", OWN_PUE},
    {VAL_KWH, "kwh", OWN_KWH}, {VAL_STAFF, "staff", OWN_STAFF}};
#define N_OWN_OPTIONS (sizeof own_options / sizeof own_options[0])

static int on_option(void *ctx, int val, const char *arg)
{
    struct request *q = ctx;
    if (val == VAL_WEEKS)
        return use_read_weeks(arg, &q->weeks);
    if (val == VAL_CASH_FLOW)
        q->cash_flow = true;
    else if (q->n_given == GIVEN_MAX) {
        cli_error("more than %d options: put them into FILE", GIVEN_MAX);
        return CLI_USAGE;
    } else {
        q->given[q->n_given].val = val;
        q->given[q->n_given++].arg = mem_strdup(arg);
    }
    return CLI_OK;
}

static int take_months(struct breakeven_plan *p, const char *arg, struct err *e)
{
    int64_t months;
    int rc = str_to_i64(arg, 1, BREAKEVEN_MONTHS, "number", &months, e);
    if (rc == 0)
        p->months = (int)months;
    return rc;
}

static int take_option(
    struct request *q, int val, const char *arg, const char **ret_name, struct err *e)
{
    for (size_t i = 0; i < N_OWN_OPTIONS; i++) {
        if (own_options[i].val != val)
            continue;
        *ret_name = own_options[i].name;
        return plan_set(
            &q->plan.own[own_options[i].figure], &own_figures[own_options[i].figure], arg, e);
    }
    switch (val) {
    case VAL_TYPE:
        *ret_name = "type";
        return plan_add_type(&q->plan, arg, e);
    case VAL_PRICE:
        *ret_name = "price";
        return plan_add_price(&q->plan, RENT_ON_DEMAND, arg, e);
    case VAL_RESERVED:
        *ret_name = "reserved";
        return plan_add_price(&q->plan, RENT_RESERVED, arg, e);
    case VAL_SPOT:
        *ret_name = "spot";
        return plan_add_price(&q->plan, RENT_SPOT, arg, e);
    case VAL_UTILIZATION:
        *ret_name = "utilization";
        q->measured = str_eq(arg, "measured");
        return q->measured ? 0 : plan_set_utilisation(&q->plan, arg, e);
    case VAL_POOL:
        q->pool = arg;
        return 0;
    case VAL_INTERRUPTIONS:
        q->interruptions = arg; /* evaluated once everything to compare is known */
        return 0;
    case VAL_MONTHS:
        *ret_name = "months";
        return take_months(&q->plan, arg, e);
    default:
        q->html = arg;
        return 0;
    }
}

static int read_plan(struct request *q, const char *file, struct err *e)
{
    struct buf text = {0};
    plan_init(&q->plan);
    if (!file)
        return 0;
    int rc = fs_read(file, YAML_BYTES_MAX, &text, e);
    if (rc == 0)
        rc = plan_read(file, buf_str(&text), text.len, &q->plan, e);
    buf_deinit(&text);
    return rc;
}

/* Measures the utilisation of belayd's nodes. CLI_FAILED if belayd cannot be asked, or had no
 * nodes. */
static int measure(struct request *q)
{
    char busy[64] = "how busy is not known",
         source[512]; /* the plan cuts it to what it can store */
    struct use u;
    struct err e;
    int64_t weeks = q->weeks > 0 ? q->weeks : USE_WEEKS;
    if (use_read(weeks, q->pool, false, 0, &u, &e) != 0) {
        cli_error("--utilization: %s", e.text);
        return CLI_FAILED;
    }
    if (use_busy(&u) >= 0)
        snprintf(busy, sizeof busy, "and were %.1f %% busy", 100 * use_busy(&u));
    snprintf(source, sizeof source,
        "of %.0f %s-hours in %lld weeks, pools %s; jobs held %.1f %% of them, %s; %.1f %% still "
        "run",
        (double)u.there_ms / 3600000, u.unit[0] == 'g' ? "GPU" : "cpu", (long long)weeks, u.pools,
        100.0 * (double)u.held_ms / (double)u.there_ms, busy,
        100.0 * (double)u.running_ms / (double)u.there_ms);
    int rc =
        plan_measured(&q->plan, llround(use_utilisation(&u) * 100 * BREAKEVEN_MICRO), source, &e);
    use_deinit(&u);
    if (rc != 0)
        cli_error("--utilization: %s", e.text);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

static int take_interruptions(struct request *q)
{
    struct figure f = {.origin = FIGURE_MEASURED};
    double per_hour;
    struct err e;
    int rc;
    if (!q->interruptions)
        return CLI_OK;
    if (str_eq(q->interruptions, "measured")) {
        rc = use_read_interruptions(q->pool, &per_hour, f.source, &e);
        f.micro = rc == 0 ? llround(fmin(per_hour, 1) * 100 * BREAKEVEN_MICRO) : 0;
    } else {
        rc = plan_set(&f, &rent_figures[RENT_INTERRUPTIONS], q->interruptions, &e);
    }
    bool asked = rc != 0 && str_eq(q->interruptions, "measured");
    if (rc == 0)
        rc = plan_interruptions(&q->plan, &f, &e);
    if (rc != 0)
        cli_error("--interruptions: %s", e.text);
    return rc == 0 ? CLI_OK : asked ? CLI_FAILED : CLI_USAGE;
}

static int check_words(const struct request *q)
{
    if (q->weeks > 0 && !q->measured)
        cli_error("--weeks needs --utilization measured: it sets the weeks to measure");
    else if (q->pool && !q->measured && !str_eq(q->interruptions, "measured"))
        cli_error("--pool needs --utilization measured or --interruptions measured: it sets the "
                  "pool to measure");
    else
        return CLI_OK;
    return CLI_USAGE;
}

static int load(struct request *q, const struct cli_args *a)
{
    const char *name = "";
    struct err e;
    if (a->n_rest > 1) {
        cli_error("unexpected word \"%s\": belay breakeven takes one file", a->rest[1]);
        return CLI_USAGE;
    }
    int rc = read_plan(q, a->n_rest == 1 ? a->rest[0] : NULL, &e);
    for (size_t i = 0; rc == 0 && i < q->n_given; i++) {
        rc = take_option(q, q->given[i].val, q->given[i].arg, &name, &e);
        if (rc != 0) {
            cli_error("--%s: %s", name, e.text);
            return CLI_USAGE;
        }
    }
    if (rc == 0 && check_words(q) != CLI_OK)
        return CLI_USAGE;
    if (rc == 0)
        rc = plan_complete(&q->plan, &e);
    if (rc == 0 && q->measured && measure(q) != CLI_OK)
        return CLI_FAILED;
    int taken = rc == 0 ? take_interruptions(q) : CLI_OK;
    if (taken != CLI_OK)
        return taken;
    if (rc == 0)
        rc = breakeven_run(&q->plan, &q->result, &e);
    if (rc != 0)
        cli_error("%s", e.text);
    return rc == 0 ? CLI_OK : CLI_USAGE;
}

static int report(const struct request *q, bool as_json)
{
    json_t *result = breakeven_json(&q->plan, &q->result);
    struct buf page = {0};
    int rc = CLI_OK;
    if (q->html) {
        breakeven_page_write(result, q->command, clock_wall(&clock_system), &page);
        rc = page_save(&page, q->html);
    }
    if (rc == CLI_OK && as_json)
        cli_print_json(result);
    else if (rc == CLI_OK)
        breakeven_print(&q->plan, &q->result, q->cash_flow);
    json_decref(result);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct request *q = mem_alloc(sizeof *q);
    struct cli_args a;
    q->command = page_command(argc, argv);
    int rc = cli_parse(&verb_breakeven, argc, argv, false, on_option, q, &a);
    if (rc == 0)
        rc = load(q, &a);
    if (rc == 0)
        rc = report(q, a.json);
    cli_args_deinit(&a);
    for (size_t i = 0; i < q->n_given; i++)
        free((char *)(uintptr_t)q->given[i].arg);
    free(q->command);
    free(q);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"node-usd", 0, POPT_ARG_STRING, NULL, VAL_NODE_USD, "the price of an owned node", "USD"},
    {"nodes", 'N', POPT_ARG_STRING, NULL, VAL_NODES, "number of nodes (default 1)", "N"},
    {"years", 0, POPT_ARG_STRING, NULL, VAL_YEARS, "years of depreciation (default 3)", "N"},
    {"kw", 0, POPT_ARG_STRING, NULL, VAL_KW,
        "a GPU's share of its node's power at work (default the rated power of its board)", "KW"},
    {"pue", 0, POPT_ARG_STRING, NULL, VAL_PUE,
        "power usage effectiveness of the data centre (default 1.56)", "N"},
    {"kwh", 0, POPT_ARG_STRING, NULL, VAL_KWH, "the price of a kWh (default 0.10)", "USD"},
    {"staff", 0, POPT_ARG_STRING, NULL, VAL_STAFF,
        "number of people who operate the nodes (default: not counted)", "N"},
    {"utilization", 'u', POPT_ARG_STRING, NULL, VAL_UTILIZATION,
        "the productive part of the hours (default 80%), or measured: on belayd's nodes",
        "PERCENT|measured"},
    {"weeks", 'w', POPT_ARG_STRING, NULL, VAL_WEEKS, "weeks to measure, 1 to 52 (default 4)", "N"},
    {"pool", 'p', POPT_ARG_STRING, NULL, VAL_POOL,
        "the pool to measure (default: for utilisation, the reserved pools)", "POOL"},
    {"interruptions", 0, POPT_ARG_STRING, NULL, VAL_INTERRUPTIONS,
        "how many of a hundred spot machines are reclaimed each hour (default 2), or measured: "
        "with belayd's machines",
        "PERCENT|measured"},
    {"type", 't', POPT_ARG_STRING, NULL, VAL_TYPE,
        "compare with a machine of the catalogue, as azure/Standard_ND96isr_H100_v5; repeatable",
        "PROVIDER/TYPE"},
    {"price", 0, POPT_ARG_STRING, NULL, VAL_PRICE,
        "compare with GPUs at this price an hour each; repeatable", "USD"},
    {"reserved", 0, POPT_ARG_STRING, NULL, VAL_RESERVED,
        "compare with reserved GPUs: the months of the term, and the price of an hour of one, as "
        "36=2.10; repeatable",
        "MONTHS=USD"},
    {"spot", 0, POPT_ARG_STRING, NULL, VAL_SPOT,
        "compare with spot GPUs at this price an hour each; repeatable", "USD"},
    {"months", 'm', POPT_ARG_STRING, NULL, VAL_MONTHS,
        "months over which costs are averaged, 1 to 60 (default 36)", "N"},
    {"cash-flow", 0, POPT_ARG_NONE, NULL, VAL_CASH_FLOW, "also print the payments month by month",
        NULL},
    {"html", 0, POPT_ARG_STRING, NULL, VAL_HTML,
        "also write a page with plots, self-contained in one file", "FILE"},
    POPT_TABLEEND,
};

const struct verb verb_breakeven = {"breakeven", "[OPTION...] [FILE]",
    "rent or buy: compare the cost of owned and rented GPUs", run, options, false, .folds = true,
    .examples = "belay breakeven\n"
                "belay breakeven gpus.yaml\n"};
