/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes metrics as text: Prometheus' format 0.0.4, or OpenMetrics 1.0.0, which a scraper asks for
 * by its Accept header (https://prometheus.io/docs/specs/om/open_metrics_spec/).
 */
#ifndef BELAY_SCHEDULER_METRICS_EXPOSITION_H
#define BELAY_SCHEDULER_METRICS_EXPOSITION_H

#include "base/buf.h"
#include "base/histogram.h"
#include <stdbool.h>

#define METRIC_LABELS_MAX 4
#define METRIC_VALUE_MAX 128 /* bytes of a value; the rest is cut */

/* Labels of a sample: pool="gpu",market="spot". Zeroed: none. */
struct metric_labels {
    const char *names[METRIC_LABELS_MAX]; /* of static life */
    int n;
    char text[METRIC_LABELS_MAX * (2 * METRIC_VALUE_MAX + 24)];
};

/* Escapes the value. An empty one adds no label: to Prometheus both are the same. */
void metric_labels_add(struct metric_labels *l, const char *name, const char *value);

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

struct exposition {
    struct buf *out;
    bool open_metrics;
    const char *name; /* of the family begun last, without _total */
    enum metric_type type;
};

/* Begins a family; its samples follow. A counter's name is without _total. name is borrowed until
 * the next family. */
void exposition_family(
    struct exposition *x, enum metric_type type, const char *name, const char *help);
/* labels: their text, or "". */
void exposition_sample(struct exposition *x, const char *labels, double value);
void exposition_histogram(struct exposition *x, const char *labels, const struct histogram *h);
/* A family with one sample. */
void exposition_one(
    struct exposition *x, enum metric_type type, const char *name, const char *help, double value);
void exposition_end(struct exposition *x);
/* For the header of the reply. */
const char *exposition_content_type(const struct exposition *x);
/* Whether an Accept header prefers OpenMetrics; accept may be NULL. */
bool exposition_wants_open_metrics(const char *accept);

#endif
