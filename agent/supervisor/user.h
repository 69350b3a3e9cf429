/* SPDX-License-Identifier: Apache-2.0
 *
 * The user that a task runs as. A root agent runs it as the job's user; any other agent can only
 * run jobs of its own user.
 */
#ifndef BELAY_AGENT_SUPERVISOR_USER_H
#define BELAY_AGENT_SUPERVISOR_USER_H

#include "base/err.h"
#include <sys/types.h>

struct job_user {
    uid_t uid;
    gid_t gid;
    bool is_other;     /* not the agent's own user: must be switched to */
    bool no_new_privs; /* set-uid programs give it no rights */
    char name[64];
    char home[1024];
    char shell[256];
};

/* name "" = the agent's own user. ERR_CONFIG says why the job cannot run here. */
int user_resolve(const char *name, struct job_user *ret_user, struct err *e);

/* Whether a root agent may run something as this user. uid 0 and system users (below UID_MIN of
 * /etc/login.defs) must be in system_users, a set of names (job/feature.h) that only the node's own
 * configuration sets; NULL is the empty set. ERR_CONFIG says what to do. Any other agent runs only
 * its own user's jobs, so a job gains no rights there. */
int user_admit(const struct job_user *u, const char *system_users, struct err *e);

/* In a child: becomes the user for good, with no_new_privs if it is set. Returns 0, or -1 and
 * errno. */
int user_become(const struct job_user *u);

#endif
