/* SPDX-License-Identifier: Apache-2.0
 *
 * Agent sessions: turn the reports of agents (struct wire_status) into facts, and the model's
 * desired state of a node into struct wire_desired. No sockets here: the daemon's listener and the
 * simulator call the same functions.
 *
 * A status is answered after the commit of its facts. Each node has one waiting status (long poll)
 * at a time; a newer one releases the older. Statuses that arrive out of order are answered but not
 * evaluated.
 */
#ifndef BELAY_SCHEDULER_ENGINE_SESSIONS_H
#define BELAY_SCHEDULER_ENGINE_SESSIONS_H

#include "base/wire/wire.h"
#include "scheduler/engine/tick.h"

/* The reason of the end of an attempt that its agent had reported and then stopped reporting. */
#define SESSIONS_VANISHED "the agent has no trace of it any more"

struct sessions;

/* Fills *ret_secrets (zeroed; the caller wipes it) with the secrets that the agent of this attempt
 * needs now; version 0 = none. Returns false if they are not available yet; *ret_why (zeroed; the
 * same for the same cause) may then have the reason of the last failure. An attempt that its agent
 * does not have yet then waits for them, with the reason as EV_WITHHELD. Call sessions_touch when
 * they are available, when they change, or when the reason changes. */
typedef bool (*sessions_secrets_fn)(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why);

/* The token with which this attempt speaks of itself. */
typedef void (*sessions_job_token_fn)(
    void *ctx, int64_t job, int64_t attempt, char out[WIRE_JOB_TOKEN_MAX + 1]);

/* Adds the users' sessions that this node must have (channels, of WIRE_CHANNELS_MAX). */
typedef void (*sessions_channels_fn)(void *ctx, int64_t node, struct wire_desired *d);

/* Receives the loads of tasks and GPUs in a status that the node had not sent before: those with
 * numbers above the given ones. */
typedef void (*sessions_loads_fn)(
    void *ctx, int64_t node, const struct wire_status *st, int64_t tasks_above, int64_t gpus_above);

struct sessions_options {
    struct tick *tick;
    struct timers *timers;
    /* reads scripts and environments when an attempt is first desired */
    struct db_reader *reader;
    int64_t boots; /* the high part of revisions, so that they grow across restarts */
    int64_t lease_ms;
    int64_t sync_ms;       /* how long an agent's poll may wait; below lease_ms / 2 */
    int64_t kill_wait_ms;  /* between SIGTERM and SIGKILL */
    int64_t store_wait_ms; /* sent with each desired attempt */
    const char *cluster;   /* its name, for jobs; borrowed, may be NULL */
    /* The expected owner of the store and of the jobs in it; borrowed. NULL: agents do not
     * check. */
    const char *cluster_uid;
    /* Returns why the owner of the store is unknown (wire.h), borrowed, or NULL when it is known.
     * While unknown, attempts that need the store are withheld (EV_WITHHELD). The function itself
     * may be NULL: always known. */
    const char *(*store_fault)(void *ctx);
    void *store_ctx;
    sessions_secrets_fn secrets; /* may be NULL: none */
    void *secrets_ctx;
    sessions_job_token_fn job_token; /* NULL: attempts have none */
    void *job_token_ctx;
    sessions_channels_fn channels; /* may be NULL: none */
    void *channels_ctx;
    sessions_loads_fn loads; /* may be NULL: discarded */
    void *loads_ctx;
};

struct sessions *sessions_create(const struct sessions_options *o);
void sessions_destroy(struct sessions *s); /* drops waiting statuses; s may be NULL */

/* Exactly one of e and d is NULL; both borrowed for the call. */
typedef void (*sessions_reply_fn)(void *ctx, const struct err *e, const struct wire_desired *d);

/* Converts the features and resources that an agent reports to the form of rows; unreadable ones
 * are omitted. */
void sessions_read_constraints(const char *features, const char *resources,
    char ret_features[FEATURES_TEXT_MAX], char ret_resources[COUNTS_TEXT_MAX]);

/* Handles one status of a node. Replies ERR_NOT_FOUND if there is no such node (deleted, or its
 * instance is gone): the agent must exit. */
void sessions_status(struct sessions *s, int64_t node, const struct wire_status *st,
    sessions_reply_fn reply, void *ctx);

/* For a provider of channels that is created after the sessions; call before the first status. */
void sessions_set_channels(struct sessions *s, sessions_channels_fn fn, void *ctx);

/* After a commit: the desired state of this node may have changed. */
void sessions_touch(struct sessions *s, int64_t node);
/* At any time: the desired state of all nodes may have changed without a commit. Call before the
 * tick is destroyed. */
void sessions_touch_all(struct sessions *s);

/* Answers all waiting statuses with ERR_UNAVAILABLE, for a quick stop. */
void sessions_release_all(struct sessions *s);

#endif
