/* SPDX-License-Identifier: Apache-2.0
 *
 * Has old output removed and moved to the store (old_output.h) every hour, and brings output back
 * that somebody wants to read (archive.h), on a thread.
 *
 * One thing at a time, so that the output of a job is never moved and brought back at once. Who
 * reads goes first: a look in progress is interrupted, and done again afterwards.
 */
#ifndef BELAY_SCHEDULER_LOGS_ARCHIVER_H
#define BELAY_SCHEDULER_LOGS_ARCHIVER_H

#include "base/timers.h"
#include "ckpt/master.h"
#include "scheduler/logs/old_output.h"
#include <stdbool.h>
#include <uv.h>

#define ARCHIVER_EVERY_MS 3600000 /* between two looks for old output */
#define ARCHIVER_FETCHES_MAX 100  /* that wait */

struct archiver;
struct http_client;

/* The data that o points to is borrowed. The store is opened for each task anew, because a fault
 * may have been fixed. */
struct archiver_options {
    uv_loop_t *loop;
    struct timers *timers;
    struct http_client *http; /* for credentials of a store over a network */
    const char *store, *cluster, *cluster_uid;
    const struct master *master; /* the keys of encrypted checkpoints; may be NULL */
    bool encrypts;
    const char *db_path, *logs_dir;
    int64_t keep_ms, disk_ms; /* of struct old_output, like the next two */
    int64_t disk_bytes, store_bytes;
};

struct archiver *archiver_create(const struct archiver_options *o);
/* Other ages and sizes; a look follows soon. */
void archiver_set_limits(
    struct archiver *a, int64_t keep_ms, int64_t disk_ms, int64_t disk_bytes, int64_t store_bytes);
/* What the last whole look has found. False: there was none yet. */
bool archiver_use(const struct archiver *a, struct output_use *ret_use);
/* Begins to look for old output. */
void archiver_start(struct archiver *a);
/* Whether the output of this job is in the store. */
bool archiver_has(const struct archiver *a, int64_t job);
/* Whether more may wait. */
bool archiver_may_fetch(const struct archiver *a);
/* Brings it back. done runs exactly once, later, with NULL if it is here now; at the latest in
 * destroy, with ERR_UNAVAILABLE. Only while archiver_may_fetch. */
typedef void (*archiver_done_fn)(void *ctx, const struct err *e);
void archiver_fetch(struct archiver *a, int64_t job, archiver_done_fn done, void *ctx);
/* Interrupts what is in progress; the loop waits for its thread. Call before the HTTP client is
 * destroyed. a may be NULL. */
void archiver_destroy(struct archiver *a);

#endif
