/* SPDX-License-Identifier: Apache-2.0
 *
 * Sync with agents (POST /agent/v1/sync): turns their reports (struct wire_status) into facts, and
 * the model's desired state of a node into struct wire_desired. No sockets here: the daemon's
 * listener and the simulator call the same functions.
 *
 * A status is answered after the commit of its facts. Each node has one waiting status (long poll)
 * at a time; a newer one releases the older. Statuses that arrive out of order are answered but not
 * evaluated.
 */
#ifndef BELAY_SCHEDULER_ENGINE_AGENT_SYNC_H
#define BELAY_SCHEDULER_ENGINE_AGENT_SYNC_H

#include "base/json.h"
#include "base/wire/wire.h"
#include "scheduler/engine/tick.h"

/* The reason of the end of an attempt that its agent had reported and then stopped reporting. */
#define AGENT_SYNC_VANISHED "the agent has no trace of it any more"

struct agent_sync;

/* Fills *ret_secrets (zeroed; the caller wipes it) with the secrets that the agent of this attempt
 * needs now; version 0 = none. ERR_INVALID in *ret_why: it will never get them, and ends as failed.
 * Else returns false if they are not available yet; *ret_why (zeroed; the
 * same for the same cause) may then have the reason of the last failure. An attempt that its agent
 * does not have yet then waits for them, with the reason as EV_WITHHELD. Call agent_sync_touch when
 * they are available, when they change, or when the reason changes. */
typedef bool (*agent_sync_secrets_fn)(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why);

/* The environment of a job of this user, from its stored form; the caller wipes it (json_wipe). */
typedef int (*agent_sync_env_fn)(
    void *ctx, const char *user, const char *stored, json_t **ret_env, struct err *e);

/* The account on the nodes of this pool as which the user's jobs run. Borrowed until the next call,
 * or from user. */
typedef const char *(*agent_sync_run_as_fn)(void *ctx, const char *pool, const char *user);

/* The token with which this attempt speaks of itself. */
typedef void (*agent_sync_job_token_fn)(
    void *ctx, int64_t job, int64_t attempt, char out[WIRE_JOB_TOKEN_MAX + 1]);

/* Adds the users' sessions that this node must have (channels, of WIRE_CHANNELS_MAX). */
typedef void (*agent_sync_channels_fn)(void *ctx, int64_t node, struct wire_desired *d);

/* Receives the loads of tasks and GPUs in a status that the node had not sent before: those with
 * numbers above the given ones. */
typedef void (*agent_sync_loads_fn)(
    void *ctx, int64_t node, const struct wire_status *st, int64_t tasks_above, int64_t gpus_above);

struct agent_sync_options {
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
    agent_sync_secrets_fn secrets; /* may be NULL: none */
    void *secrets_ctx;
    agent_sync_env_fn env; /* NULL: environments are stored in clear */
    void *env_ctx;
    agent_sync_run_as_fn run_as; /* NULL: that of the same name */
    void *run_as_ctx;
    agent_sync_job_token_fn job_token; /* NULL: attempts have none */
    void *job_token_ctx;
    agent_sync_channels_fn channels; /* may be NULL: none */
    void *channels_ctx;
    agent_sync_loads_fn loads; /* may be NULL: discarded */
    void *loads_ctx;
};

struct agent_sync *agent_sync_create(const struct agent_sync_options *o);
/* Other times, from the next answer to an agent on. */
void agent_sync_set_times(struct agent_sync *s, int64_t lease_ms, int64_t sync_ms,
    int64_t kill_wait_ms, int64_t store_wait_ms);
void agent_sync_destroy(struct agent_sync *s); /* drops waiting statuses; s may be NULL */

/* Exactly one of e and d is NULL; both borrowed for the call. */
typedef void (*agent_sync_reply_fn)(void *ctx, const struct err *e, const struct wire_desired *d);

/* Converts the features and resources that an agent reports to the form of rows; unreadable ones
 * are omitted. */
void agent_sync_read_constraints(const char *features, const char *resources,
    char ret_features[FEATURES_TEXT_MAX], char ret_resources[COUNTS_TEXT_MAX]);

/* Handles one status of a node. Replies ERR_NOT_FOUND if there is no such node (deleted, or its
 * instance is gone): the agent must exit. */
void agent_sync_status(struct agent_sync *s, int64_t node, const struct wire_status *st,
    agent_sync_reply_fn reply, void *ctx);

/* For a provider of channels that is created afterwards; call before the first status. */
void agent_sync_set_channels(struct agent_sync *s, agent_sync_channels_fn fn, void *ctx);

/* After a commit: the desired state of this node may have changed. */
void agent_sync_touch(struct agent_sync *s, int64_t node);
/* At any time: the desired state of all nodes may have changed without a commit. Call before the
 * tick is destroyed. */
void agent_sync_touch_all(struct agent_sync *s);

/* Answers all waiting statuses with ERR_UNAVAILABLE, for a quick stop. */
void agent_sync_release_all(struct agent_sync *s);

#endif
