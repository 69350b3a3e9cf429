/* SPDX-License-Identifier: Apache-2.0
 *
 * What a browser sends that signs in: a line with the header Cookie, then the body. A value that is
 * found is a cookie of that name in the header; a body that is refused leaves no secret.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "fuzz/check.h"
#include "scheduler/api/login/cookies.h"
#include "scheduler/api/login/session.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cookie(const char *header)
{
    char value[256] = "unset", *pair;
    bool found = cookie_find(header, LOGIN_COOKIE, value, sizeof(value));
    assert(cookie_find(NULL, LOGIN_COOKIE, value, sizeof(value)) == false);
    if (!found) {
        assert(str_eq(value, "unset"));
        return;
    }
    assert(value[0] && !strchr(value, ';'));
    pair = mem_printf(LOGIN_COOKIE "=%s", value);
    const char *at = strstr(header, pair);
    while (at && at != header && !strchr("; ", at[-1]))
        at = strstr(at + 1, pair);
    assert(at);
    free(pair);
}

static void check_body(const char *text, size_t size)
{
    static const char *const keys[] = {"token", "link"};
    json_t *v = NULL;
    if (json_parse(text, size, BODY_MAX, &v, NULL) != 0)
        return;
    for (size_t i = 0; i < 2; i++) {
        char secret[65];
        struct err e = {0};
        int rc = session_read_secret(v, keys[i], secret, sizeof(secret), &e);
        const char *sent = json_string_value(json_object_get(v, keys[i]));
        if (rc == 0) {
            assert(sent && str_eq(sent, secret) && json_object_size(v) == 1);
        } else {
            assert(secret[0] == '\0');
            check_error(rc, &e);
        }
    }
    json_wipe(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    char *body = strchr(text, '\n');
    if (body)
        *body++ = '\0';
    check_cookie(text);
    if (body)
        check_body(body, strlen(body));
    free(text);
    return 0;
}
