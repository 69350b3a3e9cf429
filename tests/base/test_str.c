/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/str.h"
#include <stdio.h>

static void a_copy_that_does_not_fit_is_truncated_and_reported(void **state)
{
    char dst[5];
    (void)state;
    assert_true(STR_COPY(dst, "four"));
    assert_string_equal(dst, "four");
    assert_false(STR_COPY(dst, "fiver"));
    assert_string_equal(dst, "five");
    assert_true(STR_COPY(dst, NULL));
    assert_string_equal(dst, "");
    assert_false(STR_COPY(dst, "ab\xE2\x82\xAC")); /* the euro sign would end at byte 5 */
    assert_string_equal(dst, "ab");
    assert_false(str_copy(dst, 1, "x"));
    assert_string_equal(dst, "");
}

static void truncation_keeps_whole_characters(void **state)
{
    static const char text[] = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80";
    static const size_t at[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    (void)state;
    for (size_t max = 0; max < LEN(at); max++)
        assert_int_equal(str_cut(text, sizeof(text) - 1, max), at[max]);
    assert_in_range(str_cut("\x80\x80\x80\x80\x80\x80", 6, 5), 2, 5); /* not UTF-8: still cut */
}

static void shown_input_is_short_and_escaped(void **state)
{
    char out[STR_SHOW_MAX], text[200];
    (void)state;
    assert_string_equal(str_show(NULL, out), "nothing");
    assert_string_equal(str_show("four", out), "\"four\"");
    assert_string_equal(str_show("a\nb\x1B[1m\x7F", out), "\"a?b?[1m?\"");
    assert_string_equal(str_show("\xC3\xA9 \xC3 \xFF\xA9", out), "\"\xC3\xA9 ? ??\"");
    assert_string_equal(str_show("\xC2\x9B\xC2\xA0", out), "\"??\xC2\xA0\"");
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    str_show(text, out);
    assert_int_equal(strlen(out), 48 + 2 + 3);
    assert_true(str_ends(out, "\"..."));
    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xC3\xA4", 3);
    str_show(text, out);
    assert_true(str_is_utf8(out, strlen(out)));
}

static void strings_are_compared(void **state)
{
    (void)state;
    assert_true(str_eq("a", "a") && str_eq(NULL, NULL));
    assert_false(str_eq("a", "b") || str_eq("a", NULL) || str_eq(NULL, "a"));
    assert_true(str_starts("abc", "ab") && str_starts("abc", "") && !str_starts("a", "ab"));
    assert_true(str_ends("abc", "bc") && str_ends("abc", "") && !str_ends("c", "bc"));
    const char *const list[] = {"a", "bc", NULL};
    assert_true(str_is_one_of("a", list) && str_is_one_of("bc", list));
    assert_false(
        str_is_one_of("b", list) || str_is_one_of("", list) || str_is_one_of("a", list + 2));
    assert_true(str_secret_eq("abc", "abc") && str_secret_eq("", ""));
    assert_false(
        str_secret_eq("abc", "abd") || str_secret_eq("abc", "ab") || str_secret_eq("", "a"));
}

static void integers_are_parsed_strictly(void **state)
{
    static const char *const bad[] = {"", " 1", "1 ", "+1", "--1", "1.0", "0x1", "1e3",
        "9223372036854775808", "-9223372036854775809", "99999999999999999999", "-", "\xD9\xA1"};
    struct err e;
    int64_t v = 7;
    (void)state;
    assert_int_equal(str_to_i64("0012", 0, 100, "x", &v, &e), 0);
    assert_int_equal(v, 12);
    assert_int_equal(str_to_i64("-9223372036854775808", INT64_MIN, INT64_MAX, "x", &v, &e), 0);
    assert_true(v == INT64_MIN);
    assert_int_equal(str_to_i64("9223372036854775807", INT64_MIN, INT64_MAX, "x", &v, &e), 0);
    assert_true(v == INT64_MAX);
    v = 7;
    for (size_t i = 0; i < LEN(bad); i++)
        assert_int_equal(str_to_i64(bad[i], INT64_MIN, INT64_MAX, "x", &v, &e), ERR_INVALID);
    assert_int_equal(str_to_i64("101", 0, 100, "--port", &v, &e), ERR_INVALID);
    assert_string_equal(e.text, "--port: expected an integer in 0 .. 100, found \"101\"");
    assert_int_equal(str_to_i64(NULL, 0, 1, "x", &v, NULL), ERR_INVALID);
    assert_int_equal(v, 7); /* unchanged on failure */
}

static void memory_sizes_are_parsed_and_formatted(void **state)
{
    static const struct {
        const char *text;
        int64_t mib;
    } good[] = {{"1", 1}, {"512M", 512}, {"4G", 4096}, {"4g", 4096}, {"1T", 1 << 20}, {"100K", 1},
        {"4GB", 4096}, {"512mb", 512}, {"1025k", 2}, {"1048576T", (int64_t)1 << 40}};
    static const char *const bad[] = {"", "0", "0K", "-1", "1.5G", "4BG", "4GBB", "4GiB", "4B",
        "4 G", "G", "1048577T", "18446744073709551616", "99999999999999999999T"};
    struct err e;
    int64_t v;
    (void)state;
    for (size_t i = 0; i < LEN(good); i++) {
        assert_int_equal(str_to_mib(good[i].text, &v, &e), 0);
        assert_int_equal(v, good[i].mib);
    }
    for (size_t i = 0; i < LEN(bad); i++)
        assert_int_equal(str_to_mib(bad[i], &v, &e), ERR_INVALID);
    assert_int_equal(str_to_mib(NULL, &v, &e), ERR_INVALID);
}

static void money_is_parsed_to_the_micro_dollar(void **state)
{
    static const struct {
        const char *text;
        int64_t uusd;
    } good[] = {{"0", 0}, {"3.56", 3560000}, {"0.000001", 1}, {"0.0000005", 1}, {"0.0000004999", 0},
        {"0.9999995", 1000000}, {"1000000000", 1000000000000000}, {"007.5", 7500000},
        {"1.23456789", 1234568}};
    static const char *const bad[] = {"", ".5", "5.", "-1", "+1", "1e3", "1,5", "$1",
        "1000000000.0000005", "1000000001", "99999999999999999999", "1.2.3", "1 "};
    struct err e;
    int64_t v = 7;
    (void)state;
    for (size_t i = 0; i < LEN(good); i++) {
        assert_int_equal(str_to_uusd(good[i].text, &v, &e), 0);
        assert_int_equal(v, good[i].uusd);
    }
    v = 7;
    for (size_t i = 0; i < LEN(bad); i++)
        assert_int_equal(str_to_uusd(bad[i], &v, &e), ERR_INVALID);
    assert_int_equal(v, 7);
}

static void money_is_formatted_briefly(void **state)
{
    static const struct {
        int64_t uusd;
        const char *text;
    } cases[] = {{0, "$0.00"}, {12340000, "$12.34"}, {500000, "$0.50"}, {4200, "$0.0042"},
        {12, "$0.000012"}, {-3000000, "-$3.00"}, {99, "$0.000099"}, {100, "$0.0001"},
        {999950, "$1.00"}, {999949, "$0.9999"}, {120000, "$0.12"}, {123000, "$0.123"},
        {1005000, "$1.01"}, {INT64_MAX, "$9223372036854.78"}, {INT64_MIN, "-$9223372036854.78"}};
    char out[40];
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        str_format_usd(cases[i].uusd, out, sizeof(out));
        assert_string_equal(out, cases[i].text);
    }
}

static void bytes_are_formatted_in_the_largest_unit(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"}, {812, "812 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"},
        {1258291, "1.2 MiB"}, {1048575, "1.0 MiB"}, {(uint64_t)1 << 40, "1.0 TiB"},
        {UINT64_MAX, "16.0 EiB"}};
    char out[40];
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        str_format_bytes(cases[i].bytes, out, sizeof(out));
        assert_string_equal(out, cases[i].text);
    }
}

static void a_close_name_is_suggested(void **state)
{
    static const char *const names[] = {"spot", "on-demand", "any", NULL};
    char longest[STR_NEAREST_MAX + 2];
    struct buf out = {0};
    (void)state;
    /* adjacent letters swapped: one edit */
    assert_string_equal(str_nearest("sopt", names), "spot");
    assert_string_equal(str_nearest("ondemand", names), "on-demand");
    assert_string_equal(str_nearest("an", names), "any");
    assert_null(str_nearest("reserved", names));
    static const char *const flags[] = {"time", "job-name-x", "job-name", "dame", NULL};
    assert_string_equal(str_nearest("name", flags), "job-name-x");
    /* two edits; a piece of a word is not a word */
    assert_string_equal(str_nearest("nam", flags), "dame");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    assert_null(str_nearest(longest, names));
    str_list_names(&out, "spto", names);
    assert_string_equal(out.data, "one of spot, on-demand, any (nearest: spot)");
    buf_clear(&out);
    str_list_names(&out, NULL, names);
    assert_string_equal(out.data, "one of spot, on-demand, any");
    buf_deinit(&out);
}

static void names_have_an_alphabet(void **state)
{
    (void)state;
    assert_true(str_is_name("a", 1) && str_is_name("us-east-1a", 20) && str_is_name("9._-", 4));
    assert_false(str_is_name("", 9) || str_is_name("-a", 9) || str_is_name(".a", 9) ||
                 str_is_name("a b", 9) || str_is_name("a/b", 9) || str_is_name("\xC3\xA4", 9) ||
                 str_is_name("abcd", 3));
}

static void utf8_is_validated_as_in_rfc_3629(void **state)
{
    static const char *const good[] = {"", "a", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80",
        "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
    static const char *const bad[] = {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41",
        "\xE0\x9F\xBF", "\xE2\x82", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF",
        "\xF0\x9F\x98", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xFE"};
    (void)state;
    for (size_t i = 0; i < LEN(good); i++)
        assert_true(str_is_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < LEN(bad); i++)
        assert_false(str_is_utf8(bad[i], strlen(bad[i])));
    assert_true(str_is_utf8("a\0b", 3));
    assert_int_equal(str_utf8_len("\xE2\x82\xAC!", 4), 3);
    assert_int_equal(str_utf8_len("x", 0), 0);
}

static void bytes_are_encoded_in_hex(void **state)
{
    unsigned char bytes[256], back[256] = {0};
    char text[513], want[3];
    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    str_hex(bytes, sizeof(bytes), text);
    assert_int_equal(strlen(text), 512);
    for (int i = 0; i < 256; i++) {
        snprintf(want, sizeof(want), "%02x", (unsigned)i);
        assert_memory_equal(text + 2 * i, want, 2);
    }
    assert_true(str_unhex(text, back, sizeof(back)));
    assert_memory_equal(back, bytes, sizeof(back));
    assert_true(str_unhex("", back, 0));
    assert_false(str_unhex(text, back, sizeof(back) - 1));
    assert_false(str_unhex("abc", back, 1));
    assert_false(str_unhex("abc", back, 2));
    assert_false(str_unhex("0G", back, 1));
    assert_false(str_unhex("0A", back, 1));
}

static void url_encoding_round_trips(void **state)
{
    static const char *const bad[] = {"%", "%4", "%4g", "%00", "a%0", "%%%"};
    char all[255];
    struct buf coded = {0}, back = {0};
    struct err e;
    (void)state;
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    str_url_encode(&coded, all, sizeof(all));
    assert_int_equal(
        strspn(coded.data, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~%"),
        coded.len);
    assert_int_equal(str_url_decode(&back, coded.data, coded.len, false, &e), 0);
    assert_int_equal(back.len, sizeof(all));
    assert_memory_equal(back.data, all, sizeof(all));
    buf_clear(&coded);
    str_url_encode(&coded, "a b/\0", 5);
    assert_string_equal(coded.data, "a%20b%2F%00");
    buf_clear(&back);
    assert_int_equal(str_url_decode(&back, "a+b%2b", 6, true, &e), 0);
    assert_int_equal(str_url_decode(&back, "a+b", 3, false, &e), 0);
    assert_string_equal(back.data, "a b+a+b");
    for (size_t i = 0; i < LEN(bad); i++)
        assert_int_equal(str_url_decode(&back, bad[i], strlen(bad[i]), true, &e), ERR_INVALID);
    assert_int_equal(str_url_decode(&back, "x\0", 2, true, &e), ERR_INVALID);
    assert_string_equal(back.data, "a b+a+b"); /* unchanged */
    buf_deinit(&coded);
    buf_deinit(&back);
}

/* Checked with the shell itself. */
static void a_quoted_word_is_one_word_to_the_shell(void **state)
{
    static const char *const words[] = {"", "plain", "a b", "it's", "''", "$HOME `id` \\ \"", "~",
        "A=1", "-n", "*", "a\nb", "#x", "!", "{a,b}"};
    (void)state;
    for (size_t i = 0; i < LEN(words); i++) {
        struct buf command = {0};
        char got[64];
        buf_adds(&command, "printf %s ");
        str_shell_quote(&command, words[i]);
        FILE *p = popen(command.data, "r");
        size_t n = fread(got, 1, sizeof(got) - 1, p);
        got[n] = 0;
        assert_int_equal(pclose(p), 0);
        assert_string_equal(got, words[i]);
        buf_deinit(&command);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_that_does_not_fit_is_truncated_and_reported),
        cmocka_unit_test(truncation_keeps_whole_characters),
        cmocka_unit_test(shown_input_is_short_and_escaped),
        cmocka_unit_test(strings_are_compared),
        cmocka_unit_test(integers_are_parsed_strictly),
        cmocka_unit_test(memory_sizes_are_parsed_and_formatted),
        cmocka_unit_test(money_is_parsed_to_the_micro_dollar),
        cmocka_unit_test(money_is_formatted_briefly),
        cmocka_unit_test(bytes_are_formatted_in_the_largest_unit),
        cmocka_unit_test(a_close_name_is_suggested),
        cmocka_unit_test(names_have_an_alphabet),
        cmocka_unit_test(utf8_is_validated_as_in_rfc_3629),
        cmocka_unit_test(bytes_are_encoded_in_hex),
        cmocka_unit_test(url_encoding_round_trips),
        cmocka_unit_test(a_quoted_word_is_one_word_to_the_shell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
