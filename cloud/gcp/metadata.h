/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the clients of Google's metadata service: its address, and how to recognise its
 * replies.
 */
#ifndef BELAY_CLOUD_GCP_METADATA_H
#define BELAY_CLOUD_GCP_METADATA_H

#include "base/http.h"

#define GCP_METADATA_URL "http://169.254.169.254"
#define GCP_METADATA_ROOT "/computeMetadata/v1"
#define GCP_METADATA_HEADER "Metadata-Flavor: Google" /* sent, and required in replies */
#define GCP_METADATA_REPLY_MAX 65536

/* Returns 0 for a reply from Google with status 200. ERR_NOT_FOUND: 404. ERR_DENIED: 403, or not
 * Google's. ERR_UNAVAILABLE: any other, including a 5xx that is not Google's, because a proxy in
 * between may be temporary. */
int gcp_metadata_check(const char *path, const struct http_reply *reply, struct err *e);

#endif
