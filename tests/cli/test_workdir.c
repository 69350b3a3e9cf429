/* SPDX-License-Identifier: Apache-2.0
 *
 * The selection of files for --workdir upload.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/workdir/ignore.h"
#include "cli/workdir/workdir_scan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- patterns ---- */

static enum ignored look(const char *patterns, const char *path, bool is_dir)
{
    struct ignore g;
    struct err e;
    if (ignore_parse(patterns, strlen(patterns), &g, &e) != 0)
        fail_msg("%s: %s", patterns, e.text);
    enum ignored said = ignore_match(&g, path, is_dir);
    ignore_deinit(&g);
    return said;
}

static void patterns_mean_what_they_do_in_gitignore(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool is_dir, hit;
    } cases[] = {
        {"*.o", "a.o", false, true},
        {"*.o", "x/y/a.o", false, true},
        {"*.o", "a.op", false, false},
        {"/*.o", "a.o", false, true},
        {"/*.o", "x/a.o", false, false},
        {"x/*.o", "x/a.o", false, true},
        {"x/*.o", "y/x/a.o", false, false},
        {"x/*.o", "x/y/a.o", false, false},
        {"data/", "data", true, true},
        {"data/", "data", false, false},
        {"data/", "x/data", true, true},
        {"/data/", "x/data", true, false},
        {"**/data", "data", false, true},
        {"**/data", "a/b/data", false, true},
        {"a/**", "a/b/c", false, true},
        {"a/**", "a", true, false},
        {"a/**/b", "a/b", false, true},
        {"a/**/b", "a/x/y/b", false, true},
        {"a/**/b", "ab", false, false},
        {"[a-c]?", "bz", false, true},
        {"[!a-c]?", "bz", false, false},
        {"\\#x", "#x", false, true},
        {"\\!x", "!x", false, true},
        {"#x", "#x", false, false},
        {"x\\ ", "x ", false, true},
        {"x  ", "x", false, true},
        {"x\r", "x", false, true},
        {"*", ".hidden", false, true},
        {"foo*bar", "foo/bar", false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if ((look(cases[i].pattern, cases[i].path, cases[i].is_dir) == IGNORED_YES) != cases[i].hit)
            fail_msg("%s and %s", cases[i].pattern, cases[i].path);
}

static void the_last_pattern_counts(void **state)
{
    (void)state;
    assert_int_equal(look("*.log\n!keep.log\n", "a.log", false), IGNORED_YES);
    assert_int_equal(look("*.log\n!keep.log\n", "x/keep.log", false), IGNORED_REINCLUDED);
    assert_int_equal(look("!keep.log\n*.log\n", "keep.log", false), IGNORED_YES);
    assert_int_equal(look("\n\n# all\n", "a", false), IGNORED_NOT_NAMED);
    assert_int_equal(look("a", "b", false), IGNORED_NOT_NAMED);
}

static void malformed_patterns_name_their_line(void **state)
{
    char long_line[IGNORE_PATTERN_MAX + 2];
    static const char *const bad[] = {"ok\n/\n", "ok\n!\n", "ok\n**/**/**/**/**/a\n"};
    struct ignore g;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(ignore_parse(bad[i], strlen(bad[i]), &g, &e), ERR_INVALID);
        assert_non_null(strstr(e.text, "line 2"));
    }
    memset(long_line, 'a', sizeof(long_line));
    assert_int_equal(ignore_parse(long_line, sizeof(long_line), &g, &e), ERR_INVALID);
    assert_int_equal(ignore_parse("a\0b", 3, &g, &e), ERR_INVALID);
}

/* ---- directories ---- */

struct rig {
    char dir[64];
    struct buf warned;
};

static void on_warning(void *ctx, const char *text)
{
    struct rig *p = ctx;
    buf_printf(&p->warned, "%s\n", text);
}

static int set_up(void **state)
{
    struct rig *p = mem_alloc(sizeof(*p));
    STR_COPY(p->dir, "/tmp/belay-test.XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *p = *state;
    struct err e;
    assert_int_equal(fs_remove_tree(p->dir, &e), 0);
    buf_deinit(&p->warned);
    free(p);
    return 0;
}

static void shell(const struct rig *p, const char *commands)
{
    char *whole = mem_printf("cd %s && { %s; } >/dev/null 2>&1", p->dir, commands);
    if (system(whole) != 0)
        fail_msg("%s", commands);
    free(whole);
}

/* The paths, each followed by a blank. */
static char *scan(struct rig *p)
{
    struct workdir_scan s;
    struct buf out = {0};
    struct err e;
    if (workdir_scan(p->dir, on_warning, p, &s, &e) != 0)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < s.n; i++)
        buf_printf(&out, "%s ", s.v[i].path);
    workdir_scan_deinit(&s);
    return buf_take(&out);
}

static void check(struct rig *p, const char *expected)
{
    char *found = scan(p);
    assert_string_equal(found ? found : "", expected);
    free(found);
}

static void all_is_sent_but_what_is_left_out(void **state)
{
    struct rig *p = *state;
    shell(p,
        "mkdir -p a/b a/skip empty .git; touch a/b/x a/skip/y a/t.tmp z; ln -s nowhere link; touch "
        ".git/x; mkfifo pipe");
    check(p, "a a/b a/b/x a/skip a/skip/y a/t.tmp empty link z ");
    assert_non_null(strstr(p->warned.data, "\"pipe\" is not sent"));
    shell(p, "printf 'skip/\\n*.tmp\\npipe\\n' >.belayignore");
    check(p, ".belayignore a a/b a/b/x empty link z ");
    shell(p, "echo '!.git' >>.belayignore");
    check(p, ".belayignore .git .git/x a a/b a/b/x empty link z ");
}

static void in_a_work_tree_git_says_what_is_sent(void **state)
{
    struct rig *p = *state;
    if (system("git --version >/dev/null 2>&1") != 0)
        skip();
    shell(p, "git init -q . && mkdir -p sub/out && touch tracked.log sub/new sub/out/o gone "
             "more.tmp && git add -f tracked.log gone && rm gone && "
             "echo '*.log' >.gitignore && echo /out >sub/.gitignore && touch other.log");
    check(p, ".gitignore more.tmp sub sub/.gitignore sub/new tracked.log ");
    shell(p, "echo '*.tmp' >.belayignore && echo 'sub' >>.belayignore");
    check(p, ".belayignore .gitignore tracked.log ");
    shell(p, "rm .belayignore; git init -q inner && touch inner/file");
    check(p, ".gitignore inner inner/file more.tmp sub sub/.gitignore sub/new tracked.log ");
    strcat(p->dir, "/sub"); /* below the top of the work tree */
    check(p, ".gitignore new ");
    *strrchr(p->dir, '/') = '\0';
}

static void what_is_too_large_is_named(void **state)
{
    struct rig *p = *state;
    struct workdir_scan s;
    struct err e;
    shell(
        p, "mkdir data src; truncate -s 1500M data/one; truncate -s 600M data/two; echo x >src/a");
    assert_int_equal(workdir_scan(p->dir, on_warning, p, &s, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "2.1 GiB in 5 entries"));
    assert_non_null(strstr(e.text, "\"data\" 2.1 GiB in 3, \"src\" 2 B in 2"));
    assert_non_null(strstr(e.text, ".belayignore"));
}

static void a_name_that_cannot_be_sent_is_refused(void **state)
{
    struct rig *p = *state;
    struct workdir_scan s;
    struct err e;
    shell(p, "touch \"$(printf 'a\\nb')\"");
    assert_int_equal(workdir_scan(p->dir, on_warning, p, &s, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "\"a?b\" cannot be sent"));
    shell(p, "echo 'a?b' >.belayignore");
    check(p, ".belayignore ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_mean_what_they_do_in_gitignore),
        cmocka_unit_test(the_last_pattern_counts),
        cmocka_unit_test(malformed_patterns_name_their_line),
        cmocka_unit_test_setup_teardown(all_is_sent_but_what_is_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_a_work_tree_git_says_what_is_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_too_large_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_name_that_cannot_be_sent_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
