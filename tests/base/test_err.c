/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/str.h"
#include <errno.h>
#include <stdio.h>

static void an_error_has_kind_and_text(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(err_set(&e, ERR_QUOTA, "limit of %d vCPUs", 8), ERR_QUOTA);
    assert_int_equal(e.kind, ERR_QUOTA);
    assert_string_equal(e.text, "limit of 8 vCPUs");
    assert_int_equal(err_set(NULL, ERR_IO, "nobody %s", "listens"), ERR_IO);
}

static void a_text_may_be_formatted_from_itself(void **state)
{
    struct err e;
    (void)state;
    err_set(&e, ERR_IO, "disk");
    err_set(&e, ERR_CORRUPT, "%s, %s", e.text, e.text);
    assert_string_equal(e.text, "disk, disk");
}

static void a_text_is_always_one_line_of_utf8(void **state)
{
    struct err e;
    (void)state;
    err_set(&e, ERR_INVALID, "found %s", "a\nb\x1B[2J\x7F\xFF\xC3");
    assert_string_equal(e.text, "found a?b?[2J???");
    err_wrap(&e, "%s", "\xC2\x9B\xC3\xA9\t");
    assert_string_equal(e.text, "??\xC3\xA9?: found a?b?[2J???");
    err_errno(&e, ENOENT, "open %.2s", "a\xC3\xA9");
    assert_true(str_starts(e.text, "open a?: "));
}

static void wrapping_prepends_context_and_keeps_the_kind(void **state)
{
    struct err e;
    (void)state;
    err_set(&e, ERR_NOT_FOUND, "no file");
    assert_int_equal(err_wrap(&e, "job %d", 7), ERR_NOT_FOUND);
    assert_string_equal(e.text, "job 7: no file");
    err_wrap(&e, "%s", e.text);
    assert_string_equal(e.text, "job 7: no file: job 7: no file");
    assert_false(e.of_store || e.of_user);
    e.of_store = true;
    err_wrap(&e, "job %d", 7);
    assert_true(e.of_store && !e.of_user);
    err_set(&e, ERR_NOT_FOUND, "no file");
    assert_false(e.of_store || e.of_user);
    e.of_user = true;
    err_wrap(&e, "job %d", 7);
    assert_true(e.of_user && !e.of_store);
    err_errno(&e, ENOENT, "open %s", "a");
    assert_false(e.of_user);
}

static void errno_maps_to_kind_and_reason(void **state)
{
    static const struct {
        int errnum;
        enum err_kind kind;
    } cases[] = {{ENOSPC, ERR_NO_SPACE}, {EDQUOT, ERR_NO_SPACE}, {ENOENT, ERR_NOT_FOUND},
        {EEXIST, ERR_CONFLICT}, {EACCES, ERR_DENIED}, {EPERM, ERR_DENIED}, {ETIMEDOUT, ERR_TIMEOUT},
        {EIO, ERR_IO}, {ENOTDIR, ERR_IO}, {0, ERR_IO}};
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        struct err e;
        char expected[128];
        assert_int_equal(err_errno(&e, cases[i].errnum, "open %s", "x"), cases[i].kind);
        snprintf(expected, sizeof(expected), "open x: %s", strerror(cases[i].errnum));
        assert_string_equal(e.text, expected);
    }
}

static void no_memory(void *arg)
{
    err_errno(arg, ENOMEM, "open");
}

static void out_of_memory_aborts(void **state)
{
    struct err e;
    (void)state;
    assert_true(dies(no_memory, &e));
}

/* A prefix of `ascii` letters, then three-byte characters far beyond the limit. */
static void fill_wide(char *text, size_t size, size_t ascii)
{
    memset(text, 'a', ascii);
    for (size_t i = ascii; i + 3 < size; i += 3)
        memcpy(text + i, "\xE2\x82\xAC", 4);
}

static void long_texts_are_cut_between_characters(void **state)
{
    (void)state;
    for (size_t ascii = 0; ascii < 3; ascii++) {
        char text[2 * ERR_TEXT_MAX];
        struct err e;
        fill_wide(text, sizeof(text), ascii);
        err_set(&e, ERR_INVALID, "%s", text);
        assert_in_range(strlen(e.text), ERR_TEXT_MAX - 8, ERR_TEXT_MAX - 1);
        assert_true(str_is_utf8(e.text, strlen(e.text)));
        err_wrap(&e, "x");
        assert_in_range(strlen(e.text), ERR_TEXT_MAX - 8, ERR_TEXT_MAX - 1);
        assert_true(str_is_utf8(e.text, strlen(e.text)));
        assert_true(str_starts(e.text, "x: "));
        err_errno(&e, EIO, "%s", text);
        assert_true(str_is_utf8(e.text, strlen(e.text)));
        assert_true(str_ends(e.text, strerror(EIO)));
    }
}

/* With a path of 4,095 bytes in each layer the text still says what was tried and why it failed. */
static void long_paths_do_not_truncate_the_reason(void **state)
{
    char path[4096];
    struct err e;
    (void)state;
    memset(path, 'p', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    err_errno(&e, ENOSPC, "write %s", path);
    err_wrap(&e, "save checkpoint 1-2 of job 3 from %s", path);
    assert_true(str_starts(e.text, "save checkpoint 1-2 of job 3 from pp"));
    assert_true(str_ends(e.text, ": No space left on device"));
    err_set(&e, ERR_DENIED, "PUT %s%s: 403 AccessDenied; see the manual", path, path);
    assert_true(str_ends(e.text, ": 403 AccessDenied; see the manual"));
    assert_in_range(strlen(e.text), ERR_TEXT_MAX - 8, ERR_TEXT_MAX - 1);
}

static void kinds_and_names_map_both_ways(void **state)
{
    (void)state;
    for (int k = ERR_NONE; k >= ERR_NO_CREDENTIALS; k--) {
        const char *name = err_kind_name((enum err_kind)k);
        assert_true(str_is_name(name, 32));
        assert_int_equal(err_kind_from_name(name), k);
    }
    assert_non_null(err_kind_name((enum err_kind) - 1000));
    assert_int_equal(err_kind_from_name("nonsense"), ERR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_has_kind_and_text),
        cmocka_unit_test(a_text_may_be_formatted_from_itself),
        cmocka_unit_test(a_text_is_always_one_line_of_utf8),
        cmocka_unit_test(wrapping_prepends_context_and_keeps_the_kind),
        cmocka_unit_test(errno_maps_to_kind_and_reason),
        cmocka_unit_test(out_of_memory_aborts),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(long_paths_do_not_truncate_the_reason),
        cmocka_unit_test(kinds_and_names_map_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
