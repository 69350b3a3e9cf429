/* SPDX-License-Identifier: Apache-2.0
 *
 * The cleaner's port: closes and cleans a job's part of the store, on a thread, one job at a time.
 */
#ifndef BELAY_SCHEDULER_STORE_STORE_CLEANER_H
#define BELAY_SCHEDULER_STORE_STORE_CLEANER_H

#include "base/uv/loop.h"
#include "ckpt/master.h"
#include "scheduler/engine/cleaner.h"

struct store_cleaner;

struct store_cleaner_options {
    uv_loop_t *loop;
    struct timers *timers;
    /* for credentials of a store over a network: environment, file, or this machine's role */
    struct http_client *http;
    const char *store, *cluster;
    /* the expected owner of the store, else nothing is cleaned; NULL = any owner */
    const char *cluster_uid;
    const struct master *master; /* the keys of encrypted checkpoints; may be NULL */
};

/* The data that o points to is borrowed. The store is opened for each job anew, because a fault may
 * have been fixed. */
struct store_cleaner *store_cleaner_create(const struct store_cleaner_options *o);
struct cleaner_port *store_cleaner_port(struct store_cleaner *s);
/* Interrupts a cleaning in progress without a callback; the loop waits for its thread. Call before
 * the HTTP client is destroyed. s may be NULL. */
void store_cleaner_destroy(struct store_cleaner *s);

#endif
