/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of job options is one to one, and its columns are consistent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/str.h"
#include "job/attributes.h"
#include <string.h>

static bool same(const char *a, const char *b)
{
    return a && b && str_eq(a, b);
}

static void flags_keys_and_members_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < job_attributes_count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct job_attribute *a = &job_attributes[i], *b = &job_attributes[k];
            bool aliases = (a->masks | b->masks) & JOB_ALIAS;
            if (same(a->flag, b->flag) || same(a->key, b->key) ||
                (!aliases && same(a->name, b->name)))
                fail_msg(
                    "two rows: %s, %s", a->flag ? a->flag : a->name, b->flag ? b->flag : b->name);
        }
}

static void each_field_has_one_row_that_is_no_alias(void **state)
{
    (void)state;
    for (int f = 0; f < UPDATE_FIELDS; f++) {
        int n = 0;
        for (size_t i = 0; i < job_attributes_count; i++)
            n += job_attributes[i].field == (enum job_field)f &&
                 !(job_attributes[i].masks & JOB_ALIAS);
        if (f == UPDATE_DOCUMENT ? n < 1 : n != 1)
            fail_msg("field %d has %d rows", f, n);
        assert_true(job_field_name((enum job_field)f)[0]);
    }
}

/* A reset by key=none changes only members that an update can name. */
static void the_options_that_a_reset_changes_can_be_updated(void **state)
{
    (void)state;
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        const char *name;
        json_t *to = a->reset ? json_loads(a->reset, 0, NULL) : NULL, *value;
        assert_true(!a->reset || (a->key && to));
        assert_true(!a->key_flag || job_attribute_by_flag(a->key_flag));
        json_object_foreach(to, name, value)
        {
            const struct job_attribute *of = job_attribute_by_name(name);
            if (!of || of->field == JOB_FIELD_NONE)
                fail_msg("%s: %s cannot be changed", a->key, name);
        }
        json_decref(to);
    }
}

static void document_only_options_need_no_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (a->masks & JOB_IN_DOCUMENT)
            assert_true(a->name && a->flag && a->type > JOB_TYPE_IGNORED &&
                        a->field == UPDATE_DOCUMENT && !strchr(a->name, '.'));
    }
}

static void urls_are_http_and_fit(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "x", "ftp://x/", "http:/x", "https://", "http://a b",
        "http://a\n", "http://\x7f", "http://\xc3\xbc/"};
    const struct job_attribute *url = job_attribute_by_name("url");
    char text[2002];
    struct err e;
    assert_int_equal(job_attribute_check(url, "http://x", &e), 0);
    assert_int_equal(job_attribute_check(url, "https://a.b/#c?d=%20", &e), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(job_attribute_check(url, bad[i], &e), ERR_INVALID);
    memset(text, 'x', sizeof(text));
    memcpy(text, "http://", 7);
    text[2000] = '\0';
    assert_int_equal(job_attribute_check(url, text, &e), 0);
    text[2000] = 'x';
    text[2001] = '\0';
    assert_int_equal(job_attribute_check(url, text, &e), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_keys_and_members_are_unique),
        cmocka_unit_test(each_field_has_one_row_that_is_no_alias),
        cmocka_unit_test(the_options_that_a_reset_changes_can_be_updated),
        cmocka_unit_test(document_only_options_need_no_code),
        cmocka_unit_test(urls_are_http_and_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
