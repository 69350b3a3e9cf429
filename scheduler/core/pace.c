/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that are to be done by some moment (finish_ms), for the least money. What such a job may be given beside what is owned is its
 * PACE: nothing, spot, or on-demand. It is decided anew when the job comes, whenever it is queued again, and in between every LOOK_MS;
 * the rest is the planner's, as for all jobs: places, offers, launches, the way back from on-demand.
 *
 * What decides is finish.h, which is told here what is known of the job and of what it could run on. Spot counts as up unless it is
 * avoided: asking for it is how one learns that there is some. The job that waits for spot, and the one that is to let go of on-demand, has the pace
 * SPOT: the one asks again and again, the other moves when there is a machine for it (launch.c).
 *
 * Invariant: a job is in by_pace exactly while it has a finish_ms, and is neither ENDED nor UNFOLDED.
 */
#include "scheduler/core/finish.h"
#include "scheduler/core/impl.h"
#include "scheduler/core/planner.h"

#include <inttypes.h>

#define LOOK_MS SECONDS_MS(60)
#define SAVE_UNKNOWN_MS SECONDS_MS(5)
#define RESTART_WORST 2        /* times what a restart was seen to take */
#define TOLD_PCT 10           /* what was told of the work may be wrong by so much of it, and is reckoned with */
#define SHOWN_PCT 5           /* likewise what a program's progress shows */
#define SHOWN_FROM_MS 60000   /* that counts once it has worked for so long, */
#define SHOWN_PART 50         /* and done a fiftieth */
#define OVER_PCT 5            /* who has worked for as long as was told, and goes on, is reckoned to need so much more of it */
#define OFFERS_MAX 256        /* that are looked at for one job */

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int compare_pace(const void *key, const struct tree_link *l)
{
    const struct job *a = key, *b = TREE_ENTRY(l, struct job, by_pace);
    int by_time = tree_order(a->pace_at.ms, b->pace_at.ms);
    return by_time ? by_time : tree_order(a->row.id, b->row.id);
}

static void look_at(struct model *m, struct job *j, int64_t mono_ms)
{
    tree_remove(&m->by_pace, &j->by_pace);
    j->pace_at.ms = mono_ms;
    tree_add(&m->by_pace, &j->by_pace, j, compare_pace);
}

void pace_look(struct model *m, struct job *j, struct stamp now)
{
    if (j->row.finish_ms > 0)
        look_at(m, j, now.mono.ms);
}

void pace_leave(struct model *m, struct job *j)
{
    tree_remove(&m->by_pace, &j->by_pace);
}

bool pace_allows(enum pace pace, enum market market)
{
    return pace == PACE_FREE || market == MARKET_OWNED || (pace == PACE_SPOT && market == MARKET_SPOT) ||
           (pace == PACE_SURE && market == MARKET_ON_DEMAND);
}

int pace_check(const struct job_row *r, struct wall now, struct err *e)
{
    if (r->finish_ms == 0)
        return 0;
    if (r->finish_ms <= now.ms)
        return err_set(e, ERR_INVALID, "job '%s': the time that it is to be done by is over", r->name);
    if (r->market != WISH_ANY)
        return err_set(e, ERR_INVALID, "job '%s': with --finish-by belay chooses between spot and on-demand: leave --market out", r->name);
    if (r->work_ms == 0 && r->time_limit_ms == 0)
        return err_set(e, ERR_INVALID, "job '%s': to be done by a time, belay has to know how much there is to do: say --work 6h, or --time",
            r->name);
    return 0;
}

/* ---- how much there is to do ---- */

static int64_t since_ms(struct wall from, struct wall now)
{
    return wall_is_set(from) && from.ms < now.ms ? now.ms - from.ms : 0;
}

/* The attempt's work of which the store has nothing yet. */
static int64_t unsaved_ms(const struct attempt *a, struct wall now)
{
    return since_ms(attempt_has_saved(a) ? a->job->row.last_good_at : a->row.started_at, now);
}

void pace_saved(struct attempt *a, struct wall saved_at)
{
    a->job->row.done_ms += unsaved_ms(a, saved_at);
}

struct work_left {
    int64_t ms, worst_ms, whole_ms;
};

static struct work_left work_left(const struct job *j, struct wall now)
{
    const struct job_row *r = &j->row;
    const struct attempt *a = job_attempt(j);
    int64_t done = r->done_ms + (a && a->row.state != ATTEMPT_ASSIGNED ? unsaved_ms(a, now) : 0);
    int64_t whole = r->work_ms > 0 ? r->work_ms : r->time_limit_ms, pct = r->work_ms > 0 ? TOLD_PCT : 0;
    bool shows = r->progress > 0 && r->progress_total > 0 && r->progress >= r->progress_total / SHOWN_PART && done >= SHOWN_FROM_MS;
    if (shows) {
        whole = (int64_t)((double)done * (double)r->progress_total / (double)r->progress);
        pct = SHOWN_PCT;
    }
    int64_t left = whole > done ? whole - done : whole * OVER_PCT / 100;
    return (struct work_left){.ms = left, .worst_ms = left + whole * pct / 100, .whole_ms = whole};
}

/* ---- where it could run ---- */

struct sight {
    struct finish_offer offers[OFFERS_MAX];
    size_t n, on;
    bool has_sure;
    int64_t boot_ms, failed_ms; /* of the slowest of the sure ones */
};

static bool is_avoided(const struct offer *o, struct stamp now)
{
    return mono_is_set(o->row.avoid_until) && o->row.avoid_until.ms > now.mono.ms;
}

static void see(struct sight *s, const struct offer *o, bool is_on, struct stamp now)
{
    bool is_sure = o->row.market == MARKET_ON_DEMAND;
    s->offers[s->n] = (struct finish_offer){.is_sure = is_sure, .is_up = is_on || !is_avoided(o, now), .price_uusd_h = o->row.price_uusd_h};
    s->on = is_on ? s->n : s->on;
    s->n++;
    if (!is_sure)
        return;
    s->has_sure = true;
    s->boot_ms = greater(s->boot_ms, offer_boot_ms(o));
    s->failed_ms = greater(s->failed_ms, o->pool->row.boot_timeout_ms);
}

static bool could_serve(const struct offer *o, const struct shape *shape)
{
    struct resources total = offer_total(o);
    return o->row.rank != OFFER_WITHDRAWN && resources_fit(&shape->need, &total) && offer_suits(o, shape);
}

/* What the job is on counts as there whatever became of the offer since, unless it is about to be taken back. */
static const struct offer *offer_under(const struct attempt *a)
{
    bool goes = a && (a->node->row.state == NODE_NOTICED || a->row.state == ATTEMPT_STOPPING);
    return a && !goes && a->node->instance ? a->node->instance->offer : NULL;
}

static void look_around(const struct model *m, const struct job *j, struct stamp now, struct sight *s)
{
    const struct offer *under = offer_under(job_attempt(j));
    *s = (struct sight){.on = FINISH_NOWHERE};
    if (under)
        see(s, under, true, now);
    LIST_FOREACH (&m->all_pools, lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!p->row.elastic || !pool_serves(p, j->shape))
            continue;
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            if (o != under && s->n < OFFERS_MAX && could_serve(o, j->shape))
                see(s, o, false, now);
        }
    }
}

/* ---- deciding ---- */

/* Of the restart that the job is in the middle of, at worst. */
static int64_t starting_ms(const struct job *j, int64_t restart_worst_ms, struct wall now)
{
    const struct attempt *a = job_attempt(j);
    if (!a || a->row.state != ATTEMPT_ASSIGNED)
        return 0;
    return greater(restart_worst_ms - (now.ms - a->row.assigned_at.ms), 1);
}

static enum pace decide(const struct model *m, const struct job *j, const struct work_left *w, struct stamp now)
{
    const struct finish_policy policy = {.rule = FINISH_UNIFORM_STICKY};
    struct finish_choice choice;
    struct sight s;
    look_around(m, j, now, &s);
    if (!s.has_sure)
        return PACE_FREE;
    int64_t save_ms = j->row.save_ms > 0 ? j->row.save_ms : SAVE_UNKNOWN_MS, restart_ms = s.boot_ms + 2 * save_ms;
    const struct finish_job job = {.work_ms = w->ms,
        .work_worst_ms = w->worst_ms,
        .left_ms = j->row.finish_ms - now.wall.ms,
        .restart_ms = restart_ms,
        .restart_worst_ms = RESTART_WORST * restart_ms,
        .failed_launch_ms = s.failed_ms + LOOK_MS, /* and until that is seen */
        .look_ms = LOOK_MS,
        .on = s.on,
        .last = FINISH_NOWHERE,
        .starting_ms = starting_ms(j, RESTART_WORST * restart_ms, now.wall),
        .whole_work_ms = w->whole_ms,
        .whole_time_ms = greater(j->row.finish_ms - j->row.submitted_at.ms, 1)};
    finish_decide(&policy, &job, s.offers, s.n, 0, &choice);
    return choice.offer != FINISH_NOWHERE && s.offers[choice.offer].is_sure ? PACE_SURE : PACE_SPOT;
}

static void describe(enum pace pace, const struct job *j, const struct work_left *w, struct wall now, char *out, size_t size)
{
    static const char *const what[] = {[PACE_FREE] = "takes what there is, as nothing that it could use is always to be had",
        [PACE_WAIT] = "waits",
        [PACE_SPOT] = "only spot for now",
        [PACE_SURE] = "on-demand from now on"};
    char work[32], left[32];
    time_format_duration(w->ms, work, sizeof work);
    time_format_duration(greater(j->row.finish_ms - now.ms, 0), left, sizeof left);
    text_format(out, size, "%s: about %s of work, and %s to do it in", what[pace], work, left);
}

/* Its pace is of no consequence just now: it runs on what is owned, or is being stopped. */
static bool is_settled(const struct attempt *a)
{
    return a && (a->row.state == ATTEMPT_STOPPING || a->node->row.market == MARKET_OWNED);
}

struct mono pace_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->by_pace);
    if (!first)
        return MONO_NONE;
    const struct job *j = TREE_ENTRY(first, struct job, by_pace);
    *ret_event = (struct event){.type = EV_PACE, .pace = {.job = j->row.id, .pace = j->row.pace}};
    if (j->pace_at.ms > now.mono.ms || is_settled(job_attempt(j)))
        return j->pace_at;
    struct work_left w = work_left(j, now.wall);
    ret_event->pace.pace = decide(m, j, &w, now);
    describe(ret_event->pace.pace, j, &w, now.wall, ret_event->pace.text, sizeof ret_event->pace.text);
    return j->pace_at;
}

int apply_pace(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->pace.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (!tree_has(&j->by_pace))
        return err_set(e, ERR_CONFLICT, "job %" PRId64 " need not be done by any time", j->row.id);
    look_at(m, j, ev->now.mono.ms + LOOK_MS);
    if (j->row.pace == ev->pace.pace)
        return 0;
    j->row.pace = ev->pace.pace;
    queue_reshape(m, j);
    m->change++;
    touch_job(m, j);
    history(m, ev->now, "pace", (struct history_of){.job = j, .attempt = job_attempt(j)}, "%s", ev->pace.text);
    return 0;
}
