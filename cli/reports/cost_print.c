/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reports/cost_print.h"

#include "base/mem.h"
#include "base/str.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The cost of reclaims: lost work and restores. */
static int64_t of_reclaims(const json_t *line)
{
    const json_t *spent = json_object_get(line, "spent_uusd");
    return cli_int(spent, "lost", 0) + cli_int(spent, "restore", 0);
}

/* The next column name of `by`: "label:model" becomes model. The caller frees it. */
static char *next_key(const char **by)
{
    size_t n = strcspn(*by, ",");
    char *word = mem_strndup(*by, n),
         *name = str_starts(word, "label:") ? mem_strdup(word + 6) : mem_strdup(word);
    free(word);
    *by += n + ((*by)[n] == ',');
    return name;
}

/* ---- the table ---- */

static void add_count(struct table *t, const json_t *n)
{
    if (json_is_integer(n))
        table_cell(t, "%lld", (long long)json_integer_value(n));
    else
        table_cell(t, "-");
}

/* The cost of data transfer and storage, to which no time belongs. */
static int64_t cost_of_data(const json_t *line)
{
    const json_t *spent = json_object_get(line, "spent_uusd");
    return cli_int(spent, "egress", 0) + cli_int(spent, "storage", 0);
}

static void add_sums(struct table *t, const json_t *l, bool from_sums, bool has_data)
{
    char text[32];
    int64_t uusd = cli_int(l, "uusd", 0), on_demand = cli_int(l, "on_demand_uusd", 0),
            total = cli_int(l, "total_ms", 0);
    int64_t succeeded = cli_int(l, "succeeded", 0);
    add_count(t, json_object_get(l, "jobs"));
    table_cell(t, "%s", cli_usd(uusd, text, sizeof(text)));
    table_cell(t, "%s", cli_usd(on_demand, text, sizeof(text)));
    if (on_demand > 0)
        table_cell(t, "%ld %%", lround(100.0 * (double)(on_demand - uusd) / (double)on_demand));
    else
        table_cell(t, "-");
    table_cell(t, "%s", cli_duration(total, text, sizeof(text)));
    if (total > 0)
        table_cell(t, "%.0f %%", 100.0 * (double)cli_int(l, "useful_ms", 0) / (double)total);
    else
        table_cell(t, "-");
    if (!from_sums)
        return;
    table_cell(t, "%s", cli_usd(of_reclaims(l), text, sizeof(text)));
    if (has_data)
        table_cell(t, "%s", cli_usd(cost_of_data(l), text, sizeof(text)));
    table_cell(t, "%s", succeeded > 0 ? cli_usd(uusd / succeeded, text, sizeof(text)) : "-");
}

static size_t add_columns(struct table *t, const char *by, bool from_sums, bool has_data)
{
    static const char *const names[] = {"JOBS", "COST", "ON-DEMAND", "SAVED", "TIME", "USEFUL"};
    size_t n_keys = 0;
    for (; *by; n_keys++) {
        char *name = next_key(&by);
        for (char *p = name; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        table_column(t, name, false);
        free(name);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        table_column(t, names[i], true);
    if (from_sums)
        table_column(t, "LOST+RESTORE", true);
    if (has_data)
        table_column(t, "DATA", true);
    if (from_sums)
        table_column(t, "A JOB DONE", true);
    return n_keys;
}

/* For a label such as model, or project: how many of its values have a job that succeeded, and the
 * cost of each. */
static void print_done(const json_t *total, const char *by)
{
    const json_t *done = json_object_get(total, "done");
    int64_t n = cli_int(done, "keys", 0);
    char text[32];
    if (n == 0 || (!str_starts(by, "label:") && !str_eq(by, "project")))
        return;
    char *name = next_key(&by);
    printf("%s: %lld with a job that succeeded, %s each, including failed attempts\n", name,
        (long long)n, cli_usd(cli_int(done, "uusd", 0) / n, text, sizeof(text)));
    free(name);
}

void cost_print_table(const json_t *v, const char *by)
{
    const json_t *total = json_object_get(v, "total"), *lines = json_object_get(v, "lines"), *l,
                 *key;
    bool from_sums = json_object_get(total, "spent_uusd") != NULL,
         has_data = cost_of_data(total) > 0;
    struct table *t = table_create();
    size_t i, k, n_keys = add_columns(t, by, from_sums, has_data);
    json_array_foreach(lines, i, l)
    {
        table_row(t);
        json_array_foreach(json_object_get(l, "keys"), k, key)
        {
            table_cell(t, "%s", cli_string(key) ? cli_string(key) : "");
        }
        add_sums(t, l, from_sums, has_data);
    }
    table_row(t);
    for (k = 0; k < n_keys; k++)
        table_cell(t, "%s", k == 0 ? "total" : "");
    add_sums(t, total, from_sums, has_data);
    table_print(t);
    print_done(total, by);
}

/* ---- for a spreadsheet ---- */

static void print_quoted(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_number(const json_t *v)
{
    if (json_is_integer(v))
        printf(",%lld", (long long)json_integer_value(v));
    else
        putchar(',');
}

static void print_csv_line(const json_t *l)
{
    static const char *const sums[] = {
        "jobs", "succeeded", "uusd", "on_demand_uusd", "useful_ms", "lost_ms", "total_ms"};
    static const char *const kinds[] = {"useful", "lost", "boot", "start", "restore", "save",
        "gang-wait", "idle", "egress", "storage"};
    const json_t *spent = json_object_get(l, "spent_uusd"), *key;
    size_t i;
    json_array_foreach(json_object_get(l, "keys"), i, key)
    {
        if (i > 0)
            putchar(',');
        print_quoted(cli_string(key) ? cli_string(key) : "");
    }
    for (i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        print_number(json_object_get(l, sums[i]));
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        print_number(json_object_get(spent, kinds[i]));
    putchar('\n');
}

void cost_print_csv(const json_t *v, const char *by)
{
    const json_t *l;
    size_t i;
    while (*by) {
        char *name = next_key(&by);
        printf("%s,", name);
        free(name);
    }
    puts(
        "jobs,succeeded,uusd,on_demand_uusd,useful_ms,lost_ms,total_ms,useful_uusd,lost_uusd,boot_"
        "uusd,start_uusd,restore_uusd,save_uusd,gang-wait_uusd,idle_uusd,egress_uusd,storage_uusd");
    json_array_foreach(json_object_get(v, "lines"), i, l)
    {
        print_csv_line(l);
    }
}
