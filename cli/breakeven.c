/* SPDX-License-Identifier: Apache-2.0
 *
 * belay breakeven: what GPUs of one's own cost, item by item, against what the same work costs rented.
 */
#include "cli/verbs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "cli/use.h"
#include "money/breakeven_json.h"
#include "money/plan.h"
#include "simulate/page.h"
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
    VAL_MONTHS,
    VAL_CASH_FLOW,
    VAL_HTML
};

/* Options are taken after the file that they win over. */
struct request {
    struct {
        int val;
        const char *arg; /* of argv */
    } given[GIVEN_MAX];
    size_t n_given;
    const char *html;
    bool cash_flow, measured;
    int64_t weeks; /* 0: not given */
    const char *pool;
    struct breakeven_plan plan;
    struct breakeven_result result;
};

/* ---- the command line ---- */

static const struct {
    int val;
    const char *name;
    enum own_figure figure;
} own_options[] = {{VAL_NODES, "nodes", OWN_NODES}, {VAL_NODE_USD, "node-usd", OWN_NODE_USD}, {VAL_YEARS, "years", OWN_YEARS},
    {VAL_KW, "kw", OWN_KW}, {VAL_PUE, "pue", OWN_PUE}, {VAL_KWH, "kwh", OWN_KWH}, {VAL_STAFF, "staff", OWN_STAFF}};
#define N_OWN_OPTIONS (sizeof own_options / sizeof own_options[0])

static int on_option(void *ctx, int val, const char *arg)
{
    struct request *q = ctx;
    if (val == VAL_WEEKS)
        return use_read_weeks(arg, &q->weeks);
    if (val == VAL_CASH_FLOW)
        q->cash_flow = true;
    else if (q->n_given == GIVEN_MAX) {
        cli_error("more than %d options: a file takes them all", GIVEN_MAX);
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

static int take_option(struct request *q, int val, const char *arg, const char **ret_name, struct err *e)
{
    for (size_t i = 0; i < N_OWN_OPTIONS; i++) {
        if (own_options[i].val != val)
            continue;
        *ret_name = own_options[i].name;
        return plan_set(&q->plan.own[own_options[i].figure], &own_figures[own_options[i].figure], arg, e);
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

/* Of belayd's nodes: CLI_FAILED when it cannot be asked, or had none. */
static int measure(struct request *q)
{
    char source[512]; /* more than is kept: the plan cuts it */
    struct use u;
    struct err e;
    int64_t weeks = q->weeks > 0 ? q->weeks : USE_WEEKS;
    if (use_read(weeks, q->pool, false, 0, &u, &e) != 0) {
        cli_error("--utilization: %s", e.text);
        return CLI_FAILED;
    }
    snprintf(source, sizeof source, "of %.0f %s-hours in %lld weeks, pools %s; jobs held %.1f %%, %.1f %% still run", (double)u.there_ms / 3600000,
        u.unit[0] == 'g' ? "GPU" : "cpu", (long long)weeks, u.pools, 100.0 * (double)u.held_ms / (double)u.there_ms,
        100.0 * (double)u.running_ms / (double)u.there_ms);
    int rc = plan_measured(&q->plan, llround(use_productive(&u) * 100 * BREAKEVEN_MICRO), source, &e);
    use_deinit(&u);
    if (rc != 0)
        cli_error("--utilization: %s", e.text);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

static int check_words(const struct request *q)
{
    if (q->measured || (q->weeks == 0 && !q->pool))
        return CLI_OK;
    cli_error("--weeks and --pool say what is measured: --utilization measured");
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
    if (rc == 0)
        rc = breakeven_run(&q->plan, &q->result, &e);
    if (rc != 0)
        cli_error("%s", e.text);
    return rc == 0 ? CLI_OK : CLI_USAGE;
}

/* ---- texts ---- */

#define TEXT_MAX 48

/* "$3,400,000" */
static const char *dollars(int64_t uusd, char out[TEXT_MAX])
{
    char digits[TEXT_MAX];
    int64_t usd = (int64_t)llround(fabs((double)uusd) / 1e6);
    snprintf(digits, sizeof digits, "%lld", (long long)usd);
    size_t n = strlen(digits), at = 0;
    if (uusd < 0 && usd > 0)
        out[at++] = '-';
    out[at++] = '$';
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

static void cell_usd(struct table *t, int64_t uusd)
{
    char text[TEXT_MAX];
    table_cell(t, "%s", dollars(uusd, text));
}

/* Of a productive GPU-hour. */
static void cell_hour(struct table *t, double uusd)
{
    table_cell(t, "$%.3f", uusd / 1e6);
}

static const char *point_text(struct breakeven_point at, char out[TEXT_MAX])
{
    if (at.where == OWN_ABOVE || at.where == OWN_BELOW)
        snprintf(out, TEXT_MAX, "%s %.1f %%", breakeven_where_names[at.where], 100 * at.utilisation);
    else
        snprintf(out, TEXT_MAX, "%s", breakeven_where_names[at.where]);
    return out;
}

static void cell_point(struct table *t, struct breakeven_point at)
{
    char text[TEXT_MAX];
    table_cell(t, "%s", point_text(at, text));
}

static void cell_month(struct table *t, const struct breakeven_versus *v)
{
    if (v->month == 0)
        table_cell(t, "not in %d months", BREAKEVEN_MONTHS);
    else if (v->behind_again)
        table_cell(t, "month %d, until %d", v->month, v->behind_again);
    else
        table_cell(t, "month %d", v->month);
}

/* ---- tables ---- */

static bool is_of(const struct figure_info *info, unsigned market)
{
    return info->markets == 0 || (info->markets & market);
}

/* What was given needs no source; what is not counted is said in one line. */
static void add_figures(struct table *t, const char *side, const struct figure_info *info, const struct figure *f, int n, unsigned market)
{
    char number[PLAN_NUMBER_MAX];
    for (int i = 0; i < n; i++) {
        bool idle = info[i].needs > 0 && f[info[i].needs - 1].micro == 0;
        if (!is_of(&info[i], market) || idle || f[i].origin == FIGURE_GIVEN || str_eq(f[i].source, FIGURE_NOT_COUNTED))
            continue;
        table_row(t);
        table_cell(t, "%s", side);
        table_cell(t, "%s", info[i].key);
        table_cell(t, "%s", plan_number(f[i].micro, number));
        table_cell(t, "%s%s%s", f[i].origin == FIGURE_CATALOGUE ? "catalogue, " : "", f[i].source, f[i].source[0] ? "" : "-");
    }
}

static void print_figures(const struct breakeven_plan *p)
{
    struct table *t = table_create();
    char number[PLAN_NUMBER_MAX];
    table_column(t, "", false);
    table_column(t, "NOT GIVEN", false);
    table_column(t, "VALUE", true);
    table_column(t, "FROM", false);
    if (p->utilisation.origin != FIGURE_GIVEN) {
        table_row(t);
        table_cell(t, "own");
        table_cell(t, "utilisation_percent");
        table_cell(t, "%s", plan_number(p->utilisation.micro, number));
        table_cell(t, "%s%s", p->utilisation.origin == FIGURE_MEASURED ? "measured " : "", p->utilisation.source);
    }
    add_figures(t, "own", own_figures, p->own, OWN_FIGURES, 0);
    for (size_t i = 0; i < p->n_rents; i++)
        add_figures(t, p->rents[i].name, rent_figures, p->rents[i].f, RENT_FIGURES, RENT_BIT(p->rents[i].market));
    table_print(t);
}

static void print_not_counted(const char *side, const struct figure_info *info, const struct figure *f, int n, unsigned market)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (!is_of(&info[i], market) || !str_eq(f[i].source, FIGURE_NOT_COUNTED))
            continue;
        if (any)
            printf(", %s", info[i].key);
        else
            printf("Not counted, %s: %s", side, info[i].key);
        any = true;
    }
    if (any)
        printf(".\n");
}

static void add_item(struct table *t, const char *side, const char *item, int64_t cost, int months, double hours)
{
    table_row(t);
    table_cell(t, "%s", side);
    table_cell(t, "%s", item);
    cell_usd(t, cost);
    cell_usd(t, llround((double)cost / months));
    cell_hour(t, (double)cost / hours);
}

/* Of rented machines what costs nothing is left out: what was not counted is said below. */
static void add_side(struct table *t, const struct breakeven_side *s, bool rented, int months, double hours)
{
    for (size_t i = 0; i < s->n_items; i++) {
        int64_t cost = 0;
        for (int m = 0; m < months; m++)
            cost += s->items[i].cost[m];
        if (i == 0 || !rented || cost != 0)
            add_item(t, i == 0 ? s->name : "", s->items[i].name, cost, months, hours);
    }
    add_item(t, "", "together", side_cost(s, ITEMS_ALL, months), months, hours);
}

static void print_items(const struct breakeven_plan *p, const struct breakeven_result *r)
{
    struct table *t = table_create();
    table_column(t, "", false);
    table_column(t, "ITEM", false);
    table_column(t, "COST", true);
    table_column(t, "A MONTH", true);
    table_column(t, "A GPU-HOUR", true);
    add_side(t, &r->own, false, p->months, r->productive_hours);
    for (size_t i = 0; i < p->n_rents; i++)
        add_side(t, &r->rents[i], true, p->months, r->productive_hours);
    table_print(t);
}

static void print_versus(const struct breakeven_plan *p, const struct breakeven_result *r)
{
    struct table *t = table_create();
    table_column(t, "AGAINST", false);
    table_column(t, "A GPU-HOUR", true);
    table_column(t, "OWNING COSTS LESS", true);
    table_column(t, "BUT STAFF", true);
    table_column(t, "HARDWARE, POWER", true);
    table_column(t, "PAID BACK", true);
    for (size_t i = 0; i < p->n_rents; i++) {
        const struct breakeven_versus *v = &r->versus[i];
        table_row(t);
        table_cell(t, "%s", r->rents[i].name);
        cell_hour(t, (double)side_cost(&r->rents[i], ITEMS_ALL, p->months) / r->productive_hours);
        cell_point(t, v->all);
        cell_point(t, v->without_staff);
        cell_point(t, v->hardware_power);
        cell_month(t, v);
    }
    table_print(t);
}

enum { OVER_PAID, OVER_VALUE, OVER_COST, OVER_OWED };

static int64_t after(const struct breakeven_side *s, int what, int months)
{
    int64_t paid = side_cash(s, ITEMS_ALL, months), cost = side_cost(s, ITEMS_ALL, months);
    if (what == OVER_OWED)
        return s->owed[months - 1];
    return what == OVER_PAID ? paid : what == OVER_VALUE ? paid - cost : cost;
}

/* A line that is 0 all along is left out, and the cost if it is what was paid. */
static void add_over(struct table *t, const struct breakeven_side *s)
{
    static const int months[] = {12, 24, 36, 60};
    static const char *const names[] = {"paid", "less value left", "cost", "owed still"};
    bool any[4] = {[OVER_PAID] = true};
    for (int i = 0; i < 4; i++) {
        any[OVER_VALUE] = any[OVER_VALUE] || after(s, OVER_VALUE, months[i]) != 0;
        any[OVER_OWED] = any[OVER_OWED] || after(s, OVER_OWED, months[i]) != 0;
    }
    any[OVER_COST] = any[OVER_VALUE];
    for (int line = 0; line < 4; line++) {
        if (!any[line])
            continue;
        table_row(t);
        table_cell(t, "%s", line == 0 ? s->name : "");
        table_cell(t, "%s", names[line]);
        for (int i = 0; i < 4; i++)
            cell_usd(t, after(s, line, months[i]));
    }
}

static void print_over(const struct breakeven_plan *p, const struct breakeven_result *r)
{
    struct table *t = table_create();
    table_column(t, "AFTER", false);
    table_column(t, "", false);
    table_column(t, "12 MONTHS", true);
    table_column(t, "24 MONTHS", true);
    table_column(t, "36 MONTHS", true);
    table_column(t, "60 MONTHS", true);
    add_over(t, &r->own);
    for (size_t i = 0; i < p->n_rents; i++)
        add_over(t, &r->rents[i]);
    table_print(t);
}

static void print_what_ifs(const struct breakeven_plan *p, const struct breakeven_result *r)
{
    struct table *t = table_create();
    table_column(t, "WHAT IF", false);
    table_column(t, "AGAINST", false);
    table_column(t, "OWN", true);
    table_column(t, "RENTED", true);
    table_column(t, "OWNING COSTS LESS", true);
    table_column(t, "PAID BACK", true);
    for (size_t k = 0; k < p->n_what_ifs; k++) {
        for (size_t i = 0; i < p->n_rents; i++) {
            const struct breakeven_outcome *o = &r->outcomes[k];
            table_row(t);
            table_cell(t, "%s", i == 0 ? p->what_ifs[k].name : "");
            table_cell(t, "%s", p->rents[i].name);
            cell_hour(t, o->own_uusd_hour);
            cell_hour(t, o->rent_uusd_hour[i]);
            cell_point(t, o->versus[i].all);
            cell_month(t, &o->versus[i]);
        }
    }
    table_print(t);
}

static void print_cash_flow(const struct breakeven_plan *p, const struct breakeven_result *r)
{
    struct table *t = table_create();
    table_column(t, "MONTH", true);
    table_column(t, "own", true);
    table_column(t, "so far", true);
    for (size_t i = 0; i < p->n_rents; i++) {
        table_column(t, p->rents[i].name, true);
        table_column(t, "so far", true);
    }
    for (int m = 1; m <= BREAKEVEN_MONTHS; m++) {
        table_row(t);
        table_cell(t, "%d", m);
        for (size_t i = 0; i <= p->n_rents; i++) {
            const struct breakeven_side *s = i == 0 ? &r->own : &r->rents[i - 1];
            int64_t so_far = side_cash(s, ITEMS_ALL, m);
            cell_usd(t, so_far - side_cash(s, ITEMS_ALL, m - 1));
            cell_usd(t, so_far);
        }
    }
    table_print(t);
}

static void print_all(const struct request *q)
{
    const struct breakeven_plan *p = &q->plan;
    const struct breakeven_result *r = &q->result;
    char all[TEXT_MAX], no_staff[TEXT_MAX], least[TEXT_MAX];
    double gpu_years = r->gpus * p->months / 12;
    printf("%.0f GPUs, %.1f %% of their hours productive, over %d months. What is told of a GPU-hour is of a productive one.\n", r->gpus,
        100 * r->utilisation, p->months);
    printf("A GPU of one's own costs %s a year; without staff %s, hardware and power alone %s.\n\n",
        dollars(llround((double)side_cost(&r->own, ITEMS_ALL, p->months) / gpu_years), all),
        dollars(llround((double)side_cost(&r->own, ITEMS_NO_STAFF, p->months) / gpu_years), no_staff),
        dollars(llround((double)side_cost(&r->own, ITEMS_HARDWARE_POWER, p->months) / gpu_years), least));
    print_items(p, r);
    printf("\n");
    print_versus(p, r);
    printf("\"But staff\" leaves staff out; \"hardware, power\" leaves all else out too. Paid back: less was paid for owning by then; until\n"
           "the month in which it was more again, when hardware is bought anew.\n\n");
    print_over(p, r);
    printf("\n");
    print_what_ifs(p, r);
    printf("\n");
    if (q->cash_flow) {
        print_cash_flow(p, r);
        printf("\n");
    }
    print_figures(p);
    print_not_counted("own", own_figures, p->own, OWN_FIGURES, 0);
    for (size_t i = 0; i < p->n_rents; i++)
        print_not_counted(p->rents[i].name, rent_figures, p->rents[i].f, RENT_FIGURES, RENT_BIT(p->rents[i].market));
}

static int report(const struct request *q, bool as_json)
{
    json_t *result = breakeven_json(&q->plan, &q->result);
    struct buf page = {0};
    struct err e;
    int rc = 0;
    if (q->html) {
        page_fill(breakeven_html, result, &page);
        rc = fs_write_atomic(q->html, buf_str(&page), page.len, 0644, &e);
        buf_deinit(&page);
    }
    if (rc != 0)
        cli_error("%s", e.text);
    else if (as_json)
        cli_print_json(result);
    else
        print_all(q);
    json_decref(result);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

static int run(int argc, const char **argv)
{
    struct request *q = mem_alloc(sizeof *q);
    struct cli_args a;
    int rc = cli_parse(&verb_breakeven, argc, argv, false, on_option, q, &a);
    if (rc == 0)
        rc = load(q, &a);
    if (rc == 0)
        rc = report(q, a.json);
    cli_args_deinit(&a);
    for (size_t i = 0; i < q->n_given; i++)
        free((char *)(uintptr_t)q->given[i].arg);
    free(q);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"node-usd", 0, POPT_ARG_STRING, NULL, VAL_NODE_USD, "what a node of one's own costs", "USD"},
    {"nodes", 'N', POPT_ARG_STRING, NULL, VAL_NODES, "so many of them (default 1)", "N"},
    {"years", 0, POPT_ARG_STRING, NULL, VAL_YEARS, "of depreciation (default 3)", "N"},
    {"kw", 0, POPT_ARG_STRING, NULL, VAL_KW, "a GPU's share of its node's power at work (default the rated power of its board)", "KW"},
    {"pue", 0, POPT_ARG_STRING, NULL, VAL_PUE, "of the data centre (default 1.56)", "N"},
    {"kwh", 0, POPT_ARG_STRING, NULL, VAL_KWH, "the price of a kWh (default 0.10)", "USD"},
    {"staff", 0, POPT_ARG_STRING, NULL, VAL_STAFF, "people who look after them (default: not counted)", "N"},
    {"utilization", 'u', POPT_ARG_STRING, NULL, VAL_UTILIZATION, "which part of their hours is productive (default 80%), or measured: of belayd's nodes", "PERCENT|measured"},
    {"weeks", 'w', POPT_ARG_STRING, NULL, VAL_WEEKS, "that are measured, 1 to 52 (default 4)", "N"},
    {"pool", 'p', POPT_ARG_STRING, NULL, VAL_POOL, "whose nodes are measured (default: the reserved pools)", "POOL"},
    {"type", 't', POPT_ARG_STRING, NULL, VAL_TYPE, "compare with a machine of the catalogue, as azure/Standard_ND96isr_H100_v5; several", "PROVIDER/TYPE"},
    {"price", 0, POPT_ARG_STRING, NULL, VAL_PRICE, "compare with GPUs at so much an hour each; several", "USD"},
    {"reserved", 0, POPT_ARG_STRING, NULL, VAL_RESERVED, "compare with reserved GPUs: the months of the term, and the price of an hour of one, as 36=2.10; several", "MONTHS=USD"},
    {"spot", 0, POPT_ARG_STRING, NULL, VAL_SPOT, "compare with spot GPUs at so much an hour each; several", "USD"},
    {"months", 'm', POPT_ARG_STRING, NULL, VAL_MONTHS, "over which costs are averaged, 1 to 60 (default 36)", "N"},
    {"cash-flow", 0, POPT_ARG_NONE, NULL, VAL_CASH_FLOW, "print what is paid month by month too", NULL},
    {"html", 0, POPT_ARG_STRING, NULL, VAL_HTML, "write a page with plots too, whole in one file", "FILE"},
    POPT_TABLEEND,
};

const struct verb verb_breakeven = {
    "breakeven", "[OPTION...] [FILE]", "rent or buy: what GPUs of one's own cost, and rented ones", run, options, false};
