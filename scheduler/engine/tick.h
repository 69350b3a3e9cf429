/* SPDX-License-Identifier: Apache-2.0
 *
 * The tick: callbacks make no decisions, they post to the inbox. Once per iteration of the loop
 *
 *     drain the inbox -> apply -> plan and apply the decisions -> ONE commit -> effects -> replies
 *
 * While a commit is in progress the model does not change and further posts are queued: the fsync
 * is the batching window. Nothing leaves before the commit that causes it has succeeded. Runs on
 * vtables only, in the daemon and in the simulator alike.
 *
 * A commit that fails for lack of space has rolled back: the batch is kept and retried (after 1 s,
 * doubling to 5 s). Until it succeeds, all posts are answered with ERR_NO_SPACE; then the leases of
 * all nodes are renewed. Leases are also renewed when a timer fires late: belayd was stopped and
 * has not read what agents sent. Any other failed commit is fatal.
 */
#ifndef BELAY_SCHEDULER_ENGINE_TICK_H
#define BELAY_SCHEDULER_ENGINE_TICK_H

#include "base/histogram.h"
#include "base/timers.h"
#include "db/db.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/plan.h"

struct tick;

/* Writes a batch to disk. start borrows b until tick_committed is called for it, later or inside
 * start. */
struct commit_port {
    void (*start)(struct commit_port *port, const struct db_batch *b);
};

struct tick_options {
    struct model *model;
    struct planner *planner;
    struct timers *timers;
    struct commit_port *commit;
    /* Runs after each successful commit, before the replies: wakes agent sync, provisioning,
     * watchers. */
    void (*effects)(void *ctx, const struct db_batch *committed);
    /* The outcome on disk is unknown; the process must end. */
    void (*fatal)(void *ctx, const struct err *e);
    void *ctx;
};

struct tick *tick_create(const struct tick_options *o);
/* Waiting replies get ERR_UNAVAILABLE, because their outcome is unknown. t may be NULL. */
void tick_destroy(struct tick *t);

/* e is NULL on success; then id is the result of the event. Runs after the commit, never inside
 * tick_post. */
typedef void (*tick_reply_fn)(void *ctx, const struct err *e, int64_t id);

/* Posts a fact. The event and the data that it points to are copied. reply may be NULL. */
void tick_post(struct tick *t, const struct event *ev, tick_reply_fn reply, void *ctx);

/* Work that runs during the drain: it may read the model, and change it only by tick_apply and
 * tick_put_token and the like. */
typedef int (*tick_work_fn)(void *ctx, struct tick *t, int64_t *ret_id, struct err *e);
void tick_post_work(struct tick *t, tick_work_fn work, tick_reply_fn reply, void *ctx);
int tick_apply(struct tick *t, struct event *ev, int64_t *ret_id, struct err *e); /* sets ev->now */
void tick_put_token(struct tick *t, const struct token_row *token);
/* Likewise a secret, whose last row in a tick counts; *row is emptied. */
void tick_put_secret(struct tick *t, struct secret_row *row);
/* The secrets put in this tick, which readers do not see yet. */
const struct secret_row *tick_secrets(const struct tick *t, size_t *ret_n);
/* Adds the loads to the commit of this tick; *b is emptied. */
struct loads_batch;
void tick_put_loads(struct tick *t, struct loads_batch *b);
/* The commit of this tick deletes what is old (db/prune.h). */
void tick_put_prune(struct tick *t, const struct prune *prune);
/* A call from outside that is to be in the audit log. Between tick_begin_call and tick_end_call all
 * posts are made for it; the first that is applied puts its row into the same commit, with the
 * result. row: all but seq, at, result and hash. may_record decides, by the result, whether the log
 * takes the row, and may add to its object. Counted: free with tick_call_release. */
struct tick_call {
    struct audit_row row;
    bool is_recorded;
    bool (*may_record)(void *ctx, struct audit_row *row);
    void *ctx;
    int refs;
};
void tick_begin_call(struct tick *t, struct tick_call *call);
void tick_end_call(struct tick *t);
void tick_call_release(struct tick_call *call);
/* Puts its row, with this result, unless it is recorded; for calls that posted nothing. */
void tick_record_call(struct tick *t, struct tick_call *call, const char *result);

/* The tokens put in this tick, which readers do not see yet. */
const struct token_row *tick_tokens(const struct tick *t, size_t *ret_n);

/* Runs fn(ctx, NULL, 0) at a moment when the whole model is on disk. Use it to read the model in
 * order to act outside. fn gets ERR_NO_SPACE or ERR_UNAVAILABLE if there will be no such moment
 * soon. */
void tick_when_durable(struct tick *t, tick_reply_fn fn, void *ctx);

/* Called by the commit port when the started commit has ended. */
void tick_committed(struct tick *t, int rc, const struct err *e);

/* True while the disk is full. */
bool tick_is_full(const struct tick *t);
struct stamp tick_now(const struct tick *t);
const struct model *tick_model(const struct tick *t);

/* Counters since the start, for /metrics. */
struct tick_stats {
    int64_t commits, events, inbox_max;
    struct histogram commit_seconds, tick_seconds; /* tick: without its commit */
};
void tick_get_stats(const struct tick *t, struct tick_stats *ret_stats);

#endif
