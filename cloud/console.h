/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine's console output as a provider returns it: arbitrary bytes from an untrusted machine.
 * Pure.
 */
#ifndef BELAY_CLOUD_CONSOLE_H
#define BELAY_CLOUD_CONSOLE_H

#include "base/buf.h"

#define CLOUD_CONSOLE_MAX 4096 /* bytes kept, from the end */

/* Appends the end of raw as lines of printable ASCII, each with "\n": without terminal sequences
 * and empty lines. A word of 40 or more letters, digits, '_', '-', '+', '/' or '=' may be a secret
 * (a join token, a key) and is replaced by "[...]". */
void cloud_console_clean(const char *raw, size_t n, struct buf *out);

#endif
