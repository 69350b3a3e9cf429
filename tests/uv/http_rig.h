/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of the HTTP server: a plain request, and checks of replies.
 */
#ifndef BELAY_TESTS_UV_HTTP_RIG_H
#define BELAY_TESTS_UV_HTTP_RIG_H

#include "tests/uv/rig.h"
#include <string.h>

static const struct http_request plain = {0};

static inline int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static inline void assert_body(const struct outcome *o, int status, const char *body)
{
    if (o->kind != ERR_NONE)
        fail_msg("%s", o->text);
    assert_int_equal(o->status, status);
    assert_string_equal(buf_str(&o->body), body);
}

#endif
