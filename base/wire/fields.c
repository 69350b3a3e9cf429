/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes and frees a message by its table; independent of the individual messages. Most messages
 * from belay itself are read, and all are written, without a JSON tree (plain.c).
 *
 * Decoding works on a zeroed copy that is handed to the caller only after all of it was valid, so a
 * half-decoded message is never visible.
 */
#include "base/wire/fields.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/wire/plain.h"
#include "job/attributes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_BYTES 128
#define OPTION_MAX (INT64_C(1) << 53) /* limit of a number, as of the times in wire.c */

/* The field of an option. Numbers are limited by their type alone: belayd has checked them against
 * the option's range, which may differ in another version. */
static struct wire_field field_of(const struct job_attribute *a, size_t offset)
{
    static const enum wire_field_type types[] = {[JOB_MEMBER_INT32] = WIRE_FIELD_I32,
        [JOB_MEMBER_INT64] = WIRE_FIELD_I64,
        [JOB_MEMBER_BOOL] = WIRE_FIELD_BOOL,
        [JOB_MEMBER_NOT] = WIRE_FIELD_BOOL,
        [JOB_MEMBER_WORD] = WIRE_FIELD_CHOICE,
        [JOB_MEMBER_TEXT] = WIRE_FIELD_TEXT};
    assert(a->member_type != JOB_MEMBER_NONE &&
           a->member_type != JOB_MEMBER_MOMENT); /* whose absent value is not 0 */
    const enum wire_field_type type = types[a->member_type];
    const int64_t max = type == WIRE_FIELD_I32 ? INT32_MAX : OPTION_MAX;
    return (struct wire_field){.type = type,
        .key = a->wire,
        .offset = offset + a->at,
        .size = a->size,
        .min = a->min < 0 ? -max : 0,
        .max = type == WIRE_FIELD_CHOICE ? WIRE_WORD_MAX : max,
        .names = a->words};
}

const struct wire_field *wire_walk_next(struct wire_walk *w)
{
    while (w->next->type == WIRE_FIELD_OPTIONS) {
        while (w->row < job_attributes_count && !job_attributes[w->row].wire)
            w->row++;
        if (w->row < job_attributes_count) {
            w->option = field_of(&job_attributes[w->row++], w->next->offset);
            return &w->option;
        }
        w->next++;
        w->row = 0;
    }
    return w->next->type == WIRE_FIELD_END ? NULL : w->next++;
}

static int64_t *i64_at(void *m, const struct wire_field *f)
{
    return (int64_t *)((char *)m + f->offset);
}

static size_t *count_at(void *m, const struct wire_field *f)
{
    return (size_t *)((char *)m + f->count_offset);
}

/* ---- encode ---- */

void wire_table_encode(const struct wire_table *t, const void *m, struct buf *out)
{
    wire_plain_write(t, m, out);
}

/* ---- decode ---- */

static int decode_object(
    const struct wire_table *t, const json_t *v, const char *path, void *m, struct err *e);

static bool is_env_name(const char *s)
{
    if (!*s || (*s >= '0' && *s <= '9'))
        return false;
    for (; *s; s++)
        if (!((*s >= 'A' && *s <= 'Z') || (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') ||
                *s == '_'))
            return false;
    return true;
}

static bool is_hex(const char *s)
{
    size_t n = strspn(s, "0123456789abcdef");
    return s[n] == '\0' && n % 2 == 0;
}

bool wire_text_is_right(const struct wire_field *f, const char *s)
{
    switch (f->check) {
    case WIRE_CHECK_ENV_NAME:
        return is_env_name(s);
    case WIRE_CHECK_ABSOLUTE_PATH:
        return !*s || *s == '/';
    case WIRE_CHECK_HEX:
        return is_hex(s);
    case WIRE_CHECK_NONE:
        break;
    }
    return true;
}

static void check_text(struct json_reader *r, const struct wire_field *f, const char *s)
{
    static const char *const is_not[] = {
        [WIRE_CHECK_ENV_NAME] = "a variable's name ([A-Za-z_][A-Za-z0-9_]*)",
        [WIRE_CHECK_ABSOLUTE_PATH] = "an absolute path",
        [WIRE_CHECK_HEX] = "bytes in lower-case hex",
    };
    char shown[STR_SHOW_MAX];
    if (s && !r->rc && !wire_text_is_right(f, s))
        json_reader_fail(r, f->key, "%s is not %s", str_show(s, shown), is_not[f->check]);
}

static void decode_text(struct json_reader *r, const struct wire_field *f, char *dst)
{
    if (f->required)
        json_req_strcpy(r, f->key, dst, f->size);
    else
        json_opt_strcpy(r, f->key, dst, f->size, "");
    check_text(r, f, dst);
}

static void decode_string(struct json_reader *r, const struct wire_field *f, char **dst)
{
    const char *s = f->required ? json_req_str(r, f->key, (size_t)f->max)
                                : json_opt_str(r, f->key, (size_t)f->max, NULL);
    check_text(r, f, s);
    *dst = mem_strdup(s);
}

static const json_t *decode_array(struct json_reader *r, const struct wire_field *f)
{
    return f->required ? json_req_array(r, f->key, f->max_items)
                       : json_opt_array(r, f->key, f->max_items);
}

static void decode_strings(struct json_reader *r, const struct wire_field *f, void *m)
{
    const json_t *array = decode_array(r, f);
    size_t n = json_array_size(array);
    if (r->rc || n == 0)
        return;
    char **items = mem_array(n, sizeof(*items));
    *(char ***)((char *)m + f->offset) = items;
    *count_at(m, f) = n;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(array, i);
        const char *s = json_string_value(item);
        if (!s || json_string_length(item) > (size_t)f->max ||
            strlen(s) != json_string_length(item)) {
            json_reader_fail(r, f->key, "[%zu]: expected a text of at most %lld bytes without NUL",
                i, (long long)f->max);
            return;
        }
        items[i] = mem_strdup(s);
    }
}

static void decode_structs(struct json_reader *r, const struct wire_field *f, void *m)
{
    const json_t *array = decode_array(r, f);
    size_t n = json_array_size(array);
    if (r->rc || n == 0)
        return;
    char *items = mem_array(n, f->sub->size);
    *(char **)((char *)m + f->offset) = items;
    *count_at(m, f) = n;
    for (size_t i = 0; i < n && !r->rc; i++) {
        char path[PATH_MAX_BYTES];
        snprintf(path, sizeof(path), "%s%s%s[%zu]", r->path, *r->path ? "." : "", f->key, i);
        r->rc =
            decode_object(f->sub, json_array_get(array, i), path, items + i * f->sub->size, r->e);
    }
}

/* A missing embedded struct is decoded from an empty object: its own table reports what is missing.
 */
static void decode_struct(struct json_reader *r, const struct wire_field *f, void *at)
{
    char path[PATH_MAX_BYTES];
    snprintf(path, sizeof(path), "%s%s%s", r->path, *r->path ? "." : "", f->key);
    const json_t *given = f->required ? json_req_object(r, f->key) : json_opt_object(r, f->key);
    if (r->rc)
        return;
    json_t *empty = given ? NULL : json_object();
    r->rc = decode_object(f->sub, given ? given : empty, path, at, r->e);
    json_decref(empty);
}

static int decode_choice(struct json_reader *r, const struct wire_field *f)
{
    const int i = wire_word_find(f->names, json_opt_str(r, f->key, (size_t)f->max, ""));
    return f->names[i] ? i : 0;
}

static void decode_field(struct json_reader *r, const struct wire_field *f, char *m)
{
    void *at = m + f->offset;
    switch (f->type) {
    case WIRE_FIELD_I64:
        *i64_at(m, f) = f->required ? json_req_i64(r, f->key, f->min, f->max)
                                    : json_opt_i64(r, f->key, f->min, f->max, f->absent);
        break;
    case WIRE_FIELD_I32:
        *(int32_t *)at = (int32_t)json_opt_i64(r, f->key, f->min, f->max, 0);
        break;
    case WIRE_FIELD_BOOL:
        *(bool *)at = f->required ? json_req_bool(r, f->key) : json_opt_bool(r, f->key, false);
        break;
    case WIRE_FIELD_ENUM:
        *(int *)at = json_req_enum(r, f->key, f->names);
        break;
    case WIRE_FIELD_WORD:
        *(int *)at = wire_word_find(f->names, json_opt_str(r, f->key, (size_t)f->max, ""));
        break;
    case WIRE_FIELD_CHOICE:
        *(int *)at = decode_choice(r, f);
        break;
    case WIRE_FIELD_TEXT:
        decode_text(r, f, at);
        break;
    case WIRE_FIELD_STRING:
        decode_string(r, f, at);
        break;
    case WIRE_FIELD_STRINGS:
        decode_strings(r, f, m);
        break;
    case WIRE_FIELD_STRUCT:
        decode_struct(r, f, at);
        break;
    case WIRE_FIELD_STRUCTS:
        decode_structs(r, f, m);
        break;
    case WIRE_FIELD_OPTIONS: /* never: wire_walk_next returns a field for each option instead */
    case WIRE_FIELD_END:
        break;
    }
}

static int decode_object(
    const struct wire_table *t, const json_t *v, const char *path, void *m, struct err *e)
{
    struct json_reader r;
    struct wire_walk w = {.next = t->fields};
    json_reader_init(&r, v, path, e);
    for (const struct wire_field *f; !r.rc && (f = wire_walk_next(&w));)
        decode_field(&r, f, m);
    return json_reader_finish_lenient(&r);
}

static int decode(
    const struct wire_table *t, const char *p, size_t n, size_t max, void *m, struct err *e)
{
    json_t *v;
    int rc = json_parse(p, n, max, &v, e);
    if (rc)
        return rc;
    rc = decode_object(t, v, "", m, e);
    json_wipe(v);
    return rc;
}

int wire_table_decode(
    const struct wire_table *t, const char *p, size_t n, size_t max, void *ret_m, struct err *e)
{
    void *m = mem_alloc(t->size);
    int rc = 0;
    if (n > max || !wire_plain_read(t, p, n, m)) {
        wire_table_deinit(t, m);
        rc = decode(t, p, n, max, m, e);
    }
    if (rc)
        wire_table_deinit(t, m);
    else
        memcpy(ret_m, m, t->size);
    free(m);
    return rc;
}

/* ---- free ---- */

static void deinit_string(char *s, bool secret)
{
    if (s && secret)
        explicit_bzero(s, strlen(s));
    free(s);
}

static void deinit_strings(char **items, size_t n, bool secret)
{
    for (size_t i = 0; i < n; i++)
        deinit_string(items[i], secret);
    free(items);
}

static void deinit_structs(const struct wire_table *t, char *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        wire_table_deinit(t, items + i * t->size);
    free(items);
}

void wire_table_deinit(const struct wire_table *t, void *m)
{
    for (const struct wire_field *f = t->fields; f->type != WIRE_FIELD_END; f++) {
        char *at = (char *)m + f->offset;
        if (f->type == WIRE_FIELD_STRING)
            deinit_string(*(char **)at, f->secret);
        else if (f->type == WIRE_FIELD_STRINGS)
            deinit_strings(*(char ***)at, *count_at(m, f), f->secret);
        else if (f->type == WIRE_FIELD_STRUCTS)
            deinit_structs(f->sub, *(char **)at, *count_at(m, f));
        else if (f->type == WIRE_FIELD_STRUCT)
            wire_table_deinit(f->sub, at);
    }
    memset(m, 0, t->size);
}
