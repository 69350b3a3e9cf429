/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with a finish time (finish_ms), at the least expected cost. The procurement of such a job is
 * what it may use besides owned nodes: nothing, spot (of one offer, or any), or on-demand. It is
 * decided when the job arrives, whenever it is requeued, when its offer is refused, and in between:
 * every look_ms when time is short, less often otherwise. The rest is the planner's, as for all
 * jobs: placement, launches, the move back from on-demand.
 *
 * deadline.h decides, given what is known of the job and of its possible offers
 * (procurement_sight.h); observations of spot and the tables are in spot_observations.h. A spot
 * offer counts as up unless it is avoided, since only a launch can tell whether a machine is
 * available. So a job that waits because no offer is up has procurement SPOT and launches as soon
 * as it may; one that waits for a better offer has procurement WAIT.
 *
 * A job on on-demand that should continue on spot moves once there is a machine for it (launch.c).
 * A job that should release its machine, unneeded on-demand or spot that it may not stay on, is
 * stopped here, if no work is lost or if it must.
 *
 * Offers above the job's maximum hourly price (--max-usd-per-hour) are ignored, both spot and
 * on-demand.
 *
 * Invariant: a job is in by_procurement exactly while it has a finish_ms, and is neither ENDED nor
 * UNFOLDED.
 */
#include "scheduler/core/deadline/outlook.h"
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/supply/launch.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/deadline/procurement_baseline.h"
#include "scheduler/core/deadline/procurement_work.h"
#include "scheduler/core/planner.h"
#include "scheduler/core/deadline/spot_observations.h"
#include "scheduler/core/deadline/procurement_sight.h"
#include "scheduler/core/lifecycle/save_interval.h"

#include "job/cron.h"
#include "base/minmax.h"
#include "base/str.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define SAVE_UNKNOWN_MS SECONDS_MS(5)
#define PLACED_WORST 3    /* multiple of the observed time from the join to the first work */
#define LOOKS_IN_SLACK 16 /* the more slack, the less frequent the examinations */
#define LETS_GO_PART 4    /* a release must save at least a quarter of a restart's cost */
#define HOUR_MS 3600000.0
#define PLANNED_STEPS 3 /* with less time left nothing is learned, and no table is built */

const struct procurement_options procurement_usual = {.rule = DEADLINE_PLANNED,
    .baseline = DEADLINE_UNIFORM,
    .look_ms = SECONDS_MS(60),
    .step_ms = DEADLINE_STEP_MS,
    .work_margin_pct = 100,
    .cap_pct = 35};

void procurement_init(struct model *m, const struct procurement_options *o)
{
    m->deadline.options = o ? *o : procurement_usual;
    assert(m->deadline.options.baseline != DEADLINE_PLANNED);
    m->deadline.spot_observations = spot_observations_create();
}

void procurement_deinit(struct model *m)
{
    spot_observations_destroy(m->deadline.spot_observations);
}

static int compare_procurement(const void *key, const struct tree_link *l)
{
    const struct job_side *a = key, *b = TREE_ENTRY(l, struct job_side, by_procurement);
    int by_time = tree_order(a->procurement_at.ms, b->procurement_at.ms);
    return by_time ? by_time : tree_order(a->job->row.id, b->job->row.id);
}

static void look_at(struct model *m, struct job *j, int64_t mono_ms)
{
    struct job_side *t = job_make_side(j);
    tree_remove(&m->deadline.by_look, &t->by_procurement);
    t->procurement_at.ms = mono_ms;
    tree_add(&m->deadline.by_look, &t->by_procurement, t, compare_procurement);
}

void procurement_look(struct model *m, struct job *j, struct stamp now)
{
    if (j->row.spec.finish_ms > 0)
        look_at(m, j, now.mono.ms);
}

void procurement_leave(struct model *m, struct job *j)
{
    if (j->side)
        tree_remove(&m->deadline.by_look, &j->side->by_procurement);
}

void procurement_meant(struct model *m, struct job *j, struct stamp now)
{
    procurement_look(m, j, now);
    if (j->row.spec.finish_ms > 0 || !j->side)
        return;
    procurement_leave(m, j);
    j->side->procurement_offer = CORE_ID_NONE;
}

bool procurement_is_looked_at(const struct job *j)
{
    return j->side && tree_has(&j->side->by_procurement);
}

bool procurement_allows(enum procurement procurement, enum market market)
{
    return procurement == PROCURE_FREE || market == MARKET_OWNED ||
           (procurement == PROCURE_SPOT && market == MARKET_SPOT) ||
           (procurement == PROCURE_ON_DEMAND && market == MARKET_ON_DEMAND);
}

int64_t procurement_finish_ms(const struct job_row *asked, struct wall now)
{
    return asked->spec.finish_ms < 0 ? now.ms - asked->spec.finish_ms : asked->spec.finish_ms;
}

int64_t procurement_finish_submitted(const struct event *ev)
{
    const int minute = ev->submit.texts ? ev->submit.texts->finish_of_day - 1 : -1;
    if (minute < 0)
        return procurement_finish_ms(ev->submit.job, ev->now.wall);
    /* Every day. If the clocks skip that minute, the first minute after the change; if they repeat
     * it, the first one. */
    const struct cron daily = {.minutes = 1ULL << minute % 60,
        .hours = 1U << minute / 60,
        .days = UINT32_MAX << 1,
        .months = 0x1ffe,
        .weekdays = 0x7f,
        .both = true};
    const struct wall at = cron_next(&daily, ev->submit.zone ? ev->submit.zone : &zone_utc,
        CRON_GAP_RUN, CRON_TWICE_FIRST, ev->now.wall);
    /* never before ZONE_END_S */
    return wall_is_set(at) ? at.ms : procurement_finish_ms(ev->submit.job, ev->now.wall);
}

int procurement_check(const struct job_row *r, struct wall now, struct err *e)
{
    if (r->spec.finish_ms == 0)
        return 0;
    if (procurement_finish_ms(r, now) <= now.ms)
        return err_set(e, ERR_INVALID, "job '%s': its finish time has passed", r->spec.name);
    if (r->spec.market != WISH_ANY)
        return err_set(e, ERR_INVALID,
            "job '%s': --finish-by chooses between spot and on-demand: remove --market",
            r->spec.name);
    if (r->spec.work_ms == 0 && r->spec.time_limit_ms == 0)
        return err_set(e, ERR_INVALID,
            "job '%s': --finish-by needs the amount of work: add --work (such as 6h) or --time",
            r->spec.name);
    return 0;
}

/* ---- deciding ---- */

/* Work lost by a reclaim without notice: the unsaved work, in the worst case up to the next
 * save. */
static int64_t loss_ms(const struct job *j, const struct work_left *w, int64_t save_ms)
{
    if (j->row.spec.method == CKPT_NONE)
        return w->unsaved_ms;
    int64_t every = core_interval_with(j, j->row.save_ms, j->row.pause_ms);
    return max_i64(min_i64(every, w->whole_ms) + save_ms, w->unsaved_ms);
}

/* The first save shows how long a restore takes, and what a loss costs from then on. */
static bool is_last_start(const struct job *j, const struct work_left *w, const struct sight *s,
    const struct deadline_job *k)
{
    if (j->row.save_ms > 0 || j->row.spec.method == CKPT_NONE)
        return false;
    const struct first_save f = procurement_work_first_save(j, w);
    int64_t start_ms = s->boot_worst_ms + PLACED_WORST * (f.pause_ms + procurement_work_warm_ms(j)),
            lost_ms = max_i64(min_i64(f.every_ms, w->whole_ms) + f.pause_ms, w->unsaved_ms),
            worst_ms = max_i64(start_ms + lost_ms, k->restart_worst_ms);
    return k->left_ms - f.worst_ms - worst_ms - k->failed_launch_ms <
           max_i64(start_ms, k->failed_launch_ms);
}

static struct deadline_job build_job_model(const struct model *m, const struct job *j,
    const struct work_left *w, const struct sight *s, struct wall now)
{
    int64_t unknown_ms = min_i64(m->deadline.options.step_ms, SAVE_UNKNOWN_MS);
    int64_t save_ms = j->row.save_ms > 0 ? j->row.save_ms : unknown_ms,
            restore_ms = job_side(j)->restore_ms > 0 ? job_side(j)->restore_ms : save_ms,
            placed_ms = restore_ms + procurement_work_warm_ms(j),
            restart_ms = s->boot_ms + placed_ms, switch_ms = save_ms + placed_ms;
    int64_t loss_worst_ms = loss_ms(j, w, save_ms),
            worst_ms = s->boot_worst_ms + PLACED_WORST * placed_ms + loss_worst_ms,
            starting_ms = procurement_work_warming_ms(j, now);
    if (s->starting_since_ms) /* as usual; otherwise a new start would look cheaper */
        starting_ms =
            max_i64((s->is_booted ? placed_ms : restart_ms) - (now.ms - s->starting_since_ms), 1);
    struct deadline_job k = {.work_ms = w->ms,
        .work_worst_ms = w->worst_ms,
        .left_ms = w->finish_ms - now.ms,
        .restart_ms = restart_ms,
        .restart_worst_ms = worst_ms,
        .loss_worst_ms = loss_worst_ms,
        .boot_ms = s->boot_ms,
        .switch_ms = switch_ms,
        .switch_worst_ms = PLACED_WORST * switch_ms,
        .moving_to = s->moving_to,
        .coming_ms = s->coming_ms,
        /* plus the time to notice it */
        .failed_launch_ms = s->failed_ms + m->deadline.options.look_ms,
        .on = s->on,
        .last = DEADLINE_NOWHERE,
        .starting_ms = starting_ms,
        .whole_work_ms = max_i64(w->whole_ms, 1),
        .whole_time_ms = max_i64(w->finish_ms - j->row.submitted_at.ms, 1)};
    k.look_ms =
        (k.left_ms - k.work_worst_ms - k.restart_worst_ms - k.failed_launch_ms) / LOOKS_IN_SLACK;
    bool is_on_spot = s->on < s->n_spot && !s->starting_since_ms; /* else it looks for spot */
    k.look_ms = !is_on_spot || k.look_ms < m->deadline.options.look_ms ? m->deadline.options.look_ms
                : k.look_ms > m->deadline.options.step_ms              ? m->deadline.options.step_ms
                                                                       : k.look_ms;
    k.is_last_start = is_last_start(j, w, s, &k);
    return k;
}

/* The job with all times in steps of DEADLINE_STEP_MS, whatever the configured step. */
static struct deadline_job scaled(const struct model *m, struct deadline_job k)
{
    int64_t *const times[] = {&k.work_ms, &k.work_worst_ms, &k.left_ms, &k.restart_ms,
        &k.restart_worst_ms, &k.loss_worst_ms, &k.boot_ms, &k.switch_ms, &k.switch_worst_ms,
        &k.failed_launch_ms, &k.look_ms, &k.starting_ms, &k.whole_work_ms, &k.whole_time_ms};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        *times[i] = spot_observations_scaled(m, *times[i]);
    k.look_ms = max_i64(k.look_ms, 1);
    return k;
}

static struct spot_observations_ask build_query(const struct sight *s, const struct deadline_job *k)
{
    return (struct spot_observations_ask){.restart_ms = k->restart_ms,
        .switch_ms = k->switch_ms,
        .price = s->n_spot ? (double)s->spot_uusd_h / (double)s->sure_uusd_h : 1,
        .work_ms = k->work_ms,
        .slack_ms = k->left_ms - k->work_ms};
}

struct decision {
    enum procurement procurement;
    int64_t offer, look_ms;
    struct deadline_choice choice;
};

/* The observations of the spot offers, if any. */
static const struct spot_offer_set *recognise(
    const struct model *m, struct sight *s, struct stamp now)
{
    const struct spot_offer_set *k =
        s->n_spot ? spot_observations_offer_set(m, s->ids, s->n_spot) : NULL;
    for (size_t i = 0; k && i < s->n_spot; i++) {
        struct mono tried_again = s->of[i]->row.avoid_until;
        struct wall at = mono_is_set(tried_again)
                             ? (struct wall){now.wall.ms - (now.mono.ms - tried_again.ms)}
                             : WALL_NONE;
        spot_observations_offer(m, k, i, now.wall, at, &s->offers[i]);
    }
    return k;
}

/* A machine of an offer that was refused or reclaimed since the last examination is lost. */
static struct baseline_row baseline_now(const struct job *j, const struct work_left *w,
    const struct sight *s, const struct spot_offer_set *k, struct wall now)
{
    struct baseline_row to =
        procurement_baseline_now(&j->row.baseline, w->whole_ms, w->done_ms, now);
    for (size_t i = 0; k && i < s->n_spot; i++)
        if (s->ids[i] == to.on && spot_observations_away_ms(k, i) >= j->row.baseline.at_ms)
            procurement_baseline_go(&to, NULL, 0);
    return to;
}

static double scale(const struct model *m)
{
    return (double)DEADLINE_STEP_MS / (double)m->deadline.options.step_ms;
}

/* Without a table, or without anything to learn, Uniform Progress decides. */
static void choose(const struct model *m, const struct job *j, const struct work_left *w,
    struct sight *s, const struct deadline_job *job, struct stamp now,
    struct deadline_choice *ret_choice)
{
    struct deadline_policy policy = {.rule = m->deadline.options.rule, .takes_best = true};
    const struct spot_offer_set *k = recognise(m, s, now);
    uint16_t set_class = 0;
    if (k && policy.rule == DEADLINE_PLANNED) {
        const struct spot_observations_ask what = build_query(s, job);
        policy.table = spot_observations_table(m, k, &what);
        const size_t favourite = spot_observations_favourite(k);
        policy.price_uusd_h =
            favourite < s->n_spot ? s->offers[favourite].price_uusd_h : s->spot_uusd_h;
        set_class = spot_observations_class(m, k, now.wall);
    }
    if (policy.rule == DEADLINE_PLANNED && !policy.table)
        policy.rule = DEADLINE_UNIFORM_STICKY;
    if (s->n_spot == 0)
        policy.rule = DEADLINE_ON_DEMAND; /* there is no spot to wait for */
    struct deadline_job by_steps = scaled(m, *job);
    const struct baseline_row row = baseline_now(j, w, s, k, now.wall);
    const struct baseline baseline =
        procurement_baseline_among(&row, m->deadline.options.baseline, s->of, s->n, scale(m));
    by_steps.baseline = &baseline;
    by_steps.paid_uusd = (double)row.job_paid_uusd * scale(m);
    by_steps.cap_uusd = (double)s->sure_uusd_h * (double)by_steps.whole_work_ms / HOUR_MS *
                        m->deadline.options.cap_pct / 100;
    by_steps.law = deadline_law_usual(s->n_spot);
    deadline_decide(&policy, &by_steps, s->offers, s->n, set_class, ret_choice);
    ret_choice->cost_uusd /= scale(m);
    ret_choice->next_cost_uusd /= scale(m);
    ret_choice->meant_cost_uusd /= scale(m);
}

static double restart_uusd(const struct sight *s, const struct deadline_job *k)
{
    return (double)s->sure_uusd_h * (double)k->restart_ms / HOUR_MS;
}

/* What a save costs before the job leaves its machine: the program is paused. */
static double leaving_uusd(const struct sight *s, const struct deadline_job *k)
{
    int64_t placed_ms = k->restart_ms - k->boot_ms;
    return (double)s->sure_uusd_h * (double)(k->switch_ms - placed_ms) / HOUR_MS;
}

/* A machine, up or coming, is released only if that saves a good part of a restart's cost, and the
 * save before it. Near the break-even point the table's steps would otherwise start and release
 * repeatedly. On on-demand the next best action is taken then: to stay, or to move to spot. */
static bool is_worth_letting_go(
    const struct sight *s, const struct deadline_job *k, const struct deadline_choice *c)
{
    double costs = s->starting_since_ms ? restart_uusd(s, k)
                                        : restart_uusd(s, k) / LETS_GO_PART + leaving_uusd(s, k);
    return c->next_cost_uusd - c->cost_uusd > costs;
}

/* Whether it should stay although a machine was acquired for its move: only if that saves a good
 * part of a restart's cost. A try for spot is decided when no spot was seen. Once it is granted,
 * staying looks better again, because the table assumes that spot is seen without a machine. The
 * job would stay, the machine would be ended as idle, and the next try would be decided. */
static bool is_worth_staying(
    const struct sight *s, const struct deadline_job *k, const struct deadline_choice *c)
{
    return c->meant == DEADLINE_NOWHERE ||
           c->meant_cost_uusd - c->cost_uusd > restart_uusd(s, k) / LETS_GO_PART;
}

static void decide(const struct model *m, const struct job *j, const struct work_left *w,
    struct stamp now, struct decision *d)
{
    struct sight s;
    procurement_sight(m, j, now, &s);
    *d = (struct decision){.procurement = PROCURE_FREE,
        .offer = CORE_ID_NONE,
        .look_ms = m->deadline.options.look_ms,
        .choice = {.offer = DEADLINE_NOWHERE}};
    if (s.sure_uusd_h == 0)
        return;
    const struct deadline_job job = build_job_model(m, j, w, &s, now.wall);
    choose(m, j, w, &s, &job, now, &d->choice);
    size_t to = d->choice.offer;
    bool is_on_sure = s.on != DEADLINE_NOWHERE && s.on >= s.n_spot && !s.starting_since_ms;
    if ((to == DEADLINE_NOWHERE || to == s.on) && !is_worth_staying(&s, &job, &d->choice))
        to = d->choice.meant;
    else if (to == DEADLINE_NOWHERE && s.on != DEADLINE_NOWHERE &&
             m->deadline.options.rule == DEADLINE_PLANNED &&
             !is_worth_letting_go(&s, &job, &d->choice))
        to = is_on_sure && d->choice.next_offer < s.n_spot ? d->choice.next_offer : s.on;
    d->look_ms = job.look_ms;
    if (to == DEADLINE_NOWHERE)
        d->procurement =
            is_on_sure || d->choice.why == DEADLINE_WHY_BETTER_WAIT ? PROCURE_WAIT : PROCURE_SPOT;
    else if (to >= s.n_spot)
        d->procurement = PROCURE_ON_DEMAND;
    else
        d->procurement = PROCURE_SPOT;
    if (to < s.n_spot)
        d->offer = s.of[to]->row.id;
}

bool procurement_admits_spot(
    const struct model *m, const struct job *j, const struct work_left *w, struct stamp now)
{
    struct sight s;
    procurement_sight(m, j, now, &s);
    const struct deadline_job k = build_job_model(m, j, w, &s, now.wall);
    return s.n_spot > 0 && s.sure_uusd_h > 0 && deadline_slack_ms(&k) >= k.look_ms &&
           deadline_admits_start(&k);
}

static void describe(const struct decision *d, const struct work_left *w, const struct job *j,
    struct wall now, char *out, size_t size)
{
    static const char *const what[] = {
        [PROCURE_FREE] = "uses any market: no usable offer is always available",
        [PROCURE_WAIT] = "nothing for now",
        [PROCURE_SPOT] = "only spot for now",
        [PROCURE_ON_DEMAND] = "on-demand from now on"};
    char work[32], left[32];
    time_format_duration(w->ms, work, sizeof work);
    time_format_duration(max_i64(j->row.spec.finish_ms - now.ms, 0), left, sizeof left);
    text_format(out, size, "%s: about %s of work, %s left", what[d->procurement], work, left);
}

static bool is_on(const struct attempt *a, enum market market)
{
    return a && a->node->row.market == market;
}

/* Its procurement has no effect now: it runs on an owned node, or is stopping. */
static bool is_settled(const struct attempt *a)
{
    return a && (a->row.state == ATTEMPT_STOPPING || is_on(a, MARKET_OWNED));
}

/* Also of a job outside the model; of one in it, the same as procurement_is_looked_at(). */
static bool has_deadline(const struct job *j)
{
    return j->row.spec.finish_ms > 0 && j->row.state != JOB_ENDED && j->row.state != JOB_UNFOLDED;
}

bool procurement_is_decided(const struct job *j)
{
    return has_deadline(j) && !is_settled(job_attempt(j));
}

enum procurement procurement_hypothetical(
    const struct model *m, const struct job *j, struct stamp now)
{
    struct decision d;
    const struct work_left w = procurement_work_left(m, j, now.wall);
    decide(m, j, &w, now, &d);
    return d.procurement;
}

struct mono procurement_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->deadline.by_look);
    struct decision d;
    if (!first)
        return MONO_NONE;
    const struct job_side *t = TREE_ENTRY(first, struct job_side, by_procurement);
    const struct job *j = t->job;
    *ret_event = (struct event){.type = EV_PROCUREMENT,
        .procurement = {.job = j->row.id,
            .procurement = j->row.procurement,
            .offer = t->procurement_offer,
            .look_ms = m->deadline.options.look_ms}};
    if (t->procurement_at.ms > now.mono.ms || is_settled(job_attempt(j)))
        return t->procurement_at;
    struct work_left w = procurement_work_left(m, j, now.wall);
    decide(m, j, &w, now, &d);
    ret_event->procurement.procurement = d.procurement;
    ret_event->procurement.offer = d.offer;
    ret_event->procurement.look_ms = d.look_ms;
    describe(&d, &w, j, now.wall, ret_event->procurement.text, sizeof ret_event->procurement.text);
    return t->procurement_at;
}

/* The current policy; without a table as in choose(). */
static struct deadline_policy policy_now(
    const struct model *m, const struct spot_offer_set *k, const struct spot_observations_ask *what)
{
    struct deadline_policy p = {.rule = m->deadline.options.rule, .takes_best = true};
    if (p.rule == DEADLINE_PLANNED)
        p.table = spot_observations_table(m, k, what);
    if (p.rule == DEADLINE_PLANNED && !p.table)
        p.rule = DEADLINE_UNIFORM_STICKY;
    return p;
}

/* Time until it works: on its machine, or on one that must be acquired first. */
static int64_t start_left_ms(const struct sight *s, const struct deadline_job *k)
{
    return s->on == DEADLINE_NOWHERE ? k->restart_ms : k->starting_ms;
}

/* There is no spot offer to wait for. */
static struct procurement_outlook without_spot(const struct sight *s, const struct deadline_job *k)
{
    int64_t start_ms = start_left_ms(s, k);
    return (struct procurement_outlook){.median_ms = start_ms + k->work_ms,
        .p95_ms = start_ms + k->work_worst_ms,
        .uusd = (int64_t)((double)s->sure_uusd_h * (double)(start_ms + k->work_ms) / HOUR_MS)};
}

bool core_procurement_expects(const struct model *m, const struct job *j, struct stamp now,
    struct procurement_outlook *ret_outlook)
{
    struct sight s;
    struct deadline_outlook o;
    if (!procurement_is_decided(j))
        return false;
    procurement_sight(m, j, now, &s);
    if (s.sure_uusd_h == 0)
        return false;
    struct work_left w = procurement_work_left(m, j, now.wall);
    const struct deadline_job job = build_job_model(m, j, &w, &s, now.wall),
                              by_steps = scaled(m, job);
    const struct spot_offer_set *k =
        s.n_spot ? spot_observations_offer_set(m, s.ids, s.n_spot) : NULL;
    const struct deadline_chain *chain = k ? spot_observations_chain(m, k) : NULL;
    /* prices are those of one machine */
    const int64_t nodes = job_attempt(j) ? j->row.ranks : j->shape->least;
    if (s.n_spot == 0) {
        *ret_outlook = without_spot(&s, &job);
        ret_outlook->uusd *= nodes;
    }
    if (s.n_spot == 0 || !chain)
        return s.n_spot == 0;
    const struct spot_observations_ask what = build_query(&s, &job);
    const struct deadline_policy policy = policy_now(m, k, &what);
    deadline_outlook(&policy, chain, &by_steps, what.price,
        s.on == DEADLINE_NOWHERE ? DEADLINE_MODE_IDLE
        : s.on < s.n_spot        ? DEADLINE_MODE_SPOT
                                 : DEADLINE_MODE_ON_DEMAND,
        spot_observations_class(m, k, now.wall), &o);
    *ret_outlook =
        (struct procurement_outlook){.median_ms = (int64_t)((double)o.median_ms / scale(m)),
            .p95_ms = (int64_t)((double)o.p95_ms / scale(m)),
            .uusd = (int64_t)(o.cost * (double)nodes * (double)s.sure_uusd_h *
                              (double)m->deadline.options.step_ms / HOUR_MS)};
    return true;
}

/* Why a rule without a table chose on-demand. */
static const char *rule_says(enum deadline_rule rule)
{
    if (rule == DEADLINE_GREEDY)
        return "it has waited for spot for the maximum time";
    if (rule == DEADLINE_ON_DEMAND)
        return "on-demand from the start was chosen";
    return "it is behind schedule, or its finish time is near";
}

/* Expected on-demand completion exceeds the time left. */
static bool is_late(const struct sight *s, const struct deadline_job *k)
{
    return start_left_ms(s, k) + k->work_ms > k->left_ms;
}

static const char *baseline_name(enum deadline_rule rule)
{
    switch (rule) {
    case DEADLINE_RC_CR:
    case DEADLINE_RC_CR_PLAIN:
        return "Uniform Progress as its authors published it";
    case DEADLINE_GREEDY:
        return "spot as long as there is time";
    case DEADLINE_ON_DEMAND:
        return "on-demand from the start";
    default:
        return "Uniform Progress";
    }
}

/* On-demand is expected to be in time, but not in the worst case. */
static void why_not_guaranteed(const struct deadline_job *k, char *out, size_t size)
{
    char worst[32];
    time_format_duration(k->left_ms - deadline_slack_ms(k), worst, sizeof worst);
    text_format(out, size,
        "it uses on-demand: that is expected to meet the deadline, but in the worst case takes %s, "
        "more than is left",
        worst);
}

static void why_sure(const struct model *m, const struct sight *s, const struct deadline_job *k,
    const struct deadline_choice *c, char *out, size_t size)
{
    char cost[32], next[32];
    if (s->n_spot == 0)
        text_format(out, size, "it uses on-demand: there is no usable spot offer");
    else if (is_late(s, k))
        text_format(out, size, "it uses on-demand: no other offer is as early");
    else if (deadline_slack_ms(k) < 0 && m->deadline.options.rule != DEADLINE_ON_DEMAND)
        why_not_guaranteed(k, out, size);
    else if (c->why == DEADLINE_WHY_NET || c->why == DEADLINE_WHY_DONE)
        text_format(out, size, "it uses on-demand: only on-demand guarantees the deadline");
    else if (c->why == DEADLINE_WHY_CAP)
        text_format(out, size,
            "it uses on-demand: waiting for spot might cost more than %s by over the cap, %d %% of "
            "what its work costs on on-demand",
            baseline_name(m->deadline.options.baseline), (int)m->deadline.options.cap_pct);
    else if (c->why == DEADLINE_WHY_RULE)
        text_format(out, size, "it uses on-demand: %s", rule_says(m->deadline.options.rule));
    else if (isinf(c->next_cost_uusd))
        text_format(out, size, "it uses on-demand: there is no time to wait for spot");
    else {
        str_format_usd((int64_t)c->cost_uusd, cost, sizeof cost);
        str_format_usd((int64_t)c->next_cost_uusd, next, sizeof next);
        text_format(out, size,
            "it uses on-demand: the expected total cost is %s, of the next best option %s", cost,
            next);
    }
}

bool procurement_is_late_if(const struct model *m, const struct job *j, const struct work_left *w,
    struct stamp now, int64_t *ret_takes_ms)
{
    struct sight s;
    procurement_sight(m, j, now, &s);
    const struct deadline_job k = build_job_model(m, j, w, &s, now.wall);
    *ret_takes_ms =
        k.work_ms + (is_on(job_attempt(j), MARKET_OWNED) ? procurement_work_warming_ms(j, now.wall)
                                                         : start_left_ms(&s, &k));
    return *ret_takes_ms > k.left_ms;
}

bool core_procurement_late(const struct model *m, const struct job *j, struct stamp now,
    int64_t *ret_takes_ms, bool *ret_on_demand)
{
    struct sight s;
    const struct attempt *a = job_attempt(j);
    if (!has_deadline(j) || (a && a->row.state == ATTEMPT_STOPPING))
        return false;
    procurement_sight(m, j, now, &s);
    *ret_on_demand = s.sure_uusd_h > 0 && !is_on(a, MARKET_OWNED);
    const struct work_left w = procurement_work_left(m, j, now.wall);
    return procurement_is_late_if(m, j, &w, now, ret_takes_ms);
}

bool core_procurement_why(
    const struct model *m, const struct job *j, struct stamp now, char *out, size_t size)
{
    struct sight s;
    struct decision d;
    const struct attempt *a = job_attempt(j);
    const struct offer *o;
    if (!has_deadline(j))
        return false;
    struct work_left w = procurement_work_left(m, j, now.wall);
    if (is_on(a, MARKET_OWNED)) {
        text_format(out, size, "it runs on an owned machine");
        return true;
    }
    procurement_sight(m, j, now, &s);
    decide(m, j, &w, now, &d);
    const struct deadline_job k = build_job_model(m, j, &w, &s, now.wall);
    o = model_offer(m, d.offer);
    if (d.procurement == PROCURE_FREE && s.too_dear_uusd_h > 0)
        text_format(out, size,
            "only on-demand guarantees the deadline, for $%.2f an hour or more, but its maximum is "
            "$%.2f (--max-usd-per-hour): it uses any offer below that, and may be late",
            (double)s.too_dear_uusd_h / 1e6, (double)j->shape->max_uusd_h / 1e6);
    else if (d.procurement == PROCURE_FREE)
        text_format(out, size, "no usable offer is always available, so it uses any market");
    else if (d.procurement == PROCURE_ON_DEMAND)
        why_sure(m, &s, &k, &d.choice, out, size);
    else if (d.procurement == PROCURE_WAIT && d.choice.why == DEADLINE_WHY_BETTER_WAIT)
        text_format(out, size,
            "it waits for better spot: there is time, and the available spot is not expected to "
            "last");
    else if (d.procurement == PROCURE_WAIT)
        text_format(
            out, size, "it waits for spot: there is time, so its on-demand machine is released");
    else if (o && a && s.on < s.n_spot && s.of[s.on] == o)
        text_format(out, size, "it stays on spot, %s/%s/%s, until that is lost", o->pool->row.name,
            o->row.zone, o->row.type);
    else if (is_on(a, MARKET_ON_DEMAND))
        text_format(out, size,
            "it stays on on-demand until a spot machine is up: there is time for the move");
    else if (o)
        text_format(out, size, "it uses only spot for now, %s/%s/%s: there is time to wait for it",
            o->pool->row.name, o->row.zone, o->row.type);
    else
        text_format(out, size,
            "it uses only spot for now: there is time to wait, and the next launch is tried as "
            "soon as possible");
    return true;
}

void procurement_refused(struct model *m, const struct offer *o, struct stamp now)
{
    struct job **jobs = NULL;
    size_t n = 0;
    for (const struct tree_link *l = tree_first(&m->deadline.by_look); l; l = tree_next(l)) {
        const struct job_side *t = TREE_ENTRY(l, struct job_side, by_procurement);
        if (t->procurement_offer == o->row.id)
            *GROW(jobs, n) = t->job;
    }
    for (size_t i = 0; i < n; i++)
        look_at(m, jobs[i], now.mono.ms);
    free(jobs);
}

/* Its hourly price from now on: of its machine, and of one that boots beside it; or of the offer
 * planned for it. */
static int64_t price_of(
    const struct model *m, const struct job *j, const struct sight *s, const struct event *ev)
{
    const struct attempt *a = job_attempt(j);
    const struct offer *to =
        ev->procurement.procurement == PROCURE_SPOT ? model_offer(m, ev->procurement.offer) : NULL;
    if (a)
        return (a->node->instance ? a->node->instance->offer->row.price_uusd_h : 0) +
               (to && s->moving_to < s->n_spot ? s->of[s->moving_to]->row.price_uusd_h : 0);
    return ev->procurement.procurement == PROCURE_ON_DEMAND ? s->sure_uusd_h
           : to                                             ? to->row.price_uusd_h
                                                            : 0;
}

/* Advances the job's baseline, and requests the table for its next decisions. */
static void go_on(struct model *m, struct job *j, const struct event *ev)
{
    struct stamp now = ev->now;
    struct sight s;
    procurement_sight(m, j, now, &s);
    if (s.n_spot == 0 || s.sure_uusd_h == 0)
        return;
    struct work_left w = procurement_work_left(m, j, now.wall);
    const struct deadline_job job = build_job_model(m, j, &w, &s, now.wall),
                              by_steps = scaled(m, job);
    const struct spot_observations_ask what = build_query(&s, &job);
    if (job.left_ms >= PLANNED_STEPS * m->deadline.options.step_ms)
        spot_observations_want(
            m, s.ids, s.n_spot, m->deadline.options.rule == DEADLINE_PLANNED ? &what : NULL, now);
    if (m->deadline.options.rule != DEADLINE_PLANNED)
        return;
    const struct spot_offer_set *k = recognise(m, &s, now);
    struct baseline_row row = baseline_now(j, &w, &s, k, now.wall);
    const struct baseline baseline =
        procurement_baseline_among(&row, m->deadline.options.baseline, s.of, s.n, scale(m));
    size_t to = baseline_look(&baseline, &by_steps, s.offers, s.n);
    procurement_baseline_go(&row, to == DEADLINE_NOWHERE ? NULL : s.of[to], job.restart_ms);
    row.job_price_uusd_h = price_of(m, j, &s, ev);
    j->row.baseline = row;
}

/* Stops a job whose machine is of a market that its procurement excludes. On-demand is released
 * only if no work is lost. Spot is left even by a job that cannot be saved and so starts over:
 * there is time for that now, but not later. */
static void let_go(struct model *m, struct job *j, struct stamp now)
{
    struct attempt *a = job_attempt(j);
    if (!a || a->row.state != ATTEMPT_RUNNING || j->row.state != JOB_RUNNING ||
        procurement_allows(j->row.procurement, a->node->row.market) ||
        (j->row.procurement == PROCURE_SPOT && is_on(a, MARKET_ON_DEMAND)))
        return;
    bool never_saves = j->row.spec.method == CKPT_NONE && j->row.procurement == PROCURE_ON_DEMAND;
    if (!never_saves && !attempt_can_move(a))
        return;
    job_stop(m, j, END_EVICTED, !never_saves);
    history(m, now, "move", (struct history_of){.attempt = a}, "%s",
        j->row.procurement == PROCURE_ON_DEMAND
            ? "on spot it might be late"
            : "there is time to wait for spot: on-demand is released");
    model_note_change(m);
}

int apply_procurement(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->procurement.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (!procurement_is_looked_at(j))
        return err_set(e, ERR_CONFLICT, "job %s has no finish time", job_ref(&j->row).s);
    look_at(m, j, ev->now.mono.ms + max_i64(ev->procurement.look_ms, 1));
    if (!is_settled(job_attempt(j)))
        go_on(m, j, ev);
    if (j->row.procurement != ev->procurement.procurement ||
        job_procurement_offer(j) != ev->procurement.offer) {
        /* On on-demand it retries spot repeatedly and keeps running: these tries are not all in the
         * history. */
        bool is_try = is_on(job_attempt(j), MARKET_ON_DEMAND) &&
                      j->row.procurement >= PROCURE_SPOT &&
                      ev->procurement.procurement >= PROCURE_SPOT;
        bool is_other = j->row.procurement != ev->procurement.procurement;
        j->row.procurement = ev->procurement.procurement;
        j->side->procurement_offer = ev->procurement.offer;
        queue_reshape(m, j);
        model_note_change(m);
        if (is_other)
            touch_job(m, j);
        if (is_other && !is_try)
            history(m, ev->now, "pace", (struct history_of){.job = j, .attempt = job_attempt(j)},
                "%s", ev->procurement.text);
    }
    let_go(m, j, ev->now);
    return 0;
}
