/* SPDX-License-Identifier: Apache-2.0
 *
 * belay list
 */
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

enum { VAL_ALL = 1, VAL_USER, VAL_LIMIT };

struct choice {
    bool all;
    char user[64];
    int64_t limit;
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct choice *c = ctx;
    struct err e;
    if (val == VAL_ALL)
        c->all = true;
    else if (val == VAL_USER)
        STR_COPY(c->user, arg);
    else if (str_to_i64(arg, 1, 200, "--limit", &c->limit, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

static void print_job(struct table *t, const json_t *job)
{
    char progress[48] = "-", money[32], age[32];
    int64_t done = cli_int(job, "progress", -1), total = cli_int(job, "progress_total", -1);
    if (done >= 0 && total > 0)
        snprintf(progress, sizeof(progress), "%lld/%lld", (long long)done, (long long)total);
    else if (done >= 0)
        snprintf(progress, sizeof(progress), "%lld", (long long)done);
    bool ended = str_eq(cli_text(job, "state"), "ended");
    table_row(t);
    table_cell(t, "%s", cli_text(job, "ref"));
    table_cell(t, "%s", cli_text(job, "name"));
    table_cell(t, "%s", cli_text(job, "user"));
    table_cell(t, "%s", cli_text(job, ended ? "end" : "state"));
    table_cell(t, "%lld", (long long)cli_int(job, "attempts", 0));
    table_cell(t, "%lld", (long long)cli_int(job, "reclaims", 0));
    table_cell(t, "%s", progress);
    table_cell(t, "%s", cli_text(job, "node"));
    table_cell(t, "%s", cli_usd(cli_int(job, "cost_uusd", 0), money, sizeof(money)));
    table_cell(t, "%s", cli_ago(job, "submitted_at", age, sizeof(age)));
}

static void print_jobs(const json_t *jobs, const struct choice *c)
{
    struct table *t = table_create();
    size_t i;
    json_t *job;
    table_column(t, "ID", true);
    table_column(t, "NAME", false);
    table_column(t, "USER", false);
    table_column(t, "STATE", false);
    table_column(t, "ATTEMPTS", true);
    table_column(t, "RECLAIMS", true);
    table_column(t, "PROGRESS", true);
    table_column(t, "NODE", false);
    table_column(t, "COST", true);
    table_column(t, "AGE", true);
    json_array_foreach(jobs, i, job) print_job(t, job);
    table_print(t);
    if (json_array_size(jobs) == 0)
        cli_say_empty(
            c->all ? "no jobs" : "no jobs that have not ended (belay list -a lists those that have, too)");
}

static int run(int argc, const char **argv)
{
    struct choice c = {.limit = 50};
    struct cli_args a;
    int rc = cli_parse(&verb_list, argc, argv, false, on_option, &c, &a);
    if (rc == 0) {
        struct buf path = {0};
        buf_printf(&path, "/api/v1/jobs?state=%s&limit=%lld", c.all ? "all" : "active", (long long)c.limit);
        if (c.user[0]) {
            buf_adds(&path, "&user=");
            str_url_encode(&path, c.user, strlen(c.user));
        }
        json_t *v = cli_get(buf_str(&path));
        if (v && a.json)
            cli_print_json(v);
        else if (v)
            print_jobs(json_object_get(v, "jobs"), &c);
        rc = v ? CLI_OK : CLI_FAILED;
        json_decref(v);
        buf_deinit(&path);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"all", 'a', POPT_ARG_NONE, NULL, VAL_ALL, "ended jobs too", NULL},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "only this user's", "NAME"},
    {"limit", 'n', POPT_ARG_STRING, NULL, VAL_LIMIT, "at most this many, the newest (default 50)", "N"},
    POPT_TABLEEND,
};

const struct verb verb_list = {"list", CLI_NO_WORDS, "list jobs", run, options, false};
