/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembles belayd (see daemon.h). daemon_start proceeds in the order of dependence: first the
 * database (it holds the lock), then the model from it, then the deciding parts, then the
 * listeners, and last the parts that spend money.
 *
 * State directory (0700): belay.db, belay.db.lock, ca.pem, ca.key, pools.yaml (pools applied by
 * command), port, belayd.json, logs/, workdirs/, store/ and checkpoint.keys (unless configured
 * elsewhere), checkpoint.key-ids, belayd.sock.
 */
#include "scheduler/daemon.h"

#include "scheduler/spot_history.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/uv/http_server.h"
#include "base/uv/runner.h"
#include "base/uv/loop.h"
#include "base/tz/system.h"
#include "scheduler/api/api.h"
#include "scheduler/api/api_private.h"
#include "scheduler/engine/effects.h"
#include "scheduler/store/grants.h"
#include "scheduler/notify/notifier.h"
#include "scheduler/keyring.h"
#include "scheduler/config/own_name.h"
#include "scheduler/config/place.h"
#include "scheduler/pools.h"
#include "scheduler/store/claim.h"
#include "scheduler/store/sweeper.h"
#include "scheduler/conditions.h"
#include "scheduler/config/doubts.h"
#include "scheduler/telemetry.h"
#include "scheduler/userdata.h"
#include "scheduler/workdirs.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define IDLE_MS 60000
#define CA_LOOK_MS SECONDS_MS(86400)
#define CA_WARN_MS (180 * CA_LOOK_MS)
#define URL_MAX 256
/* The range searched for port 0: above the ports of services, below the range that Linux uses for
 * outgoing connections (ip_local_port_range). */
#define PORT_FIRST 10000
#define PORT_LAST 29999
#define PORT_TRIES 32

/* Limits of each listener; docs/reference/api.md states them. Every connection belongs to the
 * strangers until one of its requests has shown a token or a node's certificate: half a TLS
 * handshake costs some 25 KiB, and 2048 of them 50 MiB. An address has no limit of its own: people
 * behind one NAT may have all places, and a flood from one address keeps no other out
 * (http_admission.h). */
#define LISTENER_LIMITS                                                                            \
    {                                                                                              \
        [HTTP_STRANGER] = {.max_connections = 2048, .max_bytes = 8 * MIB},                         \
        [HTTP_USER] = {.max_connections = 8192,                                                    \
            .max_connections_each = 1024,                                                          \
            .max_bytes = 64 * MIB,                                                                 \
            .max_bytes_each = 24 * MIB},                                                           \
        [HTTP_NODE] = {.max_connections = 15000,                                                   \
            .max_connections_each = 256,                                                           \
            .max_bytes = 256 * MIB,                                                                \
            .max_bytes_each = 32 * MIB},                                                           \
    }

struct daemon {
    uv_loop_t *loop;
    const struct config *config;
    struct db *db; /* until the writer owns it */
    struct db_writer *writer;
    struct db_reader *reader;
    struct db_meta meta;
    struct timers *timers;
    struct http_client *http;
    struct runner *runner;
    struct prng prng;
    struct model *model;
    struct zones zones;
    struct window *windows;
    struct budget_options *budgets;
    struct planner *planner;
    struct tick *tick;
    struct telemetry *telemetry;
    struct conditions *conditions;
    struct sessions *sessions;
    struct provision *provision;
    struct grants *grants; /* NULL if nodes use their own credentials for the store */
    struct store_claim *claim;
    struct sweeper *sweeper;
    struct cleaner *cleaner;
    struct notify_sealer sealer;
    struct notifier *notifier;
    struct outbox *outbox;
    struct own_name *own_name;
    struct pools *pools;
    struct logs logs;
    struct workdirs *workdirs;
    struct ca *ca;
    struct keyring *keyring;
    struct bundles bundles;
    struct timer ca_look;
    struct api *api;
    struct http_server *unix_server, *tls_server;
    char server_url[URL_MAX];
    struct commit_port port;
    uv_async_t commit_ended;
    bool commit_under_way, async_open, stopping;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

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
    if (d->grants)
        grants_committed(d->grants, committed);
    effects_release(committed, d->sessions, d->provision, d->cleaner, d->outbox);
    api_committed(d->api, committed);
}

static void on_log_over(void *ctx, int64_t job)
{
    struct daemon *d = ctx;
    api_output_grew(d->api, job);
}

static void on_log_cut(void *ctx, int64_t job, int64_t attempt, int32_t rank, const char *why)
{
    struct daemon *d = ctx;
    struct event ev = {
        .type = EV_OUTPUT_CUT, .output_cut = {.job = job, .attempt = attempt, .rank = rank}};
    STR_COPY(ev.output_cut.text, why);
    log_info("output of a job is no longer stored", log_i("job", job), log_i("attempt", attempt),
        log_s("why", why));
    tick_post(d->tick, &ev, NULL, NULL);
}

/* ---- start: state ---- */

static int open_state(struct daemon *d, struct err *e)
{
    char *path = mem_printf("%s/belay.db", d->config->state_dir);
    char *logs = mem_printf("%s/logs", d->config->state_dir);
    int rc = fs_mkdirs(d->config->state_dir, 0700, e);
    if (rc == 0)
        rc = db_open(path, &d->db, e);
    if (rc == 0)
        rc = db_boot(d->db, &d->meta, e);
    if (rc == 0)
        rc = db_reader_open(path, &d->reader, e);
    if (rc == 0)
        rc = logs_open(&d->logs, logs, d->loop, d->timers, on_log_over, d, e);
    if (rc == 0)
        logs_limit(&d->logs,
            &(struct log_limits){.job_bytes = d->config->log_job_bytes,
                .user_day_bytes = d->config->log_user_day_bytes},
            on_log_cut);
    if (rc == 0)
        logs_share_disk(&d->logs, path, d->config->log_full_wait_ms);
    if (rc == 0)
        rc = ca_open(d->config->state_dir, d->config->cluster, &clock_system, &d->ca, e);
    if (rc == 0)
        rc = keyring_open(d->config, d->meta.cluster_uid, &d->keyring, e);
    if (rc == 0)
        rc = bundles_open(&d->bundles, e);
    if (rc == ERR_NO_SPACE)
        err_set(e, ERR_NO_SPACE,
            "the disk of the state directory %s is full: free some space there, for instance by "
            "moving old output of jobs out of %s, and start belayd again: %s",
            d->config->state_dir, logs, e->text);
    free(path);
    free(logs);
    return rc;
}

/* All certificates end with the CA, and nothing extends it: it must be reported in time. */
static void on_ca_look(struct timer *t, void *ctx)
{
    struct daemon *d = ctx;
    int64_t left_ms = ca_ends_at(d->ca).ms - clock_wall(&clock_system).ms;
    timer_start(d->timers, t, CA_LOOK_MS);
    if (left_ms > CA_WARN_MS)
        return;
    log_warn(left_ms > 0 ? "the cluster's certificate authority ends soon, and with it every "
                           "connection of an agent: make a new one (belayd(8), ca.pem)"
                         : "the cluster's certificate authority has ended and no agent can "
                           "connect: make a new one (belayd(8), ca.pem)",
        log_i("days_left", left_ms / CA_LOOK_MS));
}

/* Creates the windows of the configuration, with the zones of this machine. */
static int make_windows(struct daemon *d, struct err *e)
{
    d->windows = mem_array(d->config->n_windows, sizeof(*d->windows));
    for (size_t i = 0; i < d->config->n_windows; i++) {
        const struct config_window *c = &d->config->windows[i];
        d->windows[i] = c->window;
        if (zones_load(&d->zones, c->tz, &d->windows[i].zone, e) != 0)
            return err_wrap(e, "windows.%s.tz", c->window.name);
    }
    return 0;
}

/* Creates the budgets, with their windows. */
static int make_budgets(struct daemon *d, struct err *e)
{
    d->budgets = mem_array(d->config->n_budgets, sizeof(*d->budgets));
    for (size_t i = 0; i < d->config->n_budgets; i++) {
        const struct config_budget *c = &d->config->budgets[i];
        d->budgets[i] = c->options;
        if (zones_load(&d->zones, c->tz, &d->budgets[i].zone, e) != 0)
            return err_wrap(e, "budgets.%s.tz", c->options.name);
        for (size_t k = 0; k < d->config->n_windows; k++)
            if (str_eq(d->windows[k].name, c->window))
                d->budgets[i].window = &d->windows[k];
    }
    return 0;
}

#define RUNTIMES_LOADED 1000 /* the most recently ended jobs, for forecasts */

struct ended {
    struct job_row *rows;
    size_t n;
};

static int keep_ended(void *ctx, const struct job_row *row)
{
    struct ended *all = ctx;
    all->rows[all->n++] = *row;
    return 0;
}

/* Jobs with a single attempt give their run time. An empty or unreadable history is harmless. */
static void load_runtimes(struct daemon *d)
{
    const struct job_filter f = {
        .states = 1U << JOB_ENDED, .sort = JOBS_BY_END, .limit = RUNTIMES_LOADED};
    struct ended all = {.rows = mem_array(RUNTIMES_LOADED, sizeof(*all.rows))};
    struct err e;
    if (db_read_jobs(d->reader, &f, keep_ended, &all, NULL, &e) != 0)
        log_warn("the recent run times of jobs cannot be read", log_err(&e));
    while (all.n-- > 0) {
        const struct job_row *r = &all.rows[all.n];
        if (r->attempts == 1 && wall_is_set(r->started_at) && wall_is_set(r->ended_at))
            model_load_runtime(d->model, r, r->ended_at.ms - r->started_at.ms);
    }
    free(all.rows);
}

static int load_model(struct daemon *d, struct err *e)
{
    struct model_options o = {.lease_ms = d->config->lease_ms,
        .store_wait_ms = d->config->store_wait_ms,
        .max_nodes = d->config->max_nodes,
        .max_gpus = d->config->max_gpus,
        .max_uusd_h = d->config->max_uusd_h,
        .hold_in_vain = d->config->hold_in_vain,
        .retention_ms = d->config->retention_ms,
        .egress = place_egress,
        .store_uusd_gib_month = d->config->store_uusd_gib_month,
        .order = &d->config->order,
        .retries = &d->config->retries,
        .procurement = &d->config->deadlines,
        .hooks = d->config->notify.hooks,
        .n_hooks = d->config->notify.n_hooks,
        .zones = &d->zones,
        .read_job = jobspec_read};
    struct stamp now = {.wall = clock_wall(&clock_system), .mono = clock_mono(d->timers->clock)};
    STR_COPY(o.cluster_uid, d->meta.cluster_uid);
    d->zones.source = &zone_source_system;
    int rc = make_windows(d, e);
    if (rc == 0)
        rc = make_budgets(d, e);
    if (rc != 0)
        return rc;
    o.windows = d->windows;
    o.n_windows = d->config->n_windows;
    o.budgets = d->budgets;
    o.n_budgets = d->config->n_budgets;
    o.racks = d->config->racks;
    o.n_racks = d->config->n_racks;
    o.licences = d->config->licences;
    o.n_licences = d->config->n_licences;
    d->model = model_create(&o);
    d->planner = planner_create();
    rc = db_load(d->db, d->model, now, e);
    if (rc == 0)
        load_runtimes(d);
    struct err why;
    if (rc == 0 && spot_history_load(d->reader, d->model, now.wall, &why) != 0)
        log_warn("the recent spot observations cannot be read", log_err(&why));
    return rc;
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
    api_instance_token(&d->meta, i->id, token);
    struct userdata u = {
        .server_url = d->server_url,
        .ca_pem = ca_pem(d->ca),
        .token = token,
        .provider = p->row.provider,
        .metadata = p->metadata,
        .metadata_guard = p->metadata_guard,
        .endpoint = p->endpoint,
        .boot_s = (p->row.boot_timeout_ms + 999) / 1000,
        .orphan_s = (d->config->orphan_ms + 999) / 1000,
    };
    return userdata_build(&u);
}

/* ---- the store ---- */

static int raise_next_job(void *ctx, int64_t next, struct err *e)
{
    struct daemon *d = ctx;
    return db_raise_next_job(d->db, &d->meta, next, e);
}

static const char *store_fault(void *ctx)
{
    const struct daemon *d = ctx;
    return store_claim_is_ours(d->claim) ? NULL : store_claim_text(d->claim);
}

/* Sends the attempts that waited for the store. */
static void on_store_ours(void *ctx)
{
    struct daemon *d = ctx;
    sessions_touch_all(d->sessions);
}

static int claim_store(struct daemon *d, struct err *e)
{
    bool had_checkpoints = false;
    int rc = db_has_checkpoints(d->db, &had_checkpoints, e);
    if (rc != 0)
        return rc;
    return store_claim_begin(&(struct store_claim_options){.loop = d->loop,
                                 .timers = d->timers,
                                 .http = d->http,
                                 .prng = &d->prng,
                                 .state_dir = d->config->state_dir,
                                 .store = d->config->store,
                                 .cluster = d->config->cluster,
                                 .cluster_uid = d->meta.cluster_uid,
                                 .had_checkpoints = had_checkpoints,
                                 .next_job = d->meta.counters.next_job,
                                 .raise = raise_next_job,
                                 .changed = on_store_ours,
                                 .ctx = d},
        &d->claim, e);
}

/* Reports what claim_store would report at a start with this state, without writing a marker. A
 * database that cannot be opened gives a warning only: doubts_of_places reports faults of its
 * place. */
static int check_store(struct daemon *d, const struct config *config, struct err *e)
{
    char *path = mem_printf("%s/belay.db", config->state_dir);
    char uid[17] = "";
    bool had_checkpoints = false;
    int rc = db_peek(path, uid, &had_checkpoints, e);

    free(path);
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        log_warn("the owner of the checkpoint store cannot be checked", log_err(e));
        return 0;
    }
    rc = store_claim_begin(&(struct store_claim_options){.loop = d->loop,
                               .timers = d->timers,
                               .http = d->http,
                               .prng = &d->prng,
                               .state_dir = config->state_dir,
                               .store = config->store,
                               .cluster = config->cluster,
                               .cluster_uid = uid,
                               .had_checkpoints = had_checkpoints,
                               .reads_only = true},
        &d->claim, e);
    if (rc == 0)
        store_claim_destroy(d->claim); /* it borrows uid, and checks only once */
    d->claim = NULL;
    return rc;
}

/* ---- secrets for agents ---- */

static bool give_secrets(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why)
{
    struct daemon *d = ctx;
    keyring_fill(d->keyring, job, ret_secrets);
    if (ret_secrets->n_checkpoint_keys > 0)
        /* the keys of a job do not change while belayd runs */
        ret_secrets->version = (d->meta.boots << 32) + 1;
    return !d->grants || grants_give(d->grants, job, attempt, ret_secrets, ret_why);
}

static void give_job_token(
    void *ctx, int64_t job, int64_t attempt, char out[WIRE_JOB_TOKEN_MAX + 1])
{
    struct daemon *d = ctx;
    api_job_token(&d->meta, job, attempt, out);
}

static void on_grant(void *ctx, int64_t node)
{
    struct daemon *d = ctx;
    sessions_touch(d->sessions, node);
}

static int make_grants(struct daemon *d, struct err *e)
{
    const struct config *c = d->config;
    const struct grants_options o = {.credentials = {.store = c->store,
                                         .role_arn = c->store_role,
                                         .kms_key = c->store_kms_key,
                                         .sts_url = c->store_sts,
                                         .life_ms = c->store_life_ms},
        .cluster = c->cluster,
        .tick = d->tick,
        .timers = d->timers,
        .prng = &d->prng,
        .http = d->http,
        .changed = on_grant,
        .ctx = d};
    if (c->why_node_credentials)
        log_warn("every job can reach all checkpoints through its node's role: use credentials for "
                 "each job",
            log_s("store", c->store), log_s("how", c->why_node_credentials));
    return c->job_credentials ? grants_create(&o, &d->grants, e) : 0;
}

/* ---- start: deciding parts ---- */

static void take_loads(
    void *ctx, int64_t node, const struct wire_status *st, int64_t tasks_above, int64_t gpus_above)
{
    struct daemon *d = ctx;
    telemetry_take(d->telemetry, node, st, tasks_above, gpus_above);
    conditions_take(d->conditions, node, st, gpus_above);
}

static int make_parts(struct daemon *d, struct err *e)
{
    const struct config *c = d->config;
    d->port.start = start_commit;
    d->tick = tick_create(&(struct tick_options){.model = d->model,
        .planner = d->planner,
        .timers = d->timers,
        .commit = &d->port,
        .effects = on_effects,
        .fatal = on_fatal,
        .ctx = d});
    int rc = make_grants(d, e);
    if (rc != 0)
        return rc;
    struct telemetry_options telemetry = {
        .tick = d->tick, .timers = d->timers, .reader = d->reader};
    memcpy(telemetry.keep_ms, c->telemetry.keep_ms, sizeof(telemetry.keep_ms));
    d->telemetry = telemetry_create(&telemetry);
    d->conditions = conditions_create(&(struct conditions_options){.tick = d->tick,
        .timers = d->timers,
        .throttled_ms = c->telemetry.throttled_ms,
        .limits = &d->config->telemetry.diagnose});
    d->sessions = sessions_create(&(struct sessions_options){.tick = d->tick,
        .timers = d->timers,
        .reader = d->reader,
        .boots = d->meta.boots,
        .cluster = d->config->cluster,
        .cluster_uid = d->meta.cluster_uid,
        .store_fault = store_fault,
        .store_ctx = d,
        .lease_ms = c->lease_ms,
        .sync_ms = c->sync_ms,
        .kill_wait_ms = c->kill_wait_ms,
        .store_wait_ms = c->store_wait_ms,
        .secrets = give_secrets,
        .secrets_ctx = d,
        .job_token = give_job_token,
        .job_token_ctx = d,
        .loads = take_loads,
        .loads_ctx = d});
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
    d->sweeper = sweeper_create(&(struct sweeper_options){.loop = d->loop,
        .timers = d->timers,
        .http = d->http,
        .store = c->store,
        .cluster = c->cluster,
        .cluster_uid = d->meta.cluster_uid,
        .master = keyring_master(d->keyring)});
    d->cleaner = cleaner_create(d->tick, d->timers, sweeper_port(d->sweeper));
    notify_sealer_init(&d->sealer, d->meta.secret);
    d->notifier = notifier_create(&(struct notifier_options){.loop = d->loop,
        .timers = d->timers,
        .runner = d->runner,
        .reader = d->reader,
        .config = &c->notify,
        .budgets = c->budgets,
        .n_budgets = c->n_budgets,
        .sealer = &d->sealer,
        .cluster_uid = d->meta.cluster_uid,
        .cluster = c->cluster});
    d->outbox = outbox_create(d->tick, d->timers, &d->prng, notifier_port(d->notifier));
    d->own_name = own_name_create(c, NULL);
    d->pools = pools_create(&(struct pools_options){.config = c,
        .own_name = d->own_name,
        .tick = d->tick,
        .provision = d->provision,
        .timers = d->timers,
        .http = d->http,
        .runner = d->runner});
    char *workdirs = mem_printf("%s/workdirs", c->state_dir);
    d->workdirs = workdirs_create(&(struct workdirs_options){.loop = d->loop,
        .timers = d->timers,
        .reader = d->reader,
        .dir = workdirs,
        .user_bytes = c->workdir_user_bytes});
    free(workdirs);
    char *db_path = mem_printf("%s/belay.db", c->state_dir);
    d->api = api_create(&(struct api_options){.tick = d->tick,
        .notifier = d->notifier,
        .sealer = &d->sealer,
        .sessions = d->sessions,
        .provision = d->provision,
        .grants = d->grants,
        .pools = d->pools,
        .reader = d->reader,
        .loop = d->loop,
        .db_path = db_path,
        .zones = &d->zones,
        .logs = &d->logs,
        .workdirs = d->workdirs,
        .ca = d->ca,
        .bundles = &d->bundles,
        .config = c,
        .meta = &d->meta,
        .timers = d->timers,
        .owner_uid = geteuid()});
    free(db_path);
    return 0;
}

/* ---- start: listeners ---- */

/* The port of the first start is kept, so that agents find belayd after a restart. */
static int remembered_port(const struct daemon *d)
{
    char *path = mem_printf("%s/port", d->config->state_dir);
    struct buf text = {0};
    int64_t port = 0;
    if (d->config->listen_port == 0 && fs_read(path, 16, &text, NULL) == 0)
        str_to_i64(buf_str(&text), 1, 65535, "port", &port, NULL);
    buf_deinit(&text);
    free(path);
    return d->config->listen_port ? d->config->listen_port : (int)port;
}

static int remember_port(const struct daemon *d, int port, struct err *e)
{
    char *path = mem_printf("%s/port", d->config->state_dir);
    char text[16];
    snprintf(text, sizeof(text), "%d", port);
    int rc = fs_write_atomic(path, text, strlen(text), 0600, e);
    free(path);
    return rc;
}

/* Selects a port itself, because a port chosen by the kernel may be used by an outgoing connection
 * while belayd is down. */
static int listen_anywhere(struct daemon *d, struct http_server_options *o, struct err *e)
{
    int rc = -1;
    for (int i = 0; i < PORT_TRIES && rc != 0; i++) {
        o->port = (int)prng_range(&d->prng, PORT_FIRST, PORT_LAST);
        rc = http_server_start(d->loop, o, &d->tls_server, e);
    }
    return rc;
}

static int listen_tls(struct daemon *d, struct err *e)
{
    char *cert = NULL, *key = NULL, host[256] = "", server[256];
    const char *names[CONFIG_NAMES_MAX + 3];
    size_t n = 0;
    gethostname(host, sizeof(host) - 1);
    names[n++] = host;
    if (!str_eq(d->config->listen_host, "0.0.0.0") && !str_eq(d->config->listen_host, "::"))
        names[n++] = d->config->listen_host;
    config_server_host(d->config, server, sizeof(server));
    if (server[0])
        names[n++] = server;
    for (size_t i = 0; i < d->config->n_names; i++)
        names[n++] = d->config->names[i];
    int rc = ca_issue_server(d->ca, names, n, &cert, &key, e);
    if (rc != 0)
        return rc;
    struct http_server_options o = {
        .host = d->config->listen_host,
        .port = remembered_port(d),
        .cert_pem = cert,
        .key_pem = key,
        .client_ca_pem = ca_pem(d->ca),
        .max_body_bytes = API_BODY_MAX,
        .identify = api_identify,
        .limits = LISTENER_LIMITS,
        .idle_timeout_ms = IDLE_MS,
        .handler = api_handle,
        .ctx = d->api,
    };
    rc = o.port ? http_server_start(d->loop, &o, &d->tls_server, e) : listen_anywhere(d, &o, e);
    explicit_bzero(key, strlen(key));
    free(key);
    free(cert);
    if (rc == 0)
        api_add_listener(d->api, d->tls_server);
    if (rc == 0)
        rc = remember_port(d, http_server_port(d->tls_server), e);
    return rc;
}

static int listen_unix(struct daemon *d, struct err *e)
{
    struct http_server_options o = {
        .unix_path = d->config->socket,
        /* a system belayd serves every local user, by its credentials */
        .unix_mode = geteuid() == 0 ? 0666 : 0600,
        .max_body_bytes = API_BODY_MAX,
        .identify = api_identify,
        .limits = LISTENER_LIMITS,
        .idle_timeout_ms = IDLE_MS,
        .handler = api_handle,
        .ctx = d->api,
    };
    int rc = http_server_start(d->loop, &o, &d->unix_server, e);
    if (rc == 0)
        api_add_listener(d->api, d->unix_server);
    return rc;
}

static void set_server_url(struct daemon *d)
{
    const char *host = d->config->listen_host;
    char own[256] = "";
    if (d->config->server_url[0]) {
        STR_COPY(d->server_url, d->config->server_url);
    } else {
        if (str_eq(host, "0.0.0.0") || str_eq(host, "::")) {
            gethostname(own, sizeof(own) - 1);
            host = own;
        }
        snprintf(d->server_url, sizeof(d->server_url), "https://%.200s:%d", host,
            http_server_port(d->tls_server));
    }
    api_set_server_url(d->api, d->server_url);
}

/* Writes the file by which `belay up` and users find belayd. */
static int write_info(const struct daemon *d, struct err *e)
{
    char *path = mem_printf("%s/belayd.json", d->config->state_dir);
    json_t *v = json_pack("{s:i,s:s,s:s,s:s,s:s}", "pid", (int)getpid(), "url", d->server_url,
        "socket", d->config->socket, "cluster", d->config->cluster, "version", BELAY_VERSION);
    char *text = json_dump_text(v);
    int rc = fs_write_atomic(path, text, strlen(text), 0644, e);
    free(text);
    json_decref(v);
    free(path);
    return rc;
}

/* ---- life ---- */

/* Builds all parts that neither listen nor decide yet. checked is the configuration whose store is
 * only checked (daemon_check); NULL: the store is claimed for this cluster. */
static int build(uv_loop_t *loop, const struct config *config, const struct config *checked,
    struct daemon **ret_daemon, struct err *e)
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
    int rc = open_state(d, e);
    if (rc == 0)
        rc = checked ? check_store(d, checked, e) : claim_store(d, e);
    if (rc == 0)
        rc = load_model(d, e);
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

int daemon_start(
    uv_loop_t *loop, const struct config *config, struct daemon **ret_daemon, struct err *e)
{
    struct daemon *d;
    struct err doubt;
    int rc = build(loop, config, NULL, &d, e);
    if (rc != 0)
        return rc;
    if (doubts_of_pools(pools_in_force(d->pools), &doubt) != 0)
        log_error("a part of the configuration cannot work", log_err(&doubt));
    if (own_name_check(d->own_name, pools_in_force(d->pools), 0, &doubt) != 0)
        log_warn("launched machines may not reach belayd", log_err(&doubt));
    else if (own_name_check_known(d->own_name, POOLS_NAME_WAIT_MS, &doubt) != 0)
        log_warn("agents and users may not reach belayd", log_err(&doubt));
    rc = listen_tls(d, e);
    if (rc == 0)
        rc = listen_unix(d, e);
    if (rc == 0) {
        set_server_url(d);
        rc = write_info(d, e);
    }
    if (rc != 0) {
        daemon_destroy(d);
        return rc;
    }
    pools_post(d->pools);
    provision_start(d->provision);
    cleaner_start(d->cleaner);
    outbox_start(d->outbox);
    timer_init(&d->ca_look, on_ca_look, d);
    on_ca_look(&d->ca_look, d);
    log_info("belayd is ready", log_s("url", d->server_url), log_s("socket", config->socket),
        log_s("state", config->state_dir), log_s("version", BELAY_VERSION));
    *ret_daemon = d;
    return 0;
}

/* The pools applied by `belay pools apply` override the configuration's. */
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

int daemon_check(uv_loop_t *loop, const struct config *config, struct err *e)
{
    struct config scratch = *config; /* its texts are borrowed */
    struct daemon *d;
    char dir[] = "/tmp/belayd-check.XXXXXX";
    struct err ignored;
    if (!mkdtemp(dir))
        return err_errno(e, errno, "%s: cannot create a directory for the check", dir);
    STR_COPY(scratch.state_dir, dir);
    scratch.encryption = ENCRYPTION_NONE; /* the keys are checked in their real place */
    snprintf(scratch.key_file, sizeof(scratch.key_file), "%s/keys", dir);
    int rc = doubts_of_places(config, e);
    if (rc == 0)
        rc = copy_applied(config, &scratch, e);
    if (rc == 0)
        rc = build(loop, &scratch, config, &d, e);
    if (rc == 0) {
        rc = doubts_of_pools(pools_in_force(d->pools), e);
        if (rc == 0)
            rc = doubts_of_files(config, pools_in_force(d->pools), e);
        if (rc == 0)
            rc = own_name_check(d->own_name, pools_in_force(d->pools), 0, e);
        if (rc == 0)
            rc = own_name_check_known(d->own_name, POOLS_NAME_WAIT_MS, e);
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
    sessions_release_all(d->sessions);
    finish_stop(d);
}

void daemon_destroy(struct daemon *d)
{
    if (!d)
        return;
    http_server_stop(d->unix_server);
    http_server_stop(d->tls_server);
    pools_close(d->pools);
    /* a commit in progress borrows the tick's batch: it must end first */
    db_writer_destroy(d->writer);
    tick_destroy(d->tick); /* its last answers go to the parts destroyed below */
    sessions_destroy(d->sessions);
    telemetry_destroy(d->telemetry);
    conditions_destroy(d->conditions);
    grants_destroy(d->grants);
    provision_destroy(d->provision);
    store_claim_destroy(d->claim);
    sweeper_destroy(d->sweeper);
    cleaner_destroy(d->cleaner);
    notifier_destroy(d->notifier);
    outbox_destroy(d->outbox);
    notify_sealer_wipe(&d->sealer);
    pools_destroy(d->pools);
    own_name_destroy(d->own_name);
    logs_close(&d->logs);          /* its waiting callers belong to the API */
    workdirs_destroy(d->workdirs); /* likewise */
    api_destroy(d->api);
    db_close(d->db);
    db_reader_close(d->reader);
    planner_destroy(d->planner);
    model_destroy(d->model);
    zones_deinit(&d->zones);
    free(d->windows);
    free(d->budgets);
    timer_stop(d->timers, &d->ca_look);
    ca_close(d->ca);
    keyring_close(d->keyring);
    bundles_close(&d->bundles);
    if (d->async_open)
        uv_close((uv_handle_t *)&d->commit_ended, NULL);
    uv_http_client_destroy(d->http);
    uv_runner_destroy(d->runner);
    uv_timers_destroy(d->timers);
    uv_run(d->loop, UV_RUN_NOWAIT); /* the handles close while d still exists */
    free(d);
}
