/* SPDX-License-Identifier: Apache-2.0
 *
 * The baseline of a job, and the bound on the extra cost relative to it
 * (baseline.h). All money here is in uusd.
 */
#include "scheduler/core/deadline/baseline.h"

#include "base/minmax.h"
#include <math.h>

#define HOUR_MS 3600000.0

const struct deadline_law deadline_law_one = {.interruptions = 5, .losses = 2, .part = 0.5};
const struct deadline_law deadline_law_several = {.interruptions = 2, .losses = 0.4, .part = 0.5};
const struct deadline_law deadline_law_certain = {.interruptions = INFINITY};

const struct deadline_law *deadline_law_usual(size_t n_spot)
{
    return n_spot > 1 ? &deadline_law_several : &deadline_law_one;
}

void baseline_init(struct baseline *baseline, enum deadline_rule rule)
{
    *baseline = (struct baseline){.rule = rule, .on = DEADLINE_NOWHERE, .last = DEADLINE_NOWHERE};
}

static bool is_lost(const struct deadline_offer *offers, size_t on)
{
    return on != DEADLINE_NOWHERE && !offers[on].is_sure && !offers[on].is_up;
}

void baseline_lose(struct deadline_job *job, const struct deadline_offer *offers)
{
    if (is_lost(offers, job->on))
        job->on = DEADLINE_NOWHERE;
    if (job->boot_ms > 0 && is_lost(offers, job->moving_to))
        job->moving_to = DEADLINE_NOWHERE;
}

struct deadline_job baseline_job(const struct baseline *baseline, const struct deadline_job *job,
    const struct deadline_offer *offers)
{
    struct deadline_job r = *job;
    const int64_t left_ms = job->whole_work_ms - baseline->done_ms;

    r.baseline = NULL;
    r.boot_ms = 0; /* it leaves on-demand first, as published */
    r.work_ms = left_ms > 0 ? left_ms : 0;
    r.work_worst_ms = r.work_ms + (r.work_ms > 0 ? job->work_worst_ms - job->work_ms : 0);
    r.on = baseline->on;
    baseline_lose(&r, offers);
    r.last = baseline->last;
    r.starting_ms = baseline->starting_ms;
    r.paid_uusd = baseline->paid_uusd;
    return r;
}

/* Computes on beside the machine of `to` until that is up, which is used from then on, for at most
 * most_ms. Returns the time. */
static int64_t compute_beside(
    struct deadline_job *job, const struct deadline_offer *offers, size_t to, int64_t most_ms)
{
    if (job->moving_to != to)
        job->coming_ms = job->boot_ms;
    job->moving_to = to;
    const int64_t ran = min_i64(min_i64(job->coming_ms, most_ms), job->work_ms);

    job->work_ms -= ran;
    job->work_worst_ms -= ran;
    job->left_ms -= ran;
    job->paid_uusd +=
        (double)(offers[job->on].price_uusd_h + offers[to].price_uusd_h) * (double)ran / HOUR_MS;
    job->coming_ms -= ran;
    if (job->coming_ms == 0 && job->work_ms > 0) {
        job->on = to;
        job->starting_ms = job->switch_ms;
    }
    return ran;
}

int64_t baseline_go(
    struct deadline_job *job, const struct deadline_offer *offers, size_t to, int64_t passed_ms)
{
    int64_t beside = 0;

    if (to != DEADLINE_NOWHERE && !offers[to].is_sure && deadline_moves(job, offers)) {
        beside = compute_beside(job, offers, to, passed_ms);
        passed_ms -= beside;
        if (job->on != to) { /* done, or not yet up */
            job->left_ms -= passed_ms;
            return beside;
        }
    }
    job->moving_to = DEADLINE_NOWHERE;
    const int64_t boot = to == DEADLINE_NOWHERE ? 0
                         : to == job->on        ? job->starting_ms
                                                : job->restart_ms;
    const int64_t booted = min_i64(boot, passed_ms),
                  ran = to == DEADLINE_NOWHERE ? 0 : min_i64(passed_ms - booted, job->work_ms);

    job->left_ms -= passed_ms;
    job->starting_ms = boot - booted;
    job->work_ms -= ran;
    job->work_worst_ms -= ran;
    job->on = to;
    if (to == DEADLINE_NOWHERE)
        return 0;
    job->paid_uusd += (double)offers[to].price_uusd_h * (double)(booted + ran) / HOUR_MS;
    if (!offers[to].is_sure)
        job->last = to;
    return beside + booted + ran;
}

size_t baseline_look(const struct baseline *baseline, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t n)
{
    const struct deadline_policy p = {.rule = baseline->rule, .takes_best = true};
    const struct deadline_job r = baseline_job(baseline, job, offers);
    struct deadline_choice choice;

    deadline_decide(&p, &r, offers, n, 0, &choice);
    return choice.offer;
}

void baseline_pass(struct baseline *baseline, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t to, int64_t passed_ms)
{
    struct deadline_job r = baseline_job(baseline, job, offers);
    const int64_t work_ms = r.work_ms;

    baseline_go(&r, offers, to, passed_ms);
    baseline->done_ms += work_ms - r.work_ms;
    baseline->starting_ms = r.starting_ms;
    baseline->on = r.on;
    baseline->last = r.last;
    baseline->paid_uusd = r.paid_uusd;
}

/* Job and baseline after the same examination. Times in ms of work, prices in uusd per ms. The
 * names in the lemmas of docs/explanation/deadlines.md are in brackets. */
struct comparison {
    const struct deadline_job *job, *baseline;
    double unit, price; /* prices of on-demand [1], and of the cheapest spot offer [p] */
    double paid;        /* paid by the job minus paid by the baseline [D] */
    /* Remaining work of the baseline [w'], and how much more the job has [b]; both including the
     * rest of a start. */
    double baseline_left, behind;
    double restart;
};

static struct comparison compare(const struct deadline_job *job,
    const struct deadline_job *baseline, const struct deadline_offer *offers, size_t n, size_t sure)
{
    struct comparison b = {.job = job,
        .baseline = baseline,
        .unit = (double)offers[sure].price_uusd_h / HOUR_MS,
        .restart = (double)job->restart_ms};

    b.price = b.unit;
    for (size_t i = 0; i < n; i++)
        if (!offers[i].is_sure)
            b.price = fmin(b.price, (double)offers[i].price_uusd_h / HOUR_MS);
    b.paid = job->paid_uusd - baseline->paid_uusd;
    b.baseline_left = (double)baseline->work_ms +
                      (baseline->on == DEADLINE_NOWHERE ? 0 : (double)baseline->starting_ms);
    b.behind = (double)job->work_ms - b.baseline_left;
    if (baseline->on != DEADLINE_NOWHERE)
        b.behind += job->on == baseline->on ? (double)job->starting_ms : b.restart;
    return b;
}

/* Loss rate per hour of the spot offer that the baseline is likely to be on: the higher one of the
 * offer that it would take and of its last one. */
static double rate_of_loss(
    const struct deadline_job *baseline, const struct deadline_offer *offers, size_t n)
{
    size_t best = baseline->last;

    for (size_t i = 0; i < n; i++)
        if (!offers[i].is_sure &&
            (best == DEADLINE_NOWHERE || offers[i].share > offers[best].share))
            best = i;
    if (best == DEADLINE_NOWHERE)
        return 0;
    return baseline->last == DEADLINE_NOWHERE
               ? offers[best].rate
               : fmax(offers[best].rate, offers[baseline->last].rate);
}

/* Upper bound on the work [u] that the baseline may still do on spot after the job, which follows
 * it, has used up its leeway [r]: by Lemma 6, and at most the work left at the assumed waste per ms
 * of work [x]. */
static double done_after(double baseline_left, double behind, double leeway, double wasted)
{
    const double whatever = baseline_left * behind / (leeway + behind);

    if (wasted >= 1)
        return whatever;
    return wasted > 0 ? fmin(whatever, fmax(0, baseline_left - leeway * (1 - wasted) / wasted)) : 0;
}

/* Lemma 6: extra cost of following the baseline, and using on-demand whenever it idles, until the
 * job has caught up. INFINITY if the remaining time may not suffice for that. */
static double regret_catching_up(
    const struct comparison *b, double spare, double rate, bool is_on_sure)
{
    const struct deadline_law *law = b->job->law;
    const double worst = (double)b->baseline->restart_worst_ms,
                 interruption = worst + (double)b->job->look_ms;
    const double behind = b->behind + (is_on_sure ? (double)b->job->starting_ms : b->restart);
    const double leeway = spare - worst - behind - 2 * law->interruptions * interruption;

    if (leeway < 0)
        return INFINITY;
    return b->paid + b->unit * (behind + law->interruptions * b->restart) +
           (b->unit - b->price) * done_after(b->baseline_left, behind, leeway,
                                      law->losses * rate / HOUR_MS * 2 * interruption);
}

/* Lemmas 4 and 6. */
double baseline_regret(const struct deadline_job *job, const struct deadline_job *baseline,
    const struct deadline_offer *offers, size_t n, size_t sure)
{
    const struct comparison b = compare(job, baseline, offers, n, sure);
    const bool is_on_sure = job->on == sure;
    const double alone = (double)job->work_ms + (job->work_ms == 0 ? 0
                                                    : is_on_sure   ? (double)job->starting_ms
                                                                   : b.restart);
    const double spare =
        (double)(baseline->left_ms - baseline->restart_worst_ms - baseline->failed_launch_ms) -
        b.baseline_left;
    const double most = b.paid + b.unit * alone - b.price * b.baseline_left;

    if (baseline->on == sure && spare < (double)baseline->restart_worst_ms)
        return b.paid + b.unit * (alone - b.baseline_left);
    if (b.behind <= 0)
        return fmin(most, b.paid + b.price * b.behind);
    if (isinf(job->law->interruptions))
        return most;
    return fmin(most, regret_catching_up(&b, spare, rate_of_loss(baseline, offers, n), is_on_sure));
}

double baseline_owed(const struct deadline_job *job, const struct deadline_job *baseline,
    const struct deadline_offer *offers, size_t n, size_t sure)
{
    const struct comparison b = compare(job, baseline, offers, n, sure);

    return b.paid + (b.behind <= 0 ? b.price * b.behind : b.unit * (b.behind + b.restart));
}
