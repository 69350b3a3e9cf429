/* SPDX-License-Identifier: Apache-2.0
 *
 * The pools in force, and the driver of each elastic one. They are those of the configuration until
 * `belay pools apply` supplies others, which are kept in STATE/pools.yaml and override the
 * configuration's from then on. Posts them to the model as facts (EV_POOL, EV_OFFER, EV_LIMITS) and
 * gives the drivers to provisioning.
 */
#ifndef BELAY_SCHEDULER_POOLS_H
#define BELAY_SCHEDULER_POOLS_H

#include "base/json.h"
#include "scheduler/config/config.h"
#include "scheduler/engine/provision.h"

struct pools;
struct own_name;

#define POOLS_NAME_WAIT_MS 5000

/* All borrowed, until pools_destroy. */
struct pools_options {
    const struct config *config;
    struct own_name *own_name; /* the name that machines would dial */
    struct tick *tick;
    struct provision *provision;
    struct timers *timers;
    struct http_client *http;
    struct runner *runner;
};

struct pools *pools_create(const struct pools_options *o);

/* Reads STATE/pools.yaml if it exists (blocks), creates the drivers, one for each pool because
 * pools may have different accounts, and gives them to provisioning. ERR_CONFIG: machines of a pool
 * could not reach belayd. If a pool is of a real cloud, it waits for the resolver for
 * POOLS_NAME_WAIT_MS; a name that is unknown then is not an error here (own_name_check). */
int pools_open(struct pools *p, struct err *e);

/* Posts the pools in force as facts: every pool and offer, the limits, and the removal of those
 * that no longer exist. */
void pools_post(struct pools *p);

/* The pools in force; borrowed until the next application. */
const struct config *pools_in_force(const struct pools *p);

/* Whether they are those of a command. */
bool pools_are_applied(const struct pools *p);
/* The pool with this name, borrowed, or NULL. */
const struct config_pool *pools_find(const struct pools *p, const char *name);
/* Nodes of a pool that the model has; instances without a node do not count. */
int64_t pools_count_nodes(const struct model *m, const struct pool *pool);

/* ERR_INVALID if a job's list of pools (base/names.h; "" = none) names one that does not exist. The
 * text contains "WHERE.pool". */
int pools_check_names(const struct pools *p, const char *names, const char *where, struct err *e);

/* The driver of a pool in force, NULL if it is not elastic. Borrowed until the next application. */
struct cloud_driver *pools_driver(const struct pools *p, const struct config_pool *pool);

struct pools_request {
    const char *file; /* its name, for errors */
    const char *text;
    size_t n;
    bool dry_run; /* report the changes without making them */
    /* the revision of a dry run; NULL = any. ERR_CONFLICT if something was applied since */
    const char *expect;
};

/* e is NULL if it was applied, or would be; revision is that of the pools in force now; diff has
 * the form of pooldiff.h. Both borrowed. */
typedef void (*pools_applied_fn)(
    void *ctx, const struct err *e, const char *revision, const json_t *diff);

/* Applies the pools (and limits, if it has any) of a text. ERR_INVALID if the start has found that
 * machines would be led to themselves; it waits for no resolver. done runs exactly once, possibly
 * inside this call for an error or a dry run, else after the commit; then the file is in the state
 * directory. ERR_INVALID with FILE:LINE. ERR_CONFLICT when a pool would change its kind, a pool
 * with instances would move (provider, region, endpoint, credentials, the provider's keys of its
 * place), a host with an instance would be removed, a pool with instances or nodes would be
 * removed, or another application is in progress. */
void pools_apply(struct pools *p, const struct pools_request *r, pools_applied_fn done, void *ctx);

/* No call to this replaced driver is left (provision_options.released). */
void pools_released(struct pools *p, struct cloud_driver *driver);

/* Destroys the drivers. Their last completions run inside this call, so call it before their
 * receivers are destroyed. */
void pools_close(struct pools *p); /* p may be NULL */
/* Call after pools_close, and after the tick is destroyed, whose last answers arrive here. p may be
 * NULL. */
void pools_destroy(struct pools *p);

#endif
