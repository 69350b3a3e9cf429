/* SPDX-License-Identifier: Apache-2.0
 *
 * Real processes, sampled without cgroups: the tree below one of them.
 */
#include "agent/gpu/probe.h"

#include "base/mem.h"
#include "base/uv/proc.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define BURNT_MS 400

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t cpu_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *burn(void *ctx)
{
    while (cpu_ms(CLOCK_THREAD_CPUTIME_ID) < BURNT_MS)
        ;
    return ctx;
}

/* A child that waits for a byte, uses this much CPU time in a thread, reports it and waits for its
 * end. */
struct child {
    pid_t pid;
    int go[2], done[2];
};

static void be_child(const struct child *c)
{
    char byte = 0;
    pthread_t thread;
    signal(SIGALRM, SIG_DFL);
    alarm(60);
    if (read(c->go[0], &byte, 1) != 1 || pthread_create(&thread, NULL, burn, NULL) != 0)
        _exit(1);
    pthread_join(thread, NULL);
    while (write(c->done[1], "x", 1) == 1 && read(c->go[0], &byte, 1) == 1)
        ;
    _exit(0);
}

static struct child start(void)
{
    struct child c;
    assert_int_equal(pipe(c.go), 0);
    assert_int_equal(pipe(c.done), 0);
    c.pid = fork();
    assert_true(c.pid >= 0);
    if (c.pid == 0) {
        close(c.go[1]); /* so that closing our end is seen by the child */
        be_child(&c);
    }
    return c;
}

static void end(struct child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    for (int i = 0; i < 2; i++) {
        close(c->go[i]);
        close(c->done[i]);
    }
}

static void counters_since_the_previous_sample_are_read(void **state)
{
    struct child c = start();
    struct probe *p = probe_create();
    struct probe_node before, now;
    struct task_load l;
    struct probe_of of = {
        .init_pid = c.pid, .init_ticks = (int64_t)proc_start_ticks(c.pid), .waited_ms = 40};
    char byte;
    (void)state;
    probe_node_read(now_ms(), &before);
    assert_true(before.cpus > 0 && before.cpu_ms > 0);
    probe_read(p, &of, &before, &before, &l);
    assert_int_equal(l.ms, 0); /* the first sample only sets the baseline */

    assert_int_equal(write(c.go[1], "x", 1), 1);
    assert_int_equal(read(c.done[0], &byte, 1), 1);
    probe_node_read(now_ms(), &now);
    of.waited_ms = 45;
    probe_read(p, &of, &before, &now, &l);
    assert_int_equal(l.waited_ms, 5);
    assert_int_equal(l.ms, now.at_ms - before.at_ms);
    assert_in_range(l.cpu_ms, BURNT_MS - 30, BURNT_MS + 1000);
    assert_true(l.memory_bytes > 0);
    assert_int_equal(l.node_cpus, now.cpus);
    assert_true(l.busiest_ms <= l.ms);

    struct probe_node later = now;
    later.at_ms += 1000;
    probe_read(p, &of, &now, &later, &l);
    assert_int_equal(l.cpu_ms, 0); /* nothing since then */
    assert_int_equal(l.waited_ms, 0);
    of.waited_ms = 30; /* another of its processes, which starts counting from 0 */
    probe_read(p, &of, &now, &later, &l);
    assert_int_equal(l.waited_ms, 0);
    struct probe_node much_later = later;
    much_later.at_ms += 9000;
    of.waited_ms = 2030; /* reported at its end: the wait began before this sample */
    probe_read(p, &of, &later, &much_later, &l);
    assert_int_equal(l.waited_ms, 2000);
    later = much_later;
    much_later.at_ms += 500;
    of.waited_ms = INT64_MAX; /* at most the time since its last report */
    probe_read(p, &of, &later, &much_later, &l);
    assert_int_equal(l.waited_ms, 500);
    probe_destroy(p);
    end(&c);
}

static void an_ended_or_replaced_process_counts_nothing(void **state)
{
    struct child c = start();
    struct probe *p = probe_create();
    struct probe_node at;
    struct task_load l;
    struct probe_of of = {.init_pid = c.pid, .init_ticks = (int64_t)proc_start_ticks(c.pid) + 1};
    (void)state;
    probe_node_read(now_ms(), &at);
    probe_read(p, &of, &at, &at, &l);
    probe_read(p, &of, &at, &at, &l);
    assert_int_equal(l.memory_bytes, 0);
    of.init_ticks--;
    end(&c);
    probe_read(p, &of, &at, &at, &l);
    probe_read(p, &of, &at, &at, &l);
    assert_int_equal(l.cpu_ms, 0);
    probe_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_since_the_previous_sample_are_read),
        cmocka_unit_test(an_ended_or_replaced_process_counts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
