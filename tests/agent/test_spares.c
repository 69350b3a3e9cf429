/* SPDX-License-Identifier: Apache-2.0
 *
 * Only directories without remains of the previous task are reused.
 */
#include "agent/supervisor/spares.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cmocka.h>

#define TASK "tasks/7-1"
#define SPARE SPARE_PREFIX "7-1"

static const char *const files[] = {"spec.json", "script"};

static int set_up(void **state)
{
    static const char template[] = "/tmp/belay-spares-XXXXXX";
    char *dir = mem_strdup(template);
    *state = dir;
    return !mkdtemp(dir) || chdir(dir) < 0 || mkdir("tasks", 0700) < 0;
}

static int tear_down(void **state)
{
    struct err e;
    int rc = chdir("/") < 0 || fs_remove_tree(*state, &e) != 0;
    free(*state);
    return rc;
}

static void put(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static void make_task(void)
{
    assert_int_equal(mkdir(TASK, 0711), 0);
    assert_int_equal(mkdir(TASK "/control", 0700), 0);
    assert_int_equal(mkdir(TASK "/checkpoint", 0700), 0);
    put(TASK "/script");
}

static struct spare of_name(const char *name)
{
    struct spare s = {0};
    STR_COPY(s.name, name);
    return s;
}

static bool keep_as(struct spare *ret_spare)
{
    *ret_spare = of_name(SPARE);
    return spare_make("tasks", ret_spare, TASK, files, 2);
}

static bool keep(void)
{
    struct spare s;
    return keep_as(&s);
}

static struct job_user me(void)
{
    return (struct job_user){.uid = geteuid(), .gid = getegid()};
}

static void an_unchanged_directory_is_a_spare(void **state)
{
    const struct job_user u = me();
    struct spare s;
    struct stat st;
    (void)state;
    make_task();
    assert_true(keep_as(&s));
    assert_false(fs_exists(TASK));
    assert_true(spare_use("tasks", &s, "tasks/8-1", &u));
    assert_false(fs_exists("tasks/" SPARE));
    assert_false(fs_exists("tasks/8-1/script"));
    assert_int_equal(stat("tasks/8-1/checkpoint", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void spoil_file(void)
{
    put(TASK "/notes");
}

static void spoil_checkpoint(void)
{
    put(TASK "/checkpoint/checkpoint");
}

static void spoil_control(void)
{
    assert_int_equal(mkdir(TASK "/control/.hidden", 0700), 0);
}

static void spoil_with_many(void)
{
    for (int i = 0; i < 300; i++) {
        char path[64];
        snprintf(path, sizeof(path), TASK "/control/.%0*d", 40, i);
        put(path);
    }
}

static void spoil_mode(void)
{
    assert_int_equal(chmod(TASK "/control", 0777), 0);
}

static void spoil_link(void)
{
    assert_int_equal(rmdir(TASK "/checkpoint"), 0);
    assert_int_equal(symlink("/tmp", TASK "/checkpoint"), 0);
}

static void spoil_missing(void)
{
    assert_int_equal(rmdir(TASK "/control"), 0);
}

static void spoil_attribute(void)
{
    /* this file system has no user attributes */
    if (setxattr(TASK "/checkpoint", "user.mine", "1", 1, 0) < 0)
        put(TASK "/checkpoint/mine");
}

static void a_changed_directory_is_no_spare(void **state)
{
    static void (*const spoil[])(void) = {spoil_file, spoil_checkpoint, spoil_control,
        spoil_with_many, spoil_mode, spoil_link, spoil_missing, spoil_attribute};
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(spoil) / sizeof(*spoil); i++) {
        make_task();
        spoil[i]();
        if (keep())
            fail_msg("number %zu was kept", i);
        assert_false(fs_exists("tasks/" SPARE));
        assert_true(fs_exists(TASK));
        assert_int_equal(fs_remove_tree(TASK, &e), 0);
    }
    assert_false(keep()); /* and no spare exists */
}

static void a_spare_belongs_to_one_user(void **state)
{
    struct job_user other = me();
    struct spare s;
    (void)state;
    other.uid++;
    make_task();
    assert_true(keep_as(&s));
    assert_false(spare_use("tasks", &s, "tasks/8-1", &other));
    assert_false(fs_exists("tasks/" SPARE));
    assert_false(fs_exists("tasks/8-1"));
}

static void keep_named(struct spares *s, const char *user, const char *name)
{
    const struct spare one = of_name(name);
    spares_keep(s, user, &one);
}

static void each_user_gets_its_own_newest_spare(void **state)
{
    struct spare got;
    struct spares *s = spares_create("tasks");
    (void)state;
    keep_named(s, "ada", SPARE_PREFIX "1-1");
    keep_named(s, "ada", SPARE_PREFIX "2-1");
    keep_named(s, "", SPARE_PREFIX "3-1");
    spares_take(s, "bob", &got);
    assert_string_equal(got.name, "");
    spares_take(s, "ada", &got);
    assert_string_equal(got.name, SPARE_PREFIX "2-1");
    spares_take(s, "ada", &got);
    assert_string_equal(got.name, SPARE_PREFIX "1-1");
    spares_take(s, "ada", &got);
    assert_string_equal(got.name, "");
    spares_take(s, "", &got);
    assert_string_equal(got.name, SPARE_PREFIX "3-1");
    spares_destroy(s);
}

static void no_spare_is_left_behind(void **state)
{
    (void)state;
    make_task();
    assert_true(keep());
    struct spares *s = spares_create("tasks"); /* left by a killed agent */
    assert_false(fs_exists("tasks/" SPARE));
    make_task();
    assert_true(keep());
    keep_named(s, "", SPARE);
    spares_destroy(s);
    assert_int_equal(rmdir("tasks"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_unchanged_directory_is_a_spare, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_changed_directory_is_no_spare, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_spare_belongs_to_one_user, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_user_gets_its_own_newest_spare, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_spare_is_left_behind, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
