/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at all stored output: removes that of deleted and old jobs, and moves that of jobs that
 * ended some time ago to the store (archive.h). If more than a limit is then on the disk, that of
 * the jobs that ended first goes to the store too; beyond the limit of the store, it is removed.
 * Output of live jobs counts and stays. Blocks: for a thread. What an error or a kill
 * interrupts is found again by the next look.
 */
#ifndef BELAY_SCHEDULER_LOGS_OLD_OUTPUT_H
#define BELAY_SCHEDULER_LOGS_OLD_OUTPUT_H

#include "base/time.h"
#include "ckpt/master.h"
#include "db/db.h"
#include "scheduler/logs/archive.h"

/* Output that was brought back from the store stays this long. */
#define OLD_OUTPUT_STAYS_MS 86400000LL

struct output_use {
    int64_t disk_bytes, disk_jobs; /* on the disk, of live jobs too */
    int64_t store_bytes, store_jobs;
    int64_t live_bytes; /* of disk_bytes: of jobs that have not ended */
    /* the next that goes beyond the limit of the disk, and of the store; 0 = none */
    int64_t next_on_disk, next_in_store;
};

struct known_output;

/* Borrowed. */
struct old_output {
    struct db_reader *reader;
    const char *dir; /* DIR/<job / 1000>/<job>/ */
    struct wall now;
    int64_t keep_ms;     /* since the job's end, then it is removed; 0 = until it is deleted */
    int64_t disk_ms;     /* likewise, then it is moved to the store; 0 = never */
    struct store *store; /* NULL: nothing is moved, and what is there stays */
    const char *cluster;
    const struct master *master; /* may be NULL */
    bool encrypts;
    const atomic_int *cancel;
    int64_t disk_bytes, store_bytes; /* limits; 0 = unlimited */
    int64_t removed, moved;          /* jobs */
    struct output_use use;           /* after a whole look */
    struct known_output *known;      /* of the look in progress */
    size_t n_known;
};

int old_output_look(struct old_output *o, struct err *e);

/* The job's keys for archive.h. Wipe *ret_crypt after use. */
void old_output_crypt(
    const struct master *master, bool encrypts, int64_t job, struct ckpt_crypt *ret_crypt);

#endif
