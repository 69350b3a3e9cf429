/* SPDX-License-Identifier: Apache-2.0
 *
 * The start of an attempt on this node: created for belayd or taken over from an earlier agent,
 * prepared (directory made, checkpoint restored) and given to a supervisor.
 */
#include "agent/task/task_private.h"
#include "agent/keyring.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREPARE_MS 300000    /* how long an unreachable store is retried */
#define STORE_WAIT_MS 600000 /* unless belayd says otherwise */
#define REFUSED_PART 5       /* divisor of that wait, when the store answers with a refusal */
#define STORE_MS 15000       /* how long a missing store is waited for: a mount may be late */
#define RETRY_BASE_MS 1000
#define JUST_NOW_MS 1000 /* of a task started less than this ago, all processor time is counted */
#define RETRY_CAP_MS 30000

static void prepare(struct task *t);

/* True while CRIU restores the task, before it runs. */
static bool is_resuming(const struct task *t)
{
    return task_by_criu(t) && t->state.reported.restored_attempt > 0 &&
           t->state.reported.started_at == WIRE_NONE;
}

static void note_start(struct task *t)
{
    if (is_resuming(t) || mono_is_set(t->supervision.usage_at)) /* already known */
        return;
    struct task_start start;
    struct err e;
    char *path = mem_printf("%s/supervisor.pid", t->dir);
    if (record_read_start(path, &start, &e) == 0) {
        t->state.reported.started_at = start.started_at;
        t->supervision.usage = start.usage;
        t->supervision.init_pid = start.init_pid;
        t->supervision.init_ticks = start.init_ticks;
        t->supervision.usage_at = clock_mono(t->common->timers->clock);
        t->supervision.usage_cpu_ms =
            clock_wall(t->common->timers->clock).ms - start.started_at < JUST_NOW_MS ? 0 : -1;
    }
    free(path);
}

/* Tries the previous checkpoint on this node: nothing says that another node could restore the
 * newest. Without a previous one the job is held (check_restored). */
static void try_older(struct task *t)
{
    static const char *const left[] = {"exit.json", "supervisor.pid", "ctl.sock"};
    struct wire_attempt_status *reported = &t->state.reported;
    char *path;
    log_warn("CRIU could not restore a job", log_i("job", t->job), log_i("attempt", t->attempt),
        log_s("why", t->supervision.exit.text));
    t->state.refused_attempt = reported->restored_attempt;
    t->state.refused_sequence = reported->restored_sequence;
    reported->failed_saves++;
    reported->failed_restores++;
    snprintf(reported->restore_error, sizeof(reported->restore_error),
        "checkpoint %lld.%lld cannot be resumed here: %.200s",
        (long long)reported->restored_attempt, (long long)reported->restored_sequence,
        t->supervision.exit.text);
    STR_COPY(reported->save_error, reported->restore_error);
    reported->restored_attempt = reported->restored_sequence = 0;
    t->state.prepared = false;
    task_persist(t);
    supervisor_client_stop(&t->supervision.client);
    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
        path = mem_printf("%s/%s", t->dir, left[i]);
        unlink(path);
        free(path);
    }
    t->supervision.exited = t->supervision.has_exit = false;
    t->supervision.exit = (struct task_exit){0};
    t->supervision.usage_at = MONO_NONE;
    task_changed(t);
    prepare(t);
}

/* Ends an attempt that has not run, because another node may have space. of_records: there is none
 * for the agent's records either, not only for the job's files. */
static void end_for_space(struct task *t, bool of_records, const char *why)
{
    t->common->disk_refused(t->common->ctx, of_records, why);
    task_end(t, WIRE_END_CAPACITY, 0, why);
}

static void on_ended(void *ctx, const struct err *e)
{
    struct task *t = ctx;
    char *path = mem_printf("%s/exit.json", t->dir);
    struct err why;
    int rc = e ? e->kind : record_read_exit(path, &t->supervision.exit, &why);
    t->supervision.has_exit = rc == 0;
    free(path);
    t->supervision.is_up = false;
    t->supervision.exited = true;
    note_start(t);
    task_saves_end(t);
    if (!rc && t->supervision.exit.cause == EXIT_NO_RESTORE && is_resuming(t) &&
        !t->supervision.killing && t->state.stop == WIRE_END_NONE) {
        try_older(t);
        return;
    }
    if (rc) {
        task_log(t, "a task's end is unknown", e ? e : &why);
        t->supervision.exit = (struct task_exit){.cause = EXIT_LOST, .code = 137};
        STR_SHORTEN(t->supervision.exit.text, e ? e->text : why.text);
    }
    if (e && rc == ERR_NO_SPACE && t->state.stop == WIRE_END_NONE && !t->supervision.killing) {
        end_for_space(t, true, e->text);
        return;
    }
    task_finish(t);
}

/* ---- running ---- */

static void runs(struct task *t)
{
    note_start(t);
    if (t->phase == WIRE_STARTING || t->phase == WIRE_RESTORING)
        task_move(t, WIRE_RUNNING);
    task_saves_begin(t);
}

static void on_ready(void *ctx)
{
    struct task *t = ctx;
    if (!is_resuming(t))
        return;
    t->state.reported.started_at = clock_wall(t->common->timers->clock).ms;
    task_persist(t);
    runs(t);
    task_changed(t);
}

static void on_up(void *ctx)
{
    struct task *t = ctx;
    t->supervision.is_up = true;
    task_send_limit(t);
    if (is_resuming(t))
        supervisor_client_await_ready(&t->supervision.client);
    else
        runs(t);
    if (t->supervision.killing)
        supervisor_client_kill(&t->supervision.client);
    else if (t->state.stop != WIRE_END_NONE)
        task_stop(t, t->state.stop, t->state.stop_text, 0, t->spec->kill_wait_ms);
    task_changed(t);
}

static void on_signalled(void *ctx, int count)
{
    task_signalled(ctx, count);
}

static void start_supervisor(struct task *t, bool is_new)
{
    const struct task_common *r = t->common;
    control_open(&t->ckpt.control, t->dir);
    task_write_notice(t);
    t->supervision.client = (struct supervisor_client){.loop = r->loop,
        .timers = r->timers,
        .supervisors = r->supervisors,
        .dir = t->dir,
        .node = r->peer->id->node.name,
        .is_new = is_new,
        .up = on_up,
        .signalled = on_signalled,
        .ready = on_ready,
        .ended = on_ended,
        .ctx = t};
    supervisor_client_start(&t->supervision.client);
}

static void on_flushed(void *ctx)
{
    task_remove(ctx);
}

static void start_shipper(struct task *t, bool is_new)
{
    const struct task_common *r = t->common;
    t->output.shipper = (struct log_shipper){.watches = r->watches,
        .timers = r->timers,
        .prng = r->prng,
        .peer = r->peer,
        .job = t->job,
        .attempt = t->attempt,
        .path = t->output.path,
        .flushed = on_flushed,
        .moved = task_shipped,
        .ctx = t};
    log_shipper_start(&t->output.shipper, is_new);
}

/* ---- preparing ---- */

static void try_again(struct task *t)
{
    timer_start(t->common->timers, &t->prep.retry,
        prng_backoff_ms(t->common->prng, t->prep.tries++, RETRY_BASE_MS, RETRY_CAP_MS));
}

int64_t task_store_wait_ms(const struct task *t)
{
    return t->spec->store_wait_ms > 0 ? t->spec->store_wait_ms : STORE_WAIT_MS;
}

/* Retries for store_wait, or for 1/REFUSED_PART of it if the store refuses. Then a fault that every
 * node would have holds the job (STORE); any other moves it to another node (STORE_AWAY). */
static void store_failed(struct task *t)
{
    struct wire_attempt_status *reported = &t->state.reported;
    const struct err *e = &t->work.e;
    const int64_t now = clock_mono(t->common->timers->clock).ms;
    bool is_answer = t->work.rc == ERR_CONFIG || t->work.rc == ERR_DENIED;
    const int64_t wait_ms = task_store_wait_ms(t);
    char text[ERR_TEXT_MAX + 64], took[32];
    if (!mono_is_set(t->prep.store_since))
        t->prep.store_since.ms = now;
    reported->store_tries++;
    if (task_cause(reported->store_error) != task_cause(e->text))
        STR_SHORTEN(reported->store_error, e->text);
    task_log(t, "an attempt cannot use the store of its checkpoints", e);
    if (now - t->prep.store_since.ms < wait_ms / (is_answer ? REFUSED_PART : 1)) {
        try_again(t);
        task_changed(t);
        return;
    }
    time_format_duration(now - t->prep.store_since.ms, took, sizeof(took));
    snprintf(text, sizeof(text), "tried %lld times in %s: %s", (long long)reported->store_tries,
        took, e->text);
    task_end(t, t->work.rc == ERR_CONFIG ? WIRE_END_STORE : WIRE_END_STORE_AWAY, 0, text);
}

/* A directory may be mounted shortly after the agent has started. */
static bool may_appear(struct task *t)
{
    int64_t now = clock_mono(t->common->timers->clock).ms;
    if (t->work.store_fault != STORE_IS_MISSING)
        return false;
    if (!mono_is_set(t->prep.store_until))
        t->prep.store_until.ms =
            now + (task_store_wait_ms(t) < STORE_MS ? task_store_wait_ms(t) : STORE_MS);
    return now < t->prep.store_until.ms;
}

/* A missing store may be a mount that only this node lacks: the job is tried on another node
 * (STORE_AWAY). A fault that every node would have holds the job at once (STORE). No job starts
 * from scratch unless its user requests it. */
static void end_for_store(struct task *t)
{
    static const char *const cures[] = {
        [STORE_IS_MISSING] = "mount it on this node, or restore it",
        [STORE_IS_ANOTHER] = "fix it, then belay release %s; or submit the job again",
        [STORE_HAS_LOST_IT] =
            "restore it, then belay release %s (with --from-scratch: begin again)",
        [STORE_IS_DAMAGED] = "belay release --from-scratch %s begins again",
        [STORE_IS_REFUSED] = "fix that, then belay release %s (--from-scratch: begin again)",
    };
    const struct wire_desired_attempt *s = t->spec;
    char cure[96], text[256], job[36];
    const bool is_here = t->work.store_fault == STORE_IS_MISSING;
    if (s->array > 0)
        snprintf(job, sizeof(job), "%lld_%lld", (long long)s->array, (long long)s->array_index);
    else
        snprintf(job, sizeof(job), "%lld", (long long)t->job);
    snprintf(cure, sizeof(cure), cures[t->work.store_fault], job);
    str_shorten(text, sizeof(text) - strlen(cure) - 2, t->work.e.text);
    size_t n = strlen(text);
    snprintf(text + n, sizeof(text) - n, ": %s", cure);
    task_log(t, "an attempt cannot use the store", &t->work.e);
    task_end(t, is_here ? WIRE_END_STORE_AWAY : WIRE_END_STORE, 0, text);
}

static void prepare_failed(struct task *t)
{
    const struct err *e = &t->work.e;
    if (t->supervision.killing || t->state.stop != WIRE_END_NONE) {
        task_end(t, t->state.stop, 0, t->state.stop_text);
    } else if (t->work.is_unsealed) {
        task_end(t, WIRE_END_STORE, 0, e->text);
    } else if (t->work.store_fault != STORE_IS_FINE && !may_appear(t)) {
        end_for_store(t);
    } else if (t->work.store_failed) {
        store_failed(t);
    } else if (t->work.rc == ERR_CONFIG) {
        t->state.reported.user_refused = t->work.user_refused;
        task_end(t, WIRE_END_FAILED, 126, e->text);
    } else if (t->work.rc == ERR_NO_SPACE) {
        end_for_space(t, t->work.of_records, e->text);
    } else if (t->work.fenced ||
               clock_mono(t->common->timers->clock).ms >= t->prep.prepare_until.ms) {
        task_end(t, WIRE_END_NODE_LOST, 0, e->text);
    } else {
        task_log(t, "an attempt could not be prepared, trying again", e);
        try_again(t);
    }
}

/* ---- prepared ---- */

static void note_restored(struct task *t)
{
    const struct ckpt_restored *r = &t->work.restored;
    struct wire_attempt_status *reported = &t->state.reported;
    reported->store_tries = 0;
    reported->store_error[0] = '\0';
    t->prep.store_since = MONO_NONE;
    reported->restored_attempt = r->id.attempt;
    reported->restored_sequence = r->id.sequence;
    reported->restored_progress = r->id.attempt == 0 || r->progress < 0 ? WIRE_NONE : r->progress;
    reported->restore_ms = r->stats.took_ms;
    reported->damaged = r->damaged;
    reported->restored_bytes = r->stats.bytes;
    reported->reused_bytes = r->stats.reused_bytes;
    if (r->damaged)
        log_warn("damaged checkpoints were set aside", log_i("job", t->job),
            log_i("number", r->damaged), log_s("why", r->damage));
}

/* Whether the task's initial state holds more than its spec. If not, no state is written, and
 * supervisor.pid shows that the task is prepared. */
static bool task_needs_state(const struct task *t)
{
    const struct task_state *s = &t->state;
    return task_saves(t) || *t->spec->workdir || *s->gpus || s->gpu_maker != GPU_MAKER_NONE ||
           s->stop != WIRE_END_NONE || s->limit_ms != 0 || s->needs_secrets ||
           t->spec->needs_secrets;
}

static void on_prepared(struct task *t)
{
    if (t->supervision.killing || t->work.rc || t->state.stop != WIRE_END_NONE) {
        prepare_failed(t);
        return;
    }
    note_restored(t);
    t->state.prepared = true;
    task_drop_job_secrets(t);
    if (task_needs_state(t))
        task_persist(t);
    if (!t->output.shipper.started)
        start_shipper(t, true);
    start_supervisor(t, true);
}

static bool admit(struct task *t)
{
    struct err e;
    int rc = t->prep.is_admitted ? 0 : t->common->admit(t->common->ctx, t, &t->state, &e);
    t->prep.is_admitted = rc == 0;
    if (rc) {
        t->work.rc = rc;
        t->work.e = e;
        t->work.fenced = t->work.store_failed = false;
    }
    return rc == 0;
}

static void on_prolog(struct task *t, const char *why)
{
    if (t->supervision.killing || t->state.stop != WIRE_END_NONE) {
        task_end(t, t->state.stop, 0, t->state.stop_text);
    } else if (why) {
        t->common->node_faulty(t->common->ctx, why);
        task_end(t, WIRE_END_CAPACITY, 0, why);
    } else {
        prepare(t);
    }
}

static void prepare(struct task *t)
{
    if (!admit(t)) {
        prepare_failed(t);
        return;
    }
    if (task_hooks_prolog(t, on_prolog))
        return;
    if (task_saves(t))
        task_move(t, WIRE_RESTORING);
    t->work.spare = (struct spare){0};
    if (!task_saves(t))
        spares_take(t->common->spares, t->spec->user, &t->work.spare);
    task_work_start(t, WORK_PREPARE, on_prepared);
}

static void on_retry(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    if (t->state.stop != WIRE_END_NONE || t->supervision.killing)
        prepare_failed(t);
    else
        prepare(t);
}

void task_retry_store(struct task *t)
{
    if (!t->prep.is_admitted && timer_is_running(&t->prep.retry))
        timer_start(t->common->timers, &t->prep.retry, 0);
}

/* ---- creation ---- */

static struct task *make(const struct task_common *common, int64_t job, int64_t attempt)
{
    struct task *t = mem_alloc(sizeof(*t));
    t->common = common;
    t->job = job;
    t->attempt = attempt;
    control_init(&t->ckpt.control);
    t->supervision.client.dirfd = -1;
    t->supervision.hard_at = MONO_NONE;
    t->prep.store_since = MONO_NONE;
    t->supervision.usage_at = MONO_NONE;
    t->prep.store_until = MONO_NONE;
    t->ckpt.final_until = MONO_NONE;
    t->ckpt.save_took_ms = -1;
    t->own.attempts = mem_alloc(sizeof(*t->own.attempts));
    t->own.n_attempts = 1;
    t->spec = &t->own.attempts[0];
    record_init_state(&t->state, job, attempt);
    timer_init(&t->prep.retry, on_retry, t);
    task_init(t);
    task_work_init(t);
    task_accept_init(t);
    task_notice_init(t);
    task_saves_init(t);
    task_store_hang_init(t);
    return t;
}

static void set_paths(struct task *t)
{
    t->dir = mem_printf("%s/%lld-%lld", t->common->dir, (long long)t->job, (long long)t->attempt);
    t->ckpt.dir = mem_printf("%s/checkpoint", t->dir);
    t->output.path = mem_printf("%s/output.log", t->dir);
    t->state_path = mem_printf("%s/state.json", t->dir);
    t->output.shipper.path = t->output.path;
}

/* Copies by a round trip through the wire format, so that the copy equals what would be read back.
 * Secrets are left out, except the job's token, which is written to its files. */
static void copy_spec(struct task *t, const struct wire_desired_attempt *d)
{
    struct wire_desired_attempt one = *d;
    struct wire_desired whole = {.rev = 1, .lease_ms = 1, .attempts = &one, .n_attempts = 1};
    struct buf text = {0};
    struct err e;
    one.secrets = (struct wire_secrets){0};
    wire_desired_encode(&whole, &text);
    wire_desired_deinit(&t->own);
    int rc = wire_desired_decode(text.data, text.len, &t->own, &e);
    assert(rc == 0);
    t->spec = &t->own.attempts[0];
    buf_wipe(&text);
}

static struct task *make_ended(const struct task_common *common,
    const struct wire_desired_attempt *d, enum wire_end end, const char *text)
{
    struct task *t = make(common, d->job, d->attempt);
    t->phase = WIRE_ENDED;
    t->output.end_reported = true;
    t->state.reported.end = end;
    STR_SHORTEN(t->state.reported.text, text);
    return t;
}

struct task *task_create(const struct task_common *common, const struct wire_desired_attempt *d)
{
    if (d->want != WIRE_RUN)
        return make_ended(common, d, task_end_of(d->reason), "it had not started");
    if (!d->script)
        return make_ended(common, d, WIRE_END_NODE_LOST, "its node has no record of it");
    if (common->notice->kind == NOTICE_RECLAIM)
        return make_ended(
            common, d, WIRE_END_RECLAIMED, "its node was being reclaimed before it started");
    struct task *t = make(common, d->job, d->attempt);
    copy_spec(t, d);
    set_paths(t);
    task_take_secrets(t, &d->secrets);
    t->prep.prepare_until.ms = clock_mono(common->timers->clock).ms + PREPARE_MS;
    log_info("attempt starts", log_i("job", t->job), log_i("attempt", t->attempt));
    prepare(t);
    return t;
}

/* ---- taking over from an earlier agent ---- */

/* The other ranks have continued: the commit that the program waits for is answered, not saved
 * again. */
static void answer_gang(struct task *t)
{
    const struct control_answer a = {.attempt = t->attempt, .sequence = t->work.found.sequence};
    int64_t k;
    if (t->state.sequence < a.sequence)
        t->state.sequence = a.sequence;
    if (t->ckpt.control.fd >= 0 && t->state.saving_commit &&
        control_next_commit(&t->ckpt.control, &k) == CONTROL_COMMIT && k == t->state.saving_commit)
        control_answer(&t->ckpt.control, k, &a);
}

/* Answers the commits that the previous agent had accepted. stored: the number of its last save; 0
 * if that is not known to be stored. */
static void settle(struct task *t, int64_t stored)
{
    t->ckpt.is_unsettled = false;
    if (t->ckpt.control.fd >= 0)
        control_settle(&t->ckpt.control, t->attempt, stored);
}

/* Counts a save that was begun by the previous agent as lost, when the store does not answer. Not
 * in a gang: the other ranks depend on whether it is stored. */
void task_settle_lost(struct task *t)
{
    if (!t->ckpt.is_unsettled || task_is_gang(t))
        return;
    settle(t, 0);
    task_pump_saves(t);
}

/* A save begun by the previous agent may have been stored: then it must be reported. */
static void on_found(struct task *t)
{
    t->state.saving = false;
    if (t->ckpt.is_unsettled)
        settle(t, t->work.rc == 0 ? t->work.found.sequence : 0);
    if (t->work.rc == 0 && t->work.found.sequence > 0) {
        struct wire_attempt_status *reported = &t->state.reported;
        if (!reported->checkpoints)
            reported->checkpoints = mem_array(WIRE_CHECKPOINTS_MAX, sizeof(*reported->checkpoints));
        if (reported->n_checkpoints < WIRE_CHECKPOINTS_MAX) {
            reported->checkpoints[reported->n_checkpoints] = t->work.found;
            reported->checkpoints[reported->n_checkpoints++].cause = WIRE_CAUSE_PROGRAM;
        }
        t->state.last_saved_at = t->work.found.saved_at;
        if (task_is_gang(t))
            answer_gang(t);
    }
    task_persist(t);
    task_changed(t);
    if (t->supervision.exited)
        task_finish(t);
    else
        task_pump_saves(t);
}

static void resume(struct task *t)
{
    log_info("attempt taken over", log_i("job", t->job), log_i("attempt", t->attempt));
    if (t->state.reported.end != WIRE_END_NONE) {
        t->phase = WIRE_ENDED;
        t->supervision.exited = true;
        start_shipper(t, false);
        task_report_end(t);
    } else if (!t->state.prepared) {
        t->prep.prepare_until.ms = clock_mono(t->common->timers->clock).ms + PREPARE_MS;
        timer_start(
            t->common->timers, &t->prep.retry, 0); /* once the other tasks' GPUs are known */
    } else {
        t->phase = is_resuming(t) ? WIRE_RESTORING : WIRE_RUNNING;
        start_shipper(t, false);
        control_open(&t->ckpt.control, t->dir);
        if (t->state.saving && task_saves(t)) {
            t->work.sequence =
                t->state.saving_sequence ? t->state.saving_sequence : t->state.sequence;
            t->ckpt.is_unsettled = true;
            task_work_start(t, WORK_FIND, on_found);
        } else {
            settle(t, 0);
        }
        start_supervisor(t, false); /* does not wait for the store */
    }
}

/* Grows the decoded array of checkpoints to its full size, so that more can be added. */
static void grow_checkpoints(struct wire_attempt_status *reported)
{
    if (reported->checkpoints)
        reported->checkpoints =
            mem_resize(reported->checkpoints, WIRE_CHECKPOINTS_MAX, sizeof(*reported->checkpoints));
}

/* Whether a task with a spec and without a state is prepared: the previous agent had no state to
 * write, or was killed before. If unsure, the task is prepared again, which changes nothing that a
 * supervisor may be about to start (task_work.c). */
static bool has_had_supervisor(const struct task *t)
{
    return record_exists(t->dir, "supervisor.pid");
}

static int read_records(struct task *t, struct err *e)
{
    struct task_state state;
    struct wire_desired spec;
    char *path = mem_printf("%s/spec.json", t->dir);
    int rc = record_read_spec(path, &spec, e);
    free(path);
    if (rc == ERR_INVALID && !fs_exists(t->state_path) && !has_had_supervisor(t))
        return ERR_NOT_FOUND; /* the previous agent was killed while writing it */
    if (rc)
        return rc;
    wire_desired_deinit(&t->own);
    t->own = spec;
    t->spec = &t->own.attempts[0];
    rc = record_read_state(t->state_path, &state, e);
    if (!rc) {
        grow_checkpoints(&state.reported);
        t->state = state;
        t->has_state = true;
    }
    if (rc == ERR_NOT_FOUND)
        t->state.prepared = has_had_supervisor(t);
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

/* Takes the secrets that the previous agent left; otherwise, and before a start, belayd sends them
 * again. */
static void find_secrets(struct task *t)
{
    struct wire_secrets s = {0};
    struct err e;
    if (t->spec->has_job_secrets && !t->state.prepared)
        return; /* the keyring has no secrets of jobs */
    if (keyring_get(t->dir, clock_wall(t->common->timers->clock), &s, &e) == 0)
        task_take_secrets(t, &s);
    wire_secrets_wipe(&s);
}

struct task *task_adopt(const struct task_common *common, const char *name)
{
    long long job, attempt;
    int used = 0;
    struct err e;
    if (sscanf(name, "%lld-%lld%n", &job, &attempt, &used) != 2 || name[used] || job < 1 ||
        attempt < 1)
        return NULL;
    struct task *t = make(common, job, attempt);
    set_paths(t);
    int rc = read_records(t, &e);
    if (rc == ERR_NOT_FOUND) { /* no spec: its preparation was not completed */
        keyring_drop(t->dir);
        fs_remove_tree(t->dir, &e);
        task_free(t);
        return NULL;
    }
    if (rc) {
        task_log(t, "a task's records are damaged", &e);
        t->phase = WIRE_RUNNING;
        t->is_damaged = true;
        t->state.stop = WIRE_END_NODE_LOST;
        STR_SHORTEN(t->state.stop_text, e.text);
        start_supervisor(t, false);
    } else {
        if (t->spec->needs_secrets || t->state.needs_secrets)
            find_secrets(t);
        resume(t);
    }
    return t;
}
