/* SPDX-License-Identifier: Apache-2.0
 *
 * Recovery at the start: the files of the state directory, and the model from the database.
 */
#include "scheduler/daemon_private.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/tz/system.h"
#include "scheduler/api/jobspec.h"
#include "scheduler/config/own_name.h"
#include "scheduler/config/egress.h"
#include "scheduler/spot_history.h"
#include <stdlib.h>

#define CA_CHECK_MS SECONDS_MS(86400)
#define CA_WARN_MS (180 * CA_CHECK_MS)

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

/* Opens the keys of the database, and records the current one. */
static int open_keys(struct daemon *d, struct err *e)
{
    int rc = key_file_open(
        d->config, d->meta.cluster_uid, d->meta.seal_key, &d->sealer, &d->has_new_keys, e);
    if (rc == 0 && !str_eq(d->meta.seal_key, sealer_key_id(d->sealer)))
        rc = db_set_seal_key(d->db, &d->meta, sealer_key_id(d->sealer), e);
    return rc;
}

/* A log without the row of its head was cut off or replaced. The head stays, for `belay admin
 * audit-log verify`. */
static int open_audit_head(struct daemon *d, struct err *e)
{
    struct audit_head kept, found;
    bool has = true;
    int rc = audit_head_open(d->config->state_dir, &d->audit_head, e);
    if (rc != 0)
        return rc;
    audit_head_get(d->audit_head, &kept);
    db_get_audit_head(d->db, &found);
    rc = audit_log_has(d->reader, &kept, &has, e);
    if (rc == 0 && !has) {
        log_error("the end of the audit log was cut off or changed while belayd was down",
            log_i("seq", found.seq), log_i("seq_before", kept.seq),
            log_s("hash_before", kept.hash));
        audit_head_freeze(d->audit_head);
    }
    return rc;
}

char *daemon_db_path(const struct config *c)
{
    return mem_printf("%s/belay.db", c->state_dir);
}

int daemon_open_state(struct daemon *d, struct err *e)
{
    char *path = daemon_db_path(d->config);
    char *logs = mem_printf("%s/logs", d->config->state_dir);
    int rc = fs_mkdirs(d->config->state_dir, 0700, e);
    if (rc == 0)
        rc = db_open(path, &d->db, e);
    if (rc == 0)
        rc = db_startup(d->db, &d->meta, e);
    if (rc == 0)
        rc = open_keys(d, e);
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
        rc = open_audit_head(d, e);
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

/* All certificates expire with the CA, which cannot be extended: its end is logged once a day from
 * CA_WARN_MS before. */
static void on_ca_check(struct timer *t, void *ctx)
{
    struct daemon *d = ctx;
    int64_t left_ms = ca_ends_at(d->ca).ms - clock_wall(&clock_system).ms;
    timer_start(d->timers, t, CA_CHECK_MS);
    if (left_ms > CA_WARN_MS)
        return;
    log_warn(left_ms > 0 ? "the cluster's certificate authority ends soon, and with it every "
                           "connection of an agent: make a new one (belayd(8), ca.pem)"
                         : "the cluster's certificate authority has ended and no agent can "
                           "connect: make a new one (belayd(8), ca.pem)",
        log_i("days_left", left_ms / CA_CHECK_MS));
}

static void on_name_check(struct timer *t, void *ctx)
{
    struct daemon *d = ctx;
    struct err why;
    (void)t;
    if (own_name_check_known(d->own_name, 0, &why) != 0)
        log_warn("agents and users may not reach belayd", log_err(&why));
}

#define RUNTIMES_LOADED 1000 /* the most recently ended jobs, for forecasts */

struct ended {
    struct job_row *rows;
    size_t n;
};

static int add_ended(void *ctx, const struct job_row *row)
{
    struct ended *all = ctx;
    all->rows[all->n++] = *row;
    return 0;
}

/* Loads the run times of ended jobs that had a single attempt. Without them, forecasts only begin
 * with less data. */
static void load_runtimes(struct daemon *d)
{
    const struct job_filter f = {
        .states = 1U << JOB_ENDED, .sort = JOBS_BY_END, .limit = RUNTIMES_LOADED};
    struct ended all = {.rows = mem_array(RUNTIMES_LOADED, sizeof(*all.rows))};
    struct err e;
    if (db_read_jobs(d->reader, &f, add_ended, &all, NULL, &e) != 0)
        log_warn("the recent run times of jobs cannot be read", log_err(&e));
    while (all.n-- > 0) {
        const struct job_row *r = &all.rows[all.n];
        if (r->attempts == 1 && wall_is_set(r->started_at) && wall_is_set(r->ended_at))
            model_load_runtime(d->model, r, r->ended_at.ms - r->started_at.ms);
    }
    free(all.rows);
}

int daemon_load_model(struct daemon *d, struct err *e)
{
    struct model_options o = {.lease_ms = d->config->lease_ms,
        .store_wait_ms = d->config->store_wait_ms,
        .max_nodes = d->config->max_nodes,
        .max_gpus = d->config->max_gpus,
        .max_uusd_h = d->config->max_uusd_h,
        .no_progress_max = d->config->no_progress_max,
        .retention_ms = d->config->retention.checkpoints_ms,
        .node_failures = d->config->failing_nodes,
        .egress = config_egress,
        .store_uusd_gib_month = d->config->store_uusd_gib_month,
        .policy = &d->config->policy,
        .retries = &d->config->retries,
        .procurement = &d->config->deadlines,
        .zones = &d->zones,
        .read_job = jobspec_read};
    struct stamp now = {.wall = clock_wall(&clock_system), .mono = clock_mono(d->timers->clock)};
    STR_COPY(o.cluster_uid, d->meta.cluster_uid);
    d->zones.source = &zone_source_system;
    int rc = tables_create(d->config, &d->zones, &d->tables, e);
    if (rc != 0)
        return rc;
    o.tables = d->tables->other.to;
    d->model = model_create(&o);
    d->planner = planner_create();
    rc = db_load(d->db, d->model, now, e);
    if (rc == 0)
        load_runtimes(d);
    d->observed = observed_create();
    observed_load(d->observed, d->model);
    struct err why;
    if (rc == 0 && spot_history_load(d->reader, d->model, now.wall, &why) != 0)
        log_warn("the recent spot observations cannot be read", log_err(&why));
    return rc;
}

void daemon_watch_ca(struct daemon *d)
{
    timer_init(&d->ca_check, on_ca_check, d);
    on_ca_check(&d->ca_check, d);
}

void daemon_watch_name(struct daemon *d)
{
    timer_init(&d->name_check, on_name_check, d);
    timer_start(d->timers, &d->name_check, POOLS_NAME_WAIT_MS);
}
