/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the API; included by scheduler/api/ only.
 */
#ifndef BELAY_SCHEDULER_API_API_PRIVATE_H
#define BELAY_SCHEDULER_API_API_PRIVATE_H

#include "base/json.h"
#include "base/list.h"
#include "base/log_pace.h"
#include "base/map.h"
#include "base/str.h"
#include "base/wire/wire.h"
#include "scheduler/access/access.h"
#include "scheduler/account_quotas.h"
#include "scheduler/access/rates.h"
#include "scheduler/api/api.h"
#include "scheduler/api/jobspec.h"
#include "scheduler/notify/notify_seal.h"
#include "scheduler/metrics/series.h"
#include "scheduler/token_uses.h"
#include "scheduler/api/turns.h"
#include "scheduler/core/forecast/explain.h"
#include "scheduler/core/model/text.h"
#include "scheduler/volumes.h"

#define READ_POOL_WAIT_MS 60000
#define API_WAIT_MAX_MS 25000
#define API_LIST_MAX 200         /* entries of a page */
#define API_COMMIT_WAIT_MS 60000 /* how long a write waits for its commit before 503 */

/* The cookie of a browser that signed in. The prefix makes browsers accept it from this host only,
 * and only over TLS or from this machine (login/loopback.h). */
#define LOGIN_COOKIE "__Host-belay"
#define LOGIN_COOKIE_FLAGS "; Path=/; Secure; HttpOnly; SameSite=Strict"
#define LOGIN_COOKIE_END LOGIN_COOKIE "=; Max-Age=0" LOGIN_COOKIE_FLAGS

#define API_LISTENERS_MAX 3
#define API_HIDDEN "-" /* in place of the name of a job that the caller may not read */

/* A local user, as last read from the system's user database. */
struct local_user {
    uid_t uid;
    struct mono until; /* when it is read again; MONO_NONE: never read */
    char name[CORE_NAME_MAX];
};

/* Refused calls in the audit log (audit_trail.h) within the minute until `until`. */
struct audit_limit {
    struct smap users; /* user -> the number of rows */
    struct mono until;
    int n;
    int64_t n_left_out; /* not recorded since the last row */
};

struct api {
    struct api_options o;
    char server_url[256];
    struct reload *reload; /* NULL in tests */
    bool shutting_down;
    bool auditing; /* an audit runs; one at a time, because it queries the providers */
    struct list deferred_replies;
    struct list cancels;         /* cancel_many.c: cancels in progress */
    struct turns turns;          /* answers that read the model */
    struct read_pool *read_pool; /* read_pool.c */
    struct volumes *volumes;
    struct account_quotas *account_quotas;
    struct token_uses *token_uses;
    struct log_quota *stored;     /* bytes stored by requests of users */
    struct rates rates;           /* of requests of users */
    struct rates login_rates;     /* of sign-ins, by address */
    struct map watchers;          /* job (0 = all) -> struct watchers */
    struct list channels;         /* api/channels.c */
    struct list session_requests; /* channels whose event is being committed */
    int64_t n_channels;           /* in total */
    int64_t n_requests, n_refused;
    struct series request_seconds; /* by route and status */
    struct log_lag *log_lag;
    int64_t n_paced, n_logins_paced; /* refused at the limits of rates and login_rates */
    struct log_pace joins_refused, output_lost;
    const struct http_server *listeners[API_LISTENERS_MAX]; /* up to the first NULL; for metrics */
    char *openapi;                                          /* scheduler/api/openapi.c */
    struct audit_limit audit_limit;
    struct streams *streams;   /* api/stream/ */
    struct local_user local;   /* who asked last over the UNIX socket */
    struct list sign_in_links; /* login/links.c */
    struct loopback *loopback; /* login/loopback.c; NULL: not open */
};

struct request {
    struct api *api;
    struct http_exchange *x;
    const struct http_server_request *r;
    struct caller caller;
    bool is_loopback;       /* received by the listener of login/loopback.h */
    bool by_cookie;         /* the token was in a browser's cookie */
    struct tick_call *call; /* for the audit log; NULL if it is not recorded */
    int64_t id, id2;        /* the numbers in the path */
    char request_id[HTTP_REQUEST_ID_MAX];
};

/* Who calls. NEED_WRITER: a user whose request stores data and is charged; requests that
 * end something need NEED_USER. NEED_OWN_WRITER: the same, or a job that changes itself.
 * NEED_SESSION: a user, or a job that starts tasks on its nodes. NEED_MACHINE: a node, or a machine
 * with an unused join token. */
enum api_need {
    NEED_NOTHING,
    NEED_USER,
    NEED_WRITER,
    NEED_OWN_WRITER,
    NEED_SESSION,
    NEED_MACHINE,
    NEED_NODE
};

/* Answers a request, as api_handle does. */
void api_handle_from(
    struct api *a, struct http_exchange *x, const struct http_server_request *r, bool is_loopback);

/* Fills in the caller. Returns false after an error reply. */
bool api_callers_identify(struct request *q, enum api_need need);

/* An exchange that is answered later. The peer or the server may disappear first; then
 * deferred_reply_take returns NULL. */
struct deferred_reply {
    struct api *api;
    struct http_exchange *x;
    struct link in_api;
};

struct deferred_reply *deferred_reply_create(
    struct api *a, struct http_exchange *x, int64_t max_ms);
struct http_exchange *deferred_reply_take(struct deferred_reply *l); /* frees l */

void api_reply_json(struct http_exchange *x, int status, json_t *v); /* takes v */
void api_reply_status(struct http_exchange *x, int status, const struct err *e);
void api_reply_failure(struct http_exchange *x, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A tick_reply_fn whose ctx is a struct deferred_reply: {"id": N} with 200, or the error. */
void api_on_done(void *ctx, const struct err *e, int64_t id);
void api_on_created(void *ctx, const struct err *e, int64_t id); /* with 201 */

/* Queues an answer of a kind that one caller may request many times. The turn's `moment` is the
 * struct tick, whose whole model is committed at that time. It is NULL if there will be no such
 * moment soon, or if belayd is stopping; then the tick may no longer exist and there is no client.
 * The turn never runs inside this call. Returns false after an error reply: too many of the
 * caller's turns are waiting. */
bool api_take_turn(struct request *q, struct turn *turn);

/* For answers from the model, which may be ahead of the disk: in its turn, fn is called at a moment
 * when the whole model is committed. If there will be no such moment soon, because the disk is
 * full, the answer is that error; with _or_database fn is called with a model of NULL, and may use
 * only the database. */
typedef void (*api_read_model_fn)(const struct api *a, struct http_exchange *x,
    const struct caller *viewer, const struct model *model, int64_t arg);
void api_read_model(struct request *q, api_read_model_fn fn, int64_t arg);
void api_read_model_or_database(struct request *q, api_read_model_fn fn, int64_t arg);

/* Returns true if path matches the route, in which '#' stands for a number from 1, at most two of
 * them, and '*' at the end for anything. */
bool api_match(const char *route, const char *path, int64_t ret_ids[2]);

/* Returns the i-th route, from 0, with the right that it needs, or false beyond the last. For the
 * tests that compare the routes with openapi.json, and with what each role may do. */
bool api_route(size_t i, const char **ret_method, const char **ret_path, enum right *ret_right);

/* Reads a query parameter; fallback if it is absent. Returns false after an error reply if it is
 * malformed. */
bool api_query_i64(struct request *q, const char *name, int64_t min, int64_t max, int64_t fallback,
    int64_t *ret_value);
bool api_query_time(struct request *q, const char *name, struct wall *ret_wall);
/* Reads state=all or state=<some>; the default is <some>. */
bool api_query_state(struct request *q, const char *some, bool *ret_all);

/* Checks whether a machine could join with this token now, without using it up. ERR_DENIED if
 * not. */
int api_check_join_token(const struct api *a, const char *token, struct err *e);

/* Returns the body as JSON, or NULL after an error reply. */
json_t *api_body(struct request *q, size_t max);

/* Reads {"NAME": true, ...} with these names, or an empty body; what is not said is false. Returns
 * false after an error reply. */
struct api_flag {
    const char *name;
    bool *ret_value;
};
bool api_read_flags(struct request *q, const struct api_flag *flags, size_t n);

/* read_pool.c: answers x with the result of fn, which runs on a thread. fn may use only its reader,
 * all of whose statements see one commit, and of. At most READ_POOL_PER_USER_MAX calls of a caller
 * wait; further ones get 429. Administrators and the audit, whose caller is NULL, may have all
 * readers at once; others leave one to the next caller. wait_ms includes the time in the queue;
 * after it the answer is 504 and fn's read ends with ERR_TIMEOUT. ret_reply is a new reference.
 * drop frees of in all cases, on the loop. */
typedef int (*read_pool_fn)(struct db_reader *r, void *of, json_t **ret_reply, struct err *e);
typedef void (*read_pool_drop_fn)(void *of);
void read_pool_run(const struct api *a, struct http_exchange *x, const struct caller *caller,
    int64_t wait_ms, read_pool_fn fn, void *of, read_pool_drop_fn drop);
struct read_pool *read_pool_create(uv_loop_t *loop, struct timers *timers, const char *path);
void read_pool_destroy(struct read_pool *in);

/* Returns false after a 403 unless the caller has the right to the object (access_may,
 * access_refuse). */
bool api_may(
    struct request *q, enum right right, const struct access_object *object, const char *what);
/* The job as an object of access_may; borrows from the row. */
struct access_object api_object_of_job(const struct job_row *row);
/* Likewise the entry, with the team of its jobs. live may be NULL. */
struct access_object api_object_of_cron(
    const struct api *a, const struct cron_row *row, const struct cron_entry *live);
/* Leaves in the JSON of a job what is shown of the jobs of others. */
void api_hide_job(json_t *job);
/* Reads job q->id for a caller who has the right to it. Returns false after an error reply: there
 * is no such job, or the caller has not. */
bool api_find_job(struct request *q, enum right right, struct job_row *ret_row);
/* Likewise, and the job has not ended. what ("cancel") is for the error text. */
bool api_find_live_job(
    struct request *q, enum right right, const char *what, struct job_row *ret_row);

/* Adds the next reservation of the node (api/reservations/); m and n may be NULL. */
void api_json_reserve(json_t *node, const struct model *m, const struct node *n);
/* api/json.c: rows as JSON, new references */
json_t *api_json_job(const struct job_row *j, const char *node_name);
/* The number of a job as users name it: "42_7" for a task of an array. Null for CORE_ID_NONE. */
json_t *api_json_ref(struct db_reader *r, int64_t job);
/* The reader is for the names of jobs. */
json_t *api_json_drill(struct db_reader *r, const struct drill_row *d);
json_t *api_json_array(const struct array_row *a);
json_t *api_json_dependency(const struct dependency_row *d);
/* live is NULL if it was removed or is not committed yet */
json_t *api_json_cron(const struct api *a, const struct cron_row *r, const struct cron_entry *live);
/* With how the job ended, from the database. */
json_t *api_json_cron_run(struct db_reader *reader, const struct cron_run_row *r);
json_t *api_json_ckpt_gc(const struct ckpt_gc_row *l);
/* Without its restart. */
json_t *api_json_attempt(const struct attempt_row *a);
json_t *api_json_restart(const struct restart_moments *m);
/* is_hidden: the viewer may not read its job: only kind, time and numbers of objects are shown */
json_t *api_json_event(struct db_reader *r, const struct history_row *h, bool is_hidden);
json_t *api_json_event_of(const struct history_row *h, json_t *ref, bool is_hidden); /* takes ref */
json_t *api_json_checkpoint(const struct checkpoint_row *c);
json_t *api_json_ledger(const struct ledger_row *l);
/* live is NULL if it is gone */
json_t *api_json_node(const struct node_row *n, const struct node *live, struct mono now);
json_t *api_json_instance(const struct instance_row *i);
json_t *api_json_pool(const struct pool *p, struct wall now);
/* live is NULL if values that are kept only in memory, and those computed from them, are unknown */
json_t *api_json_offer(const struct offer_row *o, const struct offer *live, struct stamp now);
json_t *api_json_token(const struct token_row *t, struct wall last_use);
int64_t api_count(const struct list *l);
json_t *api_json_opt(int64_t value, int64_t none);
json_t *api_json_opt_text(const char *s); /* JSON null for NULL and "" */
json_t *api_json_time(struct wall w);     /* JSON null when not set */
/* Sorts the array by the key, greatest first; takes the reference. */
json_t *api_sort_descending(json_t *items, const char *key);

/* A job with the values that only the model has. stored_pool: the pool of its newest attempt as
 * returned by db_read_jobs, or NULL to read it. */
json_t *api_live_job(const struct api *a, const struct job_row *row, const char *stored_pool);

/* history/recent.c: answers GET /api/v1/events from the newest events, without waiting */
void api_recent_events(struct request *q);

/* watch.c: long polls */
/* Whether the event is of a job that the viewer may not read, or whose owner cannot be read. */
bool api_event_is_hidden(
    const struct api *a, const struct caller *viewer, const struct history_row *h);
enum watch_kind { WATCH_EVENTS, WATCH_LOGS };
#define API_EVENTS_MAX 500 /* in one reply */
/* Answers q as soon as there is data after `after`, or after wait_ms. */
struct watch_of {
    enum watch_kind kind;
    int64_t job;
    int64_t after, tail;   /* of events; tail: the last of the job's, 0 = those after `after` */
    struct caller viewer;  /* who is shown only what they may see */
    struct logs_part part; /* of logs, */
    int64_t max;           /* bytes */
};
void api_watch(struct request *q, const struct watch_of *of, int64_t wait_ms);
void api_watch_destroy_all(struct api *a);
void api_watch_wake(struct api *a, int64_t job);
void api_watch_wake_all(struct api *a);

/* api/channels.c: sessions with running jobs */
/* an agent_sync_channels_fn of the struct api */
void api_channels_of_node(void *ctx, int64_t node, struct wire_desired *d);
void api_channels_shut_down(struct api *a);
void api_channels_destroy_all(struct api *a);

/* Sets the script_key of the specification's job; its user must be set. */
void api_script_key(struct jobspec *s);

/* Checks that the working directory in the specification was sent by its user, and keeps it.
 * ERR_INVALID if not. */
int api_pin_workdir(const struct api *a, const struct jobspec *s, struct err *e);

/* Reads a specification from the body, for the caller as its user; release it with jobspec_deinit.
 * Returns false after an error reply. */
bool api_read_submission(struct request *q, struct jobspec *ret_spec);
/* Fills in how the jobs ended on which it depends and that the model no longer has. */
int api_read_ended(const struct api *a, struct jobspec *s, struct err *e);
struct event api_submit_event(const struct jobspec *s); /* the event borrows s */

/* ERR_INVALID if its window is not configured. */
int api_check_window(const struct api *a, const struct job_row *r, struct err *e);
/* ERR_INVALID if the job asks for a secret that it may not use; its user must be set. */
int api_check_secrets(const struct api *a, const struct jobspec *s, struct err *e);
/* ERR_INVALID if its checkpoints would be restored as root although they are not encrypted, so that
 * nothing proves who made them. */
int api_check_method(const struct api *a, const struct job_row *r, struct err *e);

/* the routes */
void api_users_list(struct request *q);
void api_checkpoints_list(struct request *q); /* api/checkpoints.c */
void api_checkpoints_pin(struct request *q);
void api_checkpoints_unpin(struct request *q);
void api_checkpoints_verify(struct request *q);
void api_checkpoints_verified(struct request *q);
void api_crons_add(struct request *q);
void api_crons_list(struct request *q);
void api_crons_show(struct request *q);
void api_crons_edit(struct request *q);
void api_crons_pause(struct request *q);
void api_crons_resume(struct request *q);
void api_crons_remove(struct request *q);
void api_crons_run(struct request *q);
void api_crons_runs(struct request *q);
void api_crons_dates(struct request *q);
void api_crons_plan(struct request *q);
void api_calendars_list(struct request *q); /* api/cron/calendars.c */
void api_calendars_set(struct request *q);
void api_calendars_remove(struct request *q);
/* Reads the entry for a caller who has the right to it; only RIGHT_READ_JOB shows one that was
 * removed. Returns false after an error reply. */
bool api_find_cron(struct request *q, enum right right, struct cron_row *ret_row);
void api_jobs_submit(struct request *q);
void api_jobs_estimate(struct request *q); /* api/why.c */
void api_jobs_list(struct request *q);
void api_jobs_show(struct request *q);
void api_jobs_why(struct request *q);
void api_jobs_diagnose(struct request *q); /* api/load/diagnose.c */
void api_jobs_load(struct request *q);     /* api/load/job_load.c */
void api_advice(struct request *q);        /* api/advice.c */
void api_forgotten(struct request *q);
void api_anomalies(struct request *q);
void api_jobs_reclaim(struct request *q);
/* Returns the number of reasons why a job waits, or of texts on how it ended. model is NULL if
 * there was no moment when all of it was on disk. Uses only the tick and the reader of a. */
size_t api_explain(const struct api *a, const struct model *model, const struct job_row *row,
    struct reason reasons[EXPLAIN_REASONS_MAX]);
/* Returns in short why a job waits and its warnings, {"reasons", "warnings"}, at a moment when the
 * whole model is on disk. model is NULL if there was no such moment. Returns NULL if it cannot be
 * read, else a new reference. */
json_t *api_why_brief(const struct api *a, const struct model *model, int64_t id, struct err *e);
void api_jobs_events(struct request *q); /* api/follow.c */
void api_jobs_logs(struct request *q);
void api_jobs_cancel(struct request *q);
void api_jobs_cancel_many(struct request *q); /* api/cancel_many.c */
void api_jobs_requeue(struct request *q);
void api_jobs_update(struct request *q); /* api/update.c */
void api_jobs_hold(struct request *q);
void api_jobs_release(struct request *q);
void api_jobs_drill(struct request *q); /* api/drills.c */
void api_jobs_compared(struct request *q);
void api_drills_list(struct request *q);
void api_jobs_save(struct request *q);
void api_jobs_exec(struct request *q);
void api_channel_output(struct request *q);
void api_channel_input(struct request *q);
void api_channel_close(struct request *q);
void api_workdirs_put(struct request *q);
void api_workdirs_add(struct request *q);
void api_agent_workdir(struct request *q);
void api_agent_workdir_pieces(struct request *q);
void api_agent_channel_claim(struct request *q);
void api_agent_channel_output(struct request *q);
void api_agent_channel_input(struct request *q);
void api_nodes_list(struct request *q);
void api_shares_list(struct request *q);
void api_quotas_list(struct request *q);
void api_budgets_list(struct request *q);
void api_digest_show(struct request *q);
void api_digest_subscribe(struct request *q);
void api_digest_subscription(struct request *q);
void api_racks_list(struct request *q);
void api_reservations_list(struct request *q);
void api_reservations_add(struct request *q);
void api_reservations_remove(struct request *q);
void api_summary(struct request *q);
/* The sums over the cluster, as in the answer of /summary but without its pools. */
json_t *api_json_totals(const struct api *a, const struct model *m);
void api_stream(struct request *q); /* api/stream/stream.c */
void api_nodes_drain(struct request *q);
void api_nodes_undrain(struct request *q);
void api_nodes_delete(struct request *q);
void api_instances_list(struct request *q);
void api_pools_list(struct request *q);
void api_pools_apply(struct request *q);
void api_pools_detail(struct request *q);
void api_offers_list(struct request *q);
void api_offers_history(struct request *q);
void api_audit(struct request *q);
void api_cost(struct request *q);
void api_cost_jobs(struct request *q);
void api_report_send(struct request *q);
void api_use(struct request *q);
void api_events(struct request *q);
void api_tokens_create(struct request *q);
void api_tokens_list(struct request *q);
void api_tokens_revoke(struct request *q);
void api_login_device(struct request *q); /* api/login/login.c */
void api_login_token(struct request *q);
void api_login_refresh(struct request *q);
void api_logout(struct request *q);
void api_whoami(struct request *q);
void api_console(struct request *q);
void api_login_page(struct request *q); /* api/login/login_pages.c */
void api_login_callback(struct request *q);
void api_login_done(struct request *q);
void api_login_methods(struct request *q);
void api_login_session(struct request *q); /* api/login/session.c */
void api_login_link(struct request *q);    /* api/login/links.c */
void api_console_link(struct request *q);
/* Copies the cookie's value. False: there is none, or it does not fit. */
bool api_cookie(struct http_exchange *x, const char *name, char *out, size_t size);
/* Whether a page of this server made the request. */
bool api_is_own_origin(const struct request *q);
/* What X-CSRF-Token must be for the token in a cookie. */
void api_csrf(const struct api *a, const char *token, char out[SEAL_MAC_HEX + 1]);
/* Whether a request that has a cookie for its token may be made: it reads, or a page of this server
 * made it and knows the csrf of whoami. Browsers also keep the cookie back (SameSite). */
bool api_cookie_may(const struct request *q, const char *token, struct err *e);
/* The hash of a token, by which its row is found. */
void api_token_hash(const struct api *a, const char *token, char hash[65]);
/* The token in the cookie of a browser, if it is valid. */
bool api_cookie_token(struct request *q, struct token_row *ret);
/* Revokes that token for the caller, and answers q. */
void api_revoke_token(struct request *q, int64_t id);
/* The teams that the user is a member of: a list of names. */
json_t *api_json_teams(const struct api *a, const char *user);
void api_secrets_list(struct request *q); /* api/secrets.c */
void api_secrets_set(struct request *q);
void api_secrets_grant(struct request *q);
void api_secrets_remove(struct request *q);
void api_audit_log(struct request *q); /* api/audit/audit_log.c */
void api_audit_log_verify(struct request *q);
void api_log_level(struct request *q);
void api_reload(struct request *q);
void api_retention(struct request *q);      /* api/retention.c */
void api_account_quotas(struct request *q); /* api/quotas/account_quotas.c */
/* For account_quotas_options; ctx is the struct api. */
bool api_account_pool(void *ctx, size_t i, struct account_pool *ret_pool);
void api_version(struct request *q);
void api_openapi(struct request *q);
/* Returns the OpenAPI document: the embedded text with the options of jobs that are only stored.
 * The caller frees it. */
char *openapi_text(void);
void api_health(struct request *q);
void api_metrics(struct request *q);
void api_agent_bundle(struct request *q);
void api_agent_bundle_sha256(struct request *q);
void api_agent_join(struct request *q);
void api_agent_renew(struct request *q);
void api_agent_sync(struct request *q);
void api_agent_output(struct request *q);

/* The subject of a node's certificate, "node-17", and the reverse (0 if it is not one). */
int64_t api_node_of_cn(const char *cn);

/* The one-use token with which an instance joins: "i<id>.<hmac>", derived from the key
 * file of the database. */
void api_instance_token(const struct sealer *s, int64_t instance, char out[129]);

/* The token of an attempt, "j<job>.<attempt>.<hmac>", valid while the attempt runs. With it, a
 * program of the attempt can change the options of its own job that JOB_UPDATE_INSIDE allows and,
 * if the script runs on the first node only, start tasks on the other nodes; nothing else. */
void api_job_token(const struct sealer *s, int64_t job, int64_t attempt, char out[129]);
/* Whether the token of that attempt is still valid. j may be NULL. */
bool api_attempt_lives(const struct job *j, int64_t attempt);

#endif
