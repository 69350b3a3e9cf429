/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's part of the checkpoint store: the cluster's claim on it, and the secrets that agents get
 * for it.
 */
#include "scheduler/daemon_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "scheduler/secrets/store.h"
#include <signal.h>
#include <stdlib.h>

static int raise_next_job(void *ctx, int64_t next, struct err *e)
{
    struct daemon *d = ctx;
    return db_raise_next_job(d->db, &d->meta, next, e);
}

const char *daemon_store_fault(void *ctx)
{
    const struct daemon *d = ctx;
    return store_claim_is_ours(d->claim) ? NULL : store_claim_text(d->claim);
}

/* Sends the attempts that waited for the store. */
static void on_store_ours(void *ctx)
{
    struct daemon *d = ctx;
    agent_sync_touch_all(d->agent_sync);
}

/* The restored belayd, or the new owner, has the jobs and machines from now on. Those of here are
 * left alone, as by any stop. */
static void on_store_lost(void *ctx, const char *text)
{
    (void)ctx;
    log_error("stopping: the checkpoint store is no longer this belayd's", log_s("why", text));
    raise(SIGTERM);
}

int daemon_claim_store(struct daemon *d, struct err *e)
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
                                 .epoch = d->meta.epoch,
                                 .raise = raise_next_job,
                                 .changed = on_store_ours,
                                 .lost = on_store_lost,
                                 .ctx = d},
        &d->claim, e);
}

int daemon_check_store(struct daemon *d, const struct config *config, struct err *e)
{
    char *path = daemon_db_path(config);
    struct db_identity found = {0};
    int rc = db_identify(path, &found, e);

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
                               .cluster_uid = found.uid,
                               .had_checkpoints = found.has_checkpoints,
                               .epoch = found.epoch,
                               .reads_only = true},
        &d->claim, e);
    if (rc == 0)
        store_claim_destroy(d->claim); /* it borrows found.uid, and is not needed further */
    d->claim = NULL;
    return rc;
}

/* ---- secrets for agents ---- */

/* The attempt, while one of its ranks has not started; NULL if there is none. */
static const struct attempt *starting(const struct daemon *d, int64_t job, int64_t attempt)
{
    const struct job *j = model_job(tick_model(d->tick), job);
    if (!j || j->row.attempts != attempt || j->row.spec.secrets == 0)
        return NULL;
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        if (a->row.state == ATTEMPT_ASSIGNED)
            return a;
    }
    return NULL;
}

/* Adds what the job itself asked for. ERR_INVALID: it may not have one of them any more. */
static int give_job_secrets(
    struct daemon *d, const struct attempt *a, struct wire_secrets *x, struct err *e)
{
    const struct job_row *j = &a->job->row;
    const struct secret_user u = {
        .user = j->user, .team = j->spec.team, .pools = a->node->row.pool};
    struct spec_change spec = {0};
    int rc = db_read_spec(d->reader, j->id, &spec, e);
    if (rc == 0)
        rc = secrets_give(d->reader, d->sealer, &d->config->policy, spec.launch_json, &u, x, e);
    spec_change_deinit(&spec);
    return rc;
}

bool daemon_give_secrets(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why)
{
    struct daemon *d = ctx;
    const struct attempt *a = starting(d, job, attempt);
    if (a && give_job_secrets(d, a, ret_secrets, ret_why) != 0)
        return false;
    if (a)
        ret_secrets->version = (d->meta.boots << 32) + 1;
    keyring_fill(d->keyring, job, ret_secrets);
    if (ret_secrets->n_checkpoint_keys > 0)
        /* the keys of a job do not change while belayd runs */
        ret_secrets->version = (d->meta.boots << 32) + 1;
    return !d->grants || grants_give(d->grants, job, attempt, ret_secrets, ret_why);
}

static void on_grant(void *ctx, int64_t node)
{
    struct daemon *d = ctx;
    agent_sync_touch(d->agent_sync, node);
}

int daemon_make_grants(struct daemon *d, struct err *e)
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
