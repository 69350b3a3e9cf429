/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/audit_log.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/list_table.h"
#include "cli/since.h"
#include <stdio.h>
#include <stdlib.h>

static const struct list_column columns[] = {
    {"SEQ", "seq", COLUMN_INT},
    {"AT", "at", COLUMN_WHEN},
    {"USER", "user", COLUMN_TEXT},
    {"FROM", "source", COLUMN_TEXT},
    {"CALL", "route", COLUMN_TEXT},
    {"OBJECT", "object", COLUMN_TEXT},
    {"RESULT", "result", COLUMN_TEXT},
    {"REQUEST", "request", COLUMN_TEXT},
    {NULL, NULL, COLUMN_TEXT},
};

/* With --json, one object a line: a log that is exported while it is read. */
static void print_lines(const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)rows, i, row)
    {
        char *text = json_dump_text(row);
        printf("%s\n", text);
        free(text);
    }
}

/* Returns the rows of a page after *after; NULL after a report. */
static json_t *get_page(const struct admin_options *o, int64_t *after)
{
    struct buf path = {0};
    char number[24];
    snprintf(number, sizeof(number), "%lld", (long long)*after);
    buf_adds(&path, "/api/v1/admin/audit-log");
    cli_add_parameter(&path, "after", number);
    if (o->since)
        cli_add_parameter(&path, "since", o->since);
    json_t *v = cli_get(buf_str(&path));
    json_t *rows = v ? json_incref(json_object_get(v, "rows")) : NULL;
    *after = v ? cli_int(v, "last", *after) : *after;
    json_decref(v);
    buf_deinit(&path);
    return rows;
}

static int list(const struct admin_options *o)
{
    int64_t after = 0;
    json_t *rows, *all = json_array();
    size_t n = 1;
    while (n > 0 && (rows = get_page(o, &after))) {
        n = json_array_size(rows);
        if (o->json)
            print_lines(rows);
        else
            json_array_extend(all, rows);
        json_decref(rows);
    }
    if (n == 0 && !o->json && json_array_size(all) > 0)
        list_table(all, columns);
    else if (n == 0 && !o->json)
        cli_print_empty("the audit log has no such rows");
    json_decref(all);
    return n == 0 ? CLI_OK : CLI_FAILED;
}

static int verify(const struct admin_options *o)
{
    struct buf path = {0};
    buf_adds(&path, "/api/v1/admin/audit-log/verify");
    if (o->head)
        cli_add_parameter(&path, "head", o->head);
    json_t *v = cli_get(buf_str(&path));
    bool is_fine = v && json_is_null(json_object_get(v, "fault"));
    if (v && o->json)
        cli_print_json(v);
    else if (is_fine)
        printf("%lld rows, complete. Head: %lld:%s\n", (long long)cli_int(v, "rows", 0),
            (long long)cli_int(v, "rows", 0), cli_text(v, "hash"));
    else if (v)
        cli_error("%s", cli_text(v, "fault"));
    json_decref(v);
    buf_deinit(&path);
    return is_fine ? CLI_OK : CLI_FAILED;
}

/* belayd gets an absolute time. */
static int list_since(const struct admin_options *o)
{
    struct admin_options with = *o;
    char at[TIME_ISO_MAX];
    struct wall since;
    struct err e;
    if (o->since && since_parse(o->since, clock_wall(&clock_system), &since, &e) != 0) {
        cli_error("--since: %s", e.text);
        return CLI_USAGE;
    }
    if (o->since) {
        time_format_iso(since, at);
        with.since = at;
    }
    return list(&with);
}

int admin_audit_log(const struct admin_options *o, const char *word)
{
    if (!word)
        return list_since(o);
    if (str_eq(word, "verify"))
        return verify(o);
    cli_error("expected belay admin audit-log, or belay admin audit-log verify");
    return CLI_USAGE;
}

int admin_log_level(const struct admin_options *o, const char *level)
{
    json_t *request = json_pack("{s:o}", "level", json_text(level));
    json_t *v = cli_post("/api/v1/admin/log-level", request);
    if (v && o->json)
        cli_print_json(v);
    else if (v)
        printf("belayd logs at level %s until it ends\n", cli_text(v, "level"));
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    json_decref(request);
    return rc;
}
