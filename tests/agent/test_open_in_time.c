/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening users' files: opening a FIFO without a peer fails in time, with a peer it succeeds.
 */
#include "agent/open_in_time.h"
#include "agent/task/output_writer.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_MS 60000

static char dir[] = "/tmp/belay-test.XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(dir) && chdir(dir) == 0 && mkfifo("fifo", 0600) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return unlink("fifo") == 0 && unlink("file") == 0 && chdir("/") == 0 && rmdir(dir) == 0 ? 0
                                                                                            : -1;
}

static void assert_no_timer_is_left(void)
{
    struct itimerval left;
    struct sigaction now;
    assert_int_equal(getitimer(ITIMER_REAL, &left), 0);
    assert_int_equal(left.it_value.tv_sec + left.it_value.tv_usec, 0);
    assert_int_equal(sigaction(SIGALRM, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
}

static void a_fifo_without_a_peer_ends_in_time(void **state)
{
    (void)state;
    const int ways[] = {O_RDONLY, O_WRONLY};
    for (size_t i = 0; i < 2; i++) {
        int64_t from = clock_mono(&clock_system).ms;
        errno = 0;
        assert_int_equal(open_in_time("fifo", ways[i] | O_CLOEXEC, 0, 300), -1);
        assert_int_equal(errno, ETIMEDOUT);
        assert_in_range(clock_mono(&clock_system).ms - from, 300, LONG_MS / 2);
        assert_no_timer_is_left();
    }
    assert_int_equal(open_in_time("fifo", O_RDONLY, 0, -5), -1); /* no time is left */
    assert_int_equal(errno, ETIMEDOUT);
}

/* The signal of the child's end, or another, does not end the wait. */
static void on_signal(int number)
{
    (void)number;
}

static void a_peer_that_comes_is_found_whatever_signals_come_first(void **state)
{
    (void)state;
    const struct sigaction note = {.sa_handler = on_signal};
    sigset_t blocked;
    sigaction(SIGUSR1, &note, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        for (int i = 0; i < 20; i++)
            kill(parent, SIGUSR1);
        int fd = open("fifo", O_WRONLY);
        _exit(write(fd, "x", 1) == 1 ? 0 : 1);
    }
    char c = 0;
    int status, fd = open_in_time("fifo", O_RDONLY, 0, LONG_MS);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &c, 1), 1);
    assert_int_equal(c, 'x');
    close(fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_no_timer_is_left();
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    assert_true(sigismember(&blocked, SIGALRM));
}

static void files_and_errors_are_those_of_open(void **state)
{
    (void)state;
    assert_int_equal(open_in_time("no/such", O_RDONLY, 0, LONG_MS), -1);
    assert_int_equal(errno, ENOENT);
    int fd = open_in_time("file", O_WRONLY | O_CREAT | O_EXCL, 0600, LONG_MS);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(open_in_time("file", O_WRONLY | O_CREAT | O_EXCL, 0600, LONG_MS), -1);
    assert_int_equal(errno, EEXIST);
    assert_no_timer_is_left();
}

/* The earlier writer was killed after its reader had read all, or had ended. */
static void a_writer_that_replaces_another_waits_for_no_reader_of_a_fifo(void **state)
{
    (void)state;
    const struct job_user self = {.is_other = false};
    int from = open("/dev/null", O_RDONLY | O_CLOEXEC), status;
    const struct output_writer s = {.user = &self,
        .cwd = ".",
        .open_wait_ms = LONG_MS,
        .copies = {{from, "fifo", true, -1}, {from, "file", false, -1}}};
    int64_t start = clock_mono(&clock_system).ms;
    pid_t child = fork();
    if (child == 0) {
        int fds[OUTPUT_WRITER_SOURCES][OUTPUT_WRITER_TARGETS], copy;
        _exit(output_writer_open_files(&s, true, fds, &copy) == 0 && fds[0][0] < 0 && fds[1][0] >= 0
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(clock_mono(&clock_system).ms - start < LONG_MS / 2);
    close(from);
}

/* It opens files that the user names, so it has no more rights than the user's program. */
static void a_writer_gains_no_rights_where_tasks_gain_none(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct job_user self = {.no_new_privs = i == 1};
        const struct output_writer s = {
            .user = &self, .cwd = ".", .copies = {{.from = -1}, {.from = -1}}};
        int status;
        pid_t child = fork();
        if (child == 0) {
            int fds[OUTPUT_WRITER_SOURCES][OUTPUT_WRITER_TARGETS], copy;
            int rc = output_writer_open_files(&s, false, fds, &copy);
            _exit(rc == 0 ? prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) : 2);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), i);
    }
}

int main(void)
{
    signal(SIGALRM, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fifo_without_a_peer_ends_in_time),
        cmocka_unit_test(a_peer_that_comes_is_found_whatever_signals_come_first),
        cmocka_unit_test(files_and_errors_are_those_of_open),
        cmocka_unit_test(a_writer_that_replaces_another_waits_for_no_reader_of_a_fifo),
        cmocka_unit_test(a_writer_gains_no_rights_where_tasks_gain_none),
    };
    return cmocka_run_group_tests_name("open_in_time", tests, setup, teardown);
}
