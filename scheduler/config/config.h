/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's configuration: one strict YAML file, or none (`belay up`). A mistake is refused with
 * file, line, what was expected and the nearest valid name. docs/reference/configuration.md
 * describes every key.
 */
#ifndef BELAY_SCHEDULER_CONFIG_CONFIG_H
#define BELAY_SCHEDULER_CONFIG_CONFIG_H

#include "base/uv/http_listen.h"
#include "cloud/provider.h"
#include "scheduler/config/budgets.h"
#include "scheduler/config/windows.h"
#include "scheduler/config/deadlines.h"
#include "scheduler/config/notify.h"
#include "scheduler/config/order.h"
#include "scheduler/config/racks.h"
#include "scheduler/config/retries.h"
#include "scheduler/config/telemetry.h"
#include "scheduler/config/volumes.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/supply/traffic.h"

#define CONFIG_POOLS_MAX 64
#define CONFIG_OFFERS_MAX 4096 /* zones x types x markets over all pools */
#define CONFIG_NAMES_MAX 16

struct config_pool {
    struct pool_row row;
    const struct cloud_provider *provider; /* elastic only */
    char *settings[CLOUD_SETTINGS_MAX];    /* by the provider's table; NULL: absent */
    char *endpoint;                        /* of the provider's API; NULL: the real one */
    char *metadata; /* what nodes are told of the metadata service; NULL: the real one */
    const char *metadata_guard;  /* of its nodes' agents; static; NULL: their default */
    char *credentials;           /* credentials file; NULL: the provider's usual order */
    int64_t disk_gib;            /* 0: the image's own */
    int64_t launches_per_minute; /* 0: as its provider takes them */
    struct offer_row *offers;    /* id unset */
    size_t n_offers;
};

/* Of checkpoints, by the agents. */
enum config_encryption {
    ENCRYPTION_NONE,    /* new ones are not */
    ENCRYPTION_CLIENT,  /* new ones are; others are restored, too */
    ENCRYPTION_REQUIRED /* others are not restored */
};

struct config {
    char cluster[CORE_NAME_MAX]; /* default "belay" */
    char state_dir[1024];
    char socket[HTTP_UNIX_PATH_MAX + 1]; /* UNIX socket of the API; default STATE/belayd.sock */
    char listen_host[CORE_NAME_MAX];
    int listen_port;               /* 0: any free one, remembered in the state directory */
    char server_url[256];          /* what agents are told; "": https://HOST:PORT of listen */
    char *names[CONFIG_NAMES_MAX]; /* further names and addresses in the server's certificate */
    size_t n_names;
    char store[1024];             /* default file://STATE/store */
    int64_t store_uusd_gib_month; /* what it costs to keep a GiB there */
    /* where it lies; "": nobody said */
    char store_provider[TRAFFIC_PROVIDER_MAX], store_region[CORE_NAME_MAX];
    /* each job gets some for its part of the store; else nodes use their own */
    bool job_credentials;
    /* what job credentials would need, where nobody has chosen; static, NULL: nothing to say */
    const char *why_node_credentials;
    char *store_role, *store_kms_key, *store_sts; /* for those; NULL: not set */
    int64_t store_life_ms;                        /* 0: not set */
    enum config_encryption encryption;
    char key_file[1024]; /* of encrypted checkpoints; default STATE/checkpoint.keys */
    int64_t lease_ms, sync_ms, kill_wait_ms, store_wait_ms;
    int64_t sweep_ms, busy_sweep_ms, settle_ms, price_ms;
    int64_t log_job_bytes, log_user_day_bytes; /* of output that is kept; 0: no limit */
    int64_t store_user_day_bytes;              /* of requests that change something; 0: no limit */
    int64_t workdir_user_bytes; /* of working directories that were sent; 0: no limit */
    int64_t node_cert_ms;       /* life of a node's certificate */
    int64_t api_token_ms;       /* life of an API token for which none was asked */
    int64_t orphan_ms;          /* a node without belayd for longer saves, stops and ends itself */
    struct retry_options retries;
    struct pace_options deadlines;
    struct config_notify notify;
    struct config_telemetry telemetry;
    int32_t hold_in_vain;                    /* as model_options has it */
    int64_t retention_ms;                    /* how long checkpoints of ended jobs stay */
    int64_t max_nodes, max_gpus, max_uusd_h; /* of all elastic pools together; 0: no limit */
    struct order_options order;              /* in which jobs run */
    struct count licences[LICENCES_MAX];     /* of the cluster */
    size_t n_licences;
    struct config_window *windows; /* in which some run only */
    size_t n_windows;
    struct config_budget *budgets;
    size_t n_budgets;
    struct rack_options *racks; /* where nodes stand, and what they may draw together */
    size_t n_racks;
    struct volume_price *volume_prices; /* of volumes at the providers, where not the catalogue's */
    size_t n_volume_prices;
    struct config_pool *pools;
    size_t n_pools;
};

/* Fills *ret_config from the n bytes of a file (file is used in error texts), with defaults for
 * what is absent; state_dir NULL: the file must name it or /var/lib/belay is taken. ERR_INVALID. */
int config_parse(const char *file, const char *text, size_t n, const char *state_dir,
    struct config *ret_config, struct err *e);

/* The same of a file that has the section `pools:` and may have `limits:` and `providers:`, and no
 * other; without limits those of base hold. Of *ret_config only pools and limits are filled. */
int config_parse_pools(const char *file, const char *text, size_t n, const struct config *base,
    struct config *ret_config, struct err *e);
void config_deinit(struct config *c);

#endif
