/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose the store is, found out as belayd starts: it reads the store's marker (ckpt/store/owner.h),
 * and writes it where the store is new. What it has found goes into STATE/store.places, a line
 * for each place, so that a store which was marked once is never taken for a new one.
 *
 *   marker              checkpoints   place known   then
 *   ours                any           any           it is ours
 *   another cluster's   any           any           refused
 *   given up (adopted)  any           any           ours; jobs get numbers above all there
 *   none                any           yes           missing (not mounted, emptied): looked at again
 *   none                none          no            it is made ours
 *   none                some          no            ours if our jobs made them before there were
 *                                                   markers, else refused
 *
 * A store that does not answer at the start is asked again, with growing pauses; meanwhile
 * attempts that need it are not begun.
 */
#ifndef BELAY_SCHEDULER_STORE_CLAIM_H
#define BELAY_SCHEDULER_STORE_CLAIM_H

#include "base/prng.h"
#include "base/uv/loop.h"

struct http_client;
struct store_claim;

struct store_claim_options {
    uv_loop_t *loop;
    struct timers *timers;
    struct http_client *http;
    struct prng *prng;
    /* borrowed, as all here. uid "": it has none yet (reads_only) */
    const char *state_dir, *store, *cluster, *cluster_uid;
    bool had_checkpoints; /* by what the database says */
    bool reads_only;      /* for `belayd --check`: neither marker nor place is written */
    int64_t next_job;
    /* While store_claim_begin runs: no number below that is given out any more. */
    int (*raise)(void *ctx, int64_t next_job, struct err *e);
    void (*changed)(void *ctx); /* later: it is ours now */
    void *ctx;
};

/* Runs the loop until it is known whose the store is, at most some seconds; nothing else may be
 * on it that minds. ERR_CONFIG: it is another's, or nobody knows whose; the text says what to
 * do. 0: it is ours, or it is asked again later. */
int store_claim_begin(
    const struct store_claim_options *o, struct store_claim **ret_claim, struct err *e);
bool store_claim_is_ours(const struct store_claim *c);
/* Why it is not, for people; "" if it is. */
const char *store_claim_text(const struct store_claim *c);
/* A look that is under way tells nobody. NULL is fine. */
void store_claim_destroy(struct store_claim *c);

#endif
