/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/json.h"
#include "base/mem.h"
#include <stdio.h>

static const char *const words[] = {"spot", "on-demand", NULL};

static json_t *parsed(const char *text)
{
    struct err e;
    json_t *v = NULL;
    if (json_parse(text, strlen(text), 1 << 20, &v, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    return v;
}

/* ---- texts ---- */

static void malformed_json_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {{"", "line 1"}, {"{", "line 1"}, {"[1,]", "line 1"},
        {"{\n\"a\":1,\n\"a\":2}", "line 3"}, {"1 2", "line 1"}, {"{'a':1}", "line 1"},
        {"\"\xFF\"", "line 1"}, {"\"\\ud800\"", "line 1"}, {"nul", "line 1"}, {"01", "line 1"},
        {"1e999", "line 1"}, {"99999999999999999999", "line 1"}, {"\"\n\"", "line 1"},
        {"{\"a\\u0000b\":1}", "line 1"}};
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        json_t *v = NULL;
        struct err e;
        assert_int_equal(
            json_parse(cases[i].text, strlen(cases[i].text), 1000, &v, &e), ERR_INVALID);
        assert_err(&e, ERR_INVALID, cases[i].part);
        assert_null(v);
    }
}

static void errors_do_not_quote_the_text(void **state)
{
    static const char text[] = "{\"token\": s3cr3t}";
    json_t *v;
    struct err e;
    (void)state;
    assert_int_equal(json_parse(text, strlen(text), 1000, &v, &e), ERR_INVALID);
    assert_null(strstr(e.text, "s3cr3t"));
}

static int parse_nested(char open, char close, int depth)
{
    char text[2 * 100 + 1];
    json_t *v = NULL;
    struct err e;
    memset(text, open, (size_t)depth);
    memset(text + depth, close, (size_t)depth);
    int rc = json_parse(text, (size_t)depth * 2, 1000, &v, &e);
    json_decref(v);
    return rc;
}

static void depth_and_size_are_limited(void **state)
{
    json_t *v;
    struct err e;
    (void)state;
    assert_int_equal(parse_nested('[', ']', JSON_DEPTH_MAX), 0);
    assert_int_equal(parse_nested('[', ']', JSON_DEPTH_MAX + 1), ERR_INVALID);
    assert_int_equal(json_parse("[1]", 3, 2, &v, &e), ERR_INVALID);
    assert_err(&e, ERR_INVALID, "limit of 2");
    /* Brackets inside strings are not nesting; text after n bytes is not read. */
    v = parsed("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[\"");
    json_decref(v);
    assert_int_equal(json_parse("1]", 1, 10, &v, &e), 0);
    json_decref(v);
}

static void values_are_counted_before_they_are_parsed(void **state)
{
    static const struct {
        const char *text;
        size_t n;
    } texts[] = {{"7", 1}, {"\"a,b[{\\\",\"", 1}, {"[1,2]", 3}, {"{\"a\":1,\"b\":[2,3,4]}", 6},
        {"[]", 2}, {"[[],[]]", 5}, {"", 1}, {"\"", 1}, {"\"\\", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(json_count_values(texts[i].text, strlen(texts[i].text)), texts[i].n);
}

static void any_bytes_are_encoded_as_readable_json(void **state)
{
    static const char wild[] = "a\xFF\xC3(\0b\xE2\x82";
    (void)state;
    json_t *s = json_textn(wild, sizeof(wild) - 1), *back;
    char *text = json_dump_text(s);
    back = parsed(text);
    assert_string_equal(json_string_value(back), "a\xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD"
                                                 "b\xEF\xBF\xBD\xEF\xBF\xBD");
    assert_true(json_equal(s, back));
    json_decref(s);
    json_decref(back);
    free(text);
    s = json_text(NULL);
    assert_true(json_is_null(s));
    json_decref(s);
    s = json_text("\xC3\xA4");
    assert_string_equal(json_string_value(s), "\xC3\xA4");
    json_decref(s);
}

/* ---- reading objects ---- */

static void a_reader_returns_members_or_defaults(void **state)
{
    json_t *v = parsed(
        "{\"n\":4,\"b\":true,\"s\":\"x\",\"w\":\"on-demand\",\"a\":[1,2],\"o\":{},\"z\":null}");
    struct json_reader r;
    struct err e;
    char text[8];
    (void)state;
    json_reader_init(&r, v, "spec", &e);
    assert_int_equal(json_req_i64(&r, "n", 1, 4), 4);
    assert_int_equal(json_opt_i64(&r, "absent", 1, 4, 9), 9);
    assert_int_equal(json_opt_i64(&r, "z", 1, 4, 9), 9); /* null counts as absent */
    assert_true(json_req_bool(&r, "b"));
    assert_true(json_opt_bool(&r, "absent", true));
    assert_string_equal(json_req_str(&r, "s", 1), "x");
    assert_null(json_opt_str(&r, "absent", 1, NULL));
    json_req_strcpy(&r, "s", text, sizeof(text));
    assert_string_equal(text, "x");
    json_opt_strcpy(&r, "absent", text, sizeof(text), "y");
    assert_string_equal(text, "y");
    assert_int_equal(json_req_enum(&r, "w", words), 1);
    assert_int_equal(json_opt_enum(&r, "absent", words, -5), -5);
    assert_int_equal(json_array_size(json_req_array(&r, "a", 2)), 2);
    assert_null(json_opt_array(&r, "absent", 2));
    assert_non_null(json_req_object(&r, "o"));
    assert_null(json_opt_object(&r, "absent"));
    assert_int_equal(json_reader_finish(&r), 0);
    json_decref(v);
}

static int64_t ignored;

static void ask(struct json_reader *r, const char *what, const char *key)
{
    char text[4];
    switch (*what) {
    case 'i':
        ignored += json_req_i64(r, key, 1, 4096);
        break;
    case 'b':
        ignored += json_req_bool(r, key);
        break;
    case 's':
        json_req_str(r, key, 4);
        break;
    case 'c':
        json_req_strcpy(r, key, text, sizeof(text));
        break;
    case 'e':
        json_req_enum(r, key, words);
        break;
    case 'a':
        json_req_array(r, key, 2);
        break;
    case 'o':
        json_req_object(r, key);
        break;
    }
}

static void errors_name_the_path_and_what_was_found(void **state)
{
    static const struct {
        const char *text, *what, *error;
    } cases[] = {
        {"{\"k\":\"four\"}", "i", "spec.k: expected an integer in 1 .. 4096, found \"four\""},
        {"{\"k\":4.0}", "i", "spec.k: expected an integer in 1 .. 4096, found 4.0"},
        {"{\"k\":0}", "i", "spec.k: expected an integer in 1 .. 4096, found 0"},
        {"{\"k\":null}", "i", "spec.k: expected an integer in 1 .. 4096, found null"},
        {"{}", "i", "spec.k: expected an integer in 1 .. 4096, found nothing"},
        {"{\"k\":1}", "b", "spec.k: expected true or false, found 1"},
        {"{\"k\":true}", "s", "spec.k: expected a string, found true"},
        {"{\"k\":\"12345\"}", "s", "spec.k: 5 bytes long, at most 4 are allowed"},
        {"{\"k\":\"1234\"}", "c", "spec.k: 4 bytes long, at most 3 are allowed"},
        {"{\"k\":\"sopt\"}", "e",
            "spec.k: expected one of spot, on-demand (nearest: spot), found \"sopt\""},
        {"{\"k\":[1]}", "e", "spec.k: expected one of spot, on-demand, found an array"},
        {"{\"k\":[1,2,3]}", "a", "spec.k: 3 items, at most 2 are allowed"},
        {"{\"k\":{}}", "a", "spec.k: expected an array, found an object"},
        {"{\"k\":false}", "o", "spec.k: expected an object, found false"},
        {"[]", "i", "spec: expected an object, found an array"},
    };
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        json_t *v = parsed(cases[i].text);
        struct json_reader r;
        struct err e = {0};
        json_reader_init(&r, v, "spec", &e);
        ask(&r, cases[i].what, "k");
        assert_int_equal(json_reader_finish(&r), ERR_INVALID);
        assert_string_equal(e.text, cases[i].error);
        json_decref(v);
    }
}

static void a_string_with_a_nul_is_refused(void **state)
{
    json_t *v = json_pack("{s:o}", "k", json_stringn("a\0b", 3));
    struct json_reader r;
    struct err e;
    (void)state;
    json_reader_init(&r, v, "", &e);
    assert_null(json_req_str(&r, "k", 9));
    assert_int_equal(json_reader_finish(&r), ERR_INVALID);
    assert_string_equal(e.text, "k: a NUL character is not allowed");
    json_decref(v);
}

static void after_the_first_error_a_reader_returns_defaults(void **state)
{
    json_t *v = parsed("{\"a\":\"x\",\"b\":7}");
    struct json_reader r;
    struct err e;
    (void)state;
    json_reader_init(&r, v, "", &e);
    assert_int_equal(json_opt_i64(&r, "a", 0, 9, 3), 3);
    assert_int_equal(json_opt_i64(&r, "b", 0, 9, 3), 3);
    json_reader_fail(&r, "b", "something else");
    assert_int_equal(json_reader_finish_lenient(&r), ERR_INVALID);
    assert_true(strstr(e.text, "a: expected") == e.text);
    json_decref(v);
}

static void unknown_keys_are_refused_with_a_suggestion(void **state)
{
    json_t *v = parsed("{\"cpu\":1}");
    struct json_reader r;
    struct err e;
    (void)state;
    json_reader_init(&r, v, "spec", &e);
    json_opt_i64(&r, "cpus", 1, 9, 1);
    assert_int_equal(json_reader_finish_lenient(&r), 0);
    assert_int_equal(json_reader_finish(&r), ERR_INVALID);
    assert_string_equal(e.text, "spec: unknown key \"cpu\"; did you mean \"cpus\"?");
    json_reader_init(&r, NULL, "spec", NULL); /* no error requested */
    assert_int_equal(json_reader_finish(&r), ERR_INVALID);
    json_decref(v);
}

static void json_is_appended_to_the_buffer(void **state)
{
    struct buf b = {0};
    (void)state;
    buf_adds(&b, "x=");
    json_add(&b, json_pack("{s:i}", "n", 1));
    json_add_secret(&b, json_pack("[s]", "word"));
    assert_string_equal(buf_str(&b), "x={\"n\":1}[\"word\"]");
    buf_deinit(&b);
}

static void secrets_are_wiped_at_any_depth(void **state)
{
    static const char zeros[] = "\0\0\0\0\0";
    json_t *one = json_string("inner"), *other = json_string("outer");
    (void)state;
    json_wipe(json_pack("{s:[i, {s:O}], s:O}", "list", 1, "key", one, "key", other));
    assert_memory_equal(json_string_value(one), zeros, 6);
    assert_memory_equal(json_string_value(other), zeros, 6);
    json_decref(one);
    json_decref(other);
    json_wipe(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_json_is_refused_with_its_line),
        cmocka_unit_test(errors_do_not_quote_the_text),
        cmocka_unit_test(depth_and_size_are_limited),
        cmocka_unit_test(values_are_counted_before_they_are_parsed),
        cmocka_unit_test(any_bytes_are_encoded_as_readable_json),
        cmocka_unit_test(json_is_appended_to_the_buffer),
        cmocka_unit_test(secrets_are_wiped_at_any_depth),
        cmocka_unit_test(a_reader_returns_members_or_defaults),
        cmocka_unit_test(errors_name_the_path_and_what_was_found),
        cmocka_unit_test(a_string_with_a_nul_is_refused),
        cmocka_unit_test(after_the_first_error_a_reader_returns_defaults),
        cmocka_unit_test(unknown_keys_are_refused_with_a_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
