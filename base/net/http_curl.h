/* SPDX-License-Identifier: Apache-2.0
 *
 * One request as a curl easy handle: sets the options, interprets the outcome. Runs no loop.
 */
#ifndef BELAY_BASE_NET_HTTP_CURL_H
#define BELAY_BASE_NET_HTTP_CURL_H

#include "base/http.h"
#include <curl/curl.h>

struct http_curl {
    /* NULL at init to create one. A handle used before is reset; its connections are kept */
    CURL *easy;
    /* set before init: r->body is not copied and must stay valid until deinit */
    bool borrows_body;
    struct buf body; /* the copy of the body, unless borrows_body */
    struct curl_slist *headers, *connect_to;
    struct http_reply reply;
    size_t max_reply_bytes;
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    void *may_connect_ctx;
    bool is_too_large, has_head;
    char label[256]; /* "GET https://host:443/path" for errors: without query, user and password */
    char curl_error[CURL_ERROR_SIZE];
};

/* c is zeroed except for easy and borrows_body; it must not move until http_curl_deinit. Copies
 * what it needs of r. ERR_INVALID: r is malformed. */
int http_curl_init(struct http_curl *c, const struct http_request *r, struct err *e);
void http_curl_deinit(struct http_curl *c);

/* Interprets curl's outcome. On success c->reply is complete. After an error it has the part
 * received so far; its status is 0 if no status line arrived. */
int http_curl_result(struct http_curl *c, CURLcode code, struct err *e);

#endif
