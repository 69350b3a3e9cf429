/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's copy of its agent: found, hashed, kept open; missing parts are reported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "scheduler/bundle.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_bundle_file(const char *dir, const char *name, const char *text)
{
    char *path = mem_printf("%s/%s", dir, name);
    struct err e;
    assert_int_equal(fs_write_atomic(path, text, strlen(text), 0644, &e), 0);
    free(path);
}

static void one_that_is_there_is_hashed_and_stays_as_it_was(void **state)
{
    char dir[] = "/tmp/belay-bundle-XXXXXX", text[8];
    struct bundles b;
    struct err e;
    (void)state;
    assert_non_null(mkdtemp(dir));
    write_bundle_file(dir, "agent-x86_64.tar.gz", "abc");
    assert_int_equal(bundles_open_dir(dir, &b, &e), 0);
    write_bundle_file(dir, "agent-x86_64.tar.gz", "another");
    const struct bundle *found = bundles_find(&b, "x86_64", &e);
    assert_non_null(found);
    assert_int_equal(found->size_bytes, 3);
    assert_string_equal(
        found->sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(pread(found->fd, text, sizeof(text), 0), 3);
    assert_memory_equal(text, "abc", 3);
    assert_null(bundles_find(&b, "aarch64", &e));
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_null(bundles_find(&b, "", &e));
    assert_int_equal(e.kind, ERR_INVALID);
    bundles_close(&b);
    assert_int_equal(fs_remove_tree(dir, &e), 0);
}

static void none_at_all_is_no_error(void **state)
{
    struct bundles b;
    struct err e;
    (void)state;
    assert_int_equal(bundles_open_dir("/nonexistent/belay", &b, &e), 0);
    assert_null(bundles_find(&b, "x86_64", &e));
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    bundles_close(&b);
    bundles_close(&(struct bundles){0});
}

static void one_that_cannot_be_is_refused(void **state)
{
    char dir[] = "/tmp/belay-bundle-XXXXXX";
    struct bundles b;
    struct err e;
    (void)state;
    assert_non_null(mkdtemp(dir));
    char *path = mem_printf("%s/agent-aarch64.tar.gz", dir);
    assert_int_equal(mkdir(path, 0700), 0); /* can be opened but not read */
    assert_true(bundles_open_dir(dir, &b, &e) < 0);
    assert_non_null(strstr(e.text, path));
    free(path);
    assert_int_equal(fs_remove_tree(dir, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_there_is_hashed_and_stays_as_it_was),
        cmocka_unit_test(none_at_all_is_no_error),
        cmocka_unit_test(one_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
