/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a manifest. The last member is the SHA-256 of everything before it and has a fixed form, so
 * every byte of the text is either under the hash or compared.
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
#define TAIL_START ",\"sha256\":\""
#define TAIL_END "\"}"
#define TAIL_LEN (sizeof(TAIL_START TAIL_END) - 1 + CHUNK_HEX_SIZE - 1)
#define CHUNKS_MAX (CKPT_MANIFEST_BYTES_MAX / 100) /* no chunk's text is shorter */

static const char *const type_names[] = {"dir", "file", "link", NULL};

static json_t *entry_json(const struct manifest_entry *entry)
{
    json_t *o = json_object();

    json_object_set_new(o, "path", json_text(entry->path));
    json_object_set_new(o, "type", json_string(type_names[entry->type]));
    if (entry->type == MANIFEST_LINK)
        json_object_set_new(o, "target", json_text(entry->target));
    else
        json_object_set_new(o, "mode", json_integer(entry->mode));
    json_object_set_new(o, "mtime_ns", json_integer(entry->mtime_ns));
    if (entry->type == MANIFEST_FILE)
        json_object_set_new(o, "size", json_integer(entry->size));
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

static json_t *manifest_json(const struct manifest *m)
{
    char saved_at[TIME_ISO_MAX];
    json_t *o = json_object(), *entries = json_array(), *chunks = json_array();

    time_format_iso(m->saved_at, saved_at);
    json_object_set_new(o, "format", json_string(FORMAT));
    json_object_set_new(o, "version", json_integer(MANIFEST_VERSION));
    json_object_set_new(o, "cluster", json_text(m->cluster));
    json_object_set_new(o, "job", json_integer(m->job));
    json_object_set_new(o, "attempt", json_integer(m->id.attempt));
    json_object_set_new(o, "sequence", json_integer(m->id.sequence));
    json_object_set_new(o, "saved_at", json_string(saved_at));
    if (m->progress >= 0)
        json_object_set_new(o, "progress", json_integer(m->progress));
    for (size_t i = 0; i < m->n_entries; i++)
        json_array_append_new(entries, entry_json(&m->entries[i]));
    json_object_set_new(o, "entries", entries);
    for (size_t i = 0; i < m->n_chunks; i++)
        json_array_append_new(chunks, chunk_json(&m->chunks[i]));
    json_object_set_new(o, "chunks", chunks);
    return o;
}

int manifest_encode(const struct manifest *m, struct buf *out, struct err *e)
{
    json_t *o = manifest_json(m);
    char *text = json_dump_text(o);
    size_t n = strlen(text) - 1; /* without the last brace: the hash goes before it */
    char hash[CHUNK_HEX_SIZE];

    json_decref(o);
    buf_clear(out);
    if (n + TAIL_LEN > CKPT_MANIFEST_BYTES_MAX) {
        free(text);
        return err_set(e, ERR_INVALID,
            "a checkpoint of %zu entries and %zu chunks is too large: its manifest would have %zu bytes, "
            "%u are supported",
            m->n_entries, m->n_chunks, n, CKPT_MANIFEST_BYTES_MAX);
    }
    chunk_hash(text, n, hash);
    buf_add(out, text, n);
    buf_printf(out, "%s%s%s", TAIL_START, hash, TAIL_END);
    free(text);
    return 0;
}

static bool hash_matches(const char *text, size_t n)
{
    char tail[TAIL_LEN + 1], hash[CHUNK_HEX_SIZE];
    size_t head = n - TAIL_LEN;

    chunk_hash(text, head, hash);
    snprintf(tail, sizeof(tail), "%s%s%s", TAIL_START, hash, TAIL_END);
    return memcmp(text + head, tail, TAIL_LEN) == 0;
}

static bool is_hash(const char *s)
{
    return strlen(s) == CHUNK_HEX_SIZE - 1 && strspn(s, "0123456789abcdef") == CHUNK_HEX_SIZE - 1;
}

static int parse_entry(const json_t *v, const char *path, struct manifest *m, struct err *e)
{
    struct manifest_entry *entry = manifest_add_entry(m);
    struct json_reader r;

    json_reader_init(&r, v, path, e);
    entry->type = (enum manifest_type)json_req_enum(&r, "type", type_names);
    entry->path = mem_strdup(json_req_str(&r, "path", CKPT_PATH_MAX - 1));
    if (entry->type == MANIFEST_LINK)
        entry->target = mem_strdup(json_req_str(&r, "target", CKPT_PATH_MAX - 1));
    else
        entry->mode = (int32_t)json_req_i64(&r, "mode", 0, 01777);
    entry->mtime_ns = json_req_i64(&r, "mtime_ns", INT64_MIN, INT64_MAX);
    if (entry->type == MANIFEST_FILE)
        entry->size = json_req_i64(&r, "size", 0, MANIFEST_BYTES_TOTAL_MAX);
    if (entry->target && !*entry->target)
        json_reader_fail(&r, "target", "is empty");
    return json_reader_finish(&r);
}

static int parse_chunk(const json_t *v, const char *path, struct manifest *m, struct err *e)
{
    struct manifest_chunk *c = manifest_add_chunk(m);
    struct json_reader r;

    json_reader_init(&r, v, path, e);
    json_req_strcpy(&r, "sha256", c->sha256, sizeof(c->sha256));
    if (!r.rc && !is_hash(c->sha256))
        json_reader_fail(&r, "sha256", "is not 64 lower-case hex digits");
    c->size = json_req_i64(&r, "size", 1, CKPT_CHUNK_BYTES);
    c->stored = json_req_i64(&r, "stored", 1, r.rc ? 1 : c->size);
    return json_reader_finish(&r);
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

/* What comes before all else: another format's or version's other members are not ours to judge. */
static int check_version(const json_t *o, struct err *e)
{
    struct json_reader r;
    const char *format;
    int64_t version;
    int rc;

    json_reader_init(&r, o, "", e);
    format = json_req_str(&r, "format", 64);
    version = json_req_i64(&r, "version", 1, INT32_MAX);
    rc = json_reader_finish_lenient(&r);
    if (!rc && strcmp(format, FORMAT) != 0)
        rc = err_set(e, ERR_INVALID, "format '%.64s' is not " FORMAT, format);
    if (!rc && version > MANIFEST_VERSION)
        rc = err_set(e, ERR_UNSUPPORTED,
            "it was written by a later belay (format version %" PRId64
            ", this one reads %d): upgrade this machine",
            version, MANIFEST_VERSION);
    return rc;
}

static int parse_object(const json_t *o, struct manifest *m, struct err *e)
{
    const json_t *entries, *chunks;
    const char *saved_at;
    struct json_reader r;
    int rc = check_version(o, e);

    if (rc)
        return rc;
    json_reader_init(&r, o, "", e);
    json_req_str(&r, "format", 64);
    json_req_i64(&r, "version", 1, INT32_MAX);
    json_req_strcpy(&r, "cluster", m->cluster, sizeof(m->cluster));
    m->job = json_req_i64(&r, "job", 1, INT64_MAX);
    m->id.attempt = json_req_i64(&r, "attempt", 1, CKPT_NUMBER_MAX);
    m->id.sequence = json_req_i64(&r, "sequence", 1, CKPT_NUMBER_MAX);
    saved_at = json_req_str(&r, "saved_at", TIME_ISO_MAX);
    m->progress = json_opt_i64(&r, "progress", 0, INT64_MAX, -1);
    entries = json_req_array(&r, "entries", CKPT_FILES_MAX);
    chunks = json_req_array(&r, "chunks", CHUNKS_MAX);
    json_req_str(&r, "sha256", CHUNK_HEX_SIZE - 1);
    rc = json_reader_finish(&r);
    if (!rc)
        rc = time_parse_iso(saved_at, &m->saved_at, e);
    if (!rc)
        rc = parse_items(entries, "entries", parse_entry, m, e);
    if (!rc)
        rc = parse_items(chunks, "chunks", parse_chunk, m, e);
    return rc ? rc : manifest_lay_out(m, e);
}

int manifest_parse(const char *text, size_t n, struct manifest *ret, struct err *e)
{
    struct manifest m = {0};
    json_t *o = NULL;
    int rc;

    if (n <= TAIL_LEN || n > CKPT_MANIFEST_BYTES_MAX)
        return err_set(e, ERR_CORRUPT, "the manifest has %zu bytes: expected %zu .. %u", n, TAIL_LEN + 1,
            CKPT_MANIFEST_BYTES_MAX);
    if (!hash_matches(text, n))
        return err_set(e, ERR_CORRUPT, "the manifest does not match its own hash");
    rc = json_parse(text, n, CKPT_MANIFEST_BYTES_MAX, &o, e);
    if (!rc)
        rc = parse_object(o, &m, e);
    json_decref(o);
    if (!rc) {
        *ret = m;
        return 0;
    }
    manifest_deinit(&m);
    if (rc != ERR_UNSUPPORTED)
        e->kind = ERR_CORRUPT;
    return err_wrap(e, "the manifest");
}
