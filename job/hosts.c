/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of hosts (hosts.h). Membership is tested without expanding the list, because it is tested
 * for many nodes.
 */
#include "job/hosts.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 9
#define SHOWN(text) str_show((text), (char[STR_SHOW_MAX]){0})

/* One entry between commas: only a prefix, or a prefix, numbers in brackets and a suffix. */
struct item {
    /* parts begins after the opening bracket; NULL if there are no brackets */
    const char *prefix, *parts, *suffix;
    size_t n_prefix, n_parts, n_suffix, length;
};

/* "01-12", "7" */
struct part {
    int width;
    int64_t first, last;
    size_t length;
};

static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && (!s[i] || !strchr("._-", s[i])))
            return false;
    return true;
}

/* Does not validate the entry. */
static struct item item_at(const char *p)
{
    struct item it = {.prefix = p};
    for (bool inside = false; p[it.length] && (inside || p[it.length] != ','); it.length++)
        inside = p[it.length] == '[' || (inside && p[it.length] != ']');
    const char *end = p + it.length, *open = memchr(p, '[', it.length),
               *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
    it.n_prefix = close ? (size_t)(open - p) : it.length;
    if (!close)
        return it;
    it.parts = open + 1;
    it.n_parts = (size_t)(close - it.parts);
    it.suffix = close + 1;
    it.n_suffix = (size_t)(end - it.suffix);
    return it;
}

static int64_t number(const char *p, size_t n)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = 10 * v + (p[i] - '0');
    return v;
}

/* Parses up to the next comma or bracket; false if malformed. */
static bool part_at(const char *p, struct part *ret_part)
{
    size_t width = strspn(p, "0123456789"),
           more = p[width] == '-' ? strspn(p + width + 1, "0123456789") : 0;
    size_t length = width + (more ? 1 + more : 0);
    if (width == 0 || width > DIGITS_MAX || more > DIGITS_MAX ||
        (p[length] != ',' && p[length] != ']'))
        return false;
    *ret_part = (struct part){.width = (int)width, .first = number(p, width), .length = length};
    ret_part->last = more ? number(p + width + 1, more) : ret_part->first;
    return true;
}

static int check_parts(const struct item *it, int64_t *ret_n, struct err *e)
{
    struct part part;
    *ret_n = 0;
    for (size_t at = 0; at < it->n_parts;
         at += part.length + (it->parts[at + part.length] == ',')) {
        if (!part_at(it->parts + at, &part))
            return err_set(e, ERR_INVALID, "expected numbers like 1-4,7 in brackets, found %s",
                SHOWN(it->parts + at));
        if (part.last < part.first)
            return err_set(e, ERR_INVALID,
                "expected a first number that is not above the last, found %s",
                SHOWN(it->parts + at));
        *ret_n += part.last - part.first + 1;
    }
    return it->n_parts ? 0
                       : err_set(e, ERR_INVALID, "expected numbers in the brackets of %s",
                             SHOWN(it->prefix));
}

static int check_item(const struct item *it, int64_t *ret_n, struct err *e)
{
    *ret_n = 1;
    if ((!it->parts &&
            (memchr(it->prefix, '[', it->length) || memchr(it->prefix, ']', it->length))) ||
        (it->parts &&
            (memchr(it->suffix, '[', it->n_suffix) || memchr(it->suffix, ']', it->n_suffix) ||
                memchr(it->prefix, ']', it->n_prefix))))
        return err_set(e, ERR_INVALID, "expected one pair of brackets in a host's name, found %s",
            SHOWN(it->prefix));
    if (!is_plain(it->prefix, it->n_prefix) || !is_plain(it->suffix, it->n_suffix) ||
        it->n_prefix + it->n_suffix + (it->parts ? DIGITS_MAX + 1 : 0) >= HOSTS_NAME_MAX)
        return err_set(e, ERR_INVALID,
            "expected names of hosts, of at most %d letters, digits and . _ -, found %s",
            HOSTS_NAME_MAX - 1, SHOWN(it->prefix));
    return it->parts ? check_parts(it, ret_n, e) : 0;
}

int hosts_check(const char *list, int64_t *ret_n, struct err *e)
{
    const char *all = list;
    int64_t n = 0, more;
    for (struct item it; *list; list += it.length + (list[it.length] == ',')) {
        it = item_at(list);
        if (it.length == 0 || (list[it.length] == ',' && !list[it.length + 1]))
            return err_set(e, ERR_INVALID,
                "expected names of hosts between commas, found an empty one in %s", SHOWN(all));
        int rc = check_item(&it, &more, e);
        if (rc)
            return rc;
        n += more;
        if (n > HOSTS_MAX)
            return err_set(e, ERR_INVALID, "more than %d hosts", HOSTS_MAX);
    }
    if (ret_n)
        *ret_n = n;
    return 0;
}

bool hosts_next(const char *list, struct hosts_at *at, char out[HOSTS_NAME_MAX])
{
    struct part part;
    while (list[at->item] == ',')
        at->item++;
    if (!list[at->item])
        return false;
    struct item it = item_at(list + at->item);
    if (!it.parts || !part_at(it.parts + at->part, &part)) {
        snprintf(out, HOSTS_NAME_MAX, "%.*s", (int)it.n_prefix, it.prefix);
        at->item += it.length;
        return true;
    }
    snprintf(out, HOSTS_NAME_MAX, "%.*s%0*lld%.*s", (int)it.n_prefix, it.prefix, part.width,
        (long long)(part.first + at->number), (int)it.n_suffix, it.suffix);
    if (part.first + ++at->number <= part.last)
        return true;
    at->number = 0;
    at->part += part.length + (it.parts[at->part + part.length] == ',');
    if (at->part >= it.n_parts) {
        at->part = 0;
        at->item += it.length;
    }
    return true;
}

/* Whether the parts contain a name's number, given as n_digits digits. */
static bool parts_have(const struct item *it, const char *digits, size_t n_digits)
{
    struct part part;
    int64_t v = number(digits, n_digits);
    for (size_t at = 0; at < it->n_parts && part_at(it->parts + at, &part);
         at += part.length + (it->parts[at + part.length] == ','))
        if (v >= part.first && v <= part.last &&
            (n_digits == (size_t)part.width || (n_digits > (size_t)part.width && *digits != '0')))
            return true;
    return false;
}

static bool item_is(const struct item *it, const char *name, size_t n)
{
    if (!it->parts)
        return n == it->length && memcmp(name, it->prefix, n) == 0;
    size_t around = it->n_prefix + it->n_suffix;
    if (n <= around || n - around > DIGITS_MAX + 1 || memcmp(name, it->prefix, it->n_prefix) != 0 ||
        memcmp(name + n - it->n_suffix, it->suffix, it->n_suffix) != 0)
        return false;
    const char *digits = name + it->n_prefix;
    for (size_t i = 0; i < n - around; i++)
        if (!isdigit((unsigned char)digits[i]))
            return false;
    return parts_have(it, digits, n - around);
}

bool hosts_has(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (struct item it; *list; list += it.length + (list[it.length] == ',')) {
        it = item_at(list);
        if (n > 0 && item_is(&it, name, n))
            return true;
    }
    return false;
}

/* ---- folding ---- */

/* A name split around its last number, which has `digits` digits; 0 = no number. */
struct split {
    char name[HOSTS_NAME_MAX];
    size_t prefix, digits;
};

static void split(struct split *s)
{
    size_t end = strlen(s->name);
    while (end > 0 && !isdigit((unsigned char)s->name[end - 1]))
        end--;
    size_t from = end;
    while (from > 0 && isdigit((unsigned char)s->name[from - 1]))
        from--;
    bool is_number = end > from && end - from <= DIGITS_MAX;
    s->prefix = is_number ? from : strlen(s->name);
    s->digits = is_number ? end - from : 0;
}

/* Compares the text around the numbers; 0 means that they may share brackets. */
static int compare_around(const struct split *x, const struct split *y)
{
    size_t n = x->prefix < y->prefix ? x->prefix : y->prefix;
    int c = memcmp(x->name, y->name, n);
    if (c || x->prefix != y->prefix)
        return c ? c : x->prefix < y->prefix ? -1 : 1;
    if (!x->digits != !y->digits)
        return x->digits ? 1 : -1;
    return strcmp(x->name + x->prefix + x->digits, y->name + y->prefix + y->digits);
}

static int compare_split(const void *a, const void *b)
{
    const struct split *x = a, *y = b;
    int64_t v = number(x->name + x->prefix, x->digits), w = number(y->name + y->prefix, y->digits);
    int c = compare_around(x, y);
    return c ? c : v != w ? (v > w) - (v < w) : (x->digits > y->digits) - (x->digits < y->digits);
}

/* Whether y continues a range that ends with x. */
static bool follows(const struct split *x, const struct split *y)
{
    bool natural = x->name[x->prefix] != '0' && y->name[y->prefix] != '0';
    return number(x->name + x->prefix, x->digits) + 1 == number(y->name + y->prefix, y->digits) &&
           (x->digits == y->digits || natural);
}

/* Writes n names that may share brackets, beginning with v[0]. */
static void write_group(const struct split *v, size_t n, struct buf *out)
{
    buf_printf(out, "%s%.*s%s", out->len ? "," : "", (int)v->prefix, v->name, n > 1 ? "[" : "");
    for (size_t i = 0, last; i < n; i = last + 1) {
        for (last = i; last + 1 < n && follows(&v[last], &v[last + 1]);)
            last++;
        buf_printf(out, "%s%.*s", i ? "," : "", (int)v[i].digits, v[i].name + v[i].prefix);
        if (last > i)
            buf_printf(out, "-%.*s", (int)v[last].digits, v[last].name + v[last].prefix);
    }
    buf_printf(out, "%s%s", n > 1 ? "]" : "", v->name + v->prefix + v->digits);
}

static void write_folded(struct split *v, size_t n, struct buf *out)
{
    size_t unique = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || compare_split(&v[unique - 1], &v[i]) != 0)
            v[unique++] = v[i];
    for (size_t i = 0, end; i < unique; i = end) {
        for (end = i + 1; end < unique && v[i].digits && compare_around(&v[i], &v[end]) == 0;)
            end++;
        write_group(&v[i], end - i, out);
    }
}

int hosts_fold_into(const char *list, struct buf *out, struct err *e)
{
    struct hosts_at at = {0};
    struct buf folded = {0};
    int64_t n = 0;
    int rc = hosts_check(list, &n, e);
    if (rc)
        return rc;
    struct split *v = mem_array((size_t)n + 1, sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        hosts_next(list, &at, v[i].name);
        split(&v[i]);
    }
    qsort(v, (size_t)n, sizeof *v, compare_split);
    write_folded(v, (size_t)n, &folded);
    buf_adds(out, buf_str(&folded));
    buf_deinit(&folded);
    free(v);
    return 0;
}

int hosts_fold(const char *list, char ret_list[HOSTS_TEXT_MAX], struct err *e)
{
    struct buf out = {0};
    int64_t n = 0;
    int rc = hosts_check(list, &n, e);
    rc = rc ? rc : hosts_fold_into(list, &out, e);
    if (!rc && out.len >= HOSTS_TEXT_MAX)
        rc =
            err_set(e, ERR_INVALID, "the names of these %lld hosts take %zu bytes, and may take %d",
                (long long)n, out.len, HOSTS_TEXT_MAX - 1);
    else if (!rc)
        str_copy(ret_list, HOSTS_TEXT_MAX, buf_str(&out));
    buf_deinit(&out);
    return rc;
}
