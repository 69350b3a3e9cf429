/* SPDX-License-Identifier: Apache-2.0
 *
 * Levels and spending over time, in few enough bins for a plot: levels are averaged over each bin,
 * spending is summed. The total duration need not be known: when the bins are used up, pairs of
 * them are merged.
 */
#ifndef BELAY_REPLAY_SERIES_H
#define BELAY_REPLAY_SERIES_H

#include <stddef.h>
#include <stdint.h>

#define SERIES_BINS 512
#define SERIES_BIN_MS 60000 /* initially */

enum series_level {
    SERIES_OWNED,
    SERIES_SPOT,
    SERIES_ON_DEMAND,
    SERIES_RUNNING,
    SERIES_WAITING,
    SERIES_LEVELS
};
extern const char *const series_names[]; /* "owned" "spot" "on_demand" "running" "waiting" */

/* Zeroed is empty. */
struct series {
    int64_t bin_ms;                              /* 0 = empty */
    size_t n;                                    /* bins reached */
    double level_ms[SERIES_LEVELS][SERIES_BINS]; /* level times time */
    double uusd[SERIES_BINS];
    int64_t levels[SERIES_LEVELS]; /* current levels */
    int64_t since_ms;              /* since when the levels are current */
};

/* Sets the current levels; now_ms never goes back. */
void series_set(struct series *s, int64_t now_ms, const int64_t levels[SERIES_LEVELS]);
/* Spending, spread evenly over from .. to, 0 <= from <= to. */
void series_spend(struct series *s, int64_t from_ms, int64_t to_ms, int64_t uusd);

#endif
