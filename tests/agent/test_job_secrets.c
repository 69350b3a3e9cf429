/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets of a job on its node: on a tmpfs, for its user only, for the supervisor once, and gone
 * after the task.
 */
#include "agent/task/job_secrets.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char key_pem[] = "key.pem", key_hex[] = "6c696e650a0001", token[] = "token",
            variable[] = "TOKEN", token_hex[] = "68756e74657232";
static struct wire_secret two[] = {
    {.name = key_pem, .value = key_hex},
    {.name = token, .variable = variable, .value = token_hex},
};
static const struct wire_secrets both = {.version = 1, .of_job = two, .n_of_job = 2};

static int setup(void **state)
{
    char dir[] = "/tmp/belay-task.XXXXXX";
    assert_non_null(mkdtemp(dir));
    *state = mem_strdup(dir);
    return 0;
}

static int teardown(void **state)
{
    struct err e;
    job_secrets_remove(*state);
    fs_remove_tree(*state, &e);
    free(*state);
    return 0;
}

static struct job_user own_user(void)
{
    return (struct job_user){.uid = geteuid(), .gid = getegid()};
}

static void files_are_on_a_tmpfs_for_their_user_only(void **state)
{
    const struct job_user u = own_user();
    struct buf text = {0};
    struct stat st;
    struct statfs fs;
    struct err e;
    assert_int_equal(job_secrets_put(*state, &u, &both, &e), 0);
    char *dir = job_secrets_dir(*state), *path = mem_printf("%s/key.pem", dir),
         *other = mem_printf("%s/token", dir);
    assert_int_equal(fs_read(path, 100, &text, &e), 0);
    assert_int_equal(text.len, 7);
    assert_memory_equal(text.data, "line\n\0\1", 7);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0400);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0007, 0);
    assert_int_equal(statfs(dir, &fs), 0);
    assert_true(fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
    assert_false(fs_exists(other)); /* a variable is no file */
    job_secrets_remove(*state);
    assert_false(fs_exists(dir));
    buf_deinit(&text);
    free(other);
    free(path);
    free(dir);
}

/* The error of opening the file as that user; 0 if it can. In a process of its own. */
static int error_as(uid_t uid, const char *path)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(uid) < 0 || setuid(uid) < 0)
            _exit(255);
        _exit(open(path, O_RDONLY) < 0 ? errno : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void another_user_cannot_read_them(void **state)
{
    const struct job_user u = {.uid = 64001, .gid = 64001, .is_other = true};
    struct err e;
    if (geteuid() != 0) {
        printf("SKIP: only root can act as several users\n");
        return;
    }
    assert_int_equal(job_secrets_put(*state, &u, &both, &e), 0);
    char *dir = job_secrets_dir(*state), *path = mem_printf("%s/key.pem", dir),
         *values = mem_printf("%s/../values", dir);
    assert_int_equal(error_as(64001, path), 0);
    assert_int_equal(error_as(64002, path), EACCES);
    assert_int_equal(error_as(64001, values), EACCES);
    assert_int_equal(error_as(64001, dir), EACCES); /* it cannot list them */
    free(values);
    free(path);
    free(dir);
}

static void the_supervisor_takes_them_once(void **state)
{
    const struct job_user u = own_user();
    struct wire_secrets got = {0};
    struct err e;
    size_t n;
    assert_int_equal(job_secrets_put(*state, &u, &both, &e), 0);
    assert_int_equal(job_secrets_put(*state, &u, &both, &e), 0); /* prepared again */
    assert_int_equal(job_secrets_take(*state, &got, &e), 0);
    assert_int_equal(got.n_of_job, 2);
    assert_null(got.of_job[0].variable);
    assert_string_equal(got.of_job[1].variable, "TOKEN");
    char *value = job_secret_value(&got.of_job[1], &n);
    assert_int_equal(n, 7);
    assert_string_equal(value, "hunter2");
    free(value);
    wire_secrets_wipe(&got);
    assert_int_equal(job_secrets_take(*state, &got, &e), ERR_NOT_FOUND);
}

static void a_value_that_is_no_hex_is_refused(void **state)
{
    static const char *const bad[] = {"", "6", "zz", "6c6"};
    const struct job_user u = own_user();
    char *dir = job_secrets_dir(*state);
    struct err e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[8];
        STR_COPY(text, bad[i]);
        struct wire_secret one = {.name = token, .value = text};
        const struct wire_secrets s = {.version = 1, .of_job = &one, .n_of_job = 1};
        assert_int_equal(job_secrets_put(*state, &u, &s, &e), ERR_INVALID);
        assert_false(fs_exists(dir));
    }
    free(dir);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_on_a_tmpfs_for_their_user_only),
        TEST(another_user_cannot_read_them),
        TEST(the_supervisor_takes_them_once),
        TEST(a_value_that_is_no_hex_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
