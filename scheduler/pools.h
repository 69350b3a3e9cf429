/* SPDX-License-Identifier: Apache-2.0
 *
 * The pools in force: which there are, and the driver of each elastic one. Tells the model of them as facts (EV_POOL,
 * EV_OFFER) and provisioning of the drivers.
 */
#ifndef BELAY_SCHEDULER_POOLS_H
#define BELAY_SCHEDULER_POOLS_H

#include "scheduler/config.h"
#include "scheduler/provision.h"

struct pools;

/* All borrowed, until pools_destroy. */
struct pools_options {
    const struct config *config;
    struct tick *tick;
    struct provision *provision;
    struct timers *timers;
    struct http_client *http;
};

struct pools *pools_create(const struct pools_options *o);

/* Makes the drivers, one a pool since pools may have different accounts, and tells provisioning of them. */
int pools_open(struct pools *p, struct err *e);

/* The configuration as facts: every pool and offer of it, and the end of those that it no longer has. */
void pools_post(struct pools *p);

/* NULL: there is none of that name. Borrowed. */
const struct config_pool *pools_find(const struct pools *p, const char *name);

/* Destroys the drivers: their last completions come inside, so it is called before their receivers are destroyed. */
void pools_close(struct pools *p);   /* NULL is fine */
void pools_destroy(struct pools *p); /* NULL is fine; closed before */

#endif
