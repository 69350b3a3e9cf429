/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/metrics/series.h"

#include "base/mem.h"
#include <stdlib.h>

static struct series_one *put(struct series *s, const char *labels, const double *bounds)
{
    struct series_one *one = mem_alloc(sizeof *one);
    one->histogram.bounds = bounds;
    smap_put(&s->by_labels, labels, one);
    return one;
}

struct series_one *series_get(
    struct series *s, const struct metric_labels *labels, const double *bounds)
{
    struct series_one *one = smap_get(&s->by_labels, labels->text);
    if (one || smap_size(&s->by_labels) < SERIES_MAX)
        return one ? one : put(s, labels->text, bounds);
    struct metric_labels other = {0};
    for (int i = 0; i < labels->n; i++)
        metric_labels_add(&other, labels->names[i], "other");
    one = smap_get(&s->by_labels, other.text);
    return one ? one : put(s, other.text, bounds);
}

void series_write(const struct series *s, struct exposition *x)
{
    size_t at = 0;
    const char *labels;
    for (const struct series_one *one; (one = smap_next(&s->by_labels, &at, &labels));)
        if (x->type == METRIC_HISTOGRAM)
            exposition_histogram(x, labels, &one->histogram);
        else
            exposition_sample(x, labels, one->value);
}

void series_deinit(struct series *s)
{
    size_t at = 0;
    for (struct series_one *one; (one = smap_next(&s->by_labels, &at, NULL));)
        free(one);
    smap_deinit(&s->by_labels);
}
