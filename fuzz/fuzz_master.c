/* SPDX-License-Identifier: Apache-2.0
 *
 * Input is a key file. An accepted file has a key, and no error shows one.
 */
#include "ckpt/master.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ckpt_crypt c = {0};
    struct master m;
    struct err e;
    if (size > MASTER_FILE_MAX)
        return 0;
    if (master_parse("f", (const char *)data, size, &m, &e) != 0) {
        assert(e.kind == ERR_INVALID);
        return 0;
    }
    assert(m.n >= 1 && m.n <= CRYPT_KEYS_MAX && strlen(m.cluster_uid) == MASTER_UID_HEX);
    master_job_crypt(&m, 7, &c);
    assert(c.n == m.n);
    return 0;
}
