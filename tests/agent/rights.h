/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether this process has the rights that some tests need.
 */
#ifndef BELAY_TESTS_AGENT_RIGHTS_H
#define BELAY_TESTS_AGENT_RIGHTS_H

#include <stdbool.h>

/* Whether namespaces (CLONE_NEW*) can be created; tried in a child. */
bool may_unshare(int flags);
/* Gives this process its own mount namespace, from which no mount propagates. False if it is not
 * root or lacks the right. */
bool enter_own_mounts(void);

#endif
