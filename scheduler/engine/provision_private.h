/* SPDX-License-Identifier: Apache-2.0
 *
 * What provision.c and provision_sweep.c share, and nobody else sees.
 */
#ifndef BELAY_SCHEDULER_ENGINE_PROVISION_PRIVATE_H
#define BELAY_SCHEDULER_ENGINE_PROVISION_PRIVATE_H

#include "base/map.h"
#include "base/tries.h"
#include "scheduler/engine/launch_pace.h"
#include "scheduler/engine/provision.h"

/* What is being done for one instance. Made when there is something to do, dropped when the row is
 * gone. */
struct work {
    struct provision *p;
    int64_t instance;
    struct launch_turn turn; /* to be launched, while it waits for that */
    struct tries launch;
    bool answered; /* for good: its row is about to change, and it is not launched again */
    bool unsure;   /* a try had no answer, perhaps of another process: its machine may be there */
    /* while unsure it was refused: not launched again before listings have settled that */
    bool doubted;
    struct place *launching; /* where, while the launch runs; NULL: its pool is not known */
    /* where the driver's call is under way; its reply will come. NULL: none is */
    struct place *terminating;
    bool terminated;   /* the provider has taken one */
    bool consoled;     /* its console was asked for, or need not be */
    int misses;        /* listings in a row without it */
    int64_t listed_in; /* number of the newest listing that showed it */
    struct mono last_call;
};

/* One (driver, region): what is listed at once. Retired: no pool is there any more; it goes when
 * its last call ends. */
struct place {
    struct provision *p;
    struct cloud_driver *driver;
    char region[CLOUD_NAME_MAX];
    struct launch_pace *pace; /* of its provider in its region */
    bool listing, pricing, retired;
    size_t n_calls; /* launches and terminations under way */
    struct mono list_began;
};

struct pool_entry {
    char name[CORE_NAME_MAX];
    struct place *place;
    int64_t launches_per_minute; /* 0: its provider's */
    int32_t failed_boots;        /* as last logged */
    bool is_consoling;           /* a console of a machine of it is being read */
};

struct provision {
    struct provision_options o;
    struct pool_entry *pools;
    size_t n_pools;
    struct place **places;
    size_t n_places;
    /* kept when the last pool of a region goes: what it launched counts */
    struct launch_pace **paces;
    size_t n_paces;
    struct map works; /* instance id -> struct work */
    struct timer sweep, price, release;
    bool started;
    bool hurried; /* the next sweep is a soon one already */
    struct provision_stats stats;
};

/* ---- provision.c ---- */

const struct model *provision_model(const struct provision *p);
struct mono provision_now(const struct provision *p);
struct pool_entry *provision_find_pool(const struct provision *p, const char *name); /* or NULL */
/* made when there is none */
struct work *provision_work(struct provision *p, int64_t instance);
/* A call of this place has ended: its count, and the place itself if that was the last one of a
 * retired one. */
void provision_end_call(struct place *pl);
/* Lets the retired places go that no call is at, in a turn of its own, for it may be a call of the
 * driver's that ends now. */
void provision_release_soon(struct provision *p);
/* Something is expected to change at the provider. Who asks meanwhile does not put it off. */
void provision_sweep_soon(struct provision *p);
/* When its turn comes, unless it waits for that, or one is under way, answered or doubted. */
void provision_launch(struct work *w);
/* Unless a call is under way or its id is not known yet. */
void provision_terminate(struct work *w, const struct instance *i);
/* Reads what the console of a machine that never joined has shown, unless its provider has none, or
 * one of the pool is being read. */
bool provision_read_console(struct provision *p, const struct instance *i);
void provision_post_launched(struct provision *p, int64_t instance, const struct cloud_instance *c);
/* c: as listed; NULL: it is not */
void provision_post_gone(
    struct provision *p, int64_t instance, const struct cloud_instance *c, const char *text);

/* ---- provision_sweep.c ---- */

/* Timers: one sweep, one reading of prices; each sets its timer again. */
void provision_on_sweep(struct timer *t, void *ctx);
void provision_on_price(struct timer *t, void *ctx);

#endif
