/* SPDX-License-Identifier: Apache-2.0
 *
 * The target of an HTTP request, strictly. Any other form is refused, so that a request cannot mean
 * one thing here and another to a proxy or a signature check.
 */
#include "base/uv/http_target.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

static int decode(
    const char *s, size_t n, bool form, const char *what, char **ret_text, struct err *e)
{
    struct buf b = {0};
    int rc = str_url_decode(&b, s, n, form, e);
    if (rc < 0) {
        err_wrap(e, "the request's %s", what);
        goto out;
    }
    if (!str_is_utf8(buf_str(&b), b.len)) {
        rc = err_set(e, ERR_INVALID, "the request's %s is not UTF-8", what);
        goto out;
    }
    *ret_text = mem_strdup(buf_str(&b));
out:
    buf_deinit(&b);
    return rc;
}

static int add_pair(struct http_target *t, const char *s, size_t n, struct err *e)
{
    if (t->n_query == HTTP_QUERY_MAX)
        return err_set(
            e, ERR_INVALID, "the request's query has more than %d parameters", HTTP_QUERY_MAX);
    const char *eq = memchr(s, '=', n);
    size_t name_len = eq ? (size_t)(eq - s) : n;
    size_t value_at = eq ? name_len + 1 : n;
    size_t i = t->n_query++;
    int rc = decode(s, name_len, true, "query", &t->query[i].name, e);
    if (rc == 0)
        rc = decode(s + value_at, n - value_at, true, "query", &t->query[i].value, e);
    return rc;
}

int http_target_parse(const char *raw, struct http_target *ret_target, struct err *e)
{
    struct http_target t = {0};
    size_t path_len = strcspn(raw, "?");
    int rc = raw[0] == '/'
                 ? decode(raw, path_len, false, "path", &t.path, e)
                 : err_set(e, ERR_INVALID, "the request's target does not start with '/'");
    const char *at = raw + path_len;
    while (rc == 0 && *at) {
        at++; /* the '?' or the '&' before the pair */
        size_t n = strcspn(at, "&");
        if (n > 0)
            rc = add_pair(&t, at, n, e);
        at += n;
    }
    if (rc < 0) {
        http_target_deinit(&t);
        return rc;
    }
    *ret_target = t;
    return 0;
}

void http_target_deinit(struct http_target *t)
{
    free(t->path);
    for (size_t i = 0; i < t->n_query; i++) {
        free(t->query[i].name);
        free(t->query[i].value);
    }
    *t = (struct http_target){0};
}

const char *http_target_query(const struct http_target *t, const char *name)
{
    for (size_t i = 0; i < t->n_query; i++)
        if (strcmp(t->query[i].name, name) == 0)
            return t->query[i].value;
    return NULL;
}
