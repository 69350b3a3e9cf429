/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples, windows and reports, with a process of the test and simulated GPUs.
 */
#include "agent/gpu/telemetry.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "base/uv/timers.h"
#include "base/uv/proc.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define LOOK_MS 50
#define EVERY_MS 200

static const char script[] =
    "gpu uuid=GPU-a busy=50 memory=8 total=80 power=100 temperature=60 ecc_uncorrected=7\n"
    "gpu uuid=GPU-b busy=0 memory=0 total=80\n";

struct world {
    uv_loop_t loop;
    struct timers *timers;
    struct telemetry *telemetry;
    pid_t child;
    bool runs;
    int changes; /* number of calls */
    char powercap[64];
    int64_t uj; /* of the only package */
};

#define LOOK_UJ 1000000 /* increment per sample: 20 W, or less if a sample is late */
#define RANGE_UJ 5000000

static void put_file(const struct world *w, const char *name, const char *text)
{
    char path[128];
    struct err e;
    snprintf(path, sizeof(path), "%s/intel-rapl:0/%s", w->powercap, name);
    assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &e), 0);
}

static void put_energy(struct world *w)
{
    char text[32];
    w->uj = (w->uj + LOOK_UJ) % RANGE_UJ;
    snprintf(text, sizeof(text), "%lld\n", (long long)w->uj);
    put_file(w, "energy_uj", text);
}

static void on_list(void *ctx, struct telemetry *t)
{
    struct world *w = ctx;
    put_energy(w);
    const struct probe_of of = {
        .init_pid = w->child, .init_ticks = (int64_t)proc_start_ticks(w->child)};
    if (w->runs)
        telemetry_task(t, 42, 3, &of, "0");
}

static void on_changed(void *ctx)
{
    struct world *w = ctx;
    w->changes++;
}

static int setup(void **state)
{
    struct world *w = mem_alloc(sizeof(*w));
    struct err e;
    if (fs_write_atomic(getenv("BELAY_TEST_NVML"), script, strlen(script), 0600, &e) != 0)
        return -1;
    uv_loop_init(&w->loop);
    w->timers = uv_timers_create(&w->loop);
    STR_COPY(w->powercap, "/tmp/test-powercap-XXXXXX");
    char dir[128];
    if (!mkdtemp(w->powercap) || snprintf(dir, sizeof(dir), "%s/intel-rapl:0", w->powercap) < 0 ||
        mkdir(dir, 0700) != 0)
        return -1;
    put_file(w, "name", "package-0\n");
    put_file(w, "max_energy_range_uj", "5000000\n");
    w->runs = true;
    w->child = fork();
    if (w->child == 0) {
        for (alarm(60);;)
            ;
    }
    w->telemetry = telemetry_create(&(struct telemetry_options){.loop = &w->loop,
        .timers = w->timers,
        .sample_ms = LOOK_MS,
        .every_ms = EVERY_MS,
        .powercap = w->powercap,
        .list = on_list,
        .changed = on_changed,
        .ctx = w});
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    telemetry_stop(w->telemetry);
    while (!telemetry_is_idle(w->telemetry))
        uv_run(&w->loop, UV_RUN_ONCE);
    telemetry_destroy(w->telemetry);
    uv_timers_destroy(w->timers);
    uv_loop_finish(&w->loop);
    kill(w->child, SIGKILL);
    waitpid(w->child, NULL, 0);
    struct err e;
    fs_remove_tree(w->powercap, &e);
    free(w);
    return 0;
}

static void pass(struct world *w, int changes)
{
    alarm(60); /* the deadline */
    while (w->changes < changes)
        uv_run(&w->loop, UV_RUN_ONCE);
    alarm(0);
}

static void forget(struct wire_status *s)
{
    free(s->task_loads);
    free(s->gpu_loads);
    *s = (struct wire_status){0};
}

static void loads_are_sent_until_they_are_acknowledged(void **state)
{
    struct world *w = *state;
    struct wire_status s = {0};
    pass(w, 3);
    telemetry_fill(w->telemetry, &s);
    size_t n = s.n_task_loads;
    assert_true(n >= 2 && s.n_gpu_loads >= 2);
    for (size_t i = 0; i < n; i++) {
        const struct wire_task_load *l = &s.task_loads[i];
        assert_int_equal(l->no, i + 1);
        assert_int_equal(l->job, 42);
        assert_int_equal(l->attempt, 3);
        assert_true(l->load.ms > 0 && l->load.cpu_ms > 0 && l->load.memory_bytes > 0);
    }
    int64_t last = s.gpu_loads[s.n_gpu_loads - 1].no;
    forget(&s);
    telemetry_taken(w->telemetry, 1, last);
    telemetry_fill(w->telemetry, &s);
    assert_int_equal(s.n_task_loads, n - 1);
    assert_int_equal(s.task_loads[0].no, 2);
    assert_int_equal(s.n_gpu_loads, 0);
    forget(&s);
    assert_true(telemetry_cpu_us(w->telemetry) > 0);
}

static void power_of_processors_is_reported(void **state)
{
    struct world *w = *state;
    struct wire_status s = {0};
    pass(w, 3);
    telemetry_fill(w->telemetry, &s);
    assert_true(s.cpu_mw > 0 && s.cpu_mw <= LOOK_UJ / LOOK_MS);
    forget(&s);
}

static void a_gpus_load_belongs_to_the_task_that_has_it(void **state)
{
    struct world *w = *state;
    struct wire_status s = {0};
    pass(w, 3);
    telemetry_fill(w->telemetry, &s);
    bool given = false, unused = false;
    for (size_t i = 0; i < s.n_gpu_loads; i++) {
        const struct wire_gpu_load *g = &s.gpu_loads[i];
        assert_true(g->load.ms > 0);
        assert_int_equal(g->load.known_ms, g->load.ms);
        assert_int_equal(g->load.ecc_uncorrected, 0); /* they existed before */
        if (str_eq(g->gpu, "GPU-a")) {
            assert_int_equal(g->job, 42);
            assert_in_range(g->load.busy_ms * 100 / g->load.ms, 45, 50);
            assert_int_equal(g->load.memory_bytes, INT64_C(8) << 30);
            given = true;
        } else {
            assert_string_equal(g->gpu, "GPU-b");
            assert_int_equal(g->job, 0);
            unused = true;
        }
    }
    assert_true(given && unused);
    forget(&s);
}

static void an_ended_task_is_reported_once_more(void **state)
{
    struct world *w = *state;
    struct wire_status s = {0};
    pass(w, 2);
    w->runs = false;
    pass(w, w->changes + 3);
    telemetry_fill(w->telemetry, &s);
    int64_t last = s.task_loads[s.n_task_loads - 1].no;
    forget(&s);
    pass(w, w->changes + 2);
    telemetry_fill(w->telemetry, &s);
    assert_int_equal(s.task_loads[s.n_task_loads - 1].no, last);
    assert_int_equal(s.gpu_loads[s.n_gpu_loads - 1].job, 0);
    forget(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            loads_are_sent_until_they_are_acknowledged, setup, teardown),
        cmocka_unit_test_setup_teardown(power_of_processors_is_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_gpus_load_belongs_to_the_task_that_has_it, setup, teardown),
        cmocka_unit_test_setup_teardown(an_ended_task_is_reported_once_more, setup, teardown),
    };
    char path[64] = "/tmp/belay-nvml.XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || setenv("BELAY_TEST_NVML", path, 1) != 0)
        return 1;
    close(fd);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return rc;
}
