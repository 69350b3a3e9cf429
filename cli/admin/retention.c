/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/retention.h"

#include "base/str.h"
#include "cli/verbs.h"
#include <inttypes.h>
#include <stdio.h>

#define SIZE_MAX_TEXT 32

static int64_t number(const json_t *of, const char *key)
{
    return json_integer_value(json_object_get(of, key));
}

static const char *size(const json_t *of, const char *key, char out[SIZE_MAX_TEXT])
{
    const json_t *v = json_object_get(of, key);
    if (!json_is_integer(v))
        return "none";
    str_format_bytes((uint64_t)json_integer_value(v), out, SIZE_MAX_TEXT);
    return out;
}

static void add_line(struct table *t, const char *name, const json_t *of, const char *next)
{
    char in_use[SIZE_MAX_TEXT], most[SIZE_MAX_TEXT], over[SIZE_MAX_TEXT];
    table_row(t);
    table_cell(t, "%s", name);
    table_cell(t, "%s", size(of, "bytes", in_use));
    table_cell(t, "%s", size(of, "max_bytes", most));
    table_cell(t, "%s", size(of, "over_bytes", over));
    table_cell(t, "%s", next);
}

static void add_output(struct table *t, const char *name, const json_t *of, const char *what)
{
    char next[80] = "-";
    if (json_is_null(of)) {
        table_row(t);
        table_cell(t, "%s", name);
        table_cell(t, "not counted");
        for (int k = 0; k < 3; k++)
            table_cell(t, "-");
        return;
    }
    if (number(of, "next_job") > 0)
        snprintf(next, sizeof(next), "job %" PRId64 "%s", number(of, "next_job"), what);
    add_line(t, name, of, next);
}

static void print(const json_t *v)
{
    static const char *const sizes[] = {"IN USE", "LIMIT", "OVER"};
    const json_t *d = json_object_get(v, "database");
    char next[80] = "-", when[CLI_LOCAL_MAX];
    struct table *t = table_create();
    table_column(t, "WHAT", 0);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
        table_column(t, sizes[k], TABLE_RIGHT);
    table_column(t, "GOES FIRST", TABLE_SENTENCE);
    if (json_is_string(json_object_get(d, "oldest_ended_at")))
        snprintf(next, sizeof(next), "jobs that ended at %s", cli_when(d, "oldest_ended_at", when));
    add_line(t, "database", d, next);
    add_output(t, "logs on disk", json_object_get(v, "logs_on_disk"), ", to the store");
    add_output(t, "logs in store", json_object_get(v, "logs_in_store"), "");
    table_print(t);
}

int admin_retention(const struct admin_options *o, const char *word)
{
    json_t *v = cli_get("/api/v1/admin/retention");
    (void)word;
    if (v && o->json)
        cli_print_json(v);
    else if (v)
        print(v);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}
