/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/chunk.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/ckpt/tools.h"
#include <stdlib.h>
#include <string.h>

static void the_hash_is_sha_256(void **state)
{
    char hex[CHUNK_HEX_SIZE];

    (void)state;
    chunk_hash("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void fill_random(void *p, size_t n)
{
    struct prng prng;

    prng_init(&prng, 1);
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)p)[i] = (unsigned char)prng_u64(&prng);
}

struct trip {
    size_t n;
    bool random;
    size_t stored; /* out */
};

/* Packs and unpacks one content. */
static int round_trip(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    struct trip *t = &((struct trip *)ctx)[i];
    char hash[CHUNK_HEX_SIZE];
    void *original = mem_alloc(t->n);
    const void *content;
    void *p;
    int rc;

    if (t->random)
        fill_random(original, t->n);
    memcpy(w->content, original, t->n);
    chunk_hash(original, t->n, hash);
    chunk_pack(w, t->n, &p, &t->stored);
    buf_clear(&w->object);
    buf_add(&w->object, p, t->stored);
    memset(w->content, 0xAA, CKPT_CHUNK_BYTES);
    rc = chunk_unpack(w, t->n, hash, &content, e);
    if (!rc)
        assert_memory_equal(content, original, t->n);
    free(original);
    return rc;
}

static void what_is_packed_is_unpacked_and_noise_stays_raw(void **state)
{
    struct trip trips[] = {{1, false, 0}, {100, false, 0}, {CKPT_CHUNK_BYTES, false, 0},
        {1, true, 0}, {1000, true, 0}, {60000, true, 0}, {CKPT_CHUNK_BYTES, true, 0}};
    struct err e;

    (void)state;
    OK(chunk_for_each(7, round_trip, trips, NULL, &e));
    assert_int_equal(trips[0].stored, 1);
    assert_in_range(trips[1].stored, 5, 50);
    assert_in_range(trips[2].stored, 5, 1000);
    for (int i = 3; i < 7; i++)
        assert_int_equal(trips[i].stored, trips[i].n);
}

/* Noise at the sampled positions: the zeros between them are not found. */
static int pack_with_noisy_samples(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    unsigned char *p = w->content;
    size_t middle = CKPT_CHUNK_BYTES / 2 - (8u << 10);
    void *packed;

    (void)i;
    (void)e;
    memset(p, 0, CKPT_CHUNK_BYTES);
    fill_random(p, 16u << 10);
    fill_random(p + middle, 16u << 10);
    fill_random(p + CKPT_CHUNK_BYTES - (16u << 10), 16u << 10);
    for (size_t k = 0; k < (16u << 10); k++) {
        p[middle + k] ^= 0x55;
        p[CKPT_CHUNK_BYTES - 1 - k] ^= (unsigned char)k;
    }
    chunk_pack(w, CKPT_CHUNK_BYTES, &packed, ctx);
    return 0;
}

static void compressing_is_tried_on_a_sample(void **state)
{
    size_t stored = 0;
    struct err e;

    (void)state;
    OK(chunk_for_each(1, pack_with_noisy_samples, &stored, NULL, &e));
    assert_int_equal(stored, CKPT_CHUNK_BYTES);
}

static int unpack_damaged(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    char hash[CHUNK_HEX_SIZE], text[3000];
    struct err why;
    const void *p;
    void *packed;
    size_t n;

    (void)ctx;
    (void)i;
    (void)e;
    memset(text, 'x', sizeof(text));
    chunk_hash(text, sizeof(text), hash);
    memcpy(w->content, text, sizeof(text));
    chunk_pack(w, sizeof(text), &packed, &n);
    assert_true(n < sizeof(text));
    buf_clear(&w->object);
    buf_add(&w->object, packed, n);
    assert_int_equal(chunk_unpack(w, sizeof(text) - 1, hash, &p, &why), ERR_CORRUPT);
    assert_int_equal(chunk_unpack(w, sizeof(text) + 1, hash, &p, &why), ERR_CORRUPT);
    w->object.len = n - 1;
    assert_int_equal(chunk_unpack(w, sizeof(text), hash, &p, &why), ERR_CORRUPT);
    w->object.len = 0;
    assert_int_equal(chunk_unpack(w, sizeof(text), hash, &p, &why), ERR_CORRUPT);
    buf_clear(&w->object);
    buf_add(&w->object, text, sizeof(text));
    assert_int_equal(chunk_unpack(w, sizeof(text), hash, &p, &why), 0);
    w->object.data[77] = 'y';
    assert_int_equal(chunk_unpack(w, sizeof(text), hash, &p, &why), ERR_CORRUPT);
    return 0;
}

static void damage_is_reported(void **state)
{
    struct err e;

    (void)state;
    OK(chunk_for_each(1, unpack_damaged, NULL, NULL, &e));
}

static int fail_at_50(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    (void)w;
    atomic_fetch_add((atomic_int *)ctx, 1);
    return i == 50 ? err_set(e, ERR_QUOTA, "item %zu", i) : 0;
}

static void the_first_error_stops_the_crew(void **state)
{
    atomic_int n = 0;
    struct err e;

    (void)state;
    FAILS(ERR_QUOTA, chunk_for_each(1000000, fail_at_50, &n, NULL, &e));
    assert_string_equal(e.text, "item 50");
    assert_in_range(atomic_load(&n), 51, 100000);
}

static int cancel_at_50(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    (void)w;
    (void)e;
    if (i == 50)
        atomic_store((atomic_int *)ctx, 1);
    return 0;
}

static void cancel_stops_the_crew(void **state)
{
    atomic_int cancel = 0;
    struct err e;

    (void)state;
    FAILS(ERR_CANCELLED, chunk_for_each(1000000, cancel_at_50, &cancel, &cancel, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_sha_256),
        cmocka_unit_test(what_is_packed_is_unpacked_and_noise_stays_raw),
        cmocka_unit_test(compressing_is_tried_on_a_sample),
        cmocka_unit_test(damage_is_reported),
        cmocka_unit_test(the_first_error_stops_the_crew),
        cmocka_unit_test(cancel_stops_the_crew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
