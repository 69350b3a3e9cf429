/* SPDX-License-Identifier: Apache-2.0 */
#include "job/counts.h"

#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int check_name(const char *name, struct err *e)
{
    char shown[STR_SHOW_MAX];
    if (str_is_name(name, COUNTS_NAME_MAX - 1))
        return 0;
    return err_set(e, ERR_INVALID, "%s is not a name of at most %d letters, digits, '.', '_', '-'",
        str_show(name, shown), COUNTS_NAME_MAX - 1);
}

int counts_add(struct counts *c, const char *name, int64_t n, struct err *e)
{
    size_t at = 0;
    int rc = check_name(name, e);
    if (rc)
        return rc;
    if (n < 1 || n > COUNTS_NUMBER_MAX)
        return err_set(e, ERR_INVALID, "%s: expected 1 .. %d of it, found %" PRId64, name,
            COUNTS_NUMBER_MAX, n);
    while (at < c->n && strcmp(c->v[at].name, name) < 0)
        at++;
    if (at < c->n && str_eq(c->v[at].name, name))
        return err_set(e, ERR_INVALID, "%s is named twice", name);
    if (c->n == COUNTS_MAX)
        return err_set(e, ERR_INVALID, "at most %d different ones can be named", COUNTS_MAX);
    memmove(&c->v[at + 1], &c->v[at], (c->n - at) * sizeof(c->v[0]));
    c->v[at] = (struct count){.n = n};
    str_copy(c->v[at].name, sizeof(c->v[at].name), name);
    c->n++;
    return 0;
}

/* One entry, "lego:4". */
static int add_piece(struct counts *c, const char *p, size_t n, struct err *e)
{
    char piece[COUNTS_NAME_MAX + 16], shown[STR_SHOW_MAX];
    int64_t number = 1;
    if (n >= sizeof(piece)) {
        str_copy(piece, sizeof(piece), p);
        return err_set(e, ERR_INVALID, "expected NAME:NUMBER, found %s", str_show(piece, shown));
    }
    memcpy(piece, p, n);
    piece[n] = '\0';
    char *colon = strchr(piece, ':');
    if (colon)
        *colon = '\0';
    int rc = check_name(piece, e);
    if (!rc && colon)
        rc = str_to_i64(colon + 1, 1, COUNTS_NUMBER_MAX, piece, &number, e);
    return rc ? rc : counts_add(c, piece, number, e);
}

int counts_parse(const char *text, struct counts *ret_counts, struct err *e)
{
    struct counts c = {0};
    for (const char *p = text; *text && p;) {
        size_t n = strcspn(p, ",");
        int rc = add_piece(&c, p, n, e);
        if (rc)
            return rc;
        p = p[n] ? p + n + 1 : NULL;
    }
    *ret_counts = c;
    return 0;
}

void counts_format(const struct counts *c, char out[COUNTS_TEXT_MAX])
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < c->n; i++)
        at += (size_t)snprintf(
            out + at, COUNTS_TEXT_MAX - at, "%s%s:%" PRId64, i ? "," : "", c->v[i].name, c->v[i].n);
}

int64_t counts_of(const struct counts *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(c->v[i].name, name))
            return c->v[i].n;
    return 0;
}

const struct count *counts_short(const struct counts *all, const struct counts *need)
{
    for (size_t i = 0; i < need->n; i++)
        if (counts_of(all, need->v[i].name) < need->v[i].n)
            return &need->v[i];
    return NULL;
}

bool counts_cover(const struct counts *all, const struct counts *need)
{
    return counts_short(all, need) == NULL;
}
