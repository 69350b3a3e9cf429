/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/incarnation.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_MAX (INT64_C(1) << 52) /* larger numbers are not ours */

/* 0 if there is none, or a malformed one. */
static int64_t read_last(const char *path)
{
    struct buf text = {0};
    struct err ignored;
    int64_t last = 0;
    if (fs_read(path, 64, &text, &ignored) == 0 && text.len > 0)
        str_to_i64(text.data, 1, LAST_MAX, "incarnation", &last, &ignored);
    buf_deinit(&text);
    return last;
}

int incarnation_next(const char *dir, int64_t now_ms, int64_t *ret_incarnation, struct err *e)
{
    char *path = mem_printf("%s/incarnation", dir), text[32];
    int64_t last = read_last(path);
    int64_t next = now_ms > last ? now_ms : last + 1;
    snprintf(text, sizeof(text), "%lld", (long long)next);
    int rc = fs_write_atomic(path, text, strlen(text), 0600, e);
    if (!rc)
        *ret_incarnation = next;
    free(path);
    return rc;
}
