/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema's versions. Migrations only go forward.
 */
#ifndef BELAY_DB_SCHEMA_H
#define BELAY_DB_SCHEMA_H

#include "base/err.h"
#include <sqlite3.h>

#define DB_APPLICATION_ID 0x62656c79 /* "bely": says whose file it is */

/* Brings the file to DB_SCHEMA_VERSION, each version in one transaction. ERR_CONFIG if it is newer,
 * ERR_CORRUPT if it is somebody else's database. */
int schema_migrate(sqlite3 *sql, const char *path, struct err *e);

#endif
