/* SPDX-License-Identifier: Apache-2.0
 *
 * Child processes as a struct runner (base/runner.h) on a loop.
 */
#ifndef BELAY_BASE_UV_RUNNER_H
#define BELAY_BASE_UV_RUNNER_H

#include "base/runner.h"
#include <uv.h>

struct runner *uv_runner_create(uv_loop_t *loop);
/* Kills running programs; their done callbacks run inside, with ERR_CANCELLED. Run the loop once
 * more so that the handles close. Must not be called inside a done callback. r may be NULL. */
void uv_runner_destroy(struct runner *r);

#endif
