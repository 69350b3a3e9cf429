/* SPDX-License-Identifier: Apache-2.0
 *
 * The quotas of a project, without any I/O: those of a region (regions.get) and those of all
 * regions (projects.get), and which of them a machine type counts against.
 *
 * Spot machines count against the PREEMPTIBLE_ quotas if the project has been granted any, else
 * against the standard ones. The vCPUs of newer families, which are not in these replies, are
 * counted by CPUS_PER_VM_FAMILY, whose limits the Cloud Quotas API has (quotaInfos.get, v1:
 * cloud.google.com/docs/quotas/reference/rest). It does not say what is used of them.
 */
#ifndef BELAY_CLOUD_GCP_GCE_QUOTAS_H
#define BELAY_CLOUD_GCP_GCE_QUOTAS_H

#include "base/buf.h"
#include "cloud/quotas.h"

/* Path below the project. That of projects.get is empty. */
void gce_path_region(const char *region, struct buf *out);

/* Adds the quotas of a region's or a project's reply to list. ERR_INVALID. */
int gce_parse_quotas(const char *body, size_t n, struct cloud_quota_values *list, struct err *e);

/* Path of CPUS_PER_VM_FAMILY below the project. */
void gce_path_family_quota(struct buf *out);
/* Adds the limits in the region from that reply: "CPUS_PER_VM_FAMILY C4", and "CPUS_PER_VM_FAMILY"
 * for families that have none of their own. ERR_INVALID. */
int gce_parse_family_quota(
    const char *body, size_t n, const char *region, struct cloud_quota_values *list, struct err *e);
/* Whether the region's reply lacks the quota of the machine's vCPUs. */
bool gce_needs_family_quota(
    const struct cloud_machine *m, const struct cloud_quota_values *of_region);

/* Adds the rows of the machine with this index: vCPUs, GPUs, and both in all regions, as far as the
 * replies have them. of_region may have those of gce_parse_family_quota too. */
int gce_draw_quotas(const struct cloud_machine *m, size_t index, const char *region,
    const struct cloud_quota_values *of_region, const struct cloud_quota_values *of_project,
    struct cloud_quotas *rows, struct err *e);

#endif
