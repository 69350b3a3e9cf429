/* SPDX-License-Identifier: Apache-2.0
 *
 * The secrets of running attempts in the kernel's keyring of the agent's user, so that a restarted
 * agent has them while belayd is away. They stay in kernel memory, which is never paged out, and on
 * no disk; a reboot erases them and ends the attempts. Processes of the agent's user (root) can
 * read them there, as they can read the agent's memory.
 *
 * A missing or full keyring (old kernel, container) does not fail a task: the agent waits for
 * belayd instead.
 */
#ifndef BELAY_AGENT_KEYRING_H
#define BELAY_AGENT_KEYRING_H

#include "base/time.h"
#include "base/wire/wire.h"

/* since the last put or renew; for agents that never come back */
#define KEYRING_LIFE_S (30 * 86400)

/* The entry is named after dir, the task's directory, and replaces an earlier one. ERR_UNSUPPORTED,
 * ERR_DENIED, ERR_NO_SPACE, ERR_INVALID (too large). None of these functions blocks. */
int keyring_put(const char *dir, const struct wire_secrets *s, struct wall now, struct err *e);
/* store_left_ms is reduced by the time that has passed. ERR_NOT_FOUND: no entry, or its store
 * credentials have expired. */
int keyring_get(const char *dir, struct wall now, struct wire_secrets *ret_s, struct err *e);
void keyring_renew(const char *dir); /* extends the life */
void keyring_drop(const char *dir);  /* no-op when there is no entry */

#endif
