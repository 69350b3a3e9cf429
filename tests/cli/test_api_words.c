/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags/api_words.h"

#include "base/str.h"
#include "job/attributes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_words(const char *text, const char *expected)
{
    struct buf out = {0};
    api_words_to_flags(text, &out);
    assert_string_equal(buf_str(&out), expected);
    buf_deinit(&out);
}

static void members_become_what_the_user_wrote(void **state)
{
    (void)state;
    assert_words("spec.pool: there is no pool \"x\"", "--pool: there is no pool \"x\"");
    assert_words("spec.checkpoint.keep: expected 1", "--keep: expected 1");
    assert_words("spec.time_limit_ms: too long", "--time: too long");
    assert_words("changes.pool: there is no pool", "pool: there is no pool");
    assert_words("cron.zone: there is no time zone", "--tz: there is no time zone");
    assert_words("cron.catch_up_max: expected", "--catch-up: expected");
    assert_words("job 3: spec.pool: no", "job 3: --pool: no");
}

static void what_no_flag_sets_stays(void **state)
{
    (void)state;
    static const char too_long[] =
        "spec.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    static const char *const texts[] = {"", "spec.", "spec.:", "spec.nonsense: x", "myspec.pool: x",
        "spec.nonsense.deeper: x", "changes.: x", "spec.pool", "the job's spec. Pool", too_long};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_words(texts[i], str_eq(texts[i], "spec.pool") ? "--pool" : texts[i]);
}

/* Each option that has a member and a flag. */
static void every_option_is_named_by_its_flag(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        char text[128], expected[128];
        if (!a->name || !a->flag || job_attribute_by_name(a->name) != a)
            continue;
        const struct job_attribute *same = job_attribute_by_flag(a->name);
        if (same && str_eq(same->name, a->name))
            a = same; /* --pool, not --partition */
        snprintf(text, sizeof(text), "spec.%s: x", a->name);
        snprintf(expected, sizeof(expected), "--%s: x", a->flag);
        assert_words(text, expected);
        n++;
    }
    assert_true(n > 40);
}

/* Flag or letter, in a script or not: each option of the table. */
static void every_option_is_named_as_it_was_written(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (!a->name || !a->flag)
            continue;
        const char letter[2] = {a->letter, '\0'}, *const names[] = {a->flag, letter};
        for (size_t k = 0; k < (a->letter ? 2 : 1); k++) {
            struct buf flags = {0}, out = {0};
            char text[128], shown[64], expected[256];
            snprintf(text, sizeof(text), "spec.%s: x (spec.%s)", a->name, a->name);
            snprintf(shown, sizeof(shown), "%s%s", k ? "-" : "--", names[k]);
            snprintf(expected, sizeof(expected), "train.sh:7: %s: x (%s)", shown, shown);
            json_t *written = json_pack("{s:[s,s]}", a->name, shown, "train.sh:7");
            api_words_to_flags(text, &flags);
            api_words_as_written(buf_str(&flags), written, &out);
            assert_string_equal(buf_str(&out), expected);
            json_decref(written);
            buf_deinit(&flags);
            buf_deinit(&out);
            n++;
        }
    }
    assert_true(n > 60);
}

static void other_flags_stay_as_they_are(void **state)
{
    struct buf out = {0};
    json_t *written = json_pack("{s:[s,n]}", "pool", "-p");
    (void)state;
    api_words_as_written("--pool: no (--time, --nonsense, x--pool, --)", written, &out);
    assert_string_equal(buf_str(&out), "-p: no (--time, --nonsense, x--pool, --)");
    buf_deinit(&out);
    json_decref(written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_become_what_the_user_wrote),
        cmocka_unit_test(what_no_flag_sets_stays),
        cmocka_unit_test(every_option_is_named_by_its_flag),
        cmocka_unit_test(every_option_is_named_as_it_was_written),
        cmocka_unit_test(other_flags_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
