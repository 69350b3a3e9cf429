/* SPDX-License-Identifier: Apache-2.0
 *
 * The life cycle of an attempt on this node: states, end and removal. The start is in task_start.c,
 * checkpoints in task_save.c, stops with a save in task_notice.c, blocking work in task_work.c.
 *
 * Invariants.
 *  1. The requested end (state.stop) is on disk before the program is stopped, so that a restarted
 *     agent reports the same end.
 *  2. An attempt is ENDED only when none of its processes runs (exit.json), no work is under way,
 *     and what the program had committed is stored or cannot be stored.
 *  3. Its directory is removed only when belayd has dropped it.
 */
#include "agent/task/task_private.h"
#include "agent/disk.h"
#include "agent/keyring.h"
#include "agent/task/store_credentials.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REMOVE_RETRY_MS 30000 /* retry when a directory cannot be removed */
#define BUSY_RETRY_MS 100     /* retry while work that cannot be cancelled is under way */
#define IDLE_RETRY_MS 20      /* retry while a cancelled request has not completed */
#define RELEASE_STEP 65536    /* bytes of output */
#define RELEASE_MAX (1LL << 50)
#define REPORT_WAIT_MS 2000 /* for the next piece of output to reach belayd */

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
const struct sm task_sm = {
    "task", phase_names, transitions, sizeof(transitions) / sizeof(*transitions)};

void task_move(struct task *t, enum wire_phase to)
{
    if (t->phase != (int)to)
        sm_move(&task_sm, t->job, &t->phase, to);
}

void task_changed(struct task *t)
{
    t->common->changed(t->common->ctx);
}

void task_log(const struct task *t, const char *what, const struct err *e)
{
    log_error(what, log_i("job", t->job), log_i("attempt", t->attempt), log_err(e));
}

static void persist(struct task *t, const char *reserve)
{
    struct err e;
    t->has_state = true;
    int rc = t->state_path ? record_write_state(t->state_path, &t->state, &e) : 0;
    while (rc == ERR_NO_SPACE && reserve && disk_give(reserve))
        rc = record_write_state(t->state_path, &t->state, &e);
    /* Refused before the directory was made: a restarted agent receives the attempt again, and
     * refuses it again. */
    bool is_refused = rc == ERR_NOT_FOUND && !t->state.prepared;
    if (rc && !is_refused)
        task_log(t, "a task's state could not be written", &e);
}

void task_persist(struct task *t)
{
    persist(t, NULL);
}

/* On a full disk uses the space reserved for the ends of tasks. If that is used up too, the task is
 * still stopped without a record of its end, because a stop frees space. */
static void persist_end(struct task *t)
{
    char *reserve = mem_printf("%s/../" DISK_RESERVE_FILE, t->common->dir);
    persist(t, reserve);
    free(reserve);
}

/* Whether a restarted agent would derive the same end, with the same text, from exit.json. */
static bool end_is_on_disk(const struct task *t)
{
    return t->supervision.has_exit && !t->has_state && !t->ckpt.request.stop;
}

/* ---- ending ---- */

enum wire_end task_end_of(enum wire_end reason)
{
    return reason == WIRE_END_NONE || reason == WIRE_END_UNKNOWN ? WIRE_END_CANCELLED : reason;
}

void task_end_now(struct task *t, enum wire_end end, int64_t code, const char *text)
{
    struct wire_attempt_status *reported = &t->state.reported;
    reported->end = end;
    STR_SHORTEN(reported->text, text);
    reported->exit_code = code;
    t->supervision.exited = true;
    int64_t seen = t->state.reported.usage.memory_peak_bytes;
    t->state.reported.usage = (struct wire_usage){.cpu_ms = t->supervision.exit.cpu_ms,
        .cpu_user_ms = t->supervision.exit.cpu_user_ms,
        .memory_peak_bytes =
            t->supervision.exit.memory_peak > 0 ? t->supervision.exit.memory_peak : seen};
    timer_stop(t->common->timers, &t->supervision.deadline);
    timer_stop(t->common->timers, &t->prep.retry);
    timer_stop(t->common->timers, &t->prep.hang_check);
    timer_stop(t->common->timers, &t->ckpt.linger);
    task_accept_drop(t);
    task_saves_end(t);
    supervisor_client_stop(&t->supervision.client);
    task_move(t, WIRE_ENDED);
    log_info("attempt ended", log_i("job", t->job), log_i("attempt", t->attempt),
        log_s("end", wire_word_name(wire_end_names, (int)end)), log_i("exit_code", code),
        log_s("text", text));
    t->common->ended(t->common->ctx);
    if (t->supervision.killing) {
        task_remove(t);
        return;
    }
    if (!end_is_on_disk(t))
        persist_end(t);
    log_shipper_settle(&t->output.shipper);
    log_shipper_kick(&t->output.shipper);
    task_report_end(t);
}

void task_end(struct task *t, enum wire_end end, int64_t code, const char *text)
{
    if (!task_hooks_epilog(t, end, code, text))
        task_end_now(t, end, code, text);
}

/* Once belayd knows of the end, it may release the machine at once, and output that it does not
 * have is lost. So the end is reported after the output, as long as each piece arrives within this
 * time: REPORT_WAIT_MS, but at most half of what a notice leaves. */
static int64_t report_wait_ms(const struct task *t)
{
    const struct notice *n = t->common->notice;
    int64_t half = INT64_MAX;
    if (n->kind == NOTICE_RECLAIM && mono_is_set(n->deadline_mono))
        half = (n->deadline_mono.ms - clock_mono(t->common->timers->clock).ms) / 2;
    return half < 0 ? 0 : half < REPORT_WAIT_MS ? half : REPORT_WAIT_MS;
}

static void report_end_now(struct task *t)
{
    t->output.end_reported = true;
    timer_stop(t->common->timers, &t->output.report_due);
    task_changed(t);
}

void task_report_end(struct task *t)
{
    if (!t->output.shipper.started || log_shipper_is_complete(&t->output.shipper))
        report_end_now(t);
    else
        timer_start(t->common->timers, &t->output.report_due, report_wait_ms(t));
}

/* Tells the supervisor how much output belayd has on its disk, so that it is released on this
 * one. */
static void release_durable(struct task *t)
{
    int64_t bytes = min_i64(log_shipper_durable(&t->output.shipper), RELEASE_MAX);
    if (!t->supervision.is_up || bytes - t->output.released < RELEASE_STEP)
        return;
    t->output.released = bytes;
    supervisor_client_shipped(&t->supervision.client, bytes);
}

void task_shipped(void *ctx)
{
    struct task *t = ctx;
    release_durable(t);
    if (t->phase == WIRE_ENDED && !t->output.end_reported && !task_is_leaving(t))
        task_report_end(t);
}

static void on_report_due(struct timer *timer, void *ctx)
{
    (void)timer;
    report_end_now(ctx);
}

/* Whether the requested stop ended the program: the supervisor stopped it, or something else killed
 * it meanwhile (a shutdown of the machine). */
static bool stop_took_effect(const struct task *t)
{
    return t->supervision.exit.cause == EXIT_STOPPED ||
           (t->supervision.exit.signal != 0 && t->supervision.exit.cause == EXIT_BY_ITSELF);
}

static void end_as_found(struct task *t)
{
    const struct task_exit *x = &t->supervision.exit;
    const bool is_requested = t->state.stop != WIRE_END_NONE;
    const enum wire_end stop = is_requested           ? t->state.stop
                               : t->ckpt.request.stop ? t->ckpt.request.end
                                                      : WIRE_END_NONE;
    const char *stop_text = is_requested ? t->state.stop_text : t->ckpt.request.text;
    char words[192];
    bool in_vain = x->code == EXIT_CHECKPOINTED && (!task_saves(t) || task_by_criu(t));
    snprintf(words, sizeof(words), "exit code %lld%s%s%s", (long long)x->code,
        in_vain ? " asks to be continued from a checkpoint, but the job was submitted with "
                  "--checkpoint "
                : "",
        !in_vain          ? ""
        : task_by_criu(t) ? "criu"
                          : "none",
        in_vain ? ": submit it with --checkpoint signal or coop" : "");
    if (x->cause == EXIT_LOST || x->cause == EXIT_SHUTDOWN)
        task_end(t, WIRE_END_NODE_LOST, x->code, x->text);
    else if (x->cause == EXIT_CLOSED) /* the program has not run, and may start on another node */
        task_end(t, stop != WIRE_END_NONE ? stop : WIRE_END_CAPACITY, 0,
            stop != WIRE_END_NONE ? stop_text : x->text);
    else if (x->cause == EXIT_NO_EXEC || x->cause == EXIT_NO_RESTORE)
        task_end(t, WIRE_END_FAILED, x->code, x->text);
    else if (x->cause == EXIT_TIMEOUT)
        task_end(t, WIRE_END_TIMEOUT, x->code, x->text);
    else if (stop != WIRE_END_NONE && (stop_took_effect(t) || x->code == EXIT_CHECKPOINTED))
        task_end(t, stop, x->code, stop_text);
    else if (x->code == 0)
        task_end(t, WIRE_END_SUCCEEDED, 0, "");
    else if (x->code == EXIT_CHECKPOINTED && task_saves(t) && !task_by_criu(t))
        task_end(t, WIRE_END_CHECKPOINTED, x->code, words);
    else
        task_end(t, WIRE_END_FAILED, x->code, *x->text ? x->text : words);
}

/* Exit code 85 says that the checkpoint directory is complete. If the stop already waited for a
 * save (stop_saved), the directory holds nothing newer. */
bool task_wants_final_save(const struct task *t)
{
    bool by_itself = t->supervision.exit.cause == EXIT_BY_ITSELF;
    bool for_stop =
        t->supervision.exit.cause == EXIT_STOPPED && t->ckpt.request.stop && !t->ckpt.stop_saved;
    return t->supervision.exit.code == EXIT_CHECKPOINTED && task_saves(t) && !task_by_criu(t) &&
           !t->ckpt.save.is_final && (by_itself || for_stop);
}

static bool is_over(const struct task *t)
{
    return mono_is_set(t->supervision.hard_at) &&
           clock_mono(t->common->timers->clock).ms >= t->supervision.hard_at.ms;
}

/* As for an attempt that cannot start with its store (task_start.c), a fault that every node would
 * have holds the job at once. */
static enum wire_end end_of_unsaved(const struct task_work *w)
{
    if (!w->e.of_store && w->store_fault == STORE_IS_FINE)
        return WIRE_END_NODE_LOST;
    return w->rc == ERR_CONFIG || w->store_fault == STORE_IS_ANOTHER ? WIRE_END_STORE
                                                                     : WIRE_END_STORE_AWAY;
}

static void end_unsaved(struct task *t)
{
    struct err e = t->work.e;
    err_wrap(&e, "exit code 85, but its checkpoint could not be stored");
    task_end(t, t->ckpt.request.stop ? t->ckpt.request.end : end_of_unsaved(&t->work),
        t->supervision.exit.code, e.text);
}

void task_end_unstored(struct task *t, const struct err *why)
{
    struct err e = *why;
    if (t->supervision.killing || !(t->ckpt.save.is_final || task_wants_final_save(t))) {
        end_as_found(t);
        return;
    }
    err_wrap(&e, "exit code 85, but its checkpoint could not be stored");
    task_end(t, t->ckpt.request.stop ? t->ckpt.request.end : WIRE_END_STORE_AWAY,
        t->supervision.exit.code, e.text);
}

void task_finish(struct task *t)
{
    bool tried = t->ckpt.save.is_final;
    if (task_work_is_busy(&t->work) || t->ckpt.taking.is_busy) {
        task_accept_hasten(t);
        return;
    }
    if (!t->supervision.killing && t->supervision.exit.code == 0 && !is_over(t) &&
        task_accept_is_wanted(t) && task_save_queued(t))
        return;
    if (!t->supervision.killing && t->supervision.exit.code != 0 && !is_over(t)) {
        task_pump_saves(t); /* serves earlier commits */
        if (task_work_is_busy(&t->work))
            return;
        if (tried && t->work.rc != 0 && !t->work.fenced) {
            if (task_save_final(t))
                return;
            end_unsaved(t);
            return;
        }
        if (task_wants_final_save(t) && task_save_final(t))
            return;
    }
    if (!task_clean_last(t))
        end_as_found(t);
}

/* Cancels the restore of a task that has not started, or its wait for the next try: it has nothing
 * to save. */
static void task_hasten(struct task *t)
{
    task_work_cancel(t);
    task_hooks_cancel_prolog(t);
    if (timer_is_running(&t->prep.retry))
        timer_start(t->common->timers, &t->prep.retry, 0);
}

void task_stop(
    struct task *t, enum wire_end end, const char *text, int64_t delay_ms, int64_t grace_ms)
{
    if (t->state.stop == WIRE_END_NONE) {
        t->state.stop = end;
        STR_SHORTEN(t->state.stop_text, text);
        persist_end(t);
        log_info("stopping", log_i("job", t->job), log_i("attempt", t->attempt),
            log_s("end", wire_word_name(wire_end_names, (int)end)));
    }
    if (t->phase == WIRE_RUNNING || t->phase == WIRE_SAVING)
        task_move(t, WIRE_ENDING);
    else if (t->phase != WIRE_ENDING)
        task_hasten(t); /* nothing to save yet */
    supervisor_client_terminate(&t->supervision.client, delay_ms, grace_ms);
    task_changed(t);
}

/* ---- removal ---- */

static void retry_leave(struct task *t, int64_t delay_ms)
{
    timer_start(t->common->timers, &t->leave, delay_ms);
}

static void remove_if_idle(struct task *t)
{
    if (task_is_idle(t))
        t->common->gone(t->common->ctx, t);
    else
        retry_leave(t, IDLE_RETRY_MS);
}

static void on_removed(struct task *t)
{
    if (t->work.rc) {
        task_log(t, "a task's directory could not be removed", &t->work.e);
        retry_leave(t, REMOVE_RETRY_MS);
        return;
    }
    if (t->work.is_spare)
        spares_keep(t->common->spares, t->spec->user, &t->work.spare);
    if (t->spec->needs_secrets || t->state.needs_secrets) /* otherwise the keyring has none */
        keyring_drop(t->dir);
    t->removed = true;
    remove_if_idle(t);
}

/* Keeps the checkpoint directory if another attempt may follow, which can restore most of its files
 * from there. */
static void start_removal(struct task *t)
{
    const struct wire_attempt_status *reported = &t->state.reported;
    bool has_some = t->state.sequence > 0 || reported->restored_attempt > 0;
    t->work.keeps = task_saves(t) && has_some && reported->end != WIRE_END_SUCCEEDED;
    t->work.spare = (struct spare){0};
    if (!task_saves(t) && spares_wants(t->common->spares))
        snprintf(t->work.spare.name, sizeof(t->work.spare.name), SPARE_PREFIX "%lld-%lld",
            (long long)t->job, (long long)t->attempt);
    task_work_start(t, WORK_REMOVE, on_removed);
}

void task_remove(struct task *t)
{
    t->leaving = true;
    timer_stop(t->common->timers, &t->output.report_due);
    log_shipper_stop(&t->output.shipper);
    if (task_work_is_busy(&t->work)) /* removing old checkpoints */
        retry_leave(t, BUSY_RETRY_MS);
    else
        start_removal(t);
}

static void on_leave(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    if (t->removed)
        remove_if_idle(t);
    else
        task_remove(t);
}

void task_init(struct task *t)
{
    timer_init(&t->leave, on_leave, t);
    timer_init(&t->output.report_due, on_report_due, t);
}

void task_forget(struct task *t)
{
    if (t->leaving || t->supervision.killing)
        return;
    if (t->phase == WIRE_ENDED && !t->dir) {
        t->leaving = t->removed = true;
        t->common->gone(t->common->ctx, t);
    } else if (t->phase == WIRE_ENDED && t->output.shipper.started) {
        t->leaving = true;
        log_shipper_finish(&t->output.shipper);
    } else if (t->phase == WIRE_ENDED) {
        task_remove(t);
    } else {
        log_info("belayd has dropped this attempt: killing it", log_i("job", t->job),
            log_i("attempt", t->attempt));
        t->supervision.killing = true;
        task_hasten(t);
        supervisor_client_kill(&t->supervision.client);
    }
}

/* ---- what belayd wants ---- */

static void drop_acked(struct task *t, int64_t acked)
{
    struct wire_attempt_status *reported = &t->state.reported;
    size_t n = 0;
    while (n < reported->n_checkpoints && reported->checkpoints[n].sequence <= acked)
        n++;
    reported->n_checkpoints -= n;
    memmove(reported->checkpoints, reported->checkpoints + n,
        reported->n_checkpoints * sizeof(*reported->checkpoints));
}

/* Puts the secrets into the kernel's keyring, where a restarted agent finds them. */
static void keep_secrets(struct task *t, const struct wire_secrets *s)
{
    struct err e;
    if (keyring_put(t->dir, s, clock_wall(t->common->timers->clock), &e) != 0 &&
        t->secrets.version == 0)
        log_warn("a restarted agent will need belayd before it can save this attempt",
            log_i("job", t->job), log_i("attempt", t->attempt), log_err(&e));
}

/* They are in the files of the task now, or it does not start. */
void task_drop_job_secrets(struct task *t)
{
    struct wire_secrets of_job = {.of_job = t->secrets.of_job, .n_of_job = t->secrets.n_of_job};
    t->secrets.of_job = NULL;
    t->secrets.n_of_job = 0;
    wire_secrets_wipe(&of_job);
}

void task_take_secrets(struct task *t, const struct wire_secrets *s)
{
    if (s->version == 0 || s->version == t->secrets.version)
        return;
    if (t->dir)
        keep_secrets(t, s);
    wire_secrets_wipe(&t->secrets);
    wire_secrets_copy(s, &t->secrets);
    if (t->state.prepared || t->phase == WIRE_ENDED)
        task_drop_job_secrets(t);
    if (s->store_token) {
        t->net = t->net ? t->net : store_credentials_create_of_job();
        store_credentials_give_job(t->net, t->common->peer->id->node.store, s);
    }
    if (!t->state.needs_secrets) {
        t->state.needs_secrets = true;
        /* before it is prepared, the directory may not exist; spec.json has the flag too */
        if (t->state.prepared)
            task_persist(t);
    }
    task_work_secrets(t);
}

void task_desired(struct task *t, const struct wire_desired_attempt *d)
{
    task_take_secrets(t, &d->secrets);
    if (t->state.reported.n_checkpoints > 0)
        drop_acked(t, d->acked_sequence);
    task_set_every(t, d->ckpt_every_ms);
    task_set_limit(t, d->limit_ms);
    if (d->want == WIRE_RUN && t->phase != WIRE_ENDED && !t->supervision.killing)
        task_request_user_save(t, d->saves_asked);
    if (d->gang_ended &&
        t->supervision.exited) /* accepted commits would wait for the ended rank for ever */
        task_leave_gang(t);
    if (d->want == WIRE_RUN || t->phase == WIRE_ENDED || t->supervision.killing)
        return;
    const enum wire_end end = task_end_of(d->reason);
    if (d->want == WIRE_SAVE_STOP)
        task_save_and_stop(t, end, "stopped by belayd", d->stop_by);
    else
        task_leave_gang(t);
    if (d->want == WIRE_STOP && t->state.stop == WIRE_END_NONE)
        task_stop(t, end, "stopped by belayd", 0, d->kill_wait_ms);
}

/* ---- queries ---- */

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

bool task_is_here(const struct task *t)
{
    /* prepared or is_damaged without is_admitted: taken over from an earlier agent */
    bool has_begun = t->prep.is_admitted || t->state.prepared || t->is_damaged;
    return has_begun && !t->supervision.exited && t->phase != WIRE_ENDED;
}

const struct wire_desired_attempt *task_spec(const struct task *t)
{
    return t->spec;
}

/* GPUS_ALL if the task's GPUs are unknown: an agent that allots none started it, or its record is
 * damaged. */
const char *task_gpus(const struct task *t)
{
    if (!task_is_here(t))
        return "";
    bool unknown = t->is_damaged || (t->state.prepared && t->spec->gpus > 0 && !*t->state.gpus);
    return unknown ? GPUS_ALL : t->state.gpus;
}

bool task_is_prepared(const struct task *t)
{
    return t->state.prepared;
}

bool task_is_leaving(const struct task *t)
{
    return t->leaving || t->supervision.killing;
}

struct link *task_link(struct task *t)
{
    return &t->in_agent;
}

struct task *task_of_link(struct link *n)
{
    return LIST_ENTRY(n, struct task, in_agent);
}

void task_read_usage(struct task *t)
{
    task_supervision_read_usage(
        &t->supervision, clock_mono(t->common->timers->clock), &t->state.reported.usage);
}

bool task_probe(const struct task *t, struct probe_of *ret_of)
{
    *ret_of = (struct probe_of){.files = t->supervision.usage,
        .init_pid = t->supervision.init_pid,
        .init_ticks = t->supervision.init_ticks,
        .waited_ms = control_read_waited(&t->ckpt.control)};
    return !t->supervision.exited && mono_is_set(t->supervision.usage_at);
}

void task_status(struct task *t, struct wire_attempt_status *s)
{
    *s = t->state.reported;
    s->phase = (enum wire_phase)t->phase;
    if (t->phase == WIRE_ENDED && !t->output.end_reported) {
        s->phase = WIRE_ENDING;
        s->end = WIRE_END_NONE;
    }
    s->output_bytes = log_shipper_output_bytes(&t->output.shipper);
    s->secrets = t->secrets.version;
}

bool task_tail(struct task *t, struct wire_tail *ret)
{
    size_t n;
    int64_t offset;
    char *rest = t->phase == WIRE_ENDED && t->output.end_reported
                     ? log_shipper_rest(&t->output.shipper, WIRE_TAIL_MAX, &offset, &n)
                     : NULL;
    if (!rest)
        return false;
    *ret = (struct wire_tail){
        .job = t->job, .attempt = t->attempt, .offset = offset, .hex = mem_alloc(2 * n + 1)};
    str_hex(rest, n, ret->hex);
    free(rest);
    return true;
}

int task_shell(struct task *t, int fd)
{
    return supervisor_client_shell(&t->supervision.client, fd);
}

/* ---- detaching ---- */

void task_release(struct task *t)
{
    t->released = true;
    task_hooks_release(t);
    task_work_cancel(t);
    atomic_store(&t->ckpt.taking.cancel, 1);
    timer_stop(t->common->timers, &t->prep.retry);
    timer_stop(t->common->timers, &t->prep.hang_check);
    timer_stop(t->common->timers, &t->ckpt.linger);
    timer_stop(t->common->timers, &t->supervision.deadline);
    timer_stop(t->common->timers, &t->leave);
    timer_stop(t->common->timers, &t->output.report_due);
    task_saves_end(t);
    supervisor_client_stop(&t->supervision.client);
    log_shipper_stop(&t->output.shipper);
}

static bool is_idle_but_for_work(const struct task *t)
{
    return !t->ckpt.taking.is_busy && !t->hooks.run && log_shipper_is_idle(&t->output.shipper);
}

bool task_is_idle(const struct task *t)
{
    return !task_work_is_busy(&t->work) && is_idle_but_for_work(t);
}

bool task_is_on_store(const struct task *t)
{
    return task_work_is_busy(&t->work) && task_work_uses_store(t) && is_idle_but_for_work(t);
}

void task_free(struct task *t)
{
    if (!t)
        return;
    task_checkpointer_deinit(&t->ckpt);
    wire_desired_deinit(&t->own);
    wire_secrets_wipe(&t->secrets);
    store_net_destroy(t->net);
    record_deinit_state(&t->state);
    free(t->dir);
    free(t->output.path);
    free(t->state_path);
    free(t);
}
