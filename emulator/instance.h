/* SPDX-License-Identifier: Apache-2.0
 *
 * An instance as data: its request, its life, its cost. Its processes are in machines.c.
 */
#ifndef BELAY_EMULATOR_INSTANCE_H
#define BELAY_EMULATOR_INSTANCE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/time.h"
#include "emulator/market.h"
#include "emulator/tags.h"

#define INSTANCE_TAGS_MAX 50
#define INSTANCE_TAG_KEY_MAX 128 /* bytes, without the NUL */
#define INSTANCE_TAG_VALUE_MAX 256

enum instance_state {
    INSTANCE_PENDING,
    INSTANCE_RUNNING,
    INSTANCE_SHUTTING_DOWN,
    INSTANCE_TERMINATED,
    INSTANCE_STOPPING,
    INSTANCE_STOPPED
};

#define LAUNCH_DISKS_MAX 8

/* A disk of a machine, or a standalone volume. */
struct disk_spec {
    char name[CLOUD_NAME_MAX]; /* if the owner names it; else "" */
    char type[CLOUD_NAME_MAX]; /* the provider's name */
    int64_t gib;
    bool stays; /* kept when its machine ends */
    struct tags tags;
};

/* The request of one RunInstances call. Zeroed is valid and empty. */
struct launch_spec {
    char type[CLOUD_NAME_MAX];
    char zone[CLOUD_NAME_MAX];
    enum cloud_market market;
    char image[CLOUD_NAME_MAX];
    char subnet[CLOUD_NAME_MAX]; /* "" if none */
    char key_name[256];          /* "" if none */
    char profile[129];           /* name of the instance profile; "" if none */
    char token[65];              /* "" if none */
    char name[CLOUD_NAME_MAX];   /* if the owner names its instances; "" for EC2 */
    int64_t max_price_uusd_h;    /* 0 = none, which means the on-demand price */
    bool powers_off_to_stop;     /* after a power-off the instance is stopped and still exists */
    bool ends_at_maintenance;    /* at maintenance of its host, instead of being migrated */
    bool reclaim_stops;          /* the same after a reclaim, or after max_run_ms */
    bool has_soft_off;           /* a reclaim tells the machine to shut down before the deadline */
    int64_t soft_off_lead_ms;    /* this long after the notice */
    int64_t max_run_ms;          /* ended after this time; 0 = never */
    bool metadata_needs_token;   /* HttpTokens=required */
    bool metadata_has_tags;      /* InstanceMetadataTags=enabled */
    bool is_metadata_off;        /* HttpEndpoint=disabled */
    struct buf user_data;        /* raw */
    struct tags tags;
    struct tags attributes; /* custom metadata, if the provider has it */
    struct tags scopes;     /* of its account: the keys */
    struct disk_spec disks[LAUNCH_DISKS_MAX];
    size_t n_disks;
};
void launch_spec_deinit(struct launch_spec *s);

struct reservation {
    char id[32];
    struct launch_spec spec;
    /* the scope of spec.token: the zone that the call named, or "" */
    char token_zone[CLOUD_NAME_MAX];
    char fingerprint[65]; /* of the parameters, to recognise a repeated call */
    struct wall launched_at;
    struct instance **instances;
    size_t n_instances;
};

struct instance {
    struct link alive; /* in region.alive until terminated or stopped */
    char id[40];
    char spot_request_id[32]; /* "" for on-demand */
    char private_ip[16];
    int64_t number;   /* 1, 2, ... in launch order */
    int launch_index; /* within its reservation */
    const struct reservation *reservation;
    struct market_pool *pool;
    struct tags tags;

    int state;         /* enum instance_state */
    bool is_counted;   /* in pool->in_use */
    bool is_reclaimed; /* the provider took it back, or is doing so */
    bool is_by_price;  /* because the price rose above its maximum */
    struct wall launched_at, boots_at, running_at, rebalance_at;
    struct wall noticed_at, deadline; /* of a reclaim */
    struct wall soft_off_at;          /* when the machine is, or was, ordered to shut down */
    bool is_soft_off;                 /* the order was given */
    struct wall off_by;               /* it is off by then, without a notice of a reclaim */
    struct wall ended_at;             /* left running (or pending) */
    struct wall gone_at;              /* its last process was gone */
    char reason_code[64];             /* "Client.UserInitiatedShutdown"; "" while alive */
    char reason[160];

    int64_t cost_uusd;
    int64_t cost_rest; /* uusd/h x ms, less than one micro-dollar */
    struct wall billed_until;

    void *machine; /* machines.c; NULL if it has no processes */
};

void instance_destroy(struct instance *i);

int instance_state_code(int state);         /* EC2's: 0, 16, 32, 48, 64, 80 */
const char *instance_state_name(int state); /* "pending", "shutting-down", ... */

/* Changes the state; aborts on an illegal transition. */
void instance_move(struct instance *i, int to);

static inline bool instance_is_alive(const struct instance *i)
{
    return i->state == INSTANCE_PENDING || i->state == INSTANCE_RUNNING;
}

/* Charges a running instance up to now at the pool's current price. Call before the price changes,
 * and before the instance leaves running. */
void instance_bill(struct instance *i, struct wall now);

#endif
