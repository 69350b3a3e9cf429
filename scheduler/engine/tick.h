/* SPDX-License-Identifier: Apache-2.0
 *
 * The tick: callbacks decide nothing, they post to the inbox. Once per turn
 *
 *     drain the inbox -> apply -> plan and apply the decisions -> ONE commit -> effects -> replies
 *
 * While a commit is under way the model is not touched and the next posts gather: the fsync is the
 * batching window. Nothing leaves before the commit that causes it has succeeded. Runs on vtables
 * only, in the daemon and in the simulator alike.
 *
 * A commit that fails for lack of space has rolled back: the batch is kept and tried again (1 s,
 * doubling to 5 s), and until it succeeds everything posted is answered with ERR_NO_SPACE; then the
 * leases of all nodes begin anew. So they do when a timer fires late: belayd was stopped, and has
 * not read what agents sent. Any other failed commit is fatal.
 */
#ifndef BELAY_SCHEDULER_ENGINE_TICK_H
#define BELAY_SCHEDULER_ENGINE_TICK_H

#include "base/timers.h"
#include "db/db.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/plan.h"

struct tick;

/* How a batch gets to disk. start borrows b until tick_committed is called for it, later or inside
 * start. */
struct commit_port {
    void (*start)(struct commit_port *port, const struct db_batch *b);
};

struct tick_options {
    struct model *model;
    struct planner *planner;
    struct timers *timers;
    struct commit_port *commit;
    /* Runs after each successful commit, before the replies: wakes sessions, provisioning,
     * watchers. */
    void (*effects)(void *ctx, const struct db_batch *committed);
    /* The outcome on disk is unknown; the process must end. */
    void (*fatal)(void *ctx, const struct err *e);
    void *ctx;
};

struct tick *tick_create(const struct tick_options *o);
/* What waits for a reply gets ERR_UNAVAILABLE: its outcome is not known. NULL is fine */
void tick_destroy(struct tick *t);

/* e is NULL on success; then id is the outcome's. Runs after the commit, never inside tick_post. */
typedef void (*tick_reply_fn)(void *ctx, const struct err *e, int64_t id);

/* Posts a fact. The event and what it points to are copied. reply may be NULL. */
void tick_post(struct tick *t, const struct event *ev, tick_reply_fn reply, void *ctx);

/* Work for the drain: looks at the model and changes it by tick_apply and tick_put_token only. */
typedef int (*tick_work_fn)(void *ctx, struct tick *t, int64_t *ret_id, struct err *e);
void tick_post_work(struct tick *t, tick_work_fn work, tick_reply_fn reply, void *ctx);
int tick_apply(struct tick *t, struct event *ev, int64_t *ret_id, struct err *e); /* sets ev->now */
void tick_put_token(struct tick *t, const struct token_row *token);
/* Adds them to what this turn commits; *b is emptied. */
struct loads_batch;
void tick_put_loads(struct tick *t, struct loads_batch *b);
/* Tokens already put in this turn (not yet visible to readers). */
const struct token_row *tick_tokens(const struct tick *t, size_t *ret_n);

/* Runs fn(ctx, NULL, 0) at a moment when all that the model holds is on disk: what looks at the
 * model to act on it outside goes through here. With ERR_NO_SPACE or ERR_UNAVAILABLE there is no
 * such moment soon. */
void tick_when_durable(struct tick *t, tick_reply_fn fn, void *ctx);

/* The commit that was started has ended. */
void tick_committed(struct tick *t, int rc, const struct err *e);

/* True while the disk is full. */
bool tick_is_full(const struct tick *t);
struct stamp tick_now(const struct tick *t);
const struct model *tick_model(const struct tick *t);

/* What happened so far, for /metrics. */
struct tick_stats {
    int64_t commits, events, commit_ms_sum, commit_ms_max, inbox_max;
};
void tick_get_stats(const struct tick *t, struct tick_stats *ret_stats);

#endif
