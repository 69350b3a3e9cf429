/* SPDX-License-Identifier: Apache-2.0
 *
 * One emulated region of one provider: market, instances, faults, and the rules between them. Pure:
 * time is a parameter and never goes back, randomness comes from the seed, and processes are behind
 * region_ops. After each call that takes a `now` the caller sets its timer to region_next.
 */
#ifndef BELAY_EMULATOR_REGION_H
#define BELAY_EMULATOR_REGION_H

#include "base/prng.h"
#include "emulator/instance.h"
#include "emulator/journal.h"
#include "emulator/region_event.h"
#include "emulator/volume.h"

#define REGION_ALIVE_MAX 1000       /* the account's quota of concurrent instances */
#define REGION_INSTANCES_MAX 100000 /* in total, because none is forgotten */

enum region_surplus { SURPLUS_NEWEST, SURPLUS_RANDOM };

struct region_script {
    int64_t at_ms; /* after the start */
    struct region_event event;
};

/* An unattached volume that exists from the start. */
struct region_volume {
    struct disk_spec spec;
    char zone[CLOUD_NAME_MAX];
    int64_t age_ms;
};

/* Makes an instance id, unique in the region, from random numbers. */
typedef void (*region_id_fn)(struct prng *ids, char *out, size_t size);

struct region_options {
    const char *provider;      /* "aws"; NULL for the same */
    char name[CLOUD_NAME_MAX]; /* "us-east-1" */
    char account[CLOUD_NAME_MAX];
    uint64_t seed;
    int64_t launch_delay_ms;      /* how long a call that launches takes to be answered */
    int64_t boot_delay_ms;        /* from launch to running */
    int64_t start_delay_ms;       /* from running until its user data runs */
    int64_t notice_ms;            /* default notice of a reclaim, by the market or by an event */
    int64_t consistency_delay_ms; /* how long a new instance is invisible */
    /* error of the nodes' clocks: metadata services return earlier times */
    int64_t node_clock_ahead_ms;
    int64_t quota;                /* concurrent instances; 0 = REGION_ALIVE_MAX */
    enum region_surplus surplus;  /* which instance is reclaimed when capacity shrinks */
    bool is_on_demand_only;       /* no spot instances */
    region_id_fn make_id;         /* NULL for EC2's format */
    struct region_script *script; /* borrowed; sorted by at_ms */
    size_t n_script;
    struct region_volume *volumes; /* borrowed */
    size_t n_volumes;
};

/* The region's effects. Called inside region calls; they must not call back into the region except
 * region_machine_gone where stated. */
struct region_ops {
    /* The instance boots: start its processes. On an error it ends with Server.InternalError. */
    int (*boot)(void *ctx, struct instance *i, struct err *e);
    /* i->deadline is set: kill the instance then, to the millisecond. */
    void (*doom)(void *ctx, struct instance *i);
    /* Tell it to shut down; it may run until i->deadline. */
    void (*soft_off)(void *ctx, struct instance *i);
    /* End it: SIGTERM and SIGKILL a little later, or SIGKILL at once. region_machine_gone follows
     * later, not inside. Only called for an instance whose boot succeeded. */
    void (*shutdown)(void *ctx, struct instance *i, bool at_once);
};

struct region_counts {
    int64_t launch_calls, launches, replays, refusals, notices, reclaims, rebalances, power_offs,
        terminations;
};

struct region {
    const struct region_options *o;
    const struct region_ops *ops;
    void *ctx;
    struct market market;
    struct faults faults;
    struct journal *journal; /* shared by all regions of the emulator */
    struct prng prng;        /* for decisions */
    struct prng ids;         /* for ids of resources */
    struct prng request_ids; /* for ids of requests, so that an extra call changes nothing else */
    struct prng volume_ids;
    struct wall start, now;
    size_t script_next;
    struct reservation **reservations; /* by launch order */
    size_t n_reservations;
    struct instance **instances; /* by launch order */
    size_t n_instances;
    struct list alive;
    struct volume **volumes; /* by number */
    size_t n_volumes;
    int64_t n_volumes_ever;
    struct region_counts counts;
    /* A provider's resources besides instances, for GET /state: a new value. May be NULL. */
    json_t *(*describe)(void *ctx, struct wall now);
    void *describe_ctx;
};

/* o and the journal are borrowed; the pools are taken over. ops and ctx may be NULL for a world
 * without processes: a shutdown then ends an instance at once. */
void region_init(struct region *r, const struct region_options *o, struct journal *journal,
    struct market_pool *pools, size_t n_pools, const struct region_ops *ops, void *ctx,
    struct wall now);
void region_deinit(struct region *r); /* every machine must be gone */

const char *region_provider(const struct region *r);
/* Adds to the journal, with the provider's name. details: an object, taken over; may be NULL. */
void region_journal(struct region *r, struct wall at, const char *what, json_t *details);

/* Processes everything due up to now, in order of time. */
void region_advance(struct region *r, struct wall now);
/* The time as the machines' metadata services report it. */
static inline struct wall region_machine_time(const struct region *r, struct wall at)
{
    return (struct wall){at.ms - r->o->node_clock_ahead_ms};
}
struct wall region_next(const struct region *r); /* WALL_NONE if nothing is ever due */

/* The reservation made under this token in the token's scope (the zone named in the call, "" for
 * none), or NULL. */
struct reservation *region_find_token(const struct region *r, const char *token, const char *zone);

/* Launches min .. max instances, as many as there is capacity for. spec is taken over on success.
 * spec->zone "" lets the region choose. ERR_NO_CAPACITY: fewer than min. ERR_QUOTA. named_zone: the
 * token's scope. */
int region_launch(struct region *r, struct launch_spec *spec, const char *named_zone,
    const char *fingerprint, int64_t min, int64_t max, struct wall now,
    struct reservation **ret_reservation, struct err *e);

struct instance *region_find(const struct region *r, const char *id); /* NULL if unknown */
bool region_is_visible(const struct region *r, const struct instance *i, struct wall now);

/* Termination by its owner. No-op if it has ended. */
void region_terminate(struct region *r, struct instance *i, struct wall now);

/* A machine under notice agrees to be reclaimed before its deadline. No-op for any other. */
void region_accept_reclaim(struct region *r, struct instance *i, struct wall now);

/* Reports that the last process of a machine ended at died_at. is_power_off: it ended by itself. */
void region_machine_gone(
    struct region *r, struct instance *i, bool is_power_off, struct wall died_at, struct wall now);

/* The caller calls region_advance(now) before and after it (the second handles reclaims after a
 * capacity decrease). *ret_reply describes the effect, a new object. ERR_NOT_FOUND: no such
 * instance or pool. */
int region_apply(struct region *r, const struct region_event *ev, struct wall now,
    json_t **ret_reply, struct err *e);

#endif
