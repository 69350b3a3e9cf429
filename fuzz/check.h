/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of every error about outside input: its kind is the return value, and its text is one
 * line of UTF-8 that a terminal can show.
 */
#ifndef BELAY_FUZZ_CHECK_H
#define BELAY_FUZZ_CHECK_H

#include "base/err.h"
#include "base/str.h"
#include <assert.h>
#include <string.h>

static inline void check_line(const char *text)
{
    size_t n = strlen(text);
    assert(n > 0 && str_is_utf8(text, n));
    for (size_t i = 0; i < n; i++)
        assert((unsigned char)text[i] >= ' ' && text[i] != 0x7F);
}

static inline void check_error(int rc, const struct err *e)
{
    assert(rc < 0 && rc == (int)e->kind && strlen(e->text) < ERR_TEXT_MAX);
    check_line(e->text);
}

/* Outputs are unchanged on failure: fill before, check after. */
#define CHECK_PATTERN 0xA5

static inline void check_untouched(const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert(((const unsigned char *)p)[i] == CHECK_PATTERN);
}

#endif
