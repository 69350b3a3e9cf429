/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of belay breakeven: tables.
 */
#include "cli/reports/breakeven_print.h"

#include "base/str.h"
#include "cli/cli.h"
#include "money/plan.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* Cost of a productive GPU-hour. */
static void cell_hour(struct table *t, double uusd)
{
    table_cell(t, "$%.3f", uusd / 1e6);
}

static const char *point_text(struct breakeven_point at, char out[TEXT_MAX])
{
    if (at.where == OWN_ABOVE || at.where == OWN_BELOW)
        snprintf(
            out, TEXT_MAX, "%s %.1f %%", breakeven_where_names[at.where], 100 * at.utilisation);
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
    else if (v->behind_from)
        table_cell(t, "month %d, until %d", v->month, v->behind_from);
    else
        table_cell(t, "month %d", v->month);
}

/* ---- tables ---- */

static bool is_of(const struct figure_info *info, unsigned market)
{
    return info->markets == 0 || (info->markets & market);
}

/* Lists figures that the user has not given, with their sources. Items that are not counted follow
 * in one line (print_not_counted). */
static void add_figures(struct table *t, const char *side, const struct figure_info *info,
    const struct figure *f, int n, unsigned market)
{
    char number[PLAN_NUMBER_MAX];
    for (int i = 0; i < n; i++) {
        bool idle = info[i].needs > 0 && f[info[i].needs - 1].micro == 0;
        if (!is_of(&info[i], market) || idle || f[i].origin == FIGURE_GIVEN ||
            str_eq(f[i].source, FIGURE_NOT_COUNTED))
            continue;
        table_row(t);
        table_cell(t, "%s", side);
        table_cell(t, "%s", info[i].key);
        table_cell(t, "%s", plan_number(f[i].micro, number));
        table_cell(t, "%s%s%s",
            f[i].origin == FIGURE_CATALOGUE  ? "catalogue, "
            : f[i].origin == FIGURE_MEASURED ? "measured, "
                                             : "",
            f[i].source, f[i].source[0] ? "" : "-");
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
        table_cell(t, "%s%s", p->utilisation.origin == FIGURE_MEASURED ? "measured, " : "",
            p->utilisation.source);
    }
    add_figures(t, "own", own_figures, p->own, OWN_FIGURES, 0);
    for (size_t i = 0; i < p->n_rents; i++)
        add_figures(t, p->rents[i].name, rent_figures, p->rents[i].f, RENT_FIGURES,
            RENT_BIT(p->rents[i].market));
    table_print(t);
}

static void print_not_counted(const char *side, const struct figure_info *info,
    const struct figure *f, int n, unsigned market)
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

static void add_item(
    struct table *t, const char *side, const char *item, int64_t cost, int months, double hours)
{
    table_row(t);
    table_cell(t, "%s", side);
    table_cell(t, "%s", item);
    cell_usd(t, cost);
    cell_usd(t, llround((double)cost / months));
    cell_hour(t, (double)cost / hours);
}

/* Items of rented machines that cost nothing are left out. */
static void add_side(
    struct table *t, const struct breakeven_side *s, bool rented, int months, double hours)
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
    table_column(t, "WITHOUT STAFF", true);
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

/* A line that is 0 throughout is left out, and so is the cost if it equals the amount paid. */
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

void breakeven_print(
    const struct breakeven_plan *p, const struct breakeven_result *r, bool cash_flow)
{
    char all[TEXT_MAX], no_staff[TEXT_MAX], least[TEXT_MAX];
    double gpu_years = r->gpus * p->months / 12;
    printf("%.0f GPUs, %.1f %% of their hours productive, over %d months. Figures per GPU-hour are "
           "per productive one.\n",
        r->gpus, 100 * r->utilisation, p->months);
    printf("An owned GPU costs %s a year; without staff %s, hardware and power alone %s.\n",
        dollars(llround((double)side_cost(&r->own, ITEMS_ALL, p->months) / gpu_years), all),
        dollars(
            llround((double)side_cost(&r->own, ITEMS_NO_STAFF, p->months) / gpu_years), no_staff),
        dollars(llround((double)side_cost(&r->own, ITEMS_HARDWARE_POWER, p->months) / gpu_years),
            least));
    if (p->own[OWN_STAFF].micro == 0)
        printf(
            "No staff is counted: give the number of people with --staff, or staff in the file.\n");
    printf("\n");
    print_items(p, r);
    printf("\n");
    print_versus(p, r);
    printf(
        "\"Without staff\" counts all other costs, \"hardware, power\" only these two. Paid back: "
        "the month from which less has been\n"
        "paid for owning than for renting, until the month in which new hardware is bought.\n\n");
    print_over(p, r);
    printf("\n");
    print_what_ifs(p, r);
    printf("\n");
    if (cash_flow) {
        print_cash_flow(p, r);
        printf("\n");
    }
    print_figures(p);
    print_not_counted("own", own_figures, p->own, OWN_FIGURES, 0);
    for (size_t i = 0; i < p->n_rents; i++)
        print_not_counted(p->rents[i].name, rent_figures, p->rents[i].f, RENT_FIGURES,
            RENT_BIT(p->rents[i].market));
}
