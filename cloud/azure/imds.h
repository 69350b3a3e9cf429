/* SPDX-License-Identifier: Apache-2.0
 *
 * Where Azure's instance metadata service is, and what every request to it carries.
 */
#ifndef BELAY_CLOUD_AZURE_IMDS_H
#define BELAY_CLOUD_AZURE_IMDS_H

#include "base/err.h"

#define AZURE_IMDS_URL "http://169.254.169.254"
#define AZURE_IMDS_HEADER "Metadata: true" /* refused without: a redirected browser does not send it */
#define AZURE_IMDS_REPLY_MAX (256 * 1024)

/* Stores the URL without its last '/' in *ret_url (free it); NULL: the real one. ERR_CONFIG: not http://HOST[:PORT]. */
int azure_imds_url(const char *given, char **ret_url, struct err *e);

#endif
