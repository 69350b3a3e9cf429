/* SPDX-License-Identifier: Apache-2.0
 *
 * Trimming the cache of fetched working directories. Building them, and fetching again when the
 * cache is damaged, is tested with a real belayd: tests/cli/test_local.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/task/workdir.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define HASH "%064d"

static char *put(const char *dir, const char *name, size_t bytes, int64_t age_s)
{
    char *path = mem_printf("%s/%s", dir, name), *content = mem_alloc(bytes);
    const struct timespec at = {time(NULL) - age_s, 0}, times[2] = {at, at};
    struct err e;
    assert_int_equal(fs_write_atomic(path, content, bytes, 0600, &e), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(content);
    return path;
}

static void recently_used_trees_stay_and_partial_writes_are_removed(void **state)
{
    char dir[] = "/tmp/belay-test.XXXXXX", name[128];
    char *files[5], *broken, *writing;
    struct err e;
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), HASH, i);
        /* the first was used last, then the fifth */
        files[i] = put(dir, name, 1000, 100 * (i == 0 ? 1 : 10 - i));
    }
    snprintf(name, sizeof(name), HASH ".0123456789abcdef", 1);
    broken = put(dir, name, 1000, 7200);
    snprintf(name, sizeof(name), HASH ".fedcba9876543210", 1);
    writing = put(dir, name, 1000, 10);
    workdir_trim(dir, 3500);
    for (int i = 0; i < 5; i++)
        assert_int_equal(fs_exists(files[i]), i == 0 || i >= 3);
    assert_false(fs_exists(broken));
    assert_true(fs_exists(writing));
    workdir_trim(dir, 0);
    for (int i = 0; i < 5; i++) {
        assert_false(fs_exists(files[i]));
        free(files[i]);
    }
    workdir_trim("/no/such/directory", 0);
    assert_int_equal(fs_remove_tree(dir, &e), 0);
    free(broken);
    free(writing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recently_used_trees_stay_and_partial_writes_are_removed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
