/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines the store's owner when belayd starts: it reads the store's marker
 * (ckpt/store/marker.h), and writes it if the store is new. Marked stores are recorded in
 * STATE/store.places, a line for each place, so that a store that was marked once is never mistaken
 * for a new one.
 *
 *   marker              checkpoints   place known   then
 *   ours                any           any           it is ours
 *   ours, later epoch   any           any           refused: this state is from before a restore
 *   another cluster's   any           any           refused
 *   given up (adopted)  any           any           ours; jobs get numbers above all there
 *   none                any           yes           missing (not mounted, emptied): checked again
 *   none                none          no            it becomes ours
 *   none                some          no            ours if our jobs made them before there were
 *                                                   markers, else refused
 *
 * A store that does not answer at the start is tried again, with growing pauses; meanwhile attempts
 * that need it are withheld. Once it is ours the marker is read again from time to time: a belayd
 * whose cluster was restored from a backup elsewhere, or whose store was adopted, learns of it
 * (`lost`).
 */
#ifndef BELAY_SCHEDULER_STORE_CLAIM_H
#define BELAY_SCHEDULER_STORE_CLAIM_H

#include "base/prng.h"
#include "base/http.h"
#include "base/timers.h"
#include "base/uv/loop.h"

struct http_client;
struct store_claim;

struct store_claim_options {
    uv_loop_t *loop;
    struct timers *timers;
    struct http_client *http;
    struct prng *prng;
    /* borrowed, like all members. uid "" = none yet (reads_only) */
    const char *state_dir, *store, *cluster, *cluster_uid;
    bool had_checkpoints; /* according to the database */
    /* for `belayd --check`: neither marker nor place is written, and any reason why the store
     * cannot be used is an error */
    bool reads_only;
    int64_t next_job, epoch;
    /* Called while store_claim_begin runs: no lower number may be issued any more. */
    int (*raise)(void *ctx, int64_t next_job, struct err *e);
    void (*changed)(void *ctx); /* called later, when the store has become ours */
    /* Called once, later: the store has another owner now, or a later epoch of this one. text says
     * which, and is borrowed. */
    void (*lost)(void *ctx, const char *text);
    void *ctx;
};

/* Runs the loop until the owner is known, for at most some seconds; other handles on the loop must
 * tolerate this. ERR_CONFIG if the owner is another cluster or unknown; the text says what to do.
 * Returns 0 if the store is ours, or will be tried again later. */
int store_claim_begin(
    const struct store_claim_options *o, struct store_claim **ret_claim, struct err *e);
bool store_claim_is_ours(const struct store_claim *c);
/* The reason why the store is not ours, for people; "" if it is. */
const char *store_claim_text(const struct store_claim *c);
/* Drops a check in progress without a callback. c may be NULL. */
void store_claim_destroy(struct store_claim *c);

#endif
