/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/manifest.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/ckpt/tools.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define OTHER_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void add(struct manifest *m, enum manifest_type type, const char *path, int64_t size)
{
    struct manifest_entry *entry = manifest_add_entry(m);

    entry->type = type;
    entry->path = manifest_text(m, path, strlen(path));
    entry->target = type == MANIFEST_LINK   ? "some/where"
                    : type == MANIFEST_HARD ? "model/w.bin"
                                            : NULL;
    entry->mode = entry->target ? 0 : 0644;
    entry->mtime_ns = type == MANIFEST_HARD ? 0 : -5;
    entry->size = size;
}

static void example(struct manifest *m)
{
    static const struct manifest_extent data[] = {{0, 1}, {100, 4}};
    static const struct manifest_xattr xattrs[] = {{"user.a", "\0\xff", 2}, {"user.b", "", 0}};
    struct err e;

    *m = (struct manifest){.job = 42, .id = {3, 7}, .saved_at = {1787400120001}, .progress = 1200};
    STR_COPY(m->cluster, "lab");
    add(m, MANIFEST_DIR, "model", 0);
    add(m, MANIFEST_LINK, "model/latest", 0);
    add(m, MANIFEST_FILE, "model/w.bin", 1000);
    OK(manifest_set_data(m, &m->entries[2], data, 2, &e));
    OK(manifest_set_xattrs(m, &m->entries[2], xattrs, 2, &e));
    add(m, MANIFEST_HARD, "model/x.bin", 0);
    add(m, MANIFEST_FILE, "naïve \"name\"\n", 0);
    manifest_cut(m);
    assert_int_equal(m->n_chunks, 1);
    assert_int_equal(m->chunks[0].pack, MANIFEST_NO_PACK);
    STR_COPY(m->chunks[0].sha256, HASH);
    m->chunks[0].pack = 1;
    m->chunks[0].at = 3;
    *manifest_add_pack(m) = (struct manifest_chunk){.size = 8, .stored = 4};
    STR_COPY(m->packs[0].sha256, OTHER_HASH);
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
    assert_int_equal(back.n_entries, 5);
    assert_string_equal(back.entries[1].target, "some/where");
    assert_int_equal(back.entries[2].size, 1000);
    assert_int_equal(manifest_content(&back.entries[2]), 5);
    assert_int_equal(back.entries[2].extra->data[1].offset, 100);
    assert_int_equal(back.entries[2].extra->n_xattrs, 2);
    assert_memory_equal(back.entries[2].extra->xattrs[0].value, "\0\xff", 2);
    assert_int_equal(back.entries[3].type, MANIFEST_HARD);
    assert_string_equal(back.entries[3].target, "model/w.bin");
    assert_int_equal(back.entries[2].mtime_ns, -5);
    assert_string_equal(back.chunks[0].sha256, HASH);
    assert_int_equal(back.chunks[0].pack, 1);
    assert_int_equal(back.chunks[0].at, 3);
    assert_int_equal(back.n_packs, 1);
    assert_string_equal(back.packs[0].sha256, OTHER_HASH);
    assert_int_equal(back.packs[0].size, 8);
    assert_int_equal(back.packs[0].stored, 4);
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

/* Entries are written without JSON objects, and read so if they have that form. */
static void entries_are_written_as_json_has_them(void **state)
{
    static const char *const paths[] = {
        "!", "a \"b\"", "back\\slash", "naïve", "new\nline", "slash", "slash/x", "\x7f"};
    static const char *const lines[] = {"",
        "{\"path\":\"a \\\"b\\\"\",\"type\":\"file\",\"mode\":420,\"mtime_ns\":-5,\"size\":0},",
        "{\"path\":\"back\\\\slash\",\"type\":\"file\",\"mode\":420,\"mtime_ns\":-5,\"size\":0},",
        "{\"path\":\"naïve\",\"type\":\"file\",\"mode\":420,\"mtime_ns\":-5,\"size\":0},",
        "{\"path\":\"new\\nline\",\"type\":\"file\",\"mode\":420,\"mtime_ns\":-5,\"size\":0},",
        "{\"path\":\"slash\",\"type\":\"dir\",\"mode\":420,\"mtime_ns\":-5},",
        "{\"path\":\"slash/x\",\"type\":\"link\",\"target\":\"some/where\",\"mtime_ns\":-5},",
        "{\"path\":\"\x7f\",\"type\":\"hard\",\"target\":\"!\"}"};
    static const enum manifest_type types[] = {MANIFEST_FILE, MANIFEST_FILE, MANIFEST_FILE,
        MANIFEST_FILE, MANIFEST_FILE, MANIFEST_DIR, MANIFEST_LINK, MANIFEST_HARD};
    struct manifest m = {.job = 1, .id = {1, 1}, .progress = -1}, back;
    struct buf text = {0};
    struct err e;

    (void)state;
    STR_COPY(m.cluster, "lab");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        add(&m, types[i], paths[i], 0);
    m.entries[7].target = "!";
    m.entries[0].mtime_ns = INT64_MAX;
    OK(manifest_lay_out(&m, &e));
    OK(manifest_encode(&m, &text, &e));
    for (size_t i = 1; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_non_null(strstr(buf_str(&text), lines[i]));
    assert_non_null(strstr(buf_str(&text), "\"mtime_ns\":9223372036854775807,\"size\":0}"));
    OK(manifest_parse(buf_str(&text), text.len, &back, &e));
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_string_equal(back.entries[i].path, paths[i]);
        assert_int_equal(back.entries[i].type, types[i]);
        assert_int_equal(back.entries[i].mode, m.entries[i].mode);
        assert_int_equal(back.entries[i].mtime_ns, m.entries[i].mtime_ns);
    }
    manifest_deinit(&back);
    manifest_deinit(&m);
    buf_deinit(&text);
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

/* A text with a valid hash; the rest after "chunks" is added here. */
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

#define HEAD_(version)                                                                             \
    "{\"format\":\"belay-checkpoint\",\"version\":" version                                        \
    ",\"cluster\":\"lab\",\"job\":42,\"attempt\":3,"                                               \
    "\"sequence\":7,\"saved_at\":\"2026-08-22T12:02:00Z\",\"entries\":["

static int parse_as(const char *form, const char *entries, const char *chunks, struct err *e)
{
    char *body = mem_printf(form, entries, *entries ? "\n" : "", chunks, *chunks ? "\n" : "");
    int rc = parse_body(body, e);

    free(body);
    return rc;
}

/* Entries and chunks are joined by NEXT, as version 2 does; version 1 must say the same of them. */
static int parse_with(const char *entries, const char *chunks, struct err *e)
{
    int rc = parse_as(HEAD_("2") "\n%s%s],\"chunks\":[\n%s%s]", entries, chunks, e);

    assert_int_equal(parse_as(HEAD_("1") "%s%s],\"chunks\":[%s%s]", entries, chunks, e), rc);
    return rc;
}

#define NEXT ",\n"
#define DIR_(path) "{\"path\":\"" path "\",\"type\":\"dir\",\"mode\":493,\"mtime_ns\":1}"
#define FILE_(path, size)                                                                          \
    "{\"path\":\"" path "\",\"type\":\"file\",\"mode\":420,\"mtime_ns\":1,\"size\":" size "}"
#define HARD_(path, target) "{\"path\":\"" path "\",\"type\":\"hard\",\"target\":\"" target "\"}"
#define DATA_(data)                                                                                \
    "{\"path\":\"a\",\"type\":\"file\",\"mode\":420,\"mtime_ns\":1,\"size\":100,\"data\":" data "}"
#define XATTRS_(xattrs)                                                                            \
    "{\"path\":\"a\",\"type\":\"dir\",\"mode\":448,\"mtime_ns\":1,\"xattrs\":" xattrs "}"
#define LINK_(path) "{\"path\":\"" path "\",\"type\":\"link\",\"target\":\"/etc\",\"mtime_ns\":1}"
#define CHUNK_(size, stored) "{\"sha256\":\"" HASH "\",\"size\":" size ",\"stored\":" stored "}"

static void an_unsafe_or_impossible_tree_is_refused(void **state)
{
    static const char *const bad[] = {
        FILE_("/etc/passwd", "0"),
        FILE_("..", "0"),
        FILE_(".", "0"),
        FILE_("", "0"),
        DIR_("a") NEXT FILE_("a/../../x", "0"),
        DIR_("a") NEXT FILE_("a//x", "0"),
        DIR_("a") NEXT FILE_("a/", "0"),
        DIR_("a") NEXT FILE_("a/./x", "0"),
        FILE_("a\\u0000b", "0"),
        FILE_("a\x01", "0"),
        FILE_("a\xff", "0"),
        FILE_("a", "00"),
        FILE_("a", "99999999999999999999"),
        FILE_("a", "0") "}",
        "{\"path\":\"a\",\"type\":\"file\",\"mode\":0420,\"mtime_ns\":1,\"size\":0}",
        "{\"path\":\"a\",\"type\":\"file\",\"mode\":420,\"mtime_ns\":9223372036854775808,\"size\":"
        "0}",
        "{\"path\":\"a\",\"type\":\"link\",\"target\":\"\xff\",\"mtime_ns\":1}",
        FILE_("a", "0") NEXT FILE_("a", "0"),
        FILE_("b", "0") NEXT FILE_("a", "0"),
        FILE_("a/x", "0"),
        FILE_("a", "0") NEXT FILE_("a/x", "0"),
        LINK_("a") NEXT FILE_("a/x", "0"),
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
        FILE_("a", "0") NEXT HARD_("b", "c"),
        HARD_("a", "b") NEXT FILE_("b", "0"),
        HARD_("a", "a"),
        DIR_("a") NEXT HARD_("b", "a"),
        LINK_("a") NEXT HARD_("b", "a") NEXT HARD_("c", "b"),
        LINK_("a") NEXT HARD_("b", "/etc"),
        FILE_("a", "0") NEXT HARD_("b", "a") NEXT HARD_("c", "b"),
        "{\"path\":\"b\",\"type\":\"hard\"}",
        "{\"path\":\"b\",\"type\":\"hard\",\"target\":\"\"}",
        FILE_("a", "0") NEXT "{\"path\":\"b\",\"type\":\"hard\",\"target\":\"a\",\"mode\":420}",
        DATA_("[[0,1]]"),
        DATA_("[[-1,1]]"),
        DATA_("[[0,0]]"),
        DATA_("[[100,1]]"),
        DATA_("[[99,2]]"),
        DATA_("[[1,9223372036854775807]]"),
        DATA_("[[5,5],[0,5]]"),
        DATA_("[[0,2],[1,1]]"),
        DATA_("[[0,2],[2,1]]"),
        DATA_("[[0]]"),
        DATA_("[[0,1,2]]"),
        DATA_("[0,1]"),
        DATA_("[[0,1.5]]"),
        DATA_("{}"),
        DATA_("7"),
        XATTRS_("{\"user.\":\"00\"}"),
        XATTRS_("{\"trusted.a\":\"00\"}"),
        XATTRS_("{\"user.a\":\"0\"}"),
        XATTRS_("{\"user.a\":\"0G\"}"),
        XATTRS_("{\"user.a\":\"FF\"}"),
        XATTRS_("{\"user.a\":0}"),
        XATTRS_("{\"user.b\":\"\",\"user.a\":\"\"}"),
        XATTRS_("{\"user.a\":\"\",\"user.a\":\"\"}"),
        XATTRS_("[]"),
        "{\"path\":\"a\",\"type\":\"link\",\"target\":\"b\",\"mtime_ns\":1,\"xattrs\":{}}",
        "{\"path\":\"a\",\"type\":\"dir\",\"mode\":448,\"mtime_ns\":1,\"data\":[]}",
        "7",
        "[]",
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        FAILS(ERR_CORRUPT, parse_with(bad[i], "", &e));
    OK(parse_with("", "", &e));
    OK(parse_with(DATA_("[]"), "", &e));
    OK(parse_with(DATA_("[[0,3],[98,2]]"), CHUNK_("5", "5"), &e));
    OK(parse_with(XATTRS_("{}"), "", &e));
    OK(parse_with(XATTRS_("{\"user.a\":\"\",\"user.b\":\"00ff\"}"), "", &e));
    OK(parse_with(FILE_("a", "0") NEXT HARD_("b", "a") NEXT HARD_("c", "a"), "", &e));
    OK(parse_with(LINK_("a") NEXT HARD_("b", "a") NEXT HARD_("c", "a"), "", &e));
    OK(parse_with(DIR_("a") NEXT DIR_("a-b") NEXT FILE_("a-b/x", "3") NEXT FILE_("a/...", "0")
                      NEXT LINK_("a/l"),
        CHUNK_("3", "3"), &e));
}

static void the_lines_of_a_manifest_have_one_form(void **state)
{
    static const char *const bad[] = {
        HEAD_("2"),
        HEAD_("2") "\n",
        HEAD_("2") "]",
        HEAD_("2") "],\"chunks\":[]",
        HEAD_("2") "\n],\"chunks\":[]",
        HEAD_("2") "\n],\"chunks\":[\n",
        HEAD_("2") "\n],\"chunks\":[\n]\n]",
        HEAD_("2") "\n],\"chunks\":[\n],",
        HEAD_("2") "\n\n],\"chunks\":[\n]",
        HEAD_("2") "\n,\n],\"chunks\":[\n]",
        HEAD_("2") "\n" DIR_("a") ",\n],\"chunks\":[\n]",
        HEAD_("2") "\n" DIR_("a") "\n" DIR_("b") "\n],\"chunks\":[\n]",
        HEAD_("2") "\n" DIR_("a") "," DIR_("b") "\n],\"chunks\":[\n]",
        HEAD_("2") "\n],\"chunks\":[\n" DIR_("a") "\n]",
        "{\"format\":\"belay-checkpoint\",\"version\":2,\"entries\":[\n],\"chunks\":[\n]",
        "{\"format\":\"belay-checkpoint\",\"version\":0,",
        "{\"format\":\"belay-checkpoint\",\"version\":99999999999,",
        "{\"format\":\"belay-checkpoint\",\"version\":2",
        "{\"version\":2,\"format\":\"belay-checkpoint\",",
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        FAILS(ERR_CORRUPT, parse_body(bad[i], &e));
    OK(parse_body(HEAD_("2") "\n],\"chunks\":[\n]", &e));
    OK(parse_body(HEAD_("2") "\n" DIR_("a") ",\n" DIR_("b") "\n],\"chunks\":[\n]", &e));
}

static void attributes_and_extents_are_limited(void **state)
{
    struct manifest_xattr xattrs[MANIFEST_XATTRS_MAX + 1];
    struct manifest_extent *extents = mem_array(MANIFEST_EXTENTS_MAX + 1, sizeof(*extents));
    char *value = mem_alloc(MANIFEST_XATTR_BYTES_MAX + 1);
    struct manifest m = {0};
    struct err e;
    int n = 0;

    (void)state;
    for (int i = 0; i <= MANIFEST_XATTRS_MAX; i++)
        xattrs[i] = (struct manifest_xattr){
            .name = "user.x", .value = value, .size = i ? 0 : MANIFEST_XATTR_BYTES_MAX};
    add(&m, MANIFEST_FILE, "a", 0);
    OK(manifest_set_xattrs(&m, &m.entries[0], xattrs, MANIFEST_XATTRS_MAX, &e));
    FAILS(ERR_INVALID, manifest_set_xattrs(&m, &m.entries[0], xattrs, MANIFEST_XATTRS_MAX + 1, &e));
    xattrs[1].size = 1;
    FAILS(ERR_INVALID, manifest_set_xattrs(&m, &m.entries[0], xattrs, 2, &e));
    OK(manifest_set_data(&m, &m.entries[0], extents, MANIFEST_EXTENTS_MAX, &e));
    FAILS(ERR_INVALID, manifest_set_data(&m, &m.entries[0], extents, MANIFEST_EXTENTS_MAX + 1, &e));
    while (manifest_set_xattrs(&m, &m.entries[0], xattrs, 1, &e) == 0)
        n++;
    assert_in_range(n, 400, 512);
    assert_non_null(strstr(e.text, "32 MiB"));
    manifest_deinit(&m);
    free(value);
    free(extents);
}

static void depth_and_length_of_paths_are_limited(void **state)
{
    struct buf entries = {0}, path = {0};
    char part[258];
    struct err e;

    (void)state;
    for (int i = 0; i < MANIFEST_DEPTH_MAX; i++) {
        buf_adds(&path, i ? "/d" : "d");
        buf_printf(&entries, i ? NEXT DIR_("%s") : DIR_("%s"), buf_str(&path));
    }
    OK(parse_with(buf_str(&entries), "", &e));
    buf_adds(&path, "/d");
    buf_printf(&entries, NEXT DIR_("%s"), buf_str(&path));
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
        CHUNK_("5", "0"), (CHUNK_("0", "0") NEXT CHUNK_("5", "5")),
        (CHUNK_("5", "5") NEXT CHUNK_("1", "1")), CHUNK_("4194305", "5"),
        "{\"sha256\":\"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\",\"size\":"
        "5,\"stored\":5}",
        "{\"sha256\":\"../../../x\",\"size\":5,\"stored\":5}", "{\"size\":5,\"stored\":5}", "null"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        FAILS(ERR_CORRUPT, parse_with(FILE_("a", "5"), bad[i], &e));
    OK(parse_with(FILE_("a", "5"), CHUNK_("5", "2"), &e));
    FAILS(ERR_CORRUPT,
        parse_with(FILE_("a", "1125899906842624") NEXT FILE_("b", "1"), CHUNK_("1", "1"), &e));
}

#define IN_PACK_(pack, at, size)                                                                   \
    "{\"pack\":" pack ",\"at\":" at ",\"size\":" size ",\"sha256\":\"" HASH "\"}"

static void chunks_outside_their_packs_are_refused(void **state)
{
    static const char form[] = HEAD_("4") "\n" FILE_("a", "5") "%s],\"chunks\":[\n%s\n%s%s]";
    static const char packs[] = "],\"packs\":[\n" CHUNK_("8", "6");
    static const char *const bad[] = {
        IN_PACK_("1", "4", "5"),
        IN_PACK_("1", "-1", "5"),
        IN_PACK_("1", "4194304", "5"),
        IN_PACK_("1", "4294967295", "5"),
        IN_PACK_("0", "0", "5"),
        IN_PACK_("2", "0", "5"),
        IN_PACK_("4294967297", "0", "5"),
        IN_PACK_("1", "0", "6"),
        IN_PACK_("1", "0", "0"),
        IN_PACK_("1", "00", "5"),
        IN_PACK_("01", "0", "5"),
        IN_PACK_("1", "", "5"),
        IN_PACK_("1", "0", "5") ",",
        IN_PACK_("1", "0", "5") "}",
        "{\"pack\":1,\"at\":0,\"size\":5,\"sha256\":\"" HASH "0\"}",
        "{\"pack\":1,\"at\":0,\"size\":5,\"sha256\":\"" HASH "\"",
        "{\"pack\":1,\"size\":5,\"sha256\":\"" HASH "\"}",
        "{\"pack\":1,\"at\":0,\"size\":5,\"sha256\":\"ba78\"}",
        "{\"pack\":1,\"at\":0,\"size\":5,\"stored\":5,\"sha256\":\"" HASH "\"}",
        "{\"at\":0,\"size\":5,\"stored\":5,\"sha256\":\"" HASH "\"}",
    };
    struct err e;
    char *body;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        body = mem_printf(form, "\n", bad[i], packs, "\n");
        FAILS(ERR_CORRUPT, parse_body(body, &e));
        free(body);
    }
    body = mem_printf(form, "\n", IN_PACK_("1", "3", "5"), packs, "\n");
    OK(parse_body(body, &e));
    free(body);
    /* Another order, or spaces, say the same. */
    body = mem_printf(
        form, "\n", "{\"sha256\": \"" HASH "\",\"at\":3, \"pack\":1,\"size\":5}", packs, "\n");
    OK(parse_body(body, &e));
    free(body);
    /* Parts of one place overlap without harm: each has its hash. */
    body =
        mem_printf(form, "\n", IN_PACK_("1", "3", "3") NEXT IN_PACK_("1", "4", "2"), packs, "\n");
    OK(parse_body(body, &e));
    free(body);
    body = mem_printf(form, "\n", CHUNK_("5", "5"), "],\"packs\":[", "\n");
    FAILS(ERR_CORRUPT, parse_body(body, &e)); /* not version 4 */
    free(body);
    body = mem_printf(form, "\n", IN_PACK_("1", "0", "5"), "", "");
    FAILS(ERR_CORRUPT, parse_body(body, &e));
    free(body);
    FAILS(ERR_CORRUPT, parse_with(FILE_("a", "5"), IN_PACK_("1", "0", "5"), &e));
    FAILS(ERR_CORRUPT,
        parse_body("{\"format\":\"belay-checkpoint\",\"version\":5,\"zstd\":\"\"", &e));
}

static void a_later_version_is_not_called_damaged(void **state)
{
    struct err e;

    (void)state;
    FAILS(ERR_UNSUPPORTED,
        parse_body("{\"format\":\"belay-checkpoint\",\"version\":3,\"new\":{}", &e));
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
    snprintf(s->text + n, sizeof(s->text) - n, "%s:%lld+%zu@%zu ", p->file->path,
        (long long)p->file_offset, p->n, p->chunk_offset);
    return 0;
}

static void pieces_of_a_sparse_file_are_its_data(void **state)
{
    const struct manifest_extent data[] = {{4096, 10}, {1 << 20, CKPT_CHUNK_BYTES}, {10 << 20, 5}};
    static const char *const expected[] = {
        "a:0+7@0 ",
        "b:4096+10@0 b:1048576+4194294@10 ",
        "b:5242870+10@0 b:10485760+5@10 ",
        "d:0+3@0 ",
    };
    struct manifest m = {0};
    struct err e;

    (void)state;
    add(&m, MANIFEST_FILE, "a", 7);
    add(&m, MANIFEST_FILE, "b", 20 << 20);
    OK(manifest_set_data(&m, &m.entries[1], data, 3, &e));
    add(&m, MANIFEST_FILE, "c", 30 << 20);
    OK(manifest_set_data(&m, &m.entries[2], NULL, 0, &e));
    add(&m, MANIFEST_FILE, "d", 3);
    manifest_cut(&m);
    OK(manifest_lay_out(&m, &e));
    assert_int_equal(m.n_chunks, 4);
    assert_int_equal(manifest_bytes(&m), 7 + 10 + CKPT_CHUNK_BYTES + 5 + 3);
    for (size_t i = 0; i < 4; i++) {
        struct seen seen = {""};

        OK(manifest_each_piece(&m, &m.chunks[i], note_piece, &seen, &e));
        assert_string_equal(seen.text, expected[i]);
    }
    manifest_deinit(&m);
}

static void small_files_are_chunks_for_packs_and_large_ones_have_their_own(void **state)
{
    static const char *const expected[] = {
        "a:0+10@0 ",
        "c:0+20@0 ",
        "d:0+4194304@0 ",
        "d:4194304+100@0 ",
        "e:0+1048575@0 ",
        "f:0+1048576@0 ",
        "j:0+4194304@0 ",
    };
    struct manifest m = {0};
    struct err e;

    (void)state;
    add(&m, MANIFEST_FILE, "a", 10);
    add(&m, MANIFEST_FILE, "b", 0);
    add(&m, MANIFEST_FILE, "c", 20);
    add(&m, MANIFEST_FILE, "d", CKPT_CHUNK_BYTES + 100);
    add(&m, MANIFEST_FILE, "e", MANIFEST_CUT_BYTES - 1);
    add(&m, MANIFEST_FILE, "f", MANIFEST_CUT_BYTES);
    add(&m, MANIFEST_FILE, "j", CKPT_CHUNK_BYTES);
    add(&m, MANIFEST_FILE, "k", 0);
    manifest_cut(&m);
    OK(manifest_lay_out(&m, &e));
    assert_int_equal(m.n_chunks, 7);
    for (size_t i = 0; i < 7; i++) {
        struct seen seen = {""};

        OK(manifest_each_piece(&m, &m.chunks[i], note_piece, &seen, &e));
        assert_string_equal(seen.text, expected[i]);
        assert_true((m.chunks[i].pack != 0) == (i < 2 || i == 4));
    }
    manifest_deinit(&m);
}

/* Very many small files, without one of them (less = -1 for none), of another size (longer). */
static void add_many(struct manifest *m, int n, int less, int longer)
{
    struct err e;

    *m = (struct manifest){0};
    for (int i = 0; i < n; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%07d", i);
        if (i != less)
            add(m, MANIFEST_FILE, name, i == longer ? 20 : 10);
    }
    manifest_cut(m);
    OK(manifest_lay_out(m, &e));
}

static int note_first(void *ctx, const struct manifest_piece *p, struct err *e)
{
    (void)e;
    *(const struct manifest_entry **)ctx = p->file;
    return 1;
}

/* The sum of the numbers of names that begin a chunk: the same cuts have the same. */
static int64_t sum_of_cuts(const struct manifest *m)
{
    const struct manifest_entry *file = NULL;
    int64_t sum = 0;

    for (size_t i = 0; i < m->n_chunks; i++) {
        manifest_each_piece(m, &m->chunks[i], note_first, &file, NULL);
        sum += strtol(file->path, NULL, 10);
    }
    return sum;
}

static void very_many_small_files_share_chunks_by_their_names(void **state)
{
    enum { N = MANIFEST_PACKED_MAX * 5 / 2 };
    struct manifest m, other;

    (void)state;
    add_many(&m, N, -1, -1);
    assert_in_range(m.n_chunks, MANIFEST_PACKED_MAX / 2, MANIFEST_PACKED_MAX * 11 / 10);
    add_many(&other, N, -1, N / 2);
    assert_int_equal(other.n_chunks, m.n_chunks);
    assert_int_equal(sum_of_cuts(&other), sum_of_cuts(&m));
    manifest_deinit(&other);
    add_many(&other, N, N / 2, -1); /* at most the two chunks that were at this name are others */
    assert_in_range(other.n_chunks, m.n_chunks - 1, m.n_chunks);
    assert_in_range(llabs(sum_of_cuts(&other) - sum_of_cuts(&m)), 0, N);
    manifest_deinit(&other);
    manifest_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_comes_back_as_it_was_written),
        cmocka_unit_test(entries_are_written_as_json_has_them),
        cmocka_unit_test(any_changed_byte_is_found),
        cmocka_unit_test(an_unsafe_or_impossible_tree_is_refused),
        cmocka_unit_test(the_lines_of_a_manifest_have_one_form),
        cmocka_unit_test(attributes_and_extents_are_limited),
        cmocka_unit_test(depth_and_length_of_paths_are_limited),
        cmocka_unit_test(chunks_that_do_not_hold_the_files_are_refused),
        cmocka_unit_test(a_later_version_is_not_called_damaged),
        cmocka_unit_test(pieces_of_a_sparse_file_are_its_data),
        cmocka_unit_test(small_files_are_chunks_for_packs_and_large_ones_have_their_own),
        cmocka_unit_test(very_many_small_files_share_chunks_by_their_names),
        cmocka_unit_test(chunks_outside_their_packs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
