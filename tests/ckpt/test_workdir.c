/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of a working directory, as a text, and its content in packs.
 */
#include "ckpt/workdir.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/ckpt/tools.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEAD "belay-workdir 1\n"

static int parse(const char *text, struct workdir *ret, struct err *e)
{
    return workdir_parse(text, strlen(text), ret, e);
}

static void what_is_written_is_read(void **state)
{
    static const char hashes[2][CHUNK_HEX_SIZE] = {A, B};
    struct workdir w;
    struct buf text = {0};
    struct err e;
    (void)state;
    workdir_begin(&text);
    OK(workdir_add_dir(&text, "src", 0755, &e));
    OK(workdir_add_file(&text, "src/a b.py", 0644, 0, NULL, &e));
    OK(workdir_add_file(&text, "src/big", 0700, (int64_t)WORKDIR_PIECE_BYTES + 1, hashes, &e));
    OK(workdir_add_link(&text, "to", "../else where", &e));
    assert_string_equal(buf_str(&text), HEAD "d 755 src\nf 644 0 - src/a b.py\nf 700 4194305 " A
                                             "," B " src/big\nl to\t../else where\n");
    OK(workdir_parse(text.data, text.len, &w, &e));
    assert_int_equal(w.n, 4);
    assert_int_equal(w.bytes, WORKDIR_PIECE_BYTES + 1);
    assert_int_equal(w.v[0].kind, WORKDIR_DIR);
    assert_int_equal(w.v[1].pieces, 0);
    assert_int_equal(w.v[2].mode, 0700);
    assert_int_equal(w.v[2].pieces, 2);
    assert_string_equal(w.hashes[w.v[2].piece + 1], B);
    assert_int_equal(workdir_piece_bytes(w.v[2].size, 0), WORKDIR_PIECE_BYTES);
    assert_int_equal(workdir_piece_bytes(w.v[2].size, 1), 1);
    assert_string_equal(w.v[3].target, "../else where");
    workdir_deinit(&w);
    OK(parse(HEAD, &w, &e)); /* an empty one */
    assert_int_equal(w.n, 0);
    workdir_deinit(&w);
    buf_deinit(&text);
}

static void what_could_leave_the_directory_is_refused(void **state)
{
    static const char *const paths[] = {
        "/etc", "../x", "a/../../x", "a//b", "a/", "", ".", "a/.", "./a", "a\tb", "a\x7f", "\xff"};
    static const char *const texts[] = {
        "l a\t/etc\nf 644 0 - a/passwd\n", /* through a link */
        "f 644 0 - a\nf 644 0 - a/b\n",    /* in a file */
        "f 644 0 - a/b\n",                 /* without a parent */
        "d 755 ../a\n",
        "d 755 /a\n",
        "f 644 0 - a/../b\n",
        "l ../a\tb\n",
        "l a\t\n",
        "l a\n",
    };
    struct workdir w;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        struct buf out = {0};
        assert_false(workdir_is_path(paths[i]));
        FAILS(ERR_INVALID, workdir_add_dir(&out, paths[i], 0755, &e));
        FAILS(ERR_INVALID, workdir_add_link(&out, paths[i], "x", &e));
        buf_deinit(&out);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        char *text = mem_printf(HEAD "%s", texts[i]);
        FAILS(ERR_INVALID, parse(text, &w, &e));
        free(text);
    }
}

static void malformed_texts_are_refused_with_their_line(void **state)
{
    static const char *const texts[] = {
        "x 644 a\n",
        "d\n",
        "d a\n",
        "d 0755 a\n",
        "d 1755 a\n",
        "d 8 a\n",
        "d 755 a",
        "f 644 a\n",
        "f 644 1 a\n",
        "f 644 1 - a\n",
        "f 644 0 " A " a\n",
        "f 644 01 " A " a\n",
        "f 644 -1 " A " a\n",
        "f 644 1 " A "," B " a\n",
        "f 644 1 A" A " a\n",
        "f 644 4194305 " A " a\n",
        "f 644 4194305 " A " " B " a\n",
        "f 644 2147483649 " A " a\n",
        "f 644 99999999999999999999 " A " a\n",
        "d 755 b\nd 755 a\n",
        "d 755 a\nd 755 a\n",
        "\n",
        "d 755  a\n\n",
    };
    struct workdir w;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        char *text = mem_printf(HEAD "%s", texts[i]);
        int rc = parse(text, &w, &e);
        if (rc != ERR_INVALID || !strstr(e.text, "line "))
            fail_msg("%s: %d %s", texts[i], rc, e.text);
        free(text);
    }
    FAILS(ERR_INVALID, parse("", &w, &e));
    FAILS(ERR_INVALID, parse("belay-workdir 2\n", &w, &e));
    FAILS(ERR_INVALID, workdir_parse(HEAD "d 755 a\0b\n", strlen(HEAD) + 10, &w, &e));
}

static void limits_hold(void **state)
{
    struct workdir w;
    struct buf text = {0};
    struct err e;
    char path[WORKDIR_PATH_MAX + 2], name[16];
    (void)state;
    workdir_begin(&text);
    for (int i = 0; i < WORKDIR_ENTRIES_MAX; i++) {
        snprintf(name, sizeof(name), "%06d", i);
        OK(workdir_add_dir(&text, name, 0755, &e));
    }
    OK(workdir_parse(text.data, text.len, &w, &e));
    workdir_deinit(&w);
    OK(workdir_add_dir(&text, "more", 0755, &e));
    FAILS(ERR_INVALID, workdir_parse(text.data, text.len, &w, &e));
    char *large = mem_alloc(WORKDIR_TEXT_BYTES + 1);
    FAILS(ERR_INVALID, workdir_parse(large, WORKDIR_TEXT_BYTES + 1, &w, &e));
    free(large);
    buf_deinit(&text);
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 ? '/' : 'a';
    path[2 * WORKDIR_DEPTH_MAX - 1] = '\0';
    assert_true(workdir_is_path(path));
    path[2 * WORKDIR_DEPTH_MAX - 1] = '/';
    path[2 * WORKDIR_DEPTH_MAX + 1] = '\0';
    assert_false(workdir_is_path(path));
    memset(path, 'a', sizeof(path));
    path[255] = '\0';
    assert_true(workdir_is_path(path));
    path[255] = 'a';
    path[256] = '\0';
    assert_false(workdir_is_path(path));
}

static void packs_are_checked_piece_by_piece(void **state)
{
    struct buf pack = {0};
    struct workdir_piece x;
    char one[CHUNK_HEX_SIZE], two[CHUNK_HEX_SIZE];
    struct err e;
    (void)state;
    chunk_hash("one", 3, one);
    chunk_hash("", 1, two);
    workdir_pack(&pack, one, "one", 3);
    workdir_pack(&pack, two, "", 1);
    const char *p = pack.data;
    size_t n = pack.len;
    assert_int_equal(workdir_unpack(&p, &n, &x, &e), 1);
    assert_string_equal(x.hash, one);
    assert_memory_equal(x.p, "one", 3);
    assert_int_equal(workdir_unpack(&p, &n, &x, &e), 1);
    assert_int_equal(x.n, 1);
    assert_int_equal(workdir_unpack(&p, &n, &x, &e), 0);
    pack.data[68] ^= 1; /* content */
    p = pack.data;
    n = pack.len;
    FAILS(ERR_CORRUPT, workdir_unpack(&p, &n, &x, &e));
    static const char *const bad[] = {"", A, A "\n", A " \n", A " 0\n", A " 5\nabc",
        A " 99999999\n", A " -1\n", "A" A " 1\nx", "\n"};
    for (size_t i = 1; i < sizeof(bad) / sizeof(*bad); i++) {
        p = bad[i];
        n = strlen(bad[i]);
        FAILS(ERR_INVALID, workdir_unpack(&p, &n, &x, &e));
    }
    buf_deinit(&pack);
}

static void questions_are_checked(void **state)
{
    static const char *const bad[] = {"", A, A B, A "\n" B, "\n" A, "G" A "\n"};
    char(*v)[CHUNK_HEX_SIZE];
    size_t n;
    struct err e;
    (void)state;
    OK(workdir_parse_request(A "\n" B "\n", 130, &v, &n, &e));
    assert_int_equal(n, 2);
    assert_string_equal(v[1], B);
    free(v);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        FAILS(ERR_INVALID, workdir_parse_request(bad[i], strlen(bad[i]), &v, &n, &e));
    char *many = mem_alloc(65 * (WORKDIR_ASK_MAX + 1));
    FAILS(ERR_INVALID, workdir_parse_request(many, 65 * (WORKDIR_ASK_MAX + 1), &v, &n, &e));
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_could_leave_the_directory_is_refused),
        cmocka_unit_test(malformed_texts_are_refused_with_their_line),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(packs_are_checked_piece_by_piece),
        cmocka_unit_test(questions_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
