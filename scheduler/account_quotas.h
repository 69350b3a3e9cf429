/* SPDX-License-Identifier: Apache-2.0
 *
 * The quotas of the accounts at the providers, queried from every elastic pool's driver on request,
 * never in a tick. Concurrent requests share an answer, and later ones get the last answer for a
 * while, so that no request limit is used up. Read-only.
 *
 * Invariant: each request is answered exactly once, at the latest ACCOUNT_QUOTAS_WAIT_MS later,
 * with what is known by then; pools whose provider did not answer, refused or has no such API are
 * reported with the answer.
 */
#ifndef BELAY_SCHEDULER_ACCOUNT_QUOTAS_H
#define BELAY_SCHEDULER_ACCOUNT_QUOTAS_H

#include "base/timers.h"
#include "cloud/driver.h"

#define ACCOUNT_QUOTAS_WAIT_MS 20000
#define ACCOUNT_QUOTAS_KEEP_MS (5 * 60000) /* lifetime of an answer */
#define ACCOUNT_QUOTAS_RETRY_MS 15000      /* of an answer with a pool missing */

struct account_quotas;

/* A pool whose provider can be queried. Borrowed for the call. */
struct account_pool {
    const char *pool, *region;
    struct cloud_driver *driver; /* NULL if it has none */
    struct cloud_machine machines[CLOUD_MACHINES_MAX];
    size_t n_machines;
};

/* All borrowed. */
struct account_quotas_options {
    /* returns the i-th pool, from 0, or false beyond the last */
    bool (*pool)(void *ctx, size_t i, struct account_pool *ret_pool);
    void *ctx;
    struct timers *timers;
};

/* What one pool's driver has reported. */
struct account_reading {
    const char *pool, *provider, *region;
    const char *page;      /* where people see quotas; NULL: there are none */
    const struct err *why; /* NULL: they are known */
    const struct cloud_quota *list;
    size_t n;
    const int32_t *gpus; /* of one machine of each kind, by the index in the rows */
    bool all_machines;   /* each of its kinds of machines has a row */
};
/* Borrowed for the call. */
typedef void (*account_quotas_fn)(void *ctx, const struct account_reading *readings, size_t n);

struct account_quotas *account_quotas_create(const struct account_quotas_options *o);
/* done runs exactly once, possibly inside this call, and not after account_quotas_destroy. */
void account_quotas_read(struct account_quotas *a, account_quotas_fn done, void *ctx);
/* Call after the drivers are destroyed. Waiting requests are dropped. a may be NULL. */
void account_quotas_destroy(struct account_quotas *a);

#endif
