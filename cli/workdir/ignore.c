/* SPDX-License-Identifier: Apache-2.0
 *
 * See ignore.h. A pattern with ** is matched directory by directory, and each part between slashes
 * by fnmatch(3).
 */
#include "cli/workdir/ignore.h"

#include "base/mem.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

void ignore_deinit(struct ignore *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->v[i].text);
    free(g->v);
    *g = (struct ignore){0};
}

/* Trailing blanks are ignored, unless preceded by a backslash. */
static size_t trimmed(const char *p, size_t n)
{
    if (n > 0 && p[n - 1] == '\r')
        n--;
    while (n > 0 && p[n - 1] == ' ' && (n < 2 || p[n - 2] != '\\'))
        n--;
    return n;
}

static size_t count_stars(const char *text)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, "**")); p += 2)
        n++;
    return n;
}

static int add(struct ignore *g, const char *p, size_t n, size_t line, struct err *e)
{
    struct ignore_pattern x = {0};
    n = trimmed(p, n);
    if (n == 0 || *p == '#')
        return 0;
    if (*p == '!') {
        x.reincludes = true;
        p++;
        n--;
    }
    if (n > 0 && p[n - 1] == '/') {
        x.only_dirs = true;
        n--;
    }
    x.is_anchored = memchr(p, '/', n) != NULL;
    if (n > 0 && *p == '/') {
        p++;
        n--;
    }
    if (n == 0 || n > IGNORE_PATTERN_MAX || memchr(p, '\0', n))
        return err_set(e, ERR_INVALID, "line %zu: expected a pattern of 1 to %d bytes", line,
            IGNORE_PATTERN_MAX);
    if (g->n == IGNORE_PATTERNS_MAX)
        return err_set(e, ERR_INVALID, "line %zu: at most %d patterns", line, IGNORE_PATTERNS_MAX);
    x.text = mem_strndup(p, n);
    if (count_stars(x.text) > IGNORE_STARS_MAX) {
        free(x.text);
        return err_set(
            e, ERR_INVALID, "line %zu: at most %d times ** in a pattern", line, IGNORE_STARS_MAX);
    }
    g->v = mem_resize(g->v, g->n + 1, sizeof(*g->v));
    g->v[g->n++] = x;
    return 0;
}

int ignore_parse(const char *p, size_t n, struct ignore *ret_ignore, struct err *e)
{
    struct ignore g = {0};
    size_t line = 0;
    int rc = 0;
    if (n > IGNORE_BYTES_MAX)
        return err_set(e, ERR_INVALID, "%zu bytes, at most %u are allowed", n, IGNORE_BYTES_MAX);
    for (const char *end = p + n, *eol; rc == 0 && p < end; p = eol + 1) {
        eol = memchr(p, '\n', (size_t)(end - p));
        eol = eol ? eol : end;
        rc = add(&g, p, (size_t)(eol - p), ++line, e);
    }
    if (rc != 0)
        ignore_deinit(&g);
    else
        *ret_ignore = g;
    return rc;
}

/* ---- matching ---- */

static bool match_part(const char *pattern, size_t n, const char *path, size_t m)
{
    char a[IGNORE_PATTERN_MAX + 1], b[IGNORE_PATTERN_MAX + 1];
    if (n > IGNORE_PATTERN_MAX || m > IGNORE_PATTERN_MAX)
        return false;
    memcpy(a, pattern, n);
    memcpy(b, path, m);
    a[n] = b[m] = '\0';
    return fnmatch(a, b, FNM_PATHNAME) == 0;
}

/* Matches a path against a pattern, part by part. Either is NULL at its end. */
static bool match_parts(const char *pattern, const char *path)
{
    while (pattern) {
        size_t n = strcspn(pattern, "/"), m = path ? strcspn(path, "/") : 0;
        const char *rest = pattern[n] ? pattern + n + 1 : NULL;
        if (n == 2 && pattern[0] == '*' && pattern[1] == '*') {
            if (!rest)
                return path != NULL; /* a last ** matches everything in the directory */
            for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
                if (match_parts(rest, p))
                    return true;
            return false;
        }
        if (!path || !match_part(pattern, n, path, m))
            return false;
        pattern = rest;
        path = path[m] ? path + m + 1 : NULL;
    }
    return path == NULL;
}

static bool matches(const struct ignore_pattern *x, const char *path, bool is_dir)
{
    const char *name = strrchr(path, '/');
    if (x->only_dirs && !is_dir)
        return false;
    if (x->is_anchored)
        return match_parts(x->text, path);
    name = name ? name + 1 : path;
    return match_part(x->text, strlen(x->text), name, strlen(name));
}

enum ignored ignore_match(const struct ignore *g, const char *path, bool is_dir)
{
    for (size_t i = g->n; i-- > 0;)
        if (matches(&g->v[i], path, is_dir))
            return g->v[i].reincludes ? IGNORED_REINCLUDED : IGNORED_YES;
    return IGNORED_NOT_NAMED;
}
