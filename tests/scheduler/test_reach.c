/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether machines of a cloud can reach belayd.
 */
#include "scheduler/config/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void what_is_loopback(void **state)
{
    (void)state;
    static const char *const loopback[] = {"127.0.0.1", "127.1", "localhost", "LOCALHOST.",
        "a.localhost", "::1", "[::1]", "::ffff:127.0.0.1", "0.0.0.0", "::", "127.255.0.9"};
    static const char *const others[] = {"10.0.0.1", "belay.example.com", "localhost.example.com",
        "128.0.0.1", "fd00::1", "::ffff:10.0.0.1", ""};
    for (size_t i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++)
        if (!reach_is_loopback(loopback[i]))
            fail_msg("not taken for loopback: %s", loopback[i]);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (reach_is_loopback(others[i]))
            fail_msg("taken for loopback: %s", others[i]);
}

#define POOL                                                                                       \
    "pools: {burst: {provider: aws, region: us-east-1, zones: [us-east-1a], types: [m6i.xlarge], " \
    "markets: [spot],"                                                                             \
    " image: ami-0123456789abcdef0, max_nodes: 4%s}}\n"

/* words "": the start is allowed. */
static void check(const char *head, const char *more, const char *words)
{
    char text[2048];
    struct config c;
    struct err e = {0};
    snprintf(text, sizeof(text), "%s\n" POOL, head, more);
    if (config_parse("f", text, strlen(text), "/tmp/x", &c, &e) != 0)
        fail_msg("%s", e.text);
    int rc = reach_check(&c, &c, &e);
    if ((rc != 0) != (words[0] != '\0') || (words[0] && !strstr(e.text, words)))
        fail_msg("%s: %d %s", head, rc, e.text);
    config_deinit(&c);
}

static void a_real_cloud_needs_a_way_to_belayd(void **state)
{
    (void)state;
    check("", "", "listens at 127.0.0.1");
    check("listen: \"[::1]:7443\"", "", "listens at ::1");
    check("server: https://belay.example.com:7443", "", "listens at 127.0.0.1");
    check("listen: 0.0.0.0:7443\nserver: https://localhost:7443", "", "https://localhost:7443");
    check("listen: 0.0.0.0:7443\nserver: \"https://[::1]:7443\"", "", "pool burst");
    check("listen: 0.0.0.0:7443", ", endpoint: \"https://ec2.example.com\"", "");
    check("listen: 0.0.0.0:7443", "", "");
    check("listen: 10.0.0.1:7443", "", "");
    check("listen: 0.0.0.0:7443\nserver: https://belay.example.com:7443", "", "");
    check("", ", endpoint: \"https://ec2.example.com\"", "pool burst");
}

static void an_emulator_on_loopback_is_none(void **state)
{
    (void)state;
    check("", ", endpoint: \"http://127.0.0.1:4000\"", "");
    check("server: https://127.0.0.1:7443", ", endpoint: \"http://localhost:4000/x\"", "");
    check("server: https://127.0.0.1:7443", ", endpoint: \"http://[::1]:4000\"", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_loopback),
        cmocka_unit_test(a_real_cloud_needs_a_way_to_belayd),
        cmocka_unit_test(an_emulator_on_loopback_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
