/* SPDX-License-Identifier: Apache-2.0
 *
 * One request as a curl easy handle: options in, outcome out. No loop here.
 */
#ifndef BELAY_BASE_NET_HTTP_CURL_H
#define BELAY_BASE_NET_HTTP_CURL_H

#include "base/http.h"
#include <curl/curl.h>

struct http_curl {
    /* NULL at init: a new one is made. One that was used before is reset; its connections stay */
    CURL *easy;
    /* set before init: r->body stays where it is until deinit, and is not copied */
    bool borrows_body;
    struct buf body; /* else its copy */
    struct curl_slist *headers, *connect_to;
    struct http_reply reply;
    size_t max_reply_bytes;
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    void *may_connect_ctx;
    bool is_too_large, has_head;
    char label[256]; /* "GET https://host:443/path" for errors: without query, user and password */
    char curl_error[CURL_ERROR_SIZE];
};

/* c zeroed but for what is said above; must not move until http_curl_deinit. Copies what it needs
 * of r. ERR_INVALID: r is malformed. */
int http_curl_init(struct http_curl *c, const struct http_request *r, struct err *e);
void http_curl_deinit(struct http_curl *c);

/* What curl's outcome means; 0: c->reply is good. Else it is what came until then: its status is 0
 * if that was not even a status line. */
int http_curl_result(struct http_curl *c, CURLcode code, struct err *e);

#endif
