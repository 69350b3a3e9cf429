/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of db/: a scratch directory, rows filled from their column tables, batches.
 */
#ifndef BELAY_TESTS_DB_UTIL_H
#define BELAY_TESTS_DB_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/prng.h"
#include "db/conn.h"
#include "db/db.h"

/* cmocka setup and teardown: *state is the path of a database that does not exist yet, in its own
 * directory. */
int util_setup(void **state);
int util_teardown(void **state);

struct db *util_open(const char *path);
struct db_reader *util_reader(const char *path);
/* On its own connection, without belay's lock. */
void util_exec(const char *path, const char *sql);
/* Copies path+suffix as it is on disk to the same suffix of `to`; no-op if it does not exist. */
void util_copy_file(const char *path, const char *to, const char *suffix);
void util_commit(struct db *d, struct db_batch *b); /* must succeed; deinits b */

enum fill { FILL_ZERO, FILL_LOW, FILL_HIGH, FILL_RANDOM, FILL_COUNT };

/* Sets every column of a zeroed row; the key columns to key, key + 1, ... (texts: "key-<key>"). */
void fill_row(enum table_id t, void *row, enum fill how, struct prng *p, int64_t key);
size_t row_size(enum table_id t);

/* Adds a copy of the row to the batch, which takes ownership of heap texts. */
void batch_add(struct db_batch *b, enum table_id t, const void *row);
/* A pending job with its history row: the rows of a submit. */
void batch_add_submit(struct db_batch *b, int64_t id);

int64_t count_rows(struct db *d, enum table_id t);
struct wall at_ms(int64_t ms);

#endif
