/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of a job's open files, read from a store: absolute names within the limits, or an error.
 */
#include "agent/criu/criu_files.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct criu_files f;
    struct err e = {0};
    memset(&f, CHECK_PATTERN, sizeof(f));
    int rc = criu_files_parse((const char *)data, size, &f, &e);
    if (rc == 0) {
        assert(f.n <= CRIU_FILES_MAX);
        for (size_t i = 0; i < f.n; i++)
            assert(f.files[i].path[0] == '/' && strlen(f.files[i].path) < PATH_MAX &&
                   f.files[i].mode <= 07777);
        criu_files_deinit(&f);
    } else {
        check_error(rc, &e);
        check_untouched(&f, sizeof(f));
    }
    return 0;
}
