/* SPDX-License-Identifier: Apache-2.0
 *
 * Content on this machine is not fetched again, it is trusted only by its hashes, and a restore
 * killed at any moment is continued.
 */
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include "base/prng.h"
#include "base/str.h"
#include "ckpt/store/layout.h"
#include "tests/ckpt/store_fault.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LARGE_BYTES ((9u << 20) + 17) /* three chunks; 13 MiB in four in total */
#define KILLS 30

static char *beside(const struct scratch *s, const char *end)
{
    static char path[400];

    snprintf(path, sizeof(path), "%s%s", s->out, end);
    return path;
}

/* Small files that share a chunk, read-only ones, attributes, links, and a file of several
 * chunks. */
static void make_state(struct scratch *s, int64_t number)
{
    make_tree(s->tree, number);
    write_random(s->tree, "large", LARGE_BYTES, (uint64_t)number);
    assert_int_equal(link(path_in(s->tree, "link"), path_in(s->tree, "sub/again")), 0);
    write_text(s->tree, "locked", "nobody writes here");
    assert_int_equal(chmod(path_in(s->tree, "locked"), 0400), 0);
}

static void saved(struct scratch *s)
{
    make_state(s, 1);
    save(s, 1, 1);
}

static struct ckpt_restored restore_near(struct scratch *s, const char *nearby)
{
    const struct ckpt_restore_with with = {.nearby = {"/nowhere", nearby}};
    struct ckpt_restored r;
    struct stat st;
    struct err e;

    OK(ckpt_restore_with(&s->job, 2, s->out, &with, NULL, &r, &e));
    assert_int_equal(r.damaged, 0);
    assert_int_equal(r.id.sequence, 1);
    assert_same_tree(s->tree, s->out);
    assert_false(fs_exists(beside(s, ".restoring")));
    assert_false(fs_exists(beside(s, ".restores")));
    assert_int_equal(lstat(path_in(s->out, "sub/again"), &st), 0);
    assert_int_equal(st.st_nlink, 2);
    return r;
}

static void remove_chunks(struct scratch *s)
{
    struct err e;

    OK(fs_remove_tree(path_in(s->store, "lab/jobs/7/chunks"), &e));
}

/* ---- nearby ---- */

static void what_another_tree_has_is_not_fetched(void **state)
{
    struct scratch *s = *state;
    struct ckpt_restored r;

    saved(s);
    remove_chunks(s);
    r = restore_near(s, s->tree);
    assert_int_equal(r.stats.reused_bytes, r.stats.bytes);
    assert_true(r.stats.bytes > LARGE_BYTES);
}

static void what_another_tree_has_otherwise_is_fetched(void **state)
{
    struct scratch *s = *state;
    char near[400];
    struct ckpt_restored r;
    struct err e;

    saved(s);
    snprintf(near, sizeof(near), "%s/near", s->dir);
    r = restore_near(s, near); /* no such directory */
    assert_int_equal(r.stats.reused_bytes, 0);
    assert_int_equal(rename(s->out, near), 0);
    r = restore_near(s, near);
    assert_int_equal(r.stats.reused_bytes, r.stats.bytes);
    /* A byte of its second chunk. */
    FILE *f = fopen(path_in(near, "large"), "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, 5 << 20, SEEK_SET), 0);
    assert_true(fputc('x', f) != EOF && fclose(f) == 0);
    r = restore_near(s, near);
    assert_int_equal(r.stats.reused_bytes, r.stats.bytes - CKPT_CHUNK_BYTES);
    /* Its end is missing. */
    assert_int_equal(truncate(path_in(near, "large"), LARGE_BYTES - 1), 0);
    r = restore_near(s, near);
    assert_in_range(r.stats.reused_bytes, CKPT_CHUNK_BYTES, r.stats.bytes - CKPT_CHUNK_BYTES - 1);
    OK(fs_remove_tree(path_in(near, "large"), &e));
    restore_near(s, near);
}

static void what_is_in_the_way_is_not_followed_and_never_waited_for(void **state)
{
    struct scratch *s = *state;
    char near[400];
    struct ckpt_restored r;

    saved(s);
    snprintf(near, sizeof(near), "%s/near", s->dir);
    restore_near(s, near);
    assert_int_equal(rename(s->out, near), 0);
    assert_int_equal(rename(path_in(near, "large"), path_in(s->dir, "large")), 0);
    assert_int_equal(symlink("../large", path_in(near, "large")), 0);
    r = restore_near(s, near);
    assert_in_range(r.stats.reused_bytes, 1, r.stats.bytes - LARGE_BYTES);
    assert_int_equal(unlink(path_in(near, "large")), 0);
    assert_int_equal(mkfifo(path_in(near, "large"), 0600), 0);
    restore_near(s, near);
    assert_int_equal(unlink(path_in(near, "large")), 0);
    assert_int_equal(mkdir(path_in(near, "large"), 0700), 0);
    restore_near(s, near);
    restore_near(s, path_in(near, "locked")); /* unreadable directory */
}

/* ---- interrupted ---- */

static void what_failed_in_the_middle_is_gone_on_with(void **state)
{
    struct scratch *s = *state;
    struct store_fault f;
    struct ckpt_restored r;
    struct err e;

    saved(s);
    for (int at = 3; at <= 5; at++) { /* a list, the manifest, chunks in any order */
        store_fault_init(&f, s->job.store, FAULT_ONWARD, at);
        s->job.store = &f.base;
        FAILS(ERR_IO, ckpt_restore(&s->job, 2, s->out, NULL, &r, &e));
        s->job.store = f.inner;
        assert_true(fs_exists(beside(s, ".restoring")));
        assert_false(fs_exists(s->out));
    }
    r = restore_near(s, "/nowhere");
    assert_in_range(r.stats.reused_bytes, 1, r.stats.bytes - 1);
}

/* Everything is in place, and no chunk is in the store. */
static void only_what_is_missing_is_fetched(void **state)
{
    struct scratch *s = *state;
    char sha256[CHUNK_HEX_SIZE];
    struct manifest m;
    struct ckpt_restored r;
    struct err e;

    saved(s);
    r = restore_near(s, "/nowhere");
    OK(layout_read_manifest(&s->job, r.id, &m, &e));
    memcpy(sha256, m.sha256, sizeof(sha256));
    manifest_deinit(&m);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(rename(s->out, beside(s, ".restoring")), 0);
        write_text(s->dir, "out.restores", sha256);
        if (round == 1)
            /* one of the small files */
            write_text(beside(s, ".restoring"), "common", "not what it was");
        r = restore_near(s, "/nowhere");
        if (round == 0)
            assert_int_equal(r.stats.reused_bytes, r.stats.bytes);
        else
            assert_in_range(r.stats.reused_bytes, LARGE_BYTES, r.stats.bytes - 1);
    }
    /* Of another or an unknown manifest. */
    for (int round = 0; round < 2; round++) {
        assert_int_equal(rename(s->out, beside(s, ".restoring")), 0);
        write_text(beside(s, ".restoring"), "stranger", "x");
        sha256[0] = sha256[0] == '0' ? '1' : '0';
        if (round == 0)
            write_text(s->dir, "out.restores", sha256);
        r = restore_near(s, "/nowhere");
        assert_int_equal(r.stats.reused_bytes, 0);
    }
}

static void a_newer_checkpoint_is_not_made_of_an_older_ones_beginning(void **state)
{
    struct scratch *s = *state;
    struct store_fault f;
    struct ckpt_restored r;
    struct err e;

    saved(s);
    store_fault_init(&f, s->job.store, FAULT_ONWARD, 5);
    s->job.store = &f.base;
    FAILS(ERR_IO, ckpt_restore(&s->job, 2, s->out, NULL, &r, &e));
    s->job.store = f.inner;
    OK(fs_remove_tree(path_in(s->tree, "large"), &e));
    write_text(s->tree, "new", "x");
    save(s, 1, 2);
    OK(ckpt_restore(&s->job, 2, s->out, NULL, &r, &e));
    assert_int_equal(r.id.sequence, 2);
    assert_same_tree(s->tree, s->out);
}

static void die(void *ctx)
{
    (void)ctx;
    kill(getpid(), SIGKILL);
}

/* Restores in a child, which is killed at call `at` of the store, or (0) after some time. False if
 * it finished. */
static bool killed(struct scratch *s, int at, int64_t ns)
{
    struct timespec moment = {.tv_nsec = ns};
    struct store_fault f;
    struct ckpt_restored r;
    struct err e;
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        store_fault_init(&f, s->job.store, at ? FAULT_HOOK : FAULT_NONE, at);
        f.hook = die;
        s->job.store = &f.base;
        _exit(ckpt_restore(&s->job, 2, s->out, NULL, &r, &e) != 0);
    }
    if (!at) {
        nanosleep(&moment, NULL); /* not to wait for anything: the random moment itself */
        kill(pid, SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    if (fs_exists(s->out))
        assert_same_tree(s->tree, s->out);
    return WIFSIGNALED(status);
}

static void killed_at_any_call_it_is_gone_on_with(void **state)
{
    struct scratch *s = *state;
    struct err e;
    int at;

    saved(s);
    for (at = 1; killed(s, at, 0); at++) {
        restore_near(s, "/nowhere"); /* how much is in place depends on the threads */
        OK(fs_remove_tree(s->out, &e));
    }
    assert_in_range(at, 5, 20);
}

static void killed_at_any_moment_it_is_gone_on_with(void **state)
{
    struct scratch *s = *state;
    int64_t reused = 0, limit_ns = 20000000;
    int n_killed = 0;
    struct prng prng;
    struct err e;

    saved(s);
    prng_init(&prng, 3);
    for (int i = 0; i < KILLS || n_killed < KILLS / 3 || reused == 0; i++) {
        bool was_killed = killed(s, 0, prng_range(&prng, 0, limit_ns));

        assert_true(i < 20 * KILLS);
        n_killed += was_killed;
        /* aims at half of them finishing */
        limit_ns += was_killed && limit_ns < 900000000 ? limit_ns / 20 : -limit_ns / 10;
        if (i % 3 == 0) /* otherwise continue in the same place */
            continue;
        reused += restore_near(s, "/nowhere").stats.reused_bytes;
        OK(fs_remove_tree(s->out, &e));
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_another_tree_has_is_not_fetched),
        TEST(what_another_tree_has_otherwise_is_fetched),
        TEST(what_is_in_the_way_is_not_followed_and_never_waited_for),
        TEST(what_failed_in_the_middle_is_gone_on_with),
        TEST(only_what_is_missing_is_fetched),
        TEST(a_newer_checkpoint_is_not_made_of_an_older_ones_beginning),
        TEST(killed_at_any_call_it_is_gone_on_with),
        TEST(killed_at_any_moment_it_is_gone_on_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
