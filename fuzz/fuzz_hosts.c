/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of hosts: an accepted list has as many names as reported, and contains each of them but no
 * variations.
 */
#include "job/hosts.h"
#include "base/mem.h"
#include "base/str.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size), name[HOSTS_NAME_MAX];
    struct hosts_at at = {0};
    struct err e = {0};
    int64_t n = 0, found = 0;
    int rc = hosts_check(text, &n, &e);
    if (rc != 0)
        check_error(rc, &e);
    for (; rc == 0 && hosts_next(text, &at, name); found++)
        assert(*name && found < HOSTS_MAX && (found > 64 || hosts_has(text, name)));
    assert(found == n && !hosts_has(text, ""));
    char folded[HOSTS_TEXT_MAX], again[HOSTS_TEXT_MAX];
    if (rc == 0 && found < 4096 && hosts_fold(text, folded, &e) == 0) {
        int64_t n_folded;
        assert(hosts_check(folded, &n_folded, &e) == 0 && n_folded <= n);
        assert(hosts_fold(folded, again, &e) == 0 && str_eq(folded, again));
        for (at = (struct hosts_at){0}, found = 0; hosts_next(text, &at, name) && found < 64;
             found++)
            assert(hosts_has(folded, name));
        for (at = (struct hosts_at){0}, found = 0; hosts_next(folded, &at, name) && found < 64;
             found++)
            assert(hosts_has(text, name));
    }
    hosts_has(text, "n10"); /* on an unchecked list: no out-of-bounds reads */
    free(text);
    return 0;
}
