/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/series.h"

const char *const series_names[] = {"owned", "spot", "on_demand", "running", "waiting"};

static void halve(double *v)
{
    for (size_t i = 0; i < SERIES_BINS / 2; i++)
        v[i] = v[2 * i] + v[2 * i + 1];
    for (size_t i = SERIES_BINS / 2; i < SERIES_BINS; i++)
        v[i] = 0;
}

/* Extends the bins to that moment, merging pairs of them if necessary. */
static void reach(struct series *s, int64_t to_ms)
{
    if (s->bin_ms == 0)
        s->bin_ms = SERIES_BIN_MS;
    while (to_ms >= s->bin_ms * SERIES_BINS) {
        for (size_t k = 0; k < SERIES_LEVELS; k++)
            halve(s->level_ms[k]);
        halve(s->uusd);
        s->bin_ms *= 2;
        s->n = (s->n + 1) / 2;
    }
    if ((size_t)(to_ms / s->bin_ms) + 1 > s->n)
        s->n = (size_t)(to_ms / s->bin_ms) + 1;
}

/* Adds a_ms for each millisecond from from_ms to to_ms to its bin. */
static void add(const struct series *s, double *v, int64_t from_ms, int64_t to_ms, double a_ms)
{
    for (int64_t at = from_ms; at < to_ms;) {
        int64_t bin = at / s->bin_ms,
                end = (bin + 1) * s->bin_ms < to_ms ? (bin + 1) * s->bin_ms : to_ms;
        v[bin] += a_ms * (double)(end - at);
        at = end;
    }
}

void series_set(struct series *s, int64_t now_ms, const int64_t levels[SERIES_LEVELS])
{
    reach(s, now_ms);
    for (size_t k = 0; k < SERIES_LEVELS; k++) {
        if (s->levels[k] != 0)
            add(s, s->level_ms[k], s->since_ms, now_ms, (double)s->levels[k]);
        s->levels[k] = levels[k];
    }
    s->since_ms = now_ms;
}

void series_spend(struct series *s, int64_t from_ms, int64_t to_ms, int64_t uusd)
{
    reach(s, to_ms);
    if (to_ms > from_ms)
        add(s, s->uusd, from_ms, to_ms, (double)uusd / (double)(to_ms - from_ms));
    else
        s->uusd[from_ms / s->bin_ms] += (double)uusd;
}
