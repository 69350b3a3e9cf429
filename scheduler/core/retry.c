/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a job runs again after an attempt ended. Each end has its own rule and its own budget: what the
 * world did never uses up the retries that are meant for bugs.
 */
#include "scheduler/core/impl.h"

enum rule { NEVER, ALWAYS, UNLESS_CANCELLED, FAILED_BUDGET, LOST_BUDGET, CHECKPOINTED_BOUND };

static const enum rule rules[] = {
    [END_NONE] = NEVER,
    [END_SUCCEEDED] = NEVER,
    [END_FAILED] = FAILED_BUDGET,
    [END_USER] = UNLESS_CANCELLED,
    [END_TIMEOUT] = NEVER,
    [END_RECLAIMED] = ALWAYS,
    [END_NODE_LOST] = LOST_BUDGET,
    [END_CAPACITY] = ALWAYS,
    [END_EVICTED] = ALWAYS,
    [END_BUDGET] = ALWAYS,
    [END_WINDOW] = ALWAYS,
    [END_DRAINED] = ALWAYS,
    [END_GANG] = ALWAYS,
    [END_CHECKPOINTED] = CHECKPOINTED_BOUND,
    [END_DRILLED] = ALWAYS,
    [END_DEPENDENCY] = NEVER,
};

static bool use(int32_t *used, int32_t max)
{
    if (*used >= max)
        return false;
    ++*used;
    return true;
}

static struct verdict judge_checkpointed(struct job_row *j, bool saved)
{
    j->used_checkpointed = saved ? 0 : j->used_checkpointed + 1;
    if (j->used_checkpointed < JOB_CHECKPOINTED_MAX)
        return (struct verdict){.end = END_CHECKPOINTED, .again = true};
    return (struct verdict){.end = END_FAILED,
        .text = "exited with 85 (checkpointed, continue me) 3 times in a row without a new checkpoint"};
}

struct verdict retry_judge(struct job_row *j, enum end_kind end, bool saved)
{
    if (j->state == JOB_CANCELLING)
        return (struct verdict){.end = end == END_SUCCEEDED ? END_SUCCEEDED : END_USER};
    switch (rules[end]) {
    case NEVER:
        return (struct verdict){.end = end};
    case ALWAYS:
    case UNLESS_CANCELLED:
        return (struct verdict){.end = end, .again = true};
    case FAILED_BUDGET:
        return (struct verdict){.end = end, .again = use(&j->used_failed, j->retries_failed)};
    case LOST_BUDGET:
        if (use(&j->used_node_lost, JOB_RETRIES_NODE_LOST_DEFAULT))
            return (struct verdict){.end = end, .again = true};
        return (struct verdict){
            .end = end, .text = "lost its node 100 times; it may be what brings nodes down"};
    case CHECKPOINTED_BOUND:
        break;
    }
    return judge_checkpointed(j, saved);
}
