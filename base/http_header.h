/* SPDX-License-Identifier: Apache-2.0
 *
 * A header of an HTTP request, borrowed.
 */
#ifndef BELAY_BASE_HTTP_HEADER_H
#define BELAY_BASE_HTTP_HEADER_H

struct http_header {
    const char *name;  /* in any case */
    const char *value; /* one line */
};

#endif
