/* SPDX-License-Identifier: Apache-2.0
 *
 * See workdir.h. Several tasks may use the cache at once, each on its own thread: files are
 * complete (renamed into place), and a file that another task removes meanwhile is fetched again by
 * the next try.
 */
#include "agent/task/workdir.h"

#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/net/http_blocking.h"
#include "base/prng.h"
#include "base/str.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CALL_MS 60000
#define CONNECT_MS 10000
#define STALE_S 3600 /* a temporary file older than this was left by a crash */
#define CACHE_FILES_MAX 1000000
#define ROUNDS 10 /* of fetching and making; the next try of the attempt continues from there */

/* ---- the source ---- */

void workdir_source_init(struct workdir_source *s, const struct peer *p, int64_t job,
    int64_t attempt, const char *hash, const char *cache)
{
    *s = (struct workdir_source){.server = mem_strdup(p->config->server),
        .ca_pem = mem_strdup(p->config->ca_pem),
        .cert_pem = mem_strdup(p->id->node.cert_pem),
        .key_pem = mem_strdup(p->id->key_pem),
        .job = job,
        .attempt = attempt,
        .cache = cache};
    STR_COPY(s->hash, hash);
}

void workdir_source_deinit(struct workdir_source *s)
{
    if (s->key_pem)
        explicit_bzero(s->key_pem, strlen(s->key_pem));
    free(s->server);
    free(s->ca_pem);
    free(s->cert_pem);
    free(s->key_pem);
    *s = (struct workdir_source){0};
}

struct fetching {
    const struct workdir_source *s;
    const atomic_int *cancel;
    struct http_pool *pool;
    struct workdir d;
    struct err *e;
};

static int call(const struct fetching *b, const char *what, const struct buf *body,
    struct http_reply *ret_reply)
{
    char *url = mem_printf("%s/agent/v1/workdir/%lld/%lld%s", b->s->server, (long long)b->s->job,
        (long long)b->s->attempt, what);
    const struct http_request r = {
        .method = "POST",
        .url = url,
        .headers = {"Content-Type: text/plain"},
        .body = buf_str(body),
        .body_len = body->len,
        .timeout_ms = CALL_MS,
        .connect_timeout_ms = CONNECT_MS,
        .max_reply_bytes = WORKDIR_PACK_BYTES,
        .tls = {.ca_pem = b->s->ca_pem, .cert_pem = b->s->cert_pem, .key_pem = b->s->key_pem},
    };
    struct err failed;
    int rc = http_blocking_run(b->pool, &r, b->cancel, ret_reply, &failed);
    free(url);
    rc = peer_check(rc ? &failed : NULL, ret_reply, b->e);
    if (rc == ERR_NOT_FOUND) /* retries cannot succeed */
        b->e->kind = rc = ERR_CONFIG;
    return rc;
}

/* ---- the cache ---- */

static char *cached(const struct fetching *b, const char *hash)
{
    return mem_printf("%s/%s", b->s->cache, hash);
}

/* Also marks the file as used, for workdir_trim. */
static bool is_cached(const struct fetching *b, const char *hash)
{
    char *path = cached(b, hash);
    bool there = utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0;
    free(path);
    return there;
}

static int cache(const struct fetching *b, const char *hash, const void *p, size_t n)
{
    char end[17], *path = cached(b, hash);
    random_hex(8, end);
    char *new_path = mem_printf("%s.%s", path, end);
    int fd = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), rc = 0;
    if (fd < 0)
        rc = err_errno(b->e, errno, "creating %s", new_path);
    if (rc == 0)
        rc = fs_write_all(fd, p, n, b->e);
    if (fd >= 0)
        close(fd);
    if (rc == 0 && rename(new_path, path) < 0)
        rc = err_errno(b->e, errno, "storing %s", path);
    if (rc != 0 && fd >= 0)
        unlink(new_path);
    free(new_path);
    free(path);
    return rc;
}

/* Reads and verifies a cached file. Returns ERR_NOT_FOUND, or ERR_CORRUPT after removing it. */
static int read_cached(const struct fetching *b, const char *hash, size_t max, struct buf *out)
{
    char actual[CHUNK_HEX_SIZE], *path = cached(b, hash);
    int rc = fs_read(path, max, out, b->e);
    if (rc == 0) {
        chunk_hash(buf_str(out), out->len, actual);
        if (!str_eq(actual, hash)) {
            unlink(path);
            rc = err_set(b->e, ERR_CORRUPT, "%s does not match its hash and is removed", path);
        }
    }
    free(path);
    return rc;
}

/* ---- fetching ---- */

static int fetch_text(struct fetching *b, struct buf *out)
{
    const struct buf nothing = {0};
    struct http_reply reply = {0};
    char actual[CHUNK_HEX_SIZE];
    int rc = is_cached(b, b->s->hash) ? read_cached(b, b->s->hash, WORKDIR_TEXT_BYTES, out)
                                      : ERR_NOT_FOUND;
    if (rc == 0)
        return 0;
    rc = call(b, "", &nothing, &reply);
    if (rc == 0) {
        chunk_hash(buf_str(&reply.body), reply.body.len, actual);
        if (!str_eq(actual, b->s->hash))
            rc = err_set(
                b->e, ERR_CORRUPT, "belayd sent a working directory whose hash is not the job's");
    }
    if (rc == 0)
        rc = cache(b, b->s->hash, reply.body.data, reply.body.len);
    if (rc == 0) {
        buf_clear(out);
        buf_add(out, reply.body.data, reply.body.len);
    }
    http_reply_deinit(&reply);
    return rc;
}

static int keep_pack(
    const struct fetching *b, const struct buf *pack, struct smap *wanted, size_t *ret_n)
{
    const char *p = buf_str(pack);
    size_t n = pack->len;
    struct workdir_piece piece;
    int rc;
    *ret_n = 0;
    while ((rc = workdir_unpack(&p, &n, &piece, b->e)) > 0) {
        if (!smap_remove(wanted, piece.hash))
            continue;
        if ((rc = cache(b, piece.hash, piece.p, piece.n)) != 0)
            return rc;
        ++*ret_n;
    }
    return rc;
}

static int fetch_some(const struct fetching *b, struct smap *wanted)
{
    struct buf body = {0};
    struct http_reply reply = {0};
    size_t pos = 0, n = 0;
    const char *hash;
    for (int i = 0; i < WORKDIR_ASK_MAX && smap_next(wanted, &pos, &hash); i++)
        buf_printf(&body, "%s\n", hash);
    int rc = call(b, "/pieces", &body, &reply);
    if (rc == 0)
        rc = keep_pack(b, &reply.body, wanted, &n);
    if (rc == 0 && n == 0)
        rc = err_set(b->e, ERR_UNAVAILABLE,
            "belayd sent none of the requested pieces of a working directory");
    http_reply_deinit(&reply);
    buf_deinit(&body);
    return rc;
}

static int fetch_pieces(const struct fetching *b)
{
    struct smap wanted = {0};
    int rc = 0;
    for (size_t i = 0; i < b->d.n_hashes; i++)
        if (!smap_get(&wanted, b->d.hashes[i]) && !is_cached(b, b->d.hashes[i]))
            smap_put(&wanted, b->d.hashes[i], &wanted);
    while (rc == 0 && smap_size(&wanted) > 0)
        rc = fetch_some(b, &wanted);
    smap_deinit(&wanted);
    return rc;
}

/* ---- making the files ---- */

static int make_file(const struct fetching *b, const char *path, const struct workdir_entry *x)
{
    struct buf piece = {0};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = fd < 0 ? err_errno(b->e, errno, "creating %s", path) : 0;
    for (size_t i = 0; rc == 0 && i < x->pieces; i++) {
        rc = read_cached(b, b->d.hashes[x->piece + i], WORKDIR_PIECE_BYTES, &piece);
        if (rc == 0 && piece.len != workdir_piece_bytes(x->size, i))
            rc = err_set(b->e, ERR_CORRUPT,
                "%s: the size of a piece is not what the working directory states", x->path);
        if (rc == 0)
            rc = fs_write_all(fd, piece.data, piece.len, b->e);
    }
    if (rc == 0 && fchmod(fd, x->mode) < 0)
        rc = err_errno(b->e, errno, "setting the mode of %s", path);
    if (fd >= 0)
        close(fd);
    buf_deinit(&piece);
    return rc;
}

static int make_entry(const struct fetching *b, const char *root, const struct workdir_entry *x)
{
    char *path = mem_printf("%s/%s", root, x->path);
    int rc = 0;
    if (b->cancel && atomic_load(b->cancel))
        rc = err_set(b->e, ERR_CANCELLED, "fetching a working directory was cancelled");
    else if (x->kind == WORKDIR_FILE)
        rc = make_file(b, path, x);
    else if (x->kind == WORKDIR_DIR ? mkdir(path, 0700) < 0 : symlink(x->target, path) < 0)
        rc = err_errno(b->e, errno, "creating %s", path);
    free(path);
    return rc;
}

/* Directories get their modes last, because a mode may forbid to add files. The owner keeps all
 * rights, because the job works there. */
static int set_modes(const struct fetching *b, const char *root)
{
    int rc = 0;
    for (size_t i = b->d.n; rc == 0 && i-- > 0;) {
        if (b->d.v[i].kind != WORKDIR_DIR)
            continue;
        char *path = mem_printf("%s/%s", root, b->d.v[i].path);
        if (chmod(path, b->d.v[i].mode | 0700) < 0)
            rc = err_errno(b->e, errno, "setting the mode of %s", path);
        free(path);
    }
    return rc;
}

static int make_all(const struct fetching *b, const char *root)
{
    int rc = fs_remove_tree(root, b->e); /* of an earlier try */
    rc = rc ? rc : fs_mkdirs(root, 0700, b->e);
    for (size_t i = 0; rc == 0 && i < b->d.n; i++)
        rc = make_entry(b, root, &b->d.v[i]);
    return rc ? rc : set_modes(b, root);
}

/* Each round finds at most one piece that is damaged in the cache or was trimmed by another task;
 * the next round fetches it again. */
static int fetch_and_make(const struct fetching *b, const char *path)
{
    int rc = ERR_CORRUPT;
    for (int i = 0; i < ROUNDS && (rc == ERR_CORRUPT || rc == ERR_NOT_FOUND); i++) {
        rc = fetch_pieces(b);
        rc = rc ? rc : make_all(b, path);
    }
    return rc;
}

int workdir_fetch(
    const struct workdir_source *s, const char *path, const atomic_int *cancel, struct err *e)
{
    struct fetching b = {.s = s, .cancel = cancel, .e = e};
    struct buf text = {0};
    int rc = workdir_is_hash(s->hash)
                 ? fs_mkdirs(s->cache, 0700, e)
                 : err_set(e, ERR_INVALID, "not the hash of a working directory");
    b.pool = http_pool_create();
    if (rc == 0)
        rc = fetch_text(&b, &text);
    if (rc == 0)
        rc = workdir_parse(buf_str(&text), text.len, &b.d, e);
    if (rc == 0)
        rc = fetch_and_make(&b, path);
    workdir_trim(s->cache, WORKDIR_CACHE_BYTES);
    http_pool_destroy(b.pool);
    workdir_deinit(&b.d);
    buf_deinit(&text);
    return rc == 0 ? 0 : err_wrap(e, "its working directory");
}

/* ---- trimming ---- */

struct cached_file {
    char name[CHUNK_HEX_SIZE];
    struct timespec used;
    int64_t bytes;
};

static int by_use(const void *a, const void *b)
{
    const struct cached_file *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

static size_t list_cache(int fd, DIR *d, struct cached_file **ret_files, int64_t *ret_bytes)
{
    struct cached_file *v = NULL;
    struct stat st;
    size_t n = 0, cap = 0;
    time_t now = time(NULL);
    *ret_bytes = 0;
    for (struct dirent *x; n < CACHE_FILES_MAX && (x = readdir(d));) {
        if (x->d_name[0] == '.' || fstatat(fd, x->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!workdir_is_hash(x->d_name)) {
            if (now - st.st_mtim.tv_sec > STALE_S)
                unlinkat(fd, x->d_name, 0);
            continue;
        }
        if (n == cap) {
            cap = cap ? 2 * cap : 256;
            v = mem_resize(v, cap, sizeof(*v));
        }
        v[n] = (struct cached_file){.used = st.st_mtim, .bytes = st.st_size};
        STR_COPY(v[n++].name, x->d_name);
        *ret_bytes += st.st_size;
    }
    *ret_files = v;
    return n;
}

void workdir_trim(const char *cache, int64_t max_bytes)
{
    struct cached_file *v;
    int64_t bytes;
    DIR *d = opendir(cache);
    if (!d)
        return;
    size_t n = list_cache(dirfd(d), d, &v, &bytes);
    if (n > 0)
        qsort(v, n, sizeof(*v), by_use);
    for (size_t i = 0; i < n && bytes > max_bytes; i++)
        if (unlinkat(dirfd(d), v[i].name, 0) == 0)
            bytes -= v[i].bytes;
    free(v);
    closedir(d);
}
