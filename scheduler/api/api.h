/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP API (docs/reference/api.md). Reads are answered from the read-only connection, so they
 * show only committed data. Writes are posted to the tick and answered after its commit.
 */
#ifndef BELAY_SCHEDULER_API_API_H
#define BELAY_SCHEDULER_API_API_H

#include "base/uv/http_server.h"
#include "base/uv/loop.h"
#include "scheduler/bundle.h"
#include "scheduler/ca.h"
#include "scheduler/config/config.h"
#include "scheduler/engine/agent_sync.h"
#include "scheduler/logs/logs.h"
#include "scheduler/oidc/oidc.h"
#include "scheduler/pools.h"
#include "scheduler/secrets/seal.h"
#include "scheduler/engine/provision.h"
#include "scheduler/store/ckpt_desk.h"
#include "scheduler/store/grants.h"
#include "scheduler/engine/tick.h"

/* Dependencies of the API; all borrowed. */
struct reload;

struct api_options {
    struct tick *tick;
    struct agent_sync *agent_sync;
    struct provision *provision;
    const struct grants *grants; /* may be NULL: none */
    struct ckpt_desk *ckpt_desk; /* may be NULL: calls for stored checkpoints are refused */
    struct pools *pools;
    struct db_reader *reader;
    uv_loop_t *loop;
    const char *db_path; /* for long reads, which use a connection on a thread; copied */
    struct zones *zones; /* the model's */
    struct logs *logs;
    struct archiver *archiver; /* may be NULL */
    const struct retention *retention;
    const struct observed *observed;
    struct workdirs *workdirs;
    struct ca *ca;
    const struct bundles *bundles;
    const struct config *config;
    const struct db_meta *meta;
    const struct sealer *sealer;
    struct oidc *oidc; /* NULL: nobody signs in */
    struct notifier *notifier;
    struct timers *timers;
    uid_t owner_uid; /* the user who runs belayd: an administrator on the UNIX socket, like root */
    int browser_connections; /* at the listener for browsers of this machine */
};

#define API_BODY_MAX (9u << 20) /* a wire message, with some to spare */
/* without a certificate, token or UNIX socket: enough for a join */
#define API_UNAUTHENTICATED_BODY_MAX (64u << 10)

struct api;

struct api *api_create(const struct api_options *o);
void api_destroy(struct api *a); /* a may be NULL */

/* Sets the URL at which agents and HTTPS clients reach belayd, once the listener knows its port.
 * Copied. */
void api_set_server_url(struct api *a, const char *url);

/* The request handler of both listeners, and the function that determines whose limits a connection
 * counts for (http_identify_fn). */
void api_handle(void *ctx, struct http_exchange *x, const struct http_server_request *r);
void api_identify(void *ctx, struct http_exchange *x, const struct http_server_request *r,
    struct http_identity *ret);

/* The configuration can be read again; borrowed. */
void api_set_reload(struct api *a, struct reload *r);
/* Users sign in at another provider, or at none (NULL). A sign-in that is in progress at the former
 * one ends with an error. */
void api_set_oidc(struct api *a, struct oidc *o);
/* Takes values of the configuration that were changed. */
void api_reconfigure(struct api *a);
/* Adds a listener's figures to /metrics; borrowed until it has stopped, after which no request
 * arrives. */
void api_add_listener(struct api *a, const struct http_server *s);

/* After a commit: answers long polls that have new data. */
void api_committed(struct api *a, const struct db_batch *committed);
/* Output of this job has grown, or will not grow although it was expected to. */
void api_output_grew(struct api *a, int64_t job);
/* Closes the listener for browsers of this machine; a may be NULL. */
void api_close_loopback(struct api *a);
/* Begins the shutdown: /healthz reports it, long polls are answered. */
void api_shut_down(struct api *a);

#endif
