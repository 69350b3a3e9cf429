/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a job: its number, and requests to its belayd with the token of the attempt, which the
 * node's agent wrote into BELAY_JOB_FILE. While the attempt runs, the token allows changes of the
 * job's options that JOB_UPDATE_INSIDE marks. The user needs no credentials on the node.
 */
#ifndef BELAY_CLI_INSIDE_H
#define BELAY_CLI_INSIDE_H

#include "cli/cli.h"

/* The job that this program runs in; 0 = none. */
int64_t inside_job(void);
/* Whether the token allows these changes (members as in the API). */
bool inside_allows(const json_t *changes);
/* Free with client_destroy. ERR_NOT_FOUND: the agent gave no token. */
int inside_client(struct client **ret_client, struct err *e);
/* Appends the keys of belay update that the token allows, such as "url". */
void inside_keys(struct buf *out);

#endif
