/* SPDX-License-Identifier: Apache-2.0
 *
 * See syncer.h. Invariants: at most one round is on the thread. Writes that are announced during a
 * round belong to the next one, and so do callers that begin to wait then. A timer runs exactly
 * while writes are announced, no caller waits and no round is on the thread.
 */
#include "scheduler/logs/syncer.h"

#include "base/fs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/uv/loop.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MAX 8 /* in one round; for more, one call syncs the whole file system */

struct waiter {
    struct link in_list;
    syncer_fn fn;
    void *ctx;
};

struct round {
    struct syncer *owner; /* NULL if it was destroyed meanwhile */
    char *dir;
    struct smap files; /* path -> &is_old or &is_new_file */
    struct list waiters;
    int rc;
    struct err e;
};

struct syncer {
    uv_loop_t *loop;
    struct timers *timers;
    struct timer pause;
    struct round *next; /* being collected */
    struct round *now;  /* on the thread; may be NULL */
};

static char is_old, is_new_file; /* values of the map; only their addresses are used */

static struct round *round_create(const char *dir)
{
    struct round *r = mem_alloc(sizeof(*r));
    *r = (struct round){.dir = mem_strdup(dir)};
    return r;
}

static void round_free(struct round *r)
{
    smap_deinit(&r->files);
    free(r->dir);
    free(r);
}

/* ---- on the thread ---- */

/* Syncs a file; one that no longer exists is not an error. */
static int sync_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : err_errno(e, errno, "cannot open %s to sync it", path);
    if (fdatasync(fd) != 0)
        rc = err_errno(e, errno, "cannot sync %s", path);
    close(fd);
    return rc;
}

/* Syncs the directories above a new file, up to and including dir. */
static int sync_names(const char *dir, const char *path, struct err *e)
{
    char *at = mem_strdup(path), *slash;
    int rc = 0;
    while (rc == 0 && strlen(at) > strlen(dir) && (slash = strrchr(at, '/'))) {
        *slash = '\0';
        rc = fs_exists(at) ? fs_sync_dir(at, e) : 0;
    }
    free(at);
    return rc;
}

static int sync_all(const char *dir, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    if (fd < 0 || syncfs(fd) != 0)
        rc = err_errno(e, errno, "cannot sync the file system of %s", dir);
    if (fd >= 0)
        close(fd);
    return rc;
}

static void on_thread(void *ctx)
{
    struct round *r = ctx;
    const char *path;
    void *kind;
    if (smap_size(&r->files) > FILES_MAX) {
        r->rc = sync_all(r->dir, &r->e);
        return;
    }
    for (size_t pos = 0; (kind = smap_next(&r->files, &pos, &path));) {
        struct err e;
        int rc = sync_file(path, &e);
        if (rc == 0 && kind == &is_new_file)
            rc = sync_names(r->dir, path, &e);
        if (rc != 0 && r->rc == 0) {
            r->rc = rc;
            r->e = e;
        }
    }
}

/* ---- on the loop ---- */

static void notify_waiters(struct round *r, const struct err *e)
{
    for (struct link *l; (l = list_pop(&r->waiters));) {
        struct waiter *w = LIST_ENTRY(l, struct waiter, in_list);
        struct waiter copy = *w;
        free(w);
        copy.fn(copy.ctx, e);
    }
}

static void begin(struct syncer *s);

static void start_next_round(struct syncer *s)
{
    if (s->now)
        return;
    if (!list_is_empty(&s->next->waiters))
        begin(s);
    else if (smap_size(&s->next->files) > 0 && !timer_is_running(&s->pause))
        timer_start(s->timers, &s->pause, SYNCER_PAUSE_MS);
}

static void on_round(void *ctx)
{
    struct round *r = ctx;
    struct syncer *s = r->owner;
    if (r->rc != 0)
        log_error("output of jobs is not durable", log_err(&r->e));
    if (s) {
        s->now = NULL;
        notify_waiters(r, r->rc ? &r->e : NULL);
        start_next_round(s);
    }
    round_free(r);
}

static void begin(struct syncer *s)
{
    timer_stop(s->timers, &s->pause);
    s->now = s->next;
    s->now->owner = s;
    s->next = round_create(s->now->dir);
    uv_run_work(s->loop, on_thread, on_round, s->now);
}

static void on_pause(struct timer *t, void *ctx)
{
    (void)t;
    begin(ctx);
}

struct syncer *syncer_create(uv_loop_t *loop, struct timers *timers, const char *dir)
{
    struct syncer *s = mem_alloc(sizeof(*s));
    *s = (struct syncer){.loop = loop, .timers = timers, .next = round_create(dir)};
    timer_init(&s->pause, on_pause, s);
    return s;
}

void syncer_destroy(struct syncer *s)
{
    struct err e;
    if (!s)
        return;
    err_set(&e, ERR_UNAVAILABLE, "belayd ends");
    timer_stop(s->timers, &s->pause);
    if (s->now) {
        s->now->owner = NULL;
        notify_waiters(s->now, &e);
    }
    notify_waiters(s->next, &e);
    round_free(s->next);
    free(s);
}

void syncer_written(struct syncer *s, const char *path, bool is_new)
{
    if (is_new || !smap_get(&s->next->files, path))
        smap_put(&s->next->files, path, is_new ? &is_new_file : &is_old);
    start_next_round(s);
}

bool syncer_is_synced(const struct syncer *s, const char *path)
{
    return !(s->now && smap_get(&s->now->files, path)) && !smap_get(&s->next->files, path);
}

/* A round on the thread may have passed the caller's file already, so the caller waits for the
 * next. */
void syncer_wait(struct syncer *s, syncer_fn fn, void *ctx)
{
    struct waiter *w = mem_alloc(sizeof(*w));
    *w = (struct waiter){.fn = fn, .ctx = ctx};
    list_push_back(&s->next->waiters, &w->in_list);
    start_next_round(s);
}
