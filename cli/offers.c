/* SPDX-License-Identifier: Apache-2.0
 *
 * belay offers: what could be bought, its price, and what was learned of it.
 */
#include "cli/lists.h"
#include "cli/verbs.h"

static const struct list_column columns[] = {
    {"POOL", "pool", COLUMN_TEXT},
    {"ZONE", "zone", COLUMN_TEXT},
    {"TYPE", "type", COLUMN_TEXT},
    {"MARKET", "market", COLUMN_TEXT},
    {"CPUS", "cpus", COLUMN_INT},
    {"MIB", "memory_mib", COLUMN_INT},
    {"GPUS", "gpus", COLUMN_INT},
    {"PRICE/H", "price_uusd_h", COLUMN_USD_H},
    {"ON-DEMAND/H", "on_demand_uusd_h", COLUMN_USD_H},
    {"LAUNCHES", "launches", COLUMN_INT},
    {"REFUSALS", "refusals", COLUMN_INT},
    {"RECLAIMS", "reclaims", COLUMN_INT},
    {NULL, NULL, COLUMN_TEXT},
};

static int run(int argc, const char **argv)
{
    return list_run(&verb_offers, "/api/v1/offers", "offers", columns, argc, argv);
}

const struct verb verb_offers = {
    "offers", CLI_NO_WORDS, "list what can be bought, with prices and what was learned", run, NULL, false};
