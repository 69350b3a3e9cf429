/* SPDX-License-Identifier: Apache-2.0
 *
 * The manifest as a structure: rules, cuts and pieces. Its text is in manifest_json.c.
 */
#include "ckpt/manifest.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (64u << 10)

struct manifest_block {
    struct manifest_block *next;
    size_t used, size;
    _Alignas(8) char data[];
};

void manifest_drop_entries(struct manifest *m)
{
    free(m->entries);
    m->entries = NULL;
    m->n_entries = m->cap_entries = 0;
    while (m->blocks) {
        struct manifest_block *next = m->blocks->next;

        free(m->blocks);
        m->blocks = next;
    }
    m->extra_bytes = 0;
}

void manifest_deinit(struct manifest *m)
{
    manifest_drop_entries(m);
    free(m->chunks);
    free(m->packs);
    *m = (struct manifest){0};
}

/* Allocates n bytes that live as long as the entries; align is a power of 2, at most 8. */
static void *alloc(struct manifest *m, size_t n, size_t align)
{
    struct manifest_block *b = m->blocks;
    size_t at = b ? (b->used + align - 1) & ~(align - 1) : 0;

    if (!b || at > b->size || n > b->size - at) {
        size_t size = n > BLOCK_BYTES ? n : BLOCK_BYTES;

        b = mem_alloc(sizeof(*b) + size);
        b->size = size;
        b->next = m->blocks;
        m->blocks = b;
        at = 0;
    }
    b->used = at + n;
    return b->data + at;
}

const char *manifest_text(struct manifest *m, const char *s, size_t n)
{
    char *text = alloc(m, n + 1, 1);

    memcpy(text, s, n);
    text[n] = '\0';
    return text;
}

static int take_extra(struct manifest *m, struct manifest_entry *entry, size_t bytes, struct err *e)
{
    if (bytes > MANIFEST_EXTRA_BYTES_MAX - m->extra_bytes)
        return err_set(e, ERR_INVALID,
            "'%.200s': extended attributes and the places of holes take more than %u MiB in total",
            entry->path, MANIFEST_EXTRA_BYTES_MAX >> 20);
    m->extra_bytes += bytes;
    if (!entry->extra) {
        entry->extra = alloc(m, sizeof(*entry->extra), 8);
        *entry->extra = (struct manifest_extra){0};
    }
    return 0;
}

int manifest_set_data(struct manifest *m, struct manifest_entry *entry,
    const struct manifest_extent *v, size_t n, struct err *e)
{
    struct manifest_extent *data;
    int rc;

    if (n > MANIFEST_EXTENTS_MAX)
        return err_set(
            e, ERR_INVALID, "'%.200s' has over %d extents", entry->path, MANIFEST_EXTENTS_MAX);
    rc = take_extra(m, entry, sizeof(*entry->extra) + n * sizeof(*v), e);
    if (rc)
        return rc;
    data = alloc(m, n * sizeof(*v), 8);
    entry->extra->is_sparse = true;
    entry->extra->data = data;
    entry->extra->n_data = n;
    entry->extra->content = 0;
    for (size_t i = 0; i < n; i++) {
        data[i] = v[i];
        entry->extra->content += v[i].size;
    }
    return 0;
}

int manifest_set_xattrs(struct manifest *m, struct manifest_entry *entry,
    const struct manifest_xattr *v, size_t n, struct err *e)
{
    size_t bytes = sizeof(*entry->extra) + n * sizeof(*v), values = 0;
    struct manifest_xattr *xattrs;
    int rc;

    for (size_t i = 0; i < n && i < MANIFEST_XATTRS_MAX; i++) {
        values += v[i].size;
        bytes += v[i].size + strlen(v[i].name) + 2;
    }
    if (n > MANIFEST_XATTRS_MAX || values > MANIFEST_XATTR_BYTES_MAX)
        return err_set(e, ERR_INVALID,
            "'%.200s' has over %d extended attributes, or over %u bytes of them", entry->path,
            MANIFEST_XATTRS_MAX, MANIFEST_XATTR_BYTES_MAX);
    rc = take_extra(m, entry, bytes, e);
    if (rc)
        return rc;
    xattrs = alloc(m, n * sizeof(*v), 8);
    for (size_t i = 0; i < n; i++)
        xattrs[i] = (struct manifest_xattr){.name = manifest_text(m, v[i].name, strlen(v[i].name)),
            .value = manifest_text(m, v[i].value, v[i].size),
            .size = v[i].size};
    entry->extra->xattrs = xattrs;
    entry->extra->n_xattrs = n;
    return 0;
}

/* Makes space for one more; returns the array's address, which may be new. */
static void *grown(void *v, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return v;
    *cap = *cap ? 2 * *cap : 16;
    return mem_resize(v, *cap, size);
}

struct manifest_entry *manifest_add_entry(struct manifest *m)
{
    m->entries = grown(m->entries, m->n_entries, &m->cap_entries, sizeof(m->entries[0]));
    m->entries[m->n_entries] = (struct manifest_entry){0};
    return &m->entries[m->n_entries++];
}

struct manifest_chunk *manifest_add_chunk(struct manifest *m)
{
    m->chunks = grown(m->chunks, m->n_chunks, &m->cap_chunks, sizeof(m->chunks[0]));
    m->chunks[m->n_chunks] = (struct manifest_chunk){0};
    return &m->chunks[m->n_chunks++];
}

struct manifest_chunk *manifest_add_pack(struct manifest *m)
{
    m->packs = grown(m->packs, m->n_packs, &m->cap_packs, sizeof(m->packs[0]));
    m->packs[m->n_packs] = (struct manifest_chunk){0};
    return &m->packs[m->n_packs++];
}

int manifest_check_path(const char *path, struct err *e)
{
    size_t len = strlen(path);
    int depth = 0;

    if (len == 0 || len >= CKPT_PATH_MAX)
        return err_set(
            e, ERR_INVALID, "path of %zu bytes: expected 1 .. %d", len, CKPT_PATH_MAX - 1);
    if (!str_is_utf8(path, len))
        return err_set(e, ERR_INVALID, "path '%.200s' is not UTF-8", path);
    for (const char *part = path;; depth++) {
        size_t n = strcspn(part, "/");

        if (n == 0 || n > 255 || (n == 1 && part[0] == '.') ||
            (n == 2 && memcmp(part, "..", 2) == 0))
            return err_set(e, ERR_INVALID, "path '%.200s' is not safe or not plain", path);
        if (depth >= MANIFEST_DEPTH_MAX)
            return err_set(e, ERR_INVALID,
                "path '%.200s' has more than %d parts (nested directories)", path,
                MANIFEST_DEPTH_MAX);
        if (!part[n])
            return 0;
        part += n + 1;
    }
}

/* Adds a chunk of n bytes, if n is not 0. */
static void add_cut(struct manifest *m, int64_t n, uint32_t pack)
{
    struct manifest_chunk *c;

    if (n == 0)
        return;
    c = manifest_add_chunk(m);
    c->size = c->stored = n;
    c->pack = pack;
}

static bool is_small(const struct manifest_entry *entry)
{
    return manifest_content(entry) > 0 && manifest_content(entry) < MANIFEST_CUT_BYTES;
}

/* One of how many small files ends a chunk. */
static uint64_t cut_every(const struct manifest *m)
{
    uint64_t n = 0;

    for (size_t i = 0; i < m->n_entries; i++)
        n += is_small(&m->entries[i]);
    return 1 + n / MANIFEST_PACKED_MAX;
}

void manifest_cut(struct manifest *m)
{
    uint64_t every = cut_every(m);
    int64_t open_bytes = 0; /* of the current chunk of small files */

    m->n_chunks = 0;
    for (size_t i = 0; i < m->n_entries; i++) {
        const struct manifest_entry *entry = &m->entries[i];
        int64_t left = manifest_content(entry);
        bool small = is_small(entry), ends = every == 1 || hash_text(entry->path) % every == 0;

        open_bytes += small ? left : 0;
        if (left > 0 && (!small || ends || open_bytes >= MANIFEST_CUT_BYTES)) {
            add_cut(m, open_bytes, MANIFEST_NO_PACK);
            open_bytes = 0;
        }
        for (; !small && left > 0; left -= CKPT_CHUNK_BYTES)
            add_cut(m, left < (int64_t)CKPT_CHUNK_BYTES ? left : (int64_t)CKPT_CHUNK_BYTES, 0);
    }
    add_cut(m, open_bytes, MANIFEST_NO_PACK);
}

static int compare_path(const void *path, const void *entry)
{
    return strcmp(path, ((const struct manifest_entry *)entry)->path);
}

/* Whether two paths have the same parent, of n bytes. */
static bool same_parent(const char *path, const char *before, size_t n)
{
    return strncmp(path, before, n + 1) == 0 && !strchr(before + n + 1, '/');
}

/* The entry before i that is path's parent must be a directory. */
static int check_parent(const struct manifest *m, size_t i, struct err *e)
{
    const char *path = m->entries[i].path;
    const char *slash = strrchr(path, '/');
    const struct manifest_entry *parent;
    char *name;

    if (!slash || (i > 0 && same_parent(path, m->entries[i - 1].path, (size_t)(slash - path))))
        return 0; /* of the one before it was checked */
    name = mem_strndup(path, (size_t)(slash - path));
    parent = bsearch(name, m->entries, i, sizeof(m->entries[0]), compare_path);
    free(name);
    if (!parent || parent->type != MANIFEST_DIR)
        return err_set(e, ERR_CORRUPT, "'%.200s' is not in a directory of the checkpoint", path);
    return 0;
}

/* A hard link comes after the file or symbolic link that it is another name of. */
static int check_hard(const struct manifest *m, size_t i, struct err *e)
{
    const struct manifest_entry *entry = &m->entries[i], *first;

    if (entry->type != MANIFEST_HARD)
        return 0;
    first = bsearch(entry->target, m->entries, i, sizeof(m->entries[0]), compare_path);
    if (!first || (first->type != MANIFEST_FILE && first->type != MANIFEST_LINK))
        return err_set(e, ERR_CORRUPT,
            "'%.200s' is a hard link to '%.200s', which is not an earlier file or symbolic link",
            entry->path, entry->target);
    return 0;
}

static int check_entry(const struct manifest *m, size_t i, struct err *e)
{
    int rc;

    const struct manifest_entry *entry = &m->entries[i];

    if (manifest_check_path(entry->path, e))
        return e->kind = ERR_CORRUPT;
    if (i > 0 && strcmp(m->entries[i - 1].path, entry->path) >= 0)
        return err_set(e, ERR_CORRUPT, "'%.200s' is out of order", entry->path);
    rc = check_parent(m, i, e);
    return rc ? rc : check_hard(m, i, e);
}

int manifest_lay_out(struct manifest *m, struct err *e)
{
    int64_t content = 0, chunks = 0;
    int rc;

    for (size_t i = 0; i < m->n_entries; i++) {
        rc = check_entry(m, i, e);
        if (rc)
            return rc;
        m->entries[i].offset = content;
        content += manifest_content(&m->entries[i]);
        if (content > MANIFEST_BYTES_TOTAL_MAX)
            return err_set(
                e, ERR_CORRUPT, "more than %lld bytes", (long long)MANIFEST_BYTES_TOTAL_MAX);
    }
    for (size_t i = 0; i < m->n_chunks; i++) {
        m->chunks[i].offset = chunks;
        /* cannot overflow: at most CKPT_CHUNK_BYTES each, and memory limits their number */
        chunks += m->chunks[i].size;
    }
    if (chunks != content)
        return err_set(e, ERR_CORRUPT, "the files have %lld bytes, the chunks %lld",
            (long long)content, (long long)chunks);
    return 0;
}

void manifest_objects_init(struct manifest_objects *o, const struct manifest *m)
{
    size_t *next = mem_array(m->n_packs + 1, sizeof(*next)), n = 0;

    *o = (struct manifest_objects){.n = m->n_packs};
    for (size_t i = 0; i < m->n_chunks; i++)
        if (m->chunks[i].pack)
            next[m->chunks[i].pack - 1]++;
        else
            o->n++;
    o->first = mem_array(o->n + 1, sizeof(o->first[0]));
    o->chunks = mem_array(m->n_chunks + 1, sizeof(o->chunks[0]));
    for (size_t i = 0; i < m->n_packs; i++) {
        o->first[i] = n;
        n += next[i];
        next[i] = o->first[i];
    }
    for (size_t i = 0, single = m->n_packs; i < m->n_chunks; i++)
        if (m->chunks[i].pack) {
            o->chunks[next[m->chunks[i].pack - 1]++] = (uint32_t)i;
        } else {
            o->first[single++] = n;
            o->chunks[n++] = (uint32_t)i;
        }
    o->first[o->n] = n;
    free(next);
}

void manifest_objects_deinit(struct manifest_objects *o)
{
    free(o->first);
    free(o->chunks);
    *o = (struct manifest_objects){0};
}

int64_t manifest_bytes(const struct manifest *m)
{
    const struct manifest_chunk *last = m->n_chunks ? &m->chunks[m->n_chunks - 1] : NULL;

    return last ? last->offset + last->size : 0;
}

int64_t manifest_files(const struct manifest *m)
{
    int64_t n = 0;

    for (size_t i = 0; i < m->n_entries; i++)
        n += m->entries[i].type == MANIFEST_FILE;
    return n;
}

/* The first entry that ends after offset. */
static size_t first_entry_after(const struct manifest *m, int64_t offset)
{
    size_t low = 0, high = m->n_entries;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (m->entries[middle].offset + manifest_content(&m->entries[middle]) > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The file offset of content byte `at`, and how many bytes follow without a hole. */
static int64_t offset_of(const struct manifest_entry *file, int64_t at, int64_t *ret_run)
{
    const struct manifest_extra *extra = file->extra;

    if (!extra || !extra->is_sparse) {
        *ret_run = file->size - at;
        return at;
    }
    for (size_t i = 0;; i++) {
        assert(i < extra->n_data);
        if (at < extra->data[i].size) {
            *ret_run = extra->data[i].size - at;
            return extra->data[i].offset + at;
        }
        at -= extra->data[i].size;
    }
}

int manifest_each_piece(const struct manifest *m, const struct manifest_chunk *c,
    manifest_piece_fn fn, void *ctx, struct err *e)
{
    int64_t at = c->offset, end = c->offset + c->size;
    size_t i = first_entry_after(m, at);
    int rc = 0;

    while (!rc && at < end) {
        const struct manifest_entry *file = &m->entries[i];
        struct manifest_piece p = {.file = file, .chunk_offset = (size_t)(at - c->offset)};
        int64_t run;

        assert(i < m->n_entries); /* m is laid out, so every byte of a chunk belongs to a file */
        if (at >= file->offset + manifest_content(file)) {
            i++; /* this file is done, or has no content */
            continue;
        }
        p.file_offset = offset_of(file, at - file->offset, &run);
        p.n = (size_t)(run < end - at ? run : end - at);
        rc = fn(ctx, &p, e);
        at += (int64_t)p.n;
    }
    return rc;
}
