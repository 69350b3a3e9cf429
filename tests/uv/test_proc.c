/* SPDX-License-Identifier: Apache-2.0
 *
 * Every process of a group dies, whatever it does.
 */
#include "tests/uv/proc_rig.h"

#include "base/time.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts body in each mode, reads n pids, kills, and checks that all are gone and reaped. */
static void dies_in_every_mode(body_fn body, size_t n)
{
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        pid_t pids[PIDS_MAX];
        if (!group_open(&f, mode, NULL))
            continue;
        task_start(&f, body);
        group_read_pids(&f, pids, n);
        group_kill_all(&f, 0);
        assert_gone(pids, n);
        assert_no_children();
        group_close(&f);
    }
}

static void a_child_is_killed(void **state)
{
    (void)state;
    dies_in_every_mode(task_report_and_wait, 1);
}

static void ignore_everything(const struct fixture *f)
{
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_IGN);
    task_report_and_wait(f);
}

static void a_child_that_ignores_signals_is_killed(void **state)
{
    (void)state;
    dies_in_every_mode(ignore_everything, 1);
}

static void daemonise(const struct fixture *f)
{
    if (fork() > 0)
        _exit(0);
    setsid();
    if (fork() > 0)
        _exit(0);
    task_report_and_wait(f);
}

static void a_daemon_in_another_session_is_killed(void **state)
{
    (void)state;
    dies_in_every_mode(daemonise, 1);
}

static void stop_itself(const struct fixture *f)
{
    if (fork() > 0)
        task_report_and_wait(f);
    task_report(f);
    raise(SIGSTOP);
    for (;;)
        pause();
}

static void a_stopped_process_is_killed(void **state)
{
    (void)state;
    dies_in_every_mode(stop_itself, 2);
}

/* A tree of 31, half of them in sessions of their own. */
static void grow(const struct fixture *f)
{
    for (int depth = 0; depth < 4; depth++) {
        if (fork() == 0 && depth % 2)
            setsid();
        fork();
    }
    task_report_and_wait(f);
}

static void a_wide_tree_is_killed(void **state)
{
    (void)state;
    dies_in_every_mode(grow, 60);
}

/* Forks and exits, forever: no pid lives long enough to be inspected. */
static void hop(const struct fixture *f)
{
    task_report(f);
    for (;;) {
        pid_t pid = fork();
        if (pid > 0)
            _exit(0);
        if (pid < 0)
            pause();
    }
}

static void a_process_that_keeps_changing_its_pid_is_killed(void **state)
{
    (void)state;
    dies_in_every_mode(hop, 1);
}

/* The same, each in a session and process group of its own. */
static void hop_far(const struct fixture *f)
{
    task_report(f);
    for (;;) {
        pid_t pid = fork();
        if (pid > 0)
            _exit(0);
        setsid();
        if (pid < 0)
            pause();
    }
}

static void a_process_that_keeps_changing_pid_and_session_is_killed(void **state)
{
    (void)state;
    dies_in_every_mode(hop_far, 1);
}

static void breed(const struct fixture *f)
{
    task_report(f);
    for (int i = 0; i < 400; i++) {
        pid_t pid = fork();
        if (pid == 0 && i % 3 == 0)
            setsid();
        if (pid == 0)
            i += 200;
    }
    for (;;)
        pause();
}

static void a_fork_bomb_is_killed(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        pid_t first;
        if (!group_open(&f, mode, &(struct proc_limits){.pids_max = 2000}))
            continue;
        task_start(&f, breed);
        group_read_pids(&f, &first, 1);
        group_kill_all(&f, 0);
        assert_no_children();
        group_close(&f);
    }
}

/* ---- Exceptions ---- */

static void the_status_of_keep_pid_stays_readable(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        pid_t pids[2];
        int status;
        if (!group_open(&f, mode, NULL))
            continue;
        pid_t child = task_start(&f, stop_itself);
        group_read_pids(&f, pids, 2);
        group_kill_all(&f, child);
        assert_gone(pids, 2);
        assert_int_equal(waitpid(child, &status, WNOHANG), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_no_children();
        group_close(&f);
    }
}

static void an_empty_group_is_killed_at_once(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        if (!group_open(&f, mode, NULL))
            continue;
        group_kill_all(&f, 0);
        assert_int_equal(proc_group_signal(f.g, SIGTERM), 0);
        group_close(&f);
    }
}

static void a_child_outside_the_group_is_not_killed(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_CGROUP_HYBRID; mode++) {
        struct fixture f;
        pid_t inside;
        int status;
        if (!group_open(&f, mode, NULL))
            continue;
        pid_t outside = fork();
        if (outside == 0)
            for (;;)
                pause();
        pid_t ended = fork(); /* a zombie that is not ours to reap */
        if (ended == 0)
            _exit(7);
        task_start(&f, task_report_and_wait);
        group_read_pids(&f, &inside, 1);
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)ended, &info, WEXITED | WNOWAIT), 0);
        group_kill_all(&f, 0);
        assert_gone(&inside, 1);
        assert_true(proc_start_ticks(outside) != 0);
        assert_int_equal(waitpid(ended, &status, WNOHANG), ended);
        assert_int_equal(WEXITSTATUS(status), 7);
        kill(outside, SIGKILL);
        assert_int_equal(waitpid(outside, NULL, 0), outside);
        group_close(&f);
    }
}

/* Only that child: what it has started dies. */
static void a_spared_child_survives_without_cgroups_too(void **state)
{
    (void)state;
    struct fixture f;
    pid_t inside[2];
    assert_true(group_open(&f, PROC_SUBREAPER, NULL));
    pid_t spared = fork();
    if (spared == 0) {
        task_start(&f, task_report_and_wait);
        for (;;)
            pause();
    }
    proc_group_spare(f.g, spared);
    task_start(&f, task_report_and_wait);
    group_read_pids(&f, inside, 2);
    assert_int_equal(proc_group_signal(f.g, SIGWINCH), 2);
    group_kill_all(&f, 0);
    assert_gone(inside, 2);
    assert_true(proc_start_ticks(spared) != 0);
    kill(spared, SIGKILL);
    assert_int_equal(waitpid(spared, NULL, 0), spared);
    pid_t orphan = waitpid(-1, NULL, 0);
    assert_true(orphan == inside[0] || orphan == inside[1]);
    assert_no_children();
    group_close(&f);
}

/* ---- Groups in groups, restarts ---- */

/* A task that makes a group of its own (an agent on the emulator) and puts a process in it. */
static void nest(const struct fixture *f)
{
    struct fixture inner = *f;
    struct err e;
    if (proc_group_open_mode("inner", NULL, f->mode, &inner.g, &e) < 0)
        _exit(1);
    task_start(&inner, daemonise);
    task_report_and_wait(f);
}

static void a_nested_group_is_killed_too(void **state)
{
    (void)state;
    dies_in_every_mode(nest, 2);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        _exit(3);
    close(fd);
}

/* Freezes itself in the v1 freezer. The test process locates its directory by simple means. */
static void freeze_itself(const struct fixture *f)
{
    char line[512], path[600] = "";
    FILE *in = fopen("/proc/self/cgroup", "re");
    while (in && fgets(line, sizeof(line), in)) {
        char *at = strstr(line, ":freezer:");
        if (at && sscanf(at + 9, "%500s", line) == 1)
            snprintf(path, sizeof(path), "/sys/fs/cgroup/freezer%s/freezer.state", line);
    }
    task_report(f); /* first, because the freeze stops both */
    if (fork() == 0) {
        task_report(f);
        write_file(path, "FROZEN");
    }
    for (;;)
        pause();
}

static void a_task_that_froze_itself_is_killed(void **state)
{
    (void)state;
    struct fixture f;
    pid_t pids[2];
    if (access("/sys/fs/cgroup/freezer", F_OK) != 0 || !group_open(&f, PROC_CGROUP_HYBRID, NULL)) {
        print_message("SKIP: no v1 freezer\n");
        return;
    }
    task_start(&f, freeze_itself);
    group_read_pids(&f, pids, 2);
    group_kill_all(&f, 0);
    assert_gone(pids, 2);
    group_close(&f);
}

static void a_reopened_group_has_its_processes(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_CGROUP_HYBRID; mode++) {
        struct fixture f;
        pid_t pid;
        if (!group_open(&f, mode, NULL))
            continue;
        pid_t first_caller = fork();
        if (first_caller == 0) {
            task_start(&f, daemonise);
            _exit(0);
        }
        assert_int_equal(waitpid(first_caller, NULL, 0), first_caller);
        group_read_pids(&f, &pid, 1);
        close(f.report[0]);
        close(f.report[1]);
        proc_group_close(f.g, false);
        assert_true(group_open(&f, mode, NULL));
        group_kill_all(&f, 0);
        assert_gone(&pid, 1);
        group_close(&f);
        while (waitpid(-1, NULL, 0) > 0)
            continue;
    }
}

/* ---- Trees ---- */

static void subreaper_with_daemons(const struct fixture *f)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (fork() == 0)
        daemonise(f);
    if (fork() == 0)
        hop(f);
    task_report_and_wait(f);
}

static void the_root_of_a_tree_is_killed_last(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    pid_t pids[3];
    int status;
    assert_true(group_open(&f, PROC_SUBREAPER, NULL));
    pid_t root = task_start(&f, subreaper_with_daemons);
    group_read_pids(&f, pids, 3);
    if (proc_tree_kill(root, TIMEOUT_MS, &e) < 0)
        fail_msg("%s", e.text);
    assert_gone(pids, 3);
    assert_int_equal(waitpid(root, &status, WNOHANG), root);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_no_children();
    assert_int_equal(proc_tree_kill(root, TIMEOUT_MS, &e), 0); /* already gone */
    group_close(&f);
}

static void start_ticks_identify_a_live_process(void **state)
{
    (void)state;
    assert_true(proc_start_ticks(getpid()) > 0);
    assert_int_equal(proc_start_ticks(getpid()), proc_start_ticks(getpid()));
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(proc_start_ticks(pid), 0); /* a zombie */
    waitpid(pid, NULL, 0);
    assert_int_equal(proc_start_ticks(pid), 0);
}

static void the_best_mode_is_chosen_and_works(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct err e;
    pid_t pid;
    char name[64];
    snprintf(name, sizeof(name), "belay-test-best-%ld", (long)getpid());
    assert_int_equal(proc_group_open(name, NULL, &f.g, &e), 0);
    f.mode = proc_group_mode(f.g);
    print_message("mode: %s\n", mode_names[f.mode]);
    assert_int_equal(pipe2(f.report, O_CLOEXEC), 0);
    task_start(&f, daemonise);
    group_read_pids(&f, &pid, 1);
    group_kill_all(&f, 0);
    assert_gone(&pid, 1);
    group_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_killed),
        cmocka_unit_test(a_child_that_ignores_signals_is_killed),
        cmocka_unit_test(a_daemon_in_another_session_is_killed),
        cmocka_unit_test(a_stopped_process_is_killed),
        cmocka_unit_test(a_wide_tree_is_killed),
        cmocka_unit_test(a_process_that_keeps_changing_its_pid_is_killed),
        cmocka_unit_test(a_process_that_keeps_changing_pid_and_session_is_killed),
        cmocka_unit_test(a_fork_bomb_is_killed),
        cmocka_unit_test(the_status_of_keep_pid_stays_readable),
        cmocka_unit_test(an_empty_group_is_killed_at_once),
        cmocka_unit_test(a_child_outside_the_group_is_not_killed),
        cmocka_unit_test(a_spared_child_survives_without_cgroups_too),
        cmocka_unit_test(the_best_mode_is_chosen_and_works),
        cmocka_unit_test(a_nested_group_is_killed_too),
        cmocka_unit_test(a_task_that_froze_itself_is_killed),
        cmocka_unit_test(a_reopened_group_has_its_processes),
        cmocka_unit_test(the_root_of_a_tree_is_killed_last),
        cmocka_unit_test(start_ticks_identify_a_live_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
