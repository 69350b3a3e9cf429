/* SPDX-License-Identifier: Apache-2.0
 *
 * The quotas of a subscription in a region (Microsoft.Compute/locations/usages), without any I/O,
 * and which of them a size counts against: spot machines against lowPriorityCores alone, others
 * against that of all cores and that of their family.
 *
 * Azure has no rule for the names of families. They are derived from the size and looked for in the
 * reply; a family that is not found has no row.
 */
#ifndef BELAY_CLOUD_AZURE_ARM_USAGES_H
#define BELAY_CLOUD_AZURE_ARM_USAGES_H

#include "cloud/azure/arm.h"
#include "cloud/quotas.h"

void arm_path_usages(const struct azure_machine *m, const char *region, struct buf *out);

/* Adds one page. *next receives the URL of the next (ARM_URL_MAX + 1 bytes), "" after the last.
 * ERR_INVALID. */
int arm_parse_usages(
    const char *body, size_t n, struct cloud_quota_values *list, char *next, struct err *e);

/* Adds the rows of the machine with this index. */
int arm_draw_usages(const struct cloud_machine *m, size_t index, const char *region,
    const struct cloud_quota_values *values, struct cloud_quotas *rows, struct err *e);

#endif
