/* SPDX-License-Identifier: Apache-2.0
 *
 * belay advise: resources held and not used, by whom, and their cost; --reclaim JOB: saves the job
 * and holds it; --forgotten: resources not touched for a while.
 */
#include "cli/reports/advise.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/list_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usd_cell(struct table *t, const json_t *item, const char *key)
{
    char text[32];
    if (json_is_integer(json_object_get(item, key)) && cli_int(item, key, 0) > 0)
        table_cell(t, "%s", cli_usd(cli_int(item, key, 0), text, sizeof(text)));
    else
        table_cell(t, "-");
}

static void print_table(const json_t *items)
{
    static const char *const columns[] = {"WHAT", "JOB", "NODE", "NAME", "OWNER"};
    struct table *t = table_create();
    size_t i;
    json_t *v;
    for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        table_column(t, columns[i], i == 1);
    table_column(t, "COST SO FAR", true);
    table_column(t, "UNUSED/H", true);
    json_array_foreach(items, i, v)
    {
        table_row(t);
        table_cell(t, "%s", cli_text(v, "code"));
        if (json_is_integer(json_object_get(v, "job")))
            table_cell(t, "%s", cli_text(v, "ref"));
        else
            table_cell(t, "-");
        table_cell(
            t, "%s", json_is_integer(json_object_get(v, "node")) ? cli_text(v, "name") : "-");
        table_cell(
            t, "%s", json_is_integer(json_object_get(v, "node")) ? "-" : cli_text(v, "name"));
        table_cell(t, "%s", cli_text(v, "user"));
        usd_cell(t, v, "cost_uusd");
        usd_cell(t, v, "waste_uusd_per_hour");
    }
    table_print(t);
}

static void print_words(const json_t *items)
{
    size_t i;
    json_t *v;
    json_array_foreach(items, i, v)
    {
        if (json_is_integer(json_object_get(v, "job")))
            printf("\njob %s: %s\n", cli_text(v, "ref"), cli_text(v, "text"));
        else
            printf("\nnode %s: %s\n", cli_text(v, "name"), cli_text(v, "text"));
        printf("  > %s\n", cli_text(v, "remedy"));
    }
}

static void print_advice(const json_t *reply)
{
    const json_t *items = json_object_get(reply, "items");
    if (json_array_size(items) > 0) {
        print_table(items);
        print_words(items);
    } else {
        printf("No advice: %lld running jobs were examined.\n",
            (long long)cli_int(reply, "looked_at", 0));
    }
}

static void add_user(struct buf *path, const char *user)
{
    if (user)
        cli_add_parameter(path, "user", user);
}

/* Prints the reply v, which it takes over. v is NULL after a failed request. */
static int show(json_t *v, bool json, void (*print)(const json_t *reply))
{
    if (v && json)
        cli_print_json(v);
    else if (v)
        print(v);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

/* ---- page by page ---- */

static int most_first(const void *a, const void *b)
{
    int64_t x = cli_int(*(json_t *const *)a, "waste_uusd_per_hour", 0),
            y = cli_int(*(json_t *const *)b, "waste_uusd_per_hour", 0);
    return x > y ? -1 : x < y;
}

/* Sorts the items of all pages together: each page is sorted by itself. */
static json_t *sorted(const json_t *items)
{
    size_t n = json_array_size(items), i;
    json_t **v = mem_array(n + 1, sizeof(json_t *)), *list = json_array();
    for (i = 0; i < n; i++)
        v[i] = json_array_get(items, i);
    qsort(v, n, sizeof(json_t *), most_first);
    for (i = 0; i < n; i++)
        json_array_append(list, v[i]);
    free(v);
    return list;
}

int advise_get(struct client *c, const char *user, json_t **ret_reply, struct err *e)
{
    json_t *items = json_array();
    int64_t looked_at = 0, after = 0;
    int rc = 0;
    do {
        struct buf path = {0};
        json_t *page = NULL;
        buf_printf(&path, "/api/v1/advice?after=%lld", (long long)after);
        add_user(&path, user);
        rc = client_json(c, "GET", buf_str(&path), NULL, &page, e);
        buf_deinit(&path);
        if (rc == 0) {
            json_array_extend(items, json_object_get(page, "items"));
            looked_at += cli_int(page, "looked_at", 0);
            after = cli_int(page, "next", 0);
        }
        json_decref(page);
    } while (rc == 0 && after > 0);
    if (rc == 0)
        *ret_reply =
            json_pack("{s:o,s:I}", "items", sorted(items), "looked_at", (json_int_t)looked_at);
    json_decref(items);
    return rc;
}

int advise_jobs(const char *user, bool json)
{
    struct client *c = NULL;
    struct err e;
    json_t *v = NULL;
    int rc = client_create(&c, &e);
    if (rc == 0)
        rc = advise_get(c, user, &v, &e);
    client_destroy(c);
    if (rc != 0)
        cli_error("%s", e.text);
    return show(v, json, print_advice);
}

/* A provider's price in USD, with four digits: 0.045. */
static void price_cell(struct table *t, const json_t *volume)
{
    if (json_is_integer(json_object_get(volume, "uusd_per_gib_month")))
        table_cell(t, "%.4g", (double)cli_int(volume, "uusd_per_gib_month", 0) / 1e6);
    else
        table_cell(t, "-");
}

static void print_volumes(const json_t *items)
{
    static const char *const columns[] = {"VOLUME", "ID", "PROVIDER", "PLACE", "TYPE", "OURS",
        "GIB", "USD/GIB-MONTH", "PRICE FROM", "SINCE", "USD/DAY"};
    struct table *t = table_create();
    char text[64];
    size_t i;
    json_t *v;
    for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        table_column(t, columns[i], i == 6 || i == 7 || i >= 9);
    json_array_foreach(items, i, v)
    {
        const json_t *volume = json_object_get(v, "volume");
        if (!json_is_object(volume))
            continue;
        const char *zone = json_string_value(json_object_get(volume, "zone"));
        table_row(t);
        table_cell(t, "%s", cli_text(v, "name"));
        table_cell(t, "%s",
            str_eq(cli_text(v, "name"), cli_text(volume, "id")) ? "-" : cli_text(volume, "id"));
        table_cell(t, "%s", cli_text(volume, "provider"));
        table_cell(t, "%s", cli_text(volume, zone && *zone ? "zone" : "region"));
        table_cell(t, "%s", cli_text(volume, "type"));
        table_cell(t, "%s", json_is_true(json_object_get(volume, "own")) ? "yes" : "-");
        table_cell(t, "%lld", (long long)cli_int(volume, "gib", 0));
        price_cell(t, volume);
        table_cell(t, "%s", cli_text(volume, "price_from"));
        table_cell(t, "%s", cli_ago(v, "since", text, sizeof(text)));
        usd_cell(t, v, "uusd_per_day");
    }
    table_print(t);
}

static void print_instances(const json_t *items)
{
    static const char *const columns[] = {"INSTANCE", "PROVIDER", "PLACE", "TYPE", "MARKET",
        "STATE", "CLUSTER", "USD/H", "PRICE FROM", "SINCE", "USD/DAY"};
    struct table *t = table_create();
    char text[64];
    size_t i;
    json_t *v;
    for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        table_column(t, columns[i], i == 7 || i >= 9);
    json_array_foreach(items, i, v)
    {
        static const char *const keys[] = {"id", "provider", "zone", "type", "market", "state"};
        const json_t *o = json_object_get(v, "instance");
        if (!json_is_object(o))
            continue;
        const char *cluster = json_string_value(json_object_get(o, "cluster"));
        table_row(t);
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            table_cell(t, "%s", cli_text(o, keys[k]));
        table_cell(t, "%s", cluster ? cluster : "-");
        usd_cell(t, o, "uusd_per_hour");
        table_cell(t, "%s", cli_text(o, "price_from"));
        table_cell(t, "%s", cli_ago(v, "since", text, sizeof(text)));
        usd_cell(t, v, "uusd_per_day");
    }
    table_print(t);
}

/* key: "volume" or "instance" */
static bool has_any(const json_t *items, const char *key)
{
    size_t i;
    json_t *v;
    json_array_foreach(items, i, v) if (json_is_object(json_object_get(v, key))) return true;
    return false;
}

static void print_unlisted(const json_t *reply)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(reply, "unlisted"), i, v) printf(
        "\nThe %s of pool %s (%s, %s) are not known: %s\n", cli_text(v, "what"),
        cli_text(v, "pool"), cli_text(v, "provider"), cli_text(v, "region"), cli_text(v, "text"));
}

static void print_forgotten(const json_t *reply)
{
    const json_t *items = json_object_get(reply, "items");
    static const struct list_column columns[] = {{"WHAT", "code", COLUMN_TEXT},
        {"JOB", "ref", COLUMN_TEXT}, {"NODE", "node", COLUMN_INT}, {"NAME", "name", COLUMN_TEXT},
        {"OWNER", "user", COLUMN_TEXT}, {"UNTOUCHED", "since", COLUMN_AGO},
        {"BYTES", "bytes", COLUMN_INT}, {"USD/DAY", "uusd_per_day", COLUMN_USD},
        {NULL, NULL, COLUMN_TEXT}};
    char text[32];
    int64_t sum = 0;
    size_t i;
    json_t *v;
    json_array_foreach(items, i, v) sum += cli_int(v, "uusd_per_day", 0);
    cli_duration(cli_int(reply, "for_ms", 0), text, sizeof(text));
    if (json_array_size(items) == 0) {
        printf("Nothing has been unused for %s.\n", text);
        print_unlisted(reply);
        return;
    }
    list_table(items, columns);
    printf("\n%zu item%s unused for %s", json_array_size(items),
        json_array_size(items) == 1 ? "" : "s", text);
    printf("%s: %s a day.\n",
        json_is_true(json_object_get(reply, "more")) ? ", and there are more" : "",
        cli_usd(sum, text, sizeof(text)));
    if (has_any(items, "instance")) {
        printf(
            "\nInstances are in the accounts and have no tag of this cluster. belay ends none: ask "
            "who launched them, and end them at the provider.\n\n");
        print_instances(items);
    }
    if (has_any(items, "volume")) {
        printf("\nVolumes are attached to no machine. belay deletes none: check their content, and "
               "delete them at the provider.\n\n");
        print_volumes(items);
    }
    print_unlisted(reply);
}

int advise_forgotten(
    const char *user, int64_t for_ms, const char *volumes, const char *instances, bool json)
{
    struct buf path = {0};
    buf_adds(&path, "/api/v1/forgotten");
    if (for_ms >= 0)
        buf_printf(&path, "?for_ms=%lld", (long long)for_ms);
    add_user(&path, user);
    if (volumes)
        buf_printf(&path, "%cvolumes=%s", strchr(buf_str(&path), '?') ? '&' : '?', volumes);
    if (instances)
        buf_printf(&path, "%cinstances=%s", strchr(buf_str(&path), '?') ? '&' : '?', instances);
    json_t *v = cli_get(buf_str(&path));
    buf_deinit(&path);
    return show(v, json, print_forgotten);
}

int advise_reclaim(const char *text, bool json)
{
    int64_t id;
    int rc = cli_job_id(text, &id);
    if (rc != 0)
        return rc;
    json_t *v = cli_post(CLI_PATH("/api/v1/jobs/%lld/reclaim", (long long)id), NULL);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("job %s is being saved, and held until belay release %s\n", text, text);
    rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}
