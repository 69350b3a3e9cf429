/* SPDX-License-Identifier: Apache-2.0
 *
 * What is the same for whoever talks to Google's metadata service: its address, and how to know
 * that it is it.
 */
#ifndef BELAY_CLOUD_GCP_METADATA_H
#define BELAY_CLOUD_GCP_METADATA_H

#include "base/http.h"

#define GCP_METADATA_URL "http://169.254.169.254"
#define GCP_METADATA_ROOT "/computeMetadata/v1"
#define GCP_METADATA_HEADER "Metadata-Flavor: Google" /* to be sent, and to come back */
#define GCP_METADATA_REPLY_MAX 65536

/* 0: the reply is Google's, and 200. ERR_NOT_FOUND: 404. ERR_DENIED: 403, or not Google's.
 * ERR_UNAVAILABLE: any other, also a 5xx that is not Google's: who is in between may be there for a
 * moment only. */
int gcp_metadata_check(const char *path, const struct http_reply *reply, struct err *e);

#endif
