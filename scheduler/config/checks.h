/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks for configurations that no provider would accept although each value is valid. `belayd
 * --check` and `belay pools apply` refuse them; a start logs them and continues, because the other
 * pools may work.
 */
#ifndef BELAY_SCHEDULER_CONFIG_CHECKS_H
#define BELAY_SCHEDULER_CONFIG_CHECKS_H

#include "scheduler/config/config.h"

/* Checks pools at a provider's real endpoint: a zone outside of the pool's region; types of several
 * architectures with one image. ERR_CONFIG names the first. Pure. */
int config_check_pools(const struct config *pools, struct err *e);

/* Checks files that are read or run only when they are needed: passwords, secrets, credentials of
 * pools, keys of checkpoints, the program for mail. Returns the error of the first that cannot be.
 */
int config_check_files(const struct config *c, const struct config *pools, struct err *e);

/* The part of it that is about webhooks and mail. A reload that changes these refuses what fails.
 */
int config_check_notify_files(const struct config_notify *c, struct err *e);

/* Checks that the hosts that notifications are sent to resolve here; a host in a url_file is not
 * checked. Waits for the resolver for some seconds each. */
int config_check_names(const struct config *c, struct err *e);

/* Checks the places that a start creates or writes: state directory, its database and authority,
 * socket, key file, a store of this machine. Uses the effective user's permissions; creates
 * nothing. Returns the error of the first on which a start would fail. */
int config_check_paths(const struct config *c, struct err *e);

#endif
