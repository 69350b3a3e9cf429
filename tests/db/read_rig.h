/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of reads for the API: an in-memory database, its reader, and jobs.
 */
#ifndef BELAY_TESTS_DB_READ_RIG_H
#define BELAY_TESTS_DB_READ_RIG_H

#include "tests/db/util.h"

#include "base/str.h"

static struct db *d;
static struct db_reader *r;
static struct err e;

static inline int setup(void **state)
{
    (void)state;
    if (db_open(":memory:", &d, &e) != 0)
        return -1;
    return db_reader_of(d, &r, &e);
}

static inline int teardown(void **state)
{
    (void)state;
    db_reader_close(r);
    db_close(d);
    return 0;
}

static inline void add_job(
    struct db_batch *b, int64_t id, const char *user, enum job_state job_state)
{
    struct job_row row = {.id = id, .state = job_state};
    STR_COPY(row.user, user);
    batch_add(b, TABLE_JOBS, &row);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
