/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "ckpt/store/layout.h"
#include "ckpt/scan.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static void what_was_saved_is_restored(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct ckpt_restored r;

    make_tree(s->tree, 1);
    stats = save(s, 1, 1);
    assert_int_equal(stats.files, 5);
    assert_int_equal(stats.reused_bytes, 0);
    r = restore(s, 2);
    assert_tree_is(s->out, 1);
    assert_int_equal(r.id.attempt, 1);
    assert_int_equal(r.id.sequence, 1);
    assert_int_equal(r.progress, 100);
    assert_int_equal(r.stats.files, 5);
    assert_int_equal(r.stats.bytes, stats.bytes);
    assert_int_equal(r.damaged, 0);
}

static void large_files_span_chunks(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;

    make_tree(s->tree, 1);
    write_random(s->tree, "large", 3 * CKPT_CHUNK_BYTES + 12345, 1);
    write_random(s->tree, "sub/exact", CKPT_CHUNK_BYTES, 2);
    stats = save(s, 1, 1);
    /* large, exact, and a pack of the small files */
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 4 + 1 + 1);
    assert_in_range(stats.stored_bytes, 4 * CKPT_CHUNK_BYTES, 5 * CKPT_CHUNK_BYTES);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
}

static void an_empty_directory_is_a_checkpoint_too(void **state)
{
    struct scratch *s = *state;

    save(s, 1, 1);
    assert_int_equal(restore(s, 2).id.sequence, 1);
    assert_same_tree(s->tree, s->out);
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 0);
}

static void without_a_checkpoint_the_directory_is_empty(void **state)
{
    struct scratch *s = *state;
    struct ckpt_restored r;

    make_tree(s->out, 9);
    r = restore(s, 1);
    assert_int_equal(r.id.attempt, 0);
    assert_int_equal(r.progress, -1);
    assert_same_tree(s->tree, s->out);
    assert_false(fs_exists(path_in(s->dir, "out.restoring")));
}

static void restoring_replaces_what_was_there(void **state)
{
    struct scratch *s = *state;
    char unfinished[400];

    snprintf(unfinished, sizeof(unfinished), "%s.restoring", s->out);
    make_tree(s->tree, 1);
    save(s, 1, 1);
    make_tree(s->out, 2);
    write_text(s->out, "left over", "from a killed attempt");
    make_tree(unfinished, 3);
    restore(s, 2);
    assert_tree_is(s->out, 1);
    assert_false(fs_exists(unfinished));
}

static void the_newest_checkpoint_is_the_one_with_the_greatest_numbers(void **state)
{
    static const struct ckpt_id ids[] = {{1, 1}, {1, 2}, {1, 10}, {2, 1}, {10, 1}};
    struct scratch *s = *state;

    for (int i = 0; i < 5; i++) {
        make_tree(s->tree, i);
        save(s, ids[i].attempt, ids[i].sequence);
        restore(s, 11);
        assert_tree_is(s->out, i);
    }
    restore(s, 10);
    assert_tree_is(s->out, 3);
    restore(s, 2);
    assert_tree_is(s->out, 2);
    assert_int_equal(restore(s, 1).id.attempt, 0);
}

static void a_number_that_is_not_greater_is_refused(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct err e;

    make_tree(s->tree, 1);
    save(s, 2, 5);
    make_tree(s->tree, 2);
    FAILS(ERR_CONFLICT, ckpt_save(&s->job, (struct ckpt_id){2, 5}, s->tree, -1, NULL, &stats, &e));
    FAILS(ERR_CONFLICT, ckpt_save(&s->job, (struct ckpt_id){2, 4}, s->tree, -1, NULL, &stats, &e));
    FAILS(ERR_CONFLICT, ckpt_save(&s->job, (struct ckpt_id){1, 9}, s->tree, -1, NULL, &stats, &e));
    FAILS(ERR_INVALID, ckpt_save(&s->job, (struct ckpt_id){0, 9}, s->tree, -1, NULL, &stats, &e));
    FAILS(ERR_INVALID, ckpt_save(&s->job, (struct ckpt_id){CKPT_NUMBER_MAX + 1, 9}, s->tree, -1,
                           NULL, &stats, &e));
    restore(s, 3);
    assert_tree_is(s->out, 1);
}

static void a_stale_attempt_cannot_commit(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct err e;

    make_tree(s->tree, 1);
    OK(ckpt_fence(&s->job, 1, &e));
    save(s, 1, 1);
    OK(ckpt_fence(&s->job, 2, &e));
    OK(ckpt_fence(&s->job, 2, &e));
    make_tree(s->tree, 2);
    FAILS(ERR_CONFLICT, ckpt_save(&s->job, (struct ckpt_id){1, 2}, s->tree, -1, NULL, &stats, &e));
    assert_non_null(strstr(e.text, "fenced"));
    FAILS(ERR_CONFLICT, ckpt_fence(&s->job, 1, &e));
    FAILS(ERR_CONFLICT, clean_job(&s->job, 1, 1, &e));
    restore(s, 2);
    assert_tree_is(s->out, 1);
    save(s, 2, 1);
    restore(s, 3);
    assert_tree_is(s->out, 2);
}

static void a_later_checkpoint_fences_even_without_a_fence(void **state)
{
    struct scratch *s = *state;
    struct err e;

    save(s, 3, 1);
    FAILS(ERR_CONFLICT, ckpt_fence(&s->job, 2, &e));
    FAILS(ERR_CONFLICT, clean_job(&s->job, 2, 1, &e));
}

static void jobs_do_not_see_each_other(void **state)
{
    struct scratch *s = *state;
    struct ckpt_job other = s->job;
    struct ckpt_restored r;
    struct err e;

    other.job = 77;
    make_tree(s->tree, 1);
    save(s, 3, 1);
    OK(ckpt_fence(&other, 1, &e));
    OK(ckpt_restore(&other, 2, s->out, NULL, &r, &e));
    assert_int_equal(r.id.attempt, 0);
    other.cluster = "../lab";
    FAILS(ERR_INVALID, ckpt_fence(&other, 1, &e));
}

static void unchanged_content_is_not_stored_again(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    size_t n;

    make_tree(s->tree, 1);
    write_random(s->tree, "weights", 2 * CKPT_CHUNK_BYTES, 1);
    stats = save(s, 1, 1);
    assert_int_equal(stats.reused_bytes, 0);
    n = find_objects(s, "/chunks/", NULL, 0);
    stats = save(s, 1, 2);
    assert_int_equal(stats.stored_bytes, 0);
    assert_int_equal(stats.reused_bytes, stats.bytes);
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), n);
    /* The next attempt links it to its own names, but does not store it again. */
    stats = save(s, 2, 1);
    assert_int_equal(stats.stored_bytes, 0);
    assert_int_equal(find_objects(s, "/chunks/0000000002/", NULL, 0), n);
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
}

static void equal_chunks_are_stored_once(void **state)
{
    struct scratch *s = *state;

    for (int i = 0; i < 8; i++) {
        char name[16];

        snprintf(name, sizeof(name), "same%d", i);
        write_random(s->tree, name, CKPT_CHUNK_BYTES, 5);
    }
    save(s, 1, 1);
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 1);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
}

static void what_a_checkpoint_cannot_hold_is_named(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct err e;

    make_dir(s->tree, "d");
    assert_int_equal(mkfifo(path_in(s->tree, "d/pipe"), 0600), 0);
    FAILS(
        ERR_UNSUPPORTED, ckpt_save(&s->job, (struct ckpt_id){1, 1}, s->tree, -1, NULL, &stats, &e));
    assert_non_null(strstr(e.text, "d/pipe"));
    assert_non_null(strstr(e.text, "named pipe"));
    unlink(path_in(s->tree, "d/pipe"));
    write_text(s->tree, "bad\xff", "x");
    FAILS(
        ERR_UNSUPPORTED, ckpt_save(&s->job, (struct ckpt_id){1, 1}, s->tree, -1, NULL, &stats, &e));
    assert_non_null(strstr(e.text, "UTF-8"));
    FAILS(ERR_NOT_FOUND,
        ckpt_save(&s->job, (struct ckpt_id){1, 1}, path_in(s->dir, "none"), -1, NULL, &stats, &e));
    assert_int_equal(find_objects(s, "", NULL, 0), 0);
}

static void give(const char *path, uid_t uid)
{
    assert_int_equal(lchown(path, uid, (gid_t)-1), 0);
}

/* As a root agent saves it; without fs.protected_hardlinks a job can link to any file it can
 * name. */
static void what_is_not_the_job_users_is_not_saved_by_root(void **state)
{
    const uid_t user = 65534;
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct err e;

    if (geteuid() != 0)
        skip();
    make_dir(s->tree, "d");
    write_text(s->tree, "d/own", "mine");
    write_text(s->dir, "secret", "not mine");
    give(s->tree, user);
    give(path_in(s->tree, "d"), user);
    give(path_in(s->tree, "d/own"), user);
    save(s, 1, 1);
    /* not followed */
    assert_int_equal(symlink(path_in(s->dir, "secret"), path_in(s->tree, "d/link")), 0);
    save(s, 1, 2);
    assert_int_equal(link(path_in(s->dir, "secret"), path_in(s->tree, "d/hard")), 0);
    FAILS(
        ERR_UNSUPPORTED, ckpt_save(&s->job, (struct ckpt_id){1, 3}, s->tree, -1, NULL, &stats, &e));
    assert_non_null(strstr(e.text, "'d/hard' belongs to uid 0"));
    assert_int_equal(unlink(path_in(s->tree, "d/hard")), 0);
    make_dir(s->tree, "d/theirs");
    FAILS(
        ERR_UNSUPPORTED, ckpt_save(&s->job, (struct ckpt_id){1, 3}, s->tree, -1, NULL, &stats, &e));
    assert_non_null(strstr(e.text, "'d/theirs' belongs to uid 0"));
    assert_int_equal(rmdir(path_in(s->tree, "d/theirs")), 0);
    save(s, 1, 3);
}

/* A scanned file may have been replaced when it is opened. */
static void a_file_is_opened_without_following_links(void **state)
{
    struct scratch *s = *state;
    struct manifest m = {0};
    struct scan scan;
    struct stat st;
    struct err e;
    int root, fd;

    make_dir(s->tree, "d");
    make_dir(s->tree, "d/e");
    write_text(s->tree, "d/e/f", "x");
    root = open(s->tree, O_RDONLY | O_DIRECTORY);
    assert_true(root >= 0);
    fd = scan_open(root, "d/e/f");
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    OK(scan_tree(root, &m, &scan, &e));
    OK(scan_check_owner(&scan, &st, "d/e/f", &e));
    scan.has_owner = true;
    scan.owner = st.st_uid + 1; /* the owner is checked again, on the file's descriptor */
    FAILS(ERR_UNSUPPORTED, scan_check_owner(&scan, &st, "d/e/f", &e));
    scan_deinit(&scan);
    manifest_deinit(&m);
    close(fd);
    assert_int_equal(rename(path_in(s->tree, "d"), path_in(s->dir, "away")), 0);
    assert_int_equal(symlink("../away", path_in(s->tree, "d")), 0);
    assert_int_equal(access(path_in(s->tree, "d/e/f"), R_OK), 0);
    assert_int_equal(scan_open(root, "d/e/f"), -1);
    assert_true(errno == ELOOP || errno == ENOTDIR); /* the latter without openat2(2) */
    assert_int_equal(symlink("../away/e/f", path_in(s->tree, "f")), 0);
    assert_int_equal(scan_open(root, "f"), -1);
    assert_int_equal(errno, ELOOP);
    close(root);
}

static void a_link_out_of_the_directory_is_kept_as_a_link(void **state)
{
    struct scratch *s = *state;
    char target[CKPT_PATH_MAX];
    ssize_t n;

    assert_int_equal(symlink("/etc/passwd", path_in(s->tree, "outside")), 0);
    save(s, 1, 1);
    restore(s, 2);
    n = readlink(path_in(s->out, "outside"), target, sizeof(target));
    assert_int_equal(n, 11);
    assert_memory_equal(target, "/etc/passwd", 11);
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 0);
}

static struct stat look(const char *dir, const char *name)
{
    struct stat st;

    assert_int_equal(lstat(path_in(dir, name), &st), 0);
    return st;
}

static void names_of_one_link_are_names_of_one_link_again(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct err e;

    make_dir(s->tree, "d");
    assert_int_equal(symlink("nowhere", path_in(s->tree, "d/m")), 0);
    /* before and after the first name's directory, and one of another link */
    assert_int_equal(link(path_in(s->tree, "d/m"), path_in(s->tree, "a")), 0);
    assert_int_equal(link(path_in(s->tree, "d/m"), path_in(s->tree, "z")), 0);
    assert_int_equal(symlink("nowhere", path_in(s->tree, "other")), 0);
    stats = save(s, 1, 1);
    assert_int_equal(stats.files, 0);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
    assert_int_equal(look(s->out, "a").st_nlink, 3);
    assert_int_equal(look(s->out, "a").st_ino, look(s->out, "d/m").st_ino);
    assert_int_equal(look(s->out, "a").st_ino, look(s->out, "z").st_ino);
    assert_int_equal(look(s->out, "other").st_nlink, 1);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 1}, &e));
}

static void names_of_one_file_are_names_of_one_file_again(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct err e;

    make_dir(s->tree, "d");
    write_text(s->tree, "d/m", "one file of three names");
    assert_int_equal(link(path_in(s->tree, "d/m"), path_in(s->tree, "a")), 0);
    assert_int_equal(link(path_in(s->tree, "d/m"), path_in(s->tree, "z")), 0);
    write_text(s->tree, "other", "one file of three names");
    write_text(s->dir, "outside", "of which one name is not in the tree");
    assert_int_equal(link(path_in(s->dir, "outside"), path_in(s->tree, "in")), 0);
    assert_int_equal(chmod(path_in(s->tree, "z"), 0400), 0);
    stats = save(s, 1, 1);
    assert_int_equal(stats.files, 3);
    assert_int_equal(stats.bytes, 23 + 23 + 36);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
    assert_int_equal(look(s->out, "a").st_nlink, 3);
    assert_int_equal(look(s->out, "a").st_ino, look(s->out, "d/m").st_ino);
    assert_int_equal(look(s->out, "a").st_ino, look(s->out, "z").st_ino);
    assert_int_equal(look(s->out, "other").st_nlink, 1);
    assert_int_equal(look(s->out, "in").st_nlink, 1);
    assert_int_equal(look(s->out, "d/m").st_mode & 07777, 0400);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 1}, &e));
}

static void user_attributes_come_back(void **state)
{
    static const char value[] = "two\0parts\xff";
    struct scratch *s = *state;
    struct ckpt_stats stats;
    char got[100];
    struct err e;

    write_text(s->tree, "file", "x");
    make_dir(s->tree, "dir");
    if (setxattr(path_in(s->tree, "file"), "user.value", value, sizeof(value), 0)) {
        print_message("SKIP: no user attributes here\n");
        return;
    }
    assert_int_equal(setxattr(path_in(s->tree, "file"), "user.empty", "", 0, 0), 0);
    assert_int_equal(setxattr(path_in(s->tree, "dir"), "user.of a directory", "1", 1, 0), 0);
    assert_int_equal(chmod(path_in(s->tree, "file"), 0400), 0);
    save(s, 1, 1);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
    assert_int_equal(
        getxattr(path_in(s->out, "file"), "user.value", got, sizeof(got)), sizeof(value));
    assert_memory_equal(got, value, sizeof(value));
    assert_int_equal(getxattr(path_in(s->out, "file"), "user.empty", got, sizeof(got)), 0);
    assert_int_equal(getxattr(path_in(s->out, "dir"), "user.of a directory", got, sizeof(got)), 1);
    if (setxattr(path_in(s->tree, "dir"), "user.\xff", "1", 1, 0) == 0) {
        FAILS(ERR_UNSUPPORTED,
            ckpt_save(&s->job, (struct ckpt_id){1, 2}, s->tree, -1, NULL, &stats, &e));
        assert_non_null(strstr(e.text, "'dir'"));
    }
}

static void put(const char *dir, const char *name, off_t at, const char *text)
{
    int fd = open(path_in(dir, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
    close(fd);
}

static void holes_stay_holes_and_are_not_stored(void **state)
{
    const off_t giga = 1 << 30;
    struct scratch *s = *state;
    struct ckpt_stats stats;

    put(s->tree, "sparse", 0, "start");
    put(s->tree, "sparse", 100 * giga, "middle");
    put(s->tree, "sparse", 100 * giga + 16384, "after a small hole");
    assert_int_equal(truncate(path_in(s->tree, "sparse"), 300 * giga + 1), 0);
    put(s->tree, "hole", 0, "");
    assert_int_equal(truncate(path_in(s->tree, "hole"), 200 * giga), 0);
    put(s->tree, "last", 50 * giga, "the end");
    if ((int64_t)look(s->tree, "sparse").st_blocks > 1000) {
        print_message("SKIP: no sparse files here\n");
        return;
    }
    stats = save(s, 1, 1);
    assert_in_range(stats.bytes, 20, 100000);
    restore(s, 2);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"sparse", "hole", "last"};
        struct stat before = look(s->tree, names[i]), after = look(s->out, names[i]);
        char got[64] = "", text[64] = "";
        const off_t places[] = {0, 50 * giga, 100 * giga, 100 * giga + 16384};

        assert_int_equal(after.st_size, before.st_size);
        assert_true(after.st_blocks <= before.st_blocks);
        for (int k = 0; k < 4; k++) {
            int fd = open(path_in(s->tree, names[i]), O_RDONLY),
                out = open(path_in(s->out, names[i]), O_RDONLY);

            assert_int_equal(pread(fd, text, 30, places[k]), pread(out, got, 30, places[k]));
            assert_memory_equal(text, got, 30);
            close(fd);
            close(out);
        }
    }
}

/* More extents than a manifest may have. */
static void a_file_of_very_many_holes_is_saved_with_fewer(void **state)
{
    struct scratch *s = *state;
    const off_t n = MANIFEST_EXTENTS_MAX + 10, step = (64 << 10) + 4096;

    for (off_t i = 0; i < n; i++)
        put(s->tree, "comb", i * step, "x");
    save(s, 1, 1);
    restore(s, 2);
    assert_int_equal(look(s->out, "comb").st_size, look(s->tree, "comb").st_size);
    for (off_t i = 0; i < n; i += 501) {
        int fd = open(path_in(s->out, "comb"), O_RDONLY);
        char c = 0;

        assert_int_equal(pread(fd, &c, 1, i * step), 1);
        assert_int_equal(c, 'x');
        close(fd);
    }
    assert_true(look(s->out, "comb").st_blocks <= look(s->tree, "comb").st_blocks);
}

static int copy_object(void *ctx, const char *name, int64_t size_bytes)
{
    struct scratch *s = ctx;
    struct buf content = {0};
    struct err e;

    (void)size_bytes;
    OK(fs_read(path_in(DATA "/version1", name), 1u << 20, &content, &e));
    OK(s->job.store->ops->create(s->job.store, name, content.data, content.len, &e));
    buf_deinit(&content);
    return 0;
}

/* A store as version 0.1 of belay left it, byte for byte. */
static void a_checkpoint_of_version_1_is_restored_and_built_upon(void **state)
{
    struct scratch *s = *state;
    struct store *recorded;
    struct stat st;
    struct err e;

    OK(store_open("file://" DATA "/version1", NULL, &recorded, &e));
    OK(recorded->ops->list(recorded, "", copy_object, s, &e));
    store_close(recorded);
    assert_int_equal(restore(s, 2).id.sequence, 1);
    assert_int_equal(look(s->out, "number").st_mode & 07777, 0400);
    st = look(s->out, "sub/deep/run");
    assert_int_equal(st.st_size, 10);
    assert_int_equal(st.st_mtim.tv_sec, 1000000000);
    assert_int_equal(st.st_mtim.tv_nsec, 123456789);
    assert_true(S_ISDIR(look(s->out, "sub/empty").st_mode));
    assert_true(S_ISLNK(look(s->out, "link").st_mode));
    OK(fs_remove_tree(s->tree, &e));
    assert_int_equal(rename(s->out, s->tree), 0);
    assert_true((save(s, 2, 1).stored_bytes == 0) == !s->job.crypt);
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
}

static void set_user_bits_do_not_come_back(void **state)
{
    struct scratch *s = *state;
    struct stat st;

    write_text(s->tree, "x", "x");
    assert_int_equal(chmod(path_in(s->tree, "x"), 06755), 0);
    save(s, 1, 1);
    restore(s, 2);
    assert_int_equal(stat(path_in(s->out, "x"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
}

static void cancel_commits_nothing(void **state)
{
    struct scratch *s = *state;
    struct ckpt_restored r;
    struct ckpt_stats stats;
    atomic_int cancel = 1;
    struct err e;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    make_tree(s->tree, 2);
    FAILS(ERR_CANCELLED,
        ckpt_save(&s->job, (struct ckpt_id){1, 2}, s->tree, -1, &cancel, &stats, &e));
    make_tree(s->out, 5);
    FAILS(ERR_CANCELLED, ckpt_restore(&s->job, 2, s->out, &cancel, &r, &e));
    assert_tree_is(s->out, 5);
    restore(s, 2);
    assert_tree_is(s->out, 1);
}

static int list_text(void *ctx, const struct ckpt_info *info)
{
    buf_printf(
        ctx, "%d-%d:%d ", (int)info->id.attempt, (int)info->id.sequence, (int)info->progress);
    assert_true(info->bytes > 300 && wall_is_set(info->saved_at));
    return 0;
}

static void the_list_is_newest_first_without_damaged_ones(void **state)
{
    struct scratch *s = *state;
    struct buf text = {0};
    struct err e;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    save(s, 1, 2);
    save(s, 2, 1);
    OK(ckpt_list(&s->job, list_text, &text, &e));
    assert_string_equal(buf_str(&text), "2-1:100 1-2:200 1-1:100 ");
    write_text(path_in(s->store, "lab/jobs/7/manifests"), "0000000001-0000000002.json", "{}");
    write_text(path_in(s->store, "lab/jobs/7/manifests"), "something else", "{}");
    write_text(
        path_in(s->store, "lab/jobs/7/manifests"), "0000000009-0000000002.json.ab12cd", "{}");
    buf_clear(&text);
    OK(ckpt_list(&s->job, list_text, &text, &e));
    assert_string_equal(buf_str(&text), "2-1:100 1-1:100 ");
    buf_deinit(&text);
}

static void a_manifest_in_a_wrong_place_is_damage(void **state)
{
    struct scratch *s = *state;
    struct ckpt_restored r;
    struct err e;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    OK(s->job.store->ops->link(s->job.store, "lab/jobs/7/manifests/0000000001-0000000001.json",
        "lab/jobs/7/manifests/0000000001-0000000009.json", &e));
    r = restore(s, 2);
    assert_int_equal(r.id.sequence, 1);
    assert_int_equal(r.damaged, 1);
    assert_non_null(strstr(r.damage, s->job.crypt ? "another object was put in its place" : "1.1"));
}

static void a_checkpoint_of_a_later_belay_is_not_passed_over(void **state)
{
    static const char body[] = "{\"format\":\"belay-checkpoint\",\"version\":7,";
    struct scratch *s = *state;
    struct ckpt_restored r;
    char hash[CHUNK_HEX_SIZE], text[300];
    struct err e;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    chunk_hash(body, strlen(body), hash);
    snprintf(text, sizeof(text), "%s,\"sha256\":\"%s\"}", body, hash);
    write_text(path_in(s->store, "lab/jobs/7/manifests"), "0000000001-0000000002.json", text);
    FAILS(ERR_UNSUPPORTED, ckpt_restore(&s->job, 2, s->out, NULL, &r, &e));
    FAILS(ERR_UNSUPPORTED, clean_job(&s->job, 1, 1, &e));
    assert_int_equal(find_objects(s, "/manifests/", NULL, 0), 2);
}

static void verify_finds_damage_and_moves_nothing(void **state)
{
    struct scratch *s = *state;
    char names[1][600];
    struct err e;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 1}, &e));
    FAILS(ERR_NOT_FOUND, ckpt_verify(&s->job, (struct ckpt_id){1, 2}, &e));
    assert_string_equal(e.text, "checkpoint 1.2 is not in the store");
    FAILS(ERR_NOT_FOUND, ckpt_pin(&s->job, (struct ckpt_id){1, 99999}, &e));
    assert_string_equal(e.text, "checkpoint 1.99999 is not in the store");
    assert_int_equal(find_objects(s, "/chunks/", names, 1), 1);
    unlink(path_in(s->store, names[0]));
    FAILS(ERR_CORRUPT, ckpt_verify(&s->job, (struct ckpt_id){1, 1}, &e));
    assert_int_equal(find_objects(s, "/damaged/", NULL, 0), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_was_saved_is_restored),
        TEST(large_files_span_chunks),
        TEST(an_empty_directory_is_a_checkpoint_too),
        TEST(without_a_checkpoint_the_directory_is_empty),
        TEST(restoring_replaces_what_was_there),
        TEST(the_newest_checkpoint_is_the_one_with_the_greatest_numbers),
        TEST(a_number_that_is_not_greater_is_refused),
        TEST(a_stale_attempt_cannot_commit),
        TEST(a_later_checkpoint_fences_even_without_a_fence),
        TEST(jobs_do_not_see_each_other),
        TEST(unchanged_content_is_not_stored_again),
        TEST(equal_chunks_are_stored_once),
        TEST(what_a_checkpoint_cannot_hold_is_named),
        TEST(what_is_not_the_job_users_is_not_saved_by_root),
        TEST(a_file_is_opened_without_following_links),
        TEST(a_link_out_of_the_directory_is_kept_as_a_link),
        TEST(names_of_one_file_are_names_of_one_file_again),
        TEST(names_of_one_link_are_names_of_one_link_again),
        TEST(user_attributes_come_back),
        TEST(holes_stay_holes_and_are_not_stored),
        TEST(a_file_of_very_many_holes_is_saved_with_fewer),
        TEST(a_checkpoint_of_version_1_is_restored_and_built_upon),
        TEST(set_user_bits_do_not_come_back),
        TEST(cancel_commits_nothing),
        TEST(the_list_is_newest_first_without_damaged_ones),
        TEST(a_manifest_in_a_wrong_place_is_damage),
        TEST(a_checkpoint_of_a_later_belay_is_not_passed_over),
        TEST(verify_finds_damage_and_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
