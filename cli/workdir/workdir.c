/* SPDX-License-Identifier: Apache-2.0
 *
 * See workdir.h.
 *
 *   scan --> hash all --> put --> missing? --yes--> read those, add them, put again
 *                          ^          | no
 *                          +--        v
 *                                unchanged since the scan? --> done
 *
 * A file is read at most twice. The content hashed first is the content sent: a piece with another
 * hash at the second reading is not sent.
 */
#include "cli/workdir/workdir.h"

#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "cli/workdir/workdir_scan.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALL_MS 90000
#define TRIES 8 /* repetitions of a call while belayd is busy or restarts */
#define RETRY_BASE_MS 200
#define RETRY_CAP_MS 5000

/* Where a piece is: in which file, and its index there. */
struct piece_at {
    const struct found *file;
    size_t i;
};

struct upload {
    struct client *client;
    const char *dir;
    struct workdir_scan scan;
    struct buf text;
    struct smap pieces; /* hash -> struct piece_at */
    char *piece;        /* WORKDIR_PIECE_BYTES */
    bool has_answered;  /* belayd has answered before */
    struct prng prng;
    struct err *e;
};

static int changed(const struct upload *u, const char *path)
{
    char shown[STR_SHOW_MAX];
    return err_set(u->e, ERR_CONFLICT,
        "%s changed while it was being sent: submit again when nothing writes there, or leave it "
        "out with .belayignore",
        str_show(path, shown));
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_mode == b->st_mode && a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int open_file(const struct upload *u, const struct found *f)
{
    struct stat st;
    char *path = mem_printf("%s/%s", u->dir, f->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    int rc = fd >= 0                             ? fd
             : errno == ENOENT || errno == ELOOP ? changed(u, f->path)
                                                 : err_errno(u->e, errno, "reading %s", path);
    free(path);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !is_same(&st, &f->st))) {
        close(fd);
        return changed(u, f->path);
    }
    return rc;
}

/* Reads the i-th piece into u->piece. */
static int read_piece(
    const struct upload *u, int fd, const struct found *f, size_t i, size_t *ret_n)
{
    size_t want = workdir_piece_bytes(f->st.st_size, i), have = 0;
    while (have < want) {
        ssize_t n =
            pread(fd, u->piece + have, want - have, (off_t)(i * WORKDIR_PIECE_BYTES + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(u->e, errno, "reading %s/%s", u->dir, f->path);
        if (n == 0)
            return changed(u, f->path);
        have += (size_t)n;
    }
    *ret_n = want;
    return 0;
}

/* ---- the list ---- */

static int describe_file(struct upload *u, const struct found *f)
{
    size_t n = workdir_pieces(f->st.st_size), bytes;
    char(*hashes)[CHUNK_HEX_SIZE] = mem_array(n, sizeof(*hashes));
    int fd = open_file(u, f), rc = fd < 0 ? fd : 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = read_piece(u, fd, f, i, &bytes);
        if (rc != 0)
            break;
        chunk_hash(u->piece, bytes, hashes[i]);
        if (!smap_get(&u->pieces, hashes[i])) {
            const struct piece_at p = {f, i};
            smap_put(&u->pieces, hashes[i], mem_dup(&p, sizeof(p)));
        }
    }
    if (rc == 0)
        rc = workdir_add_file(&u->text, f->path, f->st.st_mode, f->st.st_size,
            (const char(*)[CHUNK_HEX_SIZE])hashes, u->e);
    if (fd >= 0)
        close(fd);
    free(hashes);
    return rc;
}

static int describe_link(struct upload *u, const struct found *f)
{
    char target[PATH_MAX], *path = mem_printf("%s/%s", u->dir, f->path);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    int rc = n < 0 ? changed(u, f->path) : 0;
    free(path);
    if (rc != 0)
        return rc;
    target[n] = '\0';
    return workdir_add_link(&u->text, f->path, target, u->e);
}

static int describe(struct upload *u)
{
    int rc = 0;
    workdir_begin(&u->text);
    for (size_t i = 0; rc == 0 && i < u->scan.n; i++) {
        const struct found *f = &u->scan.v[i];
        rc = S_ISDIR(f->st.st_mode)   ? workdir_add_dir(&u->text, f->path, f->st.st_mode, u->e)
             : S_ISLNK(f->st.st_mode) ? describe_link(u, f)
                                      : describe_file(u, f);
    }
    if (rc == 0 && u->text.len > WORKDIR_TEXT_BYTES)
        rc = err_set(u->e, ERR_INVALID,
            "the list of names in %s is longer than %u MiB: leave some out with .belayignore",
            u->dir, WORKDIR_TEXT_BYTES >> 20);
    return rc;
}

static int check_unchanged(const struct upload *u)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < u->scan.n; i++) {
        const struct found *f = &u->scan.v[i];
        struct stat st;
        char *path = mem_printf("%s/%s", u->dir, f->path);
        bool is_there = lstat(path, &st) == 0;
        free(path);
        if (!is_there || (S_ISDIR(f->st.st_mode) ? !S_ISDIR(st.st_mode) : !is_same(&st, &f->st)))
            rc = changed(u, f->path);
    }
    return rc;
}

/* ---- to belayd ---- */

/* Whether another try may succeed. A belayd that has answered before may be restarting; one that
 * never answered is not waited for. */
static bool may_retry(const struct upload *u, int rc)
{
    return rc == ERR_THROTTLED || (u->has_answered && (rc == ERR_UNAVAILABLE || rc == ERR_IO));
}

static int post(
    struct upload *u, const char *path, const struct buf *body, struct client_reply *ret_reply)
{
    int rc = client_call_bytes(u->client, path, body->data, body->len, CALL_MS, ret_reply, u->e);
    for (int i = 0; may_retry(u, rc) && i < TRIES; i++) {
        int64_t ms = prng_backoff_ms(&u->prng, i, RETRY_BASE_MS, RETRY_CAP_MS);
        const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
        nanosleep(&pause, NULL);
        client_reply_deinit(ret_reply);
        rc = client_call_bytes(u->client, path, body->data, body->len, CALL_MS, ret_reply, u->e);
    }
    u->has_answered = u->has_answered || rc == 0;
    return rc;
}

static int flush(struct upload *u, struct buf *pack)
{
    struct client_reply reply = {0};
    int rc = pack->len ? post(u, "/api/v1/workdirs/pieces", pack, &reply) : 0;
    client_reply_deinit(&reply);
    buf_clear(pack);
    return rc;
}

static int add_piece(struct upload *u, const char *hash, struct buf *pack)
{
    const struct piece_at *p = smap_get(&u->pieces, hash);
    char actual[CHUNK_HEX_SIZE];
    size_t n = 0;
    if (!p)
        return err_set(u->e, ERR_INTERNAL, "belayd asked for content that is not in %s", u->dir);
    if (pack->len + workdir_piece_bytes(p->file->st.st_size, p->i) + 128 > WORKDIR_PACK_BYTES) {
        int rc = flush(u, pack);
        if (rc != 0)
            return rc;
    }
    int fd = open_file(u, p->file);
    int rc = fd < 0 ? fd : read_piece(u, fd, p->file, p->i, &n);
    if (fd >= 0)
        close(fd);
    if (rc != 0)
        return rc;
    chunk_hash(u->piece, n, actual);
    if (!str_eq(actual, hash))
        return changed(u, p->file->path);
    workdir_pack(pack, hash, u->piece, n);
    return 0;
}

static int send_missing(struct upload *u, const json_t *missing)
{
    struct buf pack = {0};
    size_t i;
    const json_t *hash;
    int rc = 0;
    json_array_foreach(missing, i, hash)
    {
        const char *text = json_string_value(hash);
        if ((rc = add_piece(u, text ? text : "", &pack)) != 0)
            break;
    }
    if (rc == 0)
        rc = flush(u, &pack);
    buf_deinit(&pack);
    return rc;
}

/* Sends the list, then the pieces that belayd does not have. *ret_missing: their number; belayd may
 * name only a part of them. */
static int put(struct upload *u, char ret_hash[CHUNK_HEX_SIZE], size_t *ret_missing)
{
    struct client_reply reply = {0};
    json_t *v = NULL;
    int rc = post(u, "/api/v1/workdirs", &u->text, &reply);
    if (rc == 0)
        rc = json_parse(buf_str(&reply.body), reply.body.len, WORKDIR_TEXT_BYTES, &v, u->e);
    client_reply_deinit(&reply);
    const char *hash = json_string_value(json_object_get(v, "workdir"));
    const json_t *missing = json_object_get(v, "missing");
    if (rc == 0 && (!hash || !workdir_is_hash(hash) || !json_is_array(missing)))
        rc = err_set(u->e, ERR_IO, "belayd's reply about the working directory cannot be parsed");
    if (rc == 0) {
        str_copy(ret_hash, CHUNK_HEX_SIZE, hash);
        *ret_missing = json_array_size(missing);
        rc = send_missing(u, missing);
    }
    json_decref(v);
    return rc;
}

static int send_all(struct upload *u, char ret_hash[CHUNK_HEX_SIZE])
{
    size_t missing = 1,
           /* each round but the last sends at least 1000 pieces */
        rounds = WORKDIR_PIECES_MAX / 1000 + 4;
    int rc = 0;
    for (size_t i = 0; rc == 0 && missing > 0; i++) {
        if (i == rounds)
            return err_set(u->e, ERR_IO,
                "belayd keeps asking for pieces of the working directory that were sent: see "
                "belayd's log");
        rc = put(u, ret_hash, &missing);
    }
    return rc;
}

int workdir_upload(struct client *c, const char *dir, workdir_warn_fn warn, void *ctx,
    char ret_hash[CHUNK_HEX_SIZE], struct err *e)
{
    struct upload u = {.client = c, .dir = dir, .e = e};
    uint64_t seed;
    size_t pos = 0;
    random_bytes(&seed, sizeof(seed));
    prng_init(&u.prng, seed);
    u.piece = mem_alloc(WORKDIR_PIECE_BYTES);
    int rc = workdir_scan(dir, warn, ctx, &u.scan, e);
    if (rc == 0 && u.scan.n == 0)
        warn(ctx, "the working directory contains nothing that can be sent");
    if (rc == 0)
        rc = describe(&u);
    if (rc == 0)
        rc = send_all(&u, ret_hash);
    if (rc == 0)
        rc = check_unchanged(&u);
    for (void *p; (p = smap_next(&u.pieces, &pos, NULL));)
        free(p);
    smap_deinit(&u.pieces);
    buf_deinit(&u.text);
    workdir_scan_deinit(&u.scan);
    free(u.piece);
    return rc == 0 ? 0 : err_wrap(e, "--workdir upload");
}
