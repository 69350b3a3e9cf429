/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of ended jobs, and when they are cleaned (states: types.h). A row is created when its
 * job ends, and an ended job never runs again, so data removed here is not needed by a live job.
 * The begin of a cleaning is committed before it starts; a cleaning that was interrupted by
 * belayd's end starts again.
 *
 * Remaining data with a price is measured once a month by a cleaning that removes nothing: users
 * may have removed some, or unpinned it.
 *
 * If the store has data of another job under the same number (a copy of the database was restored),
 * this job has no data there: nothing is removed or measured.
 *
 * One cleaning at a time: the store sets the pace, and no job waits for it.
 */
#include "scheduler/core/ledger/storage.h"
#include "scheduler/core/lifecycle/ckpt_gc.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/labels.h"

#include "base/mem.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define RETRY_MIN_MS 60000LL
#define RETRY_MAX_MS 86400000LL
#define TRIES_MAX 40 /* over a month */
#define MEASURE_MS (30 * 86400000LL)

static int compare_due(const void *key, const struct tree_link *l)
{
    const struct ckpt_gc_row *a = key, *b = &TREE_ENTRY(l, struct ckpt_gc, by_due)->row;
    int by_time = tree_order(a->due_at.ms, b->due_at.ms);
    return by_time ? by_time : tree_order(a->job, b->job);
}

static void ckpt_gc_index(struct model *m, struct ckpt_gc *l)
{
    if (l->row.state == CKPT_GC_CLEANING)
        m->lifecycle.cleaning = l;
    else
        tree_add(&m->lifecycle.ckpt_gc_due, &l->by_due, &l->row, compare_due);
}

/* True if nothing is to be removed any more and the data is only measured. */
static bool is_only_measured(const struct ckpt_gc_row *r)
{
    return r->closed && !wall_is_set(r->last_at);
}

static void ckpt_gc_move(struct model *m, struct ckpt_gc *l, enum ckpt_gc_state to)
{
    int state = (int)l->row.state;
    sm_move(&ckpt_gc_sm, l->row.job, &state, (int)to);
    tree_remove(&m->lifecycle.ckpt_gc_due, &l->by_due);
    m->lifecycle.cleaning = m->lifecycle.cleaning == l ? NULL : m->lifecycle.cleaning;
    l->row.state = (enum ckpt_gc_state)state;
    *ADD_ROW(m, ckpt_gc) = l->row;
    if (to == CKPT_GC_DONE) {
        m->lifecycle.n_only_measured -= is_only_measured(&l->row);
        map_remove(&m->lifecycle.ckpt_gc, l->row.job);
        free(l);
    } else {
        ckpt_gc_index(m, l);
    }
}

void ckpt_gc_add(struct model *m, const struct job *of, struct stamp now)
{
    const struct job_row *j = &of->row;
    storage_settle(m, j->id, now.wall);
    if (j->spec.method == CKPT_NONE || j->attempts == 0) {
        storage_forget(m, j->id, now.wall);
        return; /* no data in the store, not even a fence */
    }
    struct ckpt_gc *l = mem_alloc(sizeof *l);
    l->budgets = budgets_of(m, of);
    l->submitted_at = j->submitted_at;
    l->last_good = j->last_good;
    l->row = (struct ckpt_gc_row){
        .job = j->id,
        .state = CKPT_GC_WAITING,
        .after = j->spec.ckpt_after,
        .succeeded = j->end == END_SUCCEEDED,
        .due_at = now.wall,
        .last_at = j->spec.ckpt_after == AFTER_AUTO
                       ? (struct wall){now.wall.ms + m->options.retention_ms}
                       : WALL_NONE,
    };
    map_put(&m->lifecycle.ckpt_gc, j->id, l);
    *ADD_ROW(m, ckpt_gc) = l->row;
    ckpt_gc_index(m, l);
}

enum ckpt_gc_keep core_ckpt_gc_keep(const struct ckpt_gc_row *r)
{
    bool goes = r->after == AFTER_DELETE || (r->after == AFTER_AUTO && r->closed);
    if (goes)
        return r->succeeded ? CKPT_GC_KEEP_NONE : CKPT_GC_KEEP_LAST;
    return r->after == AFTER_LAST ? CKPT_GC_KEEP_LAST : CKPT_GC_KEEP_ALL;
}

void ckpt_gc_renew_budgets(struct model *m, const uint64_t *now_at)
{
    struct ckpt_gc *l;
    for (size_t pos = 0; (l = map_next(&m->lifecycle.ckpt_gc, &pos, &(int64_t){0})) != NULL;) {
        uint64_t before = l->budgets;
        l->budgets = 0;
        for (int k = 0; k < BUDGETS_MAX; k++)
            if (before >> k & 1)
                l->budgets |= now_at[k];
    }
}

int model_load_ckpt_gc(struct model *m, const struct ckpt_gc_row *r, struct err *e)
{
    if (r->state < CKPT_GC_WAITING || r->state >= CKPT_GC_DONE || model_job(m, r->job) ||
        map_get(&m->lifecycle.ckpt_gc, r->job) ||
        (r->state == CKPT_GC_CLEANING && m->lifecycle.cleaning))
        return err_set(e, ERR_CORRUPT,
            "the stored cleanup of the checkpoints of job %" PRId64 " contradicts other rows",
            r->job);
    struct ckpt_gc *l = mem_alloc(sizeof *l);
    l->row = *r;
    m->lifecycle.n_only_measured += is_only_measured(r);
    map_put(&m->lifecycle.ckpt_gc, r->job, l);
    ckpt_gc_index(m, l);
    return 0;
}

int model_load_ckpt_gc_of(
    struct model *m, const struct job_row *r, const char *labels_json, struct err *e)
{
    struct ckpt_gc *l = map_get(&m->lifecycle.ckpt_gc, r->id);
    struct job j = {.row = *r, .labels = labels_intern(m, labels_json)};
    if (l) {
        l->budgets = budgets_of(m, &j);
        l->submitted_at = r->submitted_at;
        l->last_good = r->last_good;
    }
    labels_unref(m, j.labels);
    return l ? 0
             : err_set(e, ERR_CORRUPT, "stored job %s has no checkpoints to clean", job_ref(r).s);
}

void core_ckpt_identity(
    const char *cluster_uid, struct wall submitted_at, char ret_identity[CKPT_IDENTITY_MAX])
{
    text_format(ret_identity, CKPT_IDENTITY_MAX, "%s-%" PRId64, cluster_uid, submitted_at.ms);
}

void model_ckpt_gc_known(const struct model *m, int64_t job, struct ckpt_known *ret_known)
{
    const struct ckpt_gc *l = map_get(&m->lifecycle.ckpt_gc, job);
    assert(l);
    core_ckpt_identity(m->options.cluster_uid, l->submitted_at, ret_known->identity);
    ret_known->last = l->last_good;
}

const struct ckpt_gc_row *model_cleaning(const struct model *m)
{
    return m->lifecycle.cleaning ? &m->lifecycle.cleaning->row : NULL;
}

/* ---- schedule ---- */

struct mono ckpt_gc_due(const struct model *m, struct stamp now, int64_t *ret_job)
{
    const struct tree_link *first =
        m->lifecycle.cleaning ? NULL : tree_first(&m->lifecycle.ckpt_gc_due);
    if (!first)
        return MONO_NONE;
    const struct ckpt_gc *l = TREE_ENTRY(first, struct ckpt_gc, by_due);
    *ret_job = l->row.job;
    return stamp_until_checked(now, l->row.due_at, CKPT_GC_CLOCK_CHECK_MS);
}

int apply_clean(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct ckpt_gc *l = map_get(&m->lifecycle.ckpt_gc, ev->clean.job);
    if (!l || l->row.state != CKPT_GC_WAITING || m->lifecycle.cleaning)
        return err_set(e, ERR_CONFLICT, "the checkpoints of job %" PRId64 " cannot be cleaned now",
            ev->clean.job);
    ret_outcome->id = l->row.job;
    ckpt_gc_move(m, l, CKPT_GC_CLEANING);
    return 0;
}

static void note_history(
    struct model *m, const struct event *ev, const char *kind, const char *text)
{
    struct history_row *h;
    history(m, ev->now, kind, (struct history_of){0}, "%s", text);
    h = history_last(m);
    h->job = ev->cleaned.job;
}

/* All cleanings are done; only measurements follow. */
static void measure_only(struct model *m, struct ckpt_gc *l)
{
    m->lifecycle.n_only_measured += !is_only_measured(&l->row);
    l->row.closed = true;
    l->row.last_at = WALL_NONE;
}

static void clean_failed(struct model *m, const struct event *ev, struct ckpt_gc *l)
{
    int64_t wait = RETRY_MIN_MS << (l->row.tries < 11 ? l->row.tries : 11);
    bool give_up = ++l->row.tries >= TRIES_MAX || ev->cleaned.end == CLEAN_OTHER_JOB;
    if (l->row.tries == 1 || give_up)
        note_history(m, ev, "clean-failed", ev->cleaned.text);
    l->row.due_at.ms = ev->now.wall.ms + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
    if (give_up)
        storage_forget(m, l->row.job, ev->now.wall);
    ckpt_gc_move(m, l, give_up ? CKPT_GC_DONE : CKPT_GC_WAITING);
}

int apply_cleaned(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    static const char *const texts[] = {
        [CKPT_GC_KEEP_LAST] = "its checkpoints were removed, except the last and pinned ones",
        [CKPT_GC_KEEP_NONE] = "its checkpoints were removed, except pinned ones"};
    struct ckpt_gc *l = map_get(&m->lifecycle.ckpt_gc, ev->cleaned.job);
    (void)e;
    ret_outcome->id = ev->cleaned.job;
    if (!l || l->row.state != CKPT_GC_CLEANING)
        return 0; /* already reported */
    if (ev->cleaned.end != CLEAN_DONE) {
        clean_failed(m, ev, l);
        return 0;
    }
    enum ckpt_gc_keep kept = core_ckpt_gc_keep(&l->row);
    bool again = !l->row.closed && wall_is_set(l->row.last_at);
    if (kept != CKPT_GC_KEEP_ALL && !is_only_measured(&l->row))
        note_history(m, ev, "cleaned", texts[kept]);
    storage_measured(m, l->row.job, ev->cleaned.kept_bytes, ev->now.wall);
    storage_settle(m, l->row.job, ev->now.wall);
    l->row.tries = 0;
    if (again) {
        l->row.closed = true;
        l->row.due_at = l->row.last_at;
    } else {
        measure_only(m, l);
        l->row.due_at.ms = ev->now.wall.ms + MEASURE_MS;
    }
    bool stays = again || storage_costs(m, l->row.job);
    if (!stays)
        storage_forget(m, l->row.job, ev->now.wall);
    ckpt_gc_move(m, l, stays ? CKPT_GC_WAITING : CKPT_GC_DONE);
    return 0;
}

void ckpt_gc_deinit(struct model *m)
{
    struct ckpt_gc *p;
    for (size_t pos = 0; (p = map_next(&m->lifecycle.ckpt_gc, &pos, &(int64_t){0})) != NULL;)
        free(p);
    map_deinit(&m->lifecycle.ckpt_gc);
}
