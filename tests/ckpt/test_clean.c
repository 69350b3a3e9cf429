/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void the_newest_are_kept_and_nothing_else(void **state)
{
    struct scratch *s = *state;
    struct err e;

    OK(ckpt_fence(&s->job, 1, &e));
    for (int i = 1; i <= 6; i++) {
        make_tree(s->tree, i);
        save(s, i < 4 ? 1 : 2, i);
    }
    OK(ckpt_fence(&s->job, 2, &e));
    OK(clean_job(&s->job, 2, 4, &e));
    assert_int_equal(find_objects(s, "/manifests/", NULL, 0), 4);
    /* 3 and 5 have all in one pack; 4 and 6 have what changed since in another */
    assert_int_equal(find_objects(s, "/chunks/0000000001/", NULL, 0), 1);
    assert_int_equal(find_objects(s, "/chunks/0000000002/", NULL, 0), 4); /* 3's is linked */
    assert_int_equal(find_objects(s, "/fences/", NULL, 0), 1);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 3}, &e));
    OK(clean_job(&s->job, 2, 1, &e));
    assert_int_equal(find_objects(s, "", NULL, 0), 4); /* with two packs */
    restore(s, 3);
    assert_tree_is(s->out, 6);
    assert_false(fs_exists(path_in(s->store, "lab/jobs/7/chunks/0000000001")));
}

static void a_chunk_that_a_kept_manifest_names_stays(void **state)
{
    struct scratch *s = *state;
    struct err e;

    make_tree(s->tree, 1);
    write_random(s->tree, "large", 2u << 20, 1);
    save(s, 1, 1);
    make_tree(s->tree, 2);
    write_random(s->tree, "large", 2u << 20, 1);
    save(s, 1, 2);
    save(s, 2, 1);
    OK(clean_job(&s->job, 2, 1, &e));
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
    save(s, 2, 2);
    OK(clean_job(&s->job, 2, 1, &e));
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
}

static void save_and_clean(struct scratch *s, struct ckpt_seen *seen, int sequence)
{
    const struct ckpt_save_with with = {.seen = seen};
    struct ckpt_stats stats;
    struct err e;

    make_tree(s->tree, sequence);
    write_random(s->tree, "large", 2u << 20, (uint64_t)sequence);
    OK(ckpt_save_with(
        &s->job, (struct ckpt_id){1, sequence}, s->tree, -1, NULL, &with, &stats, &e));
    OK(ckpt_clean_with(&s->job, 1, (struct ckpt_keep){.newest = 2}, seen, NULL, NULL, &e));
}

/* Shown by one that is damaged: to read it would be to set it aside. */
static void a_manifest_that_the_attempt_knows_is_not_read(void **state)
{
    static const char damaged[] = "lab/jobs/7/manifests/0000000001-0000000003.json";
    struct ckpt_seen *seen = ckpt_seen_create();
    struct scratch *s = *state;
    struct err e;

    OK(ckpt_fence(&s->job, 1, &e));
    for (int i = 1; i <= 4; i++)
        save_and_clean(s, seen, i);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 3}, &e));
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 4}, &e));
    size_t n = find_objects(s, "/chunks/", NULL, 0);
    OK(clean_job(&s->job, 1, 2, &e)); /* finds nothing else to remove */
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), n);
    write_text(s->store, damaged, "x");
    OK(ckpt_clean_with(&s->job, 1, (struct ckpt_keep){.newest = 2}, seen, NULL, NULL, &e));
    assert_int_equal(find_objects(s, "/damaged/", NULL, 0), 0);
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), n);
    OK(clean_job(&s->job, 1, 2, &e));
    assert_int_equal(find_objects(s, "/damaged/", NULL, 0), 1);
    /* What another cleaning read is remembered, too. */
    ckpt_seen_destroy(seen);
    seen = ckpt_seen_create();
    save_and_clean(s, seen, 5);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 4}, &e));
    save_and_clean(s, seen, 6);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 5}, &e));
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 6}, &e));
    ckpt_seen_destroy(seen);
}

static void what_killed_saves_left_is_removed(void **state)
{
    struct scratch *s = *state;
    struct err e;

    make_tree(s->tree, 1);
    save(s, 2, 1);
    write_text(path_in(s->store, "lab/jobs/7/manifests"), "0000000002-0000000002.json.a1B2c3", "{");
    write_text(path_in(s->store, "lab/jobs/7/chunks/0000000002"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc");
    write_text(path_in(s->store, "lab/jobs/7/chunks/0000000002"), "ba78.zzzzzz", "abc");
    OK(s->job.store->ops->create(s->job.store, "lab/jobs/7/chunks/0000000003/x", "x", 1, &e));
    OK(clean_job(&s->job, 2, 3, &e));
    assert_int_equal(find_objects(s, "", NULL, 0), 3);
    assert_int_equal(find_objects(s, "0000000003", NULL, 0), 1); /* not ours to remove */
    restore(s, 3);
    assert_tree_is(s->out, 1);
}

static void save_numbered(struct scratch *s, int64_t attempt, int from, int to)
{
    for (int i = from; i <= to; i++) {
        make_tree(s->tree, i);
        save(s, attempt, i);
    }
}

static bool is_there(struct scratch *s, int64_t attempt, int64_t sequence)
{
    struct err e;
    int rc = ckpt_verify(&s->job, (struct ckpt_id){attempt, sequence}, &e);

    assert_true(rc == 0 || rc == ERR_NOT_FOUND);
    return rc == 0;
}

static void every_kth_is_kept_besides_the_newest(void **state)
{
    struct scratch *s = *state;
    struct err e;

    save_numbered(s, 1, 1, 9);
    OK(ckpt_clean(&s->job, 1, (struct ckpt_keep){.newest = 2, .every = 4}, NULL, NULL, &e));
    for (int i = 1; i <= 9; i++)
        assert_int_equal(is_there(s, 1, i), i == 4 || i == 8 || i == 9);
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 2 + 2 + 1); /* packs of 4, 8 and 9 */
    int64_t some = 0, one = 0;
    OK(ckpt_clean(&s->job, 1, (struct ckpt_keep){.newest = 2, .every = 4}, NULL, &some, &e));
    OK(ckpt_clean(&s->job, 1, (struct ckpt_keep){.newest = 1}, NULL, &one, &e));
    assert_int_equal(find_objects(s, "/manifests/", NULL, 0), 1);
    assert_true(one > 0 && some >= 3 * one / 2); /* three of similar size, then one */
    FAILS(ERR_INVALID,
        ckpt_clean(&s->job, 1, (struct ckpt_keep){.newest = 1, .every = -1}, NULL, NULL, &e));
}

static void a_pinned_checkpoint_stays_until_it_is_unpinned(void **state)
{
    struct scratch *s = *state;
    struct ckpt_id first = {1, 1};
    struct ckpt_stats stats;
    struct err e;

    save_numbered(s, 1, 1, 4);
    OK(ckpt_pin(&s->job, first, &e));
    OK(ckpt_pin(&s->job, first, &e));
    OK(clean_job(&s->job, 1, 1, &e));
    OK(ckpt_fence(&s->job, 2, &e));
    save_numbered(s, 2, 5, 6);
    OK(clean_job(&s->job, 2, 1, &e));
    OK(ckpt_get(&s->job, first, s->out, NULL, &stats, &e));
    assert_tree_is(s->out, 1);
    assert_int_equal(find_objects(s, "/manifests/", NULL, 0), 2);
    FAILS(ERR_CONFLICT, ckpt_remove(&s->job, first, &e));
    assert_true(is_there(s, 1, 1));
    FAILS(ERR_NOT_FOUND, ckpt_pin(&s->job, (struct ckpt_id){1, 2}, &e));
    assert_int_equal(find_objects(s, "/pins/", NULL, 0), 1);
    OK(ckpt_unpin(&s->job, first, &e));
    OK(ckpt_unpin(&s->job, first, &e));
    OK(clean_job(&s->job, 2, 1, &e));
    /* the newest with its two packs, and the fence */
    assert_int_equal(find_objects(s, "", NULL, 0), 4);
}

static void a_closed_store_takes_no_save_and_can_be_emptied_but_for_pins(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct err e;
    bool closed;

    OK(ckpt_fence(&s->job, 1, &e));
    OK(ckpt_fence(&s->job, 2, &e));
    save_numbered(s, 2, 1, 3);
    write_text(s->store, "lab/jobs/7/manifests/0000000001-0000000009.json", "{");
    restore(s, 2); /* sets it aside */
    OK(ckpt_is_closed(&s->job, &closed, &e));
    assert_false(closed);
    OK(ckpt_fence(&s->job, CKPT_CLOSED, &e));
    OK(ckpt_fence(&s->job, CKPT_CLOSED, &e));
    OK(ckpt_is_closed(&s->job, &closed, &e));
    assert_true(closed);
    FAILS(ERR_CONFLICT, ckpt_save(&s->job, (struct ckpt_id){2, 4}, s->tree, -1, NULL, &stats, &e));
    assert_string_equal(e.text, "save checkpoint 2.4 of job 7: fenced: job 7 has ended");
    FAILS(ERR_CONFLICT, ckpt_fence(&s->job, 3, &e));
    FAILS(ERR_CONFLICT, clean_job(&s->job, 2, 1, &e));
    OK(ckpt_pin(&s->job, (struct ckpt_id){2, 2}, &e));
    OK(clean_job(&s->job, CKPT_CLOSED, 1, &e));
    assert_int_equal(find_objects(s, "jobs/7/manifests/", NULL, 0), 2);
    assert_int_equal(find_objects(s, "/damaged/", NULL, 0), 1);
    OK(clean_job(&s->job, CKPT_CLOSED, 0, &e));
    assert_true(is_there(s, 2, 2));
    assert_int_equal(find_objects(s, "/damaged/", NULL, 0), 0);
    OK(ckpt_unpin(&s->job, (struct ckpt_id){2, 2}, &e));
    OK(clean_job(&s->job, CKPT_CLOSED, 0, &e));
    assert_int_equal(find_objects(s, "", NULL, 0), 1); /* it stays closed */
    OK(ckpt_is_closed(&s->job, &closed, &e));
    assert_true(closed);
    FAILS(ERR_INVALID, clean_job(&s->job, 2, 0, &e));
    FAILS(ERR_INVALID, clean_job(&s->job, CKPT_CLOSED + 1, 1, &e));
}

static void one_is_removed_with_its_chunks_only_when_no_save_can_be_under_way(void **state)
{
    struct scratch *s = *state;
    struct err e;

    save_numbered(s, 1, 1, 3);
    OK(ckpt_remove(&s->job, (struct ckpt_id){1, 2}, &e));
    FAILS(ERR_NOT_FOUND, ckpt_remove(&s->job, (struct ckpt_id){1, 2}, &e));
    assert_false(is_there(s, 1, 2));
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 3);
    OK(ckpt_fence(&s->job, CKPT_CLOSED, &e));
    OK(ckpt_remove(&s->job, (struct ckpt_id){1, 3}, &e));
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 1);
    assert_true(is_there(s, 1, 1));
}

static void what_a_killed_cleaning_condemned_is_put_back_if_it_is_pinned(void **state)
{
    struct scratch *s = *state;
    struct err e;

    save_numbered(s, 1, 1, 3);
    for (int i = 1; i <= 2; i++) {
        char from[64], to[64];

        snprintf(from, sizeof(from), "lab/jobs/7/manifests/0000000001-%010d.json", i);
        snprintf(to, sizeof(to), "lab/jobs/7/removing/0000000001-%010d.json", i);
        OK(s->job.store->ops->rename(s->job.store, from, to, &e));
    }
    OK(s->job.store->ops->create(s->job.store, "lab/jobs/7/pins/0000000001-0000000002", "", 0, &e));
    OK(clean_job(&s->job, 1, 1, &e));
    assert_false(is_there(s, 1, 1));
    assert_true(is_there(s, 1, 2));
    assert_true(is_there(s, 1, 3));
    assert_int_equal(find_objects(s, "/removing/", NULL, 0), 0);
}

static void a_cleaning_can_be_cancelled(void **state)
{
    struct scratch *s = *state;
    atomic_int cancel = 1;
    struct err e;

    save_numbered(s, 1, 1, 3);
    FAILS(
        ERR_CANCELLED, ckpt_clean(&s->job, 1, (struct ckpt_keep){.newest = 1}, &cancel, NULL, &e));
    for (int i = 1; i <= 3; i++)
        assert_true(is_there(s, 1, i));
}

static void a_checkpoint_is_put_only_where_nothing_is(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct err e;

    save_numbered(s, 1, 1, 2);
    OK(ckpt_get(&s->job, (struct ckpt_id){1, 1}, s->out, NULL, &stats, &e));
    assert_tree_is(s->out, 1);
    FAILS(ERR_CONFLICT, ckpt_get(&s->job, (struct ckpt_id){1, 2}, s->out, NULL, &stats, &e));
    assert_tree_is(s->out, 1);
    OK(fs_remove_tree(s->out, &e));
    assert_int_equal(mkdir(s->out, 0700), 0);
    OK(ckpt_get(&s->job, (struct ckpt_id){1, 2}, s->out, NULL, &stats, &e));
    assert_tree_is(s->out, 2);
    FAILS(ERR_NOT_FOUND,
        ckpt_get(&s->job, (struct ckpt_id){1, 3}, path_in(s->dir, "new"), NULL, &stats, &e));
    assert_false(fs_exists(path_in(s->dir, "new")));
    write_text(s->dir, "file", "");
    FAILS(ERR_CONFLICT,
        ckpt_get(&s->job, (struct ckpt_id){1, 1}, path_in(s->dir, "file"), NULL, &stats, &e));
}

static void more_objects_than_one_remove_takes_are_removed(void **state)
{
    struct scratch *s = *state;
    char name[128];
    struct err e;

    for (int i = 0; i < 2 * STORE_REMOVE_MAX + 1; i++) {
        snprintf(name, sizeof(name), "lab/jobs/7/chunks/0000000001/%064d", i);
        OK(s->job.store->ops->create(s->job.store, name, "", 0, &e));
    }
    OK(clean_job(&s->job, 1, 1, &e));
    assert_int_equal(find_objects(s, "", NULL, 0), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_newest_are_kept_and_nothing_else),
        TEST(a_chunk_that_a_kept_manifest_names_stays),
        TEST(a_manifest_that_the_attempt_knows_is_not_read),
        TEST(what_killed_saves_left_is_removed),
        TEST(every_kth_is_kept_besides_the_newest),
        TEST(a_pinned_checkpoint_stays_until_it_is_unpinned),
        TEST(a_closed_store_takes_no_save_and_can_be_emptied_but_for_pins),
        TEST(one_is_removed_with_its_chunks_only_when_no_save_can_be_under_way),
        TEST(what_a_killed_cleaning_condemned_is_put_back_if_it_is_pinned),
        TEST(a_cleaning_can_be_cancelled),
        TEST(a_checkpoint_is_put_only_where_nothing_is),
        TEST(more_objects_than_one_remove_takes_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
