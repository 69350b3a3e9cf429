/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks whether launched machines could reach belayd at all: with a `server` or a listener on
 * loopback no machine of a real cloud could, and each would still be paid for. Pure.
 */
#ifndef BELAY_SCHEDULER_CONFIG_REACH_H
#define BELAY_SCHEDULER_CONFIG_REACH_H

#include "scheduler/config/config.h"

/* Returns true for a host name or address, with or without brackets, that leads every machine to
 * itself: localhost, 127.0.0.0/8, ::1, 0.0.0.0, ::. */
bool reach_is_loopback(const char *host);

/* Returns the name of the first pool of a real cloud (as below), borrowed, or NULL. */
const char *reach_first_cloud(const struct config *pools);

/* Checks `listen` and `server` of base against the pools to be applied. A pool is of a real cloud
 * unless its endpoint is on loopback, as an emulator's, or its provider uses owned hosts.
 * ERR_CONFIG names the pool and the key. */
int reach_check(const struct config *base, const struct config *pools, struct err *e);

#endif
