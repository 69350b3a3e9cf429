/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials for the store that are handed out, one for each attempt that runs and saves: they
 * reach that job's part of the store and nothing else (cloud/scoped.h says how far that goes), and
 * end soon. They are made when an agent is first to have them, and again long before they end; the
 * agent then gets the next ones by its session. In memory only.
 *
 * A failure ends nothing that runs: what the agent has holds until its end. It is tried again with
 * growing pauses for as long as the attempt lives, told once in the job's history and counted each
 * time. An attempt that has not begun waits for its first, as long as it may
 * (core/lifecycle/withheld.c). When the attempt has ended, or was given up, none are made any more.
 */
#ifndef BELAY_SCHEDULER_STORE_GRANTS_H
#define BELAY_SCHEDULER_STORE_GRANTS_H

#include "base/http.h"
#include "base/prng.h"
#include "base/wire/wire.h"
#include "scheduler/engine/tick.h"

/* Borrowed until destroy. */
struct grants_options {
    const char *store, *cluster;
    /* NULL: none; kms_key: that of the store's URL, if it is an ARN */
    const char *role_arn, *kms_key, *sts_url;
    int64_t life_ms; /* 0: the usual */
    struct tick *tick;
    struct timers *timers;
    struct prng *prng;
    struct http_client *http;
    /* What is to be told to this node has changed; called where sessions_touch may be. */
    void (*changed)(void *ctx, int64_t node);
    void *ctx;
};

#define GRANTS_LIFE_MS SECONDS_MS(3600)

/* Whether store can have credentials of jobs, and these settings with them; of o nothing else is
 * looked at. ERR_INVALID. */
int grants_check(const struct grants_options *o, struct err *e);

struct grants;

/* ERR_CONFIG, ERR_INVALID. */
int grants_create(const struct grants_options *o, struct grants **ret_grants, struct err *e);
void grants_destroy(struct grants *g); /* before the HTTP client; NULL is fine */

/* Adds what the agent of this attempt, which the model has, is to hold. False: it is still to be
 * had, and *ret_why, if that was tried, is why there is none (sessions.h). What is in s already
 * stays; its version becomes another with each new credential. */
bool grants_give(
    struct grants *g, int64_t job, int64_t attempt, struct wire_secrets *s, struct err *ret_why);

/* After a commit: these attempts may have ended. */
void grants_committed(struct grants *g, const struct db_batch *committed);

struct grants_stats {
    int64_t made, failures; /* since the start */
    int64_t held;           /* attempts that have some which have not ended */
    int64_t soonest_end_ms; /* until the first of these ends; 0: there are none */
};
void grants_get_stats(const struct grants *g, struct grants_stats *ret_stats);

#endif
