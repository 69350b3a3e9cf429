/* SPDX-License-Identifier: Apache-2.0
 *
 * The Date header of HTTP: what a server believes the time to be.
 */
#ifndef BELAY_CLOUD_HTTP_DATE_H
#define BELAY_CLOUD_HTTP_DATE_H

#include "base/time.h"

/* Reads "Sat, 22 Aug 2026 12:00:00 GMT" (IMF-fixdate, RFC 9110 section 5.6.7). text NULL or other:
 * ERR_INVALID. */
int http_date_parse(const char *text, struct wall *ret_wall, struct err *e);

#define HTTP_DATE_MAX 40                                       /* with the NUL */
void http_date_write(struct wall at, char out[HTTP_DATE_MAX]); /* in the same form */

#endif
