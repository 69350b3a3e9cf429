/* SPDX-License-Identifier: Apache-2.0
 *
 * belay-sim: runs seeds in several processes and reports the first that breaks a promise.
 */
#include "base/log.h"
#include "base/str.h"
#include "db/db.h"
#include "simtest/world.h"
#include <inttypes.h>
#include <limits.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 64

struct arguments {
    long long seeds, first;
    int processes, verbose, digest;
};

static void drop_line(void *ctx, enum log_level level, const char *line)
{
    (void)ctx, (void)level, (void)line;
}

static void add(struct sim_result *sum, const struct sim_result *r)
{
    sum->events += r->events;
    sum->crashes += r->crashes;
    sum->reclaims += r->reclaims;
    sum->kills += r->kills;
    sum->launches += r->launches;
    sum->saves += r->saves;
    sum->prefetches += r->prefetches;
    sum->drilled += r->drilled;
    sum->evictions += r->evictions;
    sum->jobs += r->jobs;
    sum->virtual_ms += r->virtual_ms;
}

/* Every processes-th seed from `first`; writes the sums to fd. Stops at the first failure. */
static int run_share(const struct arguments *a, long long offset, int fd)
{
    struct sim_result sum = {0}, r;
    struct db *db;
    struct err e;
    if (db_open(":memory:", &db, &e) != 0) {
        fprintf(stderr, "belay-sim: %s\n", e.text);
        return 1;
    }
    for (long long i = offset; i < a->seeds; i += a->processes) {
        sim_run(db, (uint64_t)(a->first + i), &r);
        add(&sum, &r);
        if (a->verbose)
            printf("seed %lld: %lld events, %lld crashes, %lld reclaims, %lld launches, %lld "
                   "saves, %lld jobs, %lld s %s\n",
                a->first + i, (long long)r.events, (long long)r.crashes, (long long)r.reclaims,
                (long long)r.launches, (long long)r.saves, (long long)r.jobs,
                (long long)r.virtual_ms / 1000, r.failure);
        if (a->digest)
            printf("%lld %016" PRIx64 "\n", a->first + i, r.digest);
        if (r.failure[0]) {
            printf("seed %lld FAILED: %s\n", a->first + i, r.failure);
            fflush(stdout);
            STR_COPY(sum.failure, r.failure);
            break;
        }
    }
    db_close(db);
    if (write(fd, &sum, sizeof(sum)) != sizeof(sum))
        return 1;
    return sum.failure[0] ? 1 : 0;
}

static int run_all(const struct arguments *a)
{
    struct sim_result sum = {0}, r;
    int pipes[PROCESSES_MAX][2], failed = 0;
    for (int i = 0; i < a->processes; i++) {
        if (pipe(pipes[i]) != 0)
            return 1;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            exit(run_share(a, i, pipes[i][1]));
        close(pipes[i][1]);
        failed += pid < 0;
    }
    for (int i = 0; i < a->processes; i++) {
        int status = 0;
        if (read(pipes[i][0], &r, sizeof(r)) == sizeof(r))
            add(&sum, &r);
        close(pipes[i][0]);
        wait(&status);
        if (WIFSIGNALED(status))
            printf("a process was killed by signal %d; run with --verbose to see the seed\n",
                WTERMSIG(status));
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    fprintf(a->digest ? stderr : stdout,
        "%lld seeds: %lld jobs, %lld events, %lld crashes of belayd, %lld of agents, %lld "
        "reclaims, %lld launches, %lld "
        "saves, %lld prefetches, %lld drills, %lld evictions, %.1f virtual days: %s\n",
        a->seeds, (long long)sum.jobs, (long long)sum.events, (long long)sum.crashes,
        (long long)sum.kills, (long long)sum.reclaims, (long long)sum.launches,
        (long long)sum.saves, (long long)sum.prefetches, (long long)sum.drilled,
        (long long)sum.evictions, (double)sum.virtual_ms / 86400000.0,
        failed ? "BROKEN" : "every promise kept");
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct arguments a = {.seeds = 100, .first = 1, .processes = 1};
    struct poptOption options[] = {
        {"seeds", 'n', POPT_ARG_LONGLONG, &a.seeds, 0, "number of seeds (default 100)", "N"},
        {"first", 'f', POPT_ARG_LONGLONG, &a.first, 0, "first seed (default 1)", "SEED"},
        {"jobs", 'j', POPT_ARG_INT, &a.processes, 0, "number of parallel processes (default 1)",
            "P"},
        {"digest", 'd', POPT_ARG_NONE, &a.digest, 0,
            "print a line for each seed: its number and a hash of all committed data but texts; "
            "pipe it to sort -n",
            NULL},
        {"verbose", 'v', POPT_ARG_NONE, &a.verbose, 0, "print a line for each seed", NULL},
        POPT_AUTOHELP POPT_TABLEEND,
    };
    poptContext pc = poptGetContext("belay-sim", argc, (const char **)argv, options, 0);
    int rc = poptGetNextOpt(pc);
    if (rc < -1)
        fprintf(stderr, "belay-sim: %s: %s\n", poptBadOption(pc, 0), poptStrerror(rc));
    poptFreeContext(pc);
    if (rc < -1 || a.processes < 1 || a.processes > PROCESSES_MAX)
        return 2;
    log_init("belay-sim", LOG_ERROR);
    log_set_sink(drop_line, NULL); /* belayd's log of simulated failures is not useful */
    /* One write per line: the pipe is shared by all processes, and lines must not be split. */
    setvbuf(stdout, NULL, _IOLBF, PIPE_BUF);
    return run_all(&a);
}
