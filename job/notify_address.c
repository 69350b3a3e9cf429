/* SPDX-License-Identifier: Apache-2.0 */
#include "job/notify_address.h"

#include "base/str.h"
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool is_address_char(unsigned char c)
{
    return c < 0x80 && (isalnum(c) || (c && strchr("._%+=~-", c)));
}

int notify_check_address(const char *text, struct err *e)
{
    const char *at = strchr(text, '@');
    size_t n = strlen(text), before = at ? (size_t)(at - text) : n;
    bool good = n > 0 && n <= NOTIFY_ADDRESS_MAX && before > 0 && text[0] != '-' &&
                (!at || (at[1] && at[1] != '-' && at[1] != '.'));
    for (size_t i = 0; good && i < n; i++)
        good = i == before || is_address_char((unsigned char)text[i]);
    for (const char *p = at ? at + 1 : ""; good && *p; p++)
        good = isalnum((unsigned char)*p) || *p == '.' || *p == '-';
    if (good)
        return 0;
    return err_set(e, ERR_INVALID,
        "expected an address such as ann@example.com, or a user of belayd's machine, found %s",
        str_show(text, (char[STR_SHOW_MAX]){0}));
}

static bool is_url_char(unsigned char c)
{
    return c > ' ' && c < 0x7f && !strchr("\"'\\<>`{}|^", c);
}

/* Returns the end of the host that begins at p, at the port or the path, or NULL if there is none
 * or it is invalid. */
static const char *end_of_host(const char *p, const char **ret_begin, size_t *ret_n)
{
    bool v6 = *p == '[';
    const char *begin = p + v6,
               *end = begin + strspn(begin, v6 ? "0123456789abcdefABCDEF:."
                                               : "0123456789abcdefghijklmnopqrstuvwxyz"
                                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_");
    *ret_begin = begin;
    *ret_n = (size_t)(end - begin);
    if (*ret_n == 0 || *ret_n >= NOTIFY_HOST_MAX || (v6 && *end != ']'))
        return NULL;
    return end + v6;
}

int notify_check_url(const char *url, char ret_host[NOTIFY_HOST_MAX], struct err *e)
{
    size_t scheme = str_starts(url, "https://")  ? 8
                    : str_starts(url, "http://") ? 7
                                                 : 0,
           n = strlen(url), len = 0;
    const char *host = NULL, *rest = scheme ? end_of_host(url + scheme, &host, &len) : NULL;
    bool good = rest && n <= NOTIFY_URL_MAX;
    if (good && *rest == ':') {
        size_t digits = strspn(rest + 1, "0123456789");
        good = digits > 0 && digits <= 5 && strtol(rest + 1, NULL, 10) > 0 &&
               strtol(rest + 1, NULL, 10) < 65536;
        rest += 1 + digits;
    }
    good = good && (!*rest || strchr("/?#", *rest));
    for (size_t i = 0; good && i < n; i++)
        good = is_url_char((unsigned char)url[i]);
    if (!good)
        return err_set(e, ERR_INVALID,
            "expected https://HOST[:PORT]/PATH or http://..., of at most %d bytes, without a user "
            "and a password",
            NOTIFY_URL_MAX);
    if (ret_host) {
        memcpy(ret_host, host, len);
        ret_host[len] = '\0';
    }
    return 0;
}
