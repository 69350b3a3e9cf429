/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials of jobs for the store. In some worlds belayd cannot create them for a while. Checked:
 * no attempt waits for them beyond its deadline, whatever happens to belayd meanwhile; and no
 * attempt that its agent has is given up for their absence.
 */
#include "simtest/world.h"

#include "base/str.h"
#include <string.h>

#define DENIED_DIVISOR 5 /* as in scheduler/core/lifecycle/withheld.c, like WAIT_MIN_MS */
#define WAIT_MIN_MS 30000
#define SLACK_MS 60000 /* allowed delay after a deadline, because clocks are set */

/* An attempt without credentials ends at its deadline, counted while belayd keeps running. */
static void check_wait(struct world *w, struct sim_job *j, const struct attempt *a)
{
    int64_t wait_ms = SIM_STORE_WAIT_MS / (j->is_denied ? DENIED_DIVISOR : 1),
            waited_ms = clock_wall(w->vt.timers.clock).ms - a->row.assigned_at.ms,
            asked_ms = world_now(w) - j->asked_since_ms;
    if (a->row.state == ATTEMPT_ASSIGNED && asked_ms > WAIT_MIN_MS + SLACK_MS &&
        waited_ms > wait_ms + SLACK_MS && world_now(w) > w->full_until_ms + SLACK_MS &&
        !agent_has(w, &a->row))
        world_fail(w, "job %lld attempt %lld still waits for credentials after %lld ms",
            (long long)a->row.job, (long long)a->row.attempt, (long long)waited_ms);
}

static void begin_attempt(struct world *w, struct sim_job *j, int64_t attempt)
{
    j->asked_attempt = attempt;
    j->asked_boots = 0;
    if (!world_chance(w, 0.3))
        return;
    j->is_denied = world_chance(w, 0.5);
    j->no_grants_until_ms = world_now(w) + world_between(w, 1000, 3 * SIM_STORE_WAIT_MS);
}

bool grants_of_job(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why)
{
    struct world *w = ctx;
    const struct job *of = model_job(w->model, job);
    const struct attempt *a = of ? job_attempt(of) : NULL;
    struct sim_job *j = world_job(w, job);
    (void)ret_secrets; /* version 0: simulated agents have no credentials */
    if (w->seed % SIM_GRANTS != 5 || w->faults_over || !a || of->row.spec.method == CKPT_NONE)
        return true;
    if (j->asked_attempt != attempt)
        begin_attempt(w, j, attempt);
    if (world_now(w) >= j->no_grants_until_ms)
        return true;
    if (j->asked_boots != w->boots) {
        j->asked_boots = w->boots;
        j->asked_since_ms = world_now(w);
    }
    check_wait(w, j, a);
    err_set(ret_why, j->is_denied ? ERR_DENIED : ERR_UNAVAILABLE, SIM_NO_GRANTS);
    return false;
}

/* An attempt that its agent already runs is not ended: it would run in parallel to the next one. */
void grants_committed_attempt(struct world *w, const struct attempt_row *r)
{
    if (r->state == ATTEMPT_ENDED && strstr(r->text, SIM_NO_GRANTS) && agent_has(w, r))
        world_fail(w,
            "job %lld attempt %lld was ended for lack of credentials, but its agent runs it",
            (long long)r->job, (long long)r->attempt);
}
