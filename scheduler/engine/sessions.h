/* SPDX-License-Identifier: Apache-2.0
 *
 * Agent sessions: turn what agents tell (struct wire_status) into facts, and what the model wants
 * of a node into struct wire_desired. No sockets here: the daemon's listener and the simulator call
 * the same functions.
 *
 * A status is answered after the commit of what it told. One status a node waits (long poll) at a
 * time; a newer one releases the older. Statuses that arrive out of order are answered but tell
 * nothing.
 */
#ifndef BELAY_SCHEDULER_ENGINE_SESSIONS_H
#define BELAY_SCHEDULER_ENGINE_SESSIONS_H

#include "base/wire/wire.h"
#include "scheduler/engine/tick.h"

/* Why an attempt ended that its agent had told and then did not tell any more. */
#define SESSIONS_VANISHED "the agent has no trace of it any more"

struct sessions;

/* Fills *ret_secrets (zeroed; the caller wipes it) with what the agent of this attempt has to know
 * now; version 0: nothing. False: they are still to be had, and *ret_why (zeroed; the same for the
 * same cause) may say why the last try failed. An attempt that its agent does not have yet then
 * waits for them, with a reason as EV_WITHHELD: sessions_touch says that they are there, or that
 * there are others or another reason. */
typedef bool (*sessions_secrets_fn)(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why);

/* The token with which this attempt speaks of itself. */
typedef void (*sessions_job_token_fn)(
    void *ctx, int64_t job, int64_t attempt, char out[WIRE_JOB_TOKEN_MAX + 1]);

/* Adds the sessions of users that this node is to have (channels, of WIRE_CHANNELS_MAX). */
typedef void (*sessions_channels_fn)(void *ctx, int64_t node, struct wire_desired *d);

/* Takes what a status tells of tasks and GPUs that the node had not told before: its numbers are
 * above these. */
typedef void (*sessions_loads_fn)(
    void *ctx, int64_t node, const struct wire_status *st, int64_t tasks_above, int64_t gpus_above);

struct sessions_options {
    struct tick *tick;
    struct timers *timers;
    /* scripts and environments are read when an attempt is first desired */
    struct db_reader *reader;
    int64_t boots; /* high part of revisions: they grow over restarts */
    int64_t lease_ms;
    int64_t sync_ms;       /* how long an agent's poll may wait; below lease_ms / 2 */
    int64_t kill_wait_ms;  /* between SIGTERM and SIGKILL */
    int64_t store_wait_ms; /* as a desired attempt has it */
    const char *cluster;   /* its name, for jobs that ask; NULL: none. Borrowed */
    /* whose the store has to be, and the jobs in it; NULL: agents do not look. Borrowed */
    const char *cluster_uid;
    /* Why it is not known whose the store is (wire.h), borrowed; NULL: it is. Until then no attempt
     * that needs it is told of: EV_WITHHELD. NULL: it is known */
    const char *(*store_fault)(void *ctx);
    void *store_ctx;
    sessions_secrets_fn secrets; /* NULL: there are none */
    void *secrets_ctx;
    sessions_job_token_fn job_token; /* NULL: attempts have none */
    void *job_token_ctx;
    sessions_channels_fn channels; /* NULL: there are none */
    void *channels_ctx;
    sessions_loads_fn loads; /* NULL: nobody wants them */
    void *loads_ctx;
};

struct sessions *sessions_create(const struct sessions_options *o);
void sessions_destroy(struct sessions *s); /* what waits is forgotten. NULL is fine */

/* Exactly one of e and d is NULL; both borrowed for the call. */
typedef void (*sessions_reply_fn)(void *ctx, const struct err *e, const struct wire_desired *d);

/* The features and resources that an agent tells, as rows have them; what cannot be read is left
 * out. */
void sessions_read_extras(const char *features, const char *resources,
    char ret_features[FEATURES_TEXT_MAX], char ret_resources[COUNTS_TEXT_MAX]);

/* ERR_NOT_FOUND: no such node (deleted, or its instance is gone): the agent has to end. */
void sessions_status(struct sessions *s, int64_t node, const struct wire_status *st,
    sessions_reply_fn reply, void *ctx);

/* For who is made later than the sessions are; before the first status. */
void sessions_set_channels(struct sessions *s, sessions_channels_fn fn, void *ctx);

/* After a commit: what is desired of this node may have changed. */
void sessions_touch(struct sessions *s, int64_t node);
/* At any moment: what is desired of all may have changed, though nothing was committed. Before the
 * tick is destroyed. */
void sessions_touch_all(struct sessions *s);

/* Answers all that wait with ERR_UNAVAILABLE, for a quick stop. */
void sessions_release_all(struct sessions *s);

#endif
