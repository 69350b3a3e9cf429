/* SPDX-License-Identifier: Apache-2.0
 *
 * Forms, XML.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/form.h"
#include "emulator/xml_write.h"
#include "tests/emulator/world.h"
#include <stdlib.h>
#include <string.h>

static struct form parse(const char *text)
{
    struct form f = {0};
    struct err e = {0};
    if (form_parse(text, strlen(text), &f, &e) < 0)
        fail_msg("%s: %s", text, e.text);
    return f;
}

static void a_form_is_decoded(void **state)
{
    struct form f = parse("&b=1+2%263&a=&c&d=%C3%A4&&");
    (void)state;
    assert_int_equal(f.n, 4);
    assert_string_equal(form_get(&f, "b"), "1 2&3");
    assert_string_equal(form_get(&f, "%s", "a"), "");
    assert_string_equal(form_get(&f, "c"), "");
    assert_string_equal(form_get(&f, "d"), "\xc3\xa4");
    assert_null(form_get(&f, "e"));
    form_deinit(&f);
}

static void unused_parameters_are_named(void **state)
{
    struct form f = parse("Action=X&Block.1.Name=a&Blocks=2&Zone=3");
    (void)state;
    form_get(&f, "Action");
    assert_true(form_use_all(&f, "Block"));
    assert_false(form_use_all(&f, "Nothing"));
    assert_string_equal(form_unused(&f), "Blocks"); /* "Block" is not a prefix of that name */
    form_get(&f, "Blocks");
    form_get(&f, "Zone");
    assert_null(form_unused(&f));
    form_deinit(&f);
}

static void malformed_forms_are_refused(void **state)
{
    static const char *const bad[] = {"a=%", "a=%4", "a=%zz", "a=%00", "a=1&a=2", "a=%ff", "%ff=a"};
    struct form f;
    struct err e;
    struct buf many = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(form_parse(bad[i], strlen(bad[i]), &f, &e), ERR_INVALID);
    for (int i = 0; i <= FORM_PARAMS_MAX; i++)
        buf_printf(&many, "p%d=1&", i);
    assert_int_equal(form_parse(buf_str(&many), many.len, &f, &e), ERR_INVALID);
    buf_clear(&many);
    buf_adds(&many, "a=");
    while (many.len <= FORM_BYTES_MAX)
        buf_adds(&many, "0123456789abcdef");
    assert_int_equal(form_parse(buf_str(&many), many.len, &f, &e), ERR_INVALID);
    buf_deinit(&many);
}

static void fingerprints_tell_parameters_apart(void **state)
{
    static const char *const except[] = {"Token", NULL};
    static const struct {
        const char *a, *b;
        bool is_same;
    } pairs[] = {
        {"x=1&y=2", "y=2&x=1", true},
        {"x=1&Token=a", "x=1&Token=b", true},
        {"x=1", "x=2", false},
        {"x=1&y=2", "x=1%0A1%3Ay=2", false},
        {"x=1", "x=1&y=", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct form a = parse(pairs[i].a), b = parse(pairs[i].b);
        char of_a[65], of_b[65];
        form_fingerprint(&a, except, of_a);
        form_fingerprint(&b, except, of_b);
        assert_int_equal(str_eq(of_a, of_b), pairs[i].is_same);
        form_deinit(&a);
        form_deinit(&b);
    }
}

static void xml_values_cannot_break_out(void **state)
{
    struct buf b = {0};
    (void)state;
    xmlw_leaf(&b, "v", "<a href=\"x\">&\x01\n\xef\xbf\xbe");
    xmlw_leaf(&b, "none", NULL);
    xmlw_printf(&b, "n", "%d", 7);
    assert_string_equal(buf_str(&b), "<v>&lt;a href=&quot;x&quot;&gt;&amp;?\n?</v><n>7</n>");
    buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_form_is_decoded),
        cmocka_unit_test(unused_parameters_are_named),
        cmocka_unit_test(malformed_forms_are_refused),
        cmocka_unit_test(fingerprints_tell_parameters_apart),
        cmocka_unit_test(xml_values_cannot_break_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
