/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a job: which job it is, and the way to its belayd with the token of its attempt, which the
 * node's agent wrote into BELAY_JOB_FILE. The token changes what JOB_UPDATE_INSIDE marks, of its
 * own job, while the attempt runs; its user needs no credentials on the node.
 */
#ifndef BELAY_CLI_INSIDE_H
#define BELAY_CLI_INSIDE_H

#include "cli/cli.h"

/* The job that this program runs in; 0: in none. */
int64_t inside_job(void);
/* Whether the token is good for these changes (members as the API has them). */
bool inside_allows(const json_t *changes);
/* Free with client_destroy. ERR_NOT_FOUND: the agent gave no token. */
int inside_client(struct client **ret_client, struct err *e);
/* "url", the keys of belay update that the token is good for. */
void inside_keys(struct buf *out);

#endif
