/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns up to the first NUL, then a path: the matcher always terminates with an answer.
 */
#include "base/mem.h"
#include "cli/workdir/ignore.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    size_t n = strlen(text);
    char *path =
        n < size ? mem_strndup((const char *)data + n + 1, size - n - 1) : mem_strdup("a/b/c.tmp");
    struct ignore g;
    struct err e = {0};
    int rc = ignore_parse(text, n, &g, &e);
    if (rc != 0) {
        check_error(rc, &e);
    } else {
        assert(ignore_match(&g, path, true) <= IGNORED_REINCLUDED);
        assert(ignore_match(&g, path, false) <= IGNORED_REINCLUDED);
        ignore_deinit(&g);
    }
    free(path);
    free(text);
    return 0;
}
