/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates in words.
 */
#include "cli/estimate.h"

#include "base/time.h"
#include "cli/slurm/slurm.h"
#include <stdio.h>
#include <time.h>

/* "2026-11-22 05:10 (in 1h20m)", local time. False if unknown. */
static bool format_moment(const json_t *o, const char *key, char *out, size_t size)
{
    struct wall then = cli_time(o, key);
    char at[32], in[32];
    struct tm tm;
    if (!wall_is_set(then))
        return false;
    int64_t ms = then.ms - clock_wall(&clock_system).ms;
    time_t t = (time_t)(then.ms / 1000);
    if (!localtime_r(&t, &tm) || strftime(at, sizeof(at), "%Y-%m-%d %H:%M", &tm) == 0)
        return false;
    time_format_duration(ms > 0 ? ms : 0, in, sizeof(in));
    snprintf(out, size, "%s (in %s)", at, in);
    return true;
}

void estimate_print(const json_t *o, bool would)
{
    const char *starts = would ? "would start" : "starts";
    char median[96], latest[96];
    const char *node = cli_string(json_object_get(o, "node")),
               *pool = cli_string(json_object_get(o, "pool"));
    if (!json_is_object(o) || (json_is_true(json_object_get(o, "now")) && !would))
        return;
    if (json_is_true(json_object_get(o, "now"))) {
        printf("it would start now on %s\n", node ? node : "-");
        return;
    }
    if (!format_moment(o, "median", median, sizeof(median))) {
        printf("when it %s is not known: %s\n", starts, cli_text(o, "unknown"));
        return;
    }
    printf("it %s about %s", starts, median);
    if (node || pool)
        printf(" on %s%s", node ? node : "a new machine of pool ", node ? "" : pool);
    if (format_moment(o, "latest", latest, sizeof(latest)))
        printf(",\n  at the latest %s unless other jobs go first\n", latest);
    else
        printf(";\n  the latest time is unknown: %s\n", cli_text(o, "unknown"));
    if (!would && cli_int(o, "input_uusd", 0) > 0)
        printf("  where reading its input from elsewhere costs %s, at each start\n",
            cli_usd(cli_int(o, "input_uusd", 0), median, sizeof(median)));
}

/* "$0.42 ($0.10 to $0.80)" */
static void print_cost(const json_t *cost, int64_t tasks)
{
    char expected[32], least[32], most[32], hour[32];
    int64_t per_hour = cli_int(cost, "uusd_per_hour", -1);
    if (per_hour < 0)
        return;
    cli_usd(per_hour, hour, sizeof(hour));
    if (!json_is_integer(json_object_get(cost, "expected_uusd"))) {
        printf("it would cost %s an hour; its run time is unknown\n", hour);
        return;
    }
    printf("it would cost about %s (%s to %s)%s, at %s an hour%s\n",
        cli_usd(cli_int(cost, "expected_uusd", 0), expected, sizeof(expected)),
        cli_usd(cli_int(cost, "least_uusd", 0), least, sizeof(least)),
        cli_usd(cli_int(cost, "most_uusd", 0), most, sizeof(most)),
        tasks > 1 ? " with all its tasks" : "", hour, tasks > 1 ? " each" : "");
    if (cli_int(cost, "input_uusd", 0) > 0)
        printf("  %s of that for reading its input from elsewhere\n",
            cli_usd(cli_int(cost, "input_uusd", 0), hour, sizeof(hour)));
}

static void print_runs(const json_t *runs)
{
    char expected[32], least[32], most[32];
    if (json_is_object(runs))
        printf("it would run for about %s (%s to %s)\n",
            cli_duration(cli_int(runs, "expected_ms", 0), expected, sizeof(expected)),
            cli_duration(cli_int(runs, "least_ms", 0), least, sizeof(least)),
            cli_duration(cli_int(runs, "most_ms", 0), most, sizeof(most)));
}

/* "sbatch: Job 7 to start at 2026-11-22T05:10:00 using 8 processors on nodes n3 in partition
 * lab" */
static int print_as_slurm(const json_t *v, const char *program, int cpus)
{
    const json_t *o = json_object_get(v, "estimate");
    const char *node = cli_string(json_object_get(o, "node")),
               *pool = cli_string(json_object_get(o, "pool"));
    struct wall then = cli_time(o, "median");
    char at[32];
    struct tm tm;
    if (!wall_is_set(then)) {
        slurm_error(program, "allocation failure: %s", cli_text(o, "unknown"));
        return CLI_FAILED;
    }
    time_t t = (time_t)(then.ms / 1000);
    if (!localtime_r(&t, &tm) || strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return CLI_FAILED;
    fprintf(stderr,
        "%s: Job %lld to start at %s using %lld processors on nodes %s in partition %s\n", program,
        (long long)cli_int(v, "id", 0), at, (long long)(cpus * cli_int(v, "nodes", 1)),
        node ? node : "(to be launched)", pool ? pool : "(null)");
    return CLI_OK;
}

int estimate_print_submit(const json_t *v, const char *slurm, int cpus)
{
    size_t i;
    const json_t *r;
    if (slurm)
        return print_as_slurm(v, slurm, cpus);
    puts("nothing was submitted");
    estimate_print(json_object_get(v, "estimate"), true);
    print_runs(json_object_get(v, "runs"));
    print_cost(json_object_get(v, "cost"), cli_int(v, "tasks", 1));
    json_array_foreach(json_object_get(v, "reasons"), i, r) printf("  - %s\n", cli_text(r, "text"));
    json_array_foreach(json_object_get(v, "changes"), i, r) printf("  > %s\n", cli_text(r, "text"));
    return CLI_OK;
}
