/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, signals, limits, deadlines and names of process groups.
 */
#include "tests/uv/proc_rig.h"

#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Devices ---- */

/* Reports the errnos of opening /dev/full (1:7), which is denied, and /dev/zero (1:5), in place of
 * pids. */
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
        if (!group_open(&f, mode, &(struct proc_limits){.denied = denied, .n_denied = 2}))
            continue;
        if (proc_group_lacks(f.g, PROC_DEVICES) == 0) {
            task_start(&f, open_devices);
            group_read_pids(&f, said, 2);
            assert_int_equal(said[0], EPERM);
            assert_int_equal(said[1], 1000);
        } else {
            print_message("SKIP: %s: devices cannot be denied here\n", mode_names[mode]);
        }
        group_kill_all(&f, 0);
        group_close(&f);
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
    task_report_and_wait(f);
}

static void a_signal_reaches_every_process(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        pid_t pids[2];
        int status;
        if (!group_open(&f, mode, NULL))
            continue;
        pid_t child = task_start(&f, wait_for_term);
        group_read_pids(&f, pids, 2);
        assert_int_equal(proc_group_signal(f.g, SIGTERM), 2);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WEXITSTATUS(status), 9);
        assert_true(waitpid(-1, &status, 0) > 0); /* the orphan became our child */
        assert_int_equal(WEXITSTATUS(status), 9);
        assert_no_children();
        group_close(&f);
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
        task_report_and_wait(f);
    }
    if (fork() == 0) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        task_report(f);
        sigwait(&set, &got);
        _exit(9);
    }
    if (fork() == 0) {
        signal(SIGUSR1, SIG_IGN);
        task_report_and_wait(f);
    }
    task_report_and_wait(f);
}

static void a_signal_for_handlers_spares_the_others(void **state)
{
    (void)state;
    struct fixture f;
    pid_t pids[4];
    assert_true(group_open(&f, PROC_SUBREAPER, NULL));
    pid_t child = task_start(&f, four_kinds);
    group_read_pids(&f, pids, 4);
    assert_int_equal(proc_group_signal_handlers(f.g, SIGUSR1), 2);
    assert_true(proc_start_ticks(child) != 0);
    group_kill_all(&f, 0);
    assert_gone(pids, 4);
    assert_no_children();
    group_close(&f);
}

static void an_exceeded_deadline_is_an_error(void **state)
{
    (void)state;
    struct fixture f;
    struct err e;
    pid_t pid;
    assert_true(group_open(&f, PROC_SUBREAPER, NULL));
    pid_t child = task_start(&f, task_report_and_wait);
    group_read_pids(&f, &pid, 1);
    assert_int_equal(proc_group_kill_all(f.g, child, 0, &e), ERR_TIMEOUT);
    assert_non_null(strstr(e.text, "at the deadline"));
    group_kill_all(&f, child);
    assert_gone(&pid, 1);
    assert_int_equal(waitpid(child, NULL, WNOHANG), child);
    assert_no_children();
    group_close(&f);
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

static void memory_over_the_limit_is_not_swapped(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_CGROUP_HYBRID; mode++) {
        struct fixture f;
        struct usage_files files;
        if (!group_open(&f, mode, &(struct proc_limits){.memory_bytes = 256 << 20}))
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
        group_close(&f);
    }
}

static void unsupported_limits_are_reported(void **state)
{
    static const struct proc_device denied[] = {{1, 9}};
    static const struct proc_limits all = {
        .memory_bytes = 256 << 20, .pids_max = 10, .denied = denied, .n_denied = 1};
    (void)state;
    struct fixture f;
    assert_true(group_open(&f, PROC_SUBREAPER, &all));
    assert_int_equal(proc_group_lacks(f.g, PROC_MEMORY), EOPNOTSUPP);
    assert_int_equal(proc_group_lacks(f.g, PROC_PIDS), EOPNOTSUPP);
    assert_int_equal(proc_group_lacks(f.g, PROC_DEVICES), EOPNOTSUPP);
    group_close(&f);
    for (int with = 0; with < 2; with++) { /* no limit requested */
        assert_true(group_open(&f, PROC_SUBREAPER, with ? &(struct proc_limits){0} : NULL));
        for (int k = 0; k < PROC_LIMIT_KINDS; k++)
            assert_int_equal(proc_group_lacks(f.g, k), 0);
        group_close(&f);
    }
}

static void limits_are_enforced_where_controllers_exist(void **state)
{
    (void)state;
    struct fixture f;
    struct usage_files files;
    struct usage used;
    pid_t n;
    if (!group_open(&f, PROC_CGROUP_HYBRID,
            &(struct proc_limits){.memory_bytes = 256 << 20, .cpus_milli = 2000, .pids_max = 10}))
        return;
    task_start(&f, fork_until_refused);
    group_read_pids(&f, &n, 1);
    proc_group_usage_files(f.g, &files);
    usage_read(&files, &used);
    group_kill_all(&f, 0);
    if (n == 100)
        print_message("SKIP: this machine has no pids controller for us\n");
    else
        assert_int_equal(n, 9); /* and the process itself */
    if (used.peak_bytes < 0)
        print_message("SKIP: this machine has no memory controller for us\n");
    else
        assert_true(used.peak_bytes > 0 && used.peak_bytes <= 256 << 20);
    group_close(&f);
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
    task_start(&inner, task_report_and_wait);
    if (write(f->report[1], &answer, sizeof(answer)) == sizeof(answer))
        pause();
}

/* By the rule of cgroup v2 a group with processes cannot enable controllers for its children: the
 * processes must move. */
static void a_nested_group_has_the_controllers(void **state)
{
    (void)state;
    struct fixture f;
    pid_t got[2];
    if (!group_open(&f, PROC_CGROUP2, NULL))
        return;
    task_start(&f, compare_controllers);
    group_read_pids(&f, got, 2);
    group_kill_all(&f, 0);
    if (got[0] == 2 || got[1] == 2)
        print_message("SKIP: no controller in the v2 hierarchy\n");
    else
        assert_true(got[0] == 1 || got[1] == 1);
    group_close(&f);
}

static void a_process_forked_before_enters_the_group_too(void **state)
{
    (void)state;
    for (enum proc_mode mode = PROC_CGROUP2; mode <= PROC_SUBREAPER; mode++) {
        struct fixture f;
        pid_t pid;
        if (!group_open(&f, mode, NULL))
            continue;
        pid_t child = fork();
        if (child == 0) {
            if (proc_group_enter(f.g) == 0)
                task_report_and_wait(&f);
            _exit(1);
        }
        group_read_pids(&f, &pid, 1);
        assert_int_equal(pid, child);
        group_kill_all(&f, 0);
        assert_gone(&pid, 1);
        group_close(&f);
    }
}

static void a_task_inherits_no_descriptor(void **state)
{
    (void)state;
    struct fixture f;
    pid_t n;
    assert_true(group_open(&f, PROC_SUBREAPER, NULL));
    int loose = open("/dev/null", O_RDONLY);
    pid_t child = task_start(&f, say_what_is_inherited);
    group_read_pids(&f, &n, 1);
    assert_int_equal(n, 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(loose);
    group_close(&f);
}

static void group_names_are_validated(void **state)
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

/* ---- Directories kept from group to group ---- */

/* Writes the directory of this process in the pids hierarchy, for a v1 machine; else "". */
static void report_pids_group(const struct fixture *f)
{
    char line[512], text[512] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof(line), file)) {
        char *at = strstr(line, ":pids:");
        line[strcspn(line, "\n")] = '\0';
        if (at)
            STR_COPY(text, at + strlen(":pids:"));
    }
    if (write(f->report[1], text, sizeof(text)) < 0)
        _exit(1);
    for (;;)
        pause();
}

/* Opens a group in home, runs a task there, and returns its pids directory. */
static void run_in(struct proc_home *home, struct fixture *f, const char *name, char out[512])
{
    struct err e;
    size_t n = 0;
    assert_int_equal(
        proc_group_open_in(home, name, &(struct proc_limits){.pids_max = 10}, &f->g, &e), 0);
    assert_int_equal(pipe(f->report), 0);
    task_start(f, report_pids_group);
    while (n < 512) {
        ssize_t got = read(f->report[0], out + n, 512 - n);
        assert_true(got > 0);
        n += (size_t)got;
    }
}

static void end_in(struct fixture *f)
{
    struct err e;
    assert_int_equal(proc_group_kill_all(f->g, 0, TIMEOUT_MS, &e), 0);
    proc_group_close(f->g, true);
    close(f->report[0]);
    close(f->report[1]);
}

static bool has_pids_group(const char *name)
{
    char path[600];
    snprintf(path, sizeof(path), "/sys/fs/cgroup/pids%s", name);
    return access(path, F_OK) == 0;
}

static void a_v1_directory_is_reused_by_the_next_group(void **state)
{
    struct proc_home *home = proc_home_find();
    struct fixture one = {0}, two = {0};
    char first[512], second[512], below[620];
    int fds[PROC_HOME_FDS_MAX];
    (void)state;
    run_in(home, &one, "belay-kept-1", first);
    if (!strstr(first, "belay-supervisor-")) {
        print_message("SKIP: no v1 pids hierarchy for us: \"%s\"\n", first);
        end_in(&one);
        proc_home_free(home);
        return;
    }
    run_in(home, &two, "belay-kept-2", second); /* two groups at a time have one directory each */
    assert_string_not_equal(first, second);
    end_in(&two);
    assert_false(has_pids_group(second));
    end_in(&one);
    assert_true(has_pids_group(first) && proc_home_fds(home, fds) > 0);
    run_in(home, &one, "belay-kept-3", second);
    assert_string_equal(first, second);
    snprintf(below, sizeof(below), "/sys/fs/cgroup/pids%s/made", first);
    assert_int_equal(mkdir(below, 0755), 0); /* as a container engine in the task does */
    end_in(&one);
    run_in(home, &one, "belay-kept-4", second); /* its directory is not reused */
    assert_string_not_equal(first, second);
    end_in(&one);
    assert_int_equal(rmdir(below), 0);
    run_in(home, &one, "belay-kept-5", second);
    assert_string_equal(first, second);
    end_in(&one);
    proc_home_drop(home);
    assert_false(has_pids_group(first));
    assert_int_equal(proc_home_fds(home, fds), 0);
    proc_home_free(home);
}

/* Of open_kept: the file of the group's peak, and the inode of its directory. */
struct memory_dir {
    char peak[USAGE_PATH_MAX];
    ino_t inode;
};

static struct memory_dir open_kept(struct proc_home *home, struct fixture *f, int64_t memory_bytes)
{
    struct memory_dir d = {0};
    struct usage_files files;
    struct stat st;
    struct err e;
    char *slash;
    const struct proc_limits limits = {.memory_bytes = memory_bytes};
    assert_int_equal(proc_group_open_in(home, "belay-kept-memory", &limits, &f->g, &e), 0);
    assert_int_equal(pipe(f->report), 0);
    proc_group_usage_files(f->g, &files);
    if (!strstr(files.peak, "belay-supervisor-"))
        return d;
    STR_COPY(d.peak, files.peak);
    if ((slash = strrchr(files.peak, '/')))
        *slash = '\0';
    assert_int_equal(stat(files.peak, &st), 0);
    d.inode = st.st_ino;
    return d;
}

#define KEPT_BYTES (4 << 20)

/* Writes to memory that outlives this process: stdin is a file without a name. */
static void fill_stdin(const struct fixture *f)
{
    static char page[4096];
    pid_t done = 1;
    for (int64_t n = 0; n < KEPT_BYTES; n += (int64_t)sizeof(page))
        if (write(0, page, sizeof(page)) != sizeof(page))
            _exit(1);
    if (write(f->report[1], &done, sizeof(done)) == sizeof(done))
        pause();
}

static void fill_memory(const struct fixture *f)
{
    pid_t done = 1;
    volatile char *memory = malloc(KEPT_BYTES);
    for (int64_t i = 0; memory && i < KEPT_BYTES; i += 4096)
        memory[i] = 1;
    if (write(f->report[1], &done, sizeof(done)) == sizeof(done))
        pause();
}

static void run_kept(struct fixture *f, body_fn body)
{
    pid_t done;
    task_start(f, body);
    group_read_pids(f, &done, 1);
}

static void a_v1_memory_directory_is_reused_when_almost_empty(void **state)
{
    struct proc_home *home = proc_home_find();
    struct fixture f = {0};
    struct memory_dir first = open_kept(home, &f, 64 << 20), next;
    int file = memfd_create("kept", MFD_CLOEXEC), saved = dup(0);
    (void)state;
    if (!*first.peak) {
        print_message("SKIP: no v1 memory hierarchy for us\n");
    } else {
        assert_true(file >= 0 && saved >= 0 && dup2(file, 0) == 0);
        run_kept(&f, fill_memory);
        assert_true(number_beside(first.peak, "memory.max_usage_in_bytes") >= KEPT_BYTES);
        for (int64_t limit = 128 << 20; limit >= 32 << 20; limit -= 96 << 20) { /* up, then down */
            end_in(&f);
            next = open_kept(home, &f, limit);
            assert_string_equal(next.peak, first.peak);
            assert_int_equal(next.inode, first.inode);
            assert_true(number_beside(next.peak, "memory.max_usage_in_bytes") < KEPT_BYTES / 4);
            assert_int_equal(number_beside(next.peak, "memory.limit_in_bytes"), limit);
            assert_int_equal(proc_group_lacks(f.g, PROC_MEMORY), 0);
        }
        run_kept(&f, fill_stdin);
        end_in(&f);
        next = open_kept(home, &f, 64 << 20); /* the file's pages are charged to the old one */
        assert_int_not_equal(next.inode, first.inode);
        assert_true(number_beside(next.peak, "memory.max_usage_in_bytes") < KEPT_BYTES / 4);
        assert_int_equal(dup2(saved, 0), 0);
    }
    end_in(&f);
    proc_home_free(home);
    close(file);
    close(saved);
}

static void directories_of_a_dead_process_are_removed(void **state)
{
    struct proc_home *home = proc_home_find();
    struct fixture f = {0};
    char dir[512];
    int status, out[2];
    (void)state;
    assert_int_equal(pipe(out), 0);
    pid_t supervisor = fork();
    if (supervisor == 0) {
        run_in(home, &f, "belay-kept-6", dir);
        end_in(&f);
        if (write(out[1], dir, sizeof(dir)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(out[0], dir, sizeof(dir)), sizeof(dir));
    proc_home_prune(home);
    bool is_kept = strstr(dir, "belay-supervisor-") != NULL;
    if (is_kept)
        assert_true(has_pids_group(dir)); /* its process lives */
    kill(supervisor, SIGKILL);
    assert_int_equal(waitpid(supervisor, &status, 0), supervisor);
    proc_home_prune(home);
    if (is_kept)
        assert_false(has_pids_group(dir));
    close(out[0]);
    close(out[1]);
    proc_home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_denied_device_cannot_be_opened),
        cmocka_unit_test(a_signal_reaches_every_process),
        cmocka_unit_test(a_signal_for_handlers_spares_the_others),
        cmocka_unit_test(an_exceeded_deadline_is_an_error),
        cmocka_unit_test(limits_are_enforced_where_controllers_exist),
        cmocka_unit_test(memory_over_the_limit_is_not_swapped),
        cmocka_unit_test(unsupported_limits_are_reported),
        cmocka_unit_test(a_nested_group_has_the_controllers),
        cmocka_unit_test(a_process_forked_before_enters_the_group_too),
        cmocka_unit_test(a_task_inherits_no_descriptor),
        cmocka_unit_test(group_names_are_validated),
        cmocka_unit_test(a_v1_directory_is_reused_by_the_next_group),
        cmocka_unit_test(a_v1_memory_directory_is_reused_when_almost_empty),
        cmocka_unit_test(directories_of_a_dead_process_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
