/* SPDX-License-Identifier: Apache-2.0
 *
 * See breakeven_page.h. A side is what is owned, or one way to rent.
 */
#include "cli/html/breakeven_page.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/html/page.h"
#include "money/plan.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 64
#define SERIES 6 /* colours; more sides begin again */

extern const char breakeven_js[];

/* ---- texts ---- */

/* "$3,400,000" */
static const char *dollars(double uusd, char out[TEXT_MAX])
{
    char digits[TEXT_MAX / 2];
    const long long usd = llround(fabs(uusd) / 1e6);
    snprintf(digits, sizeof digits, "%lld", usd);
    size_t n = strlen(digits), at = 0;
    if (uusd < 0 && usd > 0)
        out[at++] = '-';
    out[at++] = '$';
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

static void cell_dollars(struct html_table *t, int64_t uusd)
{
    char text[TEXT_MAX];
    html_cell(t, "%s", dollars((double)uusd, text));
}

static void cell_hour(struct html_table *t, const json_t *o, const char *key)
{
    html_cell(t, "$%.3f", (double)cli_int(o, key, 0) / 1e6);
}

/* The hours in use above or below which owning costs less: "above 40.5 %", "always", "never". */
static void cell_point(struct html_table *t, const json_t *point)
{
    const char *where = cli_text(point, "owning_costs_less");
    const json_t *at = json_object_get(point, "utilisation");
    if (json_is_number(at))
        html_cell(t, "%s %.1f %%", where, 100 * json_number_value(at));
    else
        html_cell(t, "%s", where);
}

static void cell_month(struct html_table *t, const json_t *break_even)
{
    const int64_t month = cli_int(break_even, "month", 0),
                  until = cli_int(break_even, "behind_again", 0);
    if (month == 0)
        html_cell(t, "not within 60 months");
    else if (until > 0)
        html_cell(t, "month %lld, until month %lld", (long long)month, (long long)until);
    else
        html_cell(t, "month %lld", (long long)month);
}

/* ---- sides ---- */

static size_t n_sides(const json_t *result)
{
    return 1 + json_array_size(json_object_get(result, "rent"));
}

/* 0: what is owned. */
static const json_t *side(const json_t *result, size_t i)
{
    return i == 0 ? json_object_get(result, "own")
                  : json_array_get(json_object_get(result, "rent"), i - 1);
}

static int64_t sum_of_items(const json_t *side)
{
    const json_t *items = json_object_get(side, "items");
    int64_t sum = 0;
    for (size_t i = 0; i < json_array_size(items); i++)
        sum += cli_int(json_array_get(items, i), "cost_uusd", 0);
    return sum;
}

/* The dollars of a productive hour, if this part of the hours is productive. */
static double hour_at(const json_t *side, double utilisation)
{
    const json_t *line = json_object_get(side, "line");
    const double fixed = json_number_value(json_object_get(line, "uusd_per_gpu_hour")),
                 productive =
                     json_number_value(json_object_get(line, "uusd_per_productive_gpu_hour"));
    return (fixed / utilisation + productive) / 1e6;
}

static bool counts_staff(const json_t *result)
{
    const json_t *figures = json_object_get(side(result, 0), "figures");
    for (size_t i = 0; i < json_array_size(figures); i++) {
        const json_t *f = json_array_get(figures, i);
        if (str_eq(cli_text(f, "figure"), "staff"))
            return json_number_value(json_object_get(f, "value")) > 0;
    }
    return false;
}

/* ---- parts ---- */

static void add_result(const json_t *r, struct buf *out)
{
    const json_t *own = side(r, 0), *year = json_object_get(own, "uusd_per_gpu_year");
    char text[TEXT_MAX];
    html_stats(out);
    html_stat(out, "A productive GPU-hour, owned", "$%.3f",
        (double)cli_int(own, "uusd_per_productive_gpu_hour", 0) / 1e6);
    html_stat(out, "An owned GPU, a year", "%s", dollars((double)cli_int(year, "all", 0), text));
    html_stat(out, "\u2026 without staff", "%s",
        dollars((double)cli_int(year, "without_staff", 0), text));
    html_stat(out, "\u2026 hardware and power alone", "%s",
        dollars((double)cli_int(year, "hardware_and_power", 0), text));
    html_stats_end(out);
    if (!counts_staff(r))
        html_p(out, "notice",
            "No staff is counted: the figures of owning leave out whoever looks after the "
            "machines. "
            "Give their number with --staff, or as staff in the file.");
}

static void add_versus(const json_t *r, struct buf *out)
{
    struct html_table t;
    html_card(out, "Against each way to rent");
    html_table(&t, out, "The utilisation from which owning costs less than renting",
        (const char *const[]){"Rented", "A productive GPU-hour", "Owning costs less",
            "Without staff", "Hardware and power alone", "Paid back", NULL},
        1);
    for (size_t i = 1; i < n_sides(r); i++) {
        const json_t *s = side(r, i), *b = json_object_get(s, "break_even");
        html_row(&t, false);
        html_cell(&t, "%s", cli_text(s, "name"));
        cell_hour(&t, s, "uusd_per_productive_gpu_hour");
        cell_point(&t, json_object_get(b, "utilisation"));
        cell_point(&t, json_object_get(b, "without_staff"));
        cell_point(&t, json_object_get(b, "hardware_and_power"));
        cell_month(&t, b);
    }
    html_table_end(&t);
    html_p(out, "hint",
        "A percentage is the part of all hours that is productive. \"Without staff\" counts all "
        "other "
        "costs, \"hardware and power alone\" only these two. Paid back: the month from which less "
        "has "
        "been paid for owning than for renting, until the month in which new hardware is bought.");
    html_card_end(out);
}

/* The names of all sides after the first column. The caller frees the list. */
static const char **side_names(const json_t *r, const char *first)
{
    const char **names = mem_array(n_sides(r) + 2, sizeof *names);
    names[0] = first;
    for (size_t i = 0; i < n_sides(r); i++)
        names[i + 1] = i == 0 ? "Own" : cli_text(side(r, i), "name");
    return names;
}

static void add_hours(const json_t *r, struct buf *out)
{
    static const int percents[] = {5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
    const char **names = side_names(r, "Productive hours");
    struct html_table t;
    html_plot(out, "hours", "What a productive GPU-hour costs",
        "The more of its hours a GPU is productive, the less a productive hour costs. What is "
        "owned "
        "falls fastest, because it is paid for in all hours. Dots: owning costs as much as "
        "renting.");
    html_table(&t, out, "Dollars for a productive GPU-hour", names, 1);
    for (size_t k = 0; k < sizeof percents / sizeof percents[0]; k++) {
        html_row(&t, false);
        html_cell(&t, "%d %%", percents[k]);
        for (size_t i = 0; i < n_sides(r); i++)
            html_cell(&t, "$%.3f", hour_at(side(r, i), percents[k] / 100.0));
    }
    html_table_end(&t);
    html_plot_end(out);
    free(names);
}

static void add_paid(const json_t *r, struct buf *out)
{
    const char **names = side_names(r, "After");
    struct html_table t;
    html_plot(out, "paid", "What is paid so far",
        "Owning is paid at the start and when hardware is replaced, renting by the month. Where "
        "the "
        "line of owning is below another one, owning is paid back.");
    html_table(&t, out, "Paid after so many months", names, 1);
    for (size_t m = 6; m <= 60; m += 6) {
        html_row(&t, false);
        html_cell(&t, "%zu months", m);
        for (size_t i = 0; i < n_sides(r); i++)
            cell_dollars(&t, json_integer_value(json_array_get(
                                 json_object_get(side(r, i), "paid_so_far_uusd"), m - 1)));
    }
    html_table_end(&t);
    html_plot_end(out);
    free(names);
}

static void add_items(const json_t *r, struct buf *out)
{
    const int64_t months = cli_int(r, "months", 1);
    char title[TEXT_MAX];
    snprintf(title, sizeof title, "Item by item, over %lld months", (long long)months);
    html_card(out, title);
    for (size_t k = 0; k < n_sides(r); k++) {
        const json_t *s = side(r, k), *items = json_object_get(s, "items");
        const int64_t sum = sum_of_items(s);
        struct html_table t;
        html_table(&t, out, cli_text(s, "name"),
            (const char *const[]){
                "Item", "All", "A month", "A productive GPU-hour", "Part of the whole", NULL},
            1);
        for (size_t i = 0; i < json_array_size(items); i++) {
            const json_t *item = json_array_get(items, i);
            const int64_t cost = cli_int(item, "cost_uusd", 0);
            html_row(&t, false);
            html_cell(&t, "%s", cli_text(item, "item"));
            cell_dollars(&t, cost);
            cell_dollars(&t, cli_int(item, "cost_uusd_per_month", 0));
            cell_hour(&t, item, "uusd_per_productive_gpu_hour");
            html_cell_part(&t, (double)cost, (double)sum);
        }
        html_row(&t, true);
        html_cell(&t, "Together");
        cell_dollars(&t, sum);
        cell_dollars(&t, llround((double)sum / (double)months));
        cell_hour(&t, s, "uusd_per_productive_gpu_hour");
        html_cell_part(&t, (double)sum, (double)sum);
        html_table_end(&t);
    }
    html_card_end(out);
}

static void add_over(const json_t *r, struct buf *out)
{
    struct html_table t;
    html_card(out, "After a time");
    html_table(&t, out, "What is paid, what it is worth, and what is owed",
        (const char *const[]){"Side", "Months", "Paid", "Value left", "Cost", "Owed still", NULL},
        1);
    for (size_t k = 0; k < n_sides(r); k++) {
        const json_t *s = side(r, k), *over = json_object_get(s, "over");
        for (size_t i = 0; i < json_array_size(over); i++) {
            const json_t *o = json_array_get(over, i);
            html_row(&t, false);
            html_cell(&t, "%s", cli_text(s, "name"));
            html_cell_int(&t, cli_int(o, "months", 0));
            cell_dollars(&t, cli_int(o, "paid_uusd", 0));
            cell_dollars(&t, cli_int(o, "value_left_uusd", 0));
            cell_dollars(&t, cli_int(o, "cost_uusd", 0));
            cell_dollars(&t, cli_int(o, "owed_uusd", 0));
        }
    }
    html_table_end(&t);
    html_card_end(out);
}

/* The highest cost of a productive hour, of which bars are parts. */
static double most_uusd(const json_t *r)
{
    const json_t *what_ifs = json_object_get(r, "what_if");
    double most = 1;
    for (size_t i = 0; i < n_sides(r); i++)
        most = fmax(most, (double)cli_int(side(r, i), "uusd_per_productive_gpu_hour", 0));
    for (size_t k = 0; k < json_array_size(what_ifs); k++) {
        const json_t *w = json_array_get(what_ifs, k), *rents = json_object_get(w, "rent");
        most = fmax(most, (double)cli_int(w, "own_uusd_per_productive_gpu_hour", 0));
        for (size_t i = 0; i < json_array_size(rents); i++)
            most = fmax(
                most, (double)cli_int(json_array_get(rents, i), "uusd_per_productive_gpu_hour", 0));
    }
    return most;
}

static void add_outcome(struct html_table *t, const char *what, const char *name, int64_t uusd,
    const json_t *break_even, double most, size_t i)
{
    html_row(t, false);
    html_cell(t, "%s", what);
    html_cell(t, "%s", name);
    html_cell(t, "$%.3f", (double)uusd / 1e6);
    if (break_even) {
        cell_point(t, json_object_get(break_even, "utilisation"));
        cell_month(t, break_even);
    } else {
        html_cell(t, "%s", "");
        html_cell(t, "%s", "");
    }
    html_cell_bar(t, (double)uusd / most, (int)(i % SERIES) + 1);
}

static void add_what_ifs(const json_t *r, struct buf *out)
{
    const json_t *what_ifs = json_object_get(r, "what_if");
    const double most = most_uusd(r);
    struct html_table t;
    html_card(out, "What if");
    html_table(&t, out, "A productive GPU-hour if one figure were another",
        (const char *const[]){"What if", "Side", "A productive GPU-hour", "Owning costs less",
            "Paid back", "Compared", NULL},
        1u | 2u | 32u);
    for (size_t i = 0; i < n_sides(r); i++)
        add_outcome(&t, "as it is", i == 0 ? "own" : cli_text(side(r, i), "name"),
            cli_int(side(r, i), "uusd_per_productive_gpu_hour", 0),
            i == 0 ? NULL : json_object_get(side(r, i), "break_even"), most, i);
    for (size_t k = 0; k < json_array_size(what_ifs); k++) {
        const json_t *w = json_array_get(what_ifs, k), *rents = json_object_get(w, "rent");
        add_outcome(&t, cli_text(w, "name"), "own",
            cli_int(w, "own_uusd_per_productive_gpu_hour", 0), NULL, most, 0);
        for (size_t i = 0; i < json_array_size(rents); i++) {
            const json_t *o = json_array_get(rents, i);
            add_outcome(&t, cli_text(w, "name"), cli_text(o, "name"),
                cli_int(o, "uusd_per_productive_gpu_hour", 0), json_object_get(o, "break_even"),
                most, i + 1);
        }
    }
    html_table_end(&t);
    html_card_end(out);
}

static void add_figures(const json_t *r, struct buf *out)
{
    html_card(out, "Figures, and where they are from");
    for (size_t k = 0; k < n_sides(r); k++) {
        const json_t *s = side(r, k), *figures = json_object_get(s, "figures");
        struct html_table t;
        html_table(&t, out, cli_text(s, "name"),
            (const char *const[]){"Figure", "Value", "Unit", "From", "Source", NULL},
            1u | 4u | 8u | 16u);
        for (size_t i = 0; i < json_array_size(figures); i++) {
            const json_t *f = json_array_get(figures, i);
            html_row(&t, false);
            html_cell(&t, "%s", cli_text(f, "figure"));
            html_cell(&t, "%.10g", json_number_value(json_object_get(f, "value")));
            html_cell(&t, "%s", cli_text(f, "unit"));
            html_cell(&t, "%s", cli_text(f, "origin"));
            html_cell(&t, "%s", cli_text(f, "source"));
        }
        html_table_end(&t);
    }
    html_card_end(out);
}

static bool is_ever_paid(const json_t *item)
{
    const json_t *cash = json_object_get(item, "cash_uusd");
    for (size_t m = 0; m < json_array_size(cash); m++)
        if (json_integer_value(json_array_get(cash, m)) != 0)
            return true;
    return false;
}

static void add_months(const json_t *s, struct buf *out)
{
    const json_t *items = json_object_get(s, "items"),
                 *paid = json_object_get(s, "paid_so_far_uusd");
    const json_t *columns[HTML_COLUMNS_MAX];
    const char *names[HTML_COLUMNS_MAX + 1] = {"Month"};
    struct html_table t;
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(items) && n + 2 < HTML_COLUMNS_MAX; i++) {
        if (is_ever_paid(json_array_get(items, i))) {
            columns[n] = json_array_get(items, i);
            names[n + 1] = cli_text(columns[n], "item");
            n++;
        }
    }
    names[n + 1] = "So far";
    buf_adds(out, "<details><summary>");
    html_text(out, cli_text(s, "name"));
    buf_adds(out, "</summary>\n");
    html_table(&t, out, "What is paid in each month", names, 1);
    for (size_t m = 0; m < json_array_size(paid); m++) {
        html_row(&t, false);
        html_cell(&t, "%zu", m + 1);
        for (size_t i = 0; i < n; i++)
            cell_dollars(&t,
                json_integer_value(json_array_get(json_object_get(columns[i], "cash_uusd"), m)));
        cell_dollars(&t, json_integer_value(json_array_get(paid, m)));
    }
    html_table_end(&t);
    buf_adds(out, "</details>\n");
}

void breakeven_page_write(
    const json_t *result, const char *command, struct wall now, struct buf *out)
{
    char *lede = mem_printf("%.0f GPUs, %.1f %% of their hours productive, over %lld months. Costs "
                            "spread what is bought over its life; what is paid is counted when it "
                            "is.",
        json_number_value(json_object_get(result, "gpus")),
        100 * json_number_value(json_object_get(result, "utilisation")),
        (long long)cli_int(result, "months", 0));
    page_begin(out, PAGE_FILE, "Rent or buy", lede);
    free(lede);
    add_result(result, out);
    add_versus(result, out);
    html_card(out, "Plots");
    add_hours(result, out);
    add_paid(result, out);
    html_card_end(out);
    add_items(result, out);
    add_over(result, out);
    add_what_ifs(result, out);
    add_figures(result, out);
    html_card(out, "Month by month: what is paid");
    for (size_t i = 0; i < n_sides(result); i++)
        add_months(side(result, i), out);
    html_card_end(out);
    page_end(out, now, command, result, breakeven_js);
}
