/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading one object: every getter records the key it asked for (so that finish can find unknown
 * ones) and, until the first error, checks type and range. An optional key that is null counts as
 * absent.
 */
#include "base/json.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FOUND_MAX 96

static const char *describe(const json_t *v, char out[FOUND_MAX])
{
    char shown[STR_SHOW_MAX];
    int n;
    switch (v ? json_typeof(v) : JSON_NULL) {
    case JSON_OBJECT:
        str_copy(out, FOUND_MAX, "an object");
        break;
    case JSON_ARRAY:
        str_copy(out, FOUND_MAX, "an array");
        break;
    case JSON_STRING:
        str_copy(out, FOUND_MAX, str_show(json_string_value(v), shown));
        break;
    case JSON_INTEGER:
        snprintf(out, FOUND_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        break;
    case JSON_REAL:
        n = snprintf(out, FOUND_MAX, "%.17g", json_real_value(v));
        if (!strpbrk(out, ".e")) /* 1.0 is not the integer 1 */
            str_copy(out + n, FOUND_MAX - (size_t)n, ".0");
        break;
    case JSON_TRUE:
        str_copy(out, FOUND_MAX, "true");
        break;
    case JSON_FALSE:
        str_copy(out, FOUND_MAX, "false");
        break;
    case JSON_NULL:
        str_copy(out, FOUND_MAX, v ? "null" : "nothing");
        break;
    }
    return out;
}

/* key may be NULL (the object itself). */
static void fail_at(struct json_reader *r, const char *key, const char *fmt, va_list ap)
{
    if (r->rc)
        return;
    char text[ERR_TEXT_MAX];
    vsnprintf(text, sizeof(text), fmt, ap);
    bool top = *r->path == 0;
    if (!key)
        r->rc = err_set(r->e, ERR_INVALID, "%s%s%s", r->path, top ? "" : ": ", text);
    else
        r->rc = err_set(r->e, ERR_INVALID, "%s%s%s: %s", r->path, top ? "" : ".", key, text);
}

void json_reader_fail(struct json_reader *r, const char *key, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail_at(r, key, fmt, ap);
    va_end(ap);
}

void json_reader_init(struct json_reader *r, const json_t *value, const char *path, struct err *e)
{
    *r = (struct json_reader){.object = value, .path = path, .e = e};
    if (!json_is_object(value)) {
        char found[FOUND_MAX];
        json_reader_fail(r, NULL, "expected an object, found %s", describe(value, found));
    }
}

/* Records the key and returns its value; NULL if it is absent or null, or after an error. */
static const json_t *find_member(struct json_reader *r, const char *key)
{
    assert(r->n_seen < JSON_READER_KEYS_MAX);
    r->seen[r->n_seen++] = key;
    const json_t *v = r->rc ? NULL : json_object_get(r->object, key);
    return json_is_null(v) ? NULL : v;
}

static void mismatch(struct json_reader *r, const char *key, const char *expected)
{
    char found[FOUND_MAX];
    if (r->rc)
        return;
    json_reader_fail(r, key, "expected %s, found %s", expected,
        describe(json_object_get(r->object, key), found));
}

static bool fits_i64(
    struct json_reader *r, const char *key, const json_t *v, int64_t min, int64_t max)
{
    if (json_is_integer(v) && json_integer_value(v) >= min && json_integer_value(v) <= max)
        return true;
    char expected[96];
    snprintf(expected, sizeof(expected), "an integer in %" PRId64 " .. %" PRId64, min, max);
    mismatch(r, key, expected);
    return false;
}

int64_t json_req_i64(struct json_reader *r, const char *key, int64_t min, int64_t max)
{
    const json_t *v = find_member(r, key);
    return fits_i64(r, key, v, min, max) ? json_integer_value(v) : 0;
}

int64_t json_opt_i64(
    struct json_reader *r, const char *key, int64_t min, int64_t max, int64_t fallback)
{
    const json_t *v = find_member(r, key);
    return v && fits_i64(r, key, v, min, max) ? json_integer_value(v) : fallback;
}

static bool fits_bool(struct json_reader *r, const char *key, const json_t *v)
{
    if (!json_is_boolean(v))
        mismatch(r, key, "true or false");
    return json_is_boolean(v);
}

bool json_req_bool(struct json_reader *r, const char *key)
{
    const json_t *v = find_member(r, key);
    return fits_bool(r, key, v) && json_is_true(v);
}

bool json_opt_bool(struct json_reader *r, const char *key, bool fallback)
{
    const json_t *v = find_member(r, key);
    return v && fits_bool(r, key, v) ? json_is_true(v) : fallback;
}

static bool fits_str(struct json_reader *r, const char *key, const json_t *v, size_t max_len)
{
    if (!json_is_string(v)) {
        mismatch(r, key, "a string");
        return false;
    }
    size_t n = json_string_length(v);
    if (n > max_len)
        json_reader_fail(r, key, "%zu bytes long, at most %zu are allowed", n, max_len);
    else if (memchr(json_string_value(v), 0, n))
        json_reader_fail(r, key, "a NUL character is not allowed");
    return r->rc == 0;
}

const char *json_req_str(struct json_reader *r, const char *key, size_t max_len)
{
    const json_t *v = find_member(r, key);
    return fits_str(r, key, v, max_len) ? json_string_value(v) : NULL;
}

const char *json_opt_str(
    struct json_reader *r, const char *key, size_t max_len, const char *fallback)
{
    const json_t *v = find_member(r, key);
    return v && fits_str(r, key, v, max_len) ? json_string_value(v) : fallback;
}

void json_req_strcpy(struct json_reader *r, const char *key, char *dst, size_t size)
{
    str_copy(dst, size, json_req_str(r, key, size - 1));
}

void json_opt_strcpy(
    struct json_reader *r, const char *key, char *dst, size_t size, const char *fallback)
{
    str_copy(dst, size, json_opt_str(r, key, size - 1, fallback));
}

static int find_name(
    struct json_reader *r, const char *key, const json_t *v, const char *const *names)
{
    for (int i = 0; json_is_string(v) && names[i]; i++)
        if (str_eq(names[i], json_string_value(v)))
            return i;
    struct buf expected = {0};
    str_list_names(&expected, json_string_value(v), names);
    mismatch(r, key, buf_str(&expected));
    buf_deinit(&expected);
    return -1;
}

int json_req_enum(struct json_reader *r, const char *key, const char *const *names)
{
    int i = find_name(r, key, find_member(r, key), names);
    return i < 0 ? 0 : i;
}

int json_opt_enum(struct json_reader *r, const char *key, const char *const *names, int fallback)
{
    const json_t *v = find_member(r, key);
    int i = v ? find_name(r, key, v, names) : -1;
    return i < 0 ? fallback : i;
}

static const json_t *fits_array(
    struct json_reader *r, const char *key, const json_t *v, size_t max_items)
{
    if (!json_is_array(v)) {
        mismatch(r, key, "an array");
        return NULL;
    }
    if (json_array_size(v) > max_items) {
        json_reader_fail(
            r, key, "%zu items, at most %zu are allowed", json_array_size(v), max_items);
        return NULL;
    }
    return v;
}

const json_t *json_req_array(struct json_reader *r, const char *key, size_t max_items)
{
    return fits_array(r, key, find_member(r, key), max_items);
}

const json_t *json_opt_array(struct json_reader *r, const char *key, size_t max_items)
{
    const json_t *v = find_member(r, key);
    return v ? fits_array(r, key, v, max_items) : NULL;
}

static const json_t *fits_object(struct json_reader *r, const char *key, const json_t *v)
{
    if (!json_is_object(v))
        mismatch(r, key, "an object");
    return json_is_object(v) ? v : NULL;
}

const json_t *json_req_object(struct json_reader *r, const char *key)
{
    return fits_object(r, key, find_member(r, key));
}

const json_t *json_opt_object(struct json_reader *r, const char *key)
{
    const json_t *v = find_member(r, key);
    return v ? fits_object(r, key, v) : NULL;
}

int json_reader_finish_lenient(struct json_reader *r)
{
    return r->rc;
}

static bool is_known_key(const struct json_reader *r, const char *key)
{
    for (size_t i = 0; i < r->n_seen; i++)
        if (str_eq(r->seen[i], key))
            return true;
    return false;
}

int json_reader_finish(struct json_reader *r)
{
    const char *key;
    json_t *v;
    if (r->rc)
        return r->rc;
    json_object_foreach((json_t *)(uintptr_t)r->object, key, v)
    {
        if (is_known_key(r, key))
            continue;
        const char *known[JSON_READER_KEYS_MAX + 1] = {0};
        memcpy(known, r->seen, r->n_seen * sizeof(known[0]));
        const char *nearest = str_nearest(key, known);
        char shown[STR_SHOW_MAX];
        json_reader_fail(r, NULL, "unknown key %s%s%s%s", str_show(key, shown),
            nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
        break;
    }
    return r->rc;
}
