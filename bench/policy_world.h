/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded spot availability for bench/policy.c: folders of traces, and which folders may be
 * learned from when another one is judged.
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
    uint16_t *class; /* of the zone alone, by the folder's borders */
    float *share, *rate;
    int64_t *record_ms;
};

struct folder {
    char name[64];
    size_t n;
    struct zone zones[ZONES_MAX];
    double judged_from; /* part of the time that is not judged */
    struct deadline_borders borders;
};

struct world {
    size_t n;
    struct folder folders[FOLDERS_MAX];
    size_t offsets;
    const char *only;
    bool in_hindsight;              /* learns from the judged time itself */
    const struct deadline_law *law; /* constants of belay's cap; NULL: belayd's default */
};

/* Prints the text and exits with 1. */
void policy_die(const char *text);

/* Loads all folders under DIR/availability. If there is none, says so and exits with 77. */
void policy_load(struct world *w, const char *dir);

/* Sets the borders to terciles of what may be learned for the folder. */
void policy_set_borders(
    const struct world *w, const struct folder *judged, struct deadline_borders *ret_borders);

/* Computes the class of each tick of each trace, from earlier ticks. */
void policy_classify(struct folder *f);

/* Observes n zones together for `ticks` ticks. counts (or NULL) learn from it. ret_classes (or
 * NULL): class of the set by tick. ret_offers (or NULL): class of each zone by tick. */
void policy_watch(const struct folder *f, const size_t *zones, size_t n, size_t ticks,
    const struct deadline_chain *single, struct deadline_counts *counts,
    const struct deadline_borders *borders, uint16_t *ret_classes, uint16_t **ret_offers);

/* Weight, in counts, that a row learned elsewhere keeps next to counts from closer to the job. */
#define POLICY_FADE 50

/* Counts the transitions of n zones together: elsewhere, faded, then those of the folder itself up
 * to tick `until`, from traces of length `like`. */
void policy_count(const struct world *w, const struct folder *judged, size_t n, size_t until,
    size_t like, const struct deadline_chain *single, struct deadline_counts *ret_counts);
/* The chain of these counts. */
void policy_learn(const struct world *w, const struct folder *judged, size_t n, size_t until,
    size_t like, const struct deadline_chain *single, struct deadline_chain *ret_chain);

#endif
