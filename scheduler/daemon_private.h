/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of belayd (daemon.h), and what its files call of each other.
 */
#ifndef BELAY_SCHEDULER_DAEMON_PRIVATE_H
#define BELAY_SCHEDULER_DAEMON_PRIVATE_H

#include "scheduler/daemon.h"

#include "base/prng.h"
#include "base/uv/http_server.h"
#include "base/uv/loop.h"
#include "scheduler/api/api.h"
#include "scheduler/audit_head.h"
#include "scheduler/conditions.h"
#include "scheduler/idle_gpus.h"
#include "scheduler/engine/outbox.h"
#include "scheduler/keyring.h"
#include "scheduler/logs/archiver.h"
#include "scheduler/notify/notifier.h"
#include "scheduler/oidc/oidc.h"
#include "scheduler/pools.h"
#include "scheduler/reload.h"
#include "scheduler/metrics/observed.h"
#include "scheduler/retention.h"
#include "scheduler/secrets/key_file.h"
#include "scheduler/secrets/reseal.h"
#include "scheduler/store/claim.h"
#include "scheduler/store/grants.h"
#include "scheduler/store/ckpt_desk.h"
#include "scheduler/store/store_cleaner.h"
#include "scheduler/spend/watch.h"
#include "scheduler/tables.h"
#include "scheduler/telemetry.h"
#include "scheduler/workdirs.h"

#define DAEMON_URL_MAX 256

struct daemon {
    uv_loop_t *loop;
    const struct config *config;
    struct open_files files;
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
    struct tables *tables; /* in force; the model borrows them */
    struct planner *planner;
    struct tick *tick;
    struct telemetry *telemetry;
    struct conditions *conditions;
    struct agent_sync *agent_sync;
    struct provision *provision;
    struct grants *grants; /* NULL if nodes use their own credentials for the store */
    struct store_claim *claim;
    struct store_cleaner *store_cleaner;
    struct ckpt_desk *ckpt_desk;
    struct cleaner *cleaner;
    struct sealer *sealer;
    bool has_new_keys; /* the sealer's key file was created by this start */
    struct reseal reseal;
    struct oidc *oidc;         /* NULL: nobody signs in */
    struct reload_oidc *oidcs; /* those of reloads, of which the last is oidc, until the end */
    size_t n_oidcs;
    struct oidc *first_oidc; /* of the start; may be NULL */
    struct notifier *notifier;
    struct outbox *outbox;
    struct own_name *own_name;
    struct pools *pools;
    struct logs logs;
    struct workdirs *workdirs;
    struct reload *reload; /* NULL in a check */
    struct retention *retention;
    struct observed *observed; /* for /metrics */
    struct spend_watch *spend_watch;
    struct archiver *archiver;
    struct ca *ca;
    struct keyring *keyring;
    struct audit_head_file *audit_head;
    struct bundles bundles;
    struct timer ca_check, name_check;
    struct api *api;
    struct http_server *unix_server, *tls_server;
    int tls_fd, tls_port; /* tls_fd: the port's socket until its server has it; 0 = none */
    char server_url[DAEMON_URL_MAX];
    struct commit_port port;
    uv_async_t commit_ended;
    bool commit_under_way, async_open, stopping;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

/* ---- daemon_state.c ---- */

/* Of the database. The caller frees it. */
char *daemon_db_path(const struct config *c);
/* Opens the database, which has the lock, and the other files of the state directory. */
int daemon_open_state(struct daemon *d, struct err *e);
/* Loads the model from the database. */
int daemon_load_model(struct daemon *d, struct err *e);
/* Warns daily while the certificate authority is about to end. */
void daemon_watch_ca(struct daemon *d);
/* Warns of a server name that did not resolve within POOLS_NAME_WAIT_MS; a start does not wait. */
void daemon_watch_name(struct daemon *d);

/* ---- daemon_store.c ---- */

/* Claims the store for this cluster. */
int daemon_claim_store(struct daemon *d, struct err *e);
/* Reports what daemon_claim_store would report at a start with this state, without writing a
 * marker. A database that cannot be opened gives a warning only: config_check_paths reports faults
 * of its place. */
int daemon_check_store(struct daemon *d, const struct config *config, struct err *e);
/* NULL while the store is this cluster's; else why nothing may be started. ctx: the daemon, as
 * below. */
const char *daemon_store_fault(void *ctx);
int daemon_make_grants(struct daemon *d, struct err *e);
/* Fills the secrets for the agent of an attempt; see agent_sync.h. */
bool daemon_give_secrets(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why);

/* ---- daemon_checks.c ---- */

/* Gets the credentials of each pool as a launch would, for at most some seconds, and closes the
 * drivers. The error names the first pool that has none. */
int daemon_check_credentials(struct daemon *d, struct err *e);

/* ---- daemon_listen.c ---- */

/* Listens at the port, without accepting yet: a start whose port is in use changes nothing else. */
int daemon_take_port(struct daemon *d, struct err *e);
/* Whether this machine can listen at the configured address. A port in use is fine. */
int daemon_check_port(const struct config *c, struct err *e);
/* Starts the listeners, after daemon_take_port, and writes STATE/belayd.json. */
int daemon_listen(struct daemon *d, struct err *e);

#endif
