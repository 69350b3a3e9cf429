/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a manifest. The last member is the SHA-256 of everything before it and has a fixed
 * form, so every byte of the text is either hashed or compared. Parses one line at a time, because
 * a tree of a million entries would need a gigabyte.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/manifest.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "belay-checkpoint"
#define HEAD_START "{\"format\":\"" FORMAT "\",\"version\":"
#define ENTRIES_OPEN ",\"entries\":["
#define ENTRIES_CLOSE "],\"chunks\":["
#define CHUNKS_CLOSE_PACKS "],\"packs\":["
#define LIST_CLOSE "]"
#define PACKED_START "{\"pack\":"
#define PACKED_AT ",\"at\":"
#define PACKED_SIZE ",\"size\":"
#define PACKED_HASH ",\"sha256\":\""
#define ENTRY_PATH "{\"path\":\""
#define ENTRY_TYPE "\",\"type\":\""
#define ENTRY_TARGET ",\"target\":\""
#define ENTRY_MODE ",\"mode\":"
#define ENTRY_MTIME ",\"mtime_ns\":"
#define ENTRY_SIZE ",\"size\":"
#define LINE_MAX_BYTES                                                                             \
    (1u << 20) /* twice the longest path, 64 KiB of attributes in hex and 4096 extents */
#define TAIL_START ",\"sha256\":\""
#define TAIL_END "\"}"
#define TAIL_LEN MANIFEST_TAIL_BYTES
static_assert(TAIL_LEN == sizeof(TAIL_START TAIL_END) - 1 + CHUNK_HEX_SIZE - 1, "the parts add up");
#define VERSION_1_BYTES_MAX (64u << 20)
#define CHUNKS_MAX (CKPT_MANIFEST_BYTES_MAX / 100) /* the shortest text of a chunk */

static const char *const type_names[] = {"dir", "file", "link", "hard", NULL};

static json_t *extents_json(const struct manifest_extra *extra)
{
    json_t *a = json_array();

    for (size_t i = 0; i < extra->n_data; i++) {
        json_t *pair = json_array();

        json_array_append_new(pair, json_integer(extra->data[i].offset));
        json_array_append_new(pair, json_integer(extra->data[i].size));
        json_array_append_new(a, pair);
    }
    return a;
}

static json_t *xattrs_json(const struct manifest_extra *extra)
{
    json_t *o = json_object();

    for (size_t i = 0; i < extra->n_xattrs; i++) {
        char *hex = mem_alloc(2 * extra->xattrs[i].size + 1);

        str_hex(extra->xattrs[i].value, extra->xattrs[i].size, hex);
        json_object_set_new(o, extra->xattrs[i].name, json_string(hex));
        free(hex);
    }
    return o;
}

static json_t *entry_json(const struct manifest_entry *entry)
{
    json_t *o = json_object();

    json_object_set_new(o, "path", json_text(entry->path));
    json_object_set_new(o, "type", json_string(type_names[entry->type]));
    if (entry->target)
        json_object_set_new(o, "target", json_text(entry->target));
    else
        json_object_set_new(o, "mode", json_integer(entry->mode));
    if (entry->type != MANIFEST_HARD)
        json_object_set_new(o, "mtime_ns", json_integer(entry->mtime_ns));
    if (entry->type == MANIFEST_FILE)
        json_object_set_new(o, "size", json_integer(entry->size));
    if (entry->extra && entry->extra->is_sparse)
        json_object_set_new(o, "data", extents_json(entry->extra));
    if (entry->extra && entry->extra->n_xattrs)
        json_object_set_new(o, "xattrs", xattrs_json(entry->extra));
    return o;
}

static json_t *chunk_json(const struct manifest_chunk *c)
{
    json_t *o = json_object();

    json_object_set_new(o, "sha256", json_string(c->sha256));
    json_object_set_new(o, "size", json_integer(c->size));
    json_object_set_new(o, "stored", json_integer(c->stored));
    return o;
}

/* All members before the entries, without the closing brace. */
static void add_head(struct buf *out, const struct manifest *m)
{
    char saved_at[TIME_ISO_MAX];
    json_t *o = json_object();

    time_format_iso(m->saved_at, saved_at);
    json_object_set_new(o, "format", json_string(FORMAT));
    json_object_set_new(
        o, "version", json_integer(m->n_packs ? MANIFEST_VERSION_PACKS : MANIFEST_VERSION));
    json_object_set_new(o, "cluster", json_text(m->cluster));
    json_object_set_new(o, "job", json_integer(m->job));
    json_object_set_new(o, "attempt", json_integer(m->id.attempt));
    json_object_set_new(o, "sequence", json_integer(m->id.sequence));
    json_object_set_new(o, "saved_at", json_string(saved_at));
    if (m->progress >= 0)
        json_object_set_new(o, "progress", json_integer(m->progress));
    json_add(out, o);
    buf_truncate(out, out->len - 1);
}

static void add_line(struct buf *out, json_t *item, bool is_last)
{
    json_add(out, item);
    buf_adds(out, is_last ? "\n" : ",\n");
}

/* True if JSON has this text as it is between its quotes. */
static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == '"' || s[i] == '\\')
            return false;
    return true;
}

/* There may be very many entries, and chunks in packs, so they are written, and take_entry and
 * take_packed read them, without a JSON object in between. */
static void add_entry(struct buf *out, const struct manifest_entry *entry, bool is_last)
{
    const char *target = entry->target;

    if (entry->extra || !is_plain(entry->path, strlen(entry->path)) ||
        (target && !is_plain(target, strlen(target)))) {
        add_line(out, entry_json(entry), is_last);
        return;
    }
    buf_printf(out, ENTRY_PATH "%s" ENTRY_TYPE "%s\"", entry->path, type_names[entry->type]);
    if (target)
        buf_printf(out, ENTRY_TARGET "%s\"", target);
    else
        buf_printf(out, ENTRY_MODE "%" PRId32, entry->mode);
    if (entry->type != MANIFEST_HARD)
        buf_printf(out, ENTRY_MTIME "%" PRId64, entry->mtime_ns);
    if (entry->type == MANIFEST_FILE)
        buf_printf(out, ENTRY_SIZE "%" PRId64, entry->size);
    buf_adds(out, is_last ? "}\n" : "},\n");
}

static void add_packed(struct buf *out, const struct manifest_chunk *c, bool is_last)
{
    buf_printf(out,
        PACKED_START "%" PRIu32 PACKED_AT "%" PRIu32 PACKED_SIZE "%" PRId64 PACKED_HASH "%s\"}%s\n",
        c->pack, c->at, c->size, c->sha256, is_last ? "" : ",");
}

static int check_size(const struct manifest *m, const struct buf *out, struct err *e)
{
    if (out->len + TAIL_LEN <= CKPT_MANIFEST_BYTES_MAX)
        return 0;
    return err_set(e, ERR_INVALID,
        "a checkpoint of %zu entries and %zu chunks is too large: its manifest would have over %u "
        "MiB",
        m->n_entries, m->n_chunks, CKPT_MANIFEST_BYTES_MAX >> 20);
}

void manifest_add_tail(struct buf *text)
{
    char hash[CHUNK_HEX_SIZE];

    chunk_hash(text->data, text->len, hash);
    buf_printf(text, "%s%s%s", TAIL_START, hash, TAIL_END);
}

int manifest_encode(const struct manifest *m, struct buf *out, struct err *e)
{
    int rc = 0;

    buf_clear(out);
    add_head(out, m);
    buf_adds(out, ENTRIES_OPEN "\n");
    for (size_t i = 0; !rc && i < m->n_entries; i++) {
        add_entry(out, &m->entries[i], i + 1 == m->n_entries);
        rc = check_size(m, out, e);
    }
    buf_adds(out, ENTRIES_CLOSE "\n");
    for (size_t i = 0; !rc && i < m->n_chunks; i++) {
        if (m->chunks[i].pack)
            add_packed(out, &m->chunks[i], i + 1 == m->n_chunks);
        else
            add_line(out, chunk_json(&m->chunks[i]), i + 1 == m->n_chunks);
        rc = check_size(m, out, e);
    }
    if (m->n_packs)
        buf_adds(out, CHUNKS_CLOSE_PACKS "\n");
    for (size_t i = 0; !rc && i < m->n_packs; i++) {
        add_line(out, chunk_json(&m->packs[i]), i + 1 == m->n_packs);
        rc = check_size(m, out, e);
    }
    buf_adds(out, LIST_CLOSE);
    if (rc)
        return rc;
    manifest_add_tail(out);
    return 0;
}

bool manifest_tail_fits(const char *text, size_t n)
{
    char tail[TAIL_LEN + 1], hash[CHUNK_HEX_SIZE];
    size_t head = n - TAIL_LEN;

    if (n <= TAIL_LEN)
        return false;
    chunk_hash(text, head, hash);
    snprintf(tail, sizeof(tail), "%s%s%s", TAIL_START, hash, TAIL_END);
    return memcmp(text + head, tail, TAIL_LEN) == 0;
}

static bool is_hash(const char *s)
{
    return strlen(s) == CHUNK_HEX_SIZE - 1 && strspn(s, "0123456789abcdef") == CHUNK_HEX_SIZE - 1;
}

static const char *keep(struct manifest *m, const char *s)
{
    return s ? manifest_text(m, s, strlen(s)) : ""; /* NULL if an error was recorded */
}

static void parse_data(struct json_reader *r, struct manifest *m, struct manifest_entry *entry)
{
    const json_t *a = json_opt_array(r, "data", MANIFEST_EXTENTS_MAX);
    size_t n = json_array_size(a);
    struct manifest_extent *v;
    int64_t end = -1; /* of the previous one */

    if (!a || r->rc)
        return;
    v = mem_array(n + 1, sizeof(*v));
    for (size_t i = 0; !r->rc && i < n; i++) {
        const json_t *pair = json_array_get(a, i);
        const json_t *offset = json_array_get(pair, 0), *size = json_array_get(pair, 1);

        if (json_array_size(pair) != 2 || !json_is_integer(offset) || !json_is_integer(size) ||
            json_integer_value(offset) <= end || json_integer_value(offset) >= entry->size ||
            json_integer_value(size) < 1 ||
            json_integer_value(size) > entry->size - json_integer_value(offset)) {
            json_reader_fail(r, "data",
                "expected pairs [offset, size] within the file, in order and not touching");
        } else {
            v[i] = (struct manifest_extent){json_integer_value(offset), json_integer_value(size)};
            end = v[i].offset + v[i].size;
        }
    }
    if (!r->rc)
        r->rc = manifest_set_data(m, entry, v, n, r->e);
    free(v);
}

/* Decodes lower-case hex; the caller frees. NULL if malformed. */
static char *unhex(const char *hex, size_t *ret_n)
{
    size_t n = strlen(hex) / 2;
    char *bytes = mem_alloc(n + 1);

    if (!str_unhex(hex, bytes, n)) {
        free(bytes);
        return NULL;
    }
    *ret_n = n;
    return bytes;
}

static bool is_xattr_name(const char *name)
{
    return str_starts(name, "user.") && name[5] && strlen(name) <= 255;
}

static void parse_xattrs(struct json_reader *r, struct manifest *m, struct manifest_entry *entry)
{
    const json_t *o = json_opt_object(r, "xattrs");
    struct manifest_xattr v[MANIFEST_XATTRS_MAX];
    const char *name, *before = "";
    const json_t *value;
    size_t n = 0;

    if (!o || r->rc)
        return;
    json_object_foreach((json_t *)o, name, value)
    {
        char *bytes = json_is_string(value) && n < MANIFEST_XATTRS_MAX && is_xattr_name(name) &&
                              strcmp(before, name) < 0
                          ? unhex(json_string_value(value), &v[n].size)
                          : NULL;

        if (!bytes) {
            json_reader_fail(
                r, "xattrs", "is not a list of user attributes in order, with values in hex");
            break;
        }
        before = v[n].name = name;
        v[n++].value = bytes;
    }
    if (!r->rc)
        r->rc = manifest_set_xattrs(m, entry, v, n, r->e);
    for (size_t i = 0; i < n; i++)
        free((void *)v[i].value);
}

static int parse_entry(const json_t *v, const char *path, struct manifest *m, struct err *e)
{
    struct manifest_entry *entry = manifest_add_entry(m);
    struct json_reader r;

    json_reader_init(&r, v, path, e);
    entry->type = (enum manifest_type)json_req_enum(&r, "type", type_names);
    entry->path = keep(m, json_req_str(&r, "path", CKPT_PATH_MAX - 1));
    if (entry->type == MANIFEST_LINK || entry->type == MANIFEST_HARD)
        entry->target = keep(m, json_req_str(&r, "target", CKPT_PATH_MAX - 1));
    else
        entry->mode = (int32_t)json_req_i64(&r, "mode", 0, 01777);
    if (entry->type != MANIFEST_HARD)
        entry->mtime_ns = json_req_i64(&r, "mtime_ns", INT64_MIN, INT64_MAX);
    if (entry->target && !*entry->target)
        json_reader_fail(&r, "target", "is empty");
    if (entry->type == MANIFEST_FILE) {
        entry->size = json_req_i64(&r, "size", 0, MANIFEST_BYTES_TOTAL_MAX);
        parse_data(&r, m, entry);
    }
    if (entry->type == MANIFEST_FILE || entry->type == MANIFEST_DIR)
        parse_xattrs(&r, m, entry);
    return json_reader_finish(&r);
}

static void parse_content(struct json_reader *r, struct manifest_chunk *c)
{
    json_req_strcpy(r, "sha256", c->sha256, sizeof(c->sha256));
    if (!r->rc && !is_hash(c->sha256))
        json_reader_fail(r, "sha256", "is not 64 lower-case hex digits");
    c->size = json_req_i64(r, "size", 1, CKPT_CHUNK_BYTES);
}

static int parse_object(const json_t *v, const char *path, struct manifest_chunk *c, struct err *e)
{
    struct json_reader r;

    json_reader_init(&r, v, path, e);
    parse_content(&r, c);
    c->stored = json_req_i64(&r, "stored", 1, r.rc ? 1 : c->size);
    return json_reader_finish(&r);
}

static int parse_chunk(const json_t *v, const char *path, struct manifest *m, struct err *e)
{
    return parse_object(v, path, manifest_add_chunk(m), e);
}

static int parse_pack(const json_t *v, const char *path, struct manifest *m, struct err *e)
{
    return parse_object(v, path, manifest_add_pack(m), e);
}

/* Of versions 4 and 6: in a pack, or not. check_packs checks that it lies in its pack. */
static int parse_any_chunk(const json_t *v, const char *path, struct manifest *m, struct err *e)
{
    struct manifest_chunk *c;
    struct json_reader r;

    if (!json_object_get(v, "pack"))
        return parse_chunk(v, path, m, e);
    c = manifest_add_chunk(m);
    json_reader_init(&r, v, path, e);
    parse_content(&r, c);
    c->stored = c->size;
    c->pack = (uint32_t)json_req_i64(&r, "pack", 1, CHUNKS_MAX);
    c->at = (uint32_t)json_req_i64(&r, "at", 0, CKPT_CHUNK_BYTES - 1);
    return json_reader_finish(&r);
}

static int check_packs(const struct manifest *m, struct err *e)
{
    for (size_t i = 0; i < m->n_chunks; i++) {
        const struct manifest_chunk *c = &m->chunks[i];

        if (c->pack > m->n_packs)
            return err_set(e, ERR_INVALID, "chunks[%zu] is in pack %" PRIu32 " of %zu", i, c->pack,
                m->n_packs);
        if (c->pack && c->at + c->size > m->packs[c->pack - 1].size)
            return err_set(e, ERR_INVALID,
                "chunks[%zu]: %" PRId64 " bytes at %" PRIu32 " end after its pack of %" PRId64, i,
                c->size, c->at, m->packs[c->pack - 1].size);
    }
    return 0;
}

typedef int (*parse_item_fn)(const json_t *v, const char *path, struct manifest *m, struct err *e);

static int parse_items(
    const json_t *array, const char *name, parse_item_fn fn, struct manifest *m, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < json_array_size(array); i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s[%zu]", name, i);
        rc = fn(json_array_get(array, i), path, m, e);
    }
    return rc;
}

/* Reads the version first, so that other versions are not checked by our rules. 0 = not found. */
static int64_t version_of(const char *text, size_t n)
{
    int64_t version = 0;
    size_t at = sizeof(HEAD_START) - 1;

    if (n < at || memcmp(text, HEAD_START, at) != 0)
        return 0;
    for (; at < n && text[at] >= '0' && text[at] <= '9'; at++) {
        version = 10 * version + (text[at] - '0');
        if (version > INT32_MAX)
            return 0;
    }
    return at < n && text[at] == ',' ? version : 0;
}

/* The members before the entries; *ret_saved_at is borrowed from the object. */
static void parse_head(struct json_reader *r, struct manifest *m, const char **ret_saved_at)
{
    json_req_str(r, "format", 64);
    json_req_i64(r, "version", 1, MANIFEST_VERSION_PACKS);
    json_req_strcpy(r, "cluster", m->cluster, sizeof(m->cluster));
    m->job = json_req_i64(r, "job", 1, INT64_MAX);
    m->id.attempt = json_req_i64(r, "attempt", 1, CKPT_NUMBER_MAX);
    m->id.sequence = json_req_i64(r, "sequence", 1, CKPT_NUMBER_MAX);
    *ret_saved_at = json_req_str(r, "saved_at", TIME_ISO_MAX);
    m->progress = json_opt_i64(r, "progress", 0, INT64_MAX, -1);
}

static int parse_version_1(const json_t *o, struct manifest *m, struct err *e)
{
    const json_t *entries, *chunks;
    const char *saved_at;
    struct json_reader r;
    int rc;

    json_reader_init(&r, o, "", e);
    parse_head(&r, m, &saved_at);
    entries = json_req_array(&r, "entries", CKPT_FILES_MAX);
    chunks = json_req_array(&r, "chunks", CHUNKS_MAX);
    json_req_str(&r, "sha256", CHUNK_HEX_SIZE - 1);
    rc = json_reader_finish(&r);
    if (!rc)
        rc = time_parse_iso(saved_at, &m->saved_at, e);
    if (!rc)
        rc = parse_items(entries, "entries", parse_entry, m, e);
    return rc ? rc : parse_items(chunks, "chunks", parse_chunk, m, e);
}

struct lines {
    const char *at, *end;
};

/* The next line without its newline, which the last line may lack. */
static bool take_line(struct lines *l, const char **ret_line, size_t *ret_n)
{
    const char *newline = l->at < l->end ? memchr(l->at, '\n', (size_t)(l->end - l->at)) : NULL;

    if (l->at >= l->end)
        return false;
    *ret_line = l->at;
    *ret_n = (size_t)((newline ? newline : l->end) - l->at);
    l->at = newline ? newline + 1 : l->end;
    return true;
}

static int parse_head_line(struct lines *l, struct manifest *m, struct err *e)
{
    const size_t n_open = sizeof(ENTRIES_OPEN) - 1;
    const char *line, *saved_at;
    struct buf text = {0};
    struct json_reader r;
    json_t *o = NULL;
    size_t n;
    int rc;

    if (!take_line(l, &line, &n) || n < n_open || n > LINE_MAX_BYTES ||
        memcmp(line + n - n_open, ENTRIES_OPEN, n_open) != 0)
        return err_set(e, ERR_INVALID, "its first line does not end with the start of the entries");
    buf_add(&text, line, n - n_open);
    buf_addc(&text, '}');
    rc = json_parse(text.data, text.len, LINE_MAX_BYTES, &o, e);
    if (!rc) {
        json_reader_init(&r, o, "", e);
        parse_head(&r, m, &saved_at);
        rc = json_reader_finish(&r);
    }
    if (!rc)
        rc = time_parse_iso(saved_at, &m->saved_at, e);
    json_decref(o);
    buf_deinit(&text);
    return rc;
}

static bool take_text(struct lines *l, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(l->end - l->at) < n || memcmp(l->at, text, n) != 0)
        return false;
    l->at += n;
    return true;
}

/* Takes `before` and a number of min .. max, without leading zeros. */
static bool take_number(struct lines *l, const char *before, int64_t min, int64_t max, int64_t *ret)
{
    int64_t number = 0;
    size_t digits = 0;

    if (!take_text(l, before))
        return false;
    for (; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++) {
        if (number > (INT64_MAX - 9) / 10 || (++digits == 2 && number == 0))
            return false;
        number = 10 * number + (*l->at - '0');
    }
    *ret = number;
    return digits > 0 && number >= min && number <= max;
}

/* Adds the chunk that add_packed has written as this line; false if it has another form, which may
 * be valid too. */
static bool take_packed(const char *line, size_t n, struct manifest *m)
{
    static const size_t hash = sizeof(PACKED_HASH) - 1, hex = CHUNK_HEX_SIZE - 1;
    struct lines l = {.at = line, .end = line + n};
    int64_t pack, at, size;
    char sha256[CHUNK_HEX_SIZE] = "";
    struct manifest_chunk *c;

    if (!take_number(&l, PACKED_START, 1, CHUNKS_MAX, &pack) ||
        !take_number(&l, PACKED_AT, 0, CKPT_CHUNK_BYTES - 1, &at) ||
        !take_number(&l, PACKED_SIZE, 1, CKPT_CHUNK_BYTES, &size) ||
        (size_t)(l.end - l.at) != hash + hex + 2 || memcmp(l.at, PACKED_HASH, hash) != 0 ||
        memcmp(l.end - 2, "\"}", 2) != 0)
        return false;
    memcpy(sha256, l.at + hash, hex);
    if (!is_hash(sha256))
        return false;
    c = manifest_add_chunk(m);
    *c = (struct manifest_chunk){
        .size = size, .stored = size, .pack = (uint32_t)pack, .at = (uint32_t)at};
    memcpy(c->sha256, sha256, sizeof(sha256));
    return true;
}

/* Takes `before` and a string up to its closing quote, which JSON has as it is. */
static bool take_string(struct lines *l, const char *before, const char **ret, size_t *ret_n)
{
    const char *end, *start = l->at + strlen(before);

    if (!take_text(l, before))
        return false;
    end = memchr(start, '"', (size_t)(l->end - start));
    if (!end || end == start || end - start >= CKPT_PATH_MAX ||
        !is_plain(start, (size_t)(end - start)))
        return false;
    l->at = end + 1;
    *ret = start;
    *ret_n = (size_t)(end - start);
    return true;
}

static bool take_type(struct lines *l, enum manifest_type *ret)
{
    const char *name;
    size_t n;

    if (!take_string(l, &ENTRY_TYPE[1], &name, &n))
        return false;
    for (int i = 0; type_names[i]; i++)
        if (strlen(type_names[i]) == n && memcmp(type_names[i], name, n) == 0) {
            *ret = (enum manifest_type)i;
            return true;
        }
    return false;
}

/* As take_packed, of an entry that add_entry has written. */
static bool take_entry(const char *line, size_t n, struct manifest *m)
{
    struct lines l = {.at = line, .end = line + n};
    const char *path, *target = NULL;
    struct manifest_entry entry = {0}, *added;
    size_t n_path, n_target = 0;
    int64_t mode = 0;
    bool links;

    if (!take_string(&l, ENTRY_PATH, &path, &n_path) || !take_type(&l, &entry.type))
        return false;
    links = entry.type == MANIFEST_LINK || entry.type == MANIFEST_HARD;
    if (links &&
        (!take_string(&l, ENTRY_TARGET, &target, &n_target) || !str_is_utf8(target, n_target)))
        return false;
    if ((!links && !take_number(&l, ENTRY_MODE, 0, 01777, &mode)) ||
        (entry.type != MANIFEST_HARD &&
            !take_number(&l, ENTRY_MTIME, 0, INT64_MAX, &entry.mtime_ns)) ||
        (entry.type == MANIFEST_FILE &&
            !take_number(&l, ENTRY_SIZE, 0, MANIFEST_BYTES_TOTAL_MAX, &entry.size)) ||
        !take_text(&l, "}") || l.at != l.end || !str_is_utf8(path, n_path))
        return false;
    entry.mode = (int32_t)mode;
    entry.path = manifest_text(m, path, n_path);
    entry.target = links ? manifest_text(m, target, n_target) : NULL;
    added = manifest_add_entry(m);
    *added = entry;
    return true;
}

static int parse_line(const char *line, size_t n, const char *name, size_t i, parse_item_fn fn,
    struct manifest *m, struct err *e)
{
    json_t *v = NULL;
    int rc = json_parse(line, n, LINE_MAX_BYTES, &v, e);
    char path[64];

    snprintf(path, sizeof(path), "%s[%zu]", name, i);
    if (rc)
        return err_wrap(e, "%s", path);
    rc = fn(v, path, m, e);
    json_decref(v);
    return rc;
}

/* One item per line, with a comma at the end of all but the last, up to the line `close`. */
static int parse_lines(struct lines *l, const char *close, const char *name, size_t max,
    parse_item_fn fn, struct manifest *m, struct err *e)
{
    bool comma = false;
    const char *line;
    size_t n;
    int rc = 0;

    for (size_t i = 0; !rc && take_line(l, &line, &n); i++) {
        bool closes = n == strlen(close) && memcmp(line, close, n) == 0;

        if (i > 0 && comma == closes)
            return err_set(e, ERR_INVALID, "%s[%zu]: a comma is missing or superfluous", name, i);
        if (closes)
            return 0;
        if (i >= max)
            return err_set(e, ERR_INVALID, "%s: over %zu", name, max);
        comma = n > 0 && line[n - 1] == ',';
        if (!(fn == parse_any_chunk && take_packed(line, n - comma, m)) &&
            !(fn == parse_entry && take_entry(line, n - comma, m)))
            rc = parse_line(line, n - comma, name, i, fn, m, e);
    }
    return rc ? rc : err_set(e, ERR_INVALID, "%s: the list has no end", name);
}

/* Skips all lines up to the line `close`. */
static int skip_lines(struct lines *l, const char *close, const char *name, struct err *e)
{
    const char *line;
    size_t n;

    while (take_line(l, &line, &n))
        if (n == strlen(close) && memcmp(line, close, n) == 0)
            return 0;
    return err_set(e, ERR_INVALID, "%s: the list has no end", name);
}

/* Versions 2, 4 and 6. */
static int parse_by_lines(const char *text, size_t n, int64_t version, bool only_chunks,
    struct manifest *m, struct err *e)
{
    bool packs = version == MANIFEST_VERSION_PACKS || version == MANIFEST_VERSION_PACKS_4;
    struct lines l = {.at = text, .end = text + n};
    int rc = parse_head_line(&l, m, e);

    if (!rc && only_chunks)
        rc = skip_lines(&l, ENTRIES_CLOSE, "entries", e);
    else if (!rc)
        rc = parse_lines(&l, ENTRIES_CLOSE, "entries", CKPT_FILES_MAX, parse_entry, m, e);
    if (!rc)
        rc = parse_lines(&l, packs ? CHUNKS_CLOSE_PACKS : LIST_CLOSE, "chunks", CHUNKS_MAX,
            packs ? parse_any_chunk : parse_chunk, m, e);
    if (!rc && packs)
        rc = parse_lines(&l, LIST_CLOSE, "packs", CHUNKS_MAX, parse_pack, m, e);
    if (!rc && l.at != l.end)
        rc = err_set(e, ERR_INVALID, "unexpected text after its chunks");
    if (!rc && packs && m->n_packs == 0)
        rc = err_set(e, ERR_INVALID, "version %" PRId64 " without packs", version);
    return rc ? rc : check_packs(m, e);
}

static int parse_text(
    const char *text, size_t n, bool only_chunks, struct manifest *m, struct err *e)
{
    int64_t version = version_of(text, n);
    json_t *o = NULL;
    int rc;

    if (version < 1)
        return err_set(e, ERR_INVALID, "it does not begin as one of " FORMAT " does");
    if (version > MANIFEST_VERSION_PACKS || version == MANIFEST_VERSION_SEALED)
        return err_set(e, ERR_UNSUPPORTED,
            "it was written by a later belay (format version %" PRId64
            ", this one reads %d): upgrade this machine",
            version, MANIFEST_VERSION_PACKS);
    if (version == MANIFEST_VERSION_SHRUNK)
        return err_set(e, ERR_INVALID, "it is compressed twice");
    if (version != 1)
        return parse_by_lines(text, n - TAIL_LEN, version, only_chunks, m, e);
    rc = json_parse(text, n, VERSION_1_BYTES_MAX, &o, e);
    if (!rc)
        rc = parse_version_1(o, m, e);
    json_decref(o);
    return rc;
}

static int parse(const char *text, size_t n, bool only_chunks, struct manifest *ret, struct err *e)
{
    struct manifest m = {0};
    int rc;

    if (n <= TAIL_LEN || n > CKPT_MANIFEST_BYTES_MAX)
        return err_set(e, ERR_CORRUPT, "the manifest has %zu bytes: expected %d .. %u", n,
            TAIL_LEN + 1, CKPT_MANIFEST_BYTES_MAX);
    if (!manifest_tail_fits(text, n))
        return err_set(e, ERR_CORRUPT, "the manifest does not match its own hash");
    rc = parse_text(text, n, only_chunks, &m, e);
    if (!rc && !only_chunks)
        rc = manifest_lay_out(&m, e);
    if (!rc) {
        memcpy(m.sha256, text + n - strlen(TAIL_END) - (CHUNK_HEX_SIZE - 1), CHUNK_HEX_SIZE - 1);
        *ret = m;
        return 0;
    }
    manifest_deinit(&m);
    if (rc != ERR_UNSUPPORTED)
        e->kind = ERR_CORRUPT;
    return err_wrap(e, "the manifest");
}

int manifest_parse(const char *text, size_t n, struct manifest *ret, struct err *e)
{
    return parse(text, n, false, ret, e);
}

int manifest_parse_chunks(const char *text, size_t n, struct manifest *ret, struct err *e)
{
    return parse(text, n, true, ret, e);
}
