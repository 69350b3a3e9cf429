/* SPDX-License-Identifier: Apache-2.0
 *
 * What users ask belayd to do with stored checkpoints: list, pin, unpin, verify. belayd reads the
 * store by the job's number only, never a path of a user, with the keys of its own key file, and
 * only after the job's identity was found there: a number that was given twice shows nothing of the
 * other job.
 *
 * Listing and pinning take turns, and wait for no verification. Verifications run one at a time,
 * and each is limited in size and time. At most CKPT_DESK_PER_USER of each kind wait for a user.
 * Results of verifications are in memory only, until belayd ends: the newest
 * CKPT_DESK_KEPT_PER_USER of a user, and of all users the newest CKPT_DESK_KEPT.
 */
#ifndef BELAY_SCHEDULER_STORE_CKPT_DESK_H
#define BELAY_SCHEDULER_STORE_CKPT_DESK_H

#include "scheduler/store/store_tasks.h"

#define CKPT_DESK_LISTED 1000 /* checkpoints of a listing, the newest */
#define CKPT_DESK_WAITING 64  /* tasks of a kind that wait or run, of all users */
#define CKPT_DESK_PER_USER 4
#define CKPT_DESK_KEPT 256 /* results of verifications */
#define CKPT_DESK_KEPT_PER_USER 32
#define CKPT_DESK_VERIFY_MS SECONDS_MS(3600)
#define CKPT_DESK_VERIFY_BYTES (INT64_C(256) << 30)

struct ckpt_desk;

/* Whose checkpoint: the job, its identity in the store (core_ckpt_identity), the user who asks. */
struct ckpt_desk_of {
    int64_t job;
    const char *identity, *user;
    struct ckpt_id id;
};

/* v and n: of a listing, else NULL and 0. e is NULL after success. Runs exactly once, on the loop,
 * unless the desk is destroyed before. */
typedef void (*ckpt_desk_fn)(void *ctx, const struct ckpt_stored *v, size_t n, const struct err *e);

struct ckpt_desk *ckpt_desk_create(const struct store_tasks_options *o);
void ckpt_desk_destroy(struct ckpt_desk *d); /* d may be NULL; before the HTTP client */

/* ERR_THROTTLED: too many wait. fn may run inside the call. */
void ckpt_desk_list(struct ckpt_desk *d, const struct ckpt_desk_of *of, ckpt_desk_fn fn, void *ctx);
void ckpt_desk_pin(
    struct ckpt_desk *d, const struct ckpt_desk_of *of, bool pinned, ckpt_desk_fn fn, void *ctx);

enum verification_state {
    VERIFICATION_WAITING,
    VERIFICATION_RUNNING, /* or its credentials are being obtained */
    VERIFICATION_INTACT,
    VERIFICATION_DAMAGED,
    VERIFICATION_FAILED /* it could not be read to its end: nothing is known */
};
extern const char *const verification_state_names[];

struct verification_info {
    struct ckpt_id id;
    enum verification_state state;
    const char *by, *text;           /* text: why it is damaged or failed, else "" */
    int64_t total_bytes, done_bytes; /* total -1 = not known yet */
    struct wall asked_at, ended_at;
};

/* Begins to verify a checkpoint, or does nothing if that waits or runs already. ERR_THROTTLED. */
int ckpt_desk_verify(struct ckpt_desk *d, const struct ckpt_desk_of *of, struct err *e);
/* The job's verifications, the newest first. */
typedef void (*verification_fn)(void *ctx, const struct verification_info *v);
void ckpt_desk_each(const struct ckpt_desk *d, int64_t job, verification_fn fn, void *ctx);

#endif
