/* SPDX-License-Identifier: Apache-2.0
 *
 * Cookies of browsers (RFC 6265), and which calls may be made with one (login/session.h).
 */
#include "scheduler/api/login/cookies.h"

#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

bool cookie_find(const char *header, const char *name, char *out, size_t size)
{
    const char *at = header;
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

bool api_cookie(struct http_exchange *x, const char *name, char *out, size_t size)
{
    return cookie_find(http_request_header(x, "Cookie"), name, out, size);
}

bool api_is_own_origin(const struct request *q)
{
    const char *origin = http_request_header(q->x, "Origin");
    const char *host = http_request_header(q->x, "Host");
    const char *scheme = q->is_loopback ? "http://" : "https://";
    if (!origin || !host)
        return false;
    return str_eq(origin, q->api->server_url) ||
           (str_starts(origin, scheme) && str_eq(origin + strlen(scheme), host));
}

void api_csrf(const struct api *a, const char *token, char out[SEAL_MAC_HEX + 1])
{
    char *text = mem_printf("csrf:%s", token);
    sealer_mac(a->o.sealer, text, out);
    explicit_bzero(text, strlen(text));
    free(text);
}

bool api_cookie_may(const struct request *q, const char *token, struct err *e)
{
    char csrf[SEAL_MAC_HEX + 1];
    const char *sent = http_request_header(q->x, "X-CSRF-Token");
    if (str_eq(q->r->method, "GET"))
        return true;
    if (!api_is_own_origin(q)) {
        err_set(e, ERR_DENIED,
            "a call that changes something was made for a browser by another site: Origin must be "
            "this server's");
        return false;
    }
    api_csrf(q->api, token, csrf);
    if (sent && str_secret_eq(csrf, sent))
        return true;
    err_set(e, ERR_DENIED,
        "X-CSRF-Token: a call that changes something and is made with a cookie needs the csrf of "
        "GET /api/v1/whoami");
    return false;
}
