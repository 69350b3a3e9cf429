/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a save can be in time, from what it has stored so far. Pure.
 */
#ifndef BELAY_CKPT_LATE_H
#define BELAY_CKPT_LATE_H

#include "base/err.h"
#include <stdint.h>

struct late {
    int64_t total_bytes; /* of content */
    int64_t left_bytes;  /* of them, still to be read and stored */
    int64_t done_bytes;  /* read and stored in took_ms */
    int64_t took_ms, time_left_ms;
};

/* 0, or ERR_TIMEOUT "1.2 of 4.0 GiB were stored in 27s; 1.9 GiB too much for this notice": the time
 * is over, or the rest would not be done in it at one and a half times the speed so far. Of the
 * speed nothing is said in the first second, or tenth of the time: to give up a save that would
 * have been in time costs work, to give one up late costs only what others could have stored
 * meanwhile. */
int late_check(const struct late *l, struct err *e);

#endif
