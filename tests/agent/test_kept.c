/* SPDX-License-Identifier: Apache-2.0
 *
 * A kept checkpoint directory is found only by the next attempt of the same job, and is removed
 * when it is of no more use.
 */
#include "agent/task/kept.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* after the three above */
#include <cmocka.h>

struct place {
    char *dir, *kept, *tasks;
};

static int setup(void **state)
{
    struct place *p = mem_alloc(sizeof(*p));
    struct err e;
    p->dir = mem_strdup("/tmp/belay-kept-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->kept = mem_printf("%s/kept", p->dir);
    p->tasks = mem_printf("%s/tasks", p->dir);
    assert_int_equal(fs_mkdirs(p->tasks, 0700, &e), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    struct err e;
    assert_int_equal(fs_remove_tree(p->dir, &e), 0);
    free(p->dir);
    free(p->kept);
    free(p->tasks);
    free(p);
    return 0;
}

/* A task's directory with a checkpoint directory, of one file or empty. Borrowed until the next
 * call. */
static const char *make_tree(const struct place *p, int job, int attempt, bool is_empty)
{
    static char path[200];
    char file[220];
    struct err e;
    snprintf(path, sizeof(path), "%s/%d-%d/checkpoint", p->tasks, job, attempt);
    assert_int_equal(fs_mkdirs(path, 0700, &e), 0);
    snprintf(file, sizeof(file), "%s/state", path);
    if (!is_empty)
        assert_int_equal(fs_write_atomic(file, "x", 1, 0600, &e), 0);
    return path;
}

static void put(const struct place *p, int job, int attempt)
{
    kept_put(p->kept, job, attempt, make_tree(p, job, attempt, false));
}

/* Expects "JOB-ATTEMPT " of all, newest first. */
static void assert_kept(const struct place *p, const char *expected)
{
    struct kept v[20];
    size_t n = kept_list(p->kept, v, 20);
    char text[400] = "";
    int at = 0;
    for (size_t i = 0; i < n; i++)
        at += snprintf(
            text + at, sizeof(text) - (size_t)at, "%d-%d ", (int)v[i].job, (int)v[i].attempt);
    assert_string_equal(text, expected);
}

static void assert_found(
    const struct place *p, int job, int attempt, size_t max, const char *expected)
{
    char *v[8], text[400] = "";
    size_t n = kept_find(p->kept, p->tasks, job, attempt, v, max);
    int at = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(str_starts(v[i], p->dir));
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s ", v[i] + strlen(p->dir) + 1);
        free(v[i]);
    }
    assert_string_equal(text, expected);
}

static void only_earlier_attempts_of_the_job_are_found_the_newest_first(void **state)
{
    const struct place *p = *state;
    assert_found(p, 1, 5, 8, "");
    put(p, 1, 1);
    put(p, 1, 2);
    put(p, 11, 1);
    make_tree(p, 1, 3, false);
    make_tree(p, 1, 5, false);
    make_tree(p, 2, 4, false);
    assert_found(p, 1, 5, 8,
        "tasks/1-3/checkpoint tasks/1-2/checkpoint tasks/1-1/checkpoint kept/1-2 kept/1-1 ");
    assert_found(p, 1, 5, 2, "tasks/1-3/checkpoint tasks/1-2/checkpoint ");
    assert_found(p, 1, 1, 8, "");
    assert_found(p, 3, 9, 8, "");
}

static void empty_and_missing_directories_are_not_kept(void **state)
{
    const struct place *p = *state;
    struct stat st;
    kept_put(p->kept, 1, 1, make_tree(p, 1, 1, true));
    kept_put(p->kept, 1, 2, "/nowhere/at/all");
    assert_kept(p, "");
    put(p, 1, 3);
    put(p, 1, 3); /* repeated, as after restoring the disk from a backup */
    assert_kept(p, "1-3 ");
    assert_int_equal(stat(p->kept, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void unneeded_directories_are_removed_and_no_others(void **state)
{
    const struct place *p = *state;
    const struct kept over[] = {{.job = 2, .attempt = INT64_MAX}, {.job = 1, .attempt = 3}};
    kept_prune(p->kept, over, 2, 0); /* no such directory yet */
    put(p, 1, 2);
    put(p, 1, 3);
    put(p, 2, 7);
    put(p, 22, 1);
    char *strange = mem_printf("%s/2-7x", p->kept);
    assert_int_equal(mkdir(strange, 0700), 0);
    kept_prune(p->kept, NULL, 0, 0);
    kept_prune(p->kept, over, 2, 0);
    assert_true(fs_exists(strange));
    free(strange);
    assert_found(p, 1, 9, 8, "tasks/1-3/checkpoint tasks/1-2/checkpoint kept/1-3 ");
    assert_found(p, 2, 9, 8, "tasks/2-7/checkpoint ");
    assert_found(p, 22, 9, 8, "tasks/22-1/checkpoint kept/22-1 ");
}

static void the_oldest_are_removed_when_too_many_or_on_a_full_disk(void **state)
{
    const struct place *p = *state;
    struct kept v[20];
    for (int i = 1; i <= KEPT_MAX + 3; i++)
        put(p, 1, i);
    kept_prune(p->kept, NULL, 0, 0);
    assert_int_equal(kept_list(p->kept, v, 20), KEPT_MAX);
    assert_int_equal(v[0].attempt, KEPT_MAX + 3); /* within one second the greater attempts */
    kept_prune(p->kept, NULL, 0, KEPT_NONE);
    assert_kept(p, "");
}

/* A checkpoint that could be fetched ahead only in part. */
static void a_part_of_a_checkpoint_is_of_use_and_goes_with_its_mark(void **state)
{
    const struct place *p = *state;
    const struct kept over[] = {{.job = 1, .attempt = 3}};
    struct err e;
    put(p, 1, 2);
    char *whole = kept_path(p->kept, 1, 2), *part = mem_printf("%s.restoring", whole),
         *mark = mem_printf("%s.restores", whole);
    assert_int_equal(fs_mkdirs(part, 0700, &e), 0);
    assert_int_equal(fs_write_atomic(mark, "x", 1, 0600, &e), 0);
    assert_int_equal(fs_remove_tree(whole, &e), 0);
    assert_kept(p, "1-2 ");
    assert_found(p, 1, 3, 8, "tasks/1-2/checkpoint kept/1-2.restoring ");
    kept_prune(p->kept, over, 1, 0);
    assert_false(fs_exists(part));
    assert_false(fs_exists(mark));
    free(mark);
    free(part);
    free(whole);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(only_earlier_attempts_of_the_job_are_found_the_newest_first),
        TEST(empty_and_missing_directories_are_not_kept),
        TEST(unneeded_directories_are_removed_and_no_others),
        TEST(a_part_of_a_checkpoint_is_of_use_and_goes_with_its_mark),
        TEST(the_oldest_are_removed_when_too_many_or_on_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
