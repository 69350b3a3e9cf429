/* SPDX-License-Identifier: Apache-2.0
 *
 * The configured address of a provider's API or metadata service: a host, without anything that
 * could send a credential elsewhere.
 */
#ifndef BELAY_CLOUD_ENDPOINT_H
#define BELAY_CLOUD_ENDPOINT_H

#include "base/err.h"
#include <stddef.h>

/* Stores url without its last '/' in *ret_url (free it). ERR_CONFIG: not https://HOST[:PORT]/, or
 * plain http to a host other than this machine. */
int cloud_endpoint(const char *provider, const char *url, char **ret_url, struct err *e);

/* The same for a metadata service, which uses plain http; url may be NULL for the address `usual`.
 * ERR_CONFIG. */
int cloud_metadata(const char *usual, const char *url, char **ret_url, struct err *e);

/* The Host header that an HTTP client sends: without the scheme's default port. */
void cloud_endpoint_host(const char *endpoint, char *out, size_t size);

#endif
