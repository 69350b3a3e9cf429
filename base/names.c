/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of names (names.h). They are searched while decisions are made, so nothing is copied.
 */
#include "base/names.h"

#include "base/str.h"
#include <string.h>

/* The text after the name of n bytes at p and its comma. */
static const char *skip_name(const char *p, size_t n)
{
    return p[n] == ',' ? p + n + 1 : p + n;
}

static bool has(const char *list, const char *name, size_t n)
{
    for (size_t k; *list; list = skip_name(list, k)) {
        k = strcspn(list, ",");
        if (k == n && memcmp(list, name, n) == 0)
            return true;
    }
    return false;
}

bool names_has(const char *list, const char *name)
{
    return has(list, name, strlen(name));
}

bool names_intersect(const char *a, const char *b)
{
    for (size_t n; *a; a = skip_name(a, n)) {
        n = strcspn(a, ",");
        if (has(b, a, n))
            return true;
    }
    return false;
}

bool names_next(const char **at, char *out, size_t size)
{
    size_t n = strcspn(*at, ",");
    if (!**at)
        return false;
    size_t kept = n < size ? n : size - 1;
    memcpy(out, *at, kept);
    out[kept] = '\0';
    *at = skip_name(*at, n);
    return true;
}

int name_check(const char *name, size_t max, const char *what, struct err *e)
{
    char shown[STR_SHOW_MAX];
    if (str_is_name(name, max))
        return 0;
    return err_set(e, ERR_INVALID,
        "%s is not %s: expected at most %zu letters, digits, '.', '_' and '-', and a letter or "
        "digit first",
        str_show(name, shown), what, max);
}

int names_check(const char *list, size_t max, const char *what, struct err *e)
{
    char shown[STR_SHOW_MAX], name[STR_SHOW_MAX * 4];
    size_t n = strlen(list);
    if (n >= max)
        return err_set(e, ERR_INVALID, "%s: a list of names is at most %zu bytes long",
            str_show(list, shown), max - 1);
    if (n == 0 || *list == ',' || list[n - 1] == ',' || strstr(list, ",,"))
        return err_set(e, ERR_INVALID, "%s has an empty item: expected %s%s", str_show(list, shown),
            what, n > 0 ? " between commas" : "");
    for (const char *at = list; names_next(&at, name, sizeof name);) {
        if (!str_is_name(name, sizeof name - 2))
            return err_set(e, ERR_INVALID, "%s is not %s", str_show(name, shown), what);
        if (names_has(at, name))
            return err_set(e, ERR_INVALID, "%s is named twice", str_show(name, shown));
    }
    return 0;
}
