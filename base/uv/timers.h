/* SPDX-License-Identifier: Apache-2.0
 *
 * base/timers.h on libuv.
 */
#ifndef BELAY_BASE_UV_TIMERS_H
#define BELAY_BASE_UV_TIMERS_H

#include "base/timers.h"
#include <uv.h>

/* Timers on loop, one uv_timer_t each. uv_timers_destroy stops all running timers; run the loop
 * once more after it so that the handles close. */
struct timers *uv_timers_create(uv_loop_t *loop);
void uv_timers_destroy(struct timers *ts);

#endif
