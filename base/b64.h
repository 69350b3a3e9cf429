/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 (RFC 4648), with padding; and base64url, which has none.
 */
#ifndef BELAY_BASE_B64_H
#define BELAY_BASE_B64_H

#include "base/buf.h"

void b64_encode(struct buf *out, const void *p, size_t n);

/* Appends to out. Skips line breaks. ERR_INVALID: any other character, wrong padding. */
int b64_decode(struct buf *out, const char *text, size_t n, struct err *e);

/* The alphabet that URLs and JSON Web Tokens use. */
void b64_url_encode(struct buf *out, const void *p, size_t n);

/* Appends to out. Strict: no padding, no line breaks, unused bits are 0, so that each value has one
 * form. ERR_INVALID. */
int b64_url_decode(struct buf *out, const char *text, size_t n, struct err *e);

#endif
