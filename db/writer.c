/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that owns the write connection. It gets one batch at a time; during its fsync the loop
 * collects the next one.
 *
 *   IDLE --- start ---> WORK --- commit ended ---> DONE --- finished asked ---> IDLE
 */
#include "base/mem.h"
#include "db/conn.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum writer_state { WRITER_IDLE, WRITER_WORK, WRITER_DONE };

struct db_writer {
    struct db *db;
    void (*wake)(void *ctx);
    void *ctx;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the following members */
    pthread_cond_t changed;
    enum writer_state state;
    bool stop;
    const struct db_batch *batch;
    int rc;
    struct err err;
};

/* Returns the batch to commit, or NULL when the thread must stop. An accepted batch is always
 * committed first. */
static const struct db_batch *wait_for_work(struct db_writer *w)
{
    const struct db_batch *batch = NULL;

    pthread_mutex_lock(&w->mutex);
    while (w->state != WRITER_WORK && !w->stop)
        pthread_cond_wait(&w->changed, &w->mutex);
    if (w->state == WRITER_WORK)
        batch = w->batch;
    pthread_mutex_unlock(&w->mutex);
    return batch;
}

static void *run(void *arg)
{
    struct db_writer *w = arg;
    const struct db_batch *batch;

    while ((batch = wait_for_work(w)) != NULL) {
        struct err e = {0};
        int rc = db_commit(w->db, batch, &e);
        pthread_mutex_lock(&w->mutex);
        w->rc = rc;
        w->err = e;
        w->batch = NULL;
        w->state = WRITER_DONE;
        pthread_mutex_unlock(&w->mutex);
        w->wake(w->ctx);
    }
    return NULL;
}

struct db_writer *db_writer_create(struct db *d, void (*wake)(void *ctx), void *ctx)
{
    struct db_writer *w = mem_alloc(sizeof(*w));
    sigset_t all, old;

    *w = (struct db_writer){.db = d, .wake = wake, .ctx = ctx};
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
    /* The loop handles signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&w->thread, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    assert(!failed); /* the system cannot create a thread: treated like out of memory */
    return w;
}

void db_writer_start(struct db_writer *w, const struct db_batch *b)
{
    pthread_mutex_lock(&w->mutex);
    assert(w->state == WRITER_IDLE);
    w->batch = b;
    w->state = WRITER_WORK;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

bool db_writer_finished(struct db_writer *w, int *ret_rc, struct err *e)
{
    pthread_mutex_lock(&w->mutex);
    bool done = w->state == WRITER_DONE;
    if (done) {
        *ret_rc = w->rc;
        if (w->rc != 0 && e)
            *e = w->err;
        w->state = WRITER_IDLE;
    }
    pthread_mutex_unlock(&w->mutex);
    return done;
}

void db_writer_get_audit_head(const struct db_writer *w, struct audit_head *ret_head)
{
    *ret_head = w->db->audit;
}

void db_writer_get_pruned(const struct db_writer *w, struct pruned *ret_pruned)
{
    *ret_pruned = w->db->pruner.now;
}

void db_writer_destroy(struct db_writer *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->mutex);
    w->stop = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    db_close(w->db);
    free(w);
}
