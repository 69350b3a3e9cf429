/* SPDX-License-Identifier: Apache-2.0
 *
 * What cgroups count: their files, and what is read of a group that did a known amount.
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

static void time_is_read_as_either_version_writes_it(void **state)
{
    static const struct {
        const char *text;
        int64_t ms, user_ms;
    } all[] = {{"usage_usec 2809\nuser_usec 2809\nsystem_usec 0\n", 2, 2}, {"user_usec 7000\nusage_usec 1234567\n", 1234, 7}, {"12345678901\n", 12345, -1},
        {"0\n", 0, -1}, {"", -1, -1}, {"usage_usec\n", -1, -1}, {"usage_usec x\n", -1, -1}, {"usage_usec -1\n", -1, -1}, {"usage_usec 1 2\n", -1, -1}, {"user_usec 5\n", -1, -1},
        {"x\n", -1, -1}, {"-5\n", -1, -1}, {"99999999999999999999999999\n", -1, -1}, {"usage_usec 99999999999999999999\n", -1, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int64_t ms, user_ms;
        usage_parse_cpu(all[i].text, &ms, &user_ms);
        if (ms != all[i].ms || user_ms != all[i].user_ms)
            fail_msg("%s", all[i].text);
    }
}

static void what_cannot_be_read_is_unknown(void **state)
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
        sum++;
    _exit(0);
}

static void a_group_tells_what_was_burnt_in_it(void **state)
{
    struct proc_group *g = NULL;
    struct usage_files files;
    struct usage u;
    struct err e;
    pid_t pid;
    int status, entered;
    (void)state;
    if (proc_group_open("belay-test-usage", &(struct proc_limits){.memory_bytes = 64 << 20}, &g, &e) != 0)
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(time_is_read_as_either_version_writes_it),
        cmocka_unit_test(what_cannot_be_read_is_unknown), cmocka_unit_test(a_group_tells_what_was_burnt_in_it)};
    return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}
