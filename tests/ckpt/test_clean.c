/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include <stdio.h>
#include <string.h>

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
    OK(ckpt_clean(&s->job, 2, 4, &e));
    assert_int_equal(find_objects(s, "/manifests/", NULL, 0), 4);
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 4);
    assert_int_equal(find_objects(s, "/fences/", NULL, 0), 1);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 3}, &e));
    OK(ckpt_clean(&s->job, 2, 1, &e));
    assert_int_equal(find_objects(s, "", NULL, 0), 3);
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
    OK(ckpt_clean(&s->job, 2, 1, &e));
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
    save(s, 2, 2);
    OK(ckpt_clean(&s->job, 2, 1, &e));
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
}

static void what_killed_saves_left_is_swept(void **state)
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
    OK(ckpt_clean(&s->job, 2, 3, &e));
    assert_int_equal(find_objects(s, "", NULL, 0), 3);
    assert_int_equal(find_objects(s, "0000000003", NULL, 0), 1); /* not ours to sweep */
    restore(s, 3);
    assert_tree_is(s->out, 1);
}

static void belayd_cleans_a_job_that_ended(void **state)
{
    struct scratch *s = *state;
    struct err e;

    OK(ckpt_fence(&s->job, 1, &e));
    OK(ckpt_fence(&s->job, 2, &e));
    make_tree(s->tree, 1);
    save(s, 2, 1);
    save(s, 2, 2);
    OK(ckpt_clean(&s->job, INT64_MAX, 1, &e));
    assert_int_equal(find_objects(s, "/manifests/", NULL, 0), 1);
    assert_int_equal(find_objects(s, "/fences/", NULL, 0), 2);
    FAILS(ERR_INVALID, ckpt_clean(&s->job, 2, 0, &e));
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
    OK(ckpt_clean(&s->job, 1, 1, &e));
    assert_int_equal(find_objects(s, "", NULL, 0), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_newest_are_kept_and_nothing_else),
        TEST(a_chunk_that_a_kept_manifest_names_stays),
        TEST(what_killed_saves_left_is_swept),
        TEST(belayd_cleans_a_job_that_ended),
        TEST(more_objects_than_one_remove_takes_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
