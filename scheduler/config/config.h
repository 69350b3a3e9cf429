/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's configuration: one strict YAML file, or none (`belay up`). A mistake is refused with
 * file, line, what was expected and the nearest valid name. docs/reference/configuration.md
 * describes every key.
 */
#ifndef BELAY_SCHEDULER_CONFIG_CONFIG_H
#define BELAY_SCHEDULER_CONFIG_CONFIG_H

#include "base/http.h"
#include "scheduler/config/access.h"
#include "scheduler/config/budgets.h"
#include "scheduler/config/digest.h"
#include "scheduler/config/spend.h"
#include "scheduler/config/failing_nodes.h"
#include "scheduler/config/windows.h"
#include "scheduler/config/calendars.h"
#include "scheduler/config/procurement.h"
#include "scheduler/config/notify.h"
#include "scheduler/config/oidc.h"
#include "scheduler/config/policy.h"
#include "scheduler/config/pools.h"
#include "scheduler/config/racks.h"
#include "scheduler/config/retention.h"
#include "scheduler/config/retries.h"
#include "scheduler/config/telemetry.h"
#include "scheduler/config/volumes.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/placement/constraints.h"

#define CONFIG_NAMES_MAX 16

/* Encryption of checkpoints by the agents. */
enum config_encryption {
    ENCRYPTION_NONE,    /* new checkpoints are not encrypted */
    ENCRYPTION_CLIENT,  /* new ones are encrypted; unencrypted ones are still restored */
    ENCRYPTION_REQUIRED /* unencrypted ones are not restored */
};

/* Who may connect to the UNIX socket; the kernel identifies them in either case. */
enum config_socket_users {
    SOCKET_OWNER, /* root and the user who runs belayd; default, unless that is root */
    SOCKET_ALL    /* every user of this machine */
};

struct config {
    char cluster[CORE_NAME_MAX]; /* default "belay" */
    char state_dir[1024];
    char socket[HTTP_UNIX_PATH_MAX + 1]; /* UNIX socket of the API; default STATE/belayd.sock */
    enum config_socket_users socket_users;
    char listen_host[CORE_NAME_MAX];
    int listen_port;               /* 0 = any free one, remembered in the state directory */
    char server_url[256];          /* the URL for agents; "" = https://HOST:PORT of listen */
    char *names[CONFIG_NAMES_MAX]; /* further names and addresses in the server's certificate */
    size_t n_names;
    char store[1024];             /* default file://STATE/store */
    int64_t store_uusd_gib_month; /* price of storing a GiB there */
    /* its location; "" = unknown */
    char store_provider[INPUT_PROVIDER_MAX], store_region[CORE_NAME_MAX];
    /* each job gets credentials for its part of the store; else nodes use their own */
    bool job_credentials;
    /* why job credentials are not the default; static, NULL if there is nothing to report */
    const char *why_node_credentials;
    char *store_role, *store_kms_key, *store_sts; /* for job credentials; NULL if not set */
    int64_t store_life_ms;                        /* 0 = not set */
    enum config_encryption encryption;
    char key_file[1024];        /* of encrypted checkpoints; default STATE/checkpoint.keys */
    char secret_key_file[1024]; /* of the database; "" = see scheduler/secrets/key_file.h */
    int64_t lease_ms, sync_ms, kill_wait_ms, store_wait_ms;
    int64_t sweep_ms, busy_sweep_ms, settle_ms, price_ms;
    int64_t log_job_bytes, log_user_day_bytes; /* limits of stored output; 0 = unlimited */
    int64_t log_full_wait_ms;     /* how long agents keep output while the disk is almost full */
    int64_t store_user_day_bytes; /* limit of changing requests; 0 = unlimited */
    int64_t workdir_user_bytes;   /* limit of working directories that were sent; 0 = unlimited */
    int64_t node_cert_ms;         /* lifetime of a node's certificate */
    int64_t api_token_ms;         /* default lifetime of an API token */
    /* a node without belayd for longer saves and stops its jobs and shuts down */
    int64_t orphan_ms;
    struct retry_options retries;
    struct procurement_options deadlines;
    struct config_notify notify;
    struct config_digest digest;
    struct config_spend spend;
    struct config_telemetry telemetry;
    int32_t no_progress_max; /* see model_options */
    struct config_retention retention;
    struct node_failures_options failing_nodes;
    /* limits of all elastic pools together; 0 = unlimited */
    int64_t max_nodes, max_gpus, max_uusd_h;
    struct queue_policy policy;          /* the order of the queue */
    struct config_access access;         /* roles of users, and who sees whose jobs */
    struct config_oidc oidc;             /* where users sign in */
    struct count licences[LICENCES_MAX]; /* of the cluster */
    size_t n_licences;
    struct config_window *windows; /* in which some run only */
    size_t n_windows;
    struct calendar *calendars; /* days that cron entries leave out */
    size_t n_calendars;
    struct config_budget *budgets;
    size_t n_budgets;
    struct rack_options *racks; /* racks with their nodes and power limits */
    size_t n_racks;
    struct volume_price *volume_prices; /* prices of volumes that override the catalogue's */
    size_t n_volume_prices;
    struct config_pool *pools;
    size_t n_pools;
};

/* Fills *ret_config from the n bytes of a file (file is its name in error texts), with defaults for
 * absent keys. state_dir may be NULL: then the file's key or /var/lib/belay applies.
 * ERR_INVALID. */
int config_parse(const char *file, const char *text, size_t n, const char *state_dir,
    struct config *ret_config, struct err *e);

/* The same for a file with the section `pools:`, optionally `limits:` and `providers:`, and no
 * other; without limits those of base apply. Fills only the pools and limits of *ret_config. */
int config_parse_pools(const char *file, const char *text, size_t n, const struct config *base,
    struct config *ret_config, struct err *e);
void config_deinit(struct config *c);

/* The host of server, an IPv6 address without its brackets; "": there is no server, or it has no
 * space. */
void config_server_host(const struct config *c, char *out, size_t size);

#endif
