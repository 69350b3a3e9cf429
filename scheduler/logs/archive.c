/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/logs/archive.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/logs/archive_index.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PART_SUFFIX ".part"

static char *index_path(const char *dir)
{
    return mem_printf("%s/" ARCHIVE_INDEX, dir);
}

bool archive_has(const char *dir)
{
    char *path = index_path(dir);
    bool has = access(path, F_OK) == 0;
    free(path);
    return has;
}

static bool is_cancelled(const struct archive *a, struct err *e)
{
    if (!a->cancel || !atomic_load(a->cancel))
        return false;
    err_set(e, ERR_CANCELLED, "the transfer of output was cancelled");
    return true;
}

static char *prefix_of(const struct archive *a)
{
    return mem_printf("%s/output/%" PRId64 "/", a->cluster, a->job);
}

static const struct crypt_key *key_of(const struct archive *a)
{
    return a->crypt && a->crypt->encrypts ? &a->crypt->keys[0] : NULL;
}

/* The name of the object of a chunk, which is also the text that it is sealed with. */
static char *object_of(const struct archive *a, const struct crypt_key *key, const char *sha256)
{
    char name[CRYPT_NAME_HEX + 1], *prefix = prefix_of(a);
    if (key)
        crypt_name(key, sha256, name);
    else
        STR_COPY(name, sha256);
    char *object = mem_printf("%s%s", prefix, name);
    free(prefix);
    return object;
}

/* ---- to the store ---- */

struct putting {
    const struct archive *a;
    struct buf index;
    bool *moved;
};

static bool is_zero(const char *p, size_t n)
{
    return n > 0 && p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static int put_chunk(struct putting *u, struct chunk_work *w, size_t n, struct err *e)
{
    const struct crypt_key *key = key_of(u->a);
    struct archive_line line = {.type = ARCHIVE_CHUNK, .bytes = n};
    size_t stored;
    void *p;
    if (is_zero(w->content, n)) {
        archive_index_add(&u->index, &(struct archive_line){.type = ARCHIVE_HOLE, .bytes = n});
        return 0;
    }
    chunk_hash(w->content, n, line.sha256);
    chunk_pack(w, n, &p, &stored);
    line.stored = stored;
    archive_index_add(&u->index, &line);
    char *object = object_of(u->a, key, line.sha256);
    if (key) {
        crypt_seal(key, object, p, stored);
        stored += CRYPT_MORE;
    }
    int rc = store_put(u->a->store, object, p, stored, NULL, e);
    if (rc == ERR_CONFLICT) { /* from before, perhaps damaged: the files are here, so it may go */
        rc = u->a->store->ops->remove(u->a->store, &(const char *){object}, 1, e);
        if (rc == 0)
            rc = store_put(u->a->store, object, p, stored, NULL, e);
    }
    free(object);
    return rc;
}

static int put_content(struct putting *u, struct chunk_work *w, int fd, int64_t size, struct err *e)
{
    int rc = 0;
    for (int64_t at = 0; rc == 0 && at < size;) {
        size_t n = size - at < CKPT_CHUNK_BYTES ? (size_t)(size - at) : CKPT_CHUNK_BYTES;
        if (is_cancelled(u->a, e))
            return ERR_CANCELLED;
        for (size_t had = 0; rc == 0 && had < n;) {
            ssize_t got = pread(fd, (char *)w->content + had, n - had, (off_t)(at + (int64_t)had));
            if (got <= 0)
                rc = err_errno(e, got < 0 ? errno : EIO, "read output of job %" PRId64, u->a->job);
            had += got > 0 ? (size_t)got : 0;
        }
        if (rc == 0)
            rc = put_chunk(u, w, n, e);
        at += (int64_t)n;
    }
    return rc;
}

static int put_file(struct putting *u, struct chunk_work *w, const char *name, struct err *e)
{
    char *path = mem_printf("%s/%s", u->a->dir, name);
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc = 0;
    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = err_errno(e, errno, "open %s", path);
    } else {
        struct archive_line line = {.type = ARCHIVE_FILE, .size = st.st_size};
        STR_COPY(line.name, name);
        if (st.st_mtim.tv_sec > 0)
            line.mtime_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
        archive_index_add(&u->index, &line);
        rc = put_content(u, w, fd, st.st_size, e);
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* Calls fn for each file of output in the directory. */
static int each_file(const struct archive *a,
    int (*fn)(struct putting *u, struct chunk_work *w, const char *name, struct err *e),
    struct putting *u, struct chunk_work *w, struct err *e)
{
    DIR *d = opendir(a->dir);
    int rc = d ? 0 : err_errno(e, errno, "open %s", a->dir);
    for (struct dirent *entry; rc == 0 && d && (entry = readdir(d));)
        if (archive_is_output(entry->d_name))
            rc = fn(u, w, entry->d_name, e);
    if (d)
        closedir(d);
    return rc;
}

static int put_all(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    struct putting *u = ctx;
    const struct crypt_key *key = key_of(u->a);
    struct archive_line line = {.type = ARCHIVE_BEGIN};
    (void)i;
    if (key)
        STR_COPY(line.key, key->id);
    archive_index_add(&u->index, &line);
    int rc = each_file(u->a, put_file, u, w, e);
    archive_index_add(&u->index, &(struct archive_line){.type = ARCHIVE_END});
    return rc;
}

static int remove_file(struct putting *u, struct chunk_work *w, const char *name, struct err *e)
{
    char *path = mem_printf("%s/%s", u->a->dir, name);
    int rc = unlink(path) == 0 || errno == ENOENT ? 0 : err_errno(e, errno, "remove %s", path);
    (void)w;
    *u->moved = true;
    free(path);
    return rc;
}

int archive_put(const struct archive *a, bool *ret_moved, struct err *e)
{
    struct putting u = {.a = a, .moved = ret_moved};
    char *path = index_path(a->dir), *prefix = prefix_of(a);
    int rc = 0;
    if (!archive_has(a->dir)) { /* else only the removal was interrupted */
        rc = chunk_for_each(1, put_all, &u, a->cancel, e);
        if (rc == 0)
            rc = store_flush(a->store, prefix, e);
        if (rc == 0)
            rc = fs_write_atomic(path, u.index.data, u.index.len, 0600, e);
    }
    if (rc == 0)
        rc = each_file(a, remove_file, &u, NULL, e);
    buf_deinit(&u.index);
    free(prefix);
    free(path);
    return rc;
}

/* ---- from the store ---- */

struct getting {
    const struct archive *a;
    const struct buf *index;
    const struct crypt_key *key;
    int64_t bytes; /* of all files, without holes */
    struct chunk_work *w;
    /* the file in progress, under its name with PART_SUFFIX */
    int fd; /* -1: none */
    int64_t at, mtime_ms;
    char *path;
};

static int get_chunk(const struct getting *g, struct chunk_work *w, const char *sha256, size_t n,
    size_t stored, const void **ret_p, struct err *e)
{
    char *object = object_of(g->a, g->key, sha256);
    size_t sealed = stored + (g->key ? CRYPT_MORE : 0), opened = 0;
    int rc = g->a->store->ops->read(g->a->store, object, sealed, &w->object, e);
    if (rc == 0 && w->object.len != sealed)
        rc = err_set(e, ERR_CORRUPT, "%s in the store has %zu bytes instead of %zu", object,
            w->object.len, sealed);
    if (rc == 0 && g->key) {
        rc = crypt_open(g->key, object, w->object.data, sealed, &opened, e);
        w->object.len = rc == 0 ? opened : 0;
    }
    if (rc == 0)
        rc = chunk_unpack(w, n, sha256, ret_p, e);
    free(object);
    return rc;
}

/* What is needed before anything is fetched: a key that seals, and space. */
static int take_stock(void *ctx, const struct archive_line *line, struct err *e)
{
    struct getting *g = ctx;
    if (line->type == ARCHIVE_CHUNK)
        g->bytes += (int64_t)line->bytes;
    if (line->type != ARCHIVE_BEGIN || !line->key[0])
        return 0;
    g->key = g->a->crypt ? crypt_find(g->a->crypt, line->key) : NULL;
    return g->key ? 0
                  : err_set(e, ERR_UNSUPPORTED,
                        "the output of job %" PRId64
                        " is sealed with the key %s, which the key file does not have",
                        g->a->job, line->key);
}

static int finish_file(struct getting *g, struct err *e)
{
    if (g->fd < 0)
        return 0;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
        {.tv_sec = g->mtime_ms / 1000, .tv_nsec = g->mtime_ms % 1000 * 1000000}};
    int rc = futimens(g->fd, times) != 0 || fsync(g->fd) != 0
                 ? err_errno(e, errno, "write %s", g->path)
                 : 0;
    close(g->fd);
    g->fd = -1;
    return rc;
}

static int begin_file(struct getting *g, const struct archive_line *line, struct err *e)
{
    free(g->path);
    g->path = mem_printf("%s/%s" PART_SUFFIX, g->a->dir, line->name);
    g->at = 0;
    g->mtime_ms = line->mtime_ms;
    g->fd = open(g->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return g->fd < 0 || ftruncate(g->fd, (off_t)line->size) != 0
               ? err_errno(e, errno, "create %s", g->path)
               : 0;
}

static int get_content(struct getting *g, const struct archive_line *line, struct err *e)
{
    const void *p;
    int rc = is_cancelled(g->a, e)
                 ? ERR_CANCELLED
                 : get_chunk(g, g->w, line->sha256, line->bytes, line->stored, &p, e);
    for (size_t put = 0; rc == 0 && put < line->bytes;) {
        ssize_t m =
            pwrite(g->fd, (const char *)p + put, line->bytes - put, (off_t)(g->at + (int64_t)put));
        if (m < 0)
            rc = err_errno(e, errno, "write output of job %" PRId64, g->a->job);
        put += m > 0 ? (size_t)m : 0;
    }
    return rc;
}

static int get_line(void *ctx, const struct archive_line *line, struct err *e)
{
    struct getting *g = ctx;
    int rc = 0;
    if (line->type == ARCHIVE_FILE || line->type == ARCHIVE_END)
        rc = finish_file(g, e);
    if (rc == 0 && line->type == ARCHIVE_FILE)
        rc = begin_file(g, line, e);
    if (line->type == ARCHIVE_CHUNK)
        rc = get_content(g, line, e);
    g->at += (int64_t)line->bytes;
    return rc;
}

static int get_all(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    struct getting *g = ctx;
    (void)i;
    g->w = w;
    int rc = archive_index_read(g->index->data, g->index->len, get_line, g, e);
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    free(g->path);
    g->path = NULL;
    return rc;
}

/* The part gets its name. */
static int name_part(void *ctx, const struct archive_line *line, struct err *e)
{
    const struct getting *g = ctx;
    if (line->type != ARCHIVE_FILE)
        return 0;
    char *to = mem_printf("%s/%s", g->a->dir, line->name), *from = mem_printf("%s" PART_SUFFIX, to);
    int rc = rename(from, to) != 0 ? err_errno(e, errno, "rename %s", from) : 0;
    free(to);
    free(from);
    return rc;
}

static int check_space(const struct getting *g, int64_t reserve, struct err *e)
{
    struct statvfs v;
    if (statvfs(g->a->dir, &v) != 0 || (int64_t)(v.f_bavail * v.f_frsize) - g->bytes >= reserve)
        return 0;
    return err_set(e, ERR_NO_SPACE,
        "the output of job %" PRId64 " is in the store, and its %" PRId64
        " bytes have no space on the disk of belayd's state: free some there",
        g->a->job, g->bytes);
}

int archive_get(const struct archive *a, int64_t reserve, struct err *e)
{
    struct buf index = {0};
    struct getting g = {.a = a, .index = &index, .fd = -1};
    char *path = index_path(a->dir);
    int rc = fs_read(path, ARCHIVE_INDEX_BYTES_MAX, &index, e);
    if (rc == 0 && (rc = archive_index_read(index.data, index.len, take_stock, &g, e)) != 0 &&
        rc == ERR_CORRUPT)
        err_wrap(e, "%s is damaged, so the output in the store cannot be read", path);
    if (rc == 0)
        rc = check_space(&g, reserve, e);
    if (rc == 0)
        rc = chunk_for_each(1, get_all, &g, a->cancel, e);
    if (rc == 0)
        rc = archive_index_read(index.data, index.len, name_part, &g, e);
    if (rc == 0)
        rc = fs_sync_dir(a->dir, e);
    if (rc == 0 && unlink(path) != 0)
        rc = err_errno(e, errno, "remove %s", path);
    buf_deinit(&index);
    free(path);
    return rc;
}

struct sum {
    int64_t bytes, more; /* more: of each chunk that is sealed */
};

static int add_stored(void *ctx, const struct archive_line *line, struct err *e)
{
    struct sum *s = ctx;
    (void)e;
    if (line->type == ARCHIVE_BEGIN && line->key[0])
        s->more = CRYPT_MORE;
    if (line->type == ARCHIVE_CHUNK)
        s->bytes += (int64_t)line->stored + s->more;
    return 0;
}

int archive_stored(const char *dir, int64_t *ret_bytes, struct err *e)
{
    struct buf index = {0};
    struct sum s = {0};
    char *path = index_path(dir);
    int rc = fs_read(path, ARCHIVE_INDEX_BYTES_MAX, &index, e);
    if (rc == 0)
        rc = archive_index_read(index.data, index.len, add_stored, &s, e);
    buf_deinit(&index);
    free(path);
    *ret_bytes = s.bytes;
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

/* ---- removing ---- */

struct found {
    char *names[STORE_REMOVE_MAX];
    size_t n;
};

static int note_name(void *ctx, const char *name, int64_t size_bytes)
{
    struct found *f = ctx;
    (void)size_bytes;
    f->names[f->n++] = mem_strdup(name);
    return f->n == STORE_REMOVE_MAX;
}

int archive_remove(const struct archive *a, struct err *e)
{
    struct found *f = mem_alloc(sizeof(*f));
    char *prefix = prefix_of(a);
    int rc;
    bool again;
    do {
        rc = is_cancelled(a, e) ? ERR_CANCELLED
                                : a->store->ops->list(a->store, prefix, note_name, f, e);
        again = rc == 0 && f->n == STORE_REMOVE_MAX;
        if (rc == 0 && f->n > 0)
            rc = a->store->ops->remove(a->store, (const char *const *)f->names, f->n, e);
        for (; f->n > 0; f->n--)
            free(f->names[f->n - 1]);
    } while (rc == 0 && again);
    free(prefix);
    free(f);
    return rc;
}
