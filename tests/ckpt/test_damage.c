/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged bytes in the store.
 */
#include "tests/ckpt/tools.h"

#include "base/fs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has(const struct snapshot *snap, const char *name)
{
    for (size_t i = 0; i < snap->n; i++)
        if (strcmp(snap->names[i], name) == 0)
            return true;
    return false;
}

/* Small states, because every byte will be damaged; half of it compresses. */
static void save_state(struct scratch *s, int number)
{
    char text[300];

    memset(text, '0' + number, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    write_text(s->tree, "state", text);
    write_random(s->tree, "noise", 40, (uint64_t)number);
    save(s, 1, number);
}

/* Object `victim` of the newest checkpoint gets n other bytes: the damage is found, the checkpoint
 * set aside, and the previous one used. A change without effect (an unused bit of a zstd frame) may
 * pass: returns true then. */
static bool restore_damaged(
    struct scratch *s, const struct snapshot *snap, size_t victim, const void *p, size_t n)
{
    struct ckpt_restored r;

    snapshot_put_back(s, snap);
    write_bytes(s->store, snap->names[victim], p, n);
    r = restore(s, 2);
    if (r.damaged == 0) {
        assert_int_equal(r.id.sequence, 2);
        assert_same_tree(s->tree, s->out);
        return true;
    }
    assert_int_equal(r.damaged, 1);
    assert_int_equal(r.id.sequence, 1);
    assert_int_equal(r.progress, 100);
    assert_true(strlen(r.damage) > 10);
    assert_int_equal(find_objects(s, "/damaged/manifests/", NULL, 0), 1);
    assert_int_equal(restore(s, 2).damaged, 0);
    return false;
}

static void a_damaged_byte_anywhere_is_found_and_the_checkpoint_before_is_used(void **state)
{
    struct scratch *s = *state;
    struct snapshot first = {.n = 0}, both = {.n = 0};
    size_t n_passed = 0, n_objects = 0;

    save_state(s, 1);
    snapshot_take(s, &first);
    save_state(s, 2);
    snapshot_take(s, &both);
    for (size_t i = 0; i < both.n; i++) {
        struct buf *b = &both.content[i];
        bool chunk = strstr(both.names[i], "/chunks/") != NULL;

        if (has(&first, both.names[i]))
            continue;
        n_objects++;
        for (size_t at = 0; at < b->len; at++) {
            char *copy = memcpy(malloc(b->len + 1), b->data, b->len);
            bool passed;

            copy[at] = (char)(copy[at] ^ (1 << (at % 8)));
            passed = restore_damaged(s, &both, i, copy, b->len);
            assert_true(!passed || chunk);
            n_passed += passed;
            if (at % 16 == 0) {
                assert_false(restore_damaged(s, &both, i, b->data, at));
                memcpy(copy, b->data, b->len);
                copy[b->len] = 'x';
                assert_false(restore_damaged(s, &both, i, copy, b->len + 1));
            }
            free(copy);
        }
    }
    assert_int_equal(n_objects, 2); /* a chunk and a manifest */
    assert_in_range(n_passed, 0, s->job.crypt ? 0 : 8);
    snapshot_deinit(&first);
    snapshot_deinit(&both);
}

static void a_missing_chunk_is_damage(void **state)
{
    struct scratch *s = *state;
    char names[4][600];
    struct ckpt_restored r;
    size_t n;

    save_state(s, 1);
    make_tree(s->tree, 5);
    write_random(s->tree, "large", 1u << 20, 5);
    save(s, 1, 2);
    n = find_objects(s, "/chunks/", names, 4);
    assert_int_equal(n, 3); /* two packs and the large file */
    for (size_t i = 0; i < n; i++)
        unlink(path_in(s->store, names[i]));
    r = restore(s, 2);
    assert_int_equal(r.id.attempt, 0);
    assert_int_equal(r.damaged, 2);
    assert_non_null(strstr(r.damage, "missing"));
}

static void without_a_fence_nothing_is_set_aside(void **state)
{
    struct scratch *s = *state;
    const struct ckpt_restore_with with = {.only_reads = true};
    struct ckpt_restored r;
    char names[4][600];
    struct err e;

    save_state(s, 1);
    save_state(s, 2);
    assert_int_equal(ckpt_restore_with(&s->job, 2, s->out, &with, NULL, &r, &e), 0);
    assert_int_equal(r.id.sequence, 2);
    assert_same_tree(s->tree, s->out);
    size_t n = find_objects(s, "/chunks/", names, 4);
    for (size_t i = 0; i < n; i++)
        unlink(path_in(s->store, names[i]));
    assert_int_equal(fs_remove_tree(s->out, &e), 0);
    assert_int_equal(ckpt_restore_with(&s->job, 2, s->out, &with, NULL, &r, &e), ERR_CORRUPT);
    assert_int_equal(find_objects(s, "/damaged/", NULL, 0), 0);
    assert_int_equal(find_objects(s, "/manifests/", NULL, 0), 2);
}

static void what_is_damaged_is_written_again_by_the_next_save(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    char names[2][600];
    size_t n;

    /* Found by a restore: same content, other attempt. */
    make_tree(s->tree, 1);
    save(s, 1, 1);
    n = find_objects(s, "/chunks/", names, 2);
    assert_int_equal(n, 1);
    write_text(s->store, names[0], "not what it was");
    assert_int_equal(restore(s, 2).damaged, 1);
    stats = save(s, 2, 1);
    assert_int_equal(stats.reused_bytes, 0);
    restore(s, 3);
    assert_tree_is(s->out, 1);
    /* Truncated, and found by its size: same attempt. */
    n = find_objects(s, "/chunks/0000000002/", names, 2);
    assert_int_equal(n, 1);
    write_text(s->store, names[0], "short");
    stats = save(s, 2, 2);
    assert_int_equal(stats.reused_bytes, 0);
    restore(s, 3);
    assert_tree_is(s->out, 1);
    /* And by its size in the previous attempt. */
    write_text(s->store, names[0], "short");
    stats = save(s, 3, 1);
    assert_int_equal(stats.reused_bytes, 0);
    assert_int_equal(restore(s, 4).damaged, 0);
    assert_tree_is(s->out, 1);
}

static void a_damaged_chunk_takes_all_checkpoints_that_share_it(void **state)
{
    struct scratch *s = *state;
    char names[1][600];
    struct ckpt_restored r;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    find_objects(s, "/chunks/", names, 1);
    write_random(s->tree, "z", 2u << 20, 1); /* a separate chunk: the other one is kept */
    save(s, 1, 2);
    save(s, 1, 3);
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 2);
    write_text(s->store, names[0], "x");
    r = restore(s, 2);
    assert_int_equal(r.damaged, 3);
    assert_int_equal(r.id.attempt, 0);
    save(s, 2, 1);
    assert_int_equal(restore(s, 3).id.attempt, 2);
    assert_same_tree(s->tree, s->out);
}

static void a_clean_counts_intact_manifests_only(void **state)
{
    struct scratch *s = *state;
    struct err e;

    for (int i = 1; i <= 4; i++) {
        make_tree(s->tree, i);
        save(s, 1, i);
    }
    write_text(path_in(s->store, "lab/jobs/7/manifests"), "0000000001-0000000004.json", "{}");
    OK(clean_job(&s->job, 1, 2, &e));
    assert_int_equal(find_objects(s, "jobs/7/manifests/", NULL, 0), 2);
    /* 2 has packs of 1 and 2; 3 has one of all that it has */
    assert_int_equal(find_objects(s, "jobs/7/chunks/", NULL, 0), 3);
    restore(s, 2);
    assert_tree_is(s->out, 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_damaged_byte_anywhere_is_found_and_the_checkpoint_before_is_used),
        TEST(a_missing_chunk_is_damage),
        TEST(without_a_fence_nothing_is_set_aside),
        TEST(what_is_damaged_is_written_again_by_the_next_save),
        TEST(a_damaged_chunk_takes_all_checkpoints_that_share_it),
        TEST(a_clean_counts_intact_manifests_only),
    };

    discard_log();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
