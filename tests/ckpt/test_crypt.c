/* SPDX-License-Identifier: Apache-2.0
 *
 * Encrypted checkpoints: the content of the store, and the handling of wrong keys, swapped objects
 * and unencrypted checkpoints. Damaged bytes are in test_damage.c, which also runs with encryption.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/store/layout.h"
#include "ckpt/sealed.h"
#include "tests/ckpt/tools.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OTHER_KEY "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"
#define PLAIN "what nobody but the job may read"
#define FILE_NAME "a-telling-name"

static void use_keys(struct scratch *s, const char *first, const char *second)
{
    struct err e;

    crypt_wipe(&s->crypt);
    s->crypt.encrypts = true;
    OK(crypt_add(&s->crypt, first, &e));
    if (second)
        OK(crypt_add(&s->crypt, second, &e));
    s->job.crypt = &s->crypt;
}

static int setup(void **state)
{
    scratch_setup(state);
    use_keys(*state, SCRATCH_KEY, NULL);
    return 0;
}

/* ---- sealing ---- */

static void what_is_sealed_opens_with_its_key_and_its_name_only(void **state)
{
    struct scratch *s = *state;
    struct ckpt_crypt other = {0};
    unsigned char p[100 + CRYPT_MORE], sealed[sizeof(p)], again[sizeof(p)];
    struct err e;
    size_t n = 0;

    OK(crypt_add(&other, OTHER_KEY, &e));
    memset(p, 'x', sizeof(p));
    crypt_seal(&s->crypt.keys[0], "name", p, 100);
    memcpy(sealed, p, sizeof(p));
    memset(again, 'x', sizeof(again));
    crypt_seal(&s->crypt.keys[0], "name", again, 100);
    assert_memory_not_equal(sealed, again, 100); /* no two sealings are alike */
    OK(crypt_open(&s->crypt.keys[0], "name", p, sizeof(p), &n, &e));
    assert_int_equal(n, 100);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(p[i], 'x');
    memcpy(p, sealed, sizeof(p));
    FAILS(ERR_CORRUPT, crypt_open(&s->crypt.keys[0], "nama", p, sizeof(p), &n, &e));
    for (size_t i = 0; i < 100; i++) /* the output is wiped */
        assert_int_equal(p[i], 0);
    memcpy(p, sealed, sizeof(p));
    FAILS(ERR_CORRUPT, crypt_open(&other.keys[0], "name", p, sizeof(p), &n, &e));
    for (size_t cut = 0; cut < sizeof(p); cut++) {
        memcpy(p, sealed, sizeof(p));
        FAILS(ERR_CORRUPT, crypt_open(&s->crypt.keys[0], "name", p, cut, &n, &e));
    }
    memset(p, 0, sizeof(p)); /* empty content can be sealed */
    crypt_seal(&s->crypt.keys[0], "name", p, 0);
    OK(crypt_open(&s->crypt.keys[0], "name", p, CRYPT_MORE, &n, &e));
    assert_int_equal(n, 0);
}

static void a_key_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"", "00", SCRATCH_KEY "00",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g",
        "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"};
    struct ckpt_crypt c = {0};
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        FAILS(ERR_INVALID, crypt_add(&c, bad[i], &e));
        assert_null(strstr(e.text, "0102"));
    }
    for (int i = 0; i < CRYPT_KEYS_MAX; i++)
        OK(crypt_add(&c, SCRATCH_KEY, &e));
    FAILS(ERR_INVALID, crypt_add(&c, SCRATCH_KEY, &e));
    assert_non_null(crypt_find(&c, c.keys[0].id));
    assert_null(crypt_find(&c, "0123456789abcdef"));
    assert_null(crypt_find(NULL, "0123456789abcdef"));
    crypt_wipe(&c);
    assert_int_equal(c.n, 0);
}

/* ---- what is in the store ---- */

static void write_state(struct scratch *s, const char *text)
{
    write_text(s->tree, FILE_NAME, text);
}

static bool store_has(struct scratch *s, const char *text)
{
    char names[64][600];
    size_t n = find_objects(s, "", names, 64);
    bool found = false;
    struct err e;

    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++) {
        struct buf b = {0};

        OK(fs_read(path_in(s->store, names[i]), 1u << 24, &b, &e));
        found =
            found || strstr(names[i], text) || (b.len && memmem(b.data, b.len, text, strlen(text)));
        buf_deinit(&b);
    }
    return found;
}

static void the_store_tells_nothing_of_contents_names_or_hashes(void **state)
{
    struct scratch *s = *state;
    char hash[CHUNK_HEX_SIZE];

    write_state(s, PLAIN);
    chunk_hash(PLAIN, strlen(PLAIN), hash);
    s->job.crypt = NULL;
    save(s, 1, 1);
    /* verifies the test itself */
    assert_true(store_has(s, PLAIN) && store_has(s, FILE_NAME) && store_has(s, hash));
    assert_int_equal(fs_remove_tree(path_in(s->store, "lab"), NULL), 0);
    s->job.crypt = &s->crypt;
    save(s, 1, 1);
    assert_false(store_has(s, PLAIN) || store_has(s, FILE_NAME) || store_has(s, hash));
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
}

static void another_job_has_other_names_for_the_same_content(void **state)
{
    struct scratch *s = *state;
    char first[CRYPT_NAME_HEX + 1], second[CRYPT_NAME_HEX + 1], hash[CHUNK_HEX_SIZE];
    struct err e;

    OK(crypt_add(&s->crypt, OTHER_KEY, &e));
    chunk_hash(PLAIN, strlen(PLAIN), hash);
    crypt_name(&s->crypt.keys[0], hash, first);
    crypt_name(&s->crypt.keys[1], hash, second);
    assert_string_not_equal(first, second);
    assert_string_not_equal(first, hash);
}

static void content_that_is_there_is_not_sent_again(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;

    write_random(s->tree, "large", 5u << 20, 1);
    write_state(s, PLAIN);
    stats = save(s, 1, 1);
    assert_in_range(stats.stored_bytes, 5 << 20, (5 << 20) + 1000);
    assert_int_equal(save(s, 1, 2).stored_bytes, 0);
    assert_int_equal(save(s, 2, 1).stored_bytes, 0); /* linked from the previous attempt */
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
}

/* ---- keys ---- */

static void without_the_key_a_checkpoint_stays_and_says_what_it_needs(void **state)
{
    struct scratch *s = *state;
    struct ckpt_restored r;
    struct ckpt_stats stats;
    struct err e;

    write_state(s, PLAIN);
    save(s, 1, 1);
    for (int round = 0; round < 2; round++) {
        if (round == 0)
            s->job.crypt = NULL;
        else
            use_keys(s, OTHER_KEY, NULL);
        FAILS(ERR_UNSUPPORTED, ckpt_restore(&s->job, 2, s->out, NULL, &r, &e));
        assert_non_null(strstr(
            e.text, round == 0 ? "there is no key here" : "which is not among the keys here"));
        FAILS(ERR_UNSUPPORTED, ckpt_verify(&s->job, (struct ckpt_id){1, 1}, &e));
        FAILS(ERR_UNSUPPORTED, ckpt_get(&s->job, (struct ckpt_id){1, 1}, s->out, NULL, &stats, &e));
        /* without the key of a kept manifest nothing is removed */
        FAILS(ERR_UNSUPPORTED, clean_job(&s->job, 1, 1, &e));
        assert_int_equal(find_objects(s, "/damaged/", NULL, 0), 0);
        assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 1);
    }
    use_keys(s, SCRATCH_KEY, NULL);
    assert_int_equal(restore(s, 2).damaged, 0);
    assert_same_tree(s->tree, s->out);
}

static void a_new_key_is_for_new_checkpoints_and_the_old_one_for_old_ones(void **state)
{
    struct scratch *s = *state;
    struct err e;

    write_state(s, PLAIN);
    save(s, 1, 1);
    use_keys(s, OTHER_KEY, SCRATCH_KEY);
    assert_int_equal(restore(s, 2).id.sequence, 1);
    assert_true(save(s, 1, 2).stored_bytes > 0); /* under the new one */
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 2);
    OK(clean_job(&s->job, 1, 2, &e));
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 2);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 1}, &e));
    OK(clean_job(&s->job, 1, 1, &e));
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 1);
    use_keys(s, OTHER_KEY, NULL); /* the old one is no longer needed */
    assert_int_equal(restore(s, 2).id.sequence, 2);
    assert_same_tree(s->tree, s->out);
}

/* ---- encrypted ones and others ---- */

static void encryption_can_be_turned_on_and_off_between_two_saves(void **state)
{
    struct scratch *s = *state;
    struct err e;

    make_tree(s->tree, 1);
    for (int i = 1; i <= 4; i++) {
        s->crypt.encrypts = i % 2 == 0;
        assert_true(save(s, 1, i).stored_bytes > 0 || i > 2);
    }
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 2);
    for (int i = 1; i <= 4; i++)
        OK(ckpt_verify(&s->job, (struct ckpt_id){1, i}, &e));
    OK(clean_job(&s->job, 1, 2, &e)); /* one of each */
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 2);
    OK(clean_job(&s->job, 1, 1, &e));
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 1);
    restore(s, 2);
    assert_tree_is(s->out, 1);
}

static void where_encryption_is_required_another_checkpoint_counts_as_damaged(void **state)
{
    struct scratch *s = *state;
    struct ckpt_restored r;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    make_tree(s->tree, 2);
    s->crypt.encrypts = false;
    save(s, 1, 2); /* planted by someone who can write to the store */
    assert_int_equal(restore(s, 2).id.sequence, 2);
    s->crypt.encrypts = s->crypt.refuses_plain = true;
    r = restore(s, 2);
    assert_true(r.id.sequence == 1 && r.damaged == 1);
    assert_non_null(strstr(r.damage, "not encrypted"));
    assert_tree_is(s->out, 1);
}

/* ---- objects in others' places ---- */

static void put_in_place_of(struct scratch *s, const char *name, const char *other)
{
    struct buf b = {0};
    struct err e;

    OK(fs_read(path_in(s->store, other), 1u << 24, &b, &e));
    assert_int_equal(unlink(path_in(s->store, name)), 0);
    write_bytes(s->store, name, b.data, b.len);
    buf_deinit(&b);
}

static void a_chunk_in_anothers_place_is_found(void **state)
{
    struct scratch *s = *state;
    char names[3][600];
    struct ckpt_restored r;

    write_random(s->tree, "a", 1u << 20, 1);
    save(s, 1, 1);
    write_random(s->tree, "b", 1u << 20, 2);
    save(s, 1, 2);
    assert_int_equal(find_objects(s, "/chunks/", names, 3), 2);
    put_in_place_of(s, names[0], names[1]); /* of the same size, and sealed with the same key */
    r = restore(s, 2);
    assert_true(r.damaged >= 1);
    assert_non_null(strstr(r.damage, "was put in its place"));
}

static void a_checkpoint_of_another_job_is_not_taken_for_ones_own(void **state)
{
    struct scratch *s = *state;
    struct ckpt_restored r;
    char names[2][600];
    struct err e;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    make_tree(s->tree, 2);
    s->job.job = 8; /* with the same key, so that only the job differs */
    save(s, 1, 1);
    s->job.job = 7;
    assert_int_equal(find_objects(s, "jobs/8/manifests/", names, 2), 1);
    put_in_place_of(s, "lab/jobs/7/manifests/0000000001-0000000001.json", names[0]);
    OK(ckpt_restore(&s->job, 2, s->out, NULL, &r, &e));
    assert_true(r.id.attempt == 0 && r.damaged == 1);
}

static void a_chunk_of_another_job_is_not_taken_for_ones_own(void **state)
{
    struct scratch *s = *state;
    char names[2][600];
    struct ckpt_restored r;
    struct err e;

    write_state(s, PLAIN);
    save(s, 1, 1);
    s->job.job = 8;
    save(s, 1, 1);
    s->job.job = 7;
    assert_int_equal(find_objects(s, "/chunks/", names, 2), 2); /* the same name, in two jobs */
    put_in_place_of(s, names[0], names[1]);
    OK(ckpt_restore(&s->job, 2, s->out, NULL, &r, &e));
    assert_true(r.id.attempt == 0 && r.damaged == 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_sealed_opens_with_its_key_and_its_name_only),
        TEST(a_key_that_is_none_is_refused),
        TEST(the_store_tells_nothing_of_contents_names_or_hashes),
        TEST(another_job_has_other_names_for_the_same_content),
        TEST(content_that_is_there_is_not_sent_again),
        TEST(without_the_key_a_checkpoint_stays_and_says_what_it_needs),
        TEST(a_new_key_is_for_new_checkpoints_and_the_old_one_for_old_ones),
        TEST(encryption_can_be_turned_on_and_off_between_two_saves),
        TEST(where_encryption_is_required_another_checkpoint_counts_as_damaged),
        TEST(a_chunk_in_anothers_place_is_found),
        TEST(a_checkpoint_of_another_job_is_not_taken_for_ones_own),
        TEST(a_chunk_of_another_job_is_not_taken_for_ones_own),
    };

    discard_log();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
