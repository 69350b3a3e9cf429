/* SPDX-License-Identifier: Apache-2.0
 *
 * See weekly_page.h. The plot is a column of bars in a table, which programs that show mail can
 * draw too.
 */
#include "cli/html/weekly_page.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include <stdio.h>
#include <stdlib.h>

#define WEEK_DAYS 7

static double percent(int64_t part, int64_t whole)
{
    return whole != 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void add_more(const json_t *r, struct html_table *t, int64_t uusd)
{
    const int64_t before = cli_int(r, "before_uusd", 0);
    char text[32];
    if (before > 0)
        html_cell(t, "%.1f %% %s than the week before (%s)",
            percent(uusd < before ? before - uusd : uusd - before, before),
            uusd < before ? "less" : "more", cli_usd(before, text, sizeof text));
    else
        html_cell(t, "%s", "");
}

/* A line with dollars, for something that is left out if there is none. */
static void add_extra(
    const json_t *r, struct html_table *t, const char *key, const char *name, const char *note)
{
    const int64_t uusd = cli_int(r, key, 0);
    if (uusd <= 0)
        return;
    html_row(t, false);
    html_cell(t, "%s", name);
    html_cell_usd(t, uusd);
    html_cell(t, "%s", note);
}

static void add_sums(const json_t *r, struct buf *out)
{
    const json_t *total = json_object_get(r, "total");
    const int64_t uusd = cli_int(total, "uusd", 0), on_demand = cli_int(total, "on_demand_uusd", 0),
                  lost = cli_int(json_object_get(total, "spent_uusd"), "lost", 0),
                  succeeded = cli_int(r, "jobs_succeeded", 0);
    char usd[32];
    struct html_table t;
    html_table(&t, out, "Sums of the week",
        (const char *const[]){"Figure", "Value", "Compared", NULL}, 1u | 4u);
    html_row(&t, false);
    html_cell(&t, "Spent");
    html_cell_usd(&t, uusd);
    add_more(r, &t, uusd);
    html_row(&t, false);
    html_cell(&t, "The same on-demand");
    html_cell_usd(&t, on_demand);
    if (on_demand > 0)
        html_cell(&t, "saved %.1f %%", percent(on_demand - uusd, on_demand));
    html_row(&t, false);
    html_cell(&t, "Lost to reclaims");
    html_cell_usd(&t, lost);
    html_cell(&t, "%.1f %%: repeated work; restores %s", percent(lost, uusd),
        cli_usd(cli_int(r, "restores_uusd", 0), usd, sizeof usd));
    add_extra(r, &t, "egress_uusd", "Data", "for checkpoints to and from a store elsewhere");
    add_extra(r, &t, "storage_uusd", "Checkpoints kept", "");
    html_row(&t, false);
    html_cell(&t, "Idle");
    html_cell_usd(&t, cli_int(r, "idle_uusd", 0));
    html_cell(&t, "%s",
        json_is_null(json_object_get(r, "team")) ? "unused nodes" : "unused nodes, of all teams");
    html_row(&t, false);
    html_cell(&t, "Jobs that ended");
    html_cell_int(&t, cli_int(r, "jobs_ended", 0));
    if (succeeded > 0)
        html_cell(&t, "%lld succeeded, %s each, including failed attempts", (long long)succeeded,
            cli_usd(uusd / succeeded, usd, sizeof usd));
    else
        html_cell(&t, "none succeeded");
    html_table_end(&t);
}

/* The sum of a week of `days`, from this day on. */
static int64_t sum_week(const json_t *days, size_t first, const char *key)
{
    int64_t sum = 0;
    for (size_t i = first; i < first + WEEK_DAYS && i < json_array_size(days); i++)
        sum += cli_int(json_array_get(days, i), key, 0);
    return sum;
}

static void add_weeks(const json_t *days, struct buf *out)
{
    const size_t n = json_array_size(days);
    int64_t most = 1;
    struct html_table t;
    for (size_t i = 0; i < n; i += WEEK_DAYS) {
        const int64_t spent = sum_week(days, i, "uusd"),
                      on_demand = sum_week(days, i, "on_demand_uusd");
        most = spent > most ? spent : most;
        most = on_demand > most ? on_demand : most;
    }
    html_card(out, "The last weeks");
    html_table(&t, out, "Spent in each week, and what it would have cost on-demand",
        (const char *const[]){
            "Week from", "Spent", "Spent, drawn", "On-demand", "On-demand, drawn", NULL},
        1u | 4u | 16u);
    for (size_t i = 0; i < n; i += WEEK_DAYS) {
        const int64_t spent = sum_week(days, i, "uusd"),
                      on_demand = sum_week(days, i, "on_demand_uusd");
        html_row(&t, false);
        html_cell(&t, "%s", cli_text(json_array_get(days, i), "day"));
        html_cell_usd(&t, spent);
        html_cell_bar(&t, (double)spent / (double)most, 1);
        html_cell_usd(&t, on_demand);
        html_cell_bar(&t, (double)on_demand / (double)most, 2);
    }
    html_table_end(&t);
    html_card_end(out);
}

static void add_days(const json_t *days, struct buf *out)
{
    const size_t n = json_array_size(days), first = n > WEEK_DAYS ? n - WEEK_DAYS : 0;
    struct html_table t;
    html_card(out, "Day by day");
    html_table(&t, out, "The days of this week",
        (const char *const[]){"Day", "Spent", "On-demand", NULL}, 1);
    for (size_t i = first; i < n; i++) {
        const json_t *d = json_array_get(days, i);
        html_row(&t, false);
        html_cell(&t, "%s", cli_text(d, "day"));
        html_cell_usd(&t, cli_int(d, "uusd", 0));
        html_cell_usd(&t, cli_int(d, "on_demand_uusd", 0));
    }
    html_table_end(&t);
    html_card_end(out);
}

static void add_lines(const json_t *lines, const char *title, const char *name, struct buf *out)
{
    struct html_table t;
    if (json_array_size(lines) == 0)
        return;
    html_card(out, title);
    html_table(&t, out, "The most expensive ones",
        (const char *const[]){name, "Spent", "On-demand", "Saved", "Lost", "Useful time", NULL}, 1);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *l = json_array_get(lines, i);
        const int64_t uusd = cli_int(l, "uusd", 0), on_demand = cli_int(l, "on_demand_uusd", 0);
        html_row(&t, false);
        html_cell(&t, "%s", *cli_text(l, "key") ? cli_text(l, "key") : "-");
        html_cell_usd(&t, uusd);
        html_cell_usd(&t, on_demand);
        html_cell_part(&t, (double)(on_demand - uusd), (double)on_demand);
        html_cell_usd(&t, cli_int(json_object_get(l, "spent_uusd"), "lost", 0));
        html_cell_part(&t, (double)cli_int(l, "useful_ms", 0), (double)cli_int(l, "total_ms", 0));
    }
    html_table_end(&t);
    html_card_end(out);
}

static void add_jobs(const json_t *jobs, struct buf *out)
{
    struct html_table t;
    html_card(out, "Most expensive ended jobs");
    if (json_array_size(jobs) == 0) {
        html_p(out, "hint", "None ended.");
        html_card_end(out);
        return;
    }
    html_table(&t, out, "Jobs that ended in this week",
        (const char *const[]){"Job", "Name", "User", "Team", "End", "Cost", "On-demand",
            "Done again", "Reclaims", NULL},
        1u | 2u | 4u | 8u | 16u);
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *j = json_array_get(jobs, i);
        html_row(&t, false);
        html_cell(&t, "%s", cli_text(j, "ref"));
        html_cell(&t, "%s", cli_text(j, "name"));
        html_cell(&t, "%s", cli_text(j, "user"));
        html_cell(&t, "%s", cli_text(j, "team"));
        html_cell(&t, "%s", cli_text(j, "end"));
        html_cell_usd(&t, cli_int(j, "cost_uusd", 0));
        html_cell_usd(&t, cli_int(j, "on_demand_uusd", 0));
        html_cell_ms(&t, cli_int(j, "lost_ms", 0));
        html_cell_int(&t, cli_int(j, "reclaims", 0));
    }
    html_table_end(&t);
    html_card_end(out);
}

static void add_budgets(const json_t *budgets, struct buf *out)
{
    struct html_table t;
    if (json_array_size(budgets) == 0)
        return;
    html_card(out, "Budgets");
    html_table(&t, out, "What is left of each",
        (const char *const[]){
            "Budget", "Period", "Spent", "Set aside", "Left", "Cap", "State", NULL},
        1u | 2u | 64u);
    for (size_t i = 0; i < json_array_size(budgets); i++) {
        const json_t *b = json_array_get(budgets, i);
        html_row(&t, false);
        html_cell(&t, "%s", cli_text(b, "name"));
        html_cell(&t, "%s", cli_text(b, "period"));
        html_cell_usd(&t, cli_int(b, "spent_uusd", 0));
        html_cell_usd(&t, cli_int(b, "aside_uusd", 0));
        html_cell_usd(&t, cli_int(b, "left_uusd", 0));
        html_cell_usd(&t, cli_int(b, "cap_uusd", 0));
        html_cell(&t, "%s", cli_text(b, "state"));
    }
    html_table_end(&t);
    html_card_end(out);
}

static void add_advice(const json_t *advice, struct buf *out)
{
    struct html_table t;
    html_card(out, "Costs that you can avoid");
    if (json_array_size(advice) == 0) {
        html_p(out, "hint", "No running job holds unused resources.");
        html_card_end(out);
        return;
    }
    html_table(&t, out, "What holds unused resources now",
        (const char *const[]){"What", "Whose", "An hour", "Found", "Remedy", NULL},
        1u | 2u | 8u | 16u);
    for (size_t i = 0; i < json_array_size(advice); i++) {
        const json_t *a = json_array_get(advice, i);
        const bool is_job = json_is_integer(json_object_get(a, "job"));
        html_row(&t, false);
        html_cell(&t, is_job ? "job %s" : "node %s", cli_text(a, is_job ? "ref" : "name"));
        html_cell(&t, "%s", cli_text(a, "user"));
        html_cell_usd(&t, cli_int(a, "waste_uusd_per_hour", 0));
        html_cell(&t, "%s", cli_text(a, "text"));
        html_cell(&t, "%s", cli_text(a, "remedy"));
    }
    html_table_end(&t);
    html_card_end(out);
}

/* Not the command line that was given: a URL of --post may be a secret. */
static char *command_of(const json_t *report, const char *team)
{
    char week[16];
    snprintf(week, sizeof week, "%.10s", cli_text(report, "from"));
    const char *words[] = {"cost", "--weekly-report", "--week", week, "--team", team};
    return page_command(team ? 6 : 4, words);
}

void weekly_page_write(const json_t *report, enum page_form form, struct wall now, struct buf *out)
{
    const char *team = cli_string(json_object_get(report, "team"));
    const struct wall to = cli_time(report, "to");
    const json_t *days = json_object_get(report, "days");
    char last[TIME_ISO_MAX] = "";
    if (wall_is_set(to))
        time_format_iso((struct wall){to.ms - DAY_MS}, last);
    char *lede = mem_printf("%s%s, %.10s to %.10s (UTC)", team ? "Team " : "All teams",
        team ? team : "", cli_text(report, "from"), last);
    page_begin(out, form, "What was spent", lede);
    free(lede);
    html_card(out, "The week");
    add_sums(report, out);
    html_card_end(out);
    if (json_array_size(days) > 1) {
        add_weeks(days, out);
        add_days(days, out);
    }
    add_lines(json_object_get(report, "users"), "By user", "User", out);
    add_lines(json_object_get(report, "projects"), "By project", "Project", out);
    add_lines(json_object_get(report, "pools"), "By pool", "Pool", out);
    add_jobs(json_object_get(report, "jobs"), out);
    add_budgets(json_object_get(report, "budgets"), out);
    add_advice(json_object_get(report, "advice"), out);
    char *command = command_of(report, team);
    page_end(out, now, command, NULL, NULL);
    free(command);
}
