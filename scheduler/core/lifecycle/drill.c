/* SPDX-License-Identifier: Apache-2.0
 *
 * Drills: a running attempt is stopped like by a reclaim, its job is requeued, and the resumed
 * state is compared with the saved one (states: types.h). Nothing else happens to the job than in
 * normal operation, so an interrupted drill leaves a job that continues.
 *
 *  with notice       save, then stop: the checkpoint of that save must be resumed
 *  without notice    stop at once: the newest earlier checkpoint must be resumed
 *
 * The drill PASSED when the next attempt has resumed from that checkpoint (the agent has verified
 * every byte of it) and
 *  - reports progress, or saves at one, that is not behind the checkpoint's; or
 *  - if the checkpoint has no progress: has saved again, succeeded, or run for SETTLE_MS.
 * It FAILED when the attempt did not save, resumed from another checkpoint, reported a step before
 * the checkpoint's, ended with a failure, or reported nothing for PROGRESS_MS; or if its user
 * compared the job's result with that of an undisturbed job and they differ. That comparison runs
 * outside belay; its verdict arrives as an event. Any other end of an attempt before that
 * INTERRUPTED the drill, which gives no information about the program.
 *
 * Invariants: a drill in progress is its job's only one, and its job has not ended. It is
 * DRILL_STOPPING exactly while the attempt that it names lives. At most DRILLS_LIVE_MAX are in
 * progress, so that scanning all of them is cheap.
 */
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/avoid.h"

#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdlib.h>

/* Automatic drills: after a save, or this long after a start with progress, */
#define AUTO_PROGRESS_MS SECONDS_MS(60)
#define AUTO_START_MS SECONDS_MS(600) /* or this long after a start */
#define AVOID_NODE_MS SECONDS_MS(600) /* after that, the former node may be used again */
#define PLACE_MS SECONDS_MS(3600)     /* after that, the measured time is not representative */
#define SETTLE_MS SECONDS_MS(30)
#define PROGRESS_MS SECONDS_MS(1800)

/* ---- state changes ---- */

static void drill_note(struct model *m, const struct drill *d)
{
    *ADD_ROW(m, drills) = d->row;
}

static void drill_move(struct drill *d, enum drill_state to)
{
    int state = (int)d->row.state;
    sm_move(&drill_sm, d->row.job, &state, (int)to);
    d->row.state = (enum drill_state)state;
}

static void stop_avoiding(struct model *m, struct drill *d)
{
    d->row.avoids = false;
    avoid_end(m, d->job);
}

static void drill_link(struct model *m, struct drill *d, struct job *j)
{
    d->job = j;
    job_make_side(j)->drill = d;
    list_push_back(&m->lifecycle.live_drills, &d->in_live);
}

static void drill_free(struct drill *d)
{
    d->job->side->drill = NULL;
    link_remove(&d->in_live);
    free(d);
}

/* Appends to the list, which is thus ordered by start, or after a load by job number. */
static void wait_to_be_drilled(struct model *m, struct attempt *a)
{
    if (a->job->row.spec.drill_tries > 0 && !job_side(a->job)->drill &&
        a->row.state == ATTEMPT_RUNNING && wall_is_set(a->row.started_at) &&
        !link_is_in(&a->undrilled))
        list_push_back(&m->lifecycle.undrilled, &a->undrilled);
}

static void conclude(struct model *m, struct drill *d, struct stamp now, enum drill_state how,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Ends the drill with this result and frees it. */
static void conclude(
    struct model *m, struct drill *d, struct stamp now, enum drill_state how, const char *fmt, ...)
{
    static const char *const kinds[] = {[DRILL_PASSED] = "drill-passed",
        [DRILL_FAILED] = "drill-failed",
        [DRILL_INTERRUPTED] = "drill-interrupted"};
    struct job *j = d->job;
    va_list ap;
    va_start(ap, fmt);
    text_vformat(d->row.text, sizeof d->row.text, fmt, ap);
    va_end(ap);
    stop_avoiding(m, d);
    drill_move(d, how);
    d->row.ended_at = now.wall;
    drill_note(m, d);
    history(m, now, kinds[how],
        (struct history_of){.job = j, .a = d->row.number, .b = d->row.resume_ms}, "%s",
        d->row.text);
    if (how != DRILL_INTERRUPTED)
        certificate_note(m, &d->row);
    if (j->row.spec.drill_tries > 0)
        j->row.spec.drill_tries = how == DRILL_INTERRUPTED ? j->row.spec.drill_tries - 1 : 0;
    touch_job(m, j);
    drill_free(d);
    if (job_attempt(j))
        wait_to_be_drilled(m, job_attempt(j));
}

static int64_t since_kill_ms(const struct drill *d, struct stamp now)
{
    int64_t ms = now.wall.ms - d->row.killed_at.ms;
    return ms > 0 ? ms : 1; /* the wall clock may be set back; 0 means "not yet" */
}

static void conclude_passed(struct model *m, struct drill *d, struct stamp now)
{
    const struct drill_row *r = &d->row;
    char took[32], saved[32], bytes[32], at[48] = "", lost[64];
    time_format_duration(r->resume_ms, took, sizeof took);
    time_format_duration(r->save_ms, saved, sizeof saved);
    str_format_bytes((uint64_t)r->bytes, bytes, sizeof bytes);
    if (r->progress != PROGRESS_NONE)
        text_format(at, sizeof at, " at step %" PRId64, r->progress);
    if (r->lost_steps != PROGRESS_NONE) {
        text_format(
            lost, sizeof lost, "%" PRId64 " step%s", r->lost_steps, r->lost_steps == 1 ? "" : "s");
    } else {
        char ms[32];
        time_format_duration(r->lost_ms, ms, sizeof ms);
        text_format(lost, sizeof lost, "%s of work", ms);
    }
    conclude(m, d, now, DRILL_PASSED,
        "resumes in %s%s, loses %s: %s, saved in %s, were restored on %s", took, at, lost, bytes,
        saved,
        d->job->row.spec.nodes > 1   ? "its nodes"
        : r->resumed_node == r->node ? "the same node, as there was no other"
                                     : "another node");
}

/* The start of the resumed attempt then counts as the resume. */
static void pass_without_progress(struct model *m, struct drill *d, struct stamp now)
{
    int64_t ms = d->row.resumed_at.ms - d->row.killed_at.ms;
    d->row.resume_ms = ms > 0 ? ms : 1; /* as in since_kill_ms */
    conclude_passed(m, d, now);
}

/* Evaluates a progress report after the resume. */
static void check_progress(struct model *m, struct drill *d, int64_t progress, struct stamp now)
{
    d->row.progress = progress;
    d->row.resume_ms = since_kill_ms(d, now);
    int64_t saved = d->row.saved_progress;
    if (saved != PROGRESS_NONE && progress < saved)
        conclude(m, d, now, DRILL_FAILED,
            "it was at step %" PRId64 " after the resume, and its checkpoint %" PRId64 ".%" PRId64
            " at step %" PRId64 ": it does not continue from the contents of BELAY_CHECKPOINT_DIR "
            "when BELAY_RESTORED is 1",
            progress, d->row.saved.attempt, d->row.saved.sequence, saved);
    else if (saved != PROGRESS_NONE && saved <= 0)
        conclude(m, d, now, DRILL_INTERRUPTED,
            "its checkpoint was at step %" PRId64
            ", so it cannot be seen whether it resumes there: drill it later",
            saved);
    else
        conclude_passed(m, d, now);
}

/* ---- events of its attempts ---- */

static void note_kill(
    struct model *m, struct drill *d, const struct attempt *a, struct stamp now, int64_t lost_ms)
{
    const struct job_row *j = &d->job->row;
    bool saved =
        j->last_good.attempt == a->row.attempt && j->last_good.sequence > d->row.before_sequence;
    d->row.killed_at = now.wall;
    if (!d->row.without_notice && !saved) {
        conclude(m, d, now, DRILL_FAILED,
            "it did not save on request: %s. A reclaim would cost all work since its previous "
            "checkpoint, if it has one (docs/reference/checkpoints.md)",
            a->save_failed ? "its checkpoint could not be stored"
                           : "it committed no checkpoint in time");
        return;
    }
    d->row.saved = j->last_good;
    d->row.saved_progress = j->last_good_progress;
    d->row.bytes = j->ckpt_bytes;
    d->row.save_ms = j->save_ms;
    d->row.lost_ms = lost_ms;
    if (j->progress != PROGRESS_NONE && j->last_good_progress != PROGRESS_NONE)
        d->row.lost_steps =
            j->progress > j->last_good_progress ? j->progress - j->last_good_progress : 0;
    drill_move(d, DRILL_QUEUED);
    d->row.avoids = avoid_begin(m, d->job, d->row.node, now);
    drill_note(m, d);
}

/* The resumed attempt ended before it proved the resume. */
static void ended_unproven(
    struct model *m, struct drill *d, const struct attempt *a, enum end_kind as, struct stamp now)
{
    if (as == END_FAILED) {
        conclude(m, d, now, DRILL_FAILED,
            "the attempt that resumed has failed with exit code %" PRId32 "%s%.120s",
            a->row.exit_code, a->row.text[0] ? ": " : "", a->row.text);
    } else if (as == END_SUCCEEDED && d->row.state == DRILL_RESUMED &&
               d->row.saved_progress == PROGRESS_NONE) {
        pass_without_progress(m, d, now);
    } else {
        conclude(m, d, now, DRILL_INTERRUPTED,
            "attempt %" PRId64 " ended (%s) before it showed that it resumes", a->row.attempt,
            end_kind_names[as]);
    }
}

void drill_attempt_ended(struct model *m, struct attempt *a, struct stamp now, enum end_kind as,
    int64_t lost_ms, bool goes_on)
{
    struct drill *d = job_side(a->job)->drill;
    link_remove(&a->undrilled);
    if (!d)
        return;
    if (d->row.state != DRILL_STOPPING)
        ended_unproven(m, d, a, as, now);
    else if (as != END_DRILLED || !goes_on)
        conclude(m, d, now, DRILL_INTERRUPTED,
            "attempt %" PRId64 " ended (%s) before it was stopped", a->row.attempt,
            end_kind_names[as]);
    else
        note_kill(m, d, a, now, lost_ms);
}

static void note_resume(struct model *m, struct drill *d, const struct attempt *a, struct stamp now)
{
    drill_move(d, DRILL_RESUMED);
    d->row.avoids = false;
    d->row.resumed_at = now.wall;
    d->row.resumed_attempt = a->row.attempt;
    d->row.resumed_node = a->row.node;
    d->row.restore_ms = a->row.restore_ms;
    if (ckpt_ref_compare(a->row.restored, d->row.saved) < 0)
        conclude(m, d, now, DRILL_FAILED,
            "it resumed from checkpoint %" PRId64 ".%" PRId64 " and not from %" PRId64 ".%" PRId64
            ", which the store did not return intact: look for `damaged` in the job's events and "
            "verify the store",
            a->row.restored.attempt, a->row.restored.sequence, d->row.saved.attempt,
            d->row.saved.sequence);
    else
        drill_note(m, d);
}

static void mark_due(struct model *m, struct attempt *a)
{
    if (!link_is_in(&a->undrilled) || a->drill_due || a->job->row.progress == 0)
        return;
    a->drill_due = true;
    link_remove(&a->undrilled);
    list_push_front(&m->lifecycle.undrilled, &a->undrilled);
}

void drill_attempt_started(struct model *m, struct attempt *a, struct stamp now)
{
    struct drill *d = job_side(a->job)->drill;
    if (d && d->row.state == DRILL_QUEUED)
        note_resume(m, d, a, now);
    wait_to_be_drilled(m, a);
}

void drill_attempt_loaded(struct model *m, struct attempt *a)
{
    wait_to_be_drilled(m, a);
    if (a->row.sequence > 0)
        mark_due(m, a);
}

void drill_attempt_stops(struct attempt *a)
{
    link_remove(&a->undrilled);
}

void drill_saved(struct model *m, struct attempt *a, struct stamp now)
{
    struct drill *d = job_side(a->job)->drill;
    int64_t progress = a->job->row.last_good_progress;
    mark_due(m, a);
    if (d && d->row.state == DRILL_RESUMED &&
        (progress != PROGRESS_NONE || d->row.saved_progress == PROGRESS_NONE))
        check_progress(m, d, progress, now);
}

/* first: the first progress that the attempt reported, where it resumed, or the first known one. */
void drill_progressed(struct model *m, struct attempt *a, struct stamp now, int64_t first)
{
    struct drill *d = job_side(a->job)->drill;
    if (wall_is_set(a->row.started_at) && now.wall.ms - a->row.started_at.ms >= AUTO_PROGRESS_MS)
        mark_due(m, a);
    if (d && d->row.state == DRILL_RESUMED)
        check_progress(m, d, first, now);
}

void drill_job_ends(struct model *m, struct job *j, struct stamp now)
{
    if (job_side(j)->drill)
        conclude(m, job_side(j)->drill, now, DRILL_INTERRUPTED,
            "the job ended (%s) before it showed that it resumes", end_kind_names[j->row.end]);
}

/* ---- requests ---- */

static size_t count_live(const struct model *m)
{
    size_t n = 0;
    LIST_FOREACH (&m->lifecycle.live_drills, l)
        n++;
    return n;
}

static int check_drill(
    const struct model *m, const struct event *ev, const struct job *j, struct err *e)
{
    if (!j)
        return err_set(
            e, ERR_NOT_FOUND, "job %" PRId64 " is neither queued nor running", ev->drill.job);
    const struct job_ref ref = job_ref(&j->row);
    const struct attempt *a = job_attempt(j);
    if (j->row.spec.method == CKPT_NONE)
        return err_set(e, ERR_CONFLICT,
            "job %s takes no checkpoints, so it cannot resume: submit it with "
            "--checkpoint signal or coop",
            ref.s);
    if (job_side(j)->drill)
        return err_set(e, ERR_CONFLICT, "job %s is being drilled already", ref.s);
    if (!a || j->row.state != JOB_RUNNING || a->row.state != ATTEMPT_RUNNING ||
        !wall_is_set(a->row.started_at))
        return err_set(e, ERR_CONFLICT,
            "job %s is not running (%s): drill it when it is, or submit it with --drill", ref.s,
            a && j->row.state == JOB_RUNNING ? sm_name(&attempt_sm, (int)a->row.state)
                                             : sm_name(&job_sm, (int)j->row.state));
    if (a->node->row.state != NODE_UP)
        return err_set(e, ERR_CONFLICT, "job %s is on a node that is %s: drill it on the next one",
            ref.s, sm_name(&node_sm, (int)a->node->row.state));
    if (ev->drill.without_notice ? j->row.last_good.attempt == 0 || j->row.last_good_progress == 0
                                 : j->row.progress == 0)
        return err_set(e, ERR_CONFLICT, "job %s %s yet: drill it later", ref.s,
            ev->drill.without_notice ? "has no checkpoint to resume from" : "is at step 0");
    if (count_live(m) >= DRILLS_LIVE_MAX)
        return err_set(e, ERR_CONFLICT, "%d drills are in progress: try again when one has ended",
            DRILLS_LIVE_MAX);
    return 0;
}

int apply_drill(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->drill.job);
    int rc = check_drill(m, ev, j, e);
    if (rc)
        return rc;
    struct attempt *a = job_attempt(j);
    struct drill *d = mem_alloc(sizeof *d);
    d->row = (struct drill_row){
        .job = j->row.id,
        .number = ++j->row.drills,
        .method = j->row.spec.method,
        .state = DRILL_STOPPING,
        .without_notice = ev->drill.without_notice,
        .method_version = DRILL_METHOD_VERSION,
        .attempt = a->row.attempt,
        .node = a->row.node,
        .before_sequence =
            j->row.last_good.attempt == a->row.attempt ? j->row.last_good.sequence : 0,
        .asked_at = ev->now.wall,
        .killed_at = WALL_NONE,
        .resumed_at = WALL_NONE,
        .ended_at = WALL_NONE,
        .saved_progress = PROGRESS_NONE,
        .lost_steps = PROGRESS_NONE,
        .progress = PROGRESS_NONE,
    };
    STR_COPY(d->row.script_key, j->row.script_key);
    STR_COPY(d->row.user, j->row.user);
    STR_COPY(d->row.name, j->row.spec.name);
    STR_COPY(d->row.by, ev->drill.by);
    STR_COPY(d->row.version, BELAY_VERSION);
    drill_link(m, d, j);
    drill_note(m, d);
    touch_job(m, j);
    history(m, ev->now, "drill", (struct history_of){.attempt = a, .a = d->row.number},
        "drill %" PRId64 " for %s: it is %s", d->row.number,
        d->row.by[0] ? d->row.by : "submit --drill",
        d->row.without_notice ? "killed without a save and must resume"
                              : "saved, stopped and must resume");
    job_stop(m, j, END_DRILLED, !ev->drill.without_notice);
    ret_outcome->id = j->row.id;
    return 0;
}

/* The job may have ended, so only the drill's row is used. A difference counts as a failure at this
 * time: it revokes the certificate. */
int apply_drill_compared(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct drill_row r = *ev->compared.drill;
    int64_t with = ev->compared.with;
    int state = (int)r.state;
    ret_outcome->id = r.job;
    if (r.state != DRILL_PASSED)
        return err_set(e, ERR_CONFLICT,
            "drill %" PRId64 " of job %" PRId64
            " is %s: only the result of one that has passed is compared",
            r.number, r.job, sm_name(&drill_sm, state));
    r.compared_with = with;
    if (!ev->compared.equal) {
        sm_move(&drill_sm, r.job, &state, DRILL_FAILED);
        r.state = DRILL_FAILED;
        r.ended_at = ev->now.wall;
        text_format(r.text, sizeof r.text,
            "it resumed, but its result differs from that of job %s, which ran undisturbed: %s",
            job_ref_of(m, with).s, ev->compared.text);
        certificate_note(m, &r);
    }
    *ADD_ROW(m, drills) = r;
    history(m, ev->now, "drill-compared", (struct history_of){.a = r.number, .b = with},
        "for %s: its result %s that of job %" PRId64 ", which ran undisturbed%s%s", ev->compared.by,
        ev->compared.equal ? "equals" : "differs from", with, ev->compared.equal ? "" : ": ",
        ev->compared.equal ? "" : ev->compared.text);
    history_last(m)->job = r.job;
    return 0;
}

/* ---- deadlines ---- */

static struct wall drill_deadline(const struct drill *d)
{
    switch (d->row.state) {
    case DRILL_QUEUED:
        if (job_attempt(d->job))
            return WALL_NONE; /* restores have no time limit here */
        return (struct wall){d->row.killed_at.ms + (d->row.avoids ? AVOID_NODE_MS : PLACE_MS)};
    case DRILL_RESUMED:
        return (struct wall){d->row.resumed_at.ms +
                             (d->row.saved_progress == PROGRESS_NONE ? SETTLE_MS : PROGRESS_MS)};
    default:
        return WALL_NONE;
    }
}

int apply_drill_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->drill_due.job);
    struct drill *d = j ? job_side(j)->drill : NULL;
    struct wall until = d ? drill_deadline(d) : WALL_NONE;
    if (!wall_is_set(until) || until.ms > ev->now.wall.ms)
        return err_set(e, ERR_CONFLICT,
            "the drill of job %" PRId64 " has no deadline that has passed", ev->drill_due.job);
    ret_outcome->id = j->row.id;
    if (d->row.state == DRILL_QUEUED && d->row.avoids) {
        stop_avoiding(m, d);
        drill_note(m, d);
    } else if (d->row.state == DRILL_QUEUED) {
        conclude(m, d, ev->now, DRILL_INTERRUPTED,
            "no node had capacity for it within an hour of the kill");
    } else if (d->row.saved_progress == PROGRESS_NONE) {
        pass_without_progress(m, d, ev->now);
    } else {
        conclude(m, d, ev->now, DRILL_FAILED,
            "it has reported no progress for 30 minutes after the resume; before, it had reached "
            "step %" PRId64,
            d->row.saved_progress);
    }
    return 0;
}

struct mono drill_next(const struct model *m, struct stamp now, struct event *ret_event)
{
    struct mono best = MONO_NONE;
    LIST_FOREACH (&m->lifecycle.live_drills, l) {
        const struct drill *d = LIST_ENTRY(l, struct drill, in_live);
        const struct event ev = {.type = EV_DRILL_DUE, .drill_due.job = d->row.job};
        struct wall until = drill_deadline(d);
        if (wall_is_set(until))
            event_if_sooner(stamp_until(now, until), &ev, &best, ret_event);
    }
    LIST_FOREACH (&m->lifecycle.undrilled, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, undrilled);
        const struct event ev = {.type = EV_DRILL, .drill.job = a->row.job};
        if (check_drill(m, &ev, a->job, NULL) != 0)
            continue; /* at step 0, on a node that is going, or too many drills */
        struct wall start = {a->row.started_at.ms + AUTO_START_MS};
        event_if_sooner(a->drill_due ? now.mono : stamp_until(now, start), &ev, &best, ret_event);
        break; /* later ones are due later */
    }
    return best;
}

/* ---- recovery ---- */

int model_load_drill(struct model *m, const struct drill_row *r, struct err *e)
{
    struct job *j = model_job(m, r->job);
    const struct attempt *a = j ? job_attempt(j) : NULL;
    bool stops = r->state == DRILL_STOPPING;
    if (!j || job_side(j)->drill || r->state >= DRILL_PASSED || r->number < 1 ||
        r->number > j->row.drills || (r->state == DRILL_RESUMED && !a) ||
        (stops && (!a || a->row.attempt != r->attempt)) ||
        (!stops && r->attempt >= j->row.attempts + !a))
        return err_set(e, ERR_CORRUPT,
            "stored drill %" PRId64 " of job %" PRId64 " contradicts other rows", r->number,
            r->job);
    struct drill *d = mem_alloc(sizeof *d);
    d->row = *r;
    drill_link(m, d, j);
    if (a)
        link_remove(&job_attempt(j)->undrilled);
    if (r->avoids && !a)
        avoid_set(m, j, r->node);
    return 0;
}

void drills_destroy_all(struct model *m)
{
    LIST_FOREACH (&m->lifecycle.live_drills, l)
        drill_free(LIST_ENTRY(l, struct drill, in_live));
}
