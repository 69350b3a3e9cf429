/* SPDX-License-Identifier: Apache-2.0
 *
 * See refusal.h.
 */
#include "cloud/refusal.h"

#include "base/str.h"
#include "cloud/xml.h"
#include <stdio.h>
#include <string.h>

static bool fits(const char *known, const char *code)
{
    size_t n = strlen(known);
    if (known[0] == '*')
        return str_ends(code, known + 1);
    return known[n - 1] == '*' ? strncmp(code, known, n - 1) == 0 : strcmp(code, known) == 0;
}

const struct refusal *refusal_find(const struct refusal *table, const char *code)
{
    for (; table->code; table++)
        if (fits(table->code, code))
            return table;
    return NULL;
}

enum err_kind refusal_kind_of_status(const struct refusal *table, int status, enum err_kind other)
{
    char code[24];
    snprintf(code, sizeof(code), "HTTP %d", status);
    const struct refusal *r = refusal_find(table, code);
    if (r)
        return r->kind;
    if (status == 429)
        return ERR_THROTTLED;
    if (status >= 500)
        return ERR_UNAVAILABLE;
    if (status == 401 || status == 403)
        return ERR_DENIED;
    return status == 408 ? ERR_TIMEOUT : other;
}

int refusal_set(const char *who, enum err_kind kind, const char *code, const char *message,
    const struct refusal *r, struct err *e)
{
    const char *hint = r && r->hint ? r->hint : "";
    return err_set(e, kind, "%s refused: %s%s%s%s%s", who, code, message[0] ? ": " : "", message,
        hint[0] ? "; to do: " : "", hint);
}

int refusal_set_stray(const char *who, enum err_kind kind, int status, const char *body, size_t n,
    const char *otherwise, struct err *e)
{
    const char *what = otherwise;
    if (n == 0)
        what = "an empty body";
    else if (xml_looks_like_html(body, n))
        what = "an HTML page (a proxy or load balancer in between?)";
    return err_set(e, kind, "%s answered HTTP %d with %s", who, status, what);
}
