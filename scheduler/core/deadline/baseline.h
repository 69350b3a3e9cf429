/* SPDX-License-Identifier: Apache-2.0
 *
 * A cap on regret: however the market turns out, the plan of deadline.h is to cost no more than so
 * much above what Uniform Progress would have cost the same job. That rule is the baseline, played
 * beside the job on what the job itself sees: the offers that are up, look by look. It needs no
 * look-ahead, and costs what one more decision does.
 *
 * Before something is done, the worst that it can come to is worked out. Write w for the job's work
 * left with what a start still takes, to where the baseline is if it is elsewhere; w' for the
 * baseline's; D for what was paid more so far; p for the least price of spot, and count money in
 * time on demand.
 *
 *     w <= w'                D - p (w' - w): doing from now on what the baseline does is always
 *                            possible, and costs no more than that
 *     the baseline has gone  D + w - w': it is on on-demand for good, so what it still costs is
 *                            known
 *     otherwise              D + w - p w': on-demand to the end, while the baseline has spot to the
 *                            end
 *
 * What would pass the cap is not done; while one of these holds, following the baseline keeps it,
 * so the cap holds for certain.
 *
 * That is deadline_law_certain, whose FLAPS are INFINITY. It hardly lets a job be behind, for spot
 * might go and come until the job's slack is used up, and then stay for the baseline. With a number
 * of flaps a fourth is enough, b being w - w' and a start: a job that is behind goes where the
 * baseline is, and on on-demand whenever that idles, by which it comes up to it for what the work
 * costs there. If spot keeps flapping all the same, its room r (its slack, less the net and two
 * restarts and looks for each flap) is used up before the baseline's r + b is, which has spot for
 * some of the time between, u. So it comes to
 *
 *     D + b + flaps restarts + (1 - p) u,    u <= w' b / (r + b)
 *
 * whatever part x of the time restarts waste, as long as that stays as it is: until r is used up
 * the baseline does r (1 - x) / x, then b (1 - x) / x. If spot was lost seldom of late u is less:
 * LOSSES times as often as then is reckoned with. A PART of the cap is used so; in a market worse
 * than that the job comes up to the baseline while it can pay for that, and does then as that does.
 *
 * PURE, as deadline.h.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_BASELINE_H
#define BELAY_SCHEDULER_CORE_DEADLINE_BASELINE_H

#include "scheduler/core/deadline/deadline.h"

/* What was chosen (docs/explanation/deadlines.md), for jobs with one spot offer and with several,
 * and what is certain. */
extern const struct deadline_law deadline_law_one, deadline_law_several, deadline_law_certain;
/* Of the first two that of a job with so many spot offers. */
const struct deadline_law *deadline_law_usual(size_t n_spot);

/* A job that came just now. */
void baseline_init(struct baseline *baseline);

/* Where the baseline is until the next look. job says what is known of the job that it goes beside:
 * its own work, places and payments are put in for the job's. What was on spot that is not up has
 * lost it. */
size_t baseline_look(const struct baseline *baseline, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t n);

/* passed_ms later, if it was there, `to` that baseline_look() returned. job and offers are
 * those of that look. */
void baseline_pass(struct baseline *baseline, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t to, int64_t passed_ms);

/* For deadline.c. */

/* The job as the baseline has it now, and after the time to the next look at `to`. */
struct deadline_job baseline_job(const struct baseline *baseline, const struct deadline_job *job,
    const struct deadline_offer *offers);
void baseline_go(
    struct deadline_job *job, const struct deadline_offer *offers, size_t to, int64_t passed_ms);

/* The most that the job may come to cost more than the baseline, in uusd, both as they are after
 * the same look; sure: the cheapest sure offer. */
double baseline_regret(const struct deadline_job *job, const struct deadline_job *baseline,
    const struct deadline_offer *offers, size_t n, size_t sure);
/* What the job comes to cost more if it is done from now on as the baseline does, so much behind
 * it, and neither runs out of slack. */
double baseline_owed(const struct deadline_job *job, const struct deadline_job *baseline,
    const struct deadline_offer *offers, size_t n, size_t sure);

#endif
