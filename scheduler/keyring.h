/* SPDX-License-Identifier: Apache-2.0
 *
 * The master keys of this cluster's encrypted checkpoints, as belayd has them: from the key file
 * (ckpt/master.h), which is made at the first start with encryption. Nothing of them is in the
 * database.
 *
 * A key file that is lost must not be replaced by a new one unnoticed, nor may a key go from it by
 * mistake: the ids of all keys that ever were in it, which tell nothing about them, stand in
 * STATE/checkpoint.key-ids.
 */
#ifndef BELAY_SCHEDULER_KEYRING_H
#define BELAY_SCHEDULER_KEYRING_H

#include "base/wire/wire.h"
#include "ckpt/master.h"
#include "scheduler/config/config.h"

struct keyring;

/* Reads config's key file, or makes it. ERR_CONFIG: it is gone, lacks a key that it had, or is
 * another cluster's: the text says what to do. ERR_DENIED, ERR_INVALID: of the file. */
int keyring_open(const struct config *config, const char *cluster_uid, struct keyring **ret_keyring,
    struct err *e);
void keyring_close(struct keyring *k); /* NULL is fine */

/* For who cleans; NULL: there are no keys, and nothing was ever encrypted. Valid until close. */
const struct master *keyring_master(const struct keyring *k);

/* Adds what an agent of the job needs; nothing, if there are no keys. */
void keyring_fill(const struct keyring *k, int64_t job, struct wire_secrets *s);

#endif
