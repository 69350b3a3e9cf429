/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's checkpoints: asking the program for one, taking what it commits, storing it.
 *
 * Asking and storing are independent: a notice is put to the program at once even while an earlier save is
 * being stored, and that earlier save does not serve it. What the program has committed is found by looking
 * (commit files, .done), never remembered, so nothing is missed over a restart of the agent.
 */
#include "agent/task_private.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOP_SAVE_MS 120000   /* how long a program may take to answer a stop without a deadline */
#define ASK_AGAIN_STOP_MS 100 /* nobody handles the signal (yet) */
#define ASK_AGAIN_MS 2000
#define RETRY_MS 1000 /* a failed save of .done or of an exit */
#define PERIODIC_RETRY_MS 10000
#define FINAL_TRIES_MAX 60
#define LEAVE_MS 2000 /* for a program that commits to end by itself when it is told that it stops */
#define WATCH_POLL_MS 1000
#define WATCH_SOON_MS 2
#define SIGNAL_DEFAULT 10 /* SIGUSR1 */

static const struct {
    const char *told;    /* to belayd */
    const char *request; /* to the program */
} causes[] = {
    [SAVE_PERIODIC] = {"periodic", "periodic"},
    [SAVE_PROGRAM] = {"program", ""},
    [SAVE_NOTICE] = {"notice", "notice"},
    [SAVE_REBALANCE] = {"rebalance", "periodic"},
    [SAVE_EVICT] = {"drain", "evict"},
    [SAVE_EXIT] = {"program", ""},
};

static bool by_signal(const struct task *t)
{
    return str_eq(t->spec->method, "signal");
}

bool task_saves(const struct task *t)
{
    return by_signal(t) || str_eq(t->spec->method, "coop");
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
    char *path = mem_printf("%s/.done", t->checkpoint_dir);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static void send_signal(struct task *t)
{
    int signum = t->spec->ckpt_signal > 0 ? (int)t->spec->ckpt_signal : SIGNAL_DEFAULT;
    if (by_signal(t) && t->is_up && !t->exited)
        keeper_signal(&t->keeper, signum);
}

static int64_t ask_deadline(const struct task *t)
{
    if (t->ask.cause == SAVE_NOTICE && wall_is_set(t->room->notice->deadline))
        return t->room->notice->deadline.ms;
    return t->ask.stop ? wall_ms(t) + STOP_SAVE_MS : CONTROL_NONE;
}

static void put_request(struct task *t)
{
    struct err e;
    if (t->control_fd < 0 || !t->ask.on)
        return;
    if (control_request(t->control_fd, wall_ms(t), causes[t->ask.cause].request, ask_deadline(t), &e))
        log_error("a program could not be asked for a checkpoint", log_i("job", t->job), log_err(&e));
    send_signal(t);
}

/* A stop without a provider's deadline has one of ours; a notice's are set by task_notice. */
static void limit_wait(struct task *t)
{
    if (t->ask.stop && !mono_is_set(t->hard_at))
        timer_start(timers_of(t), &t->deadline, STOP_SAVE_MS);
}

void task_ask_save(struct task *t, enum save_cause cause, const char *end, const char *text)
{
    bool wanted_more = end && !t->ask.stop;
    if (!task_saves(t) || t->exited || (t->ask.on && !wanted_more && cause != SAVE_NOTICE))
        return;
    if (cause == SAVE_NOTICE && t->work.kind == WORK_CLEAN)
        task_work_cancel(t); /* the store is needed for this save now */
    t->ask.on = true;
    t->ask.cause = cause;
    t->ask.serial++;
    if (wanted_more) {
        t->ask.stop = true;
        STR_COPY(t->ask.end, end);
        STR_COPY(t->ask.text, text);
    }
    put_request(t);
    limit_wait(t);
}

/* The program may not have come to install its handler. */
void task_signalled(struct task *t, int count)
{
    if (count == 0 && t->ask.on)
        timer_start(timers_of(t), &t->again, t->ask.stop ? ASK_AGAIN_STOP_MS : ASK_AGAIN_MS);
}

static void on_again(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    if (t->exited) {
        task_finish(t);
        return;
    }
    if (t->ask.on && !has_done(t))
        send_signal(t);
    task_pump_saves(t);
}

static void ask_over(struct task *t)
{
    t->ask.on = false;
    timer_stop(timers_of(t), &t->again);
    if (t->control_fd >= 0)
        control_request_done(t->control_fd);
}

/* ---- from time to time ---- */

static void restart_periodic(struct task *t)
{
    int64_t every = t->every_ms > 0 ? t->every_ms : t->spec->ckpt_every_ms, since = t->state.last_saved_at;
    if (every <= 0 || !task_saves(t) || t->exited)
        return;
    if (since == WIRE_NONE)
        since = t->state.told.started_at;
    int64_t left = since == WIRE_NONE ? every : since + every - wall_ms(t);
    left = left < 0 ? 0 : left > every ? every : left; /* the wall clock may have jumped */
    timer_start(timers_of(t), &t->periodic, left);
}

/* The pause after a failed save stands. */
void task_set_every(struct task *t, int64_t ms)
{
    if (ms == 0 || ms == t->every_ms)
        return;
    t->every_ms = ms;
    if (t->control_watch && !t->save_failed)
        restart_periodic(t);
}

static void on_periodic(struct timer *timer, void *ctx)
{
    (void)timer;
    task_ask_save(ctx, SAVE_PERIODIC, NULL, NULL);
}

/* ---- storing ---- */

static void on_saved(struct task *t);

/* The first word is kept: whether an attempt goes on where it resumed shows in it, however late belayd hears of it. */
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

static void save_begin(struct task *t, int64_t commit, const struct control_numbers *n, enum save_cause cause)
{
    if (n->done != CONTROL_NONE)
        note_done(t, n->done);
    if (n->total != CONTROL_NONE)
        t->state.told.total = n->total;
    t->save = (struct task_save){
        .commit = commit, .ask_serial = t->ask.serial, .cause = cause, .is_final = cause == SAVE_EXIT};
    t->state.sequence++;
    t->state.saving = true;
    task_persist(t);
    t->work.sequence = t->state.sequence;
    t->work.progress = n->done != CONTROL_NONE ? n->done : -1;
    if (t->phase == WIRE_RUNNING)
        task_move(t, WIRE_SAVING);
    task_work_start(t, WORK_SAVE, on_saved);
}

static void note_checkpoint(struct task *t, const struct wire_checkpoint *c)
{
    struct wire_attempt_status *told = &t->state.told;
    if (!told->checkpoints)
        told->checkpoints = mem_array(WIRE_CHECKPOINTS_MAX, sizeof(*told->checkpoints));
    if (told->n_checkpoints == WIRE_CHECKPOINTS_MAX)
        memmove(told->checkpoints, told->checkpoints + 1, --told->n_checkpoints * sizeof(*c));
    told->checkpoints[told->n_checkpoints++] = *c;
    t->state.last_saved_at = c->saved_at;
}

static void remove_done(const struct task *t)
{
    char *path = mem_printf("%s/.done", t->checkpoint_dir);
    unlink(path);
    free(path);
}

static void on_cleaned(struct task *t)
{
    if (t->work.rc && t->work.rc != ERR_CANCELLED)
        log_warn("old checkpoints could not be cleared away", log_i("job", t->job), log_err(&t->work.e));
    task_pump_saves(t);
    if (t->exited)
        task_finish(t);
}

static void answer(struct task *t, const struct err *failed, bool stop)
{
    const struct control_answer a = {
        .failed = failed, .attempt = t->attempt, .sequence = t->work.sequence, .stop = stop};
    if (t->save.commit)
        control_answer(t->control_fd, t->save.commit, &a);
    else if (!failed && !t->save.is_final)
        remove_done(t);
}

/* A stop that wanted this save: the task is told to end before the program is told that all is saved, so that
 * whatever it does then counts as stopped. */
static void save_good(struct task *t)
{
    const struct ckpt_stats *stats = &t->work.stats;
    t->save_took_ms = stats->took_ms;
    t->save_failed = false;
    bool serves = (t->ask.on && t->save.ask_serial == t->ask.serial) || t->save.is_final;
    bool stop = serves && t->ask.on && t->ask.stop;
    const struct wire_checkpoint c = {.sequence = t->work.sequence,
        .bytes = stats->bytes,
        .stored_bytes = stats->stored_bytes,
        .took_ms = stats->took_ms,
        .progress = t->work.progress < 0 ? WIRE_NONE : t->work.progress,
        .saved_at = wall_ms(t)};
    note_checkpoint(t, &c);
    STR_COPY(t->state.told.checkpoints[t->state.told.n_checkpoints - 1].cause,
        causes[serves && t->ask.on ? t->ask.cause : t->save.cause].told);
    task_persist(t);
    if (serves)
        ask_over(t);
    if (stop) {
        t->stop_saved = true;
        task_stop(t, t->ask.end, t->ask.text, t->save.commit ? LEAVE_MS : 0, t->spec->kill_wait_ms);
    }
    answer(t, NULL, stop);
    restart_periodic(t);
}

static void save_bad(struct task *t)
{
    log_warn("a save failed", log_i("job", t->job), log_i("attempt", t->attempt), log_err(&t->work.e));
    t->state.told.failed_saves++;
    t->save_failed = true;
    STR_COPY(t->state.told.save_error, t->work.e.text);
    task_persist(t);
    if (t->ask.on && !t->ask.stop) { /* or the program would try again at its every step */
        ask_over(t);
        timer_start(timers_of(t), &t->periodic, PERIODIC_RETRY_MS);
    }
    answer(t, &t->work.e, false);
    if (!t->save.commit)
        timer_start(timers_of(t), &t->again, RETRY_MS);
}

static void on_saved(struct task *t)
{
    t->state.saving = false;
    if (t->work.rc == 0)
        save_good(t);
    else if (t->work.rc != ERR_CANCELLED)
        save_bad(t);
    if (t->phase == WIRE_SAVING)
        task_move(t, WIRE_RUNNING);
    t->room->changed(t->room->ctx);
    if (t->work.fenced) {
        task_stop(t, "node-lost", t->work.e.text, 0, 0);
        t->ask.stop = false;
    }
    if (t->exited)
        task_finish(t);
    else if (t->work.rc == 0 && t->room->notice->kind == NOTICE_NONE && !*t->state.stop && !t->killing)
        task_work_start(t, WORK_CLEAN, on_cleaned);
    else
        task_pump_saves(t);
}

/* The numbers of the program's last word, for saves that come without any. */
static struct control_numbers last_progress(const struct task *t)
{
    return (struct control_numbers){t->state.told.done == WIRE_NONE ? CONTROL_NONE : t->state.told.done,
        t->state.told.total == WIRE_NONE ? CONTROL_NONE : t->state.told.total};
}

/* Takes the next commit, if there is one. A malformed one is answered and the next is looked at. */
static bool take_commit(struct task *t)
{
    int64_t k;
    while (t->control_fd >= 0 && control_next_commit(t->control_fd, &k)) {
        struct control_numbers n;
        struct err e;
        int rc = control_read_commit(t->control_fd, k, &n, &e);
        if (!rc && !task_saves(t))
            rc = err_set(&e, ERR_UNSUPPORTED,
                "the job was submitted with --checkpoint none: submit it with --checkpoint coop");
        if (!rc) {
            save_begin(t, k, &n, SAVE_PROGRAM);
            return true;
        }
        const struct control_answer a = {.failed = &e};
        control_answer(t->control_fd, k, &a);
    }
    return false;
}

void task_pump_saves(struct task *t)
{
    if (task_work_is_busy(&t->work) || t->killing || take_commit(t))
        return;
    if (by_signal(t) && !t->exited && !timer_is_running(&t->again) && has_done(t)) {
        struct control_numbers n = last_progress(t);
        save_begin(t, 0, &n, SAVE_PROGRAM);
    }
}

bool task_save_final(struct task *t)
{
    if (timer_is_running(&t->again))
        return true;
    if (t->final_tries++ >= FINAL_TRIES_MAX)
        return false;
    struct control_numbers n = last_progress(t);
    save_begin(t, 0, &n, SAVE_EXIT);
    return true;
}

/* ---- the program's files ---- */

static void read_progress(struct task *t)
{
    struct control_numbers n;
    struct err e;
    struct wire_attempt_status *told = &t->state.told;
    if (control_read_progress(t->control_fd, &n, &e) || n.done == CONTROL_NONE)
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
    task_pump_saves(t);
}

void task_saves_init(struct task *t)
{
    timer_init(&t->periodic, on_periodic, t);
    timer_init(&t->again, on_again, t);
}

void task_saves_begin(struct task *t)
{
    if (t->control_watch) { /* the supervisor's connection was lost and found again */
        put_request(t);
        return;
    }
    char *control = mem_printf("%s/control", t->dir);
    t->control_watch =
        watch_start(t->room->loop, timers_of(t), control, WATCH_SOON_MS, WATCH_POLL_MS, on_files_changed, t);
    if (by_signal(t))
        t->checkpoint_watch = watch_start(t->room->loop, timers_of(t), t->checkpoint_dir, WATCH_SOON_MS,
            WATCH_POLL_MS, on_files_changed, t);
    put_request(t); /* asked for before it ran */
    restart_periodic(t);
    on_files_changed(t);
    free(control);
}

void task_saves_end(struct task *t)
{
    if (t->control_watch)
        read_progress(t);
    watch_stop(t->control_watch);
    watch_stop(t->checkpoint_watch);
    t->control_watch = t->checkpoint_watch = NULL;
    timer_stop(timers_of(t), &t->periodic);
    timer_stop(timers_of(t), &t->again);
}
