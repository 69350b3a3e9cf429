/* SPDX-License-Identifier: Apache-2.0
 *
 * What a configuration says that no provider would carry out, though each value by itself is fine.
 * `belayd --check` and `belay pools apply` refuse it; a start logs it and goes on, for what else
 * there is may work.
 */
#ifndef BELAY_SCHEDULER_CONFIG_DOUBTS_H
#define BELAY_SCHEDULER_CONFIG_DOUBTS_H

#include "scheduler/config/config.h"

/* Of pools at a provider's real endpoint: a zone that is not in the pool's region; types of several
 * architectures, for which there is one image. ERR_CONFIG names the first. Pure. */
int doubts_of_pools(const struct config *pools, struct err *e);

/* Files that are read only when they are needed: passwords, secrets, credentials of pools, keys of
 * checkpoints. ERR_* of the first that cannot be read. */
int doubts_of_files(const struct config *c, const struct config *pools, struct err *e);

/* The places that a start makes or writes: state directory, database and authority in it, socket,
 * key file, a store of this machine. By what the effective user may do; nothing is made. ERR_* of
 * the first that a start would fail on. */
int doubts_of_places(const struct config *c, struct err *e);

#endif
