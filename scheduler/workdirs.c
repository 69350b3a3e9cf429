/* SPDX-License-Identifier: Apache-2.0
 *
 * See workdirs.h.
 *
 * Invariants.
 *  1. The thread runs one task at a time, so only workdirs_pin, on the loop, runs concurrently. The
 *     mutex `removing` excludes it during the removal of a tree, and it renews the tree's
 *     modification time, so that the removal then treats the tree as new.
 *  2. Pieces are written without a sync, and synced together before the tree that refers to them.
 *     After a crash of the machine a piece without a tree may be incomplete, so a start removes all
 *     pieces without a tree.
 */
#include "scheduler/workdirs.h"

#include "base/fs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USER_HEX 32
#define TASKS_MAX 256
#define TASKS_BYTES_MAX ((size_t)256 << 20)
#define OLD_MAX 1000     /* trees checked in one round */
#define BLOCK_BYTES 4096 /* approximate disk space of a file of one byte */

enum kind { CLEAR, PUT, ADD, GET, GET_PIECES, FIND_OLD, PRUNE };

/* A tree that was not used for a while. */
struct old_tree {
    char user[USER_HEX + 1], hash[CHUNK_HEX_SIZE];
    bool wanted;
};

struct task {
    struct link link;
    struct workdirs *w;
    bool is_dropped; /* workdirs_destroy was called: on_done frees w */
    enum kind kind;
    char *dir; /* workdirs.dir, or the user's directory */
    char user[USER_HEX + 1], hash[CHUNK_HEX_SIZE];
    char *bytes;
    size_t n;
    char (*hashes)[CHUNK_HEX_SIZE];
    size_t n_hashes;
    struct old_tree *old;
    size_t n_old;
    struct buf out;
    int rc;
    struct err e;
    workdirs_fn fn;
    void *ctx;
};

struct workdirs {
    struct workdirs_options o;
    char *dir;
    pthread_mutex_t removing; /* locked during the removal of trees */
    struct smap used;         /* for the thread only: user -> int64_t *, bytes on disk */
    struct list waiting;
    struct task *now;
    size_t n_tasks, n_bytes;
    struct timer check_timer;
};

static void next(struct workdirs *w);

/* ---- paths ---- */

static void user_name(const char *user, char out[USER_HEX + 1])
{
    char hex[CHUNK_HEX_SIZE];
    chunk_hash(user, strlen(user), hex);
    memcpy(out, hex, USER_HEX);
    out[USER_HEX] = '\0';
}

static char *tree_path(const char *dir, const char *user, const char *hash)
{
    return mem_printf("%s/%s/trees/%s", dir, user, hash);
}

static char *piece_path(const char *dir, const char *user, const char *hash)
{
    return mem_printf("%s/%s/pieces/%.2s/%s", dir, user, hash, hash);
}

/* Calls fn with every name in a directory that does not begin with a dot, until fn fails. A missing
 * directory is empty. */
typedef int (*name_fn)(void *ctx, const char *path, const char *name, struct err *e);
static int each_name(const char *path, name_fn fn, void *ctx, struct err *e)
{
    DIR *d = opendir(path);
    int rc = d || errno == ENOENT ? 0 : err_errno(e, errno, "listing %s", path);
    errno = 0;
    for (struct dirent *x; rc == 0 && d && (x = readdir(d)); errno = 0)
        if (x->d_name[0] != '.') {
            char *below = mem_printf("%s/%s", path, x->d_name);
            rc = fn(ctx, below, x->d_name, e);
            free(below);
        }
    if (rc == 0 && d && errno != 0)
        rc = err_errno(e, errno, "listing %s", path);
    if (d)
        closedir(d);
    return rc;
}

/* ---- usage of a user ---- */

static int64_t *used_by(struct task *t, const char *user)
{
    int64_t *used = smap_get(&t->w->used, user);
    if (!used) {
        used = mem_alloc(sizeof(*used));
        smap_put(&t->w->used, user, used);
    }
    return used;
}

static int64_t blocks_of(int64_t size)
{
    return (size / BLOCK_BYTES + 1) * BLOCK_BYTES;
}

/* Checks the user's limit for one more file of n bytes. */
static int check_space(struct task *t, size_t n)
{
    int64_t most = __atomic_load_n(&t->w->o.user_bytes, __ATOMIC_RELAXED);
    char limit[32];
    if (most == 0 || *used_by(t, t->user) + blocks_of((int64_t)n) <= most)
        return 0;
    str_format_bytes((uint64_t)most, limit, sizeof(limit));
    return err_set(&t->e, ERR_QUOTA,
        "your working directories take all of the %s that a user may have in belayd "
        "(workdir_max_per_user): they are removed a day after their jobs have ended",
        limit);
}

/* ---- storing ---- */

static int write_piece(struct task *t, const struct workdir_piece *piece)
{
    char *path = piece_path(t->dir, t->user, piece->hash), *new_path = mem_printf("%s.new", path);
    char *slash = strrchr(path, '/');
    struct stat st;
    int rc = 0, fd = -1;
    if (stat(path, &st) == 0 && (size_t)st.st_size == piece->n)
        goto out;
    if ((rc = check_space(t, piece->n)) != 0)
        goto out;
    *slash = '\0';
    rc = fs_mkdirs(path, 0700, &t->e);
    *slash = '/';
    if (rc == 0 &&
        (fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0)
        rc = err_errno(&t->e, errno, "creating %s", new_path);
    if (rc == 0)
        rc = fs_write_all(fd, piece->p, piece->n, &t->e);
    if (fd >= 0)
        close(fd);
    if (rc == 0 && rename(new_path, path) < 0)
        rc = err_errno(&t->e, errno, "storing %s", path);
    if (rc == 0)
        *used_by(t, t->user) += blocks_of((int64_t)piece->n);
    else
        unlink(new_path);
out:
    free(new_path);
    free(path);
    return rc;
}

static int add(struct task *t)
{
    const char *p = t->bytes;
    size_t n = t->n;
    struct workdir_piece piece;
    int rc;
    while ((rc = workdir_unpack(&p, &n, &piece, &t->e)) > 0 && (rc = write_piece(t, &piece)) == 0)
        continue;
    return rc;
}

/* Writes the hashes of the tree's missing pieces to t->out, each once, at most
 * WORKDIRS_MISSING_MAX. */
static void find_missing(struct task *t, const struct workdir *d)
{
    struct smap seen = {0};
    size_t n_missing = 0;
    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; k < d->v[i].pieces && n_missing < WORKDIRS_MISSING_MAX; k++) {
            const char *hash = d->hashes[d->v[i].piece + k];
            struct stat st;
            if (smap_get(&seen, hash))
                continue;
            smap_put(&seen, hash, &seen);
            char *path = piece_path(t->dir, t->user, hash);
            if (stat(path, &st) < 0 || (size_t)st.st_size != workdir_piece_bytes(d->v[i].size, k)) {
                buf_printf(&t->out, "%s\n", hash);
                n_missing++;
            }
            free(path);
        }
    smap_deinit(&seen);
}

static int sync_all(const struct task *t, struct err *e)
{
    char *path = mem_printf("%s/%s", t->dir, t->user);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    if (fd < 0 || syncfs(fd) < 0)
        rc = err_errno(e, errno, "syncing %s", path);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

static int store_tree(struct task *t)
{
    char *path = tree_path(t->dir, t->user, t->hash), *slash = strrchr(path, '/');
    *slash = '\0';
    int rc = fs_mkdirs(path, 0700, &t->e);
    *slash = '/';
    if (rc == 0 && utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) < 0) {
        rc = check_space(t, t->n);
        if (rc == 0)
            rc = sync_all(t, &t->e);
        if (rc == 0)
            rc = fs_write_atomic(path, t->bytes, t->n, 0600, &t->e);
        if (rc == 0)
            *used_by(t, t->user) += blocks_of((int64_t)t->n);
    }
    free(path);
    return rc;
}

static int put(struct task *t)
{
    struct workdir d = {0};
    int rc = workdir_parse(t->bytes, t->n, &d, &t->e);
    if (rc != 0)
        return rc;
    chunk_hash(t->bytes, t->n, t->hash);
    find_missing(t, &d);
    rc = t->out.len ? 0 : store_tree(t);
    workdir_deinit(&d);
    return rc;
}

/* ---- reading ---- */

static int get(struct task *t)
{
    char *path = tree_path(t->dir, t->user, t->hash);
    int rc = fs_read(path, WORKDIR_TEXT_BYTES, &t->out, &t->e);
    free(path);
    return rc;
}

static int get_pieces(struct task *t)
{
    struct buf piece = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < t->n_hashes; i++) {
        char *path = piece_path(t->dir, t->user, t->hashes[i]);
        rc = fs_read(path, WORKDIR_PIECE_BYTES, &piece, &t->e);
        free(path);
        if (i > 0 && t->out.len + piece.len + 128 > WORKDIR_PACK_BYTES)
            break;
        if (rc == 0 && piece.len > 0)
            workdir_pack(&t->out, t->hashes[i], piece.data, piece.len);
    }
    buf_deinit(&piece);
    return rc;
}

/* ---- cleaning ---- */

static bool is_recent(const char *path, int64_t age_ms)
{
    struct stat st;
    int64_t now = clock_wall(&clock_system).ms;
    return stat(path, &st) == 0 && (int64_t)st.st_mtim.tv_sec * 1000 + age_ms > now;
}

static int note_tree(void *ctx, const char *path, const char *name, struct err *e)
{
    struct task *t = ctx;
    (void)e;
    if (t->n_old < OLD_MAX && workdir_is_hash(name) && !is_recent(path, WORKDIRS_GRACE_MS)) {
        struct old_tree *o = &t->old[t->n_old++];
        STR_COPY(o->user, t->user);
        STR_COPY(o->hash, name);
    }
    return 0;
}

static int note_user(void *ctx, const char *path, const char *name, struct err *e)
{
    struct task *t = ctx;
    STR_COPY(t->user, name);
    char *trees = mem_printf("%s/trees", path);
    int rc = each_name(trees, note_tree, t, e);
    free(trees);
    return rc;
}

struct pruning {
    struct task *t;
    struct smap kept; /* hashes of pieces that trees refer to */
    int64_t age_ms;   /* younger pieces stay; 0 = none do */
    int64_t bytes;    /* disk space of what remains, in whole blocks */
};

/* Marks the pieces of one tree. A file that is no tree keeps nothing. The pieces of a tree that
 * cannot be read are unknown: an error. */
static int keep_pieces(void *ctx, const char *path, const char *name, struct err *e)
{
    struct pruning *s = ctx;
    struct buf text = {0};
    struct workdir d = {0};
    struct err why;
    if (!workdir_is_hash(name)) {
        unlink(path); /* from an interrupted write */
        return 0;
    }
    int rc = fs_read(path, WORKDIR_TEXT_BYTES, &text, e);
    if (rc == 0 && workdir_parse(buf_str(&text), text.len, &d, &why) != 0)
        log_error("a stored working directory is damaged", log_s("path", path), log_err(&why));
    for (size_t i = 0; i < d.n_hashes; i++)
        smap_put(&s->kept, d.hashes[i], s);
    s->bytes += blocks_of((int64_t)text.len);
    workdir_deinit(&d);
    buf_deinit(&text);
    return rc;
}

static int prune_piece(void *ctx, const char *path, const char *name, struct err *e)
{
    struct pruning *s = ctx;
    struct stat st;
    (void)e;
    if (smap_get(&s->kept, name) || (s->age_ms > 0 && is_recent(path, s->age_ms))) {
        s->bytes += stat(path, &st) == 0 ? blocks_of(st.st_size) : 0;
        return 0;
    }
    if (unlink(path) < 0 && errno != ENOENT)
        log_warn("a piece of a working directory cannot be removed", log_s("path", path),
            log_s("why", strerror(errno)));
    return 0;
}

static int prune_pieces(void *ctx, const char *path, const char *name, struct err *e)
{
    int rc = each_name(path, prune_piece, ctx, e);
    (void)name;
    rmdir(path); /* fails unless empty */
    return rc;
}

static int prune_user(void *ctx, const char *path, const char *name, struct err *e)
{
    struct task *t = ctx;
    struct pruning s = {.t = t, .age_ms = t->kind == CLEAR ? 0 : WORKDIRS_GRACE_MS};
    char *trees = mem_printf("%s/trees", path), *pieces = mem_printf("%s/pieces", path);
    int rc = each_name(trees, keep_pieces, &s, e);
    rc = rc ? rc : each_name(pieces, prune_pieces, &s, e);
    if (rc == 0)
        *used_by(t, name) = s.bytes;
    else
        log_error("unused working directories of a user could not be removed", log_s("path", path),
            log_err(e));
    smap_deinit(&s.kept);
    rmdir(trees);
    rmdir(pieces);
    rmdir(path); /* fails unless empty */
    free(trees);
    free(pieces);
    return 0; /* the other users' */
}

static int prune(struct task *t)
{
    for (size_t i = 0; i < t->n_old; i++) {
        char *path = tree_path(t->dir, t->old[i].user, t->old[i].hash);
        pthread_mutex_lock(&t->w->removing);
        if (!t->old[i].wanted && !is_recent(path, WORKDIRS_GRACE_MS))
            unlink(path);
        pthread_mutex_unlock(&t->w->removing);
        free(path);
    }
    return each_name(t->dir, prune_user, t, &t->e);
}

static void on_thread(void *ctx)
{
    struct task *t = ctx;
    switch (t->kind) {
    case PUT:
        t->rc = put(t);
        break;
    case ADD:
        t->rc = add(t);
        break;
    case GET:
        t->rc = get(t);
        break;
    case GET_PIECES:
        t->rc = get_pieces(t);
        break;
    case FIND_OLD:
        t->old = mem_array(OLD_MAX, sizeof(*t->old));
        t->rc = each_name(t->dir, note_user, t, &t->e);
        break;
    case CLEAR:
    case PRUNE:
        t->rc = prune(t);
        break;
    }
}

/* ---- on the loop ---- */

static void task_free(struct task *t)
{
    free(t->dir);
    free(t->bytes);
    free(t->hashes);
    free(t->old);
    buf_deinit(&t->out);
    free(t);
}

static void workdirs_free(struct workdirs *w)
{
    size_t pos = 0;
    int64_t *used;
    while ((used = smap_next(&w->used, &pos, NULL)))
        free(used);
    smap_deinit(&w->used);
    pthread_mutex_destroy(&w->removing);
    free(w->dir);
    free(w);
}

static struct task *task_create(struct workdirs *w, enum kind kind)
{
    struct task *t = mem_alloc(sizeof(*t));
    t->w = w;
    t->kind = kind;
    t->dir = mem_strdup(w->dir);
    return t;
}

static void post(struct workdirs *w, struct task *t)
{
    w->n_tasks++;
    w->n_bytes += t->n;
    list_push_back(&w->waiting, &t->link);
    next(w);
}

/* Marks the found trees that a job has or may have again, and posts the removal of the others. */
static void start_prune(struct workdirs *w, struct task *found)
{
    struct task *t = task_create(w, PRUNE);
    struct err e;
    for (size_t i = 0; i < found->n_old; i++) {
        struct old_tree *o = &found->old[i];
        if (db_workdir_is_wanted(w->o.reader, o->hash, &o->wanted, &e) != 0) {
            log_error("the users of a working directory cannot be read", log_err(&e));
            o->wanted = true;
        }
    }
    t->old = found->old;
    t->n_old = found->n_old;
    found->old = NULL;
    post(w, t);
}

static void finish(struct workdirs *w, struct task *t)
{
    if (t->kind == FIND_OLD && t->rc == 0)
        start_prune(w, t);
    else if (t->rc != 0 && !t->fn)
        log_error("unused working directories could not be removed", log_err(&t->e));
    if (t->fn)
        t->fn(t->ctx, t->rc ? &t->e : NULL, &t->out);
}

static void on_done(void *ctx)
{
    struct task *t = ctx;
    struct workdirs *w = t->w;
    if (t->is_dropped) {
        task_free(t);
        workdirs_free(w);
        return;
    }
    w->now = NULL;
    w->n_tasks--;
    w->n_bytes -= t->n;
    finish(w, t);
    task_free(t);
    next(w);
}

static void next(struct workdirs *w)
{
    struct link *first = w->now ? NULL : list_pop(&w->waiting);
    if (!first)
        return;
    w->now = LIST_ENTRY(first, struct task, link);
    uv_run_work(w->o.loop, on_thread, on_done, w->now);
}

static void on_check(struct timer *timer, void *ctx)
{
    struct workdirs *w = ctx;
    timer_start(w->o.timers, timer, WORKDIRS_CHECK_MS);
    post(w, task_create(w, FIND_OLD));
}

/* ---- requests ---- */

static void start_task(
    struct workdirs *w, struct task *t, const char *user, workdirs_fn fn, void *ctx)
{
    user_name(user, t->user);
    t->fn = fn;
    t->ctx = ctx;
    if (w->n_tasks >= TASKS_MAX || w->n_bytes + t->n > TASKS_BYTES_MAX) {
        t->rc = err_set(&t->e, ERR_THROTTLED,
            "belayd has too many working directories in progress: try again in a moment");
        fn(ctx, &t->e, &t->out);
        task_free(t);
        return;
    }
    post(w, t);
}

void workdirs_put(
    struct workdirs *w, const char *user, const void *p, size_t n, workdirs_fn fn, void *ctx)
{
    struct task *t = task_create(w, PUT);
    t->bytes = n ? mem_dup(p, n) : mem_strdup("");
    t->n = n;
    start_task(w, t, user, fn, ctx);
}

void workdirs_add(
    struct workdirs *w, const char *user, const void *p, size_t n, workdirs_fn fn, void *ctx)
{
    struct task *t = task_create(w, ADD);
    t->bytes = n ? mem_dup(p, n) : mem_strdup("");
    t->n = n;
    start_task(w, t, user, fn, ctx);
}

void workdirs_get(struct workdirs *w, const char *user, const char *hash, workdirs_fn fn, void *ctx)
{
    struct task *t = task_create(w, GET);
    STR_COPY(t->hash, hash);
    start_task(w, t, user, fn, ctx);
}

void workdirs_get_pieces(struct workdirs *w, const char *user, char (*hashes)[CHUNK_HEX_SIZE],
    size_t n, workdirs_fn fn, void *ctx)
{
    struct task *t = task_create(w, GET_PIECES);
    t->hashes = hashes;
    t->n_hashes = n;
    start_task(w, t, user, fn, ctx);
}

int workdirs_pin(struct workdirs *w, const char *user, const char *hash, struct err *e)
{
    char name[USER_HEX + 1];
    user_name(user, name);
    char *path = tree_path(w->dir, name, hash);
    pthread_mutex_lock(&w->removing);
    int rc = utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0 ? 0
             : errno == ENOENT
                 ? err_set(e, ERR_INVALID,
                       "spec.launch.workdir: belayd has no working directory %.12s... of yours: "
                       "send it first",
                       hash)
                 : err_errno(e, errno, "looking for %s", path);
    pthread_mutex_unlock(&w->removing);
    free(path);
    return rc;
}

/* ---- life ---- */

struct workdirs *workdirs_create(const struct workdirs_options *o)
{
    struct workdirs *w = mem_alloc(sizeof(*w));
    w->o = *o;
    w->dir = mem_strdup(o->dir);
    pthread_mutex_init(&w->removing, NULL);
    timer_init(&w->check_timer, on_check, w);
    timer_start(o->timers, &w->check_timer, 0);
    post(w, task_create(w, CLEAR));
    return w;
}

/* A task on the thread may read it at this moment. */
void workdirs_set_limit(struct workdirs *w, int64_t user_bytes)
{
    __atomic_store_n(&w->o.user_bytes, user_bytes, __ATOMIC_RELAXED);
}

void workdirs_destroy(struct workdirs *w)
{
    const struct err gone = {.kind = ERR_UNAVAILABLE, .text = "belayd is shutting down"};
    const struct buf nothing = {0};
    if (!w)
        return;
    timer_stop(w->o.timers, &w->check_timer);
    for (struct link *n; (n = list_pop(&w->waiting));) {
        struct task *t = LIST_ENTRY(n, struct task, link);
        if (t->fn)
            t->fn(t->ctx, &gone, &nothing);
        task_free(t);
    }
    if (!w->now) {
        workdirs_free(w);
        return;
    }
    w->now->is_dropped = true;
    if (w->now->fn)
        w->now->fn(w->now->ctx, &gone, &nothing);
}
