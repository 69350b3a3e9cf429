/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes messages without a JSON tree. Invariant: fields.c reads the same values from
 * every text that is accepted here. The caller passes a rejected text to fields.c.
 */
#include "base/wire/plain.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 18 /* a number of this length always fits in an int64_t */

/* ---- write ---- */

static bool write_object(const struct wire_table *t, const void *m, struct buf *out);

static void write_char(struct buf *out, unsigned char c)
{
    static const char short_forms[] = {['\b'] = 'b',
        ['\f'] = 'f',
        ['\n'] = 'n',
        ['\r'] = 'r',
        ['\t'] = 't',
        ['"'] = '"',
        ['\\'] = '\\'};
    if (c < sizeof(short_forms) && short_forms[c]) {
        buf_addc(out, '\\');
        buf_addc(out, short_forms[c]);
    } else {
        buf_printf(out, "\\u%04X", c);
    }
}

static void write_string(struct buf *out, const char *s, size_t n)
{
    buf_addc(out, '"');
    for (size_t from = 0, i = 0; from < n; from = i) {
        while (i < n && (unsigned char)s[i] >= 0x20 && s[i] != '"' && s[i] != '\\')
            i++;
        buf_add(out, s + from, i - from);
        if (i < n)
            write_char(out, (unsigned char)s[i++]);
    }
    buf_addc(out, '"');
}

/* Writes s as a JSON string of at most max bytes. It may have to be cut: replacing invalid UTF-8
 * lengthens it, and the reader would refuse the whole message for one text that is too long. */
static void write_text(struct buf *out, const char *s, size_t max)
{
    size_t n = strlen(s);
    json_t *mended = NULL;
    if (!str_is_utf8(s, n)) {
        mended = json_textn(s, n);
        s = json_string_value(mended);
        n = json_string_length(mended);
    }
    if (n > max)
        for (n = max; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80;)
            n--;
    write_string(out, s, n);
    json_wipe(mended);
}

static void write_i64(struct buf *out, int64_t value)
{
    char text[24], *p = text + sizeof(text);
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--p = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (value < 0)
        *--p = '-';
    buf_add(out, p, (size_t)(text + sizeof(text) - p));
}

static size_t count_of(const struct wire_field *f, const char *m)
{
    return f->type == WIRE_FIELD_STRINGS || f->type == WIRE_FIELD_STRUCTS
               ? *(const size_t *)(m + f->count_offset)
               : 0;
}

static void write_array(const struct wire_field *f, const char *m, struct buf *out)
{
    size_t n = count_of(f, m);
    const char *items = *(char *const *)(m + f->offset);
    assert(n <= f->max_items);
    buf_addc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_addc(out, ',');
        if (f->type == WIRE_FIELD_STRINGS)
            write_text(out, ((char *const *)(const void *)items)[i], (size_t)f->max);
        else
            write_object(f->sub, items + i * f->sub->size, out);
    }
    buf_addc(out, ']');
}

/* Whether the field has its absent value and is not sent. Always false for a struct: write_value
 * finds out whether it has any field to send. */
static bool is_absent(const struct wire_field *f, const char *m)
{
    const char *at = m + f->offset;
    switch (f->type) {
    case WIRE_FIELD_I64:
        return !f->required && *(const int64_t *)(const void *)at == f->absent;
    case WIRE_FIELD_I32:
    case WIRE_FIELD_CHOICE:
        return *(const int32_t *)(const void *)at == 0;
    case WIRE_FIELD_BOOL:
        return !f->required && !*(const bool *)at;
    case WIRE_FIELD_WORD: {
        const char *name = f->names[*(const int *)(const void *)at];
        return !name || !*name;
    }
    case WIRE_FIELD_TEXT:
        return !f->required && !*at;
    case WIRE_FIELD_STRING:
        return *(char *const *)(const void *)at == NULL;
    case WIRE_FIELD_STRINGS:
    case WIRE_FIELD_STRUCTS:
        return !f->required && count_of(f, m) == 0;
    default:
        return false;
    }
}

/* False if the field is an optional struct that has no field to send. */
static bool write_value(const struct wire_field *f, const char *m, struct buf *out)
{
    const char *at = m + f->offset;
    switch (f->type) {
    case WIRE_FIELD_I64:
        assert(*(const int64_t *)(const void *)at >= f->min &&
               *(const int64_t *)(const void *)at <= f->max);
        write_i64(out, *(const int64_t *)(const void *)at);
        break;
    case WIRE_FIELD_I32:
        assert(*(const int32_t *)(const void *)at >= f->min);
        write_i64(out, *(const int32_t *)(const void *)at);
        break;
    case WIRE_FIELD_BOOL:
        buf_adds(out, *(const bool *)at ? "true" : "false");
        break;
    case WIRE_FIELD_ENUM:
    case WIRE_FIELD_WORD:
    case WIRE_FIELD_CHOICE:
        write_text(out, f->names[*(const int *)(const void *)at], SIZE_MAX);
        break;
    case WIRE_FIELD_TEXT:
        write_text(out, at, f->size - 1);
        break;
    case WIRE_FIELD_STRING:
        write_text(out, *(char *const *)(const void *)at, (size_t)f->max);
        break;
    case WIRE_FIELD_STRINGS:
    case WIRE_FIELD_STRUCTS:
        write_array(f, m, out);
        break;
    case WIRE_FIELD_STRUCT:
        return write_object(f->sub, at, out) || f->required;
    case WIRE_FIELD_OPTIONS: /* never: wire_walk_next returns a field for each option instead */
    case WIRE_FIELD_END:
        break;
    }
    return true;
}

/* False if no field is present. */
static bool write_object(const struct wire_table *t, const void *m, struct buf *out)
{
    bool has_some = false;
    struct wire_walk w = {.next = t->fields};
    buf_addc(out, '{');
    for (const struct wire_field *f; (f = wire_walk_next(&w));) {
        size_t before = out->len;
        if (is_absent(f, m))
            continue;
        buf_adds(out, has_some ? ",\"" : "\"");
        buf_adds(out, f->key);
        buf_adds(out, "\":");
        if (write_value(f, m, out))
            has_some = true;
        else
            buf_truncate(out, before);
    }
    buf_addc(out, '}');
    return has_some;
}

void wire_plain_write(const struct wire_table *t, const void *m, struct buf *out)
{
    write_object(t, m, out);
}

/* ---- read ---- */

struct cursor {
    const char *p, *end;
};

static bool read_object(struct cursor *c, const struct wire_table *t, char *m);

static bool take(struct cursor *c, const char *what)
{
    size_t n = strlen(what);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, what, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* The character of the escape whose backslash is at p, and the escape's length; 0 if it is not one
 * that wire_table_encode writes. */
static size_t escape_at(const char *p, const char *end, char *ret_char)
{
    static const char known[] = "\"\\/bfnrt", stands_for[] = "\"\\/\b\f\n\r\t",
                      digits[] = "0123456789ABCDEF";
    const char *at = end - p >= 2 && p[1] ? strchr(known, p[1]) : NULL;
    if (at) {
        *ret_char = stands_for[at - known];
        return 2;
    }
    const char *low = end - p >= 6 && p[5] ? strchr(digits, p[5]) : NULL;
    if (!low || memcmp(p, "\\u00", 4) != 0 || (p[4] != '0' && p[4] != '1'))
        return 0;
    *ret_char = (char)(16 * (p[4] - '0') + (low - digits));
    return *ret_char ? 6 : 0;
}

/* A string in its quotes: where its characters are, and its length once decoded. */
struct span {
    const char *p, *end;
    size_t n;
};

static bool take_span(struct cursor *c, struct span *ret_span)
{
    struct span s = {0};
    char ignored;
    if (!take(c, "\""))
        return false;
    s.p = c->p;
    while (c->p < c->end && *c->p != '"') {
        size_t len = *c->p == '\\' ? escape_at(c->p, c->end, &ignored)
                                   : str_utf8_len(c->p, (size_t)(c->end - c->p));
        if (len == 0 || (unsigned char)*c->p < 0x20)
            return false;
        s.n += *c->p == '\\' ? 1 : len;
        c->p += len;
    }
    s.end = c->p;
    *ret_span = s;
    return take(c, "\"");
}

/* Writes s->n bytes and a NUL. */
static void copy_span(const struct span *s, char *out)
{
    if (s->n == (size_t)(s->end - s->p)) {
        memcpy(out, s->p, s->n);
    } else {
        size_t i = 0;
        for (const char *p = s->p; p < s->end; i++)
            if (*p == '\\')
                p += escape_at(p, s->end, &out[i]);
            else
                out[i] = *p++;
    }
    out[s->n] = '\0';
}

/* NULL if there is no string of at most max bytes. */
static char *read_string(struct cursor *c, size_t max)
{
    struct span s;
    if (!take_span(c, &s) || s.n > max)
        return NULL;
    char *text = mem_alloc(s.n + 1);
    copy_span(&s, text);
    return text;
}

static bool read_i64(struct cursor *c, const struct wire_field *f, int64_t *ret_value)
{
    bool is_negative = take(c, "-");
    const char *from = c->p;
    int64_t value = 0;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9' && c->p - from < DIGITS_MAX)
        value = 10 * value + (*c->p++ - '0');
    if (c->p == from || (*from == '0' && c->p - from > 1))
        return false;
    value = is_negative ? -value : value;
    *ret_value = value;
    return value >= f->min && value <= f->max; /* the next byte is checked by the caller */
}

static bool read_i32(struct cursor *c, const struct wire_field *f, int32_t *ret_value)
{
    int64_t value;
    if (!read_i64(c, f, &value))
        return false;
    *ret_value = (int32_t)value;
    return true;
}

static bool read_bool(struct cursor *c, bool *ret_value)
{
    *ret_value = take(c, "true");
    return *ret_value || take(c, "false");
}

static bool read_enum(struct cursor *c, const struct wire_field *f, int *ret_value)
{
    struct span s;
    if (!take_span(c, &s))
        return false;
    for (int i = 0; f->names[i]; i++)
        if (strlen(f->names[i]) == (size_t)(s.end - s.p) &&
            memcmp(f->names[i], s.p, (size_t)(s.end - s.p)) == 0) {
            *ret_value = i;
            return true;
        }
    return false;
}

static bool read_text(struct cursor *c, const struct wire_field *f, char *at)
{
    struct span s;
    if (!take_span(c, &s) || s.n >= f->size)
        return false;
    copy_span(&s, at);
    return true;
}

/* The number of items in the array whose '[' precedes c->p. Errors are not detected. */
static size_t count_items(const struct cursor *c)
{
    size_t n = 1;
    int depth = 0;
    for (const char *p = c->p; p < c->end && depth >= 0; p++) {
        if (*p == '"')
            for (p++; p < c->end && *p != '"'; p++)
                p += *p == '\\';
        else if (*p == '[' || *p == '{')
            depth++;
        else if (*p == ']' || *p == '}')
            depth--;
        else
            n += depth == 0 && *p == ',';
    }
    return n;
}

static bool read_item(struct cursor *c, const struct wire_field *f, char *items, size_t i)
{
    if (f->type == WIRE_FIELD_STRUCTS)
        return read_object(c, f->sub, items + i * f->sub->size);
    return (((char **)(void *)items)[i] = read_string(c, (size_t)f->max)) != NULL;
}

/* Sets the count to all allocated items before it reads them, so that a failure frees all. */
static bool read_array(struct cursor *c, const struct wire_field *f, char *m)
{
    if (!take(c, "[") || take(c, "]"))
        return c->p[-1] == ']';
    size_t n = count_items(c);
    if (n > f->max_items)
        return false;
    char *items = mem_array(n, f->type == WIRE_FIELD_STRUCTS ? f->sub->size : sizeof(char *));
    *(char **)(void *)(m + f->offset) = items;
    *(size_t *)(void *)(m + f->count_offset) = n;
    for (size_t i = 0; i < n; i++)
        if (!read_item(c, f, items, i) || !take(c, i + 1 < n ? "," : "]"))
            return false;
    return true;
}

static bool read_value(struct cursor *c, const struct wire_field *f, char *m)
{
    void *at = m + f->offset;
    switch (f->type) {
    case WIRE_FIELD_I64:
        return read_i64(c, f, at);
    case WIRE_FIELD_I32:
        return read_i32(c, f, at);
    case WIRE_FIELD_BOOL:
        return read_bool(c, at);
    case WIRE_FIELD_ENUM:
    case WIRE_FIELD_WORD: /* unknown words are left to fields.c */
    case WIRE_FIELD_CHOICE:
        return read_enum(c, f, at);
    case WIRE_FIELD_TEXT:
        return read_text(c, f, at) && wire_text_is_right(f, at);
    case WIRE_FIELD_STRING:
        return (*(char **)at = read_string(c, (size_t)f->max)) != NULL &&
               wire_text_is_right(f, *(char **)at);
    case WIRE_FIELD_STRINGS:
    case WIRE_FIELD_STRUCTS:
        return read_array(c, f, m);
    case WIRE_FIELD_STRUCT:
        return read_object(c, f->sub, at);
    case WIRE_FIELD_OPTIONS:
    case WIRE_FIELD_END:
        break;
    }
    return false;
}

/* Sets the absent value of a missing key. False if the key is required. */
static bool set_absent(const struct wire_field *f, char *m)
{
    bool is_right = !f->required;
    if (f->type == WIRE_FIELD_I64)
        *(int64_t *)(void *)(m + f->offset) = f->absent;
    for (const struct wire_field *s = f->type == WIRE_FIELD_STRUCT ? f->sub->fields : NULL;
         s && s->type != WIRE_FIELD_END; s++)
        is_right = set_absent(s, m + f->offset) && is_right;
    return is_right;
}

static bool take_key(struct cursor *c, const char *key)
{
    struct cursor at = *c;
    if (!take(&at, "\"") || !take(&at, key) || !take(&at, "\":"))
        return false;
    *c = at;
    return true;
}

static bool read_object(struct cursor *c, const struct wire_table *t, char *m)
{
    if (!take(c, "{"))
        return false;
    bool is_over = take(c, "}");
    struct wire_walk w = {.next = t->fields};
    for (const struct wire_field *f; (f = wire_walk_next(&w));) {
        if (is_over || !take_key(c, f->key)) {
            if (!set_absent(f, m))
                return false;
            continue;
        }
        if (!read_value(c, f, m))
            return false;
        is_over = take(c, "}");
        if (!is_over && !take(c, ","))
            return false;
    }
    return is_over;
}

bool wire_plain_read(const struct wire_table *t, const char *p, size_t n, void *m)
{
    struct cursor c = {p, p + n};
    return read_object(&c, t, m) && c.p == c.end;
}
