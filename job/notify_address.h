/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses and URLs that users supply for notifications: submit --mail-user and --notify, and the
 * configuration. Pure.
 */
#ifndef BELAY_JOB_NOTIFY_ADDRESS_H
#define BELAY_JOB_NOTIFY_ADDRESS_H

#include "base/err.h"

#define NOTIFY_ADDRESS_MAX 254
#define NOTIFY_URL_MAX 2048
#define NOTIFY_HOST_MAX 256

/* Accepts "ann" or "ann@example.com": letters, digits and . _ % + = ~ -, at most one @. Nothing
 * that a program could read as an option, or as the end of a header. ERR_INVALID. */
int notify_check_address(const char *text, struct err *e);

/* Accepts http:// or https://, a host, no user and password; no blanks, quotes, backslashes and
 * control characters. ret_host (without brackets) may be NULL. ERR_INVALID, whose text has at most
 * the host: a URL may be a secret. */
int notify_check_url(const char *url, char ret_host[NOTIFY_HOST_MAX], struct err *e);

#endif
