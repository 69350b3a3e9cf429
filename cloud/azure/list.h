/* SPDX-License-Identifier: Apache-2.0
 *
 * Listings of the driver.
 */
#ifndef BELAY_CLOUD_AZURE_LIST_H
#define BELAY_CLOUD_AZURE_LIST_H

#include "cloud/azure/call.h"

/* As in struct cloud_driver_ops. */
void azure_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx);

#endif
