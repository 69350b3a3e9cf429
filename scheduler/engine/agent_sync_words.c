/* SPDX-License-Identifier: Apache-2.0
 *
 * See agent_sync_words.h. Where both enums have the same order, a cast is the mapping: static
 * assertions here compare the values, and test_agent_sync the names.
 */
#include "scheduler/engine/agent_sync_words.h"

#include <assert.h>

#define ASSERT_SAME_VALUE(of_wire, of_core)                                                        \
    static_assert((int)(of_wire) == (int)(of_core), "values on the wire equal those of the core")

ASSERT_SAME_VALUE(WIRE_END_NONE, END_NONE);
ASSERT_SAME_VALUE(WIRE_END_SUCCEEDED, END_SUCCEEDED);
ASSERT_SAME_VALUE(WIRE_END_FAILED, END_FAILED);
ASSERT_SAME_VALUE(WIRE_END_CANCELLED, END_CANCELLED);
ASSERT_SAME_VALUE(WIRE_END_TIMEOUT, END_TIMEOUT);
ASSERT_SAME_VALUE(WIRE_END_RECLAIMED, END_RECLAIMED);
ASSERT_SAME_VALUE(WIRE_END_NODE_LOST, END_NODE_LOST);
ASSERT_SAME_VALUE(WIRE_END_CAPACITY, END_CAPACITY);
ASSERT_SAME_VALUE(WIRE_END_EVICTED, END_EVICTED);
ASSERT_SAME_VALUE(WIRE_END_BUDGET, END_BUDGET);
ASSERT_SAME_VALUE(WIRE_END_WINDOW, END_WINDOW);
ASSERT_SAME_VALUE(WIRE_END_DRAINED, END_DRAINED);
ASSERT_SAME_VALUE(WIRE_END_GANG, END_GANG);
ASSERT_SAME_VALUE(WIRE_END_CHECKPOINTED, END_CHECKPOINTED);
ASSERT_SAME_VALUE(WIRE_END_STORE, END_STORE);
ASSERT_SAME_VALUE(WIRE_END_STORE_AWAY, END_STORE_AWAY);
ASSERT_SAME_VALUE(WIRE_END_DRILLED, END_DRILLED);
ASSERT_SAME_VALUE(WIRE_END_DEPENDENCY, END_DEPENDENCY);
ASSERT_SAME_VALUE(WIRE_END_DEADLINE, END_DEADLINE);

ASSERT_SAME_VALUE(WIRE_NOTICE_NONE, NOTICE_TYPE_NONE);
ASSERT_SAME_VALUE(WIRE_NOTICE_REBALANCE, NOTICE_TYPE_REBALANCE);
ASSERT_SAME_VALUE(WIRE_NOTICE_MAINTENANCE, NOTICE_TYPE_MAINTENANCE);
ASSERT_SAME_VALUE(WIRE_NOTICE_RECLAIM, NOTICE_TYPE_RECLAIM);

ASSERT_SAME_VALUE(WIRE_CRIU_UNSAID, CRIU_UNKNOWN);
ASSERT_SAME_VALUE(WIRE_CRIU_NO, CRIU_NO);
ASSERT_SAME_VALUE(WIRE_CRIU_CPU, CRIU_CPU);
ASSERT_SAME_VALUE(WIRE_CRIU_GPU, CRIU_GPU);

enum wire_method agent_sync_method(enum ckpt_method method)
{
    switch (method) {
    case CKPT_NONE:
        return WIRE_METHOD_NONE;
    case CKPT_SIGNAL:
        return WIRE_METHOD_SIGNAL;
    case CKPT_COOP:
        return WIRE_METHOD_COOP;
    case CKPT_CRIU:
        return WIRE_METHOD_CRIU;
    }
    return WIRE_METHOD_UNSAID;
}

enum wire_end agent_sync_reason(enum end_kind end)
{
    return (enum wire_end)end;
}

enum end_kind agent_sync_end(enum wire_end end)
{
    return end == WIRE_END_UNKNOWN ? END_NONE : (enum end_kind)end;
}

enum notice_type agent_sync_notice(enum wire_notice_kind kind)
{
    return kind == WIRE_NOTICE_UNKNOWN ? NOTICE_TYPE_NONE : (enum notice_type)kind;
}

enum criu_ability agent_sync_criu_ability(enum wire_criu can)
{
    return can == WIRE_CRIU_UNKNOWN ? CRIU_UNKNOWN : (enum criu_ability)can;
}
