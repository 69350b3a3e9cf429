/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/form.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "cloud/aws/sigv4.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 256

static int decode(const char *p, size_t n, char **ret_text, struct err *e)
{
    struct buf b = {0};
    int rc = str_url_decode(&b, p, n, true, e);
    if (rc == 0 && !str_is_utf8(buf_str(&b), b.len))
        rc = err_set(e, ERR_INVALID, "a parameter is not UTF-8");
    if (rc == 0)
        *ret_text = b.data ? buf_take(&b) : mem_strdup("");
    buf_deinit(&b);
    return rc;
}

static int add_pair(struct form *f, const char *p, size_t n, struct err *e)
{
    if (f->n == FORM_PARAMS_MAX)
        return err_set(e, ERR_INVALID, "more than %d parameters", FORM_PARAMS_MAX);
    const char *eq = memchr(p, '=', n);
    size_t n_name = eq ? (size_t)(eq - p) : n;
    struct form_param param = {0};
    int rc = decode(p, n_name, &param.name, e);
    if (rc == 0)
        rc = decode(eq ? eq + 1 : "", eq ? n - n_name - 1 : 0, &param.value, e);
    if (rc < 0) {
        free(param.name);
        return rc;
    }
    f->list = mem_resize(f->list, f->n + 1, sizeof(*f->list));
    f->list[f->n++] = param;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct form_param *)a)->name, ((const struct form_param *)b)->name);
}

static int sort(struct form *f, struct err *e)
{
    if (f->n > 0)
        qsort(f->list, f->n, sizeof(*f->list), by_name);
    for (size_t i = 1; i < f->n; i++)
        if (str_eq(f->list[i].name, f->list[i - 1].name))
            return err_set(e, ERR_INVALID, "the parameter %.100s is given twice", f->list[i].name);
    return 0;
}

int form_parse(const char *text, size_t n, struct form *ret_form, struct err *e)
{
    if (n > FORM_BYTES_MAX)
        return err_set(e, ERR_INVALID, "the request is longer than %u bytes", FORM_BYTES_MAX);
    struct form f = {0};
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < n;) {
        const char *amp = memchr(text + at, '&', n - at);
        size_t len = amp ? (size_t)(amp - text) - at : n - at;
        if (len > 0)
            rc = add_pair(&f, text + at, len, e);
        at += len + 1;
    }
    if (rc == 0)
        rc = sort(&f, e);
    if (rc < 0)
        form_deinit(&f);
    else
        *ret_form = f;
    return rc;
}

void form_deinit(struct form *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->list[i].name);
        free(f->list[i].value);
    }
    free(f->list);
    *f = (struct form){0};
}

const char *form_get(struct form *f, const char *fmt, ...)
{
    char name[NAME_MAX_BYTES];
    VFORMAT(name, fmt);
    struct form_param key = {.name = name};
    struct form_param *p =
        f->n > 0 ? bsearch(&key, f->list, f->n, sizeof(*f->list), by_name) : NULL;
    if (!p)
        return NULL;
    p->is_used = true;
    return p->value;
}

bool form_use_all(struct form *f, const char *prefix)
{
    bool found = false;
    size_t n = strlen(prefix);
    for (size_t i = 0; i < f->n; i++) {
        struct form_param *p = &f->list[i];
        if (!str_starts(p->name, prefix) || (p->name[n] != '\0' && p->name[n] != '.'))
            continue;
        p->is_used = true;
        found = true;
    }
    return found;
}

const char *form_unused(const struct form *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->list[i].is_used)
            return f->list[i].name;
    return NULL;
}

void form_fingerprint(const struct form *f, const char *const *except, char *out)
{
    struct buf b = {0};
    for (size_t i = 0; i < f->n; i++) {
        if (str_is_one_of(f->list[i].name, except))
            continue;
        buf_printf(&b, "%zu:%s=%zu:%s\n", strlen(f->list[i].name), f->list[i].name,
            strlen(f->list[i].value), f->list[i].value);
    }
    sigv4_sha256_hex(buf_str(&b), b.len, out);
    buf_deinit(&b);
}
