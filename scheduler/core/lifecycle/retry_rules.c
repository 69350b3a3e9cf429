/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a job runs again after an attempt ended. Each kind of end has its own rule and budget:
 * failures of the environment never use up the retries meant for bugs.
 */
#include "scheduler/core/lifecycle/retry_rules.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include <inttypes.h>

enum rule { NEVER, ALWAYS, BUDGET, CHECKPOINTED_BOUND, STORE_BOUND };

static const struct {
    enum rule rule;
    enum retry_kind budget;
} rules[] = {
    [END_NONE] = {NEVER},
    [END_SUCCEEDED] = {NEVER},
    [END_FAILED] = {BUDGET, RETRY_FAILED},
    [END_CANCELLED] = {ALWAYS}, /* of a job that is not cancelled */
    [END_TIMEOUT] = {BUDGET, RETRY_TIMEOUT},
    [END_RECLAIMED] = {BUDGET, RETRY_RECLAIMED},
    [END_NODE_LOST] = {BUDGET, RETRY_NODE_LOST},
    [END_CAPACITY] = {ALWAYS},
    [END_EVICTED] = {BUDGET, RETRY_EVICTED},
    [END_BUDGET] = {ALWAYS},
    [END_WINDOW] = {ALWAYS},
    [END_DRAINED] = {BUDGET, RETRY_DRAINED},
    [END_GANG] = {ALWAYS},
    [END_CHECKPOINTED] = {CHECKPOINTED_BOUND},
    /* held until a user has checked the store: no work is discarded for it */
    [END_STORE] = {ALWAYS},
    [END_STORE_AWAY] = {STORE_BOUND},
    [END_DRILLED] = {ALWAYS},
    [END_DEPENDENCY] = {NEVER},
    [END_DEADLINE] = {NEVER},
};

/* Why there is no further requeue; "" for failures and timeouts, whose own text says enough. */
static void describe_over(const struct job_row *j, enum retry_kind kind, char out[CORE_TEXT_MAX])
{
    int32_t n = j->spec.retries.n[kind];
    if (n == 0 && kind != RETRY_FAILED && kind != RETRY_TIMEOUT)
        text_format(out, CORE_TEXT_MAX, "it has no requeues for this end%s",
            retries_are_none(j) ? " (--no-requeue)" : "");
    else if (kind == RETRY_NODE_LOST)
        text_format(out, CORE_TEXT_MAX,
            "lost its node %" PRId32 " times; the job itself may crash nodes", n);
    else if (n > 0 && kind != RETRY_FAILED && kind != RETRY_TIMEOUT)
        text_format(out, CORE_TEXT_MAX, "it has used its %" PRId32 " requeue%s for this end", n,
            n == 1 ? "" : "s");
}

static struct verdict judge_budget(struct job_row *j, enum end_kind end, enum retry_kind kind)
{
    struct verdict v = {.end = end, .requeues = j->used[kind] < j->spec.retries.n[kind]};
    if (v.requeues)
        j->used[kind]++;
    else
        describe_over(j, kind, v.text);
    return v;
}

static struct verdict judge_checkpointed(struct job_row *j, bool saved)
{
    struct verdict v = {.end = END_FAILED};
    if (retries_are_none(j)) {
        text_format(v.text, sizeof v.text,
            "exited with 85 (checkpointed, continue me), but must not be requeued (--no-requeue)");
        return v;
    }
    j->used_checkpointed = saved ? 0 : j->used_checkpointed + 1;
    if (j->used_checkpointed < JOB_CHECKPOINTED_MAX)
        return (struct verdict){.end = END_CHECKPOINTED, .requeues = true};
    text_format(v.text, sizeof v.text,
        "exited with 85 (checkpointed, continue me) 3 times in a row without a new checkpoint");
    return v;
}

/* Earlier ends as STORE_AWAY in a row; j->end is still that of the previous attempt. */
static int32_t store_ends(const struct job_row *j)
{
    return j->end == END_STORE_AWAY ? j->quick_ends : 0;
}

/* The store may be unreachable from one node or zone only: another one is tried, then a user must
 * act. */
static struct verdict judge_store(const struct job_row *j)
{
    return (struct verdict){
        .end = store_ends(j) + 1 < JOB_STORE_MAX ? END_STORE_AWAY : END_STORE, .requeues = true};
}

struct verdict retry_judge(struct job_row *j, enum end_kind end, bool saved)
{
    if (j->state == JOB_CANCELLING)
        return (struct verdict){.end = end == END_SUCCEEDED ? END_SUCCEEDED : END_CANCELLED};
    switch (rules[end].rule) {
    case NEVER:
    case ALWAYS:
        return (struct verdict){.end = end, .requeues = rules[end].rule == ALWAYS};
    case BUDGET:
        return judge_budget(j, end, rules[end].budget);
    case STORE_BOUND:
        return judge_store(j);
    case CHECKPOINTED_BOUND:
        break;
    }
    return judge_checkpointed(j, saved);
}

#define SHORT_RUN_MS 60000
#define PAUSE_FIRST_MS 2000
#define PAUSE_MAX_MS 300000
#define PAUSE_STORE_MS 5000     /* the attempt itself has retried for minutes */
#define PAUSE_NO_SPACE_MS 30000 /* seldom is a disk cleared in seconds */

/* Less than a quarter of the pause: spreads jobs that ended together (Knuth's multiplicative hash
 * of the job's number). */
static int64_t spread_ms(const struct job_row *j, int64_t pause_ms)
{
    return (int64_t)((uint64_t)j->id * 2654435761u % (uint64_t)(pause_ms / 4));
}

/* Doubles with each end after the second. */
static int64_t pause_after(const struct job_row *j, int64_t first_ms)
{
    int64_t pause = first_ms;
    for (int32_t k = 2; k < j->quick_ends && pause < PAUSE_MAX_MS; k++)
        pause *= 2;
    if (pause > PAUSE_MAX_MS)
        pause = PAUSE_MAX_MS;
    return pause + spread_ms(j, pause);
}

bool retry_is_held_for_space(const struct job_row *j)
{
    return j->end == END_CAPACITY && j->quick_ends >= JOB_NO_SPACE_MAX;
}

int64_t retry_pause(struct job_row *j, enum end_kind end, bool excused, int64_t ran_ms)
{
    if (end == END_STORE_AWAY) {
        j->quick_ends = store_ends(j) + 1;
        if (j->spec.finish_ms != 0)
            return 0;
        return (PAUSE_STORE_MS << (j->quick_ends - 1)) + spread_ms(j, PAUSE_STORE_MS);
    }
    bool no_space = end == END_CAPACITY, may_repeat = end == END_FAILED || end == END_NODE_LOST;
    bool quick = may_repeat && !excused && ran_ms < SHORT_RUN_MS;
    if (no_space) /* even after a restore that took long */
        j->quick_ends = j->end == END_CAPACITY ? j->quick_ends + 1 : 1;
    else
        j->quick_ends = quick ? j->quick_ends + 1 : 0;
    if (j->quick_ends < 2 || j->spec.finish_ms != 0)
        return 0;
    return pause_after(j, no_space ? PAUSE_NO_SPACE_MS : PAUSE_FIRST_MS);
}
