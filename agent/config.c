/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the configuration once, at the start. A token_file is read when a join needs it and deleted
 * after.
 */
#include "agent/config.h"
#include "agent/gpu/gpus.h"
#include "agent/supervisor/limits.h"
#include "agent/gpu/telemetry.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/wire/wire.h"
#include "job/yaml_extras.h"
#include "cloud/notice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_BYTES_MAX (256u << 10)
#define CA_BYTES_MAX (64u << 10)
#define PATH_BYTES_MAX 3000
#define ORPHAN_TIMEOUT_MS SECONDS_MS(3600)
#define SHUTDOWN_TIMEOUT_MS SECONDS_MS(120)
#define HOOK_TIMEOUT_MS SECONDS_MS(60)
#define SAMPLE_MIN_MS 50
#define SAMPLE_MAX_MS 60000
#define EVERY_MAX_MS 600000
#define DIR_DEFAULT "/var/lib/belay-agent"
#define PIDS_MAX 4194304 /* the kernel's maximum */
#define METADATA_URL "http://169.254.169.254"

static void strip_slashes(char *url)
{
    size_t n = strlen(url);
    while (n > 1 && url[n - 1] == '/') /* but not the root directory */
        url[--n] = '\0';
}

static void read_server_and_dir(struct yaml_reader *r, struct config *c)
{
    char shown[STR_SHOW_MAX];
    STR_COPY(c->server, yaml_req_str(r, "server", sizeof(c->server) - 1));
    strip_slashes(c->server);
    if (!r->rc && !str_starts(c->server, "https://"))
        yaml_reader_fail(r, yaml_opt(r, "server"), "expected https://HOST:PORT, found %s",
            str_show(c->server, shown));
    const char *metadata = getenv("BELAY_METADATA");
    const char *given = yaml_opt_str(r, "metadata", sizeof(c->metadata) - 1, METADATA_URL);
    STR_COPY(c->metadata, metadata && *metadata ? metadata : given);
    strip_slashes(c->metadata);

    const char *dir = getenv("BELAY_NODE_DIR");
    given = yaml_opt_str(r, "dir", PATH_BYTES_MAX, DIR_DEFAULT);
    c->dir = mem_strdup(dir && *dir ? dir : given);
    if (!r->rc && *c->dir != '/')
        yaml_reader_fail(
            r, yaml_opt(r, "dir"), "expected an absolute path, found %s", str_show(c->dir, shown));
    if (c->dir)
        strip_slashes(c->dir);
}

static void read_memory(struct yaml_reader *r, struct config *c)
{
    struct err why;
    const char *text = yaml_opt_str(r, "memory", 32, NULL);
    if (text && str_to_mib(text, &c->memory_mib, &why))
        yaml_reader_fail(r, yaml_opt(r, "memory"), "%s", why.text);
}

static void read_gpus(struct yaml_reader *r, struct config *c)
{
    const char *model = yaml_opt_str(r, "gpu_model", 64, NULL),
               *memory = yaml_opt_str(r, "gpu_memory", 32, NULL);
    char shown[STR_SHOW_MAX];
    struct err why;
    c->gpus = yaml_opt_i64(r, "gpus", 0, GPUS_MAX, -1);
    const char *made_up = getenv("BELAY_NODE_GPUS");
    if (made_up && *made_up && str_to_i64(made_up, 0, GPUS_MAX, "GPUs", &c->gpus, &why))
        yaml_reader_fail(r, yaml_opt(r, "server"), "BELAY_NODE_GPUS: %s", why.text);
    if (model)
        gpu_model(model, c->gpu.model);
    if (model && !c->gpu.model[0])
        yaml_reader_fail(r, yaml_opt(r, "gpu_model"), "expected a model such as a100, found %s",
            str_show(model, shown));
    if (memory && str_to_mib(memory, &c->gpu.memory_mib, &why))
        yaml_reader_fail(r, yaml_opt(r, "gpu_memory"), "%s", why.text);
}

static void check_telemetry(
    struct yaml_reader *r, const struct yaml_node *at, const struct config *c)
{
    bool fits = c->sample_ms >= SAMPLE_MIN_MS && c->sample_ms <= SAMPLE_MAX_MS &&
                c->telemetry_ms >= c->sample_ms && c->telemetry_ms <= EVERY_MAX_MS;
    if (r->rc == 0 && c->telemetry_ms != 0 && !fits)
        yaml_reader_fail(r, at,
            "expected look from %dms to %ds, and every no shorter than look and at most %ds",
            SAMPLE_MIN_MS, SAMPLE_MAX_MS / 1000, EVERY_MAX_MS / 1000);
}

static void read_telemetry(struct yaml_reader *root, struct config *c)
{
    const struct yaml_node *map = yaml_opt_map(root, "telemetry");
    const char *given = getenv("BELAY_NODE_TELEMETRY");
    char sample[32] = "", every[32] = "";
    struct yaml_reader r;
    struct err why;
    c->sample_ms = TELEMETRY_SAMPLE_MS;
    c->telemetry_ms = TELEMETRY_EVERY_MS;
    if (map && root->rc == 0) {
        yaml_reader_init(&r, root->file, map, root->e);
        c->sample_ms = yaml_opt_duration_ms(&r, "look", TELEMETRY_SAMPLE_MS);
        c->telemetry_ms = yaml_opt_duration_ms(&r, "every", TELEMETRY_EVERY_MS);
        yaml_reader_finish_in(root, &r);
        check_telemetry(root, map, c);
    }
    if (!given || !*given || root->rc != 0)
        return;
    if (sscanf(given, "%31s %31s", sample, every) != 2 ||
        time_parse_duration(sample, false, &c->sample_ms, &why) != 0 ||
        time_parse_duration(every, false, &c->telemetry_ms, &why) != 0)
        yaml_reader_fail(root, yaml_opt(root, "server"),
            "BELAY_NODE_TELEMETRY: expected two times, such as 5s 60s");
    check_telemetry(root, yaml_opt(root, "server"), c);
}

/* Whether belay launched this machine at a provider (not in the emulator): it only runs jobs. */
static bool is_launched(const struct config *c)
{
    const char *dir = getenv("BELAY_NODE_DIR");
    return geteuid() == 0 && config_is_elastic(c) && !str_eq(c->provider, "static") &&
           str_eq(c->metadata, METADATA_URL) && !(dir && *dir);
}

static void read_guard(struct yaml_reader *r, struct config *c)
{
    static const char *const guards[] = {[METADATA_OPEN] = "off",
        [METADATA_GUARDED] = "best-effort",
        [METADATA_GUARD_REQUIRED] = "required",
        NULL};
    static const char *const truth[] = {"no", "yes", NULL};
    static const char *const hidings[] = {[PROCESSES_SHOWN] = "no",
        [PROCESSES_HIDDEN_IN_TASKS] = "tasks",
        [PROCESSES_HIDDEN] = "yes",
        NULL};
    c->metadata_guard = (enum metadata_guard)yaml_opt_enum(
        r, "metadata_guard", guards, is_launched(c) ? METADATA_GUARDED : METADATA_OPEN);
    c->no_new_privs = yaml_opt_enum(r, "no_new_privs", truth, 0) == 1;
    c->private_ipc = yaml_opt_enum(r, "private_ipc", truth, 1) == 1;
    c->task_pids = yaml_opt_i64(r, "task_pids", LIMITS_PIDS_MIN, PIDS_MAX, limits_pids_measure(""));
    c->hiding = (enum process_hiding)yaml_opt_enum(r, "hide_processes", hidings,
        is_launched(c) ? PROCESSES_HIDDEN : PROCESSES_HIDDEN_IN_TASKS);
}

static void read_system_users(struct yaml_reader *r, struct config *c)
{
    const char *more = getenv("BELAY_NODE_SYSTEM_USERS");
    char name[FEATURE_MAX];
    yaml_opt_features(r, "system_users", c->system_users);
    for (size_t n; more && *(more += strspn(more, ", ")); more += n) {
        n = strcspn(more, ", ");
        snprintf(name, sizeof(name), "%.*s", n < sizeof(name) ? (int)n : 0, more);
        if (!features_add(c->system_users, sizeof(c->system_users), name))
            yaml_reader_fail(r, yaml_opt(r, "server"),
                "BELAY_NODE_SYSTEM_USERS: expected names of users, found %.*s",
                n > 80 ? 80 : (int)n, more);
    }
}

/* The default is the host's name, or "node" if that is not valid: an elastic node must join. */
static void read_name(struct yaml_reader *r, struct config *c)
{
    char host[sizeof(c->name)] = "";
    const char *given = yaml_opt_str(r, "name", sizeof(c->name) - 1, NULL);
    struct err why;
    gethostname(host, sizeof(host) - 1);
    STR_COPY(c->name, given ? given : wire_node_name_check(host, NULL) == 0 ? host : "node");
    if (!r->rc && !c->name[0])
        yaml_reader_fail(r, yaml_opt(r, "name"), "must not be empty");
    else if (!r->rc && wire_node_name_check(c->name, &why) != 0)
        yaml_reader_fail(r, yaml_opt(r, "name"), "%s", why.text);
}

static int64_t opt_up_to_1h(struct yaml_reader *r, const char *key, int64_t fallback_ms)
{
    int64_t ms = yaml_opt_duration_ms(r, key, fallback_ms);
    if (!r->rc && yaml_opt(r, key) && (ms < SECONDS_MS(1) || ms > SECONDS_MS(3600)))
        yaml_reader_fail(r, yaml_opt(r, key), "expected 1s to 1h");
    return ms;
}

static char *read_hook(struct yaml_reader *r, const char *key)
{
    const char *path = yaml_opt_str(r, key, PATH_BYTES_MAX, NULL);
    char shown[STR_SHOW_MAX];
    if (!r->rc && path && *path != '/')
        yaml_reader_fail(r, yaml_opt(r, key), "expected an absolute path of a program, found %s",
            str_show(path, shown));
    return mem_strdup(path);
}

static void read_hooks(struct yaml_reader *r, struct config *c)
{
    c->prolog = read_hook(r, "prolog");
    c->epilog = read_hook(r, "epilog");
    c->hook_timeout_ms = opt_up_to_1h(r, "hook_timeout", HOOK_TIMEOUT_MS);
}

static void read_notices(struct yaml_reader *r, struct config *c)
{
    c->shutdown_timeout_ms = opt_up_to_1h(r, "shutdown_timeout", SHUTDOWN_TIMEOUT_MS);
    c->sigterm_notice_ms = opt_up_to_1h(r, "sigterm_notice", 0);
    c->notice_reserve_ms = yaml_opt_duration_ms(r, "notice_reserve", 0);
    if (!r->rc && yaml_opt(r, "notice_reserve") && c->notice_reserve_ms < SECONDS_MS(1))
        yaml_reader_fail(r, yaml_opt(r, "notice_reserve"), "expected at least 1s");
}

static void read_node(struct yaml_reader *r, struct config *c)
{
    char shown[STR_SHOW_MAX];
    read_name(r, c);
    STR_COPY(
        c->provider, notice_provider_names[yaml_opt_enum(r, "provider", notice_provider_names, 0)]);
    c->cpus = yaml_opt_i64(r, "cpus", 1, 65536, 0);
    read_memory(r, c);
    read_gpus(r, c);
    read_telemetry(r, c);
    yaml_opt_features(r, "features", c->features);
    read_system_users(r, c);
    read_guard(r, c);
    yaml_opt_counts(r, "resources", c->resources);
    c->orphan_timeout_ms = yaml_opt_duration_ms(r, "orphan_timeout", ORPHAN_TIMEOUT_MS);
    read_notices(r, c);
    c->power_off = mem_strdup(yaml_opt_str(r, "power_off", PATH_BYTES_MAX, NULL));
    read_hooks(r, c);
    STR_COPY(c->criu, yaml_opt_str(r, "criu", sizeof(c->criu) - 1, ""));
    if (!r->rc && *c->criu && *c->criu != '/' && !str_eq(c->criu, "no"))
        yaml_reader_fail(r, yaml_opt(r, "criu"), "expected an absolute path or no, found %s",
            str_show(c->criu, shown));
}

static void read_secrets(struct yaml_reader *r, struct config *c)
{
    c->ca_pem = mem_strdup(yaml_req_str(r, "ca", CA_BYTES_MAX));
    if (!r->rc && !strstr(c->ca_pem, "-----BEGIN CERTIFICATE-----"))
        yaml_reader_fail(r, yaml_opt(r, "ca"), "expected the text of a PEM certificate");
    STR_COPY(c->token, yaml_opt_str(r, "token", sizeof(c->token) - 1, ""));
    c->token_file = mem_strdup(yaml_opt_str(r, "token_file", PATH_BYTES_MAX, NULL));
    if (!r->rc && *c->token && c->token_file)
        yaml_reader_fail(r, yaml_opt(r, "token_file"), "token is given too: keep one of the two");
}

int config_parse(
    const char *file, const char *text, size_t n, struct config *ret_config, struct err *e)
{
    struct yaml_node *root = NULL;
    struct config c = {0};
    struct yaml_reader r;
    int rc = yaml_parse(file, text, n, &root, e);
    if (rc)
        return rc;
    yaml_reader_init(&r, file, root, e);
    read_server_and_dir(&r, &c);
    read_node(&r, &c);
    read_secrets(&r, &c);
    rc = yaml_reader_finish(&r);
    if (rc)
        config_deinit(&c);
    else
        *ret_config = c;
    yaml_node_free(root);
    return rc;
}

int config_read(const char *path, struct config *ret_config, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read_secret(path, CONFIG_BYTES_MAX, &text, e);
    if (!rc)
        rc = config_parse(path, buf_str(&text), text.len, ret_config, e);
    buf_wipe(&text);
    return rc;
}

void config_deinit(struct config *c)
{
    free(c->ca_pem);
    free(c->token_file);
    free(c->dir);
    free(c->power_off);
    free(c->prolog);
    free(c->epilog);
    *c = (struct config){0};
}

bool config_is_elastic(const struct config *c)
{
    return !str_eq(c->provider, "none");
}

static int token_from_file(const char *path, char *ret_token, size_t size, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read_secret(path, 4096, &text, e);
    if (!rc) {
        while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
            text.data[--text.len] = '\0';
        if (text.len == 0 || !str_copy(ret_token, size, text.data))
            rc = err_set(
                e, ERR_INVALID, "%s: expected a token of 1 .. %zu characters", path, size - 1);
    }
    buf_wipe(&text);
    return rc;
}

int config_token(const struct config *c, char *ret_token, size_t size, struct err *e)
{
    if (c->token_file)
        return token_from_file(c->token_file, ret_token, size, e);
    if (*c->token && str_copy(ret_token, size, c->token))
        return 0;
    return err_set(e, ERR_NOT_FOUND,
        "this node has no certificate and no token to join with: get one with `belay token create "
        "--join` and put it into the configuration as token or token_file");
}

void config_forget_token(const struct config *c)
{
    if (c->token_file && unlink(c->token_file) < 0 && errno != ENOENT) {
        struct err e;
        err_errno(&e, errno, "deleting %s", c->token_file);
        log_warn("the used token could not be deleted", log_err(&e));
    }
}
