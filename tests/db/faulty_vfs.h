/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk with injected failures: an SQLite VFS in front of the real one that counts writes, fsyncs
 * and growths of shared memory, and fails one of them. A failing write is half done first, as on a
 * full disk.
 */
#ifndef BELAY_TESTS_DB_FAULTY_VFS_H
#define BELAY_TESTS_DB_FAULTY_VFS_H

#include <stdint.h>

enum faulty_op { FAULTY_WRITE, FAULTY_SYNC, FAULTY_SHM, FAULTY_OPS };

struct faulty_plan {
    int64_t fail_at[FAULTY_OPS]; /* the n-th from now; 0: never */
    int code[FAULTY_OPS];        /* SQLite's error code */
    int errnum;                  /* reported errno */
    int64_t seen[FAULTY_OPS];
};

extern struct faulty_plan faulty_plan; /* the one in force */

/* cmocka setup and teardown: as util_setup, with this as the default VFS of the process and a plan
 * without failures. */
int faulty_setup(void **state);
int faulty_teardown(void **state);

#endif
