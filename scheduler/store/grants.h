/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials for the store, one for each running attempt that saves: they reach only that job's
 * part of the store (cloud/scoped.h says how exactly) and are short-lived. They are created when an
 * agent first needs them, and again long before they expire; the agent then gets the next ones
 * with its next sync. In memory only.
 *
 * A failure ends no running attempt: the agent's credentials remain valid until they expire.
 * Creation is retried with growing pauses as long as the attempt is alive, reported once in the
 * job's history and counted each time. An attempt that has not begun waits for its first
 * credentials, up to a limit (core/lifecycle/withheld.c). When the attempt has ended, or its node
 * is lost, none are created any more.
 */
#ifndef BELAY_SCHEDULER_STORE_GRANTS_H
#define BELAY_SCHEDULER_STORE_GRANTS_H

#include "base/http.h"
#include "base/prng.h"
#include "base/wire/wire.h"
#include "scheduler/config/job_credentials.h"
#include "scheduler/engine/tick.h"

/* Borrowed until destroy. */
struct grants_options {
    struct job_credentials credentials; /* life_ms 0 = GRANTS_LIFE_MS */
    const char *cluster;
    struct tick *tick;
    struct timers *timers;
    struct prng *prng;
    struct http_client *http;
    /* The desired state of this node has changed; called where agent_sync_touch may be called. */
    void (*changed)(void *ctx, int64_t node);
    void *ctx;
};

#define GRANTS_LIFE_MS SECONDS_MS(3600)

struct grants;

/* ERR_CONFIG, ERR_INVALID. */
int grants_create(const struct grants_options *o, struct grants **ret_grants, struct err *e);
void grants_destroy(struct grants *g); /* call before the HTTP client is destroyed; g may be NULL */

/* Adds the credentials for the agent of this attempt, which the model has. Returns false if they
 * are not available yet; *ret_why then has the reason if a creation has failed (agent_sync.h).
 * Other contents of s stay; its version changes with each new credential. */
bool grants_give(
    struct grants *g, int64_t job, int64_t attempt, struct wire_secrets *s, struct err *ret_why);

/* After a commit: these attempts may have ended. */
void grants_committed(struct grants *g, const struct db_batch *committed);

struct grants_stats {
    int64_t made, failures; /* since the start */
    int64_t valid;          /* attempts with valid credentials */
    int64_t soonest_end_ms; /* time until the first of these expires; 0 = none */
};
void grants_get_stats(const struct grants *g, struct grants_stats *ret_stats);

#endif
