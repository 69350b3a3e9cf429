/* SPDX-License-Identifier: Apache-2.0
 *
 * Compute Engine's notices, from the metadata service: instance/preempted and
 * instance/maintenance-event. Each request is parked by the service until the value changes, at
 * most for 10 s, so that a lost connection is noticed soon.
 */
#ifndef BELAY_CLOUD_GCP_NOTICE_H
#define BELAY_CLOUD_GCP_NOTICE_H

#include "cloud/notice_reader.h"

extern const struct notice_provider gcp_notice_provider;

#endif
