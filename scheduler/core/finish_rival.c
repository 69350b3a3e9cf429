/* SPDX-License-Identifier: Apache-2.0
 *
 * Uniform Progress beside the job, and what it may come to cost more than that (finish_rival.h). All money here is in uusd.
 */
#include "scheduler/core/finish_rival.h"

#include <math.h>

#define HOUR_MS 3600000.0

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void finish_rival_init(struct finish_rival *rival)
{
    *rival = (struct finish_rival){.on = FINISH_NOWHERE, .last = FINISH_NOWHERE};
}

struct finish_job finish_rival_job(const struct finish_rival *rival, const struct finish_job *job, const struct finish_offer *offers)
{
    struct finish_job r = *job;
    const int64_t left_ms = job->whole_work_ms - rival->done_ms;

    r.rival = NULL;
    r.work_ms = left_ms > 0 ? left_ms : 0;
    r.work_worst_ms = r.work_ms + (r.work_ms > 0 ? job->work_worst_ms - job->work_ms : 0);
    r.on = rival->on;
    if (r.on != FINISH_NOWHERE && !offers[r.on].is_sure && (!offers[r.on].is_up || offers[r.on].is_guess))
        r.on = FINISH_NOWHERE;
    r.last = rival->last;
    r.starting_ms = rival->starting_ms;
    r.paid_uusd = rival->paid_uusd;
    return r;
}

void finish_rival_go(struct finish_job *job, const struct finish_offer *offers, size_t to, int64_t passed_ms)
{
    const int64_t boot = to == FINISH_NOWHERE ? 0 : to == job->on ? job->starting_ms : job->restart_ms;
    const int64_t booted = least(boot, passed_ms), ran = to == FINISH_NOWHERE ? 0 : least(passed_ms - booted, job->work_ms);

    job->left_ms -= passed_ms;
    job->starting_ms = boot - booted;
    job->work_ms -= ran;
    job->work_worst_ms -= ran;
    job->on = to;
    if (to == FINISH_NOWHERE)
        return;
    job->paid_uusd += (double)offers[to].price_uusd_h * (double)(booted + ran) / HOUR_MS;
    if (!offers[to].is_sure)
        job->last = to;
}

size_t finish_rival_look(const struct finish_rival *rival, const struct finish_job *job, const struct finish_offer *offers, size_t n)
{
    const struct finish_policy p = {.rule = FINISH_UNIFORM, .takes_best = true, .only_seen = true};
    const struct finish_job r = finish_rival_job(rival, job, offers);
    struct finish_choice choice;

    finish_decide(&p, &r, offers, n, 0, &choice);
    return choice.offer;
}

void finish_rival_pass(struct finish_rival *rival, const struct finish_job *job, const struct finish_offer *offers, size_t to, int64_t passed_ms)
{
    struct finish_job r = finish_rival_job(rival, job, offers);
    const int64_t work_ms = r.work_ms;

    finish_rival_go(&r, offers, to, passed_ms);
    rival->done_ms += work_ms - r.work_ms;
    rival->starting_ms = r.starting_ms;
    rival->on = r.on;
    rival->last = r.last;
    rival->paid_uusd = r.paid_uusd;
}

/* The work that the rival has at most when its slack has come down to where the job, so much behind it, has none, if it wastes no more restarts below its line than
 * are allowed for from now on. */
static double work_when_out(const struct finish_job *job, const struct finish_job *rival, double needs, double behind)
{
    const double slack = (double)(job->whole_time_ms - job->whole_work_ms), restart = (double)rival->restart_worst_ms;
    const double per_slack = slack > 0 ? (double)job->whole_work_ms / slack : INFINITY;
    const double lag = needs / per_slack - ((double)rival->left_ms - needs);

    return (2 * restart + behind + fmax(lag, 0) + job->flaps * restart) * per_slack;
}

double finish_rival_regret(const struct finish_job *job, const struct finish_job *rival, const struct finish_offer *offers, size_t n, size_t sure)
{
    const double unit = (double)offers[sure].price_uusd_h / HOUR_MS, restart = (double)job->restart_ms;
    const double paid = job->paid_uusd - rival->paid_uusd;
    const double alone = (double)job->work_ms + (job->work_ms == 0 ? 0 : job->on == sure ? (double)job->starting_ms : restart);
    const double theirs = (double)rival->work_ms + (rival->on == FINISH_NOWHERE ? 0 : (double)rival->starting_ms);
    const double behind = (double)job->work_ms - theirs
        + (rival->on == FINISH_NOWHERE ? 0 : job->on == rival->on ? (double)job->starting_ms : restart);
    const double spare = (double)(rival->left_ms - rival->restart_worst_ms - rival->failed_launch_ms) - theirs;
    double price = unit, most, out;

    for (size_t i = 0; i < n; i++)
        price = offers[i].is_sure ? price : fmin(price, (double)offers[i].price_uusd_h / HOUR_MS);
    if (rival->on == sure && spare < (double)rival->restart_worst_ms)
        return paid + unit * (alone - theirs);
    most = paid + unit * alone - price * theirs;
    if (behind <= 0)
        return fmin(most, paid + price * behind);
    out = work_when_out(job, rival, theirs, behind);
    return out < theirs ? fmin(most, paid + unit * (behind + restart) + (unit - price) * out) : most;
}
