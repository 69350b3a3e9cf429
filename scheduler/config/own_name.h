/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the name by which launched machines dial belayd leads them to it: `server`, else the host
 * of `listen`, else this machine's own name. A name that is known here as loopback alone (Debian's
 * /etc/hosts has 127.0.1.1 for the host's) leads each machine to itself, and each would be paid for
 * all the same.
 *
 * The name is looked up once, on a thread of its own, as belayd starts or checks its configuration.
 * A resolver may take as long as it likes: nobody waits for it but own_name_check, and that not for
 * longer than it is told to. What was found counts as long as the process lives.
 */
#ifndef BELAY_SCHEDULER_CONFIG_OWN_NAME_H
#define BELAY_SCHEDULER_CONFIG_OWN_NAME_H

#include "scheduler/config/config.h"

struct own_name;
struct addrinfo;

/* As getaddrinfo for this host, on a thread; 0, or EAI_*. The list is freed with freeaddrinfo. */
typedef int (*own_name_resolve_fn)(const char *host, struct addrinfo **ret_list);

/* Begins to look; what base holds is not needed afterwards. resolve NULL: the system's resolver. */
struct own_name *own_name_create(const struct config *base, own_name_resolve_fn resolve);
/* The thread may go on for a while, and leaves nothing. NULL is fine. */
void own_name_destroy(struct own_name *n);

/* 0: machines may be led to belayd, or no pool of these is of a real cloud (reach.h), and then it
 * is not waited for. ERR_CONFIG: they would be led to themselves. Else it is not known:
 * ERR_NOT_FOUND, the name is unknown here, which it need not be to them; ERR_TIMEOUT, after wait_ms
 * the resolver has not answered. Texts say the pool, the name and what to do. Blocks for wait_ms at
 * most. */
int own_name_check(struct own_name *n, const struct config *pools, int64_t wait_ms, struct err *e);

#endif
