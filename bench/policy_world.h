/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded spot availability for bench/policy.c: folders of traces, and what is learned from which
 * of them about which.
 */
#ifndef BELAY_BENCH_POLICY_WORLD_H
#define BELAY_BENCH_POLICY_WORLD_H

#include "scheduler/core/deadline/baseline.h"

#define HOUR_MS 3600000LL
#define ZONES_MAX 16
#define FOLDERS_MAX 16
#define N_OF(a) (sizeof(a) / sizeof(a)[0])

struct zone {
    char name[64];
    size_t n;
    int64_t tick_ms;
    uint8_t *up;
    uint16_t *class; /* alone, as the folder's borders have it */
    float *share, *rate;
};

struct folder {
    char name[64];
    size_t n;
    struct zone zones[ZONES_MAX];
    double judged_from; /* part of the time */
    struct deadline_borders borders;
};

struct world {
    size_t n;
    struct folder folders[FOLDERS_MAX];
    size_t offsets;
    const char *only;
    const struct deadline_law *law; /* by which belay is judged; NULL: belayd's */
};

/* Says so and ends. */
void policy_die(const char *text);

/* All folders under DIR/availability; without any it says so and exits with 77. */
void policy_load(struct world *w, const char *dir);

/* Terciles of what may teach about the folder. */
void policy_set_borders(
    const struct world *w, const struct folder *judged, struct deadline_borders *ret_borders);

/* What each tick of each trace is known as when it comes. */
void policy_classify(struct folder *f);

/* n zones looked at together for so many ticks: counts (or NULL) learn from it, ret_classes (or
 * NULL) is the set's class by tick, ret_offers (or NULL) that of each of them. */
void policy_watch(const struct folder *f, const size_t *zones, size_t n, size_t ticks,
    const struct deadline_chain *single, struct deadline_counts *counts,
    const struct deadline_borders *borders, uint16_t *ret_classes, uint16_t **ret_offers);

/* Of n zones together: counts from elsewhere, faded, and then of the folder itself up to a tick, of
 * traces as long as `like`. */
void policy_learn(const struct world *w, const struct folder *judged, size_t n, size_t until,
    size_t like, const struct deadline_chain *single, struct deadline_chain *ret_chain);

#endif
