/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an attempt on this node. Its checkpoints are in task_save.c, what blocks in task_work.c.
 *
 * Invariants.
 *  1. How it is to end (state.stop) is on disk before the program is told, so that an agent that comes back
 * tells the same end.
 *  2. It is ENDED only when nothing of it runs (exit.json), no work is under way, and what the program had
 * committed is stored or cannot be.
 *  3. Its directory goes only when belayd does not want it any more.
 */
#include "agent/task_private.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREPARE_MS 300000 /* how long a store that cannot be reached is tried */
#define RETRY_BASE_MS 1000
#define RETRY_CAP_MS 30000
#define REMOVE_RETRY_MS 30000
#define IDLE_RETRY_MS 20
#define SAVING_STOP_MS 5000
/* A reclaim: the program is told to end a quarter of the notice (at most its kill_wait) before everything
 * must be over, which is a tenth of the notice (at most 2 s) before the node goes: for telling belayd and
 * shipping output. */
#define LAST_WORDS_MAX_MS 2000

static const char *const phase_names[] = {
    "starting", "restoring", "running", "saving", "ending", "ended", NULL};
static const struct sm_transition transitions[] = {
    {WIRE_STARTING, WIRE_RESTORING},
    {WIRE_STARTING, WIRE_RUNNING},
    {WIRE_STARTING, WIRE_ENDED},
    {WIRE_RESTORING, WIRE_RUNNING},
    {WIRE_RESTORING, WIRE_ENDED},
    {WIRE_RUNNING, WIRE_SAVING},
    {WIRE_RUNNING, WIRE_ENDING},
    {WIRE_RUNNING, WIRE_ENDED},
    {WIRE_SAVING, WIRE_RUNNING},
    {WIRE_SAVING, WIRE_ENDING},
    {WIRE_SAVING, WIRE_ENDED},
    {WIRE_ENDING, WIRE_ENDED},
};
const struct sm task_sm = {"task", phase_names, transitions, sizeof(transitions) / sizeof(*transitions)};

static void prepare(struct task *t);

void task_move(struct task *t, enum wire_phase to)
{
    if (t->phase != (int)to)
        sm_move(&task_sm, t->job, &t->phase, to);
}

static void changed(struct task *t)
{
    t->room->changed(t->room->ctx);
}

static void log_problem(const struct task *t, const char *what, const struct err *e)
{
    log_error(what, log_i("job", t->job), log_i("attempt", t->attempt), log_err(e));
}

void task_persist(struct task *t)
{
    struct err e;
    if (t->state_path && record_write_state(t->state_path, &t->state, &e))
        log_problem(t, "a task's state could not be written", &e);
}

/* ---- ending ---- */

static void remove_dir(struct task *t);
static void gone_if_idle(struct task *t);

void task_end(struct task *t, const char *end, int64_t code, const char *text)
{
    struct wire_attempt_status *told = &t->state.told;
    STR_COPY(told->end, end);
    STR_COPY(told->text, text);
    told->exit_code = code;
    t->exited = true;
    timer_stop(t->room->timers, &t->deadline);
    timer_stop(t->room->timers, &t->retry);
    task_saves_end(t);
    keeper_stop(&t->keeper);
    task_move(t, WIRE_ENDED);
    log_info("attempt ended", log_i("job", t->job), log_i("attempt", t->attempt), log_s("end", end),
        log_i("exit_code", code), log_s("text", text));
    if (t->killing) {
        remove_dir(t);
        return;
    }
    task_persist(t);
    ship_kick(&t->ship);
    changed(t);
}

/* Killed from outside after it was told to stop, or as the machine goes down: the stop took effect. */
static bool stop_took_effect(const struct task *t)
{
    return t->exit.cause == EXIT_STOPPED || (t->exit.signal != 0 && t->exit.cause == EXIT_BY_ITSELF);
}

static void end_as_found(struct task *t)
{
    const struct task_exit *x = &t->exit;
    const char *stop = *t->state.stop ? t->state.stop : t->ask.stop ? t->ask.end : "";
    const char *stop_text = *t->state.stop ? t->state.stop_text : t->ask.text;
    char words[64];
    snprintf(words, sizeof(words), "exit code %lld", (long long)x->code);
    if (x->cause == EXIT_LOST || x->cause == EXIT_SHUTDOWN)
        task_end(t, "node-lost", x->code, x->text);
    else if (x->cause == EXIT_NO_EXEC)
        task_end(t, "failed", x->code, x->text);
    else if (x->cause == EXIT_TIMEOUT)
        task_end(t, "timeout", x->code, x->text);
    else if (*stop && (stop_took_effect(t) || x->code == EXIT_CHECKPOINTED))
        task_end(t, stop, x->code, stop_text);
    else if (x->code == 0)
        task_end(t, "succeeded", 0, "");
    else if (x->code == EXIT_CHECKPOINTED && task_saves(t))
        task_end(t, "checkpointed", x->code, words);
    else
        task_end(t, "failed", x->code, *x->text ? x->text : words);
}

/* Exit code 85 says that the checkpoint directory is complete. After a save that the stop was waiting for
 * there is nothing newer in it. */
static bool wants_final_save(const struct task *t)
{
    bool by_itself = t->exit.cause == EXIT_BY_ITSELF;
    bool for_stop = t->exit.cause == EXIT_STOPPED && t->ask.stop && !t->stop_saved;
    return t->exit.code == EXIT_CHECKPOINTED && task_saves(t) && !t->save.is_final && (by_itself || for_stop);
}

static bool is_over(const struct task *t)
{
    return mono_is_set(t->hard_at) && clock_mono(t->room->timers->clock).ms >= t->hard_at.ms;
}

static void end_unsaved(struct task *t)
{
    struct err e = t->work.e;
    err_wrap(&e, "exit code 85, but its checkpoint could not be stored");
    task_end(t, t->ask.stop ? t->ask.end : "node-lost", t->exit.code, e.text);
}

void task_finish(struct task *t)
{
    bool tried = t->save.is_final;
    if (task_work_is_busy(&t->work)) {
        if (t->exit.code == 0 || t->killing)
            atomic_store(&t->work.cancel, 1); /* of no more use */
        return;
    }
    if (!t->killing && t->exit.code != 0 && !is_over(t)) {
        task_pump_saves(t); /* what it had committed before */
        if (task_work_is_busy(&t->work))
            return;
        if (tried && t->work.rc != 0 && !t->work.fenced) {
            if (task_save_final(t))
                return;
            end_unsaved(t);
            return;
        }
        if (wants_final_save(t) && task_save_final(t))
            return;
    }
    end_as_found(t);
}

static void note_start(struct task *t)
{
    struct task_start start;
    struct err e;
    char *path = mem_printf("%s/start.json", t->dir);
    if (record_read_start(path, &start, &e) == 0)
        t->state.told.started_at = start.started_at;
    free(path);
}

static void on_ended(void *ctx, const struct err *e)
{
    struct task *t = ctx;
    char *path = mem_printf("%s/exit.json", t->dir);
    struct err why;
    int rc = e ? e->kind : record_read_exit(path, &t->exit, &why);
    free(path);
    t->is_up = false;
    t->exited = true;
    note_start(t);
    task_saves_end(t);
    if (rc) {
        log_problem(t, "how a task ended is not known", e ? e : &why);
        t->exit = (struct task_exit){.cause = EXIT_LOST, .code = 137};
        STR_COPY(t->exit.text, e ? e->text : why.text);
    }
    task_finish(t);
}

static void hasten_prepare(struct task *t)
{
    atomic_store(&t->work.cancel, 1);
    if (timer_is_running(&t->retry))
        timer_start(t->room->timers, &t->retry, 0);
}

void task_stop(struct task *t, const char *end, const char *text, int64_t delay_ms, int64_t grace_ms)
{
    if (!*t->state.stop) {
        STR_COPY(t->state.stop, end);
        STR_COPY(t->state.stop_text, text);
        task_persist(t);
        log_info("stopping", log_i("job", t->job), log_i("attempt", t->attempt), log_s("end", end));
    }
    if (t->phase == WIRE_RUNNING || t->phase == WIRE_SAVING)
        task_move(t, WIRE_ENDING);
    else if (t->phase != WIRE_ENDING)
        hasten_prepare(t); /* there is nothing to save yet */
    keeper_terminate(&t->keeper, delay_ms, grace_ms);
    changed(t);
}

/* ---- running ---- */

static void on_up(void *ctx)
{
    struct task *t = ctx;
    t->is_up = true;
    note_start(t);
    if (t->phase == WIRE_STARTING || t->phase == WIRE_RESTORING)
        task_move(t, WIRE_RUNNING);
    task_saves_begin(t);
    if (t->killing)
        keeper_kill(&t->keeper);
    else if (*t->state.stop)
        task_stop(t, t->state.stop, t->state.stop_text, 0, t->spec->kill_wait_ms);
    changed(t);
}

static void on_signalled(void *ctx, int count)
{
    task_signalled(ctx, count);
}

static void open_control(struct task *t)
{
    char *path = mem_printf("%s/control", t->dir);
    if (t->control_fd < 0)
        t->control_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    free(path);
}

static void put_notice(struct task *t)
{
    const struct notice *n = t->room->notice;
    struct err e;
    if (n->kind == NOTICE_NONE || t->control_fd < 0)
        return;
    if (control_notice(t->control_fd, notice_kind_name(n->kind),
            wall_is_set(n->deadline) ? n->deadline.ms : CONTROL_NONE, clock_wall(t->room->timers->clock).ms,
            &e))
        log_problem(t, "a program could not be told of the notice", &e);
}

static void start_keeper(struct task *t)
{
    const struct task_room *r = t->room;
    open_control(t);
    put_notice(t);
    t->keeper = (struct keeper){.loop = r->loop,
        .timers = r->timers,
        .dir = t->dir,
        .node = r->peer->id->node.name,
        .up = on_up,
        .signalled = on_signalled,
        .ended = on_ended,
        .ctx = t};
    keeper_start(&t->keeper);
}

static void start_ship(struct task *t, bool is_new);

/* ---- preparing ---- */

static void prepare_failed(struct task *t)
{
    const struct err *e = &t->work.e;
    if (t->killing || *t->state.stop) {
        task_end(t, t->state.stop, 0, t->state.stop_text);
    } else if (t->work.rc == ERR_CONFIG) {
        task_end(t, "failed", 126, e->text);
    } else if (t->work.fenced || clock_mono(t->room->timers->clock).ms >= t->prepare_until.ms) {
        task_end(t, "node-lost", 0, e->text);
    } else {
        log_problem(t, "an attempt could not be prepared, trying again", e);
        timer_start(t->room->timers, &t->retry,
            prng_backoff_ms(t->room->prng, t->tries++, RETRY_BASE_MS, RETRY_CAP_MS));
    }
}

static void note_restored(struct task *t)
{
    const struct ckpt_restored *r = &t->work.restored;
    struct wire_attempt_status *told = &t->state.told;
    told->restored_attempt = r->id.attempt;
    told->restored_sequence = r->id.sequence;
    told->restored_progress = r->id.attempt == 0 || r->progress < 0 ? WIRE_NONE : r->progress;
    told->restore_ms = r->stats.took_ms;
    told->damaged = r->damaged;
    if (r->damaged)
        log_warn("damaged checkpoints were set aside", log_i("job", t->job), log_i("number", r->damaged),
            log_s("why", r->damage));
}

static void on_prepared(struct task *t)
{
    if (t->killing || t->work.rc || *t->state.stop) {
        prepare_failed(t);
        return;
    }
    note_restored(t);
    t->state.prepared = true;
    task_persist(t);
    start_ship(t, true);
    start_keeper(t);
}

static void prepare(struct task *t)
{
    if (task_saves(t))
        task_move(t, WIRE_RESTORING);
    task_work_start(t, WORK_PREPARE, on_prepared);
}

static void on_retry(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    if (t->removed)
        gone_if_idle(t);
    else if (t->leaving && t->phase == WIRE_ENDED)
        remove_dir(t);
    else if (*t->state.stop || t->killing)
        prepare_failed(t);
    else
        prepare(t);
}

/* ---- being forgotten ---- */

static void gone_if_idle(struct task *t)
{
    if (task_is_idle(t))
        t->room->gone(t->room->ctx, t);
    else /* a request was cancelled and has not come back */
        timer_start(t->room->timers, &t->retry, IDLE_RETRY_MS);
}

static void on_removed(struct task *t)
{
    if (t->work.rc) {
        log_problem(t, "a task's directory could not be removed", &t->work.e);
        timer_start(t->room->timers, &t->retry, REMOVE_RETRY_MS);
        return;
    }
    t->removed = true;
    gone_if_idle(t);
}

static void remove_dir(struct task *t)
{
    t->leaving = true;
    ship_stop(&t->ship);
    if (task_work_is_busy(&t->work)) /* a clean; it looks again */
        timer_start(t->room->timers, &t->retry, RETRY_BASE_MS);
    else
        task_work_start(t, WORK_REMOVE, on_removed);
}

static void on_flushed(void *ctx)
{
    remove_dir(ctx);
}

void task_forget(struct task *t)
{
    if (t->leaving || t->killing)
        return;
    if (t->phase == WIRE_ENDED && !t->dir) {
        t->leaving = t->removed = true;
        t->room->gone(t->room->ctx, t);
    } else if (t->phase == WIRE_ENDED && t->ship.started) {
        t->leaving = true;
        ship_finish(&t->ship);
    } else if (t->phase == WIRE_ENDED) {
        remove_dir(t);
    } else {
        log_info("belayd does not want this attempt: killing it", log_i("job", t->job),
            log_i("attempt", t->attempt));
        t->killing = true;
        hasten_prepare(t);
        keeper_kill(&t->keeper);
    }
}

static void start_ship(struct task *t, bool is_new)
{
    const struct task_room *r = t->room;
    t->ship = (struct ship){.loop = r->loop,
        .timers = r->timers,
        .prng = r->prng,
        .peer = r->peer,
        .job = t->job,
        .attempt = t->attempt,
        .path = t->output_path,
        .flushed = on_flushed,
        .ctx = t};
    ship_start(&t->ship, is_new);
}

/* ---- stopping with a save ---- */

/* The program did not answer in time, or the last moment of a reclaim has come. */
static void on_deadline(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    bool saving = t->work.kind == WORK_SAVE;
    int64_t now = clock_mono(t->room->timers->clock).ms;
    int64_t left = mono_is_set(t->hard_at) ? t->hard_at.ms - now : 0;
    if (left > 0 || (saving && !mono_is_set(t->hard_at)))
        timer_start(t->room->timers, &t->deadline, left > 0 ? left : SAVING_STOP_MS);
    if (saving && timer_is_running(&t->deadline))
        return; /* let it finish */
    if (saving)
        atomic_store(&t->work.cancel, 1);
    int64_t grace = mono_is_set(t->hard_at) ? left : t->spec->kill_wait_ms;
    task_stop(t, t->ask.end, t->ask.text, 0, grace < 0 ? 0 : grace);
    if (t->exited)
        task_finish(t);
}

void task_save_and_stop(struct task *t, const char *end, const char *text)
{
    if (t->phase == WIRE_ENDED || t->killing || *t->state.stop || t->ask.stop)
        return;
    if (t->phase != WIRE_STARTING && t->phase != WIRE_RESTORING && task_saves(t))
        task_ask_save(t, SAVE_EVICT, end, text);
    else
        task_stop(t, end, text, 0, t->spec->kill_wait_ms);
}

static void set_hard_deadline(struct task *t, const struct notice *n)
{
    int64_t now = clock_mono(t->room->timers->clock).ms;
    int64_t left = n->deadline_mono.ms - now;
    left = left < 0 ? 0 : left;
    int64_t last_words = left / 10 < LAST_WORDS_MAX_MS ? left / 10 : LAST_WORDS_MAX_MS;
    int64_t grace = t->spec->kill_wait_ms < left / 4 ? t->spec->kill_wait_ms : left / 4;
    t->hard_at.ms = now + left - last_words;
    timer_start(t->room->timers, &t->deadline, left - last_words - grace);
}

static void reclaim(struct task *t, const struct notice *n)
{
    if (t->phase == WIRE_STARTING || t->phase == WIRE_RESTORING) {
        task_stop(t, "reclaimed", "", 0, 0);
        return;
    }
    task_ask_save(t, SAVE_NOTICE, "reclaimed", "");
    if (!t->ask.stop) { /* no checkpoints: it may run to the last moment, perhaps it ends by itself */
        t->ask.stop = true;
        STR_COPY(t->ask.end, "reclaimed");
        STR_COPY(t->ask.text, "");
    }
    if (mono_is_set(n->deadline_mono))
        set_hard_deadline(t, n);
}

void task_notice(struct task *t, const struct notice *n)
{
    if (t->phase == WIRE_ENDED || t->killing)
        return;
    put_notice(t);
    if (n->kind == NOTICE_RECLAIM)
        reclaim(t, n);
    else
        task_ask_save(t, SAVE_REBALANCE, NULL, NULL);
    ship_kick(&t->ship);
}

/* ---- what belayd wants ---- */

static void drop_acked(struct task *t, int64_t acked)
{
    struct wire_attempt_status *told = &t->state.told;
    size_t n = 0;
    while (n < told->n_checkpoints && told->checkpoints[n].sequence <= acked)
        n++;
    told->n_checkpoints -= n;
    memmove(told->checkpoints, told->checkpoints + n, told->n_checkpoints * sizeof(*told->checkpoints));
}

void task_desired(struct task *t, const struct wire_desired_attempt *d)
{
    if (t->state.told.n_checkpoints > 0)
        drop_acked(t, d->acked_sequence);
    if (d->want == WIRE_RUN || t->phase == WIRE_ENDED || t->killing)
        return;
    const char *end = *d->reason ? d->reason : "user";
    if (d->want == WIRE_SAVE_STOP)
        task_save_and_stop(t, end, "stopped by belayd");
    else if (!*t->state.stop)
        task_stop(t, end, "stopped by belayd", 0, d->kill_wait_ms);
}

/* ---- making one ---- */

static struct task *make(const struct task_room *room, int64_t job, int64_t attempt)
{
    struct task *t = mem_alloc(sizeof(*t));
    t->room = room;
    t->job = job;
    t->attempt = attempt;
    t->control_fd = -1;
    t->keeper.dirfd = -1;
    t->hard_at = MONO_NONE;
    t->own.attempts = mem_alloc(sizeof(*t->own.attempts));
    t->own.n_attempts = 1;
    t->spec = &t->own.attempts[0];
    record_init_state(&t->state, job, attempt);
    timer_init(&t->retry, on_retry, t);
    timer_init(&t->deadline, on_deadline, t);
    task_saves_init(t);
    return t;
}

static void set_paths(struct task *t)
{
    t->dir = mem_printf("%s/%lld-%lld", t->room->dir, (long long)t->job, (long long)t->attempt);
    t->checkpoint_dir = mem_printf("%s/checkpoint", t->dir);
    t->output_path = mem_printf("%s/output.log", t->dir);
    t->state_path = mem_printf("%s/state.json", t->dir);
    t->ship.path = t->output_path;
}

/* The texts change hands by a round trip over the wire's own format, so that what is kept is what would be
 * read. */
static void copy_spec(struct task *t, const struct wire_desired_attempt *d)
{
    struct wire_desired_attempt one = *d;
    struct wire_desired whole = {.rev = 1, .lease_ms = 1, .attempts = &one, .n_attempts = 1};
    struct buf text = {0};
    struct err e;
    wire_desired_encode(&whole, &text);
    wire_desired_deinit(&t->own);
    int rc = wire_desired_decode(text.data, text.len, &t->own, &e);
    assert(rc == 0);
    t->spec = &t->own.attempts[0];
    buf_deinit(&text);
}

static struct task *make_ended(
    const struct task_room *room, const struct wire_desired_attempt *d, const char *end, const char *text)
{
    struct task *t = make(room, d->job, d->attempt);
    t->phase = WIRE_ENDED;
    STR_COPY(t->state.told.end, end);
    STR_COPY(t->state.told.text, text);
    return t;
}

struct task *task_create(const struct task_room *room, const struct wire_desired_attempt *d)
{
    if (d->want != WIRE_RUN)
        return make_ended(room, d, *d->reason ? d->reason : "user", "it had not started");
    if (!d->script)
        return make_ended(room, d, "node-lost", "its node has no trace of it any more");
    if (room->notice->kind == NOTICE_RECLAIM)
        return make_ended(room, d, "reclaimed", "its node was being reclaimed before it started");
    struct task *t = make(room, d->job, d->attempt);
    copy_spec(t, d);
    set_paths(t);
    t->prepare_until.ms = clock_mono(room->timers->clock).ms + PREPARE_MS;
    log_info("attempt starts", log_i("job", t->job), log_i("attempt", t->attempt));
    prepare(t);
    return t;
}

/* ---- taking one over ---- */

/* A save that the agent before began may have been stored: then it has to be told. */
static void on_found(struct task *t)
{
    t->state.saving = false;
    if (t->work.rc == 0 && t->work.found.sequence > 0) {
        struct wire_attempt_status *told = &t->state.told;
        if (!told->checkpoints)
            told->checkpoints = mem_array(WIRE_CHECKPOINTS_MAX, sizeof(*told->checkpoints));
        if (told->n_checkpoints < WIRE_CHECKPOINTS_MAX) {
            told->checkpoints[told->n_checkpoints] = t->work.found;
            STR_COPY(told->checkpoints[told->n_checkpoints++].cause, "program");
        }
        t->state.last_saved_at = t->work.found.saved_at;
    }
    task_persist(t);
    start_keeper(t);
    changed(t);
}

static void resume(struct task *t)
{
    log_info("attempt taken over", log_i("job", t->job), log_i("attempt", t->attempt));
    if (*t->state.told.end) {
        t->phase = WIRE_ENDED;
        t->exited = true;
        start_ship(t, false);
    } else if (!t->state.prepared) {
        t->prepare_until.ms = clock_mono(t->room->timers->clock).ms + PREPARE_MS;
        prepare(t);
    } else {
        t->phase = WIRE_RUNNING;
        start_ship(t, false);
        if (t->state.saving && task_saves(t)) {
            t->work.sequence = t->state.sequence;
            task_work_start(t, WORK_FIND, on_found);
        } else {
            start_keeper(t);
        }
    }
}

/* Checkpoints are kept in an array of full size, so that more can be added. */
static void grow_checkpoints(struct wire_attempt_status *told)
{
    if (told->checkpoints)
        told->checkpoints = mem_resize(told->checkpoints, WIRE_CHECKPOINTS_MAX, sizeof(*told->checkpoints));
}

static int read_records(struct task *t, struct err *e)
{
    struct task_state state;
    struct wire_desired spec;
    char *path = mem_printf("%s/spec.json", t->dir);
    int rc = record_read_spec(path, &spec, e);
    free(path);
    if (rc)
        return rc;
    wire_desired_deinit(&t->own);
    t->own = spec;
    t->spec = &t->own.attempts[0];
    rc = record_read_state(t->state_path, &state, e);
    if (!rc) {
        grow_checkpoints(&state.told);
        t->state = state;
    }
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

struct task *task_adopt(const struct task_room *room, const char *name)
{
    long long job, attempt;
    int used = 0;
    struct err e;
    if (sscanf(name, "%lld-%lld%n", &job, &attempt, &used) != 2 || name[used] || job < 1 || attempt < 1)
        return NULL;
    struct task *t = make(room, job, attempt);
    set_paths(t);
    int rc = read_records(t, &e);
    if (rc == ERR_NOT_FOUND) { /* not even begun */
        fs_remove_tree(t->dir, &e);
        task_free(t);
        return NULL;
    }
    if (rc) {
        log_problem(t, "what is known of a task is damaged", &e);
        t->phase = WIRE_RUNNING;
        STR_COPY(t->state.stop, "node-lost");
        STR_COPY(t->state.stop_text, e.text);
        start_keeper(t);
    } else {
        resume(t);
    }
    return t;
}

/* ---- asking ---- */

int64_t task_job(const struct task *t)
{
    return t->job;
}

int64_t task_attempt(const struct task *t)
{
    return t->attempt;
}

bool task_has_ended(const struct task *t)
{
    return t->phase == WIRE_ENDED;
}

bool task_is_leaving(const struct task *t)
{
    return t->leaving || t->killing;
}

struct link *task_link(struct task *t)
{
    return &t->in_agent;
}

struct task *task_of_link(struct link *n)
{
    return LIST_ENTRY(n, struct task, in_agent);
}

void task_status(const struct task *t, struct wire_attempt_status *s)
{
    *s = t->state.told;
    s->phase = (enum wire_phase)t->phase;
    s->output_bytes = t->output_path ? ship_output_bytes(&t->ship) : 0;
}

/* ---- letting go ---- */

void task_release(struct task *t)
{
    t->released = true;
    atomic_store(&t->work.cancel, 1);
    timer_stop(t->room->timers, &t->retry);
    timer_stop(t->room->timers, &t->deadline);
    task_saves_end(t);
    keeper_stop(&t->keeper);
    ship_stop(&t->ship);
}

bool task_is_idle(const struct task *t)
{
    return !task_work_is_busy(&t->work) && ship_is_idle(&t->ship);
}

void task_free(struct task *t)
{
    if (!t)
        return;
    if (t->control_fd >= 0)
        close(t->control_fd);
    wire_desired_deinit(&t->own);
    record_deinit_state(&t->state);
    free(t->dir);
    free(t->checkpoint_dir);
    free(t->output_path);
    free(t->state_path);
    free(t);
}
