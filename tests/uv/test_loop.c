/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/uv/rig.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

struct job {
    pthread_t loop_thread;
    bool worked_elsewhere, is_done;
};

static void work(void *ctx)
{
    struct job *j = ctx;
    j->worked_elsewhere = !pthread_equal(pthread_self(), j->loop_thread);
}

static void work_done(void *ctx)
{
    struct job *j = ctx;
    assert_true(pthread_equal(pthread_self(), j->loop_thread));
    j->is_done = true;
}

static void work_runs_on_a_thread_and_completes_on_the_loop(void **state)
{
    (void)state;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct job j = {.loop_thread = pthread_self()};
    uv_run_work(&loop, work, work_done, &j);
    assert_false(j.is_done);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(j.worked_elsewhere && j.is_done);
    uv_loop_finish(&loop);
}

struct heard {
    int signum;
    struct uv_signals *signals;
};

static void on_signal(void *ctx, int signum)
{
    struct heard *h = ctx;
    h->signum = signum;
    uv_signals_destroy(h->signals);
}

static void stop_signals_reach_the_loop(void **state)
{
    (void)state;
    const int signums[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < 2; i++) {
        uv_loop_t loop;
        assert_int_equal(uv_loop_init(&loop), 0);
        struct heard h = {0};
        h.signals = uv_signals_create(&loop, on_signal, &h);
        kill(getpid(), signums[i]);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(h.signum, signums[i]);
        uv_loop_finish(&loop);
    }
}

static void sigpipe_is_ignored(void **state)
{
    (void)state;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct heard h = {0};
    h.signals = uv_signals_create(&loop, on_signal, &h);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    assert_int_equal(write(fds[1], "x", 1), -1);
    close(fds[1]);
    uv_signals_destroy(h.signals);
    uv_loop_finish(&loop);
}

static void on_timer(uv_timer_t *t)
{
    (void)t;
    fail_msg("a closed handle ran");
}

static void finish_closes_open_handles(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_timer_t t;
    assert_int_equal(uv_loop_init(&loop), 0);
    uv_timer_init(&loop, &t);
    uv_timer_start(&t, on_timer, 60000, 0);
    uv_loop_finish(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_runs_on_a_thread_and_completes_on_the_loop),
        cmocka_unit_test(stop_signals_reach_the_loop),
        cmocka_unit_test(sigpipe_is_ignored),
        cmocka_unit_test(finish_closes_open_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
