/* SPDX-License-Identifier: Apache-2.0
 *
 * Cookies of browsers (RFC 6265), and which calls one may make.
 */
#include "scheduler/api/api_private.h"

#include <string.h>

bool api_cookie(struct http_exchange *x, const char *name, char *out, size_t size)
{
    const char *at = http_request_header(x, "Cookie");
    size_t n = strlen(name);
    while (at && *at) {
        at += strspn(at, "; ");
        size_t len = strcspn(at, ";");
        if (len > n && at[n] == '=' && strncmp(at, name, n) == 0) {
            const char *value = at + n + 1;
            len -= n + 1;
            if (len == 0 || len >= size)
                return false;
            memcpy(out, value, len);
            out[len] = '\0';
            return true;
        }
        at += len;
    }
    return false;
}

bool api_cookie_may(struct http_exchange *x, const struct http_server_request *r)
{
    const char *origin = http_request_header(x, "Origin"), *host = http_request_header(x, "Host");
    if (str_eq(r->method, "GET"))
        return true;
    return origin && host && str_starts(origin, "https://") &&
           str_eq(origin + strlen("https://"), host);
}
