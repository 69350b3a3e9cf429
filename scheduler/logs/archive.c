/* SPDX-License-Identifier: Apache-2.0
 *
 * See archive.h. The index is a text:
 *
 *     belay-output 1 KEY            the id of the key that seals, or -
 *     file NAME SIZE MTIME_MS       followed by its chunks
 *     chunk SHA256 BYTES STORED
 *     hole BYTES                    zeros; not stored
 *     end
 */
#include "scheduler/logs/archive.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/chunk.h"
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
#define NAME_MAX_BYTES 64

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

/* N.log, N.RANK.log, and N.log.at and N.log.cut beside it. */
static bool is_output(const char *name)
{
    size_t n = strspn(name, "0123456789.");
    return n > 0 && name[0] != '.' && strlen(name) < NAME_MAX_BYTES &&
           (str_eq(name + n, "log") || str_eq(name + n, "log.at") || str_eq(name + n, "log.cut"));
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
    char sha256[CHUNK_HEX_SIZE];
    size_t stored;
    void *p;
    if (is_zero(w->content, n)) {
        buf_printf(&u->index, "hole %zu\n", n);
        return 0;
    }
    chunk_hash(w->content, n, sha256);
    chunk_pack(w, n, &p, &stored);
    buf_printf(&u->index, "chunk %s %zu %zu\n", sha256, n, stored);
    char *object = object_of(u->a, key, sha256);
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
        buf_printf(&u->index, "file %s %" PRId64 " %" PRId64 "\n", name, (int64_t)st.st_size,
            (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000);
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
        if (is_output(entry->d_name))
            rc = fn(u, w, entry->d_name, e);
    if (d)
        closedir(d);
    return rc;
}

static int put_all(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    struct putting *u = ctx;
    const struct crypt_key *key = key_of(u->a);
    (void)i;
    buf_printf(&u->index, "belay-output 1 %s\n", key ? key->id : "-");
    int rc = each_file(u->a, put_file, u, w, e);
    buf_adds(&u->index, "end\n");
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
    const char *rest; /* of the index */
    const struct crypt_key *key;
    int64_t bytes; /* of all files, without holes */
};

static int broken(const struct getting *g, struct err *e)
{
    return err_set(
        e, ERR_CORRUPT, "%s/" ARCHIVE_INDEX " is damaged: it has no such line", g->a->dir);
}

/* Returns the next line, whose end becomes a NUL; NULL if there is none. */
static char *next_line(char **rest)
{
    char *line = strsep(rest, "\n");
    return line && *rest ? line : NULL;
}

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

/* A line of a file's content. */
static int get_line(const struct getting *g, struct chunk_work *w, const char *line, int fd,
    int64_t *at, struct err *e)
{
    char sha256[CHUNK_HEX_SIZE];
    unsigned char hash[32];
    size_t n = 0, stored = 0;
    const void *p;
    if (sscanf(line, "hole %zu", &n) == 1 && n <= CKPT_CHUNK_BYTES) {
        *at += (int64_t)n;
        return 0;
    }
    if (sscanf(line, "chunk %64[0-9a-f] %zu %zu", sha256, &n, &stored) != 3 ||
        !str_unhex(sha256, hash, sizeof(hash)) || n == 0 || n > CKPT_CHUNK_BYTES || stored > n)
        return broken(g, e);
    int rc = get_chunk(g, w, sha256, n, stored, &p, e);
    for (size_t put = 0; rc == 0 && put < n;) {
        ssize_t m = pwrite(fd, (const char *)p + put, n - put, (off_t)(*at + (int64_t)put));
        if (m < 0)
            rc = err_errno(e, errno, "write output of job %" PRId64, g->a->job);
        put += m > 0 ? (size_t)m : 0;
    }
    *at += (int64_t)n;
    return rc;
}

/* The file of this line, with the lines after it, under its name with PART_SUFFIX. */
static int get_file(
    struct getting *g, struct chunk_work *w, const char *line, char **rest, struct err *e)
{
    char name[NAME_MAX_BYTES];
    int64_t size, mtime_ms, at = 0;
    if (sscanf(line, "file %63s %" SCNd64 " %" SCNd64, name, &size, &mtime_ms) != 3 ||
        !is_output(name) || size < 0)
        return broken(g, e);
    char *path = mem_printf("%s/%s" PART_SUFFIX, g->a->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = fd < 0 || ftruncate(fd, (off_t)size) != 0 ? err_errno(e, errno, "create %s", path) : 0;
    while (rc == 0 && at < size) {
        char *content = next_line(rest);
        rc = is_cancelled(g->a, e) ? ERR_CANCELLED
             : content             ? get_line(g, w, content, fd, &at, e)
                                   : broken(g, e);
    }
    if (rc == 0 && at != size)
        rc = broken(g, e);
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT}, {.tv_sec = mtime_ms / 1000, .tv_nsec = mtime_ms % 1000 * 1000000}};
    if (rc == 0 && (futimens(fd, times) != 0 || fsync(fd) != 0))
        rc = err_errno(e, errno, "write %s", path);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* Walks the index; without w only checks that it is whole, and gives the parts their names. */
static int walk_index(struct getting *g, struct chunk_work *w, char *text, struct err *e)
{
    char *rest = text, *line = next_line(&rest), key[CRYPT_ID_HEX + 1];
    int rc = 0;
    if (!line || sscanf(line, "belay-output 1 %16s", key) != 1)
        return broken(g, e);
    g->key = str_eq(key, "-") ? NULL : crypt_find(g->a->crypt, key);
    if (!g->key && !str_eq(key, "-"))
        return err_set(e, ERR_UNSUPPORTED,
            "the output of job %" PRId64 " is sealed with the key %s, which the key file does not "
            "have",
            g->a->job, key);
    while (rc == 0 && (line = next_line(&rest)) && !str_eq(line, "end")) {
        if (w) {
            rc = get_file(g, w, line, &rest, e);
        } else if (str_starts(line, "file ")) {
            char name[NAME_MAX_BYTES] = "";
            sscanf(line, "file %63s", name);
            char *to = mem_printf("%s/%s", g->a->dir, name),
                 *from = mem_printf("%s" PART_SUFFIX, to);
            if (rename(from, to) != 0)
                rc = err_errno(e, errno, "rename %s", from);
            free(to);
            free(from);
        }
    }
    return rc != 0 ? rc : line ? 0 : broken(g, e);
}

static int get_all(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    struct getting *g = ctx;
    char *text = mem_strdup(g->rest);
    (void)i;
    int rc = walk_index(g, w, text, e);
    free(text);
    return rc;
}

static int check_space(const struct archive *a, const char *index, int64_t reserve, struct err *e)
{
    struct statvfs v;
    int64_t bytes = 0;
    size_t n, stored;
    for (const char *p = index; (p = strstr(p, "\nchunk ")); p++)
        bytes += sscanf(p, "\nchunk %*64[0-9a-f] %zu %zu", &n, &stored) == 2 ? (int64_t)n : 0;
    if (statvfs(a->dir, &v) != 0 || (int64_t)(v.f_bavail * v.f_frsize) - bytes >= reserve)
        return 0;
    return err_set(e, ERR_NO_SPACE,
        "the output of job %" PRId64 " is in the store, and its %" PRId64
        " bytes have no space on the disk of belayd's state: free some there",
        a->job, bytes);
}

int archive_get(const struct archive *a, int64_t reserve, struct err *e)
{
    struct getting g = {.a = a};
    struct buf index = {0};
    char *path = index_path(a->dir);
    int rc = fs_read(path, ARCHIVE_INDEX_BYTES_MAX, &index, e);
    if (rc == 0)
        rc = check_space(a, buf_str(&index), reserve, e);
    if (rc == 0) {
        g.rest = buf_str(&index);
        rc = chunk_for_each(1, get_all, &g, a->cancel, e);
    }
    if (rc == 0)
        rc = walk_index(&g, NULL, index.data, e);
    if (rc == 0)
        rc = fs_sync_dir(a->dir, e);
    if (rc == 0 && unlink(path) != 0)
        rc = err_errno(e, errno, "remove %s", path);
    buf_deinit(&index);
    free(path);
    return rc;
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
