/* SPDX-License-Identifier: Apache-2.0
 *
 * A cloud driver: a const table of functions that translate. scheduler/core decides which offer to
 * launch, when, and how long to avoid an offer that refused; a driver only turns requests into a
 * provider's bytes and replies into the structs below. Requests are built and replies parsed by
 * pure functions in the driver's folder, without I/O.
 *
 * Every call is asynchronous: its completion runs exactly once, never inside the call, and may use
 * its arguments only for the duration. Drivers do not retry; the caller does, with the same token.
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
#define CLOUD_MACHINES_MAX 200 /* kinds of machines in one request for quotas */
#define CLOUD_QUOTAS_MAX 1000  /* rows of one answer */
#define CLOUD_QUOTA_NAME_MAX 128
#define CLOUD_VOLUME_GIB_MAX 1048576 /* GiB; more than any provider sells in one */

enum cloud_market { CLOUD_SPOT, CLOUD_ON_DEMAND, CLOUD_OWNED };

/* An alternative target of a launch, in the same market. Borrowed strings. */
struct cloud_target {
    const char *zone, *type;
};

/* Reports a target that gave no machine, and why (NO_CAPACITY, QUOTA, CONFIG, DENIED), whatever the
 * outcome of the launch. Called before the launch's completion, with its ctx, but not for the
 * target of the completion's own error. */
typedef void (*cloud_refused_fn)(void *ctx, const struct cloud_target *p, const struct err *e);

#define CLOUD_ALTERNATIVES_MAX 20

/* One launch. Settings common to all launches of a pool were passed when the driver was created
 * (provider.h). Borrowed strings. */
struct cloud_launch {
    const char *token; /* idempotency token, committed before the call */
    const char *region;
    const char *zone;
    const char *type;
    enum cloud_market market;
    /* raw, at most CLOUD_USER_DATA_MAX bytes; contains a one-use secret: never log it */
    const char *user_data;
    /* Tags set on the instance by the launch call itself: belay:cluster = cluster, belay:instance =
     * token, as far as the provider's alphabet allows. */
    const char *cluster;
    /* Alternative targets, best first; a driver that cannot choose ignores them. A repeat with the
     * same token passes the same list. The instance reports its zone and type. */
    const struct cloud_target *alternatives;
    size_t n_alternatives;    /* at most CLOUD_ALTERNATIVES_MAX */
    cloud_refused_fn refused; /* may be NULL */
};

/* CLOUD_RUNNING includes a machine under a notice: its jobs may still be saving.
 * CLOUD_STOPPING includes a stopped machine that still exists: its disk is billed until it is
 * terminated.
 * CLOUD_QUEUED: accepted, but it waits in a queue of the provider's, and is not billed. */
enum cloud_state { CLOUD_PENDING, CLOUD_RUNNING, CLOUD_STOPPING, CLOUD_GONE, CLOUD_QUEUED };

struct cloud_instance {
    char id[CLOUD_NAME_MAX]; /* the provider's id */
    /* from the tag belay:instance (or the client token); "" if absent */
    char token[CLOUD_TOKEN_MAX];
    char cluster[CLOUD_NAME_MAX]; /* from the tag belay:cluster */
    char zone[CLOUD_NAME_MAX];
    char type[CLOUD_NAME_MAX];
    enum cloud_market market;
    enum cloud_state state;
    /* true if the provider took it back; only with CLOUD_STOPPING or CLOUD_GONE */
    bool reclaimed;
    struct wall launched_at; /* WALL_NONE if unknown, and while it is queued */
    /* End of billing, if the provider reports it: only with CLOUD_STOPPING and CLOUD_GONE;
     * WALL_NONE if unknown. */
    struct wall ended_at;
    char reason[128]; /* the provider's text, "" if none */
    int32_t vcpus;    /* 0 if the listing does not say */
};

struct cloud_price {
    char zone[CLOUD_NAME_MAX]; /* "" = whole region */
    char type[CLOUD_NAME_MAX];
    enum cloud_market market;
    int64_t uusd_h; /* micro-dollars per hour */
    struct wall since;
    /* spot only: the provider's estimate that a launch succeeds now, 1 .. 10; 0 = unknown */
    int score;
};

/* A volume (disk) that is attached to no machine but still billed. */
struct cloud_volume {
    char id[CLOUD_NAME_MAX];          /* the provider's id, the same for every caller */
    char name[CLOUD_VOLUME_NAME_MAX]; /* given by its owner; "" if none */
    char cluster[CLOUD_NAME_MAX];     /* from the tag belay:cluster; "" if absent */
    /* instance it was created with, from the tag belay:instance; "" if absent */
    char token[CLOUD_TOKEN_MAX];
    char zone[CLOUD_NAME_MAX]; /* or region, if it spans several zones */
    char type[CLOUD_NAME_MAX]; /* the provider's name of its class */
    int64_t gib;
    /* detached, if the provider reports it, else created; WALL_NONE if unknown */
    struct wall since;
};

/* A kind of machine that a pool may launch. Borrowed string. */
struct cloud_machine {
    const char *type;
    enum cloud_market market;
    int32_t vcpus, gpus; /* of one; vcpus 0 = unknown */
};

/* A quota of the account that a kind of machine counts against. */
struct cloud_quota {
    char name[CLOUD_QUOTA_NAME_MAX]; /* the provider's */
    char scope[CLOUD_NAME_MAX + 16]; /* what it covers, for people: "us-east-1", "all regions" */
    size_t machine;                  /* index of the kind in the request */
    int64_t per_machine;             /* what one such machine takes of it; 0 = unknown */
    int64_t limit;
    int64_t used; /* by all of the account; -1 = unknown */
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

struct cloud_quotas {
    struct cloud_quota *list;
    size_t n, cap;
};
/* ERR_INVALID beyond CLOUD_QUOTAS_MAX. */
int cloud_quotas_add(struct cloud_quotas *l, const struct cloud_quota *q, struct err *e);
void cloud_quotas_deinit(struct cloud_quotas *l);

/* One row per zone, type and market: a newer `since` replaces an older one. */
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

typedef void (*cloud_quotas_fn)(
    void *ctx, const struct err *e, const struct cloud_quota *list, size_t n);

/* text: lines of printable ASCII (cloud/console.h), "" if there are none yet; NULL with an error.
 * Borrowed. */
typedef void (*cloud_console_fn)(void *ctx, const struct err *e, const char *text);

struct cloud_driver {
    const struct cloud_driver_ops *ops;
};

struct cloud_driver_ops {
    const char *provider;   /* "aws" */
    int64_t spot_notice_ms; /* the longest notice that the provider promises */

    /* Launch rate limits of one region and account: calls at once, and calls a minute after that.
     * 0: no limit, or the driver enforces it. */
    int32_t launch_burst, launches_per_minute;

    /* Launches one instance in the zone, or at one of the alternatives. Repeated with the same
     * token it returns the same instance, which may already be gone. */
    void (*launch)(
        struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);

    /* Every instance of `region` tagged belay:cluster = cluster, all pages, any state. A provider's
     * listing may lag: one miss shortly after a launch means nothing. */
    void (*list)(struct cloud_driver *d, const char *region, const char *cluster,
        cloud_list_fn done, void *ctx);

    /* `list` takes cluster NULL: every instance of the account in `region`, whatever its tags.
     * ERR_DENIED then names the missing permission. */
    bool lists_account;

    /* True while the last listing could not cover the place of this instance, and before the first
     * listing: its absence then means nothing. NULL: listings are complete. */
    bool (*hides)(const struct cloud_driver *d, const char *id);

    /* Idempotent. NOT_FOUND if the provider does not know one of the ids (yet); others may then
     * still be running. */
    void (*terminate)(struct cloud_driver *d, const char *region, const char *const *ids,
        size_t n_ids, cloud_done_fn done, void *ctx);

    /* Current prices of these types: one row per zone, type and market. Markets without a published
     * price are left out. */
    void (*prices)(struct cloud_driver *d, const char *region, const char *const *types,
        size_t n_types, cloud_prices_fn done, void *ctx);

    /* The unattached volumes of `region` tagged belay:cluster = cluster; NULL for all volumes of
     * the account. All pages. Read-only. ERR_DENIED names the missing permission. NULL: the
     * provider has no volumes. */
    void (*volumes)(struct cloud_driver *d, const char *region, const char *cluster,
        cloud_volumes_fn done, void *ctx);

    /* The quotas of the account that these kinds of machines count against: one row for each kind
     * and quota, none for a kind whose quotas the provider does not report. ERR_DENIED names the
     * missing permission. NULL: the provider has no API for quotas. */
    void (*quotas)(struct cloud_driver *d, const char *region, const struct cloud_machine *machines,
        size_t n_machines, cloud_quotas_fn done, void *ctx);

    /* Where people see quotas and ask for more; NULL: there are none. */
    const char *quotas_page;

    /* The last lines of the instance's console output, if the provider keeps it: some do for a
     * while after its end. It may lag behind. ERR_DENIED names the missing permission. NULL: the
     * provider has no console. */
    void (*console)(struct cloud_driver *d, const char *region, const char *id,
        cloud_console_fn done, void *ctx);

    /* Gets credentials as a launch in `region` would, and sends nothing to the provider. NULL: the
     * driver was created with them, or needs none. */
    void (*credentials)(struct cloud_driver *d, const char *region, cloud_done_fn done, void *ctx);

    /* Pending calls complete with ERR_CANCELLED first, inside destroy. Must not be called inside a
     * completion. */
    void (*destroy)(struct cloud_driver *d);
};

#endif
