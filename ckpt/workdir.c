/* SPDX-License-Identifier: Apache-2.0
 *
 * See workdir.h. belayd and agents check input from outside here.
 */
#include "ckpt/workdir.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LINE "belay-workdir 1\n"
#define HEX 64
#define HEADER_MAX 96 /* of a piece in a pack */

void workdir_deinit(struct workdir *w)
{
    for (size_t i = 0; i < w->n; i++) {
        free(w->v[i].path);
        free(w->v[i].target);
    }
    free(w->v);
    free(w->hashes);
    *w = (struct workdir){0};
}

size_t workdir_pieces(int64_t size)
{
    return (size_t)((size + WORKDIR_PIECE_BYTES - 1) / WORKDIR_PIECE_BYTES);
}

size_t workdir_piece_bytes(int64_t size, size_t i)
{
    int64_t left = size - (int64_t)i * WORKDIR_PIECE_BYTES;
    return left < WORKDIR_PIECE_BYTES ? (size_t)left : WORKDIR_PIECE_BYTES;
}

static bool is_hex(const char *s)
{
    return strspn(s, "0123456789abcdef") >= HEX;
}

bool workdir_is_hash(const char *s)
{
    return is_hex(s) && s[HEX] == '\0';
}

static bool is_plain(const char *s)
{
    for (const char *p = s; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    return str_is_utf8(s, strlen(s));
}

bool workdir_is_path(const char *path)
{
    size_t depth = 0;
    if (!is_plain(path) || strlen(path) > WORKDIR_PATH_MAX)
        return false;
    for (const char *p = path; p; depth++) {
        size_t n = strcspn(p, "/");
        if (n == 0 || n > 255 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p = p[n] ? p + n + 1 : NULL;
    }
    return depth <= WORKDIR_DEPTH_MAX;
}

/* ---- writing ---- */

static int check_path(const char *path, struct err *e)
{
    char shown[STR_SHOW_MAX];
    if (workdir_is_path(path))
        return 0;
    return err_set(e, ERR_INVALID,
        "%s cannot be sent: a path is UTF-8 without control characters, at most %d bytes long and "
        "%d directories deep",
        str_show(path, shown), WORKDIR_PATH_MAX, WORKDIR_DEPTH_MAX);
}

void workdir_begin(struct buf *out)
{
    buf_adds(out, FIRST_LINE);
}

int workdir_add_dir(struct buf *out, const char *path, mode_t mode, struct err *e)
{
    int rc = check_path(path, e);
    if (rc == 0)
        buf_printf(out, "d %o %s\n", (unsigned)mode & 0777, path);
    return rc;
}

int workdir_add_file(struct buf *out, const char *path, mode_t mode, int64_t size,
    const char (*hashes)[CHUNK_HEX_SIZE], struct err *e)
{
    int rc = check_path(path, e);
    if (rc != 0)
        return rc;
    buf_printf(out, "f %o %lld ", (unsigned)mode & 0777, (long long)size);
    for (size_t i = 0; i < workdir_pieces(size); i++)
        buf_printf(out, "%s%s", i ? "," : "", hashes[i]);
    buf_printf(out, "%s %s\n", size == 0 ? "-" : "", path);
    return 0;
}

int workdir_add_link(struct buf *out, const char *path, const char *target, struct err *e)
{
    char shown[STR_SHOW_MAX];
    int rc = check_path(path, e);
    if (rc == 0 && (!target[0] || !is_plain(target) || strlen(target) > WORKDIR_PATH_MAX))
        rc = err_set(e, ERR_INVALID,
            "%s cannot be sent: a link's target is UTF-8 without control characters, and at "
            "most %d bytes long",
            str_show(path, shown), WORKDIR_PATH_MAX);
    if (rc == 0)
        buf_printf(out, "l %s\t%s\n", path, target);
    return rc;
}

/* ---- reading ---- */

struct reading {
    struct workdir *w;
    size_t cap, cap_hashes;
    char *line, *at; /* a copy of the line, and the position in it */
    size_t number;   /* the line's number, for errors */
    struct err *e;
};

static int err_expected(const struct reading *r, const char *what)
{
    char shown[STR_SHOW_MAX];
    return err_set(r->e, ERR_INVALID, "line %zu of a working directory: expected %s, found %s",
        r->number, what, str_show(r->line, shown));
}

/* Takes the word before the next blank, which becomes NUL. NULL if there is no blank or no word. */
static char *word(struct reading *r)
{
    char *begin = r->at, *blank = strchr(begin, ' ');
    if (!blank || blank == begin)
        return NULL;
    *blank = '\0';
    r->at = blank + 1;
    return begin;
}

static int read_mode(struct reading *r, mode_t *ret_mode)
{
    const char *text = word(r);
    if (!text || strlen(text) > 3 || strspn(text, "01234567") != strlen(text) ||
        (text[0] == '0' && text[1]))
        return err_expected(r, "a mode of at most three octal digits");
    *ret_mode = (mode_t)strtoul(text, NULL, 8);
    return 0;
}

static int add_hash(struct reading *r, const char *hex)
{
    struct workdir *w = r->w;
    if (w->n_hashes == r->cap_hashes) {
        r->cap_hashes = r->cap_hashes ? 2 * r->cap_hashes : 64;
        w->hashes = mem_resize(w->hashes, r->cap_hashes, sizeof(*w->hashes));
    }
    memcpy(w->hashes[w->n_hashes], hex, HEX);
    w->hashes[w->n_hashes++][HEX] = '\0';
    return 0;
}

static int read_hashes(struct reading *r, struct workdir_entry *x)
{
    const char *p = word(r);
    x->piece = r->w->n_hashes;
    x->pieces = workdir_pieces(x->size);
    if (!p || (x->pieces == 0 ? !str_eq(p, "-") : strlen(p) != x->pieces * (HEX + 1) - 1))
        return err_expected(r, "as many hashes as its size has pieces");
    for (size_t i = 0; i < x->pieces; i++, p += HEX + 1) {
        if (!is_hex(p) || p[HEX] != (i + 1 < x->pieces ? ',' : '\0'))
            return err_expected(r, "hashes of 64 hex digits with commas between them");
        add_hash(r, p);
    }
    return 0;
}

static int read_size(struct reading *r, struct workdir_entry *x)
{
    const char *text = word(r);
    if (!text || text[0] == '-' || (text[0] == '0' && text[1]) ||
        str_to_i64(text, 0, WORKDIR_BYTES_MAX - r->w->bytes, "size", &x->size, NULL) != 0)
        return err_expected(r, "a size, with which all files are within 2 GiB");
    r->w->bytes += x->size;
    return 0;
}

static int by_path(const void *key, const void *entry)
{
    return strcmp(key, ((const struct workdir_entry *)entry)->path);
}

/* Whether path sorts after all previous entries and its parent directory is one of them. */
static bool is_in_order(const struct workdir *w, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (w->n > 0 && strcmp(w->v[w->n - 1].path, path) >= 0)
        return false;
    if (!slash)
        return true;
    char *parent = mem_strndup(path, (size_t)(slash - path));
    const struct workdir_entry *d =
        w->n ? bsearch(parent, w->v, w->n, sizeof(*w->v), by_path) : NULL;
    free(parent);
    return d && d->kind == WORKDIR_DIR;
}

static int add_entry(struct reading *r, const struct workdir_entry *x)
{
    struct workdir *w = r->w;
    if (w->n == WORKDIR_ENTRIES_MAX)
        return err_set(
            r->e, ERR_INVALID, "a working directory has at most %d entries", WORKDIR_ENTRIES_MAX);
    if (w->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        w->v = mem_resize(w->v, r->cap, sizeof(*w->v));
    }
    w->v[w->n++] = *x;
    return 0;
}

static int read_line(struct reading *r)
{
    struct workdir_entry x = {.kind = WORKDIR_DIR};
    char kind = r->line[0];
    int rc = 0;
    if (!kind || !strchr("dfl", kind) || r->line[1] != ' ')
        return err_expected(r, "d, f or l");
    r->at = r->line + 2;
    if (kind != 'l')
        rc = read_mode(r, &x.mode);
    if (rc == 0 && kind == 'f') {
        x.kind = WORKDIR_FILE;
        rc = read_size(r, &x);
        rc = rc ? rc : read_hashes(r, &x);
    }
    if (rc != 0)
        return rc;
    char *tab = kind == 'l' ? strchr(r->at, '\t') : NULL;
    if (kind == 'l') {
        if (!tab || !tab[1] || strlen(tab + 1) > WORKDIR_PATH_MAX || !is_plain(tab + 1))
            return err_expected(r, "a link's path, a tab, and its target");
        *tab = '\0';
        x.kind = WORKDIR_LINK;
    }
    if (!workdir_is_path(r->at))
        return err_expected(r, "a path below the directory");
    if (!is_in_order(r->w, r->at))
        return err_expected(r, "paths in order, each in a directory listed before");
    x.path = mem_strdup(r->at);
    x.target = tab ? mem_strdup(tab + 1) : NULL;
    rc = add_entry(r, &x);
    if (rc != 0) {
        free(x.path);
        free(x.target);
    }
    return rc;
}

int workdir_parse(const char *p, size_t n, struct workdir *ret_workdir, struct err *e)
{
    struct workdir w = {0};
    struct reading r = {.w = &w, .e = e};
    size_t first = strlen(FIRST_LINE);
    int rc = 0;
    if (n > WORKDIR_TEXT_BYTES)
        return err_set(e, ERR_INVALID,
            "the list of a working directory has %zu bytes, at most %u are allowed", n,
            WORKDIR_TEXT_BYTES);
    if (n < first || memcmp(p, FIRST_LINE, first) != 0)
        return err_set(e, ERR_INVALID, "a working directory begins with the line belay-workdir 1");
    r.number = 1;
    for (const char *at = p + first, *end = p + n, *eol; rc == 0 && at < end; at = eol + 1) {
        eol = memchr(at, '\n', (size_t)(end - at));
        r.number++;
        if (!eol || memchr(at, '\0', (size_t)(eol - at))) {
            rc = err_set(e, ERR_INVALID,
                "line %zu of a working directory: it has no newline, or contains NUL", r.number);
            break;
        }
        r.line = mem_strndup(at, (size_t)(eol - at));
        rc = read_line(&r);
        free(r.line);
    }
    if (rc != 0)
        workdir_deinit(&w);
    else
        *ret_workdir = w;
    return rc;
}

/* ---- packs ---- */

void workdir_pack(struct buf *out, const char *hash, const void *p, size_t n)
{
    assert(n > 0 && n <= WORKDIR_PIECE_BYTES);
    buf_printf(out, "%s %zu\n", hash, n);
    buf_add(out, p, n);
}

int workdir_unpack(const char **p, size_t *n, struct workdir_piece *ret_piece, struct err *e)
{
    struct workdir_piece x;
    char header[HEADER_MAX], actual[CHUNK_HEX_SIZE];
    int64_t size;
    if (*n == 0)
        return 0;
    const char *eol = memchr(*p, '\n', *n < HEADER_MAX ? *n : HEADER_MAX - 1);
    size_t len = eol ? (size_t)(eol - *p) : 0;
    memcpy(header, *p, len);
    header[len] = '\0';
    if (len < HEX + 2 || strlen(header) != len || !is_hex(header) || header[HEX] != ' ' ||
        str_to_i64(header + HEX + 1, 1, WORKDIR_PIECE_BYTES, "size", &size, NULL) != 0 ||
        (size_t)size > *n - len - 1)
        return err_set(e, ERR_INVALID,
            "expected pieces, each a hash, a size of 1 to %u and so many bytes",
            WORKDIR_PIECE_BYTES);
    memcpy(x.hash, header, HEX);
    x.hash[HEX] = '\0';
    x.p = eol + 1;
    x.n = (size_t)size;
    chunk_hash(x.p, x.n, actual);
    if (!str_eq(actual, x.hash))
        return err_set(e, ERR_CORRUPT, "the piece %.12s... does not match its hash", x.hash);
    *p = x.p + x.n;
    *n -= len + 1 + x.n;
    *ret_piece = x;
    return 1;
}

int workdir_parse_request(
    const char *p, size_t n, char (**ret_hashes)[CHUNK_HEX_SIZE], size_t *ret_n, struct err *e)
{
    size_t many = n / (HEX + 1);
    if (many == 0 || many > WORKDIR_ASK_MAX || n % (HEX + 1) != 0)
        return err_set(e, ERR_INVALID, "expected 1 to %d hashes, a line each", WORKDIR_ASK_MAX);
    char(*v)[CHUNK_HEX_SIZE] = mem_array(many, sizeof(*v));
    for (size_t i = 0; i < many; i++, p += HEX + 1) {
        memcpy(v[i], p, HEX);
        if (!workdir_is_hash(v[i]) || p[HEX] != '\n') {
            free(v);
            return err_set(e, ERR_INVALID, "line %zu: expected a hash of 64 hex digits", i + 1);
        }
    }
    *ret_hashes = v;
    *ret_n = many;
    return 0;
}
