/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of `belayd --check` that a start does not wait for: the credentials of pools.
 */
#include "scheduler/daemon_private.h"

#include "base/mem.h"
#include <stdlib.h>

/* Longer than an existing metadata service takes to answer, shorter than users wait. */
#define CREDENTIALS_MS 6000

struct credential_tries {
    struct credential_try {
        struct credential_tries *all;
        bool is_over;
        struct err e; /* ERR_NONE = it has credentials */
    } list[CONFIG_POOLS_MAX];
    size_t n_pending;
    bool timed_out;
};

static void on_credentials(void *ctx, const struct err *e)
{
    struct credential_try *t = ctx;
    t->is_over = true;
    t->all->n_pending--;
    if (e)
        t->e = *e;
}

static void on_timeout(struct timer *timer, void *ctx)
{
    struct credential_tries *all = ctx;
    (void)timer;
    all->timed_out = true;
}

static void try_all(struct daemon *d, struct credential_tries *all)
{
    const struct config *c = pools_in_force(d->pools);
    struct timer limit;
    for (size_t i = 0; i < c->n_pools; i++) {
        struct cloud_driver *driver = pools_driver(d->pools, &c->pools[i]);
        struct credential_try *t = &all->list[i];
        t->all = all;
        t->is_over = !driver || !driver->ops->credentials;
        if (t->is_over)
            continue;
        all->n_pending++;
        driver->ops->credentials(driver, c->pools[i].row.region, on_credentials, t);
    }
    timer_init(&limit, on_timeout, all);
    timer_start(d->timers, &limit, CREDENTIALS_MS);
    while (all->n_pending > 0 && !all->timed_out)
        uv_run(d->loop, UV_RUN_ONCE);
    timer_stop(d->timers, &limit);
}

int daemon_check_credentials(struct daemon *d, struct err *e)
{
    const struct config *c = pools_in_force(d->pools);
    struct credential_tries *all = mem_alloc(sizeof(*all));
    int rc = 0;
    try_all(d, all);
    for (size_t i = 0; i < c->n_pools && rc == 0; i++) {
        const struct credential_try *t = &all->list[i];
        if (!t->is_over)
            rc = err_set(e, ERR_TIMEOUT, "no answer in %d s", CREDENTIALS_MS / 1000);
        else if (t->e.kind != ERR_NONE) {
            *e = t->e;
            rc = (int)e->kind;
        }
        if (rc != 0)
            err_wrap(e, "pool %s: belayd has no credentials to launch its machines",
                c->pools[i].row.name);
    }
    pools_close(d->pools); /* a later answer would be written to *all */
    free(all);
    return rc;
}
