/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of saving share: programs that save, and conditions on them. They belong to job 1
 * unless another job is given.
 */
#ifndef BELAY_TESTS_AGENT_SAVING_H
#define BELAY_TESTS_AGENT_SAVING_H

#include "world.h"

/* A cooperative program: on a request it writes its state and commits, and stops if the answer
 * says so. */
extern const char coop_script[];
/* Commits once without a request, then waits. */
extern const char commit_once_script[];
/* Prints whether it was restored, and the state that commit_once_script left. */
extern const char resume_script[];

struct wire_desired_attempt *want_coop(struct world *w, int64_t attempt, const char *script);
void assert_end(struct world *w, enum wire_end end);
bool has_committed(struct world *w, int64_t job); /* the commit has no answer yet */
bool output_has_result(struct world *w, int64_t job);
bool has_two_checkpoints(struct world *w, int64_t job);

struct kept {
    int n;
    bool has_third, has_first;
    int64_t newest;
};
struct kept stored_checkpoints(struct world *w);

#endif
