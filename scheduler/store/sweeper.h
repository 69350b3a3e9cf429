/* SPDX-License-Identifier: Apache-2.0
 *
 * The cleaner's port: closes and cleans a job's part of the store, on a thread, one job at a time.
 */
#ifndef BELAY_SCHEDULER_STORE_SWEEPER_H
#define BELAY_SCHEDULER_STORE_SWEEPER_H

#include "base/uv/loop.h"
#include "ckpt/master.h"
#include "scheduler/engine/cleaner.h"

struct sweeper;

struct sweeper_options {
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
struct sweeper *sweeper_create(const struct sweeper_options *o);
struct cleaner_port *sweeper_port(struct sweeper *s);
/* Interrupts a cleaning in progress without a callback; the loop waits for its thread. Call before
 * the HTTP client is destroyed. s may be NULL. */
void sweeper_destroy(struct sweeper *s);

#endif
