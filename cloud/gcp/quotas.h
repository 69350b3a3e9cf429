/* SPDX-License-Identifier: Apache-2.0
 *
 * The gcp driver's quotas; see cloud_driver_ops.quotas.
 */
#ifndef BELAY_CLOUD_GCP_QUOTAS_H
#define BELAY_CLOUD_GCP_QUOTAS_H

#include "cloud/driver.h"

void gcp_quotas(struct cloud_driver *d, const char *region, const struct cloud_machine *machines,
    size_t n_machines, cloud_quotas_fn done, void *ctx);

#endif
