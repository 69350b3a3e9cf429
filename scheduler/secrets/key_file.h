/* SPDX-License-Identifier: Apache-2.0
 *
 * The key file of the database: the keys under which belayd seals what its database must not hold
 * in clear (seal.h). It has the form of ckpt/master.h, and is the first of
 *
 *     secret_key_file of the configuration
 *     $CREDENTIALS_DIRECTORY/belay.keys     a credential of the systemd unit, if it exists
 *     STATE/secret.keys                     created at the first start
 *
 * The database has only the id of the current key: a lost file is not replaced by a new one. A new
 * database does not use the file of the one before, which is renamed to STATE/secret.keys.UID.
 */
#ifndef BELAY_SCHEDULER_SECRETS_KEY_FILE_H
#define BELAY_SCHEDULER_SECRETS_KEY_FILE_H

#include "scheduler/config/config.h"
#include "scheduler/secrets/seal.h"

#define KEY_FILE_CREDENTIAL "belay.keys"

/* known_id: the key that the database was last sealed with; "" = nothing is sealed yet. Creates the
 * file only then, and sets *ret_created. ERR_CONFIG: it is missing, is another cluster's, or lacks
 * that key; the text says what to do. ERR_DENIED, ERR_INVALID: errors of the file. */
int key_file_open(const struct config *c, const char *cluster_uid, const char *known_id,
    struct sealer **ret_sealer, bool *ret_created, struct err *e);

/* Whether the file can be used, if it exists; a start creates a missing one. */
int key_file_check(const struct config *c, struct err *e);

#endif
