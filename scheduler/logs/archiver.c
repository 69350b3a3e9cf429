/* SPDX-License-Identifier: Apache-2.0
 *
 * See archiver.h. The thread uses only its own struct task, so an archiver can be destroyed
 * meanwhile.
 */
#include "scheduler/logs/archiver.h"

#include "base/fs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "ckpt/store/keys_source.h"
#include "ckpt/store/marker.h"
#include "scheduler/logs/old_output.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#define FIRST_MS 5000
#define JOBS_A_DIR 1000

/* Somebody who waits for the output of a job. */
struct waiter {
    struct link in_archiver;
    int64_t job;
    archiver_done_fn done;
    void *ctx;
};

struct task {
    struct archiver *owner; /* NULL after it was destroyed */
    int64_t fetches;        /* the job whose output is brought back; 0: a look */
    char *url, *cluster, *uid, *db_path, *logs_dir;
    struct store_net *net; /* NULL for a store of this machine */
    struct master master;
    bool has_master;
    struct old_output look;
    atomic_int cancel;
    int rc;
    struct err e;
};

struct archiver {
    struct archiver_options o;
    char *db_path, *logs_dir;
    struct keys_source keys;
    struct task *now; /* in progress; may be NULL */
    bool on_thread;   /* now is used by the thread */
    bool look_is_due;
    struct list waiters;
    size_t n_waiters;
    struct timer timer, begin;
    struct output_use use; /* of the last whole look, if has_use */
    bool has_use;
};

static char *dir_of(const char *logs_dir, int64_t job)
{
    return mem_printf("%s/%" PRId64 "/%" PRId64, logs_dir, job / JOBS_A_DIR, job);
}

/* ---- on the thread ---- */

static int fetch(struct task *t, struct store *s)
{
    struct ckpt_crypt crypt;
    struct statvfs v;
    char *dir = dir_of(t->logs_dir, t->fetches);
    struct archive a = {.store = s,
        .cluster = t->cluster,
        .job = t->fetches,
        .crypt = &crypt,
        .dir = dir,
        .cancel = &t->cancel};
    int64_t reserve =
        statvfs(t->logs_dir, &v) == 0 ? 2 * fs_reserve((int64_t)(v.f_blocks * v.f_frsize)) : 0;
    old_output_crypt(t->has_master ? &t->master : NULL, t->look.encrypts, t->fetches, &crypt);
    int rc = archive_has(dir) ? archive_get(&a, reserve, &t->e) : 0;
    crypt_wipe(&crypt);
    free(dir);
    return rc;
}

static int look(struct task *t, struct store *s)
{
    t->look.store = s;
    int rc = db_reader_open(t->db_path, &t->look.reader, &t->e);
    if (rc == 0)
        rc = old_output_look(&t->look, &t->e);
    db_reader_close(t->look.reader);
    return rc;
}

/* Without a store old output is still removed. */
static void on_thread(void *ctx)
{
    struct task *t = ctx;
    struct store *s = NULL;
    struct err why = {0};
    const struct store_options o = {.net = t->net, .cancel = &t->cancel, .existing = true};
    int opened = store_open(t->url, &o, &s, &why);
    if (opened == 0)
        opened = marker_check(s, t->cluster, t->uid, &why);
    if (t->fetches) {
        t->rc = opened ? opened : fetch(t, s);
        if (opened)
            t->e = why;
    } else {
        t->rc = look(t, opened ? NULL : s);
        if (t->rc == 0 && opened && opened != ERR_NOT_FOUND) {
            t->rc = opened;
            t->e = why;
        }
    }
    store_close(s);
}

/* ---- on the loop ---- */

static void begin_next(struct archiver *a);

static void task_free(struct task *t)
{
    store_net_destroy(t->net);
    master_wipe(&t->master);
    free(t->url);
    free(t->cluster);
    free(t->uid);
    free(t->db_path);
    free(t->logs_dir);
    free(t);
}

static void report_look(struct archiver *a, const struct task *t)
{
    bool is_interrupted = t->rc == ERR_CANCELLED;
    a->look_is_due = is_interrupted;
    if (t->rc == 0) {
        a->use = t->look.use;
        a->has_use = true;
    }
    if (!is_interrupted)
        timer_start(a->o.timers, &a->timer, ARCHIVER_EVERY_MS);
    if (t->rc != 0 && !is_interrupted)
        log_warn("old output of jobs could not be moved or removed; trying again in an hour",
            log_s("dir", t->logs_dir), log_err(&t->e));
    if (t->look.removed + t->look.moved > 0)
        log_info("old output of jobs was moved to the store, or removed",
            log_i("moved", t->look.moved), log_i("removed", t->look.removed));
}

static void answer(struct archiver *a, const struct task *t)
{
    struct list due = {0};
    LIST_FOREACH (&a->waiters, l) {
        if (LIST_ENTRY(l, struct waiter, in_archiver)->job != t->fetches)
            continue;
        link_remove(l);
        list_push_back(&due, l);
        a->n_waiters--;
    }
    if (t->rc != 0)
        log_warn("the output of a job could not be brought back from the store",
            log_i("job", t->fetches), log_err(&t->e));
    for (struct link *l; (l = list_pop(&due));) {
        struct waiter *w = LIST_ENTRY(l, struct waiter, in_archiver);
        w->done(w->ctx, t->rc != 0 ? &t->e : NULL);
        free(w);
    }
}

static void finish(struct task *t)
{
    struct archiver *a = t->owner;
    if (a) {
        a->now = NULL;
        a->on_thread = false;
        if (t->rc == ERR_DENIED)
            keys_source_refused(&a->keys);
        if (t->fetches)
            answer(a, t);
        else
            report_look(a, t);
        timer_start(a->o.timers, &a->begin, 0);
    }
    task_free(t);
}

static void on_done(void *ctx)
{
    finish(ctx);
}

/* Without credentials a look is done without a store. */
static void on_keys(void *ctx, const struct err *e)
{
    struct archiver *a = ctx;
    struct task *t = a->now;
    if (e && t->fetches) {
        t->e = *e;
        t->rc = e->kind;
        finish(t);
        return;
    }
    a->on_thread = true;
    uv_run_work(a->o.loop, on_thread, on_done, t);
}

static void begin_task(struct archiver *a, int64_t fetches)
{
    struct task *t = mem_alloc(sizeof(*t));
    *t = (struct task){.owner = a,
        .fetches = fetches,
        .url = mem_strdup(a->o.store),
        .cluster = mem_strdup(a->o.cluster),
        .uid = mem_strdup(a->o.cluster_uid),
        .db_path = mem_strdup(a->db_path),
        .logs_dir = mem_strdup(a->logs_dir),
        .has_master = a->o.master != NULL};
    if (a->o.master)
        t->master = *a->o.master;
    t->look = (struct old_output){.dir = t->logs_dir,
        .now = clock_wall(a->o.timers->clock),
        .keep_ms = a->o.keep_ms,
        .disk_ms = a->o.disk_ms,
        .disk_bytes = a->o.disk_bytes,
        .store_bytes = a->o.store_bytes,
        .cluster = t->cluster,
        .master = t->has_master ? &t->master : NULL,
        .encrypts = a->o.encrypts,
        .cancel = &t->cancel};
    a->now = t;
    keys_source_get_net(&a->keys, t->url, &t->net, on_keys, a);
}

static void begin_next(struct archiver *a)
{
    struct link *first = list_first(&a->waiters);
    if (a->now)
        return;
    if (first) {
        begin_task(a, LIST_ENTRY(first, struct waiter, in_archiver)->job);
    } else if (a->look_is_due) {
        a->look_is_due = false;
        begin_task(a, 0);
    }
}

static void on_begin(struct timer *timer, void *ctx)
{
    (void)timer;
    begin_next(ctx);
}

static void on_timer(struct timer *timer, void *ctx)
{
    struct archiver *a = ctx;
    (void)timer;
    a->look_is_due = true;
    begin_next(a);
}

bool archiver_has(const struct archiver *a, int64_t job)
{
    char *dir = dir_of(a->logs_dir, job);
    bool has = archive_has(dir);
    free(dir);
    return has;
}

bool archiver_may_fetch(const struct archiver *a)
{
    return a->n_waiters < ARCHIVER_FETCHES_MAX;
}

void archiver_fetch(struct archiver *a, int64_t job, archiver_done_fn done, void *ctx)
{
    struct waiter *w = mem_alloc(sizeof(*w));
    assert(archiver_may_fetch(a));
    *w = (struct waiter){.job = job, .done = done, .ctx = ctx};
    list_push_back(&a->waiters, &w->in_archiver);
    a->n_waiters++;
    if (a->now && !a->now->fetches)
        atomic_store(&a->now->cancel, 1);
    if (!a->now)
        timer_start(a->o.timers, &a->begin, 0);
}

/* ---- life ---- */

struct archiver *archiver_create(const struct archiver_options *o)
{
    struct archiver *a = mem_alloc(sizeof(*a));
    *a = (struct archiver){.o = *o,
        .db_path = mem_strdup(o->db_path),
        .logs_dir = mem_strdup(o->logs_dir),
        .keys = {.timers = o->timers, .http = o->http}};
    timer_init(&a->timer, on_timer, a);
    timer_init(&a->begin, on_begin, a);
    return a;
}

void archiver_set_limits(
    struct archiver *a, int64_t keep_ms, int64_t disk_ms, int64_t disk_bytes, int64_t store_bytes)
{
    bool is_same = a->o.keep_ms == keep_ms && a->o.disk_ms == disk_ms &&
                   a->o.disk_bytes == disk_bytes && a->o.store_bytes == store_bytes;
    a->o.keep_ms = keep_ms;
    a->o.disk_ms = disk_ms;
    a->o.disk_bytes = disk_bytes;
    a->o.store_bytes = store_bytes;
    if (!is_same && timer_is_running(&a->timer)) /* else a look is in progress */
        timer_start(a->o.timers, &a->timer, FIRST_MS);
}

bool archiver_use(const struct archiver *a, struct output_use *ret_use)
{
    *ret_use = a->use;
    return a->has_use;
}

void archiver_start(struct archiver *a)
{
    timer_start(a->o.timers, &a->timer, FIRST_MS);
}

void archiver_destroy(struct archiver *a)
{
    struct err e;
    if (!a)
        return;
    timer_stop(a->o.timers, &a->timer);
    timer_stop(a->o.timers, &a->begin);
    keys_source_deinit(&a->keys); /* drops a pending call */
    if (a->now && a->on_thread) {
        a->now->owner = NULL;
        atomic_store(&a->now->cancel, 1);
    } else if (a->now) {
        task_free(a->now);
    }
    err_set(&e, ERR_UNAVAILABLE, "belayd is stopping: try again in a moment");
    for (struct link *l; (l = list_pop(&a->waiters));) {
        struct waiter *w = LIST_ENTRY(l, struct waiter, in_archiver);
        w->done(w->ctx, &e);
        free(w);
    }
    free(a->db_path);
    free(a->logs_dir);
    free(a);
}
