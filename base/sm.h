/* SPDX-License-Identifier: Apache-2.0
 *
 * State tables: the life of a thing as a list of legal transitions. An illegal one is a bug of ours
 * and aborts with both states' names; what the world may do is decided before a transition is asked
 * for (sm_allowed).
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
