/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/manifest.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/ckpt/tools.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void add(struct manifest *m, enum manifest_type type, const char *path, int64_t size)
{
    struct manifest_entry *entry = manifest_add_entry(m);

    entry->type = type;
    entry->path = mem_strdup(path);
    entry->target = type == MANIFEST_LINK ? mem_strdup("some/where") : NULL;
    entry->mode = type == MANIFEST_LINK ? 0 : 0644;
    entry->mtime_ns = -5;
    entry->size = size;
}

static void example(struct manifest *m)
{
    struct err e;

    *m = (struct manifest){.job = 42, .id = {3, 7}, .saved_at = {1787400120001}, .progress = 1200};
    STR_COPY(m->cluster, "lab");
    add(m, MANIFEST_DIR, "model", 0);
    add(m, MANIFEST_LINK, "model/latest", 0);
    add(m, MANIFEST_FILE, "model/w.bin", 5);
    add(m, MANIFEST_FILE, "naïve \"name\"\n", 0);
    manifest_cut(m);
    assert_int_equal(m->n_chunks, 1);
    STR_COPY(m->chunks[0].sha256, HASH);
    m->chunks[0].stored = 4;
    OK(manifest_lay_out(m, &e));
}

static void a_manifest_comes_back_as_it_was_written(void **state)
{
    struct manifest m, back;
    struct buf text = {0}, again = {0};
    struct err e;

    (void)state;
    example(&m);
    OK(manifest_encode(&m, &text, &e));
    OK(manifest_parse(buf_str(&text), text.len, &back, &e));
    OK(manifest_encode(&back, &again, &e));
    assert_string_equal(buf_str(&text), buf_str(&again));
    assert_string_equal(back.cluster, "lab");
    assert_int_equal(back.job, 42);
    assert_int_equal(back.id.attempt, 3);
    assert_int_equal(back.id.sequence, 7);
    assert_int_equal(back.saved_at.ms, 1787400120001);
    assert_int_equal(back.progress, 1200);
    assert_int_equal(back.n_entries, 4);
    assert_string_equal(back.entries[1].target, "some/where");
    assert_int_equal(back.entries[2].size, 5);
    assert_int_equal(back.entries[2].mtime_ns, -5);
    assert_string_equal(back.chunks[0].sha256, HASH);
    assert_int_equal(back.chunks[0].stored, 4);
    assert_int_equal(manifest_bytes(&back), 5);
    manifest_deinit(&back);
    m.progress = -1;
    OK(manifest_encode(&m, &text, &e));
    OK(manifest_parse(buf_str(&text), text.len, &back, &e));
    assert_int_equal(back.progress, -1);
    manifest_deinit(&back);
    manifest_deinit(&m);
    buf_deinit(&text);
    buf_deinit(&again);
}

static void any_changed_byte_is_found(void **state)
{
    struct manifest m, back;
    struct buf text = {0};
    struct err e;

    (void)state;
    example(&m);
    OK(manifest_encode(&m, &text, &e));
    for (size_t i = 0; i < text.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            text.data[i] = (char)(text.data[i] ^ (1 << bit));
            FAILS(ERR_CORRUPT, manifest_parse(text.data, text.len, &back, &e));
            text.data[i] = (char)(text.data[i] ^ (1 << bit));
        }
        FAILS(ERR_CORRUPT, manifest_parse(text.data, i, &back, &e));
    }
    buf_addc(&text, '\n');
    FAILS(ERR_CORRUPT, manifest_parse(text.data, text.len, &back, &e));
    manifest_deinit(&m);
    buf_deinit(&text);
}

/* A text with a right hash: what comes after "chunks" is added here. */
static int parse_body(const char *body, struct err *e)
{
    struct manifest m = {0};
    struct buf text = {0};
    char hash[CHUNK_HEX_SIZE];
    int rc;

    chunk_hash(body, strlen(body), hash);
    buf_printf(&text, "%s,\"sha256\":\"%s\"}", body, hash);
    rc = manifest_parse(buf_str(&text), text.len, &m, e);
    manifest_deinit(&m);
    buf_deinit(&text);
    return rc;
}

static int parse_with(const char *entries, const char *chunks, struct err *e)
{
    char *body = mem_printf(
        "{\"format\":\"belay-checkpoint\",\"version\":1,\"cluster\":\"lab\",\"job\":42,\"attempt\":3,"
        "\"sequence\":7,\"saved_at\":\"2026-08-22T12:02:00Z\",\"entries\":[%s],\"chunks\":[%s]",
        entries, chunks);
    int rc = parse_body(body, e);

    free(body);
    return rc;
}

#define DIR_(path) "{\"path\":\"" path "\",\"type\":\"dir\",\"mode\":493,\"mtime_ns\":1}"
#define FILE_(path, size)                                                                                    \
    "{\"path\":\"" path "\",\"type\":\"file\",\"mode\":420,\"mtime_ns\":1,\"size\":" size "}"
#define LINK_(path) "{\"path\":\"" path "\",\"type\":\"link\",\"target\":\"/etc\",\"mtime_ns\":1}"
#define CHUNK_(size, stored) "{\"sha256\":\"" HASH "\",\"size\":" size ",\"stored\":" stored "}"

static void an_unsafe_or_impossible_tree_is_refused(void **state)
{
    static const char *const bad[] = {
        FILE_("/etc/passwd", "0"),
        FILE_("..", "0"),
        FILE_(".", "0"),
        FILE_("", "0"),
        DIR_("a") "," FILE_("a/../../x", "0"),
        DIR_("a") "," FILE_("a//x", "0"),
        DIR_("a") "," FILE_("a/", "0"),
        DIR_("a") "," FILE_("a/./x", "0"),
        FILE_("a\\u0000b", "0"),
        FILE_("a", "0") "," FILE_("a", "0"),
        FILE_("b", "0") "," FILE_("a", "0"),
        FILE_("a/x", "0"),
        FILE_("a", "0") "," FILE_("a/x", "0"),
        LINK_("a") "," FILE_("a/x", "0"),
        "{\"path\":\"a\",\"type\":\"fifo\",\"mode\":420,\"mtime_ns\":1}",
        "{\"path\":\"a\",\"type\":\"dir\",\"mode\":4095,\"mtime_ns\":1}",
        "{\"path\":\"a\",\"type\":\"dir\",\"mode\":-1,\"mtime_ns\":1}",
        "{\"path\":\"a\",\"type\":\"dir\",\"mode\":448,\"mtime_ns\":1,\"size\":0}",
        "{\"path\":\"a\",\"type\":\"link\",\"target\":\"\",\"mtime_ns\":1}",
        "{\"path\":\"a\",\"type\":\"link\",\"mtime_ns\":1}",
        "{\"path\":7,\"type\":\"dir\",\"mode\":448,\"mtime_ns\":1}",
        FILE_("a", "-1"),
        FILE_("a", "1.5"),
        FILE_("a", "1"),
        "7",
        "[]",
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        FAILS(ERR_CORRUPT, parse_with(bad[i], "", &e));
    OK(parse_with("", "", &e));
    OK(parse_with(DIR_("a") "," DIR_("a-b") "," FILE_("a-b/x", "3") "," FILE_("a/...", "0") "," LINK_("a/l"),
        CHUNK_("3", "3"), &e));
}

static void depth_and_length_of_paths_are_limited(void **state)
{
    struct buf entries = {0}, path = {0};
    char part[258];
    struct err e;

    (void)state;
    for (int i = 0; i < MANIFEST_DEPTH_MAX; i++) {
        buf_adds(&path, i ? "/d" : "d");
        buf_printf(&entries, i ? "," DIR_("%s") : DIR_("%s"), buf_str(&path));
    }
    OK(parse_with(buf_str(&entries), "", &e));
    buf_adds(&path, "/d");
    buf_printf(&entries, "," DIR_("%s"), buf_str(&path));
    FAILS(ERR_CORRUPT, parse_with(buf_str(&entries), "", &e));
    memset(part, 'x', sizeof(part));
    part[256] = '\0';
    assert_int_equal(manifest_check_path(part, &e), ERR_INVALID);
    part[255] = '\0';
    assert_int_equal(manifest_check_path(part, &e), 0);
    assert_int_equal(manifest_check_path("a\xff", &e), ERR_INVALID);
    buf_deinit(&entries);
    buf_deinit(&path);
}

static void chunks_that_do_not_hold_the_files_are_refused(void **state)
{
    static const char *const bad[] = {"", CHUNK_("4", "4"), CHUNK_("6", "6"), CHUNK_("5", "6"),
        CHUNK_("5", "0"), (CHUNK_("0", "0") "," CHUNK_("5", "5")), (CHUNK_("5", "5") "," CHUNK_("1", "1")),
        CHUNK_("4194305", "5"),
        "{\"sha256\":\"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\",\"size\":5,"
        "\"stored\":5}",
        "{\"sha256\":\"../../../x\",\"size\":5,\"stored\":5}", "{\"size\":5,\"stored\":5}", "null"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        FAILS(ERR_CORRUPT, parse_with(FILE_("a", "5"), bad[i], &e));
    OK(parse_with(FILE_("a", "5"), CHUNK_("5", "2"), &e));
    FAILS(ERR_CORRUPT, parse_with(FILE_("a", "1125899906842624") "," FILE_("b", "1"), CHUNK_("1", "1"), &e));
}

static void a_later_version_is_not_called_damaged(void **state)
{
    struct err e;

    (void)state;
    FAILS(ERR_UNSUPPORTED, parse_body("{\"format\":\"belay-checkpoint\",\"version\":2,\"new\":{}", &e));
    assert_non_null(strstr(e.text, "later belay"));
    FAILS(ERR_CORRUPT, parse_body("{\"format\":\"something\",\"version\":2", &e));
    FAILS(ERR_CORRUPT, parse_body("{\"version\":1", &e));
    FAILS(ERR_CORRUPT, parse_body("[1", &e));
    FAILS(ERR_CORRUPT, parse_body("", &e));
}

struct seen {
    char text[200];
};

static int note_piece(void *ctx, const struct manifest_piece *p, struct err *e)
{
    struct seen *s = ctx;
    size_t n = strlen(s->text);

    (void)e;
    snprintf(s->text + n, sizeof(s->text) - n, "%s:%lld+%zu@%zu ", p->file->path, (long long)p->file_offset,
        p->n, p->chunk_offset);
    return 0;
}

static void small_files_share_a_chunk_and_large_ones_have_their_own(void **state)
{
    static const char *const expected[] = {
        "a:0+10@0 c:0+20@10 ",
        "d:0+4194304@0 ",
        "d:4194304+100@0 ",
        "e:0+1000000@0 f:0+1000000@1000000 g:0+1000000@2000000 h:0+1000000@3000000 i:0+194304@4000000 ",
        "i:194304+805696@0 ",
        "j:0+4194304@0 ",
    };
    struct manifest m = {0};
    struct err e;

    (void)state;
    add(&m, MANIFEST_FILE, "a", 10);
    add(&m, MANIFEST_FILE, "b", 0);
    add(&m, MANIFEST_FILE, "c", 20);
    add(&m, MANIFEST_FILE, "d", CKPT_CHUNK_BYTES + 100);
    for (char name[] = "e"; name[0] <= 'i'; name[0]++)
        add(&m, MANIFEST_FILE, name, 1000000);
    add(&m, MANIFEST_FILE, "j", CKPT_CHUNK_BYTES);
    add(&m, MANIFEST_FILE, "k", 0);
    manifest_cut(&m);
    OK(manifest_lay_out(&m, &e));
    assert_int_equal(m.n_chunks, 6);
    for (size_t i = 0; i < 6; i++) {
        struct seen seen = {""};

        OK(manifest_each_piece(&m, &m.chunks[i], note_piece, &seen, &e));
        assert_string_equal(seen.text, expected[i]);
    }
    manifest_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_comes_back_as_it_was_written),
        cmocka_unit_test(any_changed_byte_is_found),
        cmocka_unit_test(an_unsafe_or_impossible_tree_is_refused),
        cmocka_unit_test(depth_and_length_of_paths_are_limited),
        cmocka_unit_test(chunks_that_do_not_hold_the_files_are_refused),
        cmocka_unit_test(a_later_version_is_not_called_damaged),
        cmocka_unit_test(small_files_share_a_chunk_and_large_ones_have_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
