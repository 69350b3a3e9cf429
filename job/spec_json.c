/* SPDX-License-Identifier: Apache-2.0
 *
 * See spec_json.h. Every option is read and written by its row alone: type, words and range.
 */
#include "job/spec_json.h"

#include "base/str.h"
#include "job/member.h"
#include <assert.h>
#include <string.h>

static bool is_walked(const struct job_attribute *a, unsigned without)
{
    return a->member_type != JOB_MEMBER_NONE && !(a->masks & without);
}

/* ---- reading ---- */

/* Leaves the member unchanged if it is absent or invalid. */
static void read_member(struct json_reader *r, const char *key, const struct job_attribute *a,
    int64_t min, int64_t max, struct job_spec *s)
{
    const char *text;
    switch (a->member_type) {
    case JOB_MEMBER_NONE:
        break;
    case JOB_MEMBER_TEXT:
        if ((text = json_opt_str(r, key, a->size - 1, NULL)))
            job_member_set_text(a, s, text);
        break;
    case JOB_MEMBER_BOOL:
    case JOB_MEMBER_NOT:
        job_member_set_truth(a, s, json_opt_bool(r, key, job_member_truth(a, s)));
        break;
    case JOB_MEMBER_WORD:
        job_member_set_number(a, s, json_opt_enum(r, key, a->words, (int)job_member_number(a, s)));
        break;
    case JOB_MEMBER_INT32:
    case JOB_MEMBER_INT64:
    case JOB_MEMBER_MOMENT:
        job_member_set_number(a, s, json_opt_i64(r, key, min, max, job_member_number(a, s)));
        break;
    }
}

/* The row's name without prefix; NULL if it does not begin with prefix or has further dots. */
static const char *name_in(const struct job_attribute *a, const char *prefix)
{
    const size_t n = strlen(prefix);
    return a->name && strncmp(a->name, prefix, n) == 0 && !strchr(a->name + n, '.') ? a->name + n
                                                                                    : NULL;
}

void job_spec_read(struct json_reader *r, const char *prefix, struct job_spec *s)
{
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        const char *key = is_walked(a, JOB_READ_APART) ? name_in(a, prefix) : NULL;
        if (key)
            read_member(r, key, a, a->min, a->max, s);
    }
}

#define PREFIX_MAX 32 /* "checkpoint." */

/* The row whose name is prefix followed by name; NULL if none. The search starts at *io_at, after
 * the previous match: stored members are in row order, so a whole object costs one pass over the
 * rows. */
static const struct job_attribute *row_named(const char *prefix, const char *name, size_t *io_at)
{
    const size_t n = job_attributes_count + job_stored_count, n_prefix = strlen(prefix);
    if (strchr(name, '.'))
        return NULL;
    for (size_t k = 0; k < n; k++) {
        const size_t i = (*io_at + k) % n;
        const struct job_attribute *a = job_member_row(i);
        if (a->member_type != JOB_MEMBER_NONE && strncmp(a->name, prefix, n_prefix) == 0 &&
            strcmp(a->name + n_prefix, name) == 0) {
            *io_at = i + 1;
            return a;
        }
    }
    return NULL;
}

/* Reads a stored object. Iterates over its members, not over the rows, because a job sets few of
 * the options. */
static void read_stored(struct json_reader *r, const char *prefix, struct job_spec *s)
{
    const char *key;
    json_t *value;
    size_t at = 0;
    json_object_foreach((json_t *)(uintptr_t)r->object, key, value)
    {
        const struct job_attribute *a = r->n_seen < JSON_READER_KEYS_MAX && !json_is_object(value)
                                            ? row_named(prefix, key, &at)
                                            : NULL;
        const bool is_small = a && a->member_type == JOB_MEMBER_INT32;
        if (a)
            read_member(r, a->name + strlen(prefix), a, is_small ? INT32_MIN : INT64_MIN,
                is_small ? INT32_MAX : INT64_MAX, s);
    }
}

/* Converts "checkpoint" to "checkpoint."; false if no row's name begins with the result. */
static bool prefix_of(const char *key, char ret_prefix[PREFIX_MAX])
{
    const struct job_attribute *a;
    const size_t n = strlen(key);
    if (n + 2 > PREFIX_MAX || strchr(key, '.'))
        return false;
    memcpy(ret_prefix, key, n);
    memcpy(ret_prefix + n, ".", 2);
    for (size_t i = 0; (a = job_member_row(i)); i++)
        if (a->member_type != JOB_MEMBER_NONE && strncmp(a->name, ret_prefix, n + 1) == 0)
            return true;
    return false;
}

/* "checkpoint": {...} */
static void read_parts(struct json_reader *r, struct job_spec *s)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)r->object, key, value)
    {
        char prefix[PREFIX_MAX];
        struct json_reader part;
        if (!json_is_object(value) || !prefix_of(key, prefix) || r->n_seen == JSON_READER_KEYS_MAX)
            continue;
        json_opt_object(r, key);
        json_reader_init(&part, value, key, r->e);
        read_stored(&part, prefix, s);
        int rc = r->rc ? 0 : json_reader_finish(&part);
        r->rc = r->rc ? r->rc : rc;
    }
}

int job_spec_from_json(const json_t *v, struct job_spec *ret_spec, struct err *e)
{
    struct job_spec s = job_spec_default;
    struct json_reader r;
    json_reader_init(&r, v, "", e);
    if (r.rc == 0)
        read_stored(&r, "", &s);
    if (r.rc == 0)
        read_parts(&r, &s);
    int rc = json_reader_finish(&r);
    if (rc == 0)
        *ret_spec = s;
    return rc;
}

/* ---- writing ---- */

static json_t *value_of(const struct job_attribute *a, const struct job_spec *s)
{
    switch (a->member_type) {
    case JOB_MEMBER_TEXT:
        return json_text(job_member_text(a, s));
    case JOB_MEMBER_BOOL:
    case JOB_MEMBER_NOT:
        return json_boolean(job_member_truth(a, s));
    case JOB_MEMBER_WORD:
        return json_string(a->words[job_member_number(a, s)]);
    case JOB_MEMBER_INT32:
    case JOB_MEMBER_INT64:
    case JOB_MEMBER_MOMENT:
        return json_integer(job_member_number(a, s));
    case JOB_MEMBER_NONE:
        break;
    }
    assert(!"a row without a member");
    return NULL;
}

/* Takes ownership of value. The n bytes of name may contain dots: "a.b" is member b of object a. */
static void put(json_t *o, const char *name, size_t n, json_t *value)
{
    const char *dot = memchr(name, '.', n);
    if (!dot) {
        json_object_setn_new(o, name, n, value);
        return;
    }
    const size_t n_first = (size_t)(dot - name);
    if (!json_object_getn(o, name, n_first))
        json_object_setn_new(o, name, n_first, json_object());
    put(json_object_getn(o, name, n_first), dot + 1, n - n_first - 1, value);
}

static json_t *shown_time(int64_t ms)
{
    char text[TIME_ISO_MAX];
    time_format_iso((struct wall){ms}, text);
    return json_string(text);
}

void job_spec_show(const struct job_spec *s, json_t *o)
{
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        const bool is_time = a->masks & JOB_SHOWN_AS_TIME,
                   is_null =
                       (is_time || (a->masks & JOB_SHOWN_OR_NULL)) && job_member_is_default(a, s);
        const size_t n = a->name ? strlen(a->name) - (is_time ? strlen("_ms") : 0) : 0;
        if (is_time || (a->masks & (JOB_SHOWN | JOB_SHOWN_OR_NULL)))
            put(o, a->name, n,
                is_null   ? json_null()
                : is_time ? shown_time(job_member_number(a, s))
                          : value_of(a, s));
    }
}

json_t *job_spec_to_json(const struct job_spec *s, unsigned without)
{
    const struct job_attribute *a;
    json_t *o = NULL;
    for (size_t i = 0; (a = job_member_row(i)); i++)
        if (is_walked(a, without) && !job_member_is_default(a, s)) {
            o = o ? o : json_object();
            put(o, a->name, strlen(a->name), value_of(a, s));
        }
    return o;
}
