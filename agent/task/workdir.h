/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts a working directory that was sent with a job (ckpt/workdir.h) in place on this node. What is
 * fetched from belayd stays in a cache for the attempts and jobs to come, whosever they are: a name
 * there is the hash of the content, and only the agent can read it. All calls block, but for
 * workdir_source_init.
 *
 *     DIR/workdirs/HASH    what is in a directory, or a piece of content
 */
#ifndef BELAY_AGENT_TASK_WORKDIR_H
#define BELAY_AGENT_TASK_WORKDIR_H

#include "agent/peer.h"
#include "ckpt/workdir.h"
#include <stdatomic.h>

#define WORKDIR_CACHE_BYTES (INT64_C(4) << 30) /* what was used last is kept */
#define WORKDIR_NAME "workdir"                 /* in the task's directory */

/* What a thread needs to ask belayd for it. */
struct workdir_source {
    char *server, *ca_pem, *cert_pem, *key_pem;
    int64_t job, attempt;
    char hash[CHUNK_HEX_SIZE];
    const char *cache; /* DIR/workdirs; borrowed */
};

/* On the loop; deinit on any thread. */
void workdir_source_init(struct workdir_source *s, const struct peer *p, int64_t job,
    int64_t attempt, const char *hash, const char *cache);
void workdir_source_deinit(struct workdir_source *s); /* a zeroed one is allowed */

/* Makes it at path, where nothing else may be that is of use, from what the cache has and belayd
 * gives; a try goes on where the one before ended. Every piece is checked when it comes and when it
 * is put in place. *cancel as in http_blocking_run. ERR_CONFIG: belayd has no such directory for
 * this attempt; ERR_CORRUPT: what was fetched is not what it says, what is wrong in the cache is
 * removed; ERR_NO_SPACE, and what http_blocking_run tells. */
int workdir_bring(
    const struct workdir_source *s, const char *path, const atomic_int *cancel, struct err *e);

/* Removes from the cache what was not used for the longest time, until at most max_bytes are
 * left. */
void workdir_trim(const char *cache, int64_t max_bytes);

#endif
