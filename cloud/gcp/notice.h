/* SPDX-License-Identifier: Apache-2.0
 *
 * Compute Engine's notices, from the metadata service: instance/preempted, and
 * instance/maintenance-event. Each is a request that is held until the value changes, for 10 s at
 * most, so a lost connection is not waited on for long.
 */
#ifndef BELAY_CLOUD_GCP_NOTICE_H
#define BELAY_CLOUD_GCP_NOTICE_H

#include "cloud/notice_reader.h"

extern const struct notice_provider gcp_notice_provider;

#endif
