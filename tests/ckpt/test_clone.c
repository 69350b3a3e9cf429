/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores on file systems that share blocks, in images that root may mount. Without root, mkfs or
 * loop devices the test is skipped, and says so.
 */
#include "ckpt/clone.h"
#include "base/mem.h"
#include "tests/ckpt/tools.h"
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define LARGE (10 * MIB + 12345) /* chunks of 4 MiB, and a tail that is no whole block */
#define SKIPPED 77
#define EXTENTS 64

/* Bytes of a file whose blocks another file has, too. */
static int64_t shared_bytes(const char *path)
{
    size_t size = sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent);
    struct fiemap *map = mem_alloc(size);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int64_t sum = 0;

    assert_true(fd >= 0);
    map->fm_length = FIEMAP_MAX_OFFSET;
    map->fm_flags = FIEMAP_FLAG_SYNC;
    map->fm_extent_count = EXTENTS;
    assert_int_equal(ioctl(fd, FS_IOC_FIEMAP, map), 0);
    for (unsigned int i = 0; i < map->fm_mapped_extents; i++)
        if (map->fm_extents[i].fe_flags & FIEMAP_EXTENT_SHARED)
            sum += (int64_t)map->fm_extents[i].fe_length;
    close(fd);
    free(map);
    return sum;
}

static void write_tree(struct scratch *s, uint64_t seed)
{
    write_random(s->tree, "large", LARGE, seed);
    write_random(s->tree, "other", 2 * MIB, seed + 1);
    write_random(s->tree, "small", 5000, seed + 2);
}

static void a_large_file_shares_the_blocks_of_the_store(void **state)
{
    struct scratch *s = *state;

    write_tree(s, 1);
    save(s, 1, 1);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
    if (!s->job.crypt)
        assert_in_range(shared_bytes(path_in(s->out, "large")), LARGE, LARGE + 65536);
    else
        assert_int_equal(shared_bytes(path_in(s->out, "large")), 0);
    /* What the program writes there is its own. */
    write_random(s->out, "large", LARGE, 9);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
}

static void damage(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char byte;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pread(fd, &byte, 1, st.st_size / 2), 1);
    byte = (char)(byte ^ 1);
    assert_int_equal(pwrite(fd, &byte, 1, st.st_size / 2), 1);
    close(fd);
}

static void a_damaged_object_is_found_in_the_clone(void **state)
{
    struct scratch *s = *state;
    char names[8][600];
    struct ckpt_restored r;

    write_tree(s, 1);
    save(s, 1, 1);
    restore(s, 2);
    assert_int_equal(rename(s->out, path_in(s->dir, "first")), 0);
    write_tree(s, 100);
    size_t before = find_objects(s, "/chunks/", names, 8);
    save(s, 1, 2);
    char all[16][600];
    size_t n = find_objects(s, "/chunks/", all, 16);
    for (size_t i = 0; i < n; i++) {
        bool is_old = false;
        struct stat st;

        for (size_t k = 0; k < before; k++)
            is_old = is_old || strcmp(all[i], names[k]) == 0;
        assert_int_equal(stat(path_in(s->store, all[i]), &st), 0);
        if (!is_old && st.st_size >= (off_t)(4 * MIB))
            damage(path_in(s->store, all[i]));
    }
    r = restore(s, 2);
    assert_int_equal(r.damaged, 1);
    assert_int_equal(r.id.sequence, 1);
    assert_same_tree(path_in(s->dir, "first"), s->out);
}

static void a_tree_of_the_node_shares_its_blocks_if_they_are_the_same(void **state)
{
    struct scratch *s = *state;
    char nearby[400];
    const struct ckpt_restore_with with = {.nearby = {nearby}};
    struct ckpt_restored r;
    struct err e;

    write_tree(s, 1);
    save(s, 1, 1);
    restore(s, 2);
    snprintf(nearby, sizeof(nearby), "%s/nearby", s->dir);
    assert_int_equal(rename(s->out, nearby), 0);
    write_random(nearby, "large", LARGE, 1); /* its own blocks, not the store's */
    assert_int_equal(shared_bytes(path_in(nearby, "large")), 0);
    OK(ckpt_restore_with(&s->job, 2, s->out, &with, NULL, &r, &e));
    assert_int_equal(r.stats.reused_bytes, r.stats.bytes);
    assert_same_tree(s->tree, s->out);
    assert_in_range(shared_bytes(path_in(nearby, "large")), LARGE, LARGE + 65536);
    /* One byte differs: that chunk comes from the store. */
    damage(path_in(nearby, "large"));
    OK(ckpt_restore_with(&s->job, 2, s->out, &with, NULL, &r, &e));
    assert_int_equal(r.stats.reused_bytes, r.stats.bytes - (int64_t)(4 * MIB));
    assert_same_tree(s->tree, s->out);
    /* A shorter file. */
    assert_int_equal(truncate(path_in(nearby, "large"), (off_t)(5 * MIB)), 0);
    OK(ckpt_restore_with(&s->job, 2, s->out, &with, NULL, &r, &e));
    assert_same_tree(s->tree, s->out);
}

static void only_whole_blocks_are_shared(void **state)
{
    struct scratch *s = *state;
    int from, to;

    write_tree(s, 1);
    from = open(path_in(s->tree, "large"), O_RDONLY | O_CLOEXEC);
    to = open(path_in(s->dir, "to"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(from >= 0 && to >= 0);
    assert_int_equal(clone_range(from, 0, to, 0, MIB), CLONE_MISSING); /* to is empty */
    assert_int_equal(ftruncate(to, LARGE), 0);
    assert_int_equal(clone_range(from, 0, to, 0, MIB), CLONE_DONE);
    assert_int_equal(clone_range(from, 1, to, 0, MIB), CLONE_MISSING);
    assert_int_equal(clone_range(from, 0, to, 512, MIB), CLONE_MISSING);
    assert_int_equal(clone_range(from, 0, to, 0, MIB + 1), CLONE_MISSING);
    assert_int_equal(clone_range(from, 4 * MIB, to, 4 * MIB, LARGE - 4 * MIB), CLONE_DONE);
    assert_int_equal(clone_range(from, 4 * MIB, to, 4 * MIB, LARGE), CLONE_MISSING);
    close(to);
    close(from);
}

/* ---- the file systems ---- */

static bool runs(const char *form, const char *a, const char *b)
{
    char *line = mem_printf(form, a, b);
    bool ok = system(line) == 0;

    free(line);
    return ok;
}

/* Mounts an image on dir/on, in this process's mounts alone. */
static bool mounts(const char *kind, const char *dir)
{
    char *image = mem_printf("%s/%s", dir, kind), *on = mem_printf("%s/on", dir);
    char *make = mem_printf("PATH=$PATH:/sbin:/usr/sbin mkfs.%s -q", kind);
    int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && ftruncate(fd, (off_t)(400 * MIB)) == 0 &&
              runs("%s %s >/dev/null 2>&1", make, image) && (mkdir(on, 0700) == 0 || true) &&
              runs("mount -o loop %s %s 2>/dev/null", image, on);

    if (fd >= 0)
        close(fd);
    unlink(image);
    free(make);
    free(on);
    free(image);
    return ok;
}

static int run_on(const char *kind, const char *dir)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_large_file_shares_the_blocks_of_the_store),
        TEST(a_damaged_object_is_found_in_the_clone),
        TEST(a_tree_of_the_node_shares_its_blocks_if_they_are_the_same),
        TEST(only_whole_blocks_are_shared),
    };
    char *on = mem_printf("%s/on", dir);
    int failed;

    if (!mounts(kind, dir)) {
        fprintf(stderr, "skipped: no %s could be made and mounted here\n", kind);
        free(on);
        return -1;
    }
    setenv("TMPDIR", on, 1);
    failed = cmocka_run_group_tests_name(kind, tests, NULL, NULL);
    umount(on);
    free(on);
    return failed;
}

int main(void)
{
    static const char *const kinds[] = {"xfs", "btrfs"};
    const char *top = getenv("TMPDIR");
    char *dir = mem_printf("%s/belay-clone.XXXXXX", top ? top : "/tmp"), *on;
    int failed = 0, ran = 0;

    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || !mkdtemp(dir)) {
        fprintf(stderr, "skipped: only root may mount the images\n");
        return SKIPPED;
    }
    discard_log();
    for (size_t i = 0; i < 2; i++) {
        int now = run_on(kinds[i], dir);

        ran += now >= 0;
        failed += now > 0 ? now : 0;
    }
    on = mem_printf("%s/on", dir);
    rmdir(on);
    rmdir(dir);
    free(on);
    free(dir);
    return failed ? 1 : ran ? 0 : SKIPPED;
}
