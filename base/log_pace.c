/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_pace.h"

bool log_pace_admits(struct log_pace *p, struct mono now, int64_t *ret_left_out)
{
    if (p->n_lines == 0 || now.ms - p->since.ms >= LOG_PACE_MS) {
        p->since = now;
        p->n_lines = 0;
    }
    if (p->n_lines == LOG_PACE_LINES) {
        p->n_left_out++;
        return false;
    }
    p->n_lines++;
    *ret_left_out = p->n_left_out;
    p->n_left_out = 0;
    return true;
}
