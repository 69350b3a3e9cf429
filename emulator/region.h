/* SPDX-License-Identifier: Apache-2.0
 *
 * One emulated region of one provider: market, instances, faults, and the rules that bind them.
 * Pure: time is passed in and only moves forward, chance comes from the seed, and processes are
 * behind region_ops. After each call that takes a `now` the caller arms its timer for region_next.
 */
#ifndef BELAY_EMULATOR_REGION_H
#define BELAY_EMULATOR_REGION_H

#include "base/prng.h"
#include "emulator/instance.h"
#include "emulator/journal.h"
#include "emulator/region_event.h"
#include "emulator/volume.h"

#define REGION_ALIVE_MAX 1000       /* the account's quota of instances at a time */
#define REGION_INSTANCES_MAX 100000 /* and in all, because none is forgotten */

enum region_surplus { SURPLUS_NEWEST, SURPLUS_RANDOM };

struct region_script {
    int64_t at_ms; /* after the start */
    struct region_event event;
};

/* A volume that is there from the start, attached to nothing. */
struct region_volume {
    struct disk_spec spec;
    char zone[CLOUD_NAME_MAX];
    int64_t age_ms;
};

/* An instance's id, unique in the region, from random numbers. */
typedef void (*region_id_fn)(struct prng *ids, char *out, size_t size);

struct region_options {
    const char *provider;      /* "aws"; NULL: the same */
    char name[CLOUD_NAME_MAX]; /* "us-east-1" */
    char account[CLOUD_NAME_MAX];
    uint64_t seed;
    int64_t boot_delay_ms;
    int64_t notice_ms;            /* of a reclaim by the market, and of one that does not say */
    int64_t consistency_delay_ms; /* a new instance cannot be seen so long */
    /* the nodes' clocks are wrong by so much: metadata services tell earlier times */
    int64_t node_clock_ahead_ms;
    int64_t quota;                /* instances at a time; 0: REGION_ALIVE_MAX */
    enum region_surplus surplus;  /* who goes first when capacity shrinks */
    bool is_on_demand_only;       /* there are no spot instances */
    region_id_fn make_id;         /* NULL: EC2's form */
    struct region_script *script; /* borrowed; sorted by at_ms */
    size_t n_script;
    struct region_volume *volumes; /* borrowed */
    size_t n_volumes;
};

/* What the region asks of the world. Called inside region calls; they must not call back into the
 * region but for region_machine_gone where it says so. */
struct region_ops {
    /* The instance boots: start its processes. ERR: it ends with Server.InternalError. */
    int (*boot)(void *ctx, struct instance *i, struct err *e);
    /* i->deadline is known: kill it then, to the millisecond. */
    void (*doom)(void *ctx, struct instance *i);
    /* Tell it to shut down; it may still run until i->deadline. */
    void (*soft_off)(void *ctx, struct instance *i);
    /* End it: SIGTERM and SIGKILL a little later, or at once. region_machine_gone follows, not
     * inside. Only called on an instance whose boot succeeded. */
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
    struct journal *journal; /* of all regions of the emulator */
    struct prng prng;        /* for decisions */
    struct prng ids;         /* for ids of resources, and */
    struct prng request_ids; /* of requests: so that one more call changes nothing else */
    struct prng volume_ids;
    struct wall start, now;
    size_t script_next;
    struct reservation **reservations; /* by launch */
    size_t n_reservations;
    struct instance **instances; /* by launch */
    size_t n_instances;
    struct list alive;
    struct volume **volumes; /* by number */
    size_t n_volumes;
    int64_t n_volumes_ever;
    struct region_counts counts;
    /* What a provider has besides instances, for GET /state: a new value. NULL: nothing. */
    json_t *(*describe)(void *ctx, struct wall now);
    void *describe_ctx;
};

/* o and the journal are borrowed; the pools are taken. ops and ctx may be NULL for a world without
 * processes: then a shutdown ends an instance at once. */
void region_init(struct region *r, const struct region_options *o, struct journal *journal,
    struct market_pool *pools, size_t n_pools, const struct region_ops *ops, void *ctx,
    struct wall now);
void region_deinit(struct region *r); /* every machine must be gone */

const char *region_provider(const struct region *r);
/* To the journal, with the provider's name. details: an object, taken; NULL: nothing to add. */
void region_journal(struct region *r, struct wall at, const char *what, json_t *details);

/* Does what is due up to now, in order of time. */
void region_advance(struct region *r, struct wall now);
/* As the machines' metadata services tell it. */
static inline struct wall region_told_time(const struct region *r, struct wall at)
{
    return (struct wall){at.ms - r->o->node_clock_ahead_ms};
}
struct wall region_next(const struct region *r); /* WALL_NONE: nothing is due ever */

/* The reservation made under this token in the token's scope (the zone named in the call, "" for
 * none), or NULL. */
struct reservation *region_find_token(const struct region *r, const char *token, const char *zone);

/* Launches min .. max instances, as many as there is room for. spec is taken on success. spec->zone
 * "" lets the region choose. ERR_NO_CAPACITY: fewer than min. ERR_QUOTA. named_zone: the token's
 * scope. */
int region_launch(struct region *r, struct launch_spec *spec, const char *named_zone,
    const char *fingerprint, int64_t min, int64_t max, struct wall now,
    struct reservation **ret_reservation, struct err *e);

struct instance *region_find(const struct region *r, const char *id); /* NULL: none */
bool region_is_visible(const struct region *r, const struct instance *i, struct wall now);

/* By its owner. Harmless on one that has ended. */
void region_terminate(struct region *r, struct instance *i, struct wall now);

/* A machine under notice agrees to be taken back before its deadline. Harmless on any other. */
void region_accept_reclaim(struct region *r, struct instance *i, struct wall now);

/* The last process of a machine is gone, at died_at. is_power_off: it ended by itself. */
void region_machine_gone(
    struct region *r, struct instance *i, bool is_power_off, struct wall died_at, struct wall now);

/* For the caller: region_advance(now) before it and after it (a capacity that shrank reclaims in
 * the second). *ret_reply: what was done, a new object. ERR_NOT_FOUND: no such instance or pool. */
int region_apply(struct region *r, const struct region_event *ev, struct wall now,
    json_t **ret_reply, struct err *e);

#endif
