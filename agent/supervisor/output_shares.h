/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of the node's disk the output of each user's tasks takes, in memory shared by all
 * supervisors of an agent. An entry belongs to a process; one whose process has ended is free. The
 * figures are hints: supervisors of an earlier agent are not among them.
 */
#ifndef BELAY_AGENT_SUPERVISOR_OUTPUT_SHARES_H
#define BELAY_AGENT_SUPERVISOR_OUTPUT_SHARES_H

#include <stdint.h>
#include <sys/types.h>

#define OUTPUT_SHARES_MAX 2048 /* further tasks are not seen by others */

struct output_shares;

/* Shared with later forks; NULL if there is no memory. Never freed. */
struct output_shares *output_shares_create(void);
/* Sets the bytes of this process's task, which is the user's; 0: none. s may be NULL. */
void output_shares_set(struct output_shares *s, uid_t user, int64_t bytes);
/* Bytes of the user's tasks other than this process's. */
int64_t output_shares_others(const struct output_shares *s, uid_t user);

#endif
