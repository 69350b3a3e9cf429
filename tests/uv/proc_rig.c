/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/uv/proc_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const mode_names[] = {"cgroup2", "hybrid", "subreaper"};

bool group_open(struct fixture *f, enum proc_mode mode, const struct proc_limits *limits)
{
    char name[64];
    struct err e;
    snprintf(name, sizeof(name), "belay-test-%ld", (long)getpid());
    *f = (struct fixture){.mode = mode};
    int rc = proc_group_open_mode(name, limits, mode, &f->g, &e);
    if (rc == ERR_UNSUPPORTED) {
        print_message("SKIP: %s: %s\n", mode_names[mode], e.text);
        return false;
    }
    if (rc < 0)
        fail_msg("%s: %s", mode_names[mode], e.text);
    assert_int_equal(proc_group_mode(f->g), mode);
    assert_int_equal(pipe2(f->report, O_CLOEXEC), 0);
    return true;
}

void group_close(struct fixture *f)
{
    proc_group_close(f->g, true);
    close(f->report[0]);
    close(f->report[1]);
}

pid_t task_start(const struct fixture *f, body_fn body)
{
    int entered = -1;
    pid_t pid = proc_group_fork(f->g, &entered);
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    setsid();
    if (entered == 0)
        body(f);
    _exit(0);
}

void task_report(const struct fixture *f)
{
    pid_t pid = getpid();
    if (write(f->report[1], &pid, sizeof(pid)) != sizeof(pid))
        _exit(1);
}

void task_report_and_wait(const struct fixture *f)
{
    task_report(f);
    for (;;)
        pause();
}

void group_read_pids(const struct fixture *f, pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pollfd p = {.fd = f->report[0], .events = POLLIN};
        assert_int_equal(poll(&p, 1, TIMEOUT_MS), 1);
        assert_int_equal(read(f->report[0], &pids[i], sizeof(pids[i])), sizeof(pids[i]));
    }
}

void group_kill_all(struct fixture *f, pid_t keep_pid)
{
    struct err e;
    if (proc_group_kill_all(f->g, keep_pid, TIMEOUT_MS, &e) < 0)
        fail_msg("%s: %s", mode_names[f->mode], e.text);
}

void assert_gone(const pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (proc_start_ticks(pids[i]) != 0)
            fail_msg("process %ld of %zu still lives", (long)pids[i], n);
}

void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}
