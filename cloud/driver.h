/* SPDX-License-Identifier: Apache-2.0
 *
 * A cloud driver: a const table of functions that translate. Which offer, when, and how long to
 * avoid one that refused is decided in scheduler/core; a driver only turns requests into a
 * provider's bytes and replies into the structs below. Requests are built and replies parsed by
 * pure functions beside the driver, without I/O.
 *
 * Every call is asynchronous: its completion runs exactly once, never inside the call, and borrows
 * its arguments to the caller for the duration. Drivers do not retry: who calls them does, with the
 * same token.
 */
#ifndef BELAY_CLOUD_DRIVER_H
#define BELAY_CLOUD_DRIVER_H

#include "base/err.h"
#include "base/http.h"
#include "base/time.h"
#include "base/timers.h"
#include <stddef.h>
#include <stdint.h>

#define CLOUD_NAME_MAX 64  /* region, zone, type, id: bytes including the NUL */
#define CLOUD_TOKEN_MAX 65 /* idempotency token: up to 64 ASCII characters */
#define CLOUD_USER_DATA_MAX 16384
#define CLOUD_LIST_MAX 100000 /* instances in one listing */
#define CLOUD_PRICES_MAX 10000
#define CLOUD_VOLUMES_MAX 10000 /* volumes in one listing */
#define CLOUD_VOLUME_NAME_MAX 192
#define CLOUD_VOLUME_GIB_MAX 1048576 /* more than anybody sells in one */

enum cloud_market { CLOUD_SPOT, CLOUD_ON_DEMAND, CLOUD_OWNED };

/* Somewhere else to launch: the market is the launch's. Borrowed strings. */
struct cloud_place {
    const char *zone, *type;
};

/* A place of a launch that gave no machine, and why (NO_CAPACITY, QUOTA, CONFIG, DENIED), whatever
 * became of the launch. Called before the launch's completion, with its ctx; not of the place that
 * the completion's own error is about. */
typedef void (*cloud_refused_fn)(void *ctx, const struct cloud_place *p, const struct err *e);

#define CLOUD_ALTERNATIVES_MAX 20

/* One launch. What all launches of a pool have in common, the driver was created with (provider.h).
 * Borrowed strings.
 */
struct cloud_launch {
    const char *token; /* idempotency token, committed before the call */
    const char *region;
    const char *zone;
    const char *type;
    enum cloud_market market;
    /* raw, at most CLOUD_USER_DATA_MAX bytes; holds a one-use secret: never log it */
    const char *user_data;
    /* Tags put on the instance in the launch call itself: belay:cluster = cluster, belay:instance =
     * token, as far as the provider's alphabet goes. */
    const char *cluster;
    /* Where the machine may be instead, best first; a driver that cannot choose ignores them. With
     * the same token they are the same every time. The instance says where it is. */
    const struct cloud_place *alternatives;
    size_t n_alternatives;    /* at most CLOUD_ALTERNATIVES_MAX */
    cloud_refused_fn refused; /* NULL: nobody asks */
};

/* CLOUD_STOPPING is also a machine that stopped and still exists: it bills its disk until it is
 * terminated.
 */
enum cloud_state { CLOUD_PENDING, CLOUD_RUNNING, CLOUD_STOPPING, CLOUD_GONE };

struct cloud_instance {
    char id[CLOUD_NAME_MAX]; /* the provider's */
    /* from the tag belay:instance (or the client token); "" if it carries none */
    char token[CLOUD_TOKEN_MAX];
    char cluster[CLOUD_NAME_MAX]; /* from the tag belay:cluster */
    char zone[CLOUD_NAME_MAX];
    char type[CLOUD_NAME_MAX];
    enum cloud_market market;
    enum cloud_state state;
    bool reclaimed;          /* CLOUD_STOPPING or CLOUD_GONE because the provider took it back */
    struct wall launched_at; /* WALL_NONE if unknown */
    /* Since when it is not billed any more, as far as the provider says: set only with
     * CLOUD_STOPPING and CLOUD_GONE, WALL_NONE if unknown. */
    struct wall ended_at;
    char reason[128]; /* the provider's words, "" if none */
};

struct cloud_price {
    char zone[CLOUD_NAME_MAX]; /* "": all of the region */
    char type[CLOUD_NAME_MAX];
    enum cloud_market market;
    int64_t uusd_h; /* micro-dollars an hour */
    struct wall since;
    /* of spot: how likely a launch is to be answered now, as the provider holds, 1 .. 10; 0: it
     * does not say */
    int score;
};

/* A volume (a disk) that is attached to no machine, and billed all the same. */
struct cloud_volume {
    char id[CLOUD_NAME_MAX];          /* the provider's, the same for whoever lists it */
    char name[CLOUD_VOLUME_NAME_MAX]; /* what its owner calls it; "" if nothing */
    char cluster[CLOUD_NAME_MAX];     /* from the tag belay:cluster; "" if it carries none */
    /* of the machine that it was made with, from the tag belay:instance; "" if it carries none */
    char token[CLOUD_TOKEN_MAX];
    char zone[CLOUD_NAME_MAX]; /* or region, where it is in more than one */
    char type[CLOUD_NAME_MAX]; /* the provider's word for its class */
    int64_t gib;
    struct wall since; /* detached, as far as the provider says, else made; WALL_NONE if unknown */
};

/* Grown by appending, page by page. Zeroed is valid and empty. */
struct cloud_instances {
    struct cloud_instance *list;
    size_t n, cap;
};
/* ERR_INVALID beyond CLOUD_LIST_MAX. */
int cloud_instances_add(struct cloud_instances *l, const struct cloud_instance *i, struct err *e);
void cloud_instances_deinit(struct cloud_instances *l);

struct cloud_volumes {
    struct cloud_volume *list;
    size_t n, cap;
};
/* ERR_INVALID beyond CLOUD_VOLUMES_MAX. */
int cloud_volumes_add(struct cloud_volumes *l, const struct cloud_volume *v, struct err *e);
void cloud_volumes_deinit(struct cloud_volumes *l);

/* One row a (zone, type, market): a newer `since` replaces an older one. */
struct cloud_prices {
    struct cloud_price *list;
    size_t n, cap;
};
/* ERR_INVALID beyond CLOUD_PRICES_MAX. */
int cloud_prices_keep(struct cloud_prices *l, const struct cloud_price *p, struct err *e);
void cloud_prices_deinit(struct cloud_prices *l);

/* e is NULL on success; kinds: NO_CAPACITY, THROTTLED, QUOTA, DENIED, CONFIG, UNAVAILABLE, TIMEOUT,
 * IO, INVALID (a reply that does not parse), CONFLICT (token used with other parameters). */
typedef void (*cloud_launch_fn)(
    void *ctx, const struct err *e, const struct cloud_instance *instance);
typedef void (*cloud_list_fn)(
    void *ctx, const struct err *e, const struct cloud_instance *list, size_t n);
typedef void (*cloud_done_fn)(void *ctx, const struct err *e);
typedef void (*cloud_prices_fn)(
    void *ctx, const struct err *e, const struct cloud_price *list, size_t n);
typedef void (*cloud_volumes_fn)(
    void *ctx, const struct err *e, const struct cloud_volume *list, size_t n);

/* text: lines of printable ASCII (cloud/console.h), "" while there are none; NULL with an error.
 * Borrowed. */
typedef void (*cloud_console_fn)(void *ctx, const struct err *e, const char *text);

struct cloud_driver {
    const struct cloud_driver_ops *ops;
};

struct cloud_driver_ops {
    const char *provider;   /* "aws" */
    int64_t spot_notice_ms; /* the notice that the provider promises, at best */

    /* How many launch calls the provider takes at once, and how many a minute from then on, in one
     * region of one account. 0: it has no such limit, or the driver keeps to it. */
    int32_t launch_burst, launches_per_minute;

    /* One instance in one zone, or at one of the alternatives. Repeated with the same token it
     * returns the same instance, perhaps already gone. */
    void (*launch)(
        struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);

    /* Every instance of `region` tagged belay:cluster = cluster, all pages, whatever its state; a
     * provider's list may lag: one miss shortly after a launch means nothing. */
    void (*list)(struct cloud_driver *d, const char *region, const char *cluster,
        cloud_list_fn done, void *ctx);

    /* True while the last listing could not see the place where this instance is, and before the
     * first: that it was not listed says nothing then. NULL: a listing is whole. */
    bool (*hides)(const struct cloud_driver *d, const char *id);

    /* Idempotent. NOT_FOUND when the provider does not know one of them (yet); then others may not
     * have been terminated.
     */
    void (*terminate)(struct cloud_driver *d, const char *region, const char *const *ids,
        size_t n_ids, cloud_done_fn done, void *ctx);

    /* Prices now in force for these types: one row a zone, type and market. Markets that the
     * provider does not tell are left out. */
    void (*prices)(struct cloud_driver *d, const char *region, const char *const *types,
        size_t n_types, cloud_prices_fn done, void *ctx);

    /* The volumes of `region` that are attached to nothing and tagged belay:cluster = cluster;
     * cluster NULL: all of the account. All pages. ERR_DENIED names the permission that is missing.
     * Only looks: no volume is ever changed. NULL: the provider has none. */
    void (*volumes)(struct cloud_driver *d, const char *region, const char *cluster,
        cloud_volumes_fn done, void *ctx);

    /* The last lines of what the instance's console has shown, as far as its provider keeps them:
     * some do for a while after its end. It may have shown less than it did. ERR_DENIED names the
     * permission that is missing. NULL: the provider has none. */
    void (*console)(struct cloud_driver *d, const char *region, const char *id,
        cloud_console_fn done, void *ctx);

    /* Calls under way complete with ERR_CANCELLED first, inside destroy. Not to be called inside a
     * completion. */
    void (*destroy)(struct cloud_driver *d);
};

#endif
