/* SPDX-License-Identifier: Apache-2.0
 *
 * belay top: the cluster, its pools and running jobs; refreshed repeatedly on a terminal.
 */
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define JOBS_DEFAULT 200 /* without a terminal */
#define EVERY_DEFAULT_S 2
#define EVERY_MAX_S 3600

enum { VAL_ONCE = 1, VAL_EVERY, VAL_USER };

struct choice {
    bool once;
    int64_t every_s;
    struct buf user; /* "&user=ann" */
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct choice *c = ctx;
    struct err e;
    if (val == VAL_ONCE) {
        c->once = true;
    } else if (val == VAL_USER) {
        buf_adds(&c->user, "&user=");
        str_url_encode(&c->user, arg, strlen(arg));
    } else if (str_to_i64(arg, 1, EVERY_MAX_S, "--every", &c->every_s, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* ---- one screen ---- */

static int64_t part(const json_t *o, const char *what, const char *which)
{
    return cli_int(json_object_get(o, what), which, 0);
}

static void print_head(const json_t *s)
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

static void print_pools(const json_t *pools)
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

/* CPU use; memory use now, its maximum, and the request. "-" if its agents have not reported (yet).
 */
static void usage_cells(struct table *t, const json_t *job, int64_t nodes)
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
    table_cell(t, "%s/%s/%s", memory_text(cli_int(u, "memory_bytes", 0), now, sizeof(now)),
        memory_text(cli_int(u, "memory_peak_bytes", 0), peak, sizeof(peak)), asked);
}

static void print_jobs(const json_t *jobs)
{
    struct table *t = table_create();
    size_t i;
    json_t *job;
    static const struct {
        const char *title;
        bool right;
    } columns[] = {{"ID", true}, {"NAME", false}, {"USER", false}, {"NODE", false}, {"CPUS", true},
        {"CPU", true}, {"MEMORY/PEAK/ASKED", true}, {"GPUS", true}, {"STARTED", true},
        {"PROGRESS", true}, {"SAVED", true}, {"COST", true}};
    for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        table_column(t, columns[i].title, columns[i].right);
    json_array_foreach(jobs, i, job)
    {
        char progress[64], started[32], saved[32], cost[32];
        int64_t nodes = cli_int(job, "ranks", 1);
        progress_text(job, progress, sizeof(progress));
        table_row(t);
        table_cell(t, "%s", cli_text(job, "ref"));
        table_cell(t, "%s", cli_text(job, "name"));
        table_cell(t, "%s", cli_text(job, "user"));
        table_cell(t, nodes > 1 ? "%s +%lld" : "%s", cli_text(job, "node"), (long long)nodes - 1);
        table_cell(t, "%lld", (long long)(cli_int(job, "cpus", 1) * nodes));
        usage_cells(t, job, nodes);
        table_cell(t, "%lld", (long long)(cli_int(job, "gpus", 0) * nodes));
        table_cell(t, "%s", cli_ago(job, "started_at", started, sizeof(started)));
        table_cell(t, "%s", progress);
        table_cell(t, "%s",
            cli_ago(json_object_get(job, "last_checkpoint"), "saved_at", saved, sizeof(saved)));
        table_cell(t, "%s", cli_usd(cli_int(job, "cost_uusd", 0), cost, sizeof(cost)));
    }
    table_print(t);
}

/* ---- refreshing ---- */

/* The number of jobs that fit on the screen below the head and the pools. */
static int64_t jobs_that_fit(const json_t *summary)
{
    struct winsize w;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_row == 0)
        return JOBS_DEFAULT;
    int64_t left = w.ws_row - 12 - (int64_t)json_array_size(json_object_get(summary, "pools"));
    return left < 1 ? 1 : left > JOBS_DEFAULT ? JOBS_DEFAULT : left;
}

static int show(
    struct client *c, const struct choice *choice, bool clears, bool json, struct err *e)
{
    json_t *summary = NULL, *jobs = NULL;
    int rc = client_json(c, "GET", "/api/v1/summary", NULL, &summary, e);
    if (rc != 0)
        return rc;
    char *path = mem_printf("/api/v1/jobs?state=running,cancelling&limit=%lld%s",
        (long long)(clears ? jobs_that_fit(summary) : JOBS_DEFAULT), buf_str(&choice->user));
    rc = client_json(c, "GET", path, NULL, &jobs, e);
    free(path);
    if (rc == 0 && json) {
        json_object_set(summary, "running", json_object_get(jobs, "jobs"));
        cli_print_json(summary);
    } else if (rc == 0) {
        if (clears)
            fputs("\033[H\033[J", stdout);
        print_head(summary);
        print_pools(json_object_get(summary, "pools"));
        print_jobs(json_object_get(jobs, "jobs"));
    }
    json_decref(summary);
    json_decref(jobs);
    return rc;
}

static int watch(const struct choice *choice, bool json, struct err *e)
{
    struct client *c = NULL;
    bool once = choice->once || json || !isatty(STDOUT_FILENO);
    const struct timespec pause = {.tv_sec = choice->every_s};
    int rc = client_create(&c, e);
    if (rc == 0)
        rc = show(c, choice, !once, json, e);
    while (rc == 0 && !once && fflush(stdout) == 0) {
        nanosleep(&pause, NULL);
        rc = show(c, choice, true, false, e);
        /* belayd may be restarting */
        if (rc == ERR_UNAVAILABLE || rc == ERR_IO || rc == ERR_TIMEOUT) {
            fprintf(stderr, "\nbelay: %s\n", e->text);
            rc = 0;
        }
    }
    client_destroy(c);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct choice c = {.every_s = EVERY_DEFAULT_S};
    struct cli_args a;
    struct err e;
    int rc = cli_parse(&verb_top, argc, argv, false, on_option, &c, &a);
    if (rc == 0 && watch(&c, a.json, &e) != 0) {
        cli_error("%s", e.text);
        rc = CLI_FAILED;
    }
    buf_deinit(&c.user);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"once", '1', POPT_ARG_NONE, NULL, VAL_ONCE,
        "print once and exit (default when stdout is not a terminal)", NULL},
    {"every", 'd', POPT_ARG_STRING, NULL, VAL_EVERY, "seconds between refreshes (default 2)",
        "SECONDS"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "only jobs of these users", "LIST"},
    POPT_TABLEEND,
};

const struct verb verb_top = {"top", CLI_NO_WORDS,
    "show the cluster and running jobs, refreshed continuously", run, options, false,
    .examples = "belay top\n"
                "belay top --once --user ann\n"};
