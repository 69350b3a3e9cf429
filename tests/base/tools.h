/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of base.
 */
#ifndef BELAY_TESTS_BASE_TOOLS_H
#define BELAY_TESTS_BASE_TOOLS_H

#include "base/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

/* True if fn(arg) does not return, in a child process: abort(), or a sanitizer's equivalent. */
bool dies(void (*fn)(void *arg), void *arg);

/* Fails, with both texts, unless e has this kind and `part` is in its text. */
#define assert_err(e, kind_, part) check_err((e), (kind_), (part), __FILE__, __LINE__)
void check_err(
    const struct err *e, enum err_kind kind, const char *part, const char *file, int line);

/* cmocka's setup and teardown of a temporary directory: *state is its path. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

#endif
