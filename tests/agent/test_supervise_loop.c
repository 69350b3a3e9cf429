/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of a supervisor.
 */
#include "agent/supervisor/supervise_loop.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void the_agents_commands_are_read(void **state)
{
    struct supervise_loop_command c;
    struct err e;
    (void)state;
    assert_int_equal(supervise_loop_parse("signal 10", &c, &e), 0);
    assert_int_equal(c.what, SUPERVISE_SIGNAL);
    assert_int_equal(c.signal, 10);
    assert_int_equal(supervise_loop_parse("terminate 200 30000", &c, &e), 0);
    assert_int_equal(c.what, SUPERVISE_TERMINATE);
    assert_int_equal(c.delay_ms, 200);
    assert_int_equal(c.grace_ms, 30000);
    assert_int_equal(supervise_loop_parse("limit 7200000", &c, &e), 0);
    assert_int_equal(c.what, SUPERVISE_LIMIT);
    assert_int_equal(c.limit_ms, 7200000);
    assert_int_equal(supervise_loop_parse("shipped 1125899906842624", &c, &e), 0);
    assert_int_equal(c.what, SUPERVISE_SHIPPED);
    assert_int_equal(c.bytes, 1LL << 50);
    assert_int_equal(supervise_loop_parse("shell", &c, &e), 0);
    assert_int_equal(c.what, SUPERVISE_SHELL);
    assert_int_equal(supervise_loop_parse("kill", &c, &e), 0);
    assert_int_equal(c.what, SUPERVISE_KILL);
    assert_int_equal(c.delay_ms, 0);
    assert_int_equal(c.grace_ms, 0);
}

/* The sum of such a time and the clock must not overflow. */
static void malformed_and_out_of_range_commands_are_refused(void **state)
{
    static const char *const bad[] = {"", "kill ", "killall", "signal", "signal ", "signal 0",
        "signal 65", "signal 1x", "signal -1", "terminate", "terminate 1", "terminate 1 ",
        "terminate  1 2", "terminate 1 2 3", "terminate -1 0", "terminate 0 9223372036854775807",
        "terminate 9223372036854775807 0", "terminate 99999999999999999999999999 0", "limit",
        "limit ", "limit -1", "limit 1 2", "limit 9223372036854775807", "shell ", "shells",
        "shipped", "shipped -1", "shipped 9223372036854775807", "reboot"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct supervise_loop_command c;
        struct err e = {0};
        int rc = supervise_loop_parse(bad[i], &c, &e);
        if (rc != ERR_INVALID || e.kind != ERR_INVALID || !e.text[0])
            fail_msg("taken, or refused as %d: \"%s\"", rc, bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_agents_commands_are_read),
        cmocka_unit_test(malformed_and_out_of_range_commands_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
