/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads for work that uses a store of checkpoints. Such work may never return: a call to a
 * directory on a mount whose server is away does not. So each piece of work has a thread of its own
 * and takes none of libuv's pool, which starts and removes the tasks of the node.
 *
 *   waiting --- a slot is free ----> counted <--- store_threads_note ---> silent
 *                                      |                                    |
 *                                      +------------> done <----------------+
 *
 * At most a few pieces are counted, which bounds the memory and the bandwidth of saves; the others
 * wait in order, except that a user who has half of the slots lets those of others go first. A
 * piece whose store is silent takes no slot: however many such pieces there are, work with a store
 * that answers begins.
 */
#ifndef BELAY_AGENT_TASK_STORE_THREADS_H
#define BELAY_AGENT_TASK_STORE_THREADS_H

#include "base/list.h"
#include "base/uv/loop.h"
#include <pthread.h>

struct store_threads;

/* A piece of work: the caller's memory, from store_threads_run until done runs. */
struct store_work {
    uv_work_fn work, done;
    void *ctx;
    const char *user; /* whose work it is; borrowed */
    /* private */
    struct store_threads *threads;
    struct link link, in_counted; /* link: in waiting or ended */
    pthread_t thread;
    bool has_begun;
};

struct store_threads *store_threads_create(uv_loop_t *loop);
/* No work may be under way. NULL is allowed. */
void store_threads_destroy(struct store_threads *s);

/* As uv_run_work: w->work on a thread, then w->done on the loop, once each and never inside. */
void store_threads_run(struct store_threads *s, struct store_work *w);

/* The store that w uses does not answer, or answers again. No-op while w waits and after its
 * end. */
void store_threads_note(struct store_threads *s, struct store_work *w, bool is_silent);

#endif
