/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/kernel_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static const char stat_text[] =
    "3333 (a) b (c) D 3315 3315 13924 0 -1 4194304 98 7 5 6 30 12 4 3 20 0 9 0 69548 3133440 381 "
    "18446744073709551615 939 939 140 0 0 0 0 0 0 0 0 0 "
    "17 0 0 0 44 0 0 939 939 939 140 140 140 140 0\n";

static void a_process_is_read_whatever_its_name_is(void **state)
{
    struct kernel_stat s;
    (void)state;
    assert_true(kernel_stat(stat_text, &s));
    assert_int_equal(s.state, 'D');
    assert_int_equal(s.faults, 5);
    assert_int_equal(s.cpu_ticks, 42);
    assert_int_equal(s.threads, 9);
    assert_int_equal(s.start_ticks, 69548);
    assert_int_equal(s.pages, 381);
    assert_int_equal(s.blocked_ticks, 44);
}

static void malformed_texts_are_refused(void **state)
{
    static const char *const texts[] = {"", ")", "1 (a", "1 (a) ", "1 (a) R", "1 (a) R 1 2 3",
        "1 (a)R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
        "1 (a) R 1 1 1 1 1 1 1 1 -5 1 1 1 1 1 1 1 1 1 1 1 1 1 1"};
    struct kernel_stat s;
    int64_t a, b;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(kernel_stat(texts[i], &s));
    assert_int_equal(kernel_value("pgmajfault\n", "pgmajfault"), -1);
    assert_int_equal(kernel_value("pgmajfault 99999999999999999999\n", "pgmajfault"), -1);
    assert_int_equal(kernel_pressure_ms("full avg10=0 total=5000\n"), -1);
    assert_int_equal(kernel_pressure_ms("some avg10=0\n"), -1);
    assert_false(kernel_io("8:0 rbytes=12\n", &a, &b));
    assert_false(kernel_cpu("cpu0 1 2 3 4 5 6 7\n", &a, &b));
    assert_false(kernel_cpu("cpu  1 2 3\n", &a, &b));
}

static void values_are_found_by_their_whole_keys(void **state)
{
    static const char text[] =
        "pgfault 12\npgmajfault 7\nworkingset_refault_file 3\nVmSwap:\t      44 kB\n";
    (void)state;
    assert_int_equal(kernel_value(text, "pgmajfault"), 7);
    assert_int_equal(kernel_value(text, "workingset_refault"), -1);
    assert_int_equal(kernel_value(text, "VmSwap:"), 44);
    assert_int_equal(kernel_number("4096\n"), 4096);
    assert_int_equal(kernel_number("max\n"), -1);
}

static void pressure_disks_and_cpus(void **state)
{
    int64_t a = 0, b = 0;
    (void)state;
    assert_int_equal(
        kernel_pressure_ms(
            "some avg10=2.11 avg60=2.10 avg300=2.27 total=22407811\nfull avg10=0.00 total=9\n"),
        22407);
    assert_true(kernel_io("8:16 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n7:0 \n8:0 "
                          "rbytes=5 wbytes=1 rios=1\n",
        &a, &b));
    assert_int_equal(a, 15);
    assert_int_equal(b, 21);
    assert_true(kernel_cpu("cpu  10 1 20 500 30 2 3 4 0 0\ncpu0 1\n", &a, &b));
    assert_int_equal(a, 36);
    assert_int_equal(b, 30);
}

static void interfaces_come_one_after_the_other(void **state)
{
    static const char text[] =
        "Inter-|   Receive                            |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
        "    lo:  122721     420    0    0    0     0          0         0   122721     420    0   "
        " 0    0     0       0          0\n"
        "  eth0: 91044821    2114    0    0    0     0          0         0    76565     986    0  "
        "  0    0     0       0          0\n";
    const char *at = text;
    struct kernel_net net;
    (void)state;
    assert_true(kernel_net_next(&at, &net));
    assert_string_equal(net.name, "lo");
    assert_true(kernel_net_next(&at, &net));
    assert_string_equal(net.name, "eth0");
    assert_int_equal(net.in_bytes, 91044821);
    assert_int_equal(net.out_bytes, 76565);
    assert_false(kernel_net_next(&at, &net));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_read_whatever_its_name_is),
        cmocka_unit_test(malformed_texts_are_refused),
        cmocka_unit_test(values_are_found_by_their_whole_keys),
        cmocka_unit_test(pressure_disks_and_cpus),
        cmocka_unit_test(interfaces_come_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
