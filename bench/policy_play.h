/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulates one job on recorded spot availability, for bench/policy.c, which describes the
 * simulation, bench/policy_choose.c and bench/policy_regimes.c.
 */
#ifndef BELAY_BENCH_POLICY_PLAY_H
#define BELAY_BENCH_POLICY_PLAY_H

#include "bench/policy_world.h"

#define WORK_MS (48 * HOUR_MS)
#define SURE_UUSD_H 3000000
#define SLACK_STEPS_MAX (32 * 6)
#define WORK_STEPS_MAX (49 * 6)
/* Caps, as parts of on-demand only: as in procurement_usual, and a strict one. */
#define SHIPPED_CAP 0.35
#define TIGHT_CAP 0.1

#define DEADLINES 4
#define RESTARTS 3
#define PRICES 2
/* The part of a restart that a move does not overlap: save, restore, start of the program. */
#define SWITCH_MS 60000
extern const int64_t policy_deadlines_h[DEADLINES], policy_restarts_ms[RESTARTS];
extern const double policy_prices[PRICES]; /* of spot, relative to on-demand */

struct setting {
    int64_t work_ms, deadline_ms, restart_ms;
    double price;
    /* The first part of a restart, during which a job under belay's rule that moves from on-demand
     * to spot computes on; both machines are paid. Under the other rules it leaves on-demand first,
     * as published. */
    int64_t boot_ms;
};

/* With WORK_MS of work, without a deadline; all of a restart but the switch is overlapped. */
struct setting policy_setting(int64_t restart_ms, double price);

/* Offers that one job may use. */
struct group {
    const struct folder *f;
    size_t n, ticks, from;
    size_t zones[ZONES_MAX];
    uint16_t *set_class;        /* by tick, of the offer set */
    uint16_t *class[ZONES_MAX]; /* of each zone, relative to the group */
};

/* Adds zone z of the folder to the group. */
void policy_add_zone(struct group *g, const struct folder *f, size_t z);

/* Build the groups of a folder: each zone alone; the zones of each type together; or those of each
 * type and region. Without zones whose trace differs in length from the last one's, because they
 * began at another time. groups: zeroed, an array of ZONES_MAX. Return the number of groups. */
size_t policy_singles(const struct folder *f, struct group *groups);
size_t policy_types(const struct folder *f, struct group *groups);
size_t policy_regions(const struct folder *f, struct group *groups);
/* The length of the region's name, at the beginning of the zone's. */
size_t policy_region_length(const struct zone *z);

/* What is known at each time: a table for each epoch of a folder, learned from earlier times. */
#define EPOCH_MS (96 * HOUR_MS)
#define EPOCHS_MAX 64

struct known {
    size_t n;
    int64_t tick_ms, begins_ms[EPOCHS_MAX];
    struct deadline_chain single[EPOCHS_MAX], chain[EPOCHS_MAX];
    struct deadline_table table[EPOCHS_MAX];
};

/* Computes the chains of all epochs, and the classes of the groups, which have equally many
 * offers. */
void policy_known_init(
    const struct world *w, struct group *groups, size_t n_groups, struct known *ret_known);
void policy_known_deinit(struct group *groups, size_t n_groups, struct known *k);
/* Computes the tables of all epochs for the restart, the boot and the price of a setting. */
void policy_tables_init(struct known *k, const struct setting *s);
void policy_tables_deinit(struct known *k);

struct played {
    double cost_ms; /* in ms of on-demand */
    bool late;
    size_t starts, moves;     /* moves: starts that left on-demand for spot */
    int64_t spot_ms, sure_ms; /* paid time on spot, and on on-demand with any boot beside it */
};

/* Returns the tick at which the i-th of w->offsets windows begins. */
size_t policy_offset(
    const struct world *w, const struct group *g, const struct setting *s, size_t i);

/* Returns the lowest possible cost of the job, in ms of on-demand, if the future is known. */
double policy_optimum(const struct group *g, size_t from, const struct setting *s);

/* Maximum extra cost over Uniform Progress in a window, as a part of on-demand only, and how it is
 * kept; law NULL: no cap. */
struct capped {
    double cap;
    const struct deadline_law *law;
    enum deadline_rule baseline;
};

/* Simulates one job. */
struct played policy_play(const struct group *g, size_t from, const struct setting *s,
    const struct deadline_policy *rule, const struct capped *capped, const struct known *known);

/* Prints what restarts of different lengths cost (policy_restarts.c). */
void policy_price_restarts(const struct world *w);
/* Judges the rules on synthetic regimes of availability. */
void policy_regimes(const struct world *w);

/* Tries all sets of constants on each folder of which all time is judged. */
void policy_choose(const struct world *w);

#endif
