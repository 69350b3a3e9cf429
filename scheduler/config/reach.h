/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether machines that are launched could reach belayd at all: with a `server` or a listener on
 * loopback none of a real cloud's could, and each would be paid for all the same. Pure.
 */
#ifndef BELAY_SCHEDULER_CONFIG_REACH_H
#define BELAY_SCHEDULER_CONFIG_REACH_H

#include "scheduler/config/config.h"

/* A host name or address, with or without brackets, that leads every machine to itself: localhost,
 * 127.0.0.0/8, ::1, 0.0.0.0, ::. */
bool reach_is_loopback(const char *host);

/* The name of the first pool of a real cloud, as below; NULL: there is none. Borrowed. */
const char *reach_first_cloud(const struct config *pools);

/* base: `listen` and `server`; pools: those to be in force. A pool is of a real cloud unless its
 * endpoint is on loopback, as an emulator's is, or its provider has hosts of one's own. ERR_CONFIG
 * names the pool and the key. */
int reach_check(const struct config *base, const struct config *pools, struct err *e);

#endif
