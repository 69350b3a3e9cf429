/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembles belayd (see daemon.h). daemon_start proceeds in the order of dependence: first the
 * database (it has the lock), then the model from it, then the deciding parts, then the
 * listeners, and last the parts that spend money.
 *
 * State directory (0700): belay.db, belay.db.lock, ca.pem, ca.key, pools.yaml (pools applied by
 * command), audit.head, port, belayd.json, logs/, workdirs/, store/, secret.keys and
 * checkpoint.keys (unless configured elsewhere), checkpoint.key-ids, belayd.sock.
 */
#include "scheduler/daemon_private.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_client.h"
#include "base/uv/runner.h"
#include "base/uv/timers.h"
#include "scheduler/api/api_private.h"
#include "scheduler/config/checks.h"
#include "scheduler/config/own_name.h"
#include "scheduler/engine/effects.h"
#include "scheduler/secrets/env_seal.h"
#include "scheduler/userdata.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void finish_stop(struct daemon *d);

/* ---- commits on the writer's thread ---- */

static void on_writer_wake(void *ctx)
{
    struct daemon *d = ctx;
    uv_async_send(&d->commit_ended);
}

static void on_commit_ended(uv_async_t *async)
{
    struct daemon *d = async->data;
    struct err e = {0};
    int rc;
    if (!d->commit_under_way || !db_writer_finished(d->writer, &rc, &e))
        return;
    d->commit_under_way = false;
    tick_committed(d->tick, rc, &e);
    if (d->stopping)
        finish_stop(d);
}

static void start_commit(struct commit_port *port, const struct db_batch *b)
{
    struct daemon *d = (struct daemon *)((char *)port - offsetof(struct daemon, port));
    d->commit_under_way = true;
    db_writer_start(d->writer, b);
}

static void on_fatal(void *ctx, const struct err *e)
{
    (void)ctx;
    log_error("a commit failed and its outcome on disk is unknown: exiting; a restart reads the "
              "database again",
        log_err(e));
    _exit(70); /* EX_SOFTWARE: no exit handler may touch the state */
}

static void on_effects(void *ctx, const struct db_batch *committed)
{
    struct daemon *d = ctx;
    struct audit_head head;
    db_writer_get_audit_head(d->writer, &head);
    audit_head_put(d->audit_head, &head);
    if (d->grants)
        grants_committed(d->grants, committed);
    effects_release(committed, d->agent_sync, d->provision, d->cleaner, d->outbox);
    api_committed(d->api, committed);
    observed_committed(d->observed, d->model, committed);
    if (committed->prune.is_due) {
        struct pruned pruned;
        db_writer_get_pruned(d->writer, &pruned);
        retention_committed(d->retention, &pruned);
    }
}

static void on_released(void *ctx, struct cloud_driver *driver)
{
    struct daemon *d = ctx;
    pools_released(d->pools, driver);
}

static char *build_user_data(
    void *ctx, const struct instance_row *i, const struct provision_pool *pool)
{
    struct daemon *d = ctx;
    char token[129];
    const struct config_pool *p = pools_find(d->pools, pool->name);
    api_instance_token(d->sealer, i->id, token);
    struct userdata u = {
        .server_url = d->server_url,
        .ca_pem = ca_pem(d->ca),
        .token = token,
        .provider = p->row.provider,
        .metadata = p->metadata,
        .metadata_guard = p->metadata_guard,
        .notice_reserve_s = (p->notice_reserve_ms + 999) / 1000,
        .prolog = p->prolog,
        .epilog = p->epilog,
        .hook_timeout_s = (p->hook_timeout_ms + 999) / 1000,
        .accounts = p->create_accounts.a,
        .n_accounts = p->create_accounts.n,
        .endpoint = p->endpoint,
        .boot_s = (p->row.boot_timeout_ms + 999) / 1000,
        .orphan_s = (d->config->orphan_ms + 999) / 1000,
    };
    return userdata_build(&u);
}

/* ---- start: deciding parts ---- */

static void give_job_token(
    void *ctx, int64_t job, int64_t attempt, char out[WIRE_JOB_TOKEN_MAX + 1])
{
    struct daemon *d = ctx;
    api_job_token(d->sealer, job, attempt, out);
}

static int open_env(
    void *ctx, const char *user, const char *stored, json_t **ret_env, struct err *e)
{
    struct daemon *d = ctx;
    return env_open(d->sealer, user, stored, ret_env, e);
}

static void take_loads(
    void *ctx, int64_t node, const struct wire_status *st, int64_t tasks_above, int64_t gpus_above)
{
    struct daemon *d = ctx;
    telemetry_take(d->telemetry, node, st, tasks_above, gpus_above);
    conditions_take(d->conditions, node, st, gpus_above);
    idle_gpus_take(d->tick, node, st, gpus_above, clock_wall(d->timers->clock));
}

static void make_telemetry(struct daemon *d)
{
    const struct config_telemetry *c = &d->config->telemetry;
    struct telemetry_options o = {.tick = d->tick, .timers = d->timers, .reader = d->reader};
    memcpy(o.keep_ms, c->keep_ms, sizeof(o.keep_ms));
    d->telemetry = telemetry_create(&o);
    d->conditions = conditions_create(&(struct conditions_options){.tick = d->tick,
        .timers = d->timers,
        .throttled_ms = c->throttled_ms,
        .limits = &c->diagnose});
}

static const char *account_of(void *ctx, const char *pool, const char *user)
{
    const struct daemon *d = ctx;
    const struct config_pool *p = pools_find(d->pools, pool);
    return p ? run_as_account(&p->run_as, user) : user;
}

static void make_agent_sync(struct daemon *d)
{
    const struct config *c = d->config;
    d->agent_sync = agent_sync_create(&(struct agent_sync_options){.tick = d->tick,
        .timers = d->timers,
        .reader = d->reader,
        .boots = d->meta.boots,
        .cluster = c->cluster,
        .cluster_uid = d->meta.cluster_uid,
        .store_fault = daemon_store_fault,
        .store_ctx = d,
        .lease_ms = c->lease_ms,
        .sync_ms = c->sync_ms,
        .kill_wait_ms = c->kill_wait_ms,
        .store_wait_ms = c->store_wait_ms,
        .secrets = daemon_give_secrets,
        .secrets_ctx = d,
        .env = open_env,
        .env_ctx = d,
        .run_as = account_of,
        .run_as_ctx = d,
        .job_token = give_job_token,
        .job_token_ctx = d,
        .loads = take_loads,
        .loads_ctx = d});
}

static void make_provision(struct daemon *d)
{
    const struct config *c = d->config;
    d->provision = provision_create(&(struct provision_options){.tick = d->tick,
        .timers = d->timers,
        .prng = &d->prng,
        .cluster_uid = d->meta.cluster_uid,
        .sweep_ms = c->sweep_ms,
        .busy_sweep_ms = c->busy_sweep_ms,
        .settle_ms = c->settle_ms,
        .price_ms = c->price_ms,
        .user_data = build_user_data,
        .released = on_released,
        .ctx = d});
    d->own_name = own_name_create(c, NULL);
    d->pools = pools_create(&(struct pools_options){.config = c,
        .own_name = d->own_name,
        .tick = d->tick,
        .provision = d->provision,
        .timers = d->timers,
        .http = d->http,
        .runner = d->runner});
}

static void make_cleaner(struct daemon *d)
{
    const struct store_tasks_options o = {.loop = d->loop,
        .timers = d->timers,
        .http = d->http,
        .store = d->config->store,
        .cluster = d->config->cluster,
        .cluster_uid = d->meta.cluster_uid,
        .master = keyring_master(d->keyring)};
    d->store_cleaner = store_cleaner_create(&o);
    d->ckpt_desk = ckpt_desk_create(&o);
    d->cleaner = cleaner_create(d->tick, d->timers, store_cleaner_port(d->store_cleaner));
}

static void make_outbox(struct daemon *d)
{
    const struct config *c = d->config;
    char *db_path = daemon_db_path(c);
    d->notifier = notifier_create(&(struct notifier_options){.loop = d->loop,
        .timers = d->timers,
        .runner = d->runner,
        .reader = d->reader,
        .config = &c->notify,
        .budgets = c->budgets,
        .n_budgets = c->n_budgets,
        .sealer = d->sealer,
        .tick = d->tick,
        .digest = &c->digest,
        .digest_zone = d->tables->digest.zone,
        .spend = &c->spend,
        .db_path = db_path,
        .cluster_uid = d->meta.cluster_uid,
        .cluster = c->cluster});
    free(db_path);
    d->outbox = outbox_create(d->tick, d->timers, &d->prng, notifier_port(d->notifier));
}

static void make_workdirs(struct daemon *d)
{
    char *dir = mem_printf("%s/workdirs", d->config->state_dir);
    d->workdirs = workdirs_create(&(struct workdirs_options){.loop = d->loop,
        .timers = d->timers,
        .reader = d->reader,
        .dir = dir,
        .user_bytes = d->config->workdir_user_bytes});
    free(dir);
}

static void make_retention(struct daemon *d)
{
    const struct config *c = d->config;
    char *db_path = daemon_db_path(c);
    d->retention = retention_create(&(struct retention_options){
        .timers = d->timers, .tick = d->tick, .reader = d->reader, .config = &c->retention});
    d->spend_watch = spend_watch_create(&(struct spend_watch_options){.loop = d->loop,
        .timers = d->timers,
        .tick = d->tick,
        .db_path = db_path,
        .limits = c->spend.limits});
    d->archiver = archiver_create(&(struct archiver_options){.loop = d->loop,
        .timers = d->timers,
        .http = d->http,
        .store = c->store,
        .cluster = c->cluster,
        .cluster_uid = d->meta.cluster_uid,
        .master = keyring_master(d->keyring),
        .encrypts = c->encryption != ENCRYPTION_NONE,
        .db_path = db_path,
        .logs_dir = d->logs.dir,
        .keep_ms = c->retention.logs_ms,
        .disk_ms = c->retention.disk_ms,
        .disk_bytes = c->retention.disk_bytes,
        .store_bytes = c->retention.store_bytes});
    free(db_path);
}

static void make_api(struct daemon *d)
{
    char *db_path = daemon_db_path(d->config);
    d->api = api_create(&(struct api_options){.tick = d->tick,
        .notifier = d->notifier,
        .sealer = d->sealer,
        .oidc = d->oidc,
        .agent_sync = d->agent_sync,
        .provision = d->provision,
        .grants = d->grants,
        .ckpt_desk = d->ckpt_desk,
        .pools = d->pools,
        .reader = d->reader,
        .loop = d->loop,
        .db_path = db_path,
        .zones = &d->zones,
        .logs = &d->logs,
        .archiver = d->archiver,
        .retention = d->retention,
        .observed = d->observed,
        .workdirs = d->workdirs,
        .ca = d->ca,
        .bundles = &d->bundles,
        .config = d->config,
        .meta = &d->meta,
        .timers = d->timers,
        .owner_uid = geteuid(),
        .browser_connections = d->files.browsers});
    free(db_path);
}

/* Each part uses only those made before it. */
static int make_parts(struct daemon *d, struct err *e)
{
    d->port.start = start_commit;
    d->tick = tick_create(&(struct tick_options){.model = d->model,
        .planner = d->planner,
        .timers = d->timers,
        .commit = &d->port,
        .effects = on_effects,
        .fatal = on_fatal,
        .ctx = d});
    int rc = daemon_make_grants(d, e);
    if (rc != 0)
        return rc;
    if (d->config->oidc.issuer)
        rc = oidc_create(
            &(struct oidc_options){
                .http = d->http, .timers = d->timers, .config = &d->config->oidc},
            &d->first_oidc, e);
    d->oidc = d->first_oidc;
    if (rc != 0)
        return rc;
    make_telemetry(d);
    make_agent_sync(d);
    make_provision(d);
    make_cleaner(d);
    make_outbox(d);
    make_workdirs(d);
    make_retention(d);
    make_api(d);
    return 0;
}

/* ---- life ---- */

/* Creates all parts; none listens or decides yet. checked: the configuration whose store is checked
 * without changing it (daemon_check); NULL to claim config's store for this cluster. */
static int build(uv_loop_t *loop, const struct config *config, const struct config *checked,
    const struct open_files *files, struct daemon **ret_daemon, struct err *e)
{
    struct daemon *d = mem_alloc(sizeof(*d));
    uint64_t seed;
    d->loop = loop;
    d->config = config;
    random_bytes(&seed, sizeof(seed));
    prng_init(&d->prng, seed);
    d->timers = uv_timers_create(loop);
    d->http = uv_http_client_create(loop);
    d->runner = uv_runner_create(loop);
    d->files = *files;
    uv_http_client_limit(d->http, files->outgoing);
    int rc = daemon_open_state(d, e);
    if (rc == 0 && !checked)
        rc = daemon_take_port(d, e); /* before the store is marked */
    if (rc == 0)
        rc = checked ? daemon_check_store(d, checked, e) : daemon_claim_store(d, e);
    if (rc == 0)
        rc = daemon_load_model(d, e);
    if (rc != 0)
        goto fail;
    d->commit_ended.data = d;
    uv_async_init(loop, &d->commit_ended, on_commit_ended);
    d->async_open = true;
    d->writer = db_writer_create(d->db, on_writer_wake, d);
    d->db = NULL;
    rc = make_parts(d, e);
    if (rc == 0)
        rc = pools_open(d->pools, e);
    if (rc != 0)
        goto fail;
    *ret_daemon = d;
    return 0;
fail:
    daemon_destroy(d);
    return rc;
}

/* For who compares it later: the log is where belayd's user cannot change it. */
static void log_audit_head(const struct daemon *d)
{
    struct audit_head head;
    db_writer_get_audit_head(d->writer, &head);
    log_info("the audit log ends at this row", log_i("seq", head.seq), log_s("hash", head.hash));
}

static void log_files(const struct open_files *f)
{
    bool few = open_files_are_few(f);
    log_at(few ? LOG_WARN : LOG_INFO,
        few ? "few files may be open, so few connections are allowed (ulimit -Hn, or LimitNOFILE= "
              "of the systemd unit)"
            : "connections that are allowed, by the limit of open files",
        log_i("open_files", f->max), log_i("strangers", f->unauthenticated),
        log_i("users", f->users), log_i("users_at_socket", f->users_at_socket),
        log_i("nodes", f->nodes), log_i("browsers", f->browsers), log_i("outgoing", f->outgoing));
}

static void set_oidc(struct daemon *d, const struct reload_oidc *oidc)
{
    d->oidcs = mem_resize(d->oidcs, d->n_oidcs + 1, sizeof(*d->oidcs));
    d->oidcs[d->n_oidcs++] = *oidc;
    d->oidc = oidc->oidc;
    api_set_oidc(d->api, oidc->oidc);
}

static void set_times(struct daemon *d)
{
    const struct config *c = d->config;
    char *db_path = daemon_db_path(c);
    agent_sync_set_times(d->agent_sync, c->lease_ms, c->sync_ms, c->kill_wait_ms, c->store_wait_ms);
    provision_set_times(d->provision, c->sweep_ms, c->busy_sweep_ms, c->settle_ms, c->price_ms);
    telemetry_set_ages(d->telemetry, c->telemetry.keep_ms);
    conditions_set_throttled(d->conditions, c->telemetry.throttled_ms);
    logs_share_disk(&d->logs, db_path, c->log_full_wait_ms);
    free(db_path);
}

/* Parts that have copies of what may change. */
static void on_reloaded(void *ctx, const struct reload_oidc *oidc)
{
    struct daemon *d = ctx;
    const struct config *c = d->config;
    set_times(d);
    notifier_set_budgets(d->notifier, c->budgets, c->n_budgets);
    notifier_set_digest_zone(d->notifier, d->tables->digest.zone);
    spend_watch_set_limits(d->spend_watch, &c->spend.limits);
    archiver_set_limits(d->archiver, c->retention.logs_ms, c->retention.disk_ms,
        c->retention.disk_bytes, c->retention.store_bytes);
    retention_look(d->retention);
    logs_set_limits(&d->logs, &(struct log_limits){.job_bytes = c->log_job_bytes,
                                  .user_day_bytes = c->log_user_day_bytes});
    workdirs_set_limit(d->workdirs, c->workdir_user_bytes);
    api_reconfigure(d->api);
    if (oidc)
        set_oidc(d, oidc);
}

static void make_reload(struct daemon *d, struct config *config, const struct config_file *file)
{
    d->reload = reload_create(&(struct reload_options){.config = config,
        .file = file,
        .tick = d->tick,
        .pools = d->pools,
        .zones = &d->zones,
        .reader = d->reader,
        .tables = &d->tables,
        .http = d->http,
        .timers = d->timers,
        .applied = on_reloaded,
        .ctx = d});
    api_set_reload(d->api, d->reload);
}

void daemon_reload(struct daemon *d, void (*done)(void *ctx), void *ctx)
{
    if (d->stopping)
        done(ctx);
    else
        reload_by_signal(d->reload, done, ctx);
}

int daemon_start(uv_loop_t *loop, struct config *config, const struct config_file *file,
    const struct open_files *files, struct daemon **ret_daemon, struct err *e)
{
    struct daemon *d;
    struct err why;
    int rc = build(loop, config, NULL, files, &d, e);
    if (rc != 0)
        return rc;
    make_reload(d, config, file);
    log_files(files);
    log_audit_head(d);
    if (d->has_new_keys)
        log_warn("created the key file of the database: keep a copy apart from the database; "
                 "without it secrets and environments of jobs cannot be read");
    if (config_check_pools(pools_in_force(d->pools), &why) != 0)
        log_error("a part of the configuration cannot work", log_err(&why));
    if (own_name_check(d->own_name, pools_in_force(d->pools), 0, &why) != 0)
        log_warn("launched machines may not reach belayd", log_err(&why));
    rc = daemon_listen(d, e);
    if (rc != 0) {
        daemon_destroy(d);
        return rc;
    }
    pools_post(d->pools);
    provision_start(d->provision);
    cleaner_start(d->cleaner);
    outbox_start(d->outbox);
    retention_start(d->retention);
    spend_watch_start(d->spend_watch);
    archiver_start(d->archiver);
    d->reseal = (struct reseal){.tick = d->tick, .reader = d->reader, .sealer = d->sealer};
    reseal_start(&d->reseal);
    daemon_watch_ca(d);
    daemon_watch_name(d);
    log_info("belayd is ready", log_s("url", d->server_url), log_s("socket", config->socket),
        log_s("state", config->state_dir), log_s("version", BELAY_VERSION));
    *ret_daemon = d;
    return 0;
}

/* Copies the pools of `belay pools apply`, if any: they override the configuration's. */
static int copy_applied(const struct config *from, const struct config *to, struct err *e)
{
    char *path = mem_printf("%s/pools.yaml", from->state_dir),
         *copy = mem_printf("%s/pools.yaml", to->state_dir);
    struct buf text = {0};
    int rc = fs_read(path, YAML_BYTES_MAX, &text, e);
    if (rc == 0)
        rc = fs_write_atomic(copy, text.data, text.len, 0600, e);
    buf_deinit(&text);
    free(path);
    free(copy);
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

int daemon_check(
    uv_loop_t *loop, const struct config *config, const struct open_files *files, struct err *e)
{
    struct config scratch = *config; /* borrows config's strings */
    struct daemon *d;
    char dir[] = "/tmp/belayd-check.XXXXXX";
    struct err ignored;
    if (!mkdtemp(dir))
        return err_errno(e, errno, "%s: cannot create a directory for the check", dir);
    STR_COPY(scratch.state_dir, dir);
    scratch.encryption = ENCRYPTION_NONE; /* the keys are checked in their real place */
    snprintf(scratch.key_file, sizeof(scratch.key_file), "%s/keys", dir);
    snprintf(scratch.secret_key_file, sizeof(scratch.secret_key_file), "%s/secret.keys", dir);
    int rc = config_check_paths(config, e);
    if (rc == 0)
        rc = key_file_check(config, e);
    if (rc == 0)
        rc = daemon_check_port(config, e);
    if (rc == 0)
        rc = copy_applied(config, &scratch, e);
    if (rc == 0)
        rc = build(loop, &scratch, config, files, &d, e);
    if (rc == 0) {
        rc = config_check_pools(pools_in_force(d->pools), e);
        if (rc == 0)
            rc = config_check_files(config, pools_in_force(d->pools), e);
        if (rc == 0)
            rc = own_name_check(d->own_name, pools_in_force(d->pools), 0, e);
        if (rc == 0)
            rc = own_name_check_known(d->own_name, POOLS_NAME_WAIT_MS, e);
        if (rc == 0)
            rc = config_check_names(config, e);
        if (rc == 0)
            rc = daemon_check_credentials(d, e);
        daemon_destroy(d);
    }
    fs_remove_tree(dir, &ignored);
    return rc;
}

static void finish_stop(struct daemon *d)
{
    if (d->commit_under_way || !d->stopped)
        return;
    void (*done)(void *ctx) = d->stopped;
    d->stopped = NULL;
    done(d->stopped_ctx);
}

void daemon_stop(struct daemon *d, void (*done)(void *ctx), void *ctx)
{
    if (d->stopping)
        return;
    d->stopping = true;
    d->stopped = done;
    d->stopped_ctx = ctx;
    api_shut_down(d->api);
    agent_sync_release_all(d->agent_sync);
    finish_stop(d);
}

void daemon_destroy(struct daemon *d)
{
    if (!d)
        return;
    http_server_stop(d->unix_server);
    http_server_stop(d->tls_server);
    api_close_loopback(d->api);
    if (d->tls_fd > 0)
        close(d->tls_fd);
    pools_close(d->pools);
    /* waits for a commit in progress, which borrows the tick's batch */
    db_writer_destroy(d->writer);
    tick_destroy(d->tick); /* its last answers go to the parts destroyed below */
    agent_sync_destroy(d->agent_sync);
    telemetry_destroy(d->telemetry);
    conditions_destroy(d->conditions);
    grants_destroy(d->grants);
    provision_destroy(d->provision);
    store_claim_destroy(d->claim);
    store_cleaner_destroy(d->store_cleaner);
    ckpt_desk_destroy(d->ckpt_desk);
    cleaner_destroy(d->cleaner);
    notifier_destroy(d->notifier);
    outbox_destroy(d->outbox);
    retention_destroy(d->retention);
    observed_destroy(d->observed);
    spend_watch_destroy(d->spend_watch);
    pools_destroy(d->pools);
    own_name_destroy(d->own_name);
    archiver_destroy(d->archiver); /* before the API, likewise */
    logs_close(&d->logs);          /* before the API, which owns its waiting callers */
    workdirs_destroy(d->workdirs); /* before the API, likewise */
    api_destroy(d->api);
    db_close(d->db);
    db_reader_close(d->reader);
    planner_destroy(d->planner);
    model_destroy(d->model);
    reload_destroy(d->reload);
    zones_deinit(&d->zones);
    tables_destroy(d->tables);
    timer_stop(d->timers, &d->ca_check);
    timer_stop(d->timers, &d->name_check);
    ca_close(d->ca);
    keyring_close(d->keyring);
    sealer_destroy(d->sealer);
    audit_head_close(d->audit_head);
    bundles_close(&d->bundles);
    if (d->async_open)
        uv_close((uv_handle_t *)&d->commit_ended, NULL);
    uv_http_client_destroy(d->http);
    oidc_destroy(d->first_oidc);
    for (size_t i = 0; i < d->n_oidcs; i++)
        reload_oidc_free(&d->oidcs[i]);
    free(d->oidcs);
    uv_runner_destroy(d->runner);
    uv_timers_destroy(d->timers);
    uv_run(d->loop, UV_RUN_NOWAIT); /* the handles close while d still exists */
    free(d);
}
