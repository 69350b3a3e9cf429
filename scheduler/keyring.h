/* SPDX-License-Identifier: Apache-2.0
 *
 * The master keys of this cluster's encrypted checkpoints in belayd: from the key file
 * (ckpt/master.h), which is created at the first start with encryption. The database has no part of
 * them.
 *
 * A lost key file must not be replaced by a new one unnoticed, nor may a key be removed from it by
 * mistake. STATE/checkpoint.key-ids therefore has the ids of all keys that ever were in it; the ids
 * reveal nothing about the keys.
 */
#ifndef BELAY_SCHEDULER_KEYRING_H
#define BELAY_SCHEDULER_KEYRING_H

#include "base/wire/wire.h"
#include "ckpt/master.h"
#include "scheduler/config/config.h"

struct keyring;

/* Reads config's key file, or creates it. ERR_CONFIG: it is missing, lacks a key that it had, or is
 * another cluster's; the text says what to do. ERR_DENIED, ERR_INVALID: errors of the file. */
int keyring_open(const struct config *config, const char *cluster_uid, struct keyring **ret_keyring,
    struct err *e);
void keyring_close(struct keyring *k); /* k may be NULL */

/* For the cleaner; NULL if there are no keys, and nothing was ever encrypted. Valid until close. */
const struct master *keyring_master(const struct keyring *k);

/* Adds the keys for an agent of the job; nothing if there are no keys. */
void keyring_fill(const struct keyring *k, int64_t job, struct wire_secrets *s);

#endif
