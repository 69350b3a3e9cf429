/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports to a service manager, played by a datagram socket of the test.
 */
#include "scheduler/service_manager.h"

#include "base/uv/loop.h"
#include "base/uv/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#define WAIT_MS 20000

struct rig {
    uv_loop_t loop;
    struct timers *timers;
    struct service_manager *manager;
    int fd; /* the manager's end */
    char name[64];
};

static void listen_at(struct rig *r)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    snprintf(r->name, sizeof(r->name), "@belay-test-%d", (int)getpid());
    memcpy(a.sun_path + 1, r->name + 1, strlen(r->name) - 1);
    r->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(r->fd, (struct sockaddr *)&a,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(r->name))),
        0);
    assert_int_equal(setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
}

static int set_up(void **state)
{
    struct rig *r = calloc(1, sizeof(*r));
    uv_loop_init(&r->loop);
    r->timers = uv_timers_create(&r->loop);
    listen_at(r);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    setenv("NOTIFY_SOCKET", r->name, 1);
    *state = r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    service_manager_close(r->manager);
    uv_timers_destroy(r->timers);
    uv_loop_finish(&r->loop);
    close(r->fd);
    free(r);
    return 0;
}

static void open_manager(struct rig *r)
{
    struct err e;
    if (service_manager_open(r->timers, &r->manager, &e) != 0)
        fail_msg("%s", e.text);
}

/* The next datagram that has come. */
static void assert_next(const struct rig *r, const char *expected)
{
    char text[64] = "";
    ssize_t n = recv(r->fd, text, sizeof(text) - 1, 0);
    if (n < 0)
        fail_msg("expected %s, nothing came", expected);
    assert_string_equal(text, expected);
}

/* Lets the loop turn until a datagram comes. */
static void assert_comes(struct rig *r, const char *expected)
{
    char text[64] = "";
    for (int i = 0; i < 1000 && !text[0]; i++) {
        uv_run(&r->loop, UV_RUN_ONCE);
        if (recv(r->fd, text, sizeof(text) - 1, MSG_DONTWAIT) < 0)
            text[0] = '\0';
    }
    assert_string_equal(text, expected);
}

static void assert_nothing_more(const struct rig *r)
{
    char text[64];
    assert_int_equal(recv(r->fd, text, sizeof(text), MSG_DONTWAIT), -1);
}

static void without_a_manager_nothing_is_reported(void **state)
{
    struct rig *r = *state;
    unsetenv("NOTIFY_SOCKET");
    open_manager(r);
    assert_null(r->manager);
    service_manager_ready(r->manager);
    service_manager_stopping(r->manager);
    assert_nothing_more(r);
}

static void states_are_reported_in_order_and_programs_cannot(void **state)
{
    struct rig *r = *state;
    open_manager(r);
    assert_null(getenv("NOTIFY_SOCKET"));
    service_manager_ready(r->manager);
    service_manager_stopping(r->manager);
    assert_next(r, "READY=1");
    assert_next(r, "STOPPING=1");
    assert_nothing_more(r);
}

static void a_turning_loop_feeds_the_watchdog_and_a_stalled_one_does_not(void **state)
{
    struct rig *r = *state;
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("WATCHDOG_USEC", "20000", 1);
    setenv("WATCHDOG_PID", pid, 1);
    open_manager(r);
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
    service_manager_ready(r->manager);
    assert_next(r, "READY=1");
    assert_next(r, "WATCHDOG=1");
    assert_nothing_more(r); /* the loop has not turned yet */
    for (int i = 0; i < 3; i++)
        assert_comes(r, "WATCHDOG=1");
}

static void the_watchdog_of_another_process_is_not_fed(void **state)
{
    struct rig *r = *state;
    setenv("WATCHDOG_USEC", "20000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    open_manager(r);
    service_manager_ready(r->manager);
    assert_int_equal(uv_run(&r->loop, UV_RUN_NOWAIT), 0); /* no timer runs */
    assert_next(r, "READY=1");
    assert_nothing_more(r);
}

static void a_manager_that_has_gone_does_no_harm(void **state)
{
    struct rig *r = *state;
    setenv("WATCHDOG_USEC", "2000", 1);
    open_manager(r);
    close(r->fd);
    service_manager_ready(r->manager);
    for (int i = 0; i < 3; i++)
        uv_run(&r->loop, UV_RUN_ONCE);
    service_manager_stopping(r->manager);
    listen_at(r);
}

static void other_values_are_refused(void **state)
{
    static const char *const cases[][2] = {{"NOTIFY_SOCKET", "relative"}, {"NOTIFY_SOCKET", "@"},
        {"NOTIFY_SOCKET", "/"}, {"NOTIFY_SOCKET", "vsock:2:1"}, {"WATCHDOG_USEC", "0"},
        {"WATCHDOG_USEC", ""}, {"WATCHDOG_USEC", "1s"}, {"WATCHDOG_USEC", "-5"},
        {"WATCHDOG_USEC", "99999999999999999999"}, {"WATCHDOG_PID", "me"}, {"WATCHDOG_PID", "0"}};
    struct rig *r = *state;
    char longest[200];
    struct err e;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv("NOTIFY_SOCKET", r->name, 1);
        setenv("WATCHDOG_USEC", "1000000", 1);
        setenv(cases[i][0], cases[i][1], 1);
        e = (struct err){0};
        assert_int_equal(service_manager_open(r->timers, &r->manager, &e), ERR_CONFIG);
        assert_null(r->manager);
        assert_non_null(strstr(e.text, cases[i][0]));
        assert_null(getenv("NOTIFY_SOCKET"));
        unsetenv("WATCHDOG_PID");
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    setenv("NOTIFY_SOCKET", longest, 1);
    assert_int_equal(service_manager_open(r->timers, &r->manager, &e), ERR_CONFIG);
    assert_nothing_more(r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(without_a_manager_nothing_is_reported),
        TEST(states_are_reported_in_order_and_programs_cannot),
        TEST(a_turning_loop_feeds_the_watchdog_and_a_stalled_one_does_not),
        TEST(the_watchdog_of_another_process_is_not_fed),
        TEST(a_manager_that_has_gone_does_no_harm),
        TEST(other_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
