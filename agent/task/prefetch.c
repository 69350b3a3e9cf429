/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/prefetch.h"

#include "agent/task/job_store.h"
#include "agent/task/store_credentials.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

#define LIMIT_MS 600000 /* more than belayd waits for it */
#define SILENT_MS 15000 /* after a cancel: then the store does not answer */
#define TRIES 3         /* if chunks are cleaned meanwhile */

/* ---- on a thread ---- */

static int restore(struct prefetch *p, const struct ckpt_job *j, const char *path)
{
    struct prefetch_work *w = &p->work;
    char *left[CKPT_NEARBY_MAX];
    struct ckpt_restore_with with = {.from_attempt = w->what.from_attempt, .only_reads = true};
    size_t n = kept_find(p->common->kept_dir, p->common->dir, w->what.job, w->what.attempt + 1,
        left, CKPT_NEARBY_MAX);
    for (size_t i = 0; i < n; i++)
        with.nearby[i] = left[i];
    int rc =
        ckpt_restore_with(j, w->what.attempt + 1, path, &with, &p->cancel, &w->restored, &w->e);
    for (size_t i = 0; i < n; i++)
        free(left[i]);
    return rc;
}

/* The attempt may have saved and cleaned since the manifest was read: then a newer one is there. */
static int fetch(struct prefetch *p)
{
    struct prefetch_work *w = &p->work;
    const struct job_store_of of = {.url = w->store,
        .cluster = w->cluster,
        .uid = w->what.store_uid,
        .job = w->what.job,
        .secrets = &w->what.secrets,
        .net = w->net,
        .cancel = &p->cancel,
        .pulse = &w->pulse};
    struct job_store store;
    enum task_store fault = STORE_IS_FINE;
    int rc = job_store_open(&of, &store, &fault, &w->e);
    if (rc)
        return rc;
    char *path = kept_path(p->common->kept_dir, w->what.job, w->what.attempt);
    int tries = 0;
    do
        rc = restore(p, &store.job, path);
    while (rc == ERR_CORRUPT && ++tries < TRIES);
    free(path);
    job_store_close(&store);
    kept_prune(p->common->kept_dir, NULL, 0, KEPT_FREE_PERCENT);
    return rc;
}

static void on_thread(void *ctx)
{
    struct prefetch *p = ctx;
    p->work.rc = fetch(p);
}

/* ---- on the loop ---- */

static bool is_current(const struct prefetch *p)
{
    return p->report.job == p->work.what.job && p->report.attempt == p->work.what.attempt;
}

static void note_result(struct prefetch *p)
{
    const struct prefetch_work *w = &p->work;
    if (w->rc == 0 && w->restored.id.attempt == w->what.attempt) {
        p->report.sequence = w->restored.id.sequence;
        p->report.text[0] = '\0';
        log_info("fetched a checkpoint ahead", log_i("job", w->what.job),
            log_i("attempt", w->what.attempt), log_i("sequence", p->report.sequence),
            log_i("bytes", w->restored.stats.bytes),
            log_i("reused_bytes", w->restored.stats.reused_bytes),
            log_i("took_ms", w->restored.stats.took_ms));
    } else if (w->rc == 0) {
        STR_COPY(p->report.text, "the store has no checkpoint of this attempt");
    } else {
        STR_SHORTEN(p->report.text, w->e.text);
        log_warn("a checkpoint could not be fetched ahead", log_i("job", w->what.job),
            log_i("attempt", w->what.attempt), log_err(&w->e));
    }
    p->common->changed(p->common->ctx);
}

static void on_done(void *ctx)
{
    struct prefetch *p = ctx;
    struct prefetch_work *w = &p->work;
    timer_stop(p->common->timers, &p->limit);
    if (w->net != p->common->net)
        store_net_destroy(w->net);
    wire_secrets_wipe(&w->what.secrets);
    p->is_busy = false;
    if (is_current(p) && !atomic_load(&p->cancel))
        note_result(p);
}

static void cancel(struct prefetch *p)
{
    if (!p->is_busy || atomic_exchange(&p->cancel, 1))
        return;
    timer_start(p->common->timers, &p->limit, SILENT_MS);
}

/* Its time is over, or the store has not answered since: then the thread takes no slot. */
static void on_limit(struct timer *timer, void *ctx)
{
    struct prefetch *p = ctx;
    (void)timer;
    if (atomic_load(&p->cancel)) {
        store_threads_note(p->common->store_threads, &p->work.on_store, true);
        return;
    }
    if (is_current(p)) {
        STR_COPY(p->report.text, "it took too long");
        p->common->changed(p->common->ctx);
    }
    cancel(p);
}

void prefetch_init(struct prefetch *p, const struct task_common *common)
{
    *p = (struct prefetch){.common = common};
    timer_init(&p->limit, on_limit, p);
}

static void start(struct prefetch *p, const struct wire_prefetch *x)
{
    struct prefetch_work *w = &p->work;
    const struct wire_joined *node = &p->common->peer->id->node;
    *w = (struct prefetch_work){.what = *x, .net = p->common->net};
    wire_secrets_copy(&x->secrets, &w->what.secrets);
    STR_COPY(w->store, node->store);
    STR_COPY(w->cluster, node->cluster);
    if (x->secrets.store_token) {
        w->net = store_credentials_create_of_job();
        store_credentials_give_job(w->net, w->store, &x->secrets);
    }
    atomic_store(&p->cancel, 0);
    p->is_busy = true;
    p->tried = x->sequence;
    timer_start(p->common->timers, &p->limit, LIMIT_MS);
    w->on_store = (struct store_work){.work = on_thread, .done = on_done, .ctx = p, .user = ""};
    store_threads_run(p->common->store_threads, &w->on_store);
}

static bool runs_here(const struct wire_desired *d, int64_t job)
{
    for (size_t i = 0; i < d->n_attempts; i++)
        if (d->attempts[i].job == job)
            return true;
    return false;
}

static void drop(struct prefetch *p, bool is_of_use)
{
    if (!is_of_use)
        p->unneeded = (struct kept){.job = p->report.job, .attempt = p->report.attempt + 1};
    p->report = (struct wire_prefetched){0};
    p->tried = 0;
    cancel(p);
}

void prefetch_desired(struct prefetch *p, const struct wire_desired *d)
{
    const struct wire_prefetch *x = &d->prefetch;
    if (p->report.job && (x->job != p->report.job || x->attempt != p->report.attempt))
        drop(p, x->job == p->report.job || runs_here(d, p->report.job));
    if (!x->job)
        return;
    p->report.job = x->job;
    p->report.attempt = x->attempt;
    if (p->unneeded.job == x->job)
        p->unneeded = (struct kept){0};
    if (runs_here(d, x->job))
        cancel(p);
    else if (!p->is_busy && x->sequence > p->tried &&
             (!x->needs_secrets || x->secrets.version != 0))
        start(p, x);
}

void prefetch_fill(const struct prefetch *p, struct wire_status *s)
{
    s->prefetched = p->report;
}

bool prefetch_take_unneeded(struct prefetch *p, struct kept *ret)
{
    if (p->is_busy || p->unneeded.job == 0)
        return false;
    *ret = p->unneeded;
    p->unneeded = (struct kept){0};
    return true;
}

void prefetch_stop(struct prefetch *p)
{
    cancel(p);
    timer_stop(p->common->timers, &p->limit);
}
