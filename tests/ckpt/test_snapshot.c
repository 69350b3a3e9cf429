/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves of a snapshot of a tree while the tree changes.
 */
#include "ckpt/snapshot.h"
#include "base/fs.h"
#include "base/str.h"
#include "tests/ckpt/store_fault.h"
#include "tests/ckpt/tools.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define LARGE (3u << 19)
#define SKIP 77

static bool can_keep_open(const struct scratch *s)
{
    struct statfs fs;

    if (statfs(s->tree, &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC)
        return true;
    print_message("SKIP: %s is not on ext4, which neither clones nor hides writes\n", s->tree);
    return false;
}

static void make_state(const struct scratch *s, int64_t number)
{
    make_tree(s->tree, number);
    write_random(s->tree, "large", LARGE, (uint64_t)number);
    write_random(s->tree, "sub/larger", LARGE + 77, (uint64_t)number + 1000);
}

/* NULL if no snapshot is possible. */
static struct ckpt_snapshot *take(const struct scratch *s, struct ckpt_snapshot_how how,
    struct ckpt_snapshot_stats *ret_stats, struct err *ret_why)
{
    struct ckpt_snapshot *snapshot;
    struct err e;

    how.scratch = how.scratch ? how.scratch : s->dir;
    OK(ckpt_snapshot_take(s->tree, &how, NULL, &snapshot, ret_stats, &e));
    if (!snapshot)
        *ret_why = e;
    return snapshot;
}

static struct ckpt_snapshot *must_take(
    const struct scratch *s, struct ckpt_snapshot_how how, struct ckpt_snapshot_stats *ret_stats)
{
    struct err why = {0};
    struct ckpt_snapshot *snapshot = take(s, how, ret_stats, &why);

    if (!snapshot)
        fail_msg("no snapshot: %s", why.text);
    return snapshot;
}

static int store_it(struct scratch *s, int64_t sequence, struct ckpt_snapshot *snapshot,
    struct ckpt_seen *seen, struct ckpt_stats *ret_stats, struct err *e)
{
    return ckpt_save_snapshot(&s->job, (struct ckpt_id){1, sequence}, snapshot, sequence * 100,
        NULL, &(struct ckpt_save_with){.seen = seen}, ret_stats, e);
}

/* A copy of the tree as it is now, to compare with later. */
static void remember(struct scratch *s)
{
    save(s, 1, 1);
    restore(s, 2);
    assert_int_equal(rename(s->out, path_in(s->dir, "then")), 0);
}

static void assert_saved_is_then(struct scratch *s, int64_t sequence)
{
    char then[400];

    assert_int_equal(restore(s, 2).id.sequence, sequence);
    snprintf(then, sizeof(then), "%s/then", s->dir); /* path_in's results are reused */
    assert_same_tree(then, s->out);
}

static size_t count_names(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void what_is_saved_is_the_moment_whatever_is_replaced_and_removed_meanwhile(void **state)
{
    struct scratch *s = *state;
    struct ckpt_snapshot_stats stats;
    struct ckpt_stats saved;
    struct ckpt_snapshot *snapshot;
    struct err e;
    size_t names;

    if (!can_keep_open(s))
        return;
    make_state(s, 1);
    assert_int_equal(link(path_in(s->tree, "large"), path_in(s->tree, "sub/again")), 0);
    assert_int_equal(truncate(path_in(s->tree, "sub/larger"), 16 << 20), 0);
    setxattr(path_in(s->tree, "large"), "user.origin", "x", 1, 0);
    remember(s);
    names = count_names(s->dir);
    snapshot = must_take(s, (struct ckpt_snapshot_how){0}, &stats);
    assert_int_equal(count_names(s->dir), names);
    assert_int_equal(stats.kept_open_bytes, 2 * LARGE + 77 + (4096 - 77 % 4096) % 4096);
    assert_true(stats.copied_bytes > 300);
    assert_int_equal(stats.cloned_bytes, 0);
    write_random(s->tree, "new", LARGE, 5);
    assert_int_equal(rename(path_in(s->tree, "new"), path_in(s->tree, "large")), 0);
    assert_int_equal(unlink(path_in(s->tree, "sub/again")), 0);
    make_state(s, 2);
    OK(store_it(s, 2, snapshot, NULL, &saved, &e));
    assert_int_equal(saved.reused_bytes, saved.bytes); /* equals the remembered copy */
    ckpt_snapshot_destroy(snapshot);
    assert_saved_is_then(s, 2);
}

static void small_files_are_copied_and_may_be_written_in_place(void **state)
{
    struct scratch *s = *state;
    struct ckpt_snapshot_stats stats;
    struct ckpt_stats saved;
    struct ckpt_snapshot *snapshot;
    struct err e;
    int fd;

    make_tree(s->tree, 1);
    remember(s);
    fd = open(path_in(s->tree, "common"), O_RDWR); /* a process may be writing all the time */
    snapshot = must_take(s, (struct ckpt_snapshot_how){0}, &stats);
    assert_int_equal(stats.kept_open_bytes, 0);
    write_text(s->tree, "common", "something else");
    write_text(s->tree, "empty", "not any more");
    OK(store_it(s, 2, snapshot, NULL, &saved, &e));
    ckpt_snapshot_destroy(snapshot);
    close(fd);
    assert_saved_is_then(s, 2);
}

static void write_at(const char *path, int flags, const char *text)
{
    int fd = open(path, O_WRONLY | flags);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* More files than one thread copies at a time, of sizes on both sides of what is copied so. */
static void many_small_files_are_copied_and_may_be_written_in_place(void **state)
{
    struct scratch *s = *state;
    struct ckpt_snapshot_stats stats;
    struct ckpt_stats saved;
    struct ckpt_snapshot *snapshot;
    struct err e;
    char name[32];

    for (int i = 0; i < 700; i++) {
        snprintf(name, sizeof(name), "file%d", i);
        write_random(s->tree, name, (size_t)(i % 7 ? i : 130 * i), (uint64_t)i);
    }
    assert_int_equal(truncate(path_in(s->tree, "file1"), 200000), 0); /* has a hole */
    assert_int_equal(link(path_in(s->tree, "file2"), path_in(s->tree, "again")), 0);
    remember(s);
    snapshot = must_take(s, (struct ckpt_snapshot_how){0}, &stats);
    assert_int_equal(stats.kept_open_bytes + stats.cloned_bytes, 0);
    for (int i = 0; i < 700; i++) {
        snprintf(name, sizeof(name), "file%d", i);
        write_at(path_in(s->tree, name), O_TRUNC, "something else");
    }
    OK(store_it(s, 2, snapshot, NULL, &saved, &e));
    assert_int_equal(saved.bytes, stats.copied_bytes);
    ckpt_snapshot_destroy(snapshot);
    assert_saved_is_then(s, 2);
}

static int n_trims;

void __real_mem_trim(void);
void __wrap_mem_trim(void);
void __wrap_mem_trim(void)
{
    n_trims++;
    __real_mem_trim();
}

static void the_memory_of_a_large_snapshot_is_given_back(void **state)
{
    struct scratch *s = *state;
    struct ckpt_snapshot_stats stats;

    write_text(s->tree, "a", "x");
    ckpt_snapshot_destroy(must_take(s, (struct ckpt_snapshot_how){0}, &stats));
    assert_int_equal(n_trims, 0);
    for (int i = 0; i < 10000; i++) {
        char name[16];

        snprintf(name, sizeof(name), "d%d", i);
        make_dir(s->tree, name);
    }
    ckpt_snapshot_destroy(must_take(s, (struct ckpt_snapshot_how){0}, &stats));
    assert_int_equal(n_trims, 1);
}

static void a_tree_without_files_and_a_snapshot_that_is_not_saved(void **state)
{
    struct scratch *s = *state;
    struct ckpt_snapshot_stats stats;
    struct ckpt_stats saved;
    struct ckpt_snapshot *snapshot = must_take(s, (struct ckpt_snapshot_how){0}, &stats);
    struct err e;

    OK(store_it(s, 1, snapshot, NULL, &saved, &e));
    assert_int_equal(saved.files, 0);
    ckpt_snapshot_destroy(snapshot);
    make_tree(s->tree, 1);
    ckpt_snapshot_destroy(must_take(s, (struct ckpt_snapshot_how){0}, &stats));
    ckpt_snapshot_destroy(NULL);
}

/* ---- files kept open that are written in place ---- */

static void by_write(const char *path)
{
    write_at(path, 0, "x");
}

static void by_append(const char *path)
{
    write_at(path, O_APPEND, "x");
}

static void by_truncate(const char *path)
{
    write_at(path, O_TRUNC, "");
}

static void by_map(const char *path)
{
    int fd = open(path, O_RDWR);
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    assert_true(p != MAP_FAILED);
    p[5] ^= 1;
    munmap(p, 4096);
    close(fd);
}

static void by_write_with_old_times(const char *path)
{
    struct timespec times[2];
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    by_write(path);
    times[0] = st.st_atim;
    times[1] = st.st_mtim;
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void by_write_and_unlink(const char *path)
{
    by_write(path);
    assert_int_equal(unlink(path), 0);
}

static void a_write_to_a_file_kept_open_is_noticed(void **state)
{
    static void (*const ways[])(const char *path) = {
        by_write, by_append, by_truncate, by_map, by_write_with_old_times, by_write_and_unlink};
    struct scratch *s = *state;
    struct ckpt_snapshot_stats stats;
    struct ckpt_stats saved;
    struct err e;

    if (!can_keep_open(s))
        return;
    make_tree(s->tree, 1);
    remember(s);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct ckpt_snapshot *snapshot;

        make_state(s, 2);
        snapshot = must_take(s, (struct ckpt_snapshot_how){0}, &stats);
        /* at once, perhaps within the same tick of the clock */
        ways[i](path_in(s->tree, "large"));
        FAILS(ERR_UNAVAILABLE, store_it(s, 2, snapshot, NULL, &saved, &e));
        assert_true(ckpt_snapshot_was_disturbed(snapshot));
        assert_non_null(strstr(e.text, "'large' was written to in place"));
        ckpt_snapshot_destroy(snapshot);
        assert_saved_is_then(s, 1);
    }
}

static void links_and_new_names_are_no_writes(void **state)
{
    struct scratch *s = *state;
    struct ckpt_snapshot_stats stats;
    struct ckpt_stats saved;
    struct ckpt_snapshot *snapshot;
    struct err e;

    if (!can_keep_open(s))
        return;
    make_state(s, 1);
    remember(s);
    snapshot = must_take(s, (struct ckpt_snapshot_how){0}, &stats);
    assert_int_equal(link(path_in(s->tree, "large"), path_in(s->dir, "elsewhere")), 0);
    assert_int_equal(unlink(path_in(s->tree, "sub/larger")), 0);
    OK(store_it(s, 2, snapshot, NULL, &saved, &e));
    ckpt_snapshot_destroy(snapshot);
    assert_saved_is_then(s, 2);
}

static void files_that_cannot_be_kept_open_are_not(void **state)
{
    struct scratch *s = *state;
    struct ckpt_snapshot_stats stats;
    struct err why;
    int fd;

    if (!can_keep_open(s))
        return;
    make_state(s, 1);
    assert_null(
        take(s, (struct ckpt_snapshot_how){.in_place = true, .copied_max = LARGE}, &stats, &why));
    assert_non_null(strstr(why.text, "too large to be copied"));
    assert_null(
        take(s, (struct ckpt_snapshot_how){.kept_open_max = 1, .copied_max = LARGE}, &stats, &why));
    assert_non_null(strstr(why.text, "too many"));
    fd = open(path_in(s->tree, "large"), O_RDWR);
    assert_null(take(s, (struct ckpt_snapshot_how){.copied_max = 1 << 20}, &stats, &why));
    assert_non_null(strstr(why.text, "open for writing"));
    ckpt_snapshot_destroy(
        must_take(s, (struct ckpt_snapshot_how){.copied_max = LARGE + (1 << 20)}, &stats));
    assert_true(stats.copied_bytes > LARGE);
    assert_int_equal(stats.kept_open_bytes, LARGE + 77);
    close(fd);
}

static bool is_one_of_three(void *ctx, int64_t bytes)
{
    int *n = ctx;

    assert_int_equal(bytes, 10000);
    return ++*n < 3;
}

static void a_tree_of_too_many_files_is_not_scanned_to_its_end(void **state)
{
    struct scratch *s = *state;
    struct ckpt_snapshot_stats stats;
    struct manifest m = {0};
    struct scan scan;
    struct err e, why;
    int n = 0;

    for (int i = 0; i < 40; i++) {
        char name[16];

        snprintf(name, sizeof(name), "file%d", i);
        write_random(s->tree, name, 10000, (uint64_t)i);
    }
    int root = open(s->tree, O_RDONLY | O_DIRECTORY);
    assert_true(root >= 0);
    FAILS(ERR_CANCELLED, scan_tree_while(root, &m, is_one_of_three, &n, &scan, &e));
    assert_int_equal(n, 3);
    assert_int_equal(m.n_entries, 3);
    manifest_deinit(&m);
    close(root);
    if (!can_keep_open(s))
        return;
    assert_null(take(s,
        (struct ckpt_snapshot_how){.scratch = s->dir, .copied_max = 370000, .kept_open_max = 2},
        &stats, &why));
    assert_non_null(strstr(why.text, "it has too many files"));
    assert_true(stats.is_too_large);
    ckpt_snapshot_destroy(must_take(s,
        (struct ckpt_snapshot_how){.scratch = s->dir, .copied_max = 380000, .kept_open_max = 2},
        &stats));
    assert_false(stats.is_too_large);
}

/* ---- errors ---- */

static void what_cannot_be_saved_is_said_at_once(void **state)
{
    struct scratch *s = *state;
    struct ckpt_snapshot_how how = {.scratch = s->dir};
    struct ckpt_snapshot_stats stats;
    struct ckpt_snapshot *snapshot;
    const atomic_int cancel = 1;
    struct err e;

    make_tree(s->tree, 1);
    FAILS(ERR_CANCELLED, ckpt_snapshot_take(s->tree, &how, &cancel, &snapshot, &stats, &e));
    assert_int_equal(mkfifo(path_in(s->tree, "pipe"), 0600), 0);
    FAILS(ERR_UNSUPPORTED, ckpt_snapshot_take(s->tree, &how, NULL, &snapshot, &stats, &e));
    assert_null(snapshot);
    assert_non_null(strstr(e.text, "'pipe'"));
    FAILS(ERR_NOT_FOUND, ckpt_snapshot_take(s->out, &how, NULL, &snapshot, &stats, &e));
    assert_int_equal(unlink(path_in(s->tree, "pipe")), 0);
    how.scratch = s->out; /* which does not exist */
    OK(ckpt_snapshot_take(s->tree, &how, NULL, &snapshot, &stats, &e));
    assert_null(snapshot);
    assert_non_null(strstr(e.text, "no file could be created"));
}

static void what_was_read_of_a_snapshot_is_not_read_again(void **state)
{
    struct scratch *s = *state;
    struct ckpt_seen *seen = ckpt_seen_create();
    struct ckpt_snapshot_stats stats;
    struct ckpt_stats saved;
    struct timespec start, now;
    struct err e;

    if (!can_keep_open(s)) {
        ckpt_seen_destroy(seen);
        return;
    }
    make_state(s, 1);
    clock_gettime(CLOCK_REALTIME_COARSE, &start);
    do
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 40);
    for (int64_t i = 1; i <= 3; i++) {
        struct ckpt_snapshot *snapshot = must_take(s, (struct ckpt_snapshot_how){0}, &stats);

        OK(store_it(s, i, snapshot, seen, &saved, &e));
        ckpt_snapshot_destroy(snapshot);
        assert_int_equal(saved.unread_bytes, i == 1 ? 0 : saved.bytes);
    }
    OK(ckpt_save_with(&s->job, (struct ckpt_id){1, 4}, s->tree, -1, NULL,
        &(struct ckpt_save_with){.seen = seen}, &saved, &e));
    assert_int_equal(saved.unread_bytes, saved.bytes);
    ckpt_seen_destroy(seen);
}

/* ---- kill -9 ---- */

static void die(void *ctx)
{
    (void)ctx;
    kill(getpid(), SIGKILL);
}

/* False once the save makes fewer calls than `at`. */
static bool killed_at_call(int at)
{
    struct scratch s;
    size_t names;
    int status;
    pid_t pid;

    scratch_init(&s);
    make_state(&s, 1);
    remember(&s);
    make_state(&s, 2);
    names = count_names(s.dir);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct ckpt_snapshot_stats stats;
        struct ckpt_stats saved;
        struct store_fault f;
        struct err e;
        struct ckpt_snapshot *snapshot = must_take(&s, (struct ckpt_snapshot_how){0}, &stats);

        store_fault_init(&f, s.job.store, FAULT_HOOK, at);
        f.hook = die;
        s.job.store = &f.base;
        _exit(store_it(&s, 2, snapshot, NULL, &saved, &e) != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    assert_int_equal(count_names(s.dir), names);
    if (restore(&s, 2).id.sequence == 1) {
        assert_true(WIFSIGNALED(status));
        assert_saved_is_then(&s, 1);
    } else {
        assert_same_tree(s.tree, s.out);
    }
    scratch_deinit(&s);
    return WIFSIGNALED(status);
}

static void killed_between_any_two_calls_nothing_is_half_and_nothing_is_left(void **state)
{
    int at = 1;

    (void)state;
    while (killed_at_call(at))
        at++;
    assert_in_range(at, 10, 100);
}

/* ---- separate file systems ---- */

static int in_child(int (*fn)(void))
{
    pid_t pid;
    int status;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(fn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool own_mounts(void)
{
    return (geteuid() == 0 || unshare(CLONE_NEWUSER) == 0) && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* A disk that has no space for copies. */
static int fill_the_scratch(void)
{
    struct ckpt_snapshot_stats stats;
    struct ckpt_stats saved;
    struct ckpt_snapshot *snapshot;
    struct scratch s;
    struct err e, why;
    bool keeps_open;

    if (!own_mounts())
        return SKIP;
    scratch_init(&s);
    keeps_open = can_keep_open(&s);
    make_dir(s.dir, "small");
    if (mount("tmpfs", path_in(s.dir, "small"), "tmpfs", 0, "size=64k")) {
        scratch_deinit(&s);
        return SKIP;
    }
    make_tree(s.tree, 1);
    write_random(s.tree, "medium", 1 << 19, 1);
    remember(&s);
    assert_null(
        take(&s, (struct ckpt_snapshot_how){.scratch = path_in(s.dir, "small"), .in_place = true},
            &stats, &why));
    assert_non_null(strstr(why.text, "'medium' is too large to be copied"));
    if (keeps_open) {
        snapshot =
            must_take(&s, (struct ckpt_snapshot_how){.scratch = path_in(s.dir, "small")}, &stats);
        assert_int_equal(stats.kept_open_bytes, 1 << 19);
        OK(store_it(&s, 2, snapshot, NULL, &saved, &e));
        ckpt_snapshot_destroy(snapshot);
        assert_saved_is_then(&s, 2);
    }
    assert_int_equal(umount(path_in(s.dir, "small")), 0);
    scratch_deinit(&s);
    return 0;
}

static void a_disk_without_space_for_copies_leaves_the_other_ways(void **state)
{
    int rc = in_child(fill_the_scratch);

    (void)state;
    if (rc == SKIP)
        print_message("SKIP: no mount namespace here\n");
    else
        assert_int_equal(rc, 0);
}

/* On an XFS image file. */
static int clone_files(void)
{
    struct ckpt_snapshot_stats stats;
    struct ckpt_stats saved;
    struct ckpt_snapshot *snapshot;
    struct scratch s;
    struct err e;
    char line[1024];

    if (geteuid() != 0 || !own_mounts())
        return SKIP;
    scratch_init(&s);
    make_dir(s.dir, "xfs");
    snprintf(line, sizeof(line),
        "cd '%s' && truncate -s 320M image && mkfs.xfs -q -m reflink=1 image && mount -o loop "
        "image xfs",
        s.dir);
    if (system(line) != 0) {
        scratch_deinit(&s);
        return SKIP;
    }
    snprintf(s.tree, sizeof(s.tree), "%s/xfs/tree", s.dir);
    make_dir(s.dir, "xfs/tree");
    make_state(&s, 1);
    assert_int_equal(truncate(path_in(s.tree, "sub/larger"), 16 << 20), 0);
    remember(&s);
    snapshot = must_take(
        &s, (struct ckpt_snapshot_how){.scratch = path_in(s.dir, "xfs"), .in_place = true}, &stats);
    assert_true(stats.cloned_bytes >= 2 * LARGE);
    assert_int_equal(stats.kept_open_bytes, 0);
    by_write(path_in(s.tree, "large"));
    by_truncate(path_in(s.tree, "sub/larger"));
    OK(store_it(&s, 2, snapshot, NULL, &saved, &e));
    assert_int_equal(saved.reused_bytes, saved.bytes);
    ckpt_snapshot_destroy(snapshot);
    assert_saved_is_then(&s, 2);
    assert_int_equal(umount2(path_in(s.dir, "xfs"), MNT_DETACH), 0);
    scratch_deinit(&s);
    return 0;
}

static void where_blocks_are_shared_files_are_cloned_and_may_be_written_in_place(void **state)
{
    int rc = in_child(clone_files);

    (void)state;
    if (rc == SKIP)
        print_message("SKIP: no root, mkfs.xfs or loop device here\n");
    else
        assert_int_equal(rc, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_saved_is_the_moment_whatever_is_replaced_and_removed_meanwhile),
        TEST(small_files_are_copied_and_may_be_written_in_place),
        TEST(many_small_files_are_copied_and_may_be_written_in_place),
        TEST(the_memory_of_a_large_snapshot_is_given_back),
        TEST(a_tree_without_files_and_a_snapshot_that_is_not_saved),
        TEST(a_write_to_a_file_kept_open_is_noticed),
        TEST(links_and_new_names_are_no_writes),
        TEST(files_that_cannot_be_kept_open_are_not),
        TEST(a_tree_of_too_many_files_is_not_scanned_to_its_end),
        TEST(what_cannot_be_saved_is_said_at_once),
        TEST(what_was_read_of_a_snapshot_is_not_read_again),
        cmocka_unit_test(killed_between_any_two_calls_nothing_is_half_and_nothing_is_left),
        cmocka_unit_test(a_disk_without_space_for_copies_leaves_the_other_ways),
        cmocka_unit_test(where_blocks_are_shared_files_are_cloned_and_may_be_written_in_place),
    };
    setenv("TMPDIR", "/var/tmp", 0); /* not the usual tmpfs */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
