/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the API share; included by scheduler/api/ only.
 */
#ifndef BELAY_SCHEDULER_API_API_PRIVATE_H
#define BELAY_SCHEDULER_API_API_PRIVATE_H

#include "base/json.h"
#include "base/list.h"
#include "base/log_pace.h"
#include "base/map.h"
#include "base/wire/wire.h"
#include "scheduler/api/api.h"
#include "scheduler/api/jobspec.h"
#include "scheduler/notify/notify_seal.h"
#include "scheduler/token_uses.h"
#include "scheduler/api/turns.h"
#include "scheduler/volumes.h"

#define API_ASIDE_WAIT_MS 60000
#define API_WAIT_MAX_MS 25000
#define API_LIST_MAX 200         /* entries of a page */
#define API_COMMIT_WAIT_MS 60000 /* how long a write waits for its commit before 503 */

#define API_LISTENERS_MAX 2

/* A local user, as the system knew it when it was last asked. */
struct local_user {
    uid_t uid;
    struct mono until; /* then it is asked again; MONO_NONE: it never was */
    char name[CORE_NAME_MAX];
};

struct api {
    struct api_options o;
    char server_url[256];
    bool shutting_down;
    bool auditing; /* one at a time: it asks the providers */
    struct list laters;
    struct list cancels;   /* api/cancel.c: those under way */
    struct turns turns;    /* answers that look at the model */
    struct asides *asides; /* read_pool.c */
    struct volumes *volumes;
    struct token_uses *token_uses;
    struct log_quota *stored; /* what requests of users have stored */
    struct map watchers;      /* job (0: everything) -> struct watchers */
    struct list channels;     /* api/channels.c */
    int64_t n_channels;       /* ever */
    int64_t n_requests, n_refused;
    struct log_pace joins_refused, output_lost;
    const struct http_server *listeners[API_LISTENERS_MAX]; /* up to the first NULL; for metrics */
    char *openapi;                                          /* scheduler/api/openapi.c */
    struct local_user local; /* who asked last over the UNIX socket */
};

/* Who asks. */
struct caller {
    char user[CORE_NAME_MAX];
    bool admin;
    /* it is what runs in this attempt (api_job_token); 0: a person */
    int64_t job, attempt;
};

struct request {
    struct api *api;
    struct http_exchange *x;
    const struct http_server_request *r;
    struct caller caller;
    int64_t id, id2; /* the numbers in the path */
};

/* An exchange that is answered later. The peer or the server may go first; then later_take gives
 * NULL. */
struct later {
    struct api *api;
    struct http_exchange *x;
    struct link in_api;
};

struct later *later_create(struct api *a, struct http_exchange *x, int64_t max_ms);
struct http_exchange *later_take(struct later *l); /* frees l */

void api_reply_json(struct http_exchange *x, int status, json_t *v); /* takes v */
void api_reply_failure(struct http_exchange *x, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A tick_reply_fn whose ctx is a struct later: {"id": N} with 200, or the error. */
void api_on_done(void *ctx, const struct err *e, int64_t id);

/* Answers of which the caller may ask for many. The turn's `moment` is the struct tick, all of
 * whose model is committed then; NULL: there is no such moment soon, or belayd stops, where there
 * may be no tick any more and nobody waits. Never run from within. False after an error reply: so
 * many of the caller's wait already. */
bool api_take_turn(struct request *q, struct turn *turn);

/* For what looks at the model, which may be ahead of the disk: in its turn fn answers at a moment
 * when all that the model holds is committed. model NULL: there is no such moment soon (the disk is
 * full), only the database may be told. */
typedef void (*api_look_fn)(
    const struct api *a, struct http_exchange *x, const struct model *model, int64_t arg);
void api_look(struct request *q, api_look_fn fn, int64_t arg);

/* True if path is the route's, where '#' stands for a number from 1; at most two of them. */
bool api_match(const char *route, const char *path, int64_t ret_ids[2]);

/* The i-th route there is, from 0; false: there are fewer. For the test that holds openapi.json
 * against them. */
bool api_route(size_t i, const char **ret_method, const char **ret_path);

/* Query parameters: a missing one gives fallback; false and an error reply when it is malformed. */
bool api_query_i64(struct request *q, const char *name, int64_t min, int64_t max, int64_t fallback,
    int64_t *ret_value);
bool api_query_time(struct request *q, const char *name, struct wall *ret_wall);
/* state=all, or state=<some>, which is meant when it is missing. */
bool api_query_state(struct request *q, const char *some, bool *ret_all);

/* Whether a machine could join with this token now, without using it up. ERR_DENIED: no. */
int api_check_join_token(const struct api *a, const char *token, struct err *e);

/* The body as JSON, or NULL after an error reply. */
json_t *api_body(struct request *q, size_t max);

/* read_pool.c: answers x with what fn reads on a thread, where it has nothing but its reader, whose
 * statements all see one commit, and of. user: at most ASIDES_PER_USER_MAX of theirs wait, further
 * ones get 429. Empty for the audit. wait_ms: with the time that it waits for its turn; then 504
 * and ERR_TIMEOUT. ret_reply: a new reference. drop frees of, whatever comes of it, on the loop. */
typedef int (*api_aside_fn)(struct db_reader *r, void *of, json_t **ret_reply, struct err *e);
typedef void (*api_aside_drop_fn)(void *of);
void api_aside(const struct api *a, struct http_exchange *x, const char *user, int64_t wait_ms,
    api_aside_fn fn, void *of, api_aside_drop_fn drop);
struct asides *asides_create(uv_loop_t *loop, struct timers *timers, const char *path);
void asides_destroy(struct asides *in);

/* False after a 403, unless the caller is an administrator. */
bool api_need_admin(struct request *q);

/* api/json.c: rows as JSON, new references */
json_t *api_json_job(const struct job_row *j, const char *node_name);
json_t *api_json_drill(const struct drill_row *d);
json_t *api_json_array(const struct array_row *a);
json_t *api_json_dependency(const struct dependency_row *d);
/* live NULL: it was removed, or is not committed yet */
json_t *api_json_cron(const struct cron_row *r, const struct cron_entry *live);
json_t *api_json_cron_run(const struct cron_run_row *r);
json_t *api_json_leftover(const struct leftover_row *l);
json_t *api_json_attempt(const struct attempt_row *a);
json_t *api_json_event(const struct history_row *h);
json_t *api_json_checkpoint(const struct checkpoint_row *c);
json_t *api_json_ledger(const struct ledger_row *l);
/* live NULL: it is gone */
json_t *api_json_node(const struct node_row *n, const struct node *live, struct mono now);
json_t *api_json_instance(const struct instance_row *i);
json_t *api_json_pool(const struct pool_row *p);
/* live NULL: what is learned in memory and worked out from it is not known */
json_t *api_json_offer(const struct offer_row *o, const struct offer *live, struct stamp now);
json_t *api_json_token(const struct token_row *t, struct wall last_use);
int64_t api_count(const struct list *l);
json_t *api_json_opt(int64_t value, int64_t none);
json_t *api_json_time(struct wall w); /* null when it is not set */
/* The array with those first that have most under the key; takes the reference. */
json_t *api_most_first(json_t *items, const char *key);

/* A job with what the model alone knows of it. stored_pool: the pool of its newest attempt as
 * db_read_jobs gives it; NULL: it is read. */
json_t *api_live_job(const struct api *a, const struct job_row *row, const char *stored_pool);

/* watch.c: long polls */
enum watch_kind { WATCH_EVENTS, WATCH_LOGS };
/* Answers q now, or when there is something after `after`, or when wait_ms have passed. */
struct watch_of {
    enum watch_kind kind;
    int64_t job;
    int64_t after;         /* of events */
    struct logs_part part; /* of logs, */
    int64_t max;           /* bytes */
};
void api_watch(struct request *q, const struct watch_of *of, int64_t wait_ms);
void api_watch_destroy_all(struct api *a);
void api_watch_wake(struct api *a, int64_t job);
void api_watch_wake_all(struct api *a);

/* api/channels.c: sessions with running jobs */
/* a sessions_channels_fn of the struct api */
void api_channels_of_node(void *ctx, int64_t node, struct wire_desired *d);
void api_channels_shut_down(struct api *a);
void api_channels_destroy_all(struct api *a);

/* False after an error reply: there is no such job, it is somebody else's, or it has ended. what:
 * "cancel", for the error. */
bool api_may_change_job(struct request *q, const char *what);
/* the same, and its row */
bool api_may_change_row(struct request *q, const char *what, struct job_row *ret_row);

/* The script_key of the job that it describes; its user is set. */
void api_script_key(struct jobspec *s);

/* The working directory that it names was sent by its user, and stays. ERR_INVALID */
int api_hold_workdir(const struct api *a, const struct jobspec *s, struct err *e);

/* The job that the body describes, the caller's; the caller deinits it. False after an error
 * reply. */
bool api_read_submission(struct request *q, struct jobspec *ret_spec);
/* How the jobs ended that it depends on and that the model no longer knows. */
int api_look_up_ended(const struct api *a, struct jobspec *s, struct err *e);
struct event api_submit_event(const struct jobspec *s); /* borrows it */

/* The window that it names is configured. ERR_INVALID */
int api_check_window(const struct api *a, const struct job_row *r, struct err *e);
/* ERR_INVALID: its checkpoints would be restored as root, and nothing would tell who made them. */
int api_check_method(const struct api *a, const struct job_row *r, struct err *e);

/* the routes */
void api_crons_add(struct request *q);
void api_crons_list(struct request *q);
void api_crons_show(struct request *q);
void api_crons_edit(struct request *q);
void api_crons_pause(struct request *q);
void api_crons_resume(struct request *q);
void api_crons_remove(struct request *q);
void api_crons_run(struct request *q);
void api_crons_runs(struct request *q);
void api_jobs_submit(struct request *q);
void api_jobs_estimate(struct request *q); /* api/why.c */
void api_jobs_list(struct request *q);
void api_jobs_show(struct request *q);
void api_jobs_why(struct request *q);
void api_jobs_diagnose(struct request *q); /* api/diagnose.c */
void api_advice(struct request *q);        /* api/advice.c */
void api_forgotten(struct request *q);
void api_jobs_reclaim(struct request *q);
/* Why a job waits and what will hurt it, in short: {"reasons", "warnings"}, at a moment when all is
 * on disk. model: NULL if there was none. NULL: it cannot be read. The caller's. */
json_t *api_why_brief(const struct api *a, const struct model *model, int64_t id, struct err *e);
void api_jobs_events(struct request *q);
void api_jobs_logs(struct request *q);
void api_jobs_cancel(struct request *q);
void api_jobs_cancel_many(struct request *q); /* api/cancel.c */
void api_jobs_requeue(struct request *q);
void api_jobs_update(struct request *q); /* api/update.c */
void api_jobs_hold(struct request *q);
void api_jobs_release(struct request *q);
void api_jobs_drill(struct request *q);
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
void api_racks_list(struct request *q);
void api_summary(struct request *q);
void api_nodes_drain(struct request *q);
void api_nodes_undrain(struct request *q);
void api_nodes_delete(struct request *q);
void api_instances_list(struct request *q);
void api_pools_list(struct request *q);
void api_pools_apply(struct request *q);
void api_pools_detail(struct request *q);
void api_offers_list(struct request *q);
void api_audit(struct request *q);
void api_cost(struct request *q);
void api_cost_jobs(struct request *q);
void api_report_send(struct request *q);
void api_use(struct request *q);
void api_events(struct request *q);
void api_tokens_create(struct request *q);
void api_tokens_list(struct request *q);
void api_tokens_revoke(struct request *q);
void api_version(struct request *q);
void api_openapi(struct request *q);
/* The description of the API: what the build embedded, and the options of jobs that are stored
 * only. The caller frees. */
char *openapi_text(void);
void api_health(struct request *q);
void api_metrics(struct request *q);
void api_agent_bundle(struct request *q);
void api_agent_bundle_sha256(struct request *q);
void api_agent_join(struct request *q);
void api_agent_renew(struct request *q);
void api_agent_sync(struct request *q);
void api_agent_output(struct request *q);

/* The name under which a node's certificate is issued, "node-17", and back (0: it is not one). */
int64_t api_node_of_cn(const char *cn);

/* The one-use token with which an instance joins: "i<id>.<hmac>", derived from the cluster's
 * secret. */
void api_instance_token(const struct db_meta *meta, int64_t instance, char out[129]);

/* With which what runs in an attempt changes those options of its own job that JOB_UPDATE_INSIDE
 * allows and, where the script is on the first node only, starts tasks on the others. Nothing else:
 * "j<job>.<attempt>.<hmac>", good while it runs. */
void api_job_token(const struct db_meta *meta, int64_t job, int64_t attempt, char out[129]);
/* Whether that token is still good for anything. j may be NULL. */
bool api_attempt_lives(const struct job *j, int64_t attempt);

#endif
