/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks whether the name by which launched machines dial belayd leads to it: `server`, else the
 * host of `listen`, else this machine's own name. A name that resolves only to loopback here
 * (Debian's /etc/hosts has 127.0.1.1 for the host's own) leads each machine to itself, and each
 * would be paid for but never join.
 *
 * The name is resolved once, on a separate thread, when belayd starts or checks its configuration.
 * The resolver may take any time: only own_name_check waits for it, with a limit. The result is
 * valid for the lifetime of the process.
 */
#ifndef BELAY_SCHEDULER_CONFIG_OWN_NAME_H
#define BELAY_SCHEDULER_CONFIG_OWN_NAME_H

#include "scheduler/config/config.h"

struct own_name;
struct addrinfo;

/* Like getaddrinfo for this host; runs on a thread. Returns 0 or EAI_*. Free the list with
 * freeaddrinfo. */
typedef int (*own_name_resolve_fn)(const char *host, struct addrinfo **ret_list);

/* Starts the query; base is not used after the call. resolve may be NULL for the system's
 * resolver. */
struct own_name *own_name_create(const struct config *base, own_name_resolve_fn resolve);
/* The thread may outlive this call, and frees its data. n may be NULL. */
void own_name_destroy(struct own_name *n);

/* Returns 0 if machines may reach belayd, or if no pool is of a real cloud (reach.h), in which case
 * it does not wait. ERR_CONFIG: the name leads machines to themselves. Otherwise it is unknown:
 * ERR_NOT_FOUND if the name does not resolve here (it may on the machines), ERR_TIMEOUT if the
 * resolver has not answered after wait_ms. Texts name the pool, the name and what to do. Blocks for
 * at most wait_ms. */
int own_name_check(struct own_name *n, const struct config *pools, int64_t wait_ms, struct err *e);

/* Whether the host of `server`, if it is configured, resolves here. ERR_NOT_FOUND and ERR_TIMEOUT
 * as above. Blocks for at most wait_ms. */
int own_name_check_known(struct own_name *n, int64_t wait_ms, struct err *e);

/* Whether the host of another server, which belayd dials, resolves here; key is that of the
 * configuration. ERR_NOT_FOUND and ERR_TIMEOUT. Blocks for at most wait_ms. */
int own_name_check_peer(
    const char *host, own_name_resolve_fn resolve, const char *key, int64_t wait_ms, struct err *e);

#endif
