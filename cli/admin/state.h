/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BELAY_CLI_ADMIN_STATE_H
#define BELAY_CLI_ADMIN_STATE_H

/* The state directory that is meant: the given one (may be NULL), else that of belay up if it has a
 * database, else belayd's default. The caller frees it. */
char *admin_find_state(const char *given);

#endif
