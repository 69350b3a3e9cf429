/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sm.h"

#include "base/log.h"
#include <stdlib.h>

bool sm_allowed(const struct sm *sm, int from, int to)
{
    for (size_t i = 0; i < sm->n_transitions; i++)
        if (sm->transitions[i].from == from && sm->transitions[i].to == to)
            return true;
    return false;
}

void sm_move(const struct sm *sm, long long id, int *state, int to)
{
    if (!sm_allowed(sm, *state, to)) {
        log_error("illegal transition", log_s("thing", sm->thing), log_i("id", id),
            log_s("from", sm_name(sm, *state)), log_s("to", sm_name(sm, to)));
        abort();
    }
    *state = to;
}

const char *sm_name(const struct sm *sm, int state)
{
    for (int i = 0; state >= 0 && sm->names[i]; i++)
        if (i == state)
            return sm->names[i];
    return "?";
}
