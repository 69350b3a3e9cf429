/* SPDX-License-Identifier: Apache-2.0
 *
 * No process can be started: what could not be tried has not passed, and what did not run is not
 * reported as run.
 */
#include "agent/dir_trial.h"
#include "agent/supervisor/holder.h"
#include "agent/supervisor/supervisor_private.h"
#include "base/fs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool fails;

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
    if (!fails)
        return __real_fork();
    errno = EAGAIN;
    return -1;
}

static char dir[] = "/tmp/belay-test.XXXXXX";

static int setup(void **state)
{
    (void)state;
    fails = false;
    strcpy(dir, "/tmp/belay-test.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    struct err e;
    (void)state;
    fails = false;
    return fs_remove_tree(dir, &e);
}

static void a_dir_that_could_not_be_tried_has_not_passed(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(dir_trial(dir, "", &e), 0);
    fails = true;
    assert_int_not_equal(dir_trial(dir, "", &e), 0);
    assert_non_null(strstr(e.text, "starting a process to try whether "));
    assert_non_null(strstr(e.text, strerror(EAGAIN)));
}

static void a_holder_that_cannot_start_the_user_data_fails(void **state)
{
    int status = 0;
    (void)state;
    pid_t holder = fork(); /* it takes over signals and orphans */
    assert_true(holder >= 0);
    if (holder == 0) {
        fails = true;
        _exit(holder_main(dir));
    }
    assert_int_equal(waitpid(holder, &status, 0), holder);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

static void without_a_group_nothing_is_killed(void **state)
{
    struct supervisor s = {.dir = dir, .has_left_nothing = true};
    (void)state;
    supervisor_kill_rest(&s, 0);
    assert_string_equal(s.exit.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_dir_that_could_not_be_tried_has_not_passed, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_holder_that_cannot_start_the_user_data_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_group_nothing_is_killed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
