/* SPDX-License-Identifier: Apache-2.0
 *
 * The members of a spec, accessed through their rows: each is set, read and range-checked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "job/member.h"
#include <string.h>

static bool is_checked(const struct job_attribute *a)
{
    return job_member_is_number(a) && !(a->masks & JOB_READ_APART);
}

static int64_t largest(const struct job_attribute *a)
{
    int64_t n = 0;
    while (a->words && a->words[n])
        n++;
    return a->words ? n - 1 : a->max;
}

/* A spec with this one value is valid, or the error names the member. */
static void try(const struct job_attribute *a, int64_t n, bool is_valid)
{
    struct job_spec s = job_spec_default;
    struct err e = {0};
    job_member_set_number(a, &s, n);
    assert_true(job_member_number(a, &s) == n);
    const int rc = job_spec_check(&s, NULL, &e);
    if (rc != (is_valid ? 0 : ERR_INVALID))
        fail_msg("%s: %lld: %d %s", a->name, (long long)n, rc, e.text);
    assert_true(is_valid || str_starts(e.text, a->name));
    assert_int_equal(job_spec_check(&s, &s, &e), 0);
}

static int check_all(const struct job_attribute *rows, size_t n)
{
    int checked = 0;
    for (size_t i = 0; i < n; i++) {
        const struct job_attribute *a = &rows[i];
        if (!is_checked(a))
            continue;
        const int64_t usual = job_member_number(a, &job_spec_default);
        const bool is_small = a->size == sizeof(int32_t);
        try(a, a->min, true);
        try(a, largest(a), true);
        if (a->min - 1 != usual)
            try(a, a->min - 1, false);
        if (!is_small || largest(a) < INT32_MAX)
            try(a, largest(a) + 1, false);
        try(a, is_small ? INT32_MIN : INT64_MIN + (usual == INT64_MIN), false);
        checked++;
    }
    return checked;
}

static void each_number_is_checked_against_its_rows_range(void **state)
{
    (void)state;
    assert_true(check_all(job_attributes, job_attributes_count) > 15);
    assert_true(check_all(job_stored, job_stored_count) > 5);
}

static void a_range_error_has_the_range_and_the_value(void **state)
{
    (void)state;
    struct job_spec s = job_spec_default, was;
    struct err e = {0};
    assert_int_equal(job_spec_check(&s, NULL, &e), 0);
    s.ckpt_keep = 1001;
    assert_int_equal(job_spec_check(&s, NULL, &e), ERR_INVALID);
    assert_string_equal(e.text, "checkpoint.keep: expected 1 to 1000, found 1001");
    was = s;
    s.nice = 5;
    assert_int_equal(job_spec_check(&s, &was, &e), 0); /* `keep` is unchanged */
    s.ckpt_keep = 1002;
    assert_int_equal(job_spec_check(&s, &was, &e), ERR_INVALID);
}

static void members_with_their_own_check_are_skipped(void **state)
{
    (void)state;
    struct job_spec s = job_spec_default;
    s.finish_ms = -5000; /* in five seconds */
    s.nodes_min = 0;     /* as `nodes` */
    assert_int_equal(job_spec_check(&s, NULL, NULL), 0);
}

static void booleans_and_texts_are_set_and_read(void **state)
{
    (void)state;
    struct job_spec s = job_spec_default;
    const struct job_attribute *kill = job_attribute_by_name("kill_on_invalid_dep"),
                               *name = job_attribute_by_name("name");
    assert_true(job_member_truth(kill, &s) && !s.keep_unmeetable);
    job_member_set_truth(kill, &s, false);
    assert_true(!job_member_truth(kill, &s) && s.keep_unmeetable);
    assert_false(job_member_is_number(name) || job_member_is_number(kill));
    memset(s.name, 'x', sizeof(s.name));
    job_member_set_text(name, &s, "job");
    assert_string_equal(job_member_text(name, &s), "job");
    assert_memory_equal(s.name, job_spec_default.name, sizeof(s.name));
    assert_true(job_member_is_default(name, &s) && !job_member_is_default(kill, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_is_checked_against_its_rows_range),
        cmocka_unit_test(a_range_error_has_the_range_and_the_value),
        cmocka_unit_test(members_with_their_own_check_are_skipped),
        cmocka_unit_test(booleans_and_texts_are_set_and_read),
    };
    return cmocka_run_group_tests_name("job_member", tests, NULL, NULL);
}
