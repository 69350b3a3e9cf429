/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task mounts, and what is mounted around it: a node whose `/` is shared, as systemd makes
 * it, and a task in namespaces of its own, each a process. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/supervisor/private_ipc.h"
#include "base/str.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define WAIT_S 50

static char dir[] = "/tmp/belay-mounts-XXXXXX"; /* inside and outside in it are mounted upon */

/* In a process of its own: what is said to stderr tells which of them failed. */
#define must(is_done)                                                                              \
    do {                                                                                           \
        if (!(is_done)) {                                                                          \
            fprintf(stderr, "line %d: %s\n", __LINE__, #is_done);                                  \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* The optional fields of the mount at path (mountinfo in proc(5)); NULL: nothing is mounted. */
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
    struct private_ipc p = {0};
    struct err e;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(WAIT_S);
    must(private_ipc_enter(&p, 0, &e) == 0);
    const char *root = how_mounted("/");
    must(root && strstr(root, " shared:")); /* rootless podman warns where it is not */
    must((strstr(root, " master:") != NULL) == is_shared);
    mount_at("inside");
    pass(to_node);
    await(to_task);
    must((how_mounted(in("outside")) != NULL) == is_shared);
    must(private_ipc_leave(&p) && !how_mounted(in("inside")));
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
    close(to_node[1]); /* its end without a word ends the wait */
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

static void of_a_node_that_is_not_shared_none_come_in(void **state)
{
    (void)state;
    check_node(false);
}

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

static bool may_unshare(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWIPC | CLONE_NEWNS) < 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mounts_of_a_shared_node_come_in_and_none_go_out),
        cmocka_unit_test(of_a_node_that_is_not_shared_none_come_in),
    };
    if (geteuid() != 0 || !may_unshare())
        return SKIPPED;
    return cmocka_run_group_tests(tests, make_dirs, remove_dirs);
}
