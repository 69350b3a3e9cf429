/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uv/proc.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "tests/uv/rig.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_MS 10000
#define PIDS_MAX 64

static const char *const mode_names[] = {"cgroup2", "hybrid", "subreaper"};

/* A group, and a pipe on which every process started by a task reports its pid. */
struct fixture {
    enum proc_mode mode;
    struct proc_group *g;
    int report[2];
};

static bool open_group(struct fixture *f, enum proc_mode mode, const struct proc_limits *limits)
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

static void close_group(struct fixture *f)
{
    proc_group_close(f->g, true);
    close(f->report[0]);
    close(f->report[1]);
}

/* Runs body in a child in the group, in a session of its own. */
typedef void (*body_fn)(const struct fixture *f);

static pid_t start(const struct fixture *f, body_fn body)
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

static void report(const struct fixture *f)
{
    pid_t pid = getpid();
    if (write(f->report[1], &pid, sizeof(pid)) != sizeof(pid))
        _exit(1);
}

static void report_and_wait(const struct fixture *f)
{
    report(f);
    for (;;)
        pause();
}

/* Reads n pids from the pipe; fails after a while. */
static void read_pids(const struct fixture *f, pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pollfd p = {.fd = f->report[0], .events = POLLIN};
        assert_int_equal(poll(&p, 1, TIMEOUT_MS), 1);
        assert_int_equal(read(f->report[0], &pids[i], sizeof(pids[i])), sizeof(pids[i]));
    }
}

static void kill_all(struct fixture *f, pid_t keep_pid)
{
    struct err e;
    if (proc_group_kill_all(f->g, keep_pid, TIMEOUT_MS, &e) < 0)
        fail_msg("%s: %s", mode_names[f->mode], e.text);
}

static void assert_gone(const pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (proc_start_ticks(pids[i]) != 0)
            fail_msg("process %ld of %zu still lives", (long)pids[i], n);
}

static void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* Starts body in each mode, reads n pids, kills, and checks that all are gone and reaped. */
static void dies_in_every_mode(body_fn body, size_t n)
{
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        pid_t pids[PIDS_MAX];
        if (!open_group(&f, mode, NULL))
            continue;
        start(&f, body);
        read_pids(&f, pids, n);
        kill_all(&f, 0);
        assert_gone(pids, n);
        assert_no_children();
        close_group(&f);
    }
}

static void a_child_dies(void **state)
{
    (void)state;
    dies_in_every_mode(report_and_wait, 1);
}

static void ignore_everything(const struct fixture *f)
{
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_IGN);
    report_and_wait(f);
}

static void a_child_that_ignores_signals_dies(void **state)
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
    report_and_wait(f);
}

static void a_daemon_that_left_its_session_dies(void **state)
{
    (void)state;
    dies_in_every_mode(daemonise, 1);
}

static void stop_itself(const struct fixture *f)
{
    if (fork() > 0)
        report_and_wait(f);
    report(f);
    raise(SIGSTOP);
    for (;;)
        pause();
}

static void a_stopped_process_dies(void **state)
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
    report_and_wait(f);
}

static void a_wide_tree_dies(void **state)
{
    (void)state;
    dies_in_every_mode(grow, 60);
}

/* Forks and exits, forever: no pid lives long enough to be inspected. */
static void hop(const struct fixture *f)
{
    report(f);
    for (;;) {
        pid_t pid = fork();
        if (pid > 0)
            _exit(0);
        if (pid < 0)
            pause();
    }
}

static void a_process_that_changes_its_pid_all_the_time_dies(void **state)
{
    (void)state;
    dies_in_every_mode(hop, 1);
}

/* The same, each in a session and process group of its own. */
static void hop_far(const struct fixture *f)
{
    report(f);
    for (;;) {
        pid_t pid = fork();
        if (pid > 0)
            _exit(0);
        setsid();
        if (pid < 0)
            pause();
    }
}

static void a_process_that_also_changes_its_session_dies(void **state)
{
    (void)state;
    dies_in_every_mode(hop_far, 1);
}

static void breed(const struct fixture *f)
{
    report(f);
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

static void a_fork_bomb_dies(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        pid_t first;
        if (!open_group(&f, mode, &(struct proc_limits){.pids_max = 2000}))
            continue;
        start(&f, breed);
        read_pids(&f, &first, 1);
        kill_all(&f, 0);
        assert_no_children();
        close_group(&f);
    }
}

/* ---- Devices ---- */

/* The errnos of opening /dev/full (1:7), which is denied, and /dev/zero (1:5), as two numbers in
 * place of pids. */
static void open_devices(const struct fixture *f)
{
    pid_t said[2] = {0, 0};
    const char *const names[2] = {"/dev/full", "/dev/zero"};
    for (int i = 0; i < 2; i++) {
        int fd = open(names[i], O_RDONLY | O_CLOEXEC);
        said[i] = fd < 0 ? errno : 1000;
        if (fd >= 0)
            close(fd);
    }
    if (write(f->report[1], said, sizeof(said)) < 0)
        _exit(1);
    for (;;)
        pause();
}

static void a_denied_device_cannot_be_opened(void **state)
{
    static const struct proc_device denied[] = {{1, 9}, {1, 7}};
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_CGROUP_HYBRID; mode++) {
        struct fixture f;
        pid_t said[2];
        if (!open_group(&f, mode, &(struct proc_limits){.denied = denied, .n_denied = 2}))
            continue;
        if (proc_group_lacks(f.g, PROC_DEVICES) == 0) {
            start(&f, open_devices);
            read_pids(&f, said, 2);
            assert_int_equal(said[0], EPERM);
            assert_int_equal(said[1], 1000);
        } else {
            print_message("SKIP: %s: devices cannot be denied here\n", mode_names[mode]);
        }
        kill_all(&f, 0);
        close_group(&f);
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
        if (!open_group(&f, mode, NULL))
            continue;
        pid_t child = start(&f, stop_itself);
        read_pids(&f, pids, 2);
        kill_all(&f, child);
        assert_gone(pids, 2);
        assert_int_equal(waitpid(child, &status, WNOHANG), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_no_children();
        close_group(&f);
    }
}

static void an_empty_group_is_killed_at_once(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        if (!open_group(&f, mode, NULL))
            continue;
        kill_all(&f, 0);
        assert_int_equal(proc_group_signal(f.g, SIGTERM), 0);
        close_group(&f);
    }
}

static void a_child_outside_of_the_group_is_left_alone(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_CGROUP_HYBRID; mode++) {
        struct fixture f;
        pid_t inside;
        int status;
        if (!open_group(&f, mode, NULL))
            continue;
        pid_t outside = fork();
        if (outside == 0)
            for (;;)
                pause();
        pid_t ended = fork(); /* a zombie that is not ours to reap */
        if (ended == 0)
            _exit(7);
        start(&f, report_and_wait);
        read_pids(&f, &inside, 1);
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)ended, &info, WEXITED | WNOWAIT), 0);
        kill_all(&f, 0);
        assert_gone(&inside, 1);
        assert_true(proc_start_ticks(outside) != 0);
        assert_int_equal(waitpid(ended, &status, WNOHANG), ended);
        assert_int_equal(WEXITSTATUS(status), 7);
        kill(outside, SIGKILL);
        assert_int_equal(waitpid(outside, NULL, 0), outside);
        close_group(&f);
    }
}

/* ---- Signals, limits, deadlines ---- */

static void end_on_term(int signum)
{
    (void)signum;
    _exit(9);
}

static void wait_for_term(const struct fixture *f)
{
    signal(SIGTERM, end_on_term);
    if (fork() == 0)
        setsid();
    report_and_wait(f);
}

static void a_signal_reaches_every_process(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        pid_t pids[2];
        int status;
        if (!open_group(&f, mode, NULL))
            continue;
        pid_t child = start(&f, wait_for_term);
        read_pids(&f, pids, 2);
        assert_int_equal(proc_group_signal(f.g, SIGTERM), 2);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WEXITSTATUS(status), 9);
        assert_true(waitpid(-1, &status, 0) > 0); /* the orphan became our child */
        assert_int_equal(WEXITSTATUS(status), 9);
        assert_no_children();
        close_group(&f);
    }
}

/* One process catches the signal, one waits for it, one would die of it, one ignores it. */
static void four_kinds(const struct fixture *f)
{
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (fork() == 0) {
        signal(SIGUSR1, end_on_term);
        report_and_wait(f);
    }
    if (fork() == 0) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        report(f);
        sigwait(&set, &got);
        _exit(9);
    }
    if (fork() == 0) {
        signal(SIGUSR1, SIG_IGN);
        report_and_wait(f);
    }
    report_and_wait(f);
}

static void a_signal_for_handlers_spares_the_others(void **state)
{
    (void)state;
    struct fixture f;
    pid_t pids[4];
    assert_true(open_group(&f, PROC_SUBREAPER, NULL));
    pid_t child = start(&f, four_kinds);
    read_pids(&f, pids, 4);
    assert_int_equal(proc_group_signal_handlers(f.g, SIGUSR1), 2);
    assert_true(proc_start_ticks(child) != 0);
    kill_all(&f, 0);
    assert_gone(pids, 4);
    assert_no_children();
    close_group(&f);
}

static void a_deadline_that_passes_is_an_error(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    pid_t pid;
    assert_true(open_group(&f, PROC_SUBREAPER, NULL));
    pid_t child = start(&f, report_and_wait);
    read_pids(&f, &pid, 1);
    assert_int_equal(proc_group_kill_all(f.g, child, 0, &e), ERR_TIMEOUT);
    assert_non_null(strstr(e.text, "at the deadline"));
    kill_all(&f, child);
    assert_gone(&pid, 1);
    assert_int_equal(waitpid(child, NULL, WNOHANG), child);
    assert_no_children();
    close_group(&f);
}

static void read_controllers(const char *group, const char *below, char list[256])
{
    char path[800];
    snprintf(path, sizeof(path), "/sys/fs/cgroup/unified%s%s/cgroup.controllers", group, below);
    FILE *f = fopen(path, "re");
    if (!f) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s/cgroup.controllers", group, below);
        f = fopen(path, "re");
    }
    if (f && !fgets(list, 256, f))
        list[0] = '\0';
    if (f)
        fclose(f);
}

static void fork_until_refused(const struct fixture *f)
{
    int n = 0;
    pid_t pid;
    while (n < 100 && (pid = fork()) > 0)
        n++;
    if (n < 100 && pid == 0)
        for (;;)
            pause();
    pid_t answer = n;
    if (write(f->report[1], &answer, sizeof(answer)) == sizeof(answer))
        pause();
}

/* The number in another file of the same directory; -1 if absent, -2 for "max". */
static long long number_beside(const char *path, const char *file)
{
    char other[USAGE_PATH_MAX + 64], text[64] = "";
    const char *slash = strrchr(path, '/');
    snprintf(other, sizeof(other), "%.*s/%s", slash ? (int)(slash - path) : 0, path, file);
    FILE *in = fopen(other, "re");
    long long n = -1;
    if (in && fgets(text, sizeof(text), in))
        n = text[0] == 'm' ? -2 : atoll(text);
    if (in)
        fclose(in);
    return n;
}

static void what_is_beyond_the_memory_does_not_go_to_swap(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_CGROUP_HYBRID; mode++) {
        struct fixture f;
        struct usage_files files;
        if (!open_group(&f, mode, &(struct proc_limits){.memory_bytes = 256 << 20}))
            continue;
        proc_group_usage_files(f.g, &files);
        long long v1 = number_beside(files.memory, "memory.memsw.limit_in_bytes"),
                  v2 = number_beside(files.memory, "memory.swap.max");
        if (proc_group_lacks(f.g, PROC_MEMORY))
            print_message("SKIP: %s: memory cannot be limited here\n", mode_names[mode]);
        else if (v1 == -1 && v2 == -1)
            print_message("SKIP: %s: this kernel does not count swap\n", mode_names[mode]);
        else
            assert_true(v1 == 256 << 20 || v2 == 0);
        close_group(&f);
    }
}

static void what_is_not_limited_is_told(void **state)
{
    static const struct proc_device denied[] = {{1, 9}};
    static const struct proc_limits all = {
        .memory_bytes = 256 << 20, .pids_max = 10, .denied = denied, .n_denied = 1};
    (void)state;
    struct fixture f;
    assert_true(open_group(&f, PROC_SUBREAPER, &all));
    assert_int_equal(proc_group_lacks(f.g, PROC_MEMORY), EOPNOTSUPP);
    assert_int_equal(proc_group_lacks(f.g, PROC_PIDS), EOPNOTSUPP);
    assert_int_equal(proc_group_lacks(f.g, PROC_DEVICES), EOPNOTSUPP);
    close_group(&f);
    for (int with = 0; with < 2; with++) { /* no limit requested */
        assert_true(open_group(&f, PROC_SUBREAPER, with ? &(struct proc_limits){0} : NULL));
        for (int k = 0; k < PROC_LIMIT_KINDS; k++)
            assert_int_equal(proc_group_lacks(f.g, k), 0);
        close_group(&f);
    }
}

static void limits_hold_where_there_are_controllers(void **state)
{
    (void)state;
    struct fixture f;
    struct usage_files files;
    struct usage used;
    pid_t n;
    if (!open_group(&f, PROC_CGROUP_HYBRID,
            &(struct proc_limits){.memory_bytes = 256 << 20, .cpus_milli = 2000, .pids_max = 10}))
        return;
    start(&f, fork_until_refused);
    read_pids(&f, &n, 1);
    proc_group_usage_files(f.g, &files);
    usage_read(&files, &used);
    kill_all(&f, 0);
    if (n == 100)
        print_message("SKIP: this machine has no pids controller for us\n");
    else
        assert_int_equal(n, 9); /* and the process itself */
    if (used.peak_bytes < 0)
        print_message("SKIP: this machine has no memory controller for us\n");
    else
        assert_true(used.peak_bytes > 0 && used.peak_bytes <= 256 << 20);
    close_group(&f);
}

static void say_what_is_inherited(const struct fixture *f)
{
    pid_t n = 0;
    for (int fd = 3; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        n += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    if (write(f->report[1], &n, sizeof(n)) == sizeof(n))
        _exit(0);
}

/* Reports whether the group's directory and that of a group inside it have the same controllers. */
static void compare_controllers(const struct fixture *f)
{
    struct fixture inner = *f;
    char line[512], path[600], outer_list[256] = "", inner_list[256] = "";
    struct err e;
    FILE *in = fopen("/proc/self/cgroup", "re");
    while (in && fgets(line, sizeof(line), in))
        if (sscanf(line, "0::%500s", path) == 1)
            break;
    if (!in || proc_group_open_mode("inner", NULL, PROC_CGROUP2, &inner.g, &e) < 0)
        _exit(1);
    read_controllers(path, "", outer_list);
    read_controllers(path, "/inner", inner_list);
    pid_t answer = outer_list[0] ? str_eq(outer_list, inner_list) : 2;
    start(&inner, report_and_wait);
    if (write(f->report[1], &answer, sizeof(answer)) == sizeof(answer))
        pause();
}

/* By the rule of cgroup v2 a group with processes cannot enable controllers for its children: the
 * processes must move. */
static void a_group_within_a_group_has_its_controllers(void **state)
{
    (void)state;
    struct fixture f;
    pid_t got[2];
    if (!open_group(&f, PROC_CGROUP2, NULL))
        return;
    start(&f, compare_controllers);
    read_pids(&f, got, 2);
    kill_all(&f, 0);
    if (got[0] == 2 || got[1] == 2)
        print_message("SKIP: no controller in the v2 hierarchy\n");
    else
        assert_true(got[0] == 1 || got[1] == 1);
    close_group(&f);
}

static void who_was_forked_before_enters_too(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        pid_t pid;
        if (!open_group(&f, mode, NULL))
            continue;
        pid_t child = fork();
        if (child == 0) {
            if (proc_group_enter(f.g) == 0)
                report_and_wait(&f);
            _exit(1);
        }
        read_pids(&f, &pid, 1);
        assert_int_equal(pid, child);
        kill_all(&f, 0);
        assert_gone(&pid, 1);
        close_group(&f);
    }
}

static void a_task_inherits_no_descriptor(void **state)
{
    (void)state;
    struct fixture f;
    pid_t n;
    assert_true(open_group(&f, PROC_SUBREAPER, NULL));
    int loose = open("/dev/null", O_RDONLY);
    pid_t child = start(&f, say_what_is_inherited);
    read_pids(&f, &n, 1);
    assert_int_equal(n, 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(loose);
    close_group(&f);
}

static void names_are_checked(void **state)
{
    (void)state;
    char longer[120] = {0};
    memset(longer, 'x', sizeof(longer) - 1);
    const char *const bad[] = {"", ".", "..", "a/b", "../a", "a b", "-x", longer};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct proc_group *g;
        struct err e;
        assert_int_equal(proc_group_open(bad[i], NULL, &g, &e), ERR_INVALID);
    }
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
    start(&f, daemonise);
    read_pids(&f, &pid, 1);
    kill_all(&f, 0);
    assert_gone(&pid, 1);
    close_group(&f);
}

/* ---- Groups in groups, restarts ---- */

/* A task that makes a group of its own (an agent on the emulator) and puts a process in it. */
static void nest(const struct fixture *f)
{
    struct fixture inner = *f;
    struct err e;
    if (proc_group_open_mode("inner", NULL, f->mode, &inner.g, &e) < 0)
        _exit(1);
    start(&inner, daemonise);
    report_and_wait(f);
}

static void a_group_within_a_group_dies_with_it(void **state)
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
    report(f); /* first, because the freeze stops both */
    if (fork() == 0) {
        report(f);
        write_file(path, "FROZEN");
    }
    for (;;)
        pause();
}

static void a_task_that_froze_itself_dies(void **state)
{
    (void)state;
    struct fixture f;
    pid_t pids[2];
    if (access("/sys/fs/cgroup/freezer", F_OK) != 0 || !open_group(&f, PROC_CGROUP_HYBRID, NULL)) {
        print_message("SKIP: no v1 freezer\n");
        return;
    }
    start(&f, freeze_itself);
    read_pids(&f, pids, 2);
    kill_all(&f, 0);
    assert_gone(pids, 2);
    close_group(&f);
}

static void a_reopened_group_finds_what_is_in_it(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_CGROUP_HYBRID; mode++) {
        struct fixture f;
        pid_t pid;
        if (!open_group(&f, mode, NULL))
            continue;
        pid_t first_caller = fork();
        if (first_caller == 0) {
            start(&f, daemonise);
            _exit(0);
        }
        assert_int_equal(waitpid(first_caller, NULL, 0), first_caller);
        read_pids(&f, &pid, 1);
        close(f.report[0]);
        close(f.report[1]);
        proc_group_close(f.g, false);
        assert_true(open_group(&f, mode, NULL));
        kill_all(&f, 0);
        assert_gone(&pid, 1);
        close_group(&f);
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
    report_and_wait(f);
}

static void a_tree_dies_with_its_root_last(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    pid_t pids[3];
    int status;
    assert_true(open_group(&f, PROC_SUBREAPER, NULL));
    pid_t root = start(&f, subreaper_with_daemons);
    read_pids(&f, pids, 3);
    if (proc_tree_kill(root, TIMEOUT_MS, &e) < 0)
        fail_msg("%s", e.text);
    assert_gone(pids, 3);
    assert_int_equal(waitpid(root, &status, WNOHANG), root);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_no_children();
    assert_int_equal(proc_tree_kill(root, TIMEOUT_MS, &e), 0); /* already gone */
    close_group(&f);
}

static void start_ticks_tell_the_living(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_dies),
        cmocka_unit_test(a_child_that_ignores_signals_dies),
        cmocka_unit_test(a_daemon_that_left_its_session_dies),
        cmocka_unit_test(a_stopped_process_dies),
        cmocka_unit_test(a_wide_tree_dies),
        cmocka_unit_test(a_process_that_changes_its_pid_all_the_time_dies),
        cmocka_unit_test(a_process_that_also_changes_its_session_dies),
        cmocka_unit_test(a_fork_bomb_dies),
        cmocka_unit_test(a_denied_device_cannot_be_opened),
        cmocka_unit_test(the_status_of_keep_pid_stays_readable),
        cmocka_unit_test(an_empty_group_is_killed_at_once),
        cmocka_unit_test(a_child_outside_of_the_group_is_left_alone),
        cmocka_unit_test(a_signal_reaches_every_process),
        cmocka_unit_test(a_signal_for_handlers_spares_the_others),
        cmocka_unit_test(a_deadline_that_passes_is_an_error),
        cmocka_unit_test(limits_hold_where_there_are_controllers),
        cmocka_unit_test(what_is_beyond_the_memory_does_not_go_to_swap),
        cmocka_unit_test(what_is_not_limited_is_told),
        cmocka_unit_test(a_group_within_a_group_has_its_controllers),
        cmocka_unit_test(who_was_forked_before_enters_too),
        cmocka_unit_test(a_task_inherits_no_descriptor),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(the_best_mode_is_chosen_and_works),
        cmocka_unit_test(a_group_within_a_group_dies_with_it),
        cmocka_unit_test(a_task_that_froze_itself_dies),
        cmocka_unit_test(a_reopened_group_finds_what_is_in_it),
        cmocka_unit_test(a_tree_dies_with_its_root_last),
        cmocka_unit_test(start_ticks_tell_the_living),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
