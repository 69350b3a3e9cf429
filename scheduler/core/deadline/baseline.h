/* SPDX-License-Identifier: Apache-2.0
 *
 * A cap on regret: the plan of deadline.h is kept from costing more than a given amount above what
 * another rule would have cost the same job: the baseline, usually Uniform Progress. It is
 * simulated next to the job on the same observations: the offers that are up at each examination.
 * It needs no look-ahead and costs as much as one more decision. The cap holds for every course of
 * the market under deadline_law_certain, and for most under the laws in use.
 *
 * Before an action, its worst-case extra cost is computed. Let w be the job's remaining work
 * including the rest of a start, up to the baseline's place if that differs; w' the baseline's; D
 * the amount paid more so far; p the lowest spot price. Money is counted in on-demand time.
 *
 *     w <= w'                D - p (w' - w): from now on the job can always do what the baseline
 *                            does, which costs no more than that
 *     the baseline is on     D + w - w': it stays on on-demand, so its remaining cost is known
 *     on-demand for good
 *     otherwise              D + w - p w': on-demand to the end, while the baseline has spot to the
 *                            end
 *
 * Actions that might exceed the cap are excluded. While one of these bounds is kept, following the
 * baseline keeps it, so the cap is guaranteed.
 *
 * That is deadline_law_certain, with infinite INTERRUPTIONS. It hardly lets a job fall behind,
 * since spot might come and go until the job's slack is used up, and then stay for the baseline.
 * With a finite number of interruptions a fourth bound suffices. Let b be w - w' plus a start. A
 * job that is behind follows the baseline, and uses on-demand whenever that idles, so it catches up
 * at the cost of that work on-demand. If spot keeps coming and going, its leeway r (slack, minus
 * the net and two restarts and examinations per interruption) is used up before the baseline's r +
 * b, which has spot for part of the time in between, u. The extra cost is at most
 *
 *     D + b + interruptions * restart + (1 - p) u,    u <= w' b / (r + b)
 *
 * for every fraction x of the time that restarts waste, as long as x is constant: until r is used
 * up the baseline does r (1 - x) / x, then b (1 - x) / x. If spot was rarely lost recently, u is
 * less: LOSSES times the recent rate is assumed. If the table expects little gain from spot,
 * because that rarely outlasts a restart, the bound is nearer to what the job owes already
 * (deadline.c): the baseline is not followed onto spot that is worth nothing. A PART of the cap is
 * used this way. In a worse market the job catches up with the baseline while it can afford to, and
 * then does the same as the baseline.
 *
 * PURE, as deadline.h.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_BASELINE_H
#define BELAY_SCHEDULER_CORE_DEADLINE_BASELINE_H

#include "scheduler/core/deadline/deadline.h"

/* The laws in use (docs/explanation/deadlines.md), for jobs with one spot offer and with several;
 * and the one with a guarantee. */
extern const struct deadline_law deadline_law_one, deadline_law_several, deadline_law_certain;
/* The law in use for a job with this many spot offers. */
const struct deadline_law *deadline_law_usual(size_t n_spot);

/* For a job that just arrived. rule: not DEADLINE_PLANNED. */
void baseline_init(struct baseline *baseline, enum deadline_rule rule);

/* The baseline's place until the next examination. job describes the real job; its own work, places
 * and payments are replaced by the baseline's. On a spot offer that is not up, the baseline has
 * lost it. */
size_t baseline_look(const struct baseline *baseline, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t n);

/* Advances by passed_ms at `to`, the result of baseline_look(). job and offers are those of that
 * call. */
void baseline_pass(struct baseline *baseline, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t to, int64_t passed_ms);

/* Used by deadline.c. */

/* The job with the baseline's state: now, and after the time to the next examination at `to`. go
 * returns the used part of that time: the rest, if any, is after the end of the work, or idle. */
struct deadline_job baseline_job(const struct baseline *baseline, const struct deadline_job *job,
    const struct deadline_offer *offers);
int64_t baseline_go(
    struct deadline_job *job, const struct deadline_offer *offers, size_t to, int64_t passed_ms);

/* The job without spot machines of offers that are not up: its own, and one that boots beside
 * it. */
void baseline_lose(struct deadline_job *job, const struct deadline_offer *offers);

/* Upper bound on the job's extra cost relative to the baseline, in uusd, both after the same
 * examination; sure: the cheapest sure offer. */
double baseline_regret(const struct deadline_job *job, const struct deadline_job *baseline,
    const struct deadline_offer *offers, size_t n, size_t sure);
/* Extra cost if the job does from now on what the baseline does, behind it by its current distance,
 * and neither runs out of slack. */
double baseline_owed(const struct deadline_job *job, const struct deadline_job *baseline,
    const struct deadline_offer *offers, size_t n, size_t sure);

#endif
