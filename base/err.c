/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors: a kind for code and a bounded text for people. Every text is formatted into a draft
 * first, so that the old text of the same struct err may be among the arguments.
 */
#include "base/err.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DRAFT_MAX (ERR_TEXT_MAX + 8192) /* two paths, and an inner error that contains both */

/* Longer than the stored text, so that the text after a long path is known before the cut. */
struct draft {
    char text[DRAFT_MAX];
    size_t len;
};

static void draft_format(struct draft *d, const char *fmt, va_list ap)
{
    int n = vsnprintf(d->text, sizeof(d->text), fmt, ap);
    assert(n >= 0);
    d->len = (size_t)n < sizeof(d->text) ? (size_t)n : sizeof(d->text) - 1;
}

static void draft_append(struct draft *d, const char *s)
{
    int n = snprintf(d->text + d->len, sizeof(d->text) - d->len, "%s", s);
    assert(n >= 0);
    d->len += strlen(d->text + d->len);
}

static int draft_store(struct draft *d, struct err *e, enum err_kind kind)
{
    if (e) {
        str_sanitize(d->text, d->len);
        e->kind = kind;
        e->of_store = e->of_user = false;
        str_shorten(e->text, sizeof(e->text), d->text);
    }
    return kind;
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    assert(kind != ERR_NONE);
    struct draft d;
    va_list ap;
    va_start(ap, fmt);
    draft_format(&d, fmt, ap);
    va_end(ap);
    return draft_store(&d, e, kind);
}

static enum err_kind kind_of_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
        return ERR_NO_SPACE;
    case ENOENT:
        return ERR_NOT_FOUND;
    case EEXIST:
        return ERR_CONFLICT;
    case EACCES:
    case EPERM:
        return ERR_DENIED;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case ENOMEM:
        mem_out_of_memory();
    default:
        return ERR_IO;
    }
}

int err_errno(struct err *e, int errnum, const char *fmt, ...)
{
    enum err_kind kind = kind_of_errno(errnum);
    struct draft d;
    va_list ap;
    va_start(ap, fmt);
    draft_format(&d, fmt, ap);
    va_end(ap);
    char scratch[128], reason[132];
    snprintf(reason, sizeof(reason), ": %s", strerror_r(errnum, scratch, sizeof(scratch)));
    draft_append(&d, reason);
    return draft_store(&d, e, kind);
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    assert(e && e->kind != ERR_NONE);
    struct draft d;
    va_list ap;
    va_start(ap, fmt);
    draft_format(&d, fmt, ap);
    va_end(ap);
    draft_append(&d, ": ");
    draft_append(&d, e->text);
    bool of_store = e->of_store, of_user = e->of_user;
    draft_store(&d, e, e->kind);
    e->of_store = of_store;
    e->of_user = of_user;
    return e->kind;
}

static const struct {
    enum err_kind kind;
    const char *name;
} kind_names[] = {
    {ERR_NONE, "none"},
    {ERR_INVALID, "invalid"},
    {ERR_NOT_FOUND, "not-found"},
    {ERR_CONFLICT, "conflict"},
    {ERR_DENIED, "denied"},
    {ERR_NO_SPACE, "no-space"},
    {ERR_IO, "io"},
    {ERR_TIMEOUT, "timeout"},
    {ERR_CANCELLED, "cancelled"},
    {ERR_NO_CAPACITY, "no-capacity"},
    {ERR_THROTTLED, "throttled"},
    {ERR_QUOTA, "quota"},
    {ERR_UNAVAILABLE, "unavailable"},
    {ERR_CORRUPT, "corrupt"},
    {ERR_CONFIG, "config"},
    {ERR_UNSUPPORTED, "unsupported"},
    {ERR_INTERNAL, "internal"},
    {ERR_NO_CREDENTIALS, "no-credentials"},
};

#define N_KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

const char *err_kind_name(enum err_kind kind)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (kind_names[i].kind == kind)
            return kind_names[i].name;
    return "unknown";
}

enum err_kind err_kind_from_name(const char *name)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (str_eq(kind_names[i].name, name))
            return kind_names[i].kind;
    return ERR_NONE;
}
