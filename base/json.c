/* SPDX-License-Identifier: Apache-2.0
 *
 * Input from outside is measured (bytes, depth) before jansson parses it, so that our limit bounds
 * its recursion. Reading objects is in json_reader.c.
 */
#include "base/json.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The closing quote of the string that begins at p; end - 1 if there is none. */
static const char *string_end(const char *p, const char *end)
{
    while (++p < end && *p != '"')
        if (*p == '\\' && p + 1 < end)
            p++;
    return p < end ? p : end - 1;
}

/* The first bracket deeper than JSON_DEPTH_MAX; NULL if none. Detects no other errors. */
static const char *too_deep(const char *text, size_t n)
{
    int depth = 0;
    for (const char *p = text, *end = text + n; p < end; p++) {
        if (*p == '"')
            p = string_end(p, end);
        else if (*p == ']' || *p == '}')
            depth--;
        else if ((*p == '[' || *p == '{') && ++depth > JSON_DEPTH_MAX)
            return p;
    }
    return NULL;
}

size_t json_count_values(const char *text, size_t n)
{
    size_t count = 1;
    for (const char *p = text, *end = text + n; p < end; p++) {
        if (*p == '"')
            p = string_end(p, end);
        else
            count += *p == ',' || *p == '[' || *p == '{';
    }
    return count;
}

static int line_of(const char *text, const char *at)
{
    int line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

int json_parse(const char *text, size_t n, size_t max, json_t **ret_value, struct err *e)
{
    if (n > max)
        return err_set(e, ERR_INVALID, "JSON of %zu bytes exceeds the limit of %zu", n, max);
    const char *deep = too_deep(text, n);
    if (deep)
        return err_set(e, ERR_INVALID, "JSON line %d: nested deeper than %d", line_of(text, deep),
            JSON_DEPTH_MAX);
    json_error_t error;
    json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!value) {
        /* jansson quotes the text near the error, which may be a secret; line and column suffice.
         */
        char *near = strstr(error.text, " near '");
        if (near)
            *near = 0;
        return err_set(
            e, ERR_INVALID, "JSON line %d column %d: %s", error.line, error.column, error.text);
    }
    *ret_value = value;
    return 0;
}

char *json_dump_text(const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    assert(text);
    return text;
}

void json_add(struct buf *out, json_t *v)
{
    char *text = json_dump_text(v);
    buf_adds(out, text);
    free(text);
    json_decref(v);
}

void json_add_secret(struct buf *out, json_t *v)
{
    char *text = json_dump_text(v);
    buf_adds(out, text);
    explicit_bzero(text, strlen(text));
    free(text);
    json_wipe(v);
}

static void wipe_texts(json_t *v)
{
    size_t i;
    const char *key;
    json_t *item;
    if (json_is_string(v))
        explicit_bzero((char *)json_string_value(v), json_string_length(v));
    json_array_foreach(v, i, item)
    {
        wipe_texts(item);
    }
    json_object_foreach(v, key, item)
    {
        wipe_texts(item);
    }
}

void json_wipe(json_t *v)
{
    wipe_texts(v);
    json_decref(v);
}

json_t *json_text(const char *s)
{
    return s ? json_textn(s, strlen(s)) : json_null();
}

json_t *json_textn(const char *s, size_t n)
{
    struct buf mended = {0};
    json_t *v;
    if (str_is_utf8(s, n) && !memchr(s, 0, n)) {
        v = json_stringn_nocheck(s, n);
    } else {
        for (size_t i = 0, len; i < n; i += len) {
            len = s[i] ? str_utf8_len(s + i, n - i) : 0;
            buf_add(&mended, len ? s + i : "\xEF\xBF\xBD", len ? len : 3);
            len = len ? len : 1;
        }
        v = json_stringn_nocheck(mended.data, mended.len);
        buf_deinit(&mended);
    }
    if (!v)
        mem_out_of_memory();
    return v;
}
