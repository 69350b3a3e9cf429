/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the driver.
 */
#ifndef BELAY_CLOUD_GCP_LAUNCH_H
#define BELAY_CLOUD_GCP_LAUNCH_H

#include "cloud/gcp/call.h"

/* As in struct cloud_driver_ops. */
void gcp_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);

#endif
