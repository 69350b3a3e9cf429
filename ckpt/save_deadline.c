/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/save_deadline.h"
#include "base/time.h"

#define MIN_MS 1000
#define PART 10
#define FACTOR 1.5

int save_deadline_check(const struct save_deadline *l, struct err *e)
{
    int64_t unit = l->total_bytes < 1 << 30 ? 1 << 20 : 1 << 30;
    const char *name = unit == 1 << 20 ? "MiB" : "GiB";
    double reach = 0;
    char took[32];

    if (l->left_bytes == 0)
        return 0; /* nothing is left to do */
    if (l->time_left_ms > 0) {
        if (l->took_ms < MIN_MS || l->took_ms < (l->took_ms + l->time_left_ms) / PART)
            return 0;
        reach = (double)l->done_bytes * (double)l->time_left_ms / (double)l->took_ms;
        if ((double)l->left_bytes <= FACTOR * reach)
            return 0;
    }
    time_format_duration(l->took_ms, took, sizeof(took));
    return err_set(e, ERR_TIMEOUT,
        "%.1f of %.1f %s were stored in %s; %.1f %s too much for this notice",
        (double)(l->total_bytes - l->left_bytes) / (double)unit,
        (double)l->total_bytes / (double)unit, name, took,
        ((double)l->left_bytes - reach) / (double)unit, name);
}
