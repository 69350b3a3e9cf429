/* SPDX-License-Identifier: Apache-2.0
 *
 * What a restored process may hold, and what makes the restore fail: processes of an unprivileged
 * user get descriptors, mappings and directories from root, as from criu. Needs root. The test runs
 * from a copy of itself, because a program that the user cannot reach is refused too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/criu/criu_rights.h"
#include "rights.h"
#include "base/fds.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define SKIPPED 77
#define NO_RIGHT "nobody has no right to that"
#define NO_REACH "nobody cannot reach it by its name"
#define PAGE 4096

static const char *dir; /* owned by root and accessible to all; closed/ in it is not */
static int inherited = -1;
static struct criu_rights rights = {
    .user = {.uid = NOBODY, .gid = NOBODY, .is_other = true, .name = "nobody", .home = "/"}};

static const char *in(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

/* ---- a process that holds something ---- */

typedef void (*take_fn)(void);

static void must(bool is_done)
{
    if (!is_done)
        _exit(1);
}

static _Noreturn void hold(take_fn take, int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDWR);
    must(chdir("/") == 0 && null >= 0);
    must(dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2);
    must(dup2(ready, 3) == 3 && (inherited < 0 || dup2(inherited, 4) == 4));
    close_range(inherited < 0 ? 4 : 5, ~0U, 0);
    take();
    must(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    must(write(3, "", 1) == 1);
    for (;;)
        pause();
}

static pid_t start(take_fn take)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0)
        hold(take, ready[1]);
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        fail_msg("the process could not take what it should hold");
    close(ready[0]);
    return pid;
}

/* In a process of its own, because its groups change. */
static int check_in_child(pid_t pid, struct err *ret_error)
{
    struct err *e =
        mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    assert_ptr_not_equal(e, MAP_FAILED);
    rights.criu = getpid();
    pid_t checker = fork();
    if (checker == 0)
        _exit(-criu_rights_check(&rights, pid, e));
    assert_int_equal(waitpid(checker, &status, 0), checker);
    assert_true(WIFEXITED(status));
    *ret_error = *e;
    munmap(e, sizeof(*e));
    return -WEXITSTATUS(status);
}

/* want: NULL if it is allowed, otherwise the error's text after `what`. */
static void check_as(const char *name, take_fn take, const char *what, const char *want)
{
    struct err e = {0};
    pid_t pid = start(take);
    int rc = check_in_child(pid, &e);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (!want && rc)
        fail_msg("%s was refused: %s", name, e.text);
    if (want && rc != ERR_DENIED)
        fail_msg("%s: %s", name, rc ? e.text : "was allowed");
    if (want && (!strstr(e.text, what) || !str_ends(e.text, want)))
        fail_msg("%s was refused with other words: %s", name, e.text);
}

#define ALLOWED(take) check_as(#take, take, "", NULL)
#define REFUSED(take, what, why) check_as(#take, take, what, why)

static void take_open(const char *path, int flags)
{
    must(open(path, flags, 0600) >= 0);
}

static void take_map(const char *path, int flags, int prot, int kind)
{
    int fd = open(path, flags);
    must(fd >= 0 && mmap(NULL, PAGE, prot, kind, fd, 0) != MAP_FAILED);
    close(fd);
}

static void put(const char *path, uid_t owner, mode_t mode)
{
    static const char page[PAGE];
    struct err e;
    assert_int_equal(fs_write_atomic(path, page, sizeof(page), mode, &e), 0);
    assert_int_equal(chown(path, owner, owner), 0);
}

/* ---- descriptors ---- */

static void secret_for_reading(void)
{
    take_open(in("secret"), O_RDONLY);
}

static void secret_for_writing(void)
{
    take_open(in("secret"), O_WRONLY);
}

static void secret_for_both(void)
{
    take_open(in("secret"), O_RDWR);
}

static void secret_by_link(void)
{
    take_open(in("own-directory/link"), O_RDONLY);
}

static void secret_as_path(void)
{
    take_open(in("secret"), O_PATH);
}

static void readable_for_reading(void)
{
    take_open(in("readable"), O_RDONLY);
}

static void readable_for_both(void)
{
    take_open(in("readable"), O_RDWR | O_APPEND);
}

static void readable_for_controls(void)
{
    take_open(in("readable"), 3); /* neither reads nor writes, but open(2) requires both rights */
}

static void group_for_reading(void)
{
    take_open(in("group"), O_RDONLY);
}

static void group_for_both(void)
{
    take_open(in("group"), O_RDWR);
}

static void modes_of_access_are_compared(void **state)
{
    (void)state;
    REFUSED(secret_for_reading, "secret is open for reading in process", NO_RIGHT);
    REFUSED(secret_for_writing, "secret is open for writing in process", NO_RIGHT);
    REFUSED(secret_for_both, "secret is open for reading and writing in process", NO_RIGHT);
    REFUSED(secret_by_link, in("secret"), NO_RIGHT);
    ALLOWED(secret_as_path);
    ALLOWED(readable_for_reading);
    REFUSED(readable_for_both, "readable is open for reading and writing", NO_RIGHT);
    REFUSED(readable_for_controls, "readable is open in process", NO_RIGHT);
    ALLOWED(group_for_reading);
    REFUSED(group_for_both, "group is open for reading and writing", NO_RIGHT);
}

static void hidden_for_reading(void)
{
    take_open(in("closed/readable"), O_RDONLY);
}

static void hidden_as_path(void)
{
    take_open(in("closed/readable"), O_PATH);
}

static void hidden_own(void)
{
    take_open(in("closed/own"), O_RDWR);
}

static void hidden_below(void)
{
    take_open(in("closed/open"), O_RDONLY | O_DIRECTORY);
}

static void a_closed_parent_directory_is_respected(void **state)
{
    (void)state;
    REFUSED(hidden_for_reading, "closed/readable is open for reading", NO_REACH);
    REFUSED(hidden_as_path, "closed/readable is open in process", NO_REACH);
    REFUSED(hidden_own, "closed/own is open for reading and writing", NO_REACH);
    REFUSED(hidden_below, "closed/open is open for reading", NO_REACH);
}

static void own_for_both(void)
{
    take_open(in("own"), O_RDWR);
}

static void own_without_mode(void)
{
    int fd = open(in("own"), O_RDWR);
    must(fd >= 0 && fchmod(fd, 0) == 0);
}

static void own_removed(void)
{
    int fd = open(in("own-removed"), O_RDWR | O_CREAT | O_EXCL, 0600);
    must(fd >= 0 && fchown(fd, NOBODY, NOBODY) == 0 && unlink(in("own-removed")) == 0);
}

static void own_removed_with_another_name(void)
{
    int fd = open(in("own-two"), O_RDWR | O_CREAT | O_EXCL, 0600);
    must(fd >= 0 && fchown(fd, NOBODY, NOBODY) == 0);
    must(link(in("own-two"), in("closed/own-two")) == 0 && unlink(in("own-two")) == 0);
}

static void library_removed(void)
{
    int fd = open(in("library"), O_RDWR | O_CREAT | O_EXCL, 0644);
    must(fd >= 0 && close(fd) == 0);
    take_open(in("library"), O_RDONLY);
    must(unlink(in("library")) == 0);
}

static void secret_removed(void)
{
    take_open(in("gone"), O_RDONLY | O_CREAT | O_EXCL);
    must(unlink(in("gone")) == 0);
}

static void readable_removed_with_another_name(void)
{
    put(in("two"), 0, 0644);
    take_open(in("two"), O_RDONLY);
    must(link(in("two"), in("closed/two")) == 0 && unlink(in("two")) == 0);
}

static void own_and_removed_files_are_allowed(void **state)
{
    (void)state;
    ALLOWED(own_for_both);
    ALLOWED(own_without_mode);
    ALLOWED(own_removed);
    ALLOWED(own_removed_with_another_name);
    ALLOWED(library_removed);
    REFUSED(secret_removed, "gone (deleted) is open for reading", NO_RIGHT);
    REFUSED(readable_removed_with_another_name, "two (deleted) is open for reading", NO_REACH);
}

/* ---- mappings ---- */

static void map_of_secret(void)
{
    take_map(in("secret"), O_RDONLY, PROT_READ, MAP_PRIVATE);
}

static void private_map_of_readable(void)
{
    take_map(in("readable"), O_RDWR, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static void shared_map_of_readable(void)
{
    take_map(in("readable"), O_RDONLY, PROT_READ, MAP_SHARED);
}

static void writable_map_of_readable(void)
{
    take_map(in("readable"), O_RDWR, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void map_that_can_become_writable(void)
{
    take_map(in("readable"), O_RDWR, PROT_READ, MAP_SHARED);
}

static void writable_map_of_own(void)
{
    take_map(in("own"), O_RDWR, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void map_of_hidden(void)
{
    take_map(in("closed/readable"), O_RDONLY, PROT_READ, MAP_PRIVATE);
}

static void shared_memory(void)
{
    must(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
}

static void mapped_files_are_compared(void **state)
{
    static const char both[] = "readable is mapped for reading and writing in process";
    (void)state;
    REFUSED(map_of_secret, "secret is mapped in process", NO_RIGHT);
    ALLOWED(private_map_of_readable);
    ALLOWED(shared_map_of_readable);
    REFUSED(writable_map_of_readable, both, NO_RIGHT);
    REFUSED(map_that_can_become_writable, both, NO_RIGHT);
    ALLOWED(writable_map_of_own);
    REFUSED(map_of_hidden, "closed/readable is mapped in process", NO_REACH);
    ALLOWED(shared_memory);
}

/* ---- what is not a regular file ---- */

static void null_device(void)
{
    take_open("/dev/null", O_RDWR);
}

static void closed_device(void)
{
    take_open(in("device"), O_RDONLY);
}

static void named_pipe(void)
{
    take_open(in("fifo"), O_RDWR);
}

static void own_named_pipe(void)
{
    take_open(in("own-fifo"), O_RDONLY | O_NONBLOCK);
}

static void open_directory(void)
{
    take_open(in(""), O_RDONLY | O_DIRECTORY);
}

static void closed_directory(void)
{
    take_open(in("closed"), O_RDONLY | O_DIRECTORY);
}

static void current_closed(void)
{
    must(chdir(in("closed")) == 0);
}

static void current_below_closed(void)
{
    must(chdir(in("closed/open")) == 0);
}

static void current_own(void)
{
    must(chdir(in("own-directory")) == 0);
}

static void current_only_searchable(void)
{
    must(chdir(in("searchable")) == 0);
}

static void root_closed(void)
{
    must(chroot(in("closed")) == 0);
}

static void devices_and_directories_are_compared(void **state)
{
    (void)state;
    ALLOWED(null_device);
    REFUSED(closed_device, "device is open for reading", NO_RIGHT);
    REFUSED(named_pipe, "fifo is open for reading and writing", NO_RIGHT);
    ALLOWED(own_named_pipe);
    ALLOWED(open_directory);
    REFUSED(closed_directory, "closed is open for reading", NO_RIGHT);
    REFUSED(current_closed, "closed is a directory in process", NO_RIGHT);
    REFUSED(current_below_closed, "closed/open is a directory in process", NO_REACH);
    ALLOWED(current_own);
    ALLOWED(current_only_searchable);
    REFUSED(root_closed, "closed is a directory in process", NO_RIGHT);
}

static void kernel_objects(void)
{
    int fds[2];
    must(pipe(fds) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    must(socket(AF_INET, SOCK_STREAM, 0) >= 0 && socket(AF_UNIX, SOCK_DGRAM, 0) >= 0);
    must(memfd_create("memory", 0) >= 0 && eventfd(0, 0) >= 0 && epoll_create1(0) >= 0);
    must(timerfd_create(CLOCK_MONOTONIC, 0) >= 0 && open("/proc/self/ns/net", O_RDONLY) >= 0);
    int fd = memfd_create("given away", 0);
    must(fd >= 0 && fchown(fd, NOBODY, NOBODY) == 0 && fchmod(fd, 0600) == 0);
}

static void nothing(void)
{
}

static void objects_without_a_name_are_allowed(void **state)
{
    struct err e;
    (void)state;
    ALLOWED(kernel_objects);
    pid_t pid = start(nothing);
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
    assert_int_equal(check_in_child(pid, &e), 0); /* a zombie */
    waitpid(pid, NULL, 0);
    assert_int_equal(check_in_child(pid, &e), 0);
}

/* ---- UNIX sockets ---- */

static void descriptor_under_way(void)
{
    int fds[2], fd = open(in("secret"), O_RDONLY);
    must(fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    must(fds_send(fds[0], "", 1, &fd, 1) == 0 && close(fd) == 0);
}

static struct sockaddr_un address(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", in(name));
    return a;
}

static void listen_as_root(const char *name, mode_t mode)
{
    struct sockaddr_un a = address(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* stays open: a receiver */
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(chmod(a.sun_path, mode), 0);
}

static void take_connection(const char *name)
{
    struct sockaddr_un a = address(name);
    must(connect(socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr *)&a, sizeof(a)) == 0);
}

static void connected_to_root(void)
{
    take_connection("control.sock");
}

static void connected_into_closed(void)
{
    take_connection("closed/log.sock");
}

static void connected_to_all(void)
{
    take_connection("log.sock");
}

static void sockets_give_no_more_than_the_user_has(void **state)
{
    (void)state;
    REFUSED(descriptor_under_way, "socket:[", "which cannot be checked");
    REFUSED(connected_to_root, "control.sock is connected to from process", NO_RIGHT);
    REFUSED(connected_into_closed, "closed/log.sock is connected to from process", NO_RIGHT);
    ALLOWED(connected_to_all);
}

/* ---- what is exempt by identity ---- */

static void output_for_writing(void)
{
    take_open(in("output.log"), O_WRONLY | O_APPEND);
}

static void output_for_both(void)
{
    take_open(in("output.log"), O_RDWR);
}

static void secret_for_both_again(void)
{
    take_open(in("secret"), O_RDWR);
}

static void a_descriptor_that_was_passed_is_known_by_its_identity(void **state)
{
    (void)state;
    REFUSED(output_for_both, "output.log is open for reading and writing", NO_RIGHT);
    REFUSED(output_for_writing, "output.log is open for writing", NO_RIGHT);
    inherited = open(in("secret"), O_RDWR | O_CLOEXEC); /* like criu's log */
    assert_true(inherited >= 0);
    ALLOWED(nothing);
    REFUSED(secret_for_both_again, "secret is open for reading and writing", NO_RIGHT);
    close(inherited);
    inherited = -1;
}

static void file_in_scratch(void)
{
    take_open(in("scratch/state"), O_RDWR);
}

static void file_beside_scratch(void)
{
    take_open(in("scratchy"), O_RDWR);
}

static void current_in_scratch(void)
{
    must(chdir(in("scratch")) == 0);
}

static void connected_in_scratch(void)
{
    take_connection("scratch/own.sock");
}

static void connected_by_a_link(void)
{
    take_connection("scratch/out/link.sock");
}

static void a_file_that_is_about_to_be_given_counts_as_the_users(void **state)
{
    char *scratch = mem_strdup(in("scratch"));
    (void)state;
    REFUSED(file_in_scratch, "scratch/state is open for reading and writing", NO_RIGHT);
    REFUSED(connected_in_scratch, "scratch/own.sock is connected to from process", NO_RIGHT);
    rights.scratch = scratch;
    ALLOWED(file_in_scratch);
    ALLOWED(current_in_scratch);
    ALLOWED(connected_in_scratch);
    REFUSED(connected_by_a_link, "scratch/out/link.sock is connected to from process", NO_RIGHT);
    REFUSED(connected_to_root, "control.sock is connected to from process", NO_RIGHT);
    REFUSED(file_beside_scratch, "scratchy is open for reading and writing", NO_RIGHT);
    assert_int_equal(chmod(scratch, 0711), 0); /* another process may have been in it */
    REFUSED(file_in_scratch, "scratch/state is open for reading and writing", NO_RIGHT);
    REFUSED(connected_by_a_link, "scratch/out/link.sock is connected to from process", NO_RIGHT);
    rights.scratch = NULL;
    free(scratch);
}

/* ---- what /proc shows ---- */

static void show(pid_t pid, const char *stat)
{
    char path[48];
    struct err e;
    snprintf(path, sizeof(path), "/proc/%ld", (long)pid);
    must(mkdir(path, 0755) == 0);
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    must(!stat || fs_write_atomic(path, stat, strlen(stat), 0644, &e) == 0);
}

/* In a process whose /proc shows at most itself and the process `other`; other 0 = only itself. */
static _Noreturn void check_with_proc(bool shows_itself, pid_t other, const char *stat)
{
    struct buf own = {0};
    struct err e;
    must(enter_own_mounts());
    must(fs_read("/proc/self/stat", 4096, &own, &e) == 0);
    must(mount("none", "/proc", "tmpfs", 0, NULL) == 0);
    if (shows_itself)
        show(getpid(), buf_str(&own));
    if (other)
        show(other, stat);
    buf_deinit(&own);
    int rc = criu_rights_check_all(&rights, &e);
    if (rc)
        fprintf(stderr, "%s\n", e.text);
    _exit(-rc);
}

static int check_shown(bool shows_itself, pid_t other, const char *stat)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        check_with_proc(shows_itself, other, stat);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1); /* 1: the setup failed */
    return -WEXITSTATUS(status);
}

static void a_process_that_cannot_be_read_is_not_skipped(void **state)
{
    char stat[64];
    (void)state;
    if (!may_unshare(CLONE_NEWNS))
        skip();
    assert_int_equal(check_shown(true, 0, NULL), 0);
    assert_int_equal(check_shown(false, 0, NULL), ERR_IO);
    pid_t pid = start(nothing);
    snprintf(stat, sizeof(stat), "%ld (unknown) form", (long)pid);
    assert_int_not_equal(check_shown(true, pid, NULL), 0);
    assert_int_not_equal(check_shown(true, pid, stat), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(check_shown(true, pid, stat), 0); /* a zombie */
}

/* ---- */

static int make_files(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(fs_mkdirs(in("closed/open"), 0755, &e), 0);
    assert_int_equal(fs_mkdirs(in("own-directory"), 0755, &e), 0);
    assert_int_equal(fs_mkdirs(in("searchable"), 0755, &e), 0);
    assert_int_equal(chmod(in("searchable"), 0711), 0);
    assert_int_equal(mkdir(in("scratch"), 0700), 0);
    put(in("scratch/state"), 0, 0600);
    put(in("scratchy"), 0, 0600);
    put(in("secret"), 0, 0600);
    put(in("output.log"), 0, 0600);
    put(in("readable"), 0, 0644);
    put(in("group"), 0, 0640);
    assert_int_equal(chown(in("group"), 0, NOBODY), 0);
    put(in("own"), NOBODY, 0600);
    put(in("closed/own"), NOBODY, 0600);
    put(in("closed/readable"), 0, 0644);
    assert_int_equal(symlink("../secret", in("own-directory/link")), 0);
    assert_int_equal(chown(in("own-directory"), NOBODY, NOBODY), 0);
    assert_int_equal(chmod(in("own-directory"), 0700), 0);
    assert_int_equal(mknod(in("device"), S_IFCHR | 0600, makedev(1, 3)), 0);
    assert_int_equal(mkfifo(in("fifo"), 0600) | mkfifo(in("own-fifo"), 0600), 0);
    assert_int_equal(chown(in("own-fifo"), NOBODY, NOBODY), 0);
    listen_as_root("control.sock", 0600);
    listen_as_root("log.sock", 0666);
    listen_as_root("closed/log.sock", 0666);
    listen_as_root("scratch/own.sock", 0600);
    assert_int_equal(symlink("../closed", in("scratch/out")), 0);
    listen_as_root("scratch/out/link.sock", 0666);
    return chmod(in("closed"), 0700);
}

static int remove_files(void **state)
{
    struct err e;
    (void)state;
    return fs_remove_tree(dir, &e);
}

/* Back again as `DIR/program DIR`. */
static int run_copy(void)
{
    static char made[] = "/tmp/belay-rights-XXXXXX";
    char program[64];
    struct buf text = {0};
    struct err e;
    if (!mkdtemp(made) || chmod(made, 0755) < 0)
        return 1;
    snprintf(program, sizeof(program), "%s/program", made);
    if (fs_read("/proc/self/exe", 256u << 20, &text, &e) ||
        fs_write_atomic(program, text.data, text.len, 0755, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    execl(program, program, made, (char *)NULL);
    return 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_of_access_are_compared),
        cmocka_unit_test(a_closed_parent_directory_is_respected),
        cmocka_unit_test(own_and_removed_files_are_allowed),
        cmocka_unit_test(mapped_files_are_compared),
        cmocka_unit_test(devices_and_directories_are_compared),
        cmocka_unit_test(objects_without_a_name_are_allowed),
        cmocka_unit_test(sockets_give_no_more_than_the_user_has),
        cmocka_unit_test(a_descriptor_that_was_passed_is_known_by_its_identity),
        cmocka_unit_test(a_file_that_is_about_to_be_given_counts_as_the_users),
        cmocka_unit_test(a_process_that_cannot_be_read_is_not_skipped),
    };
    if (geteuid() != 0)
        return SKIPPED;
    if (argc < 2)
        return run_copy();
    dir = argv[1];
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
