/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/mem.h"
#include "job/pattern.h"
#include <stdlib.h>
#include <string.h>

static const struct pattern_values plain = {
    .job = 42, .name = "train", .user = "ann", .node = "n1.example.org", .rank = 3, .restarts = 2};
static const struct pattern_values task = {
    .job = 57, .array = 50, .index = 7, .name = "a", .user = "b", .node = "n2"};

static void check(const struct pattern_values *v, const char *pattern, const char *want)
{
    char *got = NULL;
    struct err e;
    assert_int_equal(pattern_expand(pattern, v, &got, &e), 0);
    assert_string_equal(got, want);
    free(got);
}

static void placeholders_are_expanded(void **state)
{
    (void)state;
    check(&plain, "slurm-%j.out", "slurm-42.out");
    check(&plain, "%x-%u@%N/%n.%t", "train-ann@n1/3.3");
    check(&plain, "%A_%a", "42_4294967294");
    check(&task, "slurm-%A_%a.out", "slurm-50_7.out");
    check(&task, "%5j %05a %0j", "00057 00007 57");
    check(&plain, "%J %s %r", "42 batch 2");
    check(&plain, "", "");
}

static void unknown_placeholders_are_kept(void **state)
{
    (void)state;
    check(&plain, "100%%", "100%");
    check(&plain, "%", "%");
    check(&plain, "%q-%", "%q-%");
    check(&plain, "%99999j", "%99999j");
    check(&plain, "%12", "%12");
    check(&plain, "%99j", "0000000042");
    check(&plain, "\\%j", "%j");
    check(&plain, "a\\b%x", "ab%x");
    check(&(struct pattern_values){.job = 1, .name = "50%j", .node = ""}, "%x%N%u", "50%j");
}

static void the_length_of_a_name_is_limited(void **state)
{
    (void)state;
    char *long_name = mem_alloc(9000), *got = NULL;
    struct err e;
    memset(long_name, 'a', 8999);
    assert_int_equal(pattern_expand(long_name, &plain, &got, &e), ERR_INVALID);
    long_name[PATTERN_PATH_MAX] = '\0';
    check(&plain, long_name, long_name);
    long_name[PATTERN_PATH_MAX - 2] = '%';
    long_name[PATTERN_PATH_MAX - 1] = 'x';
    assert_int_equal(pattern_expand(long_name, &plain, &got, &e), ERR_INVALID);
    assert_null(got);
    free(long_name);
}

static void patterns_with_node_or_number_distinguish_ranks(void **state)
{
    (void)state;
    assert_true(pattern_has_rank("a-%N") && pattern_has_rank("%n") && pattern_has_rank("%2t"));
    assert_false(pattern_has_rank("%j.out"));
    assert_false(pattern_has_rank("%%N"));
    assert_false(pattern_has_rank("\\%N"));
    assert_false(pattern_has_rank("%"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders_are_expanded),
        cmocka_unit_test(unknown_placeholders_are_kept),
        cmocka_unit_test(the_length_of_a_name_is_limited),
        cmocka_unit_test(patterns_with_node_or_number_distinguish_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
