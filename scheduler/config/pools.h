/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections `pools:` and `providers:` of belayd's configuration.
 */
#ifndef BELAY_SCHEDULER_CONFIG_POOLS_H
#define BELAY_SCHEDULER_CONFIG_POOLS_H

#include "base/yaml.h"
#include "cloud/provider.h"
#include "scheduler/config/run_as.h"
#include "scheduler/core/model/model.h"

#define CONFIG_POOLS_MAX 64
#define CONFIG_OFFERS_MAX 4096 /* zones x types x markets over all pools */

struct config_pool {
    struct pool_row row;
    const struct cloud_provider *provider; /* elastic only */
    /* in the order of the provider's table; NULL if absent */
    char *settings[CLOUD_SETTINGS_MAX];
    char *endpoint; /* of the provider's API; NULL for the real one */
    char *metadata; /* URL of the metadata service for nodes; NULL for the real one */
    /* the setting for its nodes' agents; static; NULL for their default */
    const char *metadata_guard;
    int64_t notice_reserve_ms;   /* the same; 0 for their default */
    char *prolog, *epilog;       /* the same: paths on its nodes; NULL for none */
    int64_t hook_timeout_ms;     /* the same; 0 for their default */
    char *credentials;           /* credentials file; NULL for the provider's usual order */
    int64_t disk_gib;            /* 0 = the image's own */
    int64_t launches_per_minute; /* 0 = the provider's limit */
    struct run_as run_as;        /* accounts on its nodes */
    struct new_accounts create_accounts;
    struct offer_row *offers; /* id unset */
    size_t n_offers;
};

struct config;

/* Checks that each provider is a mapping of keys that a pool may inherit. ERR_INVALID. */
int config_check_providers(const char *file, const struct yaml_node *providers, struct err *e);
/* Reads `pools:` into c, which has the store's location; providers (may be NULL) has passed
 * config_check_providers. ERR_INVALID; free c->pools in all cases. */
int config_read_pools(const char *file, const struct yaml_node *map,
    const struct yaml_node *providers, struct config *c, struct err *e);
/* Without pools every machine that joins belongs to one reserved pool that costs nothing. */
void config_default_pools(struct config *c);
void config_pools_free(struct config_pool *pools, size_t n);

#endif
