/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's checkpoints: asking the program for one, taking what it commits, storing it.
 *
 * Asking and storing are independent: a notice is put to the program at once even while an earlier
 * save is being stored, and that earlier save does not serve it. What the program has committed is
 * found by looking (commit files, .done), never remembered, so nothing is missed over a restart of
 * the agent.
 *
 * With CRIU nobody is asked: what is asked for is dumped (WORK_DUMP), and then stored like any
 * other directory. For a stop the processes stay stopped after the dump, which is stored until that
 * works or the time is over.
 */
#include "agent/task/task_private.h"

#include "base/fs.h"
#include "base/fs_user.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define STOP_SAVE_MS 120000   /* how long a program may take to answer a stop without a deadline */
#define ASK_AGAIN_STOP_MS 100 /* nobody handles the signal (yet) */
#define ASK_AGAIN_MS 2000
#define RETRY_MS 1000 /* a failed save of .done or of an exit */
#define PERIODIC_RETRY_MS 10000
#define CLOCK_LOOK_MS 60000   /* before a time of the day: the wall clock may be set */
#define LIMIT_BEFORE_MS 60000 /* without a wish of the job's */
#define LIMIT_SPARE_MS 10000
#define FINAL_TRIES_MAX 60
/* for a program that commits to end by itself when it is told that it stops */
#define LEAVE_MS 2000
#define WATCH_POLL_MS 1000
#define WATCH_SOON_MS 2
/* where nobody waits for it: of a job without checkpoints its progress is all there is */
#define WATCH_LATER_MS 100
/* at the control directory in one turn of the loop: a malformed commit costs one */
#define LOOKS_MAX 4
#define LOOKS_AT_END_MAX 32 /* when the program has ended */
#define SIGNAL_DEFAULT 10   /* SIGUSR1 */

static const struct {
    enum wire_cause told; /* to belayd */
    const char *request;  /* to the program */
} causes[] = {
    [SAVE_PERIODIC] = {WIRE_CAUSE_PERIODIC, "periodic"},
    [SAVE_DAILY] = {WIRE_CAUSE_DAILY, "periodic"},
    [SAVE_LIMIT] = {WIRE_CAUSE_LIMIT, "limit"},
    [SAVE_USER] = {WIRE_CAUSE_USER, "user"},
    [SAVE_PROGRAM] = {WIRE_CAUSE_PROGRAM, ""},
    [SAVE_NOTICE] = {WIRE_CAUSE_NOTICE, "notice"},
    [SAVE_REBALANCE] = {WIRE_CAUSE_REBALANCE, "periodic"},
    [SAVE_EVICT] = {WIRE_CAUSE_DRAIN, "evict"},
    [SAVE_EXIT] = {WIRE_CAUSE_PROGRAM, ""},
};

static bool by_signal(const struct task *t)
{
    return t->spec->method == WIRE_METHOD_SIGNAL;
}

bool task_saves(const struct task *t)
{
    switch (t->spec->method) {
    case WIRE_METHOD_SIGNAL:
    case WIRE_METHOD_COOP:
    case WIRE_METHOD_CRIU:
        return true;
    case WIRE_METHOD_UNSAID:
    case WIRE_METHOD_NONE:
    case WIRE_METHOD_UNKNOWN:
        break;
    }
    return false;
}

bool task_by_criu(const struct task *t)
{
    return t->spec->method == WIRE_METHOD_CRIU;
}

static struct timers *timers_of(const struct task *t)
{
    return t->room->timers;
}

static int64_t wall_ms(const struct task *t)
{
    return clock_wall(timers_of(t)->clock).ms;
}

/* ---- asking ---- */

static bool has_done(const struct task *t)
{
    char *path = mem_printf("%s/.done", t->ckpt.dir);
    bool there = fs_has_name(path);
    free(path);
    return there;
}

static void send_signal(struct task *t)
{
    int signum = t->spec->ckpt_signal > 0 ? (int)t->spec->ckpt_signal : SIGNAL_DEFAULT;
    if (by_signal(t) && t->supervision.is_up && !t->supervision.exited)
        supervisor_client_signal(&t->supervision.client, signum);
}

/* 0: none. */
static int64_t limit_ms(const struct task *t)
{
    int64_t ms = t->state.limit_ms;
    return ms == 0 ? t->spec->time_limit_ms : ms == WIRE_NO_LIMIT ? 0 : ms;
}

/* When it runs into its time limit, by the wall clock; INT64_MAX: never, or it has not started. */
static int64_t limit_at(const struct task *t)
{
    int64_t started = t->state.told.started_at;
    return limit_ms(t) > 0 && started != WIRE_NONE ? started + limit_ms(t) : INT64_MAX;
}

static int64_t ask_deadline(const struct task *t)
{
    if (t->ckpt.ask.cause == SAVE_LIMIT)
        return limit_at(t);
    if (t->ckpt.ask.cause == SAVE_NOTICE && wall_is_set(t->room->notice->deadline))
        return t->room->notice->deadline.ms;
    return t->ckpt.ask.stop ? wall_ms(t) + STOP_SAVE_MS : CONTROL_NONE;
}

static void put_request(struct task *t)
{
    struct err e;
    if (t->ckpt.control.fd < 0 || !t->ckpt.ask.on || task_by_criu(t))
        return;
    if (control_request(
            &t->ckpt.control, wall_ms(t), causes[t->ckpt.ask.cause].request, ask_deadline(t), &e))
        log_error(
            "a program could not be asked for a checkpoint", log_i("job", t->job), log_err(&e));
    send_signal(t);
}

/* A stop without a provider's deadline has one of ours; a notice's are set by task_notice. */
static void limit_wait(struct task *t)
{
    if (t->ckpt.ask.stop && !mono_is_set(t->supervision.hard_at))
        timer_start(timers_of(t), &t->supervision.deadline, STOP_SAVE_MS);
}

void task_ask_save(struct task *t, enum save_cause cause, enum wire_end end, const char *text)
{
    bool wanted_more = end != WIRE_END_NONE && !t->ckpt.ask.stop;
    /* the program may be saving already */
    bool anew = cause == SAVE_NOTICE || (cause == SAVE_USER && !t->ckpt.ask.stop);
    if (!task_saves(t) || t->supervision.exited || (t->ckpt.ask.on && !wanted_more && !anew))
        return;
    if (cause == SAVE_NOTICE && t->work.kind == WORK_CLEAN)
        task_work_cancel(t); /* the store is needed for this save now */
    t->ckpt.ask.on = true;
    t->ckpt.ask.cause = cause;
    t->ckpt.ask.serial++;
    if (wanted_more) {
        t->ckpt.ask.stop = true;
        t->ckpt.ask.end = end;
        STR_COPY(t->ckpt.ask.text, text);
    }
    put_request(t);
    limit_wait(t);
    if (task_by_criu(t))
        task_pump_saves(t);
}

/* Each is put to the program once. One that no save has answered when the agent ends is put again
 * by the next. */
void task_asked(struct task *t, int64_t n)
{
    if (n <= t->ckpt.ask.asked || n <= t->state.saves_asked)
        return;
    t->ckpt.ask.asked = n;
    task_ask_save(t, SAVE_USER, WIRE_END_NONE, NULL);
}

/* The program may not have come to install its handler. */
void task_signalled(struct task *t, int count)
{
    if (count == 0 && t->ckpt.ask.on)
        timer_start(
            timers_of(t), &t->ckpt.again, t->ckpt.ask.stop ? ASK_AGAIN_STOP_MS : ASK_AGAIN_MS);
}

static void on_again(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    if (t->supervision.exited) {
        task_finish(t);
        return;
    }
    if (by_signal(t) && t->ckpt.ask.on && !has_done(t))
        send_signal(t);
    task_pump_saves(t);
}

void task_ask_over(struct task *t)
{
    t->ckpt.ask.on = false;
    timer_stop(timers_of(t), &t->ckpt.again);
    if (t->ckpt.control.fd >= 0)
        control_request_done(&t->ckpt.control);
}

/* ---- from time to time ---- */

bool task_is_gang(const struct task *t)
{
    return t->spec->n_peers > 0 && !t->spec->script_on_first;
}

/* All ranks are asked at the same moments, by the wall clock: what one of them is asked for, all
 * have to do. */
static int64_t left_for_gang(const struct task *t, int64_t every, int64_t since)
{
    int64_t now = wall_ms(t), left = every - now % every;
    return since != WIRE_NONE && now + left - since < every / 2 ? left + every : left;
}

/* The moment from which on the next save is reckoned; WIRE_NONE: the program has not started. */
static int64_t last_saved(const struct task *t)
{
    return t->state.last_saved_at != WIRE_NONE ? t->state.last_saved_at : t->state.told.started_at;
}

static int64_t ms_to_periodic(const struct task *t)
{
    int64_t every = t->ckpt.every_ms > 0 ? t->ckpt.every_ms : t->spec->ckpt_every_ms,
            since = last_saved(t);
    if (every <= 0)
        return INT64_MAX;
    if (task_is_gang(t))
        return left_for_gang(t, every, since);
    int64_t left = since == WIRE_NONE ? every : since + every - wall_ms(t);
    return left < 0 ? 0 : left > every ? every : left; /* the wall clock may have jumped */
}

/* To the first time of the day after the last save: one that was missed is made up for. */
static int64_t ms_to_daily(const struct task *t)
{
    int64_t now = wall_ms(t), since = last_saved(t);
    struct wall at =
        daily_next(&t->ckpt.daily, (struct wall){since == WIRE_NONE || since > now ? now : since});
    if (!wall_is_set(at))
        return INT64_MAX;
    return at.ms <= now ? 0 : at.ms - now;
}

/* What it has done until its time limit is to be kept: a save is asked for when the job wants its
 * signal, or early enough for two saves if that is more, but not before half of its time. One that
 * was made since is it; so nothing has to be remembered. */
static int64_t ms_to_limit(const struct task *t)
{
    int64_t limit = limit_ms(t), at = limit_at(t), now = wall_ms(t);
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

static void restart_periodic(struct task *t)
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
    timer_start(timers_of(t), &t->ckpt.periodic,
        t->ckpt.due != SAVE_PERIODIC && left > CLOCK_LOOK_MS ? CLOCK_LOOK_MS : left);
}

/* The pause after a failed save stands. */
void task_set_every(struct task *t, int64_t ms)
{
    if (ms == 0 || ms == t->ckpt.every_ms)
        return;
    t->ckpt.every_ms = ms;
    if (t->ckpt.control_watch && !t->ckpt.save_failed)
        restart_periodic(t);
}

void task_tell_limit(struct task *t)
{
    if (t->state.limit_ms != 0)
        supervisor_client_limit(&t->supervision.client, limit_ms(t));
}

void task_set_limit(struct task *t, int64_t ms)
{
    if (ms == 0 || t->supervision.exited || (ms == WIRE_NO_LIMIT ? 0 : ms) == limit_ms(t))
        return;
    t->state.limit_ms = ms;
    if (t->state.prepared) /* else it is written with that */
        task_persist(t);
    if (t->supervision.is_up)
        task_tell_limit(t);
    if (t->ckpt.control_watch && !t->ckpt.save_failed)
        restart_periodic(t);
}

static void on_periodic(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    bool is_early = (t->ckpt.due == SAVE_DAILY && ms_to_daily(t) > 0) ||
                    (t->ckpt.due == SAVE_LIMIT && ms_to_limit(t) > 0);
    if (is_early)
        restart_periodic(t);
    else
        task_ask_save(t, t->ckpt.due, WIRE_END_NONE, NULL);
}

/* What belayd checked; one that is newer may know more. */
static void read_daily(struct task *t)
{
    struct err e;
    if (daily_parse(t->spec->ckpt_at, &t->ckpt.daily, &e) != 0)
        task_log(t, "times of the day at which a task is saved cannot be read: there are none", &e);
}

/* ---- storing ---- */

static void on_saved(struct task *t);

/* A gang's is counted when the ranks have met: a commit that is served again, by the agent after
 * this one, is the same save. */
static int64_t next_sequence(struct task *t)
{
    return task_is_gang(t) ? t->state.sequence + 1 : ++t->state.sequence;
}

/* Which one it was, as rank 0 counts; the one that is queued follows it. */
static void note_met(struct task *t)
{
    int64_t met = t->work.stats.sequence;
    if (met > 0)
        t->ckpt.save.sequence = t->work.sequence = met;
    else
        met = t->ckpt.save.sequence - 1;
    t->state.sequence = met;
    if (task_has_queued(&t->ckpt))
        t->ckpt.queued.sequence = ++t->state.sequence;
}

/* The first word is kept: whether an attempt goes on where it resumed shows in it, however late
 * belayd hears of it. */
static void note_done(struct task *t, int64_t done)
{
    struct wire_attempt_status *told = &t->state.told;
    bool is_first = told->first_done == WIRE_NONE;
    told->done = done;
    if (!is_first)
        return;
    told->first_done = done;
    task_persist(t);
}

static void note_numbers(struct task *t, const struct control_numbers *n)
{
    if (n->done != CONTROL_NONE)
        note_done(t, n->done);
    if (n->total != CONTROL_NONE)
        t->state.told.total = n->total;
}

static int64_t progress_of(const struct control_numbers *n)
{
    return n->done != CONTROL_NONE ? n->done : -1;
}

static void note_saving(struct task *t, const struct task_save *s)
{
    t->state.saving = true;
    t->state.saving_sequence = s->sequence;
    t->state.saving_commit = s->pause_ms == TASK_WAITS ? s->commit : 0;
}

void task_note_queued(struct task *t)
{
    if (!t->state.saving && task_has_queued(&t->ckpt))
        note_saving(t, &t->ckpt.queued);
}

static void store(struct task *t, const struct task_save *s)
{
    t->ckpt.save = *s;
    note_saving(t, s);
    task_persist(t);
    t->work.sequence = s->sequence;
    t->work.progress = s->progress;
    t->work.snapshot = s->snapshot;
    t->work.refused = s->refused.kind ? &t->ckpt.save.refused : NULL;
    task_work_start(t, WORK_SAVE, on_saved);
}

/* Of the directory itself: somebody waits for it. It is newer than what is queued. */
static void save_begin(struct task *t, int64_t commit, int64_t progress, enum save_cause cause)
{
    const struct task_save s = {.commit = commit,
        .ask_serial = t->ckpt.ask.serial,
        .cause = cause,
        .is_final = cause == SAVE_EXIT,
        .is_asked = t->ckpt.ask.on,
        .asked = t->ckpt.ask.asked,
        .sequence = next_sequence(t),
        .progress = progress,
        .pause_ms = TASK_WAITS};
    task_accept_drop(t);
    t->ckpt.must_wait = 0;
    t->ckpt.done_must_wait = false;
    if (t->phase == WIRE_RUNNING)
        task_move(t, WIRE_SAVING);
    store(t, &s);
}

void task_checkpointer_deinit(struct task_checkpointer *c)
{
    control_close(&c->control);
    ckpt_seen_destroy(c->seen);
    ckpt_snapshot_destroy(c->save.snapshot);
    ckpt_snapshot_destroy(c->taking.save.snapshot);
    ckpt_snapshot_destroy(c->queued.snapshot);
    free(c->dir);
}

bool task_saves_accepted(const struct task *t)
{
    return t->work.kind == WORK_SAVE && t->ckpt.save.pause_ms != TASK_WAITS;
}

bool task_save_queued(struct task *t)
{
    const struct task_save s = t->ckpt.queued;
    if (!task_has_queued(&t->ckpt))
        return false;
    t->ckpt.queued = (struct task_save){0};
    store(t, &s);
    return true;
}

static void note_checkpoint(struct task *t, const struct wire_checkpoint *c)
{
    struct wire_attempt_status *told = &t->state.told;
    if (!told->checkpoints)
        told->checkpoints = mem_array(WIRE_CHECKPOINTS_MAX, sizeof(*told->checkpoints));
    if (told->n_checkpoints == WIRE_CHECKPOINTS_MAX) { /* what it wrote counts with the next */
        told->checkpoints[1].stored_bytes += told->checkpoints[0].stored_bytes;
        memmove(told->checkpoints, told->checkpoints + 1, --told->n_checkpoints * sizeof(*c));
    }
    told->checkpoints[told->n_checkpoints++] = *c;
    t->state.last_saved_at = c->saved_at;
}

void task_done_taken(struct task *t)
{
    char *path = mem_printf("%s/.done", t->ckpt.dir);
    control_discard(&t->ckpt.control, AT_FDCWD, path);
    free(path);
}

static void on_cleaned(struct task *t)
{
    if (t->work.rc && t->work.rc != ERR_CANCELLED)
        log_warn(
            "old checkpoints could not be cleared away", log_i("job", t->job), log_err(&t->work.e));
    if (t->work.rc == 0 && t->state.told.kept_bytes != t->work.kept_bytes) {
        t->state.told.kept_bytes = t->work.kept_bytes;
        task_changed(t);
    }
    task_pump_saves(t);
    if (t->supervision.exited)
        task_finish(t);
}

static void answer(struct task *t, const struct task_save *s, const struct err *failed, bool stop)
{
    const struct control_answer a = {
        .failed = failed, .attempt = t->attempt, .sequence = s->sequence, .stop = stop};
    if (s->commit)
        control_answer(&t->ckpt.control, s->commit, &a);
    else if (!failed && !s->is_final && by_signal(t))
        task_done_taken(t);
}

/* What has come of the commits that were accepted before it, or with it. */
static void tell_accepted(struct task *t, const struct task_save *s, const struct err *failed)
{
    if (t->ckpt.control.fd >= 0)
        task_accept_tell(t, s->pause_ms == TASK_WAITS ? t->ckpt.accepted : s->commit, failed);
}

static void note_saved(struct task *t, enum save_cause cause)
{
    const struct ckpt_stats *stats = &t->work.stats;
    bool waited = t->ckpt.save.pause_ms == TASK_WAITS;
    int64_t dump_ms = task_by_criu(t) ? t->work.dump_ms : 0;
    const struct wire_checkpoint c = {.sequence = t->work.sequence,
        .bytes = stats->bytes,
        .stored_bytes = stats->stored_bytes,
        .took_ms = stats->took_ms + (waited ? dump_ms : t->ckpt.save.pause_ms),
        .pause_ms = task_by_criu(t) ? dump_ms
                    : waited        ? stats->took_ms
                                    : t->ckpt.save.pause_ms,
        .progress = t->work.progress < 0 ? WIRE_NONE : t->work.progress,
        .saved_at = waited ? wall_ms(t) : t->ckpt.save.of_ms};
    t->ckpt.save_took_ms = stats->took_ms + dump_ms;
    if (t->ckpt.save.asked > t->state.saves_asked)
        t->state.saves_asked = t->ckpt.save.asked;
    note_checkpoint(t, &c);
    if (t->state.told.kept_bytes > 0) /* until that is cleaned again */
        t->state.told.kept_bytes += stats->stored_bytes;
    t->state.told.checkpoints[t->state.told.n_checkpoints - 1].cause = causes[cause].told;
}

/* A stop that wanted this save: the task is told to end before the program is told that all is
 * saved, so that whatever it does then counts as stopped. */
static void save_good(struct task *t)
{
    bool waits = t->ckpt.save.pause_ms == TASK_WAITS;
    bool serves = waits && ((t->ckpt.ask.on && t->ckpt.save.ask_serial == t->ckpt.ask.serial) ||
                               t->ckpt.save.is_final);
    bool stop = serves && t->ckpt.ask.on && t->ckpt.ask.stop;
    t->ckpt.save_failed = false;
    note_saved(t, serves && t->ckpt.ask.on ? t->ckpt.ask.cause : t->ckpt.save.cause);
    tell_accepted(
        t, &t->ckpt.save, NULL); /* while it is on disk that the save's end is not known */
    task_persist(t);
    if (serves)
        task_ask_over(t);
    if (stop) {
        t->ckpt.stop_saved = true;
        /* What was dumped is not to go on here. */
        task_stop(t, t->ckpt.ask.end, t->ckpt.ask.text, t->ckpt.save.commit ? LEAVE_MS : 0,
            task_by_criu(t) ? 0 : t->spec->kill_wait_ms);
    }
    if (waits)
        answer(t, &t->ckpt.save, NULL, stop);
    restart_periodic(t);
}

/* A dump costs the program time even if it fails, and will most likely fail again. */
static int64_t failed_pause_ms(const struct task *t)
{
    int64_t every = t->ckpt.every_ms > 0 ? t->ckpt.every_ms : t->spec->ckpt_every_ms;
    return task_by_criu(t) && every > PERIODIC_RETRY_MS ? every : PERIODIC_RETRY_MS;
}

/* What stays the same of a failure that comes again: the words without a digit, for numbers of
 * checkpoints and names of chunks are others each time. Never 0. */
uint64_t task_cause(const char *text)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t n; *text; text += n) {
        n = strcspn(text, " ");
        size_t digit = strcspn(text, "0123456789");
        for (size_t i = 0; digit >= n && i < n; i++)
            hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
        n += text[n] == ' ';
    }
    return hash ? hash : 1;
}

/* A program that commits at its every step meets a store that refuses at its every step: it is told
 * once, until a save is good or fails for something else. */
static void note_failure(struct task *t, const struct task_save *s, const struct err *e)
{
    uint64_t cause = task_cause(e->text);
    /* Who asked waits for a word, also when the save was accepted and failed only later. */
    bool is_answer = (t->ckpt.ask.on && t->ckpt.ask.cause == SAVE_USER && !t->ckpt.ask.stop) ||
                     (s->asked > t->state.saves_asked && s->asked > t->ckpt.asked_failed);
    if (s->asked > t->ckpt.asked_failed)
        t->ckpt.asked_failed = s->asked;
    bool is_known = t->ckpt.save_failed && t->ckpt.failure_cause == cause && !is_answer;
    t->ckpt.save_failed = true;
    t->ckpt.failure_cause = cause;
    STR_SHORTEN(t->state.told.save_error, e->text);
    if (is_known) {
        log_debug(
            "a save failed again", log_i("job", t->job), log_i("attempt", t->attempt), log_err(e));
        return;
    }
    log_warn("a save failed", log_i("job", t->job), log_i("attempt", t->attempt), log_err(e));
    t->state.told.failed_saves++;
}

void task_save_failed(struct task *t, const struct task_save *s, const struct err *e)
{
    bool waits = s->pause_ms == TASK_WAITS, asked = t->ckpt.ask.on && !t->ckpt.ask.stop;
    note_failure(t, s, e);
    if (s->sequence) /* of one that was only to be taken the others are not known yet */
        tell_accepted(t, s, e);
    task_persist(t);
    if (waits && asked) /* or the program would try again at its every step */
        task_ask_over(t);
    if (waits ? asked : s->is_asked)
        timer_start(timers_of(t), &t->ckpt.periodic, failed_pause_ms(t));
    if (!waits)
        return;
    answer(t, s, e, false);
    if (!s->commit && (!task_by_criu(t) || t->ckpt.ask.on))
        timer_start(timers_of(t), &t->ckpt.again, RETRY_MS);
}

static void snapshot_over(struct task *t)
{
    if (!t->ckpt.in_place && ckpt_snapshot_was_disturbed(t->ckpt.save.snapshot)) {
        t->ckpt.in_place = true;
        log_warn("a program writes in place: from now on none of its files is held, and it waits "
                 "for its large saves",
            log_i("job", t->job), log_i("attempt", t->attempt));
    }
    ckpt_snapshot_destroy(t->ckpt.save.snapshot);
    t->ckpt.save.snapshot = t->work.snapshot = NULL;
}

/* Another has taken its place, or comes to; or the program was told of it before the other ranks
 * were. */
static bool is_told_already(const struct task *t)
{
    bool left_out = t->work.stats.left_out && t->ckpt.save.pause_ms != TASK_WAITS;
    if (left_out)
        log_info("a checkpoint was left out", log_i("job", t->job), log_i("attempt", t->attempt),
            log_err(&t->work.e));
    return t->work.rc == ERR_CANCELLED || left_out || t->ckpt.save.refused.kind;
}

static void on_saved(struct task *t)
{
    t->state.saving = false;
    if (t->ckpt.save.snapshot)
        snapshot_over(t);
    if (task_is_gang(t))
        note_met(t);
    task_note_queued(t);
    if (t->work.rc == 0)
        save_good(t);
    else if (is_told_already(t))
        task_persist(t);
    else
        task_save_failed(t, &t->ckpt.save, &t->work.e);
    if (t->phase == WIRE_SAVING)
        task_move(t, WIRE_RUNNING);
    task_changed(t);
    if (t->work.fenced) {
        task_stop(t, WIRE_END_NODE_LOST, t->work.e.text, 0, 0);
        t->ckpt.ask.stop = false;
    }
    if (t->supervision.exited)
        task_finish(t);
    else if (t->work.rc == 0 && t->spec->rank == 0 && t->room->notice->kind == NOTICE_NONE &&
             t->state.stop == WIRE_END_NONE && !t->supervision.killing)
        task_work_start(t, WORK_CLEAN, on_cleaned);
    else
        task_pump_saves(t);
}

/* The numbers of the program's last word, for saves that come without any. */
static struct control_numbers last_progress(const struct task *t)
{
    return (struct control_numbers){
        t->state.told.done == WIRE_NONE ? CONTROL_NONE : t->state.told.done,
        t->state.told.total == WIRE_NONE ? CONTROL_NONE : t->state.told.total};
}

/* It is stored before the task ends. */
static bool is_for_end(const struct task *t)
{
    return (t->ckpt.ask.on && t->ckpt.ask.stop) || t->state.stop != WIRE_END_NONE ||
           t->supervision.exited || mono_is_set(t->supervision.hard_at);
}

/* Whether it is answered when it is stored, and not before. step: as the commit itself has told
 * it. */
static bool has_to_wait(const struct task *t, int64_t step)
{
    return is_for_end(t) || (task_is_gang(t) && step == CONTROL_NONE);
}

/* Takes or stores what the program has committed, by one of the two ways, as soon as that may
 * be. */
static void serve(struct task *t, int64_t commit, int64_t progress, bool waits)
{
    bool is_behind = task_is_gang(t) && task_has_queued(&t->ckpt) && !is_for_end(t);
    if (!waits && task_accept_may_take(t))
        task_accept_take(t, commit, progress);
    else if (waits && task_work_is_busy(&t->work))
        task_accept_judge(t);
    else if (waits && !is_behind)
        save_begin(t, commit, progress, SAVE_PROGRAM);
}

/* The other ranks do not wait for what was committed here and cannot be read. */
static void refuse_commit(struct task *t, int64_t commit, const struct err *why)
{
    const struct control_answer a = {.failed = why};
    if (task_is_gang(t) && task_saves(t) && !task_by_criu(t))
        task_accept_refuse(t, &(struct task_save){.commit = commit, .progress = -1}, why);
    control_answer(&t->ckpt.control, commit, &a);
}

/* False: it is answered, or gone. */
static bool serve_or_refuse(struct task *t, int64_t k)
{
    struct control_numbers n;
    struct err e;
    int rc = control_read_commit(&t->ckpt.control, k, &n, &e);
    if (rc == ERR_NOT_FOUND) /* the program has taken it back */
        return false;
    if (!rc && (!task_saves(t) || task_by_criu(t)))
        rc = err_set(&e, ERR_UNSUPPORTED,
            "the job was submitted with --checkpoint %s: submit it with --checkpoint coop",
            task_by_criu(t) ? "criu" : "none");
    if (rc) {
        refuse_commit(t, k, &e);
        return false;
    }
    note_numbers(t, &n);
    serve(t, k, progress_of(&n), !n.may_go_on || k == t->ckpt.must_wait || has_to_wait(t, n.done));
    return true;
}

/* Serves the next commit, if there is one. A malformed one is answered and the next is looked at.
 * What is more than may be done at once has to wait: the program may make commits as fast as they
 * are answered, and names that cannot be removed. *ret_found: there was something to do. */
static bool serve_commit(struct task *t, bool *ret_found)
{
    int looks = t->supervision.exited ? LOOKS_AT_END_MAX : LOOKS_MAX;
    while (t->ckpt.control.fd >= 0 && !t->ckpt.taking.is_busy) {
        int64_t k;
        enum control_found found =
            looks-- > 0 ? control_next_commit(&t->ckpt.control, &k) : CONTROL_MORE;
        *ret_found |= found != CONTROL_NOTHING;
        if (found == CONTROL_COMMIT && serve_or_refuse(t, k))
            return true;
        if (found == CONTROL_MORE && (!t->supervision.exited || looks < 0)) {
            watch_again(t->ckpt.control_watch);
            return false;
        }
        if (found == CONTROL_NOTHING)
            return false;
    }
    return false;
}

/* ---- dumping ---- */

static void on_dumped(struct task *t)
{
    enum save_cause cause = t->ckpt.save.cause;
    int serial = t->ckpt.save.ask_serial;
    if (t->work.rc == 0) {
        struct control_numbers n = last_progress(t);
        t->ckpt.is_dumped = t->work.dumps_stopped;
        save_begin(t, 0, progress_of(&n), cause);
        t->ckpt.save.ask_serial = serial;
        return;
    }
    if (!t->supervision.exited)
        task_save_failed(t, &t->ckpt.save, &t->work.e);
    if (t->phase == WIRE_SAVING)
        task_move(t, WIRE_RUNNING);
    t->room->changed(t->room->ctx);
    if (t->supervision.exited) {
        task_finish(t);
    } else if (t->work.rc == ERR_TIMEOUT || t->work.rc == ERR_CORRUPT) { /* criu left it damaged */
        task_stop(t, t->ckpt.ask.stop ? t->ckpt.ask.end : WIRE_END_NODE_LOST, t->work.e.text, 0, 0);
        t->ckpt.ask.stop = false;
    }
}

/* A restore is no moment to dump: what is asked for meanwhile has its turn after it. */
static void pump_dumps(struct task *t)
{
    if (!t->ckpt.ask.on || t->supervision.exited || !t->ckpt.control_watch ||
        timer_is_running(&t->ckpt.again) || t->state.stop != WIRE_END_NONE)
        return;
    if (t->ckpt.is_dumped) {
        struct control_numbers n = last_progress(t);
        save_begin(t, 0, progress_of(&n), t->ckpt.ask.cause);
        return;
    }
    t->ckpt.save = (struct task_save){.ask_serial = t->ckpt.ask.serial,
        .cause = t->ckpt.ask.cause,
        .is_asked = true,
        .pause_ms = TASK_WAITS};
    t->work.dumps_stopped = t->ckpt.ask.stop;
    if (t->phase == WIRE_RUNNING)
        task_move(t, WIRE_SAVING);
    task_work_start(t, WORK_DUMP, on_dumped);
}

void task_leave_gang(struct task *t)
{
    t->ckpt.left_gang = task_is_gang(t);
    if (t->ckpt.left_gang)
        task_accept_drop(t);
    if (t->ckpt.left_gang && t->work.kind == WORK_SAVE)
        task_work_cancel(t);
}

/* Whether there was something to do. */
static bool serve_program(struct task *t)
{
    bool found = false;
    if (!serve_commit(t, &found) && by_signal(t) && !t->supervision.exited &&
        !t->ckpt.taking.is_busy && !timer_is_running(&t->ckpt.again) && has_done(t)) {
        struct control_numbers n = last_progress(t);
        serve(t, 0, progress_of(&n), t->ckpt.done_must_wait || has_to_wait(t, CONTROL_NONE));
        found = true;
    }
    return found;
}

/* is_look: it is counted by the watch already. What is none follows a commit that was served (or a
 * timer), and usually finds nothing: if it counted all the same, each commit would cost two. */
static void pump(struct task *t, bool is_look)
{
    if (t->supervision.killing || t->ckpt.left_gang)
        return;
    if (is_look || t->supervision.exited)
        serve_program(t);
    else if (watch_allows(t->ckpt.control_watch) && serve_program(t))
        watch_count(t->ckpt.control_watch);
    if (!task_work_is_busy(&t->work) && (!t->supervision.exited || task_accept_is_wanted(t)))
        task_save_queued(t);
    if (task_by_criu(t) && !task_work_is_busy(&t->work))
        pump_dumps(t);
}

void task_pump_saves(struct task *t)
{
    pump(t, false);
}

bool task_save_final(struct task *t)
{
    if (t->ckpt.left_gang)
        return false;
    if (timer_is_running(&t->ckpt.again))
        return true;
    int64_t now = clock_mono(timers_of(t)->clock).ms;
    if (!mono_is_set(t->ckpt.final_until))
        t->ckpt.final_until.ms = now + task_store_wait_ms(t);
    else if (now >= t->ckpt.final_until.ms)
        return false;
    if (t->ckpt.final_tries++ >= FINAL_TRIES_MAX)
        return false;
    struct control_numbers n = last_progress(t);
    save_begin(t, 0, progress_of(&n), SAVE_EXIT);
    return true;
}

/* ---- the program's files ---- */

static void read_progress(struct task *t)
{
    struct control_numbers n;
    struct err e;
    struct wire_attempt_status *told = &t->state.told;
    if (control_read_progress(&t->ckpt.control, &n, &e) || n.done == CONTROL_NONE)
        return;
    int64_t total = n.total == CONTROL_NONE ? WIRE_NONE : n.total;
    if (n.done == told->done && total == told->total)
        return;
    note_done(t, n.done);
    told->total = total;
    t->room->changed_later(t->room->ctx);
}

static void on_files_changed(void *ctx)
{
    struct task *t = ctx;
    read_progress(t);
    pump(t, true);
}

void task_saves_init(struct task *t)
{
    timer_init(&t->ckpt.periodic, on_periodic, t);
    timer_init(&t->ckpt.again, on_again, t);
}

void task_saves_begin(struct task *t)
{
    if (t->ckpt.control_watch) { /* the supervisor's connection was lost and found again */
        put_request(t);
        return;
    }
    char *control = mem_printf("%s/control", t->dir);
    t->ckpt.control_watch = watch_start(t->room->watches, control,
        task_saves(t) ? WATCH_SOON_MS : WATCH_LATER_MS, WATCH_POLL_MS, on_files_changed, t);
    if (by_signal(t))
        t->ckpt.checkpoint_watch = watch_start(
            t->room->watches, t->ckpt.dir, WATCH_SOON_MS, WATCH_POLL_MS, on_files_changed, t);
    read_daily(t);
    put_request(t); /* asked for before it ran */
    restart_periodic(t);
    free(control);
}

void task_saves_end(struct task *t)
{
    if (t->ckpt.control_watch)
        read_progress(t);
    watch_stop(t->ckpt.control_watch);
    watch_stop(t->ckpt.checkpoint_watch);
    t->ckpt.control_watch = t->ckpt.checkpoint_watch = NULL;
    timer_stop(timers_of(t), &t->ckpt.periodic);
    timer_stop(timers_of(t), &t->ckpt.again);
}
