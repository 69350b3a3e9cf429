/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are not read again, and saves that have a deadline.
 */
#include "ckpt/seen.h"
#include "base/fs.h"
#include "ckpt/save_deadline.h"
#include "tests/ckpt/store_fault.h"
#include "tests/ckpt/tools.h"
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define N_FILES 5
#define FILE_BYTES (1u << 20)

static char *name_of(int i)
{
    return path_in("large", (const char *[]){"0", "1", "2", "3", "4"}[i]);
}

/* Waits until earlier writes are older than the granularity of stamps. */
static void let_settle(void)
{
    struct timespec start, now;

    clock_gettime(CLOCK_REALTIME_COARSE, &start);
    do
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 40);
}

static bool stamps_are_trusted(const struct scratch *s)
{
    struct statfs fs;

    if (statfs(s->tree, &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC)
        return true;
    print_message("SKIP: %s is not on a file system whose stamps are trusted\n", s->tree);
    return false;
}

static void make_files(struct scratch *s)
{
    make_dir(s->tree, "large");
    for (int i = 0; i < N_FILES; i++)
        write_random(s->tree, name_of(i), FILE_BYTES, (uint64_t)i + 1);
}

static struct ckpt_stats save_seen(struct scratch *s, int64_t sequence, struct ckpt_seen *seen)
{
    struct ckpt_stats stats = {0};
    struct err e;

    OK(ckpt_save_with(&s->job, (struct ckpt_id){1, sequence}, s->tree, -1, NULL,
        &(struct ckpt_save_with){.seen = seen}, &stats, &e));
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
    return stats;
}

static void what_did_not_change_is_not_read_again(void **state)
{
    struct scratch *s = *state;
    struct ckpt_seen *seen = ckpt_seen_create();
    struct ckpt_stats stats;

    make_files(s);
    let_settle();
    assert_int_equal(save_seen(s, 1, seen).unread_bytes, 0);
    if (!stamps_are_trusted(s)) {
        assert_int_equal(save_seen(s, 2, seen).unread_bytes, 0);
        ckpt_seen_destroy(seen);
        return;
    }
    stats = save_seen(s, 2, seen);
    assert_int_equal(stats.unread_bytes, N_FILES * FILE_BYTES);
    assert_int_equal(stats.stored_bytes, 0);
    /* Same name, size, inode and modification time: only the change time differs. */
    write_random(s->tree, name_of(2), FILE_BYTES, 77);
    let_settle(); /* otherwise the machine's load decides whether the next save trusts it */
    stats = save_seen(s, 3, seen);
    assert_int_equal(stats.unread_bytes, (N_FILES - 1) * FILE_BYTES);
    assert_in_range(stats.stored_bytes, FILE_BYTES, FILE_BYTES + 1000);
    /* A rename does not make it another file. */
    assert_int_equal(rename(path_in(s->tree, name_of(0)), path_in(s->tree, "z")), 0);
    let_settle();
    assert_int_equal(save_seen(s, 4, seen).unread_bytes, (N_FILES - 1) * FILE_BYTES);
    ckpt_seen_destroy(seen);
}

static void what_was_written_just_now_is_read_again(void **state)
{
    struct scratch *s = *state;
    struct ckpt_seen *seen = ckpt_seen_create();
    struct seen_save use;
    struct manifest m = {0};
    struct scan scan;
    struct err e;
    int root = open(s->tree, O_RDONLY | O_DIRECTORY);

    make_files(s);
    seen_begin(&use, root);
    seen_attach(&use, seen);
    OK(scan_tree(root, &m, &scan, &e));
    manifest_cut(&m);
    OK(manifest_lay_out(&m, &e));
    for (size_t i = 0; i < scan.n; i++)
        scan.stamps[i].ctime_ns = use.start_ns - 5000000; /* within a tick of the scan */
    seen_plan(&use, &m, &scan);
    for (size_t i = 0; use.usable && i < m.n_chunks; i++)
        assert_false(use.fits[i]);
    for (size_t i = 0; i < scan.n; i++)
        scan.stamps[i].ctime_ns = use.start_ns / 1000000000 * 1000000000; /* whole seconds */
    free(use.keys);
    free(use.fits);
    seen_plan(&use, &m, &scan);
    for (size_t i = 0; use.usable && i < m.n_chunks; i++)
        assert_false(use.fits[i]);
    seen_save_deinit(&use);
    scan_deinit(&scan);
    manifest_deinit(&m);
    close(root);
    ckpt_seen_destroy(seen);
}

static void files_that_may_be_changing_are_read_again(void **state)
{
    struct scratch *s = *state;
    struct ckpt_seen *seen = ckpt_seen_create();
    int64_t others = (N_FILES - 1) * FILE_BYTES;
    char *p;
    int fd;

    if (!stamps_are_trusted(s)) {
        ckpt_seen_destroy(seen);
        return;
    }
    make_files(s);
    fd = open(path_in(s->tree, name_of(1)), O_RDWR);
    assert_true(fd >= 0);
    p = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED);
    close(fd);
    p[0]++; /* the page is dirty, so the next change of it sets no stamp */
    let_settle();
    save_seen(s, 1, seen);
    p[0]++;
    assert_int_equal(save_seen(s, 2, seen).unread_bytes, others);
    assert_int_equal(munmap(p, FILE_BYTES), 0);
    let_settle();
    save_seen(s, 3, seen);
    assert_int_equal(save_seen(s, 4, seen).unread_bytes, others + FILE_BYTES);
    ckpt_seen_destroy(seen);
}

static void what_the_store_has_lost_is_read_and_stored_again(void **state)
{
    struct scratch *s = *state;
    struct ckpt_seen *seen = ckpt_seen_create();
    char names[N_FILES][600];
    struct err e;

    make_files(s);
    let_settle();
    save_seen(s, 1, seen);
    assert_int_equal(find_objects(s, "/chunks/", names, N_FILES), N_FILES);
    assert_int_equal(unlink(path_in(s->store, names[3])), 0);
    assert_in_range(save_seen(s, 2, seen).stored_bytes, FILE_BYTES, FILE_BYTES + 1000);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 2}, &e));
    ckpt_seen_destroy(seen);
}

/* ---- deadlines ---- */

static void a_save_is_given_up_when_it_cannot_be_in_time(void **state)
{
    const int64_t gib = 1 << 30;
    struct err e;

    (void)state;
    OK(save_deadline_check(&(struct save_deadline){4 * gib, 4 * gib, 0, 900, 29100}, &e));
    OK(save_deadline_check(&(struct save_deadline){4 * gib, 4 * gib, 0, 2900, 27100}, &e));
    FAILS(ERR_TIMEOUT,
        save_deadline_check(&(struct save_deadline){4 * gib, 4 * gib, 0, 3100, 26900}, &e));
    /* at 1.5 times the speed */
    OK(save_deadline_check(&(struct save_deadline){4 * gib, 3 * gib, gib, 10000, 20000}, &e));
    FAILS(ERR_TIMEOUT,
        save_deadline_check(
            &(struct save_deadline){4 * gib, 31 * gib / 10, 9 * gib / 10, 10000, 20000}, &e));
    assert_string_equal(
        e.text, "0.9 of 4.0 GiB were stored in 10s; 1.3 GiB too much for this notice");
    FAILS(ERR_TIMEOUT,
        save_deadline_check(&(struct save_deadline){4 * gib, 1, 4 * gib - 1, 10, 0}, &e));
    OK(save_deadline_check(
        &(struct save_deadline){4 * gib, 0, 0, 10, -5}, &e)); /* all of it is in the store */
    FAILS(ERR_TIMEOUT,
        save_deadline_check(&(struct save_deadline){10 << 20, 5 << 20, 2 << 20, 27000, -5}, &e));
    assert_string_equal(
        e.text, "5.0 of 10.0 MiB were stored in 27s; 5.0 MiB too much for this notice");
}

struct waiting {
    int64_t until_ms;
};

static void wait_for_deadline(void *ctx)
{
    while (clock_mono(&clock_system).ms < ((struct waiting *)ctx)->until_ms)
        sched_yield();
}

static void what_was_stored_before_the_deadline_is_found_by_the_next_save(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct store_fault f;
    struct waiting w;
    struct err e;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    for (int i = 0; i < 24; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%02d", i);
        write_random(s->tree, name, FILE_BYTES, (uint64_t)i + 1);
    }
    /* The calls before are lists and the manifest; each file takes a lookup and a put. */
    store_fault_init(&f, s->job.store, FAULT_HOOK_ONWARD, 20);
    f.hook = wait_for_deadline;
    f.hook_ctx = &w;
    s->job.store = &f.base;
    w.until_ms = clock_mono(&clock_system).ms + 1500; /* enough for seven files */
    FAILS(ERR_TIMEOUT, ckpt_save_with(&s->job, (struct ckpt_id){1, 2}, s->tree, -1, NULL,
                           &(struct ckpt_save_with){.deadline_ms = w.until_ms}, &stats, &e));
    s->job.store = f.inner;
    assert_non_null(strstr(e.text, "of 24.0 MiB were stored in "));
    assert_non_null(strstr(e.text, "too much for this notice"));
    restore(s, 2);
    assert_tree_is(s->out, 1);
    stats = save(s, 1, 3);
    assert_true(stats.reused_bytes >= FILE_BYTES);
    assert_true(stats.stored_bytes < 24 * (int64_t)FILE_BYTES);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_did_not_change_is_not_read_again),
        TEST(what_was_written_just_now_is_read_again),
        TEST(files_that_may_be_changing_are_read_again),
        TEST(what_the_store_has_lost_is_read_and_stored_again),
        cmocka_unit_test(a_save_is_given_up_when_it_cannot_be_in_time),
        TEST(what_was_stored_before_the_deadline_is_found_by_the_next_save),
    };
    setenv("TMPDIR", "/var/tmp", 0); /* instead of the usual tmpfs */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
