/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/task_workdir.h"

#include "agent/task/handover.h"
#include "agent/task/task_private.h"
#include "base/mem.h"
#include <signal.h>
#include <stdlib.h>

static int fetch(struct task *t, const struct job_user *u, struct err *e)
{
    struct task_work *w = &t->work;
    char *path = mem_printf("%s/" WORKDIR_NAME, t->dir);
    int rc = workdir_fetch(&w->workdir, path, &w->cancel, e);
    if (rc == ERR_NO_SPACE) { /* empties the cache and fetches everything */
        workdir_trim(w->workdir.cache, 0);
        rc = workdir_fetch(&w->workdir, path, &w->cancel, e);
    }
    if (!rc)
        rc = handover_tree(u, path, e);
    free(path);
    return rc;
}

static void *run(void *ctx)
{
    struct task_workdir *b = ctx;
    b->rc = fetch(b->t, b->u, &b->e);
    return NULL;
}

/* The thread blocks all signals, which the loop handles. */
static bool start_thread(struct task_workdir *b)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int failed = pthread_create(&b->thread, NULL, run, b);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failed == 0;
}

void task_workdir_begin(
    struct task_workdir *b, struct task *t, const struct job_user *u, bool parallel)
{
    *b = (struct task_workdir){.t = t, .u = u};
    if (!*t->spec->workdir)
        return;
    b->is_parallel = parallel && start_thread(b);
    if (!b->is_parallel)
        run(b);
}

int task_workdir_end(struct task_workdir *b, struct err *e)
{
    if (b->is_parallel)
        pthread_join(b->thread, NULL);
    if (b->rc)
        *e = b->e;
    return b->rc;
}
