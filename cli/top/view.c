/* SPDX-License-Identifier: Apache-2.0
 *
 * See view.h.
 */
#include "cli/top/view.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define WIDE 132      /* columns from which all of a job's are shown */
#define NAME_WIDTH 16 /* of names in fewer columns */

static int64_t part(const json_t *o, const char *what, const char *which)
{
    return cli_int(json_object_get(o, what), which, 0);
}

void view_head(const json_t *s)
{
    char now[32], cost[32], full[32];
    time_t t = time(NULL);
    struct tm tm;
    int64_t uusd_h = cli_int(s, "uusd_h", 0), on_demand = cli_int(s, "on_demand_uusd_h", 0);
    strftime(now, sizeof(now), "%H:%M:%S", localtime_r(&t, &tm));
    printf("belay %s, %s\n", cli_text(s, "cluster"), now);
    printf("jobs   %lld running, %lld pending (%lld of them not eligible yet)\n",
        (long long)part(s, "jobs", "running"), (long long)part(s, "jobs", "pending"),
        (long long)part(s, "jobs", "waiting"));
    printf("nodes  %lld up, %lld draining, %lld being reclaimed, %lld lost, %lld coming\n",
        (long long)part(s, "nodes", "up"), (long long)part(s, "nodes", "draining"),
        (long long)part(s, "nodes", "noticed"), (long long)part(s, "nodes", "lost"),
        (long long)cli_int(s, "coming", 0));
    printf("cpus   %lld of %lld, gpus %lld of %lld, memory %lld of %lld GiB\n",
        (long long)part(s, "cpus", "used"), (long long)part(s, "cpus", "total"),
        (long long)part(s, "gpus", "used"), (long long)part(s, "gpus", "total"),
        (long long)part(s, "memory_mib", "used") >> 10,
        (long long)part(s, "memory_mib", "total") >> 10);
    const json_t *usage = json_object_get(s, "usage");
    printf("in use %.1f cpus, %lld GiB of memory\n", (double)cli_int(usage, "cpu_milli", 0) / 1000,
        (long long)cli_int(usage, "memory_bytes", 0) >> 30);
    printf("cost   %s an hour", cli_usd(uusd_h, cost, sizeof(cost)));
    if (on_demand > 0)
        printf(", %s on demand: %s", cli_usd(on_demand, full, sizeof(full)),
            cli_saved(uusd_h, on_demand, now, sizeof(now)));
    puts("\n");
}

static const char *memory_text(int64_t bytes, char *out, size_t size)
{
    str_format_bytes((uint64_t)(bytes > 0 ? bytes : 0), out, size);
    return out;
}

static int64_t count_nodes(const json_t *pool)
{
    const char *state;
    json_t *n;
    int64_t all = 0;
    json_object_foreach(json_object_get(pool, "nodes"), state, n) all += json_integer_value(n);
    return all;
}

void view_pools(const json_t *pools)
{
    struct table *t = table_create();
    size_t i;
    json_t *p;
    static const char *const titles[] = {
        "POOL", "NODES", "COMING", "JOBS", "CPUS", "IN USE", "MEMORY", "GPUS", "COST/H", NULL};
    for (i = 0; titles[i]; i++)
        table_column(t, titles[i], i > 0);
    json_array_foreach(pools, i, p)
    {
        char cost[32], memory[32];
        table_row(t);
        table_cell(t, "%s", cli_text(p, "pool"));
        table_cell(t, "%lld", (long long)count_nodes(p));
        table_cell(t, "%lld", (long long)cli_int(p, "coming", 0));
        table_cell(t, "%lld", (long long)cli_int(p, "jobs", 0));
        table_cell(t, "%lld/%lld", (long long)part(p, "cpus", "used"),
            (long long)part(p, "cpus", "total"));
        table_cell(t, "%.1f", (double)part(p, "usage", "cpu_milli") / 1000);
        table_cell(t, "%s", memory_text(part(p, "usage", "memory_bytes"), memory, sizeof(memory)));
        table_cell(t, "%lld/%lld", (long long)part(p, "gpus", "used"),
            (long long)part(p, "gpus", "total"));
        table_cell(t, "%s", cli_usd(cli_int(p, "uusd_h", 0), cost, sizeof(cost)));
    }
    table_print(t);
    putchar('\n');
}

static void progress_text(const json_t *job, char *out, size_t size)
{
    int64_t done = cli_int(job, "progress", -1), total = cli_int(job, "progress_total", -1);
    if (done < 0)
        snprintf(out, size, "-");
    else if (total > 0)
        snprintf(out, size, "%lld/%lld %3.0f %%", (long long)done, (long long)total,
            100.0 * (double)done / (double)total);
    else
        snprintf(out, size, "%lld", (long long)done);
}

/* CPU use; memory use now, and if wide its maximum, and the request. "-" if its agents have not
 * reported (yet). */
static void usage_cells(struct table *t, const json_t *job, int64_t nodes, bool wide)
{
    const json_t *u = json_object_get(job, "usage");
    char now[32], peak[32], asked[32] = "-";
    int64_t requested_mib = cli_int(job, "memory_mib", 0) * nodes;
    if (!json_is_object(u)) {
        table_cell(t, "-");
        table_cell(t, "-");
        return;
    }
    if (requested_mib > 0)
        memory_text(requested_mib << 20, asked, sizeof(asked));
    table_cell(t, "%lld %%",
        (long long)(cli_int(u, "cpu_milli", 0) / (10 * cli_int(job, "cpus", 1) * nodes)));
    memory_text(cli_int(u, "memory_bytes", 0), now, sizeof(now));
    if (wide)
        table_cell(t, "%s/%s/%s", now,
            memory_text(cli_int(u, "memory_peak_bytes", 0), peak, sizeof(peak)), asked);
    else
        table_cell(t, "%s", now);
}

/* A name, shortened where there are few columns. */
static void name_cell(struct table *t, const json_t *job, const char *key, bool wide)
{
    char text[NAME_WIDTH + 1];
    if (wide) {
        table_cell(t, "%s", cli_text(job, key));
        return;
    }
    str_shorten(text, sizeof(text), cli_text(job, key));
    table_cell(t, "%s", text);
}

static void print_job(struct table *t, const json_t *job, bool wide)
{
    char progress[64], started[32], saved[32], cost[32];
    int64_t nodes = cli_int(job, "ranks", 1);
    progress_text(job, progress, sizeof(progress));
    table_row(t);
    table_cell(t, "%s", cli_text(job, "ref"));
    name_cell(t, job, "name", wide);
    name_cell(t, job, "user", wide);
    if (wide)
        table_cell(t, nodes > 1 ? "%s +%lld" : "%s", cli_text(job, "node"), (long long)nodes - 1);
    table_cell(t, "%lld", (long long)(cli_int(job, "cpus", 1) * nodes));
    usage_cells(t, job, nodes, wide);
    if (wide)
        table_cell(t, "%lld", (long long)(cli_int(job, "gpus", 0) * nodes));
    table_cell(t, "%s", cli_ago(job, "started_at", started, sizeof(started)));
    table_cell(t, "%s", progress);
    if (wide)
        table_cell(t, "%s",
            cli_ago(json_object_get(job, "last_checkpoint"), "saved_at", saved, sizeof(saved)));
    table_cell(t, "%s", cli_usd(cli_int(job, "cost_uusd", 0), cost, sizeof(cost)));
}

void view_jobs(json_t *const *jobs, size_t n, int columns)
{
    static const struct {
        const char *title;
        bool right, is_wide;
    } all[] = {{"ID", true, false}, {"NAME", false, false}, {"USER", false, false},
        {"NODE", false, true}, {"CPUS", true, false}, {"CPU", true, false}, {NULL, true, false},
        {"GPUS", true, true}, {"STARTED", true, false}, {"PROGRESS", true, false},
        {"SAVED", true, true}, {"COST", true, false}};
    struct table *t = table_create();
    bool wide = columns == 0 || columns >= WIDE;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (wide || !all[i].is_wide)
            table_column(t,
                all[i].title ? all[i].title
                : wide       ? "MEMORY/PEAK/ASKED"
                             : "MEMORY",
                all[i].right);
    for (size_t i = 0; i < n; i++)
        print_job(t, jobs[i], wide);
    table_print(t);
}

/* ---- selecting and sorting ---- */

static bool has_text(const json_t *job, const char *text)
{
    static const char *const keys[] = {"ref", "name", "user", "team", "node", "pool"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcasestr(cli_text(job, keys[i]), text))
            return true;
    return false;
}

static int64_t number_of(const json_t *job, enum view_order order)
{
    const json_t *u = json_object_get(job, "usage");
    switch (order) {
    case VIEW_BY_CPU:
        return cli_int(u, "cpu_milli", -1);
    case VIEW_BY_MEMORY:
        return cli_int(u, "memory_bytes", -1);
    case VIEW_BY_COST:
        return cli_int(job, "cost_uusd", 0);
    case VIEW_BY_TIME: /* the longest first */
        return wall_is_set(cli_time(job, "started_at")) ? -cli_time(job, "started_at").ms
                                                        : INT64_MIN;
    default:
        return cli_int(job, "id", 0);
    }
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct view_choice *v = ctx;
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int64_t i = number_of(x, v->order), j = number_of(y, v->order);
    int c = v->order == VIEW_BY_NAME ? strcmp(cli_text(x, "name"), cli_text(y, "name"))
                                     : (i < j) - (i > j);
    if (c == 0)
        c = cli_int(x, "id", 0) < cli_int(y, "id", 0) ? 1 : -1;
    return v->reverse ? -c : c;
}

size_t view_select(const json_t *jobs, const struct view_choice *v, json_t ***ret_selected)
{
    size_t n = 0, i;
    json_t *job, **list = mem_array(json_array_size(jobs) + 1, sizeof(*list));
    json_array_foreach((json_t *)(uintptr_t)jobs, i, job)
    {
        if (!v->filter[0] || has_text(job, v->filter))
            list[n++] = job;
    }
    qsort_r(list, n, sizeof(*list), compare, (void *)(uintptr_t)v);
    *ret_selected = list;
    return n;
}
