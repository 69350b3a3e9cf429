/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/store/store_cleaner.h"

#include "base/mem.h"
#include <stdlib.h>

#define LIMIT_MS SECONDS_MS(3600) /* then the cleaning is interrupted, and retried later */

struct cleaning {
    struct store_task task;
    struct cleaner_job job;
    bool is_other_jobs;
    int64_t kept_bytes;
    cleaner_done_fn done;
    void *ctx;
};

struct store_cleaner {
    struct cleaner_port port;
    struct store_tasks *tasks;
};

static int clean(struct store_task *t, const struct ckpt_job *j, struct err *e)
{
    struct cleaning *s = LIST_ENTRY(t, struct cleaning, task);
    const struct ckpt_known *c = &s->job.known;
    const struct ckpt_expected x = {
        .identity = c->identity, .last = {c->last.attempt, c->last.sequence}};
    enum ckpt_mismatch mismatch;
    static const int newest[] = {
        [CKPT_GC_KEEP_ALL] = CKPT_KEEP_ALL, [CKPT_GC_KEEP_LAST] = 1, [CKPT_GC_KEEP_NONE] = 0};
    int rc = ckpt_close(j, &x, &mismatch, e);
    s->is_other_jobs = mismatch == CKPT_ANOTHERS;
    return rc ? rc
              : ckpt_clean(j, CKPT_CLOSED, (struct ckpt_keep){.newest = newest[s->job.keep]},
                    &t->cancel, &s->kept_bytes, e);
}

static void on_dropped(struct store_task *t)
{
    free(LIST_ENTRY(t, struct cleaning, task));
}

static void on_done(struct store_task *t, const struct err *e)
{
    struct cleaning *s = LIST_ENTRY(t, struct cleaning, task);
    enum clean_end end = s->is_other_jobs ? CLEAN_OTHER_JOB : e ? CLEAN_FAILED : CLEAN_DONE;
    s->done(s->ctx, end, s->kept_bytes, e);
    free(s);
}

static void start(
    struct cleaner_port *port, const struct cleaner_job *j, cleaner_done_fn done, void *ctx)
{
    struct store_cleaner *w =
        (struct store_cleaner *)((char *)port - offsetof(struct store_cleaner, port));
    struct cleaning *s = mem_alloc(sizeof(*s));
    *s = (struct cleaning){
        .task = {.job = j->job, .run = clean, .done = on_done, .dropped = on_dropped},
        .job = *j,
        .done = done,
        .ctx = ctx};
    store_tasks_put(w->tasks, &s->task);
}

struct store_cleaner *store_cleaner_create(const struct store_tasks_options *o)
{
    struct store_tasks_options limited = *o;
    struct store_cleaner *w = mem_alloc(sizeof(*w));
    limited.limit_ms = LIMIT_MS;
    *w = (struct store_cleaner){.port.start = start, .tasks = store_tasks_create(&limited)};
    return w;
}

struct cleaner_port *store_cleaner_port(struct store_cleaner *s)
{
    return &s->port;
}

void store_cleaner_destroy(struct store_cleaner *w)
{
    if (!w)
        return;
    store_tasks_destroy(w->tasks);
    free(w);
}
