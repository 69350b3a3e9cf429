/* SPDX-License-Identifier: Apache-2.0
 *
 * See list_table.h.
 */
#include "cli/list_table.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml_print.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX 64 /* columns of --output */

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

static unsigned form_of(const struct list_column *c)
{
    bool is_text = c->kind == COLUMN_TEXT || c->kind == COLUMN_WHEN || c->kind == COLUMN_WORDS ||
                   c->kind == COLUMN_JOB_STATE || c->kind == COLUMN_WHY;
    return (c->is_right || !is_text ? TABLE_RIGHT : 0) | (c->is_extra ? TABLE_EXTRA : 0) |
           (c->kind == COLUMN_WHY || c->is_sentence ? TABLE_SENTENCE : 0);
}

static void print_progress(struct table *t, const json_t *job)
{
    int64_t done = cli_int(job, "progress", -1), total = cli_int(job, "progress_total", -1);
    if (done >= 0 && total > 0)
        table_cell(t, "%lld/%lld", (long long)done, (long long)total);
    else if (done >= 0)
        table_cell(t, "%lld", (long long)done);
    else
        table_cell(t, "-");
}

static void print_int(struct table *t, int64_t n)
{
    if (n >= 0)
        table_cell(t, "%lld", (long long)n);
    else
        table_cell(t, "-");
}

static void print_cell(struct table *t, const json_t *row, const struct list_column *c)
{
    char text[64];
    struct buf words = {0};
    int64_t n = cli_int(row, c->key, -1);
    switch (c->kind) {
    case COLUMN_TEXT:
        if (c->before && json_is_string(json_object_get(row, c->before)))
            table_cell(t, "%s: %s", cli_text(row, c->before), cli_text(row, c->key));
        else
            table_cell(t, "%s", cli_text(row, c->key));
        return;
    case COLUMN_WORDS:
        cli_words(json_object_get(row, c->key), &words);
        table_cell(t, "%s", words.len ? buf_str(&words) : "-");
        buf_deinit(&words);
        return;
    case COLUMN_JOB_STATE:
        table_cell(t, "%s", cli_text(row, str_eq(cli_text(row, c->key), "ended") ? "end" : c->key));
        return;
    case COLUMN_PROGRESS:
        print_progress(t, row);
        return;
    case COLUMN_WHY:
        table_cell(t, "%s", cli_text(json_object_get(row, c->key), "text"));
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
    case COLUMN_WHEN:
        table_cell(t, "%s", cli_when(row, c->key, text));
        return;
    case COLUMN_INT:
        print_int(t, n);
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

static void print_table(const json_t *rows, const struct list_column *columns, bool wide, FILE *out)
{
    size_t i;
    json_t *row;
    struct table *t = table_create();
    for (const struct list_column *c = columns; c->title; c++)
        if (wide || !c->is_wide)
            table_column(t, c->title, form_of(c));
    json_array_foreach((json_t *)(uintptr_t)rows, i, row)
    {
        table_row(t);
        for (const struct list_column *c = columns; c->title; c++)
            if (wide || !c->is_wide)
                print_cell(t, row, c);
    }
    if (wide)
        table_print_in(t, out, 0);
    else
        table_print_to(t, out);
}

void list_table(const json_t *rows, const struct list_column *columns)
{
    print_table(rows, columns, false, stdout);
}

void list_table_to(const json_t *rows, const struct list_column *columns, FILE *out)
{
    print_table(rows, columns, false, out);
}

/* One column alone, a row a line. */
static void print_names(const json_t *rows, const struct list_column *columns)
{
    const struct list_column *name = columns;
    size_t i;
    json_t *row;
    for (const struct list_column *c = columns; c->title; c++)
        if (c->is_name)
            name = c;
    json_array_foreach((json_t *)(uintptr_t)rows, i, row)
    {
        const json_t *v = json_object_get(row, name->key);
        if (json_is_integer(v))
            printf("%lld\n", (long long)json_integer_value(v));
        else
            puts(cli_text(row, name->key));
    }
}

/* ---- --output ---- */

/* Any value as one cell. */
static void print_value(struct table *t, const json_t *v)
{
    struct buf words = {0};
    char text[64];
    if (json_is_string(v)) {
        table_cell(t, "%s", cli_string(v));
        return;
    }
    if (json_is_array(v) || json_is_object(v))
        cli_words(v, &words);
    else if (json_is_boolean(v))
        buf_adds(&words, json_is_true(v) ? "true" : "false");
    else if (json_is_number(v)) {
        number_text(v, text, sizeof(text));
        buf_adds(&words, text);
    }
    table_cell(t, "%s", words.len ? buf_str(&words) : "-");
    buf_deinit(&words);
}

/* The keys of a row, for an error. */
static void list_keys(const json_t *row, struct buf *out)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)row, name, v)
        buf_printf(out, "%s%s", out->len ? ", " : "", name);
}

static bool has_empty_item(const char *list)
{
    return *list == ',' || strstr(list, ",,") || str_ends(list, ",");
}

/* Prints the keys, separated by commas, as columns. */
static int print_keys(const json_t *rows, const char *keys)
{
    if (has_empty_item(keys)) {
        cli_error("--output: expected keys between commas, found an empty one in \"%s\"", keys);
        return CLI_USAGE;
    }
    struct table *t = table_create();
    char *words = mem_strdup(keys), *save;
    const char *list[KEYS_MAX];
    size_t n = 0;
    const json_t *first = json_array_get(rows, 0);
    struct buf known = {0};
    size_t i;
    json_t *row;
    int rc = CLI_OK;
    for (char *key = strtok_r(words, ",", &save); key && n < KEYS_MAX;
         key = strtok_r(NULL, ",", &save)) {
        list[n++] = key;
        table_column(t, key, json_is_number(json_object_get(first, key)) ? TABLE_RIGHT : 0);
        if (first && !json_object_get(first, key) && rc == CLI_OK) {
            list_keys(first, &known);
            cli_error("--output: expected wide, name, json, yaml or keys of the list, found "
                      "\"%s\". Its keys: %s",
                key, buf_str(&known));
            rc = CLI_USAGE;
        }
    }
    json_array_foreach(rows, i, row)
    {
        table_row(t);
        for (size_t k = 0; k < n; k++)
            print_value(t, json_object_get(row, list[k]));
    }
    if (rc == CLI_OK)
        table_print(t);
    else
        table_drop(t);
    buf_deinit(&known);
    free(words);
    return rc;
}

int list_output(const struct cli_args *a, const json_t *reply, const char *name,
    const struct list_column *columns)
{
    const json_t *rows = json_object_get(reply, name);
    if (a->json)
        cli_print_json(reply);
    else if (str_eq(a->output, "yaml"))
        yaml_print(reply, stdout);
    else if (str_eq(a->output, "name"))
        print_names(rows, columns);
    else if (a->output && !str_eq(a->output, "wide"))
        return print_keys(rows, a->output);
    else
        print_table(rows, columns, a->output != NULL, stdout);
    return CLI_OK;
}

int list_print(
    const struct cli_args *a, const char *path, const char *name, const struct list_column *columns)
{
    return list_print_reply(a, cli_get(path), name, columns);
}

int list_print_reply(
    const struct cli_args *a, json_t *v, const char *name, const struct list_column *columns)
{
    int rc = v ? list_output(a, v, name, columns) : CLI_FAILED;
    if (v && !a->json && json_array_size(json_object_get(v, name)) == 0) {
        char none[64];
        snprintf(none, sizeof(none), "no %s", name);
        cli_print_empty(none);
    }
    json_decref(v);
    return rc;
}

int list_verb(const struct verb *verb, const char *path, const char *key,
    const struct list_column *columns, int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(verb, argc, argv, false, NULL, NULL, &a);
    if (rc == 0)
        rc = list_print(&a, path, key, columns);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}
