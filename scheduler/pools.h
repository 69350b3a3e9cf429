/* SPDX-License-Identifier: Apache-2.0
 *
 * The pools in force: which there are, and the driver of each elastic one. They are those of the
 * configuration until `belay pools apply` gives others, which are kept in STATE/pools.yaml and win
 * over the configuration's from then on. Tells the model of them as facts (EV_POOL, EV_OFFER,
 * EV_LIMITS) and provisioning of the drivers.
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
    struct own_name *own_name; /* what machines would dial */
    struct tick *tick;
    struct provision *provision;
    struct timers *timers;
    struct http_client *http;
    struct runner *runner;
};

struct pools *pools_create(const struct pools_options *o);

/* Reads STATE/pools.yaml if there is one (blocks), makes the drivers, one a pool since pools may
 * have different accounts, and tells provisioning of them. ERR_CONFIG: machines of one could not
 * reach belayd. It waits for the resolver, where one is of a real cloud, for POOLS_NAME_WAIT_MS; a
 * name that is not known then is no error here (own_name_check). */
int pools_open(struct pools *p, struct err *e);

/* What is in force as facts: every pool and offer, the limits, and the end of what there is no
 * longer. */
void pools_post(struct pools *p);

/* What is in force; borrowed until the next application. */
const struct config *pools_in_force(const struct pools *p);

/* NULL: there is none of that name. Borrowed. */
const struct config_pool *pools_find(const struct pools *p, const char *name);

/* ERR_INVALID: a job that names these pools (base/names.h; "": none) names one that there is not.
 * It says "WHERE.pool". */
int pools_check_names(const struct pools *p, const char *names, const char *where, struct err *e);

/* Of a pool in force; NULL: it is not elastic. Borrowed until the next application. */
struct cloud_driver *pools_driver(const struct pools *p, const struct config_pool *pool);

struct pools_request {
    const char *file; /* its name, for errors */
    const char *text;
    size_t n;
    bool dry_run; /* say what would change, change nothing */
    /* the revision that a dry run told; NULL: any. ERR_CONFLICT when something was applied since */
    const char *expect;
};

/* e NULL: applied, or would be; revision: of what is in force now. diff as pooldiff.h has it. Both
 * borrowed. */
typedef void (*pools_applied_fn)(
    void *ctx, const struct err *e, const char *revision, const json_t *diff);

/* Puts the pools (and limits, if it has any) of a text in force. Machines that would be led to
 * themselves, as far as the start has found out, are ERR_INVALID; it waits for no resolver. done
 * runs once, perhaps at once for an error or a dry run, else after the commit; then the file is in
 * the state directory. ERR_INVALID with FILE:LINE; ERR_CONFLICT when a pool would change its kind,
 * one with instances would move (provider, region, endpoint, credentials, what the provider calls
 * its place), a host with one would be left out, one with instances or nodes would vanish, or
 * another application is under way. */
void pools_apply(struct pools *p, const struct pools_request *r, pools_applied_fn done, void *ctx);

/* No call to a driver that was replaced is left (provision_options.released). */
void pools_released(struct pools *p, struct cloud_driver *driver);

/* Destroys the drivers: their last completions come inside, so it is called before their receivers
 * are destroyed. */
void pools_close(struct pools *p); /* NULL is fine */
/* Closed before, and after the tick, whose last answers come here. NULL is fine */
void pools_destroy(struct pools *p);

#endif
