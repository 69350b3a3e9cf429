/* SPDX-License-Identifier: Apache-2.0
 *
 * The address of a provider's API, or of a metadata service, as configured: a host, and nothing
 * that could send a credential elsewhere.
 */
#ifndef BELAY_CLOUD_ENDPOINT_H
#define BELAY_CLOUD_ENDPOINT_H

#include "base/err.h"
#include <stddef.h>

/* Stores url without its last '/' in *ret_url (free it). ERR_CONFIG: not https://HOST[:PORT]/, or
 * plain http to another host than this one. */
int cloud_endpoint(const char *provider, const char *url, char **ret_url, struct err *e);

/* The same for a metadata service, which is plain http: at `usual`, or at url if that is not NULL.
 * ERR_CONFIG. */
int cloud_metadata(const char *usual, const char *url, char **ret_url, struct err *e);

/* The Host header that an HTTP client sends for it: without the scheme's own port. */
void cloud_endpoint_host(const char *endpoint, char *out, size_t size);

#endif
