/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading trace files. All checks are here, so that the market can index without checks.
 */
#include "cloud/trace.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include <math.h>
#include <stdlib.h>

#define COUNT_MAX 1000000
#define GAP_S_MAX 86400
#define PRICE_USD_MAX 1e6

static int read_gap(const json_t *metadata, int64_t *ret_ms, struct err *e)
{
    const json_t *gap = json_object_get(metadata, "gap_seconds");
    double s = json_number_value(gap);
    if (!json_is_number(gap) || !(s >= 0.001 && s <= GAP_S_MAX))
        return err_set(e, ERR_INVALID,
            "trace: metadata.gap_seconds: expected a number in 0.001 .. %d", GAP_S_MAX);
    *ret_ms = llround(s * 1000);
    return 0;
}

static int read_counts(const json_t *data, struct trace *t, struct err *e)
{
    size_t n = json_array_size(data);
    if (n == 0 || n > TRACE_TICKS_MAX)
        return err_set(
            e, ERR_INVALID, "trace: data: expected an array of 1 .. %d integers", TRACE_TICKS_MAX);
    t->n = n;
    t->counts = mem_array(n, sizeof(*t->counts));
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(data, i);
        json_int_t count = json_integer_value(v);
        if (!json_is_integer(v) || count < 0 || count > COUNT_MAX)
            return err_set(
                e, ERR_INVALID, "trace: data[%zu]: expected an integer in 0 .. %d", i, COUNT_MAX);
        t->counts[i] = (int32_t)count;
    }
    return 0;
}

static int read_prices(const json_t *prices, struct trace *t, struct err *e)
{
    if (!json_is_array(prices) || json_array_size(prices) != t->n)
        return err_set(
            e, ERR_INVALID, "trace: prices: expected an array as long as data (%zu)", t->n);
    t->prices_uusd_h = mem_array(t->n, sizeof(*t->prices_uusd_h));
    for (size_t i = 0; i < t->n; i++) {
        const json_t *v = json_array_get(prices, i);
        double usd = json_number_value(v);
        if (!json_is_number(v) || !(usd >= 0 && usd <= PRICE_USD_MAX))
            return err_set(e, ERR_INVALID,
                "trace: prices[%zu]: expected dollars an hour in 0 .. %g", i, PRICE_USD_MAX);
        t->prices_uusd_h[i] = llround(usd * 1e6);
    }
    return 0;
}

int trace_parse(const char *text, size_t n, struct trace *ret_trace, struct err *e)
{
    struct trace t = {0};
    json_t *root = NULL;
    int rc = json_parse(text, n, TRACE_BYTES_MAX, &root, e);
    if (rc < 0)
        return rc;
    rc = read_gap(json_object_get(root, "metadata"), &t.gap_ms, e);
    if (rc == 0)
        rc = read_counts(json_object_get(root, "data"), &t, e);
    if (rc == 0 && json_object_get(root, "prices"))
        rc = read_prices(json_object_get(root, "prices"), &t, e);
    json_decref(root);
    if (rc < 0)
        trace_deinit(&t);
    else
        *ret_trace = t;
    return rc;
}

int trace_load(const char *path, struct trace *ret_trace, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(path, TRACE_BYTES_MAX, &text, e);
    if (rc == 0 && (rc = trace_parse(buf_str(&text), text.len, ret_trace, e)) < 0 && e)
        err_wrap(e, "%s", path);
    buf_deinit(&text);
    return rc;
}

void trace_deinit(struct trace *t)
{
    free(t->counts);
    free(t->prices_uusd_h);
    *t = (struct trace){0};
}
