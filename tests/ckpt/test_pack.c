/* SPDX-License-Identifier: Apache-2.0
 *
 * Small files in packs: what a changed one costs, how packs are compacted, and what a reader does
 * with packs and manifests that are not what they should be.
 */
#include "ckpt/pack.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/shrunk.h"
#include "ckpt/store/layout.h"
#include "tests/ckpt/tools.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define FILES 1500
#define FILE_BYTES 3000

static void write_small(struct scratch *s, int i, int version)
{
    char name[64];

    snprintf(name, sizeof(name), "d%d/file-with-a-longer-name-%d", i % 10, i);
    write_random(s->tree, name, FILE_BYTES, (uint64_t)(i + FILES * version));
}

static void write_all(struct scratch *s)
{
    for (int i = 0; i < 10; i++) {
        char name[16];

        snprintf(name, sizeof(name), "d%d", i);
        make_dir(s->tree, name);
    }
    for (int i = 0; i < FILES; i++)
        write_small(s, i, 0);
}

static void add_size(const char *path, int64_t *sum)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    *sum += st.st_size;
}

static int64_t stored_bytes(struct scratch *s, const char *part)
{
    static char names[200][600];
    int64_t sum = 0;
    size_t n = find_objects(s, part, names, 200);

    for (size_t i = 0; i < n; i++)
        add_size(path_in(s->store, names[i]), &sum);
    return sum;
}

static void read_manifest(struct scratch *s, int64_t attempt, int64_t sequence, struct manifest *m)
{
    struct err e;

    OK(layout_read_manifest(&s->job, (struct ckpt_id){attempt, sequence}, m, &e));
}

static void a_changed_file_costs_its_own_bytes(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    const int changed = FILES / 50;

    write_all(s);
    stats = save(s, 1, 1);
    assert_int_equal(stats.bytes, FILES * FILE_BYTES);
    for (int i = 0; i < changed; i++)
        write_small(s, i * 50, 1);
    stats = save(s, 1, 2);
    assert_in_range(
        stats.stored_bytes, changed * FILE_BYTES, changed * FILE_BYTES + FILE_BYTES / 2);
    assert_int_equal(stats.reused_bytes, (FILES - changed) * FILE_BYTES);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
    /* An attempt on another node links the packs. */
    stats = save(s, 2, 1);
    assert_int_equal(stats.stored_bytes, 0);
    assert_int_equal(stats.reused_bytes, stats.bytes);
    struct err e;
    OK(clean_job(&s->job, 2, 1, &e));
    assert_int_equal(find_objects(s, "/chunks/0000000001/", NULL, 0), 0);
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
    /* One file less, and one new in front of all others, move no other. */
    OK(fs_remove_tree(path_in(s->tree, "d0/file-with-a-longer-name-0"), &e));
    write_random(s->tree, "a", FILE_BYTES, 1 << 20);
    stats = save(s, 2, 2);
    assert_int_equal(stats.reused_bytes, (FILES - 1) * FILE_BYTES);
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
}

static void the_same_content_is_stored_once(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;

    for (int i = 0; i < 50; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%02d", i);
        write_random(s->tree, name, FILE_BYTES, (uint64_t)(i % 2));
    }
    stats = save(s, 1, 1);
    assert_in_range(stats.stored_bytes, 2 * FILE_BYTES, 2 * FILE_BYTES + 200);
    assert_int_equal(stats.reused_bytes, 48 * FILE_BYTES);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
    write_random(s->tree, "a", FILE_BYTES, 1);
    write_random(s->tree, "b", FILE_BYTES, 2);
    write_random(s->tree, "z", FILE_BYTES, 2);
    stats = save(s, 2, 1);
    assert_in_range(stats.stored_bytes, FILE_BYTES, FILE_BYTES + 200);
    restore(s, 3);
    assert_same_tree(s->tree, s->out);
}

/* Each save changes other files: all content is replaced several times. */
static void packs_of_which_little_is_live_are_stored_again(void **state)
{
    struct scratch *s = *state;
    struct err e;
    int64_t most = 0;

    write_all(s);
    save(s, 1, 1);
    for (int round = 1; round <= 12; round++) {
        for (int i = 0; i < FILES; i++)
            if ((i * 7 + round) % 5 == 0)
                write_small(s, i, round);
        save(s, 1, 1 + round);
        OK(clean_job(&s->job, 1, 1, &e));
        int64_t now = stored_bytes(s, "/chunks/");
        most = now > most ? now : most;
    }
    assert_in_range(most, FILES * FILE_BYTES, FILES * FILE_BYTES * 5 / 2);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
}

static void a_save_that_is_in_a_hurry_does_not_compact(void **state)
{
    struct scratch *s = *state;
    struct ckpt_stats stats;
    struct err e;

    write_all(s);
    save(s, 1, 1);
    for (int i = 0; i < FILES; i++)
        if (i % 5)
            write_small(s, i, 1);
    save(s, 1, 2);
    OK(ckpt_save_with(&s->job, (struct ckpt_id){1, 3}, s->tree, -1, NULL,
        &(struct ckpt_save_with){.deadline_ms = clock_mono(&clock_system).ms + 600000}, &stats,
        &e));
    assert_int_equal(stats.stored_bytes, 0);
    stats = save(s, 1, 4);
    assert_in_range(stats.stored_bytes, FILES / 5 * FILE_BYTES, FILES / 4 * FILE_BYTES);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
}

static void many_small_saves_leave_few_packs(void **state)
{
    struct scratch *s = *state;
    struct err e;
    size_t most = 0;

    write_all(s);
    save(s, 1, 1);
    size_t first = find_objects(s, "/chunks/", NULL, 0);
    for (int i = 1; i <= 25; i++) {
        write_small(s, i, i);
        save(s, 1, 1 + i);
        OK(clean_job(&s->job, 1, 1, &e));
        size_t now = find_objects(s, "/chunks/", NULL, 0);
        most = now > most ? now : most;
    }
    assert_in_range(most, first + 2, first + PACKS_SMALL_MAX + 2);
    restore(s, 2);
    assert_same_tree(s->tree, s->out);
}

static void a_damaged_pack_takes_only_checkpoints_that_name_it(void **state)
{
    struct scratch *s = *state;
    struct layout_name name = {""};
    struct ckpt_restored r;
    struct manifest m;
    char first[400];

    write_all(s);
    save(s, 1, 1);
    restore(s, 2);
    snprintf(first, sizeof(first), "%s/first", s->dir);
    assert_int_equal(rename(s->out, first), 0);
    for (int i = 0; i < FILES; i += 50)
        write_small(s, i, 1);
    save(s, 1, 2);
    read_manifest(s, 1, 2, &m);
    for (size_t i = 0; i < m.n_packs; i++)
        if (m.packs[i].size == FILES / 50 * FILE_BYTES)
            name = layout_chunk(&s->job, m.key, 1, m.packs[i].sha256);
    manifest_deinit(&m);
    assert_int_equal(truncate(path_in(s->store, name.s), 1000), 0);
    r = restore(s, 2);
    assert_int_equal(r.damaged, 1);
    assert_int_equal(r.id.sequence, 1);
    assert_same_tree(first, s->out);
    /* The next attempt does not build upon it. */
    save(s, 2, 1);
    assert_int_equal(restore(s, 3).id.attempt, 2);
    assert_same_tree(s->tree, s->out);
}

/* Commits the manifest of 1.1 as 1.2 with a change, and expects that 1.1 is used. */
static void forged(struct scratch *s, void (*change)(struct manifest *m), const char *why)
{
    struct ckpt_restored r;
    struct manifest m;
    struct err e;

    read_manifest(s, 1, 1, &m);
    m.id.sequence = 2;
    change(&m);
    OK(layout_commit(&s->job, &m, &e));
    manifest_deinit(&m);
    FAILS(ERR_CORRUPT, ckpt_verify(&s->job, (struct ckpt_id){1, 2}, &e));
    assert_non_null(strstr(e.text, why));
    r = restore(s, 2);
    assert_int_equal(r.damaged, 1);
    assert_int_equal(r.id.sequence, 1);
    assert_same_tree(s->tree, s->out);
}

static void exchange_places(struct manifest *m)
{
    uint32_t at = m->chunks[0].at;

    assert_int_equal(m->chunks[0].pack, m->chunks[1].pack);
    m->chunks[0].at = m->chunks[1].at;
    m->chunks[1].at = at;
}

static void overlap(struct manifest *m)
{
    m->chunks[1].at = m->chunks[0].at + 1;
}

static void place_in_another(struct manifest *m)
{
    assert_true(m->n_packs > 1);
    m->chunks[0].pack = m->chunks[0].pack == 1 ? 2 : 1;
}

static void end_outside(struct manifest *m)
{
    m->chunks[0].at = (uint32_t)(m->packs[m->chunks[0].pack - 1].size - m->chunks[0].size + 1);
}

static void name_no_pack(struct manifest *m)
{
    memset(m->packs[0].sha256, '0', CHUNK_HEX_SIZE - 1);
}

static void lengthen_pack(struct manifest *m)
{
    m->packs[0].stored--;
}

static void a_manifest_that_says_wrong_places_is_set_aside(void **state)
{
    struct scratch *s = *state;

    write_all(s);
    save(s, 1, 1);
    forged(s, exchange_places, "not what its manifest says");
    forged(s, overlap, "not what its manifest says");
    forged(s, place_in_another, "not what its manifest says");
    forged(s, end_outside, "after its pack");
    forged(s, name_no_pack, "is missing");
    forged(s, lengthen_pack, "bytes it was stored with");
}

struct copying {
    struct scratch *s;
    struct store *from;
};

static int copy_object(void *ctx, const char *name, int64_t size_bytes)
{
    struct copying *c = ctx;
    struct buf text = {0};
    struct err e;

    OK(c->from->ops->read(c->from, name, (size_t)size_bytes, &text, &e));
    OK(c->s->job.store->ops->create(c->s->job.store, name, buf_str(&text), text.len, &e));
    buf_deinit(&text);
    return 0;
}

/* A store of the belay before packs, byte for byte. */
static void a_checkpoint_of_version_2_is_restored_and_built_upon(void **state)
{
    struct scratch *s = *state;
    struct copying c = {.s = s};
    struct ckpt_job old = {.store = s->job.store, .cluster = "bench", .job = 1};
    struct ckpt_restored r;
    struct ckpt_stats stats;
    struct stat st;
    struct err e;

    OK(store_open("file://" DATA "/version2", NULL, &c.from, &e));
    OK(c.from->ops->list(c.from, "", copy_object, &c, &e));
    store_close(c.from);
    OK(ckpt_restore(&old, 2, s->out, NULL, &r, &e));
    assert_int_equal(r.id.sequence, 1);
    assert_int_equal(r.stats.bytes, 3146100);
    assert_int_equal(stat(path_in(s->out, "sub/other"), &st), 0);
    assert_int_equal(st.st_size, 12);
    assert_int_equal(st.st_mtim.tv_nsec, 123456789);
    OK(fs_remove_tree(s->tree, &e));
    assert_int_equal(rename(s->out, s->tree), 0);
    OK(ckpt_fence(&old, 2, &e));
    OK(ckpt_save(&old, (struct ckpt_id){2, 1}, s->tree, -1, NULL, &stats, &e));
    /* the large file, and a pack, which has the content of the chunk of both small ones */
    assert_int_equal(stats.stored_bytes, 0);
    OK(ckpt_restore(&old, 3, s->out, NULL, &r, &e));
    assert_int_equal(r.id.attempt, 2);
    assert_same_tree(s->tree, s->out);
    OK(ckpt_verify(&old, (struct ckpt_id){1, 1}, &e)); /* cleaning keeps both */
    OK(ckpt_clean(&old, 2, (struct ckpt_keep){.newest = 2}, NULL, NULL, &e));
    OK(ckpt_verify(&old, (struct ckpt_id){1, 1}, &e));
    OK(ckpt_clean(&old, 2, (struct ckpt_keep){.newest = 1}, NULL, NULL, &e));
    assert_int_equal(find_objects(s, "bench/jobs/1/chunks/0000000001/", NULL, 0), 0);
    OK(ckpt_restore(&old, 3, s->out, NULL, &r, &e));
    assert_same_tree(s->tree, s->out);
}

/* A store of the belay that named packs by their content, byte for byte. */
static void a_checkpoint_of_version_4_is_restored_and_built_upon(void **state)
{
    struct scratch *s = *state;
    struct copying c = {.s = s};
    struct ckpt_job old = {.store = s->job.store, .cluster = "bench", .job = 1};
    struct ckpt_restored r;
    struct ckpt_stats stats;
    struct err e;

    OK(store_open("file://" DATA "/version4", NULL, &c.from, &e));
    OK(c.from->ops->list(c.from, "", copy_object, &c, &e));
    store_close(c.from);
    OK(ckpt_restore(&old, 2, s->out, NULL, &r, &e));
    assert_int_equal(r.stats.bytes, 19);
    OK(fs_remove_tree(s->tree, &e));
    assert_int_equal(rename(s->out, s->tree), 0);
    OK(ckpt_fence(&old, 2, &e));
    OK(ckpt_save(&old, (struct ckpt_id){2, 1}, s->tree, -1, NULL, &stats, &e));
    assert_int_equal(stats.stored_bytes, 0);
    write_text(s->tree, "sub/b", "another second\n");
    OK(ckpt_save(&old, (struct ckpt_id){2, 2}, s->tree, -1, NULL, &stats, &e));
    assert_int_equal(stats.stored_bytes, 15);
    OK(ckpt_clean(&old, 2, (struct ckpt_keep){.newest = 1}, NULL, NULL, &e));
    OK(ckpt_restore(&old, 3, s->out, NULL, &r, &e));
    assert_int_equal(r.id.sequence, 2);
    assert_same_tree(s->tree, s->out);
}

/* ---- the memory of a save ---- */

static int n_trims;

void __real_mem_trim(void);
void __wrap_mem_trim(void);
void __wrap_mem_trim(void)
{
    n_trims++;
    __real_mem_trim();
}

static void the_memory_of_a_large_manifest_is_given_back(void **state)
{
    struct scratch *s = *state;

    write_text(s->tree, "a", "x");
    save(s, 1, 1);
    assert_int_equal(n_trims, 0);
    for (int i = 0; i < 10000; i++) {
        char name[16];

        snprintf(name, sizeof(name), "d%d", i);
        make_dir(s->tree, name);
    }
    save(s, 1, 2);
    assert_int_equal(n_trims, 1);
}

/* ---- compressed manifests ---- */

static void a_large_manifest_is_stored_compressed(void **state)
{
    struct scratch *s = *state;
    struct buf text = {0};
    struct manifest m;
    struct err e;

    write_all(s);
    save(s, 1, 1);
    read_manifest(s, 1, 1, &m);
    OK(manifest_encode(&m, &text, &e));
    manifest_deinit(&m);
    assert_true(text.len > SHRUNK_FROM_BYTES);
    assert_in_range(stored_bytes(s, "/manifests/"), 32 * FILES, text.len / 2);
    buf_deinit(&text);
}

static void expect_damage(const char *head, const void *frame, size_t n)
{
    struct buf b = {0};
    struct err e;

    buf_adds(&b, head);
    buf_add(&b, frame, n);
    manifest_add_tail(&b);
    assert_true(shrunk_is(&b));
    FAILS(ERR_CORRUPT, shrunk_open(&b, &e));
    buf_deinit(&b);
}

static void a_compressed_manifest_is_read_only_if_it_is_whole(void **state)
{
    static const char head[] = "{\"format\":\"belay-checkpoint\",\"version\":5,\"zstd\":\"";
    /* a frame of 2^50 bytes in one segment */
    static const unsigned char huge[] = {
        0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0};
    char *text = mem_alloc(SHRUNK_FROM_BYTES), frame[4096];
    struct buf b = {0};
    struct err e;
    size_t n;

    (void)state;
    memset(text, 'x', SHRUNK_FROM_BYTES);
    buf_add(&b, text, SHRUNK_FROM_BYTES - 1);
    shrunk_close(&b);
    assert_false(shrunk_is(&b));
    buf_addc(&b, 'x');
    shrunk_close(&b);
    assert_true(shrunk_is(&b));
    assert_in_range(b.len, 100, 1000);
    for (size_t i = sizeof(head) - 1; i < b.len; i++) {
        struct buf bad = {0};

        buf_add(&bad, b.data, b.len);
        bad.data[i] ^= 1;
        FAILS(ERR_CORRUPT, shrunk_open(&bad, &e));
        buf_truncate(&bad, i);
        FAILS(ERR_CORRUPT, shrunk_open(&bad, &e));
        buf_deinit(&bad);
    }
    OK(shrunk_open(&b, &e));
    assert_int_equal(b.len, SHRUNK_FROM_BYTES);
    assert_memory_equal(b.data, text, b.len);
    buf_deinit(&b);
    n = ZSTD_compress(frame, sizeof(frame), text, SHRUNK_FROM_BYTES, 1);
    expect_damage(head, frame, n - 1);
    expect_damage(head, frame, 4);
    expect_damage(head, "", 0);
    expect_damage(head, huge, sizeof(huge));
    memcpy(frame + n, frame, n);
    expect_damage(head, frame, 2 * n); /* more follows */
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
    n = ZSTD_compress2(c, frame, sizeof(frame), text, SHRUNK_FROM_BYTES);
    ZSTD_freeCCtx(c);
    expect_damage(head, frame, n); /* no size */
    free(text);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_changed_file_costs_its_own_bytes),
        TEST(the_same_content_is_stored_once),
        TEST(packs_of_which_little_is_live_are_stored_again),
        TEST(a_save_that_is_in_a_hurry_does_not_compact),
        TEST(many_small_saves_leave_few_packs),
        TEST(a_damaged_pack_takes_only_checkpoints_that_name_it),
        TEST(a_manifest_that_says_wrong_places_is_set_aside),
        TEST(a_checkpoint_of_version_2_is_restored_and_built_upon),
        TEST(a_checkpoint_of_version_4_is_restored_and_built_upon),
        TEST(the_memory_of_a_large_manifest_is_given_back),
        TEST(a_large_manifest_is_stored_compressed),
        cmocka_unit_test(a_compressed_manifest_is_read_only_if_it_is_whole),
    };

    discard_log();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
