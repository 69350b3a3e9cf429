/* SPDX-License-Identifier: Apache-2.0
 *
 * The key file of a cluster: the master keys of its encrypted checkpoints. The keys of a job are
 * derived from them, so whoever has the file can read every job's checkpoints, and whoever has a
 * job's keys can read that job's. The key file of belayd's database has the same form.
 *
 *     # comment
 *     cluster 0123456789abcdef         the uid from the cluster's database: one file per cluster
 *     key <64 hex digits>              the current one
 *     key <64 hex digits>              earlier ones, of older checkpoints
 */
#ifndef BELAY_CKPT_MASTER_H
#define BELAY_CKPT_MASTER_H

#include "ckpt/crypt.h"
#include <stdint.h>

#define MASTER_FILE_MAX 8192 /* bytes */
#define MASTER_UID_HEX 16

struct master {
    char cluster_uid[MASTER_UID_HEX + 1];
    unsigned char keys[CRYPT_KEYS_MAX][CRYPT_KEY_BYTES]; /* the current one first */
    size_t n;                                            /* at least 1 after reading */
};

/* file is its name in errors, which never show the content of a line with a key. ERR_INVALID. *ret
 * is untouched on failure. */
int master_parse(const char *file, const char *text, size_t n, struct master *ret, struct err *e);
/* ERR_NOT_FOUND; ERR_DENIED: its group or others may read it; ERR_INVALID. Wipe *ret after use. */
int master_read(const char *path, struct master *ret, struct err *e);
/* Creates the file, mode 0600, with one random key, and syncs it. about: lines of comment for its
 * head. ERR_CONFLICT: it exists. */
int master_make(const char *path, const char *about, const char *cluster_uid, struct err *e);
void master_wipe(struct master *m);

/* An identifier of key i that reveals nothing about it: CRYPT_ID_HEX digits. */
void master_key_id(const struct master *m, size_t i, char out[CRYPT_ID_HEX + 1]);

/* Derives a job's key from key i. Wipe out after use. */
void master_job_key(const struct master *m, size_t i, int64_t job, char out[CRYPT_KEY_HEX + 1]);

/* Adds all of a job's keys to *ret (zeroed), for reading: `encrypts` is not set. */
void master_job_crypt(const struct master *m, int64_t job, struct ckpt_crypt *ret);

#endif
