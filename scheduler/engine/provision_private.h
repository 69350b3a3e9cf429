/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by provision.c and provision_sweep.c; private to them.
 */
#ifndef BELAY_SCHEDULER_ENGINE_PROVISION_PRIVATE_H
#define BELAY_SCHEDULER_ENGINE_PROVISION_PRIVATE_H

#include "base/map.h"
#include "base/tries.h"
#include "scheduler/engine/launch_pace.h"
#include "scheduler/engine/provision.h"

/* The state of the work for one instance. Created when there is something to do, freed when the row
 * is gone. */
struct work {
    struct provision *p;
    int64_t instance;
    struct launch_turn turn; /* its place in the queue of launches, while it waits */
    struct tries launch;
    bool answered;  /* definitely: its row is about to change, and it is not launched again */
    bool may_exist; /* a try, perhaps of an earlier process, had no answer: its machine may exist */
    /* It was refused while may_exist was set: not launched again until listings have settled
     * that. */
    bool awaits_listing;
    struct provision_region
        *launching; /* the place of the running launch; NULL if its pool is unknown */
    /* the place of the terminate call in progress, whose reply will come; NULL if there is none */
    struct provision_region *terminating;
    bool terminated;   /* the provider has accepted a terminate */
    bool consoled;     /* its console was requested, or is not needed */
    int misses;        /* listings in a row without it */
    int64_t listed_in; /* number of the newest listing that showed it */
    struct mono last_call;
};

/* One (driver, region): the unit of a listing. Retired: no pool uses it any more; it is freed when
 * its last call ends. */
struct provision_region {
    struct provision *p;
    struct cloud_driver *driver;
    char name[CLOUD_NAME_MAX];
    struct launch_pace *pace; /* the pace of its provider and region */
    bool listing, pricing, retired;
    size_t n_calls; /* launches and terminations in progress */
    struct mono list_began;
};

struct pool_entry {
    char name[CORE_NAME_MAX];
    struct provision_region *region;
    int64_t launches_per_minute; /* 0 = its provider's */
    int32_t failed_boots;        /* as last logged */
    bool is_consoling;           /* the console of one of its machines is being read */
};

struct provision {
    struct provision_options o;
    struct pool_entry *pools;
    size_t n_pools;
    struct provision_region **regions;
    size_t n_regions;
    /* kept when the last pool of a region is removed, because its launches still count */
    struct launch_pace **paces;
    size_t n_paces;
    struct map works; /* instance id -> struct work */
    struct timer sweep, price, release;
    bool started;
    bool is_brought_forward; /* the next sweep is already brought forward */
    struct provision_stats stats;
};

/* ---- provision.c ---- */

const struct model *provision_model(const struct provision *p);
struct mono provision_now(const struct provision *p);
struct pool_entry *provision_find_pool(const struct provision *p, const char *name); /* or NULL */
/* created if missing */
struct work *provision_work(struct provision *p, int64_t instance);
/* A call of this place has ended: decrements its count, and frees the place if it is retired and
 * this was its last call. */
void provision_end_call(struct provision_region *at);
/* Frees the retired places without calls, in a later iteration, because the call that ends now may
 * be inside the driver. */
void provision_release_soon(struct provision *p);
/* A change at the provider is expected: brings the next sweep forward. Further calls meanwhile do
 * not postpone it. */
void provision_sweep_soon(struct provision *p);
/* Launches when its turn comes; no effect if it already waits, is in progress, answered or
 * awaits_listing. */
void provision_launch(struct work *w);
/* No effect while a call is in progress or if its id is not known yet. */
void provision_terminate(struct work *w, const struct instance *i);
/* Reads the console output of a machine that never joined. Returns false if nothing
 * is read: the pool or the id is unknown, the provider has no console, or another one of the pool
 * is being read. */
bool provision_read_console(struct provision *p, const struct instance *i);
void provision_post_launched(struct provision *p, int64_t instance, const struct cloud_instance *c);
/* c is the listed instance, NULL if it is not listed */
void provision_post_gone(
    struct provision *p, int64_t instance, const struct cloud_instance *c, const char *text);

/* ---- provision_sweep.c ---- */

/* Timer callbacks: one sweep, one reading of prices; each sets its timer again. */
void provision_on_sweep(struct timer *t, void *ctx);
void provision_on_price(struct timer *t, void *ctx);

#endif
