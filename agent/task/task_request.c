/* SPDX-License-Identifier: Apache-2.0
 *
 * When a task is saved, and how the program is asked to: for a notice, a stop or a user,
 * periodically, and before its time limit.
 *
 * Invariant: the time of the next save is not stored. It is computed from the last save and the
 * clocks each time the timer is started, so it is the same after a restart of the agent.
 */
#include "agent/task/task_private.h"

#include "base/fs_user.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

#define STOP_SAVE_MS 120000   /* how long a program may take to answer a stop without a deadline */
#define ASK_RETRY_STOP_MS 100 /* before a stop, when no process handles the signal (yet) */
#define ASK_RETRY_MS 2000     /* the same for other requests */
#define CLOCK_CHECK_MS 60000  /* recheck before a time of day, because the wall clock may be set */
#define LIMIT_BEFORE_MS 60000 /* a save before the time limit, unless the job states a time */
#define LIMIT_SPARE_MS 10000  /* in addition to the time of two saves */
#define SIGNAL_DEFAULT 10     /* SIGUSR1 */

/* The reason that the program reads (control.h). */
static const char *const requests[] = {
    [SAVE_PERIODIC] = "periodic",
    [SAVE_DAILY] = "periodic",
    [SAVE_LIMIT] = "limit",
    [SAVE_USER] = "user",
    [SAVE_PROGRAM] = "",
    [SAVE_NOTICE] = "notice",
    [SAVE_REBALANCE] = "periodic",
    [SAVE_EVICT] = "evict",
    [SAVE_EXIT] = "",
};

/* ---- requests to the program ---- */

bool task_has_done(const struct task *t)
{
    char *path = mem_printf("%s/.done", t->ckpt.dir);
    bool there = fs_has_name(path);
    free(path);
    return there;
}

static void send_signal(struct task *t)
{
    const int32_t wish = t->spec->options.ckpt_signal;
    int signum = wish > 0 && wish < NSIG ? wish : SIGNAL_DEFAULT;
    if (task_by_signal(t) && t->supervision.is_up && !t->supervision.exited)
        supervisor_client_signal(&t->supervision.client, signum);
}

/* The time limit in force, in milliseconds; 0 = none. */
static int64_t limit_ms(const struct task *t)
{
    int64_t ms = t->state.limit_ms;
    return ms == 0 ? t->spec->options.time_limit_ms : ms == WIRE_NO_LIMIT ? 0 : ms;
}

/* When the program reaches its time limit, by the wall clock; INT64_MAX if never, or if it has not
 * started. */
static int64_t limit_at(const struct task *t)
{
    int64_t started = t->state.reported.started_at;
    return limit_ms(t) > 0 && started != WIRE_NONE ? started + limit_ms(t) : INT64_MAX;
}

static int64_t request_deadline(const struct task *t)
{
    if (t->ckpt.request.cause == SAVE_LIMIT)
        return limit_at(t);
    if (t->ckpt.request.cause == SAVE_NOTICE && wall_is_set(t->common->notice->deadline))
        return t->common->notice->deadline.ms;
    return t->ckpt.request.stop ? task_wall_ms(t) + STOP_SAVE_MS : CONTROL_NONE;
}

void task_write_request(struct task *t)
{
    struct err e;
    if (t->ckpt.control.fd < 0 || !t->ckpt.request.on || task_by_criu(t))
        return;
    if (control_request(&t->ckpt.control, task_wall_ms(t), requests[t->ckpt.request.cause],
            request_deadline(t), &e))
        log_error(
            "a program could not be asked for a checkpoint", log_i("job", t->job), log_err(&e));
    send_signal(t);
}

/* Sets a deadline for a stop that has none of its own (a notice's is set by task_notice). */
static void limit_wait(struct task *t)
{
    if (t->ckpt.request.stop && !mono_is_set(t->supervision.hard_at))
        timer_start(task_timers(t), &t->supervision.deadline, STOP_SAVE_MS);
}

void task_request_save(struct task *t, enum save_cause cause, enum wire_end end, const char *text)
{
    bool is_first_stop = end != WIRE_END_NONE && !t->ckpt.request.stop;
    /* an earlier request does not suffice: the save that answers it may already be under way */
    bool is_new_request = cause == SAVE_NOTICE || (cause == SAVE_USER && !t->ckpt.request.stop);
    if (!task_saves(t) || t->supervision.exited ||
        (t->ckpt.request.on && !is_first_stop && !is_new_request))
        return;
    if (cause == SAVE_NOTICE && t->work.kind == WORK_CLEAN)
        task_work_cancel(t); /* the store is needed for this save now */
    t->ckpt.request.on = true;
    t->ckpt.request.cause = cause;
    t->ckpt.request.serial++;
    if (is_first_stop) {
        t->ckpt.request.stop = true;
        t->ckpt.request.end = end;
        STR_COPY(t->ckpt.request.text, text);
    }
    task_write_request(t);
    limit_wait(t);
    if (task_by_criu(t))
        task_pump_saves(t);
}

/* n: how many saves users have requested so far. Each request is put to the program once; a
 * restarted agent repeats one that has no save yet. */
void task_request_user_save(struct task *t, int64_t n)
{
    if (n <= t->ckpt.request.user_requests || n <= t->state.saves_asked)
        return;
    t->ckpt.request.user_requests = n;
    task_request_save(t, SAVE_USER, WIRE_END_NONE, NULL);
}

/* Repeats a signal that no process handled: the program may not have installed its handler yet. */
void task_signalled(struct task *t, int count)
{
    if (count == 0 && t->ckpt.request.on)
        timer_start(task_timers(t), &t->ckpt.again,
            t->ckpt.request.stop ? ASK_RETRY_STOP_MS : ASK_RETRY_MS);
}

static void on_ask_retry(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    if (t->supervision.exited) {
        task_finish(t);
        return;
    }
    if (task_by_signal(t) && t->ckpt.request.on && !task_has_done(t))
        send_signal(t);
    task_pump_saves(t);
}

void task_request_over(struct task *t)
{
    t->ckpt.request.on = false;
    timer_stop(task_timers(t), &t->ckpt.again);
    if (t->ckpt.control.fd >= 0)
        control_request_done(&t->ckpt.control);
}

/* ---- periodic saves ---- */

bool task_is_gang(const struct task *t)
{
    return t->spec->n_peers > 0 && !t->spec->script_on_first;
}

/* Milliseconds to the next multiple of `every` on the wall clock, which is the same moment for all
 * ranks: a gang can only be saved as a whole. Skips one that follows a save by less than half of
 * `every`. */
static int64_t ms_to_gang_save(const struct task *t, int64_t every, int64_t since)
{
    int64_t now = task_wall_ms(t), left = every - now % every;
    return since != WIRE_NONE && now + left - since < every / 2 ? left + every : left;
}

/* The start of the current period, by the wall clock: the last save or the program's start.
 * WIRE_NONE = it has not started. */
static int64_t last_saved(const struct task *t)
{
    return t->state.last_saved_at != WIRE_NONE ? t->state.last_saved_at
                                               : t->state.reported.started_at;
}

static int64_t ms_to_periodic(const struct task *t)
{
    int64_t every = t->ckpt.every_ms > 0 ? t->ckpt.every_ms : t->spec->ckpt_every_ms,
            since = last_saved(t);
    if (every <= 0)
        return INT64_MAX;
    if (task_is_gang(t))
        return ms_to_gang_save(t, every, since);
    int64_t left = since == WIRE_NONE ? every : since + every - task_wall_ms(t);
    return left < 0 ? 0 : left > every ? every : left; /* the wall clock may have jumped */
}

/* Milliseconds to the first time of day after the last save; 0 if that was missed. */
static int64_t ms_to_daily(const struct task *t)
{
    int64_t now = task_wall_ms(t), since = last_saved(t);
    struct wall at =
        daily_next(&t->ckpt.daily, (struct wall){since == WIRE_NONE || since > now ? now : since});
    if (!wall_is_set(at))
        return INT64_MAX;
    return at.ms <= now ? 0 : at.ms - now;
}

/* Milliseconds to the save that keeps the work done before the time limit: when the job wants its
 * signal, or early enough for two saves if that is earlier, but not in the first half of the limit.
 * A save after that moment counts as this one, so no state is stored. */
static int64_t ms_to_limit(const struct task *t)
{
    int64_t limit = limit_ms(t), at = limit_at(t), now = task_wall_ms(t);
    if (at == INT64_MAX)
        return INT64_MAX;
    int64_t took = t->ckpt.save_took_ms >= 0 ? t->ckpt.save_took_ms : t->spec->save_ms;
    int64_t before = t->spec->grace_signal > 0 ? t->spec->grace_ms : LIMIT_BEFORE_MS;
    if (before < 2 * took + LIMIT_SPARE_MS)
        before = 2 * took + LIMIT_SPARE_MS;
    at -= before < limit / 2 ? before : limit / 2;
    if (t->state.last_saved_at != WIRE_NONE && t->state.last_saved_at >= at)
        return INT64_MAX;
    return at <= now ? 0 : at - now;
}

void task_restart_periodic(struct task *t)
{
    int64_t left = ms_to_periodic(t), daily = ms_to_daily(t), limit = ms_to_limit(t);
    if (!task_saves(t) || t->supervision.exited)
        return;
    t->ckpt.due = SAVE_PERIODIC;
    if (daily < left) {
        t->ckpt.due = SAVE_DAILY;
        left = daily;
    }
    if (limit < left) {
        t->ckpt.due = SAVE_LIMIT;
        left = limit;
    }
    if (left == INT64_MAX)
        return;
    timer_start(task_timers(t), &t->ckpt.periodic,
        t->ckpt.due != SAVE_PERIODIC && left > CLOCK_CHECK_MS ? CLOCK_CHECK_MS : left);
}

/* A new interval does not shorten the pause after a failed save. */
void task_set_every(struct task *t, int64_t ms)
{
    if (ms == 0 || ms == t->ckpt.every_ms)
        return;
    t->ckpt.every_ms = ms;
    if (t->ckpt.control_watch && !t->ckpt.save_failed)
        task_restart_periodic(t);
}

void task_send_limit(struct task *t)
{
    if (t->state.limit_ms != 0)
        supervisor_client_limit(&t->supervision.client, limit_ms(t));
}

void task_set_limit(struct task *t, int64_t ms)
{
    if (ms == 0 || t->supervision.exited || (ms == WIRE_NO_LIMIT ? 0 : ms) == limit_ms(t))
        return;
    t->state.limit_ms = ms;
    if (t->state.prepared) /* otherwise it is written when prepared */
        task_persist(t);
    if (t->supervision.is_up)
        task_send_limit(t);
    if (t->ckpt.control_watch && !t->ckpt.save_failed)
        task_restart_periodic(t);
}

static void on_periodic(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    bool is_early = (t->ckpt.due == SAVE_DAILY && ms_to_daily(t) > 0) ||
                    (t->ckpt.due == SAVE_LIMIT && ms_to_limit(t) > 0);
    if (is_early)
        task_restart_periodic(t);
    else
        task_request_save(t, t->ckpt.due, WIRE_END_NONE, NULL);
}

/* belayd has checked the text; a newer belayd may know a form that is unknown here. */
void task_read_daily(struct task *t)
{
    struct err e;
    if (daily_parse(t->spec->options.ckpt_at, &t->ckpt.daily, &e) != 0)
        task_log(t, "a task's daily save times cannot be read and are ignored", &e);
}

void task_saves_init(struct task *t)
{
    timer_init(&t->ckpt.periodic, on_periodic, t);
    timer_init(&t->ckpt.again, on_ask_retry, t);
}
