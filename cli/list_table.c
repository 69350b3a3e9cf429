/* SPDX-License-Identifier: Apache-2.0
 *
 * See list_table.h.
 */
#include "cli/list_table.h"

#include <stdio.h>

static void number_text(const json_t *v, char *out, size_t size)
{
    if (json_is_number(v))
        snprintf(out, size, "%.10g", json_number_value(v));
    else
        snprintf(out, size, "-");
}

static void print_of(struct table *t, const json_t *row, const char *key)
{
    char max_key[48], used[32], most[32];
    snprintf(max_key, sizeof(max_key), "max_%s", key);
    number_text(json_object_get(row, key), used, sizeof(used));
    number_text(json_object_get(row, max_key), most, sizeof(most));
    table_cell(t, "%s/%s", used, most);
}

/* "-" if nothing runs there. */
static void print_used(struct table *t, const json_t *row, bool memory)
{
    const json_t *u = json_object_get(row, "usage");
    if (!json_is_object(u) || cli_int(row, "jobs", 0) == 0)
        table_cell(t, "-");
    else if (memory)
        table_cell(t, "%.1f/%.0f GiB", (double)cli_int(u, "memory_bytes", 0) / (1 << 30),
            (double)cli_int(row, "memory_mib", 0) / 1024);
    else
        table_cell(t, "%.1f/%lld", (double)cli_int(u, "cpu_milli", 0) / 1000,
            (long long)cli_int(row, "cpus", 0));
}

static void print_cell(struct table *t, const json_t *row, const struct list_column *c)
{
    char text[64];
    struct buf words = {0};
    int64_t n = cli_int(row, c->key, -1);
    switch (c->kind) {
    case COLUMN_TEXT:
        table_cell(t, "%s", cli_text(row, c->key));
        return;
    case COLUMN_WORDS:
        cli_words(json_object_get(row, c->key), &words);
        table_cell(t, "%s", words.len ? buf_str(&words) : "-");
        buf_deinit(&words);
        return;
    case COLUMN_YES:
        table_cell(t, "%s", json_is_true(json_object_get(row, c->key)) ? "yes" : "-");
        return;
    case COLUMN_REAL:
        if (json_is_number(json_object_get(row, c->key)))
            table_cell(t, "%.3g", json_number_value(json_object_get(row, c->key)));
        else
            table_cell(t, "-");
        return;
    case COLUMN_OF:
        print_of(t, row, c->key);
        return;
    case COLUMN_CPUS_USED:
    case COLUMN_MEMORY_USED:
        print_used(t, row, c->kind == COLUMN_MEMORY_USED);
        return;
    case COLUMN_AGO:
        table_cell(t, "%s", cli_ago(row, c->key, text, sizeof(text)));
        return;
    case COLUMN_INT:
        if (n >= 0)
            table_cell(t, "%lld", (long long)n);
        else
            table_cell(t, "-");
        return;
    case COLUMN_USD:
    case COLUMN_USD_H:
        table_cell(t, "%s", n >= 0 ? cli_usd(n, text, sizeof(text)) : "-");
        return;
    case COLUMN_DURATION:
        table_cell(t, "%s", n >= 0 ? cli_duration(n, text, sizeof(text)) : "-");
        return;
    }
}

void list_table(const json_t *rows, const struct list_column *columns)
{
    list_table_to(rows, columns, stdout);
}

void list_table_to(const json_t *rows, const struct list_column *columns, FILE *out)
{
    size_t i;
    json_t *row;
    struct table *t = table_create();
    for (const struct list_column *c = columns; c->title; c++)
        table_column(t, c->title, c->kind != COLUMN_TEXT && c->kind != COLUMN_WORDS);
    json_array_foreach(rows, i, row)
    {
        table_row(t);
        for (const struct list_column *c = columns; c->title; c++)
            print_cell(t, row, c);
    }
    table_print_to(t, out);
}

int list_print(const char *path, const char *name, const struct list_column *columns, bool json)
{
    json_t *v = cli_get(path);
    if (!v)
        return CLI_FAILED;
    if (json)
        cli_print_json(v);
    else
        list_table(json_object_get(v, name), columns);
    if (!json && json_array_size(json_object_get(v, name)) == 0) {
        char none[64];
        snprintf(none, sizeof(none), "no %s", name);
        cli_print_empty(none);
    }
    json_decref(v);
    return CLI_OK;
}

int list_verb(const struct verb *verb, const char *path, const char *key,
    const struct list_column *columns, int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(verb, argc, argv, false, NULL, NULL, &a);
    if (rc == 0)
        rc = list_print(path, key, columns, a.json);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}
