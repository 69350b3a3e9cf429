/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts a working directory that was sent with a job (ckpt/workdir.h) in place on this node. What is
 * fetched from belayd stays in a cache shared by later attempts and jobs of all users: names there
 * are hashes of the content, and only the agent can read it. All calls block, except
 * workdir_source_init.
 *
 *     DIR/workdirs/HASH    the list of a directory, or a piece of content
 */
#ifndef BELAY_AGENT_TASK_WORKDIR_H
#define BELAY_AGENT_TASK_WORKDIR_H

#include "agent/peer.h"
#include "ckpt/workdir.h"
#include <stdatomic.h>

#define WORKDIR_CACHE_BYTES (INT64_C(4) << 30) /* the most recently used is kept */
#define WORKDIR_NAME "workdir"                 /* name in the task's directory */

/* What a thread needs to fetch it from belayd. */
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

/* Builds the directory at path, replacing what is there, from the cache and from belayd. A retry
 * continues where the last one ended. Every piece is verified when it arrives and when it is put in
 * place. *cancel as in http_blocking_run. ERR_CONFIG: belayd has no such directory for this
 * attempt; ERR_CORRUPT: fetched content does not match its hash (bad entries of the cache are
 * removed); ERR_NO_SPACE; errors of http_blocking_run. */
int workdir_fetch(
    const struct workdir_source *s, const char *path, const atomic_int *cancel, struct err *e);

/* Removes the least recently used from the cache until at most max_bytes are left. */
void workdir_trim(const char *cache, int64_t max_bytes);

#endif
