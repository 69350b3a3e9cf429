/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembles belayd: database, model, tick, agent sync, provisioning, API and listeners on one libuv
 * loop.
 */
#ifndef BELAY_SCHEDULER_DAEMON_H
#define BELAY_SCHEDULER_DAEMON_H

#include "scheduler/config/config.h"
#include "scheduler/open_files.h"
#include "scheduler/reload.h"
#include <uv.h>

struct daemon;

/* Recovers from the state directory, listens, starts provisioning. config and file are borrowed for
 * the daemon's lifetime, and config is changed when the file is read again; files is copied. When
 * it returns 0, STATE/belayd.json has pid, url, socket and CA, and requests are answered. */
int daemon_start(uv_loop_t *loop, struct config *config, const struct config_file *file,
    const struct open_files *files, struct daemon **ret_daemon, struct err *e);

/* Reads the configuration again (reload.h); done(ctx) runs once, when it is in force or refused. */
void daemon_reload(struct daemon *d, void (*done)(void *ctx), void *ctx);

/* Reports what a start with this configuration would report, without starting: it does everything
 * that daemon_start does before the listeners, in a temporary directory, and the checks whose
 * failures a start would discover only later. Changes nothing, and may run next to a running
 * belayd. Of its state it reads the applied pools and the cluster's uid; of the store, the
 * marker. */
int daemon_check(
    uv_loop_t *loop, const struct config *config, const struct open_files *files, struct err *e);

/* Stops listening, lets the commit in progress finish, closes everything; calls done(ctx) when the
 * loop may end. Jobs and nodes continue. */
void daemon_stop(struct daemon *d, void (*done)(void *ctx), void *ctx);
void daemon_destroy(struct daemon *d);

#endif
