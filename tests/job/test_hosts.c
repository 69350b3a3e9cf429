/* SPDX-License-Identifier: Apache-2.0 */
#include "job/hosts.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void check(const char *list, const char *want)
{
    struct err e = {0};
    struct hosts_at at = {0};
    char all[512] = "", name[HOSTS_NAME_MAX];
    int64_t n, found = 0;
    if (hosts_check(list, &n, &e) != 0)
        fail_msg("%s: %s", list, e.text);
    for (; hosts_next(list, &at, name); found++) {
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", name);
        if (!hosts_has(list, name))
            fail_msg("%s has %s, and does not know it", list, name);
    }
    assert_string_equal(all, want);
    assert_int_equal(found, n);
}

static void host_lists_are_expanded(void **state)
{
    (void)state;
    check("", "");
    check("n1", "n1 ");
    check("n1,n2", "n1 n2 ");
    check("n[1-3,7]", "n1 n2 n3 n7 ");
    check("a[08-10]b,c", "a08b a09b a10b c ");
    check("rack1-n[1],x.y_z", "rack1-n1 x.y_z ");
    check("n[9-11]0,[1-2]", "n90 n100 n110 1 2 ");
    check("n[1,1]", "n1 n1 ");
    check("n[999999999]", "n999999999 ");
}

static void malformed_host_lists_are_refused(void **state)
{
    static const char *const bad[] = {"n[", "n]", "n[1", "n[]", "n[a]", "n[1-]", "n[3-1]",
        "n[1,]x[2]", "n[-1]", "n[1--2]", "n[0-65536]", "n[1234567890]", "n[[1]]", "n[1-9999999999]",
        "n 1", "n1 ", "n\t", "n/1", "n]1[2]", "n[1]]", "n*", "n=1", "n[1 ]", "n\xc3\xa4",
        "a123456789012345678901234567890123456789012345678901234567890123", "n[1,,2]", "vm,", ",vm",
        "a,,b", ",", ",,", "n[1-2],"};
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (hosts_check(bad[i], NULL, &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[i]);
}

static void only_listed_hosts_are_found(void **state)
{
    static const struct {
        const char *list, *name;
        bool has;
    } all[] = {{"n[1-10]", "n10", true}, {"n[1-10]", "n01", false}, {"n[01-10]", "n1", false},
        {"n[01-10]", "n01", true}, {"n[08-110]", "n100", true}, {"n[08-110]", "n0100", false},
        {"n[1-10]", "n11", false}, {"n[1-10]", "n", false}, {"n[1-10]", "n1x", false},
        {"n[1-10]", "m1", false}, {"n[1-10]", "", false}, {"", "", false}, {",", "", false},
        {"n1", "n11", false}, {"n11", "n1", false}, {"n[1-3]-a,x", "n2-a", true},
        {"n[1-3]-a,x", "n2-b", false}, {"n[1-3]-a,x", "x", true}, {"n[1-2]0", "n10", true},
        {"n[1-2]0", "n1", false}, {"n[1-2]", "n1234567890123", false}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (hosts_has(all[i].list, all[i].name) != all[i].has)
            fail_msg("%s in %s", all[i].name, all[i].list);
}

static void equal_host_lists_have_one_text(void **state)
{
    static const char *const all[][2] = {{"n3,n1,n2", "n[1-3]"}, {"n[1-3]", "n[1-3]"},
        {"n9,n10,n11", "n[9-11]"}, {"n08,n09,n10", "n[08-10]"}, {"n98,n99,n100", "n[98-100]"},
        {"n1,n1", "n1"}, {"b,a", "a,b"}, {"n2,n1,n7,x", "n[1-2,7],x"},
        {"r1-n2,r1-n1,r2-n1", "r1-n[1-2],r2-n1"}, {"n1a,n2a,n1b", "n[1-2]a,n1b"},
        {"n1,n01,n2", "n[1,01,2]"}, {"n099,n100", "n[099-100]"}, {"", ""},
        {"n099,n0100", "n[099,0100]"}, {"n12345678901,n12345678902", "n12345678901,n12345678902"},
        {"n,n1,n2", "n,n[1-2]"}, {"7,8", "[7-8]"}, {"n0,n1", "n[0-1]"}};
    char out[HOSTS_TEXT_MAX], again[HOSTS_TEXT_MAX], many[8192] = "";
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(hosts_fold(all[i][0], out, &e), 0);
        assert_string_equal(out, all[i][1]);
        assert_int_equal(hosts_fold(out, again, &e), 0);
        assert_string_equal(out, again);
    }
    for (int i = 0; i < 800; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%sn%d", i ? "," : "", 2 * i);
    assert_int_equal(hosts_fold(many, out, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "these 800 hosts"));
    struct buf longer = {0};
    buf_adds(&longer, "nodes ");
    assert_int_equal(hosts_fold_into(many, &longer, &e), 0);
    assert_true(
        str_starts(buf_str(&longer), "nodes n[0,2,4,") && str_ends(buf_str(&longer), ",1598]"));
    assert_int_equal(hosts_fold_into("n[", &longer, &e), ERR_INVALID);
    buf_deinit(&longer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_host_lists_have_one_text),
        cmocka_unit_test(host_lists_are_expanded),
        cmocka_unit_test(malformed_host_lists_are_refused),
        cmocka_unit_test(only_listed_hosts_are_found)};
    return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
