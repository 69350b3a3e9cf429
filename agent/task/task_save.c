/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's checkpoints: taking what the program commits and storing it. Requests to the program are
 * in save_request.c.
 *
 * Requesting and storing are independent: a notice is put to the program at once, even while an
 * earlier save is being stored, and that save does not serve the request. Commits are found by
 * reading the directories (commit.K, .done), so a restarted agent misses none.
 *
 * With CRIU the program is not asked: the processes are dumped (WORK_DUMP), and the dump is stored
 * like any other directory. For a stop the processes stay stopped after the dump, and storing is
 * retried until it succeeds or the time is over.
 */
#include "agent/task/task_private.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_MS 1000 /* a failed save of .done or of an exit */
#define PERIODIC_RETRY_MS 10000
#define FINAL_TRIES_MAX 60
/* for a committing program to end by itself after the answer "stop", before SIGTERM */
#define LEAVE_MS 2000
#define WATCH_POLL_MS 1000
#define WATCH_SOON_MS 2
/* for jobs without checkpoints, of which only the progress is read */
#define WATCH_LATER_MS 100
/* scans of the control directory in one iteration of the loop; a malformed commit takes one */
#define SCANS_MAX 4
#define SCANS_AT_END_MAX 32 /* in one iteration, when the program has ended */

static const enum wire_cause wire_causes[] = {
    [SAVE_PERIODIC] = WIRE_CAUSE_PERIODIC,
    [SAVE_DAILY] = WIRE_CAUSE_DAILY,
    [SAVE_LIMIT] = WIRE_CAUSE_LIMIT,
    [SAVE_USER] = WIRE_CAUSE_USER,
    [SAVE_PROGRAM] = WIRE_CAUSE_PROGRAM,
    [SAVE_NOTICE] = WIRE_CAUSE_NOTICE,
    [SAVE_REBALANCE] = WIRE_CAUSE_REBALANCE,
    [SAVE_EVICT] = WIRE_CAUSE_DRAIN,
    [SAVE_EXIT] = WIRE_CAUSE_PROGRAM,
};

bool task_by_signal(const struct task *t)
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

/* ---- storing ---- */

static void on_saved(struct task *t);

/* A gang's save is counted only when all ranks have committed (note_met), so that a commit which a
 * restarted agent serves again has the same number. */
static int64_t next_sequence(struct task *t)
{
    return task_is_gang(t) ? t->state.sequence + 1 : ++t->state.sequence;
}

/* Records the number that rank 0 gave the gang's save, or gives back the number if the ranks did
 * not meet. A queued save gets the next number. */
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

/* Stores the first progress reported by the attempt: it shows whether the program continued from
 * its checkpoint, however late belayd receives it. */
static void note_done(struct task *t, int64_t done)
{
    struct wire_attempt_status *reported = &t->state.reported;
    bool is_first = reported->first_done == WIRE_NONE;
    reported->done = done;
    if (!is_first)
        return;
    reported->first_done = done;
    if (reported->started_at != WIRE_NONE)
        reported->first_done_ms = max_i64(1, task_wall_ms(t) - reported->started_at);
    task_persist(t);
}

static void note_numbers(struct task *t, const struct control_numbers *n)
{
    if (n->done != CONTROL_NONE)
        note_done(t, n->done);
    if (n->total != CONTROL_NONE)
        t->state.reported.total = n->total;
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

/* Saves the directory itself, while the program or belayd waits. Drops a queued snapshot, which is
 * older. */
static void save_begin(struct task *t, int64_t commit, int64_t progress, enum save_cause cause)
{
    const struct task_save s = {.commit = commit,
        .request_serial = t->ckpt.request.serial,
        .cause = cause,
        .is_final = cause == SAVE_EXIT,
        .is_requested = t->ckpt.request.on,
        .user_requests = t->ckpt.request.user_requests,
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
    struct wire_attempt_status *reported = &t->state.reported;
    if (!reported->checkpoints)
        reported->checkpoints = mem_array(WIRE_CHECKPOINTS_MAX, sizeof(*reported->checkpoints));
    if (reported->n_checkpoints == WIRE_CHECKPOINTS_MAX) { /* merges the oldest into the next */
        reported->checkpoints[1].stored_bytes += reported->checkpoints[0].stored_bytes;
        memmove(reported->checkpoints, reported->checkpoints + 1,
            --reported->n_checkpoints * sizeof(*c));
    }
    reported->checkpoints[reported->n_checkpoints++] = *c;
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
        log_warn("old checkpoints could not be removed", log_i("job", t->job), log_err(&t->work.e));
    if (t->work.rc == 0 && t->state.reported.kept_bytes != t->work.kept_bytes) {
        t->state.reported.kept_bytes = t->work.kept_bytes;
        task_changed(t);
    }
    t->work.rc = 0; /* the save before it was good */
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
    else if (!failed && !s->is_final && task_by_signal(t))
        task_done_taken(t);
}

/* Writes the outcome of the commits accepted up to this save. */
static void answer_accepted(struct task *t, const struct task_save *s, const struct err *failed)
{
    if (t->ckpt.control.fd >= 0)
        task_accept_answer(t, s->pause_ms == TASK_WAITS ? t->ckpt.accepted : s->commit, failed);
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
        .saved_at = waited ? task_wall_ms(t) : t->ckpt.save.of_ms};
    t->ckpt.save_took_ms = stats->took_ms + dump_ms;
    t->ckpt.taking.is_hopeless = t->ckpt.taking.stats.is_too_large && !task_is_gang(t) &&
                                 ckpt_snapshot_stays_too_large(stats);
    if (t->ckpt.save.user_requests > t->state.saves_asked)
        t->state.saves_asked = t->ckpt.save.user_requests;
    note_checkpoint(t, &c);
    if (t->state.reported.kept_bytes > 0) /* valid until the next cleaning */
        t->state.reported.kept_bytes += stats->stored_bytes;
    t->state.reported.checkpoints[t->state.reported.n_checkpoints - 1].cause = wire_causes[cause];
}

/* If a stop requested the save, the task is stopped before the program gets its answer, so that any
 * exit after that counts as stopped. */
static void save_good(struct task *t)
{
    bool waits = t->ckpt.save.pause_ms == TASK_WAITS;
    bool serves =
        waits && ((t->ckpt.request.on && t->ckpt.save.request_serial == t->ckpt.request.serial) ||
                     t->ckpt.save.is_final);
    bool stop = serves && t->ckpt.request.on && t->ckpt.request.stop;
    t->ckpt.save_failed = false;
    note_saved(t, serves && t->ckpt.request.on ? t->ckpt.request.cause : t->ckpt.save.cause);
    answer_accepted(
        t, &t->ckpt.save, NULL); /* while the state on disk says that a save is under way */
    task_persist(t);
    if (serves)
        task_request_over(t);
    if (stop) {
        t->ckpt.stop_saved = true;
        /* A dumped program must not continue here. */
        task_stop(t, t->ckpt.request.end, t->ckpt.request.text, t->ckpt.save.commit ? LEAVE_MS : 0,
            task_by_criu(t) ? 0 : t->spec->kill_wait_ms);
    }
    if (waits)
        answer(t, &t->ckpt.save, NULL, stop);
    task_restart_periodic(t);
}

/* A failed dump also costs the program time, and the next one will probably fail too. */
static int64_t failed_pause_ms(const struct task *t)
{
    int64_t every = t->ckpt.every_ms > 0 ? t->ckpt.every_ms : t->spec->ckpt_every_ms;
    return task_by_criu(t) && every > PERIODIC_RETRY_MS ? every : PERIODIC_RETRY_MS;
}

/* Hash of the words that contain no digit. It is the same when a failure repeats, because only
 * numbers of checkpoints and names of chunks differ. Never 0. */
uint64_t task_cause(const char *text)
{
    uint64_t hash = HASH_INIT;
    for (size_t n; *text; text += n) {
        n = strcspn(text, " ");
        size_t digit = strcspn(text, "0123456789");
        if (digit >= n)
            hash = hash_bytes(hash, text, n);
        n += text[n] == ' ';
    }
    return hash ? hash : 1;
}

/* A program that commits at every step would report a refusing store at every step: the failure is
 * reported once, until a save succeeds or fails for another reason. */
static void note_failure(struct task *t, const struct task_save *s, const struct err *e)
{
    uint64_t cause = task_cause(e->text);
    /* A user's request is always answered, also when the save was accepted and failed later. */
    bool is_answer =
        (t->ckpt.request.on && t->ckpt.request.cause == SAVE_USER && !t->ckpt.request.stop) ||
        (s->user_requests > t->state.saves_asked &&
            s->user_requests > t->ckpt.user_requests_failed);
    if (s->user_requests > t->ckpt.user_requests_failed)
        t->ckpt.user_requests_failed = s->user_requests;
    bool is_known = t->ckpt.save_failed && t->ckpt.failure_cause == cause && !is_answer;
    t->ckpt.save_failed = true;
    t->ckpt.failure_cause = cause;
    STR_SHORTEN(t->state.reported.save_error, e->text);
    if (is_known) {
        log_debug(
            "a save failed again", log_i("job", t->job), log_i("attempt", t->attempt), log_err(e));
        return;
    }
    log_warn("a save failed", log_i("job", t->job), log_i("attempt", t->attempt), log_err(e));
    t->state.reported.failed_saves++;
}

void task_save_hangs(struct task *t, const struct err *e)
{
    note_failure(t, &t->ckpt.save, e);
}

void task_save_failed(struct task *t, const struct task_save *s, const struct err *e)
{
    bool waits = s->pause_ms == TASK_WAITS,
         is_requested = t->ckpt.request.on && !t->ckpt.request.stop;
    note_failure(t, s, e);
    if (s->sequence) /* 0: no snapshot was taken, so no commit was accepted with it */
        answer_accepted(t, s, e);
    task_persist(t);
    if (waits && is_requested) /* otherwise the program would retry at every step */
        task_request_over(t);
    if (waits ? is_requested : s->is_requested)
        timer_start(task_timers(t), &t->ckpt.periodic, failed_pause_ms(t));
    if (!waits)
        return;
    answer(t, s, e, false);
    if (!s->commit && (!task_by_criu(t) || t->ckpt.request.on))
        timer_start(task_timers(t), &t->ckpt.again, RETRY_MS);
}

static void snapshot_over(struct task *t)
{
    if (!t->ckpt.in_place && ckpt_snapshot_was_disturbed(t->ckpt.save.snapshot)) {
        t->ckpt.in_place = true;
        log_warn("a program writes in place: its files are no longer kept open, and it waits for "
                 "its large saves",
            log_i("job", t->job), log_i("attempt", t->attempt));
    }
    ckpt_snapshot_destroy(t->ckpt.save.snapshot);
    t->ckpt.save.snapshot = t->work.snapshot = NULL;
}

/* Whether a save that was not stored is no failure to report: it was cancelled for a newer one, the
 * gang left it out, or its commit was refused and answered before. */
static bool needs_no_report(const struct task *t)
{
    bool left_out = t->work.stats.left_out && t->ckpt.save.pause_ms != TASK_WAITS;
    if (left_out)
        log_info("a checkpoint was skipped", log_i("job", t->job), log_i("attempt", t->attempt),
            log_err(&t->work.e));
    return t->work.rc == ERR_CANCELLED || left_out || t->ckpt.save.refused.kind;
}

static void clean(struct task *t)
{
    t->ckpt.is_uncleaned = false;
    task_work_start(t, WORK_CLEAN, on_cleaned);
}

/* If the machine is about to go, the next attempt's first save cleans. */
bool task_clean_last(struct task *t)
{
    bool may = t->ckpt.is_uncleaned && !t->work.fenced && t->common->notice->kind == NOTICE_NONE;
    if (may)
        clean(t);
    return may;
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
    else if (needs_no_report(t))
        task_persist(t);
    else
        task_save_failed(t, &t->ckpt.save, &t->work.e);
    if (t->phase == WIRE_SAVING)
        task_move(t, WIRE_RUNNING);
    task_changed(t);
    if (t->work.fenced) {
        task_stop(t, WIRE_END_NODE_LOST, t->work.e.text, 0, 0);
        t->ckpt.request.stop = false;
    }
    t->ckpt.is_uncleaned = t->ckpt.is_uncleaned || (t->work.rc == 0 && t->spec->rank == 0);
    if (t->supervision.exited)
        task_finish(t);
    else if (t->work.rc == 0 && t->spec->rank == 0 && t->common->notice->kind == NOTICE_NONE &&
             t->state.stop == WIRE_END_NONE && !t->supervision.killing)
        clean(t);
    else
        task_pump_saves(t);
}

/* The last progress that the program reported, for saves without their own. */
static struct control_numbers last_progress(const struct task *t)
{
    return (struct control_numbers){
        t->state.reported.done == WIRE_NONE ? CONTROL_NONE : t->state.reported.done,
        t->state.reported.total == WIRE_NONE ? CONTROL_NONE : t->state.reported.total};
}

/* Whether a commit must be stored before the task ends. */
static bool is_for_end(const struct task *t)
{
    return (t->ckpt.request.on && t->ckpt.request.stop) || t->state.stop != WIRE_END_NONE ||
           t->supervision.exited || mono_is_set(t->supervision.hard_at);
}

/* Whether a commit is answered only once it is stored. step: stated by the commit, or
 * CONTROL_NONE. */
static bool has_to_wait(const struct task *t, int64_t step)
{
    return is_for_end(t) || (task_is_gang(t) && step == CONTROL_NONE);
}

/* Takes a snapshot of what the program has committed, or stores it, as soon as possible. */
static void serve(struct task *t, int64_t commit, int64_t progress, bool waits)
{
    bool is_behind = task_is_gang(t) && task_has_queued(&t->ckpt) && !is_for_end(t);
    waits = waits || t->ckpt.taking.is_hopeless;
    if (!waits && task_accept_may_take(t))
        task_accept_take(t, commit, progress);
    else if (waits && task_work_is_busy(&t->work))
        task_accept_judge(t);
    else if (waits && !is_behind)
        save_begin(t, commit, progress, SAVE_PROGRAM);
}

/* Tells the other ranks not to wait for a commit that cannot be read. */
static void refuse_commit(struct task *t, int64_t commit, const struct err *why)
{
    const struct control_answer a = {.failed = why};
    if (task_is_gang(t) && task_saves(t) && !task_by_criu(t))
        task_accept_refuse(t, &(struct task_save){.commit = commit, .progress = -1}, why);
    control_answer(&t->ckpt.control, commit, &a);
}

/* False if the commit was answered, or is gone. */
static bool serve_or_refuse(struct task *t, int64_t k)
{
    struct control_numbers n;
    struct err e;
    int rc = control_read_commit(&t->ckpt.control, k, &n, &e);
    if (rc == ERR_NOT_FOUND) /* withdrawn by the program */
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

/* Serves the next commit, if any. A malformed one is answered and the next one is read. The number
 * of scans is bounded, because a program may make commits as fast as they are answered, and names
 * that cannot be removed. *ret_found becomes true if there was something to do. */
static bool serve_commit(struct task *t, bool *ret_found)
{
    int scans = t->supervision.exited ? SCANS_AT_END_MAX : SCANS_MAX;
    while (t->ckpt.control.fd >= 0 && !t->ckpt.taking.is_busy) {
        int64_t k;
        enum control_found found =
            scans-- > 0 ? control_next_commit(&t->ckpt.control, &k) : CONTROL_MORE;
        *ret_found |= found != CONTROL_NOTHING;
        if (found == CONTROL_COMMIT && serve_or_refuse(t, k))
            return true;
        if (found == CONTROL_MORE && (!t->supervision.exited || scans < 0)) {
            watch_trigger(t->ckpt.control_watch);
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
    int serial = t->ckpt.save.request_serial;
    if (t->work.rc == 0) {
        struct control_numbers n = last_progress(t);
        t->ckpt.is_dumped = t->work.dumps_stopped;
        save_begin(t, 0, progress_of(&n), cause);
        t->ckpt.save.request_serial = serial;
        return;
    }
    if (!t->supervision.exited)
        task_save_failed(t, &t->ckpt.save, &t->work.e);
    if (t->phase == WIRE_SAVING)
        task_move(t, WIRE_RUNNING);
    t->common->changed(t->common->ctx);
    if (t->supervision.exited) {
        task_finish(t);
        /* ERR_TIMEOUT, ERR_CORRUPT: criu left the processes damaged */
    } else if (t->work.rc == ERR_TIMEOUT || t->work.rc == ERR_CORRUPT) {
        task_stop(t, t->ckpt.request.stop ? t->ckpt.request.end : WIRE_END_NODE_LOST,
            t->work.e.text, 0, 0);
        t->ckpt.request.stop = false;
    }
}

/* Requests made during a restore are served after it. */
static void pump_dumps(struct task *t)
{
    if (!t->ckpt.request.on || t->supervision.exited || !t->ckpt.control_watch ||
        timer_is_running(&t->ckpt.again) || t->state.stop != WIRE_END_NONE)
        return;
    if (t->ckpt.is_dumped) {
        struct control_numbers n = last_progress(t);
        save_begin(t, 0, progress_of(&n), t->ckpt.request.cause);
        return;
    }
    t->ckpt.save = (struct task_save){.request_serial = t->ckpt.request.serial,
        .cause = t->ckpt.request.cause,
        .is_requested = true,
        .pause_ms = TASK_WAITS};
    t->work.dumps_stopped = t->ckpt.request.stop;
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

/* Returns whether there was something to do. */
static bool serve_program(struct task *t)
{
    bool found = false;
    if (!serve_commit(t, &found) && task_by_signal(t) && !t->supervision.exited &&
        !t->ckpt.taking.is_busy && !timer_is_running(&t->ckpt.again) && task_has_done(t)) {
        struct control_numbers n = last_progress(t);
        serve(t, 0, progress_of(&n), t->ckpt.done_must_wait || has_to_wait(t, CONTROL_NONE));
        found = true;
    }
    return found;
}

/* is_scan: called by the watch, which has counted this scan. A call after a served commit or from a
 * timer counts only if it finds something: otherwise each commit would cost two scans. */
static void pump(struct task *t, bool is_scan)
{
    if (t->supervision.killing || t->ckpt.left_gang || t->ckpt.is_unsettled)
        return;
    if (is_scan || t->supervision.exited)
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
    int64_t now = clock_mono(task_timers(t)->clock).ms;
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
    struct wire_attempt_status *reported = &t->state.reported;
    if (control_read_progress(&t->ckpt.control, &n, &e) || n.done == CONTROL_NONE)
        return;
    int64_t total = n.total == CONTROL_NONE ? WIRE_NONE : n.total;
    if (n.done == reported->done && total == reported->total)
        return;
    note_done(t, n.done);
    reported->total = total;
    t->common->changed_later(t->common->ctx);
}

static void on_files_changed(void *ctx)
{
    struct task *t = ctx;
    read_progress(t);
    pump(t, true);
}

void task_saves_begin(struct task *t)
{
    if (t->ckpt.control_watch) { /* the supervisor's connection was lost and restored */
        task_write_request(t);
        return;
    }
    char *control = mem_printf("%s/control", t->dir);
    t->ckpt.control_watch = watch_start(t->common->watches, control,
        task_saves(t) ? WATCH_SOON_MS : WATCH_LATER_MS, WATCH_POLL_MS, on_files_changed, t);
    if (task_by_signal(t))
        t->ckpt.checkpoint_watch = watch_start(
            t->common->watches, t->ckpt.dir, WATCH_SOON_MS, WATCH_POLL_MS, on_files_changed, t);
    task_read_daily(t);
    task_write_request(t); /* a request made before the program ran */
    task_restart_periodic(t);
    free(control);
}

void task_saves_end(struct task *t)
{
    if (t->ckpt.control_watch)
        read_progress(t);
    watch_stop(t->ckpt.control_watch);
    watch_stop(t->ckpt.checkpoint_watch);
    t->ckpt.control_watch = t->ckpt.checkpoint_watch = NULL;
    timer_stop(task_timers(t), &t->ckpt.periodic);
    timer_stop(task_timers(t), &t->ckpt.again);
}
