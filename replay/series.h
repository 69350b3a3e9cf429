/* SPDX-License-Identifier: Apache-2.0
 *
 * How things stood over time, in few enough pieces for a plot: what had a level is averaged over
 * each piece, what was spent is summed. How long it will go on need not be known: when there is no
 * piece left, two become one.
 */
#ifndef BELAY_REPLAY_SERIES_H
#define BELAY_REPLAY_SERIES_H

#include <stddef.h>
#include <stdint.h>

#define SERIES_BINS 512
#define SERIES_BIN_MS 60000 /* at the beginning */

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
    int64_t bin_ms;                              /* 0: nothing yet */
    size_t n;                                    /* pieces that were reached */
    double level_ms[SERIES_LEVELS][SERIES_BINS]; /* level times time */
    double uusd[SERIES_BINS];
    int64_t levels[SERIES_LEVELS]; /* now, ... */
    int64_t since_ms;              /* ... since then */
};

/* From now on they are these; now_ms never goes back. */
void series_set(struct series *s, int64_t now_ms, const int64_t levels[SERIES_LEVELS]);
/* Spent evenly from .. to, 0 <= from <= to. */
void series_spend(struct series *s, int64_t from_ms, int64_t to_ms, int64_t uusd);

#endif
