/* SPDX-License-Identifier: Apache-2.0
 *
 * The quotas of a project, without any I/O: those of a region (regions.get) and those of all
 * regions (projects.get), and which of them a machine type counts against.
 *
 * Spot machines count against the PREEMPTIBLE_ quotas if the project has been granted any, else
 * against the standard ones. The families whose vCPUs are counted by CPUS_PER_VM_FAMILY are not in
 * these replies.
 */
#ifndef BELAY_CLOUD_GCP_GCE_QUOTAS_H
#define BELAY_CLOUD_GCP_GCE_QUOTAS_H

#include "base/buf.h"
#include "cloud/quotas.h"

/* Path below the project. That of projects.get is empty. */
void gce_path_region(const char *region, struct buf *out);

/* Adds the quotas of a region's or a project's reply to list. ERR_INVALID. */
int gce_parse_quotas(const char *body, size_t n, struct cloud_quota_values *list, struct err *e);

/* Adds the rows of the machine with this index: vCPUs, GPUs, and both in all regions, as far as the
 * replies have them. */
int gce_draw_quotas(const struct cloud_machine *m, size_t index, const char *region,
    const struct cloud_quota_values *of_region, const struct cloud_quota_values *of_project,
    struct cloud_quotas *rows, struct err *e);

#endif
