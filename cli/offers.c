/* SPDX-License-Identifier: Apache-2.0
 *
 * belay offers: the configured offers, their prices, and observations of them.
 */
#include "cli/list_table.h"
#include "cli/offers.h"
#include "cli/verbs.h"

enum { VAL_ALL = 1 };

const struct list_column offer_columns[] = {
    {"POOL", "pool", COLUMN_TEXT},
    {"ZONE", "zone", COLUMN_TEXT},
    {"TYPE", "type", COLUMN_TEXT},
    {"MARKET", "market", COLUMN_TEXT},
    {"CPUS", "cpus", COLUMN_INT},
    {"MIB", "memory_mib", COLUMN_INT, .is_extra = true},
    {"GPUS", "gpus", COLUMN_INT},
    {"PRICE/H", "price_uusd_h", COLUMN_USD_H},
    {"EFFECTIVE/H", "effective_uusd_h", COLUMN_USD_H, .is_extra = true},
    {"ON-DEMAND/H", "on_demand_uusd_h", COLUMN_USD_H},
    {"SCORE", "placement_score", COLUMN_INT, .is_extra = true},
    {"LAUNCHES", "launches", COLUMN_INT, .is_extra = true},
    {"REFUSALS", "refusals", COLUMN_INT, .is_extra = true},
    {"AVOIDED FOR", "avoided_ms", COLUMN_DURATION},
    {"WHY", "avoided_why", COLUMN_TEXT, .is_extra = true},
    {"FAILED BOOTS", "failed_boots_of_pool", COLUMN_INT, .is_extra = true},
    {"BOOT", "boot_ms", COLUMN_DURATION},
    {"RECLAIMS", "reclaims", COLUMN_INT, .is_extra = true},
    {"RECLAIMS/H", "reclaims_per_hour", COLUMN_REAL},
    {"REBALANCES", "rebalances", COLUMN_INT, .is_extra = true},
    {"CAME TRUE", "rebalances_true", COLUMN_INT, .is_extra = true},
    {NULL, NULL, COLUMN_TEXT},
};

static int on_option(void *ctx, int val, const char *arg)
{
    bool *all = ctx;
    (void)val, (void)arg;
    *all = true;
    return CLI_OK;
}

void offers_drop_withdrawn(json_t *offers)
{
    for (size_t i = json_array_size(offers); i-- > 0;)
        if (json_is_true(json_object_get(json_array_get(offers, i), "withdrawn")))
            json_array_remove(offers, i);
}

static int run(int argc, const char **argv)
{
    bool all = false;
    struct cli_args a;
    int rc = cli_parse(&verb_offers, argc, argv, false, on_option, &all, &a);
    json_t *v = rc == 0 ? cli_get("/api/v1/offers") : NULL;
    if (rc == 0 && !v)
        rc = CLI_FAILED;
    if (v && !all)
        offers_drop_withdrawn(json_object_get(v, "offers"));
    if (v)
        rc = list_output(&a, v, "offers", offer_columns);
    if (v && !a.json && json_array_size(json_object_get(v, "offers")) == 0)
        cli_print_empty("no offers");
    json_decref(v);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"all", 'a', POPT_ARG_NONE, NULL, VAL_ALL, "include offers that are no longer configured",
        NULL},
    POPT_TABLEEND,
};

const struct verb verb_offers = {"offers", CLI_NO_WORDS, "list offers with prices and observations",
    run, options, false, .lists = true, .examples = "belay offers\n"};
