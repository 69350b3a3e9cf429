/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/fs.h"
#include "base/fs_user.h"
#include "base/mem.h"
#include "base/str.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *in(void **state, const char *name)
{
    return mem_printf("%s/%s", (const char *)*state, name);
}

static int entries(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));)
        n++;
    closedir(d);
    return n - 2;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void assert_content(const char *path, const char *expected)
{
    struct buf b = {0};
    struct err e;
    assert_int_equal(fs_read(path, 1000, &b, &e), 0);
    assert_string_equal(buf_str(&b), expected);
    buf_deinit(&b);
}

static void written_data_is_read_back(void **state)
{
    char *path = in(state, "f");
    struct err e;
    umask(077);
    assert_int_equal(fs_write_atomic(path, "one", 3, 0644, &e), 0);
    assert_content(path, "one");
    assert_int_equal(mode_of(path), 0644); /* regardless of the umask */
    assert_int_equal(fs_write_atomic(path, "", 0, 0600, &e), 0);
    assert_content(path, "");
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(entries(*state), 1); /* no leftover file */
    umask(022);
    free(path);
}

static void a_conditional_create_never_replaces(void **state)
{
    char *path = in(state, "f"), *dangling = in(state, "dangling");
    struct err e;
    assert_int_equal(fs_create_atomic(path, "one", 3, 0644, &e), 0);
    assert_int_equal(fs_create_atomic(path, "two", 3, 0644, &e), ERR_CONFLICT);
    assert_content(path, "one");
    assert_int_equal(symlink("nowhere", dangling), 0);
    assert_int_equal(fs_create_atomic(dangling, "two", 3, 0644, &e), ERR_CONFLICT);
    assert_false(fs_exists(dangling));
    assert_int_equal(entries(*state), 2);
    free(path);
    free(dangling);
}

static void of_several_creators_one_succeeds(void **state)
{
    char *path = in(state, "f");
    int gate[2], winners = 0;
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            char c = (char)('0' + i);
            close(gate[1]);
            ssize_t n = read(gate[0], &c, 1); /* until the parent closes its end */
            _exit(n == 0 && fs_create_atomic(path, &c, 1, 0644, NULL) == 0 ? 1 : 0);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int status; wait(&status) > 0;)
        winners += WEXITSTATUS(status);
    assert_int_equal(winners, 1);
    assert_int_equal(entries(*state), 1);
    free(path);
}

/* A killed writer leaves the complete old or new content. */
static void a_kill_never_leaves_a_partial_file(void **state)
{
    char *path = in(state, "f");
    const size_t n = 200000;
    char *big = mem_alloc(n);
    struct err e;
    assert_int_equal(fs_write_atomic(path, big, n, 0600, &e), 0);
    for (int round = 0; round < 20; round++) {
        pid_t pid = fork();
        if (pid == 0)
            for (char c = 'a';; c = c == 'z' ? 'a' : (char)(c + 1)) {
                memset(big, c, n);
                fs_write_atomic(path, big, n, 0600, NULL);
            }
        usleep((useconds_t)round * 700);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        struct buf b = {0};
        assert_int_equal(fs_read(path, n, &b, &e), 0);
        assert_int_equal(b.len, n);
        for (size_t i = 1; i < n; i++)
            if (b.data[i] != b.data[0])
                fail_msg("two contents in one file");
        buf_deinit(&b);
    }
    free(big);
    free(path);
}

static void failed_writes_leave_nothing(void **state)
{
    char *path = in(state, "absent/f"), *full = in(state, "f");
    struct err e;
    struct rlimit old, small = {100, RLIM_INFINITY};
    assert_int_equal(fs_write_atomic(path, "x", 1, 0600, &e), ERR_NOT_FOUND);
    assert_err(&e, ERR_NOT_FOUND, "absent/f");
    char text[1000] = {0};
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small); /* the write fails after 100 bytes */
    int rc = fs_write_atomic(full, text, sizeof(text), 0600, &e);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(rc, ERR_IO);
    assert_int_equal(entries(*state), 0);
    free(path);
    free(full);
}

static void a_secret_readable_by_others_is_refused(void **state)
{
    char *path = in(state, "f");
    struct buf b = {0};
    struct err e;
    assert_int_equal(fs_read_secret(path, 100, &b, &e), ERR_NOT_FOUND);
    for (mode_t others = 01; others <= 040; others *= 2) {
        assert_int_equal(fs_write_atomic(path, "hush", 4, 0600 | others, &e), 0);
        assert_int_equal(fs_read_secret(path, 100, &b, &e), ERR_DENIED);
        assert_err(&e, ERR_DENIED, "chmod 600");
        assert_int_equal(b.len, 0);
    }
    assert_int_equal(fs_write_atomic(path, "hush", 4, 0600, &e), 0);
    assert_int_equal(fs_read_secret(path, 4, &b, &e), 0);
    assert_string_equal(buf_str(&b), "hush");
    assert_int_equal(fs_read_secret(path, 3, &b, &e), ERR_INVALID);
    buf_wipe(&b);
    free(path);
}

static void reading_has_a_size_limit_and_requires_a_file(void **state)
{
    char *path = in(state, "f"), *fifo = in(state, "fifo");
    struct buf b = {0};
    struct err e;
    assert_int_equal(fs_write_atomic(path, "12345", 5, 0600, &e), 0);
    assert_int_equal(fs_read(path, 5, &b, &e), 0);
    assert_int_equal(fs_read(path, 4, &b, &e), ERR_INVALID);
    assert_err(&e, ERR_INVALID, "limit of 4");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(fs_read(fifo, 100, &b, &e), ERR_INVALID); /* without waiting for a writer */
    assert_int_equal(fs_read(*state, 100, &b, &e), ERR_INVALID);
    assert_int_equal(fs_read("/dev/zero", 100, &b, &e), ERR_INVALID);
    unlink(fifo);
    assert_int_equal(fs_read(fifo, 100, &b, &e), ERR_NOT_FOUND);
    /* its reported size is 0 */
    assert_int_equal(fs_read("/proc/self/status", 100000, &b, &e), 0);
    assert_true(b.len > 100);
    buf_deinit(&b);
    free(path);
    free(fifo);
}

/* Of the kernel's files too, which have no size. */
static void the_start_of_a_file_is_read_as_text(void **state)
{
    char text[8], *path = in(state, "long"), *missing = in(state, "missing");
    const char *const none[] = {"", "/", "/dev/null", missing};
    struct err e;
    assert_int_equal(fs_write_atomic(path, "0123456789", 10, 0600, &e), 0);
    assert_true(fs_read_start(path, text, sizeof(text)));
    assert_string_equal(text, "0123456");
    assert_true(fs_read_start(path, text, 2));
    assert_string_equal(text, "0");
    assert_true(fs_read_start("/proc/self/stat", text, sizeof(text)));
    assert_int_equal(strlen(text), sizeof(text) - 1);
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        STR_COPY(text, "before");
        assert_false(fs_read_start(none[i], text, sizeof(text)));
        assert_string_equal(text, "");
    }
    free(missing);
    free(path);
}

static void directories_are_created_with_their_parents(void **state)
{
    char *path = in(state, "a//b/c/"), *file = in(state, "f"), *below = in(state, "f/x");
    struct err e;
    assert_int_equal(fs_mkdirs(path, 0700, &e), 0);
    assert_int_equal(fs_mkdirs(path, 0755, &e), 0);
    assert_int_equal(mode_of(path), 0700); /* left unchanged */
    assert_int_equal(fs_mkdirs("/", 0700, &e), 0);
    assert_int_equal(fs_write_atomic(file, "", 0, 0600, &e), 0);
    assert_int_equal(fs_mkdirs(file, 0700, &e), ERR_IO);
    assert_int_equal(fs_mkdirs(below, 0700, &e), ERR_IO);
    free(path);
    free(file);
    free(below);
}

/* ---- removing trees ---- */

static void removing_a_tree_does_not_follow_links(void **state)
{
    char *tree = in(state, "tree"), *deep = in(state, "tree/a/b/c"), *kept = in(state, "kept"),
         *link = in(state, "tree/a/link"), *file = in(state, "tree/a/b/.removing-0");
    struct err e;
    fs_mkdirs(deep, 0700, &e);
    fs_mkdirs(kept, 0700, &e);
    char *inside = in(state, "kept/f");
    assert_int_equal(fs_write_atomic(inside, "x", 1, 0600, &e), 0);
    assert_int_equal(fs_write_atomic(file, "x", 1, 0600, &e), 0);
    assert_int_equal(symlink(kept, link), 0);
    assert_int_equal(fs_remove_tree(tree, &e), 0);
    assert_false(fs_exists(tree));
    assert_true(fs_exists(inside));
    assert_int_equal(fs_remove_tree(tree, &e), 0); /* a missing tree is not an error */
    assert_int_equal(symlink(kept, tree), 0);
    assert_int_equal(fs_remove_tree(tree, &e), 0); /* the link, not its target */
    assert_true(fs_exists(inside));
    assert_int_equal(fs_remove_tree(inside, &e), 0); /* a file is a tree, too */
    assert_int_equal(entries(kept), 0);
    free(tree);
    free(deep);
    free(kept);
    free(link);
    free(file);
    free(inside);
}

static void paths_without_a_name_are_refused(void **state)
{
    static const char *const bad[] = {"", "/", "//", ".", "..", "a/..", "a/.", "a/../"};
    struct err e;
    (void)state;
    for (size_t i = 0; i < LEN(bad); i++)
        assert_int_equal(fs_remove_tree(bad[i], &e), ERR_INVALID);
}

static void trees_of_any_depth_are_removed(void **state)
{
    char *tree = in(state, "tree");
    struct err e;
    assert_int_equal(mkdir(tree, 0700), 0);
    int fd = open(tree, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 900; i++) { /* a path of 4,500 bytes: longer than any system call accepts */
        assert_int_equal(mkdirat(fd, "deep", 0700), 0);
        int next = openat(fd, "deep", O_RDONLY | O_DIRECTORY);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    close(fd);
    assert_int_equal(fs_remove_tree(tree, &e), 0);
    assert_false(fs_exists(tree));
    free(tree);
}

static void removal_skips_temporary_names_that_exist(void **state)
{
    char *tree = in(state, "tree");
    struct err e;
    for (int i = 0; i < 5; i++) {
        char *taken = mem_printf("%s/.removing-%d/x/y/z", tree, i);
        fs_mkdirs(taken, 0700, &e);
        free(taken);
    }
    assert_int_equal(fs_remove_tree(tree, &e), 0);
    assert_false(fs_exists(tree));
    free(tree);
}

static void a_path_is_made_absolute_without_slashes_at_its_end(void **state)
{
    char here[PATH_MAX];
    static const char *const pairs[][2] = {
        {"/a/b", "/a/b"}, {"/a/", "/a"}, {"//", "/"}, {"/", "/"}, {"/a/../b/.", "/a/../b/."}};
    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char *whole = fs_absolute(pairs[i][0]);
        assert_string_equal(whole, pairs[i][1]);
        free(whole);
    }
    assert_non_null(getcwd(here, sizeof(here)));
    char *whole = fs_absolute("a/b/"), *expected = mem_printf("%s/a/b", here);
    assert_string_equal(whole, expected);
    free(expected);
    free(whole);
}

static void a_write_to_a_closed_pipe_is_an_error(void **state)
{
    int fds[2];
    struct err e;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fs_write_all(fds[1], "abc", 3, &e), 0);
    close(fds[0]);
    assert_int_equal(fs_write_all(fds[1], "abc", 3, &e), ERR_IO);
    close(fds[1]);
}

#define OTHER 65534

static void check_owner(const char *path, uid_t uid)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_uid, uid);
}

/* A link out of the tree is given away itself. sub is accessible to all, as saved directories may
 * be. */
static void a_tree_changes_owner_unless_others_could_be_in_it(void **state)
{
    char *top = in(state, "top"), *sub = in(state, "top/sub"), *file = in(state, "top/sub/f");
    char *link = in(state, "top/link"), *outside = in(state, "outside");
    struct err e;
    if (geteuid() != 0)
        skip();
    assert_int_equal(fs_mkdirs(sub, 0700, &e) | chmod(sub, 0777), 0);
    assert_int_equal(fs_write_atomic(file, "x", 1, 0644, &e), 0);
    assert_int_equal(fs_write_atomic(outside, "x", 1, 0600, &e), 0);
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(chmod(top, 0711), 0);
    assert_int_equal(fs_give_tree(top, OTHER, OTHER, &e), ERR_CONFLICT);
    check_owner(file, 0);
    assert_int_equal(chmod(top, 0700), 0);
    assert_int_not_equal(fs_give_tree(link, OTHER, OTHER, &e), 0);
    assert_int_equal(fs_give_tree(top, OTHER, OTHER, &e), 0);
    check_owner(top, OTHER);
    check_owner(sub, OTHER);
    check_owner(file, OTHER);
    check_owner(link, OTHER);
    check_owner(outside, 0);
    /* Other users may already be in it. */
    assert_int_equal(fs_give_tree(top, OTHER, OTHER, &e), ERR_CONFLICT);
    free(top), free(sub), free(file), free(link), free(outside);
}

static void only_a_regular_file_of_its_owner_is_opened(void **state)
{
    char *file = in(state, "f"), *link = in(state, "link"), *fifo = in(state, "fifo");
    int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char byte;
    struct err e;
    assert_int_equal(fs_write_atomic(file, "x", 1, 0600, &e), 0);
    assert_int_equal(symlink("f", link) | mkfifo(fifo, 0600), 0);
    int fd = fs_open_of(dir, "f", geteuid());
    assert_int_equal(read(fd, &byte, 1), 1);
    close(fd);
    assert_true(fs_open_of(dir, "f", geteuid() + 1) < 0 && errno == EPERM);
    assert_true(fs_open_of(dir, "link", geteuid()) < 0 && errno == ELOOP);
    assert_true(fs_open_of(dir, "fifo", geteuid()) < 0 && errno == EINVAL);
    assert_true(fs_open_of(dir, "none", geteuid()) < 0 && errno == ENOENT);
    assert_int_equal(unlink(file), 0);
    assert_true(fs_has_name(link));
    assert_false(fs_exists(link));
    assert_false(fs_has_name(file));
    close(dir);
    free(file), free(link), free(fifo);
}

static void a_path_that_cannot_be_created_is_an_error_and_creates_nothing(void **state)
{
    char *plain = in(state, "plain"), *deep = in(state, "plain/x/y"), *new = in(state, "new/x");
    char *part;
    struct err e;
    assert_int_equal(fs_write_atomic(plain, "", 0, 0600, &e), 0);
    assert_int_equal(fs_may_make(*state, &e), 0);
    assert_int_equal(fs_may_write_dir(*state, &e), 0);
    assert_int_equal(fs_may_make(new, &e), 0);
    assert_int_equal(fs_may_write_dir(new, &e), ERR_NOT_FOUND);
    assert_int_not_equal(fs_may_make(deep, &e), 0);
    assert_non_null(strstr(e.text, "/plain cannot be used by user "));
    assert_non_null(strstr(e.text, ": Not a directory"));
    assert_int_not_equal(fs_may_make("/proc/x/y", &e), 0);
    assert_non_null(strstr(e.text, "/proc/x/y cannot be made"));
    assert_int_not_equal(fs_may_make("/proc/self", &e), 0);
    assert_int_equal(fs_existing_part(new, &part, &e), 0);
    assert_string_equal(part, *state);
    free(part);
    assert_int_equal(fs_existing_part(deep, &part, &e), 0);
    assert_string_equal(part, plain);
    free(part);
    assert_int_equal(fs_existing_part("no-such-directory/x", &part, &e), ERR_NOT_FOUND);
    assert_int_equal(entries(*state), 1);
    free(plain);
    free(deep);
    free(new);
}

#define IN_SCRATCH(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(written_data_is_read_back),
        IN_SCRATCH(a_conditional_create_never_replaces),
        IN_SCRATCH(of_several_creators_one_succeeds),
        IN_SCRATCH(a_kill_never_leaves_a_partial_file),
        IN_SCRATCH(failed_writes_leave_nothing),
        IN_SCRATCH(a_secret_readable_by_others_is_refused),
        IN_SCRATCH(reading_has_a_size_limit_and_requires_a_file),
        IN_SCRATCH(the_start_of_a_file_is_read_as_text),
        IN_SCRATCH(directories_are_created_with_their_parents),
        IN_SCRATCH(removing_a_tree_does_not_follow_links),
        cmocka_unit_test(paths_without_a_name_are_refused),
        IN_SCRATCH(a_path_that_cannot_be_created_is_an_error_and_creates_nothing),
        IN_SCRATCH(trees_of_any_depth_are_removed),
        IN_SCRATCH(removal_skips_temporary_names_that_exist),
        cmocka_unit_test(a_path_is_made_absolute_without_slashes_at_its_end),
        cmocka_unit_test(a_write_to_a_closed_pipe_is_an_error),
        IN_SCRATCH(a_tree_changes_owner_unless_others_could_be_in_it),
        IN_SCRATCH(only_a_regular_file_of_its_owner_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
