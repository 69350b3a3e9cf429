/* SPDX-License-Identifier: Apache-2.0
 *
 * Work on jobs' parts of the checkpoint store, on a thread: one task at a time, in the order in
 * which they were put. The store is opened for each task anew, because a fault may have been fixed,
 * and checked to be this cluster's.
 *
 * The thread uses only its own struct store_task, so the queue can be destroyed meanwhile.
 */
#ifndef BELAY_SCHEDULER_STORE_STORE_TASKS_H
#define BELAY_SCHEDULER_STORE_STORE_TASKS_H

#include "base/list.h"
#include "base/timers.h"
#include "base/uv/loop.h"
#include "ckpt/ckpt.h"
#include "ckpt/master.h"
#include "ckpt/store/keys_source.h"
#include "ckpt/store/marker.h"
#include "scheduler/core/model/rows.h"

/* Borrowed until destroy. */
struct store_tasks_options {
    uv_loop_t *loop;
    struct timers *timers;
    /* for credentials of a store over a network: environment, file, or this machine's role */
    struct http_client *http;
    const char *store, *cluster;
    /* the expected owner of the store, else no task runs; NULL = any owner */
    const char *cluster_uid;
    const struct master *master; /* the keys of encrypted checkpoints; may be NULL */
    int64_t limit_ms;            /* of a task; then `cancel` is set */
};

/* A member of its owner's struct. */
struct store_task {
    int64_t job;
    int (*run)(struct store_task *t, const struct ckpt_job *j, struct err *e); /* on the thread */
    /* On the loop: e is the error of opening the store or of run, NULL without one. The owner may
     * free the task. Runs inside store_tasks_put if credentials cannot be had. */
    void (*done)(struct store_task *t, const struct err *e);
    /* Instead of done after store_tasks_destroy, when nothing uses the task any more: frees it, and
     * uses nothing else. */
    void (*dropped)(struct store_task *t);
    atomic_int cancel; /* for run */
    /* its own: */
    struct store_tasks *in; /* NULL after it was destroyed */
    struct link in_queue;
    char url[1024], cluster[CORE_NAME_MAX], uid[MARKER_UID_MAX];
    struct store_net *net; /* NULL for a store of this machine */
    struct ckpt_crypt crypt;
    int rc;
    struct err e;
};

struct store_tasks;

struct store_tasks *store_tasks_create(const struct store_tasks_options *o);
/* Takes t, which has job, run, done and dropped, and zeros otherwise. */
void store_tasks_put(struct store_tasks *s, struct store_task *t);
/* Drops the waiting tasks and interrupts the running one; the loop waits for its thread. Call
 * before the HTTP client is destroyed. s may be NULL. */
void store_tasks_destroy(struct store_tasks *s);

#endif
