/* SPDX-License-Identifier: Apache-2.0
 *
 * A backup of belayd's state directory in one file: the database as of one commit, the small files
 * beside it (certificate authority, keys, pools), and the configuration. belayd may run meanwhile.
 *
 * A backup has secrets and has mode 0600. It leaves out what is large and of plain files (output of
 * jobs, working directories) and what every start makes anew.
 */
#ifndef BELAY_BACKUP_BACKUP_H
#define BELAY_BACKUP_BACKUP_H

#include "backup/contents.h"
#include "backup/seal.h"

#define BACKUP_DATABASE "belay.db"
#define BACKUP_CONFIG "belayd.yaml" /* the configuration's name in the backup */
/* Also of key files outside of the state directory: */
#define BACKUP_KEY_FILE "checkpoint.keys"
#define BACKUP_SECRET_KEY_FILE "secret.keys"

struct backup_options {
    const char *state;
    const char *config; /* NULL = leave it out */
    /* key files outside of the state directory, of checkpoints and of the database; may be NULL */
    const char *key_file, *secret_key_file;
    const char *to;          /* must not exist */
    const struct seal *seal; /* may be NULL */
};

/* Writes the backup: o->to exists whole or not at all. ERR_CONFLICT if it exists. */
int backup_make(const struct backup_options *o, struct contents *ret_contents, struct err *e);

/* Unpacks a backup into the empty directory `dir` and compares every file with the manifest.
 * ERR_CORRUPT if a file is missing, damaged, or unknown to the manifest. */
int backup_unpack(const char *file, const struct seal *seal, const char *dir,
    struct contents *ret_contents, struct err *e);

/* Opens the unpacked database with this version of belay, which migrates it, and reads all of it.
 * ERR_CORRUPT if it is damaged or another cluster's. With epoch > 0, the copy becomes the cluster's
 * epoch, and numbers given out after the backup are skipped (BACKUP_SKIP). */
#define BACKUP_SKIP 10000
int backup_check_database(const char *dir, const struct contents *m, int64_t epoch, struct err *e);

/* Holds the state directory against a belayd and another restore, until backup_unlock. ERR_CONFLICT
 * if one has it, or if the directory has a database. */
int backup_lock(const char *state, int *ret_fd, struct err *e);
void backup_unlock(int fd);

/* Moves what was unpacked into the state directory, the database last, with the owner of the
 * directory. */
int backup_install(const char *dir, const struct contents *m, const char *state, struct err *e);

#endif
