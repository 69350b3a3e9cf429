/* SPDX-License-Identifier: Apache-2.0
 *
 * Energy used by processors, from files like the kernel's powercap, and from malformed ones.
 */
#include "agent/gpu/rapl.h"

#include "base/fs.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#define SECOND_MS 1000

static char dir[] = "/tmp/test-rapl-XXXXXX";

static void put(const char *zone, const char *name, const char *text)
{
    char path[256];
    struct err e;
    snprintf(path, sizeof(path), "%s/%s", dir, zone);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%s/%s", dir, zone, name);
    assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &e), 0);
}

static void add_zone(const char *zone, const char *name, const char *uj)
{
    put(zone, "name", name);
    put(zone, "max_energy_range_uj", "262143328850\n");
    put(zone, "energy_uj", uj);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    struct err e;
    (void)state;
    fs_remove_tree(dir, &e);
    STR_COPY(dir, "/tmp/test-rapl-XXXXXX");
    return 0;
}

static void packages_and_their_memory_are_added_up_and_nothing_twice(void **state)
{
    struct rapl r;
    (void)state;
    add_zone("intel-rapl:0", "package-0\n", "1000000\n");
    add_zone("intel-rapl:1", "package-1\n", "2000000\n");
    add_zone("intel-rapl:0:0", "core\n", "7\n"); /* part of the package */
    add_zone("intel-rapl:0:1", "dram\n", "500000\n");
    add_zone("intel-rapl:2", "psys\n", "7\n");           /* includes all of it */
    add_zone("intel-rapl-mmio:0", "package-0\n", "7\n"); /* likewise */
    add_zone("intel-rapl:", "package-2\n", "7\n");
    add_zone("intel-rapl:0:1:2", "dram\n", "7\n");
    add_zone("dtpm", "package-0\n", "7\n");
    rapl_open(&r, dir);
    assert_int_equal(r.n, 3);
    assert_int_equal(rapl_sample(&r, SECOND_MS), -1); /* the baseline */
    put("intel-rapl:0", "energy_uj", "1000100\n");
    put("intel-rapl:0:1", "energy_uj", "500010\n");
    put("intel-rapl:1", "energy_uj", "2000001\n");
    assert_int_equal(rapl_sample(&r, 2 * SECOND_MS), 111);
    assert_int_equal(rapl_sample(&r, 3 * SECOND_MS), 0);
}

static void a_counter_that_wraps_continues(void **state)
{
    struct rapl r;
    (void)state;
    add_zone("intel-rapl:0", "package-0\n", "262143328800\n");
    rapl_open(&r, dir);
    rapl_sample(&r, SECOND_MS);
    put("intel-rapl:0", "energy_uj", "30\n");
    assert_int_equal(rapl_sample(&r, 2 * SECOND_MS), 80);
    assert_int_equal(rapl_used_uj(5, 9, 10), 4);
    assert_int_equal(rapl_used_uj(9, 5, 10), 6);
    assert_int_equal(rapl_used_uj(9, 5, 8), -1);  /* beyond its own range */
    assert_int_equal(rapl_used_uj(9, 5, -1), -1); /* unknown range */
    assert_int_equal(rapl_used_uj(-1, 5, 10), -1);
    assert_int_equal(rapl_used_uj(5, -1, 10), -1);
}

static void an_unreadable_counter_is_unknown_until_it_can_be_read(void **state)
{
    static const char *const bad[] = {"", "\n", "-5\n", "many\n", "99999999999999999999999999\n"};
    struct rapl r;
    (void)state;
    add_zone("intel-rapl:0", "package-0\n", "100\n");
    add_zone("intel-rapl:1", "package-1\n", "100\n");
    rapl_open(&r, dir);
    rapl_sample(&r, SECOND_MS);
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        put("intel-rapl:0", "energy_uj", bad[k]);
        assert_int_equal(rapl_sample(&r, 2 * SECOND_MS), -1);
        put("intel-rapl:0", "energy_uj", "200\n");
        assert_int_equal(rapl_sample(&r, 2 * SECOND_MS), -1); /* unknown interval */
        assert_int_equal(rapl_sample(&r, 2 * SECOND_MS), 0);
    }
    put("intel-rapl:0", "energy_uj", "300\n");
    /* it may have wrapped twice */
    assert_int_equal(rapl_sample(&r, 2 * SECOND_MS + RAPL_GAP_MS + 1), -1);
    put("intel-rapl:0", "energy_uj", "301\n");
    assert_int_equal(rapl_sample(&r, 3 * SECOND_MS + RAPL_GAP_MS), 1);
}

static void without_counters_the_power_is_unknown(void **state)
{
    struct rapl r;
    (void)state;
    rapl_open(&r, "/nonexistent");
    assert_int_equal(r.n, 0);
    assert_int_equal(rapl_sample(&r, SECOND_MS), -1);
    assert_int_equal(rapl_sample(&r, 2 * SECOND_MS), -1);
    for (int k = 0; k < RAPL_ZONES_MAX + 5; k++) {
        char zone[32];
        snprintf(zone, sizeof(zone), "intel-rapl:%d", k);
        add_zone(zone, "package\n", "1\n");
        put(zone, "name", k % 2 ? "package-x\n" : "package-0\n");
    }
    rapl_open(&r, dir);
    assert_int_equal(r.n, RAPL_ZONES_MAX); /* no machine has more */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            packages_and_their_memory_are_added_up_and_nothing_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(a_counter_that_wraps_continues, setup, teardown),
        cmocka_unit_test_setup_teardown(
            an_unreadable_counter_is_unknown_until_it_can_be_read, setup, teardown),
        cmocka_unit_test_setup_teardown(without_counters_the_power_is_unknown, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
