/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses belayd's configuration (see config.h). Opens no files: the caller has read the text.
 */
#include "scheduler/config/config.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/yaml_extras.h"
#include "scheduler/config/readers.h"
#include "scheduler/config/store.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_PROGRESS_MAX 10
#define HOST_MAX 253
#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:"

void config_server_host(const struct config *c, char *out, size_t size)
{
    const char *from = strstr(c->server_url, "://");
    from = from ? from + 3 : c->server_url;
    bool is_bracketed = *from == '[';
    from += is_bracketed;
    char *host = mem_strndup(from, strcspn(from, is_bracketed ? "]" : ":/?#"));
    if (!str_copy(out, size, host))
        out[0] = '\0';
    free(host);
}

/* Reads HOST:PORT, where an IPv6 address is in brackets. */
static void read_listen(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *node = yaml_opt(r, "listen");
    const char *listen = yaml_opt_str(r, "listen", 80, "127.0.0.1:7443");
    const char *colon = strrchr(listen, ':');
    size_t n = colon ? (size_t)(colon - listen) : 0;
    int64_t port = 0;
    char shown[STR_SHOW_MAX];
    if (n >= 2 && listen[0] == '[' && listen[n - 1] == ']') {
        listen++;
        n -= 2;
    } else if (n > 0 && memchr(listen, ':', n)) {
        n = 0;
    }
    if (n == 0 || n >= sizeof(c->listen_host) || !config_is_plain(listen) ||
        str_to_i64(colon + 1, 0, 65535, "port", &port, NULL) != 0) {
        yaml_reader_fail(r, node,
            "expected HOST:PORT or [ADDRESS]:PORT with a port in 0 .. 65535, found %s",
            str_show(node ? node->text : listen, shown));
        return;
    }
    memcpy(c->listen_host, listen, n);
    c->listen_port = (int)port;
}

static void read_names(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *seq = yaml_opt_seq(r, "names", CONFIG_NAMES_MAX);
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        const struct yaml_node *item = seq->items[i];
        const char *name = item->type == YAML_SCALAR ? item->text : "";
        if (!name[0] || strlen(name) > HOST_MAX || name[strspn(name, HOST_CHARACTERS)]) {
            char shown[STR_SHOW_MAX];
            yaml_reader_fail(r, item, "names: expected a host name or address, found %s",
                str_show(item->type == YAML_SCALAR ? name : "(not a text)", shown));
            return;
        }
        c->names[c->n_names++] = mem_strdup(name);
    }
}

static void read_times(struct yaml_reader *r, struct config *c)
{
    c->lease_ms = config_opt_time(r, "lease", SECONDS_MS(1), SECONDS_MS(30));
    c->kill_wait_ms = config_opt_time(r, "kill_wait", 0, SECONDS_MS(30));
    c->store_wait_ms = config_opt_time(r, "store_wait", SECONDS_MS(1), SECONDS_MS(600));
    c->sweep_ms = config_opt_time(r, "sweep", 100, SECONDS_MS(60));
    c->busy_sweep_ms = config_opt_time(r, "busy_sweep", 100, SECONDS_MS(5));
    c->settle_ms = config_opt_time(r, "settle", 0, SECONDS_MS(60));
    c->price_ms = config_opt_time(r, "price_every", 100, SECONDS_MS(300));
    c->node_cert_ms =
        config_opt_time(r, "node_certificate", SECONDS_MS(60), SECONDS_MS(30 * 86400));
    c->api_token_ms =
        config_opt_time(r, "api_token_lifetime", SECONDS_MS(60), SECONDS_MS(90 * 86400));
    c->orphan_ms = config_opt_time(r, "orphan_timeout", SECONDS_MS(1), SECONDS_MS(3600));
    /* the former name of no_progress_max */
    const int64_t in_vain = yaml_opt_i64(r, "hold_in_vain", 0, 1000000, NO_PROGRESS_MAX);
    c->no_progress_max = (int32_t)yaml_opt_i64(r, "no_progress_max", 0, 1000000, in_vain);
    c->sync_ms = c->lease_ms / 3 < 20000 ? c->lease_ms / 3 : 20000;
}

static void read_logs(struct yaml_reader *r, struct config *c)
{
    c->log_job_bytes = config_opt_bytes(r, "log_max_per_job", "4G");
    c->log_user_day_bytes = config_opt_bytes(r, "log_max_per_user_day", "64G");
    c->log_full_wait_ms = config_opt_time(r, "log_full_wait", 0, SECONDS_MS(300));
    c->store_user_day_bytes = config_opt_bytes(r, "store_max_per_user_day", "4G");
    c->workdir_user_bytes = config_opt_bytes(r, "workdir_max_per_user", "20G");
}

static const char *const socket_users_words[] = {"owner", "all", NULL};

static void read_secret_keys(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *node = yaml_opt(r, "secret_key_file");
    const char *path = yaml_opt_str(r, "secret_key_file", sizeof(c->secret_key_file) - 1, "");
    char shown[STR_SHOW_MAX];
    if (*path && path[0] != '/')
        yaml_reader_fail(r, node, "expected an absolute path, found %s", str_show(path, shown));
    STR_COPY(c->secret_key_file, path);
}

/* Reads the state directory and the socket. state_dir: from the command line, overrides the file's;
 * may be NULL. */
static void read_state(struct yaml_reader *r, struct config *c, const char *state_dir)
{
    const struct yaml_node *dir_node = yaml_opt(r, "state"), *socket_node = yaml_opt(r, "socket");
    const char *dir = yaml_opt_str(r, "state", sizeof(c->state_dir) - 1, "/var/lib/belay");
    const char *socket = yaml_opt_str(r, "socket", sizeof(c->socket) - 1, NULL);
    char shown[STR_SHOW_MAX];
    if (!STR_COPY(c->state_dir, state_dir ? state_dir : dir))
        yaml_reader_fail(r, NULL, "the state directory's path is longer than %zu bytes",
            sizeof(c->state_dir) - 1);
    if (c->state_dir[0] != '/')
        yaml_reader_fail(r, state_dir ? NULL : dir_node,
            "expected an absolute path for the state, found %s", str_show(c->state_dir, shown));
    if (socket && socket[0] != '/')
        yaml_reader_fail(
            r, socket_node, "expected an absolute path, found %s", str_show(socket, shown));
    config_copy_path(
        r, "socket", socket, "", c->state_dir, "/belayd.sock", c->socket, sizeof(c->socket));
    read_secret_keys(r, c);
    c->socket_users = (enum config_socket_users)yaml_opt_enum(
        r, "socket_users", socket_users_words, geteuid() == 0 ? SOCKET_ALL : SOCKET_OWNER);
}

static void read_cluster(struct yaml_reader *r, struct config *c)
{
    const struct yaml_node *node = yaml_opt(r, "cluster");
    const char *name = yaml_opt_str(r, "cluster", CORE_NAME_MAX - 1, "belay");
    char shown[STR_SHOW_MAX];
    if (!str_is_name(name, CORE_NAME_MAX - 1))
        yaml_reader_fail(r, node, "expected a name of letters, digits, '.', '_', '-', found %s",
            str_show(name, shown));
    STR_COPY(c->cluster, name);
}

static int read_limits(
    const char *file, const struct yaml_node *map, struct config *c, struct err *e)
{
    struct yaml_reader r;
    yaml_reader_init(&r, file, map, e);
    c->max_nodes = yaml_opt_i64(&r, "max_nodes", 1, 1000000, 0);
    c->max_gpus = yaml_opt_i64(&r, "max_gpus", 1, 1000000, 0);
    c->max_uusd_h = yaml_opt_uusd(&r, "max_usd_per_hour", 0);
    return yaml_reader_finish(&r);
}

int config_parse(const char *file, const char *text, size_t n, const char *state_dir,
    struct config *ret_config, struct err *e)
{
    struct config c = {0};
    struct yaml_node *root = NULL;
    struct yaml_reader r;
    int rc = yaml_parse(file, text, n, &root, e);
    if (rc != 0)
        return rc;
    yaml_reader_init(&r, file, root, e);
    read_cluster(&r, &c);
    read_state(&r, &c, state_dir);
    config_read_store(&r, &c);
    read_listen(&r, &c);
    read_names(&r, &c);
    STR_COPY(
        c.server_url, config_opt_url(&r, "server", sizeof(c.server_url) - 1, "https://", NULL, ""));
    read_times(&r, &c);
    read_logs(&r, &c);
    config_read_retention(&r, &c.retention);
    config_read_policy(&r, &c.policy);
    config_read_access(&r, &c.policy, &c.access);
    config_read_oidc(&r, &c.policy, &c.oidc);
    config_read_windows(&r, &c.windows, &c.n_windows);
    config_read_calendars(&r, &c.calendars, &c.n_calendars);
    config_read_budgets(&r, c.windows, c.n_windows, &c.budgets, &c.n_budgets);
    config_read_racks(&r, &c.racks, &c.n_racks);
    config_read_volumes(&r, &c.volume_prices, &c.n_volume_prices);
    config_read_procurement(&r, &c.deadlines);
    config_read_retries(&r, "retries", &c.retries.defaults);
    config_read_retries(&r, "retries_max", &c.retries.max);
    c.n_licences = yaml_opt_count_list(&r, "licences", c.licences, LICENCES_MAX);
    config_read_notify(&r, &c.notify);
    config_read_digest(&r, &c.digest);
    config_read_spend(&r, &c.spend);
    config_read_telemetry(&r, &c.telemetry);
    config_read_failing_nodes(&r, &c.failing_nodes);
    const struct yaml_node *pools = yaml_opt_map(&r, "pools"), *limits = yaml_opt_map(&r, "limits");
    const struct yaml_node *providers = yaml_opt_map(&r, "providers");
    rc = yaml_reader_finish(&r);
    if (rc == 0 && limits)
        rc = read_limits(file, limits, &c, e);
    if (rc == 0 && providers)
        rc = config_check_providers(file, providers, e);
    if (rc == 0 && pools)
        rc = config_read_pools(file, pools, providers, &c, e);
    else if (rc == 0)
        config_default_pools(&c);
    yaml_node_free(root);
    if (rc != 0)
        config_deinit(&c);
    else
        *ret_config = c;
    return rc;
}

int config_parse_pools(const char *file, const char *text, size_t n, const struct config *base,
    struct config *ret_config, struct err *e)
{
    struct config c = {
        .max_nodes = base->max_nodes, .max_gpus = base->max_gpus, .max_uusd_h = base->max_uusd_h};
    STR_COPY(c.store_provider, base->store_provider);
    STR_COPY(c.store_region, base->store_region);
    struct yaml_node *root = NULL;
    struct yaml_reader r;
    int rc = yaml_parse(file, text, n, &root, e);
    if (rc != 0)
        return rc;
    yaml_reader_init(&r, file, root, e);
    const struct yaml_node *pools = yaml_opt_map(&r, "pools"), *limits = yaml_opt_map(&r, "limits");
    const struct yaml_node *providers = yaml_opt_map(&r, "providers");
    if (!pools)
        yaml_reader_fail(&r, NULL, "a section \"pools:\" is needed, as in belayd's configuration");
    rc = yaml_reader_finish(&r);
    if (rc == 0 && limits)
        rc = read_limits(file, limits, &c, e);
    if (rc == 0 && providers)
        rc = config_check_providers(file, providers, e);
    if (rc == 0)
        rc = config_read_pools(file, pools, providers, &c, e);
    yaml_node_free(root);
    if (rc != 0)
        config_deinit(&c);
    else
        *ret_config = c;
    return rc;
}

void config_deinit(struct config *c)
{
    for (size_t i = 0; i < c->n_names; i++)
        free(c->names[i]);
    config_pools_free(c->pools, c->n_pools);
    config_policy_deinit(&c->policy);
    config_access_deinit(&c->access);
    config_oidc_deinit(&c->oidc);
    config_notify_deinit(&c->notify);
    config_digest_deinit(&c->digest);
    config_spend_deinit(&c->spend);
    free(c->windows);
    config_calendars_free(c->calendars, c->n_calendars);
    config_budgets_free(c->budgets, c->n_budgets);
    free(c->racks);
    free(c->volume_prices);
    free(c->store_role);
    free(c->store_kms_key);
    free(c->store_sts);
    *c = (struct config){0};
}
