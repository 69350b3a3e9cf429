/* SPDX-License-Identifier: Apache-2.0
 *
 * Scopes of tokens: what is accepted names exactly what it says, and gives an administrator fewer
 * rights; what is refused leaves no scope.
 */
#include "base/mem.h"
#include "base/str.h"
#include "fuzz/check.h"
#include "scheduler/access/access.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size), again[SCOPE_TEXT_MAX] = "";
    struct config config = {0};
    struct scope s = {.kind = SCOPES};
    struct caller c;
    struct err e = {0};
    int rc = scope_parse(text, &s, &e);
    if (rc == 0) {
        access_init(&c, &config, "ann", true);
        access_narrow(&c, ROLE_ADMIN, &s);
        assert(c.admin == (s.kind == SCOPE_NONE));
        assert(access_may(&c, RIGHT_ADMIN, NULL) == (s.kind == SCOPE_NONE));
        if (s.kind == SCOPE_POOL) {
            snprintf(again, sizeof(again), "pool=%s", s.pool);
            assert(str_eq(again, text));
        }
        assert(s.kind != SCOPE_CRON || s.id > 0);
        assert(s.kind != SCOPE_JOB && s.kind < SCOPES);
    } else {
        assert(s.kind == SCOPES);
        check_error(rc, &e);
    }
    free(text);
    return 0;
}
