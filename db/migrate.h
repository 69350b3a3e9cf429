/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates the tables of a new database, and migrates those of an older release to the current
 * schema. Only forward.
 */
#ifndef BELAY_DB_MIGRATE_H
#define BELAY_DB_MIGRATE_H

#include "base/err.h"
#include "db/schema.h"
#include <sqlite3.h>
#include <stdint.h>

#define DB_APPLICATION_ID 0x62656c61 /* "bela": identifies the program */
/* "bely": builds before the first release, which also counted their schemas from 1. They cannot be
 * migrated. */
#define DB_APPLICATION_ID_UNRELEASED 0x62656c79

/* Returns the newest version in s. */
int migrate_newest(const struct schema *s);

/* Reads the file's schema number; 0 for an empty file. ERR_CONFIG if it is of a build before the
 * first release. ERR_CORRUPT if it is another program's database, or the number is negative. path
 * is for the text. */
int migrate_read_version(sqlite3 *sql, const char *path, int64_t *ret_version, struct err *e);

/* Migrates the file to the newest version of s, each version in a separate transaction: after a
 * crash or an error the file has one version or the other, and the next call continues from there.
 * Errors of migrate_read_version; ERR_CONFIG if the file is newer, and then it is not changed. */
int migrate_to_newest(sqlite3 *sql, const char *path, const struct schema *s, struct err *e);

#endif
