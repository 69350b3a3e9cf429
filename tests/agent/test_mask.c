/* SPDX-License-Identifier: Apache-2.0
 *
 * No byte of a secret passes, wherever the pieces of output end, and all other bytes do.
 */
#include "agent/supervisor/mask.h"

#include "base/mem.h"
#include "base/prng.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

static struct mask *mask_of(const char *const *values)
{
    struct mask *m = mask_create();
    for (; *values; values++)
        mask_add(m, *values, strlen(*values));
    return m;
}

/* Feeds the text in pieces of this size; the caller frees the result. */
static char *masked(const struct mask *m, const char *text, size_t piece)
{
    struct mask_stream *s = mask_stream_create(m);
    size_t n = strlen(text), out = 0;
    char *result = mem_alloc(4 * n + 8), *p = mem_alloc(mask_room(m, piece));
    for (size_t at = 0; at <= n; at += piece) {
        size_t now = n - at < piece ? n - at : piece;
        memcpy(p, text + at, now);
        now = mask_turn(s, p, now, at + piece > n);
        assert_true(now <= mask_room(m, piece));
        memcpy(result + out, p, now);
        out += now;
    }
    result[out] = '\0';
    free(p);
    mask_stream_destroy(s);
    return result;
}

static void expect(const char *const *values, const char *text, const char *expected)
{
    struct mask *m = mask_of(values);
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        char *got = masked(m, text, piece);
        assert_string_equal(got, expected);
        free(got);
    }
    mask_destroy(m);
}

#define VALUES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_value_is_hidden_across_every_border(void **state)
{
    (void)state;
    expect(VALUES("hunter2hunter3"), "key=hunter2hunter3\n", "key=***\n");
    expect(VALUES("hunter2hunter3"), "hunter2hunter2hunter3", "hunter2***");
    expect(VALUES("hunter2hunter3"), "hunter2hunter", "hunter2hunter");
    expect(VALUES("hunter2hunter3\n\n"), "(hunter2hunter3)", "(***)");
    expect(VALUES("hunter2hunter3"), "", "");
    expect(VALUES("hunter2hunter3"), "hunter2hunter3hunter2hunter3", "***");
}

static void overlapping_values_are_hidden_whole(void **state)
{
    (void)state;
    expect(VALUES("abcdefgh", "fghijklm"), "<abcdefghijklm>", "<***>");
    expect(VALUES("abcdefghij", "cdefghij"), "<abcdefghij> <cdefghij>", "<***> <***>");
    expect(VALUES("aaaaaaaa"), "b aaaaaaaaaaaa b", "b *** b");
    expect(VALUES("aaaaaaab"), "aaaaaaaaaaaab", "aaaaa***");
    expect(VALUES("abababac"), "ababababacab", "ab***ab");
}

static void a_short_value_is_not_hidden(void **state)
{
    (void)state;
    expect(VALUES("1234567"), "1234567", "1234567");
    expect(VALUES("1234567\n"), "1234567\n", "1234567\n");
    expect(VALUES("12345678"), "12345678", "***");
}

/* What comes out is the text with all occurrences cut out, by a second, slow way. */
static void random_texts_agree_with_a_plain_search(void **state)
{
    struct prng p;
    char text[200], value[13], slow[800];
    bool covered[200];
    (void)state;
    prng_init(&p, 7);
    for (int round = 0; round < 3000; round++) {
        size_t n = (size_t)prng_below(&p, sizeof(text)), k = 8 + (size_t)prng_below(&p, 5);
        for (size_t i = 0; i < n; i++)
            text[i] = (char)('a' + prng_below(&p, 2));
        text[n] = '\0';
        for (size_t i = 0; i < k; i++)
            value[i] = (char)('a' + prng_below(&p, 2));
        value[k] = '\0';
        memset(covered, 0, sizeof(covered));
        for (size_t i = 0; i + k <= n; i++)
            if (memcmp(text + i, value, k) == 0)
                memset(covered + i, true, k);
        size_t out = 0;
        for (size_t i = 0; i < n; i++)
            if (!covered[i])
                slow[out++] = text[i];
            else if (i == 0 || !covered[i - 1])
                out += (size_t)sprintf(slow + out, "***");
        slow[out] = '\0';
        struct mask *m = mask_of(VALUES(value));
        char *got = masked(m, text, 1 + (size_t)prng_below(&p, 30));
        assert_string_equal(got, slow);
        free(got);
        mask_destroy(m);
    }
}

static void another_process_hides_the_same_values(void **state)
{
    (void)state;
    struct mask *m = mask_of(VALUES("hunter2hunter3", "second\nvalue")), *copy;
    int fd = mask_save(m);
    assert_true(fd >= 0);
    copy = mask_load(fd);
    assert_non_null(copy);
    char *got = masked(copy, "<hunter2hunter3> <second\nvalue> <hunter2>", 3);
    assert_string_equal(got, "<***> <***> <hunter2>");
    free(got);
    mask_destroy(copy);
    mask_destroy(m);
    close(fd);
}

static struct mask *load_of(const void *bytes, size_t n)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    struct mask *m = mask_load(fd);
    close(fd);
    return m;
}

static void a_malformed_file_is_refused(void **state)
{
    (void)state;
    static const char good[] = "\x08\0\0\0abcdefgh";
    char many[(MASK_VALUES_MAX + 1) * (sizeof(good) - 1)];
    struct mask *m = load_of(good, sizeof(good) - 1);
    assert_non_null(m);
    mask_destroy(m);
    for (size_t n = 1; n < sizeof(good) - 1; n++)
        assert_null(load_of(good, n));
    assert_null(load_of("\x07\0\0\0abcdefg", 11)); /* shorter than any value */
    assert_null(load_of("\xff\xff\xff\xff"
                        "abcdefgh",
        12));
    for (size_t k = 0; k <= MASK_VALUES_MAX; k++)
        memcpy(many + k * (sizeof(good) - 1), good, sizeof(good) - 1);
    assert_null(load_of(many, sizeof(many)));
    assert_null(mask_load(-1));
    m = load_of("", 0); /* no value */
    assert_non_null(m);
    mask_destroy(m);
}

static void what_is_held_back_can_be_released(void **state)
{
    (void)state;
    struct mask *m = mask_of(VALUES("hunter2hunter3"));
    struct mask_stream *s = mask_stream_create(m);
    char p[64] = "> hunter2";
    assert_int_equal(mask_turn(s, p, 9, false), 2);
    assert_int_equal(mask_release(s, p), 7);
    assert_memory_equal(p, "hunter2", 7);
    assert_int_equal(mask_release(s, p), 0);
    memcpy(p, "hunter3 hunter2hunter3", 22);
    size_t n = mask_turn(s, p, 22, true); /* the beginning was given away */
    assert_int_equal(n, 11);
    assert_memory_equal(p, "hunter3 ***", n);
    mask_stream_destroy(s);
    mask_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_hidden_across_every_border),
        cmocka_unit_test(overlapping_values_are_hidden_whole),
        cmocka_unit_test(a_short_value_is_not_hidden),
        cmocka_unit_test(random_texts_agree_with_a_plain_search),
        cmocka_unit_test(another_process_hides_the_same_values),
        cmocka_unit_test(a_malformed_file_is_refused),
        cmocka_unit_test(what_is_held_back_can_be_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
