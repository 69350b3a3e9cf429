/* SPDX-License-Identifier: Apache-2.0
 *
 * Cron entries. One event submits the job of a scheduled time and advances the entry to the next
 * time. Both are in one transaction, so each time is decided on once, however often belayd is
 * killed.
 *
 *  time reached --- no job of the entry is live ---> STARTED
 *               --- one is live --> skip: SKIPPED
 *                                   queue: waits for its end (SKIPPED if 16 already wait)
 *                                   replace: cancels it and waits for its end; the previously
 *                                   waiting time is SKIPPED
 *  reached LATE_MS ago or more, while belayd was not running ---> by the catch-up: MISSED, except
 *                                   for the last one, or the last few
 *
 *  on a day that a calendar of the entry leaves out ---> SKIPPED
 *
 * Invariants: an entry is in crons_due exactly while it has a decision to come. The times of its
 * rows in cron_runs are unique, except for those started by hand. At most one of its jobs is in the
 * model, apart from those that run for dates asked for (cron_dated).
 *
 * Entries without a schedule of their own: cron_after.c.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/cron_after.h"
#include "scheduler/core/queue/crons.h"
#include "scheduler/core/queue/crons_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "job/calendar.h"

#define LATE_MS 60000LL
#define CLOCK_CHECK_MS 60000LL /* interval between checks of the wall clock */
#define COUNT_MAX 100000       /* maximum count of successive missed times that is reported */

static int compare_due(const void *key, const struct tree_link *l)
{
    const struct cron_entry *a = key, *b = TREE_ENTRY(l, struct cron_entry, by_due);
    int by_time = tree_order(a->due.ms, b->due.ms);
    return by_time ? by_time : tree_order(a->row.id, b->row.id);
}

struct wall cron_next_after(const struct cron_entry *c, struct wall after)
{
    if (cron_follows(c))
        return WALL_NONE;
    return cron_next(&c->cron, c->zone, c->row.gap, c->row.twice, after);
}

static struct wall later_of(struct wall a, struct wall b)
{
    return a.ms > b.ms ? a : b; /* WALL_NONE is before all times */
}

bool cron_is_runnable(const struct cron_entry *c)
{
    return c->row.state == CRON_ACTIVE && c->zone && c->texts.script && !c->why[0];
}

static bool is_busy(const struct model *m, const struct cron_entry *c)
{
    return model_job(m, c->row.last_job) != NULL;
}

/* ---- waiting times ---- */

size_t core_cron_waiting(const struct cron_row *r, struct wall ret_at[CRON_WAITING_MAX])
{
    size_t n = 0;
    char *end;
    for (const char *p = r->waiting; *p && n < CRON_WAITING_MAX; p = end + 1, n++)
        ret_at[n].ms = strtoll(p, &end, 10);
    return n;
}

static void set_waiting(struct cron_row *r, const struct wall *at, size_t n)
{
    size_t used = 0;
    memset(r->waiting, 0, sizeof r->waiting);
    for (size_t k = 0; k < n; k++)
        used +=
            (size_t)snprintf(r->waiting + used, sizeof r->waiting - used, "%" PRId64 " ", at[k].ms);
}

/* ---- due times ---- */

/* When the entry has to start something. */
static struct wall start_due_at(const struct model *m, const struct cron_entry *c)
{
    struct wall at[CRON_WAITING_MAX];
    if (!cron_is_runnable(c))
        return WALL_NONE;
    return core_cron_waiting(&c->row, at) > 0 && !is_busy(m, c) ? at[0] : c->row.next_at;
}

static struct wall due_at(const struct model *m, const struct cron_entry *c)
{
    struct wall start = start_due_at(m, c), check = cron_check_due(c);
    return !wall_is_set(check) || (wall_is_set(start) && start.ms < check.ms) ? start : check;
}

void cron_reschedule(struct model *m, struct cron_entry *c)
{
    tree_remove(&m->queue.crons_due, &c->by_due);
    c->due = due_at(m, c);
    if (wall_is_set(c->due))
        tree_add(&m->queue.crons_due, &c->by_due, c, compare_due);
}

void cron_job_ended(struct model *m, const struct job_row *j, struct stamp now)
{
    struct cron_entry *c = j->cron == CORE_ID_NONE ? NULL : map_get(&m->queue.crons, j->cron);
    if (c && wall_is_set(j->cron_at))
        cron_run_ended(m, c, j);
    if (c && wall_is_set(j->cron_at) && !j->cron_dated)
        cron_after_run(m, c, j, now);
    if (c && c->row.last_job == j->id)
        cron_reschedule(m, c);
}

struct mono cron_next_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->queue.crons_due);
    if (!first)
        return MONO_NONE;
    const struct cron_entry *c = TREE_ENTRY(first, struct cron_entry, by_due);
    *ret_event = (struct event){.type = EV_CRON_DUE, .cron_due.cron = c->row.id};
    return stamp_until_checked(now, c->due, CLOCK_CHECK_MS);
}

/* ---- outcome of a time ---- */

struct cron_run_row *cron_add_run(struct model *m, struct cron_entry *c, struct wall at,
    enum cron_outcome outcome, int64_t job, struct stamp now, const char *fmt, ...)
{
    struct cron_run_row *r = ADD_ROW(m, cron_runs);
    *r = (struct cron_run_row){.cron = c->row.id,
        .number = ++c->row.runs,
        .at = at,
        .outcome = outcome,
        .times = 1,
        .job = job,
        .decided_at = now.wall};
    va_list ap;
    va_start(ap, fmt);
    text_vformat(r->text, sizeof r->text, fmt, ap);
    va_end(ap);
    if (cron_follows(c))
        c->row.decided_at = later_of(c->row.decided_at, at);
    touch_cron(m, c);
    return r;
}

void cron_skip(struct model *m, struct cron_entry *c, struct wall at, int64_t job, struct stamp now,
    const char *why)
{
    c->row.skipped++;
    cron_undone(m, c, at, why);
    cron_add_run(m, c, at, CRON_SKIPPED, job, now, "%s", why);
    cron_after_none(m, c, at, now, why);
}

/* Skips a time because of the previous job. */
static void skip_run(
    struct model *m, struct cron_entry *c, struct wall at, struct stamp now, const char *why)
{
    cron_skip(m, c, at, c->row.last_job, now, why);
}

/* Adds the scheduled time, and its day by the clocks of the entry's zone, to the environment: with
 * catch-up they differ from those of the start. */
static char *env_with_time(const struct cron_entry *c, struct wall at)
{
    const char *env_json = c->texts.env_json;
    char iso[TIME_ISO_MAX], day[CALENDAR_TEXT_MAX];
    time_format_iso(at, iso);
    calendar_format(calendar_day(c->zone ? c->zone : &zone_utc, at), day);
    return mem_printf("{\"BELAY_CRON_TIME\":\"%s\",\"BELAY_CRON_DATE\":\"%s\"%s%s", iso, day,
        str_eq(env_json, "{}") ? "" : ",", env_json + 1);
}

/* Submits the job; fails as a submit does. behind: the job that has to end first; CORE_ID_NONE. */
static int submit(struct model *m, struct cron_entry *c, struct wall at, int64_t behind,
    struct stamp now, struct job **ret_job, struct err *e)
{
    char *env = env_with_time(c, at);
    struct job_texts texts = c->texts;
    struct depend_ask depend = {.kind = DEPEND_AFTERANY, .on = behind, .started_at = WALL_NONE};
    struct event ev = {.type = EV_SUBMIT,
        .now = now,
        .submit = {.job = &c->job,
            .texts = &texts,
            .zone = c->zone,
            .depends = &depend,
            .n_depends = behind != CORE_ID_NONE}};
    struct outcome out = {0};
    texts.env_json = env;
    int rc = apply_submit(m, &ev, &out, e);
    free(env);
    if (rc)
        return rc;
    struct job *j = model_job(m, out.id);
    j->row.cron = c->row.id;
    touch_job(m, j);
    touch_cron(m, c);
    *ret_job = j;
    return 0;
}

static void start(struct model *m, struct cron_entry *c, struct wall at, struct stamp now)
{
    struct err e;
    struct job *j;
    if (submit(m, c, at, CORE_ID_NONE, now, &j, &e) != 0) {
        c->row.skipped++;
        cron_undone(m, c, at, e.text);
        cron_add_run(m, c, at, CRON_REFUSED, CORE_ID_NONE, now, "%.200s", e.text);
        cron_after_none(m, c, at, now, e.text);
        return;
    }
    j->row.cron_at = at;
    c->row.last_job = j->row.id;
    c->row.started++;
    cron_add_run(m, c, at, CRON_STARTED, j->row.id, now, "%s",
        now.wall.ms - at.ms >= LATE_MS && !cron_follows(c) ? "late" : "");
}

void cron_wait(struct model *m, struct cron_entry *c, struct wall at, struct stamp now)
{
    struct wall waiting[CRON_WAITING_MAX + 1];
    size_t n = core_cron_waiting(&c->row, waiting);
    if (n == CRON_WAITING_MAX) {
        skip_run(m, c, at, now, "the maximum number of times was already waiting");
        return;
    }
    waiting[n++] = at;
    set_waiting(&c->row, waiting, n);
    touch_cron(m, c);
}

static void replace(struct model *m, struct cron_entry *c, struct wall at, struct stamp now)
{
    struct wall waiting[CRON_WAITING_MAX];
    size_t n = core_cron_waiting(&c->row, waiting);
    for (size_t k = 0; k < n; k++)
        skip_run(m, c, waiting[k], now, "a later time came before the previous job had ended");
    set_waiting(&c->row, &at, 1);
    touch_cron(m, c);
    struct event ev = {.type = EV_CANCEL, .now = now, .cancel.job = c->row.last_job};
    struct outcome unused;
    struct err e;
    text_format(ev.cancel.by, sizeof ev.cancel.by, "cron %.50s", c->row.name);
    apply_cancel(m, &ev, &unused, &e); /* cannot fail: the job is in the model */
}

/* Handles one scheduled time that was reached. */
static void take(struct model *m, struct cron_entry *c, struct wall at, struct stamp now)
{
    c->row.decided_at = later_of(c->row.decided_at, at);
    c->row.next_at = cron_next_after(c, at);
    touch_cron(m, c);
    char why[CORE_TEXT_MAX];
    if (cron_leaves_out(c, at, why))
        cron_skip(m, c, at, CORE_ID_NONE, now, why);
    else if (!is_busy(m, c))
        start(m, c, at, now);
    else if (c->row.overlap == CRON_QUEUE)
        cron_wait(m, c, at, now);
    else if (c->row.overlap == CRON_REPLACE)
        replace(m, c, at, now);
    else
        skip_run(m, c, at, now, "the previous job had not ended");
}

/* ---- catching up ---- */

int64_t cron_count_times(
    const struct cron_entry *c, struct wall after, struct wall until, int64_t max)
{
    int64_t n = 0;
    for (struct wall t = cron_next_after(c, after); wall_is_set(t) && t.ms <= until.ms && n < max;
         t = cron_next_after(c, t))
        n++;
    return n;
}

/* The first of the last n scheduled times up to now, none before `from`, which is one itself.
 * Searches backwards from now in growing steps, so the cost depends on n and not on how long belayd
 * was down. */
static struct wall last_times(
    const struct cron_entry *c, int64_t n, struct wall from, struct wall now)
{
    struct wall after = {from.ms - 1};
    int64_t found = 0;
    for (int64_t back_ms = 60000; now.ms - back_ms > after.ms && back_ms < INT64_MAX / 4;
         back_ms *= 2) {
        struct wall begin = {now.ms - back_ms};
        found = cron_count_times(c, begin, now, INT64_MAX);
        if (found >= n) {
            after = begin;
            break;
        }
    }
    if (after.ms == from.ms - 1)
        found = cron_count_times(c, after, now, INT64_MAX);
    struct wall t = cron_next_after(c, after);
    for (; found > n; found--)
        t = cron_next_after(c, t);
    return t;
}

/* Advances next_at over the times during belayd's downtime that are not caught up. */
static void pass_missed(struct model *m, struct cron_entry *c, struct stamp now)
{
    struct wall from = c->row.next_at, to;
    if (now.wall.ms - from.ms < LATE_MS)
        return;
    if (c->row.catch_up == CATCH_UP_NONE)
        to = cron_next_after(c, (struct wall){now.wall.ms - LATE_MS});
    else
        to = last_times(
            c, c->row.catch_up == CATCH_UP_LAST ? 1 : c->row.catch_up_max, from, now.wall);
    if (wall_is_set(to) && to.ms <= from.ms)
        return;
    struct wall before = {wall_is_set(to) ? to.ms - 1 : now.wall.ms};
    int64_t n = cron_count_times(c, (struct wall){from.ms - 1}, before, COUNT_MAX);
    c->row.missed += n;
    cron_add_run(m, c, from, CRON_MISSED, CORE_ID_NONE, now,
        "belayd was not running, and %s is caught up",
        c->row.catch_up == CATCH_UP_NONE   ? "nothing"
        : c->row.catch_up == CATCH_UP_LAST ? "only the last"
                                           : "only a limited number")
        ->times = n;
    cron_undone(m, c, before, "belayd was not running at that time");
    c->row.next_at = to;
    c->row.decided_at = before;
    cron_after_missed(m, c, c, (struct wall){from.ms - 1}, before, now);
}

int apply_cron_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct cron_entry *c = map_get(&m->queue.crons, ev->cron_due.cron);
    struct wall waiting[CRON_WAITING_MAX];
    if (!c || !tree_has(&c->by_due) || c->due.ms > ev->now.wall.ms)
        return err_set(
            e, ERR_CONFLICT, "cron entry %" PRId64 " is not due (any more)", ev->cron_due.cron);
    ret_outcome->id = c->row.id;
    struct wall begin = start_due_at(m, c);
    size_t n = core_cron_waiting(&c->row, waiting);
    if (!wall_is_set(begin) || begin.ms > ev->now.wall.ms) {
        cron_check_done(m, c, cron_check_due(c), ev->now);
    } else if (n > 0 && !is_busy(m, c)) {
        set_waiting(&c->row, &waiting[1], n - 1);
        start(m, c, waiting[0], ev->now);
    } else {
        if (!cron_follows(c)) /* its time is that of a run which has only now ended */
            pass_missed(m, c, ev->now);
        if (wall_is_set(c->row.next_at) && c->row.next_at.ms <= ev->now.wall.ms)
            take(m, c, c->row.next_at, ev->now);
    }
    cron_reschedule(m, c);
    return 0;
}

/* ---- users' requests ---- */

static size_t texts_bytes(const struct job_texts *s)
{
    return s->script
               ? strlen(s->script) + strlen(s->args_json) + strlen(s->env_json) + strlen(s->cwd) +
                     strlen(s->labels_json) + (s->launch_json ? strlen(s->launch_json) : 0) +
                     (s->document_json ? strlen(s->document_json) : 0)
               : 0;
}

/* Takes ownership of texts. */
static void set_job(
    struct model *m, struct cron_entry *c, const struct job_row *job, struct job_texts texts)
{
    m->queue.crons_bytes += texts_bytes(&texts);
    m->queue.crons_bytes -= texts_bytes(&c->texts);
    job_texts_deinit(&c->texts);
    c->job = *job;
    c->texts = texts;
}

static struct cron_entry *named_cron(const struct model *m, int64_t id, struct err *e)
{
    struct cron_entry *c = map_get(&m->queue.crons, id);
    if (!c)
        err_set(e, ERR_NOT_FOUND, "there is no cron entry %" PRId64, id);
    return c;
}

static int crons_of(const struct model *m, const char *user, size_t *ret_bytes)
{
    const struct cron_entry *c;
    int n = 0;
    *ret_bytes = 0;
    for (size_t pos = 0; (c = map_next(&m->queue.crons, &pos, &(int64_t){0})) != NULL;) {
        n += str_eq(c->row.user, user);
        *ret_bytes += str_eq(c->row.user, user) ? texts_bytes(&c->texts) : 0;
    }
    return n;
}

static int check_put(
    const struct model *m, const struct event *ev, const struct cron_entry *c, struct err *e)
{
    const struct cron_row *r = ev->cron_put.row;
    const struct cron_entry *other;
    size_t bytes = ev->cron_put.job ? texts_bytes(ev->cron_put.texts) : 0;
    if (!c && !ev->cron_put.job)
        return err_set(e, ERR_INVALID, "a new cron entry needs a job");
    if (ev->cron_put.job && procurement_check(ev->cron_put.job, ev->now.wall, e) != 0)
        return ERR_INVALID;
    if (!c && map_size(&m->queue.crons) >= CRONS_MAX)
        return err_set(e, ERR_CONFLICT,
            "the cluster has %d cron entries, the maximum: ask an administrator to remove some",
            CRONS_MAX);
    size_t own_bytes, old_bytes = c && bytes ? texts_bytes(&c->texts) : 0;
    int own = crons_of(m, r->user, &own_bytes);
    /* an existing size stays allowed, also if it predates the limit */
    bool grows = bytes > old_bytes;
    if (!c && own >= CRONS_OF_USER_MAX)
        return err_set(e, ERR_CONFLICT,
            "%s has %d cron entries, the maximum per user: remove some first (belay cron remove)",
            r->user, CRONS_OF_USER_MAX);
    if (grows && own_bytes - old_bytes + bytes > CRONS_OF_USER_BYTES_MAX)
        return err_set(e, ERR_CONFLICT,
            "the scripts of a user's cron entries have at most %zu MiB together: let this one call "
            "a script in a file",
            CRONS_OF_USER_BYTES_MAX >> 20);
    if (grows && m->queue.crons_bytes - old_bytes + bytes > CRONS_BYTES_MAX)
        return err_set(e, ERR_CONFLICT,
            "the scripts of all cron entries have at most %zu MiB together: let this one call a "
            "script in a file",
            CRONS_BYTES_MAX >> 20);
    if (r->catch_up_max < 1 || r->catch_up_max > CRON_CATCH_UP_MAX)
        return err_set(
            e, ERR_INVALID, "the number of times to catch up must be 1 to %d", CRON_CATCH_UP_MAX);
    for (size_t pos = 0; (other = map_next(&m->queue.crons, &pos, &(int64_t){0})) != NULL;)
        if (other != c && str_eq(other->row.name, r->name) && str_eq(other->row.user, r->user))
            return err_set(e, ERR_CONFLICT,
                "%s has a cron entry '%s' already: belay cron edit changes it", r->user, r->name);
    return 0;
}

static int find_zone(
    const struct model *m, const char *name, const struct time_zone **ret_zone, struct err *e)
{
    struct zones none = {0};
    return zones_load(m->options.zones ? m->options.zones : &none, name, ret_zone, e);
}

/* Copies the user's settings of an entry into its row. */
static void set_row(struct cron_row *to, const struct cron_row *from)
{
    STR_COPY(to->name, from->name);
    STR_COPY(to->user, from->user);
    STR_COPY(to->schedule, from->schedule);
    STR_COPY(to->zone, from->zone);
    STR_COPY(to->script_key, from->script_key);
    to->gap = from->gap;
    to->twice = from->twice;
    to->overlap = from->overlap;
    to->catch_up = from->catch_up;
    to->catch_up_max = from->catch_up_max;
    to->after_end = from->after_end;
    STR_COPY(to->skip_on, from->skip_on);
    STR_COPY(to->only_on, from->only_on);
    to->done_by = from->done_by;
}

static struct cron_entry *new_entry(struct model *m, struct stamp now)
{
    struct cron_entry *c = mem_alloc(sizeof *c);
    c->due = WALL_NONE;
    c->row = (struct cron_row){.id = NEXT_ID(m, cron),
        .state = CRON_ACTIVE,
        .created_at = now.wall,
        .next_at = WALL_NONE,
        .decided_at = WALL_NONE,
        .follows_from = WALL_NONE,
        .checked_at = now.wall,
        .done_at = WALL_NONE,
        .undone_at = WALL_NONE};
    map_put(&m->queue.crons, c->row.id, c);
    return c;
}

/* Schedules from now on. Decided times stay decided if the clock was set back. */
static void restart(struct cron_entry *c, struct stamp now)
{
    c->row.next_at =
        cron_is_runnable(c) ? cron_next_after(c, later_of(now.wall, c->row.decided_at)) : WALL_NONE;
}

/* Skips the time of the entry that it runs after, if it was about to run for one. */
static void drop_time(struct model *m, struct cron_entry *c, struct stamp now)
{
    if (!cron_follows(c) || !wall_is_set(c->row.next_at))
        return;
    skip_run(m, c, c->row.next_at, now, "the entry was changed just before it was to run");
    c->row.next_at = WALL_NONE;
}

static void set_after(struct model *m, struct cron_entry *c, int64_t after, struct stamp now)
{
    if (c->row.after == after)
        return;
    m->queue.crons_after += after != CORE_ID_NONE;
    m->queue.crons_after -= cron_follows(c);
    c->row.after = after;
    c->row.follows_from = later_of(now.wall, c->row.decided_at);
}

/* What a put has looked up before it changes anything. */
struct lookups {
    struct cron cron;
    const struct time_zone *zone;
    const struct calendar *skip_on, *only_on;
};

static int look_up(const struct model *m, const struct cron_row *r, const struct cron_entry *c,
    struct lookups *ret, struct err *e)
{
    memset(ret, 0, sizeof *ret);
    int rc = r->after != CORE_ID_NONE ? cron_after_check(m, c, r->user, r->after, e)
                                      : cron_parse(r->schedule, &ret->cron, e);
    if (!rc)
        rc = find_zone(m, r->zone, &ret->zone, e);
    return rc ? rc : cron_find_calendars(m, r, &ret->skip_on, &ret->only_on, e);
}

/* Whether it has other times than c had. */
static bool is_moved(const struct cron_entry *c, const struct cron_row *r, const struct lookups *l)
{
    return c->row.after != r->after ||
           (r->after == CORE_ID_NONE &&
               (c->zone != l->zone || memcmp(&c->cron, &l->cron, sizeof c->cron) != 0 ||
                   c->row.gap != r->gap || c->row.twice != r->twice));
}

int apply_cron_put(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct cron_row *r = ev->cron_put.row;
    struct cron_entry *c = r->id == CORE_ID_NONE ? NULL : named_cron(m, r->id, e);
    struct lookups l;
    if (r->id != CORE_ID_NONE && !c)
        return ERR_NOT_FOUND;
    int rc = check_put(m, ev, c, e);
    if (!rc)
        rc = look_up(m, r, c, &l, e);
    if (rc)
        return rc;
    if (!c)
        c = new_entry(m, ev->now);
    bool moved = is_moved(c, r, &l);
    if (moved)
        drop_time(m, c, ev->now);
    if (moved || c->row.done_by != r->done_by)
        c->row.checked_at = ev->now.wall;
    set_row(&c->row, r);
    set_after(m, c, r->after, ev->now);
    c->cron = l.cron;
    c->zone = l.zone;
    c->skip_on = l.skip_on;
    c->only_on = l.only_on;
    if (ev->cron_put.job) {
        set_job(m, c, ev->cron_put.job, job_texts_copy(ev->cron_put.texts));
        *ADD_ROW(m, cron_jobs) = (struct cron_job_change){
            .cron = c->row.id, .job_json = mem_strdup(ev->cron_put.job_json)};
    }
    if (c->texts.script)
        c->why[0] = '\0';
    STR_COPY(c->job.user, c->row.user);
    STR_COPY(c->job.script_key, c->row.script_key);
    if (moved)
        restart(c, ev->now);
    touch_cron(m, c);
    cron_reschedule(m, c);
    ret_outcome->id = c->row.id;
    return 0;
}

static void cron_free(struct model *m, struct cron_entry *c)
{
    m->queue.crons_bytes -= texts_bytes(&c->texts);
    m->queue.crons_after -= cron_follows(c);
    tree_remove(&m->queue.crons_due, &c->by_due);
    link_remove(&c->dirty);
    job_texts_deinit(&c->texts);
    free(c);
}

int apply_cron_set(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct cron_entry *c = named_cron(m, ev->cron_set.cron, e);
    struct wall waiting[CRON_WAITING_MAX];
    if (!c)
        return ERR_NOT_FOUND;
    ret_outcome->id = c->row.id;
    if (c->row.state == ev->cron_set.to)
        return 0;
    const struct cron_entry *f = ev->cron_set.to == CRON_REMOVED ? cron_follower(m, c) : NULL;
    if (f)
        return err_set(e, ERR_CONFLICT,
            "cron entry '%s' runs after '%s': remove it first, or give it another --after or a "
            "--schedule (belay cron edit)",
            f->row.name, c->row.name);
    drop_time(m, c, ev->now);
    int state = (int)c->row.state;
    sm_move(&cron_sm, c->row.id, &state, (int)ev->cron_set.to);
    c->row.state = (enum cron_state)state;
    size_t n = core_cron_waiting(&c->row, waiting);
    for (size_t k = 0; k < n; k++)
        skip_run(m, c, waiting[k], ev->now, "it waited when the entry was paused or removed");
    set_waiting(&c->row, NULL, 0);
    c->row.checked_at = ev->now.wall;
    restart(c, ev->now);
    touch_cron(m, c);
    cron_reschedule(m, c);
    if (c->row.state != CRON_REMOVED)
        return 0;
    *ADD_ROW(m, crons) = c->row;
    map_remove(&m->queue.crons, c->row.id);
    cron_free(m, c);
    return 0;
}

int apply_cron_run(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct cron_entry *c = named_cron(m, ev->cron_run.cron, e);
    bool dated = ev->cron_run.dated;
    struct wall at = dated ? ev->cron_run.at : ev->now.wall;
    struct job *j;
    if (!c)
        return ERR_NOT_FOUND;
    if (!c->texts.script)
        return err_set(e, ERR_CONFLICT, "%s", c->why);
    if (!dated && is_busy(m, c))
        return err_set(e, ERR_CONFLICT,
            "job %" PRId64 " of cron entry '%s' has not ended, and an entry has one job at a time: "
            "wait for it, or cancel it",
            c->row.last_job, c->row.name);
    int rc = submit(m, c, at, dated ? ev->cron_run.behind : CORE_ID_NONE, ev->now, &j, e);
    if (rc)
        return rc;
    j->row.cron_at = dated ? at : WALL_NONE;
    j->row.cron_dated = dated;
    if (!dated)
        c->row.last_job = j->row.id;
    cron_add_run(m, c, at, CRON_STARTED, j->row.id, ev->now, "by %s%s", ev->cron_run.by,
        dated ? ", for this date" : "")
        ->by_hand = true;
    cron_reschedule(m, c);
    ret_outcome->id = j->row.id;
    return 0;
}

/* ---- recovery, views, checks ---- */

static void unreadable(struct cron_entry *c, const char *what, const struct err *e)
{
    text_format(c->why, sizeof c->why,
        "its %s cannot be used any more, so it starts no jobs: %.160s", what, e->text);
}

int model_load_cron(struct model *m, const struct cron_row *r, const char *job_json,
    struct stamp now, struct err *e)
{
    struct err why;
    struct job_texts texts = {0};
    struct job_row job = {0};
    (void)now;
    if (r->id < model_next_ids(m)->next_cron || r->state >= CRON_REMOVED)
        return err_set(e, ERR_CORRUPT,
            "stored cron entry %" PRId64 " comes twice or out of order, or was removed", r->id);
    struct cron_entry *c = mem_alloc(sizeof *c);
    SAW_ID(m, cron, r->id);
    c->row = *r;
    c->due = WALL_NONE;
    map_put(&m->queue.crons, r->id, c);
    if (find_zone(m, r->zone, &c->zone, &why) != 0)
        unreadable(c, "time zone", &why);
    m->queue.crons_after += cron_follows(c);
    if (!cron_follows(c) && cron_parse(r->schedule, &c->cron, &why) != 0)
        unreadable(c, "schedule", &why);
    if (cron_find_calendars(m, r, &c->skip_on, &c->only_on, &why) != 0)
        unreadable(c, "calendar", &why);
    if (!m->options.read_job || !job_json)
        text_format(c->why, sizeof c->why, "its job cannot be read");
    else if (m->options.read_job(job_json, &job, &texts, &why) != 0)
        unreadable(c, "job", &why);
    else
        set_job(m, c, &job, texts);
    STR_COPY(c->job.user, r->user);
    STR_COPY(c->job.script_key, r->script_key);
    cron_reschedule(m, c);
    return 0;
}

const struct cron_entry *model_cron(const struct model *m, int64_t id)
{
    return map_get(&m->queue.crons, id);
}

int crons_check(const struct model *m, struct err *e)
{
    const struct cron_entry *c;
    size_t due = 0, after = 0;
    for (size_t pos = 0; (c = map_next(&m->queue.crons, &pos, &(int64_t){0})) != NULL;) {
        struct wall at = due_at(m, c);
        due += wall_is_set(at);
        after += cron_follows(c);
        if (core_cron_root(m, c)->row.after != CORE_ID_NONE)
            return err_set(e, ERR_INTERNAL,
                "cron entry %" PRId64 " runs after one that does not exist", c->row.id);
        if (wall_is_set(at) != tree_has(&c->by_due) || at.ms != c->due.ms)
            return err_set(e, ERR_INTERNAL,
                "cron entry %" PRId64 " is not at its next time in the order of due times",
                c->row.id);
    }
    const struct job *j;
    for (size_t pos = 0; (j = model_next_job(m, &pos)) != NULL;) {
        c = j->row.cron == CORE_ID_NONE ? NULL : map_get(&m->queue.crons, j->row.cron);
        if (c && !j->row.cron_dated && c->row.last_job != j->row.id)
            return err_set(e, ERR_INTERNAL,
                "jobs %s and %" PRId64 " of cron entry %" PRId64 " are live at the same time",
                job_ref(&j->row).s, c->row.last_job, c->row.id);
    }
    if (due != m->queue.crons_due.n)
        return err_set(e, ERR_INTERNAL, "%zu cron entries have a due time, but %zu are in order",
            due, m->queue.crons_due.n);
    if (after != m->queue.crons_after)
        return err_set(e, ERR_INTERNAL, "%zu cron entries run after another, but %zu are counted",
            after, m->queue.crons_after);
    return 0;
}

void crons_destroy_all(struct model *m)
{
    struct cron_entry *c;
    for (size_t pos = 0; (c = map_next(&m->queue.crons, &pos, &(int64_t){0})) != NULL;)
        cron_free(m, c);
    map_deinit(&m->queue.crons);
}
