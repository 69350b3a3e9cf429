/* SPDX-License-Identifier: Apache-2.0
 *
 * At every call to the store something else happens concurrently. (Failing calls are in
 * test_stores.c.)
 */
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include "ckpt/store/layout.h"
#include "tests/ckpt/store_fault.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The store behind a fault, for one operation. */
static void plant(struct scratch *s, struct store_fault *f, enum fault_mode mode, int at)
{
    store_fault_init(f, s->job.store, mode, at);
    s->job.store = &f->base;
}

static void unplant(struct scratch *s, struct store_fault *f)
{
    s->job.store = f->inner;
}

static void two_checkpoints(struct scratch *s)
{
    struct err e;

    OK(ckpt_fence(&s->job, 1, &e));
    make_tree(s->tree, 1);
    save(s, 1, 1);
    make_tree(s->tree, 2);
    write_random(s->tree, "large", (5u << 20) / 2, 2);
}

/* ---- something else happens at a call ---- */

struct takeover {
    struct scratch *s;
    bool committed_before;
};

static void take_over(void *ctx)
{
    struct takeover *t = ctx;
    struct layout_name manifest = layout_manifest(&t->s->job, (struct ckpt_id){1, 2});
    struct err e;
    int64_t size;

    t->committed_before = t->s->job.store->ops->stat(t->s->job.store, manifest.s, &size, &e) == 0;
    OK(ckpt_fence(&t->s->job, 2, &e));
}

/* Attempt 2 claims the job at call `at` of attempt 1's save. */
static bool save_while_fenced(int at, int *n_there)
{
    struct scratch s, direct;
    struct takeover takeover = {.s = &direct};
    struct store_fault f;
    struct ckpt_stats stats;
    struct ckpt_restored r;
    struct err e;
    bool struck;
    int rc;

    scratch_init(&s);
    two_checkpoints(&s);
    direct = s;
    plant(&s, &f, FAULT_HOOK, at);
    f.hook = take_over;
    f.hook_ctx = &takeover;
    rc = ckpt_save(&s.job, (struct ckpt_id){1, 2}, s.tree, -1, NULL, &stats, &e);
    unplant(&s, &f);
    struck = atomic_load(&f.struck) > 0;
    if (rc)
        FAILS(ERR_CONFLICT, rc);
    else
        assert_true(!struck || takeover.committed_before);
    r = restore(&s, 2);
    assert_int_equal(r.damaged, 0);
    if (r.id.sequence == 2)
        assert_same_tree(s.tree, s.out);
    else
        assert_tree_is(s.out, 1);
    *n_there += struck && r.id.sequence == 2;
    make_tree(s.tree, 3);
    save(&s, 2, 1);
    restore(&s, 3);
    assert_tree_is(s.out, 3);
    scratch_deinit(&s);
    return struck;
}

static void a_save_is_never_acknowledged_once_a_later_attempt_has_claimed_the_job(void **state)
{
    int n_there = 0;

    (void)state;
    for (int at = 1; save_while_fenced(at, &n_there); at++)
        assert_in_range(at, 1, 100);
    /* Only at the last moment: between the fence check, the manifest, and the second check. */
    assert_in_range(n_there, 1, 4);
}

struct successor {
    struct scratch *s;
    bool damage; /* the successor finds the newest checkpoint damaged */
};

/* Attempt 2 starts, resumes, and saves the same content successfully. */
static void succeed(void *ctx)
{
    struct successor *next = ctx;
    struct scratch *s = next->s;
    struct ckpt_restored r;
    struct ckpt_stats stats;
    struct err e;

    OK(ckpt_fence(&s->job, 2, &e));
    if (next->damage)
        write_text(path_in(s->store, "lab/jobs/7/manifests"), "0000000001-0000000003.json", "{}");
    OK(ckpt_restore(&s->job, 2, s->out, NULL, &r, &e));
    assert_true(next->damage || r.id.sequence == 3);
    write_text(s->out, "more", "of attempt 2");
    OK(ckpt_save(&s->job, (struct ckpt_id){2, 1}, s->out, -1, NULL, &stats, &e));
}

static bool clean_while_succeeded(int at, bool damage)
{
    struct scratch s, direct;
    struct successor next = {.s = &direct, .damage = damage};
    struct store_fault f;
    struct err e;
    bool struck;

    scratch_init(&s);
    for (int i = 1; i <= 3; i++) {
        make_tree(s.tree, i);
        write_random(s.tree, "large", 2u << 20, i == 3 ? 3 : 1);
        save(&s, 1, i);
    }
    direct = s;
    plant(&s, &f, FAULT_HOOK, at);
    f.hook = succeed;
    f.hook_ctx = &next;
    clean_job(&s.job, 1, 1, &e); /* the result does not matter */
    unplant(&s, &f);
    struck = atomic_load(&f.struck) > 0;
    if (struck) {
        OK(ckpt_verify(&s.job, (struct ckpt_id){2, 1}, &e));
        assert_int_equal(restore(&s, 3).id.attempt, 2);
    }
    scratch_deinit(&s);
    return struck;
}

static void a_stale_clean_cannot_touch_what_a_later_attempt_saved(void **state)
{
    (void)state;
    for (int damage = 0; damage < 2; damage++)
        for (int at = 1; clean_while_succeeded(at, damage); at++)
            assert_in_range(at, 1, 100);
}

/* Pins or cleans, through a second store, during a call of the first. */
struct meanwhile {
    struct scratch *s;
    bool pins;
    int rc;
};

static void do_meanwhile(void *ctx)
{
    struct meanwhile *w = ctx;
    struct err e;

    w->rc = w->pins ? ckpt_pin(&w->s->job, (struct ckpt_id){1, 1}, &e)
                    : clean_job(&w->s->job, 1, 1, &e);
}

/* A checkpoint whose pin was acknowledged exists, now and after the next cleaning. */
static bool pin_against_clean(int at, bool pin_comes_between)
{
    struct scratch s, direct;
    struct meanwhile other = {.s = &direct, .pins = pin_comes_between};
    struct store_fault f;
    struct err e;
    bool struck, pinned;
    int rc;

    scratch_init(&s);
    for (int i = 1; i <= 3; i++) {
        make_tree(s.tree, i);
        save(&s, 1, i);
    }
    direct = s;
    plant(&s, &f, FAULT_HOOK, at);
    f.hook = do_meanwhile;
    f.hook_ctx = &other;
    rc = pin_comes_between ? clean_job(&s.job, 1, 1, &e)
                           : ckpt_pin(&s.job, (struct ckpt_id){1, 1}, &e);
    unplant(&s, &f);
    struck = atomic_load(&f.struck) > 0;
    pinned = struck && (pin_comes_between ? other.rc == 0 : rc == 0);
    if (struck)
        assert_int_equal(pin_comes_between ? rc : other.rc, 0);
    for (int i = 0; i < 2; i++) {
        if (pinned)
            OK(ckpt_verify(&s.job, (struct ckpt_id){1, 1}, &e));
        OK(ckpt_verify(&s.job, (struct ckpt_id){1, 3}, &e));
        OK(clean_job(&s.job, 1, 1, &e));
    }
    if (struck)
        assert_int_equal(find_objects(&s, "/pins/", NULL, 0), pinned);
    scratch_deinit(&s);
    return struck;
}

static void what_was_pinned_while_it_was_cleaned_is_there_or_was_not_pinned(void **state)
{
    (void)state;
    for (int at = 1; pin_against_clean(at, true); at++)
        assert_in_range(at, 1, 100);
    for (int at = 1; pin_against_clean(at, false); at++)
        assert_in_range(at, 1, 100);
}

#define LARGE_FILES 6

static void write_large_files(struct scratch *s, uint64_t seed)
{
    for (int i = 0; i < LARGE_FILES; i++) {
        char name[32];

        snprintf(name, sizeof(name), "large%d", i);
        write_random(s->tree, name, MANIFEST_CUT_BYTES, seed + (uint64_t)i);
    }
}

/* Neither names nor sizes nor modification times change. */
static void rewrite_all(void *ctx)
{
    write_large_files(ctx, 100);
}

static void replace_a_file(void *ctx)
{
    struct scratch *s = ctx;

    write_text(s->dir, "new", "tree 3\n");
    assert_int_equal(rename(path_in(s->dir, "new"), path_in(s->tree, "number")), 0);
}

static void add_a_file(void *ctx)
{
    write_text(((struct scratch *)ctx)->tree, "sub/new", "x");
}

static void remove_a_file(void *ctx)
{
    assert_int_equal(unlink(path_in(((struct scratch *)ctx)->tree, "sub/noise")), 0);
}

/* Returns when the file clock has advanced, so that a change alters a stamp. */
static void make_large_tree(struct scratch *s)
{
    struct timespec now;
    struct stat st;

    make_tree(s->tree, 2);
    write_large_files(s, 1);
    assert_int_equal(stat(s->tree, &st), 0);
    do
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    while ((now.tv_sec - st.st_ctim.tv_sec) * 1000 + (now.tv_nsec - st.st_ctim.tv_nsec) / 1000000 <
           20);
}

static bool save_while_changed(int at, void (*change)(void *ctx))
{
    struct scratch s, expected;
    struct store_fault f;
    struct ckpt_stats stats;
    struct err e;
    bool struck;
    int rc;

    scratch_init(&s);
    make_large_tree(&s);
    plant(&s, &f, FAULT_HOOK, at);
    f.hook = change;
    f.hook_ctx = &s;
    rc = ckpt_save(&s.job, (struct ckpt_id){1, 1}, s.tree, -1, NULL, &stats, &e);
    unplant(&s, &f);
    struck = atomic_load(&f.struck) > 0;
    if (rc) {
        FAILS(ERR_UNAVAILABLE, rc);
        assert_true(strstr(e.text, "number") || strstr(e.text, "sub") || strstr(e.text, "large"));
        assert_int_equal(find_objects(&s, "/manifests/", NULL, 0), 0);
    } else {
        /* The change came before the first scan or after the last one: either state, but complete.
         */
        restore(&s, 2);
        if (!is_same_tree(s.tree, s.out)) {
            scratch_init(&expected);
            make_large_tree(&expected);
            assert_same_tree(expected.tree, s.out);
            scratch_deinit(&expected);
        }
    }
    scratch_deinit(&s);
    return struck;
}

static void a_directory_that_changes_is_saved_as_one_moment_of_it_or_not_at_all(void **state)
{
    void (*const changes[])(void *) = {rewrite_all, replace_a_file, add_a_file, remove_a_file};

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
        for (int at = 1; save_while_changed(at, changes[i]); at++)
            assert_in_range(at, 1, 100);
}

/* ---- a store that is full ---- */

static int save_with(struct scratch *s, int64_t sequence, int keep, struct err *e)
{
    const struct ckpt_save_with with = {.keep.newest = keep};
    struct ckpt_stats stats;

    make_tree(s->tree, sequence);
    return ckpt_save_with(
        &s->job, (struct ckpt_id){1, sequence}, s->tree, sequence, NULL, &with, &stats, e);
}

/* Each write of a save in turn finds the store full, once, including the last, the manifest's. */
static void a_write_that_does_not_fit_takes_the_oldests_place(void **state)
{
    (void)state;
    int struck = 1;

    for (int at = 1; struck > 0; at++) {
        struct scratch s;
        struct store_fault f;
        struct err e;

        scratch_init(&s);
        for (int64_t n = 1; n <= 3; n++)
            OK(save_with(&s, n, 3, &e));
        store_fault_init(&f, s.job.store, FAULT_ONCE, at);
        f.kind = ERR_NO_SPACE;
        f.of_writes = true;
        s.job.store = &f.base;
        OK(save_with(&s, 4, 3, &e));
        s.job.store = f.inner;
        struck = atomic_load(&f.struck);
        if (struck)
            FAILS(ERR_NOT_FOUND, ckpt_verify(&s.job, (struct ckpt_id){1, 1}, &e));
        for (int64_t n = struck ? 2 : 1; n <= 4; n++)
            OK(ckpt_verify(&s.job, (struct ckpt_id){1, n}, &e));
        assert_int_equal(restore(&s, 2).id.sequence, 4);
        assert_tree_is(s.out, 4);
        assert_true(struck || at > 2); /* a chunk, the manifest */
        scratch_deinit(&s);
    }
}

/* ---- a disk that is really full ---- */

/* The disk of this machine, not of the store. */
static void restore_to_a_full_disk(struct scratch *s)
{
    struct ckpt_restored r;
    struct err e;

    make_dir(s->dir, "disk");
    assert_int_equal(mount("tmpfs", path_in(s->dir, "disk"), "tmpfs", 0, "size=64k"), 0);
    write_random(s->tree, "large", 256u << 10, 2);
    save(s, 1, 3);
    FAILS(ERR_NO_SPACE, ckpt_restore(&s->job, 2, path_in(s->dir, "disk/out"), NULL, &r, &e));
    assert_false(e.of_store);
    assert_int_equal(umount(path_in(s->dir, "disk")), 0);
}

/* In a child with a separate file system: 0 = passed, 77 = not possible here. */
static int fill_a_small_disk(void)
{
    struct scratch s;
    struct ckpt_stats stats;
    struct err e;
    char url[400];

    if ((geteuid() != 0 && unshare(CLONE_NEWUSER) != 0) || unshare(CLONE_NEWNS) != 0)
        return 77;
    scratch_init(&s);
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", s.store, "tmpfs", 0, "size=1m")) {
        scratch_deinit(&s);
        return 77;
    }
    store_close(s.job.store);
    snprintf(url, sizeof(url), "file://%s", s.store);
    OK(store_open(url, NULL, &s.job.store, &e));
    make_tree(s.tree, 1);
    save(&s, 1, 1);
    make_tree(s.tree, 2);
    write_random(s.tree, "large", 2u << 20, 1);
    FAILS(ERR_NO_SPACE, ckpt_save(&s.job, (struct ckpt_id){1, 2}, s.tree, -1, NULL, &stats, &e));
    assert_true(e.of_store);
    restore(&s, 2);
    assert_tree_is(s.out, 1);
    make_tree(s.tree, 3);
    save(&s, 1, 2);
    restore(&s, 2);
    assert_tree_is(s.out, 3);
    restore_to_a_full_disk(&s);
    store_close(s.job.store); /* an open store keeps the file system busy */
    s.job.store = NULL;
    assert_int_equal(umount(s.store), 0);
    scratch_deinit(&s);
    return 0;
}

static void a_full_store_loses_nothing_and_works_again_with_space(void **state)
{
    pid_t pid;
    int status;

    (void)state;
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(fill_a_small_disk());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        print_message("SKIP: no mount namespace here\n");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_save_is_never_acknowledged_once_a_later_attempt_has_claimed_the_job),
        cmocka_unit_test(a_stale_clean_cannot_touch_what_a_later_attempt_saved),
        cmocka_unit_test(what_was_pinned_while_it_was_cleaned_is_there_or_was_not_pinned),
        cmocka_unit_test(a_directory_that_changes_is_saved_as_one_moment_of_it_or_not_at_all),
        cmocka_unit_test(a_write_that_does_not_fit_takes_the_oldests_place),
        cmocka_unit_test(a_full_store_loses_nothing_and_works_again_with_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
