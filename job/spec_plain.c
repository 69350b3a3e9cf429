/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the text that job_spec_to_json writes without building a tree of values. That is several
 * times as fast, which matters when belayd starts: it reads one such text for each job.
 *
 * Invariant: for every accepted text, job_spec_from_json reads the same values. The result is false
 * for every other text, valid or not, and the slow reader then reads it or reports the error. Not
 * accepted are blanks, escapes, characters that are not ASCII, null, and names in another order
 * than the rows'. The order also excludes a repeated name.
 */
#include "job/spec_plain.h"

#include "job/member.h"
#include <string.h>

#define DIGITS_MAX 18 /* a number of this length always fits in an int64_t */
#define NO_ROW SIZE_MAX
#define PARTS_MAX 4

/* Characters between quotes, none of them escaped. */
struct span {
    const char *p;
    size_t n;
};

struct cursor {
    const char *p, *end;
    size_t row;                   /* row of the last member that was read; NO_ROW if none */
    struct span parts[PARTS_MAX]; /* names of the objects that were read: "checkpoint" */
    size_t n_parts;
};

static bool take(struct cursor *c, char what)
{
    if (c->p == c->end || *c->p != what)
        return false;
    c->p++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

static bool take_span(struct cursor *c, struct span *ret_span)
{
    if (!take(c, '"'))
        return false;
    const char *from = c->p;
    while (c->p < c->end && *c->p >= ' ' && *c->p < 0x7f && *c->p != '"' && *c->p != '\\')
        c->p++;
    *ret_span = (struct span){from, (size_t)(c->p - from)};
    return take(c, '"');
}

static bool take_number(struct cursor *c, int64_t *ret_number)
{
    const bool is_negative = take(c, '-');
    const char *from = c->p;
    int64_t n = 0;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9' && c->p - from < DIGITS_MAX)
        n = 10 * n + (*c->p++ - '0');
    *ret_number = is_negative ? -n : n;
    return c->p > from && (*from != '0' || (c->p - from == 1 && !is_negative));
}

static bool is_name(const char *name, struct span span)
{
    return strncmp(name, span.p, span.n) == 0 && name[span.n] == '\0';
}

/* Reads the value of a member at c. */
static bool read_value(struct cursor *c, const struct job_attribute *a, struct job_spec *s)
{
    struct span text;
    int64_t n;
    char *at = (char *)s + a->at;
    switch (a->member_type) {
    case JOB_MEMBER_INT32:
    case JOB_MEMBER_INT64:
    case JOB_MEMBER_MOMENT:
        if (!take_number(c, &n) ||
            (a->member_type == JOB_MEMBER_INT32 && (n < INT32_MIN || n > INT32_MAX)))
            return false;
        job_member_set_number(a, s, n);
        return true;
    case JOB_MEMBER_BOOL:
    case JOB_MEMBER_NOT:
        n = take_word(c, "true");
        job_member_set_truth(a, s, n);
        return n || take_word(c, "false");
    case JOB_MEMBER_WORD:
        if (!take_span(c, &text))
            return false;
        for (n = 0; a->words[n] && !is_name(a->words[n], text);)
            n++;
        job_member_set_number(a, s, n);
        return a->words[n] != NULL;
    case JOB_MEMBER_TEXT:
        if (!take_span(c, &text) || text.n >= a->size)
            return false;
        memcpy(at, text.p, text.n);
        memset(at + text.n, 0, a->size - text.n);
        return true;
    case JOB_MEMBER_NONE:
        break;
    }
    return false;
}

/* The first row after c->row that is named "prefix.name", or "name" if prefix is empty. NULL if
 * none. */
static const struct job_attribute *next_row(struct cursor *c, struct span prefix, struct span name)
{
    const struct job_attribute *a;
    for (size_t i = c->row == NO_ROW ? 0 : c->row + 1; (a = job_member_row(i)); i++) {
        const char *own = a->name;
        if (a->member_type == JOB_MEMBER_NONE)
            continue;
        if (prefix.n > 0 && (strncmp(own, prefix.p, prefix.n) != 0 || own[prefix.n] != '.'))
            continue;
        if (is_name(own + (prefix.n > 0 ? prefix.n + 1 : 0), name)) {
            c->row = i;
            return a;
        }
    }
    return NULL;
}

/* Adds the name of an object. False if an earlier object has it, or there are too many. */
static bool add_part(struct cursor *c, struct span name)
{
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->parts[i].n == name.n && memcmp(c->parts[i].p, name.p, name.n) == 0)
            return false;
    if (name.n == 0 || c->n_parts == PARTS_MAX)
        return false;
    c->parts[c->n_parts++] = name;
    return true;
}

static bool read_object(struct cursor *c, struct span prefix, struct job_spec *s);

/* Reads "name":value; for "name":{...} the members of that object. */
static bool read_member(struct cursor *c, struct span prefix, struct job_spec *s)
{
    struct span name;
    if (!take_span(c, &name) || !take(c, ':') || memchr(name.p, '.', name.n))
        return false;
    if (prefix.n == 0 && c->p < c->end && *c->p == '{')
        return add_part(c, name) && read_object(c, name, s);
    const struct job_attribute *a = next_row(c, prefix, name);
    return a && read_value(c, a, s);
}

static bool read_object(struct cursor *c, struct span prefix, struct job_spec *s)
{
    if (!take(c, '{'))
        return false;
    do
        if (!read_member(c, prefix, s))
            return false;
    while (take(c, ','));
    return take(c, '}');
}

bool job_spec_read_plain(const char *text, size_t n, struct job_spec *ret_spec)
{
    struct cursor c = {.p = text, .end = text + n, .row = NO_ROW};
    *ret_spec = job_spec_default;
    return read_object(&c, (struct span){"", 0}, ret_spec) && c.p == c.end;
}
