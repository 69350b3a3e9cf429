/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the target of an HTTP request ("/a%20b?x=1&y="). Pure; for the server.
 */
#ifndef BELAY_BASE_UV_HTTP_TARGET_H
#define BELAY_BASE_UV_HTTP_TARGET_H

#include "base/err.h"
#include "base/uv/http_server.h"

struct http_target {
    char *path; /* decoded; starts with '/' */
    struct {
        char *name, *value; /* decoded; value is "" if absent */
    } query[HTTP_QUERY_MAX];
    size_t n_query;
};

/* ERR_INVALID: does not start with '/', a malformed escape, a NUL, not UTF-8, more than
 * HTTP_QUERY_MAX pairs; *ret_target is then empty. Free with http_target_deinit. */
int http_target_parse(const char *raw, struct http_target *ret_target, struct err *e);
void http_target_deinit(struct http_target *t);

/* The first value with this name, or NULL. Borrowed. */
const char *http_target_query(const struct http_target *t, const char *name);

#endif
