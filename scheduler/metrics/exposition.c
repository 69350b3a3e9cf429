/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/metrics/exposition.h"

#include "base/str.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

void metric_labels_add(struct metric_labels *l, const char *name, const char *value)
{
    assert(l->n < METRIC_LABELS_MAX);
    if (!value[0])
        return;
    size_t at = strlen(l->text);
    at += (size_t)snprintf(l->text + at, sizeof l->text - at, "%s%s=\"", at ? "," : "", name);
    for (size_t i = 0; value[i] && i < METRIC_VALUE_MAX; i++) {
        if (value[i] == '\\' || value[i] == '"' || value[i] == '\n')
            l->text[at++] = '\\';
        l->text[at++] = value[i] == '\n' ? 'n' : value[i];
    }
    l->text[at++] = '"';
    l->text[at] = '\0';
    l->names[l->n++] = name;
}

void exposition_family(
    struct exposition *x, enum metric_type type, const char *name, const char *help)
{
    static const char *const types[] = {"gauge", "counter", "histogram"};
    const char *end = type == METRIC_COUNTER && !x->open_metrics ? "_total" : "";
    x->name = name;
    x->type = type;
    buf_printf(x->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help, name, end, types[type]);
}

static void add(struct exposition *x, const char *end, const char *labels, double value)
{
    const bool any = labels[0];
    buf_printf(
        x->out, "%s%s%s%s%s %.15g\n", x->name, end, any ? "{" : "", labels, any ? "}" : "", value);
}

void exposition_sample(struct exposition *x, const char *labels, double value)
{
    add(x, x->type == METRIC_COUNTER ? "_total" : "", labels, value);
}

void exposition_histogram(struct exposition *x, const char *labels, const struct histogram *h)
{
    const char *comma = labels[0] ? "," : "";
    int64_t below = 0;
    for (int i = 0; i < HISTOGRAM_BOUNDS; i++) {
        below += h->counts[i];
        buf_printf(x->out, "%s_bucket{%s%sle=\"%.12g\"} %lld\n", x->name, labels, comma,
            h->bounds[i], (long long)below);
    }
    below += h->counts[HISTOGRAM_BOUNDS];
    buf_printf(
        x->out, "%s_bucket{%s%sle=\"+Inf\"} %lld\n", x->name, labels, comma, (long long)below);
    add(x, "_sum", labels, h->sum);
    add(x, "_count", labels, (double)below);
}

void exposition_one(
    struct exposition *x, enum metric_type type, const char *name, const char *help, double value)
{
    exposition_family(x, type, name, help);
    exposition_sample(x, "", value);
}

void exposition_end(struct exposition *x)
{
    if (x->open_metrics)
        buf_adds(x->out, "# EOF\n");
}

const char *exposition_content_type(const struct exposition *x)
{
    return x->open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                           : "text/plain; version=0.0.4; charset=utf-8";
}

bool exposition_wants_open_metrics(const char *accept)
{
    return accept && strstr(accept, "application/openmetrics-text") != NULL;
}
