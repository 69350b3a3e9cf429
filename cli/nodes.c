/* SPDX-License-Identifier: Apache-2.0
 *
 * belay nodes [drain|undrain|delete NODE...]
 */
#include "cli/lists.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>

enum { VAL_ALL = 1 };

static const struct list_column columns[] = {
    {"ID", "id", COLUMN_INT},
    {"NODE", "name", COLUMN_TEXT},
    {"POOL", "pool", COLUMN_TEXT},
    {"STATE", "state", COLUMN_TEXT},
    {"CPUS", "cpus", COLUMN_INT},
    {"MIB", "memory_mib", COLUMN_INT},
    {"GPUS", "gpus", COLUMN_INT},
    {"MARKET", "market", COLUMN_TEXT},
    {"PRICE/H", "price_uusd_h", COLUMN_USD_H},
    {"NOTICE", "notice", COLUMN_TEXT},
    {"UP SINCE", "joined_at", COLUMN_AGO},
    {NULL, NULL, COLUMN_TEXT},
};

static int on_option(void *ctx, int val, const char *arg)
{
    bool *all = ctx;
    (void)val, (void)arg;
    *all = true;
    return CLI_OK;
}

static int change(const char *action, const char *node, bool json)
{
    struct err e;
    int64_t id;
    if (str_to_i64(node, 1, INT64_MAX, "node", &id, &e) != 0) {
        cli_error("%s (belay nodes shows the numbers)", e.text);
        return CLI_USAGE;
    }
    char *path = mem_printf("/api/v1/nodes/%lld/%s", (long long)id, action);
    json_t *v = cli_post(path, NULL);
    free(path);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("node %lld: %s\n", (long long)id, action);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static int change_all(const struct cli_args *a)
{
    static const char *const actions[] = {"drain", "undrain", "delete", NULL};
    const char *action = a->rest[0];
    int rc = CLI_OK, i = 0;
    while (actions[i] && !str_eq(actions[i], action))
        i++;
    if (!actions[i] || a->n_rest < 2) {
        cli_error("belay nodes, or belay nodes drain|undrain|delete NODE...");
        return CLI_USAGE;
    }
    for (i = 1; i < a->n_rest; i++) {
        int one = change(action, a->rest[i], a->json);
        rc = one > rc ? one : rc;
    }
    return rc;
}

static int run(int argc, const char **argv)
{
    bool all = false;
    struct cli_args a;
    int rc = cli_parse(&verb_nodes, argc, argv, false, on_option, &all, &a);
    if (rc == 0 && a.n_rest > 0)
        rc = change_all(&a);
    else if (rc == 0)
        rc = list_print(all ? "/api/v1/nodes?state=all" : "/api/v1/nodes", "nodes", columns, a.json);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"all", 'a', POPT_ARG_NONE, NULL, VAL_ALL, "nodes that are gone too", NULL},
    POPT_TABLEEND,
};

const struct verb verb_nodes = {"nodes", "[OPTION...] [drain|undrain|delete NODE...]",
    "list, drain or remove nodes", run, options, false};
