/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BELAY_DB_READER_H
#define BELAY_DB_READER_H

#include <sqlite3.h>
#include <stdbool.h>

struct db_reader {
    sqlite3 *sql;
    bool owned; /* else it is the write connection's, borrowed */
    sqlite3_stmt *spec; /* db_read_spec's, which is asked for every start; NULL: not yet */
    sqlite3_stmt *extras; /* likewise, for rows of a list */
};

#endif
