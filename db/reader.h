/* SPDX-License-Identifier: Apache-2.0
 *
 * The statements that the files of db/ read with: those of the read-only connection (reader.c), or
 * of the write connection.
 */
#ifndef BELAY_DB_READER_H
#define BELAY_DB_READER_H

#include "db/statements.h"
#include <stdbool.h>

struct db_reader {
    struct statements *statements; /* own, or the write connection's, borrowed */
    struct statements own;
};

#endif
