/* SPDX-License-Identifier: Apache-2.0
 *
 * Playing one job on recorded spot availability, for bench/policy.c and bench/policy_choose.c. What
 * is played, and how, stands in the former.
 */
#ifndef BELAY_BENCH_POLICY_PLAY_H
#define BELAY_BENCH_POLICY_PLAY_H

#include "bench/policy_world.h"

#define WORK_MS (48 * HOUR_MS)
#define SURE_UUSD_H 3000000
#define CAP 0.1 /* of on-demand only, that a window may be dearer than Uniform Progress */
#define SLACK_STEPS_MAX (32 * 6)
#define WORK_STEPS_MAX (49 * 6)

#define DEADLINES 4
#define RESTARTS 3
#define PRICES 2
extern const int64_t policy_deadlines_h[DEADLINES], policy_restarts_ms[RESTARTS];
extern const double policy_prices[PRICES]; /* of spot, on-demand is 1 */

struct setting {
    int64_t deadline_ms, restart_ms;
    double price;
};

/* Offers that one job may use, in parallel. */
struct group {
    const struct folder *f;
    size_t n, ticks, from;
    size_t zones[ZONES_MAX];
    uint16_t *set_class;        /* by tick, of the offer set */
    uint16_t *class[ZONES_MAX]; /* of each zone, among these */
};

/* One more zone of the folder for the group. */
void policy_add_zone(struct group *g, const struct folder *f, size_t z);

/* The groups that a folder has: its zones one by one, and the zones of each type together (those of
 * other lengths than the last began at another time). Arrays of ZONES_MAX, zeroed; the number of
 * them. */
size_t policy_singles(const struct folder *f, struct group *groups);
size_t policy_types(const struct folder *f, struct group *groups);

/* What is known by when: a table for each epoch of a folder's time, learned from what was
 * before. */
#define EPOCH_MS (96 * HOUR_MS)
#define EPOCHS_MAX 64

struct known {
    size_t n;
    int64_t tick_ms;
    struct deadline_chain single[EPOCHS_MAX], chain[EPOCHS_MAX];
    struct deadline_table table[EPOCHS_MAX];
};

/* Of groups with as many offers each; the groups are told their classes. */
void policy_known_init(
    const struct world *w, struct group *groups, size_t n_groups, struct known *ret_known);
void policy_known_deinit(struct group *groups, size_t n_groups, struct known *k);
/* The tables, for a restart and a price. */
void policy_tables_init(struct known *k, int64_t restart_ms, double price);
void policy_tables_deinit(struct known *k);

struct played {
    double cost_ms; /* in ms on demand */
    bool late;
    size_t starts;
    int64_t spot_ms, sure_ms; /* paid for */
};

/* Where the i-th of w->offsets windows begins. */
size_t policy_offset(
    const struct world *w, const struct group *g, const struct setting *s, size_t i);

/* law: under a cap that is kept so; NULL: under none. */
struct played policy_play(const struct group *g, size_t from, const struct setting *s,
    const struct deadline_policy *rule, const struct deadline_law *law, const struct known *known);

/* The grid, for each folder that is judged whole. */
void policy_choose(const struct world *w);

#endif
