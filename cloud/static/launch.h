/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the driver.
 */
#ifndef BELAY_CLOUD_STATIC_LAUNCH_H
#define BELAY_CLOUD_STATIC_LAUNCH_H

#include "cloud/static/call.h"

/* As in struct cloud_driver_ops. */
void static_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);
/* Frees what is remembered of unanswered claims. */
void static_forget_doubts(struct static_driver *d);

#endif
