/* SPDX-License-Identifier: Apache-2.0
 *
 * Two buffers ("batches"): the thread fills one while the caller empties the other. A batch with
 * fewer than BATCH_ROWS rows is the last.
 */
#include "db/read_ahead.h"

#include "base/mem.h"
#include "db/query.h"
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS 128 /* with rows of a job's size they stay in the processor's cache */

struct batch {
    char *rows;
    size_t n;
    bool is_full; /* owned by the caller; else by the thread */
};

struct read_ahead {
    const void *blank;
    size_t size;
    struct batch batches[2];
    size_t next, batch; /* the caller's position */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex; /* guards is_full and stop */
    pthread_cond_t changed;
    bool stop;
    struct query query; /* used by the thread while it exists */
    struct err err;
};

static void batch_fill(struct read_ahead *a, struct batch *s)
{
    for (s->n = 0; s->n < BATCH_ROWS; s->n++) {
        char *row = s->rows + s->n * a->size;
        memcpy(row, a->blank, a->size);
        if (!query_next(&a->query, row))
            return;
    }
}

/* Returns false if the caller wants no more. */
static bool wait_until_empty(struct read_ahead *a, const struct batch *s)
{
    pthread_mutex_lock(&a->mutex);
    while (s->is_full && !a->stop)
        pthread_cond_wait(&a->changed, &a->mutex);
    bool stop = a->stop;
    pthread_mutex_unlock(&a->mutex);
    return !stop;
}

static void batch_hand_over(struct read_ahead *a, struct batch *s, bool is_full)
{
    pthread_mutex_lock(&a->mutex);
    s->is_full = is_full;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

static void *run(void *arg)
{
    struct read_ahead *a = arg;
    size_t n = BATCH_ROWS;
    for (size_t k = 1; n == BATCH_ROWS && wait_until_empty(a, &a->batches[k]); k ^= 1) {
        batch_fill(a, &a->batches[k]);
        n = a->batches[k].n; /* after the handover the batch belongs to the caller */
        batch_hand_over(a, &a->batches[k], true);
    }
    return NULL;
}

struct read_ahead *read_ahead_start(struct statements *statements, enum table_id table,
    const char *tail, const void *blank, size_t size)
{
    struct read_ahead *a = mem_alloc(sizeof(*a));
    *a = (struct read_ahead){.blank = blank, .size = size};
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->changed, NULL);
    for (size_t k = 0; k < 2; k++)
        a->batches[k].rows = mem_array(BATCH_ROWS, size);
    query_init_plain(&a->query, statements, table, tail, &a->err);
    batch_fill(a, &a->batches[0]);
    a->batches[0].is_full = true;
    if (a->batches[0].n < BATCH_ROWS)
        return a; /* these are all rows: no thread needed */
    sigset_t all, old;
    sigfillset(&all); /* the loop handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&a->thread, NULL, run, a);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    assert(!failed); /* the system cannot create a thread: treated like out of memory */
    a->has_thread = true;
    return a;
}

static void wait_until_full(struct read_ahead *a, const struct batch *s)
{
    pthread_mutex_lock(&a->mutex);
    while (!s->is_full)
        pthread_cond_wait(&a->changed, &a->mutex);
    pthread_mutex_unlock(&a->mutex);
}

const void *read_ahead_next(struct read_ahead *a)
{
    struct batch *s = &a->batches[a->batch];
    if (a->next == BATCH_ROWS) {
        batch_hand_over(a, s, false);
        a->next = 0;
        a->batch ^= 1;
        s = &a->batches[a->batch];
        wait_until_full(a, s);
    }
    return a->next < s->n ? s->rows + a->next++ * a->size : NULL;
}

int read_ahead_finish(struct read_ahead *a, int rc, struct err *e)
{
    if (a->has_thread) {
        pthread_mutex_lock(&a->mutex);
        a->stop = true;
        pthread_cond_signal(&a->changed);
        pthread_mutex_unlock(&a->mutex);
        pthread_join(a->thread, NULL);
    }
    int read = query_finish(&a->query);
    if (rc == 0 && read != 0) {
        rc = read;
        if (e)
            *e = a->err;
    }
    pthread_mutex_destroy(&a->mutex);
    pthread_cond_destroy(&a->changed);
    for (size_t k = 0; k < 2; k++)
        free(a->batches[k].rows);
    free(a);
    return rc;
}
