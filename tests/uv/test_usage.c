/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup accounting: its files, and the usage of a group that did a known amount of work.
 */
#include "base/uv/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define BURNT_MS 200

static void cpu_time_is_parsed_from_both_cgroup_versions(void **state)
{
    static const struct {
        const char *text;
        int64_t ms, user_ms;
    } all[] = {{"usage_usec 2809\nuser_usec 2809\nsystem_usec 0\n", 2, 2},
        {"user_usec 7000\nusage_usec 1234567\n", 1234, 7}, {"12345678901\n", 12345, -1},
        {"0\n", 0, -1}, {"", -1, -1}, {"usage_usec\n", -1, -1}, {"usage_usec x\n", -1, -1},
        {"usage_usec -1\n", -1, -1}, {"usage_usec 1 2\n", -1, -1}, {"user_usec 5\n", -1, -1},
        {"x\n", -1, -1}, {"-5\n", -1, -1}, {"99999999999999999999999999\n", -1, -1},
        {"usage_usec 99999999999999999999\n", -1, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int64_t ms, user_ms;
        usage_parse_cpu(all[i].text, &ms, &user_ms);
        if (ms != all[i].ms || user_ms != all[i].user_ms)
            fail_msg("%s", all[i].text);
    }
}

static void unreadable_usage_is_unknown(void **state)
{
    const struct usage_files none = {"", "/nowhere/memory.current", "/proc/self/status"};
    struct usage u;
    (void)state;
    usage_read(&none, &u);
    assert_true(u.cpu_ms == -1 && u.user_ms == -1 && u.memory_bytes == -1 && u.peak_bytes == -1);
}

static void burn(void)
{
    clock_t until = clock() + BURNT_MS * (CLOCKS_PER_SEC / 1000);
    volatile long sum = 0;
    while (clock() < until)
        /* user time only: reading the clock takes kernel time */
        for (int i = 0; i < 10000; i++)
            sum++;
    _exit(0);
}

static void a_group_reports_its_cpu_time(void **state)
{
    struct proc_group *g = NULL;
    struct usage_files files;
    struct usage u;
    struct err e;
    pid_t pid;
    int status, entered;
    (void)state;
    if (proc_group_open(
            "belay-test-usage", &(struct proc_limits){.memory_bytes = 64 << 20}, &g, &e) != 0)
        fail_msg("%s", e.text);
    proc_group_usage_files(g, &files);
    if (!*files.cpu) {
        print_message("SKIP: this machine has no cgroups for us\n");
    } else {
        pid = proc_group_fork(g, &entered);
        if (pid == 0)
            burn();
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        usage_read(&files, &u);
        assert_true(u.cpu_ms >= BURNT_MS * 9 / 10 && u.cpu_ms < 20 * BURNT_MS);
        assert_true(u.user_ms == -1 || (u.user_ms >= BURNT_MS / 4 && u.user_ms <= u.cpu_ms));
        assert_true(u.memory_bytes >= -1 && u.peak_bytes >= u.memory_bytes);
    }
    proc_group_close(g, true);
}

static void proc_stat_is_parsed_with_any_process_name(void **state)
{
    static const char rest[] = " S 1 2 3 0 -1 4194560 9 8 7 6 10 20 30 40 20 0 1 0 12345 1000000 "
                               "77 18446744073709551615 1";
    static const char *const bad[] = {"", "7", "7 (x", "7 (x) S 1 2",
        "7 (x) S 1 2 3 0 -1 4194560 9 8 7 6 10 20 -30 40 20 0 1 0 12345 1000000 77 1",
        "7 (x) S 1 2 3 0 -1 4194560 9 8 7 6 10 20 30 40 20 0 1 0 12345 1000000 -77 1",
        "7 (x) S 1 2 3 0 -1 4194560 9 8 7 6 18446744073709551615 20 30 40 20 0 1 0 12345 1000000 "
        "77 1"};
    static const char *const names[] = {"7 (sh)", "7 (a) S 9 (b)", "7 ()", "7 ( ) 1 2 3)"};
    struct usage_stat s;
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(text, sizeof(text), "%s%s\n", names[i], rest);
        assert_true(usage_parse_stat(text, &s));
        assert_true(
            s.user_ticks == 40 && s.kernel_ticks == 60 && s.start_ticks == 12345 && s.pages == 77);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(usage_parse_stat(bad[i], &s));
}

static void wait_for_byte(int fd)
{
    char c;
    if (read(fd, &c, 1) != 1)
        _exit(1);
}

/* A child that uses CPU and ends, and one that holds memory and stays, both below a process that
 * stays. */
static void a_tree_reports_its_cpu_time_and_memory(void **state)
{
    int ready[2], go[2], status;
    struct usage before, u;
    (void)state;
    assert_true(pipe(ready) == 0 && pipe(go) == 0);
    pid_t top = fork();
    if (top == 0) {
        pid_t burns = fork();
        if (burns == 0)
            burn();
        waitpid(burns, &status, 0);
        if (fork() == 0) {
            char *held = malloc(32 << 20);
            memset(held, 1, 32 << 20);
            if (write(ready[1], held, 1) == 1)
                wait_for_byte(go[0]);
            _exit(held[5] != 1);
        }
        wait(&status);
        _exit(WEXITSTATUS(status));
    }
    assert_true(top > 0);
    wait_for_byte(ready[0]);
    usage_read_tree(top, proc_start_ticks(top), &u);
    usage_read_tree(top, proc_start_ticks(top) + 1, &before);
    assert_true(write(go[1], "g", 1) == 1);
    assert_true(waitpid(top, &status, 0) == top && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(u.cpu_ms >= BURNT_MS * 9 / 10 && u.cpu_ms < 20 * BURNT_MS && u.user_ms > 0 &&
                u.user_ms <= u.cpu_ms);
    assert_true(
        u.memory_bytes >= 32 << 20 && u.memory_bytes < (int64_t)8 << 30 && u.peak_bytes == -1);
    /* the number belongs to another process */
    assert_true(before.cpu_ms == -1 && before.memory_bytes == -1);
    usage_read_tree(top, 1, &u);
    assert_true(u.cpu_ms == -1);
    close(ready[0]), close(ready[1]), close(go[0]), close(go[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_time_is_parsed_from_both_cgroup_versions),
        cmocka_unit_test(unreadable_usage_is_unknown),
        cmocka_unit_test(a_group_reports_its_cpu_time),
        cmocka_unit_test(proc_stat_is_parsed_with_any_process_name),
        cmocka_unit_test(a_tree_reports_its_cpu_time_and_memory)};
    return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}
