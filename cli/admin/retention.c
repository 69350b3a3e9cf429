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

static void print_line(const char *name, const json_t *of, const char *next)
{
    char in_use[SIZE_MAX_TEXT], most[SIZE_MAX_TEXT], over[SIZE_MAX_TEXT];
    printf("%-16s %12s %12s %12s  %s\n", name, size(of, "bytes", in_use),
        size(of, "max_bytes", most), size(of, "over_bytes", over), next);
}

static void print_output(const char *name, const json_t *of, const char *what)
{
    char next[80] = "-";
    if (json_is_null(of)) {
        printf("%-16s %12s\n", name, "not counted");
        return;
    }
    if (number(of, "next_job") > 0)
        snprintf(next, sizeof(next), "job %" PRId64 "%s", number(of, "next_job"), what);
    print_line(name, of, next);
}

int admin_retention(const struct admin_options *o, const char *word)
{
    json_t *v = cli_get("/api/v1/admin/retention");
    (void)word;
    if (v && o->json) {
        cli_print_json(v);
    } else if (v) {
        const json_t *d = json_object_get(v, "database");
        char next[80] = "-";
        if (json_is_string(json_object_get(d, "oldest_ended_at")))
            snprintf(next, sizeof(next), "jobs that ended at %s", cli_text(d, "oldest_ended_at"));
        printf("%-16s %12s %12s %12s  %s\n", "WHAT", "IN USE", "LIMIT", "OVER", "GOES FIRST");
        print_line("database", d, next);
        print_output("logs on disk", json_object_get(v, "logs_on_disk"), ", to the store");
        print_output("logs in store", json_object_get(v, "logs_in_store"), "");
    }
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}
