/* SPDX-License-Identifier: Apache-2.0
 *
 * The only code that converts a row to parameters, and a result to a row (table.h).
 */
#include "db/table.h"

#include "base/mem.h"
#include "job/spec_json.h"
#include "job/spec_plain.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SPEC_BYTES_MAX 65536

static void add_names(const struct table *t, struct buf *out, int from, int to, const char *fmt)
{
    for (int i = from; i < to; i++) {
        if (i > from)
            buf_adds(out, ", ");
        buf_printf(out, fmt, t->columns[i].name);
    }
}

/* How an existing row is merged with the new one. */
static const char *const merge_forms[] = {
    [MERGE_REPLACE] = "%1$s%2$s = excluded.%2$s",
    [MERGE_SUM] = "%1$s%2$s = %2$s + excluded.%2$s",
    [MERGE_MAX] = "%1$s%2$s = max(%2$s, excluded.%2$s)",
};

void table_insert_sql(const struct table *t, struct buf *out)
{
    buf_printf(out, "INSERT INTO %s (", t->name);
    add_names(t, out, 0, t->n_columns, "%s");
    buf_adds(out, ") VALUES (?1");
    for (int i = 1; i < t->n_columns; i++)
        buf_printf(out, ", ?%d", i + 1);
    buf_addc(out, ')');
    if (!t->replaces)
        return;
    buf_adds(out, " ON CONFLICT (");
    add_names(t, out, 0, t->n_keys, "%s");
    buf_adds(out, ") DO UPDATE SET ");
    for (int i = t->n_keys; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];
        buf_printf(out, merge_forms[c->merges], i > t->n_keys ? ", " : "", c->name);
    }
}

static bool is_read(const struct column *c, enum table_part part)
{
    return part == TABLE_WHOLE || !c->is_rare;
}

void table_select_sql(
    const struct table *t, enum table_part part, const char *more, struct buf *out)
{
    buf_adds(out, "SELECT ");
    for (int i = 0; i < t->n_columns; i++)
        if (is_read(&t->columns[i], part))
            buf_printf(out, "%s%s", i > 0 ? ", " : "", t->columns[i].name);
    buf_printf(out, "%s FROM %s", more, t->name);
}

static const char *const *names_of(const struct column *c)
{
    return c->sm ? c->sm->names : c->names;
}

static const char *name_of(const struct column *c, int value)
{
    const char *const *names = names_of(c);
    int n = 0;
    while (names[n] && n < value)
        n++;
    assert(n == value && names[n]); /* a value outside its enum is a bug */
    return names[n];
}

static int64_t i64_at(const void *p)
{
    int64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static int32_t i32_at(const void *p)
{
    int32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static int bind_text(sqlite3_stmt *s, int i, const char *text, size_t n)
{
    return sqlite3_bind_text64(s, i, text, n, SQLITE_STATIC, SQLITE_UTF8);
}

static bool is_empty_value(const struct column *c, const char *p)
{
    const char *text;

    switch (c->type) {
    case COLUMN_I64:
    case COLUMN_NEW_ID:
        return i64_at(p) == 0;
    case COLUMN_I32:
    case COLUMN_NAMED:
        return i32_at(p) == 0;
    case COLUMN_BOOL:
        return !*(const bool *)p;
    case COLUMN_OPTIONAL:
        return i64_at(p) == INT64_MIN;
    case COLUMN_TEXT:
        return *p == '\0';
    case COLUMN_TEXT_HEAP:
        memcpy(&text, p, sizeof(text));
        return !text;
    case COLUMN_SPEC:
    case COLUMN_PLAIN:
        break; /* never rare */
    }
    return false;
}

static bool is_plain(const struct table *t, const char *row)
{
    bool plain = true;
    for (int i = 0; i < t->n_columns && plain; i++)
        plain =
            !t->columns[i].is_rare || is_empty_value(&t->columns[i], row + t->columns[i].offset);
    return plain;
}

void table_clear_rare(const struct table *t, void *row)
{
    const int64_t none = INT64_MIN;
    for (int i = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];
        char *p = (char *)row + c->offset;
        if (!c->is_rare)
            continue;
        if (c->type == COLUMN_OPTIONAL)
            memcpy(p, &none, sizeof(none));
        else
            memset(p, 0, c->size);
    }
}

static int bind_spec(sqlite3_stmt *s, int i, const struct job_spec *spec)
{
    json_t *o = job_spec_to_json(spec, JOB_IN_COLUMN);
    if (!o)
        return sqlite3_bind_null(s, i);
    char *text = json_dump_text(o);
    json_decref(o);
    return sqlite3_bind_text64(s, i, text, strlen(text), free, SQLITE_UTF8);
}

static int bind_column(const struct column *c, sqlite3_stmt *s, int i, const char *p)
{
    const char *text;

    switch (c->type) {
    case COLUMN_I64:
        return sqlite3_bind_int64(s, i, i64_at(p));
    case COLUMN_I32:
        return sqlite3_bind_int64(s, i, i32_at(p));
    case COLUMN_BOOL:
        return sqlite3_bind_int64(s, i, *(const bool *)p);
    case COLUMN_OPTIONAL:
        return i64_at(p) == INT64_MIN ? sqlite3_bind_null(s, i)
                                      : sqlite3_bind_int64(s, i, i64_at(p));
    case COLUMN_NEW_ID:
        return i64_at(p) == 0 ? sqlite3_bind_null(s, i) : sqlite3_bind_int64(s, i, i64_at(p));
    case COLUMN_NAMED:
        text = name_of(c, i32_at(p));
        return bind_text(s, i, text, strlen(text));
    case COLUMN_TEXT:
        return bind_text(s, i, p, strnlen(p, c->size - 1));
    case COLUMN_TEXT_HEAP:
        memcpy(&text, p, sizeof(text));
        return text ? bind_text(s, i, text, strlen(text)) : sqlite3_bind_null(s, i);
    case COLUMN_SPEC:
        return bind_spec(s, i, (const struct job_spec *)(const void *)p);
    case COLUMN_PLAIN:
        break; /* it has no member */
    }
    assert(!"column type");
    return SQLITE_INTERNAL;
}

int table_bind(const struct table *t, sqlite3_stmt *s, const void *row)
{
    int code = SQLITE_OK;
    for (int i = 0; i < t->n_columns && code == SQLITE_OK; i++)
        code = t->columns[i].type == COLUMN_PLAIN ? sqlite3_bind_int64(s, i + 1, is_plain(t, row))
                                                  : bind_column(&t->columns[i], s, i + 1,
                                                        (const char *)row + t->columns[i].offset);
    return code;
}

static bool read_i32(int64_t v, char *p)
{
    int32_t small = (int32_t)v;
    memcpy(p, &small, sizeof(small));
    return small == v;
}

static bool read_named(const struct column *c, const char *text, char *p)
{
    const char *const *names = names_of(c);
    int32_t i = 0;
    while (text && names[i] && strcmp(names[i], text) != 0)
        i++;
    memcpy(p, &i, sizeof(i));
    return text && names[i];
}

/* The rest is zeroed, so that a row that was written and read has the same bytes. */
static bool read_text(const struct column *c, const char *text, size_t n, char *p)
{
    if (!text || n >= c->size)
        return false;
    memcpy(p, text, n);
    memset(p + n, 0, c->size - n);
    return true;
}

static bool parse_spec(const char *text, size_t n, struct job_spec *ret_spec)
{
    json_t *o;
    if (job_spec_read_plain(text, n, ret_spec))
        return true;
    if (json_parse(text, n, SPEC_BYTES_MAX, &o, NULL) != 0)
        return false;
    int rc = job_spec_from_json(o, ret_spec, NULL);
    json_decref(o);
    return rc == 0;
}

static bool read_spec(sqlite3_stmt *s, int i, struct job_spec *ret_spec)
{
    const char *text = (const char *)sqlite3_column_text(s, i);
    if (text)
        return parse_spec(text, (size_t)sqlite3_column_bytes(s, i), ret_spec);
    *ret_spec = job_spec_default;
    return true;
}

static bool read_column(const struct column *c, sqlite3_stmt *s, int i, char *p)
{
    const char *text;
    char *copy;
    int64_t v;

    switch (c->type) {
    case COLUMN_I64:
    case COLUMN_NEW_ID:
        v = sqlite3_column_int64(s, i);
        memcpy(p, &v, sizeof(v));
        return true;
    case COLUMN_I32:
        return read_i32(sqlite3_column_int64(s, i), p);
    case COLUMN_BOOL:
        v = sqlite3_column_int64(s, i);
        *(bool *)p = v != 0;
        return v == 0 || v == 1;
    case COLUMN_OPTIONAL:
        v = sqlite3_column_type(s, i) == SQLITE_NULL ? INT64_MIN : sqlite3_column_int64(s, i);
        memcpy(p, &v, sizeof(v));
        return true;
    case COLUMN_NAMED:
        return read_named(c, (const char *)sqlite3_column_text(s, i), p);
    case COLUMN_TEXT:
        text = (const char *)sqlite3_column_text(s, i);
        return read_text(c, text, (size_t)sqlite3_column_bytes(s, i), p);
    case COLUMN_TEXT_HEAP:
        copy = mem_strdup((const char *)sqlite3_column_text(s, i));
        memcpy(p, &copy, sizeof(copy));
        return true;
    case COLUMN_SPEC:
        return read_spec(s, i, (struct job_spec *)(void *)p);
    case COLUMN_PLAIN:
        v = sqlite3_column_int64(s, i);
        return v == 0 || v == 1;
    }
    return false;
}

int table_read(
    const struct table *t, enum table_part part, sqlite3_stmt *s, void *row, struct err *e)
{
    for (int i = 0, at = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];
        if (!is_read(c, part))
            continue;
        if (!read_column(c, s, at, (char *)row + c->offset))
            return err_set(e, ERR_CORRUPT,
                "table %s, row with %s %.40s: column %s holds '%.40s', which is invalid", t->name,
                t->columns[0].name, (const char *)sqlite3_column_text(s, 0), c->name,
                (const char *)sqlite3_column_text(s, at));
        at++;
    }
    return 0;
}

bool table_is_plain(sqlite3_stmt *s)
{
    return sqlite3_column_int(s, sqlite3_column_count(s) - 1) == 1;
}
