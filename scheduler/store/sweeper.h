/* SPDX-License-Identifier: Apache-2.0
 *
 * The cleaner's hands: closes and cleans a job's part of the store, on a thread, one job at a time.
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
    /* whose the store has to be, or nothing is cleaned there; NULL: anybody's */
    const char *cluster_uid;
    const struct master *master; /* the keys of encrypted checkpoints; NULL: none */
};

/* What o points to is borrowed. The store is opened for each job anew: what is wrong with it may
 * have been mended. */
struct sweeper *sweeper_create(const struct sweeper_options *o);
struct cleaner_port *sweeper_port(struct sweeper *s);
/* A cleaning under way is interrupted and tells nobody; the loop waits for its thread. Before the
 * HTTP client goes. NULL is fine */
void sweeper_destroy(struct sweeper *s);

#endif
