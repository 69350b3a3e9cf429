/* SPDX-License-Identifier: Apache-2.0
 *
 * Mounts inside and outside of a task, and the processes that it sees: a node whose `/` is shared,
 * as by systemd, and a task in its own namespaces, each a process. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/supervisor/namespaces.h"
#include "rights.h"
#include "base/str.h"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define WAIT_S 50
#define NOBODY 65534

/* its directories inside and outside are mount points */
static char dir[] = "/tmp/belay-mounts-XXXXXX";

/* For child processes: stderr shows which check failed. */
#define must(is_done)                                                                              \
    do {                                                                                           \
        if (!(is_done)) {                                                                          \
            fprintf(stderr, "line %d: %s\n", __LINE__, #is_done);                                  \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* The optional fields of the mount at path (mountinfo in proc(5)); NULL if nothing is mounted. */
static const char *how_mounted(const char *path)
{
    static char found[512];
    char line[2048], at[1024], *fields, *end;
    bool is_mounted = false;
    FILE *f = fopen("/proc/self/mountinfo", "re");
    int options = 0;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s %*s %*s %*s %1023s %*s%n", at, &options) == 1 && str_eq(at, path)) {
            fields = line + options;
            end = strstr(fields, " - ");
            snprintf(found, sizeof(found), "%.*s", end ? (int)(end - fields) : 0, fields);
            is_mounted = true;
        }
    if (f)
        fclose(f);
    return is_mounted ? found : NULL;
}

static const char *in(const char *name)
{
    static char paths[2][64];
    char *path = paths[str_eq(name, "inside")];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static void mount_at(const char *name)
{
    must(mount("none", in(name), "tmpfs", 0, NULL) == 0);
}

static void pass(const int fds[2])
{
    must(write(fds[1], "", 1) == 1);
}

static void await(const int fds[2])
{
    char byte;
    must(read(fds[0], &byte, 1) == 1);
}

static _Noreturn void be_task(const int to_node[2], const int to_task[2], bool is_shared)
{
    struct namespaces n = {0};
    struct err e;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(WAIT_S);
    must(namespaces_enter(&n, &(struct namespaces_want){.ipc = true}, &e) == 0);
    const char *root = how_mounted("/");
    must(root && strstr(root, " shared:")); /* rootless podman warns where it is not */
    must((strstr(root, " master:") != NULL) == is_shared);
    mount_at("inside");
    pass(to_node);
    await(to_task);
    must((how_mounted(in("outside")) != NULL) == is_shared);
    must(namespaces_leave(&n) && !how_mounted(in("inside")));
    _exit(0);
}

/* A node whose `/` is shared, or not. */
static _Noreturn void be_node(bool is_shared)
{
    int to_node[2], to_task[2], status = 1;
    alarm(WAIT_S);
    must(unshare(CLONE_NEWNS) == 0);
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    must(!is_shared || mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) == 0);
    must(pipe(to_node) == 0 && pipe(to_task) == 0);
    pid_t task = fork();
    if (task == 0)
        be_task(to_node, to_task, is_shared);
    close(to_node[1]); /* closing it without a message ends the wait */
    await(to_node);
    must(!how_mounted(in("inside")));
    mount_at("outside");
    pass(to_task);
    must(waitpid(task, &status, 0) == task && status == 0);
    _exit(0);
}

static void check_node(bool is_shared)
{
    int status = 1;
    pid_t node = fork();
    if (node == 0)
        be_node(is_shared);
    assert_int_equal(waitpid(node, &status, 0), node);
    assert_int_equal(status, 0);
}

static void mounts_of_a_shared_node_come_in_and_none_go_out(void **state)
{
    (void)state;
    check_node(true);
}

static void mounts_of_a_private_node_do_not_come_in(void **state)
{
    (void)state;
    check_node(false);
}

/* ---- /proc ---- */

enum proc { PROC_USUAL, PROC_MASKED, PROC_HIDDEN };

/* Mounts /proc as a container runtime does, or as with hide_processes: yes. */
static void mount_proc(enum proc proc)
{
    must(enter_own_mounts());
    must(mount("proc", "/proc", "proc", 0, proc == PROC_HIDDEN ? "hidepid=2" : "hidepid=0") == 0);
    if (proc != PROC_MASKED)
        return;
    must(mount("/dev/null", "/proc/version", NULL, MS_BIND, NULL) == 0);
    must(mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) == 0);
    must(mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0);
}

static bool is_shown(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%ld", (long)pid);
    return access(path, F_OK) == 0;
}

static bool is_shown_to_user_nobody(pid_t pid)
{
    int status = 2;
    pid_t user = fork();
    if (user == 0) {
        must(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
        must(is_shown(getpid()));
        _exit(is_shown(pid) ? 3 : 0);
    }
    must(waitpid(user, &status, 0) == user && WIFEXITED(status) && WEXITSTATUS(status) != 1);
    return WEXITSTATUS(status) == 3;
}

static int count_mounts(const char *path)
{
    char line[2048], at[1024];
    FILE *f = fopen("/proc/self/mountinfo", "re");
    int n = 0;
    while (f && fgets(line, sizeof(line), f))
        n += sscanf(line, "%*s %*s %*s %*s %1023s", at) == 1 && str_eq(at, path);
    if (f)
        fclose(f);
    return n;
}

static _Noreturn void be_task_with_proc(enum proc proc)
{
    struct namespaces n = {0};
    struct statvfs sys;
    struct stat version;
    struct err e;
    pid_t other = getppid(); /* of root */
    alarm(WAIT_S);
    mount_proc(proc);
    int before = count_mounts("/proc");
    must(is_shown_to_user_nobody(other) == (proc != PROC_HIDDEN));
    must(namespaces_enter(&n, &(struct namespaces_want){.hides_processes = true}, &e) == 0);
    must(is_shown(other)); /* visible to root */
    must(!is_shown_to_user_nobody(other));
    must(count_mounts("/proc") == before + (proc != PROC_HIDDEN));
    must(statvfs("/proc/sys", &sys) == 0 && stat("/proc/version", &version) == 0);
    must((sys.f_flag & ST_RDONLY) == (proc == PROC_MASKED ? ST_RDONLY : 0));
    must((S_ISCHR(version.st_mode) != 0) == (proc == PROC_MASKED));
    must(namespaces_leave(&n) && count_mounts("/proc") == before);
    must(is_shown_to_user_nobody(other) == (proc != PROC_HIDDEN));
    _exit(0);
}

static void check_proc(enum proc proc)
{
    int status = 1;
    pid_t task = fork();
    if (task == 0)
        be_task_with_proc(proc);
    assert_int_equal(waitpid(task, &status, 0), task);
    assert_int_equal(status, 0);
}

static void processes_of_others_are_hidden_in_the_task_alone(void **state)
{
    (void)state;
    check_proc(PROC_USUAL);
}

static void entries_of_proc_that_a_container_hides_stay_hidden(void **state)
{
    (void)state;
    check_proc(PROC_MASKED);
}

static void nothing_is_mounted_where_processes_are_hidden_already(void **state)
{
    (void)state;
    check_proc(PROC_HIDDEN);
}

/* ---- from task to task ---- */

static const struct namespaces_want all = {.ipc = true, .hides_processes = true, .shm_mib = 1};

static ino_t mount_namespace(void)
{
    struct stat st;
    must(stat("/proc/self/ns/mnt", &st) == 0);
    return st.st_ino;
}

/* A task that leaves shared memory of both kinds, and may mount something. */
static void leave_things(bool mounts)
{
    int status = 1;
    pid_t task = fork();
    if (task == 0) {
        FILE *f = fopen("/dev/shm/left", "w");
        must(f && fputs("secret", f) >= 0 && fclose(f) == 0);
        must(shmget(4711, 4096, IPC_CREAT | IPC_EXCL | 0600) >= 0);
        if (mounts)
            mount_at("inside");
        _exit(0);
    }
    must(waitpid(task, &status, 0) == task && status == 0);
}

static void expect_nothing_left(int n_dev_shm)
{
    must(access("/dev/shm/left", F_OK) < 0);
    must(shmget(4711, 4096, 0600) < 0);
    must(!how_mounted(in("inside")));
    must(count_mounts("/dev/shm") == n_dev_shm + 1);
}

static void must_enter(struct namespaces *n, const struct namespaces_want *want)
{
    struct err e;
    must(namespaces_enter(n, want, &e) == 0);
}

static bool is_watched_changed(const struct namespaces *n, int wait_ms)
{
    struct pollfd p = {.fd = namespaces_watched(n), .events = POLLPRI};
    return poll(&p, 1, wait_ms) == 1;
}

static _Noreturn void be_supervisor(void)
{
    struct namespaces n = {0};
    alarm(WAIT_S);
    must(enter_own_mounts());
    ino_t node = mount_namespace();
    int n_dev_shm = count_mounts("/dev/shm");
    must_enter(&n, &all);
    ino_t first = mount_namespace();
    must(first != node);
    leave_things(false);
    must(namespaces_keep(&n) && !is_watched_changed(&n, 0));
    must(count_mounts("/dev/shm") == n_dev_shm); /* its memory is given back before the next task */
    must(mount_namespace() == first);
    must_enter(&n, &all);
    must(mount_namespace() == first);
    expect_nothing_left(n_dev_shm);
    leave_things(true); /* what was mounted would be there for the next */
    must(namespaces_keep(&n));
    must(mount_namespace() == node && namespaces_watched(&n) < 0);
    must_enter(&n, &all);
    expect_nothing_left(n_dev_shm);
    must(namespaces_keep(&n));
    must_enter(
        &n, &(struct namespaces_want){.ipc = true}); /* those that were kept hide processes */
    must(is_shown_to_user_nobody(getppid()));
    must(namespaces_leave(&n) && mount_namespace() == node);
    _exit(0);
}

static void run_supervisor(void (*be)(void))
{
    int status = 1;
    pid_t supervisor = fork();
    if (supervisor == 0)
        be();
    assert_int_equal(waitpid(supervisor, &status, 0), supervisor);
    assert_int_equal(status, 0);
}

static void kept_namespaces_have_nothing_of_the_task_before(void **state)
{
    (void)state;
    run_supervisor(be_supervisor);
}

static void use_nothing(void)
{
}

static void make_and_remove(void)
{
    must(close(creat("/dev/shm/short", 0600)) == 0 && unlink("/dev/shm/short") == 0);
}

static void leave_file(void)
{
    must(close(creat("/dev/shm/left", 0600)) == 0);
}

static void close_to_others(void)
{
    must(chmod("/dev/shm", 0700) == 0);
}

static void give_away(void)
{
    must(chown("/dev/shm", 1, 1) == 0);
}

static void enlarge(void)
{
    must(mount("", "/dev/shm", "", MS_REMOUNT | MS_NOSUID | MS_NODEV, "size=2m") == 0);
}

static fsblkcnt_t shm_bytes(void)
{
    struct statfs s;
    must(statfs("/dev/shm", &s) == 0);
    return (fsblkcnt_t)s.f_blocks * (fsblkcnt_t)s.f_bsize;
}

/* Changes by a task within one tick of the file system's clock. */
static _Noreturn void use_shm(void)
{
    static void (*const uses[])(void) = {
        use_nothing, make_and_remove, leave_file, close_to_others, give_away, enlarge, use_nothing};
    struct namespaces n = {0};
    struct stat st;
    alarm(WAIT_S);
    must(enter_own_mounts());
    int n_dev_shm = count_mounts("/dev/shm");
    for (size_t i = 0; i < sizeof(uses) / sizeof(*uses); i++) {
        must_enter(&n, &all);
        must(access("/dev/shm/left", F_OK) < 0 && shm_bytes() == 1 << 20);
        must(stat("/dev/shm", &st) == 0 && st.st_mode == (S_IFDIR | 01777) && st.st_uid == 0);
        must(count_mounts("/dev/shm") == n_dev_shm + 1);
        uses[i]();
        must(namespaces_keep(&n));
        if (uses[i] != make_and_remove) /* it may have been in the same moment as the mount */
            must(count_mounts("/dev/shm") == n_dev_shm + (uses[i] == use_nothing));
    }
    must_enter(&n, &(struct namespaces_want){.ipc = true, .hides_processes = true, .shm_mib = 3});
    must(shm_bytes() == 3 << 20 && count_mounts("/dev/shm") == n_dev_shm + 1);
    must(namespaces_leave(&n));
    _exit(0);
}

static void a_dev_shm_is_kept_only_if_no_task_has_used_it(void **state)
{
    (void)state;
    run_supervisor(use_shm);
}

/* The node is the process that forked this one, in the same namespaces. */
static _Noreturn void be_spare(const int to_node[2], const int to_spare[2])
{
    struct namespaces n = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(WAIT_S);
    must_enter(&n, &all);
    must(namespaces_keep(&n));
    pass(to_node);
    await(to_spare);
    must(is_watched_changed(&n, 1000 * WAIT_S) && namespaces_leave(&n));
    must_enter(&n, &all);
    must(how_mounted(in("outside")));
    _exit(0);
}

static void kept_namespaces_are_left_when_the_node_mounts(void **state)
{
    (void)state;
    int status = 1;
    pid_t node = fork();
    if (node == 0) {
        int to_node[2], to_spare[2];
        alarm(WAIT_S);
        must(enter_own_mounts());
        must(pipe(to_node) == 0 && pipe(to_spare) == 0);
        pid_t spare = fork();
        if (spare == 0)
            be_spare(to_node, to_spare);
        close(to_node[1]);
        await(to_node);
        mount_at("outside");
        pass(to_spare);
        must(waitpid(spare, &status, 0) == spare && status == 0);
        _exit(0);
    }
    assert_int_equal(waitpid(node, &status, 0), node);
    assert_int_equal(status, 0);
}

/* ---- */

static int make_dirs(void **state)
{
    (void)state;
    return mkdtemp(dir) && mkdir(in("inside"), 0700) == 0 && mkdir(in("outside"), 0700) == 0 ? 0
                                                                                             : -1;
}

static int remove_dirs(void **state)
{
    (void)state;
    return rmdir(in("inside")) | rmdir(in("outside")) | rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mounts_of_a_shared_node_come_in_and_none_go_out),
        cmocka_unit_test(mounts_of_a_private_node_do_not_come_in),
        cmocka_unit_test(processes_of_others_are_hidden_in_the_task_alone),
        cmocka_unit_test(entries_of_proc_that_a_container_hides_stay_hidden),
        cmocka_unit_test(nothing_is_mounted_where_processes_are_hidden_already),
        cmocka_unit_test(kept_namespaces_have_nothing_of_the_task_before),
        cmocka_unit_test(a_dev_shm_is_kept_only_if_no_task_has_used_it),
        cmocka_unit_test(kept_namespaces_are_left_when_the_node_mounts),
    };
    if (geteuid() != 0 || !may_unshare(CLONE_NEWIPC | CLONE_NEWNS))
        return SKIPPED;
    return cmocka_run_group_tests(tests, make_dirs, remove_dirs);
}
