/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the cost of telemetry: on a node, the processor time of sampling tasks that consist of
 * several processes, one of them with busy threads; in belayd, the time and space for writing and
 * keeping the samples.
 */
#include "agent/gpu/telemetry.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/time.h"
#include "base/uv/loop.h"
#include "base/uv/timers.h"
#include "base/uv/proc.h"
#include "db/db.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TASKS_MAX 64
#define THREADS 4
#define DAY_MINUTES 1440

/* ---- a node ---- */

struct machine {
    pid_t tasks[TASKS_MAX];
    int n_tasks, looks, wanted;
    uv_loop_t loop;
};

static void *spin(void *ctx)
{
    for (;;)
        ;
    return ctx;
}

/* Runs `processes` processes, with busy threads if `busy`. All end with the benchmark. */
static void run_task(int processes, bool busy)
{
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 1; i < processes; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pause();
            _exit(0);
        }
    for (int i = 0; busy && i < THREADS; i++)
        pthread_create(&thread, NULL, spin, NULL);
    pause();
    _exit(0);
}

static void on_list(void *ctx, struct telemetry *t)
{
    struct machine *n = ctx;
    for (int i = 0; i < n->n_tasks; i++) {
        const struct probe_of of = {
            .init_pid = n->tasks[i], .init_ticks = (int64_t)proc_start_ticks(n->tasks[i])};
        telemetry_task(t, i + 1, 1, &of, "");
    }
    if (++n->looks > n->wanted)
        uv_stop(&n->loop);
}

static void on_changed(void *ctx)
{
    (void)ctx;
}

static void bench_node(int tasks, int processes, int looks)
{
    struct machine n = {.n_tasks = tasks, .wanted = looks};
    for (int i = 0; i < tasks; i++) {
        n.tasks[i] = fork();
        if (n.tasks[i] == 0)
            run_task(processes, i == 0);
    }
    uv_loop_init(&n.loop);
    struct timers *timers = uv_timers_create(&n.loop);
    struct telemetry *t = telemetry_create(&(struct telemetry_options){.loop = &n.loop,
        .timers = timers,
        .sample_ms = 100,
        .every_ms = 1000,
        .list = on_list,
        .changed = on_changed,
        .ctx = &n});
    uv_run(&n.loop, UV_RUN_DEFAULT);
    telemetry_stop(t);
    while (!telemetry_is_idle(t))
        uv_run(&n.loop, UV_RUN_ONCE);
    double us = (double)telemetry_cpu_us(t) / n.looks, every_ms = us * SAMPLE_COST_PART / 1000;
    every_ms = every_ms > TELEMETRY_SAMPLE_MS ? every_ms : TELEMETRY_SAMPLE_MS;
    printf("%2d tasks of %3d processes, one look             %8.2f ms of a cpu    every %.1f s: "
           "%.3f %% of one core (0.5 %% is the limit)\n",
        tasks, processes, us / 1000, every_ms / 1000, us / every_ms / 10);
    telemetry_destroy(t);
    uv_timers_destroy(timers);
    uv_loop_finish(&n.loop);
    for (int i = 0; i < tasks; i++)
        proc_tree_kill(n.tasks[i], 10000, NULL), waitpid(n.tasks[i], NULL, 0);
}

/* ---- belayd ---- */

static struct task_load_row row_of(struct prng *p, int64_t job, int64_t span_ms, int64_t at)
{
    return (struct task_load_row){.job = job,
        .attempt = 1,
        .span_ms = span_ms,
        .at = at / span_ms * span_ms,
        .node = job % 1000,
        .load = {.ms = 60000,
            .cpu_ms = prng_range(p, 0, 480000),
            .busiest_ms = prng_range(p, 0, 60000),
            .blocked_ms = prng_range(p, 0, 60000),
            .memory_bytes = prng_range(p, 0, INT64_C(1) << 36),
            .read_bytes = prng_range(p, 0, INT64_C(1) << 33),
            .write_bytes = prng_range(p, 0, INT64_C(1) << 31),
            .faults = prng_range(p, 0, 1000),
            .net_in_bytes = prng_range(p, 0, INT64_C(1) << 33),
            .net_out_bytes = prng_range(p, 0, INT64_C(1) << 33),
            .net_is_nodes = 1,
            .link_bytes_s = 1250000000,
            .node_cpus = 64,
            .node_cpu_ms = prng_range(p, 0, 3840000),
            .node_iowait_ms = prng_range(p, 0, 60000)}};
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void check(int rc, const struct err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s\n", e->text);
    exit(1);
}

/* Commits a day of telemetry of `tasks` tasks, minute by minute. */
static void bench_belayd(int tasks)
{
    static const int64_t spans[LOAD_SPANS] = LOAD_SPANS_MS;
    char dir[] = "/tmp/belay-bench.XXXXXX", path[64];
    struct db *d;
    struct err e;
    struct prng p;
    prng_init(&p, 1);
    if (!mkdtemp(dir))
        exit(1);
    snprintf(path, sizeof(path), "%s/belay.db", dir);
    check(db_open(path, &d, &e), &e);
    int64_t empty = size_of(path), began = clock_mono(&clock_system).ms;
    for (int64_t minute = 0; minute < DAY_MINUTES; minute++) {
        struct db_batch b = {.loads = {.n_tasks = (size_t)tasks * LOAD_SPANS}};
        b.loads.tasks = mem_array(b.loads.n_tasks, sizeof(*b.loads.tasks));
        for (int i = 0; i < tasks; i++)
            for (int s = 0; s < LOAD_SPANS; s++)
                b.loads.tasks[i * LOAD_SPANS + s] = row_of(&p, i + 1, spans[s], minute * 60000);
        for (int s = 0; s < LOAD_SPANS; s++)
            b.loads.from[s] = 1;
        check(db_commit(d, &b, &e), &e);
        db_batch_deinit(&b);
    }
    double ms = (double)(clock_mono(&clock_system).ms - began);
    db_close(d);
    double rows = (double)tasks * (DAY_MINUTES + DAY_MINUTES / 10.0 + DAY_MINUTES / 60.0),
           bytes = (double)(size_of(path) - empty) / rows;
    printf("%d tasks for a day, committed by the minute       %8.1f us a task and minute    %.0f "
           "bytes a row; a task that runs for ever: %.0f KiB\n",
        tasks, ms * 1000 / tasks / DAY_MINUTES, bytes, bytes * (1440 + 1008 + 2160) / 1024);
    unlink(path);
    snprintf(path, sizeof(path), "%s/belay.db.lock", dir);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    bench_node(1, 4, 20);
    bench_node(8, 16, 10);
    bench_node(32, 16, 3);
    bench_belayd(100);
    return 0;
}
