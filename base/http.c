/* SPDX-License-Identifier: Apache-2.0 */
#include "base/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *http_reply_header(const struct http_reply *r, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < r->n_headers; i++) {
        const char *h = r->headers[i];
        if (strncasecmp(h, name, n) == 0 && h[n] == ':')
            return h + n + 1 + strspn(h + n + 1, " \t");
    }
    return NULL;
}

void http_reply_clear_headers(struct http_reply *r)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        explicit_bzero(r->headers[i], strlen(r->headers[i]));
        free(r->headers[i]);
    }
    r->n_headers = 0;
}

void http_reply_deinit(struct http_reply *r)
{
    http_reply_clear_headers(r);
    buf_wipe(&r->body);
    r->status = 0;
}
