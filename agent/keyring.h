/* SPDX-License-Identifier: Apache-2.0
 *
 * The secrets of running attempts in the kernel's keyring of the agent's user, so that an agent
 * that was restarted has them while belayd is away. They are in the kernel's memory, which is never
 * paged out, and on no disk; the machine's restart ends them, as it ends the attempts. Who is the
 * agent's user (root, that is) may read them there, as in the agent's memory.
 *
 * A kernel or a container without keyrings, or a full one, is no error of a task's: then belayd is
 * waited for, as ever.
 */
#ifndef BELAY_AGENT_KEYRING_H
#define BELAY_AGENT_KEYRING_H

#include "base/time.h"
#include "base/wire/wire.h"

/* after the last put or renew: of an agent that never came back */
#define KEYRING_LIFE_S (30 * 86400)

/* dir, the task's directory, is the name. Replaces what is there. ERR_UNSUPPORTED, ERR_DENIED,
 * ERR_NO_SPACE, ERR_INVALID (too large). None of these blocks. */
int keyring_put(const char *dir, const struct wire_secrets *s, struct wall now, struct err *e);
/* As they are by now: store_left_ms is what is left. ERR_NOT_FOUND: there are none, or what they
 * have of the store has ended. */
int keyring_get(const char *dir, struct wall now, struct wire_secrets *ret_s, struct err *e);
void keyring_renew(const char *dir); /* they are in use */
void keyring_drop(const char *dir);  /* harmless when there are none */

#endif
