/* SPDX-License-Identifier: Apache-2.0
 *
 * criu's output, its command lines, and each way in which it fails. A script replaces criu.
 */
#include "agent/criu/criu.h"
#include "agent/criu/criu_files.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include <setjmp.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/syscall.h>
#include <unistd.h>
/* after the three above */
#include <cmocka.h>

static void versions_are_read(void **state)
{
    static const char *const bad[] = {
        "", "Version", "Version: ", "Version: x.1", "GitID: v3.17", "version: 3.17"};
    char text[8];
    int major, minor;
    (void)state;
    assert_true(
        criu_parse_version("Version: 3.17.1\nGitID: v3.17\n", &major, &minor, text, sizeof(text)));
    assert_int_equal(major, 3);
    assert_int_equal(minor, 17);
    assert_string_equal(text, "3.17.1");
    assert_true(criu_parse_version("warning\nVersion: 4.1", &major, &minor, text, sizeof(text)));
    assert_int_equal(major * 100 + minor, 401);
    assert_true(criu_parse_version("Version: 5", &major, &minor, text, sizeof(text)));
    assert_int_equal(major * 100 + minor, 500);
    assert_true(criu_parse_version("Version: 3.123456789\n", &major, &minor, text, sizeof(text)));
    assert_string_equal(text, "3.12345");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(criu_parse_version(bad[i], &major, &minor, text, sizeof(text)));
}

static void check_error(const char *log, const char *want)
{
    char text[64];
    char *exact = mem_dup(log, strlen(log) + 1); /* sanitizers detect reads beyond it */
    criu_last_error(exact, strlen(log), text, sizeof(text));
    assert_string_equal(text, want);
    free(exact);
}

static void the_last_informative_error_of_a_log_is_quoted(void **state)
{
    (void)state;
    check_error("", "");
    check_error("\n\n", "");
    check_error("no such option\n", "no such option");
    check_error("Error (criu/util.c:642): exited, status=1\n"
                "Error (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds\n"
                "Error (criu/crtools.c:260): Could not initialize kernel features detection.\n",
        "vdso: Unexpected rt vDSO area bounds");
    check_error(
        "(00.01) Error (criu/files-reg.c:1): File a has bad size 3 (expect 4)\n(00.02) Error "
        "(criu/cr-restore.c:2): "
        "Restoring FAILED.\n(00.03) cleaning\n",
        "File a has bad size 3 (expect 4)");
    check_error("(00.1) Error (criu/cr-dump.c:1): Dumping FAILED.\n", "Dumping FAILED.");
    check_error("Error (a:1): bad \x01\xff\n", "bad ??");
    check_error("Error (half a line", "Error (half a line");
    check_error("Error (a:1): "
                "0123456789012345678901234567890123456789012345678901234567890123456789\n",
        "012345678901234567890123456789012345678901234567890123456789012");
}

static bool has(const char *const *argv, const char *word)
{
    for (; *argv; argv++)
        if (str_eq(*argv, word))
            return true;
    return false;
}

static const char *word_after(const char *const *argv, const char *word)
{
    while (*argv && !str_eq(*argv, word))
        argv++;
    return *argv ? argv[1] : "";
}

static void each_step_has_its_command_line(void **state)
{
    const struct criu c = {.path = "/x/criu"};
    (void)state;
    const char **pre = criu_dump_argv(&c, CRIU_PRE_DUMP, false, 30000),
               **running = criu_dump_argv(&c, CRIU_DUMP_RUNNING, true, 600000),
               **stopped = criu_dump_argv(&c, CRIU_DUMP_STOPPED, false, 1000),
               **restore = criu_restore_argv(&c, 4294967295);
    assert_string_equal(pre[0], "/x/criu");
    assert_string_equal(pre[1], "pre-dump");
    assert_true(
        has(pre, "--track-mem") && has(pre, CRIU_IMAGES "/pre") && !has(pre, "--action-script"));
    assert_true(!has(pre, "--leave-running") && !has(pre, "--prev-images-dir"));
    assert_true(
        has(running, "--leave-running") && has(running, "--track-mem") && has(running, "../pre"));
    assert_true(has(running, "--action-script") && has(running, "1000"));
    assert_true(
        has(stopped, "--leave-stopped") && !has(stopped, "--track-mem") && !has(stopped, "../pre"));
    assert_true(has(restore, "-d") && !has(restore, "-t") && !has(restore, "--leave-stopped"));
    assert_string_equal(word_after(restore, "--action-script"), CRIU_SANDBOX "/hook");
    assert_string_equal(word_after(restore, "--inherit-fd"), "fd[3]:pipe:[4294967295]");
    /* criu's own limit, in seconds, is shorter than ours: criu then resumes the processes, which a
     * kill would not do */
    assert_string_equal(word_after(pre, "--timeout"), "27");
    assert_string_equal(word_after(running, "--timeout"), "540");
    assert_string_equal(word_after(stopped, "--timeout"), "1");
    assert_false(has(restore, "--timeout"));
    const char *const *const all[] = {pre, running, stopped, restore};
    for (size_t i = 0; i < 4; i++)
        assert_true(has(all[i], "--tcp-close") && has(all[i], "--manage-cgroups=ignore") &&
                    has(all[i], "--file-locks"));
    free(pre);
    free(running);
    free(stopped);
    free(restore);
}

/* ---- a script in place of criu ---- */

static char dir[] = "/tmp/belay-criu-XXXXXX";

static const char *player(const char *script)
{
    static char path[64];
    char *text = mem_printf("#!/bin/sh\n%s\n", script);
    struct err e;
    snprintf(path, sizeof(path), "%s/criu", dir);
    assert_int_equal(fs_write_atomic(path, text, strlen(text), 0755, &e), 0);
    free(text);
    return path;
}

static int call(
    const char *script, const char *log, int64_t timeout_ms, char *out, size_t size, struct err *e)
{
    const char *const argv[] = {player(script), "dump", NULL};
    return criu_call(argv, "criu dump", log, timeout_ms, out, size, e);
}

static void failures_quote_the_last_line(void **state)
{
    struct err e;
    char out[16], *log = mem_printf("%s/dump.log", dir);
    (void)state;
    assert_int_equal(call("echo hello", NULL, 60000, out, sizeof(out), &e), 0);
    assert_string_equal(out, "hello\n");
    assert_int_equal(call("echo; exit 3", NULL, 60000, NULL, 0, &e), ERR_IO);
    assert_string_equal(e.text, "criu dump failed with exit code 3: it did not say why");
    assert_int_equal(
        call("echo 'Error (a.c:1): no space' >&2; exit 1", NULL, 60000, NULL, 0, &e), ERR_IO);
    assert_string_equal(e.text, "criu dump failed with exit code 1: no space");
    assert_int_equal(call("kill -9 $$", NULL, 60000, NULL, 0, &e), ERR_IO);
    assert_string_equal(e.text, "criu dump was killed by signal 9");
    assert_int_equal(fs_write_atomic(log, "Error (b.c:2): from the log\n", 28, 0600, &e), 0);
    assert_int_equal(
        call("echo 'Error (a.c:1): no space' >&2; exit 1", log, 60000, NULL, 0, &e), ERR_IO);
    assert_string_equal(e.text, "criu dump failed with exit code 1: from the log");
    static const char script[] = "Error (belay): from the script\nError (b.c:2): exited, status=1\n"
                                 "Error (b.c:3): Aborting due to script ret code -1\n";
    assert_int_equal(fs_write_atomic(log, script, sizeof(script) - 1, 0600, &e), 0);
    assert_int_equal(call("exit 1", log, 60000, NULL, 0, &e), ERR_IO);
    assert_string_equal(e.text, "criu dump failed with exit code 1: from the script");
    free(log);
    const char *const argv[] = {"/nowhere/criu", "dump", NULL};
    assert_int_equal(criu_call(argv, "criu dump", NULL, 60000, NULL, 0, &e), ERR_IO);
    assert_non_null(strstr(e.text, "cannot execute /nowhere/criu: No such file"));
}

static void a_criu_that_hangs_is_killed_with_its_children(void **state)
{
    struct err e;
    char out[64] = "";
    (void)state;
    int64_t began = clock_mono(&clock_system).ms;
    assert_int_equal(
        call("sleep 3600 & echo $!; exec sleep 3600", NULL, 1000, out, sizeof(out), &e),
        ERR_TIMEOUT);
    assert_string_equal(e.text, "criu dump did not end within 1s and was killed");
    assert_true(clock_mono(&clock_system).ms - began < 60000);
    struct pollfd p = {
        .fd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(out, NULL, 10), 0), .events = POLLIN};
    assert_true(p.fd < 0 || poll(&p, 1, 60000) == 1); /* the process is gone, or ending */
    if (p.fd >= 0)
        close(p.fd);
}

static void long_output_is_bounded_and_its_end_is_read(void **state)
{
    struct err e;
    char out[64];
    (void)state;
    assert_int_equal(call("yes | head -c 3000000; echo 'Error (a.c:1): at last'; exit 1", NULL,
                         60000, out, sizeof(out), &e),
        ERR_IO);
    assert_string_equal(e.text, "criu dump failed with exit code 1: at last");
    assert_int_equal(strlen(out), 63);
}

static void a_criu_that_ends_may_leave_a_process_that_holds_its_output(void **state)
{
    struct err e;
    char out[64] = "";
    (void)state;
    assert_int_equal(call("sleep 3600 & echo $!", NULL, 600000, out, sizeof(out), &e), 0);
    assert_true(strtol(out, NULL, 10) > 1);
    assert_int_equal(kill((pid_t)strtol(out, NULL, 10), SIGKILL), 0);
}

static void a_dump_that_lost_a_process_is_corrupt(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(
        call("echo 'Error (belay): process 7 is lost' >&2; exit 97", NULL, 60000, NULL, 0, &e),
        ERR_CORRUPT);
    assert_non_null(strstr(e.text, "process 7 is lost"));
}

/* ---- the probe ---- */

static void check_probe(const char *script, enum wire_criu can, const char *text)
{
    struct criu c;
    criu_probe(player(script), &c);
    assert_string_equal(c.text, text);
    assert_int_equal(c.can, can);
}

static void the_probe_says_why_criu_cannot_be_used(void **state)
{
    struct criu c;
    (void)state;
    criu_probe("no", &c);
    assert_int_equal(c.can, WIRE_CRIU_NO);
    assert_string_equal(c.text, "the agent's configuration says criu: no");
    criu_probe("/nowhere/criu", &c);
    assert_int_equal(c.can, WIRE_CRIU_NO);
    assert_string_equal(c.text, "the criu of the agent's configuration cannot be executed");
    if (geteuid() != 0) {
        check_probe("", WIRE_CRIU_NO, "the agent does not run as root");
        return;
    }
    check_probe(
        "exit 1", WIRE_CRIU_NO, "criu --version failed with exit code 1: it did not say why");
    check_probe("echo hello", WIRE_CRIU_NO, "criu --version does not say which version it is");
    check_probe("echo Version: 3.11", WIRE_CRIU_NO, "criu 3.11 is too old: 3.17 or later");
    check_probe(
        "[ $1 = --version ] && echo Version: 3.17.1 && exit; echo 'Error (x.c:1): no vDSO'; exit 1",
        WIRE_CRIU_NO, "criu 3.17.1: criu check failed with exit code 1: no vDSO");
    criu_probe(player("echo Version: 4.1"), &c);
    if (access("/proc/sys/kernel/ns_last_pid", W_OK) == 0) {
        assert_int_not_equal(c.can, WIRE_CRIU_NO);
        assert_true(str_starts(c.text, "4.1"));
        assert_true(c.tracks);
        criu_probe(player("[ \"$2\" = --feature ] && exit 1; echo Version: 4.1"), &c);
        assert_int_not_equal(c.can, WIRE_CRIU_NO);
        assert_false(c.tracks);
    }
}

/* ---- files ---- */

static void put(const char *path, const char *text)
{
    struct err e;
    assert_int_equal(fs_write_atomic(path, text, strlen(text), 0640, &e), 0);
}

static void check_text(const char *path, const char *want)
{
    struct buf text = {0};
    struct err e;
    assert_int_equal(fs_read(path, 4096, &text, &e), 0);
    assert_string_equal(buf_str(&text), want);
    buf_deinit(&text);
}

static void the_jobs_open_files_are_found_copied_and_restored(void **state)
{
    char *cwd = mem_printf("%s/cwd", dir), *a = mem_printf("%s/a", cwd),
         *b = mem_printf("%s/sub/b", cwd), *reads = mem_printf("%s/reads", cwd),
         *gone = mem_printf("%s/gone", cwd), *other = mem_printf("%s/cwdx", dir),
         *scratch = mem_printf("%s/scratch", dir), *note = mem_printf("%s/note", scratch),
         *link = mem_printf("%s/link", scratch), *to = mem_printf("%s/to", dir),
         *copy = mem_printf("%s/to/scratch/note", dir);
    struct criu_files f;
    struct job_user u = {.uid = geteuid(), .gid = getegid(), .name = "me"};
    struct err e;
    (void)state;
    char *sub = mem_printf("%s/sub", cwd);
    assert_int_equal(fs_mkdirs(sub, 0755, &e) | fs_mkdirs(scratch, 0755, &e), 0);
    put(a, "first");
    put(b, "second");
    put(reads, "input");
    put(gone, "removed");
    put(other, "elsewhere");
    put(note, "a note");
    assert_int_equal(symlink("note", link), 0);
    int fds[] = {open(a, O_WRONLY | O_APPEND), open(a, O_RDWR), open(b, O_RDWR),
        open(reads, O_RDONLY), open(gone, O_RDWR), open(other, O_RDWR)};
    void *map = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fds[2], 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    close(fds[2]); /* a mapping is enough, if mappings can be read */
    assert_int_equal(unlink(gone), 0);
    assert_int_equal(criu_files_find(getpid(), geteuid(), cwd, &f, &e), 0);
    size_t n = geteuid() == 0 ? 2 : f.n;
    assert_int_equal(f.n, n);
    assert_string_equal(f.files[0].path, a);
    assert_int_equal(f.files[0].mode, 0640);
    f.output = 4711;
    assert_int_equal(criu_files_save(&f, geteuid(), scratch, to, &e), 0);
    check_text(copy, "a note");
    int64_t output;
    assert_int_equal(criu_files_read_output(to, &output, &e), 0);
    assert_int_equal(output, 4711);
    put(a, "written after the save, and longer");
    assert_int_equal(fs_remove_tree(sub, &e), 0);
    assert_int_equal(criu_files_restore(to, &u, &e), 0);
    check_text(a, "first");
    if (n == 2)
        check_text(b, "second");
    assert_int_equal(fs_remove_tree(a, &e) | fs_mkdirs(a, 0755, &e), 0);
    assert_int_not_equal(criu_files_restore(to, &u, &e), 0);
    assert_non_null(strstr(e.text, a));
    criu_files_deinit(&f);
    /* belongs to another user */
    assert_int_equal(criu_files_find(getpid(), geteuid() + 1, cwd, &f, &e), 0);
    assert_int_equal(f.n, 0);
    criu_files_deinit(&f);
    assert_int_equal(mkfifo(gone, 0600), 0);
    assert_int_equal(criu_files_find(getpid(), geteuid(), dir, &f, &e), 0);
    criu_files_deinit(&f);
    char *fifo = mem_printf("%s/fifo", scratch), *to2 = mem_printf("%s/to2", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    f = (struct criu_files){0};
    assert_int_equal(criu_files_save(&f, geteuid(), scratch, to2, &e), ERR_UNSUPPORTED);
    assert_non_null(strstr(e.text, fifo));
    munmap(map, 4);
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        if (i != 2)
            close(fds[i]);
    char *const all[] = {
        cwd, a, b, reads, gone, other, scratch, note, link, to, copy, sub, fifo, to2};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        free(all[i]);
}

static void a_socket_in_scratch_is_left_to_criu(void **state)
{
    char *scratch = mem_printf("%s/talks", dir), *note = mem_printf("%s/note", scratch),
         *to = mem_printf("%s/to3", dir), *copy = mem_printf("%s/scratch/note", to),
         *other = mem_printf("%s/scratch/sock", to);
    const struct criu_files none = {.output = 1};
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct err e;
    (void)state;
    assert_int_equal(fs_mkdirs(scratch, 0755, &e), 0);
    put(note, "a note");
    snprintf(a.sun_path, sizeof(a.sun_path), "%s/sock", scratch);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    int rc = criu_files_save(&none, geteuid(), scratch, to, &e);
    if (rc)
        fail_msg("%s", e.text);
    check_text(copy, "a note");
    assert_false(fs_exists(other));
    close(fd);
    free(scratch);
    free(note);
    free(to);
    free(copy);
    free(other);
}

static void a_list_of_files_that_is_malformed_is_refused(void **state)
{
    static const char *const bad[] = {"", "[]", "{}", "{\"version\":3,\"output\":1,\"files\":[]}",
        "{\"version\":2,\"files\":[]}", "{\"version\":2,\"output\":0,\"files\":[]}",
        "{\"version\":2,\"output\":4294967296,\"files\":[]}",
        "{\"version\":2,\"output\":1,\"files\":{}}", "{\"version\":2,\"output\":1,\"files\":[{}]}",
        "{\"version\":2,\"output\":1,\"files\":[{\"path\":\"a\",\"mode\":1,\"number\":0}]}",
        "{\"version\":2,\"output\":1,\"files\":[{\"path\":\"/a\",\"mode\":-1,\"number\":0}]}",
        "{\"version\":2,\"output\":1,\"files\":[{\"path\":\"/a\",\"mode\":1,\"number\":1}]}",
        "{\"version\":2,\"output\":1,\"files\":[{\"path\":\"/"
        "a\",\"mode\":1,\"number\":0},{\"path\":\"b\",\"mode\":1,\"number\":1}]}"};
    struct criu_files f;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(criu_files_parse(bad[i], strlen(bad[i]), &f, &e), ERR_INVALID);
    static const char old[] = "{\"version\":1,\"files\":[]}";
    assert_int_equal(criu_files_parse(old, sizeof(old) - 1, &f, &e), ERR_UNSUPPORTED);
    static const char good[] = "{\"version\":2,\"output\":4294967295,\"later\":1,\"files\":[{"
                               "\"path\":\"/a\",\"mode\":420,\"number\":0}]}";
    assert_int_equal(criu_files_parse(good, sizeof(good) - 1, &f, &e), 0);
    assert_int_equal(f.n, 1);
    assert_string_equal(f.files[0].path, "/a");
    assert_int_equal(f.output, 4294967295);
    criu_files_deinit(&f);
}

static void a_process_that_left_the_tree_is_named(void **state)
{
    struct err e;
    (void)state;
    if (getppid() == 1)
        return; /* every process is in its tree */
    assert_int_equal(criu_files_check_tree(getpid(), &e), ERR_UNSUPPORTED);
    assert_non_null(strstr(e.text, "has left the job's tree of processes"));
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    struct err e;
    (void)state;
    return fs_remove_tree(dir, &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_read),
        cmocka_unit_test(the_last_informative_error_of_a_log_is_quoted),
        cmocka_unit_test(each_step_has_its_command_line),
        cmocka_unit_test(failures_quote_the_last_line),
        cmocka_unit_test(a_criu_that_hangs_is_killed_with_its_children),
        cmocka_unit_test(long_output_is_bounded_and_its_end_is_read),
        cmocka_unit_test(a_criu_that_ends_may_leave_a_process_that_holds_its_output),
        cmocka_unit_test(a_dump_that_lost_a_process_is_corrupt),
        cmocka_unit_test(the_probe_says_why_criu_cannot_be_used),
        cmocka_unit_test(a_socket_in_scratch_is_left_to_criu),
        cmocka_unit_test(the_jobs_open_files_are_found_copied_and_restored),
        cmocka_unit_test(a_list_of_files_that_is_malformed_is_refused),
        cmocka_unit_test(a_process_that_left_the_tree_is_named),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
