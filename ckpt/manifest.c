/* SPDX-License-Identifier: Apache-2.0
 *
 * The manifest as a structure: its rules, its cuts, its pieces. manifest_json.c is its text.
 */
#include "ckpt/manifest.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void manifest_deinit(struct manifest *m)
{
    for (size_t i = 0; i < m->n_entries; i++) {
        free(m->entries[i].path);
        free(m->entries[i].target);
    }
    free(m->entries);
    free(m->chunks);
    *m = (struct manifest){0};
}

/* Makes room for one more; the array's new address, or the old one. */
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

int manifest_check_path(const char *path, struct err *e)
{
    size_t len = strlen(path);
    int depth = 0;

    if (len == 0 || len >= CKPT_PATH_MAX)
        return err_set(e, ERR_INVALID, "path of %zu bytes: expected 1 .. %d", len, CKPT_PATH_MAX - 1);
    if (!str_is_utf8(path, len))
        return err_set(e, ERR_INVALID, "path '%.200s' is not UTF-8", path);
    for (const char *part = path;; depth++) {
        size_t n = strcspn(part, "/");

        if (n == 0 || n > 255 || (n == 1 && part[0] == '.') || (n == 2 && memcmp(part, "..", 2) == 0))
            return err_set(e, ERR_INVALID, "path '%.200s' is not safe or not plain", path);
        if (depth >= MANIFEST_DEPTH_MAX)
            return err_set(e, ERR_INVALID, "path '%.200s' has over %d parts", path, MANIFEST_DEPTH_MAX);
        if (!part[n])
            return 0;
        part += n + 1;
    }
}

static void cut_here(struct manifest *m, int64_t *open_bytes)
{
    struct manifest_chunk *c;

    if (*open_bytes == 0)
        return;
    c = manifest_add_chunk(m);
    c->size = c->stored = *open_bytes;
    *open_bytes = 0;
}

void manifest_cut(struct manifest *m)
{
    int64_t open_bytes = 0; /* of the chunk under way */

    m->n_chunks = 0;
    for (size_t i = 0; i < m->n_entries; i++) {
        int64_t left = m->entries[i].size;
        bool large = left >= MANIFEST_CUT_BYTES;

        if (large)
            cut_here(m, &open_bytes);
        while (left > 0) {
            int64_t room = (int64_t)CKPT_CHUNK_BYTES - open_bytes;
            int64_t n = left < room ? left : room;

            open_bytes += n;
            left -= n;
            if (open_bytes == CKPT_CHUNK_BYTES)
                cut_here(m, &open_bytes);
        }
        if (large)
            cut_here(m, &open_bytes);
    }
    cut_here(m, &open_bytes);
}

static int compare_path(const void *path, const void *entry)
{
    return strcmp(path, ((const struct manifest_entry *)entry)->path);
}

/* The entry before i that is path's parent must be a directory. */
static int check_parent(const struct manifest *m, size_t i, struct err *e)
{
    const char *path = m->entries[i].path;
    const char *slash = strrchr(path, '/');
    const struct manifest_entry *parent;
    char *name;

    if (!slash)
        return 0;
    name = mem_strndup(path, (size_t)(slash - path));
    parent = bsearch(name, m->entries, i, sizeof(m->entries[0]), compare_path);
    free(name);
    if (!parent || parent->type != MANIFEST_DIR)
        return err_set(e, ERR_CORRUPT, "'%.200s' is not in a directory of the checkpoint", path);
    return 0;
}

static int check_entry(const struct manifest *m, size_t i, struct err *e)
{
    const struct manifest_entry *entry = &m->entries[i];

    if (manifest_check_path(entry->path, e))
        return e->kind = ERR_CORRUPT;
    if (i > 0 && strcmp(m->entries[i - 1].path, entry->path) >= 0)
        return err_set(e, ERR_CORRUPT, "'%.200s' is out of order", entry->path);
    return check_parent(m, i, e);
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
        content += m->entries[i].size;
        if (content > MANIFEST_BYTES_TOTAL_MAX)
            return err_set(e, ERR_CORRUPT, "more than %lld bytes", (long long)MANIFEST_BYTES_TOTAL_MAX);
    }
    for (size_t i = 0; i < m->n_chunks; i++) {
        m->chunks[i].offset = chunks;
        chunks += m->chunks[i].size; /* each at most CKPT_CHUNK_BYTES, and memory bounds their number */
    }
    if (chunks != content)
        return err_set(e, ERR_CORRUPT, "the files have %lld bytes, the chunks %lld", (long long)content,
            (long long)chunks);
    return 0;
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

        if (m->entries[middle].offset + m->entries[middle].size > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int manifest_each_piece(
    const struct manifest *m, const struct manifest_chunk *c, manifest_piece_fn fn, void *ctx, struct err *e)
{
    int64_t at = c->offset, end = c->offset + c->size;
    int rc = 0;

    for (size_t i = first_entry_after(m, at); !rc && at < end; i++) {
        const struct manifest_entry *file = &m->entries[i];
        int64_t file_end = file->offset + file->size;
        int64_t n = (file_end < end ? file_end : end) - at;

        assert(i < m->n_entries); /* laid out: every byte of a chunk is some file's */
        if (n <= 0)
            continue; /* a directory, a link or an empty file */
        rc = fn(ctx,
            &(struct manifest_piece){
                .file = file,
                .file_offset = at - file->offset,
                .chunk_offset = (size_t)(at - c->offset),
                .n = (size_t)n,
            },
            e);
        at += n;
    }
    return rc;
}
