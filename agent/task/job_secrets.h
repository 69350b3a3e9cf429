/* SPDX-License-Identifier: Apache-2.0
 *
 * The secrets that a job asked for (--secret), on its node: in a directory of a tmpfs, so on no
 * disk, from its preparation to its end.
 *
 *     /run/belay-secrets-UID/TASK     of root's agents; /dev/shm where /run is no tmpfs
 *     /run/user/UID/belay-secrets...  of other agents; /dev/shm where there is none
 *         values    for the supervisor, which removes it when it has started the program
 *         files/    a file for each secret that is no variable, mode 0400, of the job's user
 *
 * Only root and the job's user (by the group of the directory, which may only pass through it) can
 * enter, and only the job's user can read the files. Another job of the same user can read them,
 * as it can read the job's memory.
 */
#ifndef BELAY_AGENT_TASK_JOB_SECRETS_H
#define BELAY_AGENT_TASK_JOB_SECRETS_H

#include "agent/supervisor/user.h"
#include "base/wire/wire.h"

/* The directory of the files of a task, for which the task's own directory must exist; the caller
 * frees it. NULL if the node has no tmpfs. */
char *job_secrets_dir(const char *task_dir);

/* Writes those of s (s->of_job), in place of earlier ones. ERR_CONFIG: this node has no tmpfs.
 * ERR_INVALID: a value is not hex. */
int job_secrets_put(
    const char *task_dir, const struct job_user *u, const struct wire_secrets *s, struct err *e);

/* For the supervisor: takes what job_secrets_put wrote, with only of_job set; the caller wipes it.
 * ERR_NOT_FOUND. */
int job_secrets_take(const char *task_dir, struct wire_secrets *ret, struct err *e);

/* Removes them all; no-op if there are none. */
void job_secrets_remove(const char *task_dir);

/* The value of a secret; the caller wipes and frees it. NULL if it is not hex. It has a NUL after
 * its *ret_n bytes. */
char *job_secret_value(const struct wire_secret *s, size_t *ret_n);

#endif
