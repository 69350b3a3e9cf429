/* SPDX-License-Identifier: Apache-2.0
 *
 * What a machine's console has shown, as a provider gives it: any bytes, from a machine that may be
 * anybody's. Pure.
 */
#ifndef BELAY_CLOUD_CONSOLE_H
#define BELAY_CLOUD_CONSOLE_H

#include "base/buf.h"

#define CLOUD_CONSOLE_MAX 4096 /* bytes that are kept: the end */

/* Appends the end of it as lines of printable ASCII, each with "\n": without terminal sequences and
 * empty lines. A word of 40 or more letters, digits, '_', '-', '+', '/' or '=' may be a secret (a
 * join token, a key) and is left out as "[...]". */
void cloud_console_clean(const char *raw, size_t n, struct buf *out);

#endif
