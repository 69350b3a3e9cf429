/* SPDX-License-Identifier: Apache-2.0
 *
 * The series of one family of metrics, by their labels. Users choose some labels (teams), so their
 * number is limited: beyond SERIES_MAX, a new combination is counted with all its labels as
 * "other".
 */
#ifndef BELAY_SCHEDULER_METRICS_SERIES_H
#define BELAY_SCHEDULER_METRICS_SERIES_H

#include "base/map.h"
#include "scheduler/metrics/exposition.h"

#define SERIES_MAX 1000

/* Zeroed is empty. */
struct series {
    struct smap by_labels;
};

struct series_one {
    double value;
    struct histogram histogram;
};

/* Returns the series with these labels; makes it if there is none. bounds: of its histogram, or
 * NULL. Valid until series_deinit. */
struct series_one *series_get(
    struct series *s, const struct metric_labels *labels, const double *bounds);
/* Writes the samples of a family begun as `type`, in no particular order. */
void series_write(const struct series *s, struct exposition *x);
void series_deinit(struct series *s);

#endif
