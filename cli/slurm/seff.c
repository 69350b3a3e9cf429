/* SPDX-License-Identifier: Apache-2.0
 *
 * seff: how much of its processors and memory a job used, in the form of the script of that name
 * among Slurm's contributions.
 */
#include "cli/slurm/slurm_programs.h"

#include "base/str.h"
#include "cli/reports/job_use.h"
#include "cli/slurm/slurm.h"
#include <stdio.h>
#include <string.h>

static void add_value(const struct slurm_job *j, int what, struct buf *out)
{
    buf_clear(out);
    slurm_job_value(j, what, out);
}

static void print_line(const char *title, const struct slurm_job *j, int what)
{
    struct buf text = {0};
    add_value(j, what, &text);
    printf("%s: %s\n", title, buf_str(&text));
    buf_deinit(&text);
}

static double percent(int64_t part, int64_t of)
{
    return of > 0 ? 100.0 * (double)part / (double)of : 0;
}

/* On all nodes of the job. */
static void print_use(const struct slurm_job *j)
{
    struct used u = {0};
    struct buf used = {0}, walltime = {0};
    int64_t nodes = cli_int(j->job, "ranks", 1), cpus = cli_int(j->job, "cpus", 1);
    int64_t memory = (cli_int(j->job, "memory_mib", 0) << 20) * nodes;
    if (!used_of(j->detail, &u)) {
        puts("CPU Utilized: unknown: its nodes reported no use (they do some seconds after its "
             "start)");
        return;
    }
    slurm_time_used(u.cpu_ms, true, &used);
    slurm_time_used(u.ran_ms * nodes * cpus, true, &walltime);
    printf("CPU Utilized: %s\n", buf_str(&used));
    printf("CPU Efficiency: %.2f%% of %s core-walltime\n",
        percent(u.cpu_ms, u.ran_ms * nodes * cpus), buf_str(&walltime));
    buf_clear(&walltime);
    slurm_time_used(u.ran_ms, true, &walltime);
    printf("Job Wall-clock time: %s\n", buf_str(&walltime));
    printf("Memory Utilized: %.2f GB\n", (double)u.peak_sum / (1 << 30));
    if (memory > 0)
        printf("Memory Efficiency: %.2f%% of %.2f GB\n", percent(u.peak_sum, memory),
            (double)memory / (1 << 30));
    else
        puts("Memory Efficiency: unknown: the job did not say how much it needs (--mem)");
    buf_deinit(&used);
    buf_deinit(&walltime);
}

static void on_job(void *ctx, const struct slurm_job *j)
{
    struct buf code = {0};
    const char *state = slurm_job_state(j)->name;
    int64_t nodes = cli_int(j->job, "ranks", 1);
    *(int *)ctx += 1;
    print_line("Job ID", j, JOB_ID_RAW);
    if (cli_int(j->job, "array_index", -1) >= 0)
        print_line("Array Job ID", j, JOB_ID);
    puts("Cluster: belay");
    print_line("User", j, JOB_USER);
    add_value(j, JOB_EXIT, &code);
    buf_truncate(&code, strcspn(buf_str(&code), ":"));
    printf("State: %s (exit code %s)\n", state, buf_str(&code));
    printf("Nodes: %lld\nCores per node: %lld\n", (long long)nodes,
        (long long)cli_int(j->job, "cpus", 1));
    print_use(j);
    if (str_eq(state, "RUNNING") || str_eq(state, "PENDING"))
        puts("WARNING: Efficiency statistics can only be trusted after the job has ended.");
    buf_deinit(&code);
}

static int show(const char *jobs)
{
    struct slurm_query q = {.program = "seff",
        .jobs = jobs,
        .ended = true,
        .wants_detail = true,
        .ended_after = WALL_NONE,
        .submitted_until = WALL_NONE};
    struct client *c = NULL;
    struct err e;
    int shown = 0;
    if (client_create(&c, &e) != 0) {
        slurm_error("seff", "%s", e.text);
        return CLI_FAILED;
    }
    int rc = slurm_each_job(c, &q, false, on_job, &shown);
    client_destroy(c);
    if (rc != CLI_OK || shown > 0)
        return rc;
    slurm_error("seff", "Job not found: %s", str_show(jobs, (char[STR_SHOW_MAX]){0}));
    return CLI_FAILED;
}

static const struct option options[] = {
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};
const struct option *const seff_options = options;

int seff_main(int argc, char **argv)
{
    int c;
    optind = 0;
    while ((c = getopt_long(argc, argv, "hVvdM:", options, NULL)) != -1)
        switch (c) {
        case 'h':
            puts("Usage: seff JOB\n\nShows how much of its processors and memory a job of belay "
                 "used.");
            return CLI_OK;
        case 'V':
            puts(SLURM_VERSION);
            return CLI_OK;
        case 'M':
            if (slurm_is_this_cluster(optarg))
                break;
            slurm_error("seff", "%s is not supported", optarg);
            return CLI_FAILED;
        case '?':
            return CLI_FAILED;
        default: /* v, d: there is nothing more to say */
            break;
        }
    if (optind + 1 != argc) {
        slurm_error("seff", "expected one job: seff JOB");
        return CLI_FAILED;
    }
    return show(argv[optind]);
}
