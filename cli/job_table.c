/* SPDX-License-Identifier: Apache-2.0
 *
 * See job_table.h.
 */
#include "cli/job_table.h"

#include "base/str.h"
#include <stdio.h>

static void print_job(struct table *t, const json_t *job, bool why)
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
    if (why)
        table_cell(t, "%s", cli_text(json_object_get(job, "why"), "text"));
}

void job_table(const json_t *jobs, bool why)
{
    static const struct {
        const char *title;
        bool right;
    } columns[] = {{"ID", true}, {"NAME", false}, {"USER", false}, {"STATE", false},
        {"ATTEMPTS", true}, {"RECLAIMS", true}, {"PROGRESS", true}, {"NODE", false}, {"COST", true},
        {"AGE", true}, {"WHY", false}};
    struct table *t = table_create();
    size_t i;
    json_t *job;
    for (i = 0; i < sizeof(columns) / sizeof(columns[0]) - !why; i++)
        table_column(t, columns[i].title, columns[i].right);
    json_array_foreach((json_t *)(uintptr_t)jobs, i, job) print_job(t, job, why);
    table_print(t);
}
