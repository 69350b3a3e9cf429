/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/volumes.h"

#include "base/mem.h"
#include "base/str.h"
#include "cloud/provider.h"
#include "scheduler/core/model/model.h"

static void read_price(struct yaml_reader *r, const char *provider, const struct yaml_node *item,
    struct volume_price *prices, size_t *n)
{
    struct err e;
    char shown[STR_SHOW_MAX];
    struct volume_price p = {0};
    STR_COPY(p.provider, provider);
    if (!str_is_name(item->key, sizeof(p.type) - 1) || !STR_COPY(p.type, item->key))
        yaml_reader_fail(r, item,
            "expected the provider's word for a type of volumes, as gp3, found %s",
            str_show(item->key, shown));
    else if (item->type != YAML_SCALAR || str_to_uusd(item->text, &p.uusd_gib_month, &e) != 0 ||
             p.uusd_gib_month > MODEL_STORE_UUSD_MAX)
        yaml_reader_fail(r, item, "expected what a GiB costs a month, 0 to a million dollars");
    else if (*n == VOLUME_PRICES_MAX)
        yaml_reader_fail(r, item, "at most %d prices of volumes", VOLUME_PRICES_MAX);
    else
        prices[(*n)++] = p;
}

void config_read_volumes(struct yaml_reader *root, struct volume_price **ret_prices, size_t *ret_n)
{
    const struct yaml_node *map = yaml_opt_map(root, "volume_usd_per_gib_month");
    struct yaml_reader r;
    *ret_prices = NULL;
    *ret_n = 0;
    if (!map || root->rc != 0)
        return;
    *ret_prices = mem_array(VOLUME_PRICES_MAX, sizeof(**ret_prices));
    yaml_reader_init(&r, root->file, map, root->e);
    for (size_t i = 0; cloud_provider_names[i]; i++) {
        const struct yaml_node *types = yaml_opt_map(&r, cloud_provider_names[i]);
        for (size_t k = 0; types && k < types->n_items && r.rc == 0; k++)
            read_price(&r, cloud_provider_names[i], types->items[k], *ret_prices, ret_n);
    }
    yaml_reader_finish_in(root, &r);
}
