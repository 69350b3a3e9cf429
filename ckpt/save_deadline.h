/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a save can finish in time, judged by its progress. Pure.
 */
#ifndef BELAY_CKPT_SAVE_DEADLINE_H
#define BELAY_CKPT_SAVE_DEADLINE_H

#include "base/err.h"
#include <stdint.h>

struct save_deadline {
    int64_t total_bytes; /* of content */
    int64_t left_bytes;  /* part still to be read and stored */
    int64_t done_bytes;  /* read and stored in took_ms */
    int64_t took_ms, time_left_ms;
};

/* Returns 0, or ERR_TIMEOUT "1.2 of 4.0 GiB were stored in 27s; 1.9 GiB too much for this notice":
 * the time is over, or the rest would be late even at one and a half times the speed so far. The
 * speed is not judged in the first second, or tenth of the time: giving up a save that would have
 * been in time loses work, while giving up late only delays other saves. */
int save_deadline_check(const struct save_deadline *l, struct err *e);

#endif
