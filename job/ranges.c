/* SPDX-License-Identifier: Apache-2.0
 *
 * See ranges.h. Any change beyond removing the first number goes through a bitmap, from which the
 * ranges are rebuilt.
 */
#include "job/ranges.h"

#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limit of the numbers in one text, including duplicates. */
#define SAID_MAX (2LL * RANGES_NUMBER_MAX)

static void set_range(struct bits *b, const struct range *r)
{
    for (int32_t n = r->first; n <= r->last && n < b->n; n += r->step)
        bits_set(b, n);
}

/* False if there are too many ranges. */
static bool from_bits(const struct bits *b, struct ranges *ret_set)
{
    struct ranges s = {0};
    for (int32_t at = bits_next(b, 0), next; at < b->n; at = next) {
        if (s.n == RANGES_MAX)
            return false;
        struct range r = {at, at, 1};
        next = bits_next(b, at + 1);
        if (next < b->n)
            r.step = next - at;
        while (next < b->n && next == r.last + r.step) {
            r.last = next;
            next = bits_next(b, next + 1);
        }
        if (r.step > 1 && r.last <= r.first + r.step)
            r = (struct range){at, at, 1}; /* two numbers do not make a stepped range */
        s.v[s.n++] = r;
        next = bits_next(b, r.last + 1);
    }
    *ret_set = s;
    return true;
}

static int parse_number(const char **text, int32_t *ret_n)
{
    size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > 7)
        return ERR_INVALID;
    *ret_n = (int32_t)strtol(*text, NULL, 10);
    *text += digits;
    return *ret_n <= RANGES_NUMBER_MAX ? 0 : ERR_INVALID;
}

/* Parses up to a comma or the end. */
static int parse_range(const char **text, struct range *ret_range)
{
    struct range r = {.step = 1};
    if (parse_number(text, &r.first) != 0)
        return ERR_INVALID;
    r.last = r.first;
    if (**text == '-') {
        ++*text;
        if (parse_number(text, &r.last) != 0 || r.last < r.first)
            return ERR_INVALID;
        if (**text == ':') {
            ++*text;
            if (parse_number(text, &r.step) != 0 || r.step < 1)
                return ERR_INVALID;
        }
    }
    *ret_range = r;
    return **text == ',' || **text == '\0' ? 0 : ERR_INVALID;
}

/* Adds all numbers to the bitmap; if b is NULL, only finds the greatest. */
static int parse_all(const char *text, struct bits *b, int32_t *ret_greatest)
{
    struct range r;
    int32_t greatest = 0;
    int64_t n = 0;
    do {
        if (parse_range(&text, &r) != 0)
            return ERR_INVALID;
        n += (r.last - r.first) / r.step + 1;
        if (n > SAID_MAX)
            return ERR_INVALID;
        greatest = r.last > greatest ? r.last : greatest;
        if (b)
            set_range(b, &r);
    } while (*text++ == ',');
    *ret_greatest = greatest;
    return 0;
}

int ranges_parse(const char *text, struct ranges *ret_set, struct err *e)
{
    char shown[STR_SHOW_MAX];
    int32_t greatest;
    int rc = 0;
    if (parse_all(text, NULL, &greatest) != 0)
        return err_set(e, ERR_INVALID,
            "%s: expected numbers up to %d such as 0-99, 1,3,7 or 0-20:5", str_show(text, shown),
            RANGES_NUMBER_MAX);
    struct bits b;
    bits_init(&b, greatest + 1);
    parse_all(text, &b, &greatest);
    if (!from_bits(&b, ret_set))
        rc = err_set(e, ERR_INVALID, "these numbers are in more than %d pieces", RANGES_MAX);
    bits_deinit(&b);
    return rc;
}

void ranges_format(const struct ranges *s, char out[RANGES_TEXT_MAX])
{
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < s->n; i++) {
        const struct range *r = &s->v[i];
        char piece[48];
        if (r->first == r->last)
            snprintf(piece, sizeof piece, "%s%" PRId32, i ? "," : "", r->first);
        else if (r->step == 1)
            snprintf(
                piece, sizeof piece, "%s%" PRId32 "-%" PRId32, i ? "," : "", r->first, r->last);
        else
            snprintf(piece, sizeof piece, "%s%" PRId32 "-%" PRId32 ":%" PRId32, i ? "," : "",
                r->first, r->last, r->step);
        size_t k = strlen(piece);
        memcpy(out + n, piece, k + 1);
        n += k;
    }
}

int64_t ranges_count(const struct ranges *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->n; i++)
        n += (s->v[i].last - s->v[i].first) / s->v[i].step + 1;
    return n;
}

bool ranges_has(const struct ranges *s, int32_t n)
{
    for (int i = 0; i < s->n; i++)
        if (n >= s->v[i].first && n <= s->v[i].last && (n - s->v[i].first) % s->v[i].step == 0)
            return true;
    return false;
}

int32_t ranges_first(const struct ranges *s)
{
    return s->v[0].first;
}

int32_t ranges_last(const struct ranges *s)
{
    return s->v[s->n - 1].last;
}

int32_t ranges_next(const struct ranges *s, int *k, int32_t after)
{
    const struct range *r = &s->v[*k];
    if (after >= 0 && after + r->step <= r->last)
        return after + r->step;
    if (after >= 0)
        ++*k;
    return *k < s->n ? s->v[*k].first : -1;
}

int32_t ranges_first_outside(const struct ranges *s, const struct ranges *of)
{
    struct bits b;
    int k = 0;
    ranges_bits(of, &b);
    int32_t n = ranges_next(s, &k, -1);
    while (n >= 0 && bits_has(&b, n))
        n = ranges_next(s, &k, n);
    bits_deinit(&b);
    return n;
}

static void put(struct range *r, int32_t first, int32_t last, int32_t step)
{
    *r = (struct range){first, last, first == last ? 1 : step};
}

bool ranges_take(struct ranges *s, int32_t n, int most)
{
    int i = 0;
    while (n > s->v[i].last || n < s->v[i].first || (n - s->v[i].first) % s->v[i].step != 0)
        i++;
    struct range *r = &s->v[i], was = *r;
    size_t behind = (size_t)(s->n - i - 1) * sizeof *r;
    if (was.first == was.last) {
        memmove(r, r + 1, behind);
        s->n--;
    } else if (n == was.first) {
        put(r, n + was.step, was.last, was.step);
    } else if (n == was.last) {
        put(r, was.first, n - was.step, was.step);
    } else if (s->n < most) {
        memmove(r + 2, r + 1, behind);
        put(r, was.first, n - was.step, was.step);
        put(r + 1, n + was.step, was.last, was.step);
        s->n++;
    } else {
        return false;
    }
    return true;
}

/* Replaces *s by the content of b and frees b. Returns how many numbers were removed. */
static int64_t keep(struct ranges *s, struct bits *b)
{
    int64_t before = ranges_count(s);
    bool fits = from_bits(b, s);
    bits_deinit(b);
    return fits ? before - ranges_count(s) : -1;
}

void ranges_bits(const struct ranges *s, struct bits *ret_bits)
{
    bits_init(ret_bits, s->n ? ranges_last(s) + 1 : 0);
    for (int i = 0; i < s->n; i++)
        set_range(ret_bits, &s->v[i]);
}

int64_t ranges_remove(struct ranges *s, const struct ranges *what)
{
    struct bits b;
    ranges_bits(s, &b);
    for (int i = 0; i < what->n; i++)
        for (int32_t n = what->v[i].first; n <= what->v[i].last && n < b.n; n += what->v[i].step)
            bits_clear(&b, n);
    return keep(s, &b);
}

int64_t ranges_remove_bits(struct ranges *s, const struct bits *what)
{
    struct bits b;
    ranges_bits(s, &b);
    for (int32_t n = bits_next(what, 0); n < what->n; n = bits_next(what, n + 1))
        bits_clear(&b, n);
    return keep(s, &b);
}
