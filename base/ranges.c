/* SPDX-License-Identifier: Apache-2.0
 *
 * See ranges.h. Whatever changes more than the first number goes over a map of bits, from which the pieces are made anew.
 */
#include "base/ranges.h"

#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAID_MAX                                                                                             \
    (2LL * RANGES_NUMBER_MAX) /* numbers in one text, those that are said twice too: it bounds the work */

/* As many as there are numbers up to the greatest that matters. */
struct bits {
    unsigned char *p;
    int32_t n;
};

static struct bits bits_create(int32_t greatest)
{
    return (struct bits){mem_alloc((size_t)greatest / 8 + 1), greatest + 1};
}

static void set_range(const struct bits *b, const struct range *r, bool on)
{
    for (int32_t n = r->first; n <= r->last && n < b->n; n += r->step) {
        unsigned char bit = (unsigned char)(1u << n % 8);
        b->p[n / 8] = on ? b->p[n / 8] | bit : b->p[n / 8] & (unsigned char)~bit;
    }
}

static int32_t next_in(const struct bits *b, int32_t from)
{
    while (from < b->n && !(b->p[from / 8] & 1u << from % 8))
        from += b->p[from / 8] ? 1 : 8 - from % 8;
    return from;
}

/* False: they are too many pieces. */
static bool from_bits(const struct bits *b, struct ranges *ret_set)
{
    struct ranges s = {0};
    for (int32_t at = next_in(b, 0), next; at < b->n; at = next) {
        if (s.n == RANGES_MAX)
            return false;
        struct range r = {at, at, 1};
        next = next_in(b, at + 1);
        if (next < b->n)
            r.step = next - at;
        while (next < b->n && next == r.last + r.step) {
            r.last = next;
            next = next_in(b, next + 1);
        }
        if (r.step > 1 && r.last <= r.first + r.step)
            r = (struct range){at, at, 1}; /* two numbers are no row */
        s.v[s.n++] = r;
        next = next_in(b, r.last + 1);
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

/* Up to a comma or the end. */
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

/* Puts all of them into the map, or without one only looks for the greatest. */
static int parse_all(const char *text, const struct bits *b, int32_t *ret_greatest)
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
            set_range(b, &r, true);
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
        return err_set(e, ERR_INVALID, "%s: expected numbers up to %d such as 0-99, 1,3,7 or 0-20:5",
            str_show(text, shown), RANGES_NUMBER_MAX);
    struct bits b = bits_create(greatest);
    parse_all(text, &b, &greatest);
    if (!from_bits(&b, ret_set))
        rc = err_set(e, ERR_INVALID, "these numbers are in more than %d pieces", RANGES_MAX);
    free(b.p);
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
            snprintf(piece, sizeof piece, "%s%" PRId32 "-%" PRId32, i ? "," : "", r->first, r->last);
        else
            snprintf(piece, sizeof piece, "%s%" PRId32 "-%" PRId32 ":%" PRId32, i ? "," : "", r->first,
                r->last, r->step);
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

void ranges_take_first(struct ranges *s)
{
    struct range *r = &s->v[0];
    if (r->first == r->last) {
        memmove(s->v, s->v + 1, (size_t)--s->n * sizeof *s->v);
        return;
    }
    r->first += r->step;
    if (r->first == r->last)
        r->step = 1;
}

int64_t ranges_remove(struct ranges *s, const struct ranges *what)
{
    int64_t before = ranges_count(s);
    struct ranges left;
    if (before == 0)
        return 0;
    struct bits b = bits_create(ranges_last(s));
    for (int i = 0; i < s->n; i++)
        set_range(&b, &s->v[i], true);
    for (int i = 0; i < what->n; i++)
        set_range(&b, &what->v[i], false);
    bool fits = from_bits(&b, &left);
    free(b.p);
    if (!fits)
        return -1;
    *s = left;
    return before - ranges_count(s);
}
