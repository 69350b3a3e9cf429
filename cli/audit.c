/* SPDX-License-Identifier: Apache-2.0
 *
 * belay audit: cross-checks provider, database and ledger.
 */
#include "cli/list_table.h"
#include "cli/verbs.h"

#include <stdio.h>

#define AUDIT_MS 700000 /* belayd times out earlier */

static const struct list_column columns[] = {
    {"WHAT", "kind", COLUMN_TEXT},
    {"POOL", "pool", COLUMN_TEXT},
    {"INSTANCE", "instance", COLUMN_INT},
    {"PROVIDER'S ID", "provider_id", COLUMN_TEXT},
    {"FOUND", "text", COLUMN_TEXT},
    {NULL, NULL, COLUMN_TEXT},
};

static void print_result(const json_t *v)
{
    const json_t *differences = json_object_get(v, "differences");
    long long found = cli_int(v, "found", 0), shown = (long long)json_array_size(differences);
    if (shown > 0)
        list_table(differences, columns);
    if (found > shown)
        printf("and %lld more\n", found - shown);
    printf("%lld difference%s: %lld machine%s of %lld pool%s, %lld instance%s in the database\n",
        found, found == 1 ? "" : "s", (long long)cli_int(v, "machines", 0),
        cli_int(v, "machines", 0) == 1 ? "" : "s", (long long)cli_int(v, "pools", 0),
        cli_int(v, "pools", 0) == 1 ? "" : "s", (long long)cli_int(v, "instances", 0),
        cli_int(v, "instances", 0) == 1 ? "" : "s");
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(&verb_audit, argc, argv, false, NULL, NULL, &a);
    if (rc == 0) {
        json_t *v = cli_post_long("/api/v1/audit", NULL, AUDIT_MS);
        if (v && a.json)
            cli_print_json(v);
        else if (v)
            print_result(v);
        rc = v && cli_int(v, "found", -1) == 0 ? CLI_OK : CLI_FAILED;
        json_decref(v);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_audit = {"audit", CLI_NO_WORDS, "cross-check provider, database and ledger",
    run, NULL, false, .folds = true, .examples = "belay audit\n"};
