/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd put together: database, model, tick, sessions, provisioning, API and listeners on one
 * libuv loop.
 */
#ifndef BELAY_SCHEDULER_DAEMON_H
#define BELAY_SCHEDULER_DAEMON_H

#include "scheduler/config/config.h"
#include <uv.h>

struct daemon;

/* Recovers from the state directory, listens, starts provisioning. config is borrowed for the
 * daemon's life. When it returns 0, STATE/belayd.json tells pid, url, socket and CA, and requests
 * are answered. */
int daemon_start(
    uv_loop_t *loop, const struct config *config, struct daemon **ret_daemon, struct err *e);

/* What a start with this configuration would say, without one: all that daemon_start does up to the
 * listeners, in a directory of its own that goes with it, and what a start would find out only
 * later. Changes nothing, and is done beside a belayd that runs. Of its state the pools that were
 * applied and the cluster's uid are read; of the store, its marker. */
int daemon_check(uv_loop_t *loop, const struct config *config, struct err *e);

/* Stops listening, lets the commit under way finish, closes everything; done(ctx) runs when the
 * loop may end. Jobs and nodes go on without us. */
void daemon_stop(struct daemon *d, void (*done)(void *ctx), void *ctx);
void daemon_destroy(struct daemon *d);

#endif
