/* SPDX-License-Identifier: Apache-2.0
 *
 * belay pools
 */
#include "cli/lists.h"
#include "cli/verbs.h"

static const struct list_column columns[] = {
    {"POOL", "name", COLUMN_TEXT},
    {"KIND", "kind", COLUMN_TEXT},
    {"PROVIDER", "provider", COLUMN_TEXT},
    {"REGION", "region", COLUMN_TEXT},
    {"MAX NODES", "max_nodes", COLUMN_INT},
    {"IDLE TIMEOUT", "idle_timeout_ms", COLUMN_DURATION},
    {"PRICE/H", "uusd_per_hour", COLUMN_USD_H},
    {NULL, NULL, COLUMN_TEXT},
};

static int run(int argc, const char **argv)
{
    return list_run(&verb_pools, "/api/v1/pools", "pools", columns, argc, argv);
}

const struct verb verb_pools = {"pools", CLI_NO_WORDS, "list pools", run, NULL, false};
