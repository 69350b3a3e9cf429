/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 (RFC 4648), with padding.
 */
#ifndef BELAY_BASE_B64_H
#define BELAY_BASE_B64_H

#include "base/buf.h"

void b64_encode(struct buf *out, const void *p, size_t n);

/* Appends to out. Skips line breaks. ERR_INVALID: any other character, wrong padding. */
int b64_decode(struct buf *out, const char *text, size_t n, struct err *e);

#endif
