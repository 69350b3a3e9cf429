/* SPDX-License-Identifier: Apache-2.0
 *
 * State machines: the life of an object as a table of legal transitions. An illegal transition is a
 * bug and aborts with both states' names; input from outside is checked before a transition is
 * requested (sm_allowed).
 */
#ifndef BELAY_BASE_SM_H
#define BELAY_BASE_SM_H

#include <stdbool.h>
#include <stddef.h>

struct sm_transition {
    int from;
    int to;
};

struct sm {
    const char *thing;        /* "job" */
    const char *const *names; /* by state number, NULL-terminated */
    const struct sm_transition *transitions;
    size_t n_transitions;
};

bool sm_allowed(const struct sm *sm, int from, int to);

/* *state = to, or aborts naming thing, id and both states. */
void sm_move(const struct sm *sm, long long id, int *state, int to);

const char *sm_name(const struct sm *sm, int state); /* "?" when out of range */

#endif
