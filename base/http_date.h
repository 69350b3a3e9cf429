/* SPDX-License-Identifier: Apache-2.0
 *
 * Dates of HTTP, whatever the locale is: the Date header tells the server's clock.
 */
#ifndef BELAY_BASE_HTTP_DATE_H
#define BELAY_BASE_HTTP_DATE_H

#include "base/time.h"

/* Reads "Sat, 22 Aug 2026 12:00:00 GMT" (IMF-fixdate, RFC 9110 section 5.6.7). ERR_INVALID for any
 * other text and for NULL. */
int http_date_parse(const char *text, struct wall *ret_wall, struct err *e);

#define HTTP_DATE_MAX 40                                       /* including the NUL */
void http_date_write(struct wall at, char out[HTTP_DATE_MAX]); /* writes the same form */

#endif
