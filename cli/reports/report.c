/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests the parts of a report from belayd, combines them, and prints them as text, JSON, or a
 * page (report.html) with the same content.
 */
#include "cli/reports/report.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/html/weekly_page.h"
#include "cli/list_table.h"
#include "cli/reports/advise.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WEEK_MS (7 * DAY_MS)
#define HISTORY_WEEKS 8
#define LINES_SHOWN 10
#define JOBS_SHOWN "10"

struct wall report_last_week(struct wall now)
{
    int64_t day = now.ms / DAY_MS, monday = day - (day + 3) % 7;
    return (struct wall){monday * DAY_MS - WEEK_MS};
}

/* ---- belayd's data ---- */

struct report_source {
    struct client *client;
    const struct report_options *o;
    struct err e;
    int rc;
};

/* GET of path for a period (none if to_ms is 0); of_team: only for the report's team, if it has
 * one. NULL after any failure, also an earlier one. */
static json_t *get_period(
    struct report_source *a, const char *path, int64_t from_ms, int64_t to_ms, bool of_team)
{
    struct buf text = {0};
    char iso[TIME_ISO_MAX];
    json_t *v = NULL;
    if (a->rc != 0)
        return NULL;
    buf_adds(&text, path);
    if (to_ms > from_ms) {
        cli_add_parameter(&text, "from", (time_format_iso((struct wall){from_ms}, iso), iso));
        cli_add_parameter(&text, "to", (time_format_iso((struct wall){to_ms}, iso), iso));
    }
    if (of_team && a->o->team)
        cli_add_parameter(&text, "team", a->o->team);
    a->rc = client_json(a->client, "GET", buf_str(&text), NULL, &v, &a->e);
    buf_deinit(&text);
    return a->rc == 0 ? v : NULL;
}

static json_t *get_week(struct report_source *a, const char *path, bool of_team)
{
    return get_period(a, path, a->o->from.ms, a->o->from.ms + WEEK_MS, of_team);
}

/* ---- combining ---- */

static int by_cost(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    int64_t l = cli_int(*x, "uusd", 0), r = cli_int(*y, "uusd", 0);
    return l > r ? -1 : l < r;
}

/* The LINES_SHOWN most expensive rows. with_unowned: also the row of costs that belong to no user,
 * project or pool. */
/* The costs of no one: boot, idle nodes. */
static bool is_unowned(const char *key)
{
    return !*key || str_eq(key, "-") || str_eq(key, "(idle, owned)");
}

static json_t *most_expensive(const json_t *reply, bool with_unowned)
{
    const json_t *lines = json_object_get(reply, "lines"), *l;
    size_t i, n = 0;
    const json_t **sorted = mem_array(json_array_size(lines) + 1, sizeof(*sorted));
    json_t *list = json_array();
    json_array_foreach(lines, i, l)
    {
        if (with_unowned || !is_unowned(cli_text(l, "key")))
            sorted[n++] = l;
    }
    qsort(sorted, n, sizeof(*sorted), by_cost);
    for (i = 0; i < n && i < LINES_SHOWN; i++)
        json_array_append(list, (json_t *)(uintptr_t)sorted[i]);
    free(sorted);
    return list;
}

/* A row for each day, also for days without cost. */
static json_t *days_json(const json_t *reply, int64_t from_ms, int64_t to_ms)
{
    const json_t *lines = json_object_get(reply, "lines");
    json_t *list = json_array();
    size_t next = 0;
    for (int64_t at = from_ms; at < to_ms; at += DAY_MS) {
        char iso[TIME_ISO_MAX];
        time_format_iso((struct wall){at}, iso);
        iso[10] = '\0';
        const json_t *l = json_array_get(lines, next);
        bool is_there = l && str_eq(cli_text(l, "key"), iso);
        next += is_there;
        json_array_append_new(
            list, json_pack("{s:s,s:I,s:I}", "day", iso, "uusd",
                      (json_int_t)(is_there ? cli_int(l, "uusd", 0) : 0), "on_demand_uusd",
                      (json_int_t)(is_there ? cli_int(l, "on_demand_uusd", 0) : 0)));
    }
    return list;
}

/* For a team: only the budgets that match it. */
static json_t *budgets_json(const json_t *reply, const char *team)
{
    json_t *list = json_array(), *b;
    size_t i;
    json_array_foreach(json_object_get(reply, "budgets"), i, b)
    {
        if (!team || str_eq(cli_text(json_object_get(b, "match"), "team"), team))
            json_array_append(list, b);
    }
    return list;
}

static bool has_key(const json_t *lines, const char *key)
{
    const json_t *l;
    size_t i;
    json_array_foreach(lines, i, l)
    {
        if (str_eq(cli_text(l, "key"), key))
            return true;
    }
    return false;
}

/* For a team: only advice to users who spent something for it. */
static json_t *advice_json(const json_t *reply, const json_t *users, const char *team)
{
    json_t *list = json_array(), *item;
    size_t i;
    json_array_foreach(json_object_get(reply, "items"), i, item)
    {
        if ((!team || has_key(json_object_get(users, "lines"), cli_text(item, "user"))) &&
            json_array_size(list) < LINES_SHOWN)
            json_array_append(list, item);
    }
    return list;
}

/* The total spending on one kind of time. */
static int64_t spent_on(const json_t *reply, const char *kind)
{
    return cli_int(json_object_get(json_object_get(reply, "total"), "spent_uusd"), kind, 0);
}

static json_t *make_report(struct report_source *a)
{
    const struct report_options *o = a->o;
    int64_t from = o->from.ms, to = from + WEEK_MS, first = to - HISTORY_WEEKS * WEEK_MS;
    char iso_from[TIME_ISO_MAX], iso_to[TIME_ISO_MAX];
    json_t *users = get_week(a, "/api/v1/cost?by=user", true),
           *all = get_week(a, "/api/v1/cost?by=kind", false);
    json_t *before = get_period(a, "/api/v1/cost?by=kind", from - WEEK_MS, from, true),
           *days = get_period(a, "/api/v1/cost?by=day", first, to, true);
    json_t *projects = get_week(a, "/api/v1/cost?by=project", true),
           *pools = get_week(a, "/api/v1/cost?by=pool", true);
    json_t *jobs = get_week(a, "/api/v1/cost/jobs?limit=" JOBS_SHOWN, true),
           *budgets = get_period(a, "/api/v1/budgets", 0, 0, false);
    json_t *advice = NULL, *report = NULL;
    if (a->rc == 0)
        a->rc = advise_get(a->client, NULL, &advice, &a->e);
    if (a->rc == 0) {
        const json_t *total = json_object_get(users, "total");
        time_format_iso(o->from, iso_from);
        time_format_iso((struct wall){to}, iso_to);
        report = json_pack("{s:o,s:s,s:s,s:O,s:I,s:I,s:O,s:O,s:O}", "team",
            o->team ? json_string(o->team) : json_null(), "from", iso_from, "to", iso_to, "total",
            total, "before_uusd", (json_int_t)cli_int(json_object_get(before, "total"), "uusd", 0),
            "idle_uusd", (json_int_t)spent_on(all, "idle"), "jobs_ended",
            json_object_get(total, "jobs"), "jobs_succeeded", json_object_get(total, "succeeded"),
            "jobs", json_object_get(jobs, "jobs"));
        json_object_set_new(
            report, "restores_uusd", json_integer((json_int_t)spent_on(users, "restore")));
        json_object_set_new(
            report, "egress_uusd", json_integer((json_int_t)spent_on(users, "egress")));
        json_object_set_new(
            report, "storage_uusd", json_integer((json_int_t)spent_on(users, "storage")));
        json_object_set_new(report, "users", most_expensive(users, false));
        json_object_set_new(report, "projects", most_expensive(projects, false));
        json_object_set_new(report, "pools", most_expensive(pools, true));
        json_object_set_new(report, "days", days_json(days, first, to));
        json_object_set_new(report, "budgets", budgets_json(budgets, o->team));
        json_object_set_new(report, "advice", advice_json(advice, users, o->team));
    }
    json_t *const parts[] = {users, all, before, days, projects, pools, jobs, budgets, advice};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        json_decref(parts[i]);
    return report;
}

/* ---- as text ---- */

static double percent(int64_t part, int64_t whole)
{
    return whole != 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void print_sums(const json_t *r, FILE *out)
{
    const json_t *total = json_object_get(r, "total");
    char a[32], b[32];
    int64_t uusd = cli_int(total, "uusd", 0), on_demand = cli_int(total, "on_demand_uusd", 0),
            before = cli_int(r, "before_uusd", 0);
    int64_t lost = cli_int(json_object_get(total, "spent_uusd"), "lost", 0),
            restores = cli_int(r, "restores_uusd", 0);
    int64_t succeeded = cli_int(r, "jobs_succeeded", 0);
    fprintf(out, "spent               %s", cli_usd(uusd, a, sizeof a));
    if (before > 0)
        fprintf(out, ", %.1f %% %s than the week before (%s)", fabs(percent(uusd - before, before)),
            uusd < before ? "less" : "more", cli_usd(before, b, sizeof b));
    fprintf(out, "\nthe same on-demand  %s", cli_usd(on_demand, a, sizeof a));
    if (on_demand > 0)
        fprintf(out, ", saved %.1f %%", percent(on_demand - uusd, on_demand));
    fprintf(out, "\nlost to reclaims    %s, %.1f %%: repeated work; restores %s\n",
        cli_usd(lost, a, sizeof a), percent(lost, uusd), cli_usd(restores, b, sizeof b));
    if (cli_int(r, "egress_uusd", 0) > 0)
        fprintf(out, "data                %s for checkpoints to and from a store elsewhere\n",
            cli_usd(cli_int(r, "egress_uusd", 0), a, sizeof a));
    if (cli_int(r, "storage_uusd", 0) > 0)
        fprintf(
            out, "checkpoints kept    %s\n", cli_usd(cli_int(r, "storage_uusd", 0), a, sizeof a));
    fprintf(out, "idle                %s, unused nodes%s\n",
        cli_usd(cli_int(r, "idle_uusd", 0), a, sizeof a),
        json_is_null(json_object_get(r, "team")) ? "" : ", of all teams");
    fprintf(out, "jobs that ended     %lld", (long long)cli_int(r, "jobs_ended", 0));
    if (succeeded > 0)
        fprintf(out, ", %lld succeeded, %s each, including failed attempts", (long long)succeeded,
            cli_usd(uusd / succeeded, a, sizeof a));
    fputc('\n', out);
}

static void print_lines(const json_t *lines, const char *title, FILE *out)
{
    const json_t *l;
    size_t i;
    if (json_array_size(lines) == 0)
        return;
    fputc('\n', out);
    struct table *t = table_create();
    table_column(t, title, false);
    static const char *const columns[] = {"SPENT", "ON-DEMAND", "SAVED", "LOST", "USEFUL"};
    for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        table_column(t, columns[i], true);
    json_array_foreach(lines, i, l)
    {
        char text[32];
        int64_t uusd = cli_int(l, "uusd", 0), on_demand = cli_int(l, "on_demand_uusd", 0);
        table_row(t);
        table_cell(t, "%s", cli_text(l, "key"));
        table_cell(t, "%s", cli_usd(uusd, text, sizeof text));
        table_cell(t, "%s", cli_usd(on_demand, text, sizeof text));
        table_cell(t, "%.0f %%", percent(on_demand - uusd, on_demand));
        table_cell(t, "%s",
            cli_usd(cli_int(json_object_get(l, "spent_uusd"), "lost", 0), text, sizeof text));
        table_cell(t, "%.0f %%", percent(cli_int(l, "useful_ms", 0), cli_int(l, "total_ms", 0)));
    }
    table_print_to(t, out);
}

static void print_advice(const json_t *advice, FILE *out)
{
    const json_t *a;
    size_t i;
    fputs("\nCosts that you can avoid:\n", out);
    if (json_array_size(advice) == 0)
        fputs("  no running job holds unused resources\n", out);
    json_array_foreach(advice, i, a)
    {
        char text[32];
        if (json_is_integer(json_object_get(a, "job")))
            fprintf(out, "  job %s of %s: ", cli_text(a, "ref"), cli_text(a, "user"));
        else
            fprintf(out, "  node %s: ", cli_text(a, "name"));
        fprintf(out, "%s, %s an hour. %s\n", cli_text(a, "text"),
            cli_usd(cli_int(a, "waste_uusd_per_hour", 0), text, sizeof text),
            cli_text(a, "remedy"));
    }
}

static void print_text(const json_t *r, FILE *out)
{
    static const struct list_column job_columns[] = {{"JOB", "ref", COLUMN_TEXT},
        {"NAME", "name", COLUMN_TEXT}, {"USER", "user", COLUMN_TEXT}, {"END", "end", COLUMN_TEXT},
        {"COST", "cost_uusd", COLUMN_USD}, {"ON-DEMAND", "on_demand_uusd", COLUMN_USD},
        {"DONE AGAIN", "lost_ms", COLUMN_DURATION}, {"RECLAIMS", "reclaims", COLUMN_INT},
        {NULL, NULL, COLUMN_TEXT}};
    static const struct list_column budget_columns[] = {{"BUDGET", "name", COLUMN_TEXT},
        {"PERIOD", "period", COLUMN_TEXT}, {"SPENT", "spent_uusd", COLUMN_USD},
        {"SET ASIDE", "aside_uusd", COLUMN_USD}, {"LEFT", "left_uusd", COLUMN_USD},
        {"CAP", "cap_uusd", COLUMN_USD}, {"STATE", "state", COLUMN_TEXT},
        {NULL, NULL, COLUMN_TEXT}};
    const char *team = cli_string(json_object_get(r, "team"));
    struct wall to = cli_time(r, "to");
    char last[TIME_ISO_MAX] = "";
    if (wall_is_set(to))
        time_format_iso((struct wall){to.ms - DAY_MS}, last);
    fprintf(out, "belay: what %s%s spent from %.10s to %.10s (UTC)\n\n",
        team ? "team " : "all teams", team ? team : "", cli_text(r, "from"), last);
    print_sums(r, out);
    print_lines(json_object_get(r, "users"), "USER", out);
    print_lines(json_object_get(r, "projects"), "PROJECT", out);
    print_lines(json_object_get(r, "pools"), "POOL", out);
    if (json_array_size(json_object_get(r, "jobs")) > 0) {
        fputs("\nMost expensive ended jobs:\n", out);
        list_table_to(json_object_get(r, "jobs"), job_columns, out);
    }
    if (json_array_size(json_object_get(r, "budgets")) > 0) {
        fputs("\nBudgets:\n", out);
        list_table_to(json_object_get(r, "budgets"), budget_columns, out);
    }
    print_advice(json_object_get(r, "advice"), out);
}

/* ---- main ---- */

static int write_page(const json_t *report, const struct report_options *o)
{
    struct buf page = {0};
    weekly_page_write(report, PAGE_FILE, clock_wall(&clock_system), &page);
    return page_save(&page, o->html);
}

/* ---- sending ---- */

/* The report as text. The caller frees it. */
static int text_of(const json_t *report, char **ret_text, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return err_errno(e, errno, "formatting the report");
    print_text(report, out);
    fclose(out);
    *ret_text = text;
    return 0;
}

static int send_to(struct report_source *a, const json_t *report, const char *text, const char *key,
    const char *to)
{
    struct buf page = {0};
    const char *team = a->o->team;
    char *subject = mem_printf("what %s%s spent from %.10s on", team ? "team " : "all teams",
        team ? team : "", cli_text(report, "from"));
    json_t *reply = NULL, *body = json_pack("{s:s,s:o,s:o}", key, to, "subject", json_text(subject),
                              "text", json_text(text));
    weekly_page_write(report, PAGE_MAIL, clock_wall(&clock_system), &page);
    json_object_set_new(body, "html", json_text(buf_str(&page)));
    a->rc = client_json(a->client, "POST", "/api/v1/cost/report", body, &reply, &a->e);
    if (a->rc == 0)
        printf("sent to %s\n", cli_text(reply, "told"));
    json_decref(reply);
    json_decref(body);
    buf_deinit(&page);
    free(subject);
    return a->rc;
}

static void send_report(struct report_source *a, const json_t *report)
{
    char *text = NULL;
    a->rc = text_of(report, &text, &a->e);
    if (a->rc == 0 && a->o->mail)
        send_to(a, report, text, "mail", a->o->mail);
    if (a->rc == 0 && a->o->post)
        send_to(a, report, text, "url", a->o->post);
    free(text);
}

int report_run(const struct report_options *o)
{
    struct report_source a = {.o = o};
    json_t *report = NULL;
    bool is_sent = o->mail || o->post;
    a.rc = client_create(&a.client, &a.e);
    if (a.rc == 0) {
        report = make_report(&a);
        if (report && is_sent)
            send_report(&a, report);
        client_destroy(a.client);
    }
    if (a.rc != 0) {
        cli_error("%s", a.e.text);
        json_decref(report);
        return CLI_FAILED;
    }
    if (o->json)
        cli_print_json(report);
    else if (!is_sent)
        print_text(report, stdout);
    int rc = o->html ? write_page(report, o) : CLI_OK;
    json_decref(report);
    return rc;
}
