/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/logs/archive_index.h"

#include "base/map.h"
#include "base/str.h"
#include "scheduler/logs/logs.h"
#include <inttypes.h>
#include <string.h>

#define LINE_MAX_BYTES 160
#define HEX_DIGITS "0123456789abcdef"

bool archive_is_output(const char *name)
{
    size_t n = strspn(name, "0123456789.");
    return n > 0 && name[0] != '.' && strlen(name) < ARCHIVE_NAME_SIZE &&
           (str_eq(name + n, "log") || str_eq(name + n, "log.at") || str_eq(name + n, "log.cut"));
}

void archive_index_add(struct buf *index, const struct archive_line *line)
{
    switch (line->type) {
    case ARCHIVE_BEGIN:
        buf_printf(index, "belay-output 1 %s\n", line->key[0] ? line->key : "-");
        break;
    case ARCHIVE_FILE:
        buf_printf(
            index, "file %s %" PRId64 " %" PRId64 "\n", line->name, line->size, line->mtime_ms);
        break;
    case ARCHIVE_CHUNK:
        buf_printf(index, "chunk %s %zu %zu\n", line->sha256, line->bytes, line->stored);
        break;
    case ARCHIVE_HOLE:
        buf_printf(index, "hole %zu\n", line->bytes);
        break;
    case ARCHIVE_END:
        buf_adds(index, "end\n");
        break;
    }
}

/* ---- one line ---- */

/* Takes the next word, which ends at a blank or at the end of the line. */
static const char *next_word(char **rest)
{
    const char *word = strsep(rest, " ");
    return word ? word : "";
}

/* Digits only, without further zeros in front. */
static bool read_number(const char *word, int64_t least, int64_t most, int64_t *ret)
{
    struct err ignored;
    return word[0] >= '0' && word[0] <= '9' && (word[0] != '0' || word[1] == '\0') &&
           str_to_i64(word, least, most, "number", ret, &ignored) == 0;
}

static bool read_size(const char *word, int64_t most, size_t *ret)
{
    int64_t v;
    if (!read_number(word, 1, most, &v))
        return false;
    *ret = (size_t)v;
    return true;
}

static bool is_hex(const char *word, size_t n)
{
    return strlen(word) == n && strspn(word, HEX_DIGITS) == n;
}

static bool read_begin(char **rest, struct archive_line *l)
{
    bool is_known = str_eq(next_word(rest), "1");
    const char *key = next_word(rest);
    if (str_eq(key, "-"))
        return is_known;
    return is_known && is_hex(key, CRYPT_ID_HEX) && STR_COPY(l->key, key);
}

static bool read_file(char **rest, struct archive_line *l)
{
    const char *name = next_word(rest);
    return archive_is_output(name) && STR_COPY(l->name, name) &&
           read_number(next_word(rest), 0, LOGS_OFFSET_MAX, &l->size) &&
           read_number(next_word(rest), 0, INT64_MAX / 2, &l->mtime_ms);
}

static bool read_chunk(char **rest, struct archive_line *l)
{
    const char *sha256 = next_word(rest);
    return is_hex(sha256, CHUNK_HEX_SIZE - 1) && STR_COPY(l->sha256, sha256) &&
           read_size(next_word(rest), CKPT_CHUNK_BYTES, &l->bytes) &&
           read_size(next_word(rest), (int64_t)l->bytes, &l->stored);
}

static bool read_line(char *text, struct archive_line *l)
{
    char *rest = text;
    const char *word = next_word(&rest);
    *l = (struct archive_line){0};
    bool is_good = false;
    if (str_eq(word, "belay-output")) {
        l->type = ARCHIVE_BEGIN;
        is_good = read_begin(&rest, l);
    } else if (str_eq(word, "file")) {
        l->type = ARCHIVE_FILE;
        is_good = read_file(&rest, l);
    } else if (str_eq(word, "chunk")) {
        l->type = ARCHIVE_CHUNK;
        is_good = read_chunk(&rest, l);
    } else if (str_eq(word, "hole")) {
        l->type = ARCHIVE_HOLE;
        is_good = read_size(next_word(&rest), CKPT_CHUNK_BYTES, &l->bytes);
    } else if (str_eq(word, "end")) {
        l->type = ARCHIVE_END;
        is_good = true;
    }
    return is_good && !rest; /* nothing behind it */
}

/* ---- the order of lines ---- */

struct reading {
    int64_t left; /* bytes of the current file */
    struct smap names;
    bool has_begun, is_over;
};

/* NULL if the line may come here, else why not. */
static const char *take(struct reading *r, const struct archive_line *l)
{
    if ((l->type == ARCHIVE_BEGIN) == r->has_begun)
        return "the first line of an index, and no other, begins with belay-output";
    r->has_begun = true;
    if (l->type == ARCHIVE_CHUNK || l->type == ARCHIVE_HOLE) {
        if ((int64_t)l->bytes > r->left)
            return "it is longer than what is left of the file";
        r->left -= (int64_t)l->bytes;
    } else if (r->left > 0) {
        return "the file before it is not complete";
    }
    r->is_over = l->type == ARCHIVE_END;
    if (l->type != ARCHIVE_FILE)
        return NULL;
    if (smap_get(&r->names, l->name))
        return "the file is there twice";
    if (smap_size(&r->names) >= ARCHIVE_FILES_MAX)
        return "there are too many files";
    smap_put(&r->names, l->name, r);
    r->left = l->size;
    return NULL;
}

static int read_all(
    struct reading *r, const char *text, size_t n, archive_line_fn fn, void *ctx, struct err *e)
{
    char copy[LINE_MAX_BYTES];
    struct archive_line l;
    int64_t number = 0;
    for (const char *p = text, *end = text + n; !r->is_over; number++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t len = nl ? (size_t)(nl - p) : 0;
        const char *why = "it has no such form";
        if (nl && len < sizeof(copy) && !memchr(p, '\0', len)) {
            memcpy(copy, p, len);
            copy[len] = '\0';
            if (read_line(copy, &l))
                why = take(r, &l);
        }
        if (why)
            return err_set(e, ERR_CORRUPT, "line %" PRId64 ": %s", number + 1,
                nl ? why : "the index ends here");
        int rc = fn ? fn(ctx, &l, e) : 0;
        if (rc != 0)
            return rc;
        p = nl + 1;
        if (r->is_over && p != end)
            return err_set(
                e, ERR_CORRUPT, "line %" PRId64 ": there is more behind the end", number + 2);
    }
    return 0;
}

int archive_index_read(const char *text, size_t n, archive_line_fn fn, void *ctx, struct err *e)
{
    struct reading r = {0};
    if (n > ARCHIVE_INDEX_BYTES_MAX)
        return err_set(e, ERR_CORRUPT, "it is longer than %u bytes", ARCHIVE_INDEX_BYTES_MAX);
    int rc = read_all(&r, text, n, fn, ctx, e);
    smap_deinit(&r.names);
    return rc;
}
